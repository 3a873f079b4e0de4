//! A step of a script: one state for each client.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::client::{Pulse, ScriptClient};
use super::load::run_command;
use super::state::{Surroundings, random_name};
use crate::domain::lua::LuaWork;
use crate::driver::Stop;
use crate::driver::client::Counts;
use crate::driver::connection::Connector;
use crate::driver::crew::{Member, Ready, Spent, Stand};
use crate::driver::event::DriverEvent;
use crate::driver::link::LabLink;
use crate::driver::request::{DriverRequest, StepRequest};
use crate::driver::step::{Clients, MakeActs, measure};

/// How much longer than the step an event may last.
const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks at the clients.
const LOOK: Duration = Duration::from_millis(500);

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
    let (work, beside) = (task.work.clone(), watcher(&task, pulses.clone()));
    let make: MakeActs<ScriptClient> = Box::new(move |_, client, session| {
        let pulse = Arc::clone(&pulses[client as usize]);
        ScriptClient::begin(&surroundings, &work, (client, pulse), session)
    });
    let clients = Clients { beside: Some(beside), ..Clients::new(connector, make) };
    let mut outcome = measure(job, &task, clients, link)?;
    let seed = super::host::seed_of(job.seed);
    let kind = random_name(task.work.random.kind);
    outcome.facts.insert(
        "sysbench draws the same with".to_owned(),
        format!("--rand-seed={seed} --rand-type={kind}"),
    );
    Ok(link.say(&DriverEvent::Measured(Box::new(outcome)))?)
}

/// Ends a step whose script does not come back.
fn watcher(task: &StepRequest<LuaWork>, pulses: Vec<Pulse>) -> Member<Counts> {
    let limit = Duration::from_secs_f64(task.warmup_seconds + task.seconds) + PATIENCE;
    let name = task.work.script.name.clone();
    let life = move |stand: &Stand<Counts>| {
        stand.ready(Ready::default());
        let mut seen: Vec<(u64, Instant)> = pulses.iter().map(|_| (0, Instant::now())).collect();
        while !stand.is_over() {
            thread::sleep(LOOK);
            for (client, (pulse, seen)) in pulses.iter().zip(&mut seen).enumerate() {
                let beats = pulse.load(Ordering::Relaxed);
                if beats != seen.0 {
                    *seen = (beats, Instant::now());
                } else if beats % 2 == 1 && seen.1.elapsed() > limit {
                    return Err(format!(
                        "failed to execute {name}: event() of client {client} did not return \
                         within {} s",
                        limit.as_secs()
                    ));
                }
            }
        }
        stand.done(Counts::default(), Spent::default());
        Ok(())
    };
    Member {
        name: "the watcher".to_owned(),
        stack: 64 << 10,
        background: true,
        life: Box::new(life),
    }
}
