//! Reports of several families of targets, and of targets that cross settings.

use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};

use serde::Serialize;

use super::build::{self, ReportOptions, Sections};
use super::document::{
    Block, Cell, Column, Digits, Document, Section, Table, name_of_row, numbers, words,
};
use super::form::post;
use super::form::{self, Format};
use super::{export, tables};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::StepComparison;
use rqps_analysis::counted::is_counted;
use rqps_analysis::families::Crossing;
use rqps_model::benchmark::Group;
use rqps_model::escape;
use rqps_model::metric::Metric;

// One report of several families of targets, each relative to its own baseline.

/// The comparison of one family.
#[derive(Clone, Copy, Debug)]
pub struct FamilyReport<'a> {
    /// `mysql with rocksdb`.
    pub family: &'a str,
    /// Its targets relative to its baseline.
    pub comparison: &'a Comparison,
}

/// Writes the report of several families: one table with the ratios of all, then the report of each
/// as [`super::write`] gives it.
///
/// # Errors
/// Writing to `out` fails.
pub fn write_families(
    parts: &[FamilyReport],
    format: Format,
    own: &[&Sections],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    let of = |build: fn(&Comparison, &[&Sections]) -> Document| {
        let documents = parts.iter().map(|part| build(part.comparison, own));
        merged(parts, documents.collect())
    };
    match format {
        Format::Text => {
            let complete = |comparison: &Comparison, own: &[&Sections]| {
                build::document(comparison, &ReportOptions::default(), own)
            };
            out.write_all(form::render_text(&of(complete), None).as_bytes())?;
        }
        Format::Markdown => {
            out.write_all(form::render_markdown(&of(build::bug_report)).as_bytes())?
        }
        Format::Post => {
            let all: Vec<String> =
                parts.iter().map(|part| post(part.comparison, own, None)).collect();
            out.write_all(all.join("\n").as_bytes())?;
        }
        Format::Tsv => {
            let all: Vec<String> = parts.iter().map(|part| export::tsv(part.comparison)).collect();
            out.write_all(all.join("\n").as_bytes())?;
        }
        Format::Csv => {
            writeln!(out, "{},baseline", export::CSV_HEAD)?;
            for part in parts {
                let baseline = format!(",{}", export::quoted(&part.comparison.baseline));
                export::write_csv_rows(part.comparison, &baseline, &mut out)?;
            }
        }
        Format::Json => {
            let families: Vec<FamilyContent> = parts
                .iter()
                .map(|part| FamilyContent {
                    family: part.family,
                    comparison: form::Content::of(part.comparison),
                })
                .collect();
            let whole =
                form::Versioned { schema: form::SCHEMA, name: "families", value: &families };
            let text = serde_json::to_string_pretty(&whole)?;
            writeln!(out, "{}", escape::json(&text))?;
        }
    }
    out.flush()
}

#[derive(Serialize)]
struct FamilyContent<'a> {
    family: &'a str,
    comparison: form::Content<'a>,
}

/// Merges the documents of all families. Their sections get the name of the family.
pub(super) fn merged(parts: &[FamilyReport], documents: Vec<Document>) -> Document {
    let mut sections = vec![ratios(parts)];
    for (part, document) in parts.iter().zip(documents) {
        sections.extend(document.sections.into_iter().map(|section| {
            let heading = if section.heading.is_empty() {
                format!("{}: summary", part.family)
            } else {
                format!("{}: {}", part.family, section.heading)
            };
            Section { heading, ..section }
        }));
    }
    let names = parts.iter().map(|part| format!("{} relative to {}", part.family, baseline(part)));
    Document { title: format!("rqps: {}", names.collect::<Vec<_>>().join("; ")), sections }
}

fn baseline<'a>(part: &FamilyReport<'a>) -> &'a str {
    &part.comparison.baseline
}

/// Ratios of all targets to the baseline of their family: a table for each group of steps.
fn ratios(parts: &[FamilyReport]) -> Section {
    let legend = columns(parts).into_iter().map(|(head, column)| match column {
        RatioColumn::Baseline(part) => format!("{head} : {} ({})", baseline(part), part.family),
        RatioColumn::Ratio { label, baseline } => format!("{head} : {label} / {baseline}"),
    });
    let legend = legend.collect();
    let metric = if parts.iter().all(|part| is_counted(part.comparison)) {
        Metric::InstructionsPerOp
    } else {
        Metric::Rate
    };
    let mut blocks = vec![Block::Lines(legend)];
    let groups: BTreeSet<Group> =
        parts.iter().flat_map(|part| part.comparison.groups_of_steps()).collect();
    blocks.extend(groups.into_iter().map(|group| Block::Table(ratio_table(parts, group, metric))));
    let heading = format!("{} of each family relative to its own baseline", metric.name());
    Section::new("families", heading, blocks)
}

