//! Reads response-time tables of the Insert Benchmark: a row of ten buckets and the longest time
//! per target or client, as counts or per cent.

use crate::cells::number;
use crate::format::Result;
use crate::text::Text;

/// Names of the buckets: their upper bounds, and the one for all longer times.
pub const BUCKETS: [&str; 10] =
    ["256us", "1ms", "4ms", "16ms", "64ms", "256ms", "1s", "4s", "16s", "gt"];

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramRow {
    /// Line number, from 1.
    pub line: usize,
    /// `20m.my`, if there is such a column.
    pub report: Option<String>,
    /// The step, if there is such a column.
    pub step: Option<String>,
    /// `insert`, `delete` or `query`, if there is such a column.
    pub op: Option<String>,
    /// One cell per bucket of [`BUCKETS`]: a count, a percentage, or `nonzero`.
    pub cells: Vec<String>,
    /// Longest response time in seconds, as printed.
    pub max: String,
    /// Column number of the first bucket, from 1.
    pub first: usize,
    /// The target; in files of one step `t1:TARGET`, `sum:TARGET` and `pct:TARGET`.
    pub tag: String,
}

/// True if the text begins with the heads of such a table.
pub fn is_histogram(text: &Text) -> bool {
    let heads: Vec<&str> = text.first().split_whitespace().collect();
    BUCKETS.iter().all(|bucket| heads.contains(bucket)) && heads.contains(&"max")
}

/// Reads a table; the line of heads may repeat.
///
/// # Errors
///
/// A row with a wrong number of cells, a cell that is neither a number nor `nonzero`, percentages
/// that do not add up to 100 ± 0.1, a table without rows.
pub fn parse_histogram(text: &Text) -> Result<Vec<HistogramRow>> {
    let mut heads: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for (line, row) in text.rows() {
        let cells: Vec<&str> = row.split_whitespace().collect();
        if cells.contains(&"256us") {
            heads = cells.iter().map(|cell| (*cell).to_owned()).collect();
            continue;
        }
        if heads.is_empty() {
            return Err(text.malformed(line, "a row before the header (`256us 1ms … max tag`)"));
        }
        // Some heads omit the word tag.
        if cells.len() != heads.len() + 1 {
            text.check_width(line, cells.len(), heads.len())?;
        }
        let cell = |name: &str| {
            heads.iter().position(|head| head == name).map(|place| cells[place].to_owned())
        };
        let tag = cell("tag").or_else(|| cells.last().map(|cell| (*cell).to_owned()));
        let row = HistogramRow {
            line,
            report: cell("report"),
            step: cell("step"),
            op: cell("op"),
            cells: BUCKETS.iter().filter_map(|bucket| cell(bucket)).collect(),
            max: cell("max").unwrap_or_default(),
            first: heads.iter().position(|head| head == BUCKETS[0]).unwrap_or(0) + 1,
            tag: tag.unwrap_or_default(),
        };
        check(text, &row)?;
        rows.push(row);
    }
    if rows.is_empty() { Err(text.cut_short("the first row of the histogram")) } else { Ok(rows) }
}

fn check(text: &Text, row: &HistogramRow) -> Result<()> {
    if row.cells.len() != BUCKETS.len() {
        return Err(text.malformed(row.line, "expected ten buckets"));
    }
    let heads = BUCKETS.into_iter().chain(["max"]);
    for (place, (head, cell)) in heads.zip(row.cells.iter().chain([&row.max])).enumerate() {
        if cell != "nonzero" {
            text.number(row.line, row.first + place, head, cell)?;
        }
    }
    let shares = row.cells.iter().any(|cell| cell.contains('.'));
    let sum: f64 = row.cells.iter().filter_map(|cell| number(cell)).sum();
    if shares && (sum - 100.0).abs() > 0.1 && sum != 0.0 {
        return Err(text.malformed(row.line, format!("the shares add up to {sum:.3} per cent")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const TABLE: &str = "report\tstep\top\t256us\t1ms\t4ms\t16ms\t64ms\t256ms\t1s\t4s\t16s\tgt\t\
        max\ttag\n20m.my\tl.i0\tinsert\t0.000\t98.919\t1.081\tnonzero\t0.000\t0.000\t0.000\t0.000\t\
        0.000\t0.000\t0.098\tmy5649.cy8\n";

    fn of(text: &str) -> Result<Vec<HistogramRow>> {
        parse_histogram(&Text::of(Path::new("rt"), text))
    }

    #[test]
    fn rows_are_read_with_and_without_steps() {
        let rows = of(TABLE).unwrap();
        assert_eq!(
            (rows[0].step.as_deref(), rows[0].op.as_deref()),
            (Some("l.i0"), Some("insert"))
        );
        assert_eq!((rows[0].max.as_str(), rows[0].tag.as_str()), ("0.098", "my5649.cy8"));
        let counts = "256us 1ms 4ms 16ms 64ms 256ms 1s 4s 16s gt max\n\
            1 2 3 4 5 6 7 8 9 10 0.123 sum:DBMS\n";
        let rows = of(counts).unwrap();
        assert_eq!((rows[0].cells.len(), rows[0].tag.as_str()), (10, "sum:DBMS"));
    }

    #[test]
    fn faults_name_the_line() {
        let check = |text: &str, expected: &str| {
            let fault = of(text).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check("1 2\n", "line 1: a row before the header");
        check(&TABLE.replace("\t0.098", ""), "");
        check(&TABLE.replace("98.919", "88.919"), "line 2: the shares add up to 90.000");
        check(
            &TABLE.replace("nonzero", "some"),
            "line 2, column 7: `some` under `16ms` is not a number",
        );
        check(TABLE.lines().next().unwrap(), "line 1: the file ends here");
    }
}
