//! Tables of many targets: one row for each step, one narrow column for each target.

use std::collections::BTreeSet;

use super::document::{Block, Cell, Column, Digits, Mark, Table};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::{StepComparison, TargetFacts};
use rqps_model::metric::Metric;

/// Reports with more targets than this have narrow tables.
const TARGETS_MOST: usize = 5;
/// Most characters of a line of text.
const WIDTH: usize = 100;
/// Characters of a ratio with three digits and its sign, `1.000--`.
const RATIO_WIDTH: usize = 7;
/// Characters between two columns.
const GAP: usize = 2;

/// The extent of a report on counts of many targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// Every table, for forms that fold them.
    Whole,
    /// Of many targets, the narrow tables, and a sentence instead of each table of functions.
    Short,
}

/// True if a report has so many targets that tables with intervals would not fit a screen.
pub(super) fn is_ladder(comparison: &Comparison) -> bool {
    comparison.targets.len() > TARGETS_MOST
}

/// Heads of narrow columns, and their meaning.
pub(super) struct Heads {
    /// One for each column.
    pub(super) names: Vec<String>,
    /// True if the names are numbers, so that a legend must tell the targets.
    pub(super) numbered: bool,
}

/// The names, if each is another one and a table of them beside the widest name of a row fits a
/// line; else v1, v2, ….
pub(super) fn heads<'a>(names: impl Iterator<Item = &'a str>, row: usize) -> Heads {
    let names: Vec<&str> = names.collect();
    let width: usize = names.iter().map(|name| name.chars().count().max(RATIO_WIDTH) + GAP).sum();
    let distinct = names.iter().collect::<BTreeSet<_>>().len() == names.len();
    let numbered = !distinct || row + width > WIDTH;
    let names = if numbered {
        (1..=names.len()).map(|place| format!("v{place}")).collect()
    } else {
        names.into_iter().map(str::to_owned).collect()
    };
    Heads { names, numbered }
}

/// Short names of targets: their versions, if all are builds of one DBMS and no two have the same
/// version; else their labels.
pub(super) fn short_names(targets: &[TargetFacts]) -> Vec<&str> {
    let versions: Option<Vec<&str>> = targets
        .iter()
        .map(|facts| {
            let version = facts.manifests.first()?.version.as_str();
            (!version.is_empty()).then_some(version)
        })
        .collect();
    let products: BTreeSet<Option<&str>> = targets
        .iter()
        .map(|facts| facts.target.as_ref().map(|target| target.dbms.name()))
        .collect();
    let distinct = |names: &Vec<&str>| names.iter().collect::<BTreeSet<_>>().len() == names.len();
    let labels = || targets.iter().map(|facts| facts.label.as_str()).collect();
    versions.filter(|names| products.len() == 1 && distinct(names)).unwrap_or_else(labels)
}

/// A table of some steps: its caption and rows.
pub(super) type StepRows<'a> = (String, Vec<&'a StepComparison>);

/// Narrow tables of ratios to the baseline. `absolute` gives the cell of the baseline, `sign` the
/// mark of a step and a target by its index.
pub(super) struct NarrowTables<'a> {
    pub(super) metric: Metric,
    pub(super) digits: Digits,
    /// True if more is worse.
    pub(super) is_cost: bool,
    pub(super) absolute: &'a dyn Fn(&StepComparison) -> Cell,
    pub(super) sign: &'a dyn Fn(&StepComparison, usize) -> Option<Mark>,
}

impl NarrowTables<'_> {
    /// The tables with the same columns, after the legend of the columns if they have only numbers.
    pub(super) fn blocks(&self, comparison: &Comparison, tables: &[StepRows<'_>]) -> Vec<Block> {
        let steps = || tables.iter().flat_map(|(_, steps)| steps);
        let row = steps().map(|step| step.name.chars().count()).max().unwrap_or(0);
        let names = short_names(&comparison.targets);
        let heads = heads(names.iter().copied(), row);
        let mut columns = vec![Column::of_row("step")];
        columns.extend(heads.names.iter().map(Column::numbers));
        columns[1].metric = Some(self.metric);
        let legend = heads.names.iter().zip(names).zip(&comparison.targets);
        let legend = legend.map(|((head, name), facts)| {
            if facts.label == name {
                format!("{head} : {name}")
            } else {
                format!("{head} : {name}, {}", facts.label)
            }
        });
        let legend = heads.numbered.then(|| Block::Lines(legend.collect()));
        let table = |(caption, steps): &StepRows<'_>| {
            let rows = steps.iter().map(|step| {
                let ratios = (1..step.targets.len()).map(|at| self.ratio(step, at));
                let first = [Cell::text(step.name.clone()), (self.absolute)(step)];
                first.into_iter().chain(ratios).collect()
            });
            let (caption, columns) = (caption.clone(), columns.clone());
            Block::Table(Table { caption, columns, rows: rows.collect() })
        };
        legend.into_iter().chain(tables.iter().map(table)).collect()
    }

    fn ratio(&self, step: &StepComparison, at: usize) -> Cell {
        let target = &step.targets[at];
        match target.relative(self.metric) {
            Some(relative) => {
                let sign = (self.sign)(step, at);
                // Only what is demonstrated has a colour.
                let shown = sign.is_some_and(|mark| mark.sign.contains(['+', '-']));
                let ln = relative.ratio.ln();
                Cell::number(relative.ratio, self.digits, "ratio")
                    .toned(shown.then_some(if self.is_cost { -ln } else { ln }))
                    .marked(sign)
                    .from_runs(target.folders.clone())
            }
            None if target.samples.is_empty() && !target.failures.is_empty() => {
                Cell::text("failed")
            }
            None => Cell::missing("not measured in both targets"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_the_names_of_versions_that_fit_a_line() {
        let check = |names: &[&str], row, expected: &[&str]| {
            let heads = heads(names.iter().copied(), row);
            assert_eq!(heads.names, expected);
            assert_eq!(heads.numbered, expected[0] == "v1");
        };
        check(&["9.0.0", "10.10.1"], 20, &["9.0.0", "10.10.1"]);
        check(&["9.0.0", "9.0.0"], 20, &["v1", "v2"]);
        check(&["9.0.0", "10.10.1"], 90, &["v1", "v2"]);
        check(&["a-label-of-more-than-forty-characters-so", "b"], 60, &["v1", "v2"]);
    }
}
