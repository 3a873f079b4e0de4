//! How long the steps of scripts last, by name.

use crate::benchmarks::spec::StepSet;
use crate::domain::benchmark::{BenchmarkParameters, Idle, Pace, Placement, Workload};

/// Name, seconds of a window, seconds of a warm-up.
const ALL: [(&str, f64, f64); 3] =
    [("quick", 3.0, 1.0), ("standard", 30.0, 5.0), ("full", 300.0, 30.0)];

/// The workload of a preset, still without scripts.
///
/// # Errors
/// No such preset; the text lists those there are.
pub(super) fn workload(name: &str) -> Result<(Workload, StepSet), String> {
    let Some((_, seconds, warmup_seconds)) = ALL.into_iter().find(|row| row.0 == name) else {
        let known = ALL.map(|row| row.0).join(", ");
        return Err(format!("use the preset `{name}`: no such preset (known: {known})"));
    };
    let workload = Workload {
        shape: BenchmarkParameters::Lua(Box::default()),
        read_seconds: seconds,
        write_seconds: seconds,
        warmup_seconds,
        tables: 1,
        rows: 1,
        clients: 1,
        client_counts: Vec::new(),
        client_hosts: None,
        pace: Pace::Closed,
        placement: Placement::Os,
        idle: Idle::Awake,
        settle_scale: 0.0,
        cache_bytes: None,
        memory_limit: None,
        plain_statements: false,
        turn_ms: None,
        waiting: None,
        counted_statements: None,
        simulated_caches: false,
        profile_hertz: None,
    };
    Ok((workload, StepSet::default()))
}
