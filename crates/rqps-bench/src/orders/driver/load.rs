//! The load request: one part for the items, one per warehouse.

use crate::orders::driver::procedures;
use crate::orders::driver::rows::rows_of;
use crate::orders::schema::TABLES;
use crate::orders::steps::shape;
use rqps_driver::part::PartRows;
use rqps_driver::request::{DriverRequest, PartLoad, PartTable, RequestBody};
use rqps_model::benchmark::Workload;
use rqps_model::dialect::Dialect;

/// Connections that load warehouses at the same time.
const PARALLEL: u32 = 4;

/// The load for a dialect.
pub(crate) fn load(dialect: Dialect, workload: &Workload, engine: Option<&str>) -> RequestBody {
    let (warehouses, partitions) =
        shape(workload).map_or((1, 0), |shape| (shape.warehouses, shape.partitions));
    let has_procedures = shape(workload).is_some_and(|shape| shape.procedures);
    let drop = |table: &str| format!("DROP TABLE IF EXISTS {table}");
    let mut setup: Vec<String> = TABLES.iter().map(|table| drop(table.name)).collect();
    setup.extend(TABLES.iter().flat_map(|table| table.create(dialect, engine, partitions)));
    if has_procedures {
        setup.extend(procedures::create(dialect));
    }
    let mut finish: Vec<Vec<String>> = TABLES.iter().map(|table| table.finish(dialect)).collect();
    // The largest table first.
    finish.reverse();
    let task = PartLoad {
        rows_of: "orders".to_owned(),
        shape: warehouses.into(),
        setup,
        tables: TABLES
            .iter()
            .map(|table| PartTable {
                name: table.name.to_owned(),
                columns: table.columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
            })
            .collect(),
        parts: 1 + warehouses,
        rows: workload.rows,
        parallel: PARALLEL,
        finish,
    };
    RequestBody::LoadParts(task)
}

/// Opens the rows of a part in a table.
pub(crate) fn part_rows(
    request: &DriverRequest,
    task: &PartLoad,
    part: u32,
    table: usize,
) -> Result<Option<Box<dyn PartRows>>, String> {
    let name = task.tables.get(table).map_or("", |table| table.name.as_str());
    Ok(rows_of(request.seed, part, name))
}
