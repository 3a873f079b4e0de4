//! Measures points of a curve: runs each query once for recall, then clients in a window.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use super::LabChannel;
use super::searcher::{AnswerLog, Encoded, Encoding, Logging, Score, Searcher, score};
use super::sql::{Sql, TABLE};
use crate::data::truth::Truth;
use crate::driver::{VectorContext, give_room, numbers, shift};
use rqps_driver::client::Counts;
use rqps_driver::clock::Clock;
use rqps_driver::connection::{Connection, Connector};
use rqps_driver::control_channel::DriverEvent;
use rqps_driver::request::StepRequest;
use rqps_driver::worker_pool::{Spent, WorkerHandle, WorkerPool, WorkerSpec};
use rqps_driver::{Stop, step};
use rqps_model::benchmark::RateUnit;
use rqps_model::dialect::Dialect;
use rqps_model::metric::Metric;
use rqps_model::run::Outcome;
use rqps_model::vector::{Filter, Present, Search};

/// Time between two progress messages while answers are collected.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// Measures one point.
pub(super) fn search(context: &mut VectorContext, search: &Search) -> Result<Outcome, Stop> {
    let ready = Ready::new(context, search)?;
    if context.request.counted_events.is_some() {
        // Recall is that of the timed runs, and running every query takes minutes under valgrind.
        return ready.window(context, search);
    }
    let cold = if search.cold { Some(ready.first_pass(context)?) } else { None };
    let answers = ready.ask_all(context, search)?;
    let score = score(&context.data, &ready.truth, &answers);
    let mut outcome = ready.window(context, search)?;
    put_score(&mut outcome, &score);
    if let Some((first, whole)) = cold {
        outcome.extra.insert(Metric::FirstQuery, first.as_secs_f64() * 1e3);
        outcome.extra.insert(Metric::WarmSeconds, whole.as_secs_f64());
    }
    Ok(outcome)
}

/// Sends the queries' vectors with a statement that ignores them: the cost of a query without its
/// search.
pub(super) fn payload(context: &mut VectorContext, search: &Search) -> Result<Outcome, Stop> {
    let mut ready = Ready::new(context, search)?;
    ready.asking.send_payload(&context.sql());
    ready.plan.clone_from(&ready.asking.statement);
    ready.window(context, search)
}

/// The part of a driver that shares a search with that of the first client, on another host. Waits
/// until that one has prepared the search and checked its answers; then measures the same window.
pub(super) fn follow(
    context: &mut VectorContext,
    search: &Search,
    is_payload: bool,
) -> Result<Outcome, Stop> {
    let ef = context.control.meet(0)?.largest;
    let search = Search { ef: ef as u32, ..search.clone() };
    let mut asking = Asking::of(context, &search)?;
    if is_payload {
        asking.send_payload(&context.sql());
    }
    let beside = Beside { clock: Clock::real(), writer: None, log: None };
    asking.window_beside(context, &search, beside)
}

/// Sets the metrics of the recall pass.
pub(super) fn put_score(outcome: &mut Outcome, score: &Score) {
    outcome.extra.insert(Metric::Recall, score.recall);
    outcome.extra.insert(Metric::RecallIds, score.recall_ids);
    outcome.extra.insert(Metric::RowsPerK, score.rows_per_k);
    let words = format!(
        "{} queries, standard deviation of a query's recall {:.4}",
        score.queries, score.deviation
    );
    outcome.facts.insert("recall".to_owned(), words);
    if score.duplicates > 0 {
        outcome
            .notes
            .push(format!("answers with a row twice: {} (it counts once)", score.duplicates));
    }
}

/// Work beside the queries of a window.
pub(super) struct Beside {
    /// The common clock.
    pub(super) clock: Clock,
    /// A background thread.
    pub(super) writer: Option<WorkerSpec<Counts>>,
    /// If set, clients keep this number of answers and hand them over.
    pub(super) log: Option<(Clock, usize, Sender<AnswerLog>)>,
}

/// What the clients of a search send.
pub(super) struct Asking {
    pub(super) connector: Connector,
    statement: String,
    types: Vec<rqps_wire::ValueType>,
    pub(super) queries: Arc<Encoded>,
}

/// Everything prepared before the first counted query.
pub(super) struct Ready {
    pub(super) asking: Asking,
    pub(super) truth: Truth,
    plan: String,
    /// False if the planner does not use the index.
    uses_index: bool,
    facts: BTreeMap<String, String>,
}

