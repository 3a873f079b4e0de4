//! The published results themselves, where `RQPS_FIXTURES` names a folder with them.

use std::path::{Path, PathBuf};

use rqps_analysis as analyze;
use rqps_analysis::history::{LadderOptions, LevelChange, ladders};
use rqps_import::insert::tables::{self, merged, relative_rows, split_size};
use rqps_import::text::Text;
use rqps_import::{ImportOptions, cells, insert, kv, sysbench, vector};
use rqps_lab::benchmarks::render;
use rqps_model::metric::Metric;
use rqps_report::Format as Form;
use rqps_stats::change_points::{Compatibility, EDivisive, e_divisive};

use crate::import::{check, compared, read, texts, value};
use crate::support::skipped;
use rqps_import::format::NoticeKind;

/// The folder, or a note that the test was left out.
fn fixtures(test: &str, below: &str) -> Option<PathBuf> {
    match std::env::var_os("RQPS_FIXTURES") {
        Some(folder) => Some(Path::new(&folder).join(below)),
        None => {
            skipped::note(test, "RQPS_FIXTURES names no folder of published results");
            None
        }
    }
}

fn text(path: &Path) -> Text {
    Text::read(path).unwrap()
}

/// Change points of every series of Apache Otava 0.8.0, with its means and p.
#[test]
fn change_points_are_those_of_otava() {
    let Some(folder) = fixtures("change_points_of_otava", "statistics") else { return };
    let text = std::fs::read_to_string(folder.join("otava_golden.json")).unwrap();
    let golden: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    let number = |value: &serde_json::Value| value.as_f64().unwrap();
    let close = |ours: f64, theirs: f64| (ours - theirs).abs() <= 1e-8 * theirs.abs().max(1e-300);
    assert!(!golden.is_empty());
    for (place, one) in golden.iter().enumerate() {
        let series: Vec<f64> = one["series"].as_array().unwrap().iter().map(number).collect();
        let rules = EDivisive {
            window: one["window_len"].as_u64().unwrap() as usize,
            max_p: number(&one["max_pvalue"]),
            min_magnitude: number(&one["min_magnitude"]),
            compatibility: Compatibility::Otava,
        };
        let ours = e_divisive(&series, &rules);
        let theirs = one["change_points"].as_array().unwrap();
        let places: Vec<u64> = theirs.iter().map(|one| one["index"].as_u64().unwrap()).collect();
        let found: Vec<u64> = ours.iter().map(|shift| shift.index as u64).collect();
        assert_eq!(found, places, "series {place}");
        for (shift, point) in ours.iter().zip(theirs) {
            let pairs = [
                (shift.means[0], "mean_1"),
                (shift.means[1], "mean_2"),
                (shift.deviations[0], "std_1"),
                (shift.deviations[1], "std_2"),
                (shift.p, "pvalue"),
            ];
            for (ours, key) in pairs {
                let theirs = number(&point[key]);
                assert!(close(ours, theirs), "series {place}, {key}: {ours}, {theirs}");
            }
        }
    }
}

