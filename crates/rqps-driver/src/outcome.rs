//! Adds up the counts of all clients.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::client::Counts;
use crate::clock::SECOND;
use crate::recorder::{Recorder, histograms};
use crate::request::{DriverRequest, StepRequest};
use rqps_model::benchmark::{Pace, RateUnit};
use rqps_model::run::{OpenOutcome, Outcome};

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
