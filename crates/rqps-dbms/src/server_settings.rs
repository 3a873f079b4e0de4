//! The settings of a running server that a run records.

use std::collections::BTreeMap;

use crate::connection::ControlConnection;
use rqps_model::dialect::Dialect;
use rqps_model::server_settings::recorded;
use rqps_wire::WireError;

/// Name → value in the server's own words, as this session has it. Settings that the version or
/// the product lacks are absent.
pub(crate) fn server_settings(
    session: &mut dyn ControlConnection,
    dialect: Dialect,
) -> Result<BTreeMap<String, String>, WireError> {
    let all = match dialect {
        Dialect::Postgres => session.rows("SHOW ALL"),
        Dialect::Mysql => session.rows("SHOW VARIABLES"),
        Dialect::Sqlite | Dialect::KeyValue | Dialect::Fake => Ok(Vec::new()),
    };
    let all = match all {
        // A compatible server need not have the statement.
        Err(WireError::Server { .. }) => Vec::new(),
        all => all?,
    };
    let pair = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter();
        let name = cells.next()??.to_lowercase();
        let value = cells.next()??;
        recorded(dialect).any(|known| known == name).then_some((name, value))
    };
    Ok(all.into_iter().filter_map(pair).collect())
}
