//! Queries on a MySQL or MariaDB that rqps did not start.

use std::path::Path;
use std::time::Instant;

use crate::connection::ControlConnection;
use crate::error::DbmsError;
use crate::mysql_family::statements::{
    all_is_written, analyze, counters, debug_build, reported_version, status,
};
use crate::settle::rest;
use crate::spec::{GuestCalls, GuestSettle, Tell};
use rqps_host::plain;

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

/// More than the digits of any process.
const PID_BYTES: u64 = 32;

/// By the file that the server writes its process into, which is on the server's host.
fn pid(session: &mut dyn ControlConnection) -> Option<u32> {
    let rows = session.rows("SELECT @@GLOBAL.pid_file").ok()?;
    let path = rows.into_iter().next()?.into_iter().next()??;
    // Whoever answers names the file.
    plain::beginning(Path::new(&path), PID_BYTES).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::ControlRow;
    use rqps_wire::WireError;

    /// A server that names this file.
    struct Names(String);

    impl ControlConnection for Names {
        fn rows(&mut self, _: &str) -> Result<Vec<ControlRow>, WireError> {
            Ok(vec![vec![Some(self.0.clone())]])
        }

        fn run(&mut self, _: &str) -> Result<(), WireError> {
            Ok(())
        }
    }

    /// From a pipe no answer would come, and from the device one without end.
    #[test]
    fn a_server_names_no_file_that_does_not_end() {
        let folder = tempfile::tempdir().unwrap();
        let [file, pipe] = ["file", "pipe"].map(|name| folder.path().join(name));
        std::fs::write(&file, "4711\n").unwrap();
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let pid = |path: &Path| pid(&mut Names(path.display().to_string()));
        assert_eq!(pid(&file), Some(4711));
        assert_eq!((pid(&pipe), pid(Path::new("/dev/zero"))), (None, None));
    }
}
