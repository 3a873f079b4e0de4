//! Parses the scripts of a step: `select-only`, `new_order.sql@5,browse.sql@20`.

use std::path::Path;

use crate::pgbench::schema::BUILTINS;
use rqps_model::pgbench::{PgbenchFile, PgbenchScript, PgbenchShape, PgbenchStep};
use rqps_model::units;

/// Most scripts of a mix.
const MOST_SCRIPTS: usize = 128;

/// Largest script, bytes.
const LARGEST: usize = 1 << 20;

/// The step for a list of scripts. Reads files into the shape.
pub(super) fn step(
    shape: &mut PgbenchShape,
    list: &str,
    read: &dyn Fn(&Path) -> Result<String, String>,
) -> Result<PgbenchStep, String> {
    let mut step = PgbenchStep::default();
    for word in list.split(',') {
        let (name, weight) = weighted(word)?;
        let name = match builtin(name)? {
            Some(builtin) => builtin.to_owned(),
            None => {
                let text = read(Path::new(name))
                    .map_err(|why| format!("{why}\nhint: built-in scripts are {}", known()))?;
                if text.len() > LARGEST {
                    return Err(format!("{name} is larger than 1 MiB"));
                }
                let file = PgbenchFile { sha256: units::sha256(&text), text };
                shape.files.insert(name.to_owned(), file);
                name.to_owned()
            }
        };
        step.scripts.push(PgbenchScript { name, weight });
    }
    if step.scripts.len() > MOST_SCRIPTS {
        return Err(format!(
            "a mix has at most {MOST_SCRIPTS} scripts, not {}",
            step.scripts.len()
        ));
    }
    if step.scripts.iter().all(|script| script.weight == 0) {
        return Err(format!("all weights of `{list}` are 0"));
    }
    Ok(step)
}

/// Splits the weight after the last `@` off.
fn weighted(word: &str) -> Result<(&str, u32), String> {
    let Some((name, weight)) = word.rsplit_once('@') else { return Ok((word, 1)) };
    match weight.parse::<i32>().map(u32::try_from) {
        Ok(Ok(weight)) => Ok((name, weight)),
        _ => Err(format!(
            "the weight of `{name}` must be a whole number from 0 to 2147483647, not `{weight}`"
        )),
    }
}

/// The built-in script with this unambiguous prefix.
fn builtin(word: &str) -> Result<Option<&'static str>, String> {
    let mut found =
        BUILTINS.iter().filter(|(name, _)| name.starts_with(word)).map(|(name, _)| *name);
    match (found.next(), found.next()) {
        _ if word.is_empty() => {
            Err(format!("the name of a script is missing; built-in scripts are {}", known()))
        }
        (Some(_), Some(_)) => Err(format!("`{word}` begins several built-in scripts: {}", known())),
        (one, _) => Ok(one),
    }
}

fn known() -> String {
    BUILTINS.map(|(name, _)| name).join(", ")
}
