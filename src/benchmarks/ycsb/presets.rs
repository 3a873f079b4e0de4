//! How many records there are and how long steps last, by name.

use crate::benchmarks::spec::StepSet;
use crate::domain::benchmark::{BenchmarkParameters, Idle, Pace, Placement, Workload};
use crate::domain::ycsb::{YcsbShape, YcsbWorkload};

/// Name, records, clients, seconds of a window, seconds of a warm-up.
const ALL: [(&str, u64, u32, f64, f64); 3] = [
    ("quick", 20_000, 2, 2.0, 0.5),
    ("standard", 1_000_000, 4, 30.0, 3.0),
    ("full", 10_000_000, 8, 300.0, 10.0),
];

/// The workload of a preset.
///
/// # Errors
/// No such preset; the text lists those there are.
pub(super) fn workload(name: &str) -> Result<(Workload, StepSet), String> {
    let found = ALL.iter().find(|(known, ..)| *known == name);
    let Some((_, records, clients, seconds, warmup)) = found else {
        let known = ALL.map(|(known, ..)| known).join(", ");
        return Err(format!("use the preset `{name}`: no such preset (known: {known})"));
    };
    let workload = Workload {
        tables: 1,
        rows: *records,
        clients: *clients,
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
        shape: BenchmarkParameters::Ycsb(YcsbShape {
            workloads: YcsbWorkload::ALL.to_vec(),
            fields: 10,
            field_bytes: 100,
            scan_rows: 100,
            keys: None,
        }),
    };
    Ok((workload, StepSet::default()))
}
