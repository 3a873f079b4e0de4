//! A client's event: a call of the script's event().

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;

use super::host::SqlHost;
use super::state::{Surroundings, load_script, tell};
use crate::driver::EventCap;
use rqps_driver::attempt::{AfterError, ClientEvent, ClientStop, StatementError, Tally};
use rqps_driver::connection::Connection;
use rqps_driver::recorder::{Recorder, Snapshot};
use rqps_embed::lua::{EventEnd, LuaState};
use rqps_model::lua::LuaWork;
use rqps_wire::WireError;

/// The script of one client.
pub(super) struct ScriptClient {
    state: LuaState<SqlHost>,
    /// Name of the script, for faults.
    name: String,
    client: u32,
    /// Sums for the script's own reports.
    figures: Arc<Figures>,
    /// True if the script has reports.
    reports: bool,
    /// Statements of the last event, for the reports.
    last: Tally,
    /// The events that all clients together may carry out.
    cap: EventCap,
    /// Set once event() has returned a value, thread_run() has ended before its time, or there are
    /// no more events.
    stopped: Option<ClientStop>,
}

impl ScriptClient {
    /// Opens the state of client `client`, loads the script and connects. The error is a complete
    /// message.
    pub(super) fn begin(
        surroundings: &Surroundings,
        work: &LuaWork,
        client: u32,
        (figures, cap): (&Arc<Figures>, &EventCap),
        session: &mut Connection,
    ) -> Result<ScriptClient, String> {
        let name = work.script.name.clone();
        let fault = |what: String| format!("failed to prepare {name}: {what}");
        let mut state = surroundings.open(work, client, "run")?;
        state.host().borrow(session);
        let begun = load_script(&mut state, &work.script.path)
            .and_then(|()| state.command("call", "thread_init").map(|_| ()))
            .and_then(|()| state.keep_event());
        state.host().give_back(session);
        begun.map_err(fault)?;
        state.host().tally = Tally::default();
        let reports = !state.command("hooks", "").map_err(fault)?.is_empty();
        if reports {
            figures.want();
        }
        let figures = Arc::clone(figures);
        let last = Tally::default();
        let cap = cap.clone();
        Ok(ScriptClient { state, name, client, figures, reports, last, cap, stopped: None })
    }

    #[cold]
    fn failed(&self, said: String) -> StatementError {
        StatementError { kind: self.name.clone(), error: WireError::Protocol(said) }
    }

    /// Repeats an event after the script has restored its connection.
    #[cold]
    fn restart(&mut self) -> StatementError {
        let error = self.state.host().last.take();
        if self.reports {
            self.figures.error(self.client);
        }
        if let Err(said) = self.state.command("restart", "") {
            return self.failed(said);
        }
        let of_script = || WireError::Server {
            code: "restart".to_owned(),
            message: "the script restarted the event".to_owned(),
        };
        StatementError { kind: self.name.clone(), error: error.unwrap_or_else(of_script) }
    }
}

impl ClientEvent for ScriptClient {
    #[inline]
    fn attempt(
        &mut self,
        session: &mut Connection,
        tally: &mut Tally,
    ) -> Result<(), StatementError> {
        if self.cap.is_reached() {
            self.stopped = Some(ClientStop::Together);
            return Ok(());
        }
        self.state.host().borrow(session);
        let ended = match self.state.event() {
            EventEnd::Done => Ok(()),
            EventEnd::Restart => Err(self.restart()),
            EventEnd::Failed(said) => Err(self.failed(said)),
            EventEnd::Stopped => {
                self.stopped = Some(ClientStop::Alone);
                Ok(())
            }
        };
        let host = self.state.host();
        if ended.is_ok() {
            host.event_ended();
        }
        host.give_back(session);
        let of_event = std::mem::take(&mut host.tally);
        tally.add(&of_event);
        if self.reports {
            self.last = of_event;
        }
        ended
    }

    #[inline]
    fn stopped(&self) -> Option<ClientStop> {
        self.stopped
    }

