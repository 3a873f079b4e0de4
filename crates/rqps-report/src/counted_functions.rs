//! The functions behind the differences of counted runs: a sentence and a table for each step and
//! target.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::document::{Block, Cell, Column, Digits, Fold, Section, Table};
use super::ladder::{self, Extent};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::{StepComparison, TargetResult};
use rqps_analysis::counted::{Change, FunctionChange, FunctionComparison, plain_name};
use rqps_model::units;

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
    if extent == Extent::Short && ladder::is_ladder(comparison) {
        let summaries = blocks.into_iter().filter_map(|block| match block {
            Block::Fold(fold) => Some(fold.summary),
            _ => None,
        });
        let summaries: Vec<String> = summaries.collect();
        blocks = if summaries.is_empty() { Vec::new() } else { vec![Block::List(summaries)] };
    }
    let heading = "Functions that changed".to_owned();
    (!blocks.is_empty()).then_some(Section { id: "functions", heading, blocks })
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
        let table = Table { caption: String::new(), columns: columns(), rows };
        let summary = format!("{name}: {}", sentence(&target.label, found));
        let paragraphs = common_functions(found).into_iter().map(Block::Paragraph);
        let blocks = paragraphs.chain([Block::Table(table)]).collect();
        Some(Block::Fold(Fold { summary, blocks }))
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
