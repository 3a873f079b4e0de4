//! Builds from sources: a commit of a git repository or a folder of sources, compiled by the
//! recipe of its DBMS into the cache. The user's tree is only read.

mod compile;
mod git;
mod recipe;
mod run;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::client::Progress;
use crate::error::{Reason, real};
use crate::source::git::Repository;
use crate::source::recipe::Recipe;
use crate::source::run::Toolchain;
use rqps_dbms::spec::{Origin, SourceOrigin};
use rqps_model::build::Dbms;
use rqps_model::{bounded, units};

pub use self::git::{Commit, commit_of, commits};
pub use self::recipe::IdleFiles;

pub(super) use self::compile::{Compile, Place, compile, link, make_objects};
pub(super) use self::git::commit;

// Parses a target word with `src:`: a commit or a folder, a variant, and a toolchain.

/// The origin of a build from sources. A work tree with changes that are not committed is built
/// only where a commit is named.
pub(crate) fn locate(
    dbms: Dbms,
    path: &Path,
    reference: Option<&str>,
    variant: Option<&str>,
    progress: &mut Progress<'_>,
) -> Result<Origin, Reason> {
    let recipes = Recipe::candidates(dbms, variant)?;
    let toolchain = Toolchain::of(variant)?;
    let folder = real(path)?;
    let repository = Repository::of(&folder)?;
    let (commit, state) = match (&repository, reference) {
        (Some(repository), _) => {
            let commit = repository.resolve(reference.unwrap_or("HEAD"))?;
            if reference.is_none() && repository.is_dirty(&commit)? {
                return Err(Reason::Setup(format!(
                    "{} has changes that are not committed; commit them, or write @HEAD to build \
                     the last commit without them",
                    folder.display()
                )));
            }
            (Some(commit.clone()), commit)
        }
        (None, Some(_)) => return Err(Reason::no_repository(&folder)),
        (None, None) => (None, compile::hash_of_sources(&folder, progress)?),
    };
    let how = how(&recipes, &toolchain)?;
    let objects = match toolchain.order {
        Some(_) => Some(self::how(&recipes, &Toolchain { order: None, ..toolchain.clone() })?),
        None => None,
    };
    let toolchain = toolchain.text();
    let variant = variant.map(str::to_owned);
    Ok(Origin::Source(SourceOrigin { folder, commit, state, variant, toolchain, how, objects }))
}

/// The hash of all inputs of a build but its sources.
fn how(recipes: &[Recipe], toolchain: &Toolchain) -> Result<String, Reason> {
    let mut hash = Sha256::new();
    hash.update(toolchain.text());
    let with_relink = toolchain.order.is_some();
    for input in recipes.iter().flat_map(|recipe| recipe.inputs(with_relink)) {
        hash.update([0]);
        hash.update(input);
    }
    for file in &toolchain.patches {
        hash.update([0]);
        let patch = bounded::bytes(file, bounded::WRITTEN_MAX);
        hash.update(patch.map_err(Reason::io("read the patch", file))?);
    }
    Ok(units::hex(&hash.finalize()[..4]))
}

/// The files of the paths that the sources of an origin have, before they are copied.
fn present(origin: &SourceOrigin, paths: BTreeSet<String>) -> Result<BTreeSet<String>, Reason> {
    let mut found = BTreeSet::new();
    let repository = match &origin.commit {
        Some(commit) => Some((repository(origin)?, commit)),
        None => None,
    };
    for path in paths {
        let is_there = match &repository {
            Some((repository, commit)) => repository.holds(commit, &path)?,
            None => origin.folder.join(&path).exists(),
        };
        if is_there {
            found.insert(path);
        }
    }
    Ok(found)
}

/// The repository of an origin with a commit.
fn repository(origin: &SourceOrigin) -> Result<Repository<'_>, Reason> {
    Repository::of(&origin.folder)?.ok_or_else(|| Reason::no_repository(&origin.folder))
}

/// Puts the sources of an origin into an empty folder.
fn put(origin: &SourceOrigin, into: &Path, progress: &mut Progress<'_>) -> Result<(), Reason> {
    let Some(commit) = &origin.commit else {
        return compile::copy_sources(&origin.folder, into, progress);
    };
    repository(origin)?.export(commit, into)
}

// The tree of sources that somebody works in.

/// A file that only the sources of one DBMS have; MariaDB before MySQL, from which it comes.
const MARKS: [(&str, Dbms); 6] = [
    ("src/backend/tcop/postgres.c", Dbms::Postgres),
    ("storage/maria/ma_open.c", Dbms::Mariadb),
    ("sql/mysqld.cc", Dbms::Mysql),
    ("include/rocksdb/db.h", Dbms::Rocksdb),
    ("src/sqliteInt.h", Dbms::Sqlite),
    ("sqlite3.c", Dbms::Sqlite),
];

/// The folder of sources that this one is in, and their DBMS.
pub fn tree_of(folder: &Path) -> Option<(PathBuf, Dbms)> {
    let folder = folder.canonicalize().ok()?;
    folder.ancestors().find_map(|top| {
        let (_, dbms) = MARKS.iter().find(|(mark, _)| top.join(mark).is_file())?;
        Some((top.to_owned(), *dbms))
    })
}

/// True if a reference means a commit there.
///
/// # Errors
/// git does not run.
pub fn has_commit(top: &Path, reference: &str) -> Result<bool, Reason> {
    let repository = Repository::of(top)?;
    Ok(repository.is_some_and(|it| it.resolve(reference).is_ok()))
}

/// What the work tree has changed since the last commit, as a patch; empty for nothing. Files that
/// git does not know are not in it.
///
/// # Errors
/// No repository, or git fails.
pub fn changes(top: &Path) -> Result<String, Reason> {
    let top = real(top)?;
    let repository = Repository::of(&top)?.ok_or_else(|| Reason::no_repository(&top))?;
    repository.changes(&repository.resolve("HEAD")?)
}
