//! One step on one target: a driver process at work, counters sampled beside it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};

use crate::datagen::rng::Rng;
use crate::dbms::ControlPlane;
use crate::domain::benchmark::{RateUnit, Step, StepBody, Workload};
use crate::domain::dialect::Dialect;
use crate::domain::endpoint::Endpoint;
use crate::domain::gate::Disturbance;
use crate::domain::metric::Metric;
use crate::domain::run::{
    Counter, FORMAT, LoadRecord, Outcome, SECOND_MIN, Second, Status, StepRecord, Turn, Usage,
};
use crate::domain::script::Script;
use crate::driver::event::{DriverEvent, Interval};
use crate::driver::request::{
    DriverRequest, LoadRequest, RequestBody, ScriptRequest, StepRequest, VERSION,
};
use crate::lab::Execution;
use crate::lab::driver_process::{DriverProcess, Start};
use crate::lab::progress::Progress;
use crate::lab::server_log::LogPart;
use crate::lab::turns::{self, Taking};
use crate::os::noise::disturbance::Watch;
use crate::os::sample::{CounterSampler, Sample};

/// How often the lab looks whether it is to stop, and whether the server lives.
const LOOK: Duration = Duration::from_millis(200);
/// So long after something failed, the end of the server may still come to light as its reason.
const LAST_BREATH: Duration = Duration::from_secs(1);
/// A driver that is silent for this long beyond what it was asked for is stuck.
const PATIENCE: Duration = Duration::from_secs(300);

/// What a step is carried out on.
pub(super) struct StepRunner<'a> {
    pub(super) bench: &'a Execution<'a>,
    pub(super) control: &'a mut dyn ControlPlane,
    pub(super) dialect: Dialect,
    pub(super) storage_engine: Option<&'a str>,
    pub(super) label: &'a str,
    /// Folder for the driver's own words.
    pub(super) logs: PathBuf,
    /// How this target takes turns with others within the step, if it does.
    pub(super) taking: Option<Taking<'a>>,
}

/// What came of a step.
pub(super) struct Measured {
    pub(super) outcome: Outcome,
    pub(super) usage: Usage,
    pub(super) seconds: Vec<Second>,
    pub(super) started: String,
    /// Where targets took turns.
    pub(super) turns: Vec<Turn>,
    /// What moved of the DBMS's counters.
    pub(super) counters: Vec<Counter>,
}

