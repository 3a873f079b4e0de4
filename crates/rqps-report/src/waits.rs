//! Off-CPU time in reports: what the threads that serve clients wait for.

use super::document::{Block, Cell, Column, Digits, Table};
use rqps_analysis::comparison::TargetResult;
use rqps_analysis::sampled::{SampledWait, WaitChange};
use rqps_model::verdict::Rules;

/// Waits of a smaller share of both targets' time are not listed, unless they differ.
const SHARE_LEAST: f64 = 0.002;

/// The waits of a target in a step: a sentence, and a table.
pub(super) fn of_target(target: &TargetResult, rules: &Rules) -> Vec<Block> {
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
    let rows: Vec<Vec<Cell>> = change.waits.iter().filter(|it| is_much(it)).map(cells).collect();
    let differing = change.waits.iter().filter(|it| differs(it)).count();
    let mut blocks = vec![Block::Paragraph(sentence(&target.label, change, differing))];
    if !rows.is_empty() {
        let caption = format!("{}: off-CPU time per operation, by wait", target.label);
        blocks.push(Block::Table(Table { caption, columns: columns(), rows }));
    }
    blocks
}

fn sentence(label: &str, change: &WaitChange, differing: usize) -> String {
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

fn columns() -> Vec<Column> {
    vec![
        Column::numbers("difference").with_legend("us per operation, target - baseline; 95 %"),
        Column::numbers("baseline").with_legend("us per operation, all threads that serve clients"),
        Column::numbers("target").with_legend("us per operation, all threads that serve clients"),
        Column::numbers("q").with_legend("of the difference"),
        Column::of_row("wait"),
    ]
}

fn cells(it: &SampledWait) -> Vec<Cell> {
    let time = |value: f64| Cell::number(value, Digits::Fixed(2), "us/op");
    vec![
        time(it.difference()).within(it.test.map(|test| test.interval)),
        time(it.baseline),
        time(it.target),
        match it.test {
            Some(test) if test.q < 0.0001 => Cell::text("<0.0001"),
            Some(test) => Cell::number(test.q, Digits::Fixed(4), "probability"),
            None => Cell::missing("too rarely seen"),
        },
        Cell::text(it.name.clone()),
    ]
}

/// The method of observing waits, or the reason why they are unknown; empty without a profile.
pub(super) fn honesty(targets: &[TargetResult]) -> String {
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
