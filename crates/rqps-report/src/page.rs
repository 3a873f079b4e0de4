//! The section order of the HTML report: the summary, the overview, each step, and then the
//! evidence.

use super::document::{Block, Cell, Column, Digits, Document, Fold, Section, Table};
use super::timeline::SecondsOf;
use crate::build::Sections;
use crate::ladder::Extent;
use crate::{
    blocks, build, counted, crossing, explain, facts, figures, heat, history, other_metrics,
    remarks, sessions, settings, tables, terms, timeline, verdicts,
};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::StepComparison;
use rqps_analysis::counted::is_counted;
use rqps_analysis::verdict::TargetVerdicts;
use rqps_model::metric::Metric;
use rqps_model::run::Dataset;
use rqps_model::verdict::Verdict;
use rqps_stats::parallel;

/// Reports with at most this many targets name each one.
const LISTED_MAX: usize = 5;

/// Builds the report. `seconds` returns the rows of each step; it runs on all CPUs.
pub(super) fn document(
    comparison: &Comparison,
    dataset: &Dataset,
    seconds: &SecondsOf,
    own: &[&Sections],
) -> Document {
    if is_counted(comparison) {
        return build::of_count(comparison, own, Extent::Whole);
    }
    let mut sections = vec![verdict(comparison)];
    sections.extend(build::loud_caveats(comparison));
    match heat::overview(comparison) {
        Some(heat) => sections.push(Section {
            id: "overview",
            heading: "Overview".to_owned(),
            blocks: vec![Block::Heat(heat)],
        }),
        None => sections.push(tables::rates(comparison)),
    }
    sections.extend(history::of_report(comparison, Metric::Rate));
    sections.extend(groups(comparison));
    sections.extend(crossing::section(comparison));
    sections.extend(verdict_details(comparison));
    sections.extend(sessions::section(comparison));
    sections.extend(counted::beside_rates(comparison, Extent::Whole));
    sections.extend(build::of_benchmarks(comparison, own));
    sections.extend(steps(comparison, dataset, seconds));
    sections.extend(settings::section(comparison));
    sections.extend(explain::server_settings(comparison));
    sections.extend(settings::plans(comparison));
    sections.extend(tables::load(comparison));
    sections.extend(other_metrics::section(comparison, &sections));
    sections.extend(remarks::section(comparison));
    sections.extend(build::caveats(comparison));
    sections.extend(blocks::section(comparison));
    sections.push(Section { heading: "Setup".to_owned(), ..facts::section(comparison, own) });
    sections.extend(facts::hosts(comparison));
    sections.push(method(comparison));
    sections.extend(terms::section(comparison));
    sections.push(facts::run_folders(comparison));
    Document { title: build::title(comparison), sections }
}

/// The summary: a sentence, and for each target the number of steps per verdict.
fn verdict(comparison: &Comparison) -> Section {
    let summary = &comparison.summary;
    let mut blocks = Vec::new();
    if !summary.targets.is_empty() {
        blocks.push(Block::Paragraph(headline(comparison)));
    }
    let sentences = [&summary.about, &summary.limit].into_iter().filter(|it| !it.is_empty());
    blocks.extend(sentences.map(|sentence| Block::Paragraph(sentence.clone())));
    if summary.targets.len() > 1 {
        let mut columns = vec![Column::words("target"), Column::numbers("geomean rQPS")];
        columns.extend(Verdict::ALL.map(|verdict| Column::numbers(verdict.name())));
        let rows = summary.targets.iter().map(counts).collect();
        let caption = format!("Steps by verdict ({})", comparison.rules.text());
        blocks.push(Block::Table(Table { caption, columns, rows }));
    }
    Section { id: "verdict", heading: String::new(), blocks }
}

/// The summary's sentence. For many targets, which are listed below it, their number and the worst.
fn headline(comparison: &Comparison) -> String {
    let summary = &comparison.summary;
    let untested = summary.targets.iter().all(|target| {
        let rates = target.metrics.get(&Metric::Rate).map(|family| family.counts);
        rates.is_none_or(|rates| rates.no_verdict == rates.total())
    });
    if summary.targets.len() < LISTED_MAX || summary.boring || untested {
        return summary.sentence.clone();
    }
    let slower = |target: &TargetVerdicts| {
        target.metrics.get(&Metric::Rate).map_or(0, |family| family.counts.of(Verdict::Slower))
    };
    let worse = summary.targets.iter().filter(|target| slower(target) > 0).count();
    let worst = summary.targets.iter().max_by_key(|target| slower(target));
    match worst {
        Some(worst) if worse > 0 => format!(
            "{worse} of {} targets {} SLOWER than {} on some steps, most on {} ({} of {}).",
            summary.targets.len(),
            if worse == 1 { "is" } else { "are" },
            comparison.baseline,
            worst.label,
            slower(worst),
            comparison.steps.len(),
        ),
        _ => format!(
            "None of {} targets is SLOWER than {} on any of {} steps.",
            summary.targets.len(),
            comparison.baseline,
            comparison.steps.len(),
        ),
    }
}

