//! Settings `key=value` that all benchmarks share; those of one benchmark; the values of both.

pub use crate::own_settings;
use rqps_model::benchmark::{BackgroundState, Idle, OwnParameters, Pace, Placement, Workload};
use rqps_model::units;

/// The reason for refusing a setting. Each text names the setting and the valid values.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum SetError {
    /// The text has no `=`.
    #[error("set `{0}`: no `=`; write key=value, for example rows=1M")]
    NoEquals(String),
    /// No setting has this key; the valid ones.
    #[error("set `{0}`: unknown key; valid keys: {1}")]
    UnknownKey(String, String),
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

/// Writes the table: a key, its valid values and effect, and a function of the workload and the
/// value.
macro_rules! settings {
    ($($key:literal, $about:literal, |$workload:ident, $value:ident| $apply:expr;)*) => {
        &[$(Setting {
            key: $key,
            about: $about,
            apply: |$workload, $value| { $apply; Ok(()) },
        }),*]
    };
}

/// All settings, in the order of lists.
pub const SETTINGS: &[Setting] = settings! {
    "tables", "number of tables, 1 to 10000", |workload, value|
        workload.tables = count(value, 1, 10_000)? as u32;
    "rows", "rows per table, 200 to 2G; K, M and G are powers of 1000", |workload, value|
        // hot-points reads ids up to rows/2 + 100; ids are 32-bit integers, and insert needs some
        // beyond the last row.
        workload.rows = count(value, 200, 2_000_000_000)?;
    "clients", "concurrent connections, 1 to 10000; several counts such as 1,4,16 run each step \
     once per count", |workload, value| workload.set_counts(client_counts(value, 10_000)?);
    "seconds", "read_seconds and write_seconds at once", |workload, value| {
        workload.read_seconds = seconds(value)?;
        workload.write_seconds = workload.read_seconds;
    };
    "read_seconds", "measured seconds of a read step, 0.1 to 86400", |workload, value|
        workload.read_seconds = seconds(value)?;
    "write_seconds", "measured seconds of a write step, 0.1 to 86400", |workload, value|
        workload.write_seconds = seconds(value)?;
    "warmup_seconds", "seconds before each measured window, 0 to 3600", |workload, value|
        workload.warmup_seconds = time(value, 0.0, 3600.0)?;
    "settle_scale", "multiple of the published rest after loading and writing, 0 to 10",
    |workload, value| workload.settle_scale = number(value, 0.0, 10.0)?;
    "cache", "the DBMS's own cache, 8M to 64T in powers of 1024, or auto: derived from the data \
     size", |workload, value|
        workload.cache_bytes = if value == "auto" { None } else { Some(bytes(value)?) };
    "memory_limit", "memory limit of a target including the page cache of its files, 64M to 64T, or \
     none", |workload, value| workload.memory_limit = memory_limit(value)?;
    "rate", "events per second of all clients together (Poisson arrivals), 0.01 to 100M, or \
     closed", |workload, value|
        workload.pace = match value {
            "closed" => Pace::Closed,
            _ => {
                let rate = number(value, 0.01, 1e8).map_err(|why| why + ", or closed");
                Pace::Open { events_per_second: rate? }
            }
        };
    "prepared", "yes: each client prepares its statements once; no: the server parses each \
     statement's text", |workload, value| workload.plain_statements = !yes_or_no(value)?;
    "placement", "together, apart or os", |workload, value|
        workload.placement = choice(value, &[
            ("together", Placement::Together),
            ("apart", Placement::Apart),
            ("os", Placement::Os),
        ])?;
    "idle", "awake or os", |workload, value|
        workload.idle = choice(value, &[("awake", Idle::Awake), ("os", Idle::Os)])?;
    "turn_ms", "shortest turn of a target with --interleave turns, 1 to 10000 milliseconds",
    |workload, value|
        workload.turn_ms =
            Some(number(value.strip_suffix("ms").unwrap_or(value), 1.0, 10_000.0)?);
    "waiting", "state of a server during the turns of others, running or stopped; auto: depends on \
     the step", |workload, value|
        workload.waiting = choice(value, &[
            ("auto", None),
            ("running", Some(BackgroundState::Running)),
            ("stopped", Some(BackgroundState::Stopped)),
        ])?;
};

