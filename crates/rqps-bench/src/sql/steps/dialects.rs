//! Values of a workload file by dialect.

use std::borrow::Cow;

use rqps_model::benchmark::{BenchmarkParameters, Workload};
use rqps_model::build::Dbms;
use rqps_model::dialect::Dialect;
use rqps_model::sql_workload::{ByDialect, SqlShape};

/// Keys of tables by dialect. MariaDB speaks MySQL's dialect and uses `mysql` if there is no
/// `mariadb`.
const KEYS: [&str; 5] = ["postgres", "mysql", "mariadb", "sqlite", "any"];

/// The key of a dialect in tables by dialect.
pub(super) fn dialect_key(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgres => "postgres",
        Dialect::Mysql => "mysql",
        Dialect::Sqlite => "sqlite",
        Dialect::KeyValue => "kv",
        Dialect::Fake => "fake",
    }
}

/// The value for a dialect; without one, that of `any`.
pub fn of_dialect<T>(said: &ByDialect<T>, dialect: Dialect) -> Option<&T> {
    match said {
        ByDialect::All(all) => Some(all),
        ByDialect::Each(each) => each.get(dialect_key(dialect)).or_else(|| each.get("any")),
    }
}

/// The values of all dialects.
pub(super) fn all<T>(said: &ByDialect<T>) -> Vec<&T> {
    match said {
        ByDialect::All(all) => vec![all],
        ByDialect::Each(each) => each.values().collect(),
    }
}

/// Refuses keys that are no dialects.
pub(super) fn check_dialects<T>(said: &ByDialect<T>) -> Result<(), String> {
    let ByDialect::Each(each) = said else { return Ok(()) };
    match each.keys().find(|key| !KEYS.contains(&key.as_str())) {
        Some(key) => Err(format!("`{key}` is not a dialect; dialects are {}", KEYS.join(", "))),
        None => Ok(()),
    }
}

/// The workload for a DBMS: exchanges the values under its own name with those under its dialect,
/// as `mariadb` with `mysql`. Keeps all values, so that all targets draw the same ones.
pub fn of_dbms(workload: &Workload, dbms: Dbms) -> Cow<'_, Workload> {
    let keys = (dbms.name(), dialect_key(dbms.dialect()));
    let BenchmarkParameters::Sql(shape) = &workload.shape else { return Cow::Borrowed(workload) };
    if keys.0 == keys.1 {
        return Cow::Borrowed(workload);
    }
    let mut shape = shape.clone();
    exchange(&mut shape, keys);
    Cow::Owned(Workload { shape: BenchmarkParameters::Sql(shape), ..workload.clone() })
}

fn exchange(shape: &mut SqlShape, keys: (&str, &str)) {
    let events = shape.step.iter_mut().flat_map(|step| &mut step.event);
    for statement in events.flat_map(|event| &mut event.statement) {
        exchange_keys(&mut statement.sql, keys);
    }
    let load = shape.load.iter_mut();
    for said in load.flat_map(|load| [&mut load.schema, &mut load.index, &mut load.drop]).flatten()
    {
        exchange_keys(said, keys);
    }
}

fn exchange_keys<T>(said: &mut ByDialect<T>, (own, shared): (&str, &str)) {
    let ByDialect::Each(each) = said else { return };
    let Some(of_own) = each.remove(own) else { return };
    if let Some(of_shared) = each.insert(shared.to_owned(), of_own) {
        each.insert(own.to_owned(), of_shared);
    }
}
