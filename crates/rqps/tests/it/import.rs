//! Others' results become run folders, and what is reported of them is what was published.

#![allow(clippy::unwrap_used)] // A test file throughout; clippy only sees the marked functions.

mod forms;
mod ladder;
mod published;
mod samples;

use std::path::Path;
use std::process::{Command, Output};

use rqps_analysis::{self as analyze, Comparison};
use rqps_import::format::NoticeKind;
use rqps_import::{
    self as import, ImportError, ImportFormat, ImportOptions, Named, Published, insert, kv,
    sysbench, vector,
};
use rqps_lab::benchmarks::{compare, render};
use rqps_model::metric::Metric;
use rqps_model::run::Status;
use rqps_report::Format as Form;
use rqps_results as results;

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    folder
}

fn read(
    format: ImportFormat,
    paths: &[&Path],
    options: &ImportOptions,
) -> Result<Published, ImportError> {
    let named = |path: &&Path| Named { path: path.to_path_buf(), label: None, step: None };
    let paths: Vec<Named> = paths.iter().map(named).collect();
    import::read(format, &paths, options)
}

/// The comparison for a report, written to a folder on disk and read again.
fn compared(format: ImportFormat, published: &Published) -> Comparison {
    let out = tempfile::tempdir().unwrap();
    let out = out.path().join("out");
    import::write(format, published, &out).unwrap();
    let dataset = results::read(&[out]).unwrap();
    compare(&dataset, &analyze::VerdictOptions::default()).unwrap()
}

fn value(published: &Published, label: &str, step: &str, metric: Metric) -> Option<f64> {
    let mut runs = published.runs.iter().filter(|run| run.record.key.label == label);
    let steps = runs.next().unwrap_or_else(|| panic!("no run of {label}")).steps.iter();
    let mut steps = steps.filter(|record| record.name == step);
    let step = steps.next().unwrap_or_else(|| panic!("{label} has no {step}"));
    step.outcome.extra.get(&metric).copied()
}

fn texts(published: &Published, kind: NoticeKind) -> Vec<String> {
    let notices = published.notices.iter().filter(|notice| notice.kind == kind);
    notices.map(ToString::to_string).collect()
}

fn check(published: &Published, what: &str) -> (usize, usize) {
    let mut checks = published.checks.iter().filter(|check| check.what.starts_with(what));
    let check = checks.next().unwrap_or_else(|| panic!("{what}: {:?}", published.checks));
    (check.agree, check.of)
}

const MY56: &str = "x.my5651_rel.z12a_c8r32.pk1";
const MY80: &str = "x.my8044_rel.z12a_c8r32.pk1";

#[test]
fn tables_of_sysbench_come_out_as_published() {
    let files = [
        ("qps.abs.all.tsv", samples::QPS_ABS),
        ("qps.rel.all.tsv", samples::QPS_REL),
        ("o.met.all", samples::MET),
        ("notes.md", "Remember the milk.\n"),
        ("v2/qps.abs.all.tsv", samples::QPS_ABS),
    ];
    let folder = folder(&files);
    let published = read(sysbench::MYTOOLS, &[folder.path()], &ImportOptions::default()).unwrap();
    assert_eq!(check(&published, "relative rates"), (12, 12));
    assert_eq!(check(&published, "ratios of hardware"), (12, 12));
    assert_eq!(texts(&published, NoticeKind::Mismatch), [""; 0]);
    let left = texts(&published, NoticeKind::Left).join("\n");
    for part in ["notes.md", "v2: not imported", "published `innodb` instead of a number"] {
        assert!(left.contains(part), "{part}: {left}");
    }
    assert_eq!(value(&published, MY80, "hot-points_range=100", Metric::Rate), Some(3000.0));
    assert_eq!(value(&published, MY56, "load", Metric::WriteKbPerOp), Some(1.236));
    let comparison = compared(sysbench::MYTOOLS, &published);
    let tsv = render(&comparison, Form::Tsv);
    for row in ["0.75\t0.25\thot-points_range=100", "1.20\t0.00\tread-only_range=10000"] {
        assert!(tsv.contains(row), "{row}: {tsv}");
    }
    let text = render(&comparison, Form::Text);
    for part in ["c8r32", "5.6.51", "8.0.44", "published by others, imported as sysbench-mytools"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("WARNING"), "{text}");
    // Warm steps are in the table and not in the summary; what failed is no number.
    let range = comparison.groups.iter().find(|group| group.group.name() == "range").unwrap();
    assert_eq!(range.steps, 2);
    let point = comparison.steps.iter().find(|step| step.name == "point-query_range=100").unwrap();
    assert!(matches!(point.targets[2].failures[0].status, Status::Failed(_)), "{point:?}");
}

