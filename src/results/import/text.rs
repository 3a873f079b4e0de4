//! A text file with its line numbers: plain or gzip, any line end, nothing that is no text.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::ImportError;

/// No published result comes near this; a damaged archive may claim anything.
const BYTES_MAX: u64 = 1 << 30;

/// How files begin that are text in another form.
const FOREIGN: [(&[u8], &str); 6] = [
    (&[0x28, 0xb5, 0x2f, 0xfd], "it is packed by zstd: unpack it first"),
    (&[0xfd, b'7', b'z', b'X', b'Z'], "it is packed by xz: unpack it first"),
    (b"BZh", "it is packed by bzip2: unpack it first"),
    (b"PK\x03\x04", "it is packed by zip: unpack it first"),
    (&[0xff, 0xfe], "it is UTF-16: write it as UTF-8 first"),
    (&[0xfe, 0xff], "it is UTF-16: write it as UTF-8 first"),
];

/// The lines of a file, without their ends.
#[derive(Clone, Debug)]
pub struct Text {
    path: PathBuf,
    lines: Vec<String>,
    whole: bool,
}

impl Text {
    /// Reads a file. One that begins with gzip's magic number is unpacked, whatever its name.
    ///
    /// # Errors
    /// A file that cannot be read, is larger than 1 GiB unpacked, packed in another way or no text;
    /// text that is not UTF-8, with the line.
    pub fn read(path: &Path) -> Result<Text, ImportError> {
        let mut bytes = Vec::new();
        let file = File::open(path).map_err(ImportError::io(path))?;
        file.take(BYTES_MAX).read_to_end(&mut bytes).map_err(ImportError::io(path))?;
        if bytes.starts_with(&[0x1f, 0x8b]) {
            let mut plain = Vec::new();
            let unpacked = flate2::read::MultiGzDecoder::new(bytes.as_slice())
                .take(BYTES_MAX)
                .read_to_end(&mut plain);
            unpacked.map_err(ImportError::io(path))?;
            bytes = plain;
        }
        if bytes.len() as u64 == BYTES_MAX {
            return Err(ImportError::foreign(path, "it is larger than 1 GiB"));
        }
        if let Some((_, why)) = FOREIGN.iter().find(|(begin, _)| bytes.starts_with(begin)) {
            return Err(ImportError::foreign(path, *why));
        }
        if bytes.contains(&0) {
            return Err(ImportError::foreign(path, "it is no text"));
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Text::of(path, &text)),
            Err(fault) => {
                let good = &fault.as_bytes()[..fault.utf8_error().valid_up_to()];
                let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
                let why = "it is not text in UTF-8".to_owned();
                Err(ImportError::Malformed { path: path.to_owned(), line, why })
            }
        }
    }

    /// Reads a file that nobody named, of a folder: `None` for what is no text at all, such as a
    /// picture, a socket or a link to nothing.
    ///
    /// # Errors
    /// As [`Text::read`] for damaged text.
    pub(super) fn of_folder(path: &Path) -> Result<Option<Text>, ImportError> {
        if !path.is_file() {
            return Ok(None);
        }
        match Text::read(path) {
            Ok(text) => Ok(Some(text)),
            Err(ImportError::Foreign { .. }) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    /// The text of a file that was read before.
    pub fn of(path: &Path, text: &str) -> Text {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = text.lines().map(|line| line.trim_end_matches('\r').to_owned());
        let whole = text.is_empty() || text.ends_with('\n');
        Text { path: path.to_owned(), lines: lines.collect(), whole }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file, as results name it.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// How many lines there are.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// True if the last line has an end: a copy that was cut short has none.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// True for an empty file.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Lines with their numbers, from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> + Clone {
        self.lines.iter().enumerate().map(|(index, line)| (index + 1, line.as_str()))
    }

    /// The first line with something on it.
    pub fn first(&self) -> &str {
        self.lines.iter().find(|line| !line.trim().is_empty()).map_or("", String::as_str)
    }

    /// The error of a line.
    pub(super) fn malformed(&self, line: usize, why: impl Into<String>) -> ImportError {
        ImportError::Malformed { path: self.path.clone(), line, why: why.into() }
    }

    /// The error of a file that ends too early.
    pub(super) fn cut_short(&self, expected: &str) -> ImportError {
        let why = format!("the file ends here, before {expected}");
        self.malformed(self.lines.len().max(1), why)
    }
}

/// A finite number as programs print it; words such as `nan` and `inf` are none.
pub(super) fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let begins = text.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.');
    let number = text.parse::<f64>().ok().filter(|number| begins && number.is_finite())?;
    // `-0.00` is what rounding leaves of a small negative number.
    Some(if number == 0.0 { 0.0 } else { number })
}

/// A number that is not below zero: rates, times, sizes.
pub(super) fn amount(text: &str) -> Option<f64> {
    number(text).filter(|number| *number >= 0.0)
}

/// A count as programs print it.
pub(super) fn count(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_programs_print() {
        let check =
            |text: &str, expected: Option<f64>| assert_eq!(number(text), expected, "{text}");
        check(" 12.50 ", Some(12.5));
        check(".5", Some(0.5));
        check("1e-3", Some(0.001));
        check("-3", Some(-3.0));
        for word in
            ["", "-", "nan", "-nan", "inf", "-inf", "1e999", "1,000", "1.2k", "3M", "0x1f", "+1"]
        {
            check(word, None);
        }
        assert!(number("-0.00").is_some_and(f64::is_sign_positive));
        assert_eq!((amount("-0.00"), amount("-1"), amount("1")), (Some(0.0), None, Some(1.0)));
    }

    #[test]
    fn what_another_program_packed_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("o.zst");
        std::fs::write(&path, [0x28, 0xb5, 0x2f, 0xfd, 0x04]).unwrap();
        let fault = Text::read(&path).unwrap_err().to_string();
        assert!(Text::of_folder(&path).unwrap().is_none());
        assert!(fault.contains("o.zst`: it is packed by zstd: unpack it first"), "{fault}");
    }
}
