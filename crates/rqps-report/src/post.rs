//! A report in the order of a published post: findings, setup, results, costs, caveats, method.

use super::build::{self, Sections};
use super::document::{Block, Cell, Column, Digits, Section, Table};
use super::{facts, form, tables, verdicts};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::TargetFacts;
use rqps_model::escape;
use rqps_model::metric::Metric;
use rqps_model::target::Config;

/// Renders the post as Markdown. `plot` is the address of its picture of the relative rates.
pub fn post(comparison: &Comparison, own: &[&Sections], plot: Option<&str>) -> String {
    let mut text = format!("# {}\n", escape::markdown(&build::subject(comparison)));
    let named =
        |heading: &str, section: Section| Section { heading: heading.to_owned(), ..section };
    let findings = verdicts::headline(comparison).map(|section| named("tl;dr", section));
    form::push_sections(&mut text, findings);
    let warnings = build::loud_caveats(comparison);
    let setup = named("Builds, configuration and hardware", facts::section(comparison, own));
    form::push_sections(&mut text, warnings.into_iter().chain([setup]));
    text.push_str("\n### Results\n");
    if let Some(plot) = plot {
        let title = format!("Rates relative to {}", comparison.baseline);
        // Angle brackets let an address have spaces.
        let address = plot.replace(['<', '>', '\n'], "");
        text.push_str(&format!("\n![{}](<{address}>)\n", escape::markdown(&title)));
    }
    let mut sections = vec![named("", tables::rates(comparison))];
    sections.extend(tables::summary(comparison));
    sections.extend(verdicts::section(comparison));
    sections.extend(costs(comparison));
    sections.extend(build::of_benchmarks(comparison, own));
    sections.extend(build::caveats(comparison));
    sections.extend(settings(comparison));
    sections.push(named("Method", build::how_to_read(comparison)));
    sections.extend(facts::terms_section(comparison));
    form::push_sections(&mut text, sections);
    let version = env!("CARGO_PKG_VERSION");
    let imported = (0..comparison.targets.len()).all(|target| comparison.is_imported(target));
    let measured = if imported { "Computed" } else { "Measured and computed" };
    text.push_str(&format!("\n{measured} by rqps {version}.\n"));
    text
}

/// What an operation costs, in one table: the baseline in units, the others relative to it.
fn costs(comparison: &Comparison) -> Option<Section> {
    let has_value = |metric: &Metric| {
        let mut targets = comparison.measured_steps().flat_map(|step| &step.targets);
        targets.any(|target| target.absolute(*metric).is_some())
    };
    let mut metrics = tables::efficiency_metrics();
    metrics.push(Metric::P99);
    metrics.retain(|metric| *metric != Metric::Rate && has_value(metric));
    if metrics.is_empty() {
        return None;
    }
    let units: Vec<String> =
        metrics.iter().map(|metric| format!("{} in {}", metric.name(), metric.unit())).collect();
    let mut columns = vec![Column::of_row("step"), Column::words("target")];
    columns.extend(metrics.iter().map(|metric| Column::of(*metric)));
    let mut rows = Vec::new();
    for step in comparison.measured_steps() {
        let carried_out = step.targets.iter().enumerate().filter(|(_, it)| it.was_carried_out());
        for (place, target) in carried_out {
            let mut cells = vec![Cell::text(step.name.clone()), Cell::text(target.label.clone())];
            cells.extend(metrics.iter().map(|metric| match place {
                0 => tables::absolute(target, *metric, metric.digits(), metric.unit()),
                _ => tables::judged(target, *metric, Digits::Ratio),
            }));
            rows.push(cells);
        }
    }
    let caption = format!(
        "Rows of {} are medians ({}); other rows are relative to them.",
        comparison.baseline,
        units.join(", ")
    );
    let table = Block::Table(Table { caption, columns, rows });
    Some(Section::new("costs", "Costs per operation", vec![table]))
}

/// What the configs of the targets set.
fn settings(comparison: &Comparison) -> Option<Section> {
    let of_target = |target: &TargetFacts| -> Vec<Block> {
        let configs = target.configs.iter().filter(|config| !config.text.trim().is_empty());
        let head = |config: &Config| {
            Block::Paragraph(format!("{}, config {} ({}):", target.label, config.name, config.hash))
        };
        let lines = |config: &Config| {
            let is_setting = |line: &&str| !line.trim().is_empty() && !line.starts_with('#');
            Block::Lines(config.text.lines().filter(is_setting).map(str::to_owned).collect())
        };
        configs.flat_map(|config| [head(config), lines(config)]).collect()
    };
    let blocks: Vec<Block> = comparison.targets.iter().flat_map(of_target).collect();
    (!blocks.is_empty()).then(|| Section::new("settings", "Settings", blocks))
}
