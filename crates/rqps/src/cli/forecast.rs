//! Forecast of the differences that a plan will find, from the calibration of this host.

use std::time::Duration;

use anyhow::Result;

use crate::analyze::calibration::expected_mde;
use crate::analyze::host_noise::HostNoise;
use crate::cli::args::Folders;
use crate::cli::folders;
use crate::domain::gate::Calibration;
use crate::domain::host::fingerprint;
use crate::domain::verdict::Rules;
use crate::lab::fault;
use crate::os::host;
use crate::plan::cost::Cost;
use crate::plan::{Blocks, Interleave, Plan, file, words};
use crate::{results, units};

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
        tell!("rqps: {}", fault::text(&fault.into()));
    }
    let facts = host::read(&folders::existing(said.work.as_deref().or(said.out.as_deref())));
    let known = plan.closest(&fingerprint(&facts), &stored);
    let found = known.and_then(|known| found(plan, cost, known));
    Ok(vec![found.unwrap_or_else(|| unknown(plan))])
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
    format!(
        "its MDE is unknown, because this host has no calibration {way}; to make one: rqps \
         doctor --aa {bare} with the same options"
    )
}
