//! Runs a step of a program, one process for each client.

use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use super::member::{Counted, Member};
use super::program::Program;
use rqps_driver::client::Counts;
use rqps_driver::clock::{Clock, SECOND};
use rqps_driver::control_channel::ControlChannel;
use rqps_driver::event::{DriverEvent, StepInterval};
use rqps_driver::interval::{self, IntervalMeter};
use rqps_driver::recorder::Recorder;
use rqps_driver::request::{DriverRequest, StepRequest};
use rqps_driver::turns::{TurnGroup, TurnMember as _};
use rqps_driver::window::{self, Window};
use rqps_driver::worker_pool::{
    Intervals, LEAD_NS, Order, Ready, Spent, WorkerHandle, WorkerPool, WorkerSpec,
};
use rqps_driver::{Stop, outcome, placement};
use rqps_host::affinity::CpuAssignment;
use rqps_host::clock::RealClock;
use rqps_model::client::ClientWork;
use rqps_model::run::Outcome;

/// A larger share of the time between questions and answers that is not spent on events is told.
const BESIDE_MOST: f64 = 0.1;

/// Shared by the threads, read only.
struct Shared {
    request: DriverRequest,
    task: StepRequest<ClientWork>,
    recorders: Vec<Arc<Recorder>>,
    seats: Vec<CpuAssignment>,
    clock: Clock,
    team: Option<TurnGroup>,
}

/// The loop of the benchmark's steps.
pub(crate) fn step_loop(
    request: &DriverRequest,
    task: &StepRequest,
    control: &mut ControlChannel<&mut dyn Write>,
) -> Result<(), Stop> {
    let task: StepRequest<ClientWork> = task.own()?;
    let begun = Instant::now();
    let clock = Clock::Real(RealClock::starting_at(begun));
    // rqps pins nothing that somebody else runs.
    let seating = placement::plan(&task, false);
    let join = |turns| TurnGroup::join(turns, task.clients, clock.clone());
    let team = request.turns.as_ref().map(join).transpose()?;
    let recorders = interval::recorders(&task);
    let shared = Arc::new(Shared {
        request: request.clone(),
        task,
        recorders,
        seats: seating.seats,
        clock: clock.clone(),
        team,
    });
    let members = (0..shared.task.clients).map(|client| member(&shared, client));
    let mut pool = WorkerPool::start(begun, members.collect())?;
    let ready = pool.gather(control)?;
    control.pause_if(request.pause)?;
    control.send(&DriverEvent::Warming)?;
    let finished = match &shared.team {
        Some(team) => {
            let mut meter = IntervalMeter::new(&shared.recorders, 0);
            team.lead(&mut pool, &mut |own| meter.interval(own), control)?
        }
        None => {
            let warm = (shared.task.warmup_seconds * SECOND) as u64;
            pool.order(Order::WarmUp(clock.now() + warm));
            pool.answers(control)?;
            let window = window::window(&shared.task, clock.now() + LEAD_NS);
            let meter = IntervalMeter::new(&shared.recorders, window.start);
            pool.measure(window, &mut Seconds { meter, window }, control)?
        }
    };
    let done: Vec<Counted> = finished.done.into_iter().flatten().map(|done| done.value).collect();
    let counts: Vec<Counts> = done.iter().map(|client| client.counts.clone()).collect();
    let mut outcome = outcome::outcome(request, &shared.task, &counts, &shared.recorders);
    if let Some(team) = &shared.team {
        team.report(&mut outcome, control)?;
    }
    outcome
        .notes
        .splice(..0, seating.notes.into_iter().chain(ready.into_iter().flat_map(|it| it.notes)));
    outcome.client_cpu = finished.cpu;
    add_costs(&mut outcome, &done);
    Ok(control.send(&DriverEvent::Measured(Box::new(outcome)))?)
}

/// Adds what the programs cost, and what of their time went elsewhere.
fn add_costs(outcome: &mut Outcome, done: &[Counted]) {
    let window_us = (outcome.seconds * 1e6).max(f64::MIN_POSITIVE);
    for client in done {
        outcome.client_cpu.user_us += client.cpu.user_us;
        outcome.client_cpu.system_us += client.cpu.system_us;
        let share = (client.cpu.user_us + client.cpu.system_us) / window_us;
        outcome.client_busiest = outcome.client_busiest.max(share.min(1.0));
    }
    let wall: u64 = done.iter().map(|client| client.wall_ns).sum();
    let events: u64 = done.iter().map(|client| client.counts.window_ns).sum();
    let beside = 1.0 - events as f64 / wall.max(1) as f64;
    if beside > BESIDE_MOST {
        outcome.notes.push(format!(
            "the program spent {:.0} % of its time beside its events, which no rate contains: \
             between the question and its first event, or between its last event and the answer",
            100.0 * beside
        ));
    }
    if let Some(version) = done.iter().find_map(|client| client.version.clone()) {
        outcome.facts.insert("version".to_owned(), version);
    }
}

fn member(shared: &Arc<Shared>, client: u32) -> WorkerSpec<Counted> {
    let shared = Arc::clone(shared);
    let main = move |handle: &WorkerHandle<Counted>| live(&shared, client, handle);
    WorkerSpec::new(format!("client {client}"), main)
}

