//! A target with everything that is needed to run it: build, configuration, phases, folders.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::lab::client_hosts::ClientHosts;
use crate::lab::execution::{Execution, ExecutionOptions};
use crate::lab::guest;
use crate::lab::progress::Progress;
use crate::plan::{Plan, TargetSlot};
use rqps_builds::{self as obtain, Cache, Found, PackageClients, Said};
use rqps_dbms::{self as dbms, ControlPlane, Interrupt, Site};
use rqps_host::user::User;
use rqps_host::valgrind::Callgrind;
use rqps_model::answers::{StepAnswers, TableRecord};
use rqps_model::benchmark::Phase;
use rqps_model::build::{Build, BuildSource, Manifest};
use rqps_model::run::{LoadRecord, StepRecord};
use rqps_model::sampled::CallGraph;
use rqps_model::target::{Config, Target};
use rqps_wire::dsn::Dsn;

/// Servers have this long to start: a first start on a slow disk recovers and creates files, and
/// valgrind is slow.
const START_TIMEOUT: Duration = Duration::from_secs(300);

/// A load with a complete snapshot.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct KeptLoad {
    /// `None` where filling is a step of the benchmark.
    pub(super) load: Option<LoadRecord>,
    /// The load as a step, where a plan has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) step: Option<StepRecord>,
    /// What the tables hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tables: Vec<TableRecord>,
    /// The answers to the first statements of each step, by its number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) answers: BTreeMap<u32, StepAnswers>,
}

/// A target, ready to be prepared.
pub(super) struct TargetState {
    pub(super) target: Target,
    pub(super) build: Build,
    pub(super) config: Config,
    pub(super) phases: Vec<Phase>,
    /// Its folder in the work folder; that of another target if it starts from its load.
    pub(super) folder: PathBuf,
    /// The hash of the config of its load.
    pub(super) load_hash: String,
    /// True if its load is that of another target.
    pub(super) shares_load: bool,
    /// Its loads by number, from 1; empty until its data are loaded.
    pub(super) loads: BTreeMap<u32, KeptLoad>,
    /// Set if it cannot be measured at all.
    pub(super) broken: bool,
    /// The method of unwinding stacks of its build.
    pub(super) call_graph: CallGraph,
    /// One line for each thing that went wrong.
    pub(super) faults: Vec<String>,
}

impl TargetState {
    /// Remembers a fault, and says it.
    pub(super) fn fault(&mut self, text: String, progress: &mut Progress<'_>) {
        let line = format!("{}: {text}", self.target.label);
        progress.note(&line);
        self.faults.push(line);
    }

    /// True for a server that somebody else runs.
    pub(super) fn is_external(&self) -> bool {
        self.target.source.is_elsewhere()
    }

    /// True if its caches are meant to hold all data of the workload. Nothing is known of a server
    /// that somebody else runs, nor of the caches of a configuration that is not the shipped one.
    pub(super) fn is_cached(&self, execution: &Execution<'_>) -> bool {
        let plan = execution.plan;
        let share = execution.memory_bytes / plan.targets.len() as u64;
        let known = !self.is_external() && self.target.config == "default";
        known && cache_bytes(plan, share) >= plan.size().cached_bytes
    }

    /// The control plane of this target on a data folder; its server is started in `memory_group`
    /// and under `callgrind`.
    pub(super) fn control(
        &self,
        execution: &Execution<'_>,
        data: PathBuf,
        logs: PathBuf,
        memory_group: Option<PathBuf>,
        callgrind: Option<Callgrind>,
    ) -> Result<Box<dyn ControlPlane>> {
        execution.options.accepted.check(&self.target.label)?;
        if let Some(external) = guest::control(execution.options, &self.target)? {
            return Ok(Box::new(external));
        }
        let site = Site {
            build: self.build.clone(),
            accepted: execution.options.accepted.builds.get(&self.target.label).cloned(),
            config: self.config.clone(),
            data,
            logs,
            sockets: execution.folders.sockets()?,
            storage_engine: self.target.storage_engine.clone(),
            run_as: execution.folders.run_as.clone(),
            memory_group,
            start_timeout: START_TIMEOUT,
            callgrind,
            still: execution.plan.workload.counted_statements.is_some(),
            warden_program: execution.options.program.clone(),
            listen: execution.clients.as_ref().map(ClientHosts::listen).transpose()?,
            interrupt: Interrupt(Arc::clone(&execution.options.stop)),
        };
        Ok(dbms::control_plane(site)?)
    }
}

/// All targets of the plan with what they run, in its order.
///
/// # Errors
/// A glob without a step.
pub(super) fn all(
    execution: &Execution<'_>,
    resolved: Vec<ResolvedTarget>,
) -> Result<Vec<TargetState>> {
    let plan = execution.plan;
    let hashes = plan.targets.iter().zip(&resolved);
    let hashes: BTreeMap<&String, String> =
        hashes.map(|(target, resolved)| (&target.label, resolved.config.hash.clone())).collect();
    let states = plan.targets.iter().zip(&resolved).map(|(target, resolved)| {
        let lender = execution.options.shared_loads.get(&target.label);
        let lender = lender.filter(|label| hashes.contains_key(label));
        let loaded_by = lender.unwrap_or(&target.label);
        Ok(TargetState {
            phases: plan.phases(target)?,
            folder: execution.folders.target(loaded_by),
            load_hash: hashes.get(loaded_by).cloned().unwrap_or_default(),
            shares_load: lender.is_some(),
            target: target.clone(),
            build: resolved.build.clone(),
            config: resolved.config.clone(),
            loads: BTreeMap::new(),
            broken: false,
            call_graph: CallGraph::default(),
            faults: Vec::new(),
        })
    });
    states.collect()
}

// Builds and settings of the targets of a plan. All of it is looked at before anything is taken or
// made, as far as it is here; what must be fetched is fetched alone on the host, and before the
// results have a folder. So a word that leads nowhere costs nothing.

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