impl StepRunner<'_> {
    fn job(&self, seed: u64, task: RequestBody) -> DriverRequest {
        let (endpoint, login) = self.control.endpoint();
        let workload = &self.bench.assignment.plan.workload;
        DriverRequest {
            version: VERSION,
            dialect: self.dialect,
            endpoint,
            login,
            session_setup: self.control.session_setup(),
            mark: self.control.guest_place().map(|place| place.mark),
            seed,
            tables: workload.tables,
            rows: workload.rows,
            pause: matches!(self.control.endpoint().0, Endpoint::Server(_)),
            task,
            turns: self.taking.as_ref().map(Taking::request),
        }
    }

    fn driver(&self, job: &DriverRequest) -> Result<DriverProcess> {
        let log = self.logs.join("driver.log");
        let (launcher, memory_group) = (self.control.launcher(), self.control.client_group());
        let start = Start { launcher, memory_group };
        DriverProcess::spawn(&self.bench.assignment.program, start, job, &log)
    }

    /// The next message. Looks after the server and the user's wish to stop while it waits.
    fn next(&mut self, driver: &mut DriverProcess, patience: Duration) -> Result<DriverEvent> {
        let mut began = Instant::now();
        let leave = || self.taking.as_ref().map(Taking::leave);
        loop {
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
            if let Some(taking) = &self.taking {
                taking.check()?;
                if taking.waits() {
                    began = Instant::now();
                }
            }
            if self.bench.stopped() {
                bail!("stopped by the user");
            }
            if began.elapsed() > patience {
                bail!("no message from the driver for {} s", patience.as_secs());
            }
        }
    }

    /// Creates and fills the tables.
    ///
    /// # Errors
    /// The server refuses or dies; the user stops.
    pub(super) fn load(
        &mut self,
        task: LoadRequest,
        progress: &mut Progress<'_>,
    ) -> Result<LoadRecord> {
        let job = self.job(self.bench.assignment.plan.seed, RequestBody::Load(task));
        let mut driver = self.driver(&job)?;
        loop {
            match self.next(&mut driver, Duration::from_secs(24 * 3600))? {
                DriverEvent::Loading { rows, of } => {
                    progress.doing(self.label, "load rows", Some(rows as f64 / of.max(1) as f64));
                }
                DriverEvent::Indexing { done, of } => {
                    let share = f64::from(done) / f64::from(of.max(1));
                    progress.doing(self.label, "make indexes", Some(share));
                }
                DriverEvent::Loaded { rows, load_seconds, index_seconds } => {
                    return Ok(LoadRecord { rows, load_seconds, index_seconds, data_bytes: None });
                }
                other => bail!("expected a load result from the driver, got {other:?}"),
            }
        }
    }

    /// Carries out a step.
    ///
    /// # Errors
    /// The server or the driver fails; the user stops.
    pub(super) fn measure(&mut self, step: &Step, seed: u64) -> Result<Measured> {
        let workload = self.bench.assignment.plan.workload.clone();
        let server_pid = self.control.server_pid();
        let mut task = task(step, &workload, server_pid, self.storage_engine);
        if let RequestBody::Vector(task) = &mut task {
            task.cache = Some(self.bench.assignment.cache.join("datasets"));
        }
        let job = self.job(seed, task);
        let spinner = self.bench.spinner.as_ref().map(|spinner| spinner.pid());
        let mut sampler = CounterSampler::new(server_pid, self.bench.disk.clone(), spinner);
        let watch = watch(&job.endpoint, server_pid);
        let mut driver = self.driver(&job)?;
        let targets = self.taking.as_ref().map_or(1, Taking::targets);
        let seconds = (step.seconds + step.warmup_seconds) * f64::from(targets);
        let patience = PATIENCE + Duration::from_secs_f64(seconds);
        let mut turns = Vec::new();
        let mut window: Option<Window> = None;
        let mut log = LogPart::from_now(&self.logs);
        let mut before = None;
        loop {
            match self.next(&mut driver, patience)? {
                DriverEvent::Warming | DriverEvent::Waiting { .. } => {}
                DriverEvent::Prepared => {
                    before = Some(self.control.counters(false));
                    driver.go_on()?;
                }
                DriverEvent::WindowEnd => {
                    if let Some(window) = &mut window {
                        window.end = Some(sampler.read());
                    }
                }
                DriverEvent::WindowStart => {
                    window = Some(Window::open(sampler.read()));
                    log = LogPart::from_now(&self.logs);
                    if let Some(taking) = &self.taking {
                        taking.sampled();
                    }
                }
                DriverEvent::Turns(rows) => turns = rows,
                DriverEvent::Interval(interval) => {
                    if let Some(window) = &mut window {
                        window.cut(interval, sampler.read());
                    }
                }
                DriverEvent::Measured(mut outcome) => {
                    let turns_took = outcome.turns.as_ref().map(|turns| turns.wall_seconds);
                    outcome.server_log = log.events(turns_took.unwrap_or(outcome.seconds));
                    let Some(window) = window else {
                        bail!(
                            "the driver returned no measured \
                                                            window"
                        )
                    };
                    let mut measured = window.close(*outcome, &mut sampler);
                    measured.usage.disturbance = watch.map(|watch| disturbance(watch, &job));
                    if self.taking.is_some() {
                        measured.hide_host();
                        measured.turns = turns;
                    }
                    // Sessions hand in their counts when they end.
                    drop(driver);
                    self.put_counters(&mut measured, before);
                    return Ok(measured);
                }
                other => bail!("expected a measurement from the driver, got {other:?}"),
            }
        }
    }
}

