//! `rqps gap`: from two targets to what their settings are worth.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::bisect::{run_in, words};
use crate::support::program::text;

/// The words of a gap between two configs of a DBMS.
fn between(folder: &Path, build: &str, a: &str, b: &str) -> String {
    fs::write(folder.join("a.conf"), a).expect("config");
    fs::write(folder.join("b.conf"), b).expect("config");
    let at = folder.display();
    format!(
        "gap a={build}:{at}/a.conf b={build}:{at}/b.conf --step point-query --set rows=1000 --set \
         warmup_seconds=0 --out {at}/out"
    )
}

fn found(line: &str, folder: &Path) -> Value {
    let said = run_in(&words(&format!("{line} --format json")), folder);
    assert!(said.status.success(), "{}", text(&said.stderr));
    let whole: Value = serde_json::from_slice(&said.stdout).expect("JSON");
    whole["gap"].clone()
}

fn causes(gap: &Value) -> Vec<&str> {
    let all = gap["causes"].as_array().expect("causes").iter();
    all.flat_map(|cause| cause["changes"].as_array().expect("changes"))
        .map(|change| change["name"].as_str().expect("a name"))
        .collect()
}

fn ratio(effect: &Value) -> f64 {
    effect["ln"].as_f64().expect("a logarithm").exp()
}

const FAST: &str = "mean_us = 100\nown_luck = true\nextra = 5\nidle = 1\n";
const SLOW: &str = "mean_us = 110\nown_luck = true\nextra = 4\nidle = 2\nrefuses = extra = 5\n";

#[test]
fn a_setting_closes_a_gap_and_one_that_the_server_refuses_is_named() {
    let folder = tempfile::tempdir().expect("folder");
    let line = between(folder.path(), "fake@1", FAST, SLOW);
    let first = found(&line, folder.path());
    assert_eq!(causes(&first), ["mean_us"], "{first:#}");
    let account = &first["account"];
    assert!((ratio(&account["effects"][0]) - 1.1).abs() < 0.01, "{account:#}");
    assert!((ratio(&account["rest"]) - 1.0).abs() < 0.01, "{account:#}");
    let refused = first["impossible"]["extra"].as_str().expect("a reason");
    assert!(refused.contains("extra has the invalid value 5"), "{refused}");

    let again = format!("gap --resume {}/out", folder.path().display());
    assert_eq!(found(&again, folder.path()), first);
    // One that was cut off measures what is missing.
    let log = folder.path().join("out/gap.json");
    let mut half: Value = serde_json::from_slice(&fs::read(&log).expect("log")).expect("JSON");
    half["rounds"].as_array_mut().expect("rounds").truncate(2);
    fs::write(&log, half.to_string()).expect("write");
    assert_eq!(causes(&found(&again, folder.path())), ["mean_us"]);
    let shown = text(&run_in(&words(&again), folder.path()).stdout);
    assert!(shown.contains("\n    mean_us = 100  "), "{shown}");
    assert!(shown.contains("\nnot possible: extra: "), "{shown}");
    assert!(shown.lines().count() <= 20 && shown.lines().all(|it| it.chars().count() <= 80));
}

#[test]
fn the_mirrored_list_makes_the_fast_one_slow() {
    let folder = tempfile::tempdir().expect("folder");
    let line = between(folder.path(), "fake@1", FAST, SLOW);
    let mirrored = found(&format!("{line} --from-b"), folder.path());
    assert_eq!(causes(&mirrored), ["mean_us"], "{mirrored:#}");
    assert_eq!((&mirrored["base"], &mirrored["goal"]), (&"a".into(), &"b".into()));
    assert!((ratio(&mirrored["account"]["effects"][0]) - 1.0 / 1.1).abs() < 0.01);
}

#[test]
fn what_one_step_shows_is_measured_in_all() {
    let folder = tempfile::tempdir().expect("folder");
    let slow = SLOW.replace("refuses = extra = 5\n", "");
    let line = between(folder.path(), "fake@1", FAST, &slow);
    let gap = found(&format!("{line} --all-steps --steps scan,point-query"), folder.path());
    let steps = gap["steps"].as_array().expect("steps");
    let names: Vec<&str> = steps.iter().filter_map(|step| step["name"].as_str()).collect();
    assert_eq!(names, ["scan", "point-query"], "{gap:#}");
    for step in steps {
        assert!((ratio(&step["account"]["effects"][0]) - 1.1).abs() < 0.02, "{step:#}");
        assert!((ratio(&step["account"]["rest"]) - 1.0).abs() < 0.02, "{step:#}");
    }
    let again = format!("gap --resume {}/out --format html", folder.path().display());
    let page = text(&run_in(&words(&again), folder.path()).stdout);
    assert!(page.contains("mean_us") && page.contains("All steps"), "{page:.3000}");
}

#[test]
fn equal_targets_have_no_gap() {
    let folder = tempfile::tempdir().expect("folder");
    let line = between(folder.path(), "fake@1", FAST, FAST);
    let said = run_in(&words(&line), folder.path());
    let shown = text(&said.stdout);
    assert!(shown.contains("there is no gap to close"), "{shown}{}", text(&said.stderr));
}

