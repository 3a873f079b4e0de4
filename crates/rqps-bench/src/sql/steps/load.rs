//! Checks [load] of a workload file.

use super::dialects::{check_dialects, dialect_key, of_dialect};
use rqps_model::dialect::Dialect;
use rqps_model::sql_workload::{CsvLoad, SqlLoad, SqlShape};
use rqps_text::dropped;

/// Refuses a [load] that cannot be carried out on a DBMS of this dialect.
pub(super) fn check_load(shape: &SqlShape, dialect: Dialect) -> Result<(), String> {
    let Some(load) = &shape.load else { return Ok(()) };
    let at = load.at.prefix();
    let fault = |why: String| format!("{at}[load]: {why}");
    for said in load.schema.iter().chain(&load.index).chain(&load.drop) {
        check_dialects(said).map_err(fault)?;
    }
    if load.sessions.is_some_and(|sessions| !(1..=256).contains(&sessions)) {
        return Err(fault("`threads` must be from 1 to 256".to_owned()));
    }
    load.data.iter().try_for_each(check_delimiter).map_err(fault)?;
    check_servers(load, dialect).map_err(fault)?;
    if load.schema.as_ref().is_some_and(|said| of_dialect(said, dialect).is_none()) {
        let key = dialect_key(dialect);
        return Err(format!("{at}[load] has no schema for {key}, the dialect of a target"));
    }
    Ok(())
}

fn check_delimiter(data: &CsvLoad) -> Result<(), String> {
    let wrong = |text: &&String| !text.is_ascii() || text.len() != 1 || "\"\r\n".contains(*text);
    match data.delimiter.as_ref().filter(wrong) {
        Some(text) => Err(format!(
            "the `delimiter` of {} must be one character of ASCII, not {text:?}",
            data.csv
        )),
        None => Ok(()),
    }
}

/// Refuses what cannot be done on a server that somebody else runs.
fn check_servers(load: &SqlLoad, dialect: Dialect) -> Result<(), String> {
    if load.on_servers == Some(true) && load.schema.is_none() && load.data.is_empty() {
        return Err("`load = true` needs `schema` or `data`".to_owned());
    }
    let Some(drop) = &load.drop else { return Ok(()) };
    if load.on_servers != Some(true) {
        return Err("`drop` needs `load = true`: only servers given by a DSN have tables before \
                    the load"
            .to_owned());
    }
    let entries = of_dialect(drop, dialect);
    entries.into_iter().flatten().try_for_each(|entry| dropped(dialect, entry).map(|_| ()))
}
