//! Entry of the driver process: reads one request, writes events, and ends.

use std::io::{BufRead, Write};
use std::path::Path;

use crate::connection::Connector;
use crate::control_channel::{ControlChannel, LabGone, Stop};
use crate::event::DriverEvent;
use crate::part::DriverPart;
use crate::request::{DriverRequest, RequestBody, VERSION};
use crate::{confined, load, load_files, load_parts, measure, tables, turns};
use rqps_host::shared_memory::SharedPage;
use rqps_host::{cgroup, clock};
use rqps_model::benchmark::StepBody;
use rqps_model::endpoint::Endpoint;

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
    let request = match read {
        Ok(0) => return Ending::Abandoned,
        Ok(_) => parse(&line),
        Err(error) => Err(format!("failed to read the request: {error}")),
    };
    let request = entered.map_err(|error| format!("failed to {error}")).and(request);
    // Also before it gives up the right to open the page.
    let request = request.and_then(with_own_time);
    // Before there are other threads: the kernel takes some rights from one thread only.
    let request = request.and_then(|request| without_rights(request, parts));
    // The kernel forgets it with the rights. A driver that stands still cannot see the input end.
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    let output: &mut dyn Write = &mut output;
    let mut control = ControlChannel::watching(output, input);
    if request.as_ref().is_ok_and(|request| request.away.is_some()) {
        control.watch_host();
    }
    let places = request.as_ref().ok().and_then(|request| request.places.clone());
    let ending = end(request.map(|request| carry_out(&request, parts, &mut control)), &mut control);
    if let Some(places) = places {
        places.clear();
    }
    ending
}

/// Makes all clocks leave out the time in which the lab stops this process, if it does.
fn with_own_time(request: DriverRequest) -> Result<DriverRequest, String> {
    if let Some(path) = &request.standstill {
        let page = SharedPage::open(path).map_err(|error| {
            format!("failed to open the page of the standstill {}: {error}", path.display())
        })?;
        clock::leave_out_standstill(page, 0);
    }
    Ok(request)
}

/// Gives up rights if the request executes code that the user brought: scripts, and the library of
/// a DBMS.
fn without_rights(request: DriverRequest, parts: &[&DriverPart]) -> Result<DriverRequest, String> {
    let benchmark = match &request.task {
        RequestBody::LoadOwn(load) => Some(load.benchmark()),
        RequestBody::Step(task) => task.work.benchmark(),
        _ => None,
    };
    let part = parts.iter().find(|part| Some(part.benchmark) == benchmark);
    match (part.and_then(|part| part.script), &request.endpoint) {
        (Some(script), _) => {
            let script = script(&request.task)?;
            confined::confine(request, &script)
        }
        (None, Endpoint::File { .. }) => confined::before_library(request),
        (None, _) => Ok(request),
    }
}

/// Carries out one request in this process, for tests: like [`main`], without watching an input.
pub fn run_request(
    request: &DriverRequest,
    parts: &[&DriverPart],
    mut output: impl Write,
) -> Ending {
    let output: &mut dyn Write = &mut output;
    let mut control = ControlChannel::alone(output);
    end(Ok(carry_out(request, parts, &mut control)), &mut control)
}

fn parse(line: &str) -> Result<DriverRequest, String> {
    let request: DriverRequest = serde_json::from_str(line).map_err(|error| {
        format!("failed to read the request as one line of JSON: {error}; only rqps starts drivers")
    })?;
    if request.version != VERSION {
        return Err(format!(
            "failed to accept the request: it has version {} but this driver has version \
             {VERSION}; use the same rqps for both",
            request.version
        ));
    }
    Ok(request)
}

fn carry_out(
    request: &DriverRequest,
    parts: &[&DriverPart],
    control: &mut ControlChannel<&mut dyn Write>,
) -> Result<(), Stop> {
    let part = |benchmark: &str| {
        let found = parts.iter().find(|part| part.benchmark == benchmark);
        found.ok_or_else(|| format!("failed to take the job: this driver has no {benchmark}"))
    };
    match &request.task {
        RequestBody::Load(task) => {
            let rows = part(&task.rows_of)?.rows;
            let rows =
                rows.ok_or_else(|| format!("failed to load: {} has no rows", task.rows_of))?;
            load::load(request, task, rows, Connector::new(request)?, control)
        }
        RequestBody::LoadParts(task) => {
            let rows = part(&task.rows_of)?.part_rows;
            let rows =
                rows.ok_or_else(|| format!("failed to load: {} has no rows", task.rows_of))?;
            load_parts::load(request, task, rows, Connector::new(request)?, control)
        }
        RequestBody::LoadOwn(load) => match part(load.benchmark())?.own_load {
            Some(own_load) => own_load(request, load, control),
            None => Err(Stop::Fault(format!("failed to load: {} has no load", load.benchmark()))),
        },
        RequestBody::LoadFiles(task) => {
            load_files::load(request, task, &Connector::new(request)?, control)
        }
        RequestBody::ReadTables(task) => tables::read(&Connector::new(request)?, task, control),
        RequestBody::KeepTurns(rules) => turns::keeper::keep(rules, control),
        RequestBody::Step(task) => {
            let benchmark = match &task.work {
                StepBody::Script(script) => {
                    let task = task.with(script.clone());
                    return measure::measure(request, &task, Connector::new(request)?, control);
                }
                own => own.benchmark().unwrap_or_default(),
            };
            let part = part(benchmark)?;
            if request.asks && !part.answers {
                let why = format!("answers of {benchmark} are not compared");
                return Ok(control.send(&DriverEvent::Answered(Some(why)))?);
            }
            match part.step_loop {
                Some(step_loop) => step_loop(request, task, control),
                None => Err(Stop::Fault(format!("failed to measure: {benchmark} has no loop"))),
            }
        }
    }
}

fn end<W: Write>(
    result: Result<Result<(), Stop>, String>,
    control: &mut ControlChannel<W>,
) -> Ending {
    let fault = match result {
        Ok(Ok(()) | Err(Stop::Answered)) => return Ending::Done,
        Ok(Err(Stop::Gone)) => return Ending::Abandoned,
        Ok(Err(Stop::Fault(fault))) | Err(fault) => fault,
    };
    match control.send(&DriverEvent::Failed { fault }) {
        Ok(()) => Ending::Failed,
        Err(LabGone) => Ending::Abandoned,
    }
}
