//! rqps as one of the two programs: its driver process, started as the lab does.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rqps_bench::spec::CliContext;
use rqps_bench::spec::look_apart;
use rqps_bench::sysbench;
use rqps_bench_lua::driver::LUA_COMMAND;
use rqps_driver::control_channel::DriverEvent;
use rqps_driver::request::{DriverRequest, RequestBody, StepRequest, VERSION};
use rqps_lab::benchmarks::{self, StepSet};
use rqps_model::benchmark::{Pace, Phase, Placement, Step};
use rqps_model::dialect::Dialect;
use rqps_model::run::Outcome;

use super::Options;
use super::report::{Sample, Used, switches};
use super::subject::Subject;
use super::sysbench::TPCC;
use super::{Case, Ours, RQPS, Theirs};

/// Interval between readings of the driver's memory, which is unknown after its end.
const LOOK: Duration = Duration::from_millis(1);

/// The length of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) rows: u64,
    pub(crate) clients: u32,
    pub(crate) warmup: u32,
    pub(crate) seconds: u32,
    pub(crate) placement: Placement,
    pub(crate) seed: u64,
}

struct Driver {
    child: Child,
    // Kept open, because the driver ends when it closes.
    _input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Driver {
    fn spawn(request: &DriverRequest) -> Result<Driver> {
        let mut child = Command::new(RQPS)
            .arg("driver")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("start {RQPS} driver"))?;
        let mut input = child.stdin.take().context("the driver has no standard input")?;
        let output = child.stdout.take().context("the driver has no standard output")?;
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        input.write_all(&line).context("send the driver its request")?;
        Ok(Driver { child, _input: input, output: BufReader::new(output) })
    }

