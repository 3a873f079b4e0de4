//! Report sections of the Insert Benchmark: the summary tables and metrics rows of the published
//! perf reports with their colours, response-time classes, longest operations and stalls with the
//! activity of server and host, and charts by second.

use crate::analyze::rules::{
    Shade, Throughput, absolute_shades, counts_queries, longest_shades, relative_shade, share_gray,
};
use crate::analyze::{
    self, CLASSES, COLUMNS, ColumnSpec, ROLES, insert_target, is_insert, longest_of,
    median_columns, relative_columns,
};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::{StepComparison, TargetFacts, TargetResult};
use rqps_analysis::measurement::Measurement;
use rqps_model::benchmark::{BenchmarkParameters, RateUnit, Workload};
use rqps_model::dialect::Dialect;
use rqps_model::insert::Pacing;
use rqps_model::metric::{Class, Metric, MetricSpec};
use rqps_report::document::{
    Axis, Block, Cell, Chart, Column, Digits, Form, Line, Mark, Point, STALL, Section, Series,
    Span, Table, numbers, words,
};
use rqps_report::{Sections, tables};

/// The hooks.
pub(crate) const SECTIONS: Sections = Sections { workload: workload_line, sections };

/// All sections of this benchmark; none for others.
fn sections(comparison: &Comparison) -> Vec<Section> {
    // A comparison of published ratios has no columns for these tables.
    let only_ratios = comparison.steps.iter().all(|step| step.rate == RateUnit::Relative);
    if !is_insert(comparison) || comparison.steps.is_empty() || only_ratios {
        return Vec::new();
    }
    let mut sections = vec![summary(comparison), metrics(comparison)];
    sections.extend(response_times(comparison));
    sections.push(variance(comparison));
    sections.extend(over_time(comparison));
    sections
}

/// The workload in one line; `None` for other benchmarks.
fn workload_line(workload: &Workload, cache: &str) -> Option<String> {
    let BenchmarkParameters::Insert(shape) = &workload.shape else { return None };
    let commit = &shape.rows_per_commit;
    let mut parts = vec![
        format!("profile {}", shape.profile.name()),
        format!("{} tables for {} clients", workload.tables, workload.clients),
        format!("rows per client: {} in l.i0, {} in l.i1", workload.rows, shape.i1_rows),
    ];
    if !shape.profile.is_2021() {
        parts.push(format!("{} in l.i2", shape.i2_rows));
    }
    parts.push(if shape.deletes { "as many deletes" } else { "no deletes" }.to_owned());
    parts.push(format!("{} s a query step", shape.query_seconds));
    parts.push(format!("{}/{}/{}/{} rows a commit", commit.i0, commit.i1, commit.i2, commit.query));
    if shape.partitions > 1 {
        parts.push(format!("{} partitions", shape.partitions));
    }
    parts.push(match shape.pacing {
        Pacing::Open => "open pace".to_owned(),
        Pacing::Compat => "compat pace".to_owned(),
    });
    parts.push(format!("settle x {}", workload.settle_scale));
    parts.push(cache.to_owned());
    parts.extend(shape.memory_limit.map(|limit| format!("memory limit {} MiB", limit >> 20)));
    Some(parts.join(", "))
}

fn section(id: &'static str, heading: &str, blocks: Vec<Block>) -> Section {
    Section::new(id, heading, blocks)
}

/// The sign and colour of a cell.
fn mark(shade: Shade) -> Option<Mark> {
    let (sign, meaning) = match shade {
        Shade::Plain => return None,
        Shade::Red => (" -", "in the lowest quarter, or target missed"),
        Shade::Gray => (" ?", "target rate of inserts missed"),
        Shade::Green => (" +", "in the highest quarter"),
        Shade::Blue => (" +", "more than 5 % above the baseline"),
        Shade::Yellow => (" -", "more than 5 % below the baseline"),
    };
    Some(Mark { sign, colour: shade.css(), meaning })
}

/// The shade of a class of response times.
fn gray(percent: f64) -> Option<Mark> {
    let meaning = "darker means more";
    share_gray(percent).map(|colour| Mark { sign: "", colour, meaning })
}

fn with_heads(first: &str, heads: impl Iterator<Item = String>) -> Vec<Column> {
    std::iter::once(Column::of_row(first)).chain(heads.map(Column::numbers)).collect()
}