#[test]
fn a_wrong_cell_is_told_with_its_line() {
    let files = [
        ("qps.abs.tsv", samples::QPS_ABS.to_owned()),
        ("qps.rel.tsv", samples::QPS_REL.replace("0.75", "0.76")),
        ("o.met", samples::MET.replace("4.60", "4.50")),
    ];
    let files: Vec<(&str, &str)> =
        files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let folder = folder(&files);
    let published = read(sysbench::MYTOOLS, &[folder.path()], &ImportOptions::default()).unwrap();
    let wrong = texts(&published, NoticeKind::Mismatch);
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(wrong[0].contains("qps.rel.tsv, line 6: mismatch: hot-points_range=100"), "{wrong:?}");
    assert!(wrong[0].contains("published 0.76, but 3000 / 4000 gives 0.75"), "{wrong:?}");
    assert!(wrong[1].contains("o.met, line 7") && wrong[1].contains("4.50"), "{wrong:?}");
}

#[test]
fn columns_of_clients_get_their_names() {
    let files = [("o.qps.abs.pg", samples::BLOCKS), ("o.qps.rel.pg", samples::BLOCK_RATIOS)];
    let folder = folder(&files);
    let published = read(sysbench::MYTOOLS, &[folder.path()], &ImportOptions::default()).unwrap();
    assert_eq!(check(&published, "relative rates"), (3, 3));
    let name = "point-query.pre_range=100";
    let second = format!("{name}.col2");
    assert_eq!(value(&published, "x.pg131.x5.pk1", &second, Metric::Rate), Some(49086.0));
    let options = ImportOptions { clients: vec![1, 2], ..ImportOptions::default() };
    let published = read(sysbench::MYTOOLS, &[folder.path()], &options).unwrap();
    let second = format!("{name}.dop2");
    assert_eq!(value(&published, "x.pg131.x5.pk1", &second, Metric::Rate), Some(49086.0));
    let options = ImportOptions { clients: vec![1], ..ImportOptions::default() };
    let fault = read(sysbench::MYTOOLS, &[folder.path()], &options).unwrap_err();
    assert!(fault.to_string().contains("2 columns of clients, but --clients names 1"), "{fault}");
}

#[test]
fn samples_of_a_target_give_the_published_metrics_and_better_ones() {
    let files = [
        ("x.a/sb.o.point-query.range100.pk1.dop4", samples::SB_O),
        ("x.a/sb.met.point-query.range100.pk1.dop4", samples::SB_MET),
        ("x.a/sb.vm.point-query.range100.pk1.dop4", samples::SB_VM),
        ("x.a/sb.io.point-query.range100.pk1.dop4", samples::SB_IO),
        ("x.a/sb.r.qps.point-query.range100.pk1", "1000\tpgsql point-query range=100\n"),
        ("x.a/sb.top.point-query.range100.pk1.dop4", "top\n"),
    ];
    let folder = folder(&files);
    let step = "point-query_range=100";
    let published = read(sysbench::MYTOOLS, &[folder.path()], &ImportOptions::default()).unwrap();
    assert_eq!(check(&published, "sb.met from sb.vm"), (5, 5));
    assert_eq!(check(&published, "sb.met from sb.io"), (9, 9));
    let of = |published: &Published, metric| value(published, "x.a", step, metric);
    // (4000 + 6000) / 2 samples / 1000 o/s; (40 + 44) / 2 / 1000.
    assert_eq!(of(&published, Metric::ContextSwitchesPerOp), Some(5.0));
    assert_eq!(of(&published, Metric::CpuPerOp), Some(0.042));
    assert_eq!(
        (of(&published, Metric::P95), of(&published, Metric::Max)),
        (Some(4.1), Some(11.26))
    );
    let options = ImportOptions { compat: true, ..ImportOptions::default() };
    let compat = read(sysbench::MYTOOLS, &[folder.path()], &options).unwrap();
    assert_eq!(of(&compat, Metric::ContextSwitchesPerOp), Some(2.5));
    assert_eq!(of(&compat, Metric::CpuPerOp), Some(0.0275));
    let record = &published.runs[0].steps[0];
    assert_eq!((record.outcome.statements, record.outcome.errors["ignored errors"]), (10000, 2));
    assert_eq!(record.per_second, [990.0, 1010.0]);
    let logs = &published.runs[0].logs;
    assert!(logs[0].1.contains("--tables=8") && !logs[0].1.contains("secret"), "{logs:?}");
    let workload = &published.runs[0].record.workload;
    assert_eq!((workload.tables, workload.rows, workload.clients), (8, 1_000_000, 4));
    assert_eq!(
        (published.host.cpus, published.host.kernel.as_deref()),
        (4, Some("5.15.0-119-generic"))
    );
    let left = texts(&published, NoticeKind::Left).join("\n");
    assert!(left.contains("1 sb.top"), "{left}");
    // 6000 events at 3.911 ms and 4000 at 4.128.
    let comparison = compared(sysbench::MYTOOLS, &published);
    let p50 = comparison.steps[0].targets[0].absolute(Metric::P50).unwrap();
    assert!((p50 - 3.911).abs() < 0.01, "{p50}");
    assert_eq!(comparison.steps[0].targets[0].absolute(Metric::ClientCpuPerOp), None);
}

