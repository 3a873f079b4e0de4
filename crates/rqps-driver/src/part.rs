//! Hooks of a benchmark in the driver, and the entry of its process.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use crate::connection::Connector;
use crate::control_channel::{ControlChannel, DriverEvent, LabGone, Stop};
use crate::request::{DriverRequest, PartLoad, RequestBody, StepRequest, VERSION};
use crate::{confined, load, load_files, loaders, step, tables, turns};
use rqps_host::shared_memory::SharedPage;
use rqps_host::{cgroup, clock};
use rqps_model::benchmark::{LoadBody, StepBody};
use rqps_model::endpoint::Endpoint;

/// The hooks of one benchmark.
#[derive(Clone, Copy)]
pub struct DriverPart {
    /// The name of the benchmark, as after `--bench`.
    pub benchmark: &'static str,
    /// Its own loop; `None` if all its steps are scripts.
    pub step_loop: Option<StepLoop>,
    /// The rows of its tables; `None` if it has no generated tables.
    pub rows: Option<OpenRows>,
    /// Creates and fills its tables if a request asks for the benchmark's own load; `None` if none
    /// does.
    pub own_load: Option<OwnLoad>,
    /// The rows of a load in parts; `None` if no request asks for one.
    pub part_rows: Option<OpenPart>,
    /// Finds the script of a request, where scripts are the user's code. The driver gives up its
    /// rights before it runs one.
    pub script: Option<ScriptOf>,
    /// True if its own loop measures events with [`measure`](crate::step::measure), so that
    /// it can be asked for answers.
    pub answers: bool,
}

impl DriverPart {
    /// A benchmark of scripts without tables.
    pub const NONE: DriverPart = DriverPart {
        benchmark: "",
        step_loop: None,
        rows: None,
        own_load: None,
        part_rows: None,
        script: None,
        answers: false,
    };
}

/// Carries out a step that is no script, and sends its progress.
pub type StepLoop =
    fn(&DriverRequest, &StepRequest, &mut ControlChannel<&mut dyn Write>) -> Result<(), Stop>;

/// Creates and fills all tables, and sends its progress.
pub type OwnLoad =
    fn(&DriverRequest, &LoadBody, &mut ControlChannel<&mut dyn Write>) -> Result<(), Stop>;

/// The file with the script of a request. The error is a complete message.
pub type ScriptOf = fn(&RequestBody) -> Result<PathBuf, String>;

/// Opens the rows of table number `table`, from 1.
pub type OpenRows = fn(request: &DriverRequest, table: u32) -> Box<dyn LoadRows>;

/// The rows of a table. A row depends only on its number, so a load may be split in any way.
pub trait LoadRows {
    /// Writes row `id`, from 1, into `row`. Allocates nothing once `row` is large enough.
    fn row(&self, id: u64, row: &mut LoadRow);
}

/// One generated row.
#[derive(Clone, Debug, Default)]
pub struct LoadRow {
    /// Numbers in the order of their columns.
    pub numbers: Vec<i64>,
    /// The texts, one after the other.
    pub text: Vec<u8>,
}

/// Opens the rows of a part (from 0) in a table (from 0); `None` if it has none.
pub type OpenPart = fn(
    request: &DriverRequest,
    task: &PartLoad,
    part: u32,
    table: usize,
) -> Result<Option<Box<dyn PartRows>>, String>;

/// The rows of a part in one table, in the order of the load.
pub trait PartRows {
    /// Writes the next row into `row`, which is empty; false after the last.
    fn next(&mut self, row: &mut FieldRow) -> bool;

    /// The reason why the rows ended early; a complete message.
    fn fault(&mut self) -> Option<String> {
        None
    }

    /// The origin of the last row, for the error of a server that refuses it.
    fn place(&self) -> Option<String> {
        None
    }
}

/// One row as texts in the order of the columns. Allocates nothing once it is large enough.
#[derive(Clone, Debug, Default)]
pub struct FieldRow {
    bytes: Vec<u8>,
    /// The end of each field in `bytes`, and false for NULL.
    ends: Vec<(usize, bool)>,
}

impl FieldRow {
    /// Removes all fields; keeps their memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Adds a whole number.
    pub fn number(&mut self, number: u64) {
        let mut digits = [0; 20];
        let mut start = digits.len();
        let mut rest = number;
        loop {
            start -= 1;
            digits[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.text(&digits[start..]);
    }

    /// Adds a text.
    pub fn text(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push((self.bytes.len(), true));
    }

    /// Adds the text that `write` appends.
    pub fn written(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push((self.bytes.len(), true));
    }

    /// Adds a NULL.
    pub fn null(&mut self) {
        self.ends.push((self.bytes.len(), false));
    }

    /// The fields in order; `None` is NULL.
    pub fn fields(&self) -> impl Iterator<Item = Option<&[u8]>> {
        let mut start = 0;
        self.ends.iter().map(move |(end, there)| {
            let field = &self.bytes[start..*end];
            start = *end;
            there.then_some(field)
        })
    }
}

// Entry of the driver process: reads one request, writes events, and ends.

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
    if request.as_ref().is_ok_and(|request| request.standstill.is_some()) {
        // Without a lab, the end of the input ends this process.
        let _ = control.send(&DriverEvent::Bound);
    }
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
            loaders::load(request, task, rows, Connector::new(request)?, control)
        }
        RequestBody::LoadOwn(load) => match part(load.benchmark())?.own_load {
            Some(own_load) => own_load(request, load, control),
            None => Err(Stop::Fault(format!("failed to load: {} has no load", load.benchmark()))),
        },
        RequestBody::LoadFiles(task) => {
            load_files::load(request, task, &Connector::new(request)?, control)
        }
        RequestBody::ReadTables(task) => tables::read(&Connector::new(request)?, task, control),
        RequestBody::KeepTurns(rules) => turns::keep(rules, control),
        RequestBody::Step(task) => {
            let benchmark = match &task.work {
                StepBody::Script(script) => {
                    let task = task.with(script.clone());
                    return step::measure_script(request, &task, Connector::new(request)?, control);
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