impl Ready {
    /// Prepares exact neighbours, encoded queries, settings, and the plan, which must use the
    /// index: without it the result is no point of a curve. With a large ef, Postgres may plan an
    /// exact scan, which is slow and has recall 1. With a filter a scan may be the better plan; it
    /// counts then, because users get it.
    pub(super) fn new(context: &VectorContext, search: &Search) -> Result<Ready, Stop> {
        let ready = Ready::with_any_plan(context, search)?;
        if ready.uses_index || search.filter != Filter::None {
            return Ok(ready);
        }
        Err(format!(
            "failed to search: the query does not use the index, so it is not a point of the \
             curve. Its plan:\n{}\nhint: with a large ef_search the planner estimates an exact \
             scan as cheaper; with few rows it is cheaper",
            ready.plan
        )
        .into())
    }

    /// Prepares the same with any plan.
    fn with_any_plan(context: &VectorContext, search: &Search) -> Result<Ready, Stop> {
        let (sql, filter) = (context.sql(), search.filter);
        let truth = truth(context, search)?;
        if filter == Filter::None && search.rows == Present::All {
            context.data.check_given(&truth).map_err(|error| format!("failed to {error}"))?;
        }
        check_ef(&sql, search)?;
        let asking = Asking::of(context, search)?;
        let mut session = asking.connector.open(0)?;
        let mut facts = BTreeMap::new();
        if let Some(setting) = give_room(&sql, &mut session)? {
            facts.insert("mhnsw_max_cache_size".to_owned(), setting);
        }
        if context.request.dialect == Dialect::Mysql {
            // The graph cache's state after earlier widths would change the speed of this one.
            if let Err(error) = session.simple(&format!("FLUSH TABLES {TABLE}")) {
                let words =
                    format!("failed, so earlier search widths may slow this one down: {error}");
                facts.insert("FLUSH TABLES".to_owned(), words);
            }
        }
        let filters = asking.queries.filters.as_deref();
        let (plan, uses_index) = explain(context, &sql, search, filters, &mut session)?;
        facts.insert("settings".to_owned(), sql.settings(search).join("; "));
        Ok(Ready { asking, truth, plan, uses_index, facts })
    }

    /// Runs the first query on a freshly started server, and all queries once, with their times.
    fn first_pass(&self, context: &mut VectorContext) -> Result<(Duration, Duration), Stop> {
        let Asking { connector, queries, .. } = &self.asking;
        let mut session = connector.open(0)?;
        let statement = self.asking.prepare(&mut session)?;
        let mut ids = Vec::with_capacity(context.k());
        let start = Instant::now();
        let mut first = Duration::ZERO;
        let mut said = start;
        for query in 0..queries.len() {
            queries
                .ask(query, statement, &mut session, &mut ids)
                .map_err(|error| format!("failed to ask query {query}: {error}"))?;
            if query == 0 {
                first = start.elapsed();
            }
            if said.elapsed() > SIGN_OF_LIFE {
                said = Instant::now();
                context.control.send(&DriverEvent::Warming)?;
            }
        }
        Ok((first, start.elapsed()))
    }

    /// Runs each query once on several connections: k row numbers each, `u32::MAX` for a missing
    /// one.
    pub(super) fn ask_all(
        &self,
        context: &mut VectorContext,
        search: &Search,
    ) -> Result<Vec<u32>, Stop> {
        let k = context.k();
        let cpus = thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let sessions = cpus.max(search.clients as usize).min(64);
        let queries = self.asking.queries.len();
        let share = queries.div_ceil(sessions).max(1);
        let all: Vec<usize> = (0..queries).collect();
        let members =
            all.chunks(share).zip(1..).map(|(part, number)| self.asking.asker(part, number, k));
        let mut pool = WorkerPool::start(Clock::real(), members.collect())?;
        let mut beat = |control: &mut LabChannel| Ok(control.send(&DriverEvent::Warming)?);
        Ok(pool.finish(SIGN_OF_LIFE, &mut beat, context.control)?.concat())
    }

    /// Measures the window, together with the other hosts that share it.
    pub(super) fn window(
        &self,
        context: &mut VectorContext,
        search: &Search,
    ) -> Result<Outcome, Stop> {
        if context.is_shared() {
            context.control.meet(search.ef.into())?;
        }
        let beside = Beside { clock: Clock::real(), writer: None, log: None };
        self.window_beside(context, search, beside)
    }