impl StepRunner<'_> {
    /// What moved of the server's own counters since they were `before`, or why that is not known.
    fn put_counters(
        &mut self,
        measured: &mut Measured,
        before: Option<Result<BTreeMap<String, f64>, String>>,
    ) {
        // Without a server there are none, and that is no lack.
        let Some(before) = before else { return };
        let after = match measured.outcome.cut {
            Some(_) => Err("the step reached its time limit".to_owned()),
            None => self.control.counters(true),
        };
        match (before, after) {
            (Ok(before), Ok(after)) => measured.counters = moved(&before, after),
            (Err(why), _) | (_, Err(why)) => {
                measured.usage.missing.insert("dbms_counters".to_owned(), why);
            }
        }
    }
}

/// Counters that are not what they were. One that is new began at zero.
fn moved(before: &BTreeMap<String, f64>, after: BTreeMap<String, f64>) -> Vec<Counter> {
    let counter = |(name, after): (String, f64)| {
        let before = before.get(&name).copied().unwrap_or(0.0);
        (before != after).then_some(Counter { name, before, after })
    };
    after.into_iter().filter_map(counter).collect()
}

/// Watches who else is at work; nobody does where nothing real is measured.
fn watch(endpoint: &Endpoint, server_pid: Option<u32>) -> Option<Watch> {
    let ours: Vec<u32> = server_pid.into_iter().chain([std::process::id()]).collect();
    (!matches!(endpoint, Endpoint::Fake { .. })).then(|| Watch::begin(&ours))
}

/// What was seen. A server that somebody else runs may be on this host unrecognised: then its CPU
/// would pass for that of a stranger.
fn disturbance(watch: Watch, job: &DriverRequest) -> Disturbance {
    let known = watch.knows_server();
    let mut seen = watch.end();
    if matches!(job.endpoint, Endpoint::Server(_)) && !known {
        seen.foreign_cpu = None;
        let reason = "unknown server processes, which may be among the others";
        seen.missing.insert("foreign_cpu".to_owned(), reason.to_owned());
    }
    seen
}

