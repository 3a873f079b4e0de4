//! The report of counted runs: instructions per operation of each step.

use super::counted_functions::functions;
use super::document::{Block, Cell, Column, Digits, Fold, Mark, Section, Table};
use super::history;
use super::ladder::{self, Extent, NarrowTables};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::{StepComparison, TargetResult};
use rqps_analysis::counted::{SAME_WITHIN, TotalChange};
use rqps_model::metric::Metric;
use rqps_model::verdict::Verdict;

/// The sections about the counted runs of a comparison of rates: none without such runs.
pub(super) fn beside_rates(comparison: &Comparison, extent: Extent) -> Vec<Section> {
    let Some(counts) = &comparison.counts else { return Vec::new() };
    let mut sections = vec![totals(counts, Some(comparison), extent)];
    sections.extend(changes(counts));
    sections.extend(functions(counts, extent));
    let rules = what_counts().blocks;
    sections[0]
        .blocks
        .push(Block::Fold(Fold { summary: "What these counts contain".to_owned(), blocks: rules }));
    sections
}

/// The sections of a report on nothing but counts, in reading order.
pub(super) fn sections(comparison: &Comparison, extent: Extent) -> Vec<Section> {
    let mut sections = vec![totals(comparison, None, extent)];
    sections.extend(changes(comparison));
    sections.extend(functions(comparison, extent));
    sections.push(what_counts());
    sections
}

/// The versions in which counts change their level, in a report on many.
fn changes(comparison: &Comparison) -> Vec<Section> {
    let counts = [Metric::InstructionsPerOp, Metric::BackgroundInstructionsPerOp];
    counts.into_iter().flat_map(|count| history::of_report(comparison, count)).collect()
}

/// The count in a table of totals.
#[derive(Clone, Copy, PartialEq)]
struct Count {
    metric: Metric,
    /// The counted threads, for a caption; empty for the thread that serves the client.
    of: &'static str,
    /// True if the intervals are judged.
    judged: bool,
}

/// Instructions of the thread that serves the client.
const CLIENT: Count = Count { metric: Metric::InstructionsPerOp, of: "", judged: true };

/// Further counts, shown if a step has them.
const BESIDE: [Count; 4] = [
    Count {
        metric: Metric::BackgroundInstructionsPerOp,
        of: "instructions per operation of other threads of the process",
        judged: true,
    },
    Count {
        metric: Metric::SimulatedFirstLevelMisses,
        of: "simulated misses of the first-level caches per operation",
        judged: false,
    },
    Count {
        metric: Metric::SimulatedLastLevelMisses,
        of: "simulated misses of the last-level cache per operation",
        judged: false,
    },
    Count {
        metric: Metric::SimulatedMispredictions,
        of: "simulated mispredicted branches per operation",
        judged: false,
    },
];

/// One row for each step and target, with the verdicts on its rate where that was measured. Of many
/// targets, narrow tables first.
fn totals(comparison: &Comparison, rates: Option<&Comparison>, extent: Extent) -> Section {
    let heading = "Instructions per operation".to_owned();
    let mut blocks = Vec::new();
    if ladder::is_ladder(comparison) {
        blocks = narrow_totals(comparison);
        if extent == Extent::Whole {
            let tables = target_totals(comparison, rates);
            let summary = "Each target with intervals".to_owned();
            blocks.push(Block::Fold(Fold { summary, blocks: tables }));
        }
    } else {
        blocks.extend(target_totals(comparison, rates));
    }
    if comparison.targets.len() == 1 {
        blocks.push(alone(comparison));
    }
    blocks.extend(uncounted(comparison));
    Section { id: "instructions", heading, blocks }
}

