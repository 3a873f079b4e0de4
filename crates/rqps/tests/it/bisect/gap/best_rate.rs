//! `rqps find-rate`: from targets and a limit to the most that each of them can take.

use std::fs;

use serde_json::Value;

use crate::bisect::{run_in, words};
use crate::support::program::text;

#[test]
fn the_slower_of_two_servers_takes_less() {
    let folder = tempfile::tempdir().expect("folder");
    let at = folder.path().display();
    fs::write(folder.path().join("a.conf"), "mean_us = 100\nown_luck = true\n").expect("config");
    fs::write(folder.path().join("b.conf"), "mean_us = 150\nown_luck = true\n").expect("config");
    let line = format!(
        "find-rate a=fake@1:{at}/a.conf b=fake@1:{at}/b.conf --step point-query --limit p99<=5ms \
         --set rows=1000 --set warmup_seconds=0 --set read_seconds=0.3 --budget 20s --out {at}/out"
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
