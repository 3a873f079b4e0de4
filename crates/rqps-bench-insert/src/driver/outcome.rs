//! Adds up the counts of a step's workers.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use super::prepare::{self, Worker};
use super::workers::Notes;
use crate::driver::meter::{RoleKind, WorkerCpu, WorkerRecorder, buckets, roles};
use rqps_driver::Stop;
use rqps_driver::clock::SECOND;
use rqps_driver::control_channel::ControlChannel;
use rqps_driver::request::{DriverRequest, Met, StepRequest};
use rqps_model::insert::InsertWork;
use rqps_model::metric::Metric;
use rqps_model::run::{OpenOutcome, Outcome, Role};

/// If queries return a smaller share of the expected rows, the data are wrong. Gaps between keys
/// and ranges at the end of an index cost a few per cent.
const FEW_ROWS: f64 = 0.5;

/// Counts of a worker at its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ended {
    pub(crate) notes: Notes,
    /// Bytes of replies to queries.
    pub(crate) bytes: u64,
    pub(crate) cpu: WorkerCpu,
}

/// Takes the counts from a worker.
pub(crate) fn ended(worker: Worker, cpu: WorkerCpu) -> Ended {
    let mut ended = Ended { cpu, ..Ended::default() };
    match worker {
        Worker::Writer(writer, _) => ended.notes = writer.notes,
        Worker::Querier(querier) => {
            ended.notes.errors = querier.errors;
            ended.bytes = querier.bytes;
        }
    }
    ended
}

/// The role that the rate of a step counts.
pub(crate) fn main_role(work: &InsertWork) -> RoleKind {
    if work.queries.is_some() { RoleKind::Query } else { RoleKind::Insert }
}

/// The end of a window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowEnd {
    /// Length of the window, nanoseconds.
    pub(crate) window_ns: u64,
    /// True if the step reached its limit.
    pub(crate) limited: bool,
}

impl WindowEnd {
    /// The end for the clients of all hosts: that of the last writer of all, so that rates add up.
    pub(crate) fn of_all_hosts<W: Write>(
        self,
        request: &DriverRequest,
        task: &StepRequest<InsertWork>,
        control: &mut ControlChannel<W>,
    ) -> Result<WindowEnd, Stop> {
        if !request.is_shared(task.clients) {
            return Ok(self);
        }
        let window_ns = control.meet(self.window_ns)?.largest;
        let limited = control.meet(self.limited.into())?.largest > 0;
        Ok(WindowEnd { window_ns, limited })
    }
}

/// Makes one driver tell the figures that do not add up over hosts: that of the first client. Cuts
/// the step if it reached its limit.
pub(crate) fn speak_for_all<W: Write>(
    outcome: &mut Outcome,
    (request, task): (&DriverRequest, &StepRequest<InsertWork>),
    limited: bool,
    control: &mut ControlChannel<W>,
) -> Result<(), Stop> {
    let is_shared = request.is_shared(task.clients);
    let mut meet =
        |number: u64| if is_shared { control.meet(number) } else { Ok(Met::alone(number)) };
    let role = |kind: RoleKind| outcome.roles.get(kind.name());
    if limited {
        let inserted = meet(role(RoleKind::Insert).map_or(0, |role| role.rows))?.sum;
        outcome.cut = cut(&task.work, inserted, request.all_clients(task.clients))
            .filter(|_| request.is_first());
    }
    if !is_shared {
        return Ok(());
    }
    let query = role(RoleKind::Query).map(|role| (role.operations, role.rows));
    if let Some((operations, rows)) = query {
        let (operations, rows) = (meet(operations)?.sum, meet(rows)?.sum);
        outcome.extra.remove(&Metric::RowsPerQuery);
        if operations > 0 && request.is_first() {
            outcome.extra.insert(Metric::RowsPerQuery, rows as f64 / operations as f64);
        }
    }
    // Of times, the longest of all hosts counts. The factor is the nanoseconds of the unit.
    let mut longest = |metric: Metric, unit_ns: f64| -> Result<(), Stop> {
        if let Some(value) = outcome.extra.remove(&metric) {
            let longest = meet((value * unit_ns).round() as u64)?.largest;
            if request.is_first() {
                outcome.extra.insert(metric, longest as f64 / unit_ns);
            }
        }
        Ok(())
    };
    longest(Metric::IndexSeconds, 1e9)?;
    longest(Metric::MinKeyQuery, 1e6)
}

