//! Describes the tables that a workload of the user's own will load on servers that rqps did not
//! start, for the question whether it may.

use anyhow::{Context, Result, bail};

use rqps_driver::load_changes;
use rqps_driver::request::RequestBody;
use rqps_lab::plan::{Interleave, Plan};
use rqps_model::build::BuildSource;
use rqps_model::target::Target;

/// A description of the loads on the servers of these targets; `None` if no target is loaded.
///
/// # Errors
/// A file cannot be read; a later block would find tables of an earlier one; two targets would load
/// into one database at the same time.
pub(super) fn words(plan: &Plan, targets: &[&Target]) -> Result<Option<String>> {
    let mut words: Vec<String> = Vec::new();
    let mut places: Vec<&BuildSource> = Vec::new();
    for target in targets {
        let Some(RequestBody::LoadFiles(load)) = plan.load_request(target) else { continue };
        let doing = || format!("load tables on {}", target.label);
        let dialect = target.dbms.dialect();
        let found = load_changes::of_load(&load, dialect);
        let changed = found.map_err(anyhow::Error::msg).with_context(doing)?.relations;
        let kept = load_changes::undropped(&load, dialect, &changed);
        if plan.blocks.most() > 1 && !kept.is_empty() {
            let all: Vec<String> =
                changed.iter().rev().map(|relation| relation.drop_entry()).collect();
            let kept: Vec<&str> = kept.iter().map(|relation| relation.name.as_str()).collect();
            bail!(
                "load tables on {}: each block loads anew, and `drop` of [load] does not name {}\n\
                 hint: if nothing else is in them, add drop = {all:?} to [load]",
                target.label,
                kept.join(", ")
            );
        }
        if plan.interleave != Interleave::Run && places.contains(&&target.source) {
            bail!(
                "load tables on {}: another target loads into the same database\n\
                 hint: give each target its own database, or use --interleave run",
                target.label
            );
        }
        places.push(&target.source);
        let said = load_changes::words(&load, dialect, &changed);
        if !words.contains(&said) {
            words.push(said);
        }
    }
    let all = words.join(", or ");
    Ok((!all.is_empty()).then(|| format!("each block {all}")))
}