/// A narrow table for each count. Steps in which no target executes an instruction per operation in
/// other threads are left out there: their ratios are chance.
fn narrow_totals(comparison: &Comparison) -> Vec<Block> {
    let mut blocks = vec![Block::Paragraph(format!(
        "Instructions per operation of {} in the first column, then those of the other targets \
         relative to it. + MORE, - FEWER, = SAME, ? UNCLEAR.",
        comparison.baseline
    ))];
    for count in std::iter::once(CLIENT).chain(BESIDE) {
        let is_some = |target: &TargetResult| {
            target.metrics.get(&count.metric).and_then(|it| it.absolute).is_some_and(|it| it >= 1.0)
        };
        let steps: Vec<&StepComparison> =
            comparison.steps.iter().filter(|step| step.targets.iter().any(is_some)).collect();
        if steps.is_empty() {
            continue;
        }
        let sign = |step: &StepComparison, at: usize| {
            let relative = step.targets[at].comparable(count.metric).filter(|_| count.judged)?;
            let change = TotalChange::of(relative);
            let sign = match change {
                TotalChange::More => "+",
                TotalChange::Fewer => "-",
                TotalChange::Same => "=",
                TotalChange::Unclear => "?",
            };
            Some(Mark { sign, colour: Mark::NO_COLOUR, meaning: change.word() })
        };
        let tables = NarrowTables {
            metric: count.metric,
            digits: Digits::Fixed(3),
            is_cost: true,
            absolute: &|step| number(&step.targets[0], count.metric),
            sign: &sign,
        };
        blocks.extend(tables.blocks(comparison, &[(count.of.to_owned(), steps)]));
    }
    blocks
}

/// The table of each target and count.
fn target_totals(comparison: &Comparison, rates: Option<&Comparison>) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (place, target) in comparison.targets.iter().enumerate().skip(1) {
        for count in std::iter::once(CLIENT).chain(BESIDE) {
            let is_main = count == CLIENT;
            let steps = comparison.steps.iter().filter(|step| has(step, count.metric));
            let rates = rates.filter(|_| is_main);
            let rows: Vec<Vec<Cell>> =
                steps.map(|step| total_cells(step, place, count, rates)).collect();
            if !is_main && rows.is_empty() {
                continue;
            }
            let pair = format!("{} relative to {}", target.label, comparison.baseline);
            let caption = if is_main { pair } else { format!("{}: {pair}", count.of) };
            let columns = total_columns(count, rates.is_some());
            blocks.push(Block::Table(Table { caption, columns, rows }));
        }
    }
    blocks
}

/// True if a target has the metric in this step.
fn has(step: &StepComparison, metric: Metric) -> bool {
    let number = |target: &TargetResult| target.metrics.get(&metric)?.absolute;
    step.targets.iter().any(|target| number(target).is_some())
}

fn total_columns(count: Count, with_rates: bool) -> Vec<Column> {
    let mut columns = vec![
        Column::numbers("baseline").with_legend("per operation"),
        Column::numbers("target").with_legend("per operation"),
        Column::numbers("ratio").with_legend("target / baseline; [low, high]: 95 % interval"),
        Column::numbers("n").with_legend("repeats of both targets with the same statements"),
    ];
    if count.judged {
        columns.push(Column::words("change"));
    }
    if with_rates {
        columns.push(Column::words("rate").with_legend("verdict on the rate that was measured"));
    }
    columns.push(Column::of_row("step"));
    columns
}

/// The counts of a single target.
fn alone(comparison: &Comparison) -> Block {
    let all = std::iter::once(CLIENT).chain(BESIDE);
    let is_there = |count: &Count| comparison.steps.iter().any(|step| has(step, count.metric));
    let counts: Vec<Count> = all.filter(is_there).collect();
    let rows = comparison.steps.iter().filter(|step| has(step, CLIENT.metric)).map(|step| {
        let cells = counts.iter().map(|count| number(&step.targets[0], count.metric));
        cells.chain([Cell::text(step.name.clone())]).collect()
    });
    let rows = rows.collect();
    let columns = counts.iter().map(|count| {
        if *count == CLIENT {
            Column::numbers(comparison.baseline.clone()).with_legend("instructions per operation")
        } else {
            Column::numbers(count.metric.name()).with_legend(count.of)
        }
    });
    let columns = columns.chain([Column::of_row("step")]).collect();
    Block::Table(Table { caption: String::new(), columns, rows })
}