/// The outcome of a window of `window_ns`.
pub(crate) fn outcome(
    (request, task): (&DriverRequest, &StepRequest<InsertWork>),
    recorders: &[Arc<WorkerRecorder>],
    ended: &[Ended],
    window_ns: u64,
) -> Outcome {
    let work = &task.work;
    let seconds = window_ns as f64 / SECOND;
    let cpu: Vec<WorkerCpu> = ended.iter().map(|ended| ended.cpu).collect();
    let target = |role| match role {
        RoleKind::Query => None,
        _ => prepare::batches_per_second(work).map(|rate| rate * f64::from(task.clients)),
    };
    let roles = roles(recorders, &cpu, target);
    let of = |role: RoleKind| roles.get(role.name());
    let operations = |role| of(role).map_or(0, |role| role.operations);
    let rows = |role| of(role).map_or(0, |role| role.rows);
    let (inserts, deletes, queries) = (RoleKind::Insert, RoleKind::Delete, RoleKind::Query);
    let main = main_role(work);
    let counted = if main == queries {
        operations(queries)
    } else {
        // Of several hosts, the first counts the rows of all tables.
        let indexes = !work.indexes.is_empty() && request.is_first();
        rows(inserts) + if indexes { work.indexed_rows } else { 0 }
    };
    let mut outcome = Outcome {
        seconds,
        events: operations(main),
        statements: counted,
        reads: operations(queries),
        writes: operations(inserts) + operations(deletes),
        rows: rows(queries),
        affected: rows(inserts) + rows(deletes),
        bytes: ended.iter().map(|ended| ended.bytes).sum(),
        latency: of(main).map(|role| role.latency.clone()).unwrap_or_default(),
        service: of(main).and_then(|role| role.service.clone()),
        client_busiest: cpu.iter().map(|cpu| cpu.share).fold(0.0, f64::max),
        ..Outcome::default()
    };
    for ended in ended {
        for (code, count) in &ended.notes.errors {
            *outcome.errors.entry(code.clone()).or_insert(0) += count;
        }
    }
    if let Some(rate) = prepare::batches_per_second(work) {
        let behind = ended.iter().map(|ended| ended.notes.behind_ns).max().unwrap_or(0);
        outcome.open = Some(OpenOutcome {
            due: (rate * f64::from(task.clients) * seconds).round() as u64,
            behind_seconds_max: behind as f64 / SECOND,
        });
    }
    outcome.extra = extra(work, &roles, ended, seconds);
    outcome.notes = notes(work, &roles, ended);
    outcome.roles = roles;
    outcome.buckets = buckets(recorders);
    outcome
}

/// Metrics of this benchmark that only the driver knows.
fn extra(
    work: &InsertWork,
    roles: &BTreeMap<String, Role>,
    ended: &[Ended],
    seconds: f64,
) -> BTreeMap<Metric, f64> {
    let mut extra = BTreeMap::new();
    let per_second = |role: RoleKind| {
        let rows = roles.get(role.name()).map_or(0, |role| role.rows);
        (seconds > 0.0 && rows > 0).then(|| rows as f64 / seconds)
    };
    if work.queries.is_some() {
        extra.extend(per_second(RoleKind::Insert).map(|rate| (Metric::InsertRate, rate)));
    }
    extra.extend(per_second(RoleKind::Delete).map(|rate| (Metric::DeleteRate, rate)));
    let longest = |pick: fn(&Notes) -> u64| ended.iter().map(|ended| pick(&ended.notes)).max();
    if !work.indexes.is_empty() {
        let index = longest(|notes| notes.index_ns).unwrap_or(0);
        extra.insert(Metric::IndexSeconds, index as f64 / SECOND);
    }
    if let Some(role) = roles.get(RoleKind::Query.name()).filter(|role| role.operations > 0) {
        extra.insert(Metric::RowsPerQuery, role.rows as f64 / role.operations as f64);
    }
    if work.writes.deletes.is_some() {
        let min_query = longest(|notes| notes.resync_longest_ns).unwrap_or(0);
        extra.insert(Metric::MinKeyQuery, min_query as f64 / 1e6);
    }
    extra
}