#[test]
fn folders_of_two_workloads_are_steps_of_their_own() {
    let output = |rate: &str| {
        let counts = samples::SB_O.replace("10000", &format!("{rate}0"));
        counts.replace("1000.00", &format!("{rate}.00"))
    };
    let files = [
        ("cached/8u/x.a/sb.o.point-query.range100.pk1.dop8", output("1000")),
        ("cached/8u/x.a/sb.o.read-only.range100.pk1.dop8", output("900")),
        ("io/8u/x.a/sb.o.point-query.range100.pk1.dop8", output("200")),
        ("io/8u/x.a/sb.o.read-only.range100.pk1.dop8", output("100")),
    ];
    let files = files.iter().map(|(name, content)| (*name, content.as_str()));
    let folder = folder(&files.collect::<Vec<_>>());
    let paths = ["cached/8u", "io/8u"].map(|path| folder.path().join(path));
    let paths = [paths[0].as_path(), &paths[1]];
    let published = read(sysbench::MYTOOLS, &paths, &ImportOptions::default()).unwrap();
    let rate = |step| value(&published, "x.a", step, Metric::Rate);
    assert_eq!(rate("point-query_range=100.cached"), Some(1000.0));
    assert_eq!(rate("read-only_range=100.io"), Some(100.0));
    assert_eq!(texts(&published, NoticeKind::Mismatch), [""; 0]);
    let said = texts(&published, NoticeKind::Note).join("\n");
    assert!(said.contains("(cached, io)"), "{said}");
}

#[test]
fn a_device_that_nobody_named_is_asked_for() {
    let two = samples::SB_IO.replace("loop0            0.00", "sda              9.00");
    let files = [
        ("x.a/sb.o.point-query.range100.pk1.dop4", samples::SB_O),
        ("x.a/sb.io.point-query.range100.pk1.dop4", two.as_str()),
    ];
    let folder = folder(&files);
    let published = read(sysbench::MYTOOLS, &[folder.path()], &ImportOptions::default()).unwrap();
    let left = texts(&published, NoticeKind::Left).join("\n");
    assert!(left.contains("name one of md2, sda with --device"), "{left}");
    let options = ImportOptions { device: Some("md2".to_owned()), ..ImportOptions::default() };
    let published = read(sysbench::MYTOOLS, &[folder.path()], &options).unwrap();
    let reads = value(&published, "x.a", "point-query_range=100", Metric::ReadsPerOp);
    assert_eq!(reads, Some(0.2));
}

#[test]
fn plain_outputs_are_repetitions_of_a_step_or_steps() {
    let slower = samples::SB_O.replace("(1000.00 per sec.)", "(900.00 per sec.)");
    let folder = folder(&[("a.txt", samples::SB_O), ("b.txt", &slower), ("c.txt", "no output\n")]);
    let file = |name: &str| folder.path().join(name);
    let named = |label: &str, step: Option<&str>, name: &str| Named {
        path: file(name),
        label: Some(label.to_owned()),
        step: step.map(str::to_owned),
    };
    let of = |paths: &[Named]| import::read(sysbench::PLAIN, paths, &ImportOptions::default());
    let pair = [named("old", None, "a.txt"), named("new", None, "b.txt")];
    let comparison = compared(sysbench::PLAIN, &of(&pair).unwrap());
    let relative = comparison.steps[0].targets[1].relative(Metric::Rate).unwrap();
    assert_eq!(comparison.steps[0].name, "oltp_point_select");
    assert!((relative.ratio - 0.9).abs() < 1e-12, "{relative:?}");
    let twice = [named("old", None, "a.txt"), named("old", None, "b.txt")];
    let blocks: Vec<u32> =
        of(&twice).unwrap().runs.iter().map(|run| run.record.key.block).collect();
    assert_eq!(blocks, [1, 2]);
    let steps = [named("old", Some("p"), "a.txt"), named("old", Some("q"), "b.txt")];
    let names: Vec<String> =
        of(&steps).unwrap().runs[0].steps.iter().map(|step| step.name.clone()).collect();
    assert_eq!(names, ["p", "q"]);
    let fault = of(&[named("old", None, "c.txt")]).unwrap_err().to_string();
    assert!(fault.contains("c.txt") && fault.contains("not output of sysbench"), "{fault}");
}