// Tables of throughput and of insert rates beside queries.

/// Tables of absolute and relative throughput, and of insert rates beside queries.
pub(super) fn summary(comparison: &Comparison) -> Section {
    let rules = "Rates of inserted rows (l steps; indexed rows in l.x) and of queries (q steps): \
                 medians over the blocks, with the published colours. Absolute: the lowest quarter \
                 of a column's span is red (-), the highest green (+), a query rate whose writers \
                 missed their target gray (?). Relative: above 1.05 blue (+), below 0.95 yellow \
                 (-). A target rate of inserts is met if every block reaches 95 % of it; otherwise \
                 the step is not comparable (?), because fewer writes leave more of the machine \
                 for queries: it gets no verdict and no mean includes it. Relative rates come from \
                 the pairs.";
    let mut blocks = vec![Block::text(rules)];
    if comparison.targets.iter().any(|target| {
        let dbms = target.target.as_ref().map(|target| target.dbms.dialect());
        dbms == Some(Dialect::Sqlite)
    }) {
        blocks.push(Block::text(
            "SQLite allows one writer at a time: inserts and deletes of all clients take turns, \
             and their response time includes the wait. Keys come from the rowid without gaps, its \
             own interface prepares queries, no background work vacuums or purges, and SQLite runs \
             inside the client.",
        ));
    }
    blocks.push(Block::Table(absolute_table(comparison)));
    if comparison.targets.len() > 1 {
        blocks.push(Block::Table(relative_table(comparison)));
    }
    blocks.extend(insert_rates(comparison).map(Block::Table));
    section("insert-summary", "Insert Benchmark: summary", blocks)
}

/// Turns columns of cells into rows, each with its target first.
fn by_target(comparison: &Comparison, columns: Vec<Vec<Cell>>) -> Vec<Vec<Cell>> {
    let row = |(index, target): (usize, &TargetFacts)| {
        let cells = columns.iter().map(|column| column[index].clone());
        std::iter::once(Cell::text(&target.label)).chain(cells).collect()
    };
    comparison.targets.iter().enumerate().map(row).collect()
}

/// True if the writers of a target met their rate in a step in all blocks.
fn is_met(step: &StepComparison, target: usize) -> bool {
    step.targets[target].missed_rate.is_none()
}

fn absolute_table(comparison: &Comparison) -> Table {
    let column = |step: &StepComparison| -> Vec<Cell> {
        let rates: Vec<Option<f64>> =
            step.targets.iter().map(|target| target.absolute(Metric::Rate)).collect();
        let known: Vec<Throughput> = rates
            .iter()
            .enumerate()
            .filter_map(|(target, rate)| {
                let meets_sla = counts_queries(step.rate).then(|| is_met(step, target));
                rate.map(|rate| Throughput { rate: rate.round(), meets_sla })
            })
            .collect();
        let mut shades = absolute_shades(&known).into_iter();
        let unit = if counts_queries(step.rate) { "qps" } else { "ips" };
        let cell = |rate: Option<f64>| match rate {
            Some(rate) => {
                Cell::number(rate, Digits::Fixed(0), unit).marked(shades.next().and_then(mark))
            }
            None => Cell::missing("not completed"),
        };
        rates.into_iter().map(cell).collect()
    };
    Table::new(
        "Throughput",
        with_heads("target", comparison.steps.iter().map(|step| step.name.clone())),
        by_target(comparison, comparison.steps.iter().map(column).collect()),
    )
}

fn relative_table(comparison: &Comparison) -> Table {
    let column = |step: &StepComparison| -> Vec<Cell> {
        let cell = |(place, target): (usize, &TargetResult)| {
            let ratio = match (place, target.absolute(Metric::Rate)) {
                (0, rate) => rate.map(|_| 1.0),
                _ => target.relative(Metric::Rate).map(|relative| relative.ratio),
            };
            match ratio {
                Some(ratio) => {
                    let void = !target.not_comparable.is_empty() || !is_met(step, place);
                    let shade = if void { Shade::Gray } else { relative_shade(ratio) };
                    Cell::number(ratio, Digits::Fixed(2), "ratio").marked(mark(shade))
                }
                None => Cell::missing("not completed on both targets"),
            }
        };
        step.targets.iter().enumerate().map(cell).collect()
    };
    Table::new(
        format!("Throughput relative to {}", comparison.baseline),
        with_heads("target", comparison.steps.iter().map(|step| step.name.clone())),
        by_target(comparison, comparison.steps.iter().map(column).collect()),
    )
}

