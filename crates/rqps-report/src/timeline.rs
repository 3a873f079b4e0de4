//! Charts of a step over time: rate, latency and stalls per second, and the distribution of
//! latencies. Long series are thinned so that the file opens fast.

use std::collections::BTreeSet;

use super::document::{
    Axis, Chart, Digits, Form, HELD_BACK, Line, Point, Rule, STALL, Scale, Series, Span,
};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::{StepComparison, TargetResult};
use rqps_analysis::measurement::QUANTILES;
use rqps_analysis::measurement::rate_unit;
use rqps_analysis::pairing::clients;
use rqps_model::benchmark::{Group, RateUnit};
use rqps_model::metric::Metric;
use rqps_model::run::{Dataset, Run, Second, StepRecord};
use rqps_stats::summary::median;
use rqps_stats::{Interval, stability as course};

/// Reads the seconds of a step, or returns why it cannot.
pub type SecondsOf<'a> = dyn Fn(&Run, &StepRecord) -> Result<Vec<Second>, String> + Sync + 'a;

/// Maximum points of rate in one document; beyond that, neighbouring seconds are merged.
const POINTS_MAX: usize = 200_000;
/// Minimum points of a thinned series.
const SERIES_MIN: usize = 30;
/// Maximum points of a series: the resolution of a screen.
const SERIES_MAX: usize = 600;

/// One run of a step over time.
#[derive(Clone, Debug, Default, PartialEq)]
struct Trace {
    /// Middle of the bucket in s, mean rate, minimum and maximum rate of its seconds.
    rate: Vec<Point>,
    /// Middle of the bucket in s, largest 99th percentile of its seconds in ms.
    p99: Vec<Point>,
    /// Start and end, s.
    stalls: Vec<(f64, f64)>,
    /// Seconds per bucket.
    width: usize,
}

/// Charts of one step, if there are data: rate over time, 99th percentile over time, distribution
/// of latencies.
pub(super) fn charts(
    comparison: &Comparison,
    dataset: &Dataset,
    step: &StepComparison,
    seconds: &SecondsOf,
) -> Vec<Chart> {
    let name = &step.name;
    let unit = rate_unit(step.rate);
    let time = || Axis::linear("time in the step", "s");
    let mut rate =
        Chart::new(format!("time-rate-{name}"), format!("{name}: rate over time"), Form::Lines)
            .axes(time(), Axis::linear("rate", unit));
    let mut p99 = Chart::new(
        format!("time-p99-{name}"),
        format!("{name}: 99th percentile over time"),
        Form::Lines,
    )
    .axes(time(), Axis::linear("p99 of each second", "ms"));
    let mut faults: Vec<String> = Vec::new();
    let (mut width, mut held_back) = (1, Vec::new());
    let most = points_per_run(comparison);
    for (slot, target) in step.targets.iter().enumerate() {
        for sample in &target.samples {
            let (run, record) = (&dataset.runs[sample.run], &sample.record);
            let rows = seconds(run, record).unwrap_or_else(|fault| {
                faults.push(fault);
                Vec::new()
            });
            let trace = trace(record, &rows, most);
            width = width.max(trace.width);
            let place = rate.series.len();
            held_back.extend(record.stalled.iter().map(|second| Span {
                from: f64::from(*second) - 1.0,
                to: f64::from(*second),
                series: Some(place),
                label: HELD_BACK.to_owned(),
            }));
            rate.spans.extend(trace.stalls.iter().map(|(from, to)| Span {
                from: *from,
                to: *to,
                series: Some(place),
                label: STALL.to_owned(),
            }));
            let series = Series {
                runs: vec![run.folder.clone()],
                ..Series::new(target.label.clone(), slot, Line::Straight)
            };
            rate.series.push(Series { points: trace.rate, ..series.clone() });
            p99.series.push(Series { points: trace.p99, ..series });
        }
    }
    add_notes(&mut rate, &mut p99, width, &faults);
    if !held_back.is_empty() {
        let text = format!("Marked: {} s in which the DBMS throttled writes.", held_back.len());
        rate.notes.push(text);
        rate.spans.append(&mut held_back);
    }
    let distribution = distribution(dataset, step);
    let drawn = |chart: &Chart| chart.series.iter().any(|series| !series.points.is_empty());
    [rate, p99, distribution].into_iter().filter(drawn).collect()
}

