//! Reads the tables of the Insert Benchmark's perf reports: a row of metrics per target and step
//! (`o.sum`, `mrg`, metrics tables), or of ratios to a baseline (`rel`).

use crate::ImportError;
use crate::number::{Fault, is_word, number, parse as parse_number};
use crate::text::{METRICS_MAX, Row, Text};
use rqps_stats::ratio::printed_ratio;

/// The rows of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricsTable {
    /// Its rows in order.
    pub rows: Vec<MetricsRow>,
}

/// A row of metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsRow {
    /// Line number, from 1.
    pub line: usize,
    /// Group number; `-` lines separate groups.
    pub group: usize,
    /// The step, if a column or a line above the heads tells it.
    pub step: Option<String>,
    /// Columns and printed cells, without step and tag.
    pub cells: Row,
    /// The target.
    pub tag: String,
    /// Heads of sizes below zero, which are left out.
    pub below_zero: Vec<String>,
}

/// Columns of sizes.
const SIZES: [&str; 4] = ["dbgb1", "dbgb2", "rss", "vsz"];

impl MetricsRow {
    /// A cell as printed.
    pub fn cell(&self, column: &str) -> Option<&str> {
        self.cells.iter().find(|(name, _)| name == column).map(|(_, cell)| cell.as_str())
    }

    /// A cell as a number; `None` for `NA`.
    pub fn value(&self, column: &str) -> Option<f64> {
        self.cell(column).and_then(number)
    }
}

/// True for a line of heads: it contains `ips` and ends with `tag`.
fn is_heads(cells: &[&str]) -> bool {
    cells.contains(&"ips") && cells.last() == Some(&"tag")
}

/// True if the text has rows of metrics.
pub fn is_metrics(text: &Text) -> bool {
    let mut lines = text.lines().map(|(_, line)| line).filter(|line| !line.trim().is_empty());
    let heads = |line: &str| is_heads(&line.split_whitespace().collect::<Vec<_>>());
    lines.by_ref().take(2).any(heads)
}

/// Reads a file. Columns are found by their names, so older tables with other columns are accepted.
/// Tabs or blanks separate cells.
///
/// # Errors
///
/// A row before the heads or with a wrong number of cells, a cell that is neither a number nor
/// `NA`; heads with a repeated column; a file without rows.
pub fn parse(text: &Text) -> Result<MetricsTable, ImportError> {
    text.at_most(METRICS_MAX)?;
    let mut table = MetricsTable::default();
    let mut heads: Vec<String> = Vec::new();
    let (mut group, mut step) = (0, None);
    let ratios = is_relative(text);
    for (line, row) in text.lines() {
        let cells: Vec<&str> = row.split_whitespace().collect();
        match cells.as_slice() {
            [] => {}
            ["-"] => group += 1,
            _ if is_heads(&cells) => {
                heads = cells.iter().map(|cell| (*cell).to_owned()).collect();
                let twice = heads.iter().enumerate().find(|(at, head)| heads[..*at].contains(head));
                if let Some((_, head)) = twice {
                    return Err(text.malformed(line, format!("two columns have the name `{head}`")));
                }
            }
            [one] if is_word(one) => {
                step = Some((*one).to_owned());
                group += 1;
            }
            _ => {
                let row = metrics_row(text, line, &heads, &cells, ratios)?;
                text.check_label(line, &row.tag, table.rows.iter().map(|row| row.tag.as_str()))?;
                let step = row.step.clone().or_else(|| step.clone());
                table.rows.push(MetricsRow { group, step, ..row });
            }
        }
    }
    if table.rows.is_empty() { Err(text.cut_short("the first row of metrics")) } else { Ok(table) }
}

/// True for a table of ratios: by the name of the file, or because its first column has two
/// decimals, unlike insert rates.
pub fn is_relative(text: &Text) -> bool {
    let name = text.path().file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with("rel.") {
        return true;
    }
    let mut place = None;
    let mut ratios = 0;
    for (_, row) in text.lines() {
        let cells: Vec<&str> = row.split_whitespace().collect();
        if is_heads(&cells) {
            place = cells.iter().position(|head| *head == "ips");
        } else if let Some(cell) = place.and_then(|place| cells.get(place))
            && cells.len() > 1
        {
            let decimals = cell.split_once('.').map(|(_, decimals)| decimals.len());
            if decimals != Some(2) && !["1", "NA", "inf"].contains(cell) {
                return false;
            }
            ratios += 1;
        }
    }
    ratios > 0
}

fn metrics_row(
    text: &Text,
    line: usize,
    heads: &[String],
    cells: &[&str],
    ratios: bool,
) -> Result<MetricsRow, ImportError> {
    if heads.is_empty() {
        return Err(text.malformed(line, "a row before the header (`ips qps … tag`)"));
    }
    text.check_width(line, cells.len(), heads.len())?;
    let mut row = MetricsRow {
        line,
        group: 0,
        step: None,
        cells: Vec::new(),
        tag: String::new(),
        below_zero: Vec::new(),
    };
    for (place, (head, cell)) in heads.iter().zip(cells).enumerate() {
        match head.as_str() {
            "step" => row.step = Some((*cell).to_owned()),
            "tag" => row.tag = (*cell).to_owned(),
            _ => {
                // A size is no result: one that cannot be is left out, and not the folder.
                if SIZES.contains(&head.as_str()) && parse_number(cell) == Err(Fault::BelowZero) {
                    row.below_zero.push(head.clone());
                    continue;
                }
                // Tables of ratios print `inf` if only the baseline is zero.
                if *cell != "NA" && (*cell != "inf" || !ratios) {
                    text.number(line, place + 1, head, cell)?;
                }
                row.cells.push((head.clone(), (*cell).to_owned()));
            }
        }
    }
    Ok(row)
}

