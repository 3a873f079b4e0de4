//! Starts the program, once for each client, and has it work in turns: its load, its declarations,
//! its steps.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::program::{CODES_MOST, Fault, Program};
use crate::client;
use rqps_driver::client::Counts;
use rqps_driver::clock::{self, Clock, SECOND, Window};
use rqps_driver::control_channel::{ControlChannel, DriverEvent, StepInterval};
use rqps_driver::recorder::{self, IntervalMeter, Recorder};
use rqps_driver::request::{DriverRequest, RequestBody, StepRequest};
use rqps_driver::turns::{TurnGroup, TurnMember};
use rqps_driver::worker_pool::{
    Intervals, LEAD_NS, Order, Ready, Spent, WorkerHandle, WorkerPool, WorkerSpec,
};
use rqps_driver::{Stop, confined, outcome};
use rqps_host::affinity::CpuAssignment;
use rqps_host::tree::{Cpu, TreeCpu};
use rqps_model::benchmark::{LoadBody, StepBody, Workload};
use rqps_model::client::{ClientShape, ClientWork};
use rqps_model::dialect::Dialect;
use rqps_model::run::{CpuTime, Outcome};

/// The hidden command that reads a program's declarations in its own process.
pub const CLIENT_COMMAND: &str = "look-at-client";

/// Seconds that a program may take to say what it can.
const HELLO_SECONDS: f64 = 25.0;

/// The load by the program.
pub(crate) fn request(_: Dialect, workload: &Workload, _: Option<&str>) -> RequestBody {
    let none = ClientShape::default();
    let shape = client::shape(workload).unwrap_or(&none);
    RequestBody::LoadOwn(LoadBody::Client(client::load_work(shape)))
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
    let clock = Clock::real();
    // rqps pins nothing that somebody else runs.
    let seating = confined::plan(&task, false);
    let join = |turns| TurnGroup::join(turns, task.clients, clock.clone());
    let team = request.turns.as_ref().map(join).transpose()?;
    let recorders = recorder::recorders(&task);
    let shared = Arc::new(Shared {
        request: request.clone(),
        task,
        recorders,
        seats: seating.seats,
        clock: clock.clone(),
        team,
    });
    let members = (0..shared.task.clients).map(|client| member(&shared, client));
    let mut pool = WorkerPool::start(clock.clone(), members.collect())?;
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
            let window = clock::window(&shared.task, clock.now() + LEAD_NS);
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
    let seated = confined::seat_client(&shared.seats[index as usize]);
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

/// Nanoseconds of a run where no other target waits.
const PIECE_NS: u64 = 100_000_000;

/// Counts and costs of a client.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    pub(super) counts: Counts,
    /// CPU time of its process and of what that started.
    pub(super) cpu: CpuTime,
    /// Nanoseconds from questions to answers.
    pub(super) wall_ns: u64,
    /// The version that it talks to.
    pub(super) version: Option<String>,
}

/// The client.
pub(super) struct Member {
    program: Program,
    clock: Clock,
    recorder: Arc<Recorder>,
    only_reads: bool,
    tree: TreeCpu,
    /// CPU time at the start of the window; `None` before it.
    begun: Option<Cpu>,
    counted: Counted,
}

impl Member {
    /// A client of a program that is prepared.
    pub(super) fn new(
        program: Program,
        clock: Clock,
        recorder: Arc<Recorder>,
        only_reads: bool,
        version: Option<String>,
    ) -> Result<Member, String> {
        let tree = TreeCpu::new(program.pid());
        let tree = tree.map_err(|error| format!("failed to watch the program: {error}"))?;
        let counted = Counted { version, ..Counted::default() };
        Ok(Member { program, clock, recorder, only_reads, tree, begun: None, counted })
    }

    /// Works until a moment.
    pub(super) fn run_to(&mut self, end: u64) -> Result<(), String> {
        while self.clock.now() < end {
            let piece = self.clock.now().saturating_add(PIECE_NS);
            self.turn(piece.min(end))?;
        }
        Ok(())
    }

    fn cpu(&mut self) -> Cpu {
        self.tree.read().unwrap_or_default()
    }
}

impl TurnMember for Member {
    type Counts = Counted;

    fn turn(&mut self, until: u64) -> Result<(u64, u64), String> {
        let begun = self.clock.now();
        let us = (until.saturating_sub(begun) / 1_000).max(1);
        let clock = self.clock.clone();
        let ran = self.program.run(us, &|| clock.now())?;
        let ns = (ran.us * 1e3) as u64;
        if self.begun.is_some() {
            let Counted { counts, wall_ns: wall, .. } = &mut self.counted;
            *wall += ran.wall_ns;
            counts.window_ns += ns;
            counts.events += ran.n;
            counts.tally.statements += ran.n;
            let kind =
                if self.only_reads { &mut counts.tally.reads } else { &mut counts.tally.writes };
            *kind += ran.n;
            for (latency, count) in &ran.hist {
                self.recorder.events(*latency, *count, counts.tally.statements);
            }
            for (code, count) in ran.errors {
                let code = rqps_host::command_output::shown(&code);
                *counts.errors.entry(code).or_insert(0) += count;
                self.recorder.errors(count);
            }
            if counts.errors.len() > CODES_MOST {
                return Err(self.program.error(Fault::Codes).into());
            }
        }
        // What it does beside its events, such as to write its answer, is no time of the target.
        Ok((begun + ns, ran.n))
    }

    fn open_window(&mut self, _: u64) {
        self.begun = Some(self.cpu());
    }

    fn close_window(&mut self) -> Counted {
        let spent = self.begun.take().map(|begun| self.cpu().since(begun));
        self.counted.cpu = spent.unwrap_or_default();
        std::mem::take(&mut self.counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::SPEC;
    use rqps_driver::run_request;
    use rqps_model::benchmark::{Group, RateUnit, Step};

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
