//! The values that a source chooses from: a list, or a column of a CSV file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use rqps_model::bounded;
use rqps_model::datagen::rng::Rng;
use rqps_text::{CsvReader, CsvRecord};

/// Texts to choose from, in one allocation.
pub struct Choices {
    text: String,
    /// The end of each text.
    ends: Vec<usize>,
    /// The texts as numbers, if all are numbers.
    numbers: Vec<i64>,
    /// Cumulative weights; empty if all weights are equal.
    sums: Vec<f64>,
}

impl Choices {
    /// Makes choices of texts with weights; `whole`: as whole numbers.
    pub fn new(texts: Vec<String>, weights: &[f64], whole: bool) -> Result<Choices, String> {
        if texts.is_empty() {
            return Err("there is no value to choose".to_owned());
        }
        let sum = |sum: &mut f64, weight: &f64| {
            *sum += weight;
            Some(*sum)
        };
        let sums: Vec<f64> = weights.iter().scan(0.0, sum).collect();
        if sums.last().is_some_and(|all| !(all.is_finite() && *all > 0.0)) {
            return Err("all its weights together are not above 0".to_owned());
        }
        let numbers = if whole {
            texts.iter().filter_map(|text| text.parse().ok()).collect()
        } else {
            Vec::new()
        };
        let mut choices = Choices { text: String::new(), ends: Vec::new(), numbers, sums };
        for text in texts {
            choices.text.push_str(&text);
            choices.ends.push(choices.text.len());
        }
        Ok(choices)
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Draws the index of a text.
    pub fn draw(&self, rng: &mut Rng) -> usize {
        match self.sums.last() {
            None => rng.below(self.len() as u64) as usize,
            Some(all) => {
                let drawn = rng.unit() * all;
                self.sums.partition_point(|sum| *sum <= drawn).min(self.len() - 1)
            }
        }
    }

    /// The text with this index.
    pub fn text(&self, index: usize) -> &str {
        let begin = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[begin..self.ends[index]]
    }

    /// The text with this index as a number, if all are numbers.
    pub fn number(&self, index: usize) -> Option<i64> {
        self.numbers.get(index).copied()
    }
}

/// True if the file's name has gzip's ending.
pub fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "gz")
}

/// A file whose reader counts its bytes.
pub struct CountedFile {
    file: File,
    read: Arc<AtomicU64>,
}

impl CountedFile {
    /// Adds the bytes that are read to `read`.
    pub fn new(file: File, read: &Arc<AtomicU64>) -> CountedFile {
        CountedFile { file, read: Arc::clone(read) }
    }
}

impl Read for CountedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.file.read(buffer)?;
        self.read.fetch_add(length as u64, Ordering::Relaxed);
        Ok(length)
    }
}

/// What gzip compressed. Its errors name gzip: "unexpected end of file" alone is a riddle.
struct Unpacked<R>(MultiGzDecoder<R>);

impl<R: BufRead> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error.raw_os_error() {
            Some(_) => error,
            None => {
                let what = format!("it is not a whole file of gzip: {error}");
                io::Error::new(error.kind(), what)
            }
        })
    }
}

/// Opens a file, compressed by gzip or not.
pub fn open(path: &Path) -> Result<Box<dyn BufRead>, String> {
    open_counted(path, &Arc::default())
}

/// Opens a plain file. If the user of this process may not read it, the error says who that is.
///
/// # Errors
/// As [`bounded::plain`].
pub fn plain(path: &Path) -> io::Result<File> {
    bounded::plain(path).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            let user = rustix::process::geteuid().as_raw();
            io::Error::other(format!(
                "{error}\nhint: the user with the number {user} reads it (as root, rqps has `nobody` \
                 do that): let that user read the file and enter its folders, or run rqps as the \
                 owner of the file"
            ))
        }
        _ => error,
    })
}

/// Opens a file, compressed by gzip or not. Adds the bytes that are read from it, as they are on
/// disk, to `read`.
pub fn open_counted(path: &Path, read: &Arc<AtomicU64>) -> Result<Box<dyn BufRead>, String> {
    let file = plain(path).map_err(|error| format!("open {}: {error}", path.display()))?;
    let file = BufReader::with_capacity(256 << 10, CountedFile::new(file, read));
    Ok(if is_compressed(path) {
        let unpacked = Unpacked(MultiGzDecoder::new(file));
        Box::new(BufReader::with_capacity(256 << 10, unpacked))
    } else {
        Box::new(file)
    })
}

/// Reads a column of a CSV file with a header, and the weights of its rows.
pub fn read(
    path: &Path,
    column: &str,
    weight_column: Option<&str>,
) -> Result<(Vec<String>, Vec<f64>), String> {
    let fault = |what: String| format!("{}: {what}", path.display());
    let (mut csv, mut record) = (CsvReader::new(open(path)?, b','), CsvRecord::default());
    let mut next =
        |record: &mut CsvRecord| csv.read(record).map_err(|error| fault(error.to_string()));
    if !next(&mut record)? {
        return Err(fault("the file is empty".to_owned()));
    }
    let header = record.texts();
    let place = |name: &str| {
        header.iter().position(|known| known == name).ok_or_else(|| {
            fault(format!("there is no column `{name}`; there are {}", header.join(", ")))
        })
    };
    let (value, weight) = (place(column)?, weight_column.map(place).transpose()?);
    let (mut texts, mut weights) = (Vec::new(), Vec::new());
    let mut bytes = 0;
    while next(&mut record)? {
        bytes += size_of::<String>() + record.field(value).map_or(0, |(field, _)| field.len());
        if bytes as u64 > bounded::RECORD_MAX {
            return Err(fault(format!(
                "the column `{column}`: {}",
                bounded::too_long(bounded::RECORD_MAX)
            )));
        }
        let field = |index| {
            let missing = || fault(format!("line {} has too few fields", record.line));
            let (bytes, _) = record.field(index).ok_or_else(missing)?;
            std::str::from_utf8(bytes)
                .map_err(|_| fault(format!("line {} is not UTF-8", record.line)))
        };
        texts.push(field(value)?.to_owned());
        if let Some(weight) = weight {
            let text = field(weight)?;
            let number = text.parse().ok().filter(|number: &f64| *number >= 0.0);
            let wrong = || fault(format!("line {}: `{text}` is no weight", record.line));
            weights.push(number.ok_or_else(wrong)?);
        }
    }
    Ok((texts, weights))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_gzip_did_not_finish_is_named_as_such() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.csv.gz");
        // The first bytes of what gzip writes, and no gzip at all.
        for bytes in [&b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b"[..], b"a,b\n1,2\n"] {
            std::fs::write(&path, bytes).unwrap();
            let error = read(&path, "a", None).unwrap_err();
            assert!(error.contains("rows.csv.gz: it is not a whole file of gzip: "), "{error}");
        }
    }
}
