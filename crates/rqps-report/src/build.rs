//! Builds the document of a report from a comparison.

use super::document::{Block, Document, Section};
use crate::ladder::Extent;
use crate::{
    blocks, client_hosts, counted, crossing, evenness, explain, facts, history, ladder,
    other_metrics, remarks, scaling, sessions, settings, tables, terms, turns, verdicts,
};
use rqps_analysis::caveat::CaveatKind;
use rqps_analysis::counted::is_counted;
use rqps_analysis::{Caveat, Comparison};
use rqps_model::benchmark::{RateUnit, Workload};
use rqps_model::metric::Metric;

/// Parts that a report omits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportOptions {
    /// The tables of per-operation and other metrics of every step, the longest part.
    pub efficiency: bool,
}

impl Default for ReportOptions {
    fn default() -> ReportOptions {
        ReportOptions { efficiency: true }
    }
}

/// Builds the complete report.
pub fn document(comparison: &Comparison, options: &ReportOptions, own: &[&Sections]) -> Document {
    if is_counted(comparison) {
        return of_count(comparison, own, Extent::Short);
    }
    let mut sections = Vec::new();
    sections.extend(loud_caveats(comparison));
    sections.extend(verdicts::headline(comparison));
    sections.push(facts::section(comparison, own));
    sections.extend(verdicts::section(comparison));
    sections.extend(sessions::section(comparison));
    sections.push(tables::rates(comparison));
    sections.extend(history::of_report(comparison, Metric::Rate));
    sections.extend(tables::summary(comparison));
    sections.extend(crossing::section(comparison));
    sections.extend(counted::beside_rates(comparison, Extent::Short));
    sections.extend(of_benchmarks(comparison, own));
    if options.efficiency {
        sections.extend(tables::efficiency(comparison));
    }
    sections.extend(tables::latency(comparison));
    sections.extend(evenness::section(comparison));
    sections.extend(tables::load(comparison));
    if options.efficiency {
        sections.extend(other_metrics::section(comparison, &sections));
    }
    sections.extend(remarks::section(comparison));
    sections.extend(caveats(comparison));
    sections.extend(blocks::section(comparison));
    sections.push(how_to_read(comparison));
    sections.extend(tables::details(comparison));
    sections.extend(terms::section(comparison));
    sections.push(facts::run_folders(comparison));
    Document { title: title(comparison), sections }
}

/// Builds the page about the steps that are explained.
pub fn explanation(comparison: &Comparison) -> Document {
    let title = format!("{}: what may explain it", title(comparison));
    Document { title, sections: explain::sections(comparison) }
}

/// Builds the report of counted runs, which have no rates.
pub(super) fn of_count(comparison: &Comparison, own: &[&Sections], extent: Extent) -> Document {
    let mut sections = Vec::new();
    sections.extend(loud_caveats(comparison));
    sections.push(facts::section(comparison, own));
    sections.extend(counted::sections(comparison, extent));
    sections.extend(caveats(comparison));
    sections.extend(settings::section(comparison));
    sections.extend(terms::section(comparison));
    sections.push(facts::run_folders(comparison));
    let title = format!("{}: instructions per operation", title(comparison));
    Document { title, sections }
}

/// Builds the report with what may explain differences: causes, settings.
pub(super) fn bug_report(comparison: &Comparison, own: &[&Sections]) -> Document {
    let mut document = document(comparison, &ReportOptions::default(), own);
    if is_counted(comparison) {
        return document;
    }
    let before_runs = document.sections.len().saturating_sub(1);
    let added = [
        explain::section(comparison),
        settings::section(comparison),
        explain::server_settings(comparison),
    ];
    document.sections.splice(before_runs..before_runs, added.into_iter().flatten());
    document
}

/// The comparison in one line. Many targets appear as a number, because every table lists them.
pub(super) fn title(comparison: &Comparison) -> String {
    let labels: Vec<&str> = comparison.targets.iter().map(|t| t.label.as_str()).collect();
    match labels.split_first() {
        Some((baseline, others)) if ladder::is_ladder(comparison) => {
            format!("rqps: {} targets relative to {baseline}", others.len())
        }
        Some((baseline, others)) if !others.is_empty() => {
            format!("rqps: {} relative to {baseline}", others.join(", "))
        }
        _ => format!("rqps: {}", labels.join(", ")),
    }
}

