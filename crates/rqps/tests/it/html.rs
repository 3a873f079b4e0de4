//! The HTML report in a real browser: what it says, that it loads nothing, that nothing is cut.
//!
//! Needs Chromium; without it these tests say SKIPPED. With `RQPS_SCREENSHOTS=DIR` pictures of the
//! pages stay in DIR, to be looked at.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::{made, skipped};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::support::browser::{Browser, Seen};
use crate::support::made::Size;

/// Few targets: bars. Many: panels. One: nothing to compare.
const FEW: Size = Size { targets: 3, steps: 14, blocks: 4, seconds: 20 };
const MANY: Size = Size { targets: 12, steps: 14, blocks: 4, seconds: 20 };
const ALONE: Size = Size { targets: 1, steps: 3, blocks: 2, seconds: 20 };

/// Opens all that can be opened and draws all that is drawn late.
const OPEN_ALL: &str = "
    for (const fold of document.querySelectorAll('details')) fold.open = true;
    await new Promise(done => setTimeout(done, 300));
    for (const plot of CHARTS.keys()) draw(plot);
    await new Promise(done => setTimeout(done, 300));
";

fn browser(test: &str) -> Option<Browser> {
    let found = Browser::find();
    if found.is_none() {
        skipped::note(test, "no Chromium is installed");
    }
    found
}

fn rqps(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_rqps")).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A result set in a folder whose name must be encoded, and its report beside it.
fn page(folder: &Path, size: Size) -> PathBuf {
    let set = folder.join("results of #1");
    made::write_set(&set, size);
    let page = folder.join("report.html");
    let words = ["report", set.to_str().unwrap(), "--format", "html", "-o", page.to_str().unwrap()];
    rqps(&words);
    page
}

/// The answer, after the page was found without complaints.
fn quiet(seen: Seen) -> serde_json::Value {
    assert_eq!(seen.console, [""; 0]);
    assert!(seen.answer.get("fault").is_none(), "{}", seen.answer);
    seen.answer
}

fn texts(value: &serde_json::Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

fn keep_picture(browser: &Browser, page: &Path, name: &str) {
    let Some(folder) = std::env::var_os("RQPS_SCREENSHOTS").map(PathBuf::from) else { return };
    fs::create_dir_all(&folder).unwrap();
    browser.picture(page, 1280, 3000, &folder.join(format!("{name}.png")));
    browser.print(page, &folder.join(format!("{name}.pdf")));
}

#[test]
fn nothing_is_cut_and_nothing_overlaps_at_any_width() {
    let Some(browser) = browser("nothing_is_cut_and_nothing_overlaps_at_any_width") else { return };
    let question = format!("{OPEN_ALL} {}", include_str!("support/browser/layout.js"));
    let all: &[u32] = &[390, 800, 1280];
    for (name, size, widths) in [("few", FEW, all), ("many", MANY, all), ("alone", ALONE, &[800])] {
        let folder = tempfile::tempdir().unwrap();
        let page = page(folder.path(), size);
        for &width in widths {
            let answer = quiet(browser.ask(&page, width, &question));
            assert_eq!(answer["width"], width, "the page was asked in another width");
            assert_eq!(texts(&answer["faults"]), [""; 0], "{name} at {width}");
            assert!(answer["texts"].as_u64().unwrap() > 20, "charts were drawn: {answer}");
            let drawn: BTreeSet<&str> = texts(&answer["drawn"]).into_iter().collect();
            for step in texts(&answer["steps"]) {
                let named = |text: &&&str| **text == step || text.starts_with(&format!("{step} ("));
                assert!(drawn.iter().any(|text| named(&text)), "{name} at {width}: no {step}");
            }
        }
        keep_picture(&browser, &page, name);
    }
}

#[test]
fn it_loads_nothing_sorts_filters_and_leads_to_the_runs() {
    let test = "it_loads_nothing_sorts_filters_and_leads_to_the_runs";
    let Some(browser) = browser(test) else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), FEW);
    let question = format!("{OPEN_ALL} {}", include_str!("support/browser/works.js"));
    let answer = quiet(browser.ask(&page, 1280, &question));
    assert_eq!(answer["resources"], 0, "something was loaded");
    assert_eq!(answer["violations"], 0, "something was forbidden");
    // Sorted by the first target: the outlier comes last rising, first falling.
    assert_eq!(answer["rising"].as_array().unwrap().last().unwrap(), "hot-points_range=100");
    assert_eq!(answer["falling"][0], "hot-points_range=100");
    assert_eq!(answer["headsAreButtons"], true);
    assert_eq!(texts(&answer["onlyWrites"]), ["update-index", "write-only_range=10000"]);
    assert_eq!(texts(&answer["filtered"]), ["scan"]);
    assert_eq!(answer["status"], "1 of 14 steps");
    assert_ne!(answer["byRate"], answer["byCpu"], "another metric colours by other numbers");
    assert_eq!(answer["movedBy"], "ArrowDown and ArrowRight");
    assert_eq!(answer["theme"], "dark");
    assert_eq!(answer["saved"], "ok", "a saved chart is well-formed SVG");
    assert!(answer["stalls"].as_u64().unwrap() > 0, "the stall is marked");
    let links = texts(&answer["links"]);
    assert!(links.len() > 8, "{links:?}");
    for link in links {
        let path = link.replace("%20", " ").replace("%23", "#").replace("%3D", "=");
        assert!(folder.path().join(&path).exists(), "{link} leads nowhere");
    }
}