/// The author of the MariaDB series wrote beside most steps in which version they got slower.
/// Rows that the author leaves undecided elsewhere ("slow in …") count for recall only.
#[test]
fn changes_of_a_labelled_ladder_are_where_its_author_sees_them() {
    let Some(folder) = fixtures("labelled_ladder", "statistics") else { return };
    let file = folder.join("mariadb-10.2-12.1.labelled.tsv");
    let published = read(sysbench::MYTOOLS, &[&file], &ImportOptions::default()).unwrap();
    let comparison = compared(sysbench::MYTOOLS, &published);
    let options = LadderOptions { metric: Metric::Rate, order: None, branches: false };
    let ladders = ladders(&comparison, &options).unwrap();
    assert_eq!(ladders.len(), 1, "one DBMS, each version once");
    let ladder = &ladders[0];
    let (mut labels, mut hits, mut decided) = (0, 0, LabelScore::default());
    let mut of_all = LabelScore::default();
    for step in &ladder.steps {
        let Some((text, label)) =
            step.remarks.iter().find_map(|text| Some((text, version_in(text)?)))
        else {
            continue;
        };
        let belongs = |version: &str| version == label || version.starts_with(&format!("{label}."));
        let at = ladder.rungs.iter().position(|rung| belongs(rung.version.as_deref().unwrap()));
        let at = at.unwrap_or_else(|| panic!("{label} of {} is no version", step.step));
        let near = |change: &&LevelChange| change.at.abs_diff(at) <= 1;
        let slower: Vec<&LevelChange> =
            step.changes.iter().filter(|change| change.ratio < 1.0).collect();
        labels += 1;
        hits += usize::from(slower.iter().any(near));
        let most = slower.iter().min_by(|a, b| a.ratio.total_cmp(&b.ratio));
        let largest: Vec<&LevelChange> = most.into_iter().copied().collect();
        of_all.add(&largest, near);
        if !text.contains(UNDECIDED) {
            decided.add(&largest, near);
        }
        eprintln!("{} {label} at {at}: {:?}", step.step, step.changes);
    }
    let [f1, f1_of_all] = [decided.f1(), of_all.f1()];
    eprintln!("{hits} of {labels} found; the largest slowdown: {decided:?} F1 {f1:.3}");
    eprintln!("with undecided steps: {of_all:?} F1 {f1_of_all:.3}");
    assert!(labels >= 15, "{labels} labels");
    assert!(hits * 100 >= labels * 90, "{hits} of {labels}");
    assert!(f1 >= 0.95, "{decided:?}");
}

/// The author's remark beside steps that could have changed in several versions.
const UNDECIDED: &str = "slow in";

/// Agreement of one change for each step with one label for each step.
#[derive(Debug, Default)]
struct LabelScore {
    right: usize,
    wrong: usize,
    missed: usize,
}

impl LabelScore {
    fn add<'a>(&mut self, named: &[&'a LevelChange], near: impl Fn(&&'a LevelChange) -> bool) {
        let right = named.iter().filter(|change| near(change)).count();
        self.right += right;
        self.wrong += named.len() - right;
        self.missed += usize::from(right == 0);
    }

    fn f1(&self) -> f64 {
        2.0 * self.right as f64 / (2 * self.right + self.wrong + self.missed) as f64
    }
}

/// `10.5` of `-> 10.5, probably …` or `slow in 10.5, …`.
fn version_in(text: &str) -> Option<String> {
    let words = text.split(|letter: char| letter.is_whitespace() || letter == ',');
    let is_version = |word: &&str| {
        word.contains('.') && word.chars().all(|letter| letter.is_ascii_digit() || letter == '.')
    };
    words.into_iter().find(is_version).map(str::to_owned)
}

#[test]
fn mysql_of_2025_gives_the_published_ratios_and_summaries() {
    let Some(folder) = fixtures("mysql_of_2025", "sysbench/2025-11.mysql.dop1") else { return };
    let published = read(sysbench::MYTOOLS, &[&folder], &ImportOptions::default()).unwrap();
    assert_eq!(check(&published, "relative rates"), (231, 231));
    assert_eq!(check(&published, "ratios of hardware"), (1596, 1596));
    assert_eq!(texts(&published, NoticeKind::Mismatch), [""; 0]);
    let comparison = compared(sysbench::MYTOOLS, &published);
    let tsv = render(&comparison, Form::Tsv);
    let rows: Vec<&str> = tsv.split("\n\ncol-1 :").next().unwrap().lines().collect();
    let rel = std::fs::read_to_string(folder.join("qps.rel.all.tsv")).unwrap();
    for row in rel.lines() {
        assert!(rows.contains(&row), "{row}");
    }
    // min, max, average, median, stddev of 8.0.44.
    let golden = [
        ("point", [0.66, 0.85, 0.74, 0.74, 0.059]),
        ("range", [0.67, 1.25, 0.77, 0.70, 0.166]),
        ("write", [0.55, 0.88, 0.67, 0.65, 0.098]),
    ];
    for (group, expected) in golden {
        let group = comparison.groups.iter().find(|other| other.group.name() == group).unwrap();
        let mut targets = group.targets.iter().filter(|target| target.label.contains("my8044"));
        let summary = targets.next().unwrap().summary.as_ref().unwrap();
        let found =
            [summary.min, summary.max, summary.average, summary.median, summary.stddev.unwrap()];
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found - expected).abs() <= 0.0051, "{summary:?} {expected}");
        }
    }
}

