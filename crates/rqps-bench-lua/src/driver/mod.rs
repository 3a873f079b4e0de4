//! Runs scripts: a state of LuaJIT per client, and the functions that scripts call.
//!
//! Runs commands of a script: `prepare`, which loads the data, and commands before a step.

mod host;
mod random;
mod state;

pub use state::{LUA_COMMAND, declared, first_statements, first_statements_of};

use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use host::{SqlHost, seed_of};
use state::{Surroundings, load_script, random_name, tell};

use crate::settings;
use rqps_driver::Stop;
use rqps_driver::attempt::{
    AfterError, ClientEvent, ClientStop, ClientWatch, StatementError, Tally,
};
use rqps_driver::client::Counts;
use rqps_driver::clock::Clock;
use rqps_driver::connection::{Connection, Connector};
use rqps_driver::control_channel::{ControlChannel, DriverEvent};
use rqps_driver::loaders::gather_statistics;
use rqps_driver::recorder::{Recorder, Snapshot};
use rqps_driver::request::{DriverRequest, RequestBody, StepRequest};
use rqps_driver::step::{Clients, MakeEvent, measure};
use rqps_driver::worker_pool::{Ready, Spent, WorkerHandle, WorkerPool, WorkerSpec};
use rqps_embed::lua::{EventEnd, LuaState};
use rqps_host::tree;
use rqps_model::benchmark::{LoadBody, Workload};
use rqps_model::dialect::Dialect;
use rqps_model::lua::{LuaWork, RandomType};
use rqps_wire::WireError;

/// What the driver tells the lab, wherever the lab is.
type LabChannel<'a> = ControlChannel<&'a mut dyn Write>;

/// Time between two looks at the threads of a command.
const BEAT: Duration = Duration::from_millis(500);

/// The load by `prepare` of the first script, for all scripts.
pub(crate) fn request(_: Dialect, workload: &Workload, _: Option<&str>) -> RequestBody {
    RequestBody::LoadOwn(LoadBody::Lua(Box::new(settings::load_work(workload))))
}

/// Loads by the script's commands and sends the progress.
pub(crate) fn own_load(
    request: &DriverRequest,
    load: &LoadBody,
    control: &mut LabChannel,
) -> Result<(), Stop> {
    let LoadBody::Lua(work) = load else {
        return Err(Stop::Fault("failed to load: it is no load by a script".to_owned()));
    };
    let work = of_process((**work).clone(), request);
    let (begun, cpu) = (Instant::now(), tree::own_cpu());
    let connector = Connector::new(request)?;
    let clients = work.clients;
    let surroundings = Surroundings::new(connector.clone(), request, (&work, clients))?;
    if !work.unprepared.is_empty() && !work.commands.is_empty() {
        let (name, others) = (&work.script.name, work.unprepared.join(", "));
        control.send(&DriverEvent::Note(format!(
            "`prepare` of {name} loads for all scripts; that of {others} does not run: measure \
             scripts with tables of their own one by one"
        )))?;
    }
    let mut rows = 0;
    for command in &work.commands {
        let mut say = |rows, control: &mut LabChannel| {
            Ok(control.send(&DriverEvent::Loading { rows, of: 0 })?)
        };
        rows += run_command(&surroundings, &work, command, &mut say, control)?;
    }
    let load_seconds = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    gather_statistics(request.dialect, &connector)?;
    let index_seconds = begun.elapsed().as_secs_f64();
    let client_cpu = tree::own_cpu().since(cpu);
    control.send(&DriverEvent::Loaded { rows, load_seconds, index_seconds, client_cpu })?;
    Ok(())
}

/// The script that a request runs.
pub(crate) fn script(task: &RequestBody) -> Result<PathBuf, String> {
    let work: LuaWork = match task {
        RequestBody::LoadOwn(LoadBody::Lua(work)) => (**work).clone(),
        RequestBody::Step(task) => task.own()?.work,
        _ => return Err("failed to find the script: the request has none".to_owned()),
    };
    Ok(work.script.path)
}

/// The work with the script where this process can read it.
fn of_process(mut work: LuaWork, request: &DriverRequest) -> LuaWork {
    work.script.path = request.readable(&work.script.path);
    work
}

/// Sends the number of rows so far.
type Progress<'a> = &'a mut dyn FnMut(u64, &mut LabChannel) -> Result<(), Stop>;

