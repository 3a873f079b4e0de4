//! Builds and settings of the targets of a plan. All of it is looked at before anything is taken or
//! made, as far as it is here; what must be fetched is fetched alone on the host, and before the
//! results have a folder. So a word that leads nowhere costs nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use crate::lab::execution::ExecutionOptions;
use crate::lab::progress::Progress;
use crate::plan::{Plan, TargetSlot};
use rqps_builds::{self as obtain, Cache, Found, PackageClients, Said};
use rqps_dbms as dbms;
use rqps_host::user::User;
use rqps_model::build::{Build, BuildSource, Manifest};
use rqps_model::config::Config;
use rqps_model::target::Target;
use rqps_wire::dsn::Dsn;

/// No server gets less: small tables still want room for indexes, undo, and growth under inserts.
const CACHE_FLOOR_BYTES: u64 = 256 << 20;

/// A target with its build, configuration and sizes.
pub(super) struct ResolvedTarget {
    pub(super) build: Build,
    pub(super) config: Config,
}

/// The builds and settings of a plan as far as they are known without fetching.
pub(super) struct Search<'a> {
    options: &'a ExecutionOptions,
    /// Memory of the host that runs the targets.
    memory_bytes: u64,
    cache: Cache,
    clients: PackageClients,
    found: Vec<Found>,
    /// The targets in a block's specification, if one is carried out.
    slots: Option<&'a [TargetSlot]>,
}

impl<'a> Search<'a> {
    /// Looks for every build and every configuration, for a host with so much memory. Takes and
    /// makes nothing but the cache. The `slots` of a written-down block have the configurations
    /// already.
    ///
    /// # Errors
    /// A build that is nowhere, a configuration that does not exist or is not for that build.
    pub(super) fn begin(
        (options, memory_bytes): (&'a ExecutionOptions, u64),
        slots: Option<&'a [TargetSlot]>,
        progress: &mut Progress<'_>,
    ) -> Result<Search<'a>> {
        let cache = open_cache(&options.cache)?;
        let clients =
            PackageClients { stop: Arc::clone(&options.stop), ..PackageClients::default() };
        let mut found = Vec::new();
        for target in &options.plan.targets {
            let label = &target.label;
            let mut say = |said: Said<'_>| match said {
                // Whoever wrote the block down has told the user already.
                Said::Note(_) if slots.is_some() => {}
                _ => progress.fetching(label, said),
            };
            options.accepted.check(label)?;
            let one = obtain::find(&clients, target.dbms, &target.source, &cache, &mut say)?;
            if let Found::Here(build) = &one {
                options.accepted.check_place(label, build.root.as_deref())?;
            }
            match &one {
                _ if slots.is_some() => Ok(()),
                Found::Here(build) => configure((options, memory_bytes), target, build).map(drop),
                Found::Wanted(_) => {
                    dbms::config::check_name(target.dbms, &target.config, &options.configs)
                        .with_context(|| format!("configure {label}"))
                }
            }?;
            found.push(one);
        }
        Ok(Search { options, memory_bytes, cache, clients, found, slots })
    }

    /// Fetches what is missing. `run_as` is who servers run as, when rqps runs as root.
    ///
    /// # Errors
    /// As [`Search::begin`], and a build that servers may not reach.
    pub(super) fn end(
        self,
        run_as: Option<&User>,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<ResolvedTarget>> {
        let mut resolved = Vec::new();
        for (index, found) in self.found.into_iter().enumerate() {
            let target = &self.options.plan.targets[index];
            let label = &target.label;
            let mut say = |said: Said<'_>| progress.fetching(label, said);
            let build = match found {
                Found::Here(build) => build,
                Found::Wanted(wanted) => {
                    let accepted = &self.options.accepted;
                    accepted.check(label)?;
                    let made = obtain::fetch(&self.clients, &wanted, &self.cache, &mut say)?;
                    accepted.check(label)?;
                    made
                }
            };
            if let Some(closed) = closed_build(run_as, &build) {
                bail!(
                    "run {label}: what is under test runs as an unprivileged user, who may not \
                     enter {}\nhint: move the build, or allow access to that folder (chmod o+x)",
                    closed.display()
                );
            }
            let config = match self.slots.and_then(|slots| slots.get(index)) {
                Some(slot) => {
                    check_build(slot, &build)?;
                    slot.config.clone()
                }
                None => configure((self.options, self.memory_bytes), target, &build)?,
            };
            resolved.push(ResolvedTarget { build, config });
        }
        Ok(resolved)
    }
}

/// Refuses a build that is not the one that was written down.
fn check_build(slot: &TargetSlot, build: &Build) -> Result<()> {
    let (wanted, here) = (&slot.build, &build.manifest);
    if wanted.sha256 != here.sha256 || wanted.dbms != here.dbms {
        let sum = |manifest: &Manifest| manifest.sha256.clone().unwrap_or("none".to_owned());
        bail!(
            "run {}: the block specification names another build than the one on this host \
             (SHA-256 {}, here {} from {})\nhint: install the same build on all hosts",
            slot.label,
            sum(wanted),
            sum(here),
            here.origin
        );
    }
    Ok(())
}

/// Opens the cache of builds.
///
/// # Errors
/// The folder cannot be made or is not a cache.
pub fn open_cache(folder: &Path) -> Result<Cache> {
    Ok(Cache::open(folder)?)
}

/// The settings of a target. A server that somebody else runs has its own, which its logs tell.
fn configure(
    (options, memory_bytes): (&ExecutionOptions, u64),
    target: &Target,
    build: &Build,
) -> Result<Config> {
    if let BuildSource::Dsn(dsn) = &target.source {
        Dsn::parse(dsn).with_context(|| format!("measure {}", target.label))?;
    }
    if let BuildSource::Dsn(_) | BuildSource::Client(_) = &target.source {
        let (name, text) = ("its own".to_owned(), String::new());
        return Ok(Config { name, hash: dbms::config::hash(&text), text });
    }
    let plan = &options.plan;
    let memory = memory_bytes / plan.targets.len() as u64;
    let version = &build.manifest.version;
    let cache = cache_bytes(plan, memory);
    let load = if plan.workload.shape.has_own_statements() {
        dbms::config::load_for_own_statements
    } else {
        dbms::config::load
    };
    load(target.dbms, &target.config, &options.configs, version, cache)
        .with_context(|| format!("configure {}", target.label))
}

/// The folder that keeps an unprivileged server or driver from its build, if rqps runs as root.
fn closed_build(run_as: Option<&User>, build: &Build) -> Option<PathBuf> {
    run_as?;
    build.root.as_deref().and_then(obtain::closed_folder)
}

/// Bytes of a target's cache: the requested size, or enough for all data, but at most 60 % of the
/// target's share of memory or of its memory limit.
pub(super) fn cache_bytes(plan: &Plan, memory_share: u64) -> u64 {
    let wanted = plan.size().cached_bytes.max(CACHE_FLOOR_BYTES);
    let memory = memory_share.min(plan.memory_limit().unwrap_or(u64::MAX));
    plan.workload.cache_bytes.unwrap_or(wanted.min(memory / 10 * 6))
}
