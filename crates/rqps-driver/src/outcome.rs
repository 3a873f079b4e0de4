//! Adds up the counts of all clients, and of several drivers.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;

use crate::client::Counts;
use crate::clock::SECOND;
use crate::control_channel::StepInterval;
use crate::recorder::{self, Recorder, histograms, text_of};
use crate::request::{DriverRequest, StepRequest};
use rqps_model::benchmark::{Pace, RateUnit};
use rqps_model::metric::Metric;
use rqps_model::run::{CpuTime, OpenOutcome, Outcome, Role};

/// Adds up the clients' counts. CPU time, plans and notes are left to the caller.
pub fn outcome<B>(
    request: &DriverRequest,
    task: &StepRequest<B>,
    counts: &[Counts],
    recorders: &[Arc<Recorder>],
) -> Outcome {
    let (latency, service) =
        histograms(&recorders.iter().map(AsRef::as_ref).collect::<Vec<&Recorder>>());
    let mut outcome = Outcome {
        seconds: effective_seconds(counts),
        latency,
        service,
        errors: BTreeMap::new(),
        ..Outcome::default()
    };
    for (index, client) in counts.iter().enumerate() {
        outcome.events += client.events;
        outcome.statements += client.tally.statements;
        outcome.reads += client.tally.reads;
        outcome.writes += client.tally.writes;
        outcome.others += client.tally.others;
        outcome.no_ops += client.tally.no_ops;
        outcome.rows += client.tally.rows;
        outcome.affected += client.tally.affected;
        outcome.bytes += client.tally.bytes;
        outcome.outside += client.outside;
        for (code, count) in &client.errors {
            *outcome.errors.entry(code.clone()).or_insert(0) += count;
        }
        if client.stopped {
            let number = request.number_of(index as u32);
            outcome.stopped.insert(number.to_string(), client.events);
        }
        if client.stretched {
            outcome.notes.push(format!(
                "client {index}: no event ended within the window of {} s; the event in flight \
                 counts over its own {:.3} s",
                task.seconds,
                client.window_ns as f64 / SECOND
            ));
        }
    }
    if task.rate == RateUnit::RowsScanned {
        outcome.rows_scanned = request.rows * outcome.reads;
    }
    if let Pace::Open { .. } = task.pace {
        let behind = counts.iter().map(|client| client.behind_ns).max().unwrap_or(0);
        outcome.open = Some(OpenOutcome {
            due: counts.iter().map(|client| client.due).sum(),
            behind_seconds_max: behind as f64 / SECOND,
        });
    }
    outcome
}

/// The divisor of the events, seconds, which makes the rate the sum of the clients' rates: the
/// window itself; if clients finished their last events at different times, Σ events / Σ (events /
/// own seconds).
fn effective_seconds(counts: &[Counts]) -> f64 {
    let first = counts.first().map_or(0, |client| client.window_ns);
    let events: u64 = counts.iter().map(|client| client.events).sum();
    if events == 0 || counts.iter().all(|client| client.window_ns == first) {
        return counts.iter().map(|client| client.window_ns).max().unwrap_or(0) as f64 / SECOND;
    }
    let rate: f64 = counts
        .iter()
        .filter(|client| client.window_ns > 0)
        .map(|client| client.events as f64 / client.window_ns as f64)
        .sum();
    events as f64 / rate / SECOND
}

// Merges the counts of several drivers whose hosts share the clients of a step.

/// Merges the same interval of all drivers. Columns of their own add up, except for the quantiles
/// of roles.
///
/// # Errors
///
/// A driver sent no latencies.
pub fn interval(parts: &[StepInterval]) -> Result<StepInterval, String> {
    let texts = parts.iter().map(|part| part.latency.as_deref().unwrap_or_default());
    let latencies = histogram(texts)?;
    let us = |quantile: f64| microseconds(&latencies, quantile);
    let sum = |get: fn(&StepInterval) -> u64| parts.iter().map(get).sum();
    Ok(StepInterval {
        second: parts.first().map_or(0, |part| part.second),
        seconds: parts.iter().map(|part| part.seconds).fold(0.0, f64::max),
        events: sum(|part| part.events),
        statements: sum(|part| part.statements),
        errors: sum(|part| part.errors),
        p50_us: us(0.5),
        p95_us: us(0.95),
        p99_us: us(0.99),
        max_us: us(1.0),
        extra: columns(parts)?,
        latency: None,
        latencies: BTreeMap::new(),
    })
}

/// A quantile of latencies, microseconds; 0 without any.
fn microseconds(latencies: &Histogram<u64>, quantile: f64) -> f64 {
    if latencies.is_empty() { 0.0 } else { latencies.value_at_quantile(quantile) as f64 / 1e3 }
}

