//! What may explain the differences between builds: for each step that differs the cheap causes
//! first, then the functions that were counted.

use std::collections::BTreeMap;

use super::document::{Block, Cell, Column, Digits, Document, Section, Table};
use super::{build, counted, settings, verdicts};
use crate::analyze::Comparison;
use crate::analyze::comparison::{StepComparison, TargetResult};
use crate::analyze::counted::TotalChange;
use crate::analyze::counters::MovedCounter;
use crate::domain::metric::Metric;

/// Counters that are listed at most.
const COUNTERS_MOST: usize = 15;

/// What is known besides the comparison.
#[derive(Clone, Debug, Default)]
pub struct Causes {
    /// The settings that each target said it had, in the order of the targets; empty where none
    /// were kept.
    pub settings: Vec<BTreeMap<String, String>>,
    /// (step, label of the target) → counters of the DBMS that moved.
    pub counters: BTreeMap<(String, String), Vec<MovedCounter>>,
}

/// True if a rate was shown to differ, or counted instructions.
pub fn differs(comparison: &Comparison, step: &StepComparison) -> bool {
    let of_rate = |target: &TargetResult| {
        let verdict = target.relative(Metric::Rate).and_then(|it| it.judgement.as_ref());
        verdict
            .is_some_and(|judgement| judgement.verdict.is_worse() || judgement.verdict.is_better())
    };
    let moved = |target: &TargetResult| {
        let change = target.counted.as_ref().map(|counted| counted.change);
        matches!(change, Some(TotalChange::More | TotalChange::Fewer))
    };
    let counted = counted_step(comparison, step);
    step.targets.iter().any(of_rate) || counted.is_some_and(|step| step.targets.iter().any(moved))
}

/// The same step in the counted runs.
fn counted_step<'a>(
    comparison: &'a Comparison,
    step: &'a StepComparison,
) -> Option<&'a StepComparison> {
    match &comparison.counts {
        Some(counts) => counts.steps.iter().find(|other| other.name == step.name),
        None => Some(step),
    }
}

/// The page about these steps of a comparison.
pub fn document(comparison: &Comparison, causes: &Causes, steps: &[&StepComparison]) -> Document {
    let mut sections: Vec<Section> = effective_settings(comparison, causes).into_iter().collect();
    sections.extend(steps.iter().map(|step| Section {
        id: "step",
        heading: step.name.clone(),
        blocks: of_step(comparison, causes, step),
    }));
    sections.push(honesty());
    Document { title: format!("{}: what may explain it", build::title(comparison)), sections }
}

