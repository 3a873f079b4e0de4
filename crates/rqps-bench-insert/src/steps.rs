//! The steps of the Insert Benchmark in order, with the work of their clients.

use crate::schema::{self, Partitioning};
use crate::settings::shape;
use rqps_bench::spec::Counting;
use rqps_driver::workload::{Companions, SelectError, select};
use rqps_model::benchmark::{Group, Phase, Prerequisite, RateUnit, Step, StepTurns, Workload};
use rqps_model::counted::StepCount;
use rqps_model::dialect::Dialect;
use rqps_model::insert::{
    InsertShape, InsertWork, Maintenance, PriceKind, Profile, QueryKind, QueryStep, Writes,
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
                work.setup = schema::create(self.dialect, shape.profile, self.partitioning());
                work.writes.deletes = None;
                format!("insert {rows} rows per client in key order, {per_commit} per commit")
            }
            "l.x" => {
                work.writes.deletes = None;
                work.indexed_rows = self.loaded_rows();
                seconds = work.indexed_rows as f64 / (4.0 * guess);
                let count = shape.secondary_indexes;
                (work.indexes, work.indexes_one_by_one) =
                    schema::indexes(self.dialect, shape.profile, count);
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
            Some(schema::queries(self.dialect, shape.profile, step.kind, shape.query_threads));
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
        let deletes = shape.deletes.then(|| schema::deletes(self.dialect, shape.resync_every));
        InsertWork {
            shared: shape.shared,
            setup: Vec::new(),
            maintenance: Vec::new(),
            price: if shape.profile.is_2021() { PriceKind::Correlated } else { PriceKind::Whole },
            writes: Writes {
                insert_sql: schema::insert_sql(),
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
            observe: schema::observe(self.dialect),
            size: schema::size(self.dialect),
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
        let sql = format!("VACUUM (VERBOSE) {}", schema::TABLE);
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