/// Table C: rows inserted per second during the queries, and the target rate.
fn insert_rates(comparison: &Comparison) -> Option<Table> {
    let steps: Vec<&StepComparison> =
        comparison.steps.iter().filter(|step| counts_queries(step.rate)).collect();
    if steps.is_empty() {
        return None;
    }
    let column = |step: &&StepComparison| -> Vec<Cell> {
        let cell =
            |(place, target): (usize, &TargetResult)| match target.absolute(Metric::InsertRate) {
                Some(rate) => {
                    let shade = if is_met(step, place) { Shade::Plain } else { Shade::Red };
                    Cell::number(rate, Digits::Fixed(0), "ips").marked(mark(shade))
                }
                None => Cell::missing("not completed"),
            };
        step.targets.iter().enumerate().map(cell).collect()
    };
    let mut rows = by_target(comparison, steps.iter().map(column).collect());
    let wanted = steps.iter().map(|step| {
        let mut targets = 0..comparison.targets.len();
        match targets.find_map(|target| insert_target(comparison, step, target)) {
            Some(wanted) => Cell::number(wanted, Digits::Fixed(0), "ips"),
            None => Cell::missing("no target"),
        }
    });
    rows.push(std::iter::once(Cell::text("target")).chain(wanted).collect());
    Some(Table::new(
        "Inserts/s during queries",
        with_heads("target", steps.iter().map(|step| step.name.clone())),
        rows,
    ))
}

// The columns of the published perf reports.

/// The metrics rows of each step, absolute and relative to the baseline.
pub(super) fn metrics(comparison: &Comparison) -> Section {
    let words = "The columns of the published perf reports: medians over the blocks. The rate is \
                 ips in l steps and qps in q steps; an operation (op) is an inserted row or a \
                 query accordingly. The efficiency tables have server_cpu_us/o, intervals and \
                 verdicts.";
    let mut blocks = vec![Block::text(words), Block::Table(legend())];
    for step in &comparison.steps {
        let rows: Vec<[Option<f64>; 20]> = (0..comparison.targets.len())
            .map(|target| median_columns(comparison, step, target))
            .collect();
        blocks.push(Block::Table(metrics_table(comparison, step, &rows)));
        if comparison.targets.len() > 1 {
            blocks.push(Block::Table(metrics_relative(comparison, step)));
        }
    }
    section("insert-metrics", "Insert Benchmark: metrics", blocks)
}

/// Unit and formula of each column.
fn legend() -> Table {
    let row = |spec: ColumnSpec| [spec.head, spec.unit, spec.legend].map(Cell::text).to_vec();
    Table::new(
        "Units and formulas",
        vec![Column::of_row("column"), Column::words("unit"), Column::words("what")],
        COLUMNS.into_iter().map(row).collect(),
    )
}

fn metric_columns() -> Vec<Column> {
    let column =
        |spec: ColumnSpec| Column::numbers(spec.head).with_legend(spec.legend).showing(spec.metric);
    let mut columns: Vec<Column> = COLUMNS.into_iter().map(column).collect();
    columns.push(Column::of_row("tag"));
    columns
}

fn metrics_table(
    comparison: &Comparison,
    step: &StepComparison,
    rows: &[[Option<f64>; 20]],
) -> Table {
    let row = |(target, values): (&TargetFacts, &[Option<f64>; 20])| {
        let cells = values.iter().zip(COLUMNS).map(|(value, spec)| match value {
            Some(value) => Cell::number(*value, Digits::Fixed(spec.digits), ""),
            None => Cell::missing("not measured"),
        });
        cells.chain([Cell::text(&target.label)]).collect()
    };
    Table::new(
        step.name.clone(),
        metric_columns(),
        comparison.targets.iter().zip(rows).map(row).collect(),
    )
}