fn add_notes(rate: &mut Chart, p99: &mut Chart, width: usize, faults: &[String]) {
    let runs = "One line per run.".to_owned();
    let below = format!("below {} % of the run's median second", 100.0 * course::STALL_SHARE);
    rate.notes.push(match rate.spans.len() {
        0 => format!("{runs} No stalls (no second {below})."),
        1 => format!("{runs} Marked: 1 stall ({below})."),
        n => format!("{runs} Marked: {n} stalls ({below})."),
    });
    p99.notes.push(runs);
    if width > 1 {
        rate.notes
            .push(format!("Each point is the mean of {width} s; vertical lines show the range."));
        p99.notes.push(format!("Each point is the worst of {width} s."));
    }
    if let Some(first) = faults.first() {
        let text = format!("Runs without per-second data: {} ({first}).", faults.len());
        rate.notes.push(text.clone());
        p99.notes.push(text);
    }
}

/// The number of points of each run of a step.
fn points_per_run(comparison: &Comparison) -> usize {
    let targets = comparison.steps.iter().flat_map(|step| &step.targets);
    let runs: usize = targets.map(|target| target.samples.len()).sum();
    (POINTS_MAX / runs.max(1)).clamp(SERIES_MIN, SERIES_MAX)
}

fn trace(record: &StepRecord, rows: &[Second], most: usize) -> Trace {
    let rates = rates(record, rows);
    let ends = ends(rows, rates.len());
    let width = rates.len().div_ceil(most.max(1)).max(1);
    let start = |at: usize| if at == 0 { 0.0 } else { ends[at - 1] };
    let stalls = course::stalls(&rates);
    let stalls = stalls.iter().map(|stall| (start(stall.start), ends[stall.end - 1])).collect();
    let mut trace = Trace { stalls, width, ..Trace::default() };
    for (index, bucket) in rates.chunks(width).enumerate() {
        let first = index * width;
        let last = first + bucket.len() - 1;
        let x = (start(first) + ends[last]) / 2.0;
        let mean = bucket.iter().sum::<f64>() / bucket.len() as f64;
        let low = bucket.iter().copied().fold(f64::INFINITY, f64::min);
        let high = bucket.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let interval = (width > 1).then_some(Interval { low, high });
        trace.rate.push(Point::at(x, mean).within(interval));
        if let Some(rows) = rows.get(first..=last) {
            let worst = rows.iter().map(|row| row.p99_us / 1000.0).fold(0.0, f64::max);
            trace.p99.push(Point::at(x, worst));
        }
    }
    trace
}

/// Operations per second of each second: from the record, else from the rows.
fn rates(record: &StepRecord, rows: &[Second]) -> Vec<f64> {
    if !record.per_second.is_empty() && (rows.is_empty() || rows.len() == record.per_second.len()) {
        return record.per_second.clone();
    }
    // Seconds count statements or operations; rates in other units are proportional to events.
    let whole: u64 = rows.iter().map(|row| row.events).sum();
    let per_event = match record.rate {
        RateUnit::Relative => return Vec::new(),
        RateUnit::Queries | RateUnit::Operations | RateUnit::RowsInserted => None,
        _ if whole == 0 => return Vec::new(),
        RateUnit::Transactions => Some(1.0),
        RateUnit::RowsScanned => Some(record.outcome.rows_scanned as f64 / whole as f64 / 1000.0),
    };
    let rate = |row: &Second| match per_event {
        None => row.statements as f64 / row.seconds,
        Some(each) => row.events as f64 * each / row.seconds,
    };
    rows.iter().filter(|row| row.seconds > 0.0).map(rate).collect()
}

