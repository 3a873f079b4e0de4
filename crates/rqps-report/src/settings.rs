//! Differences between targets besides their builds: settings and query plans, side by side.

use std::collections::BTreeMap;

use super::document::{Block, Cell, Column, Fold, Section, Table};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::StepComparison;
use rqps_analysis::plans::normalize;

/// With more targets than this, the report lists values with their targets instead of columns.
const SIDE_BY_SIDE_MAX: usize = 5;

/// Settings with different values, then each target's configuration as its DBMS read it. `None` if
/// no target has a configuration text.
pub(crate) fn section(comparison: &Comparison) -> Option<Section> {
    let texts: Vec<&str> = comparison
        .targets
        .iter()
        .map(|target| target.configs.first().map_or("", |config| config.text.as_str()))
        .collect();
    if texts.iter().all(|text| text.trim().is_empty()) {
        return None;
    }
    let labels: Vec<&str> = comparison.targets.iter().map(|target| target.label.as_str()).collect();
    let mut blocks = Vec::new();
    if labels.len() > 1 {
        blocks.push(match difference(&labels, &texts) {
            Some(table) => Block::Table(table),
            None => Block::Paragraph("The targets have the same settings.".to_owned()),
        });
    }
    for target in &comparison.targets {
        for config in &target.configs {
            let lines = config.text.lines().map(str::to_owned).collect();
            blocks.push(Block::Fold(Fold {
                summary: format!("{}: {} ({})", target.label, config.name, config.hash),
                blocks: vec![Block::Lines(lines)],
            }));
        }
    }
    Some(Section { id: "settings", heading: "Settings".to_owned(), blocks })
}

/// Setting → value for each target; only settings with different values.
fn difference(labels: &[&str], texts: &[&str]) -> Option<Table> {
    let parsed: Vec<BTreeMap<String, String>> = texts.iter().map(|text| settings(text)).collect();
    differing(labels, &parsed)
}

/// The differences between settings given by name.
pub(super) fn differing(labels: &[&str], parsed: &[BTreeMap<String, String>]) -> Option<Table> {
    let mut names: Vec<&String> = parsed.iter().flat_map(BTreeMap::keys).collect();
    names.sort();
    names.dedup();
    let value = |target: &BTreeMap<String, String>, name: &str| {
        target.get(name).cloned().unwrap_or_else(|| "not set".to_owned())
    };
    let mut rows = Vec::new();
    for name in names {
        let values: Vec<String> = parsed.iter().map(|target| value(target, name)).collect();
        if values.iter().all(|value| *value == values[0]) {
            continue;
        }
        if labels.len() <= SIDE_BY_SIDE_MAX {
            rows.push([name.clone()].into_iter().chain(values).map(Cell::text).collect());
            continue;
        }
        let mut by_value: Vec<(&String, Vec<&str>)> = Vec::new();
        for (value, label) in values.iter().zip(labels) {
            match by_value.iter_mut().find(|(other, _)| *other == value) {
                Some((_, labels)) => labels.push(label),
                None => by_value.push((value, vec![label])),
            }
        }
        for (value, labels) in by_value {
            rows.push([name.clone(), value.clone(), labels.join(", ")].map(Cell::text).to_vec());
        }
    }
    let heads: Vec<&str> = if labels.len() <= SIDE_BY_SIDE_MAX {
        ["setting"].into_iter().chain(labels.iter().copied()).collect()
    } else {
        vec!["setting", "value", "targets"]
    };
    let columns = heads.into_iter().map(Column::words).collect();
    let caption = "Different settings".to_owned();
    (!rows.is_empty()).then_some(Table { caption, columns, rows })
}

/// Name → value of a configuration text: `name = value`, `name=value` or a bare name. Normalises
/// names (lower case, `_` for `-`), as the DBMSs do.
fn settings(text: &str) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    for line in text.lines().map(str::trim) {
        if line.is_empty() || line.starts_with(['#', ';', '[']) || line.starts_with("--") {
            continue;
        }
        let (name, value) = line.split_once('=').unwrap_or((line, "on"));
        settings.insert(name.trim().to_lowercase().replace('-', "_"), value.trim().to_owned());
    }
    settings
}

/// Steps whose query plans differ from the baseline's, with the plans as the DBMS printed them.
/// `None` if no plan differs.
pub(crate) fn plans(comparison: &Comparison) -> Option<Section> {
    let folds: Vec<Block> =
        comparison.measured_steps().flat_map(of_step).map(Block::Fold).collect();
    let note = "rqps compares plans without costs, estimates and literals, and shows the plan of \
                each target's first run.";
    let mut blocks = vec![Block::Paragraph(note.to_owned())];
    let some = !folds.is_empty();
    blocks.extend(folds);
    some.then(|| Section { id: "plans", heading: "Different query plans".to_owned(), blocks })
}

/// A plan without its figures, the original plan, and its targets.
type Variant<'a> = (String, &'a str, Vec<&'a str>);

/// A fold for each kind of statement with different plans.
pub(super) fn of_step(step: &StepComparison) -> Vec<Fold> {
    let mut kinds: BTreeMap<&str, Vec<Variant<'_>>> = BTreeMap::new();
    for target in &step.targets {
        let first = target.samples.first();
        for (kind, plan) in first.iter().flat_map(|sample| &sample.record.outcome.plans) {
            let variants = kinds.entry(kind).or_default();
            let normal = normalize(plan);
            match variants.iter_mut().find(|(other, _, _)| *other == normal) {
                Some((_, _, labels)) => labels.push(&target.label),
                None => variants.push((normal, plan, vec![&target.label])),
            }
        }
    }
    let differing = kinds.into_iter().filter(|(_, variants)| variants.len() > 1);
    differing
        .map(|(kind, variants)| Fold {
            summary: format!("{}: {kind}", step.name),
            blocks: variants
                .into_iter()
                .flat_map(|(_, plan, labels)| {
                    let lines = plan.lines().map(|line| line.replace('\t', "  ")).collect();
                    [Block::Paragraph(labels.join(", ")), Block::Lines(lines)]
                })
                .collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_difference(texts: &[&str], expected: &[&[&str]]) {
        let labels: Vec<String> = (0..texts.len()).map(|index| format!("t{index}")).collect();
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        let rows = difference(&labels, texts).map(|table| table.rows).unwrap_or_default();
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| row.iter().map(Cell::plain).collect()).collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn only_what_differs_is_shown() {
        check_difference(
            &["[mysqld]\n# a\nskip-log-bin\nsize = 5\nsame=1", "same = 1\nsize=6\n"],
            &[&["size", "5", "6"], &["skip_log_bin", "on", "not set"]],
        );
        check_difference(&["a = 1", "A=1"], &[]);
    }

    #[test]
    fn many_targets_are_listed_by_value() {
        check_difference(
            &["a=1", "a=1", "a=2", "a=1", "a=1", "a=2"],
            &[&["a", "1", "t0, t1, t3, t4"], &["a", "2", "t2, t5"]],
        );
    }
}
