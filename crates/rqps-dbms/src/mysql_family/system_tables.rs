//! The SQL files that make the data folder of MariaDB, and of MySQL 5.5 and 5.6.

use std::fs;
use std::path::Path;

use crate::error::DbmsError;
use crate::mysql_family::Flavor;

/// The database that holds the tables.
pub(super) const DATABASE: &str = "test";

/// Ends the statements of an init file that a data folder is made with.
pub(super) const CREATE_DATABASE: &str = "CREATE DATABASE IF NOT EXISTS test;\n";

/// Folders, below the root of a build, that hold the SQL files.
const FOLDERS: [&str; 4] = ["share", "share/mysql", "share/mariadb", "scripts"];

/// The files in order: under any of these names, and whether a build can lack it.
const FILES: [(&[&str], bool); 3] = [
    (&["mariadb_system_tables.sql", "mysql_system_tables.sql"], false),
    (&["mariadb_performance_tables.sql", "mysql_performance_tables.sql"], true),
    (&["mariadb_system_tables_data.sql", "mysql_system_tables_data.sql"], false),
];

/// The content of the account tables: root without a password (only the private socket reaches it),
/// and no anonymous user. Each statement must be on its own line.
const BEFORE: &str = "use mysql;\n\
    set @auth_root_socket=NULL;\n\
    set @skip_auth_anonymous=1;\n\
    set @current_hostname='localhost';\n";

/// The files of MySQL know no variable against accounts without a name.
const DROP_NAMELESS: &str = "delete from user where user='';\n";

/// All statements that make the system tables and the database of the benchmark.
pub(super) fn bootstrap_statements(root: &Path, flavor: &Flavor) -> Result<String, DbmsError> {
    let mut text = BEFORE.to_owned();
    for (names, may_lack) in FILES {
        let mut places =
            FOLDERS.iter().flat_map(|folder| names.iter().map(move |name| (folder, name)));
        let found = places.find_map(|(folder, name)| {
            let path = root.join(folder).join(name);
            path.is_file().then_some(path)
        });
        match found {
            Some(path) => {
                let file =
                    fs::read(&path).map_err(DbmsError::io(format!("read {}", path.display())))?;
                text.push_str(&String::from_utf8_lossy(&file));
                text.push('\n');
            }
            None if may_lack => {}
            None => {
                let dbms = flavor.name;
                return Err(DbmsError::Unsupported(format!(
                    "make a data folder for {dbms} with the build {}: it has no {} in {}; the \
                     package is incomplete, use one with its SQL files",
                    root.display(),
                    names.join(" or "),
                    FOLDERS.join(", ")
                )));
            }
        }
    }
    if flavor.has_nameless_accounts {
        text.push_str(DROP_NAMELESS);
    }
    text.push_str(CREATE_DATABASE);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAVOR: Flavor = Flavor {
        name: "mariadb",
        programs: &[],
        share: &[],
        initializes_since: None,
        second_protocol_since: None,
        has_nameless_accounts: false,
        rocksdb_folder: "",
    };

    #[test]
    fn files_are_read_in_order_from_wherever_they_are() {
        let root = tempfile::tempdir().unwrap();
        let share = root.path().join("share/mysql");
        fs::create_dir_all(&share).unwrap();
        let error = bootstrap_statements(root.path(), &FLAVOR).unwrap_err().to_string();
        assert!(error.contains("mariadb_system_tables.sql or mysql_system_tables.sql"), "{error}");
        fs::write(share.join("mysql_system_tables.sql"), "TABLES;").unwrap();
        fs::write(share.join("mysql_system_tables_data.sql"), "DATA;").unwrap();
        let text = bootstrap_statements(root.path(), &FLAVOR).unwrap();
        assert!(text.starts_with("use mysql;\n"), "{text}");
        assert!(text.ends_with("TABLES;\nDATA;\nCREATE DATABASE IF NOT EXISTS test;\n"), "{text}");
    }
}
