//! `rqps builds` and `rqps get`: list and fetch builds.

use std::path::Path;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::cli::args::{Builds, CacheFolder, Get};
use crate::cli::exit;
use crate::cli::folders::{self, stop_flag};
use crate::cli::terminal::Display;
use rqps_builds as obtain;
use rqps_builds::catalogue::{self, Entry, releases};
use rqps_builds::source::{changes, commit_of, has_commit, tree_of};
use rqps_builds::{Cache, ObtainError, PackageClients, Reason, Said};
use rqps_lab::lab::{self, Event};
use rqps_lab::plan::words;
use rqps_model::build::{Build, BuildSource, Dbms, Target};
use rqps_model::compatible::{NO_ADVICE, OPEN_SOURCE, terms};
use rqps_model::{safe_path, units};
use rqps_report::terms_sentence;
use rqps_results as results;

/// `rqps builds`.
pub(super) fn list(words: &Builds) -> Result<u8> {
    let dbms = match &words.dbms {
        None => None,
        Some(name) => match Dbms::from_name(name) {
            Some(dbms) => Some(dbms),
            None => {
                let known: Vec<_> = Dbms::ALL.iter().map(|dbms| dbms.name()).collect();
                bail!("list builds of `{name}`: no such DBMS (known: {})", known.join(", "))
            }
        },
    };
    let cache = lab::open_cache(&folders::cache(words.cache.cache.as_deref()))?;
    out!("{:<24} {:<8} {:<60} note", "build", "cached", "package");
    for entry in entries(words, dbms, &cache)? {
        let here = cache.manifest(&entry.key()).map(|manifest| manifest.version.to_string());
        out!(
            "{:<24} {:<8} {:<60} {}",
            entry.word(),
            here.unwrap_or_default(),
            entry.origin.to_string(),
            entry.note
        );
    }
    out!(
        "rqps looks a version up in this list, then takes the newest build whose version begins \
         with it, then the\none in the cache that has it, else tries it as given. \
         DBMS=deb:SUITE/PACKAGE takes packages of any Debian suite,\nDBMS=PATH an installed tree."
    );
    if !words.no_terms {
        list_terms(dbms);
    }
    Ok(exit::FINE)
}

/// Builds of the catalogue; with --all, of all releases.
fn entries(words: &Builds, dbms: Option<Dbms>, cache: &Cache) -> Result<Vec<Entry>> {
    if !words.all {
        return Ok(catalogue::known(dbms));
    }
    let clients = PackageClients::default();
    let mut entries = Vec::new();
    let mut display = Display::of_fetches();
    for one in Dbms::ALL.into_iter().filter(|one| dbms.is_none_or(|dbms| dbms == *one)) {
        let mut say = |said: Said<'_>| display.show(Event::of_fetch(one.name(), said));
        entries.extend(releases(&clients, one, cache, words.refresh, &mut say)?);
    }
    Ok(entries)
}

/// Prints the vendors' conditions for publishing results of services that rqps reaches by DSN.
fn list_terms(dbms: Option<Dbms>) {
    out!("\nTerms of publication\n{OPEN_SOURCE}");
    if dbms.is_none_or(|dbms| dbms.dialect().spec().server.is_some()) {
        out!("Services that a DSN reaches:");
        for terms in terms() {
            out!("- {}", terms_sentence(terms));
        }
    }
    out!("{NO_ADVICE}");
}

/// `rqps get`.
pub(super) fn get(words: &Get) -> Result<u8> {
    for target in words::targets(&words.targets)? {
        let label = &target.label;
        if let BuildSource::Dsn(_) = target.source {
            bail!("get {label}: this server already runs, so there is nothing to fetch");
        }
        let Some(built) = fetched(std::slice::from_ref(&target), &words.cache)? else {
            return Ok(exit::INTERRUPTED);
        };
        for build in built {
            tell(label, &build);
        }
    }
    Ok(exit::FINE)
}

/// Fetches or makes the builds of targets; `None` if the user stopped it.
pub(super) fn fetched(targets: &[Target], said: &CacheFolder) -> Result<Option<Vec<Build>>> {
    let cache = lab::open_cache(&folders::cache(said.cache.as_deref()))?;
    let clients = PackageClients { stop: stop_flag()?, ..PackageClients::default() };
    let mut all = Vec::new();
    for target in targets {
        let label = target.label.clone();
        let mut display = Display::of_fetches();
        let mut say = |said: Said<'_>| display.show(Event::of_fetch(&label, said));
        let built = obtain::obtain_with(&clients, target.dbms, &target.source, &cache, &mut say);
        // The moving line ends before anything is printed.
        drop(display);
        match built {
            Err(ObtainError::Build { reason, .. }) if matches!(*reason, Reason::Stopped) => {
                info!("rqps: stopped; builds that were complete are in the cache");
                return Ok(None);
            }
            other => all.push(other?),
        }
    }
    Ok(Some(all))
}

/// Prints where a build is from.
fn tell(label: &str, build: &Build) {
    let manifest = &build.manifest;
    out!("{label}: {}", manifest.reported.trim());
    out!("  from {}", manifest.origin);
    if let Some(sha256) = &manifest.sha256 {
        out!("  sha256 {sha256}");
    }
    if let Some(compiler) = &manifest.compiler {
        out!("  compiled by {compiler}");
    }
    if let Some(root) = &build.root {
        out!("  in {}", root.display());
    }
}

// Commits in place of targets: `rqps compare HEAD~1 HEAD` in the sources of a DBMS.

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
                 targets` explains targets; a shallow clone, or a repository of one commit, has no \
                 older ones",
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

/// The targets with the ids of their commits: a name may mean another one when the plan is resumed
/// or repeated. Labels stay.
pub(super) fn pinned(mut targets: Vec<Target>) -> Vec<Target> {
    for target in &mut targets {
        if let BuildSource::Source { folder, reference: Some(reference), .. } = &mut target.source {
            // A name of nothing is refused with the build.
            *reference = commit_of(folder, Some(&*reference)).unwrap_or_else(|| reference.clone());
        }
    }
    targets
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
    safe_path::make_folder(&folders::patches()).with_context(writing)?;
    results::replace_whole(&path, patch).with_context(writing)?;
    Ok(format!("work-tree={source}@{HEAD}+patch={}", path.display()))
}
