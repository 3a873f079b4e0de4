//! The steps of the Insert Benchmark in order, with the work of their clients.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::rows::{self, Partitioning};
use rqps_bench::spec::Counting;
use rqps_driver::workload::{
    self, Companions, SelectError, SetError, Settings, choice, client_counts, count, memory_limit,
    number, own_settings, seconds, select, yes_or_no,
};
use rqps_model::benchmark::{
    BenchmarkParameters, Group, OwnParameters, Pace, Phase, Prerequisite, RateUnit, Step,
    StepTurns, Workload,
};
use rqps_model::counted::StepCount;
use rqps_model::dialect::Dialect;
use rqps_model::insert::{
    InsertShape, InsertWork, Maintenance, Pacing, PriceKind, Profile, QueryKind, QueryStep,
    RowsPerCommit, Writes,
};

/// Statements between generator and worker: in 2021, and since.
const QUEUES: (u32, u32) = (4, 8);
/// Rows that l.x inserts in 2021 before it makes indexes, over all clients.
const LX_ROWS_2021: u64 = 100_000;
/// Rows that l.x inserts since 2023 before it makes indexes, over all clients; at least one batch
/// per client.
const LX_ROWS: u64 = 100;
/// Counted rows per `--statements`: an operation here is one row.
const ROWS_PER_STATEMENT: u64 = 5;
/// Spare rows of the last partition beyond the rows that the steps insert.
const SPARE_ROWS: u64 = 100;
/// Slow-down and extra minute that the time limit allows a step without a rate, because the loading
/// speed of a server is unknown.
const LOAD_SLOWER: f64 = 10.0;
const LOAD_MORE_SECONDS: f64 = 60.0;
/// Estimated rows per second of a step without a rate.
const GUESSED_RATES: (f64, f64) = (80_000.0, 20_000.0);

/// All phases of the benchmark.
pub fn phases(dialect: Dialect, workload: &Workload) -> Vec<Phase> {
    let Some(shape) = shape(workload) else { return Vec::new() };
    let maker = Maker { dialect, workload, shape };
    let mut phases = vec![maker.load("l.i0"), maker.load("l.x"), maker.load("l.i1")];
    if !shape.profile.is_2021() {
        phases.push(maker.load("l.i2"));
        phases.push(Phase::Settle);
    }
    let queries = shape.query_steps.iter().enumerate();
    phases.extend(queries.map(|(index, step)| maker.query(index, *step)));
    phases
}

/// Keeps the steps that `globs` select. A step needs the data of earlier ones, so all load steps
/// before the last selected one also run; the comparison leaves the others out.
///
/// # Errors
///
/// As [`select`].
pub fn choose(phases: Vec<Phase>, globs: &[String]) -> Result<Vec<Phase>, SelectError> {
    let kept = select(phases.clone(), globs, &Companions::NONE)?;
    let is_kept = |step: &Step| {
        kept.iter().any(|phase| matches!(phase, Phase::Measure(kept) if kept.name == step.name))
    };
    let wanted: Vec<bool> =
        phases.iter().map(|phase| matches!(phase, Phase::Measure(step) if is_kept(step))).collect();
    let end = wanted.iter().rposition(|wanted| *wanted).map_or(0, |last| last + 1);
    let mut chosen = Vec::new();
    for (phase, wanted) in phases.into_iter().zip(wanted).take(end) {
        match phase {
            Phase::Measure(step) if !wanted && step.group != Group::Load => {}
            Phase::Measure(mut step) => {
                step.reported = wanted;
                chosen.push(Phase::Measure(step));
            }
            other => chosen.push(other),
        }
    }
    Ok(chosen)
}

/// The counted runs of this benchmark: the choice of steps, and small tables.
pub(super) const COUNTING: Counting = Counting {
    step: counted,
    settings: &[
        "clients=1", "rows=20000", "i1_rows=20000", "i2_rows=5000", "deletes=no", "settle_scale=0",
    ],
};

