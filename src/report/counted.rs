//! The report of counted runs: instructions per operation of each step, and the functions behind
//! every difference.

use super::document::{Block, Cell, Column, Digits, Fold, Section, Table};
use crate::analyze::Comparison;
use crate::analyze::comparison::{StepComparison, TargetResult};
use crate::analyze::counted::{
    Change, FunctionChange, FunctionComparison, SAME_WITHIN, TotalChange,
};
use crate::domain::metric::Metric;
use crate::domain::verdict::Verdict;
use crate::units;

/// Functions that the sentence about a step names.
const NAMED: usize = 3;
/// Characters of a name that are shown: those of C++ templates are longer than a page.
const NAME_MOST: usize = 90;

/// The sections about the counted runs of a comparison of rates: none without such runs.
pub(super) fn beside_rates(comparison: &Comparison) -> Vec<Section> {
    let Some(counts) = &comparison.counts else { return Vec::new() };
    let mut sections = vec![totals(counts, Some(comparison))];
    sections.extend(functions(counts));
    let rules = what_counts().blocks;
    sections[0]
        .blocks
        .push(Block::Fold(Fold { summary: "What these counts contain".to_owned(), blocks: rules }));
    sections
}

/// The sections of a report on nothing but counts, in reading order.
pub(super) fn sections(comparison: &Comparison) -> Vec<Section> {
    let mut sections = vec![totals(comparison, None)];
    sections.extend(functions(comparison));
    sections.push(what_counts());
    sections
}

/// One row for each step and target, with the verdicts on its rate where that was measured.
fn totals(comparison: &Comparison, rates: Option<&Comparison>) -> Section {
    let mut blocks = Vec::new();
    for (place, target) in comparison.targets.iter().enumerate().skip(1) {
        let row = |step| total_cells(step, place, rates);
        let rows = comparison.steps.iter().map(row).collect();
        let mut columns = vec![
            Column::numbers("baseline").told("instructions per operation"),
            Column::numbers("target").told("instructions per operation"),
            Column::numbers("ratio").told("target / baseline; [low, high]: 95 % interval"),
            Column::numbers("n").told("repeats of both targets with the same statements"),
            Column::words("change"),
        ];
        if rates.is_some() {
            columns.push(Column::words("rate").told("verdict on the rate that was measured"));
        }
        columns.push(Column::of_row("step"));
        let caption = format!("{} relative to {}", target.label, comparison.base);
        blocks.push(Block::Table(Table { caption, columns, rows }));
    }
    if comparison.targets.len() == 1 {
        let rows = comparison
            .steps
            .iter()
            .map(|step| vec![instructions(&step.targets[0]), Cell::text(step.name.clone())]);
        let columns = vec![
            Column::numbers(comparison.base.clone()).told("instructions per operation"),
            Column::of_row("step"),
        ];
        let caption = String::new();
        blocks.push(Block::Table(Table { caption, columns, rows: rows.collect() }));
    }
    Section { id: "instructions", heading: "Instructions per operation".to_owned(), blocks }
}

