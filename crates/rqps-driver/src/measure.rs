//! Measures a step of script events, on real or on simulated clients.

use std::io::Write;

use crate::connection::Connector;
use crate::control_channel::ControlChannel;
use crate::event::DriverEvent;
use crate::request::{DriverRequest, StepRequest};
use crate::script::program::{Program, compile};
use crate::script::sources::SharedSources;
use crate::step::{self, Clients, MakeEvent};
use crate::watch::ClientWatch;
use crate::{Stop, simulated};
use rqps_model::benchmark::Pace;
use rqps_model::endpoint::Endpoint;
use rqps_model::script::Script;

/// Carries out a step and sends its progress.
pub fn measure<W: Write>(
    request: &DriverRequest,
    task: &StepRequest<Script>,
    connector: Connector,
    control: &mut ControlChannel<W>,
) -> Result<(), Stop> {
    check(task)?;
    match request.endpoint {
        Endpoint::Fake { real_time, .. } if request.turns.is_none() => {
            simulated::measure(request, task, &connector, real_time, control)
        }
        // In turns the clock of the host counts, so even fake clients need threads.
        Endpoint::Fake { .. } | Endpoint::Server(_) | Endpoint::File { .. } => {
            let clients = script_clients(connector, task, request.all_clients(task.clients))?;
            let outcome = step::measure(request, task, clients, control)?;
            Ok(control.send(&DriverEvent::Measured(Box::new(outcome)))?)
        }
    }
}

/// Refuses a step that would never end or would divide by zero.
fn check(task: &StepRequest<Script>) -> Result<(), String> {
    let seconds = |value: f64| value.is_finite() && value >= 0.0;
    let wrong = if task.clients == 0 {
        "no clients"
    } else if task.work.operations().next().is_none() {
        "a script without operations"
    } else if !seconds(task.seconds) || task.seconds == 0.0 {
        "a window that is not a positive number of seconds"
    } else if !seconds(task.warmup_seconds) {
        "a warm-up that is not a number of seconds"
    } else if let Pace::Open { events_per_second } = task.pace
        && !(events_per_second.is_finite() && events_per_second > 0.0)
    {
        "an open pace that is not a positive number of events per second"
    } else {
        return Ok(());
    };
    Err(format!("failed to measure: the request has {wrong}"))
}

/// The clients of a script, among those of all hosts.
pub fn script_clients(
    connector: Connector,
    task: &StepRequest<Script>,
    all_clients: u32,
) -> Result<Clients<Program>, String> {
    let script = task.work.clone();
    let sources = SharedSources::open(&script, all_clients)?;
    let explain = task.plans.then(|| (task.work.clone(), sources.clone()));
    let make: MakeEvent<Program> = Box::new(move |request, index, session| {
        compile(request, (&script, &sources), index, session)
    });
    let watch = task.work.watched.then(|| ClientWatch::over(task, "its statements"));
    Ok(Clients { explain, watch, ..Clients::new(connector, make) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::RequestBody;
    use rqps_model::benchmark::{Placement, RateUnit, StepBody};
    use rqps_model::script::Distribution;

    #[test]
    fn only_statements_of_the_user_are_watched() {
        for watched in [false, true] {
            let script = Script { watched, ..Script::of(false, Vec::new(), Distribution::Uniform) };
            let task = StepRequest {
                work: script.clone(),
                clients: 1,
                warmup_seconds: 0.0,
                seconds: 1.0,
                pace: Pace::Closed,
                rate: RateUnit::Queries,
                placement: Placement::Os,
                server_pid: None,
                plans: false,
                storage_engine: None,
                cache: None,
            };
            let body = RequestBody::Step(Box::new(task.with(StepBody::Script(script))));
            let connector = Connector::new(&DriverRequest::fake(body)).unwrap();
            let clients = script_clients(connector, &task, 1).unwrap();
            assert_eq!(clients.watch.is_some(), watched);
        }
    }
}
