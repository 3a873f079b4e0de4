//! Queries on a MySQL or MariaDB that rqps did not start.

use std::fs;
use std::path::Path;
use std::time::Instant;

use crate::connection::ControlConnection;
use crate::error::DbmsError;
use crate::mysql_family::statements::{
    all_is_written, analyze, counters, debug_build, reported_version, status,
};
use crate::settle::rest;
use crate::spec::{GuestCalls, GuestSettle, Tell};

pub(crate) const GUEST: GuestCalls = GuestCalls {
    reported_version,
    debug_build,
    settle,
    status,
    // A status variable is the sum of all sessions at any moment.
    counters: |session, _quiet| counters(session),
    pid,
    processes: &["mysqld", "mariadbd"],
    place_is_database: true,
};

/// ANALYZE of the tables, then waits until pages are written, or the time is over. No setting is
/// changed to hasten that.
fn settle(guest: &GuestSettle<'_>, progress: &mut Tell<'_>) -> Result<(), DbmsError> {
    let GuestSettle { load, interrupt, doing, connect, .. } = guest;
    let end = Instant::now() + load.wait();
    let again = connect.clone();
    analyze(load, interrupt, doing, move || again(), progress)?;
    let mut session = connect().map_err(DbmsError::sql(*doing))?;
    rest(end, interrupt, progress, &mut || all_is_written(&mut *session))
}

/// By the file that the server writes its process into, which is on the server's host.
fn pid(session: &mut dyn ControlConnection) -> Option<u32> {
    let rows = session.rows("SELECT @@GLOBAL.pid_file").ok()?;
    let path = rows.into_iter().next()?.into_iter().next()??;
    fs::read_to_string(Path::new(&path)).ok()?.trim().parse().ok()
}
