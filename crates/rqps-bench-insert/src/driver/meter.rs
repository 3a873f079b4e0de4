//! Records of the workers, which the coordinator reads each second, and their sums by role.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rqps_driver::clock::SECOND;
use rqps_driver::columns_of_roles;
use rqps_driver::event::StepInterval;
use rqps_driver::recorder::{Recorder, Snapshot, histograms};
use rqps_driver::request::DriverRequest;
use rqps_model::run::{CpuTime, Role};

/// Kinds of workers in the order of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RoleKind {
    Insert,
    Delete,
    Query,
}

impl RoleKind {
    pub(crate) const ALL: [RoleKind; 3] = [RoleKind::Insert, RoleKind::Delete, RoleKind::Query];

    /// The name in records and columns.
    pub(crate) fn name(self) -> &'static str {
        match self {
            RoleKind::Insert => "inserts",
            RoleKind::Delete => "deletes",
            RoleKind::Query => "queries",
        }
    }
}

/// Upper bounds of the published response-time classes, nanoseconds; one more class follows.
const BUCKETS_NS: [u64; 9] = [
    256_000, 1_000_000, 4_000_000, 16_000_000, 64_000_000, 256_000_000, 1_000_000_000,
    4_000_000_000, 16_000_000_000,
];

/// The recorder of one worker.
pub(crate) struct WorkerRecorder {
    pub(crate) role: RoleKind,
    buckets: [AtomicU64; BUCKETS_NS.len() + 1],
    recorder: Recorder,
    operations: AtomicU64,
    rows: AtomicU64,
    /// Nanoseconds of all answered queries for the smallest key.
    asked_ns: AtomicU64,
    /// Start of the unanswered query for the smallest key; 0 if there is none.
    asking_from_ns: AtomicU64,
}

impl WorkerRecorder {
    /// `scheduled`: with separate service times, for operations on a schedule.
    pub(crate) fn new(role: RoleKind, scheduled: bool) -> WorkerRecorder {
        WorkerRecorder {
            role,
            buckets: Default::default(),
            recorder: Recorder::new(scheduled),
            operations: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            asked_ns: AtomicU64::new(0),
            asking_from_ns: AtomicU64::new(0),
        }
    }

    /// Records one operation. Only the worker's thread calls this.
    #[inline]
    pub(crate) fn record(&self, latency_ns: u64, service_ns: u64, rows: u64) {
        let operations = self.operations.load(Ordering::Relaxed) + 1;
        self.operations.store(operations, Ordering::Relaxed);
        self.rows.store(self.rows.load(Ordering::Relaxed) + rows, Ordering::Relaxed);
        let bucket = &self.buckets[BUCKETS_NS.partition_point(|bound| *bound < latency_ns)];
        bucket.store(bucket.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.recorder.event(latency_ns, service_ns, operations);
    }

    pub(crate) fn error(&self) {
        self.recorder.error();
    }

    /// A query for the smallest key begins.
    pub(crate) fn ask(&self, now_ns: u64) {
        self.asking_from_ns.store(now_ns, Ordering::Relaxed);
    }

    /// The query was answered.
    pub(crate) fn answered(&self, now_ns: u64) {
        let from = self.asking_from_ns.swap(0, Ordering::Relaxed);
        let before = self.asked_ns.load(Ordering::Relaxed);
        self.asked_ns.store(before + now_ns.saturating_sub(from), Ordering::Relaxed);
    }

    /// Nanoseconds of all queries for the smallest key until now, including an unanswered one.
    fn asked_until(&self, now_ns: u64) -> u64 {
        let from = self.asking_from_ns.load(Ordering::Relaxed);
        let open = if from > 0 { now_ns.saturating_sub(from) } else { 0 };
        self.asked_ns.load(Ordering::Relaxed) + open
    }

    pub(crate) fn operations(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }
}

/// CPU time of one worker at its end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkerCpu {
    pub(crate) used_ns: u64,
    pub(crate) share: f64,
}

/// A role's sums at one moment.
#[derive(Clone, Default)]
struct Sums {
    rows: u64,
    snapshot: Snapshot,
}