    fn after_error(&self, _: &str) -> Option<AfterError> {
        // Only errors after which the event begins again have the form of a server's error.
        Some(AfterError::Repeat)
    }

    #[inline]
    fn recorded(&mut self, latency_ns: u64) {
        self.cap.count();
        if self.reports {
            self.figures.event(self.client, &self.last, latency_ns);
        }
    }

    fn own_errors(&mut self) -> u64 {
        std::mem::take(&mut self.state.host().own_errors)
    }

    fn finish(&mut self, session: &mut Connection) -> Result<(), String> {
        self.state.host().borrow(session);
        let ended = self.state.command("finish", "");
        self.state.host().give_back(session);
        let said = ended.map_err(|said| format!("failed to end {}: {said}", self.name))?;
        if !said.is_empty() {
            self.figures.note_default();
        }
        Ok(())
    }
}

// A script's own reports: hooks that sysbench calls every few seconds, and once at the end. They
// run in a separate Lua state; their output goes to the log.

/// Default seconds between two reports.
const EVERY: f64 = 10.0;

/// Quantiles in reports: the minimum, the one that sysbench calls percentile, the maximum.
const QUANTILES: [f64; 3] = [0.0, 0.95, 1.0];

/// Sums of all clients since the start of the step.
pub(super) struct Figures {
    /// Number of the first client among those of all hosts.
    first: u32,
    threads: u32,
    /// Set once a client has found that the script has reports.
    clients: OnceLock<Vec<ClientFigures>>,
    /// End of the first counted event.
    begun: OnceLock<Instant>,
    /// True if the script leaves it to sysbench how numbers are distributed.
    drew_by_default: AtomicBool,
}

/// The sums of one client. Its recorder changes only while the sums are locked, so that all figures
/// of a report contain the same events.
struct ClientFigures {
    recorder: Recorder,
    sums: Mutex<Sums>,
}

/// Totals of one client, or of all.
#[derive(Default)]
struct Sums {
    reads: u64,
    writes: u64,
    others: u64,
    errors: u64,
    latency_ns: u64,
}

impl ClientFigures {
    fn sums(&self) -> MutexGuard<'_, Sums> {
        self.sums.lock().expect("sums are whole: adding does not panic")
    }
}

impl Figures {
    /// Sums of `threads` clients from number `first` on, all zero.
    pub(super) fn of(first: u32, threads: u32) -> Arc<Figures> {
        Arc::new(Figures {
            first,
            threads,
            clients: OnceLock::new(),
            begun: OnceLock::new(),
            drew_by_default: AtomicBool::new(false),
        })
    }

    /// Notes that the script has report hooks.
    pub(super) fn want(&self) {
        let client = |_| ClientFigures { recorder: Recorder::new(false), sums: Mutex::default() };
        self.clients.get_or_init(|| (0..self.threads).map(client).collect());
    }

    /// True if the script has report hooks.
    pub(super) fn is_wanted(&self) -> bool {
        self.clients.get().is_some()
    }

    /// Notes that a client has used sysbench's default distribution.
    fn note_default(&self) {
        self.drew_by_default.store(true, Ordering::Relaxed);
    }

    /// True if a client has used sysbench's default distribution.
    pub(super) fn drew_by_default(&self) -> bool {
        self.drew_by_default.load(Ordering::Relaxed)
    }

    /// The sums of a client by its number among those of all hosts.
    fn own(&self, client: u32) -> Option<&ClientFigures> {
        self.all().get(client.checked_sub(self.first)? as usize)
    }

    fn all(&self) -> &[ClientFigures] {
        self.clients.get().map_or(&[], |clients| clients)
    }

    /// Records a counted event of a client.
    pub(super) fn event(&self, client: u32, tally: &Tally, latency_ns: u64) {
        let Some(own) = self.own(client) else { return };
        self.begun.get_or_init(Instant::now);
        let mut sums = own.sums();
        own.recorder.event(latency_ns, latency_ns, 0);
        sums.reads += tally.reads;
        sums.writes += tally.writes;
        sums.others += tally.others;
        sums.latency_ns += latency_ns;
    }

