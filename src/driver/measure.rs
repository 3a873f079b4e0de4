//! Measuring: clients are made ready, run through warm-up and window, and their counts put
//! together. The coordinating thread sleeps but for one look at the recorders a second.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use crate::domain::benchmark::{Pace, RateUnit};
use crate::domain::endpoint::Endpoint;
use crate::domain::run::{OpenOutcome, Outcome};
use crate::domain::script::Script;
use crate::driver::client::{Client, Counts, SECOND, Window};
use crate::driver::clock::Clock;
use crate::driver::connection::{Connection, Connector};
use crate::driver::event::{DriverEvent, Interval};
use crate::driver::link::LabLink;
use crate::driver::recorder::{Recorder, Snapshot, histograms};
use crate::driver::request::{DriverRequest, StepRequest};
use crate::driver::script::program::Program;
use crate::driver::step::{Clients, MakeActs};
use crate::driver::{Stop, fake, step};

/// Carries out a measuring job and says how it went.
pub(crate) fn measure<W: Write>(
    job: &DriverRequest,
    task: &StepRequest<Script>,
    connector: Connector,
    link: &mut LabLink<W>,
) -> Result<(), Stop> {
    check(task)?;
    match job.endpoint {
        Endpoint::Fake { real_time, .. } => fake::measure(job, task, &connector, real_time, link),
        Endpoint::Server(_) | Endpoint::File { .. } => {
            let outcome = step::measure(job, task, script_clients(connector, task), link)?;
            Ok(link.say(&DriverEvent::Measured(Box::new(outcome)))?)
        }
    }
}

/// Refuses what could never end or would divide by nothing.
fn check(task: &StepRequest<Script>) -> Result<(), String> {
    let seconds = |value: f64| value.is_finite() && value >= 0.0;
    let wrong = if task.clients == 0 {
        "no clients"
    } else if task.work.operations.is_empty() {
        "a script without operations"
    } else if !seconds(task.seconds) || task.seconds == 0.0 {
        "a window that is not a positive number of seconds"
    } else if !seconds(task.warmup_seconds) {
        "a warm-up that is not a number of seconds"
    } else if let Pace::Open { events_per_second } = task.pace
        && !(events_per_second.is_finite() && events_per_second > 0.0)
    {
        "an open pace that is not a positive number of events per second"
    } else {
        return Ok(());
    };
    Err(format!("failed to measure: the request has {wrong}"))
}

/// Prepares client `index` on its session.
pub(crate) fn ready_client(
    job: &DriverRequest,
    task: &StepRequest<Script>,
    index: u32,
    mut session: Connection,
    clock: Clock,
    recorder: Arc<Recorder>,
) -> Result<Client<Program>, String> {
    let acts = compile(job, &task.work, index, &mut session)?;
    let mut client = Client::new(session, acts, clock, job.dialect, recorder);
    client.set_pace(task.pace, job.seed, index, task.clients);
    Ok(client)
}

/// Clients whose work is a script.
pub(crate) fn script_clients(connector: Connector, task: &StepRequest<Script>) -> Clients<Program> {
    let script = task.work.clone();
    let explain = task.plans.then(|| task.work.clone());
    let make: MakeActs<Program> =
        Box::new(move |job, index, session| compile(job, &script, index, session));
    Clients { explain, ..Clients::new(connector, make) }
}

/// What client `index` does where the work is a script.
pub(crate) fn compile(
    job: &DriverRequest,
    script: &Script,
    index: u32,
    session: &mut Connection,
) -> Result<Program, String> {
    let data = (job.seed, job.tables, job.rows);
    Program::compile(script, index, data, job.dialect, session)
}

/// One recorder per client.
pub(crate) fn recorders<B>(task: &StepRequest<B>) -> Vec<Arc<Recorder>> {
    let open = matches!(task.pace, Pace::Open { .. });
    (0..task.clients).map(|_| Arc::new(Recorder::new(open))).collect()
}

/// True if cutting events at the ends of the window would count wrong: a scan may last as long as
/// the window.
pub(crate) fn counts_whole_events<B>(task: &StepRequest<B>) -> bool {
    task.rate == RateUnit::RowsScanned
}

/// Turns recorders into intervals.
pub(crate) struct IntervalMeter {
    recorders: Vec<Arc<Recorder>>,
    earlier: Snapshot,
    from_ns: u64,
    second: u32,
}

impl IntervalMeter {
    /// Starts at the start of the window.
    pub(crate) fn new(recorders: &[Arc<Recorder>], start_ns: u64) -> IntervalMeter {
        IntervalMeter {
            recorders: recorders.to_vec(),
            earlier: Snapshot::default(),
            from_ns: start_ns,
            second: 0,
        }
    }

    /// What happened since the last call.
    pub(crate) fn interval(&mut self, now_ns: u64) -> Interval {
        let now = Snapshot::take(self.recorders.iter().map(AsRef::as_ref));
        let (events, quantiles) = now.since(&self.earlier, &[0.5, 0.95, 0.99, 1.0]);
        let us = |index: usize| quantiles.get(index).map_or(0.0, |value| *value as f64 / 1e3);
        self.second += 1;
        let interval = Interval {
            second: self.second,
            seconds: now_ns.saturating_sub(self.from_ns) as f64 / SECOND,
            events,
            statements: now.statements - self.earlier.statements,
            errors: now.errors - self.earlier.errors,
            p50_us: us(0),
            p95_us: us(1),
            p99_us: us(2),
            max_us: us(3),
            extra: BTreeMap::new(),
        };
        self.from_ns = now_ns;
        self.earlier = now;
        interval
    }

    /// When the next interval is to end: a second after the last, or at the end of the window if
    /// that is nearer than a second and a half.
    pub(crate) fn next_cut(&self, start_ns: u64, end_ns: u64) -> u64 {
        let next = start_ns + (u64::from(self.second) + 1) * SECOND as u64;
        if next + SECOND as u64 / 2 > end_ns && next < end_ns { end_ns } else { next }
    }
}

/// Puts the clients' counts together; CPU, plans and notes of the making are the caller's.
pub(crate) fn outcome<B>(
    job: &DriverRequest,
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
        outcome.bytes += client.tally.bytes;
        outcome.outside += client.outside;
        for (code, count) in &client.errors {
            *outcome.errors.entry(code.clone()).or_insert(0) += count;
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
        outcome.rows_scanned = job.rows * outcome.reads;
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

/// The seconds by which the sum of events is to be divided so that the rate is the sum of the
/// clients' own rates: the window itself, but where clients finished their last events at
/// different times, Σ events / Σ (events / own seconds).
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

/// The window that begins at `start`.
pub(crate) fn window<B>(task: &StepRequest<B>, start: u64) -> Window {
    let length = (task.seconds * SECOND) as u64;
    Window { start, end: start + length.max(1), whole_events: counts_whole_events(task) }
}
