//! The text of the page.

use std::collections::BTreeSet;

use rqps_model::metric::Metric;
use rqps_model::verdict::Verdict;

use super::columns::METRICS;
use super::counts::gaps;
use super::counts::{Counts, share, states_difference, states_large};
use super::counts::{per_cent, ratio, table};
use super::finding::{self, Burned, Finding, Sheet};

const HEAD: &str = "\
# Evidence

How often verdicts of rqps are wrong, and what they find, on real servers: comparisons of a build
with itself (A/A), and with a twin that is slower by a known share.
[Simulations](verdicts.md#error-rates) cover more cases; this page shows whether reality agrees.

    cargo bench --profile dev --bench evidence

writes this page from the CSV files in docs/evidence. Do not edit it; a test compares both.

* A **comparison** is one run of `rqps compare` in turns, with a seed of its own. It gives one
  **verdict** for each metric of each step.
* **Burned** is the share of its own CPU time that the slowed twin burns besides. At 0 %, both
  builds are equal. *True* is the ratio that follows from what the twin recorded, a lower bound of
  the slowdown; [performance.md](performance.md#true-slowdowns) explains the method.
* For server_cpu_us/o, the words WORSE and BETTER count as SLOWER and FASTER.
* δ and τ are those of the command under [Measurements](#measurements), else 2 % and 1 %.
* Shares have their exact 95 % interval (Clopper and Pearson 1934) in parentheses, in per cent. It
  assumes independent trials. Comparisons are independent, except for a state of the host that
  outlasts them. The steps of a comparison are not: they share blocks, starts of servers and loads,
  and their q is adjusted together. So intervals over comparisons hold, and intervals over verdicts
  are too narrow.

";

const EQUAL: &str = "\
## Equal builds

A **false alarm** is any verdict that states a difference: SLOWER, FASTER, SLOWER-SMALL or
FASTER-SMALL. *Large* ones are SLOWER and FASTER; only SLOWER can fail a gate. q = 0.05 means a false alarm in at
most 5 % of comparisons, for each metric; what simulations have is in
[verdicts.md](verdicts.md#loud-steps-few-pairs).
From the measurement 2026-11-25-inside on, rqps judges rates with at least the error inside a block,
which leaves 1 to 3 % there ([verdicts.md](verdicts.md#turns)).

";

const SLOWED: &str = "\
## Slowed builds

**Found** counts SLOWER and SLOWER-SMALL: its share is the power. SLOWER is the expected verdict
only where *true* is well beyond what layout explains (τ); a rate loses less than the share of the
server's CPU. *Wrong way* counts FASTER and FASTER-SMALL.

";

const STEPS: &str = "\
## Steps

*States a difference* counts false alarms at 0 %, and found slowdowns elsewhere. *Measured* is the
mean time of measuring a step, for both targets and all blocks.

";

const PUBLISHED: &str = "\
## Published by others

Other programs on other machines, so no comparison of the same work. The figures say which
differences gates elsewhere look for, and why not smaller ones.

";

/// The whole page.
pub(crate) fn page(sheets: &[Sheet]) -> String {
    let all: Vec<&Finding> = sheets.iter().flat_map(|sheet| &sheet.findings).collect();
    let published = table(&["who", "publishes", "source"], &finding::rows());
    [
        HEAD.to_owned() + &summary(sheets, &all) + "\n",
        EQUAL.to_owned() + &equal(&all) + "\n",
        SLOWED.to_owned() + &slowed(&all) + "\n",
        STEPS.to_owned() + &steps(&all) + "\n",
        format!("{PUBLISHED}{published}\n"),
        gaps(sheets, &all) + "\n",
        measurements(sheets),
    ]
    .concat()
}

/// Names of the builds, in order; the first stands for all of them.
fn builds<'a>(all: &[&'a Finding]) -> Vec<Option<&'a str>> {
    let names: BTreeSet<&str> = all.iter().map(|one| one.comparison.build.as_str()).collect();
    std::iter::once(None).chain(names.into_iter().map(Some)).collect()
}

/// The findings of a share and a metric: of all builds, or of one.
fn select<'a>(
    all: &[&'a Finding],
    burned: Burned,
    metric: Metric,
    build: Option<&str>,
) -> Option<Counts<'a>> {
    Counts::of(all, |one| {
        let is_build = build.is_none_or(|build| one.comparison.build == build);
        one.comparison.burned == burned && one.metric == metric && is_build
    })
}

/// Shares that slowed builds burn.
fn slowed_shares(all: &[&Finding]) -> BTreeSet<Burned> {
    let mut shares: BTreeSet<Burned> = all.iter().map(|one| one.comparison.burned).collect();
    shares.remove(&Burned::NOTHING);
    shares
}

/// The rows about the rates of all builds, for the head of the page.
fn summary(sheets: &[Sheet], all: &[&Finding]) -> String {
    let mut rows = Vec::new();
    if let Some(equal) = select(all, Burned::NOTHING, Metric::Rate, None) {
        let row = |of: &Counts<'_>, builds: &str, what: &str, is_alarm: fn(&Finding) -> bool| {
            let what = format!("{builds}: comparisons with {what}");
            vec![what, share(of.comparisons_with(is_alarm), of.comparisons())]
        };
        rows.push(row(&equal, "equal builds", "a false alarm", states_difference));
        rows.push(row(&equal, "equal builds", "a large false alarm", states_large));
        // Few blocks have more false alarms than many.
        for blocks in equal.blocks() {
            let of_blocks = Counts::of(all, |one| {
                let is_equal = one.comparison.burned == Burned::NOTHING;
                is_equal && one.metric == Metric::Rate && one.blocks == blocks
            });
            let builds = format!("equal builds, {blocks} blocks");
            rows.extend(of_blocks.map(|of| row(&of, &builds, "a false alarm", states_difference)));
        }
        // Rules change from one measurement to the next.
        for sheet in sheets {
            let findings: Vec<&Finding> = sheet.findings.iter().collect();
            let of_sheet = select(&findings, Burned::NOTHING, Metric::Rate, None);
            let builds = format!("equal builds, {}", sheet.name);
            rows.extend(of_sheet.map(|of| row(&of, &builds, "a false alarm", states_difference)));
        }
    }
    for burned in slowed_shares(all) {
        let Some(slowed) = select(all, burned, Metric::Rate, None) else { continue };
        let loss = per_cent(slowed.true_ratio().map(|ratio| 1.0 - ratio));
        let row = |what: &str, holds: fn(&Finding) -> bool| {
            let what = format!("true loss {loss} ({burned} burned): {what}");
            vec![what, share(slowed.with(holds), slowed.verdicts())]
        };
        rows.push(row("found", |one| one.verdict.is_worse()));
        rows.push(row("SAME", |one| one.verdict == Verdict::Same));
        rows.push(row("wrong way", |one| one.verdict.is_better()));
    }
    table(&["rates of all builds", "share"], &rows)
}

fn equal(all: &[&Finding]) -> String {
    let mut rows = Vec::new();
    for metric in METRICS {
        for build in builds(all) {
            let Some(counts) = select(all, Burned::NOTHING, metric, build) else { continue };
            let (verdicts, comparisons) = (counts.verdicts(), counts.comparisons());
            let alarmed = |is_alarm: fn(&Finding) -> bool| {
                share(counts.comparisons_with(is_alarm), comparisons)
            };
            rows.push(vec![
                metric.name().to_owned(),
                build.unwrap_or("all").to_owned(),
                alarmed(states_difference),
                alarmed(states_large),
                share(counts.with(states_difference), verdicts),
                share(counts.with(states_large), verdicts),
                share(counts.with(|one| one.verdict == Verdict::Same), verdicts),
                holding(&counts),
                per_cent(counts.half_width()),
            ]);
        }
    }
    let heads = [
        "metric",
        "build",
        "comparisons with a false alarm",
        "with a large one",
        "verdicts that are false alarms",
        "large ones",
        "verdicts SAME",
        "intervals that hold 1",
        "median half width",
    ];
    table(&heads, &rows)
}

fn slowed(all: &[&Finding]) -> String {
    let mut rows = Vec::new();
    for burned in slowed_shares(all) {
        for metric in METRICS {
            for build in builds(all) {
                let Some(counts) = select(all, burned, metric, build) else { continue };
                let verdicts = counts.verdicts();
                let of = |holds: fn(&Finding) -> bool| share(counts.with(holds), verdicts);
                rows.push(vec![
                    burned.to_string(),
                    metric.name().to_owned(),
                    build.unwrap_or("all").to_owned(),
                    counts.comparisons().to_string(),
                    ratio(counts.true_ratio()),
                    ratio(counts.found_ratio()),
                    of(|one| one.verdict.is_worse()),
                    of(|one| one.verdict == Verdict::Slower),
                    of(|one| one.beyond_tau),
                    of(|one| one.verdict.is_better()),
                    of(|one| one.verdict == Verdict::Same),
                    holding(&counts),
                    per_cent(counts.half_width()),
                ]);
            }
        }
    }
    let heads = [
        "burned", "metric", "build", "comparisons", "true", "measured ratio", "found", "SLOWER",
        "beyond τ", "wrong way", "SAME", "intervals that hold *true*", "median half width",
    ];
    table(&heads, &rows)
}

fn steps(all: &[&Finding]) -> String {
    let keys: BTreeSet<(&str, Burned, Metric, &str)> = all
        .iter()
        .map(|one| {
            let comparison = &one.comparison;
            (comparison.build.as_str(), comparison.burned, one.metric, one.step.as_str())
        })
        .collect();
    let mut rows = Vec::new();
    for (build, burned, metric, step) in keys {
        let is_wanted = |one: &Finding| {
            let comparison = &one.comparison;
            (comparison.build.as_str(), comparison.burned, one.metric, one.step.as_str())
                == (build, burned, metric, step)
        };
        let Some(counts) = Counts::of(all, is_wanted) else { continue };
        let stated = if burned == Burned::NOTHING {
            counts.with(states_difference)
        } else {
            counts.with(|one| one.verdict.is_worse())
        };
        let blocks: Vec<String> = counts.blocks().iter().map(u32::to_string).collect();
        rows.push(vec![
            build.to_owned(),
            burned.to_string(),
            metric.name().to_owned(),
            step.to_owned(),
            blocks.join(", "),
            ratio(counts.true_ratio()),
            ratio(counts.found_ratio()),
            verdicts(&counts, metric),
            share(stated, counts.verdicts()),
            holding(&counts),
            per_cent(counts.half_width()),
            format!("{:.0} s", counts.measured_seconds()),
        ]);
    }
    let heads = [
        "build", "burned", "metric", "step", "blocks", "true", "measured ratio", "verdicts",
        "states a difference", "intervals that hold *true*", "median half width", "measured",
    ];
    table(&heads, &rows)
}

/// Verdicts with their numbers, in the order of reports.
fn verdicts(counts: &Counts, metric: Metric) -> String {
    let each = Verdict::ALL.map(|verdict| (verdict, counts.with(|one| one.verdict == verdict)));
    let given = each.into_iter().filter(|(_, count)| *count > 0);
    let words: Vec<String> =
        given.map(|(verdict, count)| format!("{count} {}", verdict.word(metric))).collect();
    words.join(", ")
}

fn holding(counts: &Counts) -> String {
    let (holding, known) = counts.holding_truth();
    share(holding, known)
}

fn measurements(sheets: &[Sheet]) -> String {
    let mut rows = Vec::new();
    let mut commands = String::new();
    for sheet in sheets {
        let machines: Vec<String> =
            sheet.machines.iter().map(|(cpu, cpus)| format!("{cpus} CPUs of {cpu}")).collect();
        let dates: Vec<&str> = sheet.dates.iter().map(String::as_str).collect();
        let all: Vec<&Finding> = sheet.findings.iter().collect();
        let comparisons = Counts::of(&all, |_| true).map_or(0, |counts| counts.comparisons());
        rows.push(vec![
            format!("[{0}.csv](evidence/{0}.csv)", sheet.name),
            dates.join(", "),
            machines.join("; "),
            comparisons.to_string(),
            all.len().to_string(),
        ]);
        commands += &format!("\n{}:\n\n", sheet.name);
        commands += &sheet.command.lines().map(|line| format!("    {line}\n")).collect::<String>();
    }
    let heads = ["file", "dates", "machine", "comparisons", "verdicts"];
    format!("## Measurements\n\n{}\nTo repeat them:\n{commands}", table(&heads, &rows))
}
