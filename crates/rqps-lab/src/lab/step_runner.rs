//! One step on one target: a driver process at work, counters sampled beside it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use thiserror::Error;

use crate::lab::driver_process::{DriverProcess, Start};
use crate::lab::driver_team::DriverTeam;
use crate::lab::execution::Execution;
use crate::lab::observe::{
    CounterObserver, CpuEventObserver, DbmsCounterObserver, DisturbanceObserver, Edge, Observed,
    Observers, ProfileObserver, SampledStacks, ServerLogObserver, StepObserver, WaitObserver,
};
use crate::lab::progress::Progress;
use crate::lab::turns::{self, TurnParticipant};
use crate::{benchmarks, plan};
use rqps_dbms::ControlPlane;
use rqps_driver::control_channel::{DriverEvent, StepInterval};
use rqps_driver::request::{DriverRequest, RequestBody, StepRequest};
use rqps_host::sample::CounterSampler;
use rqps_host::valgrind::Callgrind;
use rqps_host::waits::Waits;
use rqps_host::{clock, confinement, disk};
use rqps_model::benchmark::{Group, RateUnit, Step};
use rqps_model::build::{BuildSource, Target};
use rqps_model::counted::CallGraph;
use rqps_model::datagen::rng::Rng;
use rqps_model::dialect::Dialect;
use rqps_model::endpoint::Endpoint;
use rqps_model::metric::Metric;
use rqps_model::run::{
    Counter, CpuTime, LoadRecord, Outcome, SECOND_MIN, Second, Status, StepRecord, Turn, Usage,
};
use rqps_model::sql_name::Identifier;

/// Time between two checks whether to stop and whether the server lives.
const LOOK: Duration = Duration::from_millis(200);
/// So long after something failed, the end of the server may still come to light as its reason.
const CRASH_GRACE: Duration = Duration::from_secs(1);
/// A driver that is silent for this long beyond what it was asked for is stuck.
const PATIENCE: Duration = Duration::from_secs(300);
/// Messages about a step: one a second, and a few.
const MESSAGES_MOST: u32 = 1 << 20;

/// A driver that waits for a server without an end.
#[derive(Debug, Error)]
#[error("no message from the driver for {seconds} s: it waits for the DBMS, or hangs itself")]
pub(super) struct Silence {
    seconds: u64,
}

/// Everything that a step needs.
pub(super) struct StepRunner<'a> {
    pub(super) execution: &'a Execution<'a>,
    pub(super) control: &'a mut dyn ControlPlane,
    pub(super) dialect: Dialect,
    pub(super) storage_engine: Option<&'a str>,
    /// The text for a program of the user's.
    pub(super) text: Option<&'a str>,
    pub(super) label: &'a str,
    /// Folder for the logs of the driver and of the DBMS.
    pub(super) logs: PathBuf,
    /// This target's part in the turns of the step, if targets take turns.
    pub(super) participant: Option<TurnParticipant<'a>>,
    /// The method of unwinding stacks of this build; `None` without sampling.
    pub(super) call_graph: Option<CallGraph>,
}

impl<'a> StepRunner<'a> {
    /// Without turns and sampling.
    pub(super) fn new(
        execution: &'a Execution<'a>,
        target: &'a Target,
        control: &'a mut dyn ControlPlane,
        logs: PathBuf,
    ) -> StepRunner<'a> {
        StepRunner {
            execution,
            control,
            dialect: target.dbms.dialect(),
            storage_engine: target.storage_engine.as_deref(),
            text: match &target.source {
                BuildSource::Client(text) => Some(text),
                _ => None,
            },
            label: &target.label,
            logs,
            participant: None,
            call_graph: None,
        }
    }
}

/// The result of a load.
pub(super) struct Loaded {
    pub(super) record: LoadRecord,
    started: String,
    usage: Usage,
    client_cpu: CpuTime,
}

impl Loaded {
    /// The load as a step, before all steps of a run: its rate is rows per second with indexes.
    pub(super) fn step(&self) -> StepRecord {
        let LoadRecord { number, rows, load_seconds, index_seconds, data_bytes, .. } = self.record;
        StepRecord {
            detail: "all rows with their indexes; a pair for each load".to_owned(),
            started: self.started.clone(),
            outcome: Outcome {
                seconds: load_seconds + index_seconds,
                statements: rows,
                client_cpu: self.client_cpu,
                facts: BTreeMap::from([("load".to_owned(), number.to_string())]),
                ..Outcome::default()
            },
            usage: self.usage.clone(),
            data_bytes,
            ..StepRecord::empty(0, "load", Group::Load, RateUnit::RowsInserted)
        }
    }
}

