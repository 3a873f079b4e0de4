//! Where things are in the tree of a build.
//!
//! Trees come from packages, distributions and `make install`, which agree on little: each function
//! looks in the places that occur, and `None` means that the tree has no such thing.

use std::path::{Path, PathBuf};

use crate::domain::build::Dbms;

/// Names of the server binary, the one to prefer first.
pub(super) fn server_names(dbms: Dbms) -> &'static [&'static str] {
    match dbms {
        Dbms::Postgres => &["postgres"],
        Dbms::Mysql => &["mysqld"],
        Dbms::Mariadb => &["mariadbd", "mysqld"],
        Dbms::Sqlite | Dbms::Rocksdb | Dbms::Speedb | Dbms::Other | Dbms::Fake => &[],
    }
}

/// The shared library that is the whole of an embedded DBMS which comes in packages, in `lib`.
pub fn library_name(dbms: Dbms) -> Option<&'static str> {
    match dbms {
        Dbms::Rocksdb => Some("librocksdb.so"),
        Dbms::Speedb => Some("libspeedb.so"),
        _ => None,
    }
}

/// Folders of a tree that hold programs.
pub(super) const PROGRAM_FOLDERS: [&str; 3] = ["bin", "sbin", "libexec"];

/// The server: `root/bin/postgres`, `root/sbin/mariadbd` …
pub fn server(root: &Path, dbms: Dbms) -> Option<PathBuf> {
    if let Some(name) = library_name(dbms) {
        return Some(root.join("lib").join(name)).filter(|path| path.is_file());
    }
    server_names(dbms).iter().find_map(|name| program(root, name))
}

/// A program of the tree by its name: `initdb`, `mariadb-install-db`. Looks in `bin`, `sbin`,
/// `libexec` and `scripts`.
pub fn program(root: &Path, name: &str) -> Option<PathBuf> {
    let folders = PROGRAM_FOLDERS.iter().chain(&["scripts"]);
    folders.map(|folder| root.join(folder).join(name)).find(|path| path.is_file())
}

/// The folder of MySQL's or MariaDB's system tables and messages: the one for
/// `--lc-messages-dir` and the bootstrap scripts.
pub fn share(root: &Path, dbms: Dbms) -> Option<PathBuf> {
    let folders: &[&str] = match dbms {
        Dbms::Mysql => &["share", "share/mysql", "share/mysql-8.0"],
        Dbms::Mariadb => &["share", "share/mariadb", "share/mysql"],
        _ => return None,
    };
    let folders = folders.iter().map(|folder| root.join(folder));
    folders.into_iter().find(|folder| folder.join("english/errmsg.sys").is_file())
}

/// The folder of MySQL's or MariaDB's loadable plugins, for `--plugin-dir`.
pub fn plugins(root: &Path, dbms: Dbms) -> Option<PathBuf> {
    if !matches!(dbms, Dbms::Mysql | Dbms::Mariadb) {
        return None;
    }
    let folders = [
        "lib/plugin",
        "lib/mysql/plugin",
        "lib/mariadb/plugin",
        "lib64/mysql/plugin",
        "lib64/plugin",
    ];
    folders.iter().map(|folder| root.join(folder)).find(|folder| folder.is_dir())
}