/// Says why a step of so many clients ended before all rows were in: its limit, and its progress.
fn cut(work: &InsertWork, inserted: u64, clients: u32) -> Option<String> {
    let of_client = prepare::batches(work) * u64::from(work.writes.rows_per_commit.max(1));
    let limit = work.limit_seconds?;
    let wanted = of_client * u64::from(clients);
    let indexes = if work.indexes.is_empty() { "" } else { ", no indexes made" };
    Some(format!(
        "the step reached its time limit of {limit:.0} s (step_limit): {inserted} of {wanted} rows \
         inserted{indexes}"
    ))
}

fn notes(work: &InsertWork, roles: &BTreeMap<String, Role>, ended: &[Ended]) -> Vec<String> {
    let mut notes = Vec::new();
    let short: u64 = ended.iter().map(|ended| ended.notes.short_deletes).sum();
    if short > 0 {
        notes.push(format!("deletes that found too few rows: {short}"));
    }
    if let (Some(queries), Some(role)) = (&work.queries, roles.get(RoleKind::Query.name()))
        && (role.rows as f64)
            < FEW_ROWS * (role.operations * u64::from(queries.rows_per_query)) as f64
    {
        notes.push(format!(
            "queries returned {:.3} rows on average, {} expected",
            role.rows as f64 / role.operations.max(1) as f64,
            queries.rows_per_query
        ));
    }
    notes
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rqps_driver::request::{FileLoad, RequestBody};
    use rqps_model::benchmark::{Pace, Placement, RateUnit};
    use rqps_model::insert::{Deletes, Pacing, PriceKind, Queries, Writes};

    /// A query step with deletes.
    pub(crate) fn task(clients: u32) -> StepRequest<InsertWork> {
        let deletes = Deletes { sql: String::new(), min_sql: String::new(), resync_every: 0 };
        let work = InsertWork {
            shared: false,
            setup: Vec::new(),
            maintenance: Vec::new(),
            price: PriceKind::Whole,
            writes: Writes {
                insert_sql: String::new(),
                rows: 1000,
                rows_per_commit: 50,
                rows_per_second: Some(1000),
                pacing: Pacing::Open,
                queue: 8,
                deletes: Some(deletes),
            },
            indexes: Vec::new(),
            indexes_one_by_one: Vec::new(),
            indexed_rows: 0,
            queries: Some(Queries {
                workers: 1,
                kinds: Vec::new(),
                rows_per_query: 10,
                max_sql: None,
            }),
            observe: Vec::new(),
            size: Vec::new(),
            limit_seconds: None,
        };
        StepRequest {
            work,
            clients,
            warmup_seconds: 0.0,
            seconds: 1.0,
            pace: Pace::Closed,
            rate: RateUnit::RowsInserted,
            placement: Placement::Os,
            server_pid: None,
            plans: false,
            storage_engine: None,
            cache: None,
        }
    }

    /// Each of three clients has an inserter, a deleter and a query worker.
    #[test]
    fn the_busiest_of_all_workers_of_all_clients_counts() {
        let task = task(3);
        let recorders = prepare::recorders(&task.work, &prepare::posts(&task, 0));
        assert_eq!(recorders.len(), 9);
        for busy in 0..9 {
            let mut ended = vec![Ended::default(); 9];
            for (place, ended) in ended.iter_mut().enumerate() {
                let share = if place == busy { 0.93 } else { 0.1 };
                ended.cpu = WorkerCpu { used_ns: (share * 1e9) as u64, share };
            }
            let body = RequestBody::LoadFiles(FileLoad::default());
            let request = DriverRequest::fake(body);
            let outcome = outcome((&request, &task), &recorders, &ended, 1_000_000_000);
            assert_eq!(outcome.client_busiest, 0.93, "worker {busy}");
            let role = recorders[busy].role.name();
            for (name, of_role) in &outcome.roles {
                assert_eq!(of_role.busiest, if name == role { 0.93 } else { 0.1 }, "{name}");
            }
        }
    }
}
