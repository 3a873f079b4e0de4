//! The drivers of one step as one: a process on this host, or one on each client host. Those of
//! several hosts start together and share the step's clients; what they say is put together.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::lab::driver_process::DriverProcess;
use rqps_driver::control_channel::{DriverEvent, StepInterval};
use rqps_driver::outcome;
use rqps_driver::recorder::SeriesOf;
use rqps_driver::request::{DriverCommand, Met};
use rqps_host::clock;
use rqps_model::run::{ClientHostRecord, HostUsage, Outcome};

/// Round trips to each host before a step.
const ROUND_TRIPS: u32 = 16;
/// Time limit for a host to tell the time.
const ANSWER: Duration = Duration::from_secs(10);
/// Between two looks at a driver while others speak.
const LOOK: Duration = Duration::from_millis(10);
/// Messages of a host that wait for those of others.
const SAID_MOST: usize = 1 << 12;
/// Hosts start so long after the word to do so has been sent, beside what a round trip takes.
const LEAD: Duration = Duration::from_millis(20);
/// Windows that begin further apart than this are worth a note, milliseconds.
const TOGETHER_MS: f64 = 5.0;

/// All drivers of a step. Dropping them ends their processes.
pub(super) enum DriverTeam {
    /// On this host.
    Here(DriverProcess),
    /// On client hosts.
    Away(AwayTeam),
}

/// The drivers of all client hosts, and the columns of their seconds so far.
pub(super) struct AwayTeam {
    drivers: Vec<AwayDriver>,
    series: SeriesOf,
}

/// The driver of one client host.
pub(super) struct AwayDriver {
    process: DriverProcess,
    host: String,
    clients: u32,
    /// Its messages that were not processed yet.
    said: VecDeque<DriverEvent>,
    clock: Option<ClockOffset>,
    /// The start of its window, on its monotonic clock.
    window_ns: Option<u64>,
    /// The activity of its host in the window, or why it is unknown.
    usage: Result<HostUsage, String>,
    is_done: bool,
}

impl AwayDriver {
    /// A driver on a host, with its number of the step's clients.
    pub(super) fn new(process: DriverProcess, host: &str, clients: u32) -> AwayDriver {
        AwayDriver {
            process,
            host: host.to_owned(),
            clients,
            said: VecDeque::new(),
            clock: None,
            window_ns: None,
            usage: Err("its driver did not report it".to_owned()),
            is_done: false,
        }
    }

    /// Hears what it says within `wait`; false if that is nothing.
    fn hear(&mut self, wait: Duration) -> Result<bool> {
        // What it says beyond that waits there, until the other hosts have said their part.
        if self.is_done || self.said.len() >= SAID_MOST {
            return Ok(false);
        }
        let Some(event) = self.process.next(wait)? else { return Ok(false) };
        match event {
            DriverEvent::Failed { fault } => bail!("{fault} (on the client host {})", self.host),
            DriverEvent::HostUsage(usage) => self.usage = usage,
            DriverEvent::WindowStart { at_ns } => {
                self.window_ns = Some(at_ns);
                self.said.push_back(event);
            }
            event => {
                self.is_done = matches!(event, DriverEvent::Measured(_));
                self.said.push_back(event);
            }
        }
        Ok(true)
    }

    /// Measures how far its clocks are ahead. It must be waiting for a word.
    fn measure_clock(&mut self) -> Result<ClockOffset> {
        let mut best: Option<ClockOffset> = None;
        for _ in 0..ROUND_TRIPS {
            let start =
                ClockReading { monotonic_ns: clock::monotonic_ns(), unix_ns: clock::unix_ns() };
            self.process.tell(DriverCommand::Clock)?;
            let answer = self.process.next(ANSWER)?;
            let end_ns = clock::monotonic_ns();
            let there = match answer {
                Some(DriverEvent::Clock { monotonic_ns, unix_ns }) => {
                    ClockReading { monotonic_ns, unix_ns }
                }
                Some(other) => {
                    bail!("expected the time of the client host {}, got {other:?}", self.host)
                }
                None => bail!("the client host {} did not report its time", self.host),
            };
            let offset = ClockOffset::of(start, there, end_ns);
            best = Some(best.map_or(offset, |best| best.better(offset)));
        }
        let best = best.context("measure the clock of a client host")?;
        self.clock = Some(best);
        Ok(best)
    }