/// Splits the size off a tag: `20m.my5649.cy8` is `my5649.cy8` with 20 million rows.
pub fn split_size(tag: &str) -> (Option<&str>, &str) {
    match tag.split_once('.') {
        Some((size, rest))
            if size.ends_with('m')
                && size.len() > 1
                && size[..size.len() - 1].bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            (Some(size), rest)
        }
        _ => (None, tag),
    }
}

/// The row of a merged table: rates as whole numbers, the tag without its size.
pub fn merged(row: &MetricsRow) -> String {
    let cell = |(column, cell): &(String, String)| match column.as_str() {
        "ips" | "qps" | "rps" => match number(cell) {
            Some(number) => format!("{number:.0}"),
            None => cell.clone(),
        },
        _ => cell.clone(),
    };
    let mut cells: Vec<String> = row.cells.iter().map(cell).collect();
    cells.push(split_size(&row.tag).1.to_owned());
    cells.join("\t")
}

/// The row of a relative table: each cell divided by that of the baseline; `NA` if either is.
pub fn relative(row: &MetricsRow, baseline: &MetricsRow) -> String {
    let ratio = |(column, cell): &(String, String)| match (number(cell), baseline.value(column)) {
        (Some(value), Some(of_baseline)) => printed_ratio(value, of_baseline),
        _ => "NA".to_owned(),
    };
    let mut cells: Vec<String> = row.cells.iter().map(ratio).collect();
    cells.push(row.tag.clone());
    cells.join("\t")
}

/// The relative table of a merged one: the first row of each group is the baseline and is left out.
pub fn relative_rows(table: &MetricsTable) -> Vec<(&MetricsRow, String)> {
    let mut rows = Vec::new();
    let mut baseline: Option<&MetricsRow> = None;
    for row in &table.rows {
        match baseline {
            Some(first) if first.group == row.group => rows.push((row, relative(row, first))),
            _ => baseline = Some(row),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn of(text: &str) -> Result<MetricsTable, ImportError> {
        parse(&Text::of(Path::new("o.sum"), text))
    }

    const SUM: &str = "ips\tqps\trps\trpq\tmaxop\tp50\ttag\n\
        122699\t0\t1238.5\t0.009\t0.098\tNA\t20m.my5649.cy8\n\
        76923\t0\t0.0\t0.000\t0.045\tNA\t20m.my8027.cy8\n";

    #[test]
    fn rows_are_merged_and_divided() {
        let table = of(SUM).unwrap();
        assert_eq!(merged(&table.rows[0]), "122699\t0\t1238\t0.009\t0.098\tNA\tmy5649.cy8");
        let relative = relative_rows(&table);
        assert_eq!(relative.len(), 1);
        assert_eq!(relative[0].1, "0.63\t1\t0.00\t0.00\t0.46\tNA\t20m.my8027.cy8");
        let groups = of(&SUM.replace("\n76923", "\n-\n76923")).unwrap();
        assert_eq!(relative_rows(&groups), []);
        assert_eq!(of(&SUM.replace('\n', "\r\n\r\n")).unwrap().rows.len(), 2);
    }

    #[test]
    fn steps_come_from_a_column_or_a_line() {
        let column = "step\tips\ttag\nl.i0\t1\ta\n";
        assert_eq!(of(column).unwrap().rows[0].step.as_deref(), Some("l.i0"));
        let lines = "\nl.i0\nips\ttag\n1\ta\n2\tb\n\nl.x\nips\ttag\n3\ta\n";
        let table = of(lines).unwrap();
        let steps: Vec<_> = table.rows.iter().map(|row| row.step.as_deref().unwrap()).collect();
        assert_eq!(steps, ["l.i0", "l.i0", "l.x"]);
        assert_eq!(relative_rows(&table).len(), 1);
    }

    #[test]
    fn faults_name_the_line() {
        let check = |text: &str, expected: &str| {
            let fault = of(text).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check("1\t2\ta\n", "line 1: a row before the header");
        check(&SUM.replace("\t0.045", ""), "line 3: 6 cells for 7 columns");
        check(
            &SUM.replace("0.045", "slow"),
            "line 3, column 5: `slow` under `maxop` is not a number",
        );
        check("ips\tips\ttag\n", "line 1: two columns have the name `ips`");
        check("ips\ttag\n", "line 1: the file ends here");
        check(
            &SUM.replace("0.045", "-0.045"),
            "line 3, column 5: `-0.045` under `maxop` is below zero",
        );
        for bad in ["inf", "-0", "1e24", "nan"] {
            check(&SUM.replace("0.045", bad), &format!("line 3, column 5: `{bad}` under `maxop`"));
        }
        let cut = SUM.trim_end().strip_suffix("8027.cy8").unwrap();
        check(&format!("{SUM}{}", cut.lines().last().unwrap()), "line 4: the file is truncated");
        check(&format!("{SUM}10582"), "line 4: 1 cell for 7 columns; is the line truncated?");
    }

    #[test]
    fn sizes_are_split_from_tags() {
        assert_eq!(split_size("20m.my5649.cy8"), (Some("20m"), "my5649.cy8"));
        assert_eq!(split_size("my5649.cy8"), (None, "my5649.cy8"));
        assert_eq!(split_size("m.x"), (None, "m.x"));
        assert_eq!(split_size("ém.x"), (None, "ém.x"));
    }
}
