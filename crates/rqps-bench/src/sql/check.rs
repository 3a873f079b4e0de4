//! Checks of a workload in a workload file.

use crate::sql::steps;
use rqps_model::benchmark::Workload;

/// True if the workload says how its tables are made and filled.
pub(super) fn has_load(workload: &Workload) -> bool {
    let load = steps::shape(workload).and_then(|shape| shape.load.as_ref());
    load.is_some_and(|load| load.schema.is_some() || !load.data.is_empty())
}

/// True if the workload is loaded on servers given by a DSN, too.
pub(super) fn loads_on_servers(workload: &Workload) -> bool {
    let load = steps::shape(workload).and_then(|shape| shape.load.as_ref());
    load.is_some_and(|load| load.on_servers == Some(true))
}
