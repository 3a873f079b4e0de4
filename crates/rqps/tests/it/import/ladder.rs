//! `rqps history` on an imported ladder, as a user runs it.

use std::path::Path;
use std::process::{Command, Output};

use crate::import::*;

/// Five versions out of order, one of them broken; 10.6.1 lost a third of points, 10.5.1 is off by
/// itself in scans.
const TABLE: &str = "\
col-1 : x.ma100401_rel.z12a_c8r32.pk1
col-2 : x.ma100602_rel.z12a_c8r32.pk1
col-3 : x.ma100601_rel.z12a_c8r32.pk1
col-4 : x.ma100501_rel.z12a_c8r32.pk1
col-5 : x.ma100402_rel.z12a_c8r32.pk1
col-6 : x.ma100603_rel.z12a_c8r32.pk1
col-7 : x.ma100604_rel.z12a_c8r32.pk1

col-1\tcol-2\tcol-3\tcol-4\tcol-5\tcol-6\tcol-7
10000\t6700\t6650\t10010\t9990\t6690\t0\tpoint-query_range=100
3000\t3010\t2990\t900\t3005\t3000\t0\tscan_range=100
";

fn rqps(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rqps")).args(words).output().unwrap()
}

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn imported(folder: &Path, table: &str) -> String {
    let file = folder.join("qps.abs.tsv");
    std::fs::write(&file, table).unwrap();
    let set = folder.join("set").to_str().unwrap().to_owned();
    out(&rqps(&["import", "sysbench-mytools", file.to_str().unwrap(), "--out", &set]));
    set
}