#[test]
fn postgres_of_2021_gives_the_published_tables() {
    let Some(folder) = fixtures("postgres_of_2021", "sysbench/2021-01.pg.inmem.v3") else { return };
    let options = ImportOptions { clients: vec![1, 2, 3], ..ImportOptions::default() };
    let published = read(sysbench::MYTOOLS, &[&folder], &options).unwrap();
    assert_eq!(check(&published, "relative rates"), (248, 248));
    assert_eq!(check(&published, "ratios of hardware"), (336, 336));
    let of = |step: &str, metric| value(&published, "x.pg131.x5.pk1", step, metric);
    assert_eq!(of("update-one_range=100.dop2", Metric::Rate), Some(27996.0));
    assert_eq!(of("update-one_range=100.dop1", Metric::CpuPerOp), Some(0.002028));
}

#[test]
fn raw_folders_of_2025_give_the_published_metrics() {
    let Some(folder) = fixtures("raw_folders_of_2025", "sysbench/2025-02.pg.dop40") else { return };
    let published = read(sysbench::MYTOOLS, &[&folder], &ImportOptions::default()).unwrap();
    assert_eq!(check(&published, "sb.met from sb.vm"), (40, 40));
    assert_eq!(check(&published, "sb.met from sb.io"), (9, 9));
    let target = "x.pg1110_o2nofp.x10a_c32r128.pk1";
    let of = |metric| value(&published, target, "read-write_range=100", metric).unwrap();
    assert!((of(Metric::CpuPerOp) - 0.000172).abs() < 5e-7);
    assert!((of(Metric::ContextSwitchesPerOp) - 2.951).abs() < 5e-4);
    let vm = text(&folder.join(target).join("sb.vm.read-write.range100.pk1.dop40"));
    let vm = cells::parse_vmstat(&vm).unwrap();
    assert_eq!((vm.samples.len(), vm.banners), (635, 31));
    let (mean, samples) = vm.mean().unwrap();
    assert_eq!((mean.cs.round(), samples), (1_471_461.0, 634));
    assert_eq!(format!("{:.1}", mean.us + mean.sy), "85.7");
    let (compat, divisor) = vm.compat_mean().unwrap();
    assert_eq!((compat.cs.round(), divisor), (1_402_867.0, 665));
    let io = text(&folder.join(target).join("sb.io.point-query.range100.pk1.dop40"));
    let io = cells::parse_iostat(&io).unwrap();
    assert_eq!((io.cpus, io.mean("md2").unwrap().1), (Some(96), 335));
}

#[test]
fn merged_and_relative_tables_of_2021_follow_exactly() {
    let Some(folder) = fixtures("merged_and_relative_tables", "insert/2021-01.20m") else { return };
    let published = read(insert::MYTOOLS, &[&folder], &ImportOptions::default()).unwrap();
    assert_eq!(check(&published, "rows of merged"), (44, 44));
    assert_eq!(check(&published, "cells of relative"), (880, 880));
    // Not by the importer's word alone: whole lines.
    let sum = tables::parse_metrics(&text(&folder.join("o.sum.t.20m.pg131.cx5"))).unwrap();
    let mrg = std::fs::read_to_string(folder.join("res.pg/mrg.q100.1")).unwrap();
    assert!(mrg.lines().any(|line| line == merged(&sum.rows[3])), "{mrg}");
    let mrg = tables::parse_metrics(&text(&folder.join("res.pg/mrg.q100.1"))).unwrap();
    let rel = std::fs::read_to_string(folder.join("res.pg/rel.q100.1")).unwrap();
    let again: Vec<String> = relative_rows(&mrg).into_iter().map(|(_, line)| line).collect();
    assert_eq!(rel.lines().skip(1).collect::<Vec<_>>(), again);
    assert_eq!(split_size(&sum.rows[0].tag), (Some("20m"), "pg131.cx5"));
}

