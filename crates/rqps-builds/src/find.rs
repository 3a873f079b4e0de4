//! Builds that need no fetch: in the cache, at a path, compiled in, on a server of somebody else.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cache::Cache;
use crate::catalogue::{self, Resolved};
use crate::client::{Hear, ObtainError, PackageClients, Progress, Reason, real};
use crate::{debian, inspect, source};
use rqps_dbms::spec::{
    self, BuildForm, DbmsSpec, LibraryForm, LibraryVersion, Machine, Origin, ServerForm,
};
use rqps_model::bounded;
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
        BuildSource::Path(path) => build(dbms, path, &mut progress).map(Found::Here),
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
    let Some(server) = inspect::server(root, dbms) else {
        // Somebody removed files by hand: as good as not there.
        return Ok(None);
    };
    if inspect::library_in_tree(dbms).is_none() {
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
    Build { root: None, manifest: Manifest::new(dbms, version, reported, origin), cache: None }
}

// `DBMS=PATH`: a tree that somebody installed or built, or SQLite's shared library.

/// The build at a path: the root of a tree, its folder of programs, or the server itself.
pub(super) fn build(dbms: Dbms, path: &Path, progress: &mut Progress<'_>) -> Result<Build, Reason> {
    let real = real(path)?;
    match spec::of(dbms).map(|spec| &spec.form) {
        Some(BuildForm::Scripted) | None => Err(not_by_path(dbms)),
        Some(BuildForm::Library(form)) => library(dbms, form, path, &real, progress),
        Some(BuildForm::Server(form)) => tree(dbms, form, path, &real, progress),
    }
}

/// The files of a build at a path that run or are loaded: its tree or its library. A tree that it
/// shares with the whole system counts by its server alone. Runs nothing.
///
/// # Errors
/// No such build is there.
pub fn files_of(dbms: Dbms, path: &Path) -> Result<PathBuf, Reason> {
    const SYSTEM: [&str; 3] = ["/", "/usr", "/usr/local"];
    let real = path.canonicalize().map_err(Reason::io("find", path))?;
    match spec::of(dbms).map(|spec| &spec.form) {
        Some(BuildForm::Scripted) | None => Err(not_by_path(dbms)),
        Some(BuildForm::Library(_)) => Ok(real),
        Some(BuildForm::Server(form)) => {
            let (root, server) = root_and_server(dbms, form, path, &real)?;
            let is_system = SYSTEM.iter().any(|system| root == Path::new(system));
            Ok(if is_system { server } else { root })
        }
    }
}

fn tree(
    dbms: Dbms,
    form: &ServerForm,
    path: &Path,
    real: &Path,
    progress: &mut Progress<'_>,
) -> Result<Build, Reason> {
    let (root, server) = root_and_server(dbms, form, path, real)?;
    let reported = inspect::reported(&server, dbms)?;
    let (reports, version) = inspect::parse_reported(&reported).ok_or_else(|| {
        let said = format!("it reports {reported:?}, which is not a server version");
        inspect::unrunnable(&server, &said)
    })?;
    if reports != dbms {
        return Err(Reason::other_dbms(path, dbms, reports));
    }
    found(dbms, version, reported, root, &server, progress)
}

/// Root of the tree and its server. The other servers that are there instead are named.
fn root_and_server(
    dbms: Dbms,
    form: &ServerForm,
    path: &Path,
    real: &Path,
) -> Result<(PathBuf, PathBuf), Reason> {
    if real.is_file() {
        return from_binary(dbms, path, real);
    }
    if let Some(server) = inspect::server(real, dbms) {
        return Ok((real.to_path_buf(), server));
    }
    if is_program_folder(real)
        && let Some(root) = real.parent()
        && let Some(server) = inspect::server(root, dbms)
    {
        return Ok((root.to_path_buf(), server));
    }
    let roots = [Some(real), real.parent().filter(|_| is_program_folder(real))];
    let other = Dbms::ALL
        .into_iter()
        .find(|other| roots.iter().flatten().any(|root| inspect::server(root, *other).is_some()));
    if let Some(found) = other {
        return Err(Reason::other_dbms(path, dbms, found));
    }
    let names = inspect::server_names(dbms).join(" or ");
    let looked = format!(
        "its bin, sbin and libexec have no {names}; name the folder that holds them (`make \
         install` makes one, Debian's is {})",
        form.installed_at
    );
    Err(not_a_dbms(path, dbms, &looked))
}

/// A server binary was named: its tree is the folder above its folder.
fn from_binary(dbms: Dbms, path: &Path, real: &Path) -> Result<(PathBuf, PathBuf), Reason> {
    let name = real.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if !inspect::server_names(dbms).contains(&name) {
        let mut all = Dbms::ALL.into_iter();
        if let Some(found) = all.find(|other| inspect::server_names(*other).contains(&name)) {
            return Err(Reason::other_dbms(path, dbms, found));
        }
        let names = inspect::server_names(dbms).join(" or ");
        let looked = format!("the server program is {names}");
        return Err(not_a_dbms(path, dbms, &looked));
    }
    let folder = real.parent().unwrap_or(real);
    match folder.parent() {
        Some(root) if is_program_folder(folder) => Ok((root.to_path_buf(), real.to_path_buf())),
        _ => {
            let looked = "the server is not in the bin, sbin or libexec of a tree; run `make \
                          install` and name that tree"
                .to_string();
            Err(not_a_dbms(path, dbms, &looked))
        }
    }
}

fn not_a_dbms(path: &Path, dbms: Dbms, looked: &str) -> Reason {
    Reason::Build(format!("{} is not an installed {dbms}: {looked}", path.display()))
}

