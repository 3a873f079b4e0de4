//! The fake DBMS: scripted latencies on a clock of its own, the same for the same seed. It does no
//! work, so whole-program tests take no time and give the same bytes.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::datagen::rng::Rng;
use crate::domain::run::CpuTime;
use crate::domain::script::Script;
use crate::driver::Stop;
use crate::driver::client::{Client, Counts};
use crate::driver::clock::Clock;
use crate::driver::connection::{Connection, Connector};
use crate::driver::event::DriverEvent;
use crate::driver::link::LabLink;
use crate::driver::measure::{self, IntervalMeter};
use crate::driver::request::{DriverRequest, StepRequest};
use crate::driver::script::explain as plans;
use crate::driver::script::program::Program;
use crate::os::clock::FakeClock;
use crate::wire::{Prepared, Reply, Value, WireError};

/// What a fake statement costs the client, microseconds: scripted like its latency.
const CPU_PER_STATEMENT: CpuTime = CpuTime { user_us: 1.0, system_us: 4.0 };

/// A session of the fake DBMS.
pub(crate) struct Fake {
    clock: FakeClock,
    rng: Rng,
    seed: u64,
    client: u32,
    mean_ns: f64,
    statements: Vec<String>,
    executed: u64,
    /// What goes wrong at which execution, from 1.
    #[cfg(test)]
    pub(crate) faults: Vec<(u64, Fault)>,
    /// Every statement with its values.
    #[cfg(test)]
    pub(crate) log: Arc<std::sync::Mutex<Vec<String>>>,
}

/// What may go wrong.
#[cfg(test)]
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// The statement takes so many nanoseconds more.
    Stall(u64),
    /// The server refuses with this code.
    Refuse(&'static str),
}

impl Fake {
    /// A session whose statements take `mean_us` on average: half of it fixed, half exponential.
    pub(crate) fn new(seed: u64, client: u32, mean_us: u64) -> Fake {
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
    pub(crate) fn clock(&self) -> Clock {
        Clock::Fake(self.clock.clone())
    }

    /// Takes no time.
    pub(crate) fn prepare(&mut self, sql: &str) -> Prepared {
        self.statements.push(sql.to_owned());
        Prepared(self.statements.len() - 1)
    }

    /// Advances the clock by a drawn latency; a SELECT returns one row, the rest changes one.
    pub(crate) fn execute(
        &mut self,
        statement: Prepared,
        values: &[Value<'_>],
    ) -> Result<Reply, WireError> {
        #[cfg(test)]
        self.note(format!("{} {values:?}", self.statements[statement.0]));
        #[cfg(test)]
        assert!(!self.statements[statement.0].contains("panic"), "told to panic");
        let _ = values;
        self.pass(is_query(&self.statements[statement.0]))
    }

    /// As `execute`; `SET luck TO …` has latencies drawn from another stream, and takes no time.
    pub(crate) fn simple(&mut self, sql: &str) -> Result<Reply, WireError> {
        if let Some(luck) = sql.strip_prefix("SET luck TO ") {
            self.rng = Rng::stream(self.seed, &format!("fake {luck}"), u64::from(self.client));
            return Ok(Reply { rows: 0, affected: 0, bytes: 0, result_set: false });
        }
        #[cfg(test)]
        self.note(sql.to_owned());
        #[cfg(test)]
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

/// Measures with fake clients: one after the other, each on its own clock, so that neither threads
/// nor the host have a say in the result. In real time the messages come when they would; the
/// numbers are the same.
pub(crate) fn measure<W: Write>(
    job: &DriverRequest,
    task: &StepRequest<Script>,
    connector: &Connector,
    real_time: bool,
    link: &mut LabLink<W>,
) -> Result<(), Stop> {
    let mut wall = Wall { begun: real_time.then(Instant::now) };
    let recorders = measure::recorders(task);
    let mut clients = Vec::new();
    let mut explained = None;
    for (index, recorder) in (0..task.clients).zip(&recorders) {
        let mut session = connector.open(index)?;
        if task.plans && explained.is_none() {
            explained = Some(plans::capture(job, &task.work, &mut session));
        }
        let Connection::Fake(fake) = &session else {
            return Err(Stop::Fault("failed to fake a session that is not fake".to_owned()));
        };
        let clock = fake.clock();
        let recorder = Arc::clone(recorder);
        clients.push(measure::ready_client(job, task, index, session, clock, recorder)?);
    }
    link.say(&DriverEvent::Warming)?;
    let begun = latest(&clients);
    let warm = begun + Duration::from_secs_f64(task.warmup_seconds).as_nanos() as u64;
    for client in &mut clients {
        client.clock().wait_until(begun);
        client.warm_up(warm)?;
    }
    wall.wait(link, warm - begun)?;
    let whole = measure::counts_whole_events(task);
    let window = measure::window(task, if whole { latest(&clients).max(warm) } else { warm });
    clients.iter_mut().for_each(|client| client.open_window(window));
    link.say(&DriverEvent::WindowStart)?;
    let mut meter = IntervalMeter::new(&recorders, window.start);
    loop {
        let cut = meter.next_cut(window.start, window.end);
        for client in &mut clients {
            client.run_to(cut.min(window.end))?;
        }
        wall.wait(link, cut - begun)?;
        if cut >= window.end {
            break;
        }
        link.say(&DriverEvent::Interval(meter.interval(cut)))?;
    }
    let end = if whole { latest(&clients) } else { window.end };
    let counts: Vec<Counts> = clients.iter_mut().map(Client::close_window).collect();
    link.say(&DriverEvent::Interval(meter.interval(end)))?;
    let mut outcome = measure::outcome(job, task, &counts, &recorders);
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
    link.say(&DriverEvent::Measured(Box::new(outcome)))?;
    Ok(())
}

/// The furthest of the clients' clocks.
fn latest(clients: &[Client<Program>]) -> u64 {
    clients.iter().map(|client| client.clock().now()).max().unwrap_or(0)
}

/// The host's clock, if it is to be kept up with.
struct Wall {
    begun: Option<Instant>,
}

impl Wall {
    /// Sleeps until `nanoseconds` after the beginning.
    fn wait<W: Write>(&mut self, link: &LabLink<W>, nanoseconds: u64) -> Result<(), Stop> {
        if let Some(begun) = self.begun {
            let time = begun + Duration::from_nanos(nanoseconds);
            link.sleep(time.saturating_duration_since(Instant::now()))?;
        }
        Ok(())
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