/// The reason for `error`: a server that died explains more than the connection that broke. Its end
/// is known a moment later than its connections break, so it is waited for.
pub(super) fn cause(control: &mut dyn ControlPlane, error: anyhow::Error) -> anyhow::Error {
    let deadline = Instant::now() + LAST_BREATH;
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

fn task(
    step: &Step,
    workload: &Workload,
    server_pid: Option<u32>,
    storage_engine: Option<&str>,
) -> RequestBody {
    match &step.work {
        StepBody::Script(script) => {
            RequestBody::Measure(Box::new(measure_task(step, script, workload, server_pid)))
        }
        StepBody::Insert(work) => RequestBody::Insert(Box::new(work_task(
            work,
            step,
            workload,
            server_pid,
            storage_engine,
        ))),
        StepBody::Kv(work) => {
            RequestBody::Kv(Box::new(work_task(work, step, workload, server_pid, storage_engine)))
        }
        StepBody::Vector(work) => RequestBody::Vector(Box::new(work_task(
            work,
            step,
            workload,
            server_pid,
            storage_engine,
        ))),
    }
}

fn work_task<W: Clone>(
    work: &W,
    step: &Step,
    workload: &Workload,
    server_pid: Option<u32>,
    storage_engine: Option<&str>,
) -> StepRequest<W> {
    StepRequest {
        work: work.clone(),
        clients: workload.clients,
        warmup_seconds: step.warmup_seconds,
        seconds: step.seconds,
        pace: workload.pace,
        placement: workload.placement,
        server_pid,
        storage_engine: storage_engine.map(str::to_owned),
        cache: None,
    }
}

fn measure_task(
    step: &Step,
    script: &Script,
    workload: &Workload,
    server_pid: Option<u32>,
) -> ScriptRequest {
    ScriptRequest {
        script: script.clone(),
        rate: step.rate,
        clients: workload.clients,
        warmup_seconds: step.warmup_seconds,
        seconds: step.seconds,
        pace: workload.pace,
        placement: workload.placement,
        server_pid,
        plans: true,
    }
}

/// The measured window as it grows.
struct Window {
    started: String,
    first: Sample,
    last: Sample,
    /// At the end of the window, where work went on after it.
    end: Option<Sample>,
    seconds: Vec<Second>,
}

impl Window {
    fn open(first: Sample) -> Window {
        let last = first.clone();
        Window { started: super::now(), first, last, end: None, seconds: Vec::new() }
    }

    fn cut(&mut self, interval: Interval, sample: Sample) {
        let usage = Some(sample.since(&self.last));
        self.last = sample;
        self.seconds.push(Second {
            second: interval.second,
            seconds: interval.seconds,
            events: interval.events,
            statements: interval.statements,
            errors: interval.errors,
            p50_us: interval.p50_us,
            p95_us: interval.p95_us,
            p99_us: interval.p99_us,
            max_us: interval.max_us,
            usage,
            extra: interval.extra,
        });
    }

    fn close(self, outcome: Outcome, sampler: &mut CounterSampler) -> Measured {
        let end = self.end.unwrap_or_else(|| sampler.read());
        let mut usage = end.since(&self.first);
        sampler.read_memory(&mut usage);
        let (seconds, started) = (self.seconds, self.started);
        Measured { outcome, usage, seconds, started, turns: Vec::new(), counters: Vec::new() }
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
    // Statistics of a server are of some time before: 5.6 counts no index that it has just made.
    if let Some(size) = measured.outcome.extra.get_mut(&Metric::DatabaseSize)
        && let Some(bytes) = tables.and_then(super::bytes_of)
    {
        *size = bytes as f64 / f64::from(1 << 30);
    }
    StepRecord {
        per_second: measured.seconds.iter().filter_map(per_second).collect(),
        stalled: measured
            .seconds
            .iter()
            .filter(|second| is_stalled(second))
            .map(|s| s.second)
            .collect(),
        started: measured.started,
        outcome: measured.outcome,
        usage: measured.usage,
        data_bytes: super::bytes_of(data),
        ..empty_record(step, index, Status::Complete)
    }
}

/// The record of a step of which there is nothing but how it ended.
pub(super) fn empty_record(step: &Step, index: u32, status: Status) -> StepRecord {
    StepRecord {
        format: FORMAT,
        index,
        name: step.name.clone(),
        group: step.group,
        reported: step.reported,
        detail: step.detail.clone(),
        rate: step.rate,
        status,
        started: super::now(),
        outcome: Outcome::default(),
        usage: Usage::default(),
        data_bytes: None,
        per_second: Vec::new(),
        stalled: Vec::new(),
        imported: None,
    }
}

/// True if the DBMS held writes back in that second, where the driver can tell.
fn is_stalled(second: &Second) -> bool {
    second.extra.get("stalled").is_some_and(|stalled| *stalled > 0.0)
}

/// Operations per second of an interval to a tenth. A remnant of a second tells nothing.
fn per_second(second: &Second) -> Option<f64> {
    let rate = second.statements as f64 / second.seconds;
    (second.seconds >= SECOND_MIN).then_some((rate * 10.0).round() / 10.0)
}

/// Operations per second, for whoever watches.
pub(super) fn rate(outcome: &Outcome, unit: RateUnit) -> f64 {
    let operations = match unit {
        RateUnit::Queries | RateUnit::RowsInserted | RateUnit::Operations => outcome.statements,
        RateUnit::RowsScanned => outcome.rows_scanned,
        // Only imported steps are of ratios, and only a newer rqps measures what is not known.
        RateUnit::Relative | RateUnit::Unknown(_) => 0,
    };
    operations as f64 / outcome.seconds.max(f64::MIN_POSITIVE)
}
