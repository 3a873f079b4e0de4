//! `rqps site` over small result sets: pages, changes, the feed, links, what is rendered again and
//! what is not, and the pages in a real browser, opened from the file system.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::skipped;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::browser::Browser;

/// Four versions, of which the third lost a third; the fourth stays there.
const LADDER: &str = "\
col-1 : x.ma100401_rel.z12a_c8r32.pk1
col-2 : x.ma100501_rel.z12a_c8r32.pk1
col-3 : x.ma100601_rel.z12a_c8r32.pk1
col-4 : x.ma100602_rel.z12a_c8r32.pk1
col-5 : x.ma100603_rel.z12a_c8r32.pk1

col-1\tcol-2\tcol-3\tcol-4\tcol-5
10000\t10020\t6650\t6670\t6660\tpoint-query_range=100
3000\t3010\t2990\t3000\t3005\tscan_range=100
";

fn rqps(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rqps")).args(words).output().unwrap()
}

/// One day's result set: both targets of the committed one, point-query at `percent` of its rate.
fn day(folder: &Path, day: u32, percent: f64) -> PathBuf {
    let source = Path::new("tests/data/two-targets");
    let set = folder.join(format!("day{day:02}"));
    fs::create_dir_all(&set).unwrap();
    for name in ["plan.toml", "host.json"] {
        fs::copy(source.join(name), set.join(name)).unwrap();
    }
    for run in fs::read_dir(source).unwrap().map(|entry| entry.unwrap()) {
        let name = run.file_name().into_string().unwrap();
        let Some(block) = name.strip_prefix('b').filter(|_| run.path().is_dir()) else { continue };
        let block: u32 = block[..2].parse().unwrap();
        let to = set.join(&name);
        fs::create_dir_all(to.join("steps")).unwrap();
        let text = fs::read_to_string(run.path().join("run.json")).unwrap();
        let mut record: Value = serde_json::from_str(&text).unwrap();
        record["started"] = json!(format!("2026-01-{day:02}T0{block}:00:00Z"));
        fs::write(to.join("run.json"), record.to_string()).unwrap();
        for (step, share) in [("02-point-query", percent), ("03-scan", 100.0)] {
            let file = format!("steps/{step}.json");
            let text = fs::read_to_string(run.path().join(&file)).unwrap();
            let mut record: Value = serde_json::from_str(&text).unwrap();
            // Some noise that is the same in each run of this test.
            let noise = 1.0 + 0.002 * f64::from((day * 7 + block * 3) % 5);
            for count in ["statements", "events"] {
                record["outcome"][count] = json!((1000.0 * share * noise).round() as u64);
            }
            fs::write(to.join(&file), record.to_string()).unwrap();
        }
    }
    set
}

fn site(sets: &Path, out: &Path, more: &[&str]) -> (String, Option<i32>) {
    let words = [&["site", sets.to_str().unwrap(), "-o", out.to_str().unwrap()], more].concat();
    let output = rqps(&words);
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
}

fn made(sets: &Path, out: &Path, more: &[&str]) -> String {
    let (said, code) = site(sets, out, more);
    assert_eq!(code, Some(0), "{said}");
    said
}

/// All files below a folder.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(files(&entry))
        } else {
            found.insert(entry);
        }
    }
    found
}

/// Every link of every page leads to a file, none to another host.
fn check_links(out: &Path) {
    let pages = files(out).into_iter().filter(|path| path.extension().is_some_and(|e| e == "html"));
    for page in pages {
        let html = fs::read_to_string(&page).unwrap();
        for part in html.split(" href=\"").chain(html.split(" src=\"")).skip(1) {
            let link = part.split('"').next().unwrap();
            let link = link.split('#').next().unwrap();
            if link.is_empty() || part.starts_with("<!doctype") {
                continue;
            }
            assert!(!link.contains(':') && !link.starts_with('/'), "{link} in {}", page.display());
            let to = page.parent().unwrap().join(link);
            assert!(to.exists(), "{link} in {}", page.display());
        }
    }
}

fn index(out: &Path) -> Value {
    serde_json::from_slice(&fs::read(out.join("index.json")).unwrap()).unwrap()
}

