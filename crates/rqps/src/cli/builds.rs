//! `rqps builds` and `rqps get`: list and fetch builds.

use anyhow::{Result, bail};

use crate::cli::args::{Builds, CacheFolder, Get};
use crate::cli::program::stop_flag;
use crate::cli::progress::Display;
use crate::cli::{exit, folders};
use rqps_builds::catalogue::releases;
use rqps_builds::catalogue::{self, Entry};
use rqps_builds::{self as obtain, Cache, ObtainError, PackageClients, Reason, Said};
use rqps_lab::lab::{self, Event};
use rqps_lab::plan::words;
use rqps_model::build::{Build, BuildSource, Dbms};
use rqps_model::target::Target;
use rqps_model::terms::{NO_ADVICE, OPEN_SOURCE, TERMS};
use rqps_report::terms_sentence;

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
        for terms in &TERMS {
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
