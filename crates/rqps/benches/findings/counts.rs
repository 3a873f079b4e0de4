//! Counts of findings, and the shares and intervals that follow.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::{Burned, Comparison, Finding, Sheet};
use rqps_model::metric::Metric;
use rqps_model::verdict::Verdict;
use rqps_stats::clopper_pearson;
use rqps_stats::summary::{mean, median};

/// Confidence of every interval.
const CONFIDENCE: f64 = 0.95;

/// Some findings, which are counted together.
pub(crate) struct Counts<'a>(Vec<&'a Finding>);

impl<'a> Counts<'a> {
    pub(crate) fn of(
        all: &[&'a Finding],
        is_wanted: impl Fn(&Finding) -> bool,
    ) -> Option<Counts<'a>> {
        let wanted: Vec<&Finding> = all.iter().copied().filter(|one| is_wanted(one)).collect();
        (!wanted.is_empty()).then_some(Counts(wanted))
    }

    /// Verdicts: one for each metric of each step of each comparison.
    pub(crate) fn verdicts(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn with(&self, holds: impl Fn(&Finding) -> bool) -> usize {
        self.0.iter().filter(|one| holds(one)).count()
    }

    pub(crate) fn comparisons(&self) -> usize {
        self.comparisons_with(|_| true)
    }

    /// Comparisons in which a verdict on any step does this.
    pub(crate) fn comparisons_with(&self, holds: impl Fn(&Finding) -> bool) -> usize {
        let found = self.0.iter().filter(|one| holds(one));
        found.map(|one| &one.comparison).collect::<BTreeSet<&Comparison>>().len()
    }

    /// The number of intervals that contain the true ratio, and of those for which it is known.
    pub(crate) fn holding_truth(&self) -> (usize, usize) {
        let known: Vec<bool> = self.0.iter().filter_map(|one| one.holds_truth()).collect();
        (known.iter().filter(|holds| **holds).count(), known.len())
    }

    /// The median half width of the intervals, as a logarithm.
    pub(crate) fn half_width(&self) -> Option<f64> {
        let intervals = self.0.iter().filter_map(|one| one.interval);
        let widths: Vec<f64> = intervals.map(|one| (one.high / one.low).ln() / 2.0).collect();
        median(&widths)
    }

    /// The geometric mean of the true ratios.
    pub(crate) fn true_ratio(&self) -> Option<f64> {
        geometric_mean(self.0.iter().filter_map(|one| one.true_ratio))
    }

    /// The geometric mean of the measured ratios.
    pub(crate) fn found_ratio(&self) -> Option<f64> {
        geometric_mean(self.0.iter().filter_map(|one| one.found))
    }

    /// The mean time of measuring, of both targets and all blocks.
    pub(crate) fn measured_seconds(&self) -> f64 {
        mean(&self.0.iter().map(|one| one.measured_seconds).collect::<Vec<_>>())
    }

    /// The numbers of blocks that there were.
    pub(crate) fn blocks(&self) -> BTreeSet<u32> {
        self.0.iter().map(|one| one.blocks).collect()
    }
}

fn geometric_mean(ratios: impl Iterator<Item = f64>) -> Option<f64> {
    let logarithms: Vec<f64> = ratios.map(f64::ln).collect();
    (!logarithms.is_empty()).then(|| mean(&logarithms).exp())
}

/// A verdict that states a difference of any size.
pub(crate) fn states_difference(one: &Finding) -> bool {
    one.verdict.is_worse() || one.verdict.is_better()
}

/// A verdict that states a difference of δ or more.
pub(crate) fn states_large(one: &Finding) -> bool {
    matches!(one.verdict, Verdict::Slower | Verdict::Faster)
}

/// A share with its exact interval: `1 of 40: 2.5 % (0.1 to 13.2)`.
pub(crate) fn share(hits: usize, trials: usize) -> String {
    if trials == 0 {
        return "none".to_owned();
    }
    let interval = clopper_pearson(hits as u64, trials as u64, CONFIDENCE);
    let per_cent = 100.0 * hits as f64 / trials as f64;
    let [low, high] = [interval.low, interval.high].map(|end| 100.0 * end);
    format!("{hits} of {trials}: {per_cent:.1} % ({low:.1} to {high:.1})")
}

// Tables in Markdown.

/// A table with these column heads.
pub(super) fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let heads: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    let mut text = line(&heads) + &"|---".repeat(heads.len()) + "|\n";
    for row in rows {
        text += &line(row);
    }
    text
}

