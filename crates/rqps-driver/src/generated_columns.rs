//! Refuses CSV files with fields for columns that MySQL computes. Under LOAD DATA, MySQL leaves
//! such fields out without a warning, and the table would not hold what the file says.

use crate::connection::Connection;
use rqps_model::sql_name::TableName;
use rqps_text::ChangedRelation;

/// Refuses a file with these columns if the server computes one of them.
pub(super) fn refuse(
    table: &TableName,
    columns: &[String],
    session: &mut Connection,
) -> Result<(), String> {
    let table = ChangedRelation::table(&table.to_string());
    let sql = table.generated_columns_query();
    // A server that is only compatible may not tell.
    let Ok(rows) = session.rows(&sql) else { return Ok(()) };
    let generated: Vec<String> = rows.into_iter().flatten().flatten().collect();
    let is_generated =
        |column: &&String| generated.iter().any(|name| name.eq_ignore_ascii_case(column));
    match columns.iter().find(is_generated) {
        None => Ok(()),
        Some(column) => Err(format!(
            "`{column}` of {} is a generated column\nhint: the server computes generated columns: \
             leave the column out of the file",
            table.name
        )),
    }
}
