//! The report of counted runs: instructions per operation of each step.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::document::{Block, Cell, Column, Digits, Mark, Section, Table};
use super::history;
use super::tables::{self, Extent, NarrowTables};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::{StepComparison, TargetResult};
use rqps_analysis::counted::{
    Change, FunctionChange, FunctionComparison, SAME_WITHIN, TotalChange, plain_name,
};
use rqps_model::metric::Metric;
use rqps_model::units;
use rqps_model::verdict::Verdict;

/// The sections about the counted runs of a comparison of rates: none without such runs.
pub(super) fn beside_rates(comparison: &Comparison, extent: Extent) -> Vec<Section> {
    let Some(counts) = &comparison.counts else { return Vec::new() };
    let mut sections = vec![totals(counts, Some(comparison), extent)];
    sections.extend(changes(counts));
    sections.extend(functions(counts, extent));
    let rules = what_counts().blocks;
    sections[0].blocks.push(Block::fold("What these counts contain", rules));
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
    let mut blocks = Vec::new();
    if tables::is_ladder(comparison) {
        blocks = narrow_totals(comparison);
        if extent == Extent::Whole {
            let tables = target_totals(comparison, rates);
            let summary = "Each target with intervals".to_owned();
            blocks.push(Block::fold(summary, tables));
        }
    } else {
        blocks.extend(target_totals(comparison, rates));
    }
    if comparison.targets.len() == 1 {
        blocks.push(alone(comparison));
    }
    blocks.extend(uncounted(comparison));
    Section::new("instructions", "Instructions per operation", blocks)
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
            blocks.push(Block::table(caption, columns, rows));
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
    Block::table("", columns, rows)
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
    Some(Block::fold(summary, vec![Block::List(lines)]))
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

// The functions behind the differences of counted runs: a sentence and a table for each step and
// target.

/// Functions that the sentence about a step names.
const NAMED: usize = 3;
/// With less of the baseline's instructions in functions that both builds have by name, the table
/// of functions is no comparison.
const COMMON_LEAST: f64 = 0.3;
/// A smaller share of instructions in functions that are matched without their arguments is not
/// worth a sentence.
const WEAKLY_LEAST: f64 = 0.005;
/// Follows the name of a function that has it only without arguments in both builds.
const WEAK_MARK: &str = " ~";
/// Characters of a name that are shown: those of C++ templates are longer than a page.
const NAME_MOST: usize = 90;

/// For each step and target: the functions with the largest differences, or only a sentence.
pub(super) fn functions(comparison: &Comparison, extent: Extent) -> Option<Section> {
    let mut blocks = Vec::new();
    for step in &comparison.steps {
        blocks.extend(step.targets.iter().flat_map(|target| of_target(step, target)));
    }
    if extent == Extent::Short && tables::is_ladder(comparison) {
        let summaries = blocks.into_iter().filter_map(|block| match block {
            Block::Fold(fold) => Some(fold.summary),
            _ => None,
        });
        let summaries: Vec<String> = summaries.collect();
        blocks = if summaries.is_empty() { Vec::new() } else { vec![Block::List(summaries)] };
    }
    (!blocks.is_empty()).then_some(Section::new("functions", "Functions that changed", blocks))
}

/// The functions of one step and target, under a sentence, and those of other threads. Nothing for
/// threads of which no function is listed.
pub(super) fn of_target(step: &StepComparison, target: &TargetResult) -> Vec<Block> {
    let Some(counted) = &target.counted else { return Vec::new() };
    let background = counted.background.as_ref().map(|background| &background.functions);
    let all = [
        (counted.functions.as_ref(), step.name.clone()),
        (background, format!("{}, other threads", step.name)),
    ];
    let block = |(found, name): (Option<&FunctionComparison>, String)| {
        let found = found.filter(|found| !found.changes.is_empty())?;
        let names = ShortNames::of(found);
        let rows = found.changes.iter().map(|change| cells(found, change, &names));
        let rows = rows.chain([other_cells(found)]).collect();
        let table = Table::new("", columns(), rows);
        let summary = format!("{name}: {}", sentence(&target.label, found));
        let paragraphs = common_functions(found).into_iter().map(Block::Paragraph);
        let blocks = paragraphs.chain([Block::Table(table)]).collect();
        Some(Block::fold(summary, blocks))
    };
    all.into_iter().filter_map(block).collect()
}

/// The share of the baseline in functions of both builds, if it matters.
fn common_functions(found: &FunctionComparison) -> Option<String> {
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let weakly = (found.weakly > WEAKLY_LEAST).then(|| {
        format!(
            "{} of the baseline's instructions are in functions that both builds have: {} under \
             the same name, {} under names that agree only without arguments, arguments of \
             templates and the marks of the compiler's copies. {WEAK_MARK} marks the latter; one \
             such name stands for a single function of each build.",
            percent(found.common),
            percent(found.common - found.weakly),
            percent(found.weakly),
        )
    });
    let strangers = (found.common < COMMON_LEAST).then(|| {
        format!(
            "Only {} of the baseline's instructions are in functions that both builds have by \
             name, so this table says where each build works, not what changed.",
            percent(found.common)
        )
    });
    let all: Vec<String> = strangers.into_iter().chain(weakly).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

/// Names for a table: without arguments, unless several functions of the table then have one name.
struct ShortNames {
    ambiguous: BTreeSet<String>,
}

impl ShortNames {
    fn of(found: &FunctionComparison) -> ShortNames {
        let of_change = |it: &FunctionChange| [Some(it.name.clone()), it.partner.clone()];
        let names: BTreeSet<Arc<str>> =
            found.changes.iter().flat_map(of_change).flatten().collect();
        let (mut seen, mut ambiguous) = (BTreeSet::new(), BTreeSet::new());
        for plain in names.iter().map(|name| plain_name(name)) {
            if !seen.insert(plain.clone()) {
                ambiguous.insert(plain);
            }
        }
        ShortNames { ambiguous }
    }

    fn name(&self, name: &str) -> String {
        let plain = plain_name(name);
        shown(if self.ambiguous.contains(&plain) { name } else { &plain })
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::numbers("difference")
            .with_legend("own instructions per operation, target - baseline"),
        Column::numbers("%")
            .with_legend("difference / all instructions per operation of the baseline"),
        Column::numbers("baseline").with_legend("own instructions per operation"),
        Column::numbers("target").with_legend("own instructions per operation"),
        Column::numbers("incl.").with_legend("with the functions that it calls, baseline"),
        Column::numbers("incl. target").with_legend("with the functions that it calls, target"),
        Column::numbers("calls").with_legend("calls per operation, baseline"),
        Column::numbers("calls target").with_legend("calls per operation, target"),
        Column::words("change"),
        Column::of_row("function"),
    ]
}

fn cells(found: &FunctionComparison, change: &FunctionChange, names: &ShortNames) -> Vec<Cell> {
    let FunctionChange { name, baseline, target, .. } = change;
    let number = |value: f64| Cell::number(value, Digits::Fixed(1), "1/op");
    let calls = |value: f64| Cell::number(value, Digits::Significant(4), "1/op");
    let mark = if change.baseline_name.is_some() { WEAK_MARK } else { "" };
    let name = format!("{}{mark}", names.name(name));
    vec![
        Cell::text(signed(change.difference())),
        Cell::text(percent(change.difference() / found.baseline_total)),
        number(baseline.own),
        number(target.own),
        number(baseline.inclusive),
        number(target.inclusive),
        calls(baseline.calls),
        calls(target.calls),
        Cell::text(word(change, names)),
        Cell::text(name),
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

fn word(change: &FunctionChange, names: &ShortNames) -> String {
    let more_calls = change.target.calls > change.baseline.calls;
    let is_dearer = change.difference() > 0.0;
    let partner = change.partner.as_deref().map(|name| names.name(name)).unwrap_or_default();
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
    let short = ShortNames::of(found);
    let name =
        |it: &&FunctionChange| format!("{} {}", short.name(&it.name), signed(it.difference()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_analysis::counted::FunctionCost;

    #[test]
    fn a_step_in_one_sentence() {
        let cost = |own, calls| FunctionCost { own, inclusive: own, calls };
        let change = |name: &str, before, after, change| FunctionChange {
            name: Arc::from(name),
            baseline_name: None,
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
            common: 0.9,
            weakly: 0.0,
        };
        assert_eq!(
            sentence("B", &found),
            "B: +1,200 instructions per operation (+12.00 %): this function +1,500, all else \
             -300: f +1,500"
        );
        let row: Vec<String> = cells(&found, &found.changes[0], &ShortNames::of(&found))
            .iter()
            .map(Cell::plain)
            .collect();
        let expected = [
            "+1,500", "+15.00 %", "500.0", "2000.0", "500.0", "2000.0", "1", "4", "more calls", "f",
        ];
        assert_eq!(row, expected);
        let rest: Vec<String> = other_cells(&found).iter().map(Cell::plain).collect();
        assert_eq!((rest[0].as_str(), rest[9].as_str()), ("+190", "all other 7 functions"));
    }

    #[test]
    fn builds_that_share_no_names_are_told() {
        let strangers = FunctionComparison {
            baseline_total: 100.0,
            target_total: 100.0,
            changes: Vec::new(),
            others: (0, 0.0),
            common: 0.04,
            weakly: 0.0,
        };
        let said = common_functions(&strangers).unwrap();
        assert!(said.starts_with("Only 4 % of the baseline's instructions"), "{said}");
        let alike = FunctionComparison { common: 0.9, ..strangers };
        assert_eq!(common_functions(&alike), None);
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        let long = "é".repeat(200);
        assert_eq!(shown(&long).chars().count(), NAME_MOST + 1);
        assert_eq!(shown("memcpy"), "memcpy");
    }
}