/// The sums of all columns, and the quantiles of each role over all hosts.
fn columns(parts: &[StepInterval]) -> Result<BTreeMap<String, f64>, String> {
    let mut columns = BTreeMap::new();
    for (name, value) in parts.iter().flat_map(|part| &part.extra) {
        *columns.entry(name.clone()).or_insert(0.0) += value;
    }
    let mut roles: BTreeMap<&String, Vec<&str>> = BTreeMap::new();
    for (role, latencies) in parts.iter().flat_map(|part| &part.latencies) {
        roles.entry(role).or_default().push(latencies);
    }
    for (role, texts) in roles {
        let latencies = histogram(texts.into_iter())?;
        let done = columns.get(role).copied().unwrap_or(0.0);
        let us = |quantile: f64| microseconds(&latencies, quantile);
        recorder::add(role, done, (us(0.99), us(1.0)), &mut columns);
    }
    Ok(columns)
}

/// Merges the counts of all drivers in the window: rates add up. Series come from the merged
/// intervals.
///
/// # Errors
///
/// A driver sent turns, or figures of a benchmark's own loop that cannot be added up.
pub fn merged_outcome(parts: &[Outcome]) -> Result<Outcome, String> {
    let Some(first) = parts.first() else { return Ok(Outcome::default()) };
    if parts.iter().any(|part| !part.series.is_empty() || part.turns.is_some()) {
        return Err("failed to add up the outcomes of several drivers: they have figures by \
                    second or by turn"
            .to_owned());
    }
    let sum = |get: fn(&Outcome) -> u64| parts.iter().map(get).sum();
    let mut errors = BTreeMap::new();
    for (code, count) in parts.iter().flat_map(|part| &part.errors) {
        *errors.entry(code.clone()).or_insert(0) += count;
    }
    let services: Vec<&str> = parts.iter().filter_map(|part| part.service.as_deref()).collect();
    Ok(Outcome {
        seconds: seconds(parts),
        events: sum(|part| part.events),
        statements: sum(|part| part.statements),
        reads: sum(|part| part.reads),
        writes: sum(|part| part.writes),
        others: sum(|part| part.others),
        no_ops: sum(|part| part.no_ops),
        rows: sum(|part| part.rows),
        affected: sum(|part| part.affected),
        rows_scanned: sum(|part| part.rows_scanned),
        bytes: sum(|part| part.bytes),
        outside: sum(|part| part.outside),
        errors,
        latency: text_of(Some(&histogram(parts.iter().map(|part| part.latency.as_str()))?)),
        service: service(&services)?,
        open: open(parts),
        client_cpu: cpu(parts.iter().map(|part| part.client_cpu)),
        client_busiest: parts.iter().map(|part| part.client_busiest).fold(0.0, f64::max),
        plans: first.plans.clone(),
        notes: parts.iter().flat_map(|part| part.notes.clone()).collect(),
        stopped: parts.iter().flat_map(|part| part.stopped.clone()).collect(),
        cut: parts.iter().find_map(|part| part.cut.clone()),
        extra: extra(parts)?,
        facts: facts(parts),
        roles: roles(parts)?,
        buckets: buckets(parts),
        ..Outcome::default()
    })
}

/// The benchmark's own metrics: sums, and those that one driver alone has sent for all.
fn extra(parts: &[Outcome]) -> Result<BTreeMap<Metric, f64>, String> {
    let mut all: BTreeMap<Metric, Vec<f64>> = BTreeMap::new();
    for (metric, value) in parts.iter().flat_map(|part| &part.extra) {
        all.entry(*metric).or_default().push(*value);
    }
    let one = |(metric, values): (Metric, Vec<f64>)| match values.as_slice() {
        values if metric.spec().adds_up => Ok((metric, values.iter().sum())),
        [value] => Ok((metric, *value)),
        _ => Err(format!(
            "failed to add up the outcomes of several drivers: the metric {} has no sum",
            metric.spec().key
        )),
    };
    all.into_iter().map(one).collect()
}