#[test]
fn history_finds_the_version_that_lost_a_third() {
    let folder = tempfile::tempdir().unwrap();
    let set = imported(folder.path(), TABLE);
    let text = out(&rqps(&["history", &set]));
    assert!(text.contains("From 10.4.1 to 10.6.3: 1 change in 1 of 2 steps; 1 outlier."), "{text}");
    assert!(text.contains("- 10.6.1: 1 step to 0.67"), "{text}");
    assert!(text.contains("Left out, all values are 0: x.ma100604_rel.z12a_c8r32.pk1."), "{text}");
    let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    let words = |name: &str| row(name).split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words("point-query")[1..], ["1.00", "1.00", "1.00", "0.66!", "0.67", "0.67"]);
    assert_eq!(words("scan")[1..], ["1.00", "1.00", "0.30*", "1.00", "1.00", "1.00"]);
    let csv = out(&rqps(&["history", &set, "--format", "csv"]));
    let cells: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(cells.len(), 1 + 2 * 6);
    let change = cells.iter().find(|row| row[5] == "10.6.1" && row[2].starts_with("point"));
    let change: f64 = change.unwrap()[12].parse().unwrap();
    assert!((change - 0.668).abs() < 0.002, "{change}");
    let json = out(&rqps(&["history", &set, "--format", "json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["ladders"][0]["steps"][0]["changes"][0]["at"], 3);
    assert_eq!(json["ladders"][0]["rungs"][3]["version"], "10.6.1");
}

#[test]
fn a_report_of_many_versions_fits_a_screen_and_says_what_changed() {
    let folder = tempfile::tempdir().unwrap();
    let set = imported(folder.path(), TABLE);
    let text = out(&rqps(&["report", &set]));
    let section = |heading: &str| {
        let from = text.find(heading).unwrap_or_else(|| panic!("{heading}: {text}"));
        let rest = &text[from..];
        rest[..rest.find("\n\n\n").unwrap_or(rest.len())].to_owned()
    };
    let rates = section("Relative rate (rQPS)\n");
    let head = rates.lines().find(|line| line.starts_with("step ")).unwrap();
    let names: Vec<&str> = head.split_whitespace().skip(1).collect();
    assert_eq!(names, ["10.4.1", "10.6.2", "10.6.1", "10.5.1", "10.4.2", "10.6.3", "10.6.4"]);
    let row = rates.lines().find(|line| line.starts_with("point-query_range=100 ")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[1..4], ["10000", "0.67", "0.67"], "{row}");
    assert!([head, row].iter().all(|line| line.chars().count() <= 100), "{head}\n{row}");
    let changes = section("Changes of o/s: mariadb\n");
    assert!(changes.contains("10.6.1: 1 step to 0.67"), "{changes}");
    let page = out(&rqps(&["report", &set, "--format", "html"]));
    assert!(page.contains("Changes of o/s: mariadb"), "the page has the section");
    assert!(page.contains("id=\"ladder-o-s-scan_range=100\""), "and a chart of each step");
}

#[test]
fn history_follows_an_order_and_refuses_what_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let set = imported(folder.path(), TABLE);
    let order = folder.path().join("order");
    let words = ["history", &set, "--order", order.to_str().unwrap()];
    let tags = ["ma100603", "ma100602", "ma100601", "ma100402", "ma100401"];
    let labels = tags.map(|tag| format!("x.{tag}_rel.z12a_c8r32.pk1"));
    std::fs::write(&order, format!("# newest first\n{}\n", labels.join("\n"))).unwrap();
    let text = out(&rqps(&words));
    assert!(text.contains("From 10.6.3 to 10.4.1: 1 change in 1 of 2 steps"), "{text}");
    assert!(text.contains("The order is that of the plan or of --order"), "{text}");
    let refused = |words: &[&str], expected: &str| {
        let output = rqps(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
    };
    std::fs::write(&order, "nobody\n").unwrap();
    refused(&words, "unknown target `nobody` in the order; the targets are: x.ma100401");
    std::fs::write(&order, format!("{0}\n{0}\n", labels[0])).unwrap();
    refused(&words, "the order names `x.ma100603_rel.z12a_c8r32.pk1` twice");
    refused(
        &["history", &set, "--metric", "instr"],
        "find the metric `instr`: these results have o/s",
    );
    let one: Vec<String> = TABLE.lines().map(first_column).collect();
    let alone = tempfile::tempdir().unwrap();
    let set = imported(alone.path(), &format!("{}\n", one.join("\n")));
    refused(&["history", &set], "no DBMS has two versions with values of o/s");
    refused(&["history", &set], "several days are a history with --by date");
}

/// The line with its first target only.
fn first_column(line: &str) -> String {
    let cells: Vec<&str> = line.split('\t').collect();
    match cells.as_slice() {
        [head] if head.starts_with("col-") && !head.starts_with("col-1 ") => String::new(),
        [only] => (*only).to_owned(),
        [first, .., last] if last.starts_with("col-") => (*first).to_owned(),
        [first, .., last] => format!("{first}\t{last}"),
        [] => String::new(),
    }
}

/// The old branch got a fix late: along all versions the next branch seems to lose it.
const BRANCHES: &str = "\
col-1 : x.ma100401_rel.z12a_c8r32.pk1
col-2 : x.ma100402_rel.z12a_c8r32.pk1
col-3 : x.ma100430_rel.z12a_c8r32.pk1
col-4 : x.ma100431_rel.z12a_c8r32.pk1
col-5 : x.ma100501_rel.z12a_c8r32.pk1
col-6 : x.ma100502_rel.z12a_c8r32.pk1
col-7 : x.ma100601_rel.z12a_c8r32.pk1

col-1\tcol-2\tcol-3\tcol-4\tcol-5\tcol-6\tcol-7
10000\t10010\t13000\t13010\t10020\t9990\t10005\tpoint-query_range=100
";

#[test]
fn a_late_fix_of_an_old_branch_is_no_loss_of_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let set = imported(folder.path(), BRANCHES);
    let text = out(&rqps(&["history", &set]));
    assert!(text.contains("From 10.4.1 to 10.6.1: 2 changes in 1 of 1 step"), "{text}");
    let text = out(&rqps(&["history", &set, "--branches"]));
    assert!(text.contains("From 10.4.1 to 10.6.1: 1 change in 1 of 1 step"), "{text}");
    assert!(text.contains("- 10.4.30: 1 step to 1.30"), "{text}");
    let along = "along the first versions of the branches (10.4.1, 10.5.1, 10.6.1)";
    assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(along), "{text}");
    assert_eq!(rqps(&["history", &set, "--by", "date", "--branches"]).status.code(), Some(2));
}

/// Two storage engines in one table, each with an old build and newer ones.
const ENGINES: &str = "\
col-1 : my5651_rel.cz10a_c8r32
col-2 : fbin8032_rel.cz10a_c8r32
col-3 : fbrx5635_rel.cz10a_c8r32
col-4 : fbrx8032_rel.cz10a_c8r32
col-5 : fbrx8034_rel.cz10a_c8r32

