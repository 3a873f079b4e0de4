//! The tables of a report.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::document::{
    Block, Cell, CellValue, Column, Digits, Mark, Placed, Section, Table, numbers, words,
};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::{
    GroupSummary, Relative, StepComparison, TargetFacts, TargetResult, TargetSummary,
};
use rqps_analysis::measurement::rate_unit;
use rqps_model::benchmark::Group;
use rqps_model::metric::{Class, Direction, Metric, MetricSpec};
use rqps_model::run::LoadRecord;
use rqps_model::verdict::Verdict;
use rqps_stats::summary::Summary;

/// The columns of costs per operation: the published ones in the order of o.met files, then those
/// of rqps.
pub(super) fn efficiency_metrics() -> Vec<Metric> {
    let in_table =
        |spec: &MetricSpec| spec.common && [Class::Rate, Class::Cost].contains(&spec.class);
    let mut metrics: Vec<Metric> = Metric::which(in_table).collect();
    let place = |metric: &Metric| metric.spec().place.unwrap_or(u8::MAX);
    metrics.sort_by_key(place);
    metrics
}

/// The legend of columns and one table for each group.
pub fn rates(comparison: &Comparison) -> Section {
    let heading = "Relative rate (rQPS)".to_owned();
    if is_ladder(comparison) {
        let mut blocks = narrow_rates(comparison);
        blocks.extend(effective_rates(comparison).map(Block::Table));
        return Section::new("rates", heading, blocks);
    }
    let mut legend = vec![format!("Relative to: {}", comparison.baseline)];
    for (index, target) in comparison.targets.iter().skip(1).enumerate() {
        legend.push(format!("col-{} : {}", index + 1, target.label));
    }
    let mut blocks = vec![Block::Lines(legend)];
    for group in comparison.groups_of_steps() {
        let steps: Vec<&StepComparison> =
            comparison.steps.iter().filter(|step| step.group == group).collect();
        blocks.push(Block::Table(rate_table(comparison, group, &steps)));
    }
    blocks.extend(effective_rates(comparison).map(Block::Table));
    Section::new("rates", heading, blocks)
}

/// One narrow column for each target, with a sign for its verdict. The section of verdicts has the
/// intervals.
fn narrow_rates(comparison: &Comparison) -> Vec<Block> {
    // Imported results have no verdicts, and then no room for signs.
    let judged = comparison.summary.targets.iter().filter_map(|it| it.metrics.get(&Metric::Rate));
    let tested = judged.map(|it| it.counts).any(|counts| counts.no_verdict < counts.total());
    let sign = |step: &StepComparison, at: usize| {
        let judgement = step.targets[at].judgement(Metric::Rate)?;
        let sign = match judgement.verdict {
            Verdict::Slower => "--",
            Verdict::SlowerSmall => "- ",
            Verdict::Faster => "++",
            Verdict::FasterSmall => "+ ",
            Verdict::Same => "= ",
            Verdict::Inconclusive => "? ",
            Verdict::NoVerdict => "  ",
        };
        let meaning = judgement.verdict.name();
        tested.then_some(Mark { sign, colour: Mark::NO_COLOUR, meaning })
    };
    let mut blocks = vec![Block::Paragraph(format!(
        "Rates of {} in the first column, then those of the other targets relative to it. \
         -- SLOWER, - SLOWER-SMALL, ++ FASTER, + FASTER-SMALL, = SAME, ? INCONCLUSIVE, no sign: \
         NO VERDICT. Intervals are in the section Verdicts and in the form csv.",
        comparison.baseline
    ))];
    let rows = |group: Group| -> StepRows<'_> {
        let steps = comparison.steps.iter().filter(|step| step.group == group);
        (group.name().to_owned(), steps.collect())
    };
    let groups: Vec<StepRows<'_>> = comparison.groups_of_steps().into_iter().map(rows).collect();
    let tables = NarrowTables {
        metric: Metric::Rate,
        digits: Digits::Fixed(2),
        is_cost: false,
        absolute: &|step| {
            absolute(&step.targets[0], Metric::Rate, Digits::Fixed(0), rate_unit(step.rate))
        },
        sign: &sign,
    };
    blocks.extend(tables.blocks(comparison, &groups));
    blocks
}