    /// Measures the window beside a writer.
    pub(super) fn window_beside(
        &self,
        context: &mut VectorContext,
        search: &Search,
        beside: Beside,
    ) -> Result<Outcome, Stop> {
        let mut outcome = self.asking.window_beside(context, search, beside)?;
        self.tell(&mut outcome);
        Ok(outcome)
    }

    /// Records the plan and the settings.
    pub(super) fn tell(&self, outcome: &mut Outcome) {
        outcome.plans.insert("search".to_owned(), self.plan.clone());
        outcome.facts.extend(self.facts.clone());
    }
}

impl Asking {
    fn of(context: &VectorContext, search: &Search) -> Result<Asking, String> {
        let sql = context.sql();
        let filters = context.data.filter_values(search.filter);
        let filters = filters.map_err(|error| format!("failed to {error}"))?;
        let connector = context.connector.also(sql.settings(search));
        let (statement, types) = sql.prepared(search);
        Ok(Asking { connector, statement, types, queries: Arc::new(encode(context, filters)) })
    }

    /// Makes clients send vectors in a statement that ignores them.
    fn send_payload(&mut self, sql: &Sql) {
        (self.statement, self.types) = sql.payload();
    }

    pub(super) fn prepare(&self, session: &mut Connection) -> Result<rqps_wire::Prepared, String> {
        prepare(&self.statement, &self.types, session)
    }

    /// A thread that runs some of the queries.
    fn asker(&self, part: &[usize], number: u32, k: usize) -> WorkerSpec<Vec<u32>> {
        let (connector, queries) = (self.connector.clone(), Arc::clone(&self.queries));
        let (statement, types) = (self.statement.clone(), self.types.clone());
        let part = part.to_vec();
        let main = move |handle: &WorkerHandle<Vec<u32>>| {
            let mut session = connector.open(0)?;
            let statement = prepare(&statement, &types, &mut session)?;
            let mut ids = Vec::with_capacity(k);
            let mut answers = Vec::with_capacity(part.len() * k);
            for query in part {
                queries
                    .ask(query, statement, &mut session, &mut ids)
                    .map_err(|error| format!("failed to ask query {query}: {error}"))?;
                answers.extend((0..k).map(|place| ids.get(place).copied().unwrap_or(u32::MAX)));
            }
            handle.done(answers, Spent::default());
            Ok(())
        };
        let name = format!("asker {number}");
        WorkerSpec::new(name, main)
    }

    fn window_beside(
        &self,
        context: &mut VectorContext,
        search: &Search,
        Beside { clock, writer, log }: Beside,
    ) -> Result<Outcome, Stop> {
        let task = measure_task(context, search);
        let (queries, k) = (Arc::clone(&self.queries), context.k());
        let (statement, types) = (self.statement.clone(), self.types.clone());
        let log = log.map(std::sync::Mutex::new);
        let make: step::MakeEvent<Searcher> = Box::new(move |request, client, session| {
            let prepared = prepare(&statement, &types, session)?;
            let searcher = Searcher::new(prepared, Arc::clone(&queries), request.seed, client, k);
            Ok(match &log {
                None => searcher,
                Some(log) => {
                    let log = log.lock().map_err(|_| "a client died at its start".to_owned())?;
                    let (clock, room, sender) = &*log;
                    searcher.logging(Logging::new(*room, k, clock.clone(), sender.clone()))
                }
            })
        });
        let clients = step::Clients {
            clock,
            beside: writer,
            ..step::Clients::new(self.connector.clone(), make)
        };
        step::measure(context.request, &task, clients, context.control)
    }
}

fn prepare(
    statement: &str,
    types: &[rqps_wire::ValueType],
    session: &mut Connection,
) -> Result<rqps_wire::Prepared, String> {
    session
        .prepare(statement, types)
        .map_err(|error| format!("failed to prepare {statement}: {error}"))
}

fn measure_task(context: &VectorContext, search: &Search) -> StepRequest<()> {
    // Of a shared search, this driver has a part of the clients.
    let clients = if context.is_shared() { context.task.clients } else { search.clients };
    StepRequest { clients, rate: RateUnit::Queries, plans: false, ..context.task.with(()) }
}