#[test]
fn november_2021_gives_the_published_ratios() {
    let Some(folder) = fixtures("november_2021", "insert") else { return };
    let file = folder.join("21_11_30.20m.my.metrics.tsv");
    let published = read(insert::MYTOOLS, &[&file], &ImportOptions::default()).unwrap();
    let comparison = compared(insert::MYTOOLS, &published);
    let golden: [(&str, &[f64]); 6] = [
        ("l.i0", &[0.896, 0.629, 0.629, 0.637, 0.629, 0.627]),
        ("l.x", &[1.378, 1.186, 1.159, 1.077, 1.109, 1.264]),
        ("l.i1", &[0.879, 0.654, 0.680, 0.695, 0.728, 0.726]),
        ("q100.1", &[1.072, 0.943, 0.936, 0.826, 0.785, 0.807]),
        ("q500.1", &[1.011, 0.892, 0.881, 0.778, 0.740, 0.764]),
        ("q1000.1", &[0.974, 0.859, 0.855, 0.744, 0.717, 0.737]),
    ];
    check_ratios(&comparison, &golden);
    assert_eq!(value(&published, "my8027.cy8", "l.i0", Metric::HostCpuPerOp), Some(21.0));
    let all = [folder.join("21_11_30.20m.pg.metrics.tsv"), folder.join("21_11_30.summary.txt")];
    let all: Vec<&Path> = all.iter().map(PathBuf::as_path).collect();
    let published = read(insert::MYTOOLS, &all, &ImportOptions::default()).unwrap();
    let longest = |label| value(&published, label, "l.i1", Metric::InsertMax);
    assert_eq!(longest("pg124.cx5").zip(longest("pg140.cx5")), Some((37.0, 696.0)));
}

/// Columns, colours and ratios of the published reports, by the words of the program itself.
#[test]
fn columns_and_colours_of_november_2021_follow() {
    let Some(folder) = fixtures("columns_and_colours", "insert") else { return };
    let said = |files: &[&str]| -> String {
        let out = tempfile::tempdir().unwrap();
        let out = out.path().join("out").display().to_string();
        let paths = files.iter().map(|file| folder.join(file).display().to_string());
        let paths: Vec<String> = paths.collect();
        let mut words = vec!["import", "ibench-mytools", "--clients", "1", "--out", &out];
        words.extend(paths.iter().map(String::as_str));
        let done = crate::import::rqps(&words);
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stderr).unwrap()
    };
    let sets = [("20m.my", 42), ("500m.my", 42), ("20m.pg", 18)];
    for (set, cells) in sets {
        let metrics = format!("21_11_30.{set}.metrics.tsv");
        let said = said(&[&metrics, "21_11_30.summary.txt"]);
        // The CPUs are not told: the rows allow four, and no other number.
        let columns =
            format!("columns recomputed from other columns on 4 CPUs: {cells} of {cells}");
        assert!(said.contains(&columns), "{said}");
        for (name, cells) in sets.into_iter().chain([("500m.pg", 18)]) {
            let colours = format!(
                "colours of {name} by the rule of November 2021, which counted every target as \
                 missed: {cells} of {cells}"
            );
            assert!(said.contains(&colours), "{colours}: {said}");
        }
        assert!(!said.contains("mismatch") && !said.contains("not comparable"), "{said}");
    }
}

/// A cell of the table of throughput is the rate of the row of metrics, and each of 120.
#[test]
fn throughput_of_november_2021_is_that_of_the_metrics() {
    let Some(folder) = fixtures("throughput", "insert") else { return };
    let summary = tables::parse_summary(&text(&folder.join("21_11_30.summary.txt"))).unwrap();
    let mut cells = 0;
    for set in ["20m.my", "500m.my", "20m.pg"] {
        let file = folder.join(format!("21_11_30.{set}.metrics.tsv"));
        let metrics = tables::parse_metrics(&text(&file)).unwrap();
        let table = summary.iter().find(|table| table.name == set).unwrap();
        for (line, target, row) in &table.rows {
            for (step, cell) in table.steps.iter().zip(row) {
                let of_row = |row: &&tables::MetricsRow| {
                    split_size(&row.tag).1 == target && row.step.as_ref() == Some(step)
                };
                let row = metrics.rows.iter().find(of_row).unwrap();
                let column = if step.starts_with('q') { "qps" } else { "ips" };
                assert_eq!(row.cell(column), Some(cell.printed.as_str()), "{set}, line {line}");
                cells += 1;
            }
        }
    }
    assert_eq!(cells, 42 + 42 + 18);
}