    /// The start of its window on the clock of this host.
    fn began(&self) -> Option<i128> {
        Some(self.clock?.here(self.window_ns?))
    }

    /// The record of a client host.
    fn record(&self, outcome: &Outcome, first: Option<i128>) -> ClientHostRecord {
        ClientHostRecord {
            host: self.host.clone(),
            clients: self.clients,
            events: outcome.events,
            cpu: outcome.client_cpu,
            busiest: outcome.client_busiest,
            cpus: self.usage.as_ref().ok().map(|usage| usage.cpus),
            host_busy: self.usage.as_ref().ok().and_then(busy_share),
            clock_ahead_ms: self.clock.map(|clock| clock.ahead_ms()),
            clock_bound_ms: self.clock.map(|clock| clock.bound_ms()),
            start_ms: self.began().zip(first).map(|(began, first)| (began - first) as f64 / 1e6),
        }
    }
}

impl DriverTeam {
    /// The drivers of client hosts, in the order of their clients.
    pub(super) fn away(drivers: Vec<AwayDriver>) -> DriverTeam {
        DriverTeam::Away(AwayTeam { drivers, series: SeriesOf::default() })
    }

    /// The process on this host, if the clients are here.
    pub(super) fn pid(&self) -> Option<u32> {
        match self {
            DriverTeam::Here(process) => process.pid(),
            DriverTeam::Away(_) => None,
        }
    }

    /// Lets drivers go on that have all said that they are prepared: those of several hosts at the
    /// same moment.
    ///
    /// # Errors
    /// One is gone.
    pub(super) fn go_on(&mut self) -> Result<()> {
        match self {
            DriverTeam::Here(process) => process.tell(DriverCommand::GoOn),
            DriverTeam::Away(team) => start_together(&mut team.drivers),
        }
    }

    /// The next message, once every driver has said its part of it; `None` when `wait` passed
    /// without one.
    ///
    /// # Errors
    /// A driver failed, ended before it was done, or said something that is no message.
    pub(super) fn next(&mut self, wait: Duration) -> Result<Option<DriverEvent>> {
        match self {
            DriverTeam::Here(process) => process.next(wait),
            DriverTeam::Away(team) => team.next(wait),
        }
    }
}

/// The share of a host's CPUs that was in use; `None` if no time passed.
fn busy_share(usage: &HostUsage) -> Option<f64> {
    // `user` includes `nice`.
    let HostUsage { user, system, idle, iowait, steal, .. } = usage;
    let busy = user + system + steal;
    let all = busy + idle + iowait;
    (all > 0.0).then(|| busy / all)
}

/// Measures all clocks, and gives each host the start on its own.
fn start_together(drivers: &mut [AwayDriver]) -> Result<()> {
    let mut slowest_ns = 0;
    for driver in drivers.iter_mut() {
        slowest_ns = slowest_ns.max(driver.measure_clock()?.round_trip_ns);
    }
    let start = clock::monotonic_ns() + LEAD.as_nanos() as u64 + 2 * slowest_ns;
    for driver in drivers {
        if let Some(clock) = driver.clock {
            driver.process.tell(DriverCommand::StartAt(clock.there(start)))?;
        }
    }
    Ok(())
}