/// The number of counted batches of a step with a single inserter; the reason why other steps are
/// not counted.
fn counted(step: &Step, _: &Workload, statements: u64) -> StepCount {
    let Some(work) = step.own::<InsertWork>() else {
        return StepCount::LeftOut("its work is not known".to_owned());
    };
    let carried_out = |why: &str| StepCount::CarriedOut(why.to_owned());
    if work.queries.is_some() {
        let why = "the inserts beside its queries keep to a clock, which valgrind slows down";
        return StepCount::LeftOut(why.to_owned());
    }
    if !step.reported {
        return carried_out("it prepares the steps after it");
    }
    if !work.indexes.is_empty() {
        return carried_out("it makes indexes, with one statement each");
    }
    if work.writes.deletes.is_some() {
        return carried_out("a second connection deletes rows meanwhile; set deletes=no");
    }
    let per_batch = u64::from(work.writes.rows_per_commit.max(1));
    let rows = (statements * ROWS_PER_STATEMENT).min(work.writes.rows);
    StepCount::Events((rows / per_batch).max(1))
}

struct Maker<'a> {
    dialect: Dialect,
    workload: &'a Workload,
    shape: &'a InsertShape,
}

impl Maker<'_> {
    fn tables(&self) -> u64 {
        if self.shape.shared { 1 } else { u64::from(self.workload.clients) }
    }

    /// Rows that l.i0 inserts into all tables.
    fn loaded_rows(&self) -> u64 {
        self.workload.rows * u64::from(self.workload.clients)
    }

    fn load(&self, name: &str) -> Phase {
        let shape = self.shape;
        let clients = u64::from(self.workload.clients);
        let commit = &shape.rows_per_commit;
        let mut work = self.work(0, 1);
        let (rows, per_commit, guess) = match name {
            "l.i0" => (self.workload.rows, commit.i0, GUESSED_RATES.0),
            "l.x" => (self.lx_rows().div_ceil(clients), commit.i0, GUESSED_RATES.0),
            "l.i1" => (shape.i1_rows, commit.i1, GUESSED_RATES.1),
            _ => (shape.i2_rows, commit.i2, GUESSED_RATES.1 / 4.0),
        };
        work.writes.rows = rows;
        work.writes.rows_per_commit = per_commit;
        let mut seconds = (rows * clients) as f64 / guess;
        let detail = match name {
            "l.i0" => {
                work.setup = rows::create(self.dialect, shape.profile, self.partitioning());
                work.writes.deletes = None;
                format!("insert {rows} rows per client in key order, {per_commit} per commit")
            }
            "l.x" => {
                work.writes.deletes = None;
                work.indexed_rows = self.loaded_rows();
                seconds = work.indexed_rows as f64 / (4.0 * guess);
                let count = shape.secondary_indexes;
                (work.indexes, work.indexes_one_by_one) =
                    rows::indexes(self.dialect, shape.profile, count);
                format!("insert {rows} rows per client, then make {count} secondary indexes")
            }
            _ => {
                let deletes = if shape.deletes { ", and delete as many" } else { "" };
                format!("insert {rows} rows per client, {per_commit} per commit{deletes}")
            }
        };
        work.limit_seconds = self.limit(LOAD_SLOWER * seconds + LOAD_MORE_SECONDS);
        Phase::Measure(Box::new(write_step(name, seconds, detail, work)))
    }

    /// In 2021, the rows of l.x were over all clients.
    fn lx_rows(&self) -> u64 {
        if self.shape.profile.is_2021() {
            // A small load must remain the larger part.
            LX_ROWS_2021.min(self.loaded_rows().max(1))
        } else {
            LX_ROWS
        }
    }

    fn query(&self, index: usize, step: QueryStep) -> Phase {
        let shape = self.shape;
        let rate = step.rows_per_second;
        let per_commit = shape.rows_per_commit.query.min(rate).max(1);
        let rows = (shape.query_seconds * f64::from(rate)).ceil() as u64;
        let mut work = self.work(rows, per_commit);
        work.writes.rows_per_second = Some(rate);
        work.queries =
            Some(rows::queries(self.dialect, shape.profile, step.kind, shape.query_threads));
        work.maintenance = self.maintenance(index);
        work.limit_seconds = self.limit(shape.query_seconds);
        let group = match step.kind {
            QueryKind::Range => Group::Range,
            QueryKind::Point => Group::Point,
        };
        let deletes = if shape.deletes { " and as many deletes" } else { "" };
        let detail = format!(
            "{} queries during {rate} inserts/s{deletes} per client, {per_commit} per commit",
            step.kind.name()
        );
        let name = step_name(shape, index, step);
        let step = write_step(&name, shape.query_seconds, detail, work);
        Phase::Measure(Box::new(Step { group, rate: RateUnit::Queries, ..step }))
    }

    /// Work of writers without a rate.
    fn work(&self, rows: u64, rows_per_commit: u32) -> InsertWork {
        let shape = self.shape;
        let deletes = shape.deletes.then(|| rows::deletes(self.dialect, shape.resync_every));
        InsertWork {
            shared: shape.shared,
            setup: Vec::new(),
            maintenance: Vec::new(),
            price: if shape.profile.is_2021() { PriceKind::Correlated } else { PriceKind::Whole },
            writes: Writes {
                insert_sql: rows::insert_sql(),
                rows,
                rows_per_commit,
                rows_per_second: None,
                pacing: shape.pacing,
                queue: if shape.profile.is_2021() { QUEUES.0 } else { QUEUES.1 },
                deletes,
            },
            indexes: Vec::new(),
            indexes_one_by_one: Vec::new(),
            indexed_rows: 0,
            queries: None,
            observe: rows::observe(self.dialect),
            size: rows::size(self.dialect),
            limit_seconds: None,
        }
    }

    /// The time limit, in seconds, of a step with this planned length.
    fn limit(&self, planned_seconds: f64) -> Option<f64> {
        self.shape.step_limit.map(|times| times * planned_seconds)
    }

    /// In 2021, MySQL carried its maintenance debt into the first query step. Postgres was vacuumed
    /// before it, and twice at the start of each later one.
    fn maintenance(&self, index: usize) -> Vec<Maintenance> {
        if !self.shape.profile.is_2021() || self.dialect != Dialect::Postgres {
            return Vec::new();
        }
        let sql = format!("VACUUM (VERBOSE) {}", rows::TABLE);
        let pause_seconds = 5.0 * self.workload.settle_scale;
        let beside = Maintenance { sql: sql.clone(), wait: false, pause_seconds };
        match index {
            0 => vec![Maintenance { sql, wait: true, pause_seconds: 0.0 }],
            _ => vec![beside.clone(), beside],
        }
    }

    /// Partitions for all rows that will ever be inserted into a table.
    fn partitioning(&self) -> Partitioning {
        let shape = self.shape;
        let clients = u64::from(self.workload.clients);
        let written = (shape.i1_rows + shape.i2_rows) * clients;
        let rates: u64 = shape.query_steps.iter().map(|step| u64::from(step.rows_per_second)).sum();
        let queried = (rates as f64 * shape.query_seconds) as u64 * clients;
        let all = self.loaded_rows() + written + SPARE_ROWS + queried;
        let parts = shape.partitions.max(1);
        let rows = all as f64 / f64::from(parts) / self.tables() as f64;
        Partitioning { parts, rows: rows.round() as u64 }
    }
}