col-1\tcol-2\tcol-3\tcol-4\tcol-5
10000\t8000\t6000\t5400\t4500\tpoint-query_range=100
3000\t3300\t2000\t1000\t4000\tscan_range=100
";

#[test]
fn each_storage_engine_has_a_baseline_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let set = imported(folder.path(), ENGINES);
    let [innodb, myrocks] = ["my5651_rel.cz10a_c8r32", "fbrx5635_rel.cz10a_c8r32"];
    let text = out(&rqps(&["report", &set, "--baseline", innodb, "--baseline", myrocks]));
    let title =
        format!("rqps: mysql relative to {innodb}; mysql with rocksdb relative to {myrocks}");
    assert!(text.starts_with(&title), "{text}");
    assert!(text.contains("col-3 : fbrx8034_rel.cz10a_c8r32 / base-2"), "{text}");
    let rows = |text: &str, name: &str| {
        let row = text.lines().find(|line| line.ends_with(name)).unwrap();
        row.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    // InnoDB: the baseline, then 8.0.32 / 5.6.51. MyRocks: the same with 5.6.35.
    assert_eq!(
        rows(&text, "point-query_range=100")[..5],
        ["10000", "0.800", "6000", "0.900", "0.750"]
    );
    assert_eq!(rows(&text, "scan_range=100")[..5], ["3000", "1.100", "2000", "0.500", "2.000"]);
    assert!(text.contains("mysql with rocksdb: Relative rate (rQPS)"), "{text}");
    // Without names, the first of each family; a name changes its family only.
    let same = out(&rqps(&["report", &set, "--by-family"]));
    assert_eq!(same, text);
    let newer = "fbrx8032_rel.cz10a_c8r32";
    let text = out(&rqps(&["report", &set, "--by-family", "--baseline", newer]));
    assert_eq!(rows(&text, "point-query_range=100")[..4], ["10000", "0.800", "5400", "1.111"]);

    let json = out(&rqps(&["report", &set, "--by-family", "--format", "json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["families"][1]["family"], "mysql with rocksdb");
    assert_eq!(json["families"][1]["comparison"]["baseline"], myrocks);
    assert_eq!(json["families"][1]["comparison"]["targets"].as_array().unwrap().len(), 3);
    let csv = out(&rqps(&["report", &set, "--by-family", "--format", "csv"]));
    let of = |base: &str| csv.lines().filter(|line| line.ends_with(&format!(",{base}"))).count();
    assert!(csv.lines().next().unwrap().ends_with(",baseline"), "{csv}");
    assert!(of(innodb) > 0 && of(myrocks) > of(innodb), "{csv}");
    assert_eq!(of(innodb) + of(myrocks) + 1, csv.lines().count());
    let page = out(&rqps(&["report", &set, "--by-family", "--format", "html"]));
    assert!(
        page.contains("<section id=\"verdict\">") && page.contains("<section id=\"verdict-2\">")
    );
    assert!(page.contains("href=\"#rates-2\"") || page.contains("href=\"#overview-2\""));

    let refused = |more: &[&str], expected: &str| {
        let output = rqps(&[&["report", &set], more].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
    };
    refused(&["--baseline", newer, "--baseline", myrocks], "both are mysql with rocksdb");
    refused(&["--by-family", "--baseline", "nobody"], "`nobody`: no such target");
}

// No cell vanishes: what was read is what was kept and what is named as left out.

/// The account of these files, and everything that was told.
fn told(format: ImportFormat, files: &[(&str, &str)]) -> (Published, String) {
    let folder = folder(files);
    let published = read(format, &[folder.path()], &ImportOptions::default()).unwrap();
    let notices: Vec<String> = published.notices.iter().map(ToString::to_string).collect();
    let notices = notices.join("\n");
    assert!(!notices.contains("this importer has a bug"), "{notices}");
    (published, notices)
}

#[test]
fn columns_of_unknown_heads_are_annotations() {
    let met = samples::MET.replace("wKB/o", "foo").replace("cs/o", "cs/0");
    let (published, notices) = told(sysbench::MYTOOLS, &[("o.met", &met)]);
    let totals = published.cells.totals();
    assert_eq!(totals.left, 0, "{totals}");
    assert!(totals.annotations > 0 && totals.compared > 0, "{totals}");
    let all = totals.metrics + totals.compared + totals.annotations;
    assert_eq!(totals.read, all, "{totals}");
    assert!(notices.contains("no metric for column `foo`"), "{notices}");
    assert!(notices.contains("is `cs/o` a typo?"), "{notices}");
    let step = &published.runs[0].steps[0];
    let kept = &step.imported.as_ref().unwrap().annotations;
    assert_eq!(kept["foo"], "1.236", "{kept:?}");
    assert!(!step.outcome.extra.contains_key(&Metric::WriteKbPerOp));
}

#[test]
fn numbers_that_nothing_can_have_are_errors_with_their_place() {
    for bad in ["inf", "-0", "-3", "nan", "1000000000000000000000000"] {
        let table = samples::QPS_ABS.replacen("3000", bad, 1);
        let met = samples::MET.replacen("1.236", bad, 1);
        for (name, content) in [("qps.abs.tsv", &table), ("o.met", &met)] {
            let folder = folder(&[(name, content)]);
            let path = folder.path().join(name);
            let fault = read(sysbench::MYTOOLS, &[&path], &ImportOptions::default());
            let fault = fault.unwrap_err().to_string();
            let place = format!("{name}`, line ");
            assert!(fault.contains(&place) && fault.contains(", column "), "{bad}: {fault}");
            assert!(fault.contains(&format!("`{bad}`")), "{bad}: {fault}");
        }
    }
}

#[test]
fn ratios_alone_are_facts_without_rates() {
    let files = [("qps.rel.tsv", samples::QPS_REL)];
    let (published, notices) = told(sysbench::MYTOOLS, &files);
    assert!(notices.contains("only ratios are published here"), "{notices}");
    assert_eq!(value(&published, MY80, "hot-points_range=100", Metric::Rate), Some(0.75));
    assert_eq!(value(&published, MY56, "hot-points_range=100", Metric::Rate), Some(1.0));
    let comparison = compared(sysbench::MYTOOLS, &published);
    let text = render(&comparison, Form::Text);
    assert!(text.contains("of the base") && !text.contains(" qps"), "{text}");
    let tsv = render(&comparison, Form::Tsv);
    assert!(tsv.contains("0.75\t0.25\thot-points_range=100"), "{tsv}");
}

#[test]
fn words_of_authors_are_in_the_report() {
    let files = [("qps.abs.tsv", samples::QPS_ABS)];
    let (published, _) = told(sysbench::MYTOOLS, &files);
    let text = render(&compared(sysbench::MYTOOLS, &published), Form::Text);
    // `col2` names the target.
    let remark = format!("delete_range=100: -> 8.0.44, col2 ({MY80})");
    assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(&remark), "{text}");
}

const SUMMARY: &str = "abs:30m.bee\tl.i0\tqr100.L1\tqp100.L2\nmy1\t1000:g\t500:y\t900:-\n\
    my2\t800:-\t450:-\t990:g\nrel:30m.bee\tl.i0\tqr100.L1\tqp100.L2\n\
    my1\t1.00:-\t1.00:-\t1.00:-\nmy2\t0.80:y\t0.90:y\t1.10:b\n\
    ins:30m.bee\tqr100.L1\tqp100.L2\nmy1\t300:r\t400:-\nmy2\t400:-\t400:-\n\
    target\t400:y\t400:y\n";

#[test]
fn summary_tables_are_imported_with_their_colours() {
    let (published, notices) = told(insert::MYTOOLS, &[("s.txt", SUMMARY)]);
    assert_eq!(value(&published, "my1", "qr100.L1", Metric::Rate), Some(500.0));
    assert_eq!(value(&published, "my1", "qr100.L1", Metric::InsertRate), Some(300.0));
    assert_eq!(value(&published, "my2", "l.i0", Metric::Rate), Some(800.0));
    let workload = &published.runs[0].record.workload;
    // The row of targets tells the clients: 400 / 100.
    assert_eq!((published.runs.len(), workload.rows, workload.clients), (2, 30_000_000, 4));
    assert_eq!(check(&published, "ratios of summaries"), (6, 6));
    let step = published.runs[0].steps.iter().find(|step| step.name == "qr100.L1").unwrap();
    let kept = &step.imported.as_ref().unwrap().annotations;
    assert_eq!(kept["colour of the summary, insert rate"], "red");
    assert_eq!(published.cells.totals().left, 0, "{notices}");
    let (published, notices) =
        told(insert::MYTOOLS, &[("s.txt", &SUMMARY.replace("0.80:y", "0.85:y"))]);
    assert_eq!(check(&published, "ratios of summaries"), (5, 6));
    assert!(notices.contains("s.txt, line 6: mismatch: l.i0 of my2"), "{notices}");
}

#[test]
fn ratios_of_a_summary_or_of_metrics_alone_are_facts() {
    let start = SUMMARY.find("rel:").unwrap();
    let alone = &SUMMARY[start..SUMMARY.find("ins:").unwrap()];
    for (name, content, label, expected) in
        [("s.txt", alone, "my2", 0.8), ("rel.l.i0", samples::REL, "pg2.c5", 0.8)]
    {
        let (published, _) = told(insert::MYTOOLS, &[(name, content)]);
        assert_eq!(value(&published, label, "l.i0", Metric::Rate), Some(expected));
        let text = render(&compared(insert::MYTOOLS, &published), Form::Text);
        assert!(text.contains("of the base") && !text.contains(" ips"), "{text}");
    }
}

fn metrics(size: &str, ips: u32) -> String {
    format!("step\tips\tqps\ttag\nl.i0\t{ips}\t0\t{size}my1\nl.i0\t{ips}\t0\t{size}my2\n")
}

#[test]
fn sizes_are_not_mixed_unless_asked_for() {
    let files = [
        ("a.tsv", metrics("500m.", 1000)),
        ("b.30m.tsv", metrics("", 2000)),
        ("c.tsv", metrics("", 3000).replace("my1", "pg1").replace("my2", "pg2")),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(n, t)| (*n, t.as_str())).collect();
    let folder = folder(&files);
    let path = |name: &str| folder.path().join(name);
    let (a, b, c) = (path("a.tsv"), path("b.30m.tsv"), path("c.tsv"));
    for (paths, size) in [([&*a, &*b], "30m"), ([&*a, &*c], "unknown size")] {
        let fault = read(insert::MYTOOLS, &paths, &ImportOptions::default());
        let fault = fault.unwrap_err().to_string();
        assert!(fault.contains("separate imports") && fault.contains("--across sizes"), "{fault}");
        assert!(fault.contains(size), "{fault}");
    }
    let across = import::Across { sizes: true, hosts: false };
    let options = ImportOptions { across, ..ImportOptions::default() };
    let published = read(insert::MYTOOLS, &[&a, &b, &c], &options).unwrap();
    let rows: Vec<(&str, u64)> = published
        .runs
        .iter()
        .map(|run| (run.record.key.label.as_str(), run.record.workload.rows))
        .collect();
    assert!(rows.contains(&("500m.my1", 500_000_000)), "{rows:?}");
    assert!(rows.contains(&("30m.my1", 30_000_000)) && rows.contains(&("pg1", 0)), "{rows:?}");
    let options = ImportOptions { size: Some("30m".to_owned()), ..ImportOptions::default() };
    let published = read(insert::MYTOOLS, &[&a, &b], &options).unwrap();
    assert_eq!(value(&published, "my1", "l.i0", Metric::Rate), Some(2000.0));
    assert_eq!(published.cells.totals().left, 4);
}

#[test]
fn hosts_are_not_mixed_unless_asked_for() {
    let a = metrics("", 1000).replace("my1", "my1.x_c8r32").replace("my2", "my2.x_c8r32");
    let b = metrics("", 2000).replace("my1", "my1.x_c32r128").replace("my2", "my2.x_c32r128");
    let folder = folder(&[("a.tsv", &a), ("b.tsv", &b)]);
    let options = ImportOptions::default();
    let fault = read(insert::MYTOOLS, &[folder.path()], &options).unwrap_err().to_string();
    assert!(fault.contains("c8r32") && fault.contains("--across hosts"), "{fault}");
    let across = import::Across { sizes: false, hosts: true };
    let options = ImportOptions { across, ..ImportOptions::default() };
    assert_eq!(read(insert::MYTOOLS, &[folder.path()], &options).unwrap().runs.len(), 4);
}

#[test]
fn rows_that_contradict_each_other_are_an_error_with_both_places() {
    let twice = format!("{}l.i0\t999\t0\t20m.my1\n", metrics("20m.", 1000));
    let other = metrics("20m.", 1001);
    let first = metrics("20m.", 1000);
    for files in [vec![("a.tsv", &*twice)], vec![("a.tsv", &*first), ("b.tsv", &*other)]] {
        let folder = folder(&files);
        let fault = read(insert::MYTOOLS, &[folder.path()], &ImportOptions::default());
        let fault = fault.unwrap_err().to_string();
        assert!(fault.contains("is 999 here") || fault.contains("is 1001 here"), "{fault}");
        assert!(fault.contains("a.tsv`, line 2: one of them is wrong"), "{fault}");
    }
}

#[test]
fn a_renamed_rate_is_refused_and_other_columns_are_kept() {
    let table = samples::O_SUM.replace("\tqps\t", "\tfoo\t");
    let folder = folder(&[("o.sum.t", &table)]);
    let fault = read(insert::MYTOOLS, &[folder.path()], &ImportOptions::default()).unwrap_err();
    let fault = fault.to_string();
    assert!(fault.contains("line 5: a query step without a column `qps`"), "{fault}");
    assert!(fault.contains("`foo`"), "{fault}");
    let table = samples::O_SUM.replace("\twkbpi\t", "\twkbp1\t");
    let (published, notices) = told(insert::MYTOOLS, &[("o.sum.t", &table)]);
    assert!(notices.contains("no metric for column `wkbp1`"), "{notices}");
    assert!(notices.contains("6 cells; is `wkbpi` a typo?"), "{notices}");
    assert_eq!(published.cells.totals().annotations, 6);
}

const HEADS: &str = "ops_sec\tmb_sec\tfoo\tw_amp\ttest\tdate\tversion\n";

#[test]
fn columns_of_db_bench_that_nobody_knows_are_annotations() {
    let rows = format!("{HEADS}100\t0.5\tx 1\tNA\treadrandom.t1\t2025-05-09T01:44:24\t9.8.4\n");
    let folder = folder(&[("sum.txt", &rows), ("abs.tsv", "1\t2\treadrandom.t1\n")]);
    let published = read(kv::DB_BENCH, &[folder.path()], &ImportOptions::default()).unwrap();
    let step = &published.runs[0].steps[0];
    assert_eq!(step.imported.as_ref().unwrap().annotations["foo"], "x 1");
    let totals = published.cells.totals();
    let kept = (totals.metrics, totals.annotations, totals.absent, totals.left);
    assert_eq!((totals.read, kept), (9, (2, 4, 1, 2)));
    let notes = texts(&published, NoticeKind::Note).join("\n");
    assert!(notes.contains("no metric for column `foo`"), "{notes}");
}

#[test]
fn rows_of_db_bench_that_contradict_each_other_are_an_error() {
    let row = |rate: &str| format!("{rate}\t0.5\t\t1.5\tread.t1\t2025-05-09T01:44:24\t9.8.4\n");
    let again = format!("{HEADS}{}", row("100"));
    let other = format!("{HEADS}{}", row("101"));
    let folder = folder(&[("a.txt", &again), ("b.txt", &again), ("c.txt", &other)]);
    let paths = ["a.txt", "b.txt", "c.txt"].map(|name| folder.path().join(name));
    let same = read(kv::DB_BENCH, &[&paths[0], &paths[1]], &ImportOptions::default()).unwrap();
    assert_eq!((same.runs.len(), same.cells.totals().compared), (1, 7));
    let fault = read(kv::DB_BENCH, &[&paths[0], &paths[2]], &ImportOptions::default()).unwrap_err();
    let said = fault.to_string();
    for part in
        ["c.txt`, line 2, column 1: `101` under `ops_sec` contradicts `100`", "a.txt, line 2"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn cells_of_plots_and_builds_are_counted() {
    let builds = format!("{}\nOther\nM\tcons\tsecs\tsize\n8\t32\t27.0\t234\n", samples::BUILDS);
    let folder = folder(&[("o.plot", samples::PLOT), ("build.txt", &builds)]);
    let published =
        read(vector::ANN_BENCHMARKS, &[folder.path()], &ImportOptions::default()).unwrap();
    let left = texts(&published, NoticeKind::Left).join("\n");
    assert!(
        left.contains("builds without a point") && !left.contains("this importer has a bug"),
        "{left}"
    );
    let totals = published.cells.totals();
    assert_eq!(totals.read, totals.metrics + totals.compared + totals.left);
}