fn encode(context: &VectorContext, filters: Option<Vec<i64>>) -> Encoded {
    let form = Encoding::of_query(context.request.dialect, context.work().variant);
    let shift = shift(&context.data, context.work().variant);
    let dims = context.data.test.dims;
    let stride = form.size(dims);
    let mut bytes = Vec::with_capacity(stride * context.data.test.rows());
    let mut values = vec![0.0; dims];
    for query in 0..context.data.test.rows() {
        context.data.test.copy_row(query, &mut values);
        if let Some(shift) = &shift {
            values.iter_mut().zip(shift).for_each(|(value, shift)| *value += shift);
        }
        form.push(&values, &mut bytes);
    }
    Encoded { bytes, stride, filters }
}

/// The exact neighbours among the existing rows.
fn truth(context: &VectorContext, search: &Search) -> Result<Truth, String> {
    let truth = match search.rows {
        // Not cached, because the rows differ each time.
        Present::Found => {
            let mut session = context.connector.open(0)?;
            context.data.truth_among(&ids(&mut session)?, context.k())
        }
        rows => context.data.truth(search.filter, rows, context.k(), context.task.cache.as_deref()),
    };
    truth.map_err(|error| format!("failed to {error}"))
}

/// Row numbers in the table, ascending.
fn ids(session: &mut Connection) -> Result<Vec<u32>, String> {
    let sql = format!("SELECT id FROM {TABLE} ORDER BY id");
    let rows = session.rows(&sql).map_err(|error| format!("failed to run {sql}: {error}"))?;
    let id = |row: Vec<Option<String>>| row.into_iter().next().flatten()?.parse().ok();
    let ids: Option<Vec<u32>> = rows.into_iter().map(id).collect();
    ids.ok_or_else(|| format!("failed to read row numbers ({sql})"))
}

/// Refuses widths that the DBMS does not accept, or that cannot return k rows.
fn check_ef(sql: &Sql, search: &Search) -> Result<(), String> {
    let (ef, k, largest) = (search.ef, sql.work.k, sql.largest_ef());
    if ef == 0 || ef > largest {
        return Err(format!("failed to search: ef_search is {ef} but must be from 1 to {largest}"));
    }
    if sql.dialect == Dialect::Postgres && ef < k {
        return Err(format!(
            "failed to search: ef_search is {ef} but k is {k}; pgvector returns at most ef_search \
             rows, so use at least {k}"
        ));
    }
    Ok(())
}

/// The plan of the first query, and true if it uses the index.
fn explain(
    context: &VectorContext,
    sql: &Sql,
    search: &Search,
    filters: Option<&[i64]>,
    session: &mut Connection,
) -> Result<(String, bool), String> {
    let mut vector = vec![0.0; context.data.test.dims];
    context.data.test.copy_row(0, &mut vector);
    let filter = filters.and_then(|filters| filters.first()).copied().unwrap_or(0);
    let explain = sql.explain(search, &vector, filter);
    let rows =
        session.rows(&explain).map_err(|error| format!("failed to explain the query: {error}"))?;
    Ok(sql.plan(&rows))
}

/// Number of rows in the table.
pub(super) fn count(session: &mut Connection) -> Result<u64, String> {
    let found = numbers(session, &format!("SELECT COUNT(*) FROM {TABLE}"))?;
    Ok(found.first().copied().flatten().unwrap_or(0.0) as u64)
}

// Finds the smallest ef with a required recall by bisection, and measures its cost.

/// One-sided 95 % quantile of the normal distribution, which approximates the mean recall over many
/// queries.
const ONE_SIDED: f64 = 1.645;

/// The result of a width.
enum Tried {
    /// Its recall, which is too low.
    Below(f64),
    /// Its recall suffices.
    Enough,
    /// The planner uses no index at this width: it is too large.
    Scan,
}