/// The result of a step.
pub(super) struct Measured {
    pub(super) outcome: Outcome,
    pub(super) usage: Usage,
    pub(super) seconds: Vec<Second>,
    pub(super) started: String,
    /// The turns, if targets took turns.
    pub(super) turns: Vec<Turn>,
    /// Changes of the DBMS's counters.
    pub(super) counters: Vec<Counter>,
    /// Stacks of the server, if they were sampled.
    pub(super) stacks: Option<SampledStacks>,
}

impl StepRunner<'_> {
    /// The request to a driver of this target, on the same host.
    pub(super) fn request(&self, seed: u64, task: RequestBody) -> DriverRequest {
        let (endpoint, login) = self.control.endpoint();
        let workload = &self.execution.plan.workload;
        let mut session_setup = self.control.session_setup(task.is_load());
        session_setup.extend(self.own_database(task.is_load()));
        DriverRequest {
            dialect: self.dialect,
            endpoint,
            login,
            target: self.text.map(str::to_owned),
            session_setup,
            mark: self.control.guest_place().map(|place| place.mark),
            seed,
            tables: workload.tables,
            rows: workload.rows,
            pause: matches!(self.control.endpoint().0, Endpoint::Server(_)),
            ..DriverRequest::fake(task)
        }
    }

    /// Statements that lead a session to the database that the workload names, on a server of
    /// rqps's. A load makes it.
    fn own_database(&self, is_load: bool) -> Vec<String> {
        let name = self.execution.plan.workload.database();
        let is_own = self.control.guest_place().is_none() && self.dialect == Dialect::Mysql;
        let Some(name) = name.filter(|_| is_own) else { return Vec::new() };
        let (dialect, name) = (self.dialect, name.to_string());
        let made = format!("CREATE DATABASE IF NOT EXISTS {}", Identifier::quoted(dialect, &name));
        let used = format!("USE {}", Identifier::quoted(dialect, &name));
        if is_load { vec![made, used] } else { vec![used] }
    }

    /// True if nobody was asked whether the step may write on a server of others.
    pub(super) fn only_reads(&self, step: &Step) -> bool {
        let plan = self.execution.plan;
        let is_guest = plan.brings_statements() && self.control.guest_place().is_some();
        is_guest && !benchmarks::may_write(&plan.workload, step)
    }

    pub(super) fn driver(
        &self,
        request: &DriverRequest,
        callgrind: Option<&Callgrind>,
    ) -> Result<DriverTeam> {
        let log = self.logs.join("driver.log");
        let options = &self.execution.options;
        options.accepted.check(self.label)?;
        let runs_scripts = options.plan.runs_scripts();
        let start = Start {
            launcher: self.control.launcher(),
            memory_group: self.control.client_group(),
            callgrind: callgrind.cloned(),
            environment: runs_scripts.then(|| confinement::environment(options.variable)),
        };
        let mut request = Cow::Borrowed(request);
        if runs_scripts {
            // A counted driver is not root from the start.
            let user = callgrind.and_then(Callgrind::user);
            request.to_mut().scratch = Some(self.execution.folders.scratch(self.label, user)?);
        }
        DriverProcess::spawn(&options.program, start, &request, &log).map(DriverTeam::Here)
    }

    /// The drivers of a step that is measured: here, or on the client hosts.
    fn drivers(&self, request: &DriverRequest, shared: Option<u32>) -> Result<DriverTeam> {
        match &self.execution.clients {
            Some(clients) => clients.start((request, shared), &*self.control, &self.logs),
            None => self.driver(request, None),
        }
    }

    /// The next message. Looks after the server and the user's wish to stop while it waits.
    pub(super) fn next(
        &mut self,
        driver: &mut DriverTeam,
        patience: Duration,
    ) -> Result<DriverEvent> {
        let mut began = Instant::now();
        let leave = || self.participant.as_ref().map(TurnParticipant::leave);
        loop {
            // Also while messages come without a break.
            if self.execution.stopped() {
                bail!("stopped by the user");
            }
            match driver.next(LOOK) {
                Ok(Some(DriverEvent::Failed { fault })) => {
                    leave();
                    return Err(cause(self.control, anyhow!("{fault}")));
                }
                Ok(Some(message)) => return Ok(message),
                Ok(None) => self.control.check()?,
                Err(error) => {
                    leave();
                    return Err(cause(self.control, error));
                }
            }
            if let Some(participant) = &self.participant {
                participant.check()?;
                if participant.is_waiting() {
                    began = Instant::now();
                }
            }
            if began.elapsed() > patience {
                return Err(Silence { seconds: patience.as_secs() }.into());
            }
        }
    }

    /// Creates and fills the tables: the load of this number.
    ///
    /// # Errors
    /// The server refuses or dies; the user stops.
    pub(super) fn load(
        &mut self,
        (task, number): (RequestBody, u32),
        progress: &mut Progress<'_>,
    ) -> Result<Loaded> {
        let seed = self.execution.plan.load_seed(number);
        let counted_events = self.execution.plan.workload.counted_statements;
        let request = DriverRequest { counted_events, ..self.request(seed, task) };
        let mut sampler = self.sampler();
        let (started, before) = (clock::now_rfc3339(), sampler.read());
        let mut driver = self.driver(&request, None)?;
        let mut files = Vec::new();
        loop {
            match self.next(&mut driver, Duration::from_secs(24 * 3600))? {
                DriverEvent::LoadingFile(file) => {
                    progress.doing(self.label, &format!("load {}", file.words()), file.share());
                }
                DriverEvent::LoadedFile(file) => files.push(file),
                DriverEvent::Loading { rows, of } => {
                    // A script of the user's does not say how many rows it will make.
                    let share = (of > 0).then(|| rows as f64 / of as f64);
                    progress.loading(self.label, "load rows", share);
                }
                DriverEvent::Indexing { done, of } => {
                    let share = f64::from(done) / f64::from(of.max(1));
                    progress.indexing(self.label, share);
                }
                DriverEvent::Note(note) => progress.note(&format!("{}: {note}", self.label)),
                DriverEvent::Loaded { rows, load_seconds, index_seconds, client_cpu } => {
                    let mut usage = sampler.read().since(&before);
                    sampler.read_memory(&mut usage);
                    let data_bytes = None;
                    let record =
                        LoadRecord { number, rows, load_seconds, index_seconds, data_bytes, files };
                    return Ok(Loaded { record, started, usage, client_cpu });
                }
                other => bail!("expected a load result from the driver, got {other:?}"),
            }
        }
    }

    /// The driver may take its turn.
    fn driver_started(&self, driver: Option<u32>) {
        if let Some(participant) = &self.participant {
            participant.driver_started(driver);
        }
    }

    /// Carries out a step.
    ///
    /// # Errors
    /// The server or the driver fails; the user stops.
    pub(super) fn measure(&mut self, step: &Step, seed: u64) -> Result<Measured> {
        let workload = self.execution.plan.workload.clone();
        let server_pid = self.control.server_pid();
        let step_request = StepRequest {
            server_pid,
            storage_engine: self.storage_engine.map(str::to_owned),
            cache: Some(self.execution.options.cache.join("datasets")),
            ..StepRequest::of(step, &workload)
        };
        let shared = plan::shared_clients(&workload, step, step_request.clients);
        let mut request = self.request(seed, RequestBody::Step(Box::new(step_request)));
        request.only_reads = self.only_reads(step);
        if let Some(participant) = &self.participant {
            participant.put(&mut request);
        }
        let mut observers = self.observers(&request.endpoint);
        let is_profiled = self.call_graph.is_some() && workload.profile_hertz.is_some();
        let waits = server_pid.filter(|_| is_profiled).map(Waits::before_clients);
        let mut driver = self.drivers(&request, shared)?;
        observers.add(Box::new(CpuEventObserver::new(server_pid, driver.pid())));
        self.profile(&driver, waits, &mut observers);
        let targets = self.participant.as_ref().map_or(1, TurnParticipant::targets);
        let seconds = (step.seconds + step.warmup_seconds) * f64::from(targets);
        let patience = PATIENCE + Duration::from_secs_f64(seconds);
        let mut turns = Vec::new();
        let mut window: Option<Window> = None;
        for _ in 0..MESSAGES_MOST {
            match self.next(&mut driver, patience)? {
                DriverEvent::Warming | DriverEvent::Waiting { .. } => {}
                DriverEvent::Bound => self.driver_started(driver.pid()),
                DriverEvent::Prepared => {
                    observers.edge(Edge::Prepared, self.control);
                    driver.go_on()?;
                }
                DriverEvent::WindowEnd => observers.edge(Edge::WindowEnd, self.control),
                DriverEvent::WindowStart { at_ns } => {
                    observers.edge(Edge::WindowStart, self.control);
                    window = Some(Window::open());
                    if let Some(participant) = &self.participant {
                        participant.counters_read(at_ns);
                    }
                }
                DriverEvent::Turns(rows) => turns = rows,
                DriverEvent::Interval(interval) => {
                    if let Some(window) = &mut window {
                        observers.edge(Edge::Second, self.control);
                        window.seconds.push(second(interval));
                    }
                }
                DriverEvent::Measured(mut outcome) => {
                    if let Some(participant) = &self.participant {
                        participant.report(&mut outcome);
                    }
                    observers.edge(Edge::Measured(&outcome), self.control);
                    let Some(window) = window else { bail!("the driver measured nothing") };
                    // Connections hand in their counts when they end.
                    drop(driver);
                    observers.edge(Edge::Disconnected(&outcome), self.control);
                    let mut measured = window.close(*outcome, observers.end());
                    if self.participant.is_some() {
                        measured.hide_host();
                        measured.turns = turns;
                    }
                    return Ok(measured);
                }
                other => bail!("expected a measurement from the driver, got {other:?}"),
            }
        }
        bail!("the driver sent more than {MESSAGES_MOST} messages about one step")
    }

    fn sampler(&self) -> CounterSampler {
        let spinner = self.execution.spinner.as_ref().map(|spinner| spinner.pid());
        CounterSampler::new(self.control.server_pid(), self.execution.disk.clone(), spinner)
    }

    /// Adds the profiler, if the plan has one.
    fn profile(&self, driver: &DriverTeam, waits: Option<Waits>, observers: &mut Observers) {
        let options = &self.execution.options;
        let hertz = options.plan.workload.profile_hertz;
        let (Some(perf), Some(hertz), Some(call_graph)) =
            (options.perf.as_ref(), hertz, self.call_graph)
        else {
            return;
        };
        let in_client = |pid| (pid, true);
        let server = self.control.server_pid().map(|pid| (pid, false));
        let Some(process) = server.or_else(|| driver.pid().map(in_client)) else { return };
        let folder = self.execution.folders.target(".profile");
        let how = (hertz, call_graph);
        let (root, in_client) = process;
        let waits = waits.unwrap_or_else(|| Waits::of(root, in_client));
        // Before the profiler, which takes its time to end: threads that serve clients may be gone.
        observers.add(Box::new(WaitObserver::new(waits)));
        observers.add(Box::new(ProfileObserver::new(perf, how, process, folder)));
    }

    /// The observers beside the clients, from before their start.
    fn observers(&self, endpoint: &Endpoint) -> Observers {
        let server_pid = self.control.server_pid();
        let sampler = self.sampler();
        let mut all: Vec<Box<dyn StepObserver>> = vec![Box::new(CounterObserver::new(sampler))];
        if let Some(disturbance) = DisturbanceObserver::begin(endpoint, server_pid) {
            all.push(Box::new(disturbance));
        }
        all.push(Box::new(ServerLogObserver::new(&self.logs)));
        all.push(Box::new(DbmsCounterObserver::default()));
        Observers::new(all)
    }
}

