//! Measures simulated clients on the fake DBMS, without threads and without the host's clock.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::client::{Client, Counts};
use crate::connection::{Connection, Connector};
use crate::control_channel::ControlChannel;
use crate::event::DriverEvent;
use crate::interval::{self, IntervalMeter};
use crate::request::{DriverRequest, StepRequest};
use crate::script::explain as plans;
use crate::script::program::{Program, compile};
use crate::script::sources::SharedSources;
use crate::{Stop, outcome, window};
use rqps_model::run::CpuTime;
use rqps_model::script::Script;

/// CPU time of the client per fake statement, microseconds.
const CPU_PER_STATEMENT: CpuTime = CpuTime { user_us: 1.0, system_us: 4.0 };

/// Runs fake clients one after another, each on its own clock from 0, so that neither threads nor
/// the host affect the result. In real time, messages come as from real clients, with the same
/// numbers.
pub(crate) fn measure<W: Write>(
    request: &DriverRequest,
    task: &StepRequest<Script>,
    connector: &Connector,
    real_time: bool,
    control: &mut ControlChannel<W>,
) -> Result<(), Stop> {
    let mut wall = Wall { begun: real_time.then(Instant::now) };
    let recorders = interval::recorders(task);
    let sources = SharedSources::open(&task.work, request.all_clients(task.clients))?;
    let mut clients = Vec::new();
    let mut explained = None;
    for (index, recorder) in (request.number_of(0)..).zip(&recorders) {
        let mut session = connector.open(index)?;
        if task.plans && explained.is_none() {
            explained = Some(plans::capture(request, (&task.work, &sources), &mut session));
        }
        let Connection::Fake(fake) = &session else {
            return Err(Stop::Fault("failed to fake a session that is not fake".to_owned()));
        };
        let clock = fake.clock();
        let recorder = Arc::clone(recorder);
        let event = compile(request, (&task.work, &sources), index, &mut session)?;
        let mut client = Client::new(session, event, clock, request.dialect, recorder);
        client.set_pace(task.pace, request.seed, index, request.all_clients(task.clients));
        clients.push(client);
    }
    control.pause_if(request.pause)?;
    control.send(&DriverEvent::Warming)?;
    let begun = latest(&clients);
    let warm = begun + Duration::from_secs_f64(task.warmup_seconds).as_nanos() as u64;
    for client in &mut clients {
        client.clock().wait_until(begun);
        client.warm_up(warm)?;
    }
    wall.wait(control, warm - begun)?;
    let whole = window::counts_whole_events(task);
    let window = window::window(task, if whole { latest(&clients).max(warm) } else { warm });
    clients.iter_mut().for_each(|client| client.open_window(window));
    control.send(&DriverEvent::WindowStart { at_ns: 0 })?;
    let mut meter =
        IntervalMeter::new(&recorders, window.start).for_share_of(request, task.clients);
    loop {
        let cut = meter.next_cut(window.start, window.end);
        for client in &mut clients {
            client.run_to(cut.min(window.end))?;
        }
        wall.wait(control, cut - begun)?;
        if cut >= window.end {
            break;
        }
        control.send(&DriverEvent::Interval(meter.interval(cut)))?;
    }
    let end = if whole { latest(&clients) } else { window.end };
    let counts: Vec<Counts> = clients.iter_mut().map(Client::close_window).collect();
    control.send(&DriverEvent::Interval(meter.interval(end)))?;
    let mut outcome = outcome::outcome(request, task, &counts, &recorders);
    let statements = outcome.statements as f64;
    outcome.client_cpu = CpuTime {
        user_us: statements * CPU_PER_STATEMENT.user_us,
        system_us: statements * CPU_PER_STATEMENT.system_us,
    };
    let share = outcome.client_cpu.total_us() / (outcome.seconds * 1e6);
    outcome.client_busiest = (share / f64::from(task.clients)).min(1.0);
    let (plans, notes) = explained.unwrap_or_default();
    outcome.plans = plans;
    outcome.notes.extend(notes);
    outcome.notes.push("fake: latencies and client CPU are scripted".to_owned());
    Ok(control.send(&DriverEvent::Measured(Box::new(outcome)))?)
}

/// The latest of the clients' clocks.
fn latest(clients: &[Client<Program>]) -> u64 {
    clients.iter().map(|client| client.clock().now()).max().unwrap_or(0)
}

/// The host's clock, if messages come in real time.
struct Wall {
    begun: Option<Instant>,
}

impl Wall {
    /// Sleeps until `nanoseconds` after the start.
    fn wait<W: Write>(
        &mut self,
        control: &ControlChannel<W>,
        nanoseconds: u64,
    ) -> Result<(), Stop> {
        if let Some(begun) = self.begun {
            let time = begun + Duration::from_nanos(nanoseconds);
            control.sleep(time.saturating_duration_since(Instant::now()))?;
        }
        Ok(())
    }
}