    /// Records that a client repeats an event.
    pub(super) fn error(&self, client: u32) {
        if let Some(own) = self.own(client) {
            own.sums().errors += 1;
        }
    }

    fn now(&self) -> Moment {
        let locked: Vec<MutexGuard<Sums>> = self.all().iter().map(ClientFigures::sums).collect();
        let total = |of: fn(&Sums) -> u64| locked.iter().map(|sums| of(sums)).sum();
        Moment {
            seconds: self.begun.get().map_or(0.0, |begun| begun.elapsed().as_secs_f64()),
            latencies: Snapshot::take(self.all().iter().map(|client| &client.recorder)),
            sums: Sums {
                reads: total(|sums| sums.reads),
                writes: total(|sums| sums.writes),
                others: total(|sums| sums.others),
                errors: total(|sums| sums.errors),
                latency_ns: total(|sums| sums.latency_ns),
            },
        }
    }
}

/// All sums at one moment.
#[derive(Default)]
struct Moment {
    seconds: f64,
    latencies: Snapshot,
    sums: Sums,
}

/// Calls the report hooks.
pub(super) struct Reporter {
    state: LuaState<SqlHost>,
    figures: Arc<Figures>,
    name: String,
    every: f64,
    last: Moment,
}

impl Reporter {
    /// Opens a state and loads the script. The error is a complete message.
    pub(super) fn open(
        surroundings: &Surroundings,
        work: &LuaWork,
        figures: &Arc<Figures>,
    ) -> Result<Reporter, String> {
        let name = work.script.name.clone();
        let mut state = surroundings.open(work, work.clients, "run")?;
        load_script(&mut state, &work.script.path)
            .map_err(|what| format!("failed to prepare the reports of {name}: {what}"))?;
        let every = work.report_interval.unwrap_or(EVERY);
        let last = Moment::default();
        Ok(Reporter { state, figures: Arc::clone(figures), name, every, last })
    }

    /// Calls `report_intermediate` when it is due.
    pub(super) fn look(&mut self) -> Result<(), String> {
        let now = self.figures.now();
        if now.seconds - self.last.seconds < self.every {
            return Ok(());
        }
        self.call("intermediate", &now)?;
        self.last = now;
        Ok(())
    }

    /// Calls `report_cumulative` with the sums of the whole step.
    pub(super) fn end(&mut self) -> Result<(), String> {
        self.last = Moment::default();
        let now = self.figures.now();
        self.call("cumulative", &now)
    }

    fn call(&mut self, kind: &str, now: &Moment) -> Result<(), String> {
        let last = &self.last;
        let (events, quantiles) = now.latencies.since(&last.latencies, &QUANTILES);
        let seconds = |ns: u64| ns as f64 / 1e9;
        let sum = seconds(now.sums.latency_ns - last.sums.latency_ns);
        let quantile = |place: usize| quantiles.get(place).map_or(0.0, |ns| seconds(*ns));
        let mut said = kind.to_owned();
        for (name, value) in [
            ("threads_running", f64::from(self.figures.threads)),
            ("time_interval", now.seconds - last.seconds),
            ("time_total", now.seconds),
            ("latency_pct", quantile(1)),
            ("events", events as f64),
            ("reads", (now.sums.reads - last.sums.reads) as f64),
            ("writes", (now.sums.writes - last.sums.writes) as f64),
            ("other", (now.sums.others - last.sums.others) as f64),
            ("errors", (now.sums.errors - last.sums.errors) as f64),
            ("reconnects", 0.0),
            ("queue_length", 0.0),
            ("concurrency", 0.0),
            ("latency_min", quantile(0)),
            ("latency_max", quantile(2)),
            ("latency_avg", sum / events.max(1) as f64),
            ("latency_sum", sum),
        ] {
            // Writing to a string cannot fail.
            let _ = write!(said, "\u{1f}{name}\u{1f}{value}");
        }
        tell(&mut self.state, "report", &[&said])
            .map(|_| ())
            .map_err(|what| format!("failed to report of {}: {what}", self.name))
    }
}
