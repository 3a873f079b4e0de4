//! The driver's end of the conversation with the lab: it sends messages, and takes the end of its
//! input as a sign that the lab is gone.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::loaders;
use crate::request::{DriverCommand, Met};
use rqps_host::clock::{self, RealClock, TimeSource as _};
use rqps_host::sample::{CounterSampler, Sample};
use rqps_model::row_digest::{StepAnswers, TableRecord};
use rqps_model::run::{CpuTime, HostUsage, LoadedFile, Outcome, Turn};
use rqps_model::units;

/// The lab is gone.
#[derive(Debug)]
pub struct LabGone;

/// Sends messages and notices when the lab goes.
pub struct ControlChannel<W> {
    output: W,
    /// Lines of the lab; closed when it goes.
    lines: Receiver<String>,
    /// Keeps the channel open if no thread watches the input.
    _open: Option<Sender<String>>,
    /// Counters of this host, if the lab is on another.
    host: Option<HostWatch>,
    /// The start that the lab has set for drivers of several hosts, on the host's monotonic clock,
    /// nanoseconds.
    start_ns: Option<u64>,
}

/// Reads this host's counters at both edges of the window.
struct HostWatch {
    sampler: CounterSampler,
    /// Samples at the start of the window and at the end of its last interval.
    first_and_last: Option<(Sample, Sample)>,
}

impl HostWatch {
    fn see(&mut self, message: &DriverEvent) {
        match (message, &mut self.first_and_last) {
            (DriverEvent::WindowStart { .. }, window) => {
                let first = self.sampler.read();
                *window = Some((first.clone(), first));
            }
            (DriverEvent::Interval(_), Some((_, last))) => *last = self.sampler.read(),
            _ => {}
        }
    }

    fn usage(&self) -> Result<HostUsage, String> {
        let (first, last) = self.first_and_last.as_ref().ok_or("the step had no window")?;
        let usage = last.since(first);
        match usage.missing.get("host") {
            None => Ok(usage.host),
            Some(reason) => Err(reason.clone()),
        }
    }
}

impl<W: Write> ControlChannel<W> {
    /// Watches `input` for its end.
    pub fn watching(output: W, mut input: impl BufRead + Send + 'static) -> ControlChannel<W> {
        let (sender, lines) = channel();
        // The thread ends with the input or with the process; nothing waits for it.
        std::thread::spawn(move || {
            let mut rest = String::new();
            while input.read_line(&mut rest).is_ok_and(|length| length > 0) {
                // Without a receiver the request is done.
                let _ = sender.send(rest.trim_end().to_owned());
                rest.clear();
            }
            loaders::all();
        });
        ControlChannel { output, lines, _open: None, host: None, start_ns: None }
    }

    /// Also sends the changes of this host's counters in the window, for a lab on another host.
    pub fn watch_host(&mut self) {
        let sampler = CounterSampler::new(None, None, None);
        self.host = Some(HostWatch { sampler, first_and_last: None });
    }

    /// A channel without an input, for tests and for calls in the same process.
    pub fn alone(output: W) -> ControlChannel<W> {
        let (sender, lines) = channel();
        ControlChannel { output, lines, _open: Some(sender), host: None, start_ns: None }
    }

    /// Sends one message at once.
    pub fn send(&mut self, message: &DriverEvent) -> Result<(), LabGone> {
        if let Some(host) = &mut self.host {
            host.see(message);
            if matches!(message, DriverEvent::Measured(_)) {
                let usage = host.usage();
                self.write(&DriverEvent::HostUsage(usage))?;
            }
        }
        self.write(message)
    }

    fn write(&mut self, message: &DriverEvent) -> Result<(), LabGone> {
        let mut line = serde_json::to_vec(message).map_err(|_| LabGone)?;
        line.push(b'\n');
        self.output.write_all(&line).map_err(|_| LabGone)?;
        self.output.flush().map_err(|_| LabGone)
    }