fn not_by_path(dbms: Dbms) -> Reason {
    Reason::Build(format!("{dbms} takes no path; write {dbms}@1"))
}

fn is_program_folder(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| inspect::PROGRAM_FOLDERS.contains(&name))
}

/// A shared library is read, never loaded: loading runs code, and two versions must not meet in one
/// process. A version that cannot be read is known when a database is opened.
fn library(
    dbms: Dbms,
    form: &LibraryForm,
    path: &Path,
    real: &Path,
    progress: &mut Progress<'_>,
) -> Result<Build, Reason> {
    let not = |looked: &str| not_a_dbms(path, dbms, looked);
    let metadata = fs::metadata(real).map_err(Reason::io("look at", real))?;
    if !metadata.is_file() || metadata.len() > form.bytes_max {
        return Err(not(form.example));
    }
    let bytes = bounded::bytes(real, form.bytes_max).map_err(Reason::io("read", real))?;
    if !bytes.starts_with(b"\x7fELF") || !contains(&bytes, form.symbol) {
        return Err(not(&format!("it is not a shared library with {}", form.api)));
    }
    let (version, reported) = match form.version {
        LibraryVersion::Strings => match version_in_strings(&bytes) {
            Some((version, source)) => {
                let reported = format!("{version} {source}").trim().to_string();
                (version, reported)
            }
            None => ("unknown".to_string(), UNKNOWN.to_string()),
        },
        LibraryVersion::FileName => {
            inspect::loadable(real)?;
            let name = real.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let version = name.split_once(".so.").map_or("", |(_, version)| version);
            (version.to_string(), UNKNOWN.to_string())
        }
    };
    found(dbms, Version::new(version), reported, real.to_path_buf(), real, progress)
}

/// The build at a root, with the facts of its main binary.
fn found(
    dbms: Dbms,
    version: Version,
    reported: String,
    root: PathBuf,
    binary: &Path,
    progress: &mut Progress<'_>,
) -> Result<Build, Reason> {
    let manifest = Manifest {
        sha256: Some(inspect::sha256(binary, progress)?),
        compiler: inspect::compiler(binary),
        ..Manifest::new(dbms, version, reported, root.display().to_string())
    };
    Ok(Build { root: Some(root), manifest, cache: None })
}

/// The reported version of a library whose file does not tell it.
const UNKNOWN: &str = "unknown until opened";

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

/// Version and source id of a SQLite library, from the strings that `sqlite3_libversion` and
/// `sqlite3_sourceid` return. `None` unless exactly one string looks like its version.
pub(super) fn version_in_strings(bytes: &[u8]) -> Option<(String, String)> {
    let texts = bytes.split(|byte| *byte == 0).map(printable_end);
    let texts = texts.filter(|text| text.len() < 120);
    let texts = texts.filter_map(|text| std::str::from_utf8(text).ok());
    let (mut versions, mut source) = (Vec::new(), String::new());
    for text in texts {
        if is_version(text) {
            // A second one already decides.
            if versions.len() < 2 && !versions.contains(&text) {
                versions.push(text);
            }
        } else if is_source_id(text) {
            source = text.to_string();
        }
    }
    match versions.as_slice() {
        [version] => Some((version.to_string(), source)),
        _ => None,
    }
}

/// The end of some bytes that can be printed: numbers may lie right before a text.
fn printable_end(bytes: &[u8]) -> &[u8] {
    let before = bytes.iter().rposition(|byte| !(b' '..=b'~').contains(byte));
    &bytes[before.map_or(0, |at| at + 1)..]
}

/// `3.40.1`: three or four numbers, the first of them 3.
fn is_version(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    (3..=4).contains(&parts.len())
        && parts[0] == "3"
        && parts.iter().all(|part| (1..=3).contains(&part.len()) && is_digits(part))
}

/// `2022-12-28 14:03:47 df5c253c…`: date, time, 40 or more hexadecimal digits.
fn is_source_id(text: &str) -> bool {
    let mut words = text.split(' ');
    let (Some(date), Some(time), Some(hash), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return false;
    };
    date.len() == 10
        && date.split('-').all(is_digits)
        && time.len() == 8
        && time.split(':').all(is_digits)
        && hash.len() >= 40
        && hash.bytes().take(40).all(|byte| byte.is_ascii_hexdigit())
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
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

#[cfg(test)]
mod installed_tests {
    use super::*;

    fn check_version(texts: &[&str], expected: Option<(&str, &str)>) {
        let bytes = texts.join("\0").into_bytes();
        let found = version_in_strings(&bytes);
        let found = found.as_ref().map(|(version, source)| (version.as_str(), source.as_str()));
        assert_eq!(found, expected, "{texts:?}");
    }

    #[test]
    fn the_version_of_a_library_is_read_from_its_strings() {
        let id =
            "2022-12-28 14:03:47 df5c253c0b3dd24916e4ec7cf77d3db5294cc9fd45ae7b9c5e82ad8197f38a24";
        check_version(&["x", "3.40.1", id, "y"], Some(("3.40.1", id)));
        check_version(&["3.8.11.1", "3.8.11.1"], Some(("3.8.11.1", "")));
        check_version(&["x\u{1}\u{7f}3.34.1", id], Some(("3.34.1", id)));
        check_version(&["3.40.1", "3.40.2"], None);
        check_version(&["3.x.1", "13.40.1", "3.40", id], None);
        check_version(&["2022-12-28 14:03:47", "3.40.1"], Some(("3.40.1", "")));
    }
}