/// The rate of writes that changed a row, beside the rate of all writes, for steps in which some
/// changed none.
pub fn effective_rates(comparison: &Comparison) -> Option<Table> {
    let metric = Metric::EffectiveRate;
    let rows = comparison.steps.iter().flat_map(|step| {
        let has = step.targets.iter().filter(|target| target.absolute(metric).is_some());
        has.map(move |target| {
            let rate = |metric| absolute(target, metric, Digits::Fixed(0), "");
            let relative =
                target.relative(metric).map(|_| judged(target, metric, Digits::Fixed(3)));
            let verdict = target.judgement(metric).map_or("", |it| it.verdict.word(metric));
            [
                (Column::numbers("o/s").showing(Metric::Rate), rate(Metric::Rate)),
                (Column::numbers("effective o/s").showing(metric), rate(metric)),
                numbers("relative", relative.unwrap_or_else(|| Cell::text(""))),
                words("verdict", Cell::text(verdict)),
                words("step", Cell::text(step.name.clone())),
                words("target", Cell::text(target.label.clone())),
            ]
        })
    });
    Table::of("--- writes that changed a row: the rate without no-ops", rows)
}

fn rate_table(comparison: &Comparison, group: Group, steps: &[&StepComparison]) -> Table {
    let baseline = Column::numbers("baseline").showing(Metric::Rate);
    let mut columns = vec![baseline, Column::words("unit")];
    for index in 1..comparison.targets.len() {
        columns.push(Column::numbers(format!("col-{index}")));
        columns.push(Column::numbers("n"));
        columns.push(Column::words("verdict"));
    }
    columns.push(Column::words("step"));
    let rows = steps.iter().map(|step| {
        let unit = rate_unit(step.rate);
        let baseline = &step.targets[0];
        let mut cells = vec![absolute(baseline, Metric::Rate, Digits::Fixed(0), unit)];
        cells.push(Cell::text(unit));
        for target in &step.targets[1..] {
            let judgement = target.judgement(Metric::Rate);
            cells.push(judged(target, Metric::Rate, Digits::Fixed(3)));
            let pairs = target.relative(Metric::Rate).map(|relative| relative.pairs);
            cells.push(match pairs {
                Some(pairs) => Cell::number(pairs as f64, Digits::Fixed(0), ""),
                None => Cell::missing("not compared"),
            });
            cells.push(match judgement {
                Some(judgement) => Cell::text(judgement.verdict.name()),
                None => Cell::missing("not compared"),
            });
        }
        cells.push(Cell::text(step.name.clone()));
        cells
    });
    let caption =
        format!("{} (baseline: {}; [low, high]: 95 % interval)", group.name(), comparison.baseline);
    Table::new(caption, columns, rows.collect())
}

/// The median over the runs.
pub fn absolute(target: &TargetResult, metric: Metric, digits: Digits, unit: &'static str) -> Cell {
    let cell = match target.absolute(metric) {
        Some(number) => Cell::number(number, digits, unit),
        None => Cell::missing(why_missing(target, metric)),
    };
    cell.from_runs(Arc::clone(&target.folders))
}

/// Note beside a ratio without a verdict.
const NOT_COMPARABLE: Mark =
    Mark { sign: " ?", colour: "#D7D7D7", meaning: "not comparable: see the verdict" };

/// Target / baseline; a failed measurement shows a word instead of a dash.
fn relative(target: &TargetResult, metric: Metric, digits: Digits) -> Cell {
    let cell = match target.relative(metric) {
        // Published tables print a ratio of two zeros as 1 without decimals.
        Some(relative) if is_zero_by_zero(target, metric, relative.ratio) => Cell::text("1"),
        Some(relative) => Cell::number(relative.ratio, digits, "ratio").within(relative.interval),
        None if target.samples.is_empty() && !target.failures.is_empty() => Cell::text("failed"),
        None => Cell::missing(why_missing(target, metric)),
    };
    let void = target.is_void(metric).then_some(NOT_COMPARABLE);
    cell.toned(tone(target, metric)).marked(void).from_runs(Arc::clone(&target.folders))
}