/// The end of each second, s from the start of the window.
fn ends(rows: &[Second], count: usize) -> Vec<f64> {
    let mut now = 0.0;
    (0..count)
        .map(|index| {
            now += rows.get(index).map_or(1.0, |row| row.seconds);
            now
        })
        .collect()
}

/// Latency by percentile: for each target the median over its runs.
fn distribution(dataset: &Dataset, step: &StepComparison) -> Chart {
    let name = &step.name;
    let mut chart = Chart::new(
        format!("percentiles-{name}"),
        format!("{name}: latency by percentile"),
        Form::Lines,
    )
    .axes(Axis { scale: Scale::Tail, ..Axis::tail() }, Axis::log("latency", "ms"));
    for (slot, target) in step.targets.iter().enumerate() {
        let points = quantile_points(target);
        if !points.is_empty() {
            let runs = target.samples.iter().map(|s| dataset.runs[s.run].folder.clone()).collect();
            let series = Series::new(target.label.clone(), slot, Line::Straight);
            chart.series.push(Series { points, runs, ..series });
        }
    }
    let note = "Median over the runs of each target; a percentile needs at least ten events beyond \
                it.";
    chart.notes.push(note.to_owned());
    chart
}

/// Omits a percentile with fewer than ten events above it.
fn quantile_points(target: &TargetResult) -> Vec<Point> {
    // A histogram that does not decode already has a caveat.
    let runs = || target.samples.iter().filter_map(|sample| sample.distribution);
    let least_events = runs().map(|run| run.events).min().unwrap_or(0);
    let shown = |quantile: f64| least_events as f64 * (1.0 - quantile) >= 10.0;
    let point = |(index, quantile): (usize, &f64)| {
        let of_runs: Vec<f64> = runs().map(|run| run.latencies_ns[index] as f64 / 1e6).collect();
        // A logarithmic axis cannot show 0, which a fake clock can give.
        let y = median(&of_runs).filter(|y| *y > 0.0 && shown(*quantile))?;
        Some(Point::at(*quantile, y))
    };
    QUANTILES.iter().enumerate().filter_map(point).collect()
}

// Charts of a comparison: one for each group of steps.

/// Forest plots: the relative rate of every step of a group on every target, with intervals and the
/// equivalence margin δ. One chart for each group and number of clients that has a ratio. Omits steps that only one
/// target has, such as those named after parameters of an index.
pub(crate) fn relative_rates(comparison: &Comparison) -> Vec<Chart> {
    let key = |step: &StepComparison| (step.group, clients(step));
    let keys: BTreeSet<(Group, Option<u32>)> = comparison.steps.iter().map(key).collect();
    let of_key = |wanted: (Group, Option<u32>)| {
        let steps = comparison.steps.iter().filter(|step| key(step) == wanted);
        let shared: Vec<&StepComparison> = steps.filter(|step| is_shared(step)).collect();
        let (group, clients) = wanted;
        let clients = clients.map(|clients| format!(".clients={clients}")).unwrap_or_default();
        chart(comparison, &format!("{}{clients}", group.name()), &shared)
    };
    keys.into_iter().filter_map(of_key).collect()
}

/// Returns true if the baseline and another target have the step, or a run of theirs failed in it.
fn is_shared(step: &StepComparison) -> bool {
    let mut carried_out = step.targets.iter().map(TargetResult::was_carried_out);
    carried_out.next().unwrap_or(false) && carried_out.any(|it| it)
}

/// The steps, that with the largest loss of any target first; those without a ratio last.
pub(crate) fn by_loss<'a>(
    steps: impl IntoIterator<Item = &'a StepComparison>,
) -> Vec<&'a StepComparison> {
    let worst = |step: &StepComparison| {
        let ratios = step.targets.iter().filter_map(|target| target.comparable(Metric::Rate));
        ratios.map(|relative| relative.ratio).fold(f64::INFINITY, f64::min)
    };
    let mut steps: Vec<&StepComparison> = steps.into_iter().collect();
    steps.sort_by(|a, b| worst(a).total_cmp(&worst(b)));
    steps
}

