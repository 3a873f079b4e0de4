//! `rqps plan --check`: whether this host, or a described one, can carry out a plan: disk, memory,
//! CPUs, builds.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::cli::args::{Folders, PlanCheck};
use crate::cli::folders;
use rqps_builds::{self as obtain, Found, ObtainError, PackageClients, Reason};
use rqps_host::{affinity, disk, host};
use rqps_lab::lab;
use rqps_lab::plan::{Plan, cost};
use rqps_model::build::BuildSource;
use rqps_model::target::Target;
use rqps_model::{bounded, escape, units};

/// Most bytes of a description.
const DESCRIPTION_MAX: u64 = 64 << 10;

/// A machine as `--host-like` describes it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    cores: u32,
    memory_gb: f64,
    disk_gb: f64,
}

/// What a plan may use.
pub(super) struct Machine {
    name: String,
    cores: usize,
    memory_bytes: u64,
    free_bytes: u64,
}

impl Machine {
    /// The machine that is described, or this one.
    ///
    /// # Errors
    /// The description cannot be read.
    pub(super) fn of(check: &PlanCheck, said: &Folders) -> Result<Machine> {
        if let Some(path) = &check.host_like {
            return Machine::described(path);
        }
        let place = volume(said);
        Ok(Machine {
            name: format!("this host, {}", place.display()),
            cores: affinity::allowed_cpus().len(),
            memory_bytes: host::memory_bytes(),
            free_bytes: disk::free_bytes(&place)?,
        })
    }

    fn described(path: &Path) -> Result<Machine> {
        let doing = || format!("read the description of a machine {}", path.display());
        let text = bounded::text(path, DESCRIPTION_MAX).with_context(doing)?;
        let Description { cores, memory_gb, disk_gb } = serde_json::from_str(&text)
            .context("write it as {\"cores\": 48, \"memory_gb\": 128, \"disk_gb\": 1900}")
            .with_context(doing)?;
        let sizes = [memory_gb, disk_gb];
        if cores == 0 || !sizes.iter().all(|size| (0.1..1e9).contains(size)) {
            bail!("{}: it has no cores, memory or disk", doing());
        }
        let [memory_bytes, free_bytes] = sizes.map(|gigabytes| (gigabytes * 1e9) as u64);
        let name =
            escape::line(&path.file_name().unwrap_or_default().to_string_lossy()).into_owned();
        Ok(Machine { name, cores: cores as usize, memory_bytes, free_bytes })
    }

    pub(super) fn cores(&self) -> usize {
        self.cores
    }

    /// What the plan needs beside what there is, line by line, and the number of things that are
    /// missing.
    pub(super) fn judge(&self, plan: &Plan, said: &Folders) -> Result<(Vec<String>, usize)> {
        let mut lines = vec![format!(
            "on {}: {} CPUs, {} of memory, {} of free disk",
            self.name,
            self.cores,
            units::bytes(self.memory_bytes),
            units::bytes(self.free_bytes)
        )];
        let peak = cost::disk(plan);
        let fits = peak.data + peak.snapshots <= self.free_bytes as f64;
        lines.push(format!(
            "  disk: at most {} of data and {} of snapshots at once on the volume of --work: {}",
            units::bytes(peak.data as u64),
            units::bytes(peak.snapshots as u64),
            if fits { "fits" } else { "TOO SMALL (see --interleave run, --work, --yes-disk)" }
        ));
        let memory = lab::check_together(plan, self.memory_bytes);
        lines.push(match &memory {
            Ok(()) => "  memory: fits".to_owned(),
            Err(error) => format!("  memory: TOO SMALL: {}", one_line(&format!("{error:#}"))),
        });
        let clients = plan.workload.client_counts.iter().copied().max();
        let clients = clients.unwrap_or(plan.workload.clients).max(plan.workload.clients) as usize;
        if clients > self.cores {
            lines.push(format!("  CPUs: fewer than the {clients} clients"));
        }
        let mut missing = usize::from(!fits) + usize::from(memory.is_err());
        for target in &plan.targets {
            let (is_missing, text) = had(target, said)?;
            missing += usize::from(is_missing);
            lines.push(format!("  {}: {text}", target.label));
        }
        Ok((lines, missing))
    }
}

/// The folder on whose volume data and snapshots lie.
fn volume(said: &Folders) -> PathBuf {
    folders::existing(said.work.as_deref().or(said.out.as_deref()))
}

/// How a build can be had; true if it cannot. Asks no package client.
fn had(target: &Target, said: &Folders) -> Result<(bool, String)> {
    if let BuildSource::Dsn(_) = target.source {
        return Ok((false, "a server that runs already".to_owned()));
    }
    let cache = lab::open_cache(&folders::cache(said.cache.cache.as_deref()))?;
    let clients = PackageClients::default();
    let found = obtain::find(&clients, target.dbms, &target.source, &cache, &mut |_| ());
    Ok(match found {
        Ok(Found::Here(build)) => (false, format!("here: {}", build.manifest.origin)),
        Ok(Found::Wanted(wanted)) => match wanted.origin() {
            (origin, false) => (false, format!("to be fetched or built: {origin}")),
            (origin, true) => (false, format!("in no list of rqps; it will ask for {origin}")),
        },
        Err(ObtainError::Build { reason, .. }) if matches!(*reason, Reason::Stopped) => {
            bail!("stopped")
        }
        Err(error) => (true, format!("CANNOT BE HAD: {}", one_line(&error.to_string()))),
    })
}

fn one_line(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join("; ")
}
