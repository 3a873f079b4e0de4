//! A text file with its line numbers: plain or gzip, any line end, nothing that is no text.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::ImportError;
use super::error::echoed;
use super::stream::{self, Lines};
pub use rqps_model::units::counted;

/// The lines of a file, without their ends. Of blank lines in a row only the first is there.
#[derive(Clone, Debug)]
pub struct Text {
    path: PathBuf,
    lines: Arc<Lines>,
}

impl Text {
    /// Reads a file. One that begins with gzip's magic number is unpacked, whatever its name.
    ///
    /// # Errors
    /// A file that cannot be read, is larger than a limit (a line of 4 MiB, 64 MiB of text,
    /// 4 million words, 1 GiB with blank lines), packed in another way or no text; text that is
    /// not UTF-8, with the line.
    pub fn read(path: &Path) -> Result<Text, ImportError> {
        Ok(Text { path: path.to_owned(), lines: Arc::new(stream::read(path)?) })
    }

    /// Reads a file that nobody named, of a folder; the inner error says why it is no text: a
    /// picture, a socket, a link to nothing, a file larger than any of these forms.
    ///
    /// # Errors
    /// As [`Text::read`] for damaged text.
    pub fn of_folder(path: &Path) -> Result<Result<Text, String>, ImportError> {
        if !path.is_file() {
            return Ok(Err("no file".to_owned()));
        }
        match Text::read(path) {
            Ok(text) => Ok(Ok(text)),
            Err(ImportError::Foreign { why, .. }) => Ok(Err(why)),
            Err(fault) => Err(fault),
        }
    }

    /// The text of a file that was read before.
    pub fn of(path: &Path, text: &str) -> Text {
        Text { path: path.to_owned(), lines: Arc::new(Lines::of(text)) }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file, as results name it.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Number of lines in the file, including blank ones.
    pub fn len(&self) -> usize {
        self.lines.count
    }

    /// True if the last line has an end: a copy that was cut short has none.
    pub fn is_whole(&self) -> bool {
        self.lines.whole
    }

    /// True for an empty file.
    pub fn is_empty(&self) -> bool {
        self.lines.count == 0
    }

    /// Lines with their numbers, from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> + Clone {
        self.lines.iter()
    }

    /// The first line with something on it.
    pub fn first(&self) -> &str {
        let mut lines = self.lines.iter().map(|(_, line)| line);
        lines.find(|line| !line.trim().is_empty()).unwrap_or("")
    }

    /// Refuses what is larger than any table of its form: each cell may become a record of its own.
    pub fn at_most(&self, words: usize) -> Result<(), ImportError> {
        if self.lines.words > words {
            let why = format!(
                "it has {} words, but a table of this form can have at most {words}: split it",
                self.lines.words
            );
            Err(ImportError::foreign(&self.path, why))
        } else {
            Ok(())
        }
    }

    /// The error of a line.
    pub fn malformed(&self, line: usize, why: impl Into<String>) -> ImportError {
        let (path, why) = (self.path.clone(), echoed(&why.into()));
        ImportError::Malformed { path, line, column: None, why }
    }

    /// The error of a cell: its column from 1, and what stands at the head of that column.
    pub fn bad_cell(&self, line: usize, column: usize, why: impl Into<String>) -> ImportError {
        let (path, why) = (self.path.clone(), echoed(&why.into()));
        ImportError::Malformed { path, line, column: Some(column), why }
    }

    /// The error of a word in running text, with the column at which it begins.
    pub fn bad_word(&self, line: usize, word: &str, why: impl Into<String>) -> ImportError {
        let row = self.lines.iter().find(|(number, _)| *number == line);
        let place = row
            .filter(|_| !word.is_empty())
            .and_then(|(_, row)| row.find(word).map(|begin| row[..begin].chars().count() + 1));
        match place {
            Some(column) => self.bad_cell(line, column, why),
            None => self.malformed(line, why),
        }
    }

    /// Refuses the last row of a file that was cut within its label: the line has no end, and the
    /// label is the beginning of another one.
    pub fn check_label<'a>(
        &self,
        line: usize,
        label: &str,
        mut others: impl Iterator<Item = &'a str> + Clone,
    ) -> Result<(), ImportError> {
        let is_last = !self.is_whole() && line == self.len();
        if !is_last || others.clone().any(|other| other == label) {
            return Ok(());
        }
        match others.find(|other| other.starts_with(label)) {
            Some(whole) => {
                let why = format!("the file is truncated within `{whole}`: only `{label}` remains");
                Err(self.malformed(line, why))
            }
            None => Ok(()),
        }
    }

    /// Refuses a row that has other cells than its header.
    pub fn check_width(&self, line: usize, cells: usize, heads: usize) -> Result<(), ImportError> {
        if cells == heads {
            return Ok(());
        }
        let (cells, heads) = (counted(cells, "cell"), counted(heads, "column"));
        Err(self.malformed(line, format!("{cells} for {heads}; is the line truncated?")))
    }

    /// The cells of a row by the heads of its table.
    pub fn by_head(&self, line: usize, heads: &[&str], cells: &[&str]) -> Result<Row, ImportError> {
        self.check_width(line, cells.len(), heads.len())?;
        let pairs = heads.iter().zip(cells);
        Ok(pairs.map(|(head, cell)| ((*head).to_owned(), (*cell).to_owned())).collect())
    }

    /// The cells of a row by the heads of its table, each of which is a number.
    pub fn numbers_by_head(
        &self,
        line: usize,
        heads: &[&str],
        cells: &[&str],
    ) -> Result<Row, ImportError> {
        let row = self.by_head(line, heads, cells)?;
        for (place, (head, cell)) in row.iter().enumerate() {
            self.number(line, place + 1, head, cell)?;
        }
        Ok(row)
    }

    /// The error of a file that ends too early.
    pub fn cut_short(&self, expected: &str) -> ImportError {
        let why = format!("the file ends here, before {expected}");
        self.malformed(self.len().max(1), why)
    }
}

/// Cells of a row, as printed, each with its head.
pub type Row = Vec<(String, String)>;

/// Words of a table of rates, each of which is a step: the largest published one has 2000.
pub const RATES_MAX: usize = 100_000;
/// Words of a table of metrics, of which a row is a step: the largest published one has 30000.
pub const METRICS_MAX: usize = 400_000;

/// Names in a folder, sorted.
pub fn names(folder: &Path) -> Result<Vec<String>, ImportError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(ImportError::io(folder))? {
        let entry = entry.map_err(ImportError::io(folder))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn echoed_text_is_cut_and_tame() {
        let why = format!("`{}` is not a rate", "9".repeat(1 << 20));
        let text = Text::of(Path::new("x"), "");
        let said = text.malformed(1, why).to_string();
        assert!(said.chars().count() < 600 && said.contains("` is not a rate"), "{said}");
        assert!(said.contains("[… 10481"), "{said}");
        assert_eq!(echoed("a\u{1b}[2Jb"), "a\\u{1b}[2Jb");
    }

    #[test]
    fn what_another_program_packed_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("o.zst");
        std::fs::write(&path, [0x28, 0xb5, 0x2f, 0xfd, 0x04]).unwrap();
        let fault = Text::read(&path).unwrap_err().to_string();
        assert!(Text::of_folder(&path).unwrap().is_err());
        assert!(
            fault.contains("o.zst`: it is compressed with zstd: decompress it first"),
            "{fault}"
        );
    }
}