/// Ratios over pairs, as everywhere in the report. Published convention: 0/0 is 1, x/0 is inf.
fn metrics_relative(comparison: &Comparison, step: &StepComparison) -> Table {
    let cell = |ratio: Option<f64>| match ratio {
        Some(ratio) => Cell::number(ratio, Digits::Ratio, "ratio"),
        None => Cell::missing("not measured on both targets"),
    };
    let row = |(place, target): (usize, &TargetFacts)| {
        let cells = relative_columns(comparison, step, place).into_iter().map(cell);
        cells.chain([Cell::text(&target.label)]).collect()
    };
    Table::new(
        format!("{} relative to {}", step.name, comparison.baseline),
        metric_columns(),
        comparison.targets.iter().enumerate().skip(1).map(row).collect(),
    )
}

// Shares of operations by response-time class.

/// Shares of operations by published response-time class, over all blocks.
pub(super) fn response_times(comparison: &Comparison) -> Option<Section> {
    let mut blocks = Vec::new();
    for step in &comparison.steps {
        for (role, name) in ROLES {
            blocks.extend(class_table(comparison, step, role, name).map(Block::Table));
        }
    }
    if blocks.is_empty() {
        return None;
    }
    let text = "Per cent of statements by response time (inclusive bounds) over all blocks; \
                `nonzero` is less than 0.0005 %. At an open pace, response times start at the \
                scheduled time. max is the longest, in s: the highest quarter of its span is red \
                (-), the lowest green (+).";
    blocks.insert(0, Block::text(text));
    Some(section("insert-response-times", "Insert Benchmark: response times", blocks))
}

fn class_table(
    comparison: &Comparison,
    step: &StepComparison,
    role: &str,
    name: &str,
) -> Option<Table> {
    let mut found: Vec<(usize, Vec<u64>, f64)> = Vec::new();
    for (target, of_target) in step.targets.iter().enumerate() {
        let mut sums = vec![0u64; CLASSES.len()];
        let mut longest: f64 = 0.0;
        for sample in &of_target.samples {
            // A run without the role does not hide the others.
            let Some(buckets) = sample.record.outcome.buckets.get(role) else { continue };
            sums.iter_mut().zip(buckets).for_each(|(sum, count)| *sum += count);
            let of_step = analyze::longest(sample, role).map_or(0.0, |(_, ms)| ms / 1e3);
            longest = longest.max(of_step).max(longest_of(sample, role));
        }
        if sums.iter().sum::<u64>() > 0 {
            found.push((target, sums, longest));
        }
    }
    let seconds: Vec<f64> = found.iter().map(|(_, _, longest)| *longest).collect();
    let shades = longest_shades(&seconds);
    let row = |((target, sums, longest), shade): (&(usize, Vec<u64>, f64), Shade)| {
        let total: u64 = sums.iter().sum();
        let share = |count: &u64| match 100.0 * *count as f64 / total as f64 {
            _ if *count == 0 => Cell::text(""),
            percent if percent < 0.0005 => Cell::text("nonzero"),
            percent => Cell::number(percent, Digits::Fixed(3), "%").marked(gray(percent)),
        };
        let mut cells = vec![Cell::text(&comparison.targets[*target].label)];
        cells.extend(sums.iter().map(share));
        cells.push(Cell::number(*longest, Digits::Fixed(3), "s").marked(mark(shade)));
        cells
    };
    let heads = CLASSES.into_iter().chain(["max"]).map(str::to_owned);
    (!found.is_empty()).then(|| {
        Table::new(
            format!("{}: {name}", step.name),
            with_heads("target", heads),
            found.iter().zip(shades).map(row).collect(),
        )
    })
}

// Longest operations and stalls with their times, and the activity of server and host then.

/// Most stalls in a table; of a server that stalls all the time, their number says enough.
const STALLS_MAX: usize = 40;

/// Longest operations and stalls with their times, and the activity of server and host then.
pub(super) fn variance(comparison: &Comparison) -> Section {
    let text = "Averages hide stalls. The longest insert is a separate metric (max_insert_ms, with \
                interval and verdict), which shows a jump even where the average is flat. A stall \
                is a second below a tenth of the median second's rate. Server activity comes from \
                its log and counters, from the start of the longest operation; host activity \
                appears where a second exceeds twice the median second.";
    let mut blocks = vec![Block::text(text)];
    blocks.extend(judged_table(comparison).map(Block::Table));
    blocks.extend(longest_table(comparison).map(Block::Table));
    let (stalls, left_out) = stall_table(comparison);
    let none = || Block::text("No stall of a whole second.");
    blocks.push(stalls.map_or_else(none, Block::Table));
    if left_out > 0 {
        blocks.push(Block::Paragraph(format!("Stalls not shown: {left_out}.")));
    }
    section("insert-variance", "Insert Benchmark: stalls and longest operations", blocks)
}