fn effective_settings(comparison: &Comparison, causes: &Causes) -> Option<Section> {
    let labels: Vec<&str> = comparison.targets.iter().map(|it| it.label.as_str()).collect();
    let heading = "Settings of the servers".to_owned();
    let none = causes.settings.iter().any(BTreeMap::is_empty) || causes.settings.is_empty();
    if none {
        let text = "The run folders do not hold the settings of all targets.".to_owned();
        return Some(Section { id: "settings", heading, blocks: vec![Block::Paragraph(text)] });
    }
    let everywhere = |name: &String| causes.settings.iter().all(|all| all.contains_key(name));
    let common = |all: &BTreeMap<String, String>| -> BTreeMap<String, String> {
        let kept = all.iter().filter(|(name, value)| everywhere(name) && !is_place(name, value));
        kept.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    let known: Vec<BTreeMap<String, String>> = causes.settings.iter().map(common).collect();
    let mut blocks = vec![match settings::differing(&labels, &known) {
        Some(table) => Block::Table(table),
        None => Block::Paragraph("Settings that all targets have are the same.".to_owned()),
    }];
    for (label, all) in labels.iter().zip(&causes.settings) {
        let own = all.iter().filter(|(name, _)| !everywhere(name));
        let names: Vec<&str> = own.map(|(name, _)| name.as_str()).collect();
        if !names.is_empty() {
            let text = format!(
                "{} settings of {label} are unknown to another target: {}.",
                names.len(),
                names.join(", ")
            );
            blocks.push(Block::Paragraph(text));
        }
    }
    Some(Section { id: "settings", heading, blocks })
}

/// Settings that say who or where a server is, not what it does.
fn is_place(name: &str, value: &str) -> bool {
    const NAMES: [&str; 10] = [
        "hostname",
        "port",
        "pseudo_thread_id",
        "rand_seed1",
        "rand_seed2",
        "server_uuid",
        "server_version",
        "server_version_num",
        "timestamp",
        "version",
    ];
    value.contains('/') || NAMES.contains(&name)
}

fn of_step(comparison: &Comparison, causes: &Causes, step: &StepComparison) -> Vec<Block> {
    let mut blocks = Vec::new();
    let rates = step.targets.iter().skip(1).filter_map(|target| rate(comparison, target));
    let rates: Vec<String> = rates.collect();
    blocks.extend((!rates.is_empty()).then_some(Block::List(rates)));
    blocks.extend(plans(step));
    for target in step.targets.iter().skip(1) {
        let key = (step.name.clone(), target.label.clone());
        let moved = causes.counters.get(&key).map(Vec::as_slice).unwrap_or_default();
        blocks.extend(counters(&target.label, moved));
    }
    if let Some(counted) = counted_step(comparison, step) {
        let functions = counted.targets.iter().skip(1);
        blocks.extend(functions.flat_map(|target| instructions(counted, target)));
    }
    blocks
}

/// `B: o/s x0.930 [0.920, 0.941] SLOWER; server_cpu_us/o x1.09 [1.07, 1.11]`.
fn rate(comparison: &Comparison, target: &TargetResult) -> Option<String> {
    let relative = target.relative(Metric::Rate)?;
    let judgement = relative.judgement.as_ref()?;
    let interval = judgement.test.as_ref().map(|test| test.interval).or(relative.interval);
    let ratio = Cell::number(relative.ratio, Digits::Fixed(3), "ratio").within(interval).plain();
    let head = format!(
        "{}: {} times the rate of {}: {}",
        target.label,
        ratio,
        comparison.base,
        judgement.verdict.name()
    );
    let costs = verdicts::explained(&target.explanations, &judgement.reasons);
    Some(if costs.is_empty() { head } else { format!("{head}; {costs}") })
}

fn plans(step: &StepComparison) -> Vec<Block> {
    let folds = settings::of_step(step);
    let is_kept = |target: &TargetResult| {
        target.samples.first().is_some_and(|sample| !sample.record.outcome.plans.is_empty())
    };
    if folds.is_empty() {
        let text = match step.targets.iter().all(is_kept) {
            true => "The query plans have the same shape.",
            false => "The query plans of all targets are not known.",
        };
        return vec![Block::Paragraph(text.to_owned())];
    }
    let head = Block::Paragraph("Query plans differ in shape:".to_owned());
    [head].into_iter().chain(folds.into_iter().map(Block::Fold)).collect()
}

fn counters(label: &str, moved: &[MovedCounter]) -> Option<Block> {
    let number = |value: f64| Cell::number(value, Digits::Significant(4), "1/op");
    let row = |it: &MovedCounter| {
        let ratio = match it.baseline > 0.0 {
            true => Cell::number(it.target / it.baseline, Digits::Fixed(2), "ratio"),
            false => Cell::missing("the baseline has none"),
        };
        vec![number(it.baseline), number(it.target), ratio, Cell::text(it.name.clone())]
    };
    let rows: Vec<Vec<Cell>> = moved.iter().take(COUNTERS_MOST).map(row).collect();
    let columns = vec![
        Column::numbers("baseline").told("per operation"),
        Column::numbers("target").told("per operation"),
        Column::numbers("ratio").told("target / baseline"),
        Column::of_row("counter"),
    ];
    let left = moved.len().saturating_sub(COUNTERS_MOST);
    let more = if left > 0 { format!("; {left} more are not listed") } else { String::new() };
    let caption = format!("{label}: counters of the DBMS that differ in every pair{more}");
    (!rows.is_empty()).then_some(Block::Table(Table { caption, columns, rows }))
}

fn instructions(step: &StepComparison, target: &TargetResult) -> Vec<Block> {
    let Some(counted) = &target.counted else { return Vec::new() };
    let Some(relative) = target.comparable(Metric::InstructionsPerOp) else { return Vec::new() };
    let ratio = Cell::number(relative.ratio, Digits::Fixed(4), "ratio").within(relative.interval);
    let text = format!(
        "{}: {} times the instructions per operation: {}",
        target.label,
        ratio.plain(),
        counted.change.word()
    );
    let functions = counted::of_target(step, target);
    [Block::Paragraph(text)].into_iter().chain(functions).collect()
}

/// What these numbers do not contain.
fn honesty() -> Section {
    let rules = [
        "What differs together with a rate may be its cause; nothing here proves that it is.",
        "Plans are compared by shape, without costs and estimates, those of the first run of each \
         target. Settings that are paths or name a server are left out.",
        "Counters have no verdict: rqps lists those that differ in every pair in the same \
         direction, by 5 % or more. A counter that one of the targets never moved is left out: its \
         version may lack it. Counters that grow with time rather than with work differ where \
         rates do.",
        "Instructions are those of user space under valgrind. The kernel, waiting, caches and \
         branches are not in them.",
        "Where time goes was not sampled.",
    ];
    Section {
        id: "limits",
        heading: "What this page does not show".to_owned(),
        blocks: vec![Block::List(rules.map(str::to_owned).to_vec())],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_no_causes() {
        let check = |name, value, expected| assert_eq!(is_place(name, value), expected, "{name}");
        check("datadir", "/tmp/x", true);
        check("server_uuid", "1-2", true);
        check("innodb_io_capacity", "200", false);
    }

    #[test]
    fn counters_have_their_ratio() {
        let moved = [("pages", 1.0, 2.5), ("syncs", 0.0, 0.25)].map(|(name, baseline, target)| {
            MovedCounter { name: name.to_owned(), baseline, target }
        });
        let Some(Block::Table(table)) = counters("B", &moved) else { panic!("no table") };
        let rows: Vec<Vec<String>> =
            table.rows.iter().map(|row| row.iter().map(Cell::plain).collect()).collect();
        assert_eq!(rows, [["1", "2.5", "2.50", "pages"], ["0", "0.25", "-", "syncs"]]);
        assert_eq!(counters("B", &[]), None);
    }
}
