//! Shares of operations by response-time class.

use super::{gray, mark, section, with_heads};
use crate::analyze::metrics::CLASSES;
use crate::analyze::rules::{Shade, longest_shades};
use crate::analyze::stalls::{self, ROLES, longest_of};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::StepComparison;
use rqps_report::document::{Block, Cell, Digits, Section, Table};

/// Shares of operations by published response-time class, over all blocks.
pub(super) fn response_times(comparison: &Comparison) -> Option<Section> {
    let mut blocks = Vec::new();
    for step in &comparison.steps {
        for (role, name) in ROLES {
            blocks.extend(class_table(comparison, step, role, name).map(Block::Table));
        }
    }
    if blocks.is_empty() {
        return None;
    }
    let text = "Per cent of statements by response time (inclusive bounds) over all blocks; \
                `nonzero` is less than 0.0005 %. At an open pace, response times start at the \
                scheduled time. max is the longest, in s: the highest quarter of its span is red \
                (-), the lowest green (+).";
    blocks.insert(0, Block::Paragraph(text.to_owned()));
    Some(section("insert-response-times", "Insert Benchmark: response times", blocks))
}

fn class_table(
    comparison: &Comparison,
    step: &StepComparison,
    role: &str,
    name: &str,
) -> Option<Table> {
    let mut found: Vec<(usize, Vec<u64>, f64)> = Vec::new();
    for (target, of_target) in step.targets.iter().enumerate() {
        let mut sums = vec![0u64; CLASSES.len()];
        let mut longest: f64 = 0.0;
        for sample in &of_target.samples {
            // A run without the role does not hide the others.
            let Some(buckets) = sample.record.outcome.buckets.get(role) else { continue };
            sums.iter_mut().zip(buckets).for_each(|(sum, count)| *sum += count);
            let of_step = stalls::longest(sample, role).map_or(0.0, |(_, ms)| ms / 1e3);
            longest = longest.max(of_step).max(longest_of(sample, role));
        }
        if sums.iter().sum::<u64>() > 0 {
            found.push((target, sums, longest));
        }
    }
    let seconds: Vec<f64> = found.iter().map(|(_, _, longest)| *longest).collect();
    let shades = longest_shades(&seconds);
    let row = |((target, sums, longest), shade): (&(usize, Vec<u64>, f64), Shade)| {
        let total: u64 = sums.iter().sum();
        let share = |count: &u64| match 100.0 * *count as f64 / total as f64 {
            _ if *count == 0 => Cell::text(""),
            percent if percent < 0.0005 => Cell::text("nonzero"),
            percent => Cell::number(percent, Digits::Fixed(3), "%").marked(gray(percent)),
        };
        let mut cells = vec![Cell::text(&comparison.targets[*target].label)];
        cells.extend(sums.iter().map(share));
        cells.push(Cell::number(*longest, Digits::Fixed(3), "s").marked(mark(shade)));
        cells
    };
    let heads = CLASSES.into_iter().chain(["max"]).map(str::to_owned);
    (!found.is_empty()).then(|| Table {
        caption: format!("{}: {name}", step.name),
        columns: with_heads("target", heads),
        rows: found.iter().zip(shades).map(row).collect(),
    })
}
