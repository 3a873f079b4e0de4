//! Machinery of presets (named sizes and lengths of workloads), `key=value` settings and the
//! selection of steps.

pub use crate::own_settings;

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

use rqps_model::benchmark::{
    BackgroundState, BenchmarkParameters, ClientCount, Group, Idle, OwnParameters, Pace, Phase,
    Placement, Step, Workload,
};
use rqps_model::escape;
use rqps_model::units::{self, counted};

/// The preset with this name or alias; `names` has the name of each, and its aliases.
///
/// # Errors
///
/// No such preset; the text lists the valid ones.
pub fn named<'a, P>(
    all: &'a [P],
    names: fn(&P) -> (&str, &[String]),
    name: &str,
) -> Result<&'a P, String> {
    let is_it = |known: &&P| {
        let (own, aliases) = names(known);
        own == name || aliases.iter().any(|alias| alias == name)
    };
    all.iter().find(is_it).ok_or_else(|| {
        let known: Vec<_> = all.iter().map(|preset| names(preset).0).collect();
        format!("use the preset `{name}`: no such preset (known: {})", known.join(", "))
    })
}

/// The presets of a file. A row takes what it does not say from the row that it is `like`.
///
/// # Errors
///
/// The file is no TOML, or a row does not fit the presets.
pub fn presets<P: DeserializeOwned>(text: &str) -> Result<Vec<P>, toml::de::Error> {
    let file: BTreeMap<String, Vec<toml::Table>> = toml::from_str(text)?;
    let mut rows: Vec<toml::Table> = Vec::new();
    for mut said in file.into_values().flatten() {
        let like = said.remove("like");
        let base = rows.iter().find(|row| like.is_some() && row.get("name") == like.as_ref());
        let mut row = base.cloned().unwrap_or_default();
        row.extend(said);
        rows.push(row);
    }
    rows.into_iter().map(toml::Table::try_into).collect()
}

/// A preset of a size and a length of steps.
pub struct ScalePreset {
    /// The word after `--preset`.
    pub name: &'static str,
    /// Number of the benchmark's units of data; 1 if a user's workload decides.
    pub size: u32,
    /// Concurrent clients.
    pub clients: u32,
    /// Seconds of each measured window.
    pub seconds: f64,
    /// Seconds of warm-up before each window.
    pub warmup_seconds: f64,
}

impl ScalePreset {
    /// The preset with this name.
    ///
    /// # Errors
    ///
    /// As [`named`].
    pub fn named<'a>(all: &'a [ScalePreset], name: &str) -> Result<&'a ScalePreset, String> {
        named(all, |preset| (preset.name, &[]), name)
    }

    /// A preset of steps with this length; one client, size 1.
    pub const fn lasting(name: &'static str, seconds: f64, warmup_seconds: f64) -> ScalePreset {
        ScalePreset { name, size: 1, clients: 1, seconds, warmup_seconds }
    }

    /// A workload of these parameters with the preset's clients and seconds.
    pub fn workload(&self, shape: BenchmarkParameters) -> Workload {
        Workload {
            clients: self.clients,
            read_seconds: self.seconds,
            write_seconds: self.seconds,
            warmup_seconds: self.warmup_seconds,
            ..Workload::plain(shape)
        }
    }
}

// Selects steps by name: `--steps 'point-*,!*_range=1000'`.

/// Steps that a selection includes automatically.
pub struct Companions {
    /// Warm-up steps: the name of each, and patterns of the steps that it warms.
    pub warm_ups: &'static [(&'static str, &'static [&'static str])],
    /// True for a step that all others need: the load of a benchmark that measures it.
    pub is_needed: fn(&Step) -> bool,
}

/// The names of a step that a pattern may match.
struct StepName<'a> {
    full: &'a str,
    /// The name without its client count, if it has one.
    of_all_counts: Option<&'a str>,
    /// The name without all `.KEY=VALUE` by which its repetitions differ.
    of_all_repetitions: &'a str,
}

