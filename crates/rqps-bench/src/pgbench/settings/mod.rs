//! Settings of pgbench scripts: scripts, the program's options, rqps's own settings.

mod keys;
mod options;
mod scripts;

use self::keys::shape_of;
pub(super) use self::keys::{brought, data_size, finish, set};
use crate::spec::CliContext;
use rqps_model::benchmark::Workload;

/// Adds the scripts and options of a command line to a workload.
///
/// # Errors
///
/// A word is unknown, or a script cannot be read; the message says what to write instead.
pub(super) fn take(workload: &mut Workload, said: &CliContext<'_>) -> Result<(), String> {
    let Some(shape) = shape_of(workload) else { return Ok(()) };
    let named = options::take(shape, said)?;
    let mut steps: Vec<String> =
        said.what.iter().filter(|what| !what.is_empty()).cloned().collect();
    if let (Some(option), false) = (named.first(), steps.is_empty()) {
        return Err(format!(
            "scripts are named by `--bench pgbench:{}`; leave out `{}`",
            steps[0], option.said
        ));
    }
    if steps.is_empty() && !named.is_empty() {
        let words: Vec<&str> = named.iter().map(|option| option.script.as_str()).collect();
        steps.push(words.join(","));
    }
    if steps.is_empty() {
        steps.push("tpcb-like".to_owned());
    }
    for step in &steps {
        let step = scripts::step(shape, step, said.read)?;
        shape.step.push(step);
    }
    Ok(())
}
