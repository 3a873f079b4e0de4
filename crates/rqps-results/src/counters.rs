//! `steps/NN-NAME.counters.csv`: one row per counter of the DBMS that moved during a step.

use std::fmt::Write;
use std::path::Path;

use crate::{ResultsError, files};
use rqps_model::run::{Counter, Run, StepRecord};

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
    let mut counters = Vec::new();
    each_counter(run, step, &mut |name, before, after| {
        counters.push(Counter { name: name.to_owned(), before, after });
    })?;
    Ok(counters)
}

/// As [`counters_of`], for reports over many runs: calls `take` with the name of each counter and
/// its values before and after the step, and makes no list of them.
pub fn each_counter(
    run: &Run,
    step: &StepRecord,
    take: &mut dyn FnMut(&str, f64, f64),
) -> Result<(), ResultsError> {
    if !run.has_counters {
        return Ok(());
    }
    let path = format!("{}/steps/{:02}-{}{SUFFIX}", run.folder, step.index, step.name);
    let path = Path::new(&path);
    let each = |text: &str| {
        for (line, row) in (1..).zip(text.lines()).skip(1) {
            let (name, before, after) = counter(row).ok_or_else(|| ResultsError::Malformed {
                path: path.to_owned(),
                line,
                field: None,
                why: format!("`{row}` is no counter with two numbers"),
            })?;
            take(name, before, after);
        }
        Ok(())
    };
    files::with_text(path, each)?.unwrap_or(Ok(()))
}

pub(super) fn counter(row: &str) -> Option<(&str, f64, f64)> {
    let mut cells = row.split(',');
    let name = cells.next()?;
    let mut number = || cells.next()?.parse::<f64>().ok().filter(|number| number.is_finite());
    Some((name, number()?, number()?))
}