/// The reason for `error`: a server that died explains more than the connection that broke. Its end
/// is known a moment later than its connections break, so it is waited for.
pub(super) fn cause(control: &mut dyn ControlPlane, error: anyhow::Error) -> anyhow::Error {
    let deadline = Instant::now() + CRASH_GRACE;
    loop {
        if let Err(end) = control.check() {
            return end.into();
        }
        if Instant::now() > deadline {
            return error;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The measured window as it grows.
struct Window {
    started: String,
    seconds: Vec<Second>,
}

impl Window {
    fn open() -> Window {
        Window { started: clock::now_rfc3339(), seconds: Vec::new() }
    }

    fn close(mut self, mut outcome: Outcome, observed: Observed) -> Measured {
        for (row, usage) in self.seconds.iter_mut().zip(observed.seconds) {
            row.usage = Some(usage);
        }
        outcome.server_log = observed.server_log;
        let usage = Usage { disturbance: observed.disturbance, ..observed.usage };
        let (seconds, started) = (self.seconds, self.started);
        let Observed { counters, stacks, .. } = observed;
        Measured { outcome, usage, seconds, started, turns: Vec::new(), counters, stacks }
    }
}

/// A second as the driver counted it.
fn second(interval: StepInterval) -> Second {
    Second {
        second: interval.second,
        seconds: interval.seconds,
        events: interval.events,
        statements: interval.statements,
        errors: interval.errors,
        p50_us: interval.p50_us,
        p95_us: interval.p95_us,
        p99_us: interval.p99_us,
        max_us: interval.max_us,
        usage: None,
        extra: interval.extra,
    }
}

impl Measured {
    /// Takes out what counters of the whole host say, where it cannot be divided among targets.
    fn hide_host(&mut self) {
        turns::hide_host(&mut self.usage);
        self.seconds.iter_mut().for_each(|row| row.usage = None);
    }
}

/// The seed of a step: the same for every target of a block, so that a pair sees the same
/// statements.
pub(super) fn seed_of(plan_seed: u64, block: u32, step_index: u32) -> u64 {
    Rng::stream(plan_seed, "step", u64::from(block) << 32 | u64::from(step_index)).next_u64()
}

/// The record of a step that was measured, with the sizes of the data folder and of the folder of
/// its tables.
pub(super) fn record(
    step: &Step,
    index: u32,
    mut measured: Measured,
    (data, tables): (&Path, Option<&Path>),
) -> StepRecord {
    // MySQL 5.6 tells stale sizes of tables, without the index that it has just made: the files
    // tell the size.
    if let Some(size) = measured.outcome.extra.get_mut(&Metric::DatabaseSize)
        && let Some(bytes) = tables.and_then(|tables| disk::folder_bytes(tables).ok())
    {
        *size = bytes as f64 / f64::from(1 << 30);
    }
    let unit = step.rate.of_counts(measured.outcome.events, measured.outcome.statements);
    StepRecord {
        per_second: measured.seconds.iter().filter_map(|second| per_second(second, unit)).collect(),
        stalled: measured
            .seconds
            .iter()
            .filter(|second| is_stalled(second))
            .map(|s| s.second)
            .collect(),
        started: measured.started,
        sampled: measured.stacks.map(|stacks| stacks.sampled),
        outcome: measured.outcome,
        usage: measured.usage,
        // A fact of a run, and never a reason to stop one.
        data_bytes: disk::folder_bytes(data).ok(),
        ..empty_record(step, index, Status::Complete)
    }
}

/// The record of a step that has no results, only a status.
pub(super) fn empty_record(step: &Step, index: u32, status: Status) -> StepRecord {
    StepRecord {
        client_count: step.client_count.clone(),
        reported: step.reported,
        detail: step.detail.clone(),
        parameters: step.parameters.clone(),
        status,
        started: clock::now_rfc3339(),
        ..StepRecord::empty(index, &step.name, step.group, step.rate)
    }
}

/// True if the DBMS held writes back in that second, where the driver can tell.
fn is_stalled(second: &Second) -> bool {
    second.extra.get("stalled").is_some_and(|stalled| *stalled > 0.0)
}

/// Operations per second of an interval to a tenth; of a scan its statements, because rows are
/// counted at the end. `None` for the rest of a second, which is too short.
fn per_second(second: &Second, unit: RateUnit) -> Option<f64> {
    let operations = match unit {
        RateUnit::Transactions => second.events,
        _ => second.statements,
    };
    let rate = operations as f64 / second.seconds;
    (second.seconds >= SECOND_MIN).then_some((rate * 10.0).round() / 10.0)
}

/// Operations per second, for progress events, in the unit of the report.
pub(super) fn rate(outcome: &Outcome, unit: RateUnit) -> f64 {
    let Outcome { events, statements, rows_scanned, seconds, .. } = *outcome;
    let unit = unit.of_counts(events, statements);
    let operations = unit.operations(events, statements, rows_scanned);
    operations.unwrap_or_default() / seconds.max(f64::MIN_POSITIVE)
}
