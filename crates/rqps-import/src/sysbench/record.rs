//! Makes the record of a step from sysbench output.

use base64::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};

use crate::notice::NoticeKind;
use crate::number::each_second;
use crate::sysbench::output::Output;
use rqps_model::benchmark::Workload;
use rqps_model::metric::Metric;
use rqps_model::run::StepRecord;

/// Sets counts, errors and latencies. Percentiles are kept as printed; a printed histogram becomes
/// one of rqps with each event at the value of its line.
pub(crate) fn fill(step: &mut StepRecord, output: &Output) {
    let outcome = &mut step.outcome;
    // After a checkpoint, counts cover the time since then.
    let before = output.checkpoint.unwrap_or(0.0);
    outcome.seconds = (output.seconds.unwrap_or(0.0) - before).max(0.0);
    outcome.events = output.events.or(output.transactions).unwrap_or(0);
    if let Some(statements) = output.statements {
        outcome.statements = statements.total;
        outcome.reads = statements.reads;
        outcome.writes = statements.writes;
        outcome.others = statements.others;
    }
    let errors = [("ignored errors", output.ignored_errors), ("reconnects", output.reconnects)];
    for (name, count) in errors {
        if let Some(count) = count.filter(|count| *count > 0) {
            outcome.errors.insert(name.to_owned(), count);
        }
    }
    let percentile = output.percentile;
    let percentile = percentile.and_then(|(which, value)| Some((metric_of(which)?, value)));
    let max = output.latency_max.map(|value| (Metric::Max, value));
    for (metric, value) in percentile.into_iter().chain(max) {
        outcome.extra.entry(metric).or_insert(value);
    }
    if let Some(histogram) = histogram(&output.histogram) {
        outcome.latency = histogram;
    }
    // Intermediate reports further apart than a second are not used as seconds.
    if each_second(&output.intervals) {
        step.per_second = output.intervals.iter().map(|(_, rate)| *rate).collect();
    }
}

/// Remarks on the output: values that no record holds (another percentile, reports further apart
/// than a second), and facts about the numbers.
pub(crate) fn remarks(output: &Output) -> Vec<(NoticeKind, String)> {
    let mut remarks = Vec::new();
    if let Some((which, value)) = output.percentile
        && metric_of(which).is_none()
        && output.histogram.is_empty()
    {
        let text = format!("the {which}th percentile, {value} ms: reports have 50, 95 and 99");
        remarks.push((NoticeKind::Left, text));
    }
    if !each_second(&output.intervals) {
        let text = format!("{} reports that are not each second's", output.intervals.len());
        remarks.push((NoticeKind::Left, text));
    }
    if let Some(unfinished) = output.unfinished {
        let text = format!("sysbench forced the run to end: {unfinished} unfinished transactions");
        remarks.push((NoticeKind::Note, text));
    }
    if let Some(checkpoint) = output.checkpoint {
        let text = format!(
            "the run has intermediate statistics: imported the last ones, which cover the time \
             since {checkpoint} s"
        );
        remarks.push((NoticeKind::Note, text));
    }
    remarks
}

fn metric_of(percentile: u32) -> Option<Metric> {
    match percentile {
        50 => Some(Metric::P50),
        95 => Some(Metric::P95),
        99 => Some(Metric::P99),
        _ => None,
    }
}

fn histogram(lines: &[(f64, u64)]) -> Option<String> {
    if lines.is_empty() {
        return None;
    }
    let mut histogram = Histogram::<u64>::new(3).ok()?;
    for (milliseconds, count) in lines {
        histogram.record_n((milliseconds * 1e6).round().max(1.0) as u64, *count).ok()?;
    }
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(&histogram, &mut bytes).ok()?;
    Some(base64::engine::general_purpose::STANDARD.encode(bytes))
}

/// The command line for the logs, without passwords.
pub(crate) fn command_line(step: &str, output: &Output) -> Option<String> {
    let words = output.command.as_ref()?.split_whitespace();
    let words: Vec<&str> = words.filter(|word| !word.contains("password")).collect();
    Some(format!("{step}\t{}\n", words.join(" ")))
}

/// Copies the scale from the command line. Copies clients only if all steps have the same.
pub(crate) fn fill_workload(workload: &mut Workload, output: &Output, same_clients: bool) {
    let option = |name: &str| output.option(name).and_then(|value| value.parse::<u64>().ok());
    if let Some(tables) = option("tables") {
        workload.tables = u32::try_from(tables).unwrap_or(0);
    }
    if let Some(rows) = option("table-size") {
        workload.rows = rows;
    }
    if let Some(warmup) = output.warmup_seconds {
        workload.warmup_seconds = warmup;
    }
    if same_clients && let Some(clients) = output.clients {
        workload.clients = clients;
    }
    if let Some(seconds) = option("time") {
        let writes = output.statements.is_some_and(|statements| statements.writes > 0);
        let field = if writes { &mut workload.write_seconds } else { &mut workload.read_seconds };
        *field = field.max(seconds as f64);
    }
}