impl AwayTeam {
    /// The next message, once every driver has said its part of it.
    fn next(&mut self, wait: Duration) -> Result<Option<DriverEvent>> {
        let deadline = Instant::now() + wait;
        loop {
            for driver in &mut self.drivers {
                while driver.hear(Duration::ZERO)? {}
            }
            let is_silent = |driver: &AwayDriver| driver.said.is_empty() && !driver.is_done;
            let Some(silent) = self.drivers.iter().position(is_silent) else {
                let event = self.together()?;
                // Words to the team alone, without end, are no reason not to look up.
                if event.is_some() || Instant::now() > deadline {
                    return Ok(event);
                }
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.drivers[silent].hear(left.min(LOOK))?;
        }
    }

    /// The first message, of all drivers that have said it, as one. `None` if it was for the team.
    fn together(&mut self) -> Result<Option<DriverEvent>> {
        let fronts = self.drivers.iter().filter_map(|driver| driver.said.front());
        let first = fronts
            .map(rank)
            .min()
            .context("read from the drivers of client hosts: all have ended")?;
        let mut parts = Vec::new();
        for driver in &mut self.drivers {
            if driver.said.front().is_some_and(|event| rank(event) == first) {
                parts.extend(driver.said.pop_front());
            }
        }
        let (mut intervals, mut outcomes): (Vec<StepInterval>, Vec<Outcome>) = Default::default();
        let mut met: Option<Met> = None;
        for part in &parts {
            match part {
                DriverEvent::Interval(interval) => intervals.push(interval.clone()),
                DriverEvent::Measured(outcome) => outcomes.push(outcome.as_ref().clone()),
                DriverEvent::Meeting { number } => {
                    met = Some(met.map_or(Met::alone(*number), |met| met.with(*number)));
                }
                _ => {}
            }
        }
        if let Some(met) = met {
            for driver in &mut self.drivers {
                driver.process.tell(DriverCommand::Met(met))?;
            }
            return Ok(None);
        }
        if let Some(DriverEvent::WarmedUp) = parts.first() {
            start_together(&mut self.drivers)?;
            return Ok(None);
        }
        if !outcomes.is_empty() {
            return Ok(Some(DriverEvent::Measured(Box::new(self.measured(outcomes)?))));
        }
        if self.drivers.len() > 1 && !intervals.is_empty() {
            let interval = outcome::interval(&intervals).map_err(anyhow::Error::msg)?;
            self.series.add(&interval);
            return Ok(Some(DriverEvent::Interval(interval)));
        }
        let last = parts.pop();
        last.map(Some).context("read from the drivers of client hosts: no message arrived")
    }

    /// The sum of the counts of all hosts, with the facts of each host.
    fn measured(&mut self, mut outcomes: Vec<Outcome>) -> Result<Outcome> {
        let drivers = &self.drivers;
        let first = drivers.iter().filter_map(AwayDriver::began).min();
        let records: Vec<ClientHostRecord> = drivers
            .iter()
            .zip(&outcomes)
            .map(|(driver, outcome)| driver.record(outcome, first))
            .collect();
        let mut outcome = match outcomes.len() {
            1 => outcomes.remove(0),
            _ => {
                for (driver, outcome) in drivers.iter().zip(&mut outcomes) {
                    for note in &mut outcome.notes {
                        *note = format!("{note} (client host {})", driver.host);
                    }
                }
                let series = std::mem::take(&mut self.series).into_columns();
                Outcome {
                    series,
                    ..outcome::merged_outcome(&outcomes).map_err(anyhow::Error::msg)?
                }
            }
        };
        let apart = records.iter().filter_map(|record| record.start_ms).fold(0.0, f64::max);
        if apart > TOGETHER_MS {
            outcome.notes.push(format!("client hosts began up to {apart:.1} ms apart"));
        }
        for driver in drivers {
            if let Err(reason) = &driver.usage {
                let host = &driver.host;
                outcome
                    .notes
                    .push(format!("the load of the client host {host} is unknown: {reason}"));
            }
        }
        outcome.client_hosts = records;
        Ok(outcome)
    }
}

/// The order of messages when drivers have sent different ones.
fn rank(event: &DriverEvent) -> (u8, u32) {
    match event {
        DriverEvent::Prepared => (0, 0),
        DriverEvent::Warming => (1, 0),
        DriverEvent::WarmedUp => (2, 0),
        DriverEvent::WindowStart { .. } => (3, 0),
        DriverEvent::Interval(interval) => (4, interval.second),
        DriverEvent::Measured(_) => (6, 0),
        // Nobody goes on before all others are there.
        DriverEvent::Meeting { .. } => (7, 0),
        _ => (5, 0),
    }
}

/// Clocks of a host at one moment, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ClockReading {
    /// The monotonic clock.
    pub(super) monotonic_ns: u64,
    /// The wall clock.
    unix_ns: u64,
}

/// The offset of another host's clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClockOffset {
    /// Lead of its monotonic clock, nanoseconds.
    monotonic_ns: i128,
    /// Lead of its wall clock, nanoseconds.
    unix_ns: i128,
    /// The quickest round trip, nanoseconds.
    round_trip_ns: u64,
}