/// One forest plot of all these steps, the largest loss first; `None` without a ratio.
pub(crate) fn forest(comparison: &Comparison, steps: Vec<&StepComparison>) -> Option<Chart> {
    let steps = by_loss(steps.into_iter().filter(|step| is_shared(step)));
    let title = format!("Rate relative to {}", comparison.baseline);
    chart(comparison, "steps", &steps).map(|chart| Chart { title, ..chart })
}

fn chart(comparison: &Comparison, group: &str, steps: &[&StepComparison]) -> Option<Chart> {
    let names = steps.iter().map(|step| step.name.clone()).collect();
    let title = format!("{group}: rate relative to {}", comparison.baseline);
    let mut chart = Chart::new(format!("rates-{group}"), title, Form::Forest)
        .axes(Axis::of_categories("step", names), Axis::log("rQPS", ""));
    for (slot, facts) in comparison.targets.iter().enumerate().skip(1) {
        let points = steps.iter().enumerate().filter_map(|(place, step)| {
            let target = &step.targets[slot];
            let relative = target.comparable(Metric::Rate)?;
            let runs =
                target.samples.iter().map(|sample| comparison.runs[sample.run].folder.clone());
            let point = Point::at(place as f64, relative.ratio).within(relative.shown_interval());
            let word = relative.judgement.as_ref().map_or("", |judgement| judgement.verdict.name());
            Some(point.noted(word).from_runs(runs.collect()))
        });
        let series = Series::new(facts.label.clone(), slot, Line::None);
        chart.series.push(Series { points: points.collect(), ..series });
    }
    let delta = comparison.rules.delta;
    chart.margin = Some(Interval { low: 1.0 - delta, high: 1.0 / (1.0 - delta) });
    let percent = Digits::Significant(2).write(100.0 * delta);
    chart.notes.push(format!("Shaded: differences below {percent} % (delta)."));
    chart.rules.push(Rule { value: 1.0, label: comparison.baseline.clone() });
    let infinite = chart.series.iter().flat_map(|s| &s.points).filter(|p| !p.y.is_finite()).count();
    if infinite > 0 {
        chart
            .notes
            .push(format!("Infinite ratios not drawn (the baseline's value is 0): {infinite}."));
    }
    chart.series.iter().any(|series| !series.points.is_empty()).then_some(chart)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::benchmark::Group;

    fn rows(statements: &[u64]) -> Vec<Second> {
        let row = |(index, statements): (usize, &u64)| Second {
            second: index as u32 + 1,
            seconds: 1.0,
            events: *statements,
            statements: *statements,
            p99_us: 1000.0 * (index + 1) as f64,
            ..Second::default()
        };
        statements.iter().enumerate().map(row).collect()
    }

    fn record(per_second: Vec<f64>) -> StepRecord {
        let empty = StepRecord::empty(1, "x", Group::Point, RateUnit::Queries);
        StepRecord { per_second, ..empty }
    }

    #[test]
    fn thinning_keeps_the_mean_the_range_and_the_worst_second() {
        let trace = trace(&record(Vec::new()), &rows(&[10, 30, 0, 40, 50]), 3);
        assert_eq!(trace.width, 2);
        let rates: Vec<(f64, f64)> = trace.rate.iter().map(|p| (p.x, p.y)).collect();
        assert_eq!(rates, [(1.0, 20.0), (3.0, 20.0), (4.5, 50.0)]);
        assert_eq!(trace.rate[1].interval, Some(Interval { low: 0.0, high: 40.0 }));
        assert_eq!(trace.p99.iter().map(|p| p.y).collect::<Vec<_>>(), [2.0, 4.0, 5.0]);
        assert_eq!(trace.stalls, [(2.0, 3.0)]);
    }

    #[test]
    fn a_record_without_rows_still_has_its_rates() {
        let trace = trace(&record(vec![5.0, 6.0]), &[], 100);
        assert_eq!(trace.rate, [Point::at(0.5, 5.0), Point::at(1.5, 6.0)]);
        assert!(trace.p99.is_empty());
    }
}
