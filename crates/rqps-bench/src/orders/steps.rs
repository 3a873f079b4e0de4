//! The only step of the order mix, and the targets that cannot execute it.

use rqps_model::benchmark::{
    BenchmarkParameters, Group, Phase, RateUnit, Step, StepTurns, Workload,
};
use rqps_model::dialect::Dialect;
use rqps_model::orders::OrdersShape;

/// The note on the workload in each report.
pub(super) const DERIVED: &str =
    "a workload derived from TPC-C; not comparable with published TPC-C results";

/// Kinds of transactions in the order of records: names in records, and in reports.
pub(super) const KINDS: [(&str, &str); 5] = [
    ("new_order", "new order"),
    ("payment", "payment"),
    ("delivery", "delivery"),
    ("stock_level", "stock level"),
    ("order_status", "order status"),
];

/// The parameters of this benchmark; `None` for another workload.
pub(super) fn shape(workload: &Workload) -> Option<&OrdersShape> {
    match &workload.shape {
        BenchmarkParameters::Orders(shape) => Some(shape),
        _ => None,
    }
}

/// All phases after the load.
pub(super) fn phases(workload: &Workload) -> Vec<Phase> {
    let Some(shape) = shape(workload) else { return Vec::new() };
    let step = Step {
        seconds: workload.write_seconds,
        warmup_seconds: workload.warmup_seconds,
        detail: format!(
            "operations are new orders, among five kinds of transactions{}; {DERIVED}",
            if shape.procedures { " stored in the server" } else { "" }
        ),
        // The waits of keying would fill the turns.
        turns: StepTurns::of_clients(!shape.keying),
        ..Step::new("orders", Group::Write, RateUnit::Operations, shape.clone())
    };
    vec![Phase::Measure(Box::new(step))]
}

/// Refuses a workload that cannot run on a DBMS of this dialect.
///
/// # Errors
///
/// The text names the setting.
pub(super) fn check(workload: &Workload, dialect: Dialect) -> Result<(), String> {
    let Some(shape) = shape(workload) else { return Ok(()) };
    match dialect {
        Dialect::Sqlite if shape.partitions > 0 => {
            Err("SQLite has no partitions; leave out `partitions`".to_owned())
        }
        Dialect::Sqlite if shape.procedures => {
            Err("SQLite has no stored procedures; leave out `procedures`".to_owned())
        }
        Dialect::Fake => {
            Err("the order mix reads its own rows, and the fake DBMS stores nothing".to_owned())
        }
        _ => Ok(()),
    }
}
