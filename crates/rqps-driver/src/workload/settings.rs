//! Settings `key=value` that all benchmarks share. Settings of one benchmark are in `own.rs`.

use std::fmt;

use crate::workload::value::{
    bytes, choice, client_counts, count, memory_limit, number, seconds, time, yes_or_no,
};
use rqps_model::benchmark::{BackgroundState, Idle, Pace, Placement, Workload};

/// The reason for refusing a setting. Each text names the setting and the valid values.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum SetError {
    /// The text has no `=`.
    #[error("set `{text}`: no `=`; write key=value, for example rows=1M")]
    NoEquals {
        /// The given text.
        text: String,
    },
    /// No setting has this key.
    #[error("set `{key}`: unknown key; valid keys: {}", Keys)]
    UnknownKey {
        /// The given key.
        key: String,
    },
    /// The benchmark has its own keys, and this is none of them.
    #[error("set `{key}`: unknown key of the benchmark `{benchmark}`; valid keys: {known}")]
    UnknownKeyOf {
        /// The given key.
        key: String,
        /// The benchmark.
        benchmark: &'static str,
        /// Its keys.
        known: String,
    },
    /// The value is invalid or outside its limits.
    #[error("set {key} to `{value}`: {why}")]
    BadValue {
        /// The setting.
        key: &'static str,
        /// The given value.
        value: String,
        /// The valid values.
        why: String,
    },
}

/// A setting of a workload.
pub struct Setting {
    /// The key, before the `=`.
    pub key: &'static str,
    /// Valid values, and the effect.
    pub about: &'static str,
    apply: fn(&mut Workload, &str) -> Result<(), String>,
}

/// Settings for rqps's own tables and for statements on them.
const OF_TABLES: [&str; 3] = ["tables", "rows", "prepared"];

/// The keys of all settings that have a meaning without rqps's own tables.
pub fn without_tables() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().map(|setting| setting.key).filter(|key| !OF_TABLES.contains(key))
}

/// All settings, in the order of lists.
pub const SETTINGS: &[Setting] = &[
    Setting {
        key: "tables",
        about: "number of tables, 1 to 10000",
        apply: |workload, value| {
            workload.tables = count(value, 1, 10_000)? as u32;
            Ok(())
        },
    },
    Setting {
        key: "rows",
        about: "rows per table, 200 to 2G; K, M and G are powers of 1000",
        apply: |workload, value| {
            // hot-points reads ids up to rows/2 + 100; ids are 32-bit integers, and insert needs
            // some beyond the last row.
            workload.rows = count(value, 200, 2_000_000_000)?;
            Ok(())
        },
    },
    Setting {
        key: "clients",
        about: "concurrent connections, 1 to 10000; several counts such as 1,4,16 run each step \
                once per count",
        apply: |workload, value| {
            workload.set_counts(client_counts(value, 10_000)?);
            Ok(())
        },
    },
    Setting {
        key: "seconds",
        about: "read_seconds and write_seconds at once",
        apply: |workload, value| {
            workload.read_seconds = seconds(value)?;
            workload.write_seconds = workload.read_seconds;
            Ok(())
        },
    },
    Setting {
        key: "read_seconds",
        about: "measured seconds of a read step, 0.1 to 86400",
        apply: |workload, value| {
            workload.read_seconds = seconds(value)?;
            Ok(())
        },
    },
    Setting {
        key: "write_seconds",
        about: "measured seconds of a write step, 0.1 to 86400",
        apply: |workload, value| {
            workload.write_seconds = seconds(value)?;
            Ok(())
        },
    },
    Setting {
        key: "warmup_seconds",
        about: "seconds before each measured window, 0 to 3600",
        apply: |workload, value| {
            workload.warmup_seconds = time(value, 0.0, 3600.0)?;
            Ok(())
        },
    },
    Setting {
        key: "settle_scale",
        about: "multiple of the published rest after loading and writing, 0 to 10",
        apply: |workload, value| {
            workload.settle_scale = number(value, 0.0, 10.0)?;
            Ok(())
        },
    },
    Setting {
        key: "cache",
        about: "the DBMS's own cache, 8M to 64T in powers of 1024, or auto: derived from the data \
                size",
        apply: |workload, value| {
            workload.cache_bytes = if value == "auto" { None } else { Some(bytes(value)?) };
            Ok(())
        },
    },
    Setting {
        key: "memory_limit",
        about: "memory limit of a target including the page cache of its files, 64M to 64T, or \
                none",
        apply: |workload, value| {
            workload.memory_limit = memory_limit(value)?;
            Ok(())
        },
    },
    Setting {
        key: "rate",
        about: "events per second of all clients together (Poisson arrivals), 0.01 to 100M, or \
                closed",
        apply: |workload, value| {
            workload.pace = match value {
                "closed" => Pace::Closed,
                _ => {
                    let rate = number(value, 0.01, 1e8).map_err(|why| why + ", or closed");
                    Pace::Open { events_per_second: rate? }
                }
            };
            Ok(())
        },
    },
    Setting {
        key: "prepared",
        about: "yes: each client prepares its statements once; no: the server parses each \
                statement's text",
        apply: |workload, value| {
            workload.plain_statements = !yes_or_no(value)?;
            Ok(())
        },
    },
    Setting {
        key: "placement",
        about: "together, apart or os",
        apply: |workload, value| {
            workload.placement = choice(
                value,
                &[
                    ("together", Placement::Together),
                    ("apart", Placement::Apart),
                    ("os", Placement::Os),
                ],
            )?;
            Ok(())
        },
    },
    Setting {
        key: "idle",
        about: "awake or os",
        apply: |workload, value| {
            workload.idle = choice(value, &[("awake", Idle::Awake), ("os", Idle::Os)])?;
            Ok(())
        },
    },
    Setting {
        key: "turn_ms",
        about: "shortest turn of a target with --interleave turns, 1 to 10000 milliseconds",
        apply: |workload, value| {
            workload.turn_ms =
                Some(number(value.strip_suffix("ms").unwrap_or(value), 1.0, 10_000.0)?);
            Ok(())
        },
    },
    Setting {
        key: "waiting",
        about: "state of a server during the turns of others, running or stopped; auto: depends on \
                the step",
        apply: |workload, value| {
            let choices = [
                ("auto", None),
                ("running", Some(BackgroundState::Running)),
                ("stopped", Some(BackgroundState::Stopped)),
            ];
            workload.waiting = choice(value, &choices)?;
            Ok(())
        },
    },
];

/// Changes `workload` by one `key=value` (`--set`). On an error, nothing changes.
///
/// # Errors
///
/// The `=` is missing, the key is unknown, or the value is invalid or outside its limits.
pub fn set(workload: &mut Workload, assignment: &str) -> Result<(), SetError> {
    let (key, value) = parts(assignment)?;
    let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key) else {
        return Err(SetError::UnknownKey { key: key.to_string() });
    };
    let bad = |why| SetError::BadValue { key: setting.key, value: value.to_string(), why };
    (setting.apply)(workload, value).map_err(bad)
}

/// Both sides of the `=`.
pub fn parts(assignment: &str) -> Result<(&str, &str), SetError> {
    match assignment.split_once('=') {
        Some((key, value)) => Ok((key.trim(), value.trim())),
        None => Err(SetError::NoEquals { text: assignment.to_string() }),
    }
}

/// The keys as a list for people.
struct Keys;

impl fmt::Display for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, setting) in SETTINGS.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { ", " })?;
            f.write_str(setting.key)?;
        }
        Ok(())
    }
}
