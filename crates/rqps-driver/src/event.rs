//! Events of a driver process: each is one line of JSON.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use rqps_model::answers::{StepAnswers, TableRecord};
use rqps_model::run::{CpuTime, HostUsage, LoadedFile, Outcome, Turn};
use rqps_model::units;

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