/// A ratio with four digits after the point.
pub(super) fn ratio(number: Option<f64>) -> String {
    number.map_or_else(|| "unknown".to_owned(), |number| format!("{number:.4}"))
}

/// A share in per cent.
pub(super) fn per_cent(share: Option<f64>) -> String {
    share.map_or_else(|| "unknown".to_owned(), |share| format!("{:.2} %", 100.0 * share))
}

// Sample sizes: how many comparisons the page has, and how many it still needs.

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
    fn findings_are_counted_by_comparison_and_by_verdict() {
        use super::super::columns::{HEAD, METRICS};
        use super::super::finding::{Burned, parse};
        use super::{BTreeSet, Counts, Finding, states_difference, states_large};

        // Two comparisons of a build with itself, with the same seed, and one with a twin.
        let rows = "\
2026-11-23,CPU,2,sqlite-3.40.1,0,1,a,o/s,6,24.0,SAME,0,1.00000,0.99000,1.01000,1.00000
2026-11-23,CPU,2,sqlite-3.40.1,0,1,b,o/s,6,24.0,FASTER-SMALL,0,1.01000,1.00100,1.02100,1.00000
2026-11-23,CPU,2,sqlite-3.40.1,0,1,a,o/s,6,26.0,SAME,0,1.00000,0.98000,1.02000,1.00000
2026-11-23,CPU,2,sqlite-3.40.1,0,1,b,o/s,6,26.0,NO VERDICT,0,1.00000,,,1.00000
2026-11-24,CPU,2,sqlite-3.40.1,0.02,1,a,o/s,6,24.0,SLOWER,1,0.97000,0.96000,0.98000,0.98000
";
        let sheet = parse("x", "", &format!("{HEAD}\n{rows}")).unwrap();
        let all: Vec<&Finding> = sheet.findings.iter().collect();
        let is_equal = |one: &Finding| one.comparison.burned == Burned::NOTHING;
        let equal = Counts::of(&all, is_equal).unwrap();
        assert_eq!((equal.comparisons(), equal.verdicts()), (2, 4));
        assert_eq!(equal.comparisons_with(states_difference), 1);
        assert_eq!(equal.with(states_difference), 1);
        assert_eq!(equal.with(states_large), 0);
        // The interval of the first b does not hold 1, and one is missing.
        assert_eq!(equal.holding_truth(), (2, 3));
        assert_eq!(equal.measured_seconds(), 25.0);
        assert_eq!(equal.blocks(), BTreeSet::from([6]));
        let half_width = equal.half_width().unwrap();
        assert!((half_width - 0.010_000_3).abs() < 1e-6, "{half_width}");
        let slowed = Counts::of(&all, |one| !is_equal(one)).unwrap();
        assert_eq!(all[4].comparison.burned.to_string(), "2 %");
        assert_eq!((slowed.comparisons(), slowed.with(states_large)), (1, 1));
        assert_eq!(slowed.holding_truth(), (1, 1));
        assert_eq!(format!("{:.5}", slowed.found_ratio().unwrap()), "0.97000");
        assert!(Counts::of(&all, |one| one.metric == METRICS[1]).is_none());
    }

    #[test]
    fn shares_have_exact_intervals() {
        assert_eq!(super::share(0, 40), "0 of 40: 0.0 % (0.0 to 8.8)");
        assert_eq!(super::share(19, 20), "19 of 20: 95.0 % (75.1 to 99.9)");
        assert_eq!(super::share(0, 0), "none");
    }
}

#[cfg(test)]
mod gaps_tests {
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
