//! Runs a step of a script, with one state per client.

use std::io::Write;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::client::ScriptClient;
use super::event_cap::EventCap;
use super::host::{SqlHost, seed_of};
use super::load::{of_process, run_command};
use super::reports::{Figures, Reporter};
use super::state::{Surroundings, load_script, random_name};
use rqps_driver::Stop;
use rqps_driver::client::Counts;
use rqps_driver::connection::Connector;
use rqps_driver::control_channel::ControlChannel;
use rqps_driver::event::DriverEvent;
use rqps_driver::request::{DriverRequest, StepRequest};
use rqps_driver::step::{Clients, MakeEvent, measure};
use rqps_driver::watch::ClientWatch;
use rqps_driver::worker_pool::{Ready, Spent, WorkerHandle, WorkerSpec};
use rqps_embed::lua::LuaState;
use rqps_model::lua::{LuaWork, RandomType};

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
