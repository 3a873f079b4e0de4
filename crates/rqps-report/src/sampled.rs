//! Sampled time in reports: the functions of a step that differ, and what its threads wait for.

use super::counted::shown;
use super::document::{Block, Cell, Column, Digits, Table};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::TargetResult;
use rqps_analysis::sampled::{
    LAYOUT_SHARE, ProfileFacts, SampledChange, SampledFunction, SampledWait, WaitChange,
};
use rqps_model::sampled::CallGraph;
use rqps_model::verdict::Rules;

/// The samples of a target in a step: a sentence, and the functions that differ.
pub(super) fn of_target(target: &TargetResult) -> Vec<Block> {
    let Some(change) = &target.sampled else { return Vec::new() };
    let mut blocks = vec![Block::Paragraph(sentence(&target.label, change))];
    if !change.functions.is_empty() {
        let rows = change.functions.iter().map(|it| cells(change, it)).collect();
        let caption = format!("{}: functions whose CPU time per operation differs", target.label);
        blocks.push(Block::Table(Table { caption, columns: columns(), rows }));
    }
    blocks
}

/// `B: 48.20 us of server CPU per operation, 1.85 more than the baseline's 46.35 (+4.0 %); 3 of 214
/// functions differ`.
fn sentence(label: &str, change: &SampledChange) -> String {
    let SampledChange { baseline_total: before, target_total: after, .. } = change;
    let who = if change.facts[1].in_client { "the client with the library" } else { "the server" };
    let differ = match change.functions.len() {
        0 => format!("none of {} functions is shown to differ", change.tested),
        1 => format!("1 of {} functions differs", change.tested),
        count if count < change.differing => {
            format!(
                "{} of {} functions ({count} are listed) differ",
                change.differing, change.tested
            )
        }
        count => format!("{count} of {} functions differ", change.tested),
    };
    let pairs = if change.pairs == 1 { "pair" } else { "pairs" };
    format!(
        "{label}: {after:.2} us of CPU per operation in {who}, {:+.2} ({:+.1} %) from the \
         baseline's {before:.2}, by samples in {} {pairs} of blocks; {differ} by more than {:.1} % \
         of the operation.",
        after - before,
        100.0 * (after / before - 1.0),
        change.pairs,
        100.0 * LAYOUT_SHARE,
    )
}

fn columns() -> Vec<Column> {
    vec![
        Column::numbers("difference")
            .with_legend("own CPU us per operation, target - baseline; 95 %"),
        Column::numbers("%").with_legend("difference / all CPU time per operation of the baseline"),
        Column::numbers("baseline").with_legend("own CPU us per operation"),
        Column::numbers("target").with_legend("own CPU us per operation"),
        Column::numbers("incl.").with_legend("with the functions that it calls, baseline"),
        Column::numbers("incl. target").with_legend("with the functions that it calls, target"),
        Column::numbers("q").with_legend("of its own time"),
        Column::numbers("q incl.").with_legend("of its time with the functions that it calls"),
        Column::of_row("function"),
    ]
}

fn cells(change: &SampledChange, it: &SampledFunction) -> Vec<Cell> {
    let time = |value: f64| Cell::number(value, Digits::Fixed(3), "us/op");
    let q = |q: Option<f64>| Cell::probability(q, "too few samples");
    vec![
        time(it.difference()).within(it.interval),
        Cell::text(format!("{:+.2} %", 100.0 * it.difference() / change.baseline_total)),
        time(it.baseline.own),
        time(it.target.own),
        time(it.baseline.inclusive),
        time(it.target.inclusive),
        q(it.q_own),
        q(it.q_inclusive),
        Cell::text(shown(&it.name)),
    ]
}

/// Facts about the samples, in sentences; empty without samples.
pub(super) fn honesty(comparison: &Comparison, targets: &[TargetResult]) -> String {
    let mut parts = Vec::new();
    for target in targets {
        let Some(change) = &target.sampled else { continue };
        if parts.is_empty() {
            parts.push(facts(&comparison.baseline, &change.facts[0]));
        }
        parts.push(facts(&target.label, &change.facts[1]));
    }
    if parts.is_empty() {
        return missing(comparison, targets);
    }
    let overhead = comparison.overhead.map_or_else(String::new, |overhead| {
        let ratio = Cell::number(overhead.ratio, Digits::Fixed(3), "ratio");
        format!(
            " Rates of blocks with the profiler were {} times those of blocks without.",
            ratio.within(overhead.interval).plain()
        )
    });
    let all: Vec<&ProfileFacts> =
        targets.iter().filter_map(|it| it.sampled.as_ref()).flat_map(|it| &it.facts).collect();
    format!("Samples of CPU time: {}.{overhead}{}", parts.join("; "), ways_out(&all))
}

/// The reason why a profiled step has no samples; empty if it was not profiled.
fn missing(comparison: &Comparison, targets: &[TargetResult]) -> String {
    if comparison.profiles.is_none() {
        return String::new();
    }
    let records = targets.iter().flat_map(|target| &target.samples).map(|sample| &sample.record);
    let mut reasons = records.filter_map(|record| record.usage.missing.get("profile"));
    let why = reasons.next().map_or("no block has samples of both targets", String::as_str);
    format!("Where time goes is not known: {why}.")
}