/// ln(ratio), with the sign turned so that more is better; `None` if neither direction is.
fn tone(target: &TargetResult, metric: Metric) -> Option<f64> {
    let ln = target.comparable(metric)?.ratio.ln();
    match metric.better() {
        Direction::Higher => Some(ln),
        Direction::Lower => Some(-ln),
        Direction::Neither => None,
    }
}

fn is_zero_by_zero(target: &TargetResult, metric: Metric, ratio: f64) -> bool {
    ratio == 1.0 && target.absolute(metric) == Some(0.0)
}

fn why_missing(target: &TargetResult, metric: Metric) -> String {
    let result = target.metrics.get(&metric);
    let why = result.and_then(|result| result.missing.clone());
    why.unwrap_or_else(|| "not measured".to_owned())
}

/// A figure of a summary: its name, digits, and how it is read.
type SummaryFigure = (&'static str, usize, fn(&Summary) -> Option<f64>);

const SUMMARY_FIGURES: [SummaryFigure; 6] = [
    ("min", 2, |it| Some(it.min)),
    ("max", 2, |it| Some(it.max)),
    ("average", 2, |it| Some(it.average)),
    ("median", 2, |it| Some(it.median)),
    ("stddev", 3, |it| it.stddev),
    ("geomean", 2, |it| it.geomean),
];

/// min, max, average, median and stddev of each group and number of clients: of one target in a
/// line for each group, of several in a column for each target.
pub fn summary(comparison: &Comparison) -> Option<Section> {
    let groups: Vec<&GroupSummary> = comparison
        .groups
        .iter()
        .filter(|group| group.targets.iter().any(|target| target.summary.is_some()))
        .collect();
    let figure = |target: &TargetSummary, (_, digits, read): &SummaryFigure| match target
        .summary
        .as_ref()
        .map(read)
    {
        Some(Some(number)) => Cell::number(number, Digits::Fixed(*digits), "ratio"),
        Some(None) => Cell::missing("needs more than one positive ratio"),
        None => Cell::missing("no ratio"),
    };
    let steps = |group: &GroupSummary, target: &TargetSummary| {
        let measured = target.summary.as_ref().map_or(0, |summary| summary.n);
        Cell::text(match measured == group.steps {
            true => measured.to_string(),
            false => format!("{measured} of {}", group.steps),
        })
    };
    let mut blocks = Vec::new();
    let mut columns = vec![Column::words("group")];
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    let mut caption = String::new();
    if let [_, only] = comparison.targets.as_slice() {
        caption = format!("col-1 : {}", only.label);
        let heads = SUMMARY_FIGURES.iter().map(|(name, ..)| *name);
        columns.extend(std::iter::once("steps").chain(heads).map(Column::numbers));
        for group in &groups {
            let cells = group.targets.iter().flat_map(|target| {
                let figures = SUMMARY_FIGURES.iter().map(|it| figure(target, it));
                std::iter::once(steps(group, target)).chain(figures)
            });
            rows.push(std::iter::once(Cell::text(group.name())).chain(cells).collect());
        }
    } else {
        let names = short_names(&comparison.targets).into_iter().skip(1);
        let heads = heads(names, "point.clients=24  geomean".len());
        if heads.numbered {
            let labels = comparison.targets.iter().skip(1).zip(&heads.names);
            let legend = labels.map(|(target, name)| format!("{name}: {}", target.label));
            blocks.push(Block::Lines(legend.collect()));
        }
        columns.push(Column::words("figure"));
        columns.extend(heads.names.into_iter().map(Column::numbers));
        for group in &groups {
            let counts = group.targets.iter().map(|target| steps(group, target));
            let row = |name: &str, cells: Vec<Cell>| {
                [Cell::text(group.name()), Cell::text(name)].into_iter().chain(cells).collect()
            };
            rows.push(row("steps", counts.collect()));
            for it in &SUMMARY_FIGURES {
                let cells = group.targets.iter().map(|target| figure(target, it));
                rows.push(row(it.0, cells.collect()));
            }
        }
    }
    if rows.is_empty() {
        return None;
    }
    blocks.push(Block::table(caption, columns, rows));
    Some(Section::new("summary", "Relative rates by group", blocks))
}

/// The layout of published o.met files: for each step the absolute values, then those relative to
/// the baseline.
pub fn efficiency(comparison: &Comparison) -> Option<Section> {
    let mut blocks = Vec::new();
    for step in &comparison.steps {
        let tables = efficiency_of(comparison, step);
        if !tables.is_empty() {
            blocks.push(Block::Lines(vec![step.name.clone()]));
            blocks.extend(tables);
        }
    }
    (!blocks.is_empty())
        .then(|| Section::new("efficiency", "Efficiency: cost per operation", blocks))
}

/// One step: absolute values, then those relative to the baseline. A target has no row if it was
/// not measured (steps named after parameters of an index exist on one DBMS only), or if only its
/// rate is known, which is in the tables of rates.
pub fn efficiency_of(comparison: &Comparison, step: &StepComparison) -> Vec<Block> {
    let metrics = efficiency_metrics();
    let cell = |target: &TargetResult, metric: Metric, is_relative: bool| {
        if is_relative {
            without_interval(relative(target, metric, Digits::Ratio))
        } else {
            absolute(target, metric, metric.digits(), "")
        }
    };
    let rows = |is_relative: bool| -> Vec<Vec<Cell>> {
        let mut rows = Vec::new();
        for target in &step.targets {
            let has_any = if is_relative {
                metrics.iter().any(|metric| target.relative(*metric).is_some())
            } else {
                target.was_carried_out()
            };
            let mut cells: Vec<Cell> =
                metrics.iter().map(|metric| cell(target, *metric, is_relative)).collect();
            let beside = metrics.iter().zip(&cells).filter(|(metric, _)| **metric != Metric::Rate);
            if has_any && !is_all_missing(beside.map(|(_, cell)| cell)) {
                cells.push(Cell::text(target.label.clone()));
                rows.push(cells);
            }
        }
        rows
    };
    let mut columns: Vec<Column> = metrics.iter().map(|metric| Column::of(*metric)).collect();
    columns.push(Column::words("target"));
    let table = |caption: &str, rows: Vec<Vec<Cell>>| Block::table(caption, columns.clone(), rows);
    let (absolute, relative) = (rows(false), rows(true));
    let mut blocks = Vec::new();
    if !absolute.is_empty() {
        blocks.push(table("--- absolute", absolute));
    }
    if !relative.is_empty() {
        blocks.push(table(&format!("--- relative to {}", comparison.baseline), relative));
    }
    blocks
}

/// Returns true for a row without useful numbers.
fn is_all_missing<'a>(mut cells: impl Iterator<Item = &'a Cell>) -> bool {
    cells.all(|cell| matches!(cell.value, CellValue::Missing(_)))
}

