//! `steps/NN-NAME.counters.csv`: one row per counter of the DBMS that moved during a step.

use std::fmt::Write;
use std::path::Path;

use crate::domain::run::{Counter, Run, StepRecord};
use crate::results::{ResultsError, files};

const HEAD: &str = "counter,before,after";

/// The end of the names of such files.
pub(super) const SUFFIX: &str = ".counters.csv";

/// No DBMS has a comma or a line end in the name of a counter; it would be a space.
pub(super) fn to_csv(counters: &[Counter]) -> String {
    let mut text = format!("{HEAD}\n");
    for Counter { name, before, after } in counters {
        let name = name.replace([',', '\n', '\r'], " ");
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name},{before},{after}");
    }
    text
}

/// The counters of a step; none where it has no such file.
pub fn counters_of(run: &Run, step: &StepRecord) -> Result<Vec<Counter>, ResultsError> {
    if !run.has_counters {
        return Ok(Vec::new());
    }
    let name = format!("{:02}-{}{SUFFIX}", step.index, step.name);
    let path = Path::new(&run.folder).join("steps").join(name);
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let text = files::text(&path)?;
    let mut counters = Vec::new();
    for (line, row) in (1..).zip(text.lines()).skip(1) {
        let counter = counter(row).ok_or_else(|| ResultsError::Malformed {
            path: path.clone(),
            line,
            field: None,
            why: format!("`{row}` is no counter with two numbers"),
        })?;
        counters.push(counter);
    }
    Ok(counters)
}

fn counter(row: &str) -> Option<Counter> {
    let mut cells = row.split(',');
    let name = cells.next()?.to_owned();
    let mut number = || cells.next()?.parse::<f64>().ok().filter(|number| number.is_finite());
    Some(Counter { name, before: number()?, after: number()? })
}
