//! The fake DBMS: latencies drawn from a seed, on its own fake clock. It does no work, so tests of
//! the whole program are fast and give the same bytes each time. A statement that contains `panic`
//! panics, to test such clients.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::client::{Client, Counts};
use crate::clock::{self, Clock};
use crate::connection::{Connection, Connector};
use crate::control_channel::{ControlChannel, DriverEvent};
use crate::recorder::{self, IntervalMeter};
use crate::request::{DriverRequest, StepRequest};
use crate::script::sources::SharedSources;
use crate::script::{Program, compile, explain as plans};
use crate::{Stop, outcome};
use rqps_host::clock::FakeClock;
use rqps_model::datagen::rng::Rng;
use rqps_model::run::CpuTime;
use rqps_model::script::Script;
use rqps_wire::{Prepared, Reply, Value, WireError};

/// A session of the fake DBMS.
pub struct Fake {
    clock: FakeClock,
    rng: Rng,
    seed: u64,
    client: u32,
    mean_ns: f64,
    statements: Vec<String>,
    executed: u64,
    /// Faults by the number of the execution, from 1.
    #[cfg(test)]
    pub faults: Vec<(u64, Fault)>,
    /// Each statement with its values.
    #[cfg(test)]
    pub log: Arc<std::sync::Mutex<Vec<String>>>,
}

/// A fault of the fake DBMS.
#[cfg(test)]
#[derive(Clone, Debug)]
pub enum Fault {
    /// The statement takes this many nanoseconds more.
    Stall(u64),
    /// The server refuses with this code.
    Refuse(&'static str),
}

impl Fake {
    /// A session with statements of `mean_us` microseconds on average: half fixed, half
    /// exponential.
    pub fn new(seed: u64, client: u32, mean_us: u64) -> Fake {
        Fake {
            clock: FakeClock::new(),
            rng: Rng::stream(seed, "fake", u64::from(client)),
            seed,
            client,
            mean_ns: mean_us as f64 * 1e3,
            statements: Vec::new(),
            executed: 0,
            #[cfg(test)]
            faults: Vec::new(),
            #[cfg(test)]
            log: Arc::default(),
        }
    }

    /// The clock that this session advances.
    pub fn clock(&self) -> Clock {
        Clock::Fake(self.clock.clone())
    }

    /// Takes no time.
    pub fn prepare(&mut self, sql: &str) -> Prepared {
        self.statements.push(sql.to_owned());
        Prepared(self.statements.len() - 1)
    }

    /// Advances the clock by a drawn latency. A SELECT returns one row; any other statement changes
    /// one.
    pub fn execute(
        &mut self,
        statement: Prepared,
        values: &[Value<'_>],
    ) -> Result<Reply, WireError> {
        #[cfg(test)]
        self.note(format!("{} {values:?}", self.statements[statement.0]));
        assert!(!self.statements[statement.0].contains("panic"), "told to panic");
        let _ = values;
        self.pass(is_query(&self.statements[statement.0]))
    }

    /// Executes a text. `SET luck TO …` takes no time and selects another stream of latencies.
    pub fn simple(&mut self, sql: &str) -> Result<Reply, WireError> {
        if let Some(luck) = sql.strip_prefix("SET luck TO ") {
            self.rng = Rng::stream(self.seed, &format!("fake {luck}"), u64::from(self.client));
            return Ok(Reply { rows: 0, affected: 0, bytes: 0, result_set: false });
        }
        #[cfg(test)]
        self.note(sql.to_owned());
        assert!(!sql.contains("panic"), "told to panic");
        self.pass(is_query(sql))
    }

    fn pass(&mut self, query: bool) -> Result<Reply, WireError> {
        self.executed += 1;
        let half = self.mean_ns / 2.0;
        let took = (half + half * self.rng.exponential()) as u64;
        self.clock.advance(Duration::from_nanos(took.max(1)));
        #[cfg(test)]
        self.meet_faults()?;
        let rows = u64::from(query);
        Ok(Reply { rows, affected: 1 - rows, bytes: rows * 120, result_set: query })
    }
}

#[cfg(test)]
impl Fake {
    fn note(&self, statement: String) {
        self.log.lock().unwrap().push(statement);
    }

    fn meet_faults(&mut self) -> Result<(), WireError> {
        for (_, fault) in self.faults.iter().filter(|(at, _)| *at == self.executed) {
            match fault {
                Fault::Stall(longer) => self.clock.advance(Duration::from_nanos(*longer)),
                Fault::Refuse(code) => {
                    let message = "refused by script".to_owned();
                    return Err(WireError::Server { code: (*code).to_owned(), message });
                }
            }
        }
        Ok(())
    }
}

fn is_query(sql: &str) -> bool {
    sql.get(..6).is_some_and(|verb| verb.eq_ignore_ascii_case("SELECT"))
}

// Measures simulated clients on the fake DBMS, without threads and without the host's clock.

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
    let recorders = recorder::recorders(task);
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
    let whole = clock::counts_whole_events(task);
    let window = clock::window(task, if whole { latest(&clients).max(warm) } else { warm });
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
