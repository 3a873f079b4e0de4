//! A target with everything that is needed to run it: build, configuration, phases, folders.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::lab::client_hosts::ClientHosts;
use crate::lab::execution::Execution;
use crate::lab::guest;
use crate::lab::progress::Progress;
use crate::lab::resolve::{ResolvedTarget, cache_bytes};
use rqps_dbms::{self as dbms, ControlPlane, Interrupt, Site};
use rqps_host::valgrind::Callgrind;
use rqps_model::answers::{StepAnswers, TableRecord};
use rqps_model::benchmark::Phase;
use rqps_model::build::Build;
use rqps_model::config::Config;
use rqps_model::run::{LoadRecord, StepRecord};
use rqps_model::sampled::CallGraph;
use rqps_model::target::Target;

/// Servers have this long to start: a first start on a slow disk recovers and creates files.
const START_TIMEOUT: Duration = Duration::from_secs(120);

/// Under valgrind they are slower. They start from a snapshot, which needs no recovery.
const VALGRIND_START_TIMEOUT: Duration = Duration::from_secs(180);

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
        let plan = &execution.options.plan;
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
            start_timeout: match callgrind {
                Some(_) => VALGRIND_START_TIMEOUT,
                None => START_TIMEOUT,
            },
            callgrind,
            still: execution.options.plan.workload.counted_statements.is_some(),
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
    let plan = &execution.options.plan;
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