/// A step of writers without queries.
fn write_step(name: &str, seconds: f64, detail: String, work: InsertWork) -> Step {
    Step {
        seconds,
        detail,
        makes: work.loads().then_some(Prerequisite::Table),
        needs: work.setup.is_empty().then_some(Prerequisite::Table),
        turns: StepTurns::Processes,
        ..Step::new(name, Group::Load, RateUnit::RowsInserted, work)
    }
}

/// The name of a step: `q100.1` in 2021, with the suffix of January's reports; `qr100.L1` since.
fn step_name(shape: &InsertShape, index: usize, step: QueryStep) -> String {
    let rate = step.rows_per_second;
    if shape.profile == Profile::Y2026 {
        let kind = match step.kind {
            QueryKind::Range => "qr",
            QueryKind::Point => "qp",
        };
        return format!("{kind}{rate}.L{}", index + 1);
    }
    let before = &shape.query_steps[..index];
    let twin = before.iter().filter(|other| other.rows_per_second == rate).count() + 1;
    format!("q{rate}.{twin}")
}

// Settings `key=value` of the Insert Benchmark.

/// Most rows of any step or table.
const MOST_ROWS: u64 = 100_000_000_000;

own_settings! { InsertShape:
    "profile", |_, shape, value| take_profile(shape, profile(value)?);
    "rows", |workload, _, value| workload.rows = count(value, 1, MOST_ROWS)?;
    "i1_rows", |_, shape, value| shape.i1_rows = count(value, 1, MOST_ROWS)?;
    "i2_rows", |_, shape, value| shape.i2_rows = count(value, 1, MOST_ROWS)?;
    "more_rows", |_, shape, value|
        share_rows(shape, count(value, 5, MOST_ROWS)?);
    "clients", |workload, _, value| workload.set_counts(client_counts(value, 1000)?);
    "tables", |_, shape, value| shape.tables = Some(count(value, 1, 1000)? as u32);
    "shared", |_, shape, value| shape.shared = yes_or_no(value)?;
    "deletes", |_, shape, value| shape.deletes = yes_or_no(value)?;
    "partitions", |_, shape, value|
        shape.partitions = count(value, 1, 1000)? as u32;
    "secondary_indexes", |_, shape, value|
        shape.secondary_indexes = count(value, 0, 3)? as u32;
    "query_seconds", |_, shape, value| shape.query_seconds = seconds(value)?;
    "query_steps", |_, shape, value| shape.query_steps = query_steps(value)?;
    "query_threads", |_, shape, value|
        shape.query_threads = count(value, 1, 1000)? as u32;
    "i0_commit", |_, shape, value| shape.rows_per_commit.i0 = commit(value)?;
    "i1_commit", |_, shape, value| shape.rows_per_commit.i1 = commit(value)?;
    "i2_commit", |_, shape, value| shape.rows_per_commit.i2 = commit(value)?;
    "query_commit", |_, shape, value| shape.rows_per_commit.query = commit(value)?;
    "resync_every", |_, shape, value|
        shape.resync_every = count(value, 0, 1_000_000_000)? as u32;
    "pacing", |_, shape, value| shape.pacing = pacing(value)?;
    "memory_limit", |_, shape, value| shape.memory_limit = memory_limit(value)?;
    "step_limit", |_, shape, value| shape.step_limit = step_limit(value)?;
}

