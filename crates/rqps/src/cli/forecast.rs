//! Forecast of a plan: its time with the passes after its blocks, and the differences that it will
//! find, from the calibration of this host.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::cli::args::{Folders, PlanCheck};
use crate::cli::folders;
use rqps_analysis::calibration::{HostNoise, expected_mde};
use rqps_builds as obtain;
use rqps_builds::{Found, ObtainError, PackageClients, Reason};
use rqps_dbms::{UserConfigs, config};
use rqps_host::{affinity, disk, host};
use rqps_lab::lab::{self, error_text};
use rqps_lab::plan::cost::{self, Cost};
use rqps_lab::plan::{Blocks, Interleave, Plan, file, words};
use rqps_model::build::{BuildSource, Target};
use rqps_model::gate::Calibration;
use rqps_model::host::fingerprint;
use rqps_model::verdict::Rules;
use rqps_model::{bounded, escape, units};
use rqps_results as results;

/// The time of a plan with its passes, its windows and its disk space.
///
/// # Errors
/// A glob that matches no step.
pub(super) fn time(plan: &Plan, cost: &Cost) -> Result<String> {
    let passes = passes(plan)?;
    let of_passes: f64 = passes.iter().map(|pass| pass.seconds).sum();
    let text = |seconds: f64| units::duration(Duration::from_secs_f64(seconds));
    let total = text(cost.total_seconds + of_passes);
    let all = match plan.blocks {
        Blocks::Fixed(_) => format!("about {total} in total"),
        Blocks::Auto(auto) => format!(
            "{} ({} blocks) to {total} ({} blocks or the budget) in total",
            text(cost.least_seconds + of_passes),
            auto.min,
            auto.max
        ),
    };
    let beside: String = passes
        .iter()
        .map(|pass| {
            let (blocks, time) = (pass.plan.blocks.most(), text(pass.seconds));
            format!(", {time} for the {blocks} blocks of the pass `{}`", pass.folder)
        })
        .collect();
    Ok(format!(
        "{all} ({} for loading{beside}); up to {} measured windows; about {} of disk space while \
         it runs",
        text(cost.load_seconds),
        cost.windows,
        units::bytes(cost.disk_bytes)
    ))
}

/// A pass after the blocks, which counts or samples.
pub(super) struct Pass {
    pub(super) plan: Plan,
    /// Its folder in the result folder.
    pub(super) folder: &'static str,
    pub(super) seconds: f64,
}

/// The passes of a plan, in their order.
///
/// # Errors
/// A glob that matches no step.
pub(super) fn passes(plan: &Plan) -> Result<Vec<Pass>> {
    let all = [(plan.counting()?, results::COUNTS), (plan.profiling()?, results::PROFILES)];
    let all = all.into_iter().filter_map(|(pass, folder)| Some((pass?, folder)));
    let estimated = all.map(|(plan, folder)| {
        let phases = plan.targets.first().map(|first| plan.phases(first)).transpose()?;
        let cost = cost::estimate(&plan, &phases.unwrap_or_default());
        Ok(Pass { plan, folder, seconds: cost.total_seconds })
    });
    estimated.collect()
}

/// The smallest difference that the plan probably finds, and the time for it. Without a suitable
/// calibration, says how to make one. Empty for a plan with one target.
///
/// # Errors
///
/// There is no folder of calibrations.
pub(super) fn lines(plan: &Plan, cost: &Cost, said: &Folders) -> Result<Vec<String>> {
    if plan.targets.len() < 2 {
        return Ok(Vec::new());
    }
    let (stored, faults) = results::read_calibrations(&folders::calibrations());
    for fault in faults {
        info!("rqps: {}", error_text(&fault.into()));
    }
    let facts = host::read(&folders::existing(said));
    let known = plan.closest(&fingerprint(&facts), &stored);
    let found = known.filter(|known| is_of(plan, known)).and_then(|it| found(plan, cost, it));
    Ok(vec![found.unwrap_or_else(|| unknown(plan))])
}

/// True if a target is of the DBMS of the calibration: what scatters differs too much between two.
fn is_of(plan: &Plan, known: &Calibration) -> bool {
    plan.targets.iter().any(|target| target.dbms == known.dbms)
}

