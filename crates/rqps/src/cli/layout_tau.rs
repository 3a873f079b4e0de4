//! τ of a comparison or bisection from the layout noise that `rqps doctor --layout` measured.

use anyhow::{Result, bail};

use crate::cli::args::{Compare, Folders};
use crate::cli::folders;
use rqps_analysis::calibration::layout_noise;
use rqps_host::host;
use rqps_lab::plan::PlanDraft;
use rqps_model::build::{BuildSource, Dbms};
use rqps_model::host::fingerprint;
use rqps_model::target::Target;
use rqps_model::verdict::Rules;
use rqps_results as results;

/// Gives a plan that measures on this host the τ of its products, unless an option names one.
///
/// # Errors
/// As [`tau`].
pub(super) fn set(plan: &mut PlanDraft, words: &Compare) -> Result<()> {
    let here = words.hosts.on.is_none() && words.shape.server_host.is_none();
    if here && words.rules.tau.is_none() {
        let delta = words.rules.delta;
        if let Some(tau) = tau(&plan.targets, &words.folders, delta)? {
            plan.gate.get_or_insert_default().tau = Some(tau);
        }
    }
    Ok(())
}

/// τ of these targets on this host as a share, if all their products were measured here: the
/// largest. `None` if rqps does not start their servers here.
///
/// # Errors
/// The kept noise cannot be read, or is not less than δ.
pub(super) fn tau(targets: &[Target], said: &Folders, delta: Option<f64>) -> Result<Option<f64>> {
    let kept = results::read_layouts(&folders::layouts())?;
    let elsewhere = |target: &Target| matches!(target.source, BuildSource::Dsn(_));
    if kept.is_empty() || targets.iter().any(elsewhere) {
        return Ok(None);
    }
    let place = folders::existing(said.work.as_deref().or(said.out.as_deref()));
    let host = fingerprint(&host::read(&place));
    let of = |dbms: Dbms| {
        let own = kept.iter().find(|known| known.dbms == dbms && known.host_fingerprint == host);
        own.and_then(|known| layout_noise(&known.steps)).map(|noise| noise.tau())
    };
    let all: Option<Vec<f64>> = targets.iter().map(|target| of(target.dbms)).collect();
    let Some(ln) = all.and_then(|all| all.into_iter().reduce(f64::max)) else { return Ok(None) };
    let rules =
        Rules { tau: ln, delta: delta.unwrap_or(Rules::default().delta), ..Rules::default() };
    let share = rules.tau_share();
    if rules.fault().is_some() {
        bail!(
            "use the layout noise of this host as tau: it is {:.2} %, and delta is {:.2} %; name a \
             larger --delta, or a --tau of your own",
            100.0 * share,
            100.0 * rules.delta
        );
    }
    info!(
        "rqps: tau is {:.2} %, the layout noise on this host (rqps doctor --layout)",
        100.0 * share
    );
    Ok(Some(share))
}
