//! The load by the program, and its declarations.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::program::Program;
use crate::client::steps;
use rqps_driver::Stop;
use rqps_driver::confined;
use rqps_driver::control_channel::ControlChannel;
use rqps_driver::event::DriverEvent;
use rqps_driver::request::{DriverRequest, RequestBody};
use rqps_host::tree::{Cpu, TreeCpu};
use rqps_model::benchmark::{LoadBody, StepBody, Workload};
use rqps_model::client::ClientShape;
use rqps_model::dialect::Dialect;

/// The hidden command that reads a program's declarations in its own process.
pub const CLIENT_COMMAND: &str = "look-at-client";

/// Seconds that a program may take to say what it can.
const HELLO_SECONDS: f64 = 25.0;

/// The load by the program.
pub(crate) fn request(_: Dialect, workload: &Workload, _: Option<&str>) -> RequestBody {
    let none = ClientShape::default();
    let shape = steps::shape(workload).unwrap_or(&none);
    RequestBody::LoadOwn(LoadBody::Client(steps::load_work(shape)))
}

/// Has the program load, if it can, and sends the progress.
pub(crate) fn own_load(
    request: &DriverRequest,
    load: &LoadBody,
    control: &mut ControlChannel<&mut dyn Write>,
) -> Result<(), Stop> {
    let LoadBody::Client(work) = load else {
        return Err(Stop::Fault("failed to load: it is no load by a program".to_owned()));
    };
    let begun = Instant::now();
    let path = request.readable(&work.program);
    let mut program = Program::start(&path, "the load", work.timeout_seconds)?;
    let tree = TreeCpu::new(program.pid()).ok();
    let has_load = program.hello()?.load;
    program.open(request, work, 0, 1)?;
    let rows = match has_load {
        true => program.load(request.rows, &mut |rows| {
            Ok(control.send(&DriverEvent::Loading { rows, of: request.rows.max(rows) })?)
        })?,
        false => 0,
    };
    let load_seconds = begun.elapsed().as_secs_f64();
    let spent = tree.and_then(|mut tree| tree.read().ok()).unwrap_or_default();
    let client_cpu = spent.since(Cpu::default());
    Ok(control.send(&DriverEvent::Loaded { rows, load_seconds, index_seconds: 0.0, client_cpu })?)
}

/// The program that a request runs.
pub(crate) fn script(task: &RequestBody) -> Result<PathBuf, String> {
    match task {
        RequestBody::LoadOwn(LoadBody::Client(work)) => Ok(work.program.clone()),
        RequestBody::Step(task) => match &task.work {
            StepBody::Client(work) => Ok(work.program.clone()),
            _ => Err("failed to find the program: the request is of another benchmark".to_owned()),
        },
        _ => Err("failed to find the program: the request has none".to_owned()),
    }
}

/// The program's declarations as JSON. This process gives up its rights and changes to another
/// folder first, so it should do nothing else.
///
/// # Errors
/// The program cannot be run, or does not say what it can.
pub fn declared(program: &Path) -> Result<String, String> {
    let places = confined::enter(program, None)?;
    let declared = Program::start(&places.readable(program), "the first look", HELLO_SECONDS)
        .and_then(|mut program| program.hello());
    places.clear();
    serde_json::to_string(&declared?).map_err(|error| error.to_string())
}