/// Turns records into intervals.
pub(crate) struct RoleMeter {
    recorders: Vec<Arc<WorkerRecorder>>,
    main: RoleKind,
    earlier: BTreeMap<RoleKind, Sums>,
    asked_ns: u64,
    from_ns: u64,
    second: u32,
    /// Clients of all hosts, if these workers are those of a share.
    all_clients: Option<u32>,
}

impl RoleMeter {
    /// Begins at the start of the window. `main`: the role that the step's rate counts.
    pub(crate) fn new(
        recorders: &[Arc<WorkerRecorder>],
        main: RoleKind,
        start_ns: u64,
    ) -> RoleMeter {
        let earlier = RoleKind::ALL.into_iter().map(|role| (role, Sums::default())).collect();
        let recorders = recorders.to_vec();
        RoleMeter {
            recorders,
            main,
            earlier,
            asked_ns: 0,
            from_ns: start_ns,
            second: 0,
            all_clients: None,
        }
    }

    /// For a driver with this share of the step's clients.
    pub(crate) fn for_share_of(self, request: &DriverRequest, clients: u32) -> RoleMeter {
        let all_clients = request.is_shared(clients).then(|| request.all_clients(clients));
        RoleMeter { all_clients, ..self }
    }

    /// The number of intervals so far.
    pub(crate) fn seconds(&self) -> u32 {
        self.second
    }

    /// The interval since the last call, with columns of each role.
    pub(crate) fn interval(&mut self, now_ns: u64) -> StepInterval {
        self.second += 1;
        let mut interval = StepInterval {
            second: self.second,
            seconds: now_ns.saturating_sub(self.from_ns) as f64 / SECOND,
            ..StepInterval::default()
        };
        self.from_ns = now_ns;
        for role in RoleKind::ALL {
            let of_role = self.recorders.iter().filter(|recorder| recorder.role == role);
            let sums = Sums {
                rows: of_role.clone().map(|recorder| recorder.rows()).sum(),
                snapshot: Snapshot::take(of_role.clone().map(|recorder| &recorder.recorder)),
            };
            let Some(earlier) = self.earlier.insert(role, sums.clone()) else { continue };
            let (events, values) = sums.snapshot.since(&earlier.snapshot, &[0.5, 0.95, 0.99, 1.0]);
            let us = |index: usize| values.get(index).map_or(0.0, |value| *value as f64 / 1e3);
            let rows = sums.rows - earlier.rows;
            interval.errors += sums.snapshot.errors - earlier.snapshot.errors;
            if role == self.main {
                interval.events = events;
                interval.statements = if role == RoleKind::Query { events } else { rows };
                (interval.p50_us, interval.p95_us) = (us(0), us(1));
                (interval.p99_us, interval.max_us) = (us(2), us(3));
            }
            let members = of_role.count();
            if members > 0 {
                let done = if role == RoleKind::Query { events } else { rows };
                let latencies = (us(2), us(3));
                columns_of_roles::add(role.name(), done as f64, latencies, &mut interval.extra);
            }
            if self.all_clients.is_some() && members > 0 {
                let latencies = sums.snapshot.latencies_since(&earlier.snapshot);
                if role == self.main {
                    interval.latency = Some(latencies.clone());
                }
                interval.latencies.insert(role.name().to_owned(), latencies);
            }
        }
        interval.extra.extend(self.asked(now_ns).map(|seconds| ("min_key_s".to_owned(), seconds)));
        interval
    }

    /// Seconds since the last call in which a client waited for its smallest key: the mean over the
    /// clients, or this share's part of the mean over those of all hosts. `None` without deletes.
    fn asked(&mut self, now_ns: u64) -> Option<f64> {
        let deleters = self.recorders.iter().filter(|recorder| recorder.role == RoleKind::Delete);
        let all: Vec<u64> = deleters.map(|recorder| recorder.asked_until(now_ns)).collect();
        let asked: u64 = all.iter().sum();
        let since = asked.saturating_sub(self.asked_ns);
        self.asked_ns += since;
        let clients = self.all_clients.map_or(all.len(), |clients| clients as usize);
        (!all.is_empty()).then(|| since as f64 / SECOND / clients as f64)
    }
}

/// Operations of each role by published class.
pub(crate) fn buckets(recorders: &[Arc<WorkerRecorder>]) -> BTreeMap<String, Vec<u64>> {
    let mut all = BTreeMap::new();
    for recorder in recorders {
        let sums: &mut Vec<u64> = all
            .entry(recorder.role.name().to_owned())
            .or_insert_with(|| vec![0; recorder.buckets.len()]);
        for (sum, bucket) in sums.iter_mut().zip(&recorder.buckets) {
            *sum += bucket.load(Ordering::Relaxed);
        }
    }
    all
}

