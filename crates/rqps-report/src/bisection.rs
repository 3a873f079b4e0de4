//! The result of a bisection, as a document and as JSON.

use std::time::Duration;

use super::document::{Block, Cell, Column, Digits, Document, Mark, Section, Table};
use super::json::versioned;
use rqps_analysis::history::{Bisection, Culprit, CulpritCheck};
use rqps_model::units;

/// Version of the JSON form; it grows when a reader would have to change.
pub const BISECTION_SCHEMA: u32 = 1;

const CHANGED: Mark = Mark { sign: "!", colour: "#E0C060", meaning: "the step changed here" };

/// The document of a bisection.
pub fn bisection_document(found: &Bisection) -> Document {
    let name = |place: usize| found.versions.get(place).map_or("", |it| it.label.as_str());
    let last = found.versions.len().saturating_sub(1);
    let title = format!("rqps bisect: {} from {} to {}", found.step, name(0), name(last));
    let sections = vec![result(found), versions(found), how_to_read(found)];
    Document { title, sections }
}

fn result(found: &Bisection) -> Section {
    let mut blocks = vec![Block::Paragraph(ends(found))];
    for culprit in &found.culprits {
        blocks.push(Block::Paragraph(culprit_text(found, culprit)));
        let mut lines: Vec<String> = Vec::new();
        if let Some(check) = &culprit.check {
            lines.push(check_text(check));
        }
        if !culprit.functions.is_empty() {
            let named = culprit.functions.iter().map(|(name, by)| format!("{name} {by:+.0}"));
            let named: Vec<String> = named.collect();
            lines.push(format!("Functions, instructions per operation: {}.", named.join(", ")));
        }
        blocks.push(Block::List(lines));
    }
    if found.reproduced && found.culprits.is_empty() {
        let text = "No version makes a quarter of the difference: it is spread over many changes.";
        blocks.push(Block::Paragraph(text.to_owned()));
    }
    blocks.push(Block::Paragraph(cost_text(found)));
    Section { id: "result", heading: "Result".to_owned(), blocks }
}

fn ends(found: &Bisection) -> String {
    let interval =
        found.ends_interval.map(|interval| format!(" [{:.3}, {:.3}]", interval.low, interval.high));
    let ratio = format!("{:.4}{}", found.ends, interval.unwrap_or_default());
    let metric = &found.metric;
    if found.reproduced {
        return format!("Candidate / baseline by {metric}: {ratio} ({}).", found.reason);
    }
    format!(
        "Not reproduced: candidate / baseline by {metric} is {ratio}, which is no difference \
         ({}). There is no change to search for.",
        found.reason
    )
}

fn culprit_text(found: &Bisection, culprit: &Culprit) -> String {
    let name = |place: usize| match found.versions.get(place) {
        Some(version) if version.about.is_empty() => version.label.clone(),
        Some(version) => format!("{} ({})", version.label, version.about),
        None => String::new(),
    };
    let what = format!(
        "{} {:.4} against {}, {:.0} % of the difference",
        found.metric,
        culprit.ratio,
        found.versions.get(culprit.after).map_or("", |it| it.label.as_str()),
        100.0 * culprit.share
    );
    match culprit.suspects.as_slice() {
        [(place, probability)] if *probability >= 1.0 => {
            format!("First version with the change: {}: {what}.", name(*place))
        }
        [(place, probability)] => format!(
            "First version with the change: {} (probability {probability:.2}): {what}.",
            name(*place)
        ),
        several => {
            let named: Vec<String> = several
                .iter()
                .map(|(place, probability)| format!("{} ({probability:.2})", name(*place)))
                .collect();
            format!(
                "First version with the change, one of {} with their probabilities: {}: {what}.",
                several.len(),
                named.join(", ")
            )
        }
    }
}

fn check_text(check: &CulpritCheck) -> String {
    let interval =
        check.interval.map(|interval| format!(" [{:.3}, {:.3}]", interval.low, interval.high));
    format!(
        "Check on {} fresh blocks: {} {:.3}{}: {}. Results: {}.",
        check.pairs,
        check.metric,
        check.ratio,
        interval.unwrap_or_default(),
        check.verdict.name(),
        check.folder
    )
}

fn cost_text(found: &Bisection) -> String {
    let cost = found.cost;
    let lost = match cost.lost {
        0 => String::new(),
        lost => format!(", {lost} could not be measured"),
    };
    format!(
        "{} of {} versions measured{lost}; {} counts, {} blocks, {}.",
        cost.versions,
        found.versions.len(),
        cost.counts,
        cost.blocks,
        units::duration(Duration::from_secs_f64(cost.seconds.round()))
    )
}

fn versions(found: &Bisection) -> Section {
    let columns = vec![
        Column::of_row("version"),
        Column::numbers(format!("{} / baseline", found.metric)),
        Column::numbers("values"),
        Column::words("status"),
    ];
    let rows = found.versions.iter().enumerate().map(|(place, version)| {
        let changed = found.culprits.iter().any(|culprit| culprit.at == place);
        let ratio = match version.ratio {
            Some(ratio) => {
                Cell::number(ratio, Digits::Fixed(4), "ratio").marked(changed.then_some(CHANGED))
            }
            None => Cell::missing("not measured"),
        };
        let lost = version.lost.as_deref().and_then(|lost| lost.lines().next());
        let known = match lost {
            Some(lost) => format!("not measured: {lost}"),
            None if version.passed_over => format!("{} (cannot matter)", version.about),
            None => version.about.clone(),
        };
        let values = match version.n {
            0 => Cell::missing("not measured"),
            n => Cell::number(n as f64, Digits::Fixed(0), ""),
        };
        vec![Cell::text(version.label.clone()), ratio, values, Cell::text(known)]
    });
    let rows = rows.collect();
    let table = Table { caption: String::new(), columns, rows };
    Section { id: "versions", heading: "Versions".to_owned(), blocks: vec![Block::Table(table)] }
}

fn how_to_read(found: &Bisection) -> Section {
    let counted = found.ends_interval.is_none();
    let method = if counted {
        "Counted instructions repeat, so one count of a version is enough. rqps halves each range \
         whose ends differ, and follows every change that makes a quarter of the difference."
    } else {
        "Rates scatter. rqps measures each version in blocks together with the baseline, computes \
         the probability of each version to be the first with the change, and measures the version \
         at its median. It stops when one version has 95 %. A build has an offset of its own \
         (layout, tau), which more blocks do not average out."
    };
    let check = "The check measures the versions before and after the change in blocks that the \
                 search has not seen.";
    Section::how_to_read("reading", vec![method.to_owned(), check.to_owned()])
}

/// A bisection with the version of this form.
///
/// # Errors
/// A number that JSON cannot write.
pub fn bisection_json(found: &Bisection) -> serde_json::Result<String> {
    versioned(BISECTION_SCHEMA, "bisection", found)
}
