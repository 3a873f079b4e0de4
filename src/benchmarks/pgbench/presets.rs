//! How long steps last, by name.

use crate::benchmarks::spec::StepSet;
use crate::domain::benchmark::{BenchmarkParameters, Idle, Pace, Placement, Workload};
use crate::domain::pgbench::PgbenchShape;

/// Name, seconds of a window, seconds of a warm-up.
const ALL: [(&str, f64, f64); 3] =
    [("quick", 2.0, 0.5), ("standard", 30.0, 3.0), ("full", 300.0, 10.0)];

/// The workload of a preset, still without scripts.
///
/// # Errors
/// No such preset; the text lists those there are.
pub(super) fn workload(name: &str) -> Result<(Workload, StepSet), String> {
    let Some((_, seconds, warmup)) = ALL.iter().find(|(known, ..)| *known == name) else {
        let known = ALL.map(|(known, ..)| known).join(", ");
        return Err(format!("use the preset `{name}`: no such preset (known: {known})"));
    };
    let shape = PgbenchShape { scale: 1, max_tries: 1, vacuum: true, ..PgbenchShape::default() };
    let workload = Workload {
        tables: 1,
        rows: 1,
        clients: 1,
        client_counts: Vec::new(),
        client_hosts: None,
        read_seconds: *seconds,
        write_seconds: *seconds,
        warmup_seconds: *warmup,
        settle_scale: 0.0,
        pace: Pace::Closed,
        placement: Placement::Os,
        idle: Idle::Awake,
        cache_bytes: None,
        plain_statements: false,
        memory_limit: None,
        turn_ms: None,
        waiting: None,
        counted_statements: None,
        profile_hertz: None,
        simulated_caches: false,
        shape: BenchmarkParameters::Pgbench(Box::new(shape)),
    };
    Ok((workload, StepSet::default()))
}