/// Verdicts on stability: on the longest insert in every step, and on other stability metrics if
/// they differ. `None` without a comparison.
fn judged_table(comparison: &Comparison) -> Option<Table> {
    let own = |spec: &MetricSpec| spec.owner == "insert" && spec.class == Class::Stability;
    let metrics: Vec<Metric> = Metric::which(own).collect();
    let mut rows = Vec::new();
    for step in &comparison.steps {
        for target in step.targets.iter().skip(1) {
            for metric in metrics.iter().copied() {
                let Some(relative) = target.relative(metric) else { continue };
                let verdict = relative.judgement.as_ref().map(|judgement| judgement.verdict);
                let differs = verdict.is_some_and(|it| it.is_worse() || it.is_better());
                if metric != Metric::InsertMax && !differs {
                    continue;
                }
                let number = |of| tables::absolute(of, metric, metric.digits(), metric.unit());
                let verdict = verdict.map(|verdict| verdict.word(metric));
                rows.push([
                    words("step", Cell::text(&step.name)),
                    words("target", Cell::text(&target.label)),
                    words("metric", Cell::text(metric.name())),
                    numbers(&*comparison.baseline, number(&step.targets[0])),
                    numbers("absolute", number(target)),
                    numbers("relative", tables::judged(target, metric, Digits::Ratio)),
                    words("verdict", Cell::text_or(verdict, "not compared")),
                ]);
            }
        }
    }
    Table::of("Longest inserts and differing stability metrics: medians over the blocks", rows)
}

fn longest_table(comparison: &Comparison) -> Option<Table> {
    let mut rows = Vec::new();
    for step in &comparison.steps {
        for (target, of_target) in step.targets.iter().enumerate() {
            for (role, name) in ROLES {
                let of_sample = |sample: &&Measurement| {
                    let second = analyze::longest(sample, role).map(|(second, _)| second);
                    (longest_of(sample, role), second)
                };
                let has = |sample: &&Measurement| sample.record.outcome.roles.contains_key(role);
                let samples = of_target.samples.iter().filter(has);
                let Some(worst) = samples.max_by(|a, b| of_sample(a).0.total_cmp(&of_sample(b).0))
                else {
                    continue;
                };
                let (seconds, second) = of_sample(&worst);
                let run = &comparison.runs[worst.run].folder;
                let activity = second.map_or_else(String::new, |second| {
                    let begun = analyze::begun(second, 1e3 * seconds);
                    analyze::activity(worst, begun, second as f64 + 1.0)
                });
                // A step of less than half a second has no seconds.
                let at = second.map_or_else(String::new, |second| format!(" + {} s", second + 1));
                let longest = Cell::number(seconds, Digits::Fixed(3), "s");
                rows.push([
                    words("step", Cell::text(&step.name)),
                    words("target", Cell::text(&comparison.targets[target].label)),
                    words("what", Cell::text(name)),
                    numbers("longest s", longest.from_runs(vec![run.clone()])),
                    words("ended", Cell::text(format!("{}{at}", worst.record.started))),
                    words("server and host activity", Cell::text(activity)),
                ]);
            }
        }
    }
    Table::of("Longest operations of all blocks", rows)
}

fn stall_table(comparison: &Comparison) -> (Option<Table>, usize) {
    let mut rows = Vec::new();
    for step in &comparison.steps {
        for (target, of_target) in step.targets.iter().enumerate() {
            for sample in &of_target.samples {
                let run = &comparison.runs[sample.run];
                rows.extend(analyze::stalls(sample).into_iter().map(|stall| {
                    let folder = Cell::text(run.key.folder()).from_runs(vec![run.folder.clone()]);
                    let from = format!("{} + {} s", sample.record.started, stall.from);
                    let seconds = Cell::number(stall.seconds as f64, Digits::Fixed(0), "s");
                    [
                        words("step", Cell::text(&step.name)),
                        words("target", Cell::text(&comparison.targets[target].label)),
                        words("run", folder),
                        words("from second", Cell::text(from)),
                        numbers("seconds", seconds),
                        words("what", Cell::text(stall.role)),
                        numbers(
                            "longest ms",
                            Cell::number(stall.longest_ms, Digits::Fixed(1), "ms"),
                        ),
                        words("server and host activity", Cell::text(stall.activity)),
                    ]
                }));
            }
        }
    }
    let left_out = rows.len().saturating_sub(STALLS_MAX);
    rows.truncate(STALLS_MAX);
    (Table::of("Stalls", rows), left_out)
}