const SETTINGS: Settings<InsertShape> = Settings {
    benchmark: "insert",
    own: OWN,
    common: &[
        ("settle_scale", "settle_scale"),
        ("cache", "cache"),
        ("placement", "placement"),
        ("idle", "idle"),
    ],
    others: false,
    open: &[],
};

/// Changes a workload of this benchmark by one `key=value`. On an error, nothing changes.
///
/// # Errors
///
/// See [`SetError`].
pub fn set(workload: &mut Workload, assignment: &str) -> Result<(), SetError> {
    SETTINGS.set(workload, assignment)
}

fn profile(value: &str) -> Result<Profile, String> {
    choice(value, &Profile::ALL.map(|profile| (profile.name(), profile)))
}

fn pacing(value: &str) -> Result<Pacing, String> {
    choice(value, &[("open", Pacing::Open), ("compat", Pacing::Compat)])
}

/// Query steps separated by commas.
fn query_steps(value: &str) -> Result<Vec<QueryStep>, String> {
    value.split(',').map(|word| QueryStep::try_from(word.trim().to_owned())).collect()
}

/// Rows per commit. More would not fit into a statement that every server accepts.
fn commit(value: &str) -> Result<u32, String> {
    Ok(count(value, 1, 10_000)? as u32)
}

/// A time limit as a multiple of the planned length, or none. Below 1.5, a step that keeps its rate
/// could reach it.
fn step_limit(value: &str) -> Result<Option<f64>, String> {
    if value == "none" {
        return Ok(None);
    }
    let why = |_| "write a number from 1.5 to 1000, times the planned length, or none".to_owned();
    number(value, 1.5, 1000.0).map(Some).map_err(why)
}

/// The parameters of this benchmark; `None` for another workload.
pub fn shape(workload: &Workload) -> Option<&InsertShape> {
    OwnParameters::of(&workload.shape)
}

/// Computes the number of tables from other settings.
pub fn finish(workload: &mut Workload) {
    let Some(shape) = shape(workload) else { return };
    workload.tables = shape.tables.unwrap_or(if shape.shared { 1 } else { workload.clients });
}

// Named shapes of the Insert Benchmark, and the defaults of its profiles.

/// A named shape.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct InsertPreset {
    /// The name after `--preset`.
    name: String,
    /// Other names of the same shape.
    #[serde(default)]
    aliases: Vec<String>,
    /// Rows per client in l.i0.
    rows: u64,
    /// Rows per client in l.i1 and l.i2 together: all in l.i1 in 2021, four fifths since.
    more_rows: u64,
    /// Seconds of a query step.
    query_seconds: f64,
    /// Concurrent clients.
    clients: u32,
    /// Share of the published wait between writing and querying.
    settle_scale: f64,
    /// Bytes of the DBMS's own cache; `None` derives them from the data.
    cache_bytes: Option<u64>,
}

