//! A step of the RocksDB sequence: opens the database, runs clients and the background writer,
//! maintains the tree, and reads the library's statistics.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use crate::driver::{client, maintain, setup, workers};
use rqps_driver::Stop;
use rqps_driver::clock::SECOND;
use rqps_driver::control_channel::ControlChannel;
use rqps_driver::event::{DriverEvent, StepInterval};
use rqps_driver::placement;
use rqps_driver::request::{DriverRequest, StepRequest};
use rqps_embed::rocksdb::marker::{Marker, State};
use rqps_embed::rocksdb::{Database, facts};
use rqps_host::clock::{RealClock, TimeSource as _};
use rqps_host::{affinity, clock, tree};
use rqps_model::kv::{KvOperation, KvWork};
use rqps_model::metric::Metric;
use rqps_model::run::Outcome;

/// Properties to keep as texts: name of the text, names of the property in different versions.
const TEXTS: &[(&str, &[&std::ffi::CStr])] = &[
    ("stats", &[c"rocksdb.stats"]),
    ("levelstats", &[c"rocksdb.levelstats"]),
    ("cf-write-stalls", &[c"rocksdb.cf-write-stall-stats"]),
    ("db-write-stalls", &[c"rocksdb.db-write-stall-stats"]),
];

/// The loop of the benchmark's steps.
pub(crate) fn step_loop(
    request: &DriverRequest,
    task: &StepRequest,
    control: &mut ControlChannel<&mut dyn Write>,
) -> Result<(), Stop> {
    measure(request, &task.own()?, control)
}

/// Carries out a step and sends its progress.
fn measure<W: Write>(
    request: &DriverRequest,
    task: &StepRequest<KvWork>,
    control: &mut ControlChannel<W>,
) -> Result<(), Stop> {
    let work = &task.work;
    let mut setup = setup::Setup::of(request, work)?;
    let fills = work.action == KvOperation::FillSequential;
    if fills {
        mark(&setup, State::Filling)?;
    }
    let measured = run(request, task, &mut setup, control);
    if let (true, Err(Stop::Fault(why))) = (fills, &measured) {
        // Later steps must not measure a half-loaded database.
        let _ = mark(&setup, State::Broken(why.clone()));
    }
    let outcome = measured?;
    if fills {
        mark(&setup, State::Filled)?;
    }
    control.send(&DriverEvent::Measured(Box::new(outcome)))?;
    Ok(())
}

fn mark(setup: &setup::Setup, state: State) -> Result<(), String> {
    let data = &setup.data;
    Marker::new(state)
        .write(data)
        .map_err(|error| format!("failed to write into {}: {error}", data.display()))
}

fn run<W: Write>(
    request: &DriverRequest,
    task: &StepRequest<KvWork>,
    setup: &mut setup::Setup,
    control: &mut ControlChannel<W>,
) -> Result<Outcome, Stop> {
    let work = &task.work;
    // Time under valgrind is meaningless, and the work that operations leave is counted with them.
    let is_timed = request.counted_events.is_none();
    let overhead = is_timed.then(|| client::overhead(work)).flatten();
    let opened = RealClock::new();
    let writer_mb = setup.writer_mb(work);
    let cpus = affinity::allowed_cpus();
    let threads = work.clients + u32::from(writer_mb.is_some());
    let seating = placement::plan_library(task.placement, threads);
    let database = setup.open();
    placement::rise(&cpus);
    let database = Arc::new(database?);
    control.send(&DriverEvent::Warming)?;
    let mut outcome = match work.action {
        KvOperation::Maintain => maintain_alone(&database, work, control)?,
        _ => workers::measure(request, task, (writer_mb, seating), &database, control)?,
    };
    if is_timed && work.action != KvOperation::Maintain && !work.after.is_empty() {
        control.send(&DriverEvent::WindowEnd)?;
        let begun = RealClock::new();
        maintain::carry_out(&database, &work.after, control)?;
        outcome.extra.insert(Metric::DrainSeconds, seconds_since(begun));
    }
    if let Some(overhead) = overhead {
        outcome.extra.insert(Metric::ClientOverhead, overhead);
    }
    outcome.facts = texts(&database);
    outcome.extra.insert(Metric::Uptime, seconds_since(opened));
    // Closing writes unsaved data, which is part of the cost of the process.
    drop(database);
    if let Ok(Some(facts)) = facts(&setup.database) {
        outcome.facts.insert("library".to_owned(), facts.line());
    }
    outcome.notes.splice(..0, setup.notes.drain(..));
    put_process(&mut outcome);
    Ok(outcome)
}

fn seconds_since(begun: RealClock) -> f64 {
    begun.now_ns() as f64 / SECOND
}

/// Adds the costs of the whole process, including opening, maintenance and closing.
fn put_process(outcome: &mut Outcome) {
    let cpu = tree::own_cpu().since(tree::Cpu::default());
    outcome.extra.insert(Metric::UserCpu, cpu.user_us / 1e9);
    outcome.extra.insert(Metric::SystemCpu, cpu.system_us / 1e9);
    match peak_rss_bytes() {
        Some(bytes) => {
            outcome.extra.insert(Metric::PeakRss, bytes as f64 / (1u64 << 30) as f64);
        }
        None => outcome.notes.push("peak resident memory is unavailable".to_owned()),
    }
}

/// `VmHWM` of this process.
fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes << 10)
}

fn texts(database: &Database) -> BTreeMap<String, String> {
    let found = TEXTS.iter().filter_map(|(name, properties)| {
        let text = properties.iter().find_map(|property| database.property(property))?;
        Some(((*name).to_owned(), text))
    });
    found.collect()
}

/// A step of maintenance only; its window is the maintenance.
fn maintain_alone<W: Write>(
    database: &Database,
    work: &KvWork,
    control: &mut ControlChannel<W>,
) -> Result<Outcome, Stop> {
    let cpu = tree::own_cpu();
    let begun = RealClock::new();
    control.send(&DriverEvent::WindowStart { at_ns: clock::monotonic_ns() })?;
    maintain::carry_out(database, &work.after, control)?;
    let seconds = seconds_since(begun);
    control.send(&DriverEvent::Interval(StepInterval {
        second: 1,
        seconds,
        ..StepInterval::default()
    }))?;
    Ok(Outcome { seconds, client_cpu: tree::own_cpu().since(cpu), ..Outcome::default() })
}
