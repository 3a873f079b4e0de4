//! A report in the order of a published post: findings, setup, results, costs, caveats, method.

use super::build::{self, Sections};
use super::document::{Block, Section};
use super::{facts, form, tables, verdicts};
use rqps_analysis::{Comparison, causes};
use rqps_model::escape;

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
    sections.extend(build::of_benchmarks(comparison, own));
    sections.extend(costs(comparison));
    sections.extend(build::caveats(comparison));
    sections.push(named("Method", build::how_to_read(comparison)));
    sections.extend(facts::terms_section(comparison));
    form::push_sections(&mut text, sections);
    let version = env!("CARGO_PKG_VERSION");
    text.push_str(&format!("\nMeasured and computed by rqps {version}.\n"));
    text
}

/// What an operation costs in the steps that differ.
fn costs(comparison: &Comparison) -> Option<Section> {
    let mut blocks = Vec::new();
    for step in causes::differing_steps(comparison) {
        let tables = tables::efficiency_of(comparison, step);
        if !tables.is_empty() {
            blocks.push(Block::Paragraph(format!("{}:", step.name)));
            blocks.extend(tables);
        }
    }
    let heading = "Costs per operation of the steps that differ";
    (!blocks.is_empty()).then(|| Section::new("costs", heading, blocks))
}
