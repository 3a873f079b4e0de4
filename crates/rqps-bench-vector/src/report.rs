//! Report sections of vector search: lost recall, best rates by recall, curves, indexes, and the
//! cases that filter, write and restart.

use crate::analyze::{self, Curve, CurvePoint, Mean, TARGETS};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::{StepComparison, TargetResult};
use rqps_model::benchmark::BenchmarkParameters;
use rqps_model::dialect::Dialect;
use rqps_model::metric::Metric;
use rqps_model::vector::{DataSource, SearchPoint};
use rqps_report::Sections;
use rqps_report::document::{
    Axis, Block, Cell, Chart, Column, Digits, Form, Line, Point as ChartPoint, Section, Series,
    Table,
};

/// The hooks.
pub(crate) const SECTIONS: Sections = Sections { sections, ..Sections::NONE };

/// All sections; none without a recall.
fn sections(comparison: &Comparison) -> Vec<Section> {
    let curves = analyze::curves(comparison);
    let mut sections = Vec::new();
    sections.extend(violated(comparison));
    sections.extend(lost(comparison));
    sections.extend(perhaps_lost(comparison));
    sections.extend(best(comparison, &curves));
    sections.extend(soonest(&curves));
    sections.extend(points(comparison, &curves));
    sections.extend(indexes(comparison));
    sections.extend(cases(comparison));
    sections
}

/// Isolation violations come first: they are the worst of wrong answers.
fn violated(comparison: &Comparison) -> Option<Section> {
    let mut lines = Vec::new();
    for step in &comparison.steps {
        for target in &step.targets {
            let counts = target.samples.iter().filter_map(|it| it.get(Metric::Violations));
            let counts: Vec<f64> = counts.collect();
            let bad = counts.iter().filter(|count| **count > 0.0).count();
            let most = counts.iter().copied().fold(0.0, f64::max);
            if bad > 0 {
                lines.push(format!(
                    "{}: {} in {bad} of {} runs, up to {most:.0} of 100,000 probes",
                    target.label,
                    step.name,
                    counts.len()
                ));
            }
        }
    }
    let about = "A query returned a row outside its transaction's snapshot, or even a scan missed a \
                 row of the snapshot. The notes of these steps list the first violations.";
    let heading = "Isolation violations: the index returned invisible rows";
    let blocks = |lines| vec![Block::text(about), Block::List(lines)];
    (!lines.is_empty()).then(|| Section::new("isolation-violations", heading, blocks(lines)))
}

/// Wrong answers come before slow ones.
fn lost(comparison: &Comparison) -> Option<Section> {
    let drops = analyze::drops(comparison).into_iter().filter(|drop| drop.is_sure);
    let text = "These answers are worse than the baseline's, with the same index and the same \
                search width. This is a correctness problem, more important than speed.";
    drops_section(drops.collect(), ("recall-drops", "Recall loss at equal parameters", text))
}

/// Large differences of few blocks.
fn perhaps_lost(comparison: &Comparison) -> Option<Section> {
    let drops = analyze::drops(comparison).into_iter().filter(|drop| !drop.is_sure);
    let text = "Fewer than three blocks cannot tell a loss from the scatter between builds of an \
                index, which is large where many rows are equal (`rqps vector verify-data` tells \
                them): measure three blocks or more.";
    drops_section(drops.collect(), ("recall-differs", "Lower recall in few blocks", text))
}

