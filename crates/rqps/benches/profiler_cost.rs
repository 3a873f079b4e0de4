//! What sampling by perf costs: the rate of a point query while perf samples the whole host,
//! relative to the rate while it does not. perf is switched on and off in random order for some
//! milliseconds each, so noise of the host falls on both. A rate is exp(mean) - 1 of
//! ln(rate with perf / rate without) over pairs of neighbouring periods, with its 95 % t interval.
//! The first row is the same for a timer without perf, on the speed of a loop.
//!
//!     cargo bench --bench profiler_cost -- --seconds 25
//!
//! docs/explaining.md has results.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program of its own")]

mod folders;
#[path = "comparison/subject.rs"]
#[allow(dead_code, reason = "the comparison with other programs needs more of it")]
mod subject;

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use rustix::fs::{CWD, FileType, Mode};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::folders::Folders;
use crate::subject::Subject;
use rqps_host::{affinity, clock};
use rqps_model::datagen::rng::Rng;
use rqps_model::endpoint::{Address, Login};
use rqps_stats::paired;
use rqps_wire::postgres::PostgresClient;
use rqps_wire::{Value, ValueType};

/// The program with the warden.
const RQPS: &str = env!("CARGO_BIN_EXE_rqps");

/// Rows of the table. They stay in memory.
const ROWS: u64 = 100_000;
const CACHE_BYTES: u64 = 256 << 20;

/// Left out at both ends of a period: perf needs a moment to switch.
const EDGE_NS: u64 = 2_000_000;

/// Ways to sample: name, options of perf after the event.
const WAYS: [(&str, &[&str]); 5] = [
    ("nothing", &["-e", "dummy"]),
    ("functions", &["-e", "cpu-clock"]),
    ("frame pointers", &["-e", "cpu-clock", "--call-graph", "fp"]),
    ("DWARF, 4 kB of stack", &["-e", "cpu-clock", "--call-graph", "dwarf,4096"]),
    ("DWARF, 8 kB of stack", &["-e", "cpu-clock", "--call-graph", "dwarf,8192"]),
];

/// The cost of sampling.
#[derive(Parser)]
struct Options {
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
    /// A build of Postgres.
    #[arg(long, default_value = "postgres@17.2.0")]
    target: String,
    /// Samples per second and CPU.
    #[arg(long, default_value_t = 997)]
    hertz: u32,
    /// CPUs that perf samples, such as 1 or 0-1, instead of all. The client has the first.
    #[arg(long)]
    cpus: Option<String>,
    /// Measured seconds of each way to sample.
    #[arg(long, default_value_t = 25.0)]
    seconds: f64,
    /// Milliseconds with perf, or without.
    #[arg(long, default_value_t = 30)]
    period: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    folders: Folders,
}