#[test]
fn response_times_of_november_2021_add_up() {
    let Some(folder) = fixtures("response_times", "insert") else { return };
    let rows = text(&folder.join("21_11_30.rt_histograms.tsv"));
    let rows = insert::histograms::parse_histogram(&rows).unwrap();
    assert_eq!(rows.len(), 101);
    let bounds = [0.0, 0.000_256, 0.001, 0.004, 0.016, 0.064, 0.256, 1.0, 4.0, 16.0];
    for row in &rows {
        let shares: Vec<f64> =
            row.cells.iter().map(|cell| cell.parse().unwrap_or(0.000_25)).collect();
        let sum: f64 = shares.iter().sum();
        assert!((sum - 100.0).abs() <= 0.02, "line {}: {sum}", row.line);
        // The longest is in the last class that has any, as far as it was printed.
        let last = shares.iter().rposition(|share| *share > 0.0).unwrap();
        let longest: f64 = row.max.parse().unwrap();
        let above = bounds.get(last + 1).copied().unwrap_or(f64::INFINITY);
        assert!(longest >= bounds[last] - 0.0005, "line {}: {longest}", row.line);
        assert!(longest <= above + 0.0005, "line {}: {longest}", row.line);
    }
    let tables: std::collections::BTreeSet<_> =
        rows.iter().map(|row| (&row.report, &row.step, &row.op)).collect();
    assert_eq!(tables.len(), 19);
}

/// The ratios of the published reports, each to the third decimal.
#[test]
fn io_bound_november_2021_gives_the_published_ratios() {
    let Some(folder) = fixtures("io_bound_november_2021", "insert") else { return };
    let imported = |set: &str| {
        let file = folder.join(format!("21_11_30.{set}.metrics.tsv"));
        read(insert::MYTOOLS, &[&file], &ImportOptions::default()).unwrap()
    };
    let my = imported("500m.my");
    let golden: [(&str, &[f64]); 6] = [
        ("l.i0", &[0.958, 0.666, 0.666, 0.681, 0.676, 0.683]),
        ("l.x", &[1.670, 1.613, 1.546, 1.528, 1.563, 1.565]),
        ("l.i1", &[1.135, 0.763, 0.858, 1.051, 1.123, 1.080]),
        ("q100.1", &[1.012, 0.931, 1.109, 1.145, 1.149, 1.133]),
        ("q500.1", &[1.005, 0.855, 1.062, 1.082, 1.084, 1.079]),
        ("q1000.1", &[1.007, 0.842, 1.050, 1.084, 1.077, 1.082]),
    ];
    check_ratios(&compared(insert::MYTOOLS, &my), &golden);
    let of = |label, step, metric| value(&my, label, step, metric);
    let cost = |label| of(label, "l.i1", Metric::HostCpuPerOp);
    assert_eq!([cost("my5649.cy8"), cost("my8020.cy8")], [Some(152.0), Some(285.0)]);
    assert_eq!([cost("my8022.cy8"), cost("my8027.cy8")], [Some(207.0), Some(179.0)]);
    let switches = |label| of(label, "l.i1", Metric::ContextSwitchesPerOp);
    assert_eq!([switches("my5649.cy8"), switches("my8020.cy8")], [Some(2.861), Some(5.842)]);
    let queries = |label| of(label, "q100.1", Metric::HostCpuPerOp);
    assert_eq!([queries("my5649.cy8"), queries("my8027.cy8")], [Some(929.0), Some(815.0)]);
    let pg = imported("20m.pg");
    let last: [(&str, &[f64]); 6] = [
        ("l.i0", &[0.980]),
        ("l.x", &[0.985]),
        ("l.i1", &[0.979]),
        ("q100.1", &[0.999]),
        ("q500.1", &[1.005]),
        ("q1000.1", &[0.997]),
    ];
    let comparison = compared(insert::MYTOOLS, &pg);
    for (name, expected) in last {
        let step = comparison.steps.iter().find(|step| step.name == name).unwrap();
        assert_eq!(step.targets[2].label, "pg140.cx5");
        let ratio = step.targets[2].relative(Metric::Rate).unwrap().ratio;
        assert!((ratio - expected[0]).abs() < 0.00051, "{name}: {ratio}");
    }
    // The write-back that l.i1 left behind.
    let my = imported("20m.my");
    let written = |label| value(&my, label, "q100.1", Metric::WriteKbPerInsert);
    assert_eq!([written("my5649.cy8"), written("my8027.cy8")], [Some(2.405), Some(13.233)]);
}