/// The steps that were not counted in any target, and why.
fn uncounted(comparison: &Comparison) -> Option<Block> {
    let steps = comparison.steps.iter().filter(|step| !has(step, CLIENT.metric));
    let why = |target: &TargetResult| {
        let result = target.metrics.get(&CLIENT.metric)?;
        result.missing.clone()
    };
    let line = |step: &StepComparison| {
        let why = step.targets.iter().find_map(why);
        format!("{}: {}", step.name, why.unwrap_or_else(|| "not counted".to_owned()))
    };
    let lines: Vec<String> = steps.map(line).collect();
    let summary = match lines.len() {
        0 => return None,
        1 => "1 step is not counted".to_owned(),
        count => format!("{count} steps are not counted"),
    };
    Some(Block::Fold(Fold { summary, blocks: vec![Block::List(lines)] }))
}

fn total_cells(
    step: &StepComparison,
    place: usize,
    Count { metric, judged, .. }: Count,
    rates: Option<&Comparison>,
) -> Vec<Cell> {
    let target = &step.targets[place];
    let mut cells = vec![number(&step.targets[0], metric), number(target, metric)];
    match target.comparable(metric) {
        Some(relative) => {
            let ratio = Cell::number(relative.ratio, Digits::Fixed(4), "ratio");
            let tone = judged.then(|| -relative.ratio.ln());
            cells.push(ratio.within(relative.interval).toned(tone));
            cells.push(Cell::number(relative.pairs as f64, Digits::Fixed(0), ""));
            cells.extend(judged.then(|| Cell::text(TotalChange::of(relative).word())));
        }
        None => {
            let missing = || Cell::missing("not counted in both targets");
            cells.extend(std::iter::repeat_with(missing).take(if judged { 3 } else { 2 }));
        }
    }
    cells.extend(rates.map(|rates| match rate_verdict(rates, &step.name, &target.label) {
        Some(verdict) => Cell::text(verdict.name()),
        None => Cell::missing("no verdict on its rate"),
    }));
    cells.push(Cell::text(step.name.clone()));
    cells
}

fn rate_verdict(rates: &Comparison, step: &str, label: &str) -> Option<Verdict> {
    let step = rates.steps.iter().find(|other| other.name == step)?;
    let target = step.targets.iter().find(|target| target.label == label)?;
    Some(target.judgement(Metric::Rate)?.verdict)
}

/// The median over the repeats.
fn number(target: &TargetResult, metric: Metric) -> Cell {
    let result = target.metrics.get(&metric);
    match result.and_then(|result| result.absolute) {
        Some(number) => {
            let digits = match number {
                small if small < 10.0 => Digits::Significant(3),
                middle => Digits::Fixed(if middle < 1000.0 { 1 } else { 0 }),
            };
            Cell::number(number, digits, "1/op").from_runs(target.folders.clone())
        }
        None => {
            let why = result.and_then(|result| result.missing.clone());
            Cell::missing(why.unwrap_or_else(|| "not counted".to_owned()))
        }
    }
}

/// Limits of the numbers.
fn what_counts() -> Section {
    let rules = [
        "Valgrind executes the server (or the process that loads the library) and counts the \
         instructions of the thread that serves the client, in user space. The kernel's work, \
         waiting, cache misses and instructions per cycle are not in these numbers: they explain \
         a rate, they do not replace it."
            .to_owned(),
        "Other threads of the same process, such as those that flush and compact, count apart. \
         Misses and mispredictions are those of caches and a predictor that valgrind simulates."
            .to_owned(),
        "An operation is a statement, including BEGIN and COMMIT, or 1000 rows of scan. Both \
         targets of a pair execute the same statements on the same rows."
            .to_owned(),
        format!(
            "MORE and FEWER: the 95 % interval of the ratio lies outside of 1 ± {0} %; SAME: \
             inside; UNCLEAR: neither.",
            100.0 * SAME_WITHIN
        ),
        "The table of functions lists own instructions, without those of called functions, so \
         its differences add up to the difference of the totals. A function that the compiler \
         inlines into its caller is gone, and its caller costs more per call."
            .to_owned(),
    ];
    Section::how_to_read("how-to-read", rules.into())
}