impl<'a> StepName<'a> {
    fn of(step: &'a Step) -> StepName<'a> {
        let of_all_counts = step.client_count.as_ref().map(|count| count.step.as_str());
        let full = step.name.as_str();
        let is_key = |at: &usize| {
            let key = full[at + 1..].trim_start_matches(|c: char| c.is_ascii_lowercase());
            key.starts_with('=')
        };
        let end = full.match_indices('.').map(|(at, _)| at).find(is_key).unwrap_or(full.len());
        StepName { full, of_all_counts, of_all_repetitions: &full[..end] }
    }

    fn fits(&self, pattern: &str) -> bool {
        let names = self.of_all_counts.into_iter().chain([self.full, self.of_all_repetitions]);
        names.into_iter().any(|name| matches(pattern, name))
    }
}

impl Companions {
    /// A selection without automatic steps.
    pub const NONE: Companions = Companions { warm_ups: &[], is_needed: |_| false };

    fn is_warm_up(&self, name: &str) -> bool {
        self.warm_ups.iter().any(|(warm_up, _)| *warm_up == name)
    }
}

/// The reason for refusing a selection.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SelectError {
    /// No step has such a name.
    #[error(
        "choose steps: no step matches `{}`; {known}\nhint: `rqps plan` with the same words lists all steps",
        escape::line(.glob)
    )]
    NoMatch {
        /// The pattern.
        glob: String,
        /// Similar names, or the first ones if none is similar.
        known: String,
    },
    /// A `[` without its `]`, or an empty pattern.
    #[error(
        "choose steps: invalid pattern `{}`: {why}; use names with *, ? and [abc]",
        escape::line(.glob)
    )]
    Malformed {
        /// The pattern.
        glob: String,
        /// The fault of the pattern.
        why: &'static str,
    },
    /// The patterns exclude every step that they include.
    #[error(
        "choose steps: `{}` excludes every step; remove a pattern that begins with `!`",
        escape::line(.globs)
    )]
    NothingLeft {
        /// All patterns.
        globs: String,
    },
}

/// Keeps the steps whose name matches one of `globs` and none that begins with `!`. With only `!`
/// patterns, it keeps all others; without patterns, all.
///
/// `*` stands for any text, `?` for one character, `[abc]`, `[a-z]` and `[!a]` for one of a class.
/// Case counts, and a pattern must match the whole name. One string may hold several patterns with
/// commas. A step that exists per client count, or per rate of a background writer, matches with and
/// without it in its name.
///
/// A warm-up step stays with the steps that it warms, unless a pattern excludes it; `companions`
/// has the list. A [`Phase::Settle`] or [`Phase::Restore`] stays if a kept write comes before it
/// and a kept step after it.
///
/// # Errors
///
/// A pattern is malformed or matches no step of `phases`; no step is left.
pub fn select(
    phases: Vec<Phase>,
    globs: &[String],
    companions: &Companions,
) -> Result<Vec<Phase>, SelectError> {
    let patterns: Vec<&str> = globs.iter().flat_map(|glob| split(glob)).map(str::trim).collect();
    if patterns.is_empty() {
        return Ok(phases);
    }
    let names: Vec<StepName<'_>> = phases.iter().filter_map(name).collect();
    for pattern in &patterns {
        check(pattern, &names)?;
    }
    let (excluding, including): (Vec<&str>, Vec<&str>) =
        patterns.iter().partition(|pattern| pattern.starts_with('!'));
    let excluded = |name: &StepName<'_>| excluding.iter().any(|pattern| name.fits(&pattern[1..]));
    let chosen = |name: &StepName<'_>| {
        let included = including.is_empty() || including.iter().any(|pattern| name.fits(pattern));
        included && !excluded(name)
    };
    let is_warm_up = |name: &StepName<'_>| companions.is_warm_up(name.full);
    let is_needed =
        |phase: &Phase| matches!(phase, Phase::Measure(step) if (companions.is_needed)(step));
    // Warm-up steps alone are no reason to run.
    if !names.iter().any(|name| chosen(name) && !(including.is_empty() && is_warm_up(name))) {
        return Err(SelectError::NothingLeft { globs: patterns.join(",") });
    }
    let needed = |name: &StepName<'_>| {
        let of = companions.warm_ups.iter().find(|(warm_up, _)| *warm_up == name.full);
        let Some((_, warmed)) = of else { return false };
        let warms = |other: &StepName<'_>| {
            !is_warm_up(other) && warmed.iter().any(|pattern| other.fits(pattern))
        };
        !excluded(name) && names.iter().any(|other| warms(other) && chosen(other))
    };
    let asked = |name: &StepName<'_>| including.iter().any(|pattern| name.fits(pattern));
    let keep: Vec<bool> = phases
        .iter()
        .map(|phase| match name(phase) {
            _ if is_needed(phase) => true,
            Some(name) if is_warm_up(&name) => needed(&name) || (asked(&name) && !excluded(&name)),
            Some(name) => chosen(&name),
            None => true,
        })
        .collect();
    let kept = phases.into_iter().zip(keep).filter(|(_, keep)| *keep);
    Ok(settled(kept.map(|(phase, _)| phase).collect()))
}