fn drops_section(
    drops: Vec<analyze::Drop>,
    (id, heading, text): (&'static str, &str, &str),
) -> Option<Section> {
    let line = |drop: &analyze::Drop| {
        let [baseline, now] = drop.recall;
        let sure = match drop.interval {
            Some(interval) => format!(
                "change {:+.4}, 95 % interval [{:+.4}, {:+.4}], {} pairs",
                now - baseline,
                interval.low,
                interval.high,
                drop.pairs
            ),
            None => format!("change {:+.4}, one pair", now - baseline),
        };
        format!("{}: recall {baseline:.4} -> {now:.4} in {} ({sure})", drop.label, drop.step)
    };
    (!drops.is_empty()).then(|| {
        Section::new(
            id,
            heading.to_owned(),
            vec![Block::text(text), Block::List(drops.iter().map(line).collect())],
        )
    })
}

/// The published table: the best rate by required recall, per number of clients.
fn best(comparison: &Comparison, curves: &[Curve]) -> Option<Section> {
    let mut blocks = Vec::new();
    for clients in clients_of(curves) {
        let mut rows = Vec::new();
        for target in TARGETS {
            let of_clients = curves.iter().filter(|curve| curve.clients == clients);
            rows.extend(of_clients.map(|curve| best_row(comparison, curve, target)));
        }
        let columns = vec![
            Column::numbers("at least"),
            Column::numbers("recall"),
            Column::numbers("QPS"),
            Column::numbers("isecs"),
            Column::words("algorithm(parameters)"),
            Column::numbers("tied"),
            Column::words("fastest build of the tied"),
        ];
        let caption = mode(clients);
        blocks.push(Block::table(caption, columns, rows));
    }
    if blocks.is_empty() {
        return None;
    }
    blocks.push(Block::text(
        "isecs: seconds to build the index alone; where only the total is known (as in published \
         results), seconds for table, rows and index. tied: configurations whose rate does not \
         differ demonstrably from the best one's. Recall is not rounded. It is by distance: a row \
         as near as the true k-th counts.",
    ));
    Some(Section::new("best-for-recall", "Best QPS for a given recall", blocks))
}

fn best_row(comparison: &Comparison, curve: &Curve, target: f64) -> Vec<Cell> {
    let wanted = Cell::number(target, Digits::Fixed(2), "");
    let Some(choice) = curve.best_for(target) else {
        let none = || Cell::missing("no configuration has this recall");
        let label = Cell::text(format!("{}: none", curve.label));
        return vec![wanted, none(), none(), none(), label, none(), none()];
    };
    let point = &curve.points[choice.best];
    let cheapest = match choice.cheapest {
        Some(place) if place != choice.best => {
            let other = &curve.points[place];
            Cell::text(format!(
                "{:.0} QPS, {} s, {}",
                other.rate.value,
                written(other.seconds_to_build(), 1),
                other.point.parameters()
            ))
        }
        Some(_) => Cell::text("same as best"),
        None => Cell::missing("no build time"),
    };
    vec![
        wanted,
        with_mean(comparison, point, point.recall, Digits::Fixed(3), ""),
        with_mean(comparison, point, point.rate, Digits::Fixed(0), "qps"),
        Cell::number_or(point.seconds_to_build(), Digits::Fixed(1), "s", "no build time"),
        Cell::text(format!("{}({})", curve.label, point.point.parameters())),
        Cell::number(choice.tied.len() as f64, Digits::Fixed(0), ""),
        cheapest,
    ]
}

/// Build time until a recall is available, and its rate.
fn soonest(curves: &[Curve]) -> Option<Section> {
    let mut blocks = Vec::new();
    for clients in clients_of(curves) {
        let mut rows = Vec::new();
        for target in TARGETS {
            for curve in curves.iter().filter(|curve| curve.clients == clients) {
                for place in curve.soonest_for(target) {
                    let point = &curve.points[place];
                    rows.push(vec![
                        Cell::number(target, Digits::Fixed(2), ""),
                        maybe(point.seconds_to_build(), Digits::Fixed(1), "s"),
                        Cell::number(point.rate.value, Digits::Fixed(0), "qps"),
                        Cell::text(format!("{}({})", curve.label, point.point.parameters())),
                    ]);
                }
            }
        }
        let mut columns: Vec<Column> = ["at least", "isecs", "QPS"].map(Column::numbers).to_vec();
        columns.push(Column::words("algorithm(parameters)"));
        if !rows.is_empty() {
            blocks.push(Block::table(mode(clients), columns, rows));
        }
    }
    if blocks.is_empty() {
        return None;
    }
    blocks.push(Block::text(
        "For each recall: the index with the shortest build, then slower builds with higher rates. \
         For a required rate, read the build time in the first row of a target that reaches it.",
    ));
    Some(Section::new("time-to-recall", "Time to a given recall", blocks))
}

fn written(number: Option<f64>, digits: usize) -> String {
    number.map_or("-".to_owned(), |number| Digits::Fixed(digits).write(number))
}

fn with_mean(
    comparison: &Comparison,
    point: &CurvePoint,
    mean: Mean,
    digits: Digits,
    unit: &'static str,
) -> Cell {
    let runs: Vec<String> =
        point.runs.iter().map(|run| comparison.runs[*run].folder.clone()).collect();
    Cell::number(mean.value, digits, unit).within(mean.interval).from_runs(runs)
}

fn clients_of(curves: &[Curve]) -> Vec<u32> {
    let mut clients: Vec<u32> = curves.iter().map(|curve| curve.clients).collect();
    clients.dedup();
    clients
}

fn mode(clients: u32) -> String {
    match clients {
        1 => "One client".to_owned(),
        clients => format!("{clients} clients at once"),
    }
}

/// Describes the data set.
fn data(comparison: &Comparison) -> Option<String> {
    let mut workloads = comparison.targets.iter().flat_map(|target| &target.workloads);
    let (shape, rows) = workloads.find_map(|workload| match &workload.shape {
        BenchmarkParameters::Vector(shape) => Some((shape, workload.rows)),
        _ => None,
    })?;
    Some(match &shape.data {
        DataSource::Fashion { dims, queries, rounded, .. } => {
            let kind = if *rounded { "fashion-like" } else { "fashion-like floats" };
            format!("{kind} (synthetic), {rows} rows of {dims}, {queries} queries, k = {}", shape.k)
        }
        DataSource::Files { rows, .. } => {
            let name = rows.file_name().unwrap_or_default().to_string_lossy();
            format!("{name}, k = {}", shape.k)
        }
    })
}

/// A chart and a table per number of clients.
fn points(comparison: &Comparison, curves: &[Curve]) -> Option<Section> {
    let mut blocks = Vec::new();
    for clients in clients_of(curves) {
        let mine: Vec<&Curve> = curves.iter().filter(|curve| curve.clients == clients).collect();
        blocks.push(Block::Chart(chart(comparison, &mine, clients)));
        blocks.push(Block::Table(point_table(comparison, &mine, clients)));
    }
    (!blocks.is_empty()).then(|| {
        Section::new(
            "recall-curves",
            match data(comparison) {
                Some(data) => format!("Rate and recall: {data}"),
                None => "Rate and recall".to_owned(),
            },
            blocks,
        )
    })
}

fn chart(comparison: &Comparison, curves: &[&Curve], clients: u32) -> Chart {
    let title = format!("Queries per second against recall, {}", mode(clients).to_lowercase());
    let mut chart = Chart::new(format!("recall-clients={clients}"), title, Form::Points)
        .axes(Axis::linear("recall", "").fitted(), Axis::log("rate", "qps"));
    for curve in curves {
        let at = |point: &CurvePoint| {
            let runs = point.runs.iter().map(|run| comparison.runs[*run].folder.clone());
            let recall = match point.recall.interval {
                Some(interval) => {
                    format!(
                        "recall {:.4} [{:.4}, {:.4}]",
                        point.recall.value, interval.low, interval.high
                    )
                }
                None => format!("recall {:.4}", point.recall.value),
            };
            ChartPoint::at(point.recall.value, point.rate.value)
                .within(point.rate.interval)
                .noted(format!("{}, {recall}", point.point.parameters()))
                .from_runs(runs.collect())
        };
        let (on, off): (Vec<&CurvePoint>, Vec<&CurvePoint>) =
            curve.points.iter().partition(|point| point.frontier);
        for (line, points) in [(Line::Straight, on), (Line::None, off)] {
            let mut series = Series::new(curve.label.clone(), curve.place, line);
            series.points = points.into_iter().map(at).collect();
            if !series.points.is_empty() {
                chart.series.push(series);
            }
        }
    }
    chart.notes.push(
        "Lines join the Pareto-optimal points of each target (no other configuration is better in \
         both); other points lie off the line. Intervals cover independent builds of the index."
            .to_owned(),
    );
    chart
}

fn point_table(comparison: &Comparison, curves: &[&Curve], clients: u32) -> Table {
    let mut columns =
        vec![Column::of(Metric::Recall), Column::numbers("QPS").showing(Metric::Rate)];
    columns.extend(Metric::percentiles().map(Column::of));
    columns.push(Column::of(Metric::ServerRss));
    columns.push(Column::words("frontier"));
    columns.push(Column::words("algorithm(parameters)"));
    let mut rows = Vec::new();
    for curve in curves {
        for point in &curve.points {
            let mut row = vec![
                with_mean(comparison, point, point.recall, Digits::Fixed(4), ""),
                with_mean(comparison, point, point.rate, Digits::Fixed(0), "qps"),
            ];
            row.extend(point.latency.iter().map(|latency| maybe(*latency, Digits::Fixed(3), "ms")));
            row.push(maybe(point.server_mib, Digits::Fixed(0), "MiB"));
            row.push(Cell::text(if point.frontier { "*" } else { "" }));
            row.push(Cell::text(format!("{}({})", curve.label, point.point.parameters())));
            rows.push(row);
        }
    }
    Table::new(format!("All points, {}", mode(clients).to_lowercase()), columns, rows)
}

fn maybe(number: Option<f64>, digits: Digits, unit: &'static str) -> Cell {
    Cell::number_or(number, digits, unit, "not measured")
}

/// The cost of each index.
fn indexes(comparison: &Comparison) -> Option<Section> {
    // In the order of a build.
    let metrics = [
        Metric::LoadSeconds,
        Metric::IndexSeconds,
        Metric::BuildSeconds,
        Metric::TableSize,
        Metric::IndexSize,
        Metric::ServerRss,
        Metric::LogBytesPerRow,
    ];
    let is_build = |step: &&StepComparison| {
        let has = |metric| step.targets.iter().any(|target| value(target, metric).is_some());
        is_no_point(step)
            && (has(Metric::LoadSeconds) || has(Metric::IndexSeconds) || has(Metric::BuildSeconds))
    };
    let steps: Vec<&StepComparison> = comparison.steps.iter().filter(is_build).collect();
    let table = metric_table(&steps, &metrics, "Medians over the builds.");
    table.map(|table| {
        Section::new("vector-indexes", "Index size and build time", vec![Block::Table(table)])
    })
}

/// Steps with a recall that are no point of a curve, and related metrics.
fn cases(comparison: &Comparison) -> Option<Section> {
    // Correctness before speed; the lower bound of recall beside recall.
    let metrics = [
        Metric::Recall,
        Metric::RecallLow,
        Metric::RecallIds,
        Metric::RowsPerK,
        Metric::Rate,
        Metric::P99,
        Metric::P999,
        Metric::Max,
        Metric::EfSearch,
        Metric::FirstQuery,
        Metric::WarmSeconds,
        Metric::CleanSeconds,
        Metric::Violations,
        Metric::Found,
        Metric::Capacity,
        Metric::LogBytesPerRow,
    ];
    let is_case = |step: &&StepComparison| {
        let has = |metric| step.targets.iter().any(|target| value(target, metric).is_some());
        let names_one = [Metric::Recall, Metric::CleanSeconds, Metric::Capacity].map(has);
        is_no_point(step) && names_one.contains(&true)
    };
    let steps: Vec<&StepComparison> = comparison.steps.iter().filter(is_case).collect();
    let caption = "Medians over the builds. rows/k below 1: queries returned fewer rows than \
                   requested. recall_low: against the rows committed when the query ended. \
                   violations: per 100,000 probes.";
    let table = metric_table(&steps, &metrics, caption);
    table.map(|table| with_index(comparison, &steps, table)).map(|table| {
        Section::new(
            "vector-cases",
            "Targets, filters, writes, restarts, transactions",
            vec![Block::Table(table)],
        )
    })
}

/// Adds a column to the table of cases: the index of steps without its name, which pair between
/// DBMSs.
fn with_index(comparison: &Comparison, steps: &[&StepComparison], mut table: Table) -> Table {
    let measured = steps.iter().flat_map(|step| {
        let targets = step.targets.iter().enumerate();
        targets.filter(|(_, target)| !target.samples.is_empty()).map(|(place, _)| (*step, place))
    });
    let cells: Vec<Cell> = measured
        .map(|(step, place)| {
            if step.parameters.of_one_dbms {
                Cell::text("")
            } else {
                Cell::text(first_index(comparison, place).unwrap_or_default())
            }
        })
        .collect();
    let at = table.columns.len() - 1;
    table.columns.insert(at, Column::words("index"));
    for (row, cell) in table.rows.iter_mut().zip(cells) {
        row.insert(at, cell);
    }
    table
}

/// The first index in a target's list, which all such cases use: `m=8.ec=32`.
fn first_index(comparison: &Comparison, place: usize) -> Option<String> {
    let facts = &comparison.targets[place];
    let BenchmarkParameters::Vector(shape) = &facts.workloads.first()?.shape else { return None };
    let point = match facts.target.as_ref()?.dbms.dialect() {
        Dialect::Mysql => {
            SearchPoint { m: *shape.mariadb.first()?, ef_construction: None, ef: 1, clients: 1 }
        }
        _ => {
            let build = shape.pgvector.first()?;
            let ef_construction = Some(build.ef_construction);
            SearchPoint { m: build.m, ef_construction, ef: 1, clients: 1 }
        }
    };
    Some(point.index())
}

/// True for a step that is neither a point of a curve nor a choice among points.
fn is_no_point(step: &StepComparison) -> bool {
    SearchPoint::of(&step.parameters).is_none() && !step.is_choice()
}

fn value(target: &TargetResult, metric: Metric) -> Option<f64> {
    target.metrics.get(&metric)?.absolute
}

/// A row for each step and target; empty columns are left out.
fn metric_table(steps: &[&StepComparison], metrics: &[Metric], caption: &str) -> Option<Table> {
    let targets = || steps.iter().flat_map(|step| &step.targets);
    let is_used = |metric: &Metric| targets().any(|target| value(target, *metric).is_some());
    let used: Vec<Metric> = metrics.iter().copied().filter(is_used).collect();
    let mut columns: Vec<Column> = used.iter().map(|metric| Column::of(*metric)).collect();
    columns.push(Column::words("target"));
    columns.push(Column::words("step"));
    let mut rows = Vec::new();
    for step in steps {
        for target in step.targets.iter().filter(|target| !target.samples.is_empty()) {
            let mut row: Vec<Cell> = used
                .iter()
                .map(|metric| maybe(value(target, *metric), metric.digits(), metric.unit()))
                .collect();
            row.push(Cell::text(target.label.clone()));
            row.push(Cell::text(step.name.clone()));
            rows.push(row);
        }
    }
    (!rows.is_empty()).then(|| Table::new(caption, columns, rows))
}