#[test]
fn thirty_two_steps_need_four_screens_of_2000_pixels() {
    let test = "thirty_two_steps_need_four_screens_of_2000_pixels";
    let Some(browser) = browser(test) else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), Size { targets: 2, steps: 32, blocks: 5, seconds: 20 });
    let height = "return document.documentElement.scrollHeight;";
    let answer = quiet(browser.ask(&page, 1400, height)).as_u64().unwrap();
    assert!((1000..=8000).contains(&answer), "{answer}");
    keep_picture(&browser, &page, "steps");
}

#[test]
fn what_is_folded_is_there_when_it_is_wanted() {
    let Some(browser) = browser("what_is_folded_is_there_when_it_is_wanted") else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), FEW);
    // Without scripts everything is there as it stands.
    let html = fs::read_to_string(&page).unwrap();
    let first = html.split("<details id=\"steps-").nth(1).unwrap();
    let first = first.split("</details>").next().unwrap();
    assert!(first.contains("<div class=\"in\"><noscript>") && first.contains("</td>"), "{first}");
    let answer = quiet(browser.ask(&page, 1280, include_str!("support/browser/folds.js")));
    assert_eq!(answer["closed"], 0, "cells were made that nobody has asked for: {answer}");
    assert_eq!(answer["printedCharts"], answer["plots"], "{answer}");
    assert!(answer["plots"].as_u64().unwrap() >= 3, "{answer}");
    assert_eq!(answer["linked"], true, "{answer}");
    assert_eq!((&answer["closedFirst"], &answer["sectionOpened"]), (&true.into(), &true.into()));
    assert!(answer["opened"].as_u64().unwrap() > 10, "{answer}");
    assert!(answer["sorts"].as_u64().unwrap() > 3, "{answer}");
    assert_eq!((&answer["leftAsText"], &answer["emptyFolds"]), (&0.into(), &0.into()), "{answer}");
}

/// Adds counters of servers and their logs to the made results.
fn say_causes(set: &Path) {
    for run in fs::read_dir(set).unwrap() {
        let run = run.unwrap().path();
        if !run.join("run.json").exists() {
            continue;
        }
        let is_base = run.to_str().unwrap().ends_with(&made::label(0));
        let (capacity, syncs) = if is_base { (200, 1000) } else { (400, 9_000_000) };
        fs::create_dir_all(run.join("logs")).unwrap();
        let settings = format!("name\tvalue\nio_capacity\t{capacity}\nsame\t1\n");
        fs::write(run.join("logs/variables.tsv"), settings).unwrap();
        for step in fs::read_dir(run.join("steps")).unwrap() {
            let step = step.unwrap().path();
            if step.extension().is_some_and(|extension| extension == "json") {
                let counters = format!("counter,before,after\nlog_syncs,0,{syncs}\n");
                fs::write(step.with_extension("counters.csv"), counters).unwrap();
            }
        }
    }
}