// Charts of rates and longest response times by second.

/// Most points per series of a chart.
const POINTS_MAX: usize = 600;

/// Charts of rates and longest response times by second: one per step and role, with a line for
/// each run.
pub(super) fn over_time(comparison: &Comparison) -> Option<Section> {
    let mut blocks = Vec::new();
    for step in &comparison.steps {
        for (role, name) in ROLES {
            let rate = Axis::linear(format!("{role}/s"), "1/s");
            blocks.extend(chart(comparison, step, role, 1.0, rate).map(Block::Chart));
            let longest = Axis::linear(format!("longest {name}"), "ms");
            let column = format!("{role}_max_us");
            blocks.extend(chart(comparison, step, &column, 1e-3, longest).map(Block::Chart));
        }
    }
    (!blocks.is_empty())
        .then(|| section("insert-over-time", "Insert Benchmark: rates over time", blocks))
}

fn chart(
    comparison: &Comparison,
    step: &StepComparison,
    column: &str,
    factor: f64,
    y: Axis,
) -> Option<Chart> {
    let (mut series, mut spans) = (Vec::new(), Vec::new());
    for (slot, target) in step.targets.iter().enumerate() {
        for sample in &target.samples {
            let Some(values) = sample.record.outcome.series.get(column) else { continue };
            spans.extend(marked(sample, column, series.len()));
            let mut line = Series::new(&target.label, slot, Line::Straight);
            line.runs = vec![comparison.runs[sample.run].folder.clone()];
            line.points = thinned(values, factor, column.ends_with("_max_us"));
            series.push(line);
        }
    }
    // One point does not make a line.
    let long = series.iter().any(|line| line.points.len() > 1);
    long.then(|| {
        let title = format!("{}: {} over time", step.name, y.name);
        let chart = Chart::new(format!("insert-{}-{column}", step.name), title, Form::Lines);
        let notes = vec![notes_on(&spans)];
        Chart { series, spans, notes, ..chart.axes(Axis::linear("time in the step", "s"), y) }
    })
}

/// Marks of a run: stalls of the role whose rate is in `column`, and flushing of the server.
fn marked(sample: &Measurement, column: &str, series: usize) -> Vec<Span> {
    let stretches = analyze::stretches(&sample.record, column).into_iter();
    let stalled = stretches.map(|stall| (stall.start as f64, stall.end as f64, STALL));
    stalled
        .chain(analyze::flushing(sample))
        .map(|(from, to, label)| Span { from, to, series: Some(series), label: label.to_owned() })
        .collect()
}

fn notes_on(spans: &[Span]) -> String {
    let stalls = spans.iter().filter(|span| span.label == STALL).count();
    let mut text = "One line per run.".to_owned();
    match stalls {
        0 => {}
        1 => text.push_str(" Red mark: 1 stall."),
        n => text.push_str(&format!(" Red marks: {n} stalls.")),
    }
    if spans.len() > stalls {
        text.push_str(" Marks in the target's colour show checkpoints and flushing.");
    }
    text
}

/// Merges neighbouring seconds if there are too many points: their mean, or the longest.
fn thinned(values: &[f64], factor: f64, longest: bool) -> Vec<Point> {
    let width = values.len().div_ceil(POINTS_MAX).max(1);
    let point = |(place, part): (usize, &[f64])| {
        let y = if longest {
            part.iter().copied().fold(0.0, f64::max)
        } else {
            part.iter().sum::<f64>() / part.len() as f64
        };
        Point::at((place * width) as f64 + part.len() as f64 / 2.0, y * factor)
    };
    values.chunks(width).enumerate().map(point).collect()
}