fn total_cells(step: &StepComparison, place: usize, rates: Option<&Comparison>) -> Vec<Cell> {
    let target = &step.targets[place];
    let mut cells = vec![instructions(&step.targets[0]), instructions(target)];
    match target.comparable(Metric::InstructionsPerOp) {
        Some(relative) => {
            let ratio = Cell::number(relative.ratio, Digits::Fixed(4), "ratio");
            let tone = Some(-relative.ratio.ln());
            cells.push(ratio.within(relative.interval).toned(tone));
            cells.push(Cell::number(relative.pairs as f64, Digits::Fixed(0), ""));
            cells.push(Cell::text(TotalChange::of(relative).word()));
        }
        None => cells.extend([(); 3].map(|()| Cell::missing("not counted in both targets"))),
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
    Some(target.relative(Metric::Rate)?.judgement.as_ref()?.verdict)
}

/// The median over the repeats.
fn instructions(target: &TargetResult) -> Cell {
    let result = target.metrics.get(&Metric::InstructionsPerOp);
    match result.and_then(|result| result.absolute) {
        Some(number) => {
            let digits = Digits::Fixed(if number < 1000.0 { 1 } else { 0 });
            Cell::number(number, digits, "1/op").from_runs(target.folders.clone())
        }
        None => {
            let why = result.and_then(|result| result.missing.clone());
            Cell::missing(why.unwrap_or_else(|| "not counted".to_owned()))
        }
    }
}

/// For each step and target: the functions with the largest differences.
fn functions(comparison: &Comparison) -> Option<Section> {
    let mut blocks = Vec::new();
    for step in &comparison.steps {
        blocks.extend(step.targets.iter().filter_map(|target| of_target(step, target)));
    }
    let heading = "Functions that changed".to_owned();
    (!blocks.is_empty()).then_some(Section { id: "functions", heading, blocks })
}

/// The functions of one step and target, under a sentence. `None` if none is listed.
pub(super) fn of_target(step: &StepComparison, target: &TargetResult) -> Option<Block> {
    let found = target.counted.as_ref()?.functions.as_ref()?;
    if found.changes.is_empty() {
        return None;
    }
    let rows = found.changes.iter().map(|change| cells(found, change));
    let rows = rows.chain([other_cells(found)]).collect();
    let table = Table { caption: String::new(), columns: columns(), rows };
    let summary = format!("{}: {}", step.name, sentence(&target.label, found));
    Some(Block::Fold(Fold { summary, blocks: vec![Block::Table(table)] }))
}

fn columns() -> Vec<Column> {
    vec![
        Column::numbers("difference").told("own instructions per operation, target - baseline"),
        Column::numbers("%").told("difference / all instructions per operation of the baseline"),
        Column::numbers("baseline").told("own instructions per operation"),
        Column::numbers("target").told("own instructions per operation"),
        Column::numbers("incl.").told("with the functions that it calls, baseline"),
        Column::numbers("incl. target").told("with the functions that it calls, target"),
        Column::numbers("calls").told("calls per operation, baseline"),
        Column::numbers("calls target").told("calls per operation, target"),
        Column::words("change"),
        Column::of_row("function"),
    ]
}

fn cells(found: &FunctionComparison, change: &FunctionChange) -> Vec<Cell> {
    let FunctionChange { name, baseline, target, .. } = change;
    let number = |value: f64| Cell::number(value, Digits::Fixed(1), "1/op");
    let calls = |value: f64| Cell::number(value, Digits::Significant(4), "1/op");
    vec![
        Cell::text(signed(change.difference())),
        Cell::text(percent(change.difference() / found.baseline_total)),
        number(baseline.own),
        number(target.own),
        number(baseline.inclusive),
        number(target.inclusive),
        calls(baseline.calls),
        calls(target.calls),
        Cell::text(word(change)),
        Cell::text(shown(name)),
    ]
}

/// The functions that are not listed, so that the column adds up to the total.
fn other_cells(found: &FunctionComparison) -> Vec<Cell> {
    let (count, difference) = found.others;
    let mut cells = vec![
        Cell::text(signed(difference)),
        Cell::text(percent(difference / found.baseline_total)),
    ];
    cells.extend([(); 6].map(|()| Cell::text("")));
    cells.extend([Cell::text(""), Cell::text(format!("all other {count} functions"))]);
    cells
}

fn word(change: &FunctionChange) -> String {
    let more_calls = change.target.calls > change.baseline.calls;
    let is_dearer = change.difference() > 0.0;
    let partner = change.partner.as_deref().map(shown).unwrap_or_default();
    let word = match change.change {
        Change::Renamed if change.target.own > 0.0 => return format!("renamed from {partner}"),
        Change::Renamed => return format!("renamed to {partner}"),
        Change::Inlined => return format!("inlined into {partner}"),
        Change::SplitOff => return format!("split off from {partner}"),
        Change::New => "new",
        Change::Gone => "gone",
        Change::Calls if more_calls => "more calls",
        Change::Calls => "fewer calls",
        Change::Cost if is_dearer => "more per call",
        Change::Cost => "less per call",
        Change::CallsAndCost if more_calls => "more calls, other cost",
        Change::CallsAndCost => "fewer calls, other cost",
        Change::Scatter => "within scatter",
    };
    word.to_owned()
}

/// `B: +4,310 instructions per operation (+4.80 %): 82 % in these two functions: memcpy +3,000,
/// palloc +534`.
fn sentence(label: &str, found: &FunctionComparison) -> String {
    let difference = found.target_total - found.baseline_total;
    let relative = percent(difference / found.baseline_total);
    let all = format!("{label}: {} instructions per operation ({relative})", signed(difference));
    // A function that only has another name explains nothing.
    let along = |it: &&FunctionChange| {
        !matches!(it.change, Change::Scatter | Change::Renamed)
            && it.difference() * difference > 0.0
    };
    let named: Vec<&FunctionChange> = found.changes.iter().filter(along).take(NAMED).collect();
    let these = match named.len() {
        0 => return all,
        1 => "this function".to_owned(),
        2 => "these two functions".to_owned(),
        count => format!("these {count} functions"),
    };
    let sum: f64 = named.iter().map(|it| it.difference()).sum();
    let name = |it: &&FunctionChange| format!("{} {}", shown(&it.name), signed(it.difference()));
    let names = named.iter().map(name).collect::<Vec<_>>().join(", ");
    let share = 100.0 * sum / difference;
    match share <= 100.0 {
        true => format!("{all}: {share:.0} % in {these}: {names}"),
        // Others go the other way.
        false => {
            let rest = signed(difference - sum);
            format!("{all}: {these} {}, all else {rest}: {names}", signed(sum))
        }
    }
}

/// `+1,234`, `-0.5`.
fn signed(number: f64) -> String {
    let sign = if number < 0.0 { '-' } else { '+' };
    match number.abs() {
        small if small < 99.95 => format!("{sign}{small:.1}"),
        large => format!("{sign}{}", units::count(large.round() as u64)),
    }
}

fn percent(share: f64) -> String {
    format!("{:+.2} %", 100.0 * share)
}

/// A name that fits into a line.
pub(super) fn shown(name: &str) -> String {
    match name.char_indices().nth(NAME_MOST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// What the numbers contain.
fn what_counts() -> Section {
    let rules = [
        "Valgrind executes the server (or the process that loads the library) and counts the \
         instructions of the thread that serves the client, in user space. The kernel's work, \
         waiting, cache misses and instructions per cycle are not in these numbers: they explain \
         a rate, they do not replace it."
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
    Section {
        id: "how-to-read",
        heading: "How to read this".to_owned(),
        blocks: vec![Block::List(rules.into())],
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::analyze::counted::FunctionCost;

    #[test]
    fn a_step_in_one_sentence() {
        let cost = |own, calls| FunctionCost { own, inclusive: own, calls };
        let change = |name: &str, before, after, change| FunctionChange {
            name: Arc::from(name),
            baseline: before,
            target: after,
            change,
            partner: None,
        };
        let found = FunctionComparison {
            baseline_total: 10_000.0,
            target_total: 11_200.0,
            changes: vec![
                change("f", cost(500.0, 1.0), cost(2000.0, 4.0), Change::Calls),
                change("new_name", cost(0.0, 0.0), cost(1136.0, 1.0), Change::Renamed),
                change("old_name", cost(1136.0, 1.0), cost(0.0, 0.0), Change::Renamed),
                change("noise", cost(900.0, 1.0), cost(500.0, 1.0), Change::Scatter),
                change("g", cost(90.5, 1.0), cost(0.0, 0.0), Change::Gone),
            ],
            others: (7, 190.4),
        };
        assert_eq!(
            sentence("B", &found),
            "B: +1,200 instructions per operation (+12.00 %): this function +1,500, all else \
             -300: f +1,500"
        );
        let row: Vec<String> = cells(&found, &found.changes[0]).iter().map(Cell::plain).collect();
        let expected = [
            "+1,500",
            "+15.00 %",
            "500.0",
            "2000.0",
            "500.0",
            "2000.0",
            "1",
            "4",
            "more calls",
            "f",
        ];
        assert_eq!(row, expected);
        let rest: Vec<String> = other_cells(&found).iter().map(Cell::plain).collect();
        assert_eq!((rest[0].as_str(), rest[9].as_str()), ("+190", "all other 7 functions"));
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        let long = "é".repeat(200);
        assert_eq!(shown(&long).chars().count(), NAME_MOST + 1);
        assert_eq!(shown("memcpy"), "memcpy");
    }
}
