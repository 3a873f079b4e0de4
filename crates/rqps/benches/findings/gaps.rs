//! Sample sizes: how many comparisons the page has, and how many it still needs.

use std::collections::{BTreeMap, BTreeSet};

use rqps_model::metric::Metric;
use rqps_stats::clopper_pearson;
use rqps_stats::summary::mean;

use super::finding::{Burned, Comparison, Finding, Sheet};
use super::table::table;

/// Comparisons of builds with themselves.
const EQUAL_GOAL: usize = 200;
/// Comparisons of each DBMS with a slowed twin, for each loss.
const SLOWED_GOAL: usize = 20;
/// True losses of rate that slowed twins should have, per cent.
const LOSSES: [f64; 3] = [1.0, 2.0, 5.0];
/// Largest distance of a comparison's true loss from one of [`LOSSES`], as a share of it.
const TOLERANCE: f64 = 0.25;
/// The DBMS: the beginning of the names of its builds, and its own name.
const DBMS: [(&str, &str); 3] =
    [("postgres", "Postgres"), ("mysql", "MySQL"), ("sqlite", "SQLite")];

/// The section with the table of sample sizes.
pub(super) fn gaps(sheets: &[Sheet], all: &[&Finding]) -> String {
    let losses = losses(all);
    let equal: Vec<&Comparison> =
        losses.keys().copied().filter(|one| one.burned == Burned::NOTHING).collect();
    let mut rows = vec![row("0 %".to_owned(), &equal)];
    let so_far = equal.len();
    rows[0].extend([EQUAL_GOAL, EQUAL_GOAL.saturating_sub(so_far)].map(|count| count.to_string()));
    for loss in LOSSES {
        let is_near = |found: f64| (found - loss).abs() <= TOLERANCE * loss;
        let near = losses.iter().filter(|(_, found)| found.is_some_and(is_near));
        let near: Vec<&Comparison> = near.map(|(one, _)| *one).collect();
        let mut cells = row(format!("{loss} %"), &near);
        // Many comparisons of one DBMS do not stand for another's.
        let lacks = |(prefix, _)| SLOWED_GOAL.saturating_sub(of(&near, prefix));
        let missing: usize = DBMS.into_iter().map(lacks).sum();
        cells.extend([SLOWED_GOAL * DBMS.len(), missing].map(|count| count.to_string()));
        rows.push(cells);
    }
    let names = DBMS.map(|(_, name)| name);
    let heads = [&["true loss of rate"][..], &names, &["all", "wanted", "still needed"]].concat();
    let found = SLOWED_GOAL - 1;
    let at_least = 100.0 * clopper_pearson(found as u64, SLOWED_GOAL as u64, 0.95).low;
    format!(
        "## Sample sizes\n\n\
         This page should have {EQUAL_GOAL} comparisons of equal builds, and {SLOWED_GOAL} of each \
         DBMS for each loss of\nrate: if {found} of {SLOWED_GOAL} slowdowns are found, the power \
         is {at_least:.0} % or more. The true loss of a comparison is\nthe geometric mean over its \
         steps. It counts in a row if it is within a quarter of the loss in that row.\n\n{}\n{}",
        table(&heads, &rows),
        limits(sheets, all)
    )
}

/// The true loss of each comparison's rates, per cent; `None` where it is not known.
fn losses<'a>(all: &[&'a Finding]) -> BTreeMap<&'a Comparison, Option<f64>> {
    let mut ratios: BTreeMap<&Comparison, Vec<Option<f64>>> = BTreeMap::new();
    for one in all.iter().filter(|one| one.metric == Metric::Rate) {
        ratios.entry(&one.comparison).or_default().push(one.true_ratio);
    }
    let loss = |ratios: Vec<Option<f64>>| {
        let logarithms: Option<Vec<f64>> =
            ratios.into_iter().map(|ratio| ratio.map(f64::ln)).collect();
        logarithms.map(|logarithms| -100.0 * mean(&logarithms).exp_m1())
    };
    ratios.into_iter().map(|(comparison, ratios)| (comparison, loss(ratios))).collect()
}

/// Comparisons of a DBMS.
fn of(comparisons: &[&Comparison], prefix: &str) -> usize {
    comparisons.iter().filter(|one| one.build.starts_with(prefix)).count()
}

/// The cells of a row: its loss, the number of comparisons of each DBMS, and of all.
fn row(loss: String, comparisons: &[&Comparison]) -> Vec<String> {
    let mut cells = vec![loss];
    cells.extend(DBMS.map(|(prefix, _)| of(comparisons, prefix).to_string()));
    cells.push(comparisons.len().to_string());
    cells
}

/// Limits of the page that more comparisons of the same kind do not remove.
fn limits(sheets: &[Sheet], all: &[&Finding]) -> String {
    let mut steps: Vec<&str> = Vec::new();
    for one in all {
        if !steps.contains(&one.step.as_str()) {
            steps.push(&one.step);
        }
    }
    let machines = sheets.iter().flat_map(|sheet| &sheet.machines);
    let machines = machines.collect::<BTreeSet<_>>().len();
    let kinds = if machines == 1 { "kind of machine" } else { "kinds of machines" };
    format!(
        "* The comparisons have these steps: {}. Other steps may have other error rates.\n\
         * They ran on {machines} {kinds}, see [Measurements](#measurements). Hosted runners of CI \
         services may be noisier.\n",
        if steps.is_empty() { "none".to_owned() } else { steps.join(", ") }
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn comparisons_that_are_still_needed_are_counted() {
        use super::super::columns::HEAD;
        use super::super::finding::parse;
        use super::{Finding, gaps};

        let line = |burned: &str, seed: u32, step: &str, truth: &str| {
            let found = "o/s,6,24,SAME,0,1,0.9,1.1";
            format!("2026-11-23,CPU,2,mysql-8.0.33,{burned},{seed},{step},{found},{truth}\n")
        };
        let lines = [
            line("0", 1, "a", "1"),
            line("0", 1, "b", "1"),
            line("0", 2, "a", "1"),
            // 3 % of its CPU cost 2.1 % of the rate: the mean of both steps.
            line("0.03", 1, "a", "0.978"),
            line("0.03", 1, "b", "0.980"),
            // Between two goals.
            line("0.05", 1, "a", "0.97"),
            line("0.01", 1, "a", ""),
        ];
        let sheets = [parse("x", "", &format!("{HEAD}\n{}", lines.concat())).unwrap()];
        let all: Vec<&Finding> = sheets[0].findings.iter().collect();
        let text = gaps(&sheets, &all);
        for row in [
            "| 0 % | 0 | 2 | 0 | 2 | 200 | 198 |\n",
            "| 1 % | 0 | 0 | 0 | 0 | 60 | 60 |\n",
            "| 2 % | 0 | 1 | 0 | 1 | 60 | 59 |\n",
            "| 5 % | 0 | 0 | 0 | 0 | 60 | 60 |\n",
            "if 19 of 20 slowdowns are found, the power is 75 % or more",
            "these steps: a, b. ",
            "on 1 kind of machine, ",
        ] {
            assert!(text.contains(row), "{row}\n{text}");
        }
    }
}