/// Fourteen days, slower from the ninth on, and a ladder.
fn history(folder: &Path) -> PathBuf {
    let sets = folder.join("nightly");
    for number in 1..=14 {
        day(&sets, number, if number < 9 { 100.0 } else { 93.0 });
    }
    let table = folder.join("qps.abs.tsv");
    fs::write(&table, LADDER).unwrap();
    let ladder = sets.join("ladder");
    let words =
        ["import", "sysbench-mytools", table.to_str().unwrap(), "--out", ladder.to_str().unwrap()];
    assert!(rqps(&words).status.success());
    sets
}

#[test]
fn a_site_shows_changes_and_renders_only_what_changed() {
    let folder = tempfile::tempdir().unwrap();
    let sets = history(folder.path());
    let out = folder.path().join("site");
    let said = made(&sets, &out, &["--url", "https://example.org/bench"]);
    assert!(said.contains("15 result sets (15 reports rendered)"), "{said}");
    check_links(&out);
    let whole = index(&out);
    let series = whole["series"].as_array().unwrap();
    let of = |step: &str, changed: bool| {
        let is = |one: &&Value| {
            let none = one["changes"].as_array().unwrap().is_empty();
            one["step"] == step && one["metric"] == "o/s" && none != changed
        };
        series.iter().filter(is).collect::<Vec<_>>()
    };
    let [over_time] = of("point-query", true)[..] else { panic!("{series:#?}") };
    let changes = over_time["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 2, "one for each target: {changes:#?}");
    for change in changes {
        assert_eq!(change["result_set"], "day09");
        assert!((change["ratio"].as_f64().unwrap() - 0.93).abs() < 0.01, "{change}");
    }
    assert_eq!(of("scan", true).len(), 0, "scans did not change");
    let [by_version] = of("point-query_range=100", true)[..] else { panic!("{series:#?}") };
    assert_eq!(by_version["changes"][0]["version"], "10.6.1");
    let page = fs::read_to_string(out.join(over_time["page"].as_str().unwrap())).unwrap();
    assert!(page.contains("×0.93") && page.contains("../../sets/day09.html"));
    let overview = fs::read_to_string(out.join("index.html")).unwrap();
    assert!(overview.contains("3 changes of o/s") && overview.contains("sets/day14.html"));
    let feed = fs::read_to_string(out.join("feed.xml")).unwrap();
    assert_eq!(feed.matches("<entry>").count(), 3, "{feed}");
    assert!(feed.contains("href=\"https://example.org/bench/series/"), "{feed}");
    assert!(feed.contains("<updated>2026-01-09T01:00:00Z</updated>"), "{feed}");

    let said = made(&sets, &out, &["--url", "https://example.org/bench"]);
    assert!(said.contains("(0 reports rendered)") && said.contains("(0 pages written)"), "{said}");
    // The time of a file is no content.
    let plan = sets.join("day03/plan.toml");
    let text = fs::read(&plan).unwrap();
    fs::write(&plan, text).unwrap();
    assert!(made(&sets, &out, &[]).contains("(0 reports rendered)"));
    let before = fs::read(out.join("sets/day03.html")).unwrap();
    day(&sets, 15, 93.0);
    let said = made(&sets, &out, &[]);
    assert!(said.contains("16 result sets (1 report rendered)"), "{said}");
    day(&sets, 3, 99.0);
    assert!(made(&sets, &out, &[]).contains("(1 report rendered)"));
    assert_ne!(before, fs::read(out.join("sets/day03.html")).unwrap());
    assert!(made(&sets, &out, &["--tau", "2%"]).contains("(16 reports rendered)"));

    fs::remove_dir_all(sets.join("day15")).unwrap();
    made(&sets, &out, &["--tau", "2%"]);
    assert!(!out.join("sets/day15.html").exists() && !out.join("data/day15.json").exists());
    check_links(&out);
}

#[test]
fn what_cannot_be_read_is_named_and_other_folders_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let sets = folder.path().join("nightly");
    for number in 1..=2 {
        day(&sets, number, 100.0);
    }
    let run = files(&day(&sets, 3, 100.0)).into_iter().find(|path| path.ends_with("run.json"));
    fs::write(run.unwrap(), "{ half of a").unwrap();
    let out = folder.path().join("site");
    let (said, code) = site(&sets, &out, &[]);
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("day03 is not on the site"), "{said}");
    assert!(said.contains("2 result sets (2 reports rendered)"), "{said}");
    let overview = fs::read_to_string(out.join("index.html")).unwrap();
    assert!(overview.contains("Folders that cannot be read") && overview.contains("day03"));
    // Half a record of an earlier run is rendered again, not believed.
    fs::write(out.join("data/day01.json"), "{").unwrap();
    let (said, _) = site(&sets, &out, &[]);
    assert!(said.contains("(1 report rendered)"), "{said}");

    let refused = |sets: &Path, out: &Path, more: &[&str], expected: &str| {
        let (said, code) = site(sets, out, more);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(expected), "{said}");
    };
    refused(&sets, &sets, &[], "it is not a site of rqps");
    assert!(sets.join("day01/plan.toml").is_file());
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    refused(&empty, &out, &[], "has a plan.toml");
    refused(&folder.path().join("none"), &out, &[], "none");
    refused(&sets, &out, &["--metric", "qps"], "no such metric; metrics are o/s,");
}

