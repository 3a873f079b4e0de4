//! A step of a script: one state for each client.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::client::{Pulse, ScriptClient};
use super::host::{SqlHost, seed_of};
use super::load::run_command;
use super::reports::{Figures, Reporter};
use super::state::{Surroundings, load_script, random_name};
use crate::domain::lua::LuaWork;
use crate::driver::Stop;
use crate::driver::client::Counts;
use crate::driver::connection::Connector;
use crate::driver::crew::{Member, Ready, Spent, Stand};
use crate::driver::event::DriverEvent;
use crate::driver::link::LabLink;
use crate::driver::request::{DriverRequest, StepRequest};
use crate::driver::step::{Clients, MakeActs, measure};
use crate::embed::lua::LuaState;

/// How much longer than the step an event may last.
const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks at the clients.
const LOOK: Duration = Duration::from_millis(500);

/// Of the thread that looks: enough for the compiler of LuaJIT.
const STACK: usize = 1 << 20;

/// The loop of the benchmark's steps.
pub(crate) fn step_loop(
    job: &DriverRequest,
    task: &StepRequest,
    link: &mut LabLink<&mut dyn Write>,
) -> Result<(), Stop> {
    let task: StepRequest<LuaWork> = task.own()?;
    let connector = Connector::new(job)?;
    let surroundings = Surroundings::new(connector.clone(), job.seed)?;
    for command in &task.work.commands {
        run_command(&surroundings, &task.work, command, &mut |_, _| Ok(()), link)?;
    }
    let pulses: Vec<Pulse> = (0..task.clients).map(|_| Arc::new(AtomicU64::new(0))).collect();
    let figures = Figures::of(task.clients);
    let beside = watcher(&task, pulses.clone(), (surroundings.clone(), Arc::clone(&figures)));
    let (work, shared, of_clients) =
        (task.work.clone(), surroundings.clone(), Arc::clone(&figures));
    let make: MakeActs<ScriptClient> = Box::new(move |_, client, session| {
        let pulse = Arc::clone(&pulses[client as usize]);
        ScriptClient::begin(&shared, &work, (client, pulse), &of_clients, session)
    });
    let clients = Clients { beside: Some(beside), ..Clients::new(connector, make) };
    let mut around = Around::open(&surroundings, &task.work)?;
    around.call("init")?;
    let mut outcome = measure(job, &task, clients, link)?;
    around.call("done")?;
    if figures.is_wanted() {
        Reporter::open(&surroundings, &task.work, &figures)?.end()?;
    }
    for command in &task.work.after {
        run_command(&surroundings, &task.work, command, &mut |_, _| Ok(()), link)?;
    }
    let seed = seed_of(job.seed);
    let kind = random_name(task.work.random.kind);
    outcome.facts.insert(
        "sysbench draws the same with".to_owned(),
        format!("--rand-seed={seed} --rand-type={kind}"),
    );
    Ok(link.say(&DriverEvent::Measured(Box::new(outcome)))?)
}

/// The state in which a script's init() and done() run, which know of no client.
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

    /// Calls a function, if the script has that one.
    fn call(&mut self, function: &str) -> Result<(), String> {
        let called = self.state.command("call_once", function);
        let fault = |what| format!("failed to call {function}() of {}: {what}", self.script);
        called.map(|_| ()).map_err(fault)
    }
}

/// Ends a step whose script does not come back, and has the script report.
fn watcher(
    task: &StepRequest<LuaWork>,
    pulses: Vec<Pulse>,
    (surroundings, figures): (Surroundings, Arc<Figures>),
) -> Member<Counts> {
    let limit = Duration::from_secs_f64(task.warmup_seconds + task.seconds) + PATIENCE;
    let work = task.work.clone();
    let life = move |stand: &Stand<Counts>| {
        stand.ready(Ready::default());
        let mut seen: Vec<(u64, Instant)> = pulses.iter().map(|_| (0, Instant::now())).collect();
        let mut reporter = None;
        while !stand.is_over() {
            thread::sleep(LOOK);
            if figures.is_wanted() && reporter.is_none() {
                reporter = Some(Reporter::open(&surroundings, &work, &figures)?);
            }
            reporter.as_mut().map_or(Ok(()), Reporter::look)?;
            for (client, (pulse, seen)) in pulses.iter().zip(&mut seen).enumerate() {
                let beats = pulse.load(Ordering::Relaxed);
                if beats != seen.0 {
                    *seen = (beats, Instant::now());
                } else if beats % 2 == 1 && seen.1.elapsed() > limit {
                    return Err(format!(
                        "failed to execute {}: event() of client {client} did not return \
                         within {} s",
                        work.script.name,
                        limit.as_secs()
                    ));
                }
            }
        }
        stand.done(Counts::default(), Spent::default());
        Ok(())
    };
    Member { name: "the watcher".to_owned(), stack: STACK, background: true, life: Box::new(life) }
}