/// Changes `workload` by one `key=value` (`--set`). On an error, nothing changes.
///
/// # Errors
///
/// The `=` is missing, the key is unknown, or the value is invalid or outside its limits.
pub fn set(workload: &mut Workload, assignment: &str) -> Result<(), SetError> {
    let (key, value) = parts(assignment)?;
    let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key) else {
        let known: Vec<&str> = SETTINGS.iter().map(|setting| setting.key).collect();
        return Err(SetError::UnknownKey(key.to_string(), known.join(", ")));
    };
    let bad = |why| SetError::BadValue { key: setting.key, value: value.to_string(), why };
    (setting.apply)(workload, value).map_err(bad)
}

/// Both sides of the `=`.
pub fn parts(assignment: &str) -> Result<(&str, &str), SetError> {
    match assignment.split_once('=') {
        Some((key, value)) => Ok((key.trim(), value.trim())),
        None => Err(SetError::NoEquals(assignment.to_string())),
    }
}

// Settings of one benchmark, and the settings of all benchmarks that it accepts.

/// A setting of the benchmark with parameters `S`.
pub struct OwnSetting<S> {
    /// The key, before the `=`.
    pub key: &'static str,
    /// Sets the value. The error names the expected values.
    pub apply: fn(&mut Workload, &mut S, &str) -> Result<(), String>,
}

/// All settings of a benchmark.
pub struct Settings<S: 'static> {
    /// The name of the benchmark, for messages.
    pub benchmark: &'static str,
    /// Its own settings.
    pub own: &'static [OwnSetting<S>],
    /// Settings of all benchmarks that it accepts: its name for each, and the common name.
    pub common: &'static [(&'static str, &'static str)],
    /// True if it also accepts all other settings, except those of rqps's own tables.
    pub others: bool,
    /// Further keys in the list of valid keys.
    pub open: &'static [&'static str],
}

impl<S: OwnParameters> Settings<S> {
    /// Changes a workload of this benchmark by one `key=value`. On an error, nothing changes.
    pub fn set(&self, workload: &mut Workload, assignment: &str) -> Result<(), SetError> {
        let (key, value) = parts(assignment)?;
        if let Some((_, there)) = self.common.iter().find(|(here, _)| *here == key) {
            return set(workload, &format!("{there}={value}"));
        }
        if self.others && without_tables().any(|known| known == key) {
            return set(workload, assignment);
        }
        let Some(setting) = self.own.iter().find(|setting| setting.key == key) else {
            return Err(self.unknown(key));
        };
        let Some(mut shape) = S::of_mut(&mut workload.shape).cloned() else {
            return Err(self.unknown(key));
        };
        let mut changed = workload.clone();
        (setting.apply)(&mut changed, &mut shape, value).map_err(|why| SetError::BadValue {
            key: setting.key,
            value: value.to_owned(),
            why,
        })?;
        if let Some(place) = S::of_mut(&mut changed.shape) {
            *place = shape;
        }
        *workload = changed;
        Ok(())
    }

    fn unknown(&self, key: &str) -> SetError {
        let own = self.own.iter().map(|setting| setting.key);
        let common = self.common.iter().map(|(here, _)| *here);
        let others = without_tables().filter(|_| self.others);
        let open = self.open.iter().copied();
        let known: Vec<&str> = own.chain(common).chain(others).chain(open).collect();
        SetError::UnknownKeyOf {
            key: key.to_owned(),
            benchmark: self.benchmark,
            known: known.join(", "),
        }
    }
}

/// Writes a table of settings: a key, and a function of the workload, the benchmark's parameters
/// and the value.
#[macro_export]
macro_rules! own_settings {
    ($shape_type:ty: $($key:literal, |$workload:pat_param, $shape:pat_param, $value:ident|
        $apply:expr;)*) => {
        const OWN: &[$crate::workload::settings::OwnSetting<$shape_type>] =
            &[$($crate::workload::settings::OwnSetting {
                key: $key,
                apply: |$workload, $shape, $value| { $apply; Ok(()) },
            }),*];
    };
}

// Values of settings as users write them, with limits. Errors name the valid values.