fn main() -> ExitCode {
    match measure(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("profiler_cost: failed to {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("listen for Ctrl-C")?;
    }
    let mut say = |line: &str| eprintln!("{line}");
    let targets = std::slice::from_ref(&options.target);
    let builds = subject::builds(targets, &options.folders.cache, &mut say)?;
    let (target, build) = builds.first().context("find a target")?;
    let mut server = Subject::start(target, build, &options.folders.work, CACHE_BYTES, &stop)?;
    let (path, login) = server.socket()?;
    load(&path, &login)?;
    let folder = tempfile::tempdir_in(&options.folders.work).context("make a folder")?;
    println!("| perf at {} Hz | rate | interval | pairs | MB/s |", options.hertz);
    println!("{}|", "|---".repeat(5));
    println!("{}", row("a timer alone", &differences_of_timer(options, &stop)?, 0.0)?);
    for (name, words) in WAYS {
        server.check()?;
        let client = Client::start((&path, &login), options.seed, &stop)?;
        let perf = Perf::start(words, options, folder.path())?;
        let (periods, bytes) = perf.take_turns(options, &stop)?;
        let differences = differences(&periods, &client.end()?);
        println!("{}", row(name, &differences, bytes as f64 / 1e6 / options.seconds)?);
    }
    server.stop()
}

/// A row of the table. `differences` are ln ratios of pairs.
fn row(name: &str, differences: &[f64], megabytes: f64) -> Result<String> {
    let mean = paired::mean_interval(differences, 0.95).context("measure: no pair")?;
    let percent = |ln: f64| 100.0 * ln.exp_m1();
    let interval = mean.interval.map_or_else(String::new, |it| {
        format!("[{:+.2}, {:+.2}] %", percent(it.low), percent(it.high))
    });
    let (rate, pairs) = (percent(mean.mean), mean.n);
    Ok(format!("| {name} | {rate:+.2} % | {interval} | {pairs} | {megabytes:.1} |"))
}

fn connect(path: &Path, login: &Login) -> Result<PostgresClient> {
    let address = Address::Unix(path.to_owned());
    PostgresClient::connect(&address, login, Duration::from_secs(10)).context("connect")
}

fn load(path: &Path, login: &Login) -> Result<()> {
    let mut client = connect(path, login)?;
    let fill = format!(
        "CREATE TABLE t AS SELECT i AS id, repeat('x', 100) AS c FROM generate_series(1, {ROWS}) i"
    );
    for sql in [fill.as_str(), "ALTER TABLE t ADD PRIMARY KEY (id)", "VACUUM ANALYZE t"] {
        client.simple(sql).with_context(|| format!("execute {sql:?}"))?;
    }
    Ok(())
}

/// A client that repeats a point query, on the same CPU as its backend.
struct Client {
    over: Arc<AtomicBool>,
    /// Its thread returns the end of each query, nanoseconds of the monotonic clock.
    thread: thread::JoinHandle<Result<Vec<u64>>>,
}

impl Client {
    fn start(server: (&Path, &Login), seed: u64, stop: &Arc<AtomicBool>) -> Result<Client> {
        let mut client = connect(server.0, server.1)?;
        let query = client.prepare("SELECT c FROM t WHERE id = $1", &[ValueType::Int])?;
        let cpu: Vec<usize> = affinity::allowed_cpus().into_iter().take(1).collect();
        affinity::pin_process(client.connection_id(), &cpu).context("place the backend")?;
        let (over, stop) = (Arc::new(AtomicBool::new(false)), Arc::clone(stop));
        let ends = Arc::clone(&over);
        let thread = thread::spawn(move || {
            affinity::pin_thread(&cpu).context("place the client")?;
            let mut rng = Rng::new(seed);
            let mut moments = Vec::with_capacity(4 << 20);
            while !ends.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed) {
                let id = 1 + rng.below(ROWS) as i64;
                client.execute(query, &[Value::Int(id)]).context("execute the query")?;
                moments.push(clock::monotonic_ns());
            }
            Ok(moments)
        });
        Ok(Client { over, thread })
    }

    fn end(self) -> Result<Vec<u64>> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|_| bail!("run the client: it panicked"))
    }
}

/// perf, waiting for orders. Dropping it ends the process.
struct Perf {
    child: Child,
    orders: File,
    answers: File,
    samples: PathBuf,
}

/// A stretch of time: start and end on the monotonic clock, and whether perf sampled.
type Period = (u64, u64, bool);

impl Perf {
    fn start(words: &[&str], options: &Options, folder: &Path) -> Result<Perf> {
        let [orders, answers, samples] = ["orders", "answers", "samples"].map(|it| folder.join(it));
        for path in [&orders, &answers] {
            if !path.exists() {
                rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
                    .with_context(|| format!("make {}", path.display()))?;
            }
        }
        let control = format!("fifo:{},{}", orders.display(), answers.display());
        let cpus = options.cpus.as_ref().map_or(vec!["-a"], |cpus| vec!["-C", cpus]);
        let child = Command::new("perf")
            .args(["record", "-q"])
            .args(words)
            .args(cpus)
            .args(["-F", &options.hertz.to_string(), "-k", "CLOCK_MONOTONIC"])
            .args(["--no-buildid", "--no-buildid-cache", "-D", "-1", "--control", &control, "-o"])
            .arg(&samples)
            .stdout(Stdio::null())
            .spawn()
            .context("start perf (Debian: apt-get install linux-perf)")?;
        // Both ends open a fifo together.
        let open = |path: &Path| OpenOptions::new().read(true).write(true).open(path);
        let orders = open(&orders).context("reach perf")?;
        let answers = open(&answers).context("reach perf")?;
        Ok(Perf { child, orders, answers, samples })
    }

    fn order(&mut self, word: &str) -> Result<()> {
        writeln!(self.orders, "{word}").context("give perf an order")?;
        let mut answer = [0; 5];
        self.answers.read_exact(&mut answer).context("hear perf")?;
        match &answer {
            b"ack\n\0" => Ok(()),
            other => bail!("have perf {word}: it answers {:?}", String::from_utf8_lossy(other)),
        }
    }