/// Drops each [`Phase::Settle`] and [`Phase::Restore`] that no step follows, or before which no
/// step has written since the last one.
fn settled(phases: Vec<Phase>) -> Vec<Phase> {
    let mut kept: Vec<Phase> = Vec::new();
    let mut dirty = false;
    for phase in phases {
        match &phase {
            Phase::Settle | Phase::Restore => {
                if dirty {
                    kept.push(phase);
                }
                dirty = false;
            }
            Phase::Measure(step) => {
                dirty |= step.group == Group::Write;
                kept.push(phase);
            }
        }
    }
    while matches!(kept.last(), Some(Phase::Settle | Phase::Restore)) {
        kept.pop();
    }
    kept
}

fn name(phase: &Phase) -> Option<StepName<'_>> {
    match phase {
        Phase::Measure(step) => Some(StepName::of(step)),
        Phase::Settle | Phase::Restore => None,
    }
}

/// Splits at the commas outside of `[…]`.
fn split(globs: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut in_class) = (0, false);
    for (at, byte) in globs.bytes().enumerate() {
        match byte {
            b'[' => in_class = globs[at..].contains(']'),
            b']' => in_class = false,
            b',' if !in_class => {
                parts.push(&globs[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&globs[start..]);
    parts
}

fn check(pattern: &str, names: &[StepName<'_>]) -> Result<(), SelectError> {
    let glob = pattern.strip_prefix('!').unwrap_or(pattern);
    let malformed = |why| Err(SelectError::Malformed { glob: pattern.to_string(), why });
    if glob.is_empty() {
        return malformed("it is empty");
    }
    if compiled(glob).is_none() {
        return malformed("a [ without ]");
    }
    if names.iter().any(|name| name.fits(glob)) {
        return Ok(());
    }
    let mut all: Vec<&str> = names.iter().filter_map(|name| name.of_all_counts).collect();
    all.dedup();
    all.extend(names.iter().map(|name| name.full));
    let known = match near(glob, &all) {
        close if close.is_empty() => {
            let more = all.len().saturating_sub(NEAR_MAX);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("steps: {}{more}", all[..all.len().min(NEAR_MAX)].join(", "))
        }
        close => format!("similar names: {}", close.join(", ")),
    };
    Err(SelectError::NoMatch { glob: pattern.to_string(), known })
}

/// The names similar to `glob`: those that contain its letters first, then by edit distance.
fn near<'a>(glob: &str, names: &[&'a str]) -> Vec<&'a str> {
    let wanted: String = glob.chars().filter(|c| !"*?[]!".contains(*c)).collect();
    let wanted = wanted.to_lowercase();
    let mut ranked: Vec<(usize, &str)> = names
        .iter()
        .map(|name| {
            let contained = !wanted.is_empty() && name.contains(&wanted);
            (if contained { 0 } else { strsim::levenshtein(&wanted, name) }, *name)
        })
        .collect();
    ranked.sort_by_key(|(distance, _)| *distance);
    ranked.dedup_by_key(|(_, name)| *name);
    // Most of the letters agree.
    let resembles = |distance: usize, name: &str| distance * 2 < wanted.len().max(name.len());
    let close = ranked.iter().filter(|(distance, name)| resembles(*distance, name));
    close.map(|(_, name)| *name).take(NEAR_MAX).collect()
}

/// Most names in the list.
const NEAR_MAX: usize = 5;

/// True if `glob` matches the whole of `name`.
fn matches(glob: &str, name: &str) -> bool {
    compiled(glob).is_some_and(|pattern| pattern.matches(name))
}

/// Names have no folders: two stars are one.
fn compiled(glob: &str) -> Option<glob::Pattern> {
    let mut single = glob.to_owned();
    while single.contains("**") {
        single = single.replace("**", "*");
    }
    glob::Pattern::new(&single).ok()
}

// Repeats each measured step per client count: `--clients 1,4,16`.

/// The phases of a workload, in which each reported step runs once per client count, from the
/// fewest to the most. Loads and warm-up steps run once, with the most clients. With a single
/// count, these are the benchmark's own phases.
///
/// A step behind a [`Phase::Restore`] has one before each of its counts. One before the first step
/// is left out: a block begins on a copy anyway.
///
/// `phases` makes the phases for one count; it must make the same ones for each count.
pub fn at_each_count(workload: &Workload, phases: impl Fn(&Workload) -> Vec<Phase>) -> Vec<Phase> {
    let of_count = |clients: &u32| {
        let clients = *clients;
        let single = Workload { clients, client_counts: Vec::new(), ..workload.clone() };
        (clients, phases(&single))
    };
    let counted: Vec<(u32, Vec<Phase>)> = workload.client_counts.iter().map(of_count).collect();
    let Some((_, largest)) = counted.last() else { return begun_on_a_copy(phases(workload)) };
    let is_restored = |place: usize| matches!(largest.get(place), Some(Phase::Restore));
    let mut all = Vec::new();
    for (place, phase) in largest.iter().enumerate() {
        match phase {
            Phase::Measure(step) if step.reported && step.group != Group::Load => {
                let is_fresh = place > 0 && is_restored(place - 1);
                for (number, (clients, phases)) in counted.iter().enumerate() {
                    let Some(Phase::Measure(step)) = phases.get(place) else { continue };
                    if number > 0 && is_fresh {
                        all.push(Phase::Restore);
                    }
                    all.push(counted_step(step, *clients));
                }
            }
            once => all.push(once.clone()),
        }
    }
    begun_on_a_copy(all)
}

/// The phases of a block, which begins on a copy of the loaded data.
fn begun_on_a_copy(mut phases: Vec<Phase>) -> Vec<Phase> {
    if matches!(phases.first(), Some(Phase::Restore)) {
        phases.remove(0);
    }
    phases
}

fn counted_step(step: &Step, clients: u32) -> Phase {
    let count = ClientCount { step: step.name.clone(), clients };
    Phase::Measure(Box::new(Step {
        name: count.name(),
        detail: format!("{}; {}", step.detail, counted(clients as usize, "client")),
        client_count: Some(count),
        ..step.clone()
    }))
}

// Settings `key=value` that all benchmarks share; those of one benchmark; the values of both.

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
        const OWN: &[$crate::workload::OwnSetting<$shape_type>] =
            &[$($crate::workload::OwnSetting {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_lists_those_there_are() {
        let all =
            [ScalePreset::lasting("quick", 2.0, 0.5), ScalePreset::lasting("full", 300.0, 10.0)];
        assert_eq!(ScalePreset::named(&all, "full").map(|found| found.seconds), Ok(300.0));
        let refused = ScalePreset::named(&all, "fulll").map(|found| found.name);
        let said = "use the preset `fulll`: no such preset (known: quick, full)".to_owned();
        assert_eq!(refused, Err(said));
    }

    #[test]
    fn globs_match_as_in_a_shell() {
        let check = |glob: &str, name: &str, want: bool| {
            assert_eq!(matches(glob, name), want, "{glob} {name}");
        };
        check("", "", true);
        check("*", "", true);
        check("?", "", false);
        check("a*b*c", "axxbyybzc", true);
        check("a*b*c", "axxbyybz", false);
        check("*ab", "aab", true);
        check("**", "x", true);
        check("[]x]", "]", true);
        check("[!]]", "]", false);
        check("[a-c]", "b", true);
        check("[a-c]", "-", false);
        check("[a-]", "-", true);
        check("A", "a", false);
    }

    proptest::proptest! {
        #[test]
        fn no_pattern_panics(glob in "[a-c*?!,\\[\\]-]{0,12}", name in "[a-c-]{0,8}") {
            let _ = matches(&glob, &name);
            let _ = select(Vec::new(), &[glob], &Companions::NONE);
        }

        #[test]
        fn a_name_matches_itself_with_any_part_starred(
            name in "[a-c-]{0,8}",
            from in 0usize..9,
            to in 0usize..9,
        ) {
            let (from, to) = (from.min(name.len()), to.min(name.len()));
            let (from, to) = (from.min(to), from.max(to));
            let glob = format!("{}*{}", &name[..from], &name[to..]);
            proptest::prop_assert!(matches(&glob, &name));
        }
    }
}
