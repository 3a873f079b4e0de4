//! Settings `key=value` of the order mix.

use crate::orders::steps;
use crate::spec::DataSize;
use rqps_driver::workload::own::{Settings, own_settings};
use rqps_driver::workload::settings::SetError;
use rqps_driver::workload::value::{choice, count};
use rqps_model::benchmark::{BenchmarkParameters, Workload};
use rqps_model::orders::{OrdersShape, WarehouseSpread};

/// Reads `on` or `off`.
fn switch(value: &str) -> Result<bool, String> {
    choice(value, &[("on", true), ("off", false)])
}

own_settings! { OrdersShape:
    "warehouses", |_, shape, value| shape.warehouses = count(value, 1, 100_000)? as u32;
    "spread", |_, shape, value| {
        let choices = [("home", WarehouseSpread::Home), ("all", WarehouseSpread::All)];
        shape.spread = choice(value, &choices)?;
    };
    "keying", |_, shape, value| shape.keying = switch(value)?;
    "partitions", |_, shape, value| shape.partitions = count(value, 0, 1024)? as u32;
    "procedures", |_, shape, value| shape.procedures = switch(value)?;
    "nurand", |_, shape, value| shape.nurand = switch(value)?;
}

const SETTINGS: Settings<OrdersShape> = Settings {
    benchmark: "orders",
    own: OWN,
    common: &[],
    others: true,
    open: &[],
    of: |shape| match shape {
        BenchmarkParameters::Orders(shape) => Some(shape),
        _ => None,
    },
};

/// Rows per warehouse, approximately, and rows of the load besides.
const ROWS_PER_WAREHOUSE: u64 = 499_011;
const ROWS_ONCE: u64 = 100_000;

/// Bytes of a warehouse, on disk and in a cache.
const WAREHOUSE_BYTES: u64 = 110 << 20;

/// Changes a workload of this benchmark by one `key=value`.
///
/// # Errors
///
/// See [`SetError`].
pub(super) fn set(workload: &mut Workload, assignment: &str) -> Result<(), SetError> {
    SETTINGS.set(workload, assignment)
}

/// Computes the size of the load.
pub(super) fn finish(workload: &mut Workload) {
    let Some(shape) = steps::shape(workload) else { return };
    workload.rows = ROWS_ONCE + u64::from(shape.warehouses) * ROWS_PER_WAREHOUSE;
}

/// The size of the data.
pub(super) fn data_size(workload: &Workload) -> DataSize {
    let warehouses = steps::shape(workload).map_or(1, |shape| u64::from(shape.warehouses));
    let bytes = (warehouses + 1) * WAREHOUSE_BYTES;
    // The data, and their growth during the step.
    DataSize { data_bytes: 1.5 * bytes as f64, cached_bytes: bytes }
}
