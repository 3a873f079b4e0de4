//! The tree of sources that somebody works in.

use std::path::{Path, PathBuf};

use super::git::Repository;
use crate::error::{Reason, real};
use rqps_model::build::Dbms;

/// A file that only the sources of one DBMS have; MariaDB before MySQL, from which it comes.
const MARKS: [(&str, Dbms); 6] = [
    ("src/backend/tcop/postgres.c", Dbms::Postgres),
    ("storage/maria/ma_open.c", Dbms::Mariadb),
    ("sql/mysqld.cc", Dbms::Mysql),
    ("include/rocksdb/db.h", Dbms::Rocksdb),
    ("src/sqliteInt.h", Dbms::Sqlite),
    ("sqlite3.c", Dbms::Sqlite),
];

/// The folder of sources that this one is in, and their DBMS.
pub fn tree_of(folder: &Path) -> Option<(PathBuf, Dbms)> {
    let folder = folder.canonicalize().ok()?;
    folder.ancestors().find_map(|top| {
        let (_, dbms) = MARKS.iter().find(|(mark, _)| top.join(mark).is_file())?;
        Some((top.to_owned(), *dbms))
    })
}

/// True if a reference means a commit there.
///
/// # Errors
/// git does not run.
pub fn has_commit(top: &Path, reference: &str) -> Result<bool, Reason> {
    let repository = Repository::of(top)?;
    Ok(repository.is_some_and(|it| it.resolve(reference).is_ok()))
}

/// What the work tree has changed since the last commit, as a patch; empty for nothing. Files that
/// git does not know are not in it.
///
/// # Errors
/// No repository, or git fails.
pub fn changes(top: &Path) -> Result<String, Reason> {
    let top = real(top)?;
    let repository = Repository::of(&top)?.ok_or_else(|| Reason::no_repository(&top))?;
    repository.changes(&repository.resolve("HEAD")?)
}
