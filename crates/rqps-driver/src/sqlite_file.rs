//! Loads a SQLite database file by copying it.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::script::table;
use rqps_model::endpoint::Endpoint;

/// The first bytes of each SQLite database file.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// True for a SQLite database file. The error is a complete message.
pub(super) fn is_database(path: &Path) -> Result<bool, String> {
    let fault = |error| format!("failed to load {}: {error}", path.display());
    let mut begin = Vec::with_capacity(MAGIC.len());
    let file = table::plain(path).map_err(fault)?;
    file.take(MAGIC.len() as u64).read_to_end(&mut begin).map_err(fault)?;
    Ok(begin == MAGIC)
}

/// Copies the file to the path of the target's database. The error is a complete message.
pub(super) fn copy(path: &Path, target: &Endpoint, is_first: bool) -> Result<(), String> {
    let fault = |what: String| Err(format!("failed to load {}: {what}", path.display()));
    let Endpoint::File { path: database, .. } = target else {
        return fault(
            "it is a database file of SQLite\nhint: other targets need SQL: `schema = { sqlite = \
             [\"shop.db\"], any = [\"shop.sql\"] }`"
                .to_owned(),
        );
    };
    if !is_first {
        return fault(
            "a database file of SQLite replaces all tables\nhint: name it first".to_owned(),
        );
    }
    let log = beside(path, "-wal");
    if fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
        return fault(format!(
            "{} holds changes that are not in the file yet\nhint: run sqlite3 {} 'PRAGMA \
             wal_checkpoint(TRUNCATE)'",
            log.display(),
            path.display()
        ));
    }
    for end in ["-wal", "-shm"] {
        // An empty database that was opened before may have left one.
        let _ = fs::remove_file(beside(database, end));
    }
    match fs::copy(path, database) {
        Ok(_) => Ok(()),
        Err(error) => fault(format!("copy it to {}: {error}", database.display())),
    }
}

/// The path of a file that SQLite keeps beside a database.
fn beside(database: &Path, end: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::endpoint::Address;

    #[test]
    fn only_a_whole_file_that_comes_first_is_copied_and_only_for_sqlite() {
        let folder = tempfile::tempdir().unwrap();
        let (source, copied) = (folder.path().join("a.db"), folder.path().join("b.db"));
        fs::write(&source, b"SQLite format 3\0 and the rest").unwrap();
        fs::write(folder.path().join("a.sql"), "SELECT 1;").unwrap();
        assert_eq!(is_database(&source), Ok(true));
        assert_eq!(is_database(&folder.path().join("a.sql")), Ok(false));
        assert!(is_database(&folder.path().join("none")).unwrap_err().contains("none"));
        let target = Endpoint::File { path: copied.clone(), library: None };
        fs::write(folder.path().join("b.db-wal"), "old").unwrap();
        copy(&source, &target, true).unwrap();
        assert_eq!(fs::read(&copied).unwrap(), fs::read(&source).unwrap());
        assert!(!folder.path().join("b.db-wal").exists());
        let refused = |target: &Endpoint, is_first| copy(&source, target, is_first).unwrap_err();
        assert!(refused(&target, false).contains("name it first"));
        let server = Endpoint::Server(Address::Unix("/tmp/s".into()));
        assert!(refused(&server, true).contains("other targets need SQL"));
        fs::write(folder.path().join("a.db-wal"), "new").unwrap();
        assert!(refused(&target, true).contains("wal_checkpoint"));
    }
}