/// The forecast; `None` if the calibration has no variance.
fn found(plan: &Plan, cost: &Cost, known: &Calibration) -> Option<String> {
    let (noise, schedule) = (HostNoise::of(known), plan.blocks.schedule());
    let rules = plan.gate.as_ref().map(|gate| gate.over(Rules::default())).unwrap_or_default();
    let finds = |blocks: u32| {
        let share = expected_mde(&noise, &rules, blocks, schedule.as_ref())?;
        let time = units::duration(Duration::from_secs_f64(cost.through(blocks)));
        Some(format!("{:.1} % and more in {time} ({blocks} blocks)", 100.0 * share))
    };
    let most = cost.blocks_most;
    let text = match plan.blocks {
        Blocks::Auto(auto) if most < auto.min => {
            return Some(format!(
                "no verdicts: the budget allows about {most} of the {} blocks before the first \
                 interim look; raise --budget or lower --min-blocks",
                auto.min
            ));
        }
        Blocks::Auto(auto) if most > auto.min => {
            format!("{}, {}", finds(auto.min)?, finds(most)?)
        }
        _ if most < 2 => {
            return Some("no verdicts: one block gives no estimate of the variance".to_owned());
        }
        _ => finds(most)?,
    };
    Some(format!("finds differences of {text}, {}", source(known)))
}

/// The conditions of the calibration.
fn source(known: &Calibration) -> String {
    let clients = match known.clients {
        1 => "1 client".to_owned(),
        clients => format!("{clients} clients"),
    };
    format!(
        "by the calibration of {} with {clients} {}, read steps of {} s, of {}",
        known.target,
        if known.turns { "in turns" } else { "by step" },
        known.read_seconds,
        known.made.get(..10).unwrap_or("an unknown day"),
    )
}

fn unknown(plan: &Plan) -> String {
    let way = match plan.interleave {
        Interleave::Turns => "in turns",
        Interleave::Step | Interleave::Run => "by step",
    };
    let target = plan.targets.first().map(|target| words::word(&file::without_password(target)));
    let target = target.unwrap_or_default();
    let bare = words::label_of(&target).map_or(target.as_str(), |(_, bare)| bare);
    let dbms = plan.targets.first().map_or("its DBMS", |target| target.dbms.name());
    format!(
        "its MDE is unknown, because this host has no calibration of {dbms} {way}; to make one: \
         rqps doctor --aa {bare} with the same options"
    )
}

// `rqps plan --check`: whether this host, or a described one, can carry out a plan: disk, memory,
// CPUs, builds.

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
    pub(super) cores: usize,
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
        let place = folders::existing(said);
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
            let Had { is_missing, text, .. } = had(target, said)?;
            missing += usize::from(is_missing);
            lines.push(format!("  {}: {text}", target.label));
        }
        Ok((lines, missing))
    }
}

/// How a build can be had.
struct Had {
    /// True if it cannot be had.
    is_missing: bool,
    /// True if it is here, or in a list of what there is.
    is_known: bool,
    text: String,
}

/// Looks how a build can be had. Asks no package client.
fn had(target: &Target, said: &Folders) -> Result<Had> {
    let had = |is_missing, is_known, text| Ok(Had { is_missing, is_known, text });
    if let BuildSource::Dsn(_) = target.source {
        return had(false, true, "a server that runs already".to_owned());
    }
    let cache = lab::open_cache(&folders::cache(said.cache.cache.as_deref()))?;
    let clients = PackageClients::default();
    let found = obtain::find(&clients, target.dbms, &target.source, &cache, &mut |_| ());
    match found {
        Ok(Found::Here(build)) => had(false, true, format!("here: {}", build.manifest.origin)),
        Ok(Found::Wanted(wanted)) => match wanted.origin() {
            (origin, false) => had(false, true, format!("to be fetched or built: {origin}")),
            (origin, true) => {
                let dbms = target.dbms.name();
                let lists = format!("`rqps builds {dbms}` lists versions");
                had(false, false, format!("in no list of rqps; it will ask for {origin}; {lists}"))
            }
        },
        Err(ObtainError::Build { reason, .. }) if matches!(*reason, Reason::Stopped) => {
            bail!("stopped")
        }
        Err(error) => had(true, false, format!("CANNOT BE HAD: {}", one_line(&error.to_string()))),
    }
}

/// Why a target of a plan may not be had on this host, as far as that can be told without starting
/// a program.
pub(super) fn doubt(target: &Target, said: &Folders) -> Option<String> {
    let label = &target.label;
    match &target.source {
        BuildSource::Path(path) | BuildSource::Source { folder: path, .. } if !path.exists() => {
            Some(format!("{label}: {} does not exist on this host", path.display()))
        }
        BuildSource::Version { .. } | BuildSource::Deb { .. } => {
            let had = had(target, said).ok().filter(|had| !had.is_known)?;
            Some(format!("{label}: {}", had.text))
        }
        _ => None,
    }
}

/// What stands in the way of a target's settings: there is no config of that name.
pub(super) fn lacks_config(target: &Target, own: &UserConfigs) -> Option<String> {
    let (BuildSource::Dsn(_) | BuildSource::Client(_)) = target.source else {
        let error = config::check_name(target.dbms, &target.config, own).err()?;
        return Some(format!("{}: cannot {}", target.label, one_line(&error.to_string())));
    };
    None
}

fn one_line(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join("; ")
}
