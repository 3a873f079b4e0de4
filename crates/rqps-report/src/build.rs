//! Builds the document of a report from a comparison, and that of the HTML form.

use std::collections::BTreeSet;

use super::document::{Block, Cell, Column, Digits, Document, Fold, Section, Table, overview};
use super::tables::{self, Extent, absolute};
use super::timeline::{self, SecondsOf};
use super::{blocks, brief, clients, counted, explain, facts, families, history, verdicts};
use rqps_analysis::caveat::CaveatKind;
use rqps_analysis::comparison::{StepComparison, TargetResult};
use rqps_analysis::counted::is_counted;
use rqps_analysis::verdict::TargetVerdicts;
use rqps_analysis::{Caveat, Comparison};
use rqps_model::benchmark::{RateUnit, Workload};
use rqps_model::metric::{Direction, Metric};
use rqps_model::run::Dataset;
use rqps_model::verdict::Verdict;
use rqps_stats::parallel;

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
    sections.extend(blocks::sessions_section(comparison));
    sections.push(tables::rates(comparison));
    sections.extend(history::of_report(comparison, Metric::Rate));
    sections.extend(tables::summary(comparison));
    sections.extend(families::section(comparison));
    sections.extend(counted::beside_rates(comparison, Extent::Short));
    sections.extend(of_benchmarks(comparison, own));
    if options.efficiency {
        sections.extend(tables::efficiency(comparison));
    }
    sections.extend(tables::latency(comparison));
    sections.extend(blocks::evenness_section(comparison));
    sections.extend(tables::load(comparison));
    if options.efficiency {
        sections.extend(section(comparison, &sections));
    }
    sections.extend(facts::remarks_section(comparison));
    sections.extend(caveats(comparison));
    sections.extend(blocks::section(comparison));
    sections.push(how_to_read(comparison));
    sections.extend(tables::details(comparison));
    sections.extend(facts::terms_section(comparison));
    sections.push(facts::run_folders(comparison));
    Document { title: title(comparison), sections }
}

/// Builds the page about the steps that are explained.
pub fn explanation(comparison: &Comparison) -> Document {
    let title = format!("{}: what may explain it", title(comparison));
    Document { title, sections: explain::sections(comparison) }
}

/// Builds the report of counted runs, which have no rates.
fn of_count(comparison: &Comparison, own: &[&Sections], extent: Extent) -> Document {
    let mut sections = Vec::new();
    sections.extend(loud_caveats(comparison));
    sections.push(facts::section(comparison, own));
    sections.extend(counted::sections(comparison, extent));
    sections.extend(caveats(comparison));
    sections.extend(explain::settings_section(comparison));
    sections.extend(facts::terms_section(comparison));
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
        explain::settings_section(comparison),
        explain::server_settings(comparison),
    ];
    document.sections.splice(before_runs..before_runs, added.into_iter().flatten());
    document
}

/// The title of a report.
pub(super) fn title(comparison: &Comparison) -> String {
    format!("rqps: {}", subject(comparison))
}

/// The comparison in one line. Many targets appear as a number, because every table lists them.
pub(super) fn subject(comparison: &Comparison) -> String {
    let labels: Vec<&str> = comparison.targets.iter().map(|t| t.label.as_str()).collect();
    match labels.split_first() {
        Some((baseline, others)) if tables::is_ladder(comparison) => {
            format!("{} targets relative to {baseline}", others.len())
        }
        Some((baseline, others)) if !others.is_empty() => {
            format!("{} relative to {baseline}", others.join(", "))
        }
        _ => labels.join(", "),
    }
}