    /// The next message. A fault of the driver is an error.
    fn next(&mut self) -> Result<DriverEvent> {
        let mut line = String::new();
        if self.output.read_line(&mut line).context("listen to the driver")? == 0 {
            bail!("read the events of the driver: it ended before its work was done");
        }
        match serde_json::from_str(&line).with_context(|| format!("understand `{line}`"))? {
            DriverEvent::Failed { fault } => bail!("{fault}"),
            message => Ok(message),
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn request(subject: &Subject, rows: u64, seed: u64, task: RequestBody) -> DriverRequest {
    let (endpoint, login, session_setup) = subject.endpoint();
    let dialect = subject.dialect;
    DriverRequest {
        pause: false,
        version: VERSION,
        dialect,
        endpoint,
        login,
        target: None,
        session_setup,
        mark: None,
        seed,
        tables: 1,
        rows,
        task,
        away: None,
        turns: None,
        standstill: None,
        counted_events: None,
        asks: false,
        only_reads: false,
        scratch: Some(subject.scratch()),
        places: None,
    }
}

/// The step of this name as in rqps's benchmark.
pub(crate) fn step(dialect: Dialect, name: &str) -> Result<Step> {
    let (workload, _) = sysbench::workload("quick").map_err(anyhow::Error::msg)?;
    let phases = benchmarks::phases(dialect, StepSet::Full, &workload);
    let step = phases.into_iter().find_map(|phase| match phase {
        Phase::Measure(step) if step.name == name => Some(*step),
        _ => None,
    });
    step.with_context(|| format!("find the step {name} in the benchmark"))
}

/// The template of the digits in a column of sysbench.
fn template() -> String {
    vec!["#".repeat(11); 10].join("-")
}

/// The step for a case.
pub(crate) fn step_of(options: &Options, dialect: Dialect, case: Case) -> Result<Step> {
    let rows = options.rows.to_string();
    match case.ours {
        Ours::Step(name) => step(dialect, name),
        Ours::Sql(text) => {
            let text = text.replace("{rows}", &rows).replace("{c}", &template());
            own_step(dialect, options.clients, ("sql", &text), &[])
        }
        Ours::Script("pgbench", script) => {
            let words = ["-M", "prepared", "-n", "-s", &options.scale.to_string()];
            own_step(dialect, options.clients, ("pgbench", script), &words.map(str::to_owned))
        }
        Ours::Script(bench, script) if case.theirs == Theirs::Tpcc => {
            let folder = options.tpcc.clone().unwrap_or_default();
            let script = folder.join(script).display().to_string();
            own_step(dialect, options.clients, (bench, &script), &TPCC.map(str::to_owned))
        }
        Ours::Script(bench, script) => {
            let words = ["--tables=1", &format!("--table-size={rows}"), "--rand-type=uniform"];
            own_step(dialect, options.clients, (bench, script), &words.map(str::to_owned))
        }
    }
}

/// The first step of a workload, given as on the command line.
fn own_step(
    dialect: Dialect,
    clients: u32,
    (bench, what): (&str, &str),
    options: &[String],
) -> Result<Step> {
    let spec = benchmarks::named(bench).map_err(anyhow::Error::msg)?;
    let (mut workload, steps) = (spec.workload)("quick").map_err(anyhow::Error::msg)?;
    workload.clients = clients;
    let taken = match (&spec.words, &spec.file) {
        (Some(words), _) => {
            let said = CliContext {
                what: &[what.to_owned()],
                options,
                read: &|path| std::fs::read_to_string(path).map_err(|error| error.to_string()),
                look: &|script, with_help| {
                    look_apart(
                        Command::new(RQPS),
                        LUA_COMMAND,
                        script,
                        if with_help { &["--with-help"] } else { &[] },
                    )
                },
                note: &|_| {},
            };
            (words.take)(&mut workload, &said)
        }
        (None, Some(file)) => (file.read)(&mut workload, what),
        (None, None) => Err(format!("{bench} takes nothing of the user's")),
    };
    taken.map_err(anyhow::Error::msg).with_context(|| format!("read {bench}:{what}"))?;
    benchmarks::finish(&mut workload);
    let phases = benchmarks::phases(dialect, steps, &workload);
    let step = phases.into_iter().find_map(|phase| match phase {
        Phase::Measure(step) => Some(*step),
        _ => None,
    });
    step.with_context(|| format!("find a step in {bench}:{what}"))
}

fn measure_job(subject: &Subject, step: &Step, window: Window) -> Result<DriverRequest> {
    let task = StepRequest {
        work: step.work.clone(),
        clients: window.clients,
        warmup_seconds: f64::from(window.warmup),
        seconds: f64::from(window.seconds),
        pace: Pace::Closed,
        rate: step.rate,
        placement: window.placement,
        server_pid: Some(subject.pid()?),
        plans: false,
        storage_engine: None,
        cache: None,
    };
    Ok(request(subject, window.rows, window.seed, RequestBody::Step(Box::new(task))))
}

/// Measures one step once.
pub(crate) fn measure(subject: &Subject, step: &Step, window: Window) -> Result<Sample> {
    let mut driver = Driver::spawn(&measure_job(subject, step, window)?)?;
    let mut before = 0;
    let outcome = loop {
        match driver.next()? {
            DriverEvent::WindowStart { .. } => before = switches(),
            DriverEvent::Measured(outcome) => break *outcome,
            _ => {}
        }
    };
    let moved = switches().saturating_sub(before);
    Ok(sample(outcome, moved))
}

fn sample(outcome: Outcome, switches: u64) -> Sample {
    let used = Used {
        statements: outcome.statements as f64,
        seconds: outcome.seconds,
        cpu: outcome.client_cpu,
        switches,
        others: outcome.others,
    };
    used.sample(outcome.errors.values().sum(), outcome.notes)
}

/// Creates and loads the table; returns the seconds from before the load to the end of the process.
/// Writing the pages is part of settling.
pub(crate) fn load(subject: &mut Subject, rows: u64, seed: u64) -> Result<f64> {
    let (mut workload, _) = sysbench::workload("quick").map_err(anyhow::Error::msg)?;
    (workload.tables, workload.rows) = (1, rows);
    let task = benchmarks::load_task(subject.dialect, &workload, None)
        .context("load: sysbench has a load of its own")?;
    let begin = Instant::now();
    subject.before_load()?;
    let mut driver = Driver::spawn(&request(subject, rows, seed, task))?;
    while !matches!(driver.next()?, DriverEvent::Loaded { .. }) {}
    driver.child.wait().context("wait for the driver")?;
    let seconds = begin.elapsed().as_secs_f64();
    subject.after_load()?;
    Ok(seconds)
}

/// The largest resident memory of a driver in one run of a step, bytes.
pub(crate) fn peak_memory(subject: &Subject, step: &Step, window: Window) -> Result<u64> {
    let mut driver = Driver::spawn(&measure_job(subject, step, window)?)?;
    let pid = driver.child.id();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let look = scope.spawn(|| {
            let mut peak = None;
            while !done.load(Ordering::Relaxed) {
                peak = peak.max(high_water_bytes(pid));
                thread::sleep(LOOK);
            }
            // It may still run: the last message may be later than the last look.
            peak = peak.max(high_water_bytes(pid));
            peak.context("read the memory of the driver from /proc")
        });
        let mut heard = Ok(());
        while heard.is_ok() {
            match driver.next() {
                Ok(DriverEvent::Measured(_)) => break,
                Ok(_) => {}
                Err(error) => heard = Err(error),
            }
        }
        done.store(true, Ordering::Relaxed);
        let peak = look.join().map_err(|_| anyhow::anyhow!("look at the memory: it panicked"))?;
        heard.and(peak)
    })
}

/// VmHWM of a process.
fn high_water_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
