//! All releases that the packages of a DBMS have, as the package client lists them. A list is kept
//! in the cache for a day.
//!
//! ```text
//! ROOT/listings/GROUP.ARTIFACT   one version a line
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cache::Cache;
use crate::catalogue::{self, Entry};
use crate::client::Fetch;
use crate::clients::PackageClients;
use crate::error::{ObtainError, Reason};
use crate::maven;
use crate::progress::{Hear, Progress};
use rqps_dbms::spec::{self, DbmsSpec, Machine, Origin};
use rqps_model::build::{Dbms, Version};

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
        return Ok(catalogue::known(Some(dbms)));
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
    let mut entries = catalogue::known(Some(dbms));
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
    let versions = maven::versions(&fetch, refresh, progress)?;
    let made = folder.tree();
    fs::write(&made, versions.join("\n") + "\n").map_err(Reason::io("write", &made))?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Reason::io("create", folder))?;
    }
    fs::rename(&made, path).map_err(Reason::io("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(kept_releases(Dbms::Mysql, &cache), catalogue::known(Some(Dbms::Mysql)));
    }
}
