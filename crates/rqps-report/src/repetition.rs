//! The result of a repetition, as a document and as JSON.

use std::collections::BTreeSet;

use super::document::{
    Block, Cell, Digits, Document, Mark, Placed, Section, Table, name_of_row, numbers, words,
};
use super::facts::host_line;
use super::form::versioned;
use rqps_analysis::Comparison;
use rqps_analysis::repetition::{
    Agreement, OtherBuild, RepeatedRatio, RepeatedStep, RepeatedTarget, Repetition,
};
use rqps_model::build::Manifest;

/// Version of the JSON form; it grows when a reader would have to change.
pub const REPETITION_SCHEMA: u32 = 1;

const DIFFERS: Mark =
    Mark { sign: "!", colour: "#E0C060", meaning: "differs beyond the intervals of both" };

/// The document of a repetition of `first`.
pub fn repetition_document(
    found: &Repetition,
    first: &Comparison,
    second: &Comparison,
) -> Document {
    let labels: Vec<&str> = found.targets.iter().map(|target| target.label.as_str()).collect();
    let title = format!("rqps repetition: {} relative to {}", labels.join(", "), found.baseline);
    let mut sections = vec![summary(found)];
    sections.push(places(first, second));
    sections.extend(found.targets.iter().map(steps));
    sections.push(how_to_read(found));
    Document { title, sections }
}

fn summary(found: &Repetition) -> Section {
    let mut blocks = Vec::new();
    for target in &found.targets {
        blocks.push(Block::Paragraph(sentence(target)));
        let apart: Vec<&str> = target.differing().map(|step| step.step.as_str()).collect();
        if !apart.is_empty() {
            let text = format!("Ratios that differ beyond their intervals: {}.", apart.join(", "));
            blocks.push(Block::Paragraph(text));
        }
        let lists =
            [("Not repeated", &target.not_repeated), ("Only in the repetition", &target.new)];
        for (name, steps) in lists.into_iter().filter(|(_, steps)| !steps.is_empty()) {
            blocks.push(Block::Paragraph(format!("{name}: {}.", steps.join(", "))));
        }
    }
    let builds: Vec<String> = found.other_builds.iter().map(build_line).collect();
    if !builds.is_empty() {
        blocks.push(Block::List(builds));
    }
    Section::new("repetition", "", blocks)
}

/// The summary of one target, such as `b: 30 of 32 verdicts are the same, 2 undecided in one of the
/// two; 1 of 32 ratios differ beyond their intervals`.
fn sentence(target: &RepeatedTarget) -> String {
    let all = target.steps.len();
    let count = |how| target.agreeing(how);
    let mut parts = vec![format!("{} of {all} verdicts are the same", count(Agreement::Same))];
    for (how, text) in [
        (Agreement::Compatible, "compatible"),
        (Agreement::Undecided, "undecided in one of the two"),
        (Agreement::Contrary, "CONTRARY"),
    ] {
        if count(how) > 0 {
            parts.push(format!("{} {text}", count(how)));
        }
    }
    let tested = target.steps.iter().filter(|step| step.change.is_some()).count();
    let differ = target.differing().count();
    let ratios = match tested {
        0 => "no ratio has an interval in both".to_owned(),
        _ => format!("{differ} of {tested} ratios differ beyond their intervals"),
    };
    format!("{}: {}; {ratios}.", target.label, parts.join(", "))
}

fn build_line(other: &OtherBuild) -> String {
    let text = |builds: &[Manifest]| {
        let one = |build: &Manifest| {
            let sum =
                build.sha256.as_deref().map_or("no checksum", |sum| sum.get(..12).unwrap_or(sum));
            format!("{} ({}, SHA-256 {sum})", build.version, build.origin)
        };
        builds.iter().map(one).collect::<Vec<_>>().join(" and ")
    };
    format!(
        "{} has different builds: first {}, repetition {}",
        other.label,
        text(&other.first),
        text(&other.second)
    )
}

/// Hosts, dates and versions of rqps of both.
fn places(first: &Comparison, second: &Comparison) -> Section {
    let mut facts = Vec::new();
    for (name, comparison) in [("first", first), ("repetition", second)] {
        for (fingerprint, host) in &comparison.hosts {
            facts.push((format!("{name} host"), host_line(fingerprint, host)));
        }
        let versions: BTreeSet<&str> =
            comparison.runs.iter().map(|run| run.rqps_version.as_str()).collect();
        let versions = versions.into_iter().collect::<Vec<_>>().join(", ");
        let began = comparison.runs.iter().map(|run| run.started.as_str()).min().unwrap_or("");
        facts.push((format!("{name} began"), format!("{began}, rqps {versions}")));
    }
    Section::new("places", "Hosts", vec![Block::Facts(facts)])
}

fn steps(target: &RepeatedTarget) -> Section {
    let table = Table::of("", target.steps.iter().map(row)).map(Block::Table);
    let heading = format!("Steps of {}", target.label);
    Section::new("repeated-steps", heading, Vec::from_iter(table))
}

fn row(step: &RepeatedStep) -> [Placed; 6] {
    let ratio =
        |of: &RepeatedRatio| Cell::number(of.ratio, Digits::Fixed(3), "ratio").within(of.interval);
    let verdicts = match step.agreement {
        Agreement::Same => step.first.verdict.name().to_owned(),
        _ => format!("{} -> {}", step.first.verdict.name(), step.second.verdict.name()),
    };
    let why = "one of the two has no standard error";
    let change = step.change.map(|it| {
        let ratio = Cell::number(it.ratio, Digits::Fixed(3), "ratio");
        ratio.within(Some(it.interval)).marked(it.differs.then_some(DIFFERS))
    });
    let q = step.change.map(|change| change.q);
    [
        words("verdicts", Cell::text(verdicts)),
        numbers("first rQPS", ratio(&step.first)),
        numbers("repetition", ratio(&step.second)),
        numbers("change", change.unwrap_or_else(|| Cell::missing(why))),
        numbers("q", Cell::number_or(q, Digits::Fixed(4), "", why)),
        name_of_row("step", &*step.step),
    ]
}

fn how_to_read(found: &Repetition) -> Section {
    let lines = vec![
        "change: ratio of the repetition / first ratio, with its 95 % interval (Welch: the \
         standard errors of both, which the verdicts rest on)."
            .to_owned(),
        format!(
            "!: differs beyond the intervals of both (q of Benjamini-Hochberg over the steps of \
             the target, at most {}).",
            found.q
        ),
        "Ratios depend on the CPU, so both can be right where they differ.".to_owned(),
    ];
    Section::how_to_read("reading", lines)
}

/// A repetition with the version of this form.
///
/// # Errors
/// A number that JSON cannot write.
pub fn repetition_json(found: &Repetition) -> serde_json::Result<String> {
    versioned(REPETITION_SCHEMA, "repetition", found)
}