    /// Switches on and off in random order; returns the periods and the bytes of samples.
    fn take_turns(mut self, options: &Options, stop: &AtomicBool) -> Result<(Vec<Period>, u64)> {
        let mut rng = Rng::new(options.seed);
        let mut periods = Vec::new();
        self.order("disable")?;
        let until = Instant::now() + Duration::from_secs_f64(options.seconds);
        while Instant::now() < until {
            let first = rng.below(2) == 0;
            for samples in [first, !first] {
                if stop.load(Ordering::Relaxed) {
                    bail!("go on: stopped by the user");
                }
                self.order(if samples { "enable" } else { "disable" })?;
                let start = clock::monotonic_ns();
                thread::sleep(Duration::from_millis(options.period));
                periods.push((start, clock::monotonic_ns(), samples));
            }
        }
        self.order("stop")?;
        self.child.wait().context("wait for perf")?;
        let bytes = self.samples.metadata().context("find the samples")?.len();
        Ok((periods, bytes))
    }
}

impl Drop for Perf {
    fn drop(&mut self) {
        // It has ended unless there was an error.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// ln(rate with perf / rate without) of each pair of periods.
fn differences(periods: &[Period], moments: &[u64]) -> Vec<f64> {
    let rate = |(start, end, _): Period| {
        let (start, end) = (start + EDGE_NS, end.saturating_sub(EDGE_NS).max(start + EDGE_NS + 1));
        let before = |limit: u64| moments.partition_point(|moment| *moment < limit);
        (before(end) - before(start)) as f64 / (end - start) as f64
    };
    let pairs = periods.chunks_exact(2).map(|pair| {
        let [with, without] = if pair[0].2 { [pair[0], pair[1]] } else { [pair[1], pair[0]] };
        (rate(with) / rate(without)).ln()
    });
    pairs.filter(|one| one.is_finite()).collect()
}

// What the interrupts of a timer alone cost: the speed of a loop on one CPU while a timer
// interrupts it, relative to the speed without. A sampling profiler needs one for each sample.

/// ln(speed with / speed without) of each pair of neighbouring periods.
fn differences_of_timer(options: &Options, stop: &AtomicBool) -> Result<Vec<f64>> {
    let on_cpu = || {
        let cpu: Vec<usize> = affinity::allowed_cpus().into_iter().take(1).collect();
        affinity::pin_thread(&cpu).context("place the loop")?;
        take_turns(options, stop)
    };
    // The thread keeps its place, so it does nothing else.
    thread::scope(|scope| {
        scope.spawn(on_cpu).join().unwrap_or_else(|_| bail!("run the loop: it panicked"))
    })
}

fn take_turns(options: &Options, stop: &AtomicBool) -> Result<Vec<f64>> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK)
        .context("make a timer")?;
    let mut rng = Rng::new(options.seed);
    let mut differences = Vec::new();
    let until = Instant::now() + Duration::from_secs_f64(options.seconds);
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        let first = rng.below(2) == 0;
        let mut speeds = [0.0; 2];
        for ticks in [first, !first] {
            set(&timer, if ticks { options.hertz } else { 0 })?;
            speeds[usize::from(ticks)] = speed(&timer, Duration::from_millis(options.period))?;
        }
        differences.push((speeds[1] / speeds[0]).ln());
    }
    Ok(differences)
}

/// Lets the timer interrupt so often per second; 0: not at all.
fn set(timer: &OwnedFd, hertz: u32) -> Result<()> {
    let nanoseconds = 1_000_000_000u64.checked_div(u64::from(hertz)).unwrap_or(0);
    let time = Timespec { tv_sec: 0, tv_nsec: nanoseconds as i64 };
    let period = Itimerspec { it_interval: time, it_value: time };
    timerfd_settime(timer, TimerfdTimerFlags::empty(), &period).context("set the timer")?;
    Ok(())
}

/// Loops per second. Each loop also looks at the timer, which ticks on only after a look.
fn speed(timer: &OwnedFd, period: Duration) -> Result<f64> {
    let started = Instant::now();
    let mut loops = 0u64;
    loop {
        for add in 0..2000 {
            black_box(add);
        }
        loops += 1;
        match rustix::io::read(timer, &mut [0; 8]) {
            Ok(_) | Err(Errno::AGAIN) => {}
            Err(error) => return Err(error).context("read the timer"),
        }
        let passed = started.elapsed();
        if passed >= period {
            return Ok(loops as f64 / passed.as_secs_f64());
        }
    }
}