#[test]
fn the_insert_benchmark_comes_out_as_published() {
    let files = [
        ("o.sum.t.20m.pg1.c5", samples::O_SUM),
        ("res.pg/mrg.l.i0", samples::MRG),
        ("res.pg/rel.l.i0", samples::REL),
        ("rt.tsv", samples::HISTOGRAMS),
        ("summary.txt", samples::SUMMARY),
    ];
    let folder = folder(&files);
    let options = ImportOptions { clients: vec![1], ..ImportOptions::default() };
    let published = read(insert::MYTOOLS, &[folder.path()], &options).unwrap();
    assert_eq!(check(&published, "rows of merged"), (1, 1));
    assert_eq!(check(&published, "cells of relative"), (20, 20));
    let mismatches = texts(&published, NoticeKind::Mismatch);
    assert_eq!(mismatches.len(), 1, "{mismatches:?}");
    assert!(mismatches[0].contains("summary.txt, line 3"), "{mismatches:?}");
    let of = |step, metric| value(&published, "pg1.c5", step, metric);
    assert_eq!((of("l.i0", Metric::Rate), of("q500.1", Metric::Rate)), (Some(1e5), Some(7e3)));
    assert_eq!(of("q1000.1", Metric::InsertRate), Some(900.0));
    assert_eq!(of("q100.1", Metric::InsertMax), Some(21.0));
    assert_eq!(
        (of("l.x", Metric::SecondsP50), of("l.i1", Metric::ServerRss)),
        (None, Some(3072.0))
    );
    assert_eq!(published.runs[0].record.workload.rows, 20_000_000);
    let comparison = compared(insert::MYTOOLS, &published);
    let load = comparison.steps.iter().find(|step| step.name == "l.i0").unwrap();
    let ratio = load.targets[1].relative(Metric::Rate).unwrap().ratio;
    assert!((ratio - 0.8).abs() < 1e-12, "{ratio}");
}

#[test]
fn folders_of_raw_files_are_left_out_by_name() {
    let folder = folder(&[("o.sum.t", samples::O_SUM)]);
    std::fs::create_dir_all(folder.path().join("20m.pg1.c5/l.i0")).unwrap();
    std::fs::write(folder.path().join("20m.pg1.c5/l.i0/o.ib.dop1.1"), "Done\n").unwrap();
    let published = read(insert::MYTOOLS, &[folder.path()], &ImportOptions::default()).unwrap();
    let left = texts(&published, NoticeKind::Left).join("\n");
    assert!(left.contains("20m.pg1.c5: not imported: a folder: import it"), "{left}");
    let alone = folder.path().join("20m.pg1.c5/l.i0");
    let fault = read(insert::MYTOOLS, &[&alone], &ImportOptions::default()).unwrap_err();
    assert!(fault.to_string().contains("no rows of metrics"), "{fault}");
}

#[test]
fn steps_that_a_table_does_not_name_are_asked_for() {
    let cut: String = samples::O_SUM.lines().take(5).map(|line| format!("{line}\n")).collect();
    let folder = folder(&[("o.sum.t", &cut)]);
    let path = folder.path().join("o.sum.t");
    let fault = read(insert::MYTOOLS, &[&path], &ImportOptions::default()).unwrap_err();
    assert!(fault.to_string().contains("line 5: 4 rows: the published sequences"), "{fault}");
    let steps = |names: &[&str]| ImportOptions {
        steps: names.iter().map(|name| (*name).to_owned()).collect(),
        ..ImportOptions::default()
    };
    let options = steps(&["l.i0", "l.x", "l.i1", "q100.1"]);
    let published = read(insert::MYTOOLS, &[&path], &options).unwrap();
    assert_eq!(value(&published, "pg1.c5", "q100.1", Metric::Rate), Some(7000.0));
    let wrong = steps(&["l.i0", "l.x", "q50.1", "q100.1"]);
    let fault = read(insert::MYTOOLS, &[&path], &wrong).unwrap_err();
    assert!(fault.to_string().contains("line 4: this row should be step q50.1"), "{fault}");
}

