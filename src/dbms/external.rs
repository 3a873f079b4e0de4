//! A server that somebody else runs, by its DSN.

use crate::dbms::{ControlPlane, DbmsError, Interrupt};

/// The control plane of the server at `dsn`.
pub fn external(dsn: &str, interrupt: Interrupt) -> Result<Box<dyn ControlPlane>, DbmsError> {
    let _ = (dsn, interrupt);
    Err(DbmsError::Unsupported("measure a server by its DSN: not possible yet".to_owned()))
}