/// The counts of all response-time classes.
fn buckets(parts: &[Outcome]) -> BTreeMap<String, Vec<u64>> {
    let mut all: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (name, counts) in parts.iter().flat_map(|part| &part.buckets) {
        let sums = all.entry(name.clone()).or_default();
        sums.resize(sums.len().max(counts.len()), 0);
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    all
}

/// Adds up each role over all hosts.
fn roles(parts: &[Outcome]) -> Result<BTreeMap<String, Role>, String> {
    let mut all: BTreeMap<&String, Vec<&Role>> = BTreeMap::new();
    for (name, role) in parts.iter().flat_map(|part| &part.roles) {
        all.entry(name).or_default().push(role);
    }
    all.into_iter().map(|(name, roles)| Ok((name.clone(), role(&roles)?))).collect()
}

fn role(parts: &[&Role]) -> Result<Role, String> {
    let targets: Vec<f64> = parts.iter().filter_map(|part| part.target_per_second).collect();
    let services: Vec<&str> = parts.iter().filter_map(|part| part.service.as_deref()).collect();
    let latency = histogram(parts.iter().map(|part| part.latency.as_str()))?;
    Ok(Role {
        workers: parts.iter().map(|part| part.workers).sum(),
        operations: parts.iter().map(|part| part.operations).sum(),
        rows: parts.iter().map(|part| part.rows).sum(),
        target_per_second: (!targets.is_empty()).then(|| targets.iter().sum()),
        latency: text_of(Some(&latency)),
        service: service(&services)?,
        cpu: cpu(parts.iter().map(|part| part.cpu)),
        busiest: parts.iter().map(|part| part.busiest).fold(0.0, f64::max),
        // One host replays a trace.
        seconds: None,
    })
}

fn service(parts: &[&str]) -> Result<Option<String>, String> {
    if parts.is_empty() {
        Ok(None)
    } else {
        Ok(Some(text_of(Some(&histogram(parts.iter().copied())?))))
    }
}

fn cpu(parts: impl Iterator<Item = CpuTime>) -> CpuTime {
    parts.fold(CpuTime::default(), |sum, part| CpuTime {
        user_us: sum.user_us + part.user_us,
        system_us: sum.system_us + part.system_us,
    })
}

/// The facts of all drivers; where they differ, all values in the order of the hosts.
fn facts(parts: &[Outcome]) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in parts.iter().flat_map(|part| &part.facts) {
        let values = all.entry(name.clone()).or_default();
        if !values.contains(value) {
            values.push(value.clone());
        }
    }
    all.into_iter().map(|(name, values)| (name, values.join("; "))).collect()
}

/// The divisor of the sum of events, seconds, which makes the rate the sum of the drivers' rates.
fn seconds(parts: &[Outcome]) -> f64 {
    let longest = parts.iter().map(|part| part.seconds).fold(0.0, f64::max);
    let events: u64 = parts.iter().map(|part| part.events).sum();
    if events == 0 || parts.iter().all(|part| part.seconds == longest) {
        return longest;
    }
    let rates = parts.iter().filter(|part| part.seconds > 0.0);
    events as f64 / rates.map(|part| part.events as f64 / part.seconds).sum::<f64>()
}

fn open(parts: &[Outcome]) -> Option<OpenOutcome> {
    let all: Vec<OpenOutcome> = parts.iter().filter_map(|part| part.open).collect();
    (!all.is_empty()).then(|| OpenOutcome {
        due: all.iter().map(|open| open.due).sum(),
        behind_seconds_max: all.iter().map(|open| open.behind_seconds_max).fold(0.0, f64::max),
    })
}

