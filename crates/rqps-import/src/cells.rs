//! The account of published cells: every cell that was read is kept or named as left out.
//!
//! A parser counts what it reads. The code that uses a cell records its outcome. The two are
//! counted apart, so a column that nobody takes shows as a difference instead of vanishing.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::format::{ImportError, Notice, NoticeKind};
use super::text::{Text, counted};

/// Outcome of a kept cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kept {
    /// It is a metric of a step, or a mean of samples is.
    Metric,
    /// It was compared with what another published number says.
    Compared,
    /// It stands beside the metrics, as it was printed: in the record of the step or in its logs.
    Annotation,
    /// It says that there is no number: `NA`, `-`.
    Absent,
}

/// The account of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Account {
    read: usize,
    kept: BTreeMap<Kept, usize>,
    left: BTreeMap<String, usize>,
    /// Heads that nobody knows: cells, and the known head that is nearest.
    unknown: BTreeMap<String, (usize, Option<String>)>,
}

impl Account {
    fn kept(&self) -> usize {
        self.kept.values().sum()
    }

    fn left(&self) -> usize {
        self.left.values().sum()
    }
}

/// The accounts of all files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cells {
    files: BTreeMap<PathBuf, Account>,
}

/// All files together. Shown as a sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Cells that parsers read.
    pub read: usize,
    /// [`Kept::Metric`].
    pub metrics: usize,
    /// [`Kept::Compared`].
    pub compared: usize,
    /// [`Kept::Annotation`].
    pub annotations: usize,
    /// [`Kept::Absent`].
    pub absent: usize,
    /// Cells left out, each with a notice that names them.
    pub left: usize,
}

impl Cells {
    fn of(&mut self, file: &Path) -> &mut Account {
        self.files.entry(file.to_owned()).or_default()
    }

    /// A parser read so many cells.
    pub fn read(&mut self, file: &Path, cells: usize) {
        self.of(file).read += cells;
    }

    /// Records that this number of cells was kept.
    pub fn keep(&mut self, file: &Path, kept: Kept, cells: usize) {
        if cells > 0 {
            *self.of(file).kept.entry(kept).or_default() += cells;
        }
    }

    /// Records that this number of cells was left out. `why` names them and becomes one notice for
    /// all with that reason.
    pub fn leave(&mut self, file: &Path, why: impl Into<String>, cells: usize) {
        if cells > 0 {
            *self.of(file).left.entry(why.into()).or_default() += cells;
        }
    }

    /// A column whose cells are annotations because nobody knows its head.
    pub fn unknown_head(&mut self, file: &Path, head: &str, known: &[&str]) {
        if !self.of(file).unknown.contains_key(head) {
            let near = known.iter().filter(|known| edits(head, known) <= 2);
            let near = near.min_by_key(|known| edits(head, known)).copied();
            self.of(file).unknown.insert(head.to_owned(), (0, near.map(str::to_owned)));
        }
        if let Some((cells, _)) = self.of(file).unknown.get_mut(head) {
            *cells += 1;
        }
    }

    /// All files together.
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for account in self.files.values() {
            let kept = |kept| account.kept.get(&kept).copied().unwrap_or(0);
            totals.read += account.read;
            totals.metrics += kept(Kept::Metric);
            totals.compared += kept(Kept::Compared);
            totals.annotations += kept(Kept::Annotation);
            totals.absent += kept(Kept::Absent);
            totals.left += account.left();
        }
        totals
    }

    /// Notices about cells that were left out, by file and reason; and about cells without an
    /// explanation, which is a fault of the importer.
    pub fn notices(&self) -> Vec<Notice> {
        let mut notices = Vec::new();
        for (file, account) in &self.files {
            for (head, (cells, near)) in &account.unknown {
                let near = near.as_ref().map(|near| format!("; is `{near}` a typo?"));
                let text = format!(
                    "no metric for column `{}`; kept as annotations: {}{}",
                    shown(head),
                    number_of(*cells),
                    near.unwrap_or_default()
                );
                notices.push(Notice::of(NoticeKind::Note, file, text));
            }
            for (why, cells) in &account.left {
                let text = format!("{}: {why}", number_of(*cells));
                notices.push(Notice::of(NoticeKind::Left, file, text));
            }
            let explained = account.kept() + account.left();
            if explained != account.read {
                let text = format!(
                    "{} read but {explained} kept or left out: this importer has a bug, please \
                     report it",
                    number_of(account.read)
                );
                notices.push(Notice::of(NoticeKind::Left, file, text));
            }
        }
        notices
    }
}

/// Cells of a file of samples, by the heads of their columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sampled {
    /// Cells of columns that means are made of.
    pub used: usize,
    /// Cells of the others.
    pub unused: BTreeMap<String, usize>,
}

impl Sampled {
    /// Counts a line of samples.
    pub fn line(&mut self, heads: &[String], used: &[&str]) {
        for head in heads {
            if used.contains(&head.as_str()) {
                self.used += 1;
            } else if let Some(cells) = self.unused.get_mut(head) {
                *cells += 1;
            } else {
                self.unused.insert(head.clone(), 1);
            }
        }
    }