/// Default time limit of a step as a multiple of its planned length. A query step that takes more
/// than 1.05 times as long has already missed its write rate.
const STEP_LIMIT: f64 = 4.0;

/// All shapes in the order of lists.
fn presets() -> &'static [InsertPreset] {
    static PRESETS: LazyLock<Vec<InsertPreset>> =
        LazyLock::new(|| workload::presets(include_str!("presets.toml")).unwrap_or_default());
    &PRESETS
}

/// The workload of a preset in the newest profile.
///
/// # Errors
///
/// No such preset; the text lists the valid ones.
pub fn workload(preset: &str) -> Result<Workload, String> {
    let found = workload::named(presets(), |known| (&known.name, &known.aliases), preset)?;
    let mut shape = InsertShape {
        profile: Profile::Y2026,
        tables: None,
        i1_rows: 0,
        i2_rows: 0,
        query_seconds: found.query_seconds,
        query_steps: Vec::new(),
        deletes: true,
        shared: false,
        partitions: 1,
        secondary_indexes: 3,
        rows_per_commit: RowsPerCommit { i0: 100, i1: 50, i2: 5, query: 50 },
        resync_every: 1000,
        query_threads: 1,
        pacing: Pacing::Open,
        memory_limit: None,
        step_limit: Some(STEP_LIMIT),
    };
    take_profile(&mut shape, Profile::Y2026);
    share_rows(&mut shape, found.more_rows);
    Ok(Workload {
        tables: found.clients,
        rows: found.rows,
        clients: found.clients,
        read_seconds: found.query_seconds,
        write_seconds: found.query_seconds,
        settle_scale: found.settle_scale,
        cache_bytes: found.cache_bytes,
        ..Workload::plain(BenchmarkParameters::Insert(shape))
    })
}

/// Splits the rows after l.i0 by the rule of the profile.
fn share_rows(shape: &mut InsertShape, rows: u64) {
    shape.i2_rows = if shape.profile.is_2021() { 0 } else { rows / 5 };
    shape.i1_rows = rows - shape.i2_rows;
}

/// Sets all that a profile decides: steps, deletes, and the split of the rows.
fn take_profile(shape: &mut InsertShape, profile: Profile) {
    let rows = shape.i1_rows + shape.i2_rows;
    shape.profile = profile;
    shape.deletes = !profile.is_2021();
    let step = |rows_per_second, kind| QueryStep { rows_per_second, kind };
    let (range, point) = (QueryKind::Range, QueryKind::Point);
    shape.query_steps = match profile {
        Profile::Y2021 => [100, 500, 1000].map(|rate| step(rate, range)).to_vec(),
        Profile::Y2021Jan => {
            let rates = [100, 200, 400, 600, 800, 1000];
            rates.iter().flat_map(|rate| [step(*rate, range), step(*rate, range)]).collect()
        }
        Profile::Y2026 => {
            let rates = [100, 500, 1000];
            rates.iter().flat_map(|rate| [step(*rate, range), step(*rate, point)]).collect()
        }
    };
    share_rows(shape, rows);
}

// Refuses Insert Benchmark workloads that cannot be measured, before anything starts.

/// Refuses a workload that cannot be measured on a target of `dialect`.
///
/// # Errors
///
/// Names the settings and a way out.
pub fn check(workload: &Workload, dialect: Dialect) -> Result<(), String> {
    let Some(shape) = shape(workload) else { return Ok(()) };
    let faults = [
        tables(workload, shape),
        commits(workload, shape),
        steps(shape),
        check_pacing(workload, shape),
        memory(workload, shape),
        of_dialect(workload, shape, dialect),
    ];
    match faults.into_iter().flatten().next() {
        Some(fault) => Err(format!("run the Insert Benchmark: {fault}")),
        None => Ok(()),
    }
}

fn tables(workload: &Workload, shape: &InsertShape) -> Option<String> {
    let (tables, clients) = (workload.tables, workload.clients);
    if shape.shared && shape.deletes {
        return Some(
            "deletes need a table for each client: with shared=yes several clients would delete \
             the same rows; use deletes=no or shared=no"
                .to_owned(),
        );
    }
    if shape.shared && tables != 1 {
        return Some(format!(
            "a shared table is one table, not {tables}; leave tables out or use shared=no"
        ));
    }
    if !shape.shared && clients > tables {
        return Some(format!(
            "{clients} clients need a table each, not {tables} tables; use tables={clients}, or \
             shared=yes deletes=no for one table"
        ));
    }
    if !shape.shared && clients < tables {
        return Some(format!(
            "{tables} tables for {clients} clients: a table without a client stays empty; leave \
             tables out"
        ));
    }
    None
}