/// Ways to improve the samples.
fn ways_out(all: &[&ProfileFacts]) -> String {
    let worst = |of: fn(&ProfileFacts) -> u64| {
        all.iter().map(|facts| facts.share(of(facts))).fold(0.0, f64::max)
    };
    let ways = [
        (
            worst(|facts| facts.nameless),
            0.1,
            " Functions without a symbol get names from a build that is not stripped; those of the \
             kernel, if kernel.kptr_restrict is 0 or rqps runs as root.",
        ),
        (
            worst(|facts| facts.broken),
            0.2,
            " Where stacks are broken, inclusive times and the flame graph lack callers: a build \
             with -fno-omit-frame-pointer has them.",
        ),
        (
            worst(|facts| facts.lost),
            0.01,
            " The samples that were lost may not be like the others: a smaller `hertz` in \
             `[profile]` of the plan loses fewer.",
        ),
    ];
    ways.iter().filter(|(share, many, _)| share > many).map(|(_, _, way)| *way).collect()
}

/// `A: 81,000, 0.2 % without a symbol, 3.1 % of stacks broken (frame pointers)`.
fn facts(label: &str, facts: &ProfileFacts) -> String {
    let percent = |samples: u64| format!("{:.1} %", 100.0 * facts.share(samples));
    let how = if facts.call_graphs.contains(&CallGraph::Dwarf) {
        CallGraph::Dwarf
    } else {
        CallGraph::FramePointers
    };
    let lost = match facts.lost {
        0 => String::new(),
        lost => format!(", {lost} lost"),
    };
    format!(
        "{label} {}{lost}, {} without a symbol, {} of stacks broken ({})",
        facts.samples,
        percent(facts.nameless),
        percent(facts.broken),
        how.words()
    )
}

// Off-CPU time in reports: what the threads that serve clients wait for.

/// Waits of a smaller share of both targets' time are not listed, unless they differ.
const SHARE_LEAST: f64 = 0.002;

/// The waits of a target in a step: a sentence, and a table.
pub(super) fn waits_of_target(target: &TargetResult, rules: &Rules) -> Vec<Block> {
    let Some(change) = target.sampled.as_ref().and_then(|it| it.waits.as_ref()) else {
        return Vec::new();
    };
    let total = |of: fn(&SampledWait) -> f64, running: f64| {
        running + change.waits.iter().map(of).sum::<f64>()
    };
    let (before, after) =
        (total(|it| it.baseline, change.running[0]), total(|it| it.target, change.running[1]));
    let differs = |it: &SampledWait| it.test.is_some_and(|test| test.q <= rules.q);
    let is_much = |it: &SampledWait| {
        it.baseline > SHARE_LEAST * before || it.target > SHARE_LEAST * after || differs(it)
    };
    let rows: Vec<Vec<Cell>> =
        change.waits.iter().filter(|it| is_much(it)).map(waits_cells).collect();
    let differing = change.waits.iter().filter(|it| differs(it)).count();
    let mut blocks = vec![Block::Paragraph(waits_sentence(&target.label, change, differing))];
    if !rows.is_empty() {
        let caption = format!("{}: off-CPU time per operation, by wait", target.label);
        blocks.push(Block::Table(Table { caption, columns: waits_columns(), rows }));
    }
    blocks
}

fn waits_sentence(label: &str, change: &WaitChange, differing: usize) -> String {
    let tested = change.waits.iter().filter(|it| it.test.is_some()).count();
    let [before, after] = change.running;
    let differ = match (tested, differing) {
        (0, _) => "waits are too rare to be tested".to_owned(),
        (tested, 0) => format!("none of {tested} waits is shown to differ"),
        (tested, 1) => format!("1 of {tested} waits differs"),
        (tested, count) => format!("{count} of {tested} waits differ"),
    };
    format!(
        "{label}: the threads that serve clients run, or are ready to run, for {after:.2} us per \
         operation (baseline {before:.2}); {differ}. Waiting for the client does not count."
    )
}

fn waits_columns() -> Vec<Column> {
    vec![
        Column::numbers("difference").with_legend("us per operation, target - baseline; 95 %"),
        Column::numbers("baseline").with_legend("us per operation, all threads that serve clients"),
        Column::numbers("target").with_legend("us per operation, all threads that serve clients"),
        Column::numbers("q").with_legend("of the difference"),
        Column::of_row("wait"),
    ]
}

fn waits_cells(it: &SampledWait) -> Vec<Cell> {
    let time = |value: f64| Cell::number(value, Digits::Fixed(2), "us/op");
    vec![
        time(it.difference()).within(it.test.map(|test| test.interval)),
        time(it.baseline),
        time(it.target),
        Cell::probability(it.test.map(|test| test.q), "too rarely seen"),
        Cell::text(it.name.clone()),
    ]
}

/// The method of observing waits, or the reason why they are unknown; empty without a profile.
pub(super) fn waits_honesty(targets: &[TargetResult]) -> String {
    let found: Vec<&WaitChange> =
        targets.iter().filter_map(|target| target.sampled.as_ref()?.waits.as_ref()).collect();
    let Some(first) = found.first() else {
        let records = targets.iter().flat_map(|target| &target.samples);
        let mut reasons = records.filter_map(|sample| sample.record.usage.missing.get("waits"));
        return reasons.next().map_or_else(String::new, |why| {
            format!(" What threads wait for is not known: {why}.")
        });
    };
    let looks: u64 = found.iter().map(|change| change.looks).sum();
    format!(
        " Waits are by {looks} looks at {} and {} threads (system call in /proc), without stacks \
         and without background threads; the run queue is the kernel's own measure and part of \
         being ready to run.",
        first.serving[0], first.serving[1]
    )
}