    /// Sleeps for `duration`, or until the lab goes.
    pub fn sleep(&self, duration: Duration) -> Result<(), LabGone> {
        self.line(duration).map(drop)
    }

    /// The next line of the lab; `None` if none comes within `limit`.
    pub fn line(&self, limit: Duration) -> Result<Option<String>, LabGone> {
        match self.lines.recv_timeout(limit) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(LabGone),
        }
    }

    /// Sends [`DriverEvent::Prepared`] and waits for the lab's line. Without an input, returns at
    /// once.
    pub fn pause(&mut self) -> Result<(), LabGone> {
        self.pause_at(&DriverEvent::Prepared)
    }

    /// The start that the lab has set last, as a moment `now` of another clock shows it. It is
    /// past: a driver that waits for a CPU wakes late. `None` if the lab has set none.
    pub fn start_by(&self, now: impl FnOnce() -> u64) -> Option<u64> {
        let late = clock::monotonic_ns().saturating_sub(self.start_ns?);
        Some(now().saturating_sub(late))
    }

    /// Pauses if a request asks for it.
    pub fn pause_if(&mut self, asked: bool) -> Result<(), LabGone> {
        if asked { self.pause() } else { Ok(()) }
    }

    /// Sends `message` and waits for the lab's line. Without an input, returns at once.
    pub fn pause_at(&mut self, message: &DriverEvent) -> Result<(), LabGone> {
        self.answer_to(message).map(drop)
    }

    /// Waits until the drivers of all hosts that share a step are here. Without an input, returns
    /// at once.
    pub fn meet(&mut self, number: u64) -> Result<Met, LabGone> {
        Ok(self.answer_to(&DriverEvent::Meeting { number })?.unwrap_or(Met::alone(number)))
    }

    /// Sends `message` and waits for the lab's line; returns its numbers if it has some.
    fn answer_to(&mut self, message: &DriverEvent) -> Result<Option<Met>, LabGone> {
        if self._open.is_some() {
            return Ok(None);
        }
        self.send(message)?;
        loop {
            let line = self.lines.recv().map_err(|_| LabGone)?;
            let word = match line.parse() {
                Ok(word) => word,
                Err(fault) => {
                    self.send(&DriverEvent::Failed { fault })?;
                    return Err(LabGone);
                }
            };
            match word {
                DriverCommand::GoOn => return Ok(None),
                DriverCommand::Met(met) => return Ok(Some(met)),
                DriverCommand::Clock => {
                    let (monotonic_ns, unix_ns) = (clock::monotonic_ns(), clock::unix_ns());
                    self.send(&DriverEvent::Clock { monotonic_ns, unix_ns })?;
                }
                DriverCommand::StartAt(at) => {
                    let wait = at.saturating_sub(clock::monotonic_ns());
                    RealClock::new().sleep_until(wait);
                    self.start_ns = Some(at);
                    return Ok(None);
                }
                DriverCommand::Sampled(_) | DriverCommand::Leave(_) => {
                    let fault = format!("failed to obey `{line}`: this driver keeps no turns");
                    self.send(&DriverEvent::Failed { fault })?;
                    return Err(LabGone);
                }
            }
        }
    }

    /// Waits for a message of `news` until `deadline`; `None` at the deadline, or if all senders
    /// are gone.
    pub fn wait<T>(
        &self,
        news: &Receiver<T>,
        deadline: Option<Instant>,
    ) -> Result<Option<T>, LabGone> {
        /// Longest time between two checks whether the lab is there.
        const LOOK: Duration = Duration::from_millis(100);
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            match news.recv_timeout(left.map_or(LOOK, |left| left.min(LOOK))) {
                Ok(item) => return Ok(Some(item)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.sleep(Duration::ZERO)?;
            if left.is_some_and(|left| left <= LOOK) {
                return Ok(None);
            }
        }
    }
}

/// A fault, or the loss of the lab.
pub enum Stop {
    /// A fault, with its message.
    Fault(String),
    /// The lab is gone.
    Gone,
    /// The request was for answers, and they are sent.
    Answered,
}