fn check_ratios(comparison: &analyze::Comparison, golden: &[(&str, &[f64])]) {
    for (name, expected) in golden {
        let step = comparison.steps.iter().find(|step| step.name == *name).unwrap();
        for (target, expected) in step.targets[1..].iter().zip(*expected) {
            let ratio = target.relative(Metric::Rate).unwrap().ratio;
            assert!((ratio - expected).abs() < 0.00051, "{name} {}: {ratio}", target.label);
        }
    }
}

#[test]
fn tables_of_db_bench_are_taken_over() {
    let Some(folder) = fixtures("tables_of_db_bench", "rocksdb") else { return };
    let labels = |labels: &[&str]| ImportOptions {
        labels: labels.iter().map(|label| (*label).to_owned()).collect(),
        ..ImportOptions::default()
    };
    let file = folder.join("2025-05.dell32/sum.iobuf.both.txt");
    let published = read(kv::DB_BENCH, &[&file], &labels(&["lru", "hcc"])).unwrap();
    assert_eq!(published.runs.len(), 2);
    assert_eq!(published.runs[0].steps.len(), 7);
    let names: Vec<String> = (0..11).map(|n| format!("v{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let file = folder.join("2023-11.c2/abs.iodir.8x.tsv");
    let published = read(kv::DB_BENCH, &[&file], &labels(&names)).unwrap();
    let comparison = compared(kv::DB_BENCH, &published);
    let write = comparison.steps.iter().find(|step| step.name.starts_with("overwrite")).unwrap();
    // 8.5.4 to 8.6.7 to 8.7.3 under direct IO.
    let rate = |target: usize| write.targets[target].absolute(Metric::Rate).unwrap();
    assert_eq!([rate(5), rate(6), rate(7)], [159_903.0, 31_453.0, 151_970.0]);
}

#[test]
fn vector_search_of_2025_gives_the_published_table() {
    let name = "vector_search_of_2025";
    let Some(folder) = fixtures(name, "vector/2025-01.fashion.serial") else { return };
    let published = read(vector::ANN_BENCHMARKS, &[&folder], &ImportOptions::default()).unwrap();
    let points: usize = published.runs.iter().map(|run| run.steps.len()).sum();
    assert_eq!((published.runs.len(), points), (3, 385));
    assert_eq!(check(&published, "build times of tables"), (9, 9));
    assert_eq!(check(&published, "selected rows found"), (72, 72));
    // The selection left out the points with ef 30.
    assert_eq!(check(&published, "selected rows that are the best"), (70, 72));
    let wrong = texts(&published, NoticeKind::Mismatch);
    assert!(wrong[0].contains("MariaDB(m=16, ef_search=30)"), "{wrong:?}");
    assert!(wrong[1].contains("MariaDB(m=6, ef_search=30)"), "{wrong:?}");
    let comparison = compared(vector::ANN_BENCHMARKS, &published);
    let golden = [
        (0, [(1.0, 920, 97.4), (0.99, 2337, 70.7), (0.98, 2383, 50.4), (0.97, 3033, 42.3)]),
        (1, [(1.0, 991, 89.8), (0.99, 2558, 78.3), (0.98, 2608, 52.8), (0.97, 3185, 89.8)]),
        (2, [(1.0, 3226, 111.8), (0.99, 4745, 27.4), (0.98, 5351, 18.1), (0.97, 5351, 18.1)]),
    ];
    let curves = rqps_bench_vector::analyze::curves(&comparison);
    for (place, rows) in golden {
        let curve = curves.iter().find(|curve| curve.place == place).unwrap();
        for (recall, qps, seconds) in rows {
            let best = &curve.points[curve.best_for(recall).unwrap().best];
            assert_eq!(best.rate.value.round() as u32, qps, "{} {recall}", curve.label);
            assert_eq!(best.build_seconds, Some(seconds), "{} {recall}", curve.label);
        }
    }
}