/// The whole work of one client.
fn live(shared: &Shared, index: u32, handle: &WorkerHandle<Counted>) -> Result<(), String> {
    let Shared { request, task, clock, .. } = shared;
    let work = &task.work;
    // The program inherits the CPUs of its thread.
    let seated = placement::seat_client(&shared.seats[index as usize]);
    let path = request.readable(&work.program);
    let name = format!("client {index}");
    let mut program = Program::start(&path, &name, work.timeout_seconds)?;
    program.hello()?;
    let version = program.open(request, work, index, task.clients)?;
    program.prepare(&work.step)?;
    let recorder = Arc::clone(&shared.recorders[index as usize]);
    let mut member = Member::new(program, clock.clone(), recorder, work.only_reads, version)?;
    handle.ready(Ready { notes: seated.err().into_iter().collect(), ..Ready::default() });
    while let Some(order) = handle.order() {
        match order {
            Order::WarmUp(end) => handle.answer(member.run_to(end)),
            Order::Measure(Window { start, end, .. }) => {
                clock.wait_until(start);
                member.open_window(start);
                let (ran, spent) = Spent::on(clock, || member.run_to(end));
                ran?;
                handle.done(member.close_window(), spent);
            }
            Order::TakeTurns => {
                let Some(team) = &shared.team else { continue };
                let (counts, spent) = team.play(index, &mut member, &|news| handle.turns(news))?;
                handle.done(counts, spent);
            }
            // A program is never counted, and its connections are its own.
            Order::Ping | Order::WarmUpEvents(_) | Order::MeasureEvents(_) => {
                handle.answer(Err("a program takes no such order".to_owned()));
            }
        }
    }
    Ok(())
}

/// Cuts the intervals of a window that ends with the last event.
struct Seconds {
    meter: IntervalMeter,
    window: Window,
}

impl Intervals for Seconds {
    fn next_cut(&self) -> Option<u64> {
        let Window { start, end, .. } = self.window;
        Some(self.meter.next_cut(start, end)).filter(|cut| *cut < end)
    }

    fn cut(&mut self, now: u64) -> StepInterval {
        self.meter.interval(now)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::client::SPEC;
    use rqps_driver::request::RequestBody;
    use rqps_driver::run_request;
    use rqps_model::benchmark::{Group, RateUnit, Step, Workload};

    /// A step of the client that has faults.
    fn run(fault: &str) -> Result<Outcome, String> {
        let program =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../rqps/tests/data/client/fake.sh");
        let work = ClientWork {
            program,
            options: [("fault".to_owned(), fault.to_owned())].into(),
            timeout_seconds: if fault == "hang" { 0.3 } else { 60.0 },
            step: "get".to_owned(),
            only_reads: true,
        };
        let step = Step {
            seconds: if fault == "many" { 2.0 } else { 0.2 },
            ..Step::new("get", Group::Point, RateUnit::Operations, work)
        };
        let task = StepRequest::of(&step, &Workload { clients: 2, ..Workload::default() });
        let request = DriverRequest::fake(RequestBody::Step(Box::new(task)));
        let mut said = Vec::new();
        run_request(&request, &[&SPEC.driver], &mut said);
        let lines = String::from_utf8(said).unwrap();
        let mut events = lines.lines().map(|line| serde_json::from_str(line).unwrap());
        events
            .find_map(|event| match event {
                DriverEvent::Measured(outcome) => Some(Ok(*outcome)),
                DriverEvent::Failed { fault } => Some(Err(fault)),
                _ => None,
            })
            .unwrap()
    }

    #[test]
    fn a_program_counts_and_costs_are_its_own() {
        let begun = Instant::now();
        let outcome = run("none").unwrap();
        assert!(outcome.events >= 4 && outcome.events.is_multiple_of(2), "{outcome:?}");
        assert_eq!((outcome.statements, outcome.reads), (outcome.events, outcome.events));
        assert!(outcome.seconds > 0.1 && outcome.seconds < begun.elapsed().as_secs_f64());
        assert!(outcome.client_cpu.user_us + outcome.client_cpu.system_us > 0.0, "{outcome:?}");
        assert_eq!(outcome.facts["version"], "Fake 1.2");
        let outcome = run("errors").unwrap();
        assert_eq!(outcome.errors["busy"], 2 * outcome.events);
        let outcome = run("slow").unwrap();
        assert!(outcome.notes.iter().any(|note| note.contains("beside its events")), "{outcome:?}");
    }

    #[test]
    fn every_fault_of_a_program_names_it_and_the_way_out() {
        let check = |fault: &str, words: &[&str]| {
            let said = run(fault).expect_err(fault);
            assert!(said.starts_with("failed to run client "), "{fault}: {said}");
            for word in [" of fake.sh: "].iter().chain(words) {
                assert!(said.contains(word), "{fault}: {said}");
            }
        };
        check("refuse", &["it answered `open` with an error: no such server"]);
        check("hang", &["asked to `run`, it gave no answer within", "--set timeout="]);
        check("many", &["it has more than 100 codes of errors"]);
        check("clock", &["its events took 1000000000000 us, but only ", "one monotonic clock"]);
        check("early", &["its events took 2 us; a run begins events until its "]);
        check("negative", &["integer `-3`, expected u64", "docs/clients.md"]);
        check("nan", &["it answered `run` with `{\"n\":NaN,"]);
        check("garbage", &["with `Hello,", "expected value"]);
        check("flood", &["wrote more than 1048576 bytes without an end of line"]);
        check("twice", &["before `run`, it wrote a line that nobody asked for: `{\"n\":2"]);
        check("die", &["it ended (exited with 3: no route to host)"]);
    }
}
