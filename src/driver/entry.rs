//! Entry of the driver process: reads one request, writes events, and ends.

use std::io::{BufRead, Write};
use std::path::Path;

use crate::domain::benchmark::StepBody;
use crate::driver::connection::Connector;
use crate::driver::event::DriverEvent;
use crate::driver::link::{LabGone, LabLink};
use crate::driver::part::DriverPart;
use crate::driver::request::{DriverRequest, RequestBody, VERSION};
use crate::driver::stop::Stop;
use crate::driver::{load, load_files, load_parts, measure};
use crate::json;
use crate::os::cgroup;

/// The end of a driver process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The request is carried out.
    Done,
    /// The request failed; a [`DriverEvent::Failed`] was sent.
    Failed,
    /// The lab is gone.
    Abandoned,
}

/// Runs the driver process: reads one [`DriverRequest`] as a line of JSON, carries it out, and
/// writes a [`DriverEvent`] per line.
///
/// Returns [`Ending::Abandoned`] early when `input` ends, because then the lab is gone. Client
/// threads may still run, so the caller must end the process.
///
/// `parts` are the hooks of the benchmarks. With `memory_group`, the process first enters that
/// control group, so that the memory of libraries and files counts there.
pub fn main(
    parts: &[&DriverPart],
    mut input: impl BufRead + Send + 'static,
    mut output: impl Write,
    memory_group: Option<&Path>,
) -> Ending {
    // Without this, the driver would still send load after the lab is gone. If the call fails, the
    // end of the input ends the driver.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let entered = memory_group.map_or(Ok(()), cgroup::enter);
    let mut line = String::new();
    let read = input.read_line(&mut line);
    let output: &mut dyn Write = &mut output;
    let mut link = LabLink::watching(output, input);
    let job = match read {
        Ok(0) => return Ending::Abandoned,
        Ok(_) => parse(&line),
        Err(error) => Err(format!("failed to read the request: {error}")),
    };
    if job.as_ref().is_ok_and(|job| job.away.is_some()) {
        link.watch_host();
    }
    let job = entered.map_err(|error| format!("failed to {error}")).and(job);
    end(job.map(|job| carry_out(&job, parts, &mut link)), &mut link)
}

/// Carries out one request in this process, for tests: like [`main`], without watching an input.
pub fn run_job(job: &DriverRequest, parts: &[&DriverPart], mut output: impl Write) -> Ending {
    let output: &mut dyn Write = &mut output;
    let mut link = LabLink::alone(output);
    end(Ok(carry_out(job, parts, &mut link)), &mut link)
}

fn parse(line: &str) -> Result<DriverRequest, String> {
    let job: DriverRequest = json::read(line).map_err(|error| {
        format!("failed to read the request as one line of JSON: {error}; only rqps starts drivers")
    })?;
    if job.version != VERSION {
        return Err(format!(
            "failed to accept the request: it has version {} but this driver has version \
             {VERSION}; use the same rqps for both",
            job.version
        ));
    }
    Ok(job)
}

fn carry_out(
    job: &DriverRequest,
    parts: &[&DriverPart],
    link: &mut LabLink<&mut dyn Write>,
) -> Result<(), Stop> {
    let part = |benchmark: &str| {
        let found = parts.iter().find(|part| part.benchmark == benchmark);
        found.ok_or_else(|| format!("failed to take the job: this driver has no {benchmark}"))
    };
    match &job.task {
        RequestBody::Load(task) => {
            let rows = part(&task.rows_of)?.rows;
            let rows =
                rows.ok_or_else(|| format!("failed to load: {} has no rows", task.rows_of))?;
            load::load(job, task, rows, Connector::new(job)?, link)
        }
        RequestBody::LoadOwn(own) => match part(&own.benchmark)? {
            DriverPart { own_load: Some(own_load), .. } => own_load(job, own, link),
            DriverPart { part_rows: Some(rows), .. } => {
                load_parts::load(job, &own.read()?, *rows, Connector::new(job)?, link)
            }
            _ => Err(Stop::Fault(format!("failed to load: {} has no load", own.benchmark))),
        },
        RequestBody::LoadFiles(task) => load_files::load(job, task, &Connector::new(job)?, link),
        RequestBody::Step(task) => match &task.work {
            StepBody::Script(script) => {
                let task = task.with(script.clone());
                measure::measure(job, &task, Connector::new(job)?, link)
            }
            StepBody::Own(own) => match part(&own.benchmark)?.step_loop {
                Some(step_loop) => step_loop(job, task, link),
                None => {
                    let why = format!("failed to measure: {} has no loop", own.benchmark);
                    Err(Stop::Fault(why))
                }
            },
        },
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
