//! Builds to run: fetched by version through the user's own package client and kept in a cache,
//! found in an installed tree, compiled in, or merely named by the address of a server.
//!
//! No registry host is named here and nothing is downloaded by this program itself. Starts no
//! server: binaries are asked for their version, nothing else.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod catalogue;

mod cache;
mod client;
mod debian;
mod fetch;
mod find;
pub mod inspect;
pub mod source;
mod unpack;

pub use cache::{Cache, closed_folder};
pub use client::{Hear, ObtainError, PackageClients, Reason, Said};
pub use fetch::{fetch, obtain, obtain_with};
pub use find::{Found, Wanted, files_of, find};

/// Entries for the fuzz targets (`fuzz/`): readers of packages, of programs and of what tools
/// print, which are private otherwise. Nothing else calls them.
#[doc(hidden)]
pub mod fuzzing {
    use std::path::Path;
    use std::sync::atomic::AtomicBool;

    use super::debian::{choose_mirror, name_and_version, parse_uri};
    use super::unpack;
    use crate::client::{Progress, Said};
    use crate::source::commit;
    use crate::{catalogue, fetch, find, inspect};
    use rqps_dbms::spec;
    use rqps_model::build::Dbms;

    /// What an ELF file tells of a build, and the functions of an object file: numbers of texts.
    pub fn program(path: &Path) -> usize {
        let texts = |found: std::io::Result<Vec<String>>| found.map_or(0, |texts| texts.len());
        texts(inspect::elf_comments(path)) + texts(inspect::elf_functions(path))
    }

    /// Version and source id in a library of SQLite.
    pub fn sqlite_library(bytes: &[u8]) -> Option<(String, String)> {
        find::version_in_strings(bytes)
    }

    /// Unpacks a package of this DBMS below `root`.
    pub fn package(dbms: Dbms, file: &Path, root: &Path) -> bool {
        let (mut say, stop) = (|_: Said<'_>| {}, AtomicBool::new(false));
        let mut progress = Progress::new(&mut say, &stop);
        let how = spec::of(dbms).and_then(|spec| spec.package);
        how.is_some_and(|how| unpack::package(file, &how, "g:a:1", root, &mut progress).is_ok())
    }

    /// Unpacks a wheel below `root`.
    pub fn wheel(file: &Path, root: &Path) -> bool {
        let (mut say, stop) = (|_: Said<'_>| {}, AtomicBool::new(false));
        let mut progress = Progress::new(&mut say, &stop);
        unpack::wheel(file, "pgserver/pginstall", "g:a:1", root, &mut progress).is_ok()
    }

    /// What package clients, git, the loader and servers print.
    pub fn printed(text: &str) -> usize {
        let lines = |each: &dyn Fn(&str) -> bool| text.lines().filter(|line| each(line)).count();
        lines(&|line| parse_uri(line).is_some())
            + lines(&|line| name_and_version(line).0.is_empty())
            + lines(&|line| {
                spec::ALL.iter().any(|spec| catalogue::listed_entry(spec, line).is_some())
            })
            + lines(&|line| inspect::parse_reported(line).is_some())
            + usize::from(choose_mirror(text, "trixie").is_some())
            + inspect::unresolved_in(text).count()
            + fetch::in_list(text).len()
            + text.split('\u{1}').filter_map(commit).count()
    }
}