#[test]
fn what_no_gap_can_be_made_of_is_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let check = |line: &str, expected: &str| {
        let said = run_in(&words(line), folder.path());
        let complaint = text(&said.stderr);
        assert_eq!(said.status.code(), Some(2), "{line}: {complaint}");
        assert!(complaint.contains(expected), "{line}: {complaint}");
    };
    check("gap sqlite", "name two targets");
    check("gap sqlite sqlite:small-cache", "--step");
    check("gap sqlite sqlite:small-cache --step nothing", "nothing");
    check("gap sqlite sqlite:small-cache --step scan --least 100", "--least");
    check("gap sqlite mysql=mysql://me@127.0.0.1:1/app --step point-query", "settings in common");
    let dsn = "mysql=mysql://me@127.0.0.1:1/app";
    check(&format!("gap mysql@8.0.33 {dsn} --step point-query"), "with --from-b");
    check("gap --resume /nowhere", "resume a gap");
    assert!(!folder.path().join("rqps-results").exists(), "a refusal makes no folder");
}

#[test]
fn the_pragma_that_matters_is_found() {
    let folder = tempfile::tempdir().expect("folder");
    let common = "synchronous = 0\nbusy_timeout = 10000\n";
    let a = format!("{common}journal_mode = WAL\ntemp_store = 2\nwal_autocheckpoint = 900\n");
    let b = format!("{common}journal_mode = DELETE\ntemp_store = 1\nwal_autocheckpoint = 800\n");
    let line = between(folder.path(), "sqlite", &a, &b).replace("point-query", "update-nonindex");
    let short = "--set write_seconds=0.1 --set read_seconds=0.1 --set settle_scale=0 --least 30";
    let gap = found(&format!("{line} {short} --canaries off"), folder.path());
    assert_eq!(causes(&gap).first(), Some(&"journal_mode"), "{gap:#}");
    assert!(ratio(&gap["account"]["effects"][0]) > 1.2, "{gap:#}");
    assert_eq!(gap["candidates"], 3, "{gap:#}");
}

// `rqps find-rate`: from targets and a limit to the most that each of them can take.

#[test]
fn the_slower_of_two_servers_takes_less() {
    let folder = tempfile::tempdir().expect("folder");
    let at = folder.path().display();
    fs::write(folder.path().join("a.conf"), "mean_us = 100\nown_luck = true\n").expect("config");
    fs::write(folder.path().join("b.conf"), "mean_us = 150\nown_luck = true\n").expect("config");
    let line = format!(
        "find-rate a=fake@1:{at}/a.conf b=fake@1:{at}/b.conf --step point-query --limit p99<=5ms \
         --set rows=1000 --set warmup_seconds=0 --set read_seconds=0.3 --budget 60s --out {at}/out"
    );
    let said = run_in(&words(&format!("{line} --format json")), folder.path());
    assert!(said.status.success(), "{}", text(&said.stderr));
    let whole: Value = serde_json::from_slice(&said.stdout).expect("JSON");
    let targets = whole["best_rate"]["targets"].as_array().expect("targets");
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{whole:#}"));
    for target in targets {
        assert!(number(&target["found"]["rate"]) < number(&target["closed"]) * 1.05, "{whole:#}");
        assert!(target["windows"].as_u64() > Some(5), "{whole:#}");
    }
    let ratio = &targets[1]["relative"];
    assert!((number(&ratio["ratio"]) - 100.0 / 150.0).abs() < 0.1, "{whole:#}");
    assert!(number(&ratio["interval"]["high"]) < 1.0, "{whole:#}");

    // One that was cut off measures what is missing, and a finished one nothing.
    let log = folder.path().join("out/rate.json");
    let mut half: Value = serde_json::from_slice(&fs::read(&log).expect("log")).expect("JSON");
    let rounds = half["rounds"].as_array_mut().expect("rounds");
    let lost = rounds.pop().expect("a round")["folder"].as_str().expect("a name").to_owned();
    fs::write(&log, half.to_string()).expect("write");
    fs::remove_dir_all(folder.path().join("out").join(lost)).expect("remove");
    let again = format!("find-rate --resume {at}/out");
    let shown = text(&run_in(&words(&again), folder.path()).stdout);
    assert!(shown.starts_with("point-query: most events per second with p99 <= 5 ms\n"), "{shown}");
    assert!(shown.contains(" of a: LESS\n"), "{shown}");
    assert_eq!(text(&run_in(&words(&again), folder.path()).stdout), shown);
}

#[test]
fn a_search_without_a_limit_or_a_step_is_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let check = |line: &str, expected: &str| {
        let said = run_in(&words(line), folder.path());
        let complaint = text(&said.stderr);
        assert_eq!(said.status.code(), Some(2), "{line}: {complaint}");
        assert!(complaint.contains(expected), "{line}: {complaint}");
    };
    check("find-rate sqlite --step point-query", "'p99<=5ms'");
    check("find-rate sqlite --step point-query --limit qps<=5", "write a response time");
    check("find-rate sqlite --step nothing --limit p99<=5ms", "nothing");
    check("find-rate sqlite --step point-query --limit p99<=5ms --rate 5", "leave --rate out");
    check("find-rate --resume /nowhere", "resume a search");
    check(&format!("find-rate --resume {}", folder.path().display()), "rate.json`: no such file");
    assert!(!folder.path().join("rqps-results").exists(), "a refusal makes no folder");
}
