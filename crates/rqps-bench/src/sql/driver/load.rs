//! The load of a workload file.

use std::path::{Path, PathBuf};

use crate::sql::steps;
use rqps_driver::request::{CsvFile, FileLoad, RequestBody};
use rqps_model::benchmark::Workload;
use rqps_model::dialect::Dialect;
use rqps_model::sql_name::TableName;
use rqps_model::sql_workload::{ByDialect, CsvLoad, SqlLoad};

/// The files of a dialect, in their order.
pub(crate) fn load(dialect: Dialect, workload: &Workload, _: Option<&str>) -> RequestBody {
    let default = SqlLoad::default();
    let load = steps::shape(workload).and_then(|shape| shape.load.as_ref()).unwrap_or(&default);
    let folder = load.folder.clone().unwrap_or_default();
    let scripts = |said: &Option<ByDialect<Vec<String>>>| -> Vec<PathBuf> {
        let names = said.as_ref().and_then(|said| steps::of_dialect(said, dialect));
        names.into_iter().flatten().map(|name| folder.join(name)).collect()
    };
    let drop = load.drop.as_ref().and_then(|said| steps::of_dialect(said, dialect));
    RequestBody::LoadFiles(FileLoad {
        drop: drop.into_iter().flatten().map(|entry| drop_statement(dialect, entry)).collect(),
        database: load.database.clone(),
        schema: scripts(&load.schema),
        data: load.data.iter().map(|data| csv_file(&folder, data)).collect(),
        sessions: load.sessions.unwrap_or(1),
        index: scripts(&load.index),
        analyze: load.analyze.unwrap_or(true),
    })
}

/// The statement for an entry of `drop`: a table, or the statement itself.
fn drop_statement(dialect: Dialect, entry: &str) -> String {
    match TableName::try_from(entry.trim().to_owned()) {
        Ok(table) => format!("DROP TABLE IF EXISTS {}", table.identifier(dialect)),
        Err(_) => entry.to_owned(),
    }
}

fn csv_file(folder: &Path, data: &CsvLoad) -> CsvFile {
    CsvFile {
        path: folder.join(&data.csv),
        table: data.table.clone(),
        columns: data.columns.clone(),
        hex: data.hex.clone(),
        null: data.null.clone().unwrap_or_default(),
        delimiter: data.delimiter.as_ref().and_then(|text| text.bytes().next()).unwrap_or(b','),
        expect_rows: data.expect_rows,
    }
}
