//! The findings of the bench: what was said to be left and what was, as CSV and as the table of
//! docs/performance.md.

use std::fmt::Write as _;

use anyhow::{Context, Result};

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) kind: String,
    /// The length of the run.
    pub(crate) seconds: f64,
    /// Seconds left at a tenth, a half and nine tenths: said, true.
    pub(crate) found: [(f64, f64); 3],
}

/// Allowed errors: a share of the true time left, or seconds.
const BAR: (f64, f64) = (0.2, 5.0);

pub(crate) fn read(text: &str) -> Result<Vec<Row>> {
    let row = |line: &str| {
        let mut cells = line.split(',');
        let kind = cells.next()?.to_owned();
        let values: Vec<f64> = cells.map_while(|cell| cell.parse().ok()).collect();
        let [seconds, a, b, c, d, e, f] = values[..] else { return None };
        Some(Row { kind, seconds, found: [(a, b), (c, d), (e, f)] })
    };
    let rows = text.lines().skip(1);
    rows.map(|line| row(line).with_context(|| format!("read the line {line}"))).collect()
}

/// A line of the table: the error at each share, in seconds and per cent.
pub(crate) fn line(row: &Row) -> String {
    let mut text = format!("| {} | {:.0} s |", row.kind, row.seconds);
    for (said, truth) in row.found {
        let (error, share) = (said - truth, (said - truth) / truth);
        let is_met = error.abs() <= BAR.1 || share.abs() <= BAR.0;
        let mark = if is_met { "" } else { " **missed**" };
        _ = write!(text, " {error:+.1} s, {:+.0} %{mark} |", 100.0 * share);
    }
    text
}

pub(crate) fn markdown(rows: &[Row]) -> String {
    let mut text = String::from("| run | length | at a tenth | at a half | at nine tenths |\n");
    text.push_str("|---|---:|---:|---:|---:|\n");
    rows.iter().for_each(|row| {
        text.push_str(&line(row));
        text.push('\n');
    });
    text
}
