//! The fake DBMS: latencies drawn from a seed, on its own fake clock. It does no work, so tests of
//! the whole program are fast and give the same bytes each time. A statement that contains `panic`
//! panics, to test such clients.

use std::time::Duration;

use crate::clock::Clock;
use rqps_host::clock::FakeClock;
use rqps_model::datagen::rng::Rng;
use rqps_wire::{Prepared, Reply, Value, WireError};

#[cfg(test)]
use std::sync::Arc;

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
