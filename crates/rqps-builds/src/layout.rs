//! Paths in the tree of a build.
//!
//! Trees come from packages, distributions and `make install`, which agree on little: each function
//! looks in the places that occur, and `None` means that the tree has no such thing.

use std::path::{Path, PathBuf};

use rqps_dbms::spec::{self, DbmsSpec, LibraryForm};
use rqps_model::build::Dbms;

/// Names of the server binary, the one to prefer first; none for a library.
pub(super) fn server_names(dbms: Dbms) -> &'static [&'static str] {
    spec::of(dbms).and_then(DbmsSpec::server).map_or(&[], |server| server.programs)
}

/// The shared library of a build that is a tree around one.
pub(super) fn library_in_tree(dbms: Dbms) -> Option<&'static LibraryForm> {
    spec::of(dbms).and_then(DbmsSpec::library).filter(|library| !library.is_root)
}

/// Folders of a tree that hold programs.
pub(super) const PROGRAM_FOLDERS: [&str; 3] = ["bin", "sbin", "libexec"];

/// The server: `root/bin/postgres`, `root/sbin/mariadbd` …
pub fn server(root: &Path, dbms: Dbms) -> Option<PathBuf> {
    if let Some(library) = library_in_tree(dbms) {
        return Some(root.join(library.file)).filter(|path| path.is_file());
    }
    server_names(dbms).iter().find_map(|name| program(root, name))
}

/// A program of the tree by its name: `initdb`, `mariadb-install-db`. Looks in `bin`, `sbin`,
/// `libexec` and `scripts`.
pub fn program(root: &Path, name: &str) -> Option<PathBuf> {
    let folders = PROGRAM_FOLDERS.iter().chain(&["scripts"]);
    folders.map(|folder| root.join(folder).join(name)).find(|path| path.is_file())
}

/// The folder of a server's system tables and messages, where it has one: the one for
/// `--lc-messages-dir` and the bootstrap scripts.
pub fn share(root: &Path, dbms: Dbms) -> Option<PathBuf> {
    let server = spec::of(dbms).and_then(DbmsSpec::server)?;
    let mut folders = server.share.iter().map(|folder| root.join(folder));
    folders.find(|folder| folder.join("english/errmsg.sys").is_file())
}