/// A column of the table of ratios.
enum RatioColumn<'a> {
    /// Absolute values of the baseline of a family.
    Baseline(&'a FamilyReport<'a>),
    /// Ratios of a target to the column `baseline`.
    Ratio { label: &'a str, baseline: String },
}

/// The columns with their heads, in order: `base-1`, `col-1`, `col-2`, `base-2`, `col-3`.
fn columns<'a>(parts: &'a [FamilyReport<'a>]) -> Vec<(String, RatioColumn<'a>)> {
    let mut columns = Vec::new();
    let mut number = 0;
    for (place, part) in parts.iter().enumerate() {
        let baseline = format!("base-{}", place + 1);
        columns.push((baseline.clone(), RatioColumn::Baseline(part)));
        for target in part.comparison.targets.iter().skip(1) {
            number += 1;
            let ratio = RatioColumn::Ratio { label: &target.label, baseline: baseline.clone() };
            columns.push((format!("col-{number}"), ratio));
        }
    }
    columns
}

fn ratio_table(parts: &[FamilyReport], group: Group, metric: Metric) -> Table {
    let of_column = |(head, column): (String, RatioColumn)| match column {
        RatioColumn::Baseline(_) => Column::numbers(head).showing(metric),
        RatioColumn::Ratio { .. } => Column::numbers(head),
    };
    let columns = columns(parts).into_iter().map(of_column);
    let columns = columns.chain([Column::of_row("step")]).collect();
    let mut names: Vec<&str> = Vec::new();
    for part in parts {
        let of_group = part.comparison.steps.iter().filter(|step| step.group == group);
        for step in of_group {
            if !names.contains(&step.name.as_str()) {
                names.push(&step.name);
            }
        }
    }
    let rows = names.into_iter().map(|name| {
        let cells = parts.iter().flat_map(|part| family_cells(part, name, metric));
        cells.chain([Cell::text(name)]).collect()
    });
    let caption = format!(
        "{} (base: absolute value of a baseline; [low, high]: 95 % interval)",
        group.name()
    );
    Table::new(caption, columns, rows.collect())
}

/// The rate of the baseline, and the ratios of the other targets.
fn family_cells(part: &FamilyReport, name: &str, metric: Metric) -> Vec<Cell> {
    let step = part.comparison.steps.iter().find(|step| step.name == name);
    let cells = |step: &StepComparison| {
        let others = step.targets.iter().skip(1);
        let ratios = others.map(|target| tables::judged(target, metric, Digits::Fixed(3)));
        let baseline = tables::absolute(&step.targets[0], metric, metric.digits(), "");
        std::iter::once(baseline).chain(ratios).collect()
    };
    let missing =
        || part.comparison.targets.iter().map(|_| Cell::missing("not measured")).collect();
    step.map_or_else(missing, cells)
}

// The section of effects of settings, where targets are all combinations of them.

/// Main effects and interactions in each step; `None` where targets are no full crossing.
pub(super) fn section(comparison: &Comparison) -> Option<Section> {
    let crossing = Crossing::of(comparison)?;
    let rows = comparison.steps.iter().flat_map(|step| {
        crossing.effects(comparison, step).into_iter().map(|effect| {
            let ratio = Cell::number(effect.ratio, Digits::Fixed(3), "ratio");
            [
                numbers("rQPS", ratio.within(effect.interval)),
                numbers("n", Cell::text(effect.n.to_string())),
                words("effect", Cell::text(effect.name)),
                name_of_row("step", &*step.name),
            ]
        })
    });
    let text = "Each setting against its first value, over all values of the others. `A with B` is a \
                ratio of two ratios: the effect of A where B is set, relative to its effect at the \
                first value of B; 1 if they do not depend on each other. Each interval stands for \
                itself, without a correction for their number.";
    Section::of_table("factors", "Effects of settings", text, Table::of("", rows))
}