#[test]
fn what_may_explain_a_difference_stands_under_its_step() {
    let Some(browser) = browser("what_may_explain_a_difference_stands_under_its_step") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set");
    made::write_set(&set, FEW);
    say_causes(&set);
    let page = folder.path().join("report.html");
    let (set, file) = (set.to_str().unwrap(), page.to_str().unwrap());
    rqps(&["report", set, "--format", "html", "-o", file]);
    let question = format!("{OPEN_ALL} {}", include_str!("support/browser/explained.js"));
    let answer = quiet(browser.ask(&page, 1280, &question));
    let explained = rqps(&["explain", set]);
    let steps = texts(&answer["explained"]);
    assert!(!steps.is_empty(), "{answer}");
    for step in &steps {
        assert!(explained.contains(&format!("\n{step}\n---")), "{step}\n{explained}");
    }
    assert_eq!(explained.matches("counters of the DBMS").count(), answer["counters"], "{answer}");
    assert_eq!(answer["hasSettings"], true, "{answer}");
    // The same sentence in both forms; text wraps it.
    let words: Vec<&str> = explained.split_whitespace().collect();
    let sentence = answer["sentence"].as_str().unwrap();
    assert!(sentence.contains(" times the rate of "), "{sentence}");
    assert!(words.join(" ").contains(sentence), "{sentence}\n{explained}");
    let markdown = rqps(&["report", set, "--format", "markdown"]);
    assert!(markdown.contains("### What may explain the differences"), "{markdown}");
    let json: serde_json::Value =
        serde_json::from_str(&rqps(&["report", set, "--format", "json"])).unwrap();
    let causes = &json["comparison"]["causes"];
    assert_eq!(causes["steps"].as_array().unwrap().len(), steps.len());
    assert_eq!(causes["settings"][0]["differing"]["io_capacity"], "200");
    let faults = quiet(browser.ask(&page, 390, include_str!("support/browser/layout.js")));
    assert_eq!(texts(&faults["faults"]), [""; 0]);
    keep_picture(&browser, &page, "explained");
}

/// A profiling pass beside the made results: the second target spends more time in `slow_path`.
fn sample_stacks(set: &Path) {
    use std::io::Write;
    let runs: Vec<PathBuf> = fs::read_dir(set).unwrap().map(|run| run.unwrap().path()).collect();
    let pass = set.join("profile");
    fs::create_dir_all(&pass).unwrap();
    for name in ["plan.toml", "host.json"] {
        fs::copy(set.join(name), pass.join(name)).unwrap();
    }
    for run in runs.iter().filter(|run| run.join("run.json").exists()) {
        let copy = pass.join(run.file_name().unwrap());
        fs::create_dir_all(copy.join("steps")).unwrap();
        let read = |path: &Path| -> serde_json::Value {
            serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
        };
        let mut record = read(&run.join("run.json"));
        record["workload"]["profile_hertz"] = 997.into();
        fs::write(copy.join("run.json"), record.to_string()).unwrap();
        let slow = if run.to_str().unwrap().ends_with(&made::label(0)) { 300 } else { 900 };
        let block = record["key"]["block"].as_u64().unwrap();
        let folded = format!(
            "main;run {}\nmain;run;parse<int> {}\nmain;run;slow_path;read_[k] {}\n",
            2000 + 7 * block,
            900 - 5 * block,
            slow + 9 * block
        );
        for step in fs::read_dir(run.join("steps")).unwrap() {
            let step = step.unwrap().path();
            if step.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let mut record = read(&step);
            record["sampled"] = serde_json::json!({
                "tool": "perf version 6.1", "event": "cpu-clock", "hertz": 997,
                "call_graph": "frame_pointers", "samples": 3000 + slow, "lost": 1, "broken": 2,
                "nameless": 3,
            });
            let place = copy.join("steps").join(step.file_name().unwrap());
            let file = fs::File::create(place.with_extension("folded.gz")).unwrap();
            let mut packer = flate2::write::GzEncoder::new(file, flate2::Compression::default());
            packer.write_all(folded.as_bytes()).unwrap();
            packer.finish().unwrap();
            fs::write(place, record.to_string()).unwrap();
        }
    }
}

#[test]
fn a_flame_graph_answers_to_pointer_keys_and_words() {
    let Some(browser) = browser("a_flame_graph_answers_to_pointer_keys_and_words") else { return };
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set");
    made::write_set(&set, FEW);
    sample_stacks(&set);
    let page = folder.path().join("report.html");
    let (set, file) = (set.to_str().unwrap(), page.to_str().unwrap());
    rqps(&["report", set, "--format", "html", "-o", file]);
    let question = format!("{OPEN_ALL} {}", include_str!("support/browser/flame.js"));
    let answer = quiet(browser.ask(&page, 1280, &question));
    assert!(answer["graphs"].as_u64().unwrap() >= 4, "{answer}");
    assert_eq!(texts(&answer["frames"]), ["main", "parse<int>", "read_[k]", "run", "slow_path"]);
    assert_eq!(texts(&answer["worse"]), ["read_[k]", "slow_path"], "{answer}");
    let keys = ["run", "slow_path", "parse<int>", "slow_path", "read_[k]", "slow_path"];
    assert_eq!(texts(&answer["keys"]), keys);
    assert_eq!(answer["zoomed"], true, "{answer}");
    assert_eq!(answer["found"], 1, "{answer}");
    assert!(answer["says"].as_str().unwrap().contains(" % of "), "{answer}");
    assert_eq!(answer["contrast"], true, "{answer}");
    let explained = rqps(&["explain", set]);
    assert!(explained.contains("functions whose CPU time per operation differs"), "{explained}");
    keep_picture(&browser, &page, "flame");
}