/// Sections of single benchmarks, for every form of report; empty if the comparison has no such
/// steps.
pub(super) fn of_benchmarks(comparison: &Comparison, own: &[&Sections]) -> Vec<Section> {
    let mut sections: Vec<Section> =
        own.iter().flat_map(|hooks| (hooks.sections)(comparison)).collect();
    sections.extend(clients::scaling_section(comparison));
    sections.extend(blocks::turns_section(comparison));
    sections.extend(clients::section(comparison));
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
    (!points.is_empty()).then(|| {
        Section::new(
            "warnings",
            "WARNING: these numbers may not be comparable",
            vec![Block::List(points)],
        )
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
    (!blocks.is_empty()).then(|| Section::new("caveats", "Caveats", blocks))
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

// The section order of the HTML report: the summary, the overview, each step, and then the
// evidence.

/// Reports with at most this many targets name each one.
const LISTED_MAX: usize = 5;
/// Steps whose causes stand before all details.
const EXPLAINED_MOST: usize = 3;

/// Builds the report. `seconds` returns the rows of each step; it runs on all CPUs.
pub(super) fn page_document(
    comparison: &Comparison,
    dataset: &Dataset,
    seconds: &SecondsOf,
    own: &[&Sections],
) -> Document {
    if is_counted(comparison) {
        return of_count(comparison, own, Extent::Whole);
    }
    let mut sections = vec![verdict(comparison)];
    sections.extend(loud_caveats(comparison));
    match overview(comparison) {
        Some(heat) => sections.push(Section::new("overview", "Overview", vec![Block::Heat(heat)])),
        None => sections.push(tables::rates(comparison)),
    }
    sections.extend(worst(comparison));
    sections.extend(history::of_report(comparison, Metric::Rate));
    sections.extend(groups(comparison));
    sections.extend(families::section(comparison));
    sections.extend(verdict_details(comparison));
    sections.extend(blocks::sessions_section(comparison));
    sections.extend(counted::beside_rates(comparison, Extent::Whole));
    sections.extend(of_benchmarks(comparison, own));
    sections.extend(steps(comparison, dataset, seconds));
    sections.extend(explain::settings_section(comparison));
    sections.extend(explain::server_settings(comparison));
    sections.extend(explain::settings_plans(comparison));
    sections.extend(tables::load(comparison));
    sections.extend(section(comparison, &sections));
    sections.extend(facts::remarks_section(comparison));
    sections.extend(caveats(comparison));
    sections.extend(blocks::section(comparison));
    sections.push(Section { heading: "Setup".to_owned(), ..facts::section(comparison, own) });
    sections.extend(facts::hosts(comparison));
    sections.push(method(comparison));
    sections.extend(facts::terms_section(comparison));
    sections.push(facts::run_folders(comparison));
    Document { title: title(comparison), sections }
}

/// What went with the largest losses.
fn worst(comparison: &Comparison) -> Option<Section> {
    let lost = |step: &&StepComparison| {
        let rates = step.targets.iter().filter_map(|target| target.judgement(Metric::Rate));
        rates.into_iter().any(|rate| matches!(rate.verdict, Verdict::Slower | Verdict::SlowerSmall))
    };
    let steps = timeline::by_loss(comparison.steps.iter().filter(lost)).into_iter();
    let blocks: Vec<Block> = steps
        .take(EXPLAINED_MOST)
        .filter_map(|step| Some([Block::Paragraph(step.name.clone()), why(step)?]))
        .flatten()
        .collect();
    (!blocks.is_empty()).then(|| Section::new("why", "Why the worst may have lost", blocks))
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
    let (decisive, _) = brief::decisive(comparison, false);
    let quiet = decisive.into_iter().filter(|(kind, _)| !kind.is_loud()).take(brief::CAVEATS);
    let quiet: Vec<String> = quiet.map(|(_, line)| line).collect();
    if !quiet.is_empty() {
        blocks.push(Block::List(quiet));
    }
    if summary.targets.len() > 1 {
        let mut columns = vec![Column::words("target"), Column::numbers("geomean rQPS")];
        columns.extend(Verdict::ALL.map(|verdict| Column::numbers(verdict.name())));
        let rows = summary.targets.iter().map(counts).collect();
        let caption = format!("Steps by verdict ({})", comparison.rules.text());
        blocks.push(Block::table(caption, columns, rows));
    }
    Section::new("verdict", "", blocks)
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
            blocks.push(Block::fold(summary, tables));
        }
    }
    if !targets.is_empty() {
        blocks.push(Block::Table(verdicts::counts(targets)));
    }
    (!blocks.is_empty()).then_some(Section::new("verdicts", "Verdicts in detail", blocks))
}

/// The rule with its figures, then the definitions of the numbers.
fn method(comparison: &Comparison) -> Section {
    let mut blocks = vec![Block::Paragraph(verdicts::rule(comparison))];
    blocks.extend(how_to_read(comparison).blocks);
    Section::new("method", "Method", blocks)
}

/// A chart for each group, and the group summaries.
fn groups(comparison: &Comparison) -> Option<Section> {
    let mut blocks: Vec<Block> =
        timeline::relative_rates(comparison).into_iter().map(Block::Chart).collect();
    blocks.extend(tables::summary(comparison).into_iter().flat_map(|section| section.blocks));
    (!blocks.is_empty()).then_some(Section::new("groups", "Relative rate by group", blocks))
}

/// Each step, folded.
fn steps(comparison: &Comparison, dataset: &Dataset, seconds: &SecondsOf) -> Option<Section> {
    let fold = |step| Block::Fold(step_fold(comparison, dataset, step, seconds));
    let blocks = parallel::map(comparison.steps.iter().collect(), fold);
    (!blocks.is_empty()).then_some(Section::new("steps", "Steps one by one", blocks))
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

// Metrics that no other section shows.

/// Metrics with values that none of `sections` shows: what they are, and a row for each step and
/// target.
pub(super) fn section(comparison: &Comparison, sections: &[Section]) -> Option<Section> {
    let mut shown = BTreeSet::new();
    sections.iter().for_each(|section| add_shown(&section.blocks, &mut shown));
    let is_left = |metric: &Metric| !shown.contains(metric);
    let metrics: Vec<Metric> = with_values(comparison).into_iter().filter(is_left).collect();
    (!metrics.is_empty()).then(|| {
        Section::new(
            "other-metrics",
            "Other metrics",
            vec![Block::Table(meanings(&metrics)), Block::Table(values(comparison, &metrics))],
        )
    })
}

/// Adds the metrics that tables have a column for. Charts and the overview do not count: not every
/// form can draw them.
fn add_shown(blocks: &[Block], shown: &mut BTreeSet<Metric>) {
    for block in blocks {
        match block {
            Block::Table(table) => shown.extend(table.columns.iter().filter_map(|it| it.metric)),
            Block::Fold(fold) => add_shown(&fold.blocks, shown),
            _ => {}
        }
    }
}

/// The metrics that any target has a value of.
fn with_values(comparison: &Comparison) -> BTreeSet<Metric> {
    let of_target = |target: &TargetResult| -> Vec<Metric> {
        let metrics = target.metrics.keys().copied();
        metrics.filter(|metric| target.absolute(*metric).is_some()).collect()
    };
    let targets = comparison.measured_steps().flat_map(|step| &step.targets);
    targets.flat_map(of_target).collect()
}

fn meanings(metrics: &[Metric]) -> Table {
    let better = |metric: &Metric| match metric.better() {
        Direction::Higher => "higher",
        Direction::Lower => "lower",
        Direction::Neither => "-",
    };
    let row = |metric: &Metric| {
        [metric.name(), metric.unit(), better(metric), metric.spec().meaning]
            .map(Cell::text)
            .to_vec()
    };
    Table::new(
        "Units and meanings",
        ["metric", "unit", "better", "meaning"].map(Column::words).to_vec(),
        metrics.iter().map(row).collect(),
    )
}

/// Medians over the runs.
fn values(comparison: &Comparison, metrics: &[Metric]) -> Table {
    let mut columns: Vec<Column> = metrics.iter().map(|metric| Column::of(*metric)).collect();
    columns.extend([Column::words("target"), Column::words("step")]);
    let mut rows = Vec::new();
    for step in comparison.measured_steps() {
        for target in &step.targets {
            if metrics.iter().all(|metric| target.absolute(*metric).is_none()) {
                continue;
            }
            let cell = |metric: &Metric| absolute(target, *metric, metric.digits(), metric.unit());
            let mut cells: Vec<Cell> = metrics.iter().map(cell).collect();
            cells.extend([&target.label, &step.name].map(Cell::text));
            rows.push(cells);
        }
    }
    Table::new("Medians over the runs", columns, rows)
}
