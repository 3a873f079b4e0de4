//! Run folders as rqps wrote them, and everything that rqps makes of them, byte for byte.
//!
//! tests/data/golden has one folder for each benchmark: real runs of 2026, with a generic host,
//! latencies in fewer classes, and the files that nothing reads left out.
//!
//! The text and the table of ratios of each folder are kept whole, the other forms as digests of
//! their parts, so that a difference has a place. All forms are left below `golden` in cargo's
//! folder for files of tests: to see what has changed, compare with those of an older commit.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rqps_lab::plan::file;
use rqps_model::metric::Metric;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The tables of an export, and whether a table is kept whole.
const TABLES: [(&str, bool); 6] = [
    ("runs", false),
    ("steps", false),
    ("metrics", false),
    ("relative", true),
    ("seconds", false),
    ("counters", false),
];

/// Title and text of a part of a report.
type Part = (String, String);

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/golden")
}

/// Runs rqps where the folders are, so that reports hold no path of this machine.
fn rqps(words: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_rqps"))
        .args(words)
        .current_dir(data())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The folder for all forms of the reports of a set.
fn made(set: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("golden").join(set);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn report(set: &str, format: &str) -> String {
    let name = Path::new(set).file_name().unwrap();
    let path = made(name.to_str().unwrap()).join(format!("report.{format}"));
    rqps(&["report", set, "--format", format, "-o", path.to_str().unwrap()]);
    fs::read_to_string(path).unwrap()
}

fn digest(text: &str) -> String {
    Sha256::digest(text).iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// Begins a part at each line that has a title.
fn parts_of_lines(text: &str, title: impl Fn(&str) -> Option<String>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for line in text.split_inclusive('\n') {
        let begun = title(line).filter(|title| parts.last().is_none_or(|part| part.0 != *title));
        if begun.is_some() || parts.is_empty() {
            parts.push((begun.unwrap_or_default(), String::new()));
        }
        parts.last_mut().unwrap().1.push_str(line);
    }
    parts
}

/// Sections by their headings.
fn markdown(text: &str) -> Vec<Part> {
    parts_of_lines(text, |line| line.starts_with('#').then(|| line.trim_matches('#').into()))
}

/// Tables by their heads.
fn tsv(text: &str) -> Vec<Part> {
    let tables = text.split_inclusive("\n\n").filter(|table| !table.trim().is_empty());
    tables.map(|table| (table.trim().lines().next().unwrap().into(), table.into())).collect()
}

/// Rows by their steps, which stand in the column `at`.
fn csv(text: &str, at: usize) -> Vec<Part> {
    parts_of_lines(text, |line| line.split(',').nth(at).map(str::to_owned))
}

/// Values by where they stand; each step is a part of its own.
fn json(text: &str) -> Vec<Part> {
    let report: Value = serde_json::from_str(text).unwrap();
    assert_eq!(report["schema"], 1);
    let mut parts = Vec::new();
    for (key, value) in report["comparison"].as_object().unwrap() {
        match value.as_array().filter(|_| key == "steps") {
            Some(steps) => parts.extend(steps.iter().map(|step| {
                (format!("step {}", step["name"].as_str().unwrap()), step.to_string())
            })),
            None => parts.push((key.clone(), value.to_string())),
        }
    }
    parts
}

/// The page without its styles and scripts: its sections, and the data of its charts.
fn html(page: &str) -> Vec<Part> {
    let mut parts = vec![("head".to_owned(), String::new())];
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        let (text, tag) = rest.split_at(at);
        parts.last_mut().unwrap().1.push_str(text);
        let id = |prefix: &str| tag.strip_prefix(prefix).and_then(|tag| tag.split('"').next());
        let data = id("<script type=\"application/json\" id=\"");
        if let Some(title) = id("<section id=\"").or(data) {
            parts.push((title.to_owned(), String::new()));
        }
        let skipped = ["style", "script"].into_iter().find(|name| {
            data.is_none() && tag.strip_prefix('<').is_some_and(|tag| tag.starts_with(name))
        });
        rest = match skipped {
            Some(name) => tag.split_once(&format!("</{name}>")).unwrap().1,
            None => {
                parts.last_mut().unwrap().1.push('<');
                &tag[1..]
            }
        };
    }
    parts.last_mut().unwrap().1.push_str(rest);
    parts
}

/// A line for the whole and one for each part.
fn digests(form: &str, parts: &[Part]) -> String {
    let whole: String = parts.iter().map(|(_, text)| text.as_str()).collect();
    let mut lines = format!("{form}: {}\n", digest(&whole));
    for (title, text) in parts {
        writeln!(lines, "  {} {}", digest(text), title.trim()).unwrap();
    }
    lines
}

/// Holds a folder against what is kept of it.
fn check(set: &str) {
    let text = report(set, "text");
    // A snapshot does not tell ends of files apart.
    let mut kept = format!("text: {}\n", digest(&text));
    insta::assert_snapshot!(format!("{set}_text"), text);
    kept += &digests("markdown", &markdown(&report(set, "markdown")));
    kept += &digests("tsv", &tsv(&report(set, "tsv")));
    kept += &digests("csv", &csv(&report(set, "csv"), 0));
    let text = report(set, "json");
    // The parts of a value are written anew, so the whole is held apart from them.
    writeln!(kept, "json as it is: {}", digest(&text)).unwrap();
    kept += &digests("json", &json(&text));
    kept += &digests("html", &html(&report(set, "html")));
    let tables = made(set).join("tables");
    rqps(&["export", set, "--format", "csv", "-o", tables.to_str().unwrap()]);
    for (table, whole) in TABLES {
        let text = fs::read_to_string(tables.join(format!("{table}.csv"))).unwrap();
        if whole {
            insta::assert_snapshot!(format!("{set}_{table}"), text);
        } else {
            kept += &digests(table, &csv(&text, 1));
        }
    }
    insta::assert_snapshot!(format!("{set}_parts"), kept);
}

#[test]
fn every_benchmark_has_golden_runs() {
    for spec in rqps_lab::benchmarks::ALL {
        let set = spec.name;
        let runs = fs::read_dir(data().join(set)).unwrap().flatten();
        assert!(runs.into_iter().any(|it| it.path().join("run.json").is_file()), "{set}");
    }
}

#[test]
fn sysbench_reports_as_before() {
    check("sysbench");
}

#[test]
fn insert_reports_as_before() {
    check("insert");
}

#[test]
fn kv_reports_as_before() {
    check("kv");
}

#[test]
fn vector_reports_as_before() {
    check("vector");
}

#[test]
fn pgbench_reports_as_before() {
    check("pgbench");
}

#[test]
fn own_sql_reports_as_before() {
    check("sql");
}

#[test]
fn scripts_for_sysbench_report_as_before() {
    check("lua");
}

#[test]
fn programs_of_the_user_report_as_before() {
    check("client");
}

#[test]
fn the_order_mix_reports_as_before() {
    check("orders");
}

#[test]
fn ycsb_reports_as_before() {
    check("ycsb");
}

/// Copies a folder, with files changed on the way.
fn copy(from: &Path, to: &Path, change: impl Fn(&Path, Vec<u8>) -> Vec<u8>) {
    let mut folders = vec![from.to_owned()];
    while let Some(folder) = folders.pop() {
        let name = folder.strip_prefix(from).unwrap();
        fs::create_dir_all(to.join(name)).unwrap();
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let bytes = change(&path, fs::read(&path).unwrap());
            fs::write(to.join(name).join(path.file_name().unwrap()), bytes).unwrap();
        }
    }
}

/// Copies a folder of two targets, and gives each completed step a value of every metric: the
/// first metric has 70001, the next one 70002.
fn with_all_metrics(metrics: &[Metric], to: &Path) {
    copy(&data().join("sysbench"), to, |path, bytes| {
        let is_step = path.parent().unwrap().ends_with("steps");
        if !(is_step && path.extension().is_some_and(|it| it == "json")) {
            return bytes;
        }
        let mut step: Value = serde_json::from_slice(&bytes).unwrap();
        for (metric, value) in metrics.iter().zip(70001..) {
            let key = serde_json::to_value(metric).unwrap();
            step["outcome"]["extra"][key.as_str().unwrap()] = f64::from(value).into();
        }
        serde_json::to_vec(&step).unwrap()
    });
}

/// What is left of a sitting that was interrupted is a sitting of its own.
#[test]
fn sittings_of_a_plan_are_sessions_of_its_report() {
    let scratch = tempfile::tempdir().unwrap();
    let sittings = |name: &str, of: fn(u64) -> (u64, u64)| {
        let folder = scratch.path().join(name);
        copy(&data().join("../two-targets"), &folder, |path, bytes| {
            if !path.ends_with("run.json") {
                return bytes;
            }
            let mut run: Value = serde_json::from_slice(&bytes).unwrap();
            let (number, hour) = of(run["key"]["block"].as_u64().unwrap());
            let begun = format!("2026-03-01T0{hour}:00:00Z");
            run["sitting"] = serde_json::json!({"number": number, "begun": begun});
            serde_json::to_vec(&run).unwrap()
        });
        let text = report(folder.to_str().unwrap(), "markdown");
        text.replace(folder.to_str().unwrap(), "DIR")
    };
    let three = sittings("three", |block| (block, 1));
    assert!(three.contains("one load of each, 3 sittings. Another load or host may"), "{three}");
    let sessions = markdown(&three).into_iter().find(|part| part.0.trim() == "Sessions").unwrap();
    insta::assert_snapshot!("sittings_sessions", sessions.1);
    let resumed = sittings("resumed", |block| (1, block));
    assert!(resumed.contains("DIR, sitting 1, resumed 2"), "{resumed}");
    let one = sittings("one", |_| (1, 1));
    assert!(one.contains("one sitting. Another") && !one.contains("## Sessions"), "{one}");
}

/// Words between blanks, borders of tables, and marks of JSON and HTML.
fn words(text: &str) -> BTreeSet<&str> {
    let is_between = |c: char| c.is_whitespace() || "|<>\",;:".contains(c);
    text.split(is_between).collect()
}

/// Fails for metrics whose value `text` does not have.
fn check_values(metrics: &[Metric], form: &str, text: &str) {
    let words = words(text);
    let numbers = words.iter().filter_map(|word| word.parse::<f64>().ok());
    let numbers: BTreeSet<u64> = numbers.map(f64::to_bits).collect();
    for (metric, value) in metrics.iter().zip(70001..) {
        let is_there = numbers.contains(&f64::from(value).to_bits());
        assert!(is_there, "the {form} does not have the value of {}: {value}", metric.name());
    }
}

/// Fails for metrics that `text` does not name.
fn check_names(metrics: &[Metric], form: &str, name: fn(Metric) -> String, text: &str) {
    let words = words(text);
    for name in metrics.iter().copied().map(name) {
        assert!(words.contains(name.as_str()), "the {form} does not name {name}");
    }
}

/// A new metric is one row: its numbers are in every form of a report, and in the tables.
#[test]
fn every_metric_is_shown_in_every_form() {
    let metrics = Metric::ALL;
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("all");
    with_all_metrics(metrics, &folder);
    let set = folder.to_str().unwrap();
    // Published tables have heads of their own, so only the values can be looked for.
    for form in ["text", "markdown"] {
        check_values(metrics, form, &report(set, form));
    }
    let mut page = report(set, "html");
    // What scripts draw does not count.
    page.truncate(page.find("<script type=\"application/json\"").unwrap());
    check_values(metrics, "html", &page);
    let tables = scratch.path().join("tables");
    rqps(&["export", set, "--format", "csv", "-o", tables.to_str().unwrap()]);
    let table = fs::read_to_string(tables.join("metrics.csv")).unwrap();
    let head = |metric: Metric| metric.name().to_owned();
    for (form, text) in
        [("tsv", report(set, "tsv")), ("csv", report(set, "csv")), ("table of metrics", table)]
    {
        check_values(metrics, form, &text);
        check_names(metrics, form, head, &text);
    }
    let key = |metric: Metric| {
        let key = serde_json::to_value(metric).unwrap();
        key.as_str().unwrap().to_owned()
    };
    let json = report(set, "json");
    check_values(metrics, "json", &json);
    check_names(metrics, "json", key, &json);
}

/// A plan is known by its hash: a result folder is resumed by the plan that it was begun with.
#[test]
fn plans_read_as_before() {
    let sets =
        ["sysbench", "insert", "kv", "vector", "pgbench", "sql", "lua", "orders", "ycsb", "client"];
    for set in sets {
        let folder = data().join(set);
        let text = fs::read_to_string(folder.join("plan.toml")).unwrap();
        let plan = file::parse(&text).unwrap();
        assert_eq!(file::print(&plan).unwrap(), text, "{set}");
        let runs = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let records: Vec<PathBuf> =
            runs.map(|run| run.join("run.json")).filter(|path| path.exists()).collect();
        assert_eq!(records.len(), 4, "{set}");
        for path in records {
            let record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            assert_eq!(record["plan_hash"], plan.hash(), "{}", path.display());
        }
    }
}

/// The parts of every form are the form: nothing is compared twice, and nothing is left out.
#[test]
fn a_difference_is_found_where_it_is() {
    let page = "<p>a<style>p{}</style><section id=\"x\">b</section><script>f()</script>\
                <script type=\"application/json\" id=\"data\">[1]</script>z";
    let parts = html(page);
    let titles: Vec<&str> = parts.iter().map(|(title, _)| title.as_str()).collect();
    assert_eq!(titles, ["head", "x", "data"]);
    assert_eq!(parts[2].1, "<script type=\"application/json\" id=\"data\">[1]</script>z");
    assert_eq!(digests("html", &html(&page.replace("f()", "g()"))), digests("html", &parts));
    let changed = digests("html", &html(&page.replace("[1]", "[2]")));
    let before = digests("html", &parts);
    let differing = changed.lines().zip(before.lines()).filter(|(a, b)| a != b).count();
    assert_eq!(differing, 2, "the whole and one part:\n{before}{changed}");
    let whole = |parts: Vec<Part>| parts.into_iter().map(|(_, text)| text).collect::<String>();
    for text in ["# a\nb\n## c\n\n\nd", "a,b\nc,d\nc,e\n", "x"] {
        assert_eq!(whole(markdown(text)), text);
        assert_eq!(whole(csv(text, 0)), text);
        assert_eq!(whole(tsv(text)), text);
    }
    let json_parts = json(r#"{"schema":1,"comparison":{"a":1,"steps":[{"name":"s"}]}}"#);
    assert_eq!(json_parts[1], ("step s".to_owned(), r#"{"name":"s"}"#.to_owned()));
}