/// Finds the smallest ef whose recall is at least `recall` with 95 % confidence over the queries,
/// and measures it.
pub(super) fn target(
    context: &mut VectorContext,
    recall: f64,
    search: &Search,
) -> Result<Outcome, Stop> {
    let least = context.work().k.max(search.ef).max(1);
    let largest = context.sql().largest_ef();
    let mut tried = Vec::new();
    let found = smallest(least, largest, |ef| {
        let search = Search { ef, ..search.clone() };
        let ready = Ready::with_any_plan(context, &search)?;
        if !ready.uses_index {
            tried.push(format!("{ef}: no index"));
            return Ok(Tried::Scan);
        }
        let answers = ready.ask_all(context, &search)?;
        let score = score(&context.data, &ready.truth, &answers);
        tried.push(format!("{ef}: {:.4}", score.recall));
        let enough = lower_bound(&score) >= recall;
        Ok(if enough { Tried::Enough } else { Tried::Below(score.recall) })
    })?;
    let high = found.map_err(|(ef, best)| {
        if ef < least {
            format!("failed to reach a recall of {recall}: no query uses the index")
        } else {
            format!(
                "failed to reach a recall of {recall}: it is {best:.4} at ef_search {ef}, the \
                 widest search that uses the index; build it with a larger m or ef_construction"
            )
        }
    })?;
    let found = Search { ef: high, ..search.clone() };
    let ready = Ready::new(context, &found)?;
    let answers = ready.ask_all(context, &found)?;
    let score = score(&context.data, &ready.truth, &answers);
    let mut outcome = ready.window(context, &found)?;
    put_score(&mut outcome, &score);
    outcome.extra.insert(Metric::EfSearch, f64::from(high));
    outcome.facts.insert("ef_search: recall".to_owned(), tried.join(", "));
    Ok(outcome)
}

/// The smallest sufficient width from `least` to `largest`. The error is the widest usable one and
/// its recall.
fn smallest(
    least: u32,
    largest: u32,
    mut at: impl FnMut(u32) -> Result<Tried, Stop>,
) -> Result<Result<u32, (u32, f64)>, Stop> {
    let (mut below, mut best) = (least - 1, 0.0);
    // Doubling finds an upper bound quickly: for large ef, recall rises slowly.
    let (mut high, mut enough) = (least, false);
    loop {
        match at(high)? {
            Tried::Below(recall) => (below, best) = (high, recall),
            Tried::Enough => enough = true,
            Tried::Scan => {}
        }
        if below < high {
            break;
        }
        if high == largest {
            return Ok(Err((below, best)));
        }
        high = (high * 2).min(largest);
    }
    while high - below > 1 {
        let middle = below + (high - below) / 2;
        match at(middle)? {
            Tried::Below(recall) => (below, best) = (middle, recall),
            Tried::Enough => (high, enough) = (middle, true),
            Tried::Scan => high = middle,
        }
    }
    Ok(if enough { Ok(high) } else { Err((below, best)) })
}

/// Lower bound of the recall with 95 % confidence over the choice of queries.
fn lower_bound(score: &Score) -> f64 {
    score.recall - ONE_SIDED * score.deviation / (score.queries.max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_below_the_mean_by_its_standard_error() {
        let score = Score { recall: 0.96, deviation: 0.1, queries: 100, ..Score::default() };
        assert!((lower_bound(&score) - (0.96 - 0.01645)).abs() < 1e-12);
        let all = Score { recall: 1.0, deviation: 0.0, queries: 10, ..Score::default() };
        assert_eq!(lower_bound(&all), 1.0, "a recall of 1 can be reached");
    }

    /// Searches with a recall of ef / 1000 that use an index below `scans`.
    fn found(wanted: f64, scans: u32) -> Result<u32, (u32, f64)> {
        let result = smallest(10, 1000, |ef| {
            let recall = f64::from(ef) / 1000.0;
            Ok(match ef {
                _ if ef >= scans => Tried::Scan,
                _ if recall >= wanted => Tried::Enough,
                _ => Tried::Below(recall),
            })
        });
        result.unwrap_or_else(|_| panic!("nothing fails here"))
    }

    #[test]
    fn the_smallest_width_is_found() {
        assert_eq!(found(0.5, 2000), Ok(500));
        assert_eq!(found(0.001, 2000), Ok(10), "the least is enough");
        assert_eq!(found(1.0, 2000), Ok(1000));
        assert_eq!(found(1.1, 2000), Err((1000, 1.0)));
    }

    #[test]
    fn a_scan_is_too_wide_and_no_answer() {
        assert_eq!(found(0.5, 600), Ok(500), "640 scans, and 500 does not");
        assert_eq!(found(0.9, 600), Err((599, 0.599)));
        assert_eq!(found(0.5, 10), Err((9, 0.0)));
    }
}
