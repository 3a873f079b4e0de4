//! The driver process: clients, pace, recorder. It answers the lab in messages and writes nothing
//! else.

pub(crate) mod client;
pub(crate) mod clock;
pub(crate) mod connection;
pub(crate) mod crew;
pub mod event;
pub(crate) mod fake;
pub(crate) mod guest;
pub(crate) mod link;
pub(crate) mod load;
pub(crate) mod measure;
pub(crate) mod placement;
pub(crate) mod recorder;
pub mod request;
pub mod ring;
pub(crate) mod schedule;
pub(crate) mod script;
pub(crate) mod step;
pub(crate) mod turns;

use std::io::{BufRead, Write};
use std::path::Path;

use crate::driver::connection::Connector;
use crate::driver::event::DriverEvent;
use crate::driver::link::{LabGone, LabLink};
use crate::driver::request::{DriverRequest, RequestBody, VERSION};
use crate::os::cgroup;

/// How the job of a driver process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// All was done and said.
    Done,
    /// The job failed; the fault was said in a [`DriverEvent::Failed`].
    Failed,
    /// The other side went away: nobody is listening any more.
    Abandoned,
}

/// The driver process: reads one [`DriverRequest`] as a line of JSON, carries it out, and writes
/// [`DriverEvent`]s, one a line.
///
/// Returns early with [`Ending::Abandoned`] when `input` ends, since the lab is gone then; threads
/// of clients may still be running, so the caller is to end the process.
///
/// With `memory_group` it enters that control group first: what it loads and opens counts there.
pub fn main(
    mut input: impl BufRead + Send + 'static,
    output: impl Write,
    memory_group: Option<&Path>,
) -> Ending {
    // Without this the driver would go on loading a server that nobody reads the results of. Where
    // it fails, the end of the input still tells.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let entered = memory_group.map_or(Ok(()), cgroup::enter);
    let mut line = String::new();
    let read = input.read_line(&mut line);
    let mut link = LabLink::watching(output, input);
    let job = match read {
        Ok(0) => return Ending::Abandoned,
        Ok(_) => parse(&line),
        Err(error) => Err(format!("failed to read the job: {error}")),
    };
    let job = entered.map_err(|error| format!("failed to {error}")).and(job);
    end(job.map(|job| carry_out(&job, &mut link)), &mut link)
}

/// Carries out one job in this process, for tests of what lies above: as [`main`] without an input
/// to watch.
pub fn run_job(job: &DriverRequest, output: impl Write) -> Ending {
    let mut link = LabLink::alone(output);
    end(Ok(carry_out(job, &mut link)), &mut link)
}

/// A fault, or the other side gone.
pub(crate) enum Stop {
    Fault(String),
    Gone,
}

impl From<String> for Stop {
    fn from(fault: String) -> Stop {
        Stop::Fault(fault)
    }
}

impl From<LabGone> for Stop {
    fn from(_: LabGone) -> Stop {
        Stop::Gone
    }
}

fn parse(line: &str) -> Result<DriverRequest, String> {
    let job: DriverRequest = serde_json::from_str(line).map_err(|error| {
        format!("failed to read the job as one line of JSON: {error}; a driver is started by rqps")
    })?;
    if job.version != VERSION {
        return Err(format!(
            "failed to take the job: it speaks version {} and this driver version {VERSION}; \
             use one and the same rqps for both",
            job.version
        ));
    }
    Ok(job)
}

fn carry_out<W: Write>(job: &DriverRequest, link: &mut LabLink<W>) -> Result<(), Stop> {
    match &job.task {
        RequestBody::Load(task) => load::load(job, task, Connector::new(job)?, link),
        RequestBody::Measure(task) => measure::measure(job, task, Connector::new(job)?, link),
        RequestBody::Insert(task) => {
            crate::benchmarks::insert::driver::measure(job, task, Connector::new(job)?, link)
        }
        RequestBody::Kv(task) => crate::benchmarks::kv::driver::measure(job, task, link),
        RequestBody::Vector(task) => {
            crate::benchmarks::vector::driver::measure(job, task, Connector::new(job)?, link)
        }
    }
}

fn end<W: Write>(result: Result<Result<(), Stop>, String>, link: &mut LabLink<W>) -> Ending {
    let fault = match result {
        Ok(Ok(())) => return Ending::Done,
        Ok(Err(Stop::Gone)) => return Ending::Abandoned,
        Ok(Err(Stop::Fault(fault))) | Err(fault) => fault,
    };
    match link.say(&DriverEvent::Failed { fault }) {
        Ok(()) => Ending::Failed,
        Err(LabGone) => Ending::Abandoned,
    }
}