fn without_interval(cell: Cell) -> Cell {
    Cell { interval: None, ..cell }
}

/// Target / baseline with the interval of its verdict.
pub fn judged(target: &TargetResult, metric: Metric, digits: Digits) -> Cell {
    let interval = target.relative(metric).and_then(Relative::shown_interval);
    relative(target, metric, digits).within(interval)
}

/// One step in detail: rates with their verdicts, and latencies.
pub fn results_of(step: &StepComparison) -> Table {
    let percentiles: Vec<Metric> = Metric::percentiles().collect();
    let rate = Column::numbers(rate_unit(step.rate)).showing(Metric::Rate);
    let mut columns = vec![Column::words("target"), rate];
    columns.push(Column::numbers("rQPS"));
    columns.extend([Column::numbers("n"), Column::words("verdict")]);
    columns.extend(percentiles.iter().map(|metric| Column::of(*metric)));
    columns.push(Column::numbers("relative p99"));
    let row = |(index, target): (usize, &TargetResult)| {
        let verdict = target.judgement(Metric::Rate);
        let pairs = target.relative(Metric::Rate).map(|relative| relative.pairs as f64);
        let rate = absolute(target, Metric::Rate, Digits::Fixed(0), "");
        let mut cells = vec![Cell::text(target.label.clone()), rate];
        cells.extend(match index {
            0 => [Cell::text("baseline"), Cell::text(""), Cell::text("")],
            _ => [
                judged(target, Metric::Rate, Digits::Fixed(3)),
                pairs.map_or(Cell::missing("not compared"), |pairs| {
                    Cell::number(pairs, Digits::Fixed(0), "")
                }),
                Cell::text(verdict.map_or("", |judgement| judgement.verdict.name())),
            ],
        });
        for metric in &percentiles {
            cells.push(absolute(target, *metric, metric.digits(), metric.unit()));
        }
        cells.push(match index {
            0 => Cell::text("baseline"),
            _ => judged(target, Metric::P99, Digits::Fixed(2)),
        });
        cells
    };
    let rows = step.targets.iter().enumerate().map(row).collect();
    Table::new("", columns, rows)
}

