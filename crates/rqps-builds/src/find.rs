//! Builds that need no fetch: in the cache, at a path, compiled in, on a server of somebody else.

use crate::cache::Cache;
use crate::catalogue::{self, Resolved};
use crate::client::{Hear, PackageClients, Progress};
use crate::error::{ObtainError, Reason};
use crate::{debian, inspect, installed, layout, source};
use rqps_dbms::spec::{self, BuildForm, DbmsSpec, LibraryForm, Machine, Origin};
use rqps_model::build::{Build, BuildSource, Dbms, Manifest, Version};
use rqps_wire::dsn;

/// Facts about a build before it is fetched.
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
    pub(super) dbms: Dbms,
    /// The version, if known; `None` for that of the packages.
    pub(super) version: Option<Version>,
    pub(super) origin: Origin,
    /// Its place in the cache.
    pub(super) key: String,
    /// The word that asked for it.
    pub(super) target: String,
    /// What else may have that version, if nobody has that package.
    pub(super) then: Option<Box<Wanted>>,
}

impl Wanted {
    /// Who will be asked for it, and whether that is only a guess from the version.
    pub fn origin(&self) -> (String, bool) {
        let origin = self.origin.to_string();
        let listed = matches!(self.origin, Origin::Debian { .. } | Origin::Source(_))
            || catalogue::known(Some(self.dbms)).iter().any(|it| it.origin == self.origin);
        (origin, !listed)
    }
}

/// Looks for a build where it can be without being fetched: in the cache, at the path that is
/// named, compiled in. A word that no fetch could make right is an error now.
///
/// `progress` hears when something is to be said.
pub fn find(
    clients: &PackageClients,
    dbms: Dbms,
    from: &BuildSource,
    cache: &Cache,
    progress: &mut Hear<'_>,
) -> Result<Found, ObtainError> {
    let mut progress = Progress::new(progress, &clients.stop);
    let target = target(dbms, from);
    let result = match from {
        BuildSource::Version { version, variant } => {
            by_version(dbms, version, variant.as_deref(), &target, cache, &mut progress)
        }
        BuildSource::Deb { suite, packages } => {
            debian::check_names(suite, packages).and_then(|()| {
                let origin = Origin::Debian { suite: suite.clone(), packages: packages.clone() };
                in_cache(dbms, None, origin, &target, cache)
            })
        }
        BuildSource::Source { folder, reference, variant } => {
            source::locate(dbms, folder, reference.as_deref(), variant.as_deref(), &mut progress)
                .and_then(|origin| in_cache(dbms, None, origin, &target, cache))
        }
        BuildSource::Path(path) => installed::build(dbms, path, &mut progress).map(Found::Here),
        BuildSource::CompiledIn => compiled_in(dbms).map(Found::Here),
        BuildSource::Imported(_) => Err(only_imported()),
        BuildSource::Dsn(_) | BuildSource::Client(_) => {
            let version = Version::new("");
            Ok(Found::Here(rootless(dbms, version, String::new(), target.clone())))
        }
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
        BuildSource::Source { folder, reference, variant } => {
            let reference = reference.as_ref().map(|name| format!("@{name}")).unwrap_or_default();
            let variant = variant.as_ref().map(|name| format!("+{name}")).unwrap_or_default();
            format!("{dbms}=src:{}{reference}{variant}", folder.display())
        }
        BuildSource::Path(path) => format!("{dbms}={}", path.display()),
        BuildSource::CompiledIn => dbms.to_string(),
        BuildSource::Imported(tag) => tag.clone(),
        BuildSource::Dsn(dsn) => dsn::without_password(dsn),
        BuildSource::Client(text) => dsn::without_password(text),
    }
}

fn by_version(
    dbms: Dbms,
    version: &Version,
    variant: Option<&str>,
    target: &str,
    cache: &Cache,
    progress: &mut Progress<'_>,
) -> Result<Found, Reason> {
    let spec = spec::of(dbms).ok_or_else(only_imported)?;
    if let BuildForm::Scripted = spec.form {
        let (reported, origin) = (format!("{dbms} {version}"), dbms.to_string());
        return Ok(Found::Here(rootless(dbms, version.clone(), reported, origin)));
    }
    catalogue::check_version(dbms, version)?;
    if let Some(row) = catalogue::row(spec, version, variant, Machine::this()) {
        if let Some(said) = &row.said {
            progress.note(said);
        }
        return in_cache(dbms, Some(row.version), row.origin, target, cache);
    }
    if let Some(key) = catalogue::kept(spec, version, variant, &cache.builds())
        && let Some(build) = cached(dbms, &key, cache)?
    {
        let origin = &build.manifest.origin;
        progress.note(&format!("{target} means the build in the cache from {origin}"));
        return Ok(Found::Here(build));
    }
    let mut found = None;
    for Resolved { version, origin, .. } in
        catalogue::tried(spec, version, variant, Machine::this())?.into_iter().rev()
    {
        let mut key = catalogue::key(dbms, &version, &origin, Machine::this());
        // A suite's place in the cache may have another version.
        let other =
            cache.manifest(&key).is_some_and(|it| !inspect::agrees(dbms, &version, &it.version));
        if other {
            key = format!("{key}-{version}");
        }
        let (version, target) = (Some(version), target.to_owned());
        let then = found.take();
        found = Some(Box::new(Wanted { dbms, version, origin, key, target, then }));
    }
    let wanted = found.ok_or_else(|| catalogue::no_package(dbms, Machine::this()))?;
    Ok(match cached(dbms, &wanted.key, cache)? {
        Some(build) => Found::Here(build),
        None => Found::Wanted(*wanted),
    })
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
    let (target, then) = (target.to_owned(), None);
    Ok(match cached(dbms, &key, cache)? {
        Some(build) => Found::Here(build),
        None => Found::Wanted(Wanted { dbms, version, origin, key, target, then }),
    })
}

/// A build of the cache. That it runs is asked each time: the host may have lost a library since.
pub(super) fn cached(dbms: Dbms, key: &str, cache: &Cache) -> Result<Option<Build>, Reason> {
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
pub(super) fn rooted(dbms: Dbms, mut build: Build) -> Build {
    if let Some(library) = library_as_root(dbms) {
        build.root = build.root.map(|root| root.join(library.file));
    }
    build
}

pub(super) fn library_as_root(dbms: Dbms) -> Option<&'static LibraryForm> {
    spec::of(dbms).and_then(DbmsSpec::library).filter(|library| library.is_root)
}

/// The library that this program was built with.
fn compiled_in(dbms: Dbms) -> Result<Build, Reason> {
    let library = spec::of(dbms).and_then(DbmsSpec::library);
    let ask = library.and_then(|library| library.compiled_in);
    let (version, reported) = ask.ok_or_else(|| {
        Reason::Build(format!(
            "{dbms} is not compiled in; name a version ({dbms}@VERSION; `rqps builds {dbms}` \
             lists them) or an installed tree ({dbms}=PATH)"
        ))
    })?();
    Ok(rootless(dbms, Version::new(version), reported, "compiled in".to_owned()))
}

fn only_imported() -> Reason {
    Reason::Build("it names imported results, which have no build".to_owned())
}

fn rootless(dbms: Dbms, version: Version, reported: String, origin: String) -> Build {
    Build { root: None, manifest: Manifest::new(dbms, version, reported, origin) }
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
