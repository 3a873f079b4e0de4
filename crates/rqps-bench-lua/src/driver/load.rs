//! Runs commands of a script: `prepare`, which loads the data, and commands before a step.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::state::{Surroundings, load_script};
use crate::steps;
use rqps_driver::Stop;
use rqps_driver::connection::Connector;
use rqps_driver::control_channel::ControlChannel;
use rqps_driver::event::DriverEvent;
use rqps_driver::loaders::gather_statistics;
use rqps_driver::request::{DriverRequest, RequestBody};
use rqps_driver::worker_pool::{Ready, Spent, WorkerHandle, WorkerPool, WorkerSpec};
use rqps_host::tree;
use rqps_model::benchmark::{LoadBody, Workload};
use rqps_model::dialect::Dialect;
use rqps_model::lua::LuaWork;

/// Time between two looks at the threads of a command.
const BEAT: Duration = Duration::from_millis(500);

/// The load by `prepare` of the first script, for all scripts.
pub(crate) fn request(_: Dialect, workload: &Workload, _: Option<&str>) -> RequestBody {
    RequestBody::LoadOwn(LoadBody::Lua(Box::new(steps::load_work(workload))))
}

/// Loads by the script's commands and sends the progress.
pub(crate) fn own_load(
    request: &DriverRequest,
    load: &LoadBody,
    control: &mut ControlChannel<&mut dyn Write>,
) -> Result<(), Stop> {
    let LoadBody::Lua(work) = load else {
        return Err(Stop::Fault("failed to load: it is no load by a script".to_owned()));
    };
    let work = of_process((**work).clone(), request);
    let (begun, cpu) = (Instant::now(), tree::own_cpu());
    let connector = Connector::new(request)?;
    let clients = work.clients;
    let surroundings = Surroundings::new(connector.clone(), request, (&work, clients))?;
    if !work.unprepared.is_empty() && !work.commands.is_empty() {
        let (name, others) = (&work.script.name, work.unprepared.join(", "));
        control.send(&DriverEvent::Note(format!(
            "`prepare` of {name} loads for all scripts; that of {others} does not run: measure \
             scripts with tables of their own one by one"
        )))?;
    }
    let mut rows = 0;
    for command in &work.commands {
        let mut say = |rows, control: &mut ControlChannel<&mut dyn Write>| {
            Ok(control.send(&DriverEvent::Loading { rows, of: 0 })?)
        };
        rows += run_command(&surroundings, &work, command, &mut say, control)?;
    }
    let load_seconds = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    gather_statistics(request.dialect, &connector)?;
    let index_seconds = begun.elapsed().as_secs_f64();
    let client_cpu = tree::own_cpu().since(cpu);
    control.send(&DriverEvent::Loaded { rows, load_seconds, index_seconds, client_cpu })?;
    Ok(())
}

/// The script that a request runs.
pub(crate) fn script(task: &RequestBody) -> Result<PathBuf, String> {
    let work: LuaWork = match task {
        RequestBody::LoadOwn(LoadBody::Lua(work)) => (**work).clone(),
        RequestBody::Step(task) => task.own()?.work,
        _ => return Err("failed to find the script: the request has none".to_owned()),
    };
    Ok(work.script.path)
}

/// The work with the script where this process can read it.
pub(super) fn of_process(mut work: LuaWork, request: &DriverRequest) -> LuaWork {
    work.script.path = request.readable(&work.script.path);
    work
}

/// Sends the number of rows so far.
type Progress<'a> = &'a mut dyn FnMut(u64, &mut ControlChannel<&mut dyn Write>) -> Result<(), Stop>;

/// Runs a command, on all threads at once if it is made for that. Returns the rows that its
/// statements sent as INSERTs.
pub(super) fn run_command(
    surroundings: &Surroundings,
    work: &LuaWork,
    command: &str,
    say: Progress<'_>,
    control: &mut ControlChannel<&mut dyn Write>,
) -> Result<u64, Stop> {
    let is_parallel = work.script.commands.get(command).copied().unwrap_or(false);
    let threads = if is_parallel { work.clients } else { 1 };
    let rows = Arc::new(AtomicU64::new(0));
    let member = |thread: u32| {
        let (surroundings, work) = (surroundings.clone(), work.clone());
        let (command, rows) = (command.to_owned(), Arc::clone(&rows));
        let name = format!("thread {thread} of {command}");
        let main = move |handle: &WorkerHandle<()>| {
            handle.ready(Ready::default());
            run_on_thread(&surroundings, &work, (&command, thread), &rows)?;
            handle.done((), Spent::default());
            Ok(())
        };
        WorkerSpec::new(name, main)
    };
    let mut pool = WorkerPool::start(Instant::now(), (0..threads).map(member).collect())?;
    let mut beat =
        |control: &mut ControlChannel<&mut dyn Write>| say(rows.load(Ordering::Relaxed), control);
    pool.finish(BEAT, &mut beat, control)?;
    Ok(rows.load(Ordering::Relaxed))
}

fn run_on_thread(
    surroundings: &Surroundings,
    work: &LuaWork,
    (command, thread): (&str, u32),
    rows: &Arc<AtomicU64>,
) -> Result<(), String> {
    let name = &work.script.name;
    let fault = |what: String| format!("failed to run `{command}` of {name}: {what}");
    let mut state = surroundings.open(work, thread, command)?;
    state.host().inserted = Some(Arc::clone(rows));
    load_script(&mut state, &work.script.path).map_err(fault)?;
    state.command("run", command).map(|_| ()).map_err(fault)
}
