//! The bench against sysbench still works: each case once, a second long. What it measures is of
//! no interest here.

#![allow(clippy::unwrap_used)] // A test file throughout; clippy only sees the marked functions.

#[path = "../../benches/comparison/mod.rs"]
mod comparison;

use crate::support::skipped;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Parser;

use crate::bench_smoke::comparison::Options;

fn check(test: &str, target: &str) {
    let options = Options::parse_from(["bench", "--smoke", "--targets", target]).settled();
    if let Some(why) = comparison::missing(&options) {
        return skipped::note(test, &why);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let mut said = Vec::new();
    let report = comparison::run(&options, &stop, &mut |line| said.push(line.to_owned()));
    let text = report.unwrap_or_else(|error| panic!("{error:#}\n{said:#?}")).text(true);
    for case in &options.cases {
        // A rate of zero or an infinite one is no measurement.
        let row = text.lines().find(|line| line.contains(&format!("| {case} | together |")));
        let cells: Vec<&str> = row.unwrap_or_else(|| panic!("{case}: {text}")).split('|').collect();
        for rate in &cells[5..=6] {
            let rate: f64 = rate.trim().parse().unwrap();
            assert!(rate.is_finite() && rate >= 1.0, "{case}: {text}");
        }
    }
    for table in ["CPU of the client", "Loading", "Limits", "driver < 64 MB"] {
        assert!(text.contains(table), "{table}: {text}");
    }
}

#[test]
fn the_bench_against_sysbench_runs_on_postgres() {
    check("the_bench_against_sysbench_runs_on_postgres", "postgres@17.2.0");
}

#[test]
fn the_bench_against_sysbench_runs_on_mysql() {
    check("the_bench_against_sysbench_runs_on_mysql", "mysql@8.0.33");
}
