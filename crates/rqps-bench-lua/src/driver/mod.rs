//! Runs scripts: a state of LuaJIT per client, and the functions that scripts call.
//!
//! Runs commands of a script: `prepare`, which loads the data, and commands before a step.

mod client;
mod host;
mod random;
mod state;
mod values;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use self::client::{Figures, Reporter, ScriptClient};
use self::host::{SqlHost, seed_of};
pub use self::state::{LUA_COMMAND, declared};
use self::state::{Surroundings, load_script, random_name};
use crate::steps;
use rqps_driver::Stop;
use rqps_driver::attempt::ClientWatch;
use rqps_driver::client::Counts;
use rqps_driver::connection::Connector;
use rqps_driver::control_channel::ControlChannel;
use rqps_driver::event::DriverEvent;
use rqps_driver::loaders::gather_statistics;
use rqps_driver::request::{DriverRequest, RequestBody, StepRequest};
use rqps_driver::step::{Clients, MakeEvent, measure};
use rqps_driver::worker_pool::{Ready, Spent, WorkerHandle, WorkerPool, WorkerSpec};
use rqps_embed::lua::LuaState;
use rqps_host::tree;
use rqps_model::benchmark::{LoadBody, Workload};
use rqps_model::dialect::Dialect;
use rqps_model::lua::{LuaWork, RandomType};

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
fn of_process(mut work: LuaWork, request: &DriverRequest) -> LuaWork {
    work.script.path = request.readable(&work.script.path);
    work
}

/// Sends the number of rows so far.
type Progress<'a> = &'a mut dyn FnMut(u64, &mut ControlChannel<&mut dyn Write>) -> Result<(), Stop>;

/// Runs a command, on all threads at once if it is made for that. Returns the rows that its
/// statements sent as INSERTs.
fn run_command(
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

// Runs a step of a script, with one state per client.

/// The note on a step whose script uses sysbench's default distribution.
const SPECIAL: &str = "numbers were drawn with `special`, the default of sysbench 1.0, which \
                       prefers a few; --set api=1.1 draws uniformly";

/// Time between two checks whether a report is due.
const LOOK: Duration = Duration::from_millis(100);

/// The loop of the benchmark's steps.
pub(crate) fn step_loop(
    request: &DriverRequest,
    task: &StepRequest,
    control: &mut ControlChannel<&mut dyn Write>,
) -> Result<(), Stop> {
    let mut task: StepRequest<LuaWork> = task.own()?;
    task.work = of_process(task.work, request);
    let connector = Connector::new(request)?;
    let of = (&task.work, task.clients);
    let surroundings = Surroundings::new(connector.clone(), request, of)?;
    for command in &task.work.commands {
        run_command(&surroundings, &task.work, command, &mut |_, _| Ok(()), control)?;
    }
    let figures = Figures::of(request.number_of(0), task.clients);
    let beside = reporter(&task, surroundings.clone(), Arc::clone(&figures));
    let (work, shared, of_clients) =
        (task.work.clone(), surroundings.clone(), Arc::clone(&figures));
    let cap = EventCap::of(request, &task.work, task.clients);
    let of_step = cap.clone();
    let make: MakeEvent<ScriptClient> = Box::new(move |_, client, session| {
        ScriptClient::begin(&shared, &work, client, (&of_clients, &of_step), session)
    });
    let watch = Some(ClientWatch::over(&task, &task.work.script.name));
    let is_capped = task.work.events.is_some();
    let clients =
        Clients { beside: Some(beside), watch, is_capped, ..Clients::new(connector, make) };
    let mut around = Around::open(&surroundings, &task.work)?;
    around.call("init")?;
    let mut outcome = measure(request, &task, clients, control)?;
    around.call("done")?;
    if let (true, Some(events)) = (cap.is_reached(), task.work.events) {
        let seconds = task.seconds;
        outcome.notes.push(format!("--events={events} ended it before its {seconds} s"));
    }
    if figures.drew_by_default() && task.work.random.kind == RandomType::Special {
        outcome.notes.push(SPECIAL.to_owned());
    }
    if figures.is_wanted() {
        Reporter::open(&surroundings, &task.work, &figures)?.end()?;
    }
    for command in &task.work.after {
        run_command(&surroundings, &task.work, command, &mut |_, _| Ok(()), control)?;
    }
    let seed = seed_of(request.seed);
    let kind = random_name(task.work.random.kind);
    outcome.facts.insert(
        "sysbench draws the same with".to_owned(),
        format!("--rand-seed={seed} --rand-type={kind}"),
    );
    Ok(control.send(&DriverEvent::Measured(Box::new(outcome)))?)
}

/// The state of a script's init() and done(), which belong to no client.
struct Around<'a> {
    state: LuaState<SqlHost>,
    script: &'a str,
}

