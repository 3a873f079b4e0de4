//! Reads the summary tables of perf reports with the colour of each cell, as text: `value:class`.

use crate::ImportError;
use crate::insert::tables::split_size;
use crate::number::shown;
use crate::text::Text;

/// One table.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryTable {
    /// The kind of table.
    pub kind: SummaryKind,
    /// The report: `20m.my`.
    pub name: String,
    /// Steps in the order of the columns.
    pub steps: Vec<String>,
    /// Rows: line, target, cells.
    pub rows: Vec<(usize, String, Vec<SummaryCell>)>,
}

/// The three kinds of summary tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryKind {
    /// Rates of all steps.
    Absolute,
    /// Rates relative to the first target.
    Relative,
    /// Insert rates of query steps.
    InsertRate,
}

impl SummaryKind {
    /// The kind of its numbers in words.
    pub fn words(self) -> &'static str {
        match self {
            SummaryKind::Absolute => "rate",
            SummaryKind::Relative => "ratio",
            SummaryKind::InsertRate => "insert rate",
        }
    }
}

impl SummaryTable {
    /// The size at the start of the name: `20m` of `20m.my`; empty if there is none.
    pub fn size(&self) -> &str {
        split_size(&format!("{}.", self.name)).0.map_or("", |size| &self.name[..size.len()])
    }

    /// True for the row of target rates below a table of insert rates.
    pub fn is_target_row(&self, target: &str) -> bool {
        self.kind == SummaryKind::InsertRate && target == "target"
    }
}

impl SummaryCell {
    /// The name of its colour, if it has one. Gray and yellow share a letter.
    pub fn colour(&self) -> Option<&'static str> {
        match self.class {
            'g' => Some("green"),
            'r' => Some("red"),
            'y' => Some("gray or yellow"),
            'b' => Some("blue"),
            _ => None,
        }
    }
}

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub struct SummaryCell {
    /// The number as printed.
    pub printed: String,
    /// `g` green, `r` red, `y` gray (or yellow in a relative table), `b` blue, `-` none.
    pub class: char,
}

/// True if the text begins with the head of such a table.
pub fn is_summary(text: &Text) -> bool {
    let mut lines = text.lines().map(|(_, line)| line.trim());
    let first = lines.find(|line| !line.is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| head(line).is_some())
}

/// Reads `abs:20m.my TAB l.i0 TAB …`.
fn head(line: &str) -> Option<(SummaryKind, &str, Vec<String>)> {
    let mut cells = line.split('\t').map(str::trim);
    let (kind, name) = cells.next()?.split_once(':')?;
    let kind = match kind {
        "abs" => SummaryKind::Absolute,
        "rel" => SummaryKind::Relative,
        "ins" | "ips" | "sla" | "iput" => SummaryKind::InsertRate,
        _ => return None,
    };
    let steps: Vec<String> = cells.map(str::to_owned).collect();
    (!steps.is_empty()).then_some((kind, name, steps))
}

/// Reads all tables of a file; lines with `#` are comments.
///
/// # Errors
///
/// A row before a head or with a wrong number of cells, a cell without a number and class, a table
/// without rows.
pub fn parse(text: &Text) -> Result<Vec<SummaryTable>, ImportError> {
    let mut tables: Vec<SummaryTable> = Vec::new();
    for (line, row) in text.lines() {
        let trimmed = row.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        if let Some((kind, name, steps)) = head(trimmed) {
            tables.push(SummaryTable { kind, name: name.to_owned(), steps, rows: Vec::new() });
            continue;
        }
        let Some(table) = tables.last_mut() else {
            return Err(text.malformed(line, "a row before the header of a table (`abs:NAME …`)"));
        };
        let mut cells = trimmed.split('\t').map(str::trim);
        let target = cells.next().unwrap_or_default().to_owned();
        let mut row = Vec::new();
        for cell in cells {
            let (printed, class) = cell.rsplit_once(':').unwrap_or((cell, "-"));
            let mut classes = class.chars();
            let place = row.len();
            let step = table.steps.get(place).map_or("", String::as_str);
            text.number(line, place + 2, step, printed)?;
            match (classes.next(), classes.next()) {
                (Some(class), None) if "gryb-".contains(class) => {
                    row.push(SummaryCell { printed: printed.to_owned(), class });
                }
                _ => {
                    let why = format!("`{}` has no class (g, r, y, b or -)", shown(cell));
                    return Err(text.bad_cell(line, place + 2, why));
                }
            }
        }
        text.check_width(line, row.len(), table.steps.len())?;
        table.rows.push((line, target, row));
    }
    match tables.last() {
        Some(table) if !table.rows.is_empty() => Ok(tables),
        _ => Err(text.cut_short("the rows of the last table")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn of(text: &str) -> Result<Vec<SummaryTable>, ImportError> {
        parse(&Text::of(Path::new("summary.txt"), text))
    }

    #[test]
    fn tables_are_read() {
        let text = "# as published\nabs:20m.my\tl.i0\tq100.1\nmy1\t122699:g\t6737:y\n\
            rel:20m.my\tl.i0\nmy1\t1.00\n";
        let tables = of(text).unwrap();
        assert_eq!((tables.len(), tables[1].kind), (2, SummaryKind::Relative));
        let cell = SummaryCell { printed: "6737".to_owned(), class: 'y' };
        assert_eq!(
            tables[0].rows[0],
            (
                3,
                "my1".to_owned(),
                vec![SummaryCell { printed: "122699".to_owned(), class: 'g' }, cell,]
            )
        );
    }

    #[test]
    fn faults_name_the_line() {
        let check = |text: &str, expected: &str| {
            let fault = of(text).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check("my1\t1:g\n", "line 1: a row before the header");
        check("abs:x\tl.i0\nmy1\t1:q\n", "line 2, column 2: `1:q` has no class");
        check("abs:x\tl.i0\nmy1\t1:g\t2:g\n", "line 2: 2 cells for 1 column");
        check("abs:x\tl.i0\n", "line 1: the file ends here");
    }
}