/// A whole number, with `_` between digits and a unit of powers of 1000: `10k`, `1_000_000`.
pub fn count(text: &str, low: u64, high: u64) -> Result<u64, String> {
    let wanted = || {
        let example = if high < 1_000_000 { "8" } else { "10M" };
        format!("write a whole number from {low} to {high}, such as {low} or {example}")
    };
    let (digits, unit) = split_unit(text);
    let factor: u64 = match unit {
        "" => 1,
        "k" | "K" => 1000,
        "m" | "M" => 1_000_000,
        "g" | "G" => 1_000_000_000,
        _ => return Err(wanted()),
    };
    let value = whole(digits).and_then(|value| value.checked_mul(factor));
    value.filter(|value| (low..=high).contains(value)).ok_or_else(wanted)
}

/// One client count, or several separated by commas without repetition.
pub fn client_counts(text: &str, most: u64) -> Result<Vec<u32>, String> {
    let mut counts = Vec::new();
    for word in text.split(',').map(str::trim) {
        let one = count(word, 1, most).map_err(|why| {
            let of_list = if text.contains(',') { format!("`{word}`: ") } else { String::new() };
            format!("{of_list}{why}; or several such as 1,4,16")
        })?;
        if counts.contains(&(one as u32)) {
            return Err(format!("write each count once; {one} is there twice"));
        }
        counts.push(one as u32);
    }
    Ok(counts)
}

/// Bytes with a unit of powers of 1024: `512M`, `4GiB`, `4GB`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let wanted = || "write a size from 8M to 64T such as 512M or 4G, or auto".to_string();
    let (digits, unit) = split_unit(text);
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(wanted()),
    };
    let value = whole(digits).and_then(|value| value.checked_mul(1 << shift));
    value.filter(|value| (8 << 20..=64 << 40).contains(value)).ok_or_else(wanted)
}

/// A memory limit in bytes, or `none`. Must be enough to start a server.
pub fn memory_limit(value: &str) -> Result<Option<u64>, String> {
    if value == "none" {
        return Ok(None);
    }
    let why = |_| "write a size from 64M to 64T such as 512M or 4G, or none".to_owned();
    let bytes = bytes(value).map_err(why)?;
    if bytes < 64 << 20 { Err(why(String::new())) } else { Ok(Some(bytes)) }
}

/// Seconds of a window.
pub fn seconds(text: &str) -> Result<f64, String> {
    time(text, 0.1, 86_400.0)
}

/// Seconds, as a number or with a unit: `2`, `2s`, `500ms`, `1m30s`.
pub fn time(text: &str, low: f64, high: f64) -> Result<f64, String> {
    match units::parse_duration(text) {
        Ok(time) => number(&time.as_secs_f64().to_string(), low, high),
        Err(_) => number(text, low, high),
    }
}

/// A decimal number within limits; infinities are outside.
pub fn number(text: &str, low: f64, high: f64) -> Result<f64, String> {
    let value: Option<f64> = text.parse().ok();
    let wanted = || format!("write a number from {low} to {high}");
    value.filter(|value| (low..=high).contains(value)).ok_or_else(wanted)
}

/// Splits digits (with `_`) from the text after them.
fn split_unit(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    (digits, unit.trim_start())
}

fn whole(digits: &str) -> Option<u64> {
    digits.replace('_', "").parse().ok()
}

/// Yes or no, in common spellings.
pub fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" | "on" | "true" => Ok(true),
        "no" | "off" | "false" => Ok(false),
        _ => Err("write yes or no".to_string()),
    }
}

/// One of several words.
pub fn choice<T: Copy>(text: &str, known: &[(&str, T)]) -> Result<T, String> {
    match known.iter().find(|(word, _)| *word == text) {
        Some((_, value)) => Ok(*value),
        None => {
            let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
            Err(format!("write one of {}", words.join(", ")))
        }
    }
}

/// Words separated by commas, at least one, without repetition.
pub fn list<T: PartialEq>(
    text: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let mut all = Vec::new();
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let item = read(word).map_err(|why| format!("`{word}`: {why}"))?;
        if !all.contains(&item) {
            all.push(item);
        }
    }
    if all.is_empty() {
        Err("write a list separated by commas, with at least one entry".to_string())
    } else {
        Ok(all)
    }
}