/// Runs a command, on all threads at once if it is made for that. Returns the rows that its
/// statements sent as INSERTs.
fn run_command(
    surroundings: &Surroundings,
    work: &LuaWork,
    command: &str,
    say: Progress<'_>,
    control: &mut LabChannel,
) -> Result<u64, Stop> {
    let is_parallel = work.script.commands.get(command).copied().unwrap_or(false);
    let threads = if is_parallel { work.clients } else { 1 };
    let rows = Arc::new(AtomicU64::new(0));
    let member = |thread: u32| {
        let (surroundings, work) = (surroundings.clone(), work.clone());
        let (command, rows) = (command.to_owned(), Arc::clone(&rows));
        let name = format!("thread {thread} of {command}");
        let main = move |handle: &WorkerHandle<()>| {
            handle.ready(Ready::default());
            run_on_thread(&surroundings, &work, (&command, thread), &rows)?;
            handle.done((), Spent::default());
            Ok(())
        };
        WorkerSpec::new(name, main)
    };
    let mut pool = WorkerPool::start(Clock::real(), (0..threads).map(member).collect())?;
    let mut beat = |control: &mut LabChannel| say(rows.load(Ordering::Relaxed), control);
    pool.finish(BEAT, &mut beat, control)?;
    Ok(rows.load(Ordering::Relaxed))
}

fn run_on_thread(
    surroundings: &Surroundings,
    work: &LuaWork,
    (command, thread): (&str, u32),
    rows: &Arc<AtomicU64>,
) -> Result<(), String> {
    let name = &work.script.name;
    let fault = |what: String| format!("failed to run `{command}` of {name}: {what}");
    let mut state = surroundings.open(work, thread, command)?;
    state.host().inserted = Some(Arc::clone(rows));
    load_script(&mut state, &work.script.path).map_err(fault)?;
    state.command("run", command).map(|_| ()).map_err(fault)
}

// Runs a step of a script, with one state per client.

/// The note on a step whose script uses sysbench's default distribution.
const SPECIAL: &str = "numbers were drawn with `special`, the default of sysbench 1.0, which \
                       prefers a few; --set api=1.1 draws uniformly";

/// Time between two checks whether a report is due.
const LOOK: Duration = Duration::from_millis(100);

/// The loop of the benchmark's steps.
pub(crate) fn step_loop(
    request: &DriverRequest,
    task: &StepRequest,
    control: &mut LabChannel,
) -> Result<(), Stop> {
    let mut task: StepRequest<LuaWork> = task.own()?;
    task.work = of_process(task.work, request);
    let connector = Connector::new(request)?;
    let of = (&task.work, task.clients);
    let surroundings = Surroundings::new(connector.clone(), request, of)?;
    for command in &task.work.commands {
        run_command(&surroundings, &task.work, command, &mut |_, _| Ok(()), control)?;
    }
    let figures = Figures::of(request.number_of(0), task.clients);
    let beside = reporter(&task, surroundings.clone(), Arc::clone(&figures));
    let (work, shared, of_clients) =
        (task.work.clone(), surroundings.clone(), Arc::clone(&figures));
    let cap = EventCap::of(request, &task.work, task.clients);
    let of_step = cap.clone();
    let make: MakeEvent<ScriptClient> = Box::new(move |_, client, session| {
        ScriptClient::begin(&shared, &work, client, (&of_clients, &of_step), session)
    });
    let watch = Some(ClientWatch::over(&task, &task.work.script.name));
    let is_capped = task.work.events.is_some();
    let clients =
        Clients { beside: Some(beside), watch, is_capped, ..Clients::new(connector, make) };
    let mut around = Around::open(&surroundings, &task.work)?;
    around.call("init")?;
    let mut outcome = measure(request, &task, clients, control)?;
    around.call("done")?;
    if let (true, Some(events)) = (cap.is_reached(), task.work.events) {
        let seconds = task.seconds;
        outcome.notes.push(format!("--events={events} ended it before its {seconds} s"));
    }
    if figures.drew_by_default() && task.work.random.kind == RandomType::Special {
        outcome.notes.push(SPECIAL.to_owned());
    }
    if figures.is_wanted() {
        Reporter::open(&surroundings, &task.work, &figures)?.end()?;
    }
    for command in &task.work.after {
        run_command(&surroundings, &task.work, command, &mut |_, _| Ok(()), control)?;
    }
    let seed = seed_of(request.seed);
    let kind = random_name(task.work.random.kind);
    outcome.facts.insert(
        "sysbench draws the same with".to_owned(),
        format!("--rand-seed={seed} --rand-type={kind}"),
    );
    Ok(control.send(&DriverEvent::Measured(Box::new(outcome)))?)
}

/// The state of a script's init() and done(), which belong to no client.
struct Around<'a> {
    state: LuaState<SqlHost>,
    script: &'a str,
}