    /// Adds them to the account of their folder, which has such files by the hundred.
    pub fn count(&self, text: &Text, of: &str, cells: &mut Cells) {
        let file = text.path().parent().unwrap_or(text.path());
        let unused: usize = self.unused.values().sum();
        cells.read(file, self.used + unused);
        cells.keep(file, Kept::Metric, self.used);
        let heads: Vec<&str> = self.unused.keys().map(String::as_str).collect();
        let why = format!("columns without a metric in {of}: {}", heads.join(" "));
        cells.leave(file, why, unused);
    }
}

fn number_of(cells: usize) -> String {
    counted(cells, "cell")
}

/// Insertions, deletions and replacements of characters that make one word of another.
fn edits(a: &str, b: &str) -> usize {
    // Heads are short; what is not is no misspelt head.
    if a.len() > 32 {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(left != *right);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} read = ", number_of(self.read))?;
        let parts = [
            (self.metrics, "metrics"),
            (self.compared, "compared with others"),
            (self.annotations, "annotations"),
            (self.absent, "without a number (NA)"),
        ];
        for (cells, what) in parts.into_iter().filter(|(cells, _)| *cells > 0) {
            write!(f, "{cells} {what} + ")?;
        }
        write!(f, "{} left out", self.left)
    }
}

// Numbers of published files: one parser for all importers, which says what is wrong with a cell.
//
// Published numbers are counts and measurements, so none is negative or infinite. Any other number
// is a damaged cell, which must not become a ratio.

/// No published value comes near this: bytes of an exabyte, nanoseconds of thirty years.
const LARGEST: f64 = 1e18;

/// The reason why a cell is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is a word.
    Word,
    /// `nan`: programs print it for 0/0.
    NotANumber,
    /// `inf`: programs print it for x/0.
    Infinite,
    /// Below zero, or `-0`, which rounding leaves of such a number.
    BelowZero,
    /// Larger than 10^18.
    TooLarge,
}

impl Fault {
    /// The problem, to be read after the cell.
    pub fn why(self) -> &'static str {
        match self {
            Fault::Word => "is not a number",
            Fault::NotANumber => "is not a measured number",
            Fault::Infinite => "is infinite",
            Fault::BelowZero => "is below zero",
            Fault::TooLarge => "is larger than 10^18, far above any published value",
        }
    }
}

/// Reads an amount as programs print it: `12`, `.5`, `1.25e-05`.
///
/// # Errors
/// The text is no finite number from 0 to 10^18.
pub(crate) fn parse_number(text: &str) -> Result<f64, Fault> {
    let text = text.trim();
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    match unsigned.to_ascii_lowercase().as_str() {
        "inf" | "infinity" => return Err(Fault::Infinite),
        "nan" => return Err(Fault::NotANumber),
        _ => {}
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Err(Fault::Word);
    }
    let number: f64 = unsigned.parse().map_err(|_| Fault::Word)?;
    match number {
        _ if unsigned.len() < text.len() => Err(Fault::BelowZero),
        _ if number > LARGEST => Err(Fault::TooLarge),
        _ => Ok(number),
    }
}

/// The number; `None` for anything else.
pub(crate) fn number(text: &str) -> Option<f64> {
    parse_number(text).ok()
}

/// A count as programs print it, at most 10^18.
pub(crate) fn count(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.starts_with(|c: char| c.is_ascii_digit());
    text.parse().ok().filter(|count| digits && *count <= LARGEST as u64)
}

/// True for a word: neither a number nor what a program prints in place of one. `-1` and `inf` are
/// no words, so they cannot be names.
pub(crate) fn is_word(text: &str) -> bool {
    parse_number(text) == Err(Fault::Word)
}

impl Text {
    /// Reads a cell of a table. Its column counts from 1; `head` may be empty.
    ///
    /// # Errors
    /// The cell is no amount. The error has file, line, column and head.
    pub fn number(
        &self,
        line: usize,
        column: usize,
        head: &str,
        cell: &str,
    ) -> Result<f64, ImportError> {
        parse_number(cell).map_err(|fault| self.cell_fault(line, column, head, cell, fault))
    }

    /// The error of a cell that is not a number.
    pub fn cell_fault(
        &self,
        line: usize,
        column: usize,
        head: &str,
        cell: &str,
        fault: Fault,
    ) -> ImportError {
        let under = if head.is_empty() { String::new() } else { format!(" under `{head}`") };
        self.bad_cell(line, column, format!("`{}`{under} {}", shown(cell), fault.why()))
    }
}

/// A cell as errors show it: a damaged one may be of any length.
pub(crate) fn shown(cell: &str) -> String {
    const MOST: usize = 40;
    match cell.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &cell[..end]),
        None => cell.to_owned(),
    }
}

/// True if a number is the printed one, as far as both have decimals: `24515` is `24515.07`.
pub(crate) fn decimals_agree(number: f64, printed: &str) -> bool {
    let Ok(other) = printed.parse::<f64>() else { return false };
    let decimals = |text: &str| text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let places = decimals(printed).min(decimals(&number.to_string()));
    // A unit, not a half: programs round, truncate and print six significant digits.
    (number - other).abs() < 10f64.powi(-i32::try_from(places).unwrap_or(0)) + 1e-12
        || (number - other).abs() <= 1e-5 * number.abs()
}

