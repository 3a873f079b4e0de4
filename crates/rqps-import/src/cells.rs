//! The account of published cells: every cell that was read is kept or named as left out.
//!
//! A parser counts what it reads. The code that uses a cell records its outcome. The two are
//! counted apart, so a column that nobody takes shows as a difference instead of vanishing.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::notice::{Notice, NoticeKind};
use super::number::shown;
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

#[cfg(test)]
mod tests {
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
}
