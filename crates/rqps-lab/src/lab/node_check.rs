//! The check of a node before each block that Slurm starts there. A node that is full or sick says
//! why, and gets no more blocks of the plan; canaries around the block find smaller disturbances.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::lab::canaries::{self, CanarySource};
use crate::lab::canary_reader::CanaryReader;
use crate::lab::{executor, memory, work_folders};
use crate::plan::{BlockSpec, cost};
use rqps_host::host;
use rqps_model::gate::Canary;
use rqps_results::{entries, replace_whole};

/// Each node leaves its last canary in this folder, below the folder that all nodes share.
const READINGS: &str = "nodes";

/// Checks that the node of this name has the room and the memory for a block, and is not much
/// slower than other nodes were. Leaves its canary in the folder `pool`, which all nodes share.
///
/// # Errors
/// The node is not fit; the text says why.
pub fn check_node(spec: &BlockSpec, node: &str, (work, pool): (&Path, &Path)) -> Result<()> {
    let plan = &spec.plan;
    let run_as = work_folders::unprivileged_user(plan)?;
    let bytes = cost::estimate(plan, &[]).disk_bytes;
    work_folders::check_space_for(work, Some(work), run_as.as_ref(), bytes)?;
    executor::check_can_keep(work)?;
    memory::check_together(plan, host::memory_bytes())?;
    if !plan.canaries {
        return Ok(());
    }
    let readings = pool.join(READINGS);
    let others = others(&readings, node)?;
    let mut reader = CanaryReader::new(source(spec, (node, work)), 0);
    let (reading, sick) = reader.of_node(&others);
    let Some(reading) = reading else { return Ok(()) };
    if let Some(why) = sick {
        bail!(
            "measure on a sick node: {why}, by the canaries of other nodes\nhint: if its hardware \
             is another, name the class of hosts with --constraint"
        );
    }
    if let Some(why) = reading.missing.get("fsync_ns") {
        bail!("write data: {why}");
    }
    let text = serde_json::to_string(&reading).context("write down the canary")?;
    fs::create_dir_all(&readings).with_context(|| format!("make {}", readings.display()))?;
    replace_whole(&file_of(&readings, node), text + "\n")?;
    Ok(())
}

fn file_of(readings: &Path, node: &str) -> std::path::PathBuf {
    readings.join(format!("{node}.json"))
}

/// The last canaries of all other nodes.
fn others(readings: &Path, node: &str) -> Result<Vec<Canary>> {
    let own = file_of(readings, node);
    if !readings.is_dir() {
        return Ok(Vec::new());
    }
    let paths = entries(readings)?.into_iter().map(|name| readings.join(name));
    let paths = paths.filter(|path| *path != own);
    let whole = paths.filter(|path| path.extension().is_some_and(|end| end == "json"));
    let read = |path: std::path::PathBuf| {
        let what = || format!("read {}", path.display());
        let text = fs::read_to_string(&path).with_context(what)?;
        serde_json::from_str(&text).with_context(what)
    };
    whole.map(read).collect()
}

/// The canaries of the node. The fake DBMS does no work, so a script says how its nodes are.
fn source(spec: &BlockSpec, (node, work): (&str, &Path)) -> CanarySource {
    if spec.plan.targets.iter().any(|target| !target.dbms.dialect().is_scripted()) {
        return CanarySource::Host(work.to_owned());
    }
    let configs = spec.targets.iter().map(|slot| slot.config.text.as_str());
    let script = canaries::script(configs, &format!("canaries.{node}"));
    CanarySource::Script(script.unwrap_or_default())
}