#[test]
fn reports_of_db_bench_keep_shifted_columns_apart() {
    let folder = folder(&[("sum.iobuf.txt", samples::DBB_SUM)]);
    let path = folder.path().join("sum.iobuf.txt");
    let published = read(kv::DB_BENCH, &[&path], &ImportOptions::default()).unwrap();
    let of = |label, metric| value(&published, label, "fillseq.wal_disabled.v400", metric);
    assert_eq!((of("9.8", Metric::Rate), of("10.3", Metric::LsmSize)), (Some(1e6), Some(2048.0)));
    assert_eq!(of("9.8", Metric::CompactionWallSeconds), Some(69.0));
    assert_eq!(of("10.3", Metric::CompactionWallSeconds), None);
    assert_eq!(of("10.3", Metric::CompactionWallSecondsCompat), Some(177.0));
    assert_eq!((of("9.8", Metric::WriteAmp), of("9.8", Metric::WriteAmpCompat)), (None, Some(2.0)));
    let comparison = compared(kv::DB_BENCH, &published);
    let write = comparison.steps.iter().find(|step| step.name.starts_with("overwrite")).unwrap();
    assert_eq!(write.targets[1].failures.len(), 1);
    assert!(render(&comparison, Form::Text).contains("published as failed"));
}

#[test]
fn rows_of_one_version_are_targets_or_repetitions() {
    let rows: String = samples::DBB_SUM.lines().skip(3).map(|line| format!("{line}\n")).collect();
    let same = rows.replace("10.3.4", "9.8.4").replace("failed", "1");
    let folder = folder(&[("sum.txt", &same)]);
    let path = folder.path().join("sum.txt");
    let labels = |options: &ImportOptions| -> Vec<(String, u32)> {
        let published = read(kv::DB_BENCH, &[&path], options).unwrap();
        let key = |run: &import::PublishedRun| (run.record.key.label.clone(), run.record.key.block);
        published.runs.iter().map(key).collect()
    };
    let pair = |a: &str, b: (&str, u32)| vec![(a.to_owned(), 1), (b.0.to_owned(), b.1)];
    assert_eq!(labels(&ImportOptions::default()), pair("9.8.4", ("9.8.4#2", 1)));
    let repeats = ImportOptions { repeats: true, ..ImportOptions::default() };
    assert_eq!(labels(&repeats), pair("9.8.4", ("9.8.4", 2)));
    let named =
        ImportOptions { labels: vec!["lru".into(), "hcc".into()], ..ImportOptions::default() };
    assert_eq!(labels(&named), pair("lru", ("hcc", 1)));
}

#[test]
fn ratios_of_db_bench_follow_from_its_rates() {
    let files = [("abs.tsv", samples::DBB_RATES), ("rel.csv", samples::DBB_RATIOS)];
    let both = folder(&files);
    let published = read(kv::DB_BENCH, &[both.path()], &ImportOptions::default()).unwrap();
    assert_eq!(check(&published, "relative rates"), (6, 6));
    // A report names the same builds by their folders.
    let report = samples::DBB_SUM.replace("1000000", "1234567").replace("1100000", "1134567");
    let rates = "test,9.8.4,10.3.4\nfillseq.wal_disabled.v400,1234567,1134567\n";
    let ratios = "test,9.8.4,10.3.4\nfillseq.wal_disabled.v400,1.00,0.92\n";
    let of_builds =
        folder(&[("sum.txt", report.as_str()), ("abs.tsv", rates), ("rel.tsv", ratios)]);
    let published = read(kv::DB_BENCH, &[of_builds.path()], &ImportOptions::default()).unwrap();
    assert_eq!((published.runs.len(), check(&published, "relative rates")), (2, (2, 2)));
    let alone = folder(&files[1..]);
    let fault = read(kv::DB_BENCH, &[alone.path()], &ImportOptions::default()).unwrap_err();
    assert!(fault.to_string().contains("ratios alone are not enough"), "{fault}");
    let log = folder(&[
        ("a.log", samples::DBB_LOG),
        ("a.log.r.csv", "secs_elapsed,interval_qps\n1,400000\n2,450000\n"),
    ]);
    let published = read(kv::DB_BENCH, &[log.path()], &ImportOptions::default()).unwrap();
    let step = &published.runs[0].steps[0];
    assert_eq!((step.name.as_str(), step.per_second.len()), ("overwrite", 2));
    // 1.50 GB of 1.50 GB; as published, flushes count twice.
    assert_eq!(step.outcome.extra[&Metric::WriteAmp], 1.0);
    assert!((step.outcome.extra[&Metric::WriteAmpCompat] - 2.011 / 1.5).abs() < 1e-12);
    assert_eq!(step.outcome.extra[&Metric::StallL0Delays], 3.0);
}