impl<'a> Around<'a> {
    fn open(surroundings: &Surroundings, work: &'a LuaWork) -> Result<Around<'a>, String> {
        let mut state = surroundings.open(work, 0, "run")?;
        let script = &work.script.name;
        load_script(&mut state, &work.script.path)
            .map_err(|what| format!("failed to prepare {script}: {what}"))?;
        Ok(Around { state, script })
    }

    /// Calls a function if the script has it.
    fn call(&mut self, function: &str) -> Result<(), String> {
        let called = self.state.command("call_once", function);
        let fault = |what| format!("failed to call {function}() of {}: {what}", self.script);
        called.map(|_| ()).map_err(fault)
    }
}

/// The thread that calls the report hooks.
fn reporter(
    task: &StepRequest<LuaWork>,
    surroundings: Surroundings,
    figures: Arc<Figures>,
) -> WorkerSpec<Counts> {
    let work = task.work.clone();
    let main = move |handle: &WorkerHandle<Counts>| {
        handle.ready(Ready::default());
        let mut reporter = None;
        while !handle.is_over() {
            thread::sleep(LOOK);
            if figures.is_wanted() && reporter.is_none() {
                reporter = Some(Reporter::open(&surroundings, &work, &figures)?);
            }
            reporter.as_mut().map_or(Ok(()), Reporter::look)?;
        }
        handle.done(Counts::default(), Spent::default());
        Ok(())
    };
    let name = "the reports of the script".to_owned();
    WorkerSpec::new(name, main).in_background()
}

// The number of events after which a step ends, all clients together: `--events=N` of sysbench.

/// Counts the events of a window down, if there is a limit.
#[derive(Clone)]
pub(super) struct EventCap(Option<Arc<AtomicU64>>);

impl EventCap {
    /// For the clients of this driver among those of all hosts. A count of instructions has its own
    /// number of events.
    pub(super) fn of(request: &DriverRequest, work: &LuaWork, clients: u32) -> EventCap {
        let all = u64::from(request.all_clients(clients).max(1));
        let own = work.events.filter(|_| request.counted_events.is_none());
        let own = own.map(|events| (events * u64::from(clients)).div_ceil(all));
        EventCap(own.map(|events| Arc::new(AtomicU64::new(events))))
    }

    /// True if no more events are to begin. Those in flight still count.
    #[inline]
    pub(super) fn is_reached(&self) -> bool {
        self.0.as_ref().is_some_and(|left| left.load(Ordering::Relaxed) == 0)
    }

    /// One event has ended in the window.
    #[inline]
    pub(super) fn count(&self) {
        if let Some(left) = &self.0 {
            let fewer = |left: u64| left.checked_sub(1);
            // At 0 it stays.
            let _ = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer);
        }
    }
}

// Server errors after which sysbench repeats an event.

/// Deadlock, record changed, lock wait timeout.
const MYSQL: [&str; 3] = ["1213", "1020", "1205"];

/// A database or a table locked by another connection. sysbench has no driver for SQLite; these
/// codes correspond to those above.
const SQLITE: [&str; 2] = ["5", "6"];

/// Deadlock, duplicate key, serialization failure.
const POSTGRES: [&str; 3] = ["40P01", "23505", "40001"];

/// True if an event is repeated after an error with this code. `ignored`: codes of MySQL from the
/// command line, instead of the default ones.
pub(super) fn begins_again(dialect: Dialect, code: &str, ignored: &[String]) -> bool {
    match dialect {
        Dialect::Postgres => POSTGRES.contains(&code),
        Dialect::Sqlite => SQLITE.contains(&code),
        _ if ignored.is_empty() => MYSQL.contains(&code),
        _ => ignored.iter().any(|ignored| ignored == code || ignored == "all"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_driver::request::AwayClients;

    #[test]
    fn a_cap_is_shared_and_divided_among_hosts() {
        let text = r#"{"script":{"name":"a","path":"/a.lua"},"commands":[],"clients":4,
            "seconds":1.0,"rights":"full","random":{},"ignored_errors":[],
            "plain_statements":false,"events":5}"#;
        let work: LuaWork = serde_json::from_str(text).unwrap();
        let mut request = DriverRequest::fake(RequestBody::LoadFiles(Default::default()));
        let cap = EventCap::of(&request, &work, 4);
        let other = cap.clone();
        for _ in 0..4 {
            other.count();
        }
        assert!(!cap.is_reached());
        other.count();
        other.count();
        assert!(cap.is_reached());
        request.away = Some(AwayClients { first: 0, of: 4 });
        let share = EventCap::of(&request, &work, 1);
        share.count();
        assert!(!share.is_reached(), "two of five for a quarter of the clients");
        share.count();
        assert!(share.is_reached());
        request.counted_events = Some(1);
        let none = EventCap::of(&request, &work, 4);
        none.count();
        assert!(!none.is_reached());
    }
}
