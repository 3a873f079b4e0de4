//! Commits in place of targets: `rqps compare HEAD~1 HEAD` in the sources of a DBMS.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::cli::folders;
use rqps_builds::source::{changes, has_commit, tree_of};
use rqps_lab::plan::words;
use rqps_model::units;
use rqps_results as results;

/// The reference of what is checked out.
const HEAD: &str = "HEAD";
/// The word for the work tree.
const WORK_TREE: &str = ".";

/// The targets that words mean. In the sources of a DBMS, a reference is a target, `A..B` are two,
/// and `.` is the work tree, which also stands against a single reference, or against HEAD without
/// a word. All other words stay.
///
/// # Errors
/// git fails, or the changes of the work tree cannot be kept.
pub(super) fn targets(said: &[String]) -> Result<Vec<String>> {
    let is_target = |word: &String| words::targets(std::slice::from_ref(word)).is_ok();
    if !said.is_empty() && said.iter().all(is_target) {
        return Ok(said.to_vec());
    }
    let here = std::env::current_dir().context("find the current folder")?;
    let Some((top, dbms)) = tree_of(&here) else {
        let is_commit = |word: &&String| word.starts_with(HEAD) || word.contains("..");
        if let Some(word) = said.iter().find(|word| !is_target(word) && is_commit(word)) {
            bail!(
                "read target `{word}`: {} is not in the sources of a DBMS\nhint: go to the git \
                 repository of Postgres, MySQL, MariaDB, SQLite or RocksDB, or write \
                 DBMS=src:DIR@{word}",
                here.display()
            );
        }
        return Ok(said.to_vec());
    };
    let mut targets = Vec::new();
    let source = format!("{}=src:{}", dbms.name(), top.display());
    for word in said {
        let (first, last) = word.split_once("..").unwrap_or((word, ""));
        let last = if last.is_empty() { HEAD } else { last };
        if is_target(word) {
            targets.push(word.clone());
        } else if word == WORK_TREE {
            targets.push(work_tree(&top, &source)?);
        } else if word.contains("..") && has_commit(&top, first)? && has_commit(&top, last)? {
            targets.extend([first, last].map(|reference| format!("{source}@{reference}")));
        } else if has_commit(&top, word)? {
            targets.push(format!("{source}@{word}"));
        } else {
            bail!(
                "find `{word}`: it is no target, and {} has no commit of that name\nhint: `rqps help \
                 targets` explains targets; a shallow clone lacks older commits",
                top.display()
            );
        }
    }
    if said.is_empty() {
        targets.push(format!("{source}@{HEAD}"));
    }
    if targets.len() == 1 {
        targets.push(work_tree(&top, &source)?);
    }
    Ok(targets)
}

/// The two sides of a change: as [`targets`]. Without a word, the last commit stands against a work
/// tree with changes; else against the commit before it.
///
/// # Errors
/// As [`targets`]; no word outside of the sources of a DBMS.
pub(super) fn sides(said: &[String]) -> Result<Vec<String>> {
    let here = std::env::current_dir().context("find the current folder")?;
    match tree_of(&here) {
        None if said.is_empty() => bail!(
            "check: {} is not in the sources of a DBMS\nhint: go to the git repository of Postgres, \
             MySQL, MariaDB, SQLite or RocksDB, or name two targets",
            here.display()
        ),
        Some((top, _)) if said.is_empty() && changes_in(&top)?.is_empty() => {
            targets(&[format!("{HEAD}~1"), HEAD.to_owned()])
        }
        _ => targets(said),
    }
}

fn changes_in(top: &Path) -> Result<String> {
    changes(top).context("compare the work tree with its last commit")
}

/// The target of the work tree: the last commit with its changes, which are kept as a patch.
fn work_tree(top: &Path, source: &str) -> Result<String> {
    let patch = changes_in(top)?;
    if patch.is_empty() {
        info!("rqps: {} has no changes: the work tree is HEAD", top.display());
        return Ok(format!("work-tree={source}@{HEAD}"));
    }
    let name = units::hex(&Sha256::digest(&patch)[..6]);
    let path = folders::patches().join(format!("{name}.patch"));
    let writing = || format!("keep the changes of the work tree in {}", path.display());
    fs::create_dir_all(folders::patches()).with_context(writing)?;
    results::replace_whole(&path, patch).with_context(writing)?;
    Ok(format!("work-tree={source}@{HEAD}+patch={}", path.display()))
}