/// True if reports, seconds since the start and a rate, come every second from the first on.
pub(crate) fn each_second(reports: &[(f64, f64)]) -> bool {
    let mut before = 0.0;
    reports.iter().all(|(time, _)| {
        let step = time - before;
        before = *time;
        (step - 1.0).abs() < 0.5
    })
}

/// RFC 3339 of a date of this form (strftime) whose time zone nobody names.
pub(crate) fn rfc3339(date: &str, form: &str) -> Option<String> {
    let date = jiff::civil::DateTime::strptime(form, date).ok()?;
    Some(date.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_misspelt_head_is_told_with_what_it_may_be() {
        assert_eq!((edits("wKB/0", "wKB/o"), edits("qsp", "qps"), edits("", "qps")), (1, 2, 3));
        let mut cells = Cells::default();
        let file = Path::new("o.met");
        for _ in 0..3 {
            cells.unknown_head(file, "wKB/0", &["rKB/o", "wKB/o"]);
        }
        cells.unknown_head(file, "foo", &["rKB/o", "wKB/o"]);
        let notices: Vec<String> = cells.notices().iter().map(ToString::to_string).collect();
        assert!(notices[0].ends_with("no metric for column `foo`; kept as annotations: 1 cell"));
        assert!(notices[1].ends_with("kept as annotations: 3 cells; is `wKB/o` a typo?"));
    }

    #[test]
    fn what_nobody_takes_is_a_difference() {
        let mut cells = Cells::default();
        let file = Path::new("o.met");
        cells.read(file, 8);
        cells.keep(file, Kept::Metric, 4);
        cells.keep(file, Kept::Annotation, 1);
        cells.leave(file, "rows of 500m", 2);
        let notices: Vec<String> = cells.notices().iter().map(ToString::to_string).collect();
        assert_eq!(notices[0], "o.met: not imported: 2 cells: rows of 500m");
        assert!(notices[1].contains("8 cells read but 7 kept or left out"), "{notices:?}");
        let sum = "8 cells read = 4 metrics + 1 annotations + 2 left out";
        assert_eq!(cells.totals().to_string(), sum);
        cells.keep(file, Kept::Compared, 1);
        assert_eq!(cells.notices().len(), 1);
    }

    #[test]
    fn numbers_are_those_that_programs_print() {
        let check = |text: &str, expected| assert_eq!(parse_number(text), expected, "{text}");
        check(" 12.50 ", Ok(12.5));
        check(".5", Ok(0.5));
        check("1e-3", Ok(0.001));
        check("1e18", Ok(1e18));
        for text in ["", "-", "1,000", "1.2k", "3M", "0x1f", "+1", "1e", "innodb", "-x"] {
            check(text, Err(Fault::Word));
        }
        check("nan", Err(Fault::NotANumber));
        check("-nan", Err(Fault::NotANumber));
        check("inf", Err(Fault::Infinite));
        check("-Infinity", Err(Fault::Infinite));
        check("-3", Err(Fault::BelowZero));
        check("-0", Err(Fault::BelowZero));
        check("-0.00", Err(Fault::BelowZero));
        check("1e24", Err(Fault::TooLarge));
        check("1000000000000000000000000", Err(Fault::TooLarge));
        check("1e999", Err(Fault::TooLarge));
        assert_eq!((count("17"), count("+17"), count("1e3")), (Some(17), None, None));
        assert_eq!(
            (count("1000000000000000001"), is_word("-1"), is_word("x")),
            (None, false, true)
        );
    }

    #[test]
    fn a_bad_cell_names_its_place() {
        let text = Text::of(Path::new("o.sum"), "");
        let fault = text.number(3, 4, "ips", "inf").unwrap_err().to_string();
        assert!(
            fault.starts_with("import `o.sum`, line 3, column 4: `inf` under `ips` is infinite")
        );
        let long = "x".repeat(1 << 20);
        assert!(text.number(3, 4, "", &long).unwrap_err().to_string().len() < 300);
    }

    #[test]
    fn numbers_agree_as_far_as_they_are_printed() {
        let check = |number, printed, expected| {
            assert_eq!(decimals_agree(number, printed), expected, "{number} {printed}");
        };
        check(24515.0, "24515.07", true);
        check(24515.07, "24515", true);
        check(24516.0, "24514.9", false);
        check(0.000164, "0.000164", true);
        check(0.000164, "0.000172", false);
        check(0.0, "0.000", true);
        check(1.0, "x", false);
    }

    #[test]
    fn dates_have_days_of_one_or_two_digits() {
        let date = |text| rfc3339(text, "%Y-%m-%dT%H:%M:%S");
        assert_eq!(date("2025-05-9T01:44:24").as_deref(), Some("2025-05-09T01:44:24Z"));
        assert_eq!(
            (date("2025-05-9"), date("x-y-zT00:00:00"), date("2025-05-39T00:00:00")),
            (None, None, None)
        );
    }
}
