//! `rqps history` on an imported ladder, as a user runs it.

use std::path::Path;
use std::process::{Command, Output};

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
