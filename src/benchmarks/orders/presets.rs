//! How many warehouses there are and how long the step lasts, by name.

use crate::benchmarks::spec::StepSet;
use crate::domain::benchmark::{BenchmarkParameters, Idle, Pace, Placement, Workload};
use crate::domain::orders::{OrdersShape, WarehouseSpread};

/// Name, warehouses, clients, seconds of the window, seconds of the warm-up. `standard` has the
/// usual five and two minutes.
const ALL: [(&str, u32, u32, f64, f64); 3] =
    [("quick", 1, 2, 5.0, 1.0), ("standard", 10, 4, 300.0, 120.0), ("full", 100, 8, 300.0, 120.0)];

/// The workload of a preset.
///
/// # Errors
/// No such preset; the text lists those there are.
pub(super) fn workload(name: &str) -> Result<(Workload, StepSet), String> {
    let found = ALL.iter().find(|(known, ..)| *known == name);
    let Some((_, warehouses, clients, seconds, warmup)) = found else {
        let known = ALL.map(|(known, ..)| known).join(", ");
        return Err(format!("use the preset `{name}`: no such preset (known: {known})"));
    };
    let workload = Workload {
        tables: 1,
        rows: 1,
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
        shape: BenchmarkParameters::Orders(OrdersShape {
            warehouses: *warehouses,
            spread: WarehouseSpread::Home,
            keying: false,
            partitions: 0,
            nurand: false,
        }),
    };
    Ok((workload, StepSet::default()))
}