/// The sum of histograms as drivers write them.
fn histogram<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Histogram<u64>, String> {
    let wrong = |why: String| format!("failed to add up the latencies of several drivers: {why}");
    let mut sum: Option<Histogram<u64>> = None;
    for text in texts {
        let bytes = base64::engine::general_purpose::STANDARD.decode(text);
        let bytes = bytes.map_err(|error| wrong(error.to_string()))?;
        let part: Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|error| wrong(error.to_string()))?;
        match &mut sum {
            Some(sum) => sum.add(&part).map_err(|error| wrong(error.to_string()))?,
            None => sum = Some(part),
        }
    }
    sum.ok_or_else(|| wrong("there are none".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::Snapshot;

    fn latencies(values: &[u64]) -> String {
        let recorder = Recorder::new(false);
        values.iter().for_each(|value| recorder.event(*value, 0, 1));
        Snapshot::take([&recorder]).latencies_since(&Snapshot::default())
    }

    #[test]
    fn quantiles_are_those_of_all_latencies_together() {
        let part = |values: &[u64]| StepInterval {
            second: 3,
            seconds: 1.0,
            events: values.len() as u64,
            latency: Some(latencies(values)),
            ..StepInterval::default()
        };
        let merged = interval(&[part(&[1000, 1000, 1000]), part(&[2000, 2000]), part(&[])]);
        let merged = merged.unwrap();
        assert_eq!((merged.second, merged.events), (3, 5));
        assert_eq!((merged.p50_us.floor(), merged.max_us.floor()), (1.0, 2.0));
        assert_eq!(interval(&[part(&[]), part(&[])]).unwrap().max_us, 0.0);
        let untold = StepInterval::default();
        assert!(interval(&[untold.clone(), untold]).unwrap_err().contains("latencies"));
    }

    #[test]
    fn rates_add_up_where_windows_differ() {
        let part = |events: u64, seconds: f64| Outcome {
            events,
            statements: 2 * events,
            seconds,
            latency: latencies(&[5000]),
            errors: BTreeMap::from([("40001".to_owned(), 1)]),
            client_busiest: seconds / 10.0,
            stopped: BTreeMap::from([(events.to_string(), 7)]),
            facts: BTreeMap::from([("events", events.to_string()), ("seed", "1".to_owned())])
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            ..Outcome::default()
        };
        let merged = merged_outcome(&[part(100, 1.0), part(300, 2.0)]).unwrap();
        assert_eq!((merged.events, merged.statements), (400, 800));
        assert!((merged.events as f64 / merged.seconds - 250.0).abs() < 1e-9);
        assert_eq!(merged.errors["40001"], 2);
        assert_eq!(merged.client_busiest, 0.2);
        assert_eq!(merged.stopped.len(), 2);
        assert_eq!(
            (merged.facts["events"].as_str(), merged.facts["seed"].as_str()),
            ("100; 300", "1")
        );
        assert_eq!(merged_outcome(&[part(100, 1.5), part(50, 1.5)]).unwrap().seconds, 1.5);
        let own = Outcome { series: BTreeMap::from([("x".to_owned(), vec![])]), ..part(1, 1.0) };
        assert!(merged_outcome(&[part(1, 1.0), own]).is_err());
    }

    #[test]
    fn metrics_and_roles_of_a_benchmark_add_up() {
        let part = |operations: u64, busiest: f64, nopm: f64| Outcome {
            seconds: 1.0,
            events: operations,
            latency: latencies(&[5000]),
            extra: BTreeMap::from([(Metric::NewOrdersPerMinute, nopm)]),
            roles: BTreeMap::from([(
                "payment".to_owned(),
                Role {
                    workers: 2,
                    operations,
                    latency: latencies(&[1000 * operations]),
                    cpu: CpuTime { user_us: 3.0, system_us: 1.0 },
                    busiest,
                    ..Role::default()
                },
            )]),
            ..Outcome::default()
        };
        let merged = merged_outcome(&[part(5, 0.25, 60.0), part(9, 0.5, 90.0)]).unwrap();
        assert_eq!(merged.extra, BTreeMap::from([(Metric::NewOrdersPerMinute, 150.0)]));
        let role = &merged.roles["payment"];
        assert_eq!((role.workers, role.operations, role.busiest), (4, 14, 0.5));
        assert_eq!(role.cpu, CpuTime { user_us: 6.0, system_us: 2.0 });
        assert_eq!(histogram([role.latency.as_str()].into_iter()).unwrap().len(), 2);
        let other =
            Outcome { extra: BTreeMap::from([(Metric::IndexSeconds, 1.0)]), ..part(1, 0.1, 1.0) };
        let alone = merged_outcome(&[part(1, 0.1, 1.0), other.clone()]).unwrap();
        assert_eq!(alone.extra[&Metric::IndexSeconds], 1.0, "one host speaks for all");
        assert!(merged_outcome(&[other.clone(), other]).unwrap_err().contains("has no sum"));
    }

    #[test]
    fn columns_and_classes_add_up_and_quantiles_of_roles_are_those_of_all() {
        let part = |values: &[u64]| StepInterval {
            latency: Some(latencies(&[])),
            latencies: BTreeMap::from([("inserts".to_owned(), latencies(values))]),
            extra: BTreeMap::from([
                ("inserts".to_owned(), values.len() as f64),
                ("inserts_max_us".to_owned(), 7.0),
                ("min_key_s".to_owned(), 0.25),
            ]),
            ..StepInterval::default()
        };
        let server = StepInterval {
            extra: BTreeMap::from([("server_dirty".to_owned(), 3.0)]),
            latency: Some(latencies(&[])),
            ..StepInterval::default()
        };
        let parts = [part(&[1000, 2000]), part(&[5000]), server];
        let columns = interval(&parts).unwrap().extra;
        let values: Vec<f64> = columns.values().map(|value| value.floor()).collect();
        let names: Vec<&str> = columns.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            ["inserts", "inserts_max_us", "inserts_p99_us", "min_key_s", "server_dirty"]
        );
        assert_eq!(values, [3.0, 5.0, 5.0, 0.0, 3.0]);
        assert_eq!(columns["min_key_s"], 0.5);
        let classes = |counts: &[u64]| Outcome {
            latency: latencies(&[]),
            buckets: BTreeMap::from([("inserts".to_owned(), counts.to_vec())]),
            ..Outcome::default()
        };
        let merged = merged_outcome(&[classes(&[1, 0, 2]), classes(&[4, 5, 0])]).unwrap();
        assert_eq!(merged.buckets["inserts"], [5, 5, 2]);
    }
}