/// Sections of single benchmarks, for every form of report; empty if the comparison has no such
/// steps.
pub(super) fn of_benchmarks(comparison: &Comparison, own: &[&Sections]) -> Vec<Section> {
    let mut sections: Vec<Section> =
        own.iter().flat_map(|hooks| (hooks.sections)(comparison)).collect();
    sections.extend(scaling::section(comparison));
    sections.extend(turns::section(comparison));
    sections.extend(client_hosts::section(comparison));
    sections
}

/// Caveats that must appear before the first number.
pub(super) fn loud_caveats(comparison: &Comparison) -> Option<Section> {
    let points: Vec<String> = comparison
        .caveats
        .iter()
        .filter(|c| c.kind.is_loud())
        .map(|c| point(comparison, c))
        .collect();
    (!points.is_empty()).then(|| Section {
        id: "warnings",
        heading: "WARNING: these numbers may not be comparable".to_owned(),
        blocks: vec![Block::List(points)],
    })
}

/// All caveats by kind, with the advice of each kind.
pub(super) fn caveats(comparison: &Comparison) -> Option<Section> {
    let mut blocks = Vec::new();
    let mut kinds: Vec<CaveatKind> = comparison.caveats.iter().map(|caveat| caveat.kind).collect();
    kinds.dedup();
    for kind in kinds {
        blocks.push(Block::Paragraph(format!("{}. {}", kind.title(), kind.advice())));
        let of_kind = comparison.caveats.iter().filter(|caveat| caveat.kind == kind);
        blocks.push(Block::List(of_kind.map(|caveat| point(comparison, caveat)).collect()));
    }
    (!blocks.is_empty()).then(|| Section { id: "caveats", heading: "Caveats".to_owned(), blocks })
}

fn point(comparison: &Comparison, caveat: &Caveat) -> String {
    let target = caveat.target.as_ref().map(|target| format!("{target}: ")).unwrap_or_default();
    let steps = match caveat.steps.len() {
        0 => String::new(),
        all if all == comparison.steps.len() && all > 2 => format!(" (all {all} steps)"),
        _ => format!(" ({})", caveat.steps.join(", ")),
    };
    format!("{target}{}{steps}", caveat.text)
}

pub(super) fn how_to_read(comparison: &Comparison) -> Section {
    let mut rules = vec![
        "rQPS = rate of a target / rate of the baseline: above 1 is faster. It is exp(mean d), \
         where each block in which both completed the step gives one d = ln(target) - \
         ln(baseline); interrupted attempts at a block count too.",
        "p99.9 needs at least 10000 events: below that fewer than ten events would determine it.",
        "[low, high] is the 95 % confidence interval of the ratio, n the number of pairs. For a \
         rate with a verdict it is the moderated t interval, which pools variance over the steps; \
         otherwise it is the plain t interval. An interval that contains 1 does not demonstrate a \
         difference; one pair gives no interval.",
        "Absolute values are medians over the runs of a target. rqps computes relative values of \
         other metrics like rQPS; if a value is 0, they are ratios of medians: 0/0 is 1, x/0 is \
         inf.",
        "Per operation (/o) means per statement, including BEGIN and COMMIT, and per 1000 rows for \
         scan. cpu/o is per cent of the whole host's CPU per operation per second: multiply by \
         CPUs and 10000 for microseconds. It includes the client; server_cpu_us/o and \
         client_cpu_us/o separate the two.",
        "Group summaries cover the relative rates of the reported steps except the steps before \
         the writes (.pre); stddev is the sample standard deviation. They describe these steps \
         only.",
    ];
    if comparison.steps.iter().any(|step| step.rate == RateUnit::Transactions) {
        rules.push(
            "A rate in tps counts transactions: there, per operation (/o) means per transaction.",
        );
    }
    Section::how_to_read("how-to-read", rules.into_iter().map(str::to_owned).collect())
}

/// The hooks of one benchmark. Each is asked about every comparison or workload, and returns
/// nothing where it has nothing to say.
#[derive(Clone, Copy, Debug)]
pub struct Sections {
    /// Returns the workload in one line; its caches are given in words.
    pub workload: fn(&Workload, &str) -> Option<String>,
    /// Returns the sections of a comparison.
    pub sections: fn(&Comparison) -> Vec<Section>,
}

impl Sections {
    /// A benchmark that adds nothing.
    pub const NONE: Sections = Sections { workload: |_, _| None, sections: |_| Vec::new() };
}