#[test]
fn a_published_choice_that_is_not_the_best_is_told() {
    let files = [
        ("o.plot", samples::PLOT),
        ("build.txt", samples::BUILDS),
        ("qr.topN.1", samples::SELECTED),
        ("o.batch0.mariadb", samples::ANN_LOG),
    ];
    let folder = folder(&files);
    let published =
        read(vector::ANN_BENCHMARKS, &[folder.path()], &ImportOptions::default()).unwrap();
    let of = |label, step, metric| value(&published, label, step, metric);
    assert_eq!(of("PGVector", "search.m=16.ec=64.ef=20", Metric::Recall), Some(0.99));
    assert_eq!(of("PGVector", "search.m=16.ec=64.ef=20", Metric::BuildSeconds), Some(61.7));
    assert_eq!(of("MariaDB", "search.m=8.ef=10", Metric::Rate), Some(5351.4));
    assert_eq!(of("MariaDB", "search.m=12.ef=10", Metric::IndexSize), Some(132.0));
    assert_eq!(of("MariaDB", "search.m=12.ef=10", Metric::LoadSeconds), Some(5.41));
    let wrong = texts(&published, NoticeKind::Mismatch);
    assert_eq!(wrong.len(), 2, "{wrong:?}");
    assert!(wrong[0].contains("line 3") && wrong[0].contains("18.1 s, but the build took 27.4"));
    assert!(wrong[1].contains("MariaDB(m=8, ef_search=10)") && wrong[1].contains("+12.8 %"));
}

#[test]
fn foreign_and_broken_files_are_refused_with_their_line() {
    let files = [
        ("readme.txt", "hello\n"),
        ("cut.tsv", samples::QPS_ABS.split("\t7\t").next().unwrap()),
        ("bytes.bin", "\u{1}\u{2}"),
    ];
    let folder = folder(&files);
    let binary = folder.path().join("binary");
    std::fs::write(&binary, b"col-1 : x\n\xff\xfe\n").unwrap();
    for format in import::FORMATS {
        for name in ["readme.txt", "bytes.bin", "binary", "nothing", "empty"] {
            let path = folder.path().join(name);
            if name == "empty" {
                std::fs::create_dir_all(&path).unwrap();
            }
            let fault = read(format, &[&path], &ImportOptions::default()).unwrap_err().to_string();
            assert!(fault.contains(name), "{}: {fault}", format.word);
        }
    }
    let cut = folder.path().join("cut.tsv");
    let fault = read(sysbench::MYTOOLS, &[&cut], &ImportOptions::default()).unwrap_err();
    assert!(matches!(fault, ImportError::Malformed { .. }), "{fault}");
}

#[test]
fn a_last_line_without_an_end_is_told() {
    // Cut within the last name: every cell is there, and the name is another.
    let cut = samples::QPS_ABS.split("_range=100\t->").next().unwrap();
    let cut_folder = folder(&[("qps.abs.tsv", cut)]);
    let fault = read(sysbench::MYTOOLS, &[cut_folder.path()], &ImportOptions::default());
    let fault = fault.unwrap_err().to_string();
    assert!(fault.contains("qps.abs.tsv`, line 11: the file is truncated within"), "{fault}");
    let folder = folder(&[("qps.abs.tsv", samples::QPS_ABS.trim_end())]);
    let published = read(sysbench::MYTOOLS, &[folder.path()], &ImportOptions::default()).unwrap();
    let notes = texts(&published, NoticeKind::Note).join("\n");
    assert!(notes.contains("qps.abs.tsv, line 11: the last line has no newline"), "{notes}");
}

#[test]
fn packed_files_are_unpacked() {
    use std::io::Write;

    let folder = folder(&[]);
    let path = folder.path().join("qps.abs.all.tsv.gz");
    let file = std::fs::File::create(&path).unwrap();
    let mut packer = flate2::write::GzEncoder::new(file, flate2::Compression::default());
    packer.write_all(samples::QPS_ABS.replace('\n', "\r\n").as_bytes()).unwrap();
    packer.finish().unwrap();
    let published = read(sysbench::MYTOOLS, &[&path], &ImportOptions::default()).unwrap();
    assert_eq!(value(&published, MY56, "scan_range=100", Metric::Rate), Some(6500.0));
}

fn rqps(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rqps")).args(arguments).output().unwrap()
}

#[test]
fn the_command_line_imports_and_reports() {
    let folder = folder(&[("qps.abs.tsv", samples::QPS_ABS), ("qps.rel.tsv", samples::QPS_REL)]);
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let path = folder.path().join("qps.abs.tsv");
    let rel = folder.path().join("qps.rel.tsv");
    let words = ["import", "sysbench-mytools", path.to_str().unwrap(), rel.to_str().unwrap()];
    let done = rqps(&[&words[..], &["--out", out]].concat());
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success(), "{said}");
    assert!(said.contains("12 of 12 cells as published"), "{said}");
    let printed = String::from_utf8(done.stdout).unwrap();
    assert!(printed.contains("imported 3 targets, 3 runs, 18 steps"), "{printed}");
    let report = rqps(&["report", out, "--format", "tsv"]);
    let report = String::from_utf8(report.stdout).unwrap();
    assert!(report.contains("0.65\t\tpoint-query_range=100"), "{report}");
    // A folder that holds results is not written over, and words that are wrong are told.
    let again = rqps(&[&words[..], &["--out", out]].concat());
    let fault = String::from_utf8(again.stderr).unwrap();
    assert!(
        again.status.code() == Some(2) && fault.contains("already holds the same results"),
        "{fault}"
    );
    let unknown = rqps(&["import", "excel", out, "--out", out]);
    let fault = String::from_utf8(unknown.stderr).unwrap();
    assert!(fault.contains("unknown format (known: sysbench-mytools, sysbench"), "{fault}");
    // What is imported cannot be run.
    let run = rqps(&["run", out, "--resume"]);
    assert!(!run.status.success(), "{run:?}");
}