impl<'a> Around<'a> {
    fn open(surroundings: &Surroundings, work: &'a LuaWork) -> Result<Around<'a>, String> {
        let mut state = surroundings.open(work, 0, "run")?;
        let script = &work.script.name;
        load_script(&mut state, &work.script.path)
            .map_err(|what| format!("failed to prepare {script}: {what}"))?;
        Ok(Around { state, script })
    }

    /// Calls a function if the script has it.
    fn call(&mut self, function: &str) -> Result<(), String> {
        let called = self.state.command("call_once", function);
        let fault = |what| format!("failed to call {function}() of {}: {what}", self.script);
        called.map(|_| ()).map_err(fault)
    }
}

/// The thread that calls the report hooks.
fn reporter(
    task: &StepRequest<LuaWork>,
    surroundings: Surroundings,
    figures: Arc<Figures>,
) -> WorkerSpec<Counts> {
    let work = task.work.clone();
    let main = move |handle: &WorkerHandle<Counts>| {
        handle.ready(Ready::default());
        let mut reporter = None;
        while !handle.is_over() {
            thread::sleep(LOOK);
            if figures.is_wanted() && reporter.is_none() {
                reporter = Some(Reporter::open(&surroundings, &work, &figures)?);
            }
            reporter.as_mut().map_or(Ok(()), Reporter::look)?;
        }
        handle.done(Counts::default(), Spent::default());
        Ok(())
    };
    let name = "the reports of the script".to_owned();
    WorkerSpec::new(name, main).in_background()
}

// The number of events after which a step ends, all clients together: `--events=N` of sysbench.

/// Counts the events of a window down, if there is a limit.
#[derive(Clone)]
pub(super) struct EventCap(Option<Arc<AtomicU64>>);

impl EventCap {
    /// For the clients of this driver among those of all hosts. A count of instructions has its own
    /// number of events.
    pub(super) fn of(request: &DriverRequest, work: &LuaWork, clients: u32) -> EventCap {
        let all = u64::from(request.all_clients(clients).max(1));
        let own = work.events.filter(|_| request.counted_events.is_none());
        let own = own.map(|events| (events * u64::from(clients)).div_ceil(all));
        EventCap(own.map(|events| Arc::new(AtomicU64::new(events))))
    }

    /// True if no more events are to begin. Those in flight still count.
    #[inline]
    pub(super) fn is_reached(&self) -> bool {
        self.0.as_ref().is_some_and(|left| left.load(Ordering::Relaxed) == 0)
    }

    /// One event has ended in the window.
    #[inline]
    pub(super) fn count(&self) {
        if let Some(left) = &self.0 {
            let fewer = |left: u64| left.checked_sub(1);
            // At 0 it stays.
            let _ = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer);
        }
    }
}

// Server errors after which sysbench repeats an event.

/// Deadlock, record changed, lock wait timeout.
const MYSQL: [&str; 3] = ["1213", "1020", "1205"];

/// A database or a table locked by another connection. sysbench has no driver for SQLite; these
/// codes correspond to those above.
const SQLITE: [&str; 2] = ["5", "6"];

/// Deadlock, duplicate key, serialization failure.
const POSTGRES: [&str; 3] = ["40P01", "23505", "40001"];

/// True if an event is repeated after an error with this code. `ignored`: codes of MySQL from the
/// command line, instead of the default ones.
pub(super) fn begins_again(dialect: Dialect, code: &str, ignored: &[String]) -> bool {
    match dialect {
        Dialect::Postgres => POSTGRES.contains(&code),
        Dialect::Sqlite => SQLITE.contains(&code),
        _ if ignored.is_empty() => MYSQL.contains(&code),
        _ => ignored.iter().any(|ignored| ignored == code || ignored == "all"),
    }
}

// A client's event: a call of the script's event().

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
    fn begin(
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
    fn open(
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

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_driver::request::AwayClients;

    #[test]
    fn a_cap_is_shared_and_divided_among_hosts() {
        let text = r#"{"script":{"name":"a","path":"/a.lua"},"commands":[],"clients":4,
            "seconds":1.0,"rights":"full","random":{},"ignored_errors":[],
            "plain_statements":false,"events":5}"#;
        let work: LuaWork = serde_json::from_str(text).unwrap();
        let mut request = DriverRequest::fake(RequestBody::LoadFiles(Default::default()));
        let cap = EventCap::of(&request, &work, 4);
        let other = cap.clone();
        for _ in 0..4 {
            other.count();
        }
        assert!(!cap.is_reached());
        other.count();
        other.count();
        assert!(cap.is_reached());
        request.away = Some(AwayClients { first: 0, of: 4 });
        let share = EventCap::of(&request, &work, 1);
        share.count();
        assert!(!share.is_reached(), "two of five for a quarter of the clients");
        share.count();
        assert!(share.is_reached());
        request.counted_events = Some(1);
        let none = EventCap::of(&request, &work, 4);
        none.count();
        assert!(!none.is_reached());
    }
}