/// Folders of one name in two places have pages of their own.
#[test]
fn result_sets_of_one_name_are_two() {
    let folder = tempfile::tempdir().unwrap();
    for place in ["a", "b"] {
        day(&folder.path().join("all").join(place), 1, 100.0);
    }
    let out = folder.path().join("site");
    let said = made(&folder.path().join("all"), &out, &[]);
    assert!(said.contains("2 result sets"), "{said}");
    let names: BTreeSet<String> = index(&out)["sets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|set| set["page"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.iter().all(|page| out.join(page).is_file()), "{names:?}");
}

#[test]
fn pages_work_in_a_browser_from_the_file_system() {
    let Some(browser) = Browser::find() else {
        skipped::note("pages_work_in_a_browser_from_the_file_system", "no Chromium is installed");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let sets = history(folder.path());
    let out = folder.path().join("site");
    made(&sets, &out, &[]);
    let whole = index(&out);
    let series = whole["series"].as_array().unwrap();
    let page = |step: &str| {
        let is = |one: &&Value| one["step"] == step && one["metric"] == "o/s";
        out.join(series.iter().find(is).unwrap()["page"].as_str().unwrap())
    };
    let draw = "
        for (const plot of CHARTS.keys()) draw(plot);
        await new Promise(done => setTimeout(done, 300));
        const texts = [...document.querySelectorAll('svg text')].map(text => text.textContent);
        return { texts, width: document.documentElement.scrollWidth,
          ground: getComputedStyle(document.body).backgroundColor };";
    for (step, expected) in [("point-query", "×0.93"), ("point-query_range=100", "×0.67")] {
        let seen = browser.ask(&page(step), 900, draw);
        assert_eq!(seen.console, [""; 0]);
        let texts = seen.answer["texts"].to_string();
        assert!(texts.contains(expected), "{}", seen.answer);
        let width = seen.answer["width"].as_u64().unwrap();
        assert!(width <= 900, "the page scrolls sideways: {width}");
        assert_eq!(seen.answer["ground"], "rgb(255, 255, 255)", "the style sheet is there");
    }
    let filter = "
        const field = document.querySelector('#filter');
        field.value = 'day09';
        field.dispatchEvent(new Event('input'));
        const shown = [...document.querySelectorAll('main tbody tr')].filter(row => !row.hidden);
        document.querySelector('#theme').click();
        return { shown: shown.length, hash: location.hash,
          ground: getComputedStyle(document.body).backgroundColor };";
    let seen = browser.ask(&out.join("index.html"), 900, filter);
    assert_eq!(seen.console, [""; 0]);
    assert_eq!(seen.answer["shown"], 3, "two changes and the result set: {}", seen.answer);
    assert_eq!(seen.answer["hash"], "#&filter=day09");
    assert_ne!(seen.answer["ground"], "rgb(255, 255, 255)", "it is dark");
    let seen = browser.ask(&out.join("sets/day09.html"), 900, draw);
    assert_eq!(seen.console, [""; 0]);
    if let Some(pictures) = std::env::var_os("RQPS_SCREENSHOTS").map(PathBuf::from) {
        fs::create_dir_all(&pictures).unwrap();
        for (name, page) in [
            ("overview", out.join("index.html")),
            ("over-time", page("point-query")),
            ("by-version", page("point-query_range=100")),
        ] {
            browser.picture(&page, 1280, 1400, &pictures.join(format!("site-{name}.png")));
        }
    }
}