impl From<String> for Stop {
    fn from(fault: String) -> Stop {
        Stop::Fault(fault)
    }
}

impl From<LabGone> for Stop {
    fn from(_: LabGone) -> Stop {
        Stop::Gone
    }
}

// Events of a driver process: each is one line of JSON.

/// A message from a driver to the lab.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriverEvent {
    /// Progress of a load.
    Loading {
        /// Rows loaded so far.
        rows: u64,
        /// All rows.
        of: u64,
    },
    /// All rows are loaded; progress of the indexes.
    Indexing {
        /// Indexes made so far.
        done: u32,
        /// All indexes.
        of: u32,
    },
    /// Progress of a file that is being loaded.
    LoadingFile(FileProgress),
    /// A file is loaded.
    LoadedFile(LoadedFile),
    /// A note on the load for the user.
    Note(String),
    /// The load is complete.
    Loaded {
        /// Rows loaded.
        rows: u64,
        /// Seconds for creating tables and loading rows.
        load_seconds: f64,
        /// Seconds for making indexes.
        index_seconds: f64,
        /// CPU time of the driver process.
        client_cpu: CpuTime,
    },
    /// The kernel ends this process with the lab, also while it stands still. Sent if the lab may
    /// stop it, which it does not before.
    Bound,
    /// All clients are connected and prepared. Sent if the request asks for it: the driver waits
    /// for a line before the first event, so that the lab can read counters of the server.
    Prepared,
    /// All clients are connected and prepared; the warm-up begins.
    Warming,
    /// The warm-up of whole events has ended on one of several hosts. The driver waits for the
    /// common start of the windows.
    WarmedUp,
    /// One of several hosts has come to a point at which all must be before any goes on. The
    /// driver waits for their numbers.
    Meeting {
        /// The number of this host.
        number: u64,
    },
    /// The answer to [`DriverCommand::Clock`](crate::request::DriverCommand).
    Clock {
        /// The host's monotonic clock, nanoseconds.
        monotonic_ns: u64,
        /// Its wall clock, nanoseconds since 1970.
        unix_ns: u64,
    },
    /// The window begins.
    WindowStart {
        /// Its start on the host's monotonic clock, nanoseconds.
        at_ns: u64,
    },
    /// A second of the window has ended.
    Interval(StepInterval),
    /// The window has ended, but the work has not; counters read now belong to the window.
    WindowEnd,
    /// Work beside the window continues.
    Waiting {
        /// The work.
        what: String,
    },
    /// The warm-up of a counted step has ended. The driver waits for a line before the first
    /// counted event.
    BeforeCount {
        /// The server's process or thread of the client; `None` if it is unknown, or if the DBMS is
        /// a library.
        serving: Option<u32>,
    },
    /// The last counted event has ended. The driver waits for a line before it continues.
    AfterCount,
    /// The turns of the window, if targets took turns.
    Turns(Vec<Turn>),
    /// The page of turns, by its path for other drivers on this host. Only from the driver that
    /// keeps it.
    TurnPage(PathBuf),
    /// The state of the turns, once a second. Only from the driver that keeps their page.
    TurnState {
        /// A bit for each target that waits for others.
        waiting: u64,
        /// The target whose driver has the token and gives no sign of life.
        stuck: Option<u32>,
    },
    /// Changes of the counters of the driver's host in the window, or why they are unknown. Only if
    /// the lab is on another host.
    HostUsage(Result<HostUsage, String>),
    /// The answer to a statement, with the texts of statements that are new.
    Answer(Box<StepAnswers>),
    /// All answers are sent; the reason for which there are not more.
    Answered(Option<String>),
    /// What a table holds.
    Table(Box<TableRecord>),
    /// All tables are read.
    TablesRead,
    /// All counts of the window.
    Measured(Box<Outcome>),
    /// The driver cannot continue.
    Failed {
        /// The action, its object and the error.
        fault: String,
    },
}