/// Percentiles of every step, and the relative 99th percentile with its interval.
pub fn latency(comparison: &Comparison) -> Option<Section> {
    let metrics: Vec<Metric> = Metric::percentiles().collect();
    let mut rows = Vec::new();
    for step in &comparison.steps {
        for (index, target) in step.targets.iter().enumerate() {
            let cell = |metric: &Metric| absolute(target, *metric, metric.digits(), metric.unit());
            let cells: Vec<Cell> = metrics.iter().map(cell).collect();
            if is_all_missing(cells.iter()) {
                continue;
            }
            let relative = match index {
                0 => Cell::text("baseline"),
                _ => relative(target, Metric::P99, Digits::Fixed(2)),
            };
            let end = [
                numbers("relative p99", relative),
                words("target", Cell::text(target.label.clone())),
                words("step", Cell::text(step.name.clone())),
            ];
            rows.push(metrics.iter().map(|it| Column::of(*it)).zip(cells).chain(end));
        }
    }
    Section::of_table("latency", "Latency of events, ms", "", Table::of("", rows))
}

/// Cost of the load, and size of the data.
pub fn load(comparison: &Comparison) -> Option<Section> {
    let of_target = |target: &TargetFacts| -> Vec<[Placed; 6]> {
        let of_load = |load: &LoadRecord| {
            let number =
                |number: f64, digits, unit| Cell::number(number, Digits::Fixed(digits), unit);
            let (rows, seconds) = (load.rows as f64, load.load_seconds + load.index_seconds);
            let rate = (seconds > 0.0).then(|| rows / seconds);
            let mib = load.data_bytes.map(|bytes| bytes as f64 / f64::from(1u32 << 20));
            [
                numbers("rows", number(rows, 0, "rows")),
                numbers("load_s", number(load.load_seconds, 1, "s")),
                numbers("index_s", number(load.index_seconds, 1, "s")),
                numbers("ips", Cell::number_or(rate, Digits::Fixed(0), "ips", "no time spent")),
                numbers("data_MB", Cell::number_or(mib, Digits::Fixed(0), "MiB", "not read")),
                words("target", Cell::text(target.label.clone())),
            ]
        };
        target.loads.iter().map(of_load).collect()
    };
    let table = Table::of("", comparison.targets.iter().flat_map(of_target));
    Section::of_table("load", "Load (ips: rows per second with indexes)", "", table)
}

/// Parameters that the names of steps do not show.
pub fn details(comparison: &Comparison) -> Option<Section> {
    let named = comparison.steps.iter().filter(|step| !step.detail.is_empty());
    let facts: Vec<(String, String)> =
        named.map(|step| (step.name.clone(), step.detail.clone())).collect();
    (!facts.is_empty())
        .then(|| Section::new("details", "Step definitions", vec![Block::Facts(facts)]))
}

// Tables of many targets: one row for each step, one narrow column for each target.

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
            Block::table(caption, columns, rows.collect())
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
mod ladder_tests {
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