#[test]
fn a_name_too_long_for_a_file_leaves_nothing() {
    let long = "p".repeat(260);
    let table = format!("col-1 : a\ncol-2 : b\n\ncol-1\tcol-2\n10\t20\tscan\n1\t2\t{long}\n");
    let folder = folder(&[("qps.abs.tsv", &table), ("empty/.keep", "")]);
    let file = folder.path().join("qps.abs.tsv");
    let published = read(sysbench::MYTOOLS, &[&file], &ImportOptions::default()).unwrap();
    for out in ["new", "empty"].map(|name| folder.path().join(name)) {
        let fault = import::write(sysbench::MYTOOLS, &published, &out).unwrap_err();
        let said = fault.to_string();
        for part in ["qps.abs.tsv`: the name of a step", "has 260 bytes", "can have at most 200"] {
            assert!(said.contains(part) && said.len() < 300, "{part}: {said}");
        }
    }
    let names = |path: &Path| {
        let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names(folder.path()), ["empty", "qps.abs.tsv"]);
    assert_eq!(names(&folder.path().join("empty")), [".keep"]);
    // What can be written is there whole, in a new folder and in one that was there.
    let good = table.replace(&long, "insert");
    std::fs::write(&file, good).unwrap();
    let published = read(sysbench::MYTOOLS, &[&file], &ImportOptions::default()).unwrap();
    for out in ["new", "empty"].map(|name| folder.path().join(name)) {
        import::write(sysbench::MYTOOLS, &published, &out).unwrap();
        let there = names(&out);
        assert!(there.ends_with(&["b01-1-a", "b01-2-b", "host.json", "plan.toml"].map(Into::into)));
        assert!(there.iter().all(|name| !name.contains("partial")), "{there:?}");
        let again = import::write(sysbench::MYTOOLS, &published, &out).unwrap_err();
        assert!(again.to_string().contains("it already holds the same results"), "{again}");
    }
}

#[test]
fn gigabytes_of_blank_lines_and_long_cells_stay_small() {
    let table = "col-1 : a\ncol-2 : b\n\ncol-1\tcol-2\n10\t20\tscan\n";
    let folder = folder(&[]);
    let path = folder.path().join("qps.abs.tsv.gz");
    let file = std::fs::File::create(&path).unwrap();
    let mut packer = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    std::io::Write::write_all(&mut packer, table.as_bytes()).unwrap();
    let blank = vec![b'\n'; 1 << 20];
    for _ in 0..100 {
        std::io::Write::write_all(&mut packer, &blank).unwrap();
    }
    packer.finish().unwrap();
    let published = read(sysbench::MYTOOLS, &[&path], &ImportOptions::default()).unwrap();
    assert_eq!(value(&published, "b", "scan", Metric::Rate), Some(20.0));
    let cell = folder.path().join("sum.txt");
    let heads = "ops_sec\tmb_sec\ttest\tversion\n";
    std::fs::write(&cell, format!("{heads}{}\t1\tx\t1.2.3\n", "z".repeat(3 << 20))).unwrap();
    let fault = read(kv::DB_BENCH, &[&cell], &ImportOptions::default()).unwrap_err().to_string();
    assert!(fault.contains("line 2") && fault.len() < 800, "{fault}");
}

/// Three outputs of sysbench whose rates and times differ, as those of real runs do.
fn runs_of_sysbench(rates: [f64; 3]) -> [String; 3] {
    rates.map(|rate| {
        let (qps, sum) = (format!("{:.2} per sec", 16.0 * rate), format!("{:.2}", 1e5 / rate));
        let output = samples::SB_O.lines().map(|line| {
            let name = line.trim().split(':').next().unwrap_or("").to_owned();
            match name.as_str() {
                "queries" => format!("    queries: 1000 ({qps})"),
                "sum" => format!("    sum: {sum}"),
                _ => line.to_owned(),
            }
        });
        output.collect::<Vec<_>>().join("\n") + "\n"
    })
}

