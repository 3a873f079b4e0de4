//! A text file with its line numbers: plain or gzip, any line end, nothing that is no text.

use std::fs;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::bufread::MultiGzDecoder;

use super::format::{ImportError, Notice, NoticeKind, Result, echoed};
use rqps_model::bounded;
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
    pub fn read(path: &Path) -> Result<Text> {
        Ok(Text { path: path.to_owned(), lines: Arc::new(read_lines(path)?) })
    }

    /// Reads a file that nobody named, of a folder; the inner error says why it is no text: a
    /// picture, a socket, a link to nothing, a file larger than any of these forms.
    ///
    /// # Errors
    /// As [`Text::read`] for damaged text.
    pub fn of_folder(path: &Path) -> Result<Result<Text, String>> {
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

    /// Lines that are not blank, with their numbers.
    pub fn rows(&self) -> impl Iterator<Item = (usize, &str)> + Clone {
        self.lines().filter(|(_, row)| !row.trim().is_empty())
    }

    /// The first line with something on it.
    pub fn first(&self) -> &str {
        self.rows().next().map_or("", |(_, row)| row)
    }

    /// Refuses what is larger than any table of its form: each cell may become a record of its own.
    pub fn at_most(&self, words: usize) -> Result<()> {
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
    ) -> Result<()> {
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
    pub fn check_width(&self, line: usize, cells: usize, heads: usize) -> Result<()> {
        if cells == heads {
            return Ok(());
        }
        let (cells, heads) = (counted(cells, "cell"), counted(heads, "column"));
        Err(self.malformed(line, format!("{cells} for {heads}; is the line truncated?")))
    }

    /// The cells of a row by the heads of its table.
    pub fn by_head(&self, line: usize, heads: &[&str], cells: &[&str]) -> Result<Row> {
        self.check_width(line, cells.len(), heads.len())?;
        let pairs = heads.iter().zip(cells);
        Ok(pairs.map(|(head, cell)| ((*head).to_owned(), (*cell).to_owned())).collect())
    }

    /// The cells of a row by the heads of its table, each of which is a number.
    pub fn numbers_by_head(&self, line: usize, heads: &[&str], cells: &[&str]) -> Result<Row> {
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
pub fn names(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(ImportError::io(folder))? {
        let entry = entry.map_err(ImportError::io(folder))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

// Reads a text file in bounded memory: the lines that hold something, and nothing else.
//
// A few megabytes of gzip can unpack to gigabytes, so every amount has a limit that no published
// file comes near. A run of blank lines is kept as one; its length costs no memory.

/// Bytes of one line. A progress line of db_bench (carriage returns, no line end) reaches 1 MiB.
const LINE_MAX: usize = 4 << 20;
/// Bytes of all kept lines: a day of one line per second and 500 bytes each is 41 MiB.
const TEXT_MAX: usize = 64 << 20;
/// Words of all kept lines: a parser may keep each as a string of its own, at some 70 bytes.
const WORDS_MAX: usize = 4_000_000;
/// Bytes of the file, unpacked, blank lines included.
const READ_MAX: u64 = 1 << 30;

const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Bytes that are read at a time, all of them line ends.
static BLANK: [u8; 64 << 10] = [b'\n'; 64 << 10];

/// The beginnings of files with text in another form.
const FOREIGN: [(&[u8], &str); 6] = [
    (&[0x28, 0xb5, 0x2f, 0xfd], "it is compressed with zstd: decompress it first"),
    (&[0xfd, b'7', b'z', b'X', b'Z'], "it is compressed with xz: decompress it first"),
    (b"BZh", "it is compressed with bzip2: decompress it first"),
    (b"PK\x03\x04", "it is a zip archive: unpack it first"),
    (&[0xff, 0xfe], "it is UTF-16: convert it to UTF-8 first"),
    (&[0xfe, 0xff], "it is UTF-16: convert it to UTF-8 first"),
];

/// The kept lines of a file, one after another in one string.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lines {
    text: String,
    /// Number of each kept line, from 1, and where it ends in the text.
    ends: Vec<(u32, u32)>,
    /// Lines of the file, dropped blank ones included.
    pub count: usize,
    /// True if the last line has an end, or there is none.
    pub whole: bool,
    /// Words of the kept lines, apart by blanks, tabs or commas.
    pub words: usize,
}

impl Lines {
    /// The lines of a text in memory; no limit applies.
    pub(crate) fn of(text: &str) -> Lines {
        let mut lines = Lines::default();
        for line in text.lines() {
            lines.push(line);
        }
        lines.whole = text.is_empty() || text.ends_with('\n');
        lines
    }

    /// Kept lines with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &str)> + Clone {
        self.ends.iter().enumerate().map(|(place, (number, end))| {
            let begin = place.checked_sub(1).map_or(0, |before| self.ends[before].1);
            (*number as usize, &self.text[begin as usize..*end as usize])
        })
    }

    /// Takes the next line. Of blank lines in a row only the first is kept.
    fn push(&mut self, line: &str) {
        self.count += 1;
        let line = match self.count {
            1 => line.strip_prefix('\u{feff}').unwrap_or(line),
            _ => line,
        };
        let line = line.trim_end_matches('\r');
        let blank = line.trim().is_empty();
        if blank && self.ends_blank() {
            return;
        }
        let separators = line.bytes().filter(|byte| matches!(byte, b' ' | b'\t' | b','));
        self.words += 1 + separators.count();
        self.text.push_str(if blank { "" } else { line });
        let end = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
        self.ends.push((u32::try_from(self.count).unwrap_or(u32::MAX), end));
    }

    /// True if another blank line would tell nothing.
    fn ends_blank(&self) -> bool {
        match self.ends.as_slice() {
            [] => true,
            [.., (_, before), (_, last)] => before == last,
            _ => false,
        }
    }
}

/// Reads a file. One that begins with gzip's magic number is unpacked, whatever its name.
///
/// # Errors
/// A file that cannot be read, is larger than a limit, packed in another way or no text; text that
/// is not UTF-8, with the line.
fn read_lines(path: &Path) -> Result<Lines> {
    let mut file = bounded::plain(path).map_err(ImportError::io(path))?;
    let mut begin = Vec::new();
    file.by_ref().take(5).read_to_end(&mut begin).map_err(ImportError::io(path))?;
    if let Some((_, why)) = FOREIGN.iter().find(|(magic, _)| begin.starts_with(magic)) {
        return Err(ImportError::foreign(path, *why));
    }
    let packed = begin.starts_with(&GZIP);
    let file = BufReader::new(begin.chain(file));
    if packed { read_from(path, MultiGzDecoder::new(file)) } else { read_from(path, file) }
}

/// True if the last line of a plain file has an end, and for what cannot be read again; false where
/// only reading all of it tells.
pub(crate) fn ends_whole(path: &Path) -> std::io::Result<bool> {
    let mut file = bounded::open(path)?;
    if !file.metadata()?.is_file() || file.metadata()?.len() < 2 {
        return Ok(!file.metadata()?.is_file());
    }
    let mut bytes = [0; 2];
    file.read_exact(&mut bytes)?;
    let packed = bytes == GZIP;
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut bytes[..1])?;
    Ok(!packed && bytes[0] == b'\n')
}

fn read_from(path: &Path, source: impl Read) -> Result<Lines> {
    let mut source = source.take(READ_MAX + 1);
    let mut reader = Reader { path, lines: Lines::default(), carry: Vec::new(), fault: None };
    let mut chunk = vec![0; BLANK.len()];
    let (mut total, mut last) = (0, b'\n');
    loop {
        let n = match source.read(&mut chunk) {
            Ok(0) => break,
            Ok(n) => n,
            Err(fault) if fault.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(fault) => return Err(ImportError::io(path)(fault)),
        };
        total += n as u64;
        last = chunk[n - 1];
        if total > READ_MAX {
            return Err(too_large(path, "it is larger than 1 GiB"));
        }
        reader.take(&chunk[..n])?;
    }
    reader.finish(last == b'\n')
}

struct Reader<'a> {
    path: &'a Path,
    lines: Lines,
    /// The begin of a line whose end was not read yet.
    carry: Vec<u8>,
    /// The first line that is not UTF-8. A picture, say, has such bytes before the first zero that
    /// shows that it is not text, so reading goes on without keeping anything.
    fault: Option<usize>,
}

impl Reader<'_> {
    fn take(&mut self, mut chunk: &[u8]) -> Result<()> {
        if chunk.contains(&0) {
            return Err(ImportError::foreign(self.path, "it is not text"));
        }
        if self.fault.is_some() {
            return Ok(());
        }
        // Gigabytes of blank lines are compared, not counted one by one.
        let blank = self.carry.is_empty() && self.lines.ends_blank() && self.lines.count > 0;
        if blank && chunk == &BLANK[..chunk.len()] {
            self.lines.count += chunk.len();
            return Ok(());
        }
        loop {
            if self.carry.is_empty() && self.lines.count > 0 && self.lines.ends_blank() {
                let blank = chunk.iter().take_while(|byte| **byte == b'\n').count();
                self.lines.count += blank;
                chunk = &chunk[blank..];
            }
            let Some(end) = chunk.iter().position(|byte| *byte == b'\n') else { break };
            if self.carry.is_empty() {
                self.line(&chunk[..end])?;
            } else {
                self.keep(&chunk[..end])?;
                let line = std::mem::take(&mut self.carry);
                self.line(&line)?;
            }
            chunk = &chunk[end + 1..];
        }
        self.keep(chunk)
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<()> {
        if self.carry.len() + bytes.len() > LINE_MAX {
            let line = self.lines.count + 1;
            return Err(too_large(self.path, format!("line {line} is longer than 4 MiB")));
        }
        self.carry.extend_from_slice(bytes);
        Ok(())
    }

    fn line(&mut self, bytes: &[u8]) -> Result<()> {
        if self.fault.is_some() {
            return Ok(());
        }
        let Ok(line) = std::str::from_utf8(bytes) else {
            self.fault = Some(self.lines.count + 1);
            return Ok(());
        };
        self.lines.push(line);
        if self.lines.text.len() > TEXT_MAX {
            return Err(too_large(self.path, "it holds more than 64 MiB of text"));
        }
        if self.lines.words > WORDS_MAX {
            let why = format!("it holds more than {WORDS_MAX} words");
            return Err(too_large(self.path, why));
        }
        Ok(())
    }

    fn finish(mut self, whole: bool) -> Result<Lines> {
        if !self.carry.is_empty() {
            let line = std::mem::take(&mut self.carry);
            self.line(&line)?;
        }
        if let Some(line) = self.fault {
            let why = "it is not UTF-8 text".to_owned();
            return Err(ImportError::Malformed {
                path: self.path.to_owned(),
                line,
                column: None,
                why,
            });
        }
        self.lines.whole = whole;
        Ok(self.lines)
    }
}

fn too_large(path: &Path, why: impl Into<String>) -> ImportError {
    let why = format!("{}; no published file is that large: split it or remove it", why.into());
    ImportError::foreign(path, why)
}

// The files of a folder that an importer does not take, for one notice about all of them.

/// Names of files in one folder that were not taken.
#[derive(Default)]
pub(crate) struct Leftovers(Vec<String>);

impl Leftovers {
    /// Reads the file `name` in `folder` and passes its text to `take`, which returns false for an
    /// unknown form. True if the file was taken.
    ///
    /// # Errors
    ///
    /// The text of the file is damaged, or `take` fails.
    pub(crate) fn take(
        &mut self,
        folder: &Path,
        name: &str,
        take: impl FnOnce(Text) -> Result<bool>,
    ) -> Result<bool> {
        let is_taken = match Text::of_folder(&folder.join(name))? {
            Ok(text) => take(text)?,
            Err(why) => {
                self.0.push(format!("{name} ({why})"));
                return Ok(false);
            }
        };
        if !is_taken {
            self.add(name);
        }
        Ok(is_taken)
    }

    /// Adds a file or folder that was not taken.
    pub(crate) fn add(&mut self, name: &str) {
        self.0.push(name.to_owned());
    }

    /// The notice `WHY: NAME, NAME` about the folder; `None` if all was taken.
    pub(crate) fn notice(self, folder: &Path, why: &str) -> Option<Notice> {
        let text = format!("{why}: {}", self.0.join(", "));
        (!self.0.is_empty()).then(|| Notice::of(NoticeKind::Left, folder, text))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

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

    fn read_bytes(bytes: &[u8]) -> Result<Lines> {
        read_from(Path::new("x"), bytes)
    }

    fn gzip(parts: &[(&[u8], usize)]) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        for (part, times) in parts {
            for _ in 0..*times {
                packer.write_all(part).unwrap();
            }
        }
        packer.finish().unwrap()
    }

    #[test]
    fn blank_lines_cost_nothing_and_count() {
        let lines =
            read_bytes(&[b"a\r\n".as_slice(), &[b'\n'; 3 << 20], b"b \n"].concat()).unwrap();
        let kept: Vec<(usize, &str)> = lines.iter().collect();
        assert_eq!(kept, [(1, "a"), (2, ""), ((3 << 20) + 2, "b ")]);
        assert!(lines.whole && lines.text.capacity() + lines.ends.capacity() < 100);
    }

    #[test]
    fn limits_are_named() {
        let check = |bytes: &[u8], expected: &str| {
            let fault = read_bytes(bytes).unwrap_err().to_string();
            assert!(fault.contains(expected) && fault.len() < 300, "{fault}");
        };
        check(&[b"a\n".as_slice(), &vec![b'x'; LINE_MAX + 1]].concat(), "line 2 is longer than 4");
        check(&b"1\t".repeat(WORDS_MAX / 2).repeat(2), "line 1 is longer than 4 MiB");
        check(&b"1\t2\n".repeat(WORDS_MAX / 2 + 1), "more than 4000000 words");
        check(&[vec![b'x'; 1 << 20], b"\n".to_vec()].concat().repeat(65), "64 MiB of text");
        check(b"a\n\xffb\n", "line 2: it is not UTF-8 text");
        check(b"a\n\xffb\nc\0", "it is not text");
    }

    #[test]
    fn packed_blank_lines_cost_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("o.tsv");
        let blank = vec![b'\n'; 1 << 20];
        std::fs::write(&path, gzip(&[(b"1\t2\ta\n", 1), (&blank, 20), (b"3\t4\tb", 1)])).unwrap();
        let lines = read_lines(&path).unwrap();
        assert_eq!((lines.ends.len(), lines.count, lines.whole), (3, (20 << 20) + 2, false));
    }
}