fn counts(target: &TargetVerdicts) -> Vec<Cell> {
    let geomean = target.geomean.map_or(Cell::missing("no ratio"), |mean| {
        Cell::number(mean.ratio, Digits::Fixed(3), "ratio")
            .within(mean.interval)
            .toned(Some(mean.ratio.ln()))
    });
    let rates = target.metrics.get(&Metric::Rate).map(|family| family.counts).unwrap_or_default();
    let mut cells = vec![Cell::text(target.label.clone()), geomean];
    cells.extend(
        Verdict::ALL.map(|verdict| Cell::number(rates.of(verdict) as f64, Digits::Fixed(0), "")),
    );
    cells
}

/// For each target: the differences, their associated costs, and the undecided steps. Folded if
/// there are many targets.
fn verdict_details(comparison: &Comparison) -> Option<Section> {
    let targets = &comparison.summary.targets;
    let mut blocks = Vec::new();
    for (index, target) in targets.iter().enumerate() {
        let differences = verdicts::differences(comparison, index + 1, &target.label);
        let mut tables: Vec<Block> = differences.into_iter().map(Block::Table).collect();
        tables.extend(verdicts::open(comparison, index + 1, &target.label));
        if targets.len() < LISTED_MAX || tables.is_empty() {
            blocks.extend(tables);
        } else {
            let summary = format!("{}: {}", target.label, target.sentence);
            blocks.push(Block::Fold(Fold { summary, blocks: tables }));
        }
    }
    if !targets.is_empty() {
        blocks.push(Block::Table(verdicts::counts(targets)));
    }
    let heading = "Verdicts in detail".to_owned();
    (!blocks.is_empty()).then_some(Section { id: "verdicts", heading, blocks })
}

/// The rule with its figures, then the definitions of the numbers.
fn method(comparison: &Comparison) -> Section {
    let mut blocks = vec![Block::Paragraph(verdicts::rule(comparison))];
    blocks.extend(build::how_to_read(comparison).blocks);
    Section { id: "method", heading: "Method".to_owned(), blocks }
}

/// A chart for each group, and the group summaries.
fn groups(comparison: &Comparison) -> Option<Section> {
    let mut blocks: Vec<Block> =
        figures::relative_rates(comparison).into_iter().map(Block::Chart).collect();
    blocks.extend(tables::summary(comparison).into_iter().flat_map(|section| section.blocks));
    let heading = "Relative rate by group".to_owned();
    (!blocks.is_empty()).then_some(Section { id: "groups", heading, blocks })
}

/// Each step, folded.
fn steps(comparison: &Comparison, dataset: &Dataset, seconds: &SecondsOf) -> Option<Section> {
    let fold = |step| Block::Fold(step_fold(comparison, dataset, step, seconds));
    let blocks = parallel::map(comparison.steps.iter().collect(), fold);
    let heading = "Steps one by one".to_owned();
    (!blocks.is_empty()).then_some(Section { id: "steps", heading, blocks })
}

fn step_fold(
    comparison: &Comparison,
    dataset: &Dataset,
    step: &StepComparison,
    seconds: &SecondsOf,
) -> Fold {
    let mut blocks = Vec::new();
    if !step.detail.is_empty() {
        blocks.push(Block::Paragraph(step.detail.clone()));
    }
    blocks.push(Block::Table(tables::results_of(step)));
    let explained = explain::of_step(comparison, step);
    if explained.is_empty() {
        blocks.extend(why(step))
    } else {
        blocks.extend(explained)
    }
    let charts = timeline::charts(comparison, dataset, step, seconds);
    blocks.extend(charts.into_iter().map(Block::Chart));
    blocks.extend(tables::efficiency_of(comparison, step));
    Fold { summary: step.name.clone(), blocks }
}

/// Costs associated with the rate.
fn why(step: &StepComparison) -> Option<Block> {
    let mut points = Vec::new();
    for target in step.targets.iter().filter(|target| !target.explanations.is_empty()) {
        let costs: Vec<String> = target
            .explanations
            .iter()
            .map(|cost| {
                let ratio = Cell::number(cost.ratio, Digits::Fixed(2), "ratio");
                let ratio = ratio.within(Some(cost.interval)).plain();
                let detail = cost.detail.iter().map(|detail| format!(" ({detail})"));
                format!("{} {ratio}{}", cost.metric.name(), detail.collect::<String>())
            })
            .collect();
        points.push(format!(
            "{}: costs associated with the rate: {}",
            target.label,
            costs.join(", ")
        ));
    }
    (!points.is_empty()).then_some(Block::List(points))
}