#[test]
fn copies_of_a_run_are_one_measurement() {
    let [a, b, c] = runs_of_sysbench([100.0, 101.5, 50.0]);
    let renamed = format!("10.0.0.2 copied\n{a}");
    let files = [("a.txt", a.as_str()), ("copy.txt", &renamed), ("b.txt", &b), ("c.txt", &c)];
    let folder = folder(&files);
    let of = |label: &str, file: &str| Named {
        path: folder.path().join(file),
        label: Some(label.to_owned()),
        step: None,
    };
    let named = [of("old", "a.txt"), of("old", "copy.txt"), of("old", "b.txt"), of("new", "c.txt")];
    let published = import::read(sysbench::PLAIN, &named, &ImportOptions::default()).unwrap();
    let blocks =
        |label: &str| published.runs.iter().filter(|run| run.record.key.label == label).count();
    assert_eq!((blocks("old"), blocks("new")), (2, 1));
    let left = texts(&published, NoticeKind::Left).join("\n");
    assert!(left.contains("copy.txt") && left.contains("imported once"), "{left}");
    // Nor can one measurement be of two targets.
    let named = [of("old", "a.txt"), of("new", "copy.txt")];
    let fault = import::read(sysbench::PLAIN, &named, &ImportOptions::default()).unwrap_err();
    assert!(fault.to_string().contains("a measurement belongs to one target"), "{fault}");
    // Under its own name it is left out.
    let plain = ["a.txt", "copy.txt"].map(|file| folder.path().join(file));
    let paths: Vec<&Path> = plain.iter().map(|path| path.as_path()).collect();
    let published = read(sysbench::PLAIN, &paths, &ImportOptions::default()).unwrap();
    assert_eq!(published.runs.len(), 1);
}

#[test]
fn copies_of_plots_and_logs_are_one_measurement() {
    let rounded: String = samples::PLOT.lines().map(|line| format!("{line}\n")).collect();
    let twice = format!("{}{rounded}", samples::PLOT);
    let folder = folder(&[
        ("o.plot", samples::PLOT),
        ("o.plot.2", &twice),
        ("a.log", samples::DBB_LOG),
        ("b.log", samples::DBB_LOG),
    ]);
    let paths = ["o.plot", "o.plot.2"].map(|file| folder.path().join(file));
    let paths: Vec<&Path> = paths.iter().map(|path| path.as_path()).collect();
    let published = read(vector::ANN_BENCHMARKS, &paths, &ImportOptions::default()).unwrap();
    assert!(published.runs.iter().all(|run| run.record.key.block == 1));
    let left = texts(&published, NoticeKind::Left).join("\n");
    assert!(left.contains("repeated points: "), "{left}");
    for repeats in [false, true] {
        let paths = ["a.log", "b.log"].map(|file| folder.path().join(file));
        let paths: Vec<&Path> = paths.iter().map(|path| path.as_path()).collect();
        let options = ImportOptions { repeats, ..ImportOptions::default() };
        let published = read(kv::DB_BENCH, &paths, &options).unwrap();
        assert_eq!(published.runs.len(), 1);
        let left = texts(&published, NoticeKind::Left).join("\n");
        assert!(left.contains("b.log: not imported: the same results as in"), "{left}");
    }
}

#[test]
fn imported_and_measured_steps_of_rocksdb_count_the_same() {
    let folder = folder(&[("a.log", samples::DBB_LOG)]);
    let published = read(kv::DB_BENCH, &[folder.path()], &ImportOptions::default()).unwrap();
    let steps = published.runs.iter().flat_map(|run| &run.steps);
    assert!(steps.clone().count() > 0);
    for step in steps {
        assert_eq!(step.rate, rqps_model::benchmark::RateUnit::Operations);
    }
}

#[test]
fn tables_larger_than_any_published_are_refused() {
    let rows: String = (0..60_000).map(|row| format!("1\t2\tstep{row}_range=1\n")).collect();
    let heads = (0..200).map(|head| format!("ops_sec{head}")).collect::<Vec<_>>().join("  ");
    let report = format!("ops_sec  test  {heads}\n1  x.t1\n");
    let folder = folder(&[("abs.tsv", &rows), ("sum.txt", &report)]);
    let path = folder.path().join("abs.tsv");
    for format in [kv::DB_BENCH, sysbench::MYTOOLS] {
        let fault = read(format, &[&path], &ImportOptions::default()).unwrap_err().to_string();
        assert!(
            fault.contains("180000 words, but a table of this form can have at most 100000"),
            "{fault}"
        );
    }
    let path = folder.path().join("sum.txt");
    let fault = read(kv::DB_BENCH, &[&path], &ImportOptions::default()).unwrap_err().to_string();
    assert!(fault.contains("line 1: 202 columns, but a report can have at most 100"), "{fault}");
}