fn commits(workload: &Workload, shape: &InsertShape) -> Option<String> {
    let commit = &shape.rows_per_commit;
    let mut steps = vec![
        ("i0_commit", commit.i0, "rows", workload.rows),
        ("i1_commit", commit.i1, "i1_rows", shape.i1_rows),
    ];
    if !shape.profile.is_2021() {
        steps.push(("i2_commit", commit.i2, "i2_rows", shape.i2_rows));
    }
    steps.into_iter().find(|(_, commit, _, rows)| u64::from(*commit) > *rows).map(
        |(key, commit, rows_key, rows)| {
            format!(
                "{key}={commit} is more than all rows of that step ({rows_key}={rows}); use at \
                 most {rows}"
            )
        },
    )
}

fn steps(shape: &InsertShape) -> Option<String> {
    if shape.query_seconds.is_nan() || shape.query_seconds <= 0.0 {
        return Some("query_seconds must be above 0".to_owned());
    }
    let point =
        |step: &&rqps_model::insert::QueryStep| step.kind == rqps_model::insert::QueryKind::Point;
    match shape.query_steps.iter().find(point) {
        Some(step) if shape.profile.is_2021() => {
            Some(format!("{step}: the 2021 profiles have no point queries; use profile=2026"))
        }
        _ => None,
    }
}

fn check_pacing(workload: &Workload, shape: &InsertShape) -> Option<String> {
    if let Pace::Open { events_per_second } = workload.pace {
        return Some(format!(
            "its steps set their own rates, so --rate {events_per_second} has no place; use --set \
             query_steps={events_per_second:.0}:range"
        ));
    }
    let commit = shape.rows_per_commit.query;
    let short = shape
        .query_steps
        .iter()
        .find(|step| shape.query_seconds * f64::from(step.rows_per_second) < 1.0);
    short.map(|step| {
        format!(
            "{step}: the rate is below one row in {} s ({commit} rows per \
                 commit)",
            shape.query_seconds
        )
    })
}

fn memory(workload: &Workload, shape: &InsertShape) -> Option<String> {
    let (limit, cache) = (shape.memory_limit?, workload.cache_bytes?);
    (cache >= limit).then(|| {
        format!(
            "a cache of {} MiB does not fit into memory_limit ({} MiB), which covers the whole \
             server and the page cache of its files; use a smaller cache, or leave it out for at \
             most 60 % of the limit",
            cache >> 20,
            limit >> 20
        )
    })
}

fn of_dialect(workload: &Workload, shape: &InsertShape, dialect: Dialect) -> Option<String> {
    match dialect {
        Dialect::Sqlite | Dialect::Fake if shape.memory_limit.is_some() => Some(
            "SQLite runs inside the client, so its memory alone cannot be limited; leave \
             memory_limit out, or use --set cache=SIZE"
                .to_owned(),
        ),
        Dialect::Sqlite | Dialect::Fake if shape.partitions > 1 => {
            Some("SQLite has no partitions; use partitions=1".to_owned())
        }
        _ if u64::from(shape.partitions) > workload.rows => {
            Some(format!("{} partitions for {} rows", shape.partitions, workload.rows))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_have_the_published_shapes() {
        assert_eq!(presets().len(), 11);
        let check = |name: &str, rows: (u64, u64), clients: u32, seconds: f64| {
            let found = workload::named(presets(), |known| (&known.name, &known.aliases), name);
            let found = found.unwrap();
            assert_eq!((found.rows, found.more_rows), rows, "{name}");
            assert_eq!((found.clients, found.query_seconds), (clients, seconds), "{name}");
        };
        check("quick", (200_000, 100_000), 1, 2.0);
        check("20m", (20_000_000, 20_000_000), 1, 7200.0);
        check("pn53", (30_000_000, 50_000_000), 1, 1800.0);
        check("c48r128-io-20u", (200_000_000, 5_000_000), 20, 1800.0);
        assert_eq!(workload("cached").unwrap().cache_bytes, Some(10 << 30));
        assert_eq!(workload("c8r32-4u").unwrap().cache_bytes, None);
    }
}
