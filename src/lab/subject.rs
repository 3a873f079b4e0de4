//! A target with everything that is needed to run it: build, configuration, stages, folders.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::bench;
use crate::dbms::{self, ControlPlane, Interrupt, Site};
use crate::domain::benchmark::{Shape, Stage, Workload};
use crate::domain::build::{Build, Source};
use crate::domain::config::Config;
use crate::domain::kv::KEY_BYTES;
use crate::domain::run::LoadRecord;
use crate::domain::target::Target;
use crate::lab::Bench;
use crate::lab::progress::Progress;
use crate::obtain::{self, Clients};
use crate::wire::dsn::Dsn;

/// Servers have this long to start: a first start on a slow disk recovers and creates files.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// Bytes that a loaded row takes in a cache, indexes and page overhead included, rounded up.
const CACHED_ROW_BYTES: u64 = 400;
/// No server gets less: small tables still want room for indexes, undo, and growth under inserts.
const CACHE_FLOOR_BYTES: u64 = 256 << 20;

/// A target, ready to be prepared.
pub(super) struct Subject {
    pub(super) target: Target,
    pub(super) build: Build,
    pub(super) config: Config,
    pub(super) stages: Vec<Stage>,
    /// Its folder in the work folder.
    pub(super) folder: PathBuf,
    /// Set once its data are loaded.
    pub(super) load: Option<LoadRecord>,
    /// Set if it cannot be measured at all.
    pub(super) broken: bool,
    /// One line for each thing that went wrong.
    pub(super) faults: Vec<String>,
}

impl Subject {
    /// Remembers a fault, and says it.
    pub(super) fn fault(&mut self, text: String, progress: &mut Progress<'_>) {
        let line = format!("{}: {text}", self.target.label);
        progress.note(&line);
        self.faults.push(line);
    }

    /// True for a server that somebody else runs.
    pub(super) fn is_external(&self) -> bool {
        matches!(self.target.source, Source::Dsn(_))
    }

    /// True if its caches are meant to hold all data of the workload. Nothing is known of a server
    /// that somebody else runs, nor of the caches of a configuration that is not the shipped one.
    pub(super) fn is_cached(&self, bench: &Bench<'_>) -> bool {
        let plan = &bench.assignment.plan;
        let share = bench.memory_bytes / plan.targets.len() as u64;
        let known = !self.is_external() && self.target.config == "default";
        known && cache_bytes(&plan.workload, share) >= data_bytes(&plan.workload)
    }

    /// The control plane of this target on a data folder; its server is started in `memory_group`.
    pub(super) fn control(
        &self,
        bench: &Bench<'_>,
        data: PathBuf,
        logs: PathBuf,
        memory_group: Option<PathBuf>,
    ) -> Result<Box<dyn ControlPlane>> {
        let interrupt = Interrupt(Arc::clone(&bench.assignment.stop));
        if let Source::Dsn(dsn) = &self.target.source {
            let dsn = Dsn::parse(dsn)?;
            return Ok(dbms::external(dsn.dialect(), dsn.address, dsn.login, interrupt)?);
        }
        let site = Site {
            build: self.build.clone(),
            config: self.config.clone(),
            data,
            logs,
            sockets: bench.place.sockets(&self.target.label),
            storage_engine: self.target.storage_engine.clone(),
            run_as: bench.place.run_as.clone(),
            memory_group,
            warden_program: bench.assignment.program.clone(),
            start_timeout: START_TIMEOUT,
            tcp_port: None,
            interrupt,
        };
        Ok(dbms::control_plane(site)?)
    }
}

/// All targets of the plan, their builds obtained and their configurations filled in.
///
/// # Errors
/// A build that cannot be obtained, a configuration that does not exist, a glob without a step: all
/// before anything is measured.
pub(super) fn all(bench: &Bench<'_>, progress: &mut Progress<'_>) -> Result<Vec<Subject>> {
    let assignment = bench.assignment;
    let cache = super::open_cache(&assignment.cache)?;
    let mut subjects = Vec::new();
    for target in &assignment.plan.targets {
        let label = target.label.clone();
        let mut say = |what: &str| progress.doing(&label, what, None);
        let clients = Clients { stop: Arc::clone(&assignment.stop), ..Clients::default() };
        let source = &target.source;
        let build = obtain::obtain_with(&clients, target.dbms, source, &cache, &mut say)?;
        if let Some(closed) = closed_to_servers(bench, &build) {
            bail!(
                "run {label}: servers run as an unprivileged user, and {} is closed to others\n\
                 hint: move the build, or open that folder (chmod o+x)",
                closed.display()
            );
        }
        let config =
            configure(bench, target, &build).with_context(|| format!("configure {label}"))?;
        subjects.push(Subject {
            stages: assignment.plan.stages(target)?,
            folder: bench.place.target(&label),
            target: target.clone(),
            build,
            config,
            load: None,
            broken: false,
            faults: Vec::new(),
        });
    }
    Ok(subjects)
}

/// The settings of a target. A server that somebody else runs has its own, which its logs tell.
fn configure(bench: &Bench<'_>, target: &Target, build: &Build) -> Result<Config> {
    if let Source::Dsn(_) = target.source {
        let (name, text) = ("its own".to_owned(), String::new());
        return Ok(Config { name, hash: dbms::config::hash(&text), text });
    }
    let plan = &bench.assignment.plan;
    let memory = bench.memory_bytes / plan.targets.len() as u64;
    let configs = bench.assignment.configs.as_deref();
    let version = &build.manifest.version;
    let cache = cache_bytes(&plan.workload, memory);
    Ok(dbms::config::load(target.dbms, &target.config, configs, version, cache)?)
}

/// The folder that keeps an unprivileged server from its build, if rqps runs as root.
fn closed_to_servers(bench: &Bench<'_>, build: &Build) -> Option<PathBuf> {
    bench.place.run_as.as_ref()?;
    let server = !build.manifest.dbms.is_embedded();
    build.root.as_deref().filter(|_| server).and_then(obtain::closed_folder)
}

/// What was asked for, or enough for all data, but no more than 60 % of a target's share of memory,
/// or of the limit that is put on it.
fn cache_bytes(workload: &Workload, memory_share: u64) -> u64 {
    let wanted = data_bytes(workload).max(CACHE_FLOOR_BYTES);
    let memory = memory_share.min(bench::memory_limit(workload).unwrap_or(u64::MAX));
    workload.cache_bytes.unwrap_or(wanted.min(memory / 10 * 6))
}

fn data_bytes(workload: &Workload) -> u64 {
    let row = match &workload.shape {
        // Overwrites grow the tree by 10 to 15 %, and index and filter want room.
        Shape::Kv(shape) => (u64::from(shape.value_bytes) + KEY_BYTES as u64) * 3 / 2,
        _ => CACHED_ROW_BYTES,
    };
    u64::from(workload.tables) * workload.rows * row
}