/// Summary sections must stay above details that few readers need.
#[test]
fn the_order_of_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let html = fs::read_to_string(page(folder.path(), FEW)).unwrap();
    let sections: Vec<&str> =
        html.split("<section id=\"").skip(1).map(|part| part.split('"').next().unwrap()).collect();
    let expected = [
        "verdict", "overview", "groups", "verdicts", "steps", "settings", "plans", "caveats",
        "facts", "host", "method", "runs",
    ];
    let shared: Vec<&str> = sections.iter().filter(|id| expected.contains(id)).copied().collect();
    // Settings of these three targets are the same, but their texts are there; so are no plans.
    let there: Vec<&str> = expected.iter().filter(|id| shared.contains(id)).copied().collect();
    assert_eq!(shared, there, "sections stand in this order");
    for section in ["verdict", "overview", "groups", "steps", "method", "runs"] {
        assert!(shared.contains(&section), "no {section} in {sections:?}");
    }
    let folds = html.split("<details id=\"steps-").count() - 1;
    assert_eq!(folds, FEW.steps);
    for link in html.split("<a href=\"#").skip(1).map(|part| part.split('"').next().unwrap()) {
        assert!(html.contains(&format!("id=\"{link}\"")), "#{link} leads nowhere");
    }
}

#[test]
fn a_comparison_leaves_a_page_beside_its_results() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let lock = folder.path().join("lock");
    let words = ["compare", "fake@1", "other=fake@1", "--blocks", "2", "--steps", "point-query"];
    let settings = ["--set", "read_seconds=2", "--set", "settle_scale=0", "--format", "markdown"];
    let output = Command::new(env!("CARGO_BIN_EXE_rqps"))
        .env("RQPS_HOST_LOCK", lock)
        .env("RQPS_STATE", folder.path())
        .args(words)
        .args(settings)
        .arg("--out")
        .arg(&out)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains(&format!("open {}", out.join("report.html").display())), "{said}");
    let markdown = String::from_utf8_lossy(&output.stdout);
    assert!(markdown.starts_with("## rqps: other relative to fake-1\n"), "{markdown}");
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    // Its links are those of the folder that it is in.
    assert!(page.contains("[[\"b01-1-"), "addresses of runs");
    let printed = rqps(&["report", out.to_str().unwrap(), "--format", "html"]);
    assert!(printed.starts_with("<!doctype html>") && printed.ends_with("</html>\n"));
}

#[test]
fn words_of_others_stay_words() {
    let Some(browser) = browser("words_of_others_stay_words") else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path(), FEW);
    let html = fs::read_to_string(&page).unwrap();
    // A label is a name from outside; here it is one that tries to become more than that.
    let bad = "</script><img src=x onerror=alert(1)>";
    let in_json = bad.replace('<', "\\u003c");
    let in_html = bad.replace('<', "&lt;").replace('>', "&gt;");
    let (data, text) = html.split_once("<script type=\"application/json\"").unwrap();
    let label = made::label(1);
    let hostile = format!(
        "{}<script type=\"application/json\"{}",
        data.replace(&label, &in_html),
        text.replace(&label, &in_json)
    );
    fs::write(&page, hostile).unwrap();
    let question = format!("{OPEN_ALL} return document.querySelectorAll('main img').length;");
    assert_eq!(quiet(browser.ask(&page, 1280, &question)), 0);
}

/// Times are for the log: they depend on the machine, and more on who else uses it.
#[test]
fn a_ladder_of_twenty_builds_opens() {
    let Some(browser) = browser("a_ladder_of_twenty_builds_opens") else { return };
    let folder = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let page = page(folder.path(), Size { targets: 20, steps: 42, blocks: 8, seconds: 60 });
    let made = began.elapsed();
    let bytes = fs::metadata(&page).unwrap().len();
    let question = "return { cells: document.querySelectorAll('.heat button.cell').length,
        drawn: [...CHARTS.values()].filter(state => state.view).length };";
    let answer = quiet(browser.ask(&page, 1280, question));
    assert_eq!(answer["cells"], 42 * 19);
    // What is closed or far below is not drawn until it is wanted.
    assert!(answer["drawn"].as_u64().unwrap() <= 3, "{answer}");
    assert!(bytes < 16 << 20, "{bytes} bytes");
    let opened = browser.load_milliseconds(&page);
    eprintln!(
        "42 steps x 20 targets x 8 blocks: made and reported in {:.1} s, {:.1} MB, open after \
         {opened:.0} ms",
        made.as_secs_f64(),
        bytes as f64 / 1e6
    );
    keep_picture(&browser, &page, "ladder");
}