impl ClockOffset {
    /// From one round trip: the clocks here at its start, there in between, the monotonic clock
    /// here at its end.
    pub(super) fn of(start: ClockReading, there: ClockReading, end_ns: u64) -> ClockOffset {
        let round_trip_ns = end_ns.saturating_sub(start.monotonic_ns);
        let half = i128::from(round_trip_ns / 2);
        ClockOffset {
            monotonic_ns: i128::from(there.monotonic_ns) - i128::from(start.monotonic_ns) - half,
            unix_ns: i128::from(there.unix_ns) - i128::from(start.unix_ns) - half,
            round_trip_ns,
        }
    }

    /// The one that is known better.
    fn better(self, other: ClockOffset) -> ClockOffset {
        if other.round_trip_ns < self.round_trip_ns { other } else { self }
    }

    /// A moment of this host's monotonic clock on that of the other.
    pub(super) fn there(&self, here_ns: u64) -> u64 {
        u64::try_from(i128::from(here_ns) + self.monotonic_ns).unwrap_or(0)
    }

    /// A moment of the other host's monotonic clock on that of this one.
    pub(super) fn here(&self, there_ns: u64) -> i128 {
        i128::from(there_ns) - self.monotonic_ns
    }

    /// Lead of its wall clock, milliseconds.
    fn ahead_ms(&self) -> f64 {
        self.unix_ns as f64 / 1e6
    }

    /// Largest error of the offset, milliseconds.
    fn bound_ms(&self) -> f64 {
        self.round_trip_ns as f64 / 2e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the lab hears within a moment from a host that says one thing without end.
    fn flood(line: &str) -> (Option<DriverEvent>, usize) {
        use rqps_driver::request::DriverRequest;
        use rqps_driver::turns::token::TurnRules;
        let mut command = rqps_host::child::command("sh", rqps_host::child::ChildTask::Work);
        command.args([
            "-c",
            "read request; exec 3<&0; cat <&3 > /dev/null & exec yes \"$0\"",
            line,
        ]);
        let log = tempfile::NamedTempFile::new().unwrap();
        let (order, round, turn_ns) = (Vec::new(), 1, 1);
        let rules = TurnRules { order, round, turn_ns, warmup_ns: 0, window_ns: 0 };
        let request = DriverRequest::keep_turns(rules);
        let process = DriverProcess::started(command, Some("h"), &request, log.path()).unwrap();
        let drivers = vec![AwayDriver::new(process, "h", 1)];
        let mut team = AwayTeam { drivers, series: SeriesOf::default() };
        let heard = team.next(Duration::from_millis(100)).unwrap();
        (heard, team.drivers[0].said.len())
    }

    #[test]
    fn a_host_that_says_things_without_end_holds_nobody_up() {
        let (heard, kept) = flood(r#"{"meeting":{"number":1}}"#);
        assert!(heard.is_none() && kept <= SAID_MOST, "{heard:?}, {kept}");
        let (heard, kept) = flood(r#""warming""#);
        assert!(matches!(heard, Some(DriverEvent::Warming)) && kept < SAID_MOST, "{heard:?}");
    }

    #[test]
    fn niced_work_makes_a_host_busy_and_no_time_is_not_idle() {
        let usage = HostUsage { user: 95.0, nice: 90.0, idle: 5.0, ..HostUsage::default() };
        assert_eq!(busy_share(&usage), Some(0.95));
        assert_eq!(busy_share(&HostUsage::default()), None);
    }
}

#[cfg(test)]
mod clock_offset_tests {
    use super::*;

    #[test]
    fn the_offset_is_within_half_of_the_round_trip() {
        // Its clock is 1000 behind; the way there takes 30, the way back 10.
        let at = |ns: u64| ClockReading { monotonic_ns: ns, unix_ns: 10 * ns };
        let slow = ClockOffset::of(at(5000), at(4030), 5040);
        let error = slow.monotonic_ns + 1000;
        assert_eq!((error, slow.round_trip_ns), (10, 40));
        assert!(error.unsigned_abs() as f64 <= 1e6 * slow.bound_ms());
        let quick = ClockOffset::of(at(6000), at(5004), 6008);
        assert_eq!(slow.better(quick), quick);
        assert_eq!(quick.better(slow), quick);
        assert_eq!((quick.there(7000), quick.here(6000)), (6000, 7000));
    }
}
