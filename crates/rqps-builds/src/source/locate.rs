//! Parses a target word with `src:`: a commit or a folder, a variant, and a toolchain.

use std::collections::BTreeSet;
use std::path::Path;

use rqps_model::bounded;
use sha2::{Digest, Sha256};

use super::folder;
use super::git::Repository;
use super::recipe::Recipe;
use super::toolchain::Toolchain;
use crate::error::{Reason, real};
use crate::progress::Progress;
use rqps_dbms::spec::{Origin, SourceOrigin};
use rqps_model::build::Dbms;
use rqps_model::units;

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
        (None, None) => (None, folder::hash(&folder, progress)?),
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
pub(super) fn present(
    origin: &SourceOrigin,
    paths: BTreeSet<String>,
) -> Result<BTreeSet<String>, Reason> {
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
pub(super) fn put(
    origin: &SourceOrigin,
    into: &Path,
    progress: &mut Progress<'_>,
) -> Result<(), Reason> {
    let Some(commit) = &origin.commit else {
        return folder::copy(&origin.folder, into, progress);
    };
    repository(origin)?.export(commit, into)
}