/// The totals of each role. `targets`: requested operations per second.
pub(crate) fn roles(
    recorders: &[Arc<WorkerRecorder>],
    cpu: &[WorkerCpu],
    target: impl Fn(RoleKind) -> Option<f64>,
) -> BTreeMap<String, Role> {
    let mut roles = BTreeMap::new();
    for kind in RoleKind::ALL {
        let members: Vec<usize> =
            (0..recorders.len()).filter(|index| recorders[*index].role == kind).collect();
        if members.is_empty() {
            continue;
        }
        let own: Vec<&Recorder> = members.iter().map(|index| &recorders[*index].recorder).collect();
        let (latency, service) = histograms(&own);
        let used: u64 = members.iter().map(|index| cpu[*index].used_ns).sum();
        let role = Role {
            workers: members.len() as u32,
            operations: members.iter().map(|index| recorders[*index].operations()).sum(),
            rows: members.iter().map(|index| recorders[*index].rows()).sum(),
            target_per_second: target(kind),
            latency,
            service,
            cpu: CpuTime { user_us: used as f64 / 1e3, system_us: 0.0 },
            busiest: members.iter().map(|index| cpu[*index].share).fold(0.0, f64::max),
        };
        roles.insert(kind.name().to_owned(), role);
    }
    roles
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_driver::columns_of_roles::SeriesOf;

    #[test]
    fn classes_have_inclusive_bounds() {
        let recorder = Arc::new(WorkerRecorder::new(RoleKind::Insert, false));
        for latency in [1, 256_000, 256_001, 1_000_000, 16_000_000_000, 16_000_000_001] {
            recorder.record(latency, latency, 50);
        }
        let all = buckets(&[Arc::clone(&recorder), recorder]);
        assert_eq!(all["inserts"], [4, 4, 0, 0, 0, 0, 0, 0, 2, 2]);
    }

    #[test]
    fn intervals_have_columns_of_each_role() {
        let insert = Arc::new(WorkerRecorder::new(RoleKind::Insert, true));
        let query = Arc::new(WorkerRecorder::new(RoleKind::Query, false));
        let recorders = [Arc::clone(&insert), Arc::clone(&query)];
        let mut meter = RoleMeter::new(&recorders, RoleKind::Query, 0);
        insert.record(9_000_000, 1_000_000, 50);
        query.record(20_000, 20_000, 10);
        query.record(40_000, 40_000, 10);
        let first = meter.interval(1_000_000_000);
        assert_eq!((first.events, first.statements), (2, 2));
        assert_eq!((first.extra["inserts"], first.extra["queries"]), (50.0, 2.0));
        assert!((first.extra["inserts_max_us"] / 9_000.0 - 1.0).abs() < 0.001);
        assert!(!first.extra.contains_key("deletes"), "nobody deletes");
        insert.record(1_000_000, 1_000_000, 50);
        let second = meter.interval(1_500_000_000);
        assert_eq!((second.second, second.events, second.extra["inserts"]), (2, 0, 50.0));
        let mut series = SeriesOf::default();
        [first, second, meter.interval(1_500_000_001)].iter().for_each(|all| series.add(all));
        assert_eq!(series.into_columns()["inserts"], [50.0, 100.0]);
    }

    #[test]
    fn waiting_for_the_smallest_key_is_told_while_it_lasts() {
        let deleters = [(); 2].map(|()| Arc::new(WorkerRecorder::new(RoleKind::Delete, false)));
        let mut meter = RoleMeter::new(&deleters, RoleKind::Delete, 0);
        let mut waited = |until_ns: u64| meter.interval(until_ns).extra["min_key_s"];
        deleters[0].ask(250_000_000);
        assert_eq!(waited(1_000_000_000), 0.375, "of two clients one waited for 0.75 s");
        assert_eq!(waited(2_000_000_000), 0.5);
        deleters[0].answered(2_500_000_000);
        assert_eq!(waited(3_000_000_000), 0.25);
        assert_eq!(waited(4_000_000_000), 0.0);
    }
}