/// One interval of a window, usually a second, as counted by the driver. Latencies are in
/// microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepInterval {
    /// Number of the interval, from 1.
    pub second: u32,
    /// Length in seconds.
    pub seconds: f64,
    /// Events that ended.
    pub events: u64,
    /// Statements; for a benchmark's own loop, the operations that the step's rate counts.
    pub statements: u64,
    /// Failed statements.
    pub errors: u64,
    /// Median latency.
    pub p50_us: f64,
    /// 95th percentile of the latency.
    pub p95_us: f64,
    /// 99th percentile of the latency.
    pub p99_us: f64,
    /// Largest latency.
    pub max_us: f64,
    /// Further columns of the step's CSV for some benchmarks, with their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, f64>,
    /// The latencies, nanoseconds, as HdrHistogram V2 in base64. Only if several hosts share the
    /// clients of a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<String>,
    /// The same for each role of a benchmark with roles, whose quantiles are in `extra`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub latencies: BTreeMap<String, String>,
}

/// Progress of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileProgress {
    /// Its name without folders.
    pub file: String,
    /// Bytes read so far.
    pub bytes: u64,
    /// All bytes.
    pub of: u64,
    /// Seconds since its first byte.
    pub seconds: f64,
}

impl FileProgress {
    /// Share of the bytes that are read; `None` for an empty file.
    pub fn share(&self) -> Option<f64> {
        (self.of > 0).then(|| (self.bytes as f64 / self.of as f64).min(1.0))
    }

    /// The file, how much of it is read, and at which rate: "shop.sql: 1.20 GiB of 9.80 GiB, 85.0
    /// MiB/s, about 1m43s left".
    pub fn words(&self) -> String {
        let FileProgress { file, bytes, of, seconds } = self;
        let (done, all) = (units::bytes(*bytes), units::bytes(*of));
        let rate = *bytes as f64 / seconds.max(1e-9);
        let mut text = format!("{file}: {done} of {all}, {}/s", units::bytes(rate as u64));
        if rate >= 1.0 {
            let left = of.saturating_sub(*bytes) as f64 / rate;
            let left = units::duration(Duration::from_secs_f64(left.round()));
            text.push_str(&format!(", about {left} left"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_waits_tells_the_time_and_starts_at_its_moment() {
        let mut said = Vec::new();
        let start = clock::monotonic_ns() + 20_000_000;
        let input = format!("clock\nclock\nstart {start}\n");
        let input = std::io::Cursor::new(input.into_bytes());
        let mut control = ControlChannel::watching(&mut said, input);
        control.watch_host();
        control.pause().unwrap();
        assert!(clock::monotonic_ns() >= start);
        control.send(&DriverEvent::Measured(Box::default())).unwrap();
        drop(control);
        let events: Vec<DriverEvent> = String::from_utf8_lossy(&said)
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let [
            DriverEvent::Prepared,
            DriverEvent::Clock { monotonic_ns: first, .. },
            DriverEvent::Clock { monotonic_ns: second, .. },
            DriverEvent::HostUsage(Err(unknown)),
            DriverEvent::Measured(_),
        ] = events.as_slice()
        else {
            panic!("{events:?}")
        };
        assert!(first <= second);
        assert_eq!(unknown, "the step had no window");
    }
}

#[cfg(test)]
mod event_tests {
    use super::*;

    #[test]
    fn progress_has_the_rate_and_the_time_left() {
        let of = |bytes, of, seconds| {
            let file = "shop.sql".to_owned();
            FileProgress { file, bytes, of, seconds }
        };
        let half = of(50 << 20, 100 << 20, 2.0);
        assert_eq!(half.words(), "shop.sql: 50.0 MiB of 100 MiB, 25.0 MiB/s, about 2s left");
        assert_eq!(half.share(), Some(0.5));
        let begun = of(0, 100 << 20, 0.5);
        assert_eq!(begun.words(), "shop.sql: 0 B of 100 MiB, 0 B/s");
        assert_eq!(of(0, 0, 1.0).share(), None);
    }
}
