//! CSV as RFC 4180 describes it: fields between quotes may hold delimiters, quotes and line breaks.

use std::io::BufRead;

use thiserror::Error;

use rqps_model::bounded;

/// An unreadable record of a CSV file.
#[derive(Debug, Error)]
pub enum CsvError {
    /// The file cannot be read.
    #[error("{0}")]
    Read(#[from] std::io::Error),
    /// The file ends within quotes.
    #[error("line {0}: the file ends within a quoted field that begins there")]
    Open(u64),
    /// A quote within a field that does not begin with one, or text after a closing quote.
    #[error("line {0}: a quote stands in the middle of a field")]
    Stray(u64),
}

/// The fields of one record. It is reused for the next, so that nothing is allocated per record.
#[derive(Clone, Debug, Default)]
pub struct CsvRecord {
    bytes: Vec<u8>,
    /// The end of each field, and true if it was in quotes.
    ends: Vec<(usize, bool)>,
    /// The line on which it begins, from 1.
    pub line: u64,
}

impl CsvRecord {
    /// Number of fields.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there are no fields.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// A field, and whether it stood in quotes.
    pub fn field(&self, index: usize) -> Option<(&[u8], bool)> {
        let (end, quoted) = *self.ends.get(index)?;
        let begin = index.checked_sub(1).map_or(0, |before| self.ends[before].0);
        Some((&self.bytes[begin..end], quoted))
    }

    /// All fields as text.
    pub fn texts(&self) -> Vec<String> {
        let text = |index| {
            let (bytes, _) = self.field(index).unwrap_or_default();
            String::from_utf8_lossy(bytes).into_owned()
        };
        (0..self.len()).map(text).collect()
    }

    fn end_field(&mut self, quoted: bool) {
        self.ends.push((self.bytes.len(), quoted));
    }
}

/// Reads records one after the other.
pub struct CsvReader<R> {
    input: R,
    delimiter: u8,
    line: u64,
    text: Vec<u8>,
}

impl<R: BufRead> CsvReader<R> {
    /// Reads a file with this delimiter between fields.
    pub fn new(input: R, delimiter: u8) -> CsvReader<R> {
        CsvReader::within(input, delimiter, 1)
    }

    /// Reads a part of a file that begins with this line, from 1.
    pub fn within(input: R, delimiter: u8, line: u64) -> CsvReader<R> {
        CsvReader { input, delimiter, line: line - 1, text: Vec::new() }
    }

    /// Reads the next record into `record`; false at the end of the file. Empty lines are passed
    /// over.
    ///
    /// # Errors
    /// See [`CsvError`].
    pub fn read(&mut self, record: &mut CsvRecord) -> Result<bool, CsvError> {
        record.bytes.clear();
        record.ends.clear();
        loop {
            if !self.next_line()? {
                return Ok(false);
            }
            if !trimmed(&self.text).is_empty() {
                break;
            }
        }
        record.line = self.line;
        let mut at = 0;
        loop {
            let quoted = self.text.get(at) == Some(&b'"');
            at = if quoted { self.quoted(at + 1, record)? } else { self.plain(at, record)? };
            record.end_field(quoted);
            if self.text.get(at) != Some(&self.delimiter) {
                return Ok(true);
            }
            at += 1;
        }
    }

    fn next_line(&mut self) -> Result<bool, CsvError> {
        self.text.clear();
        self.line += 1;
        let length = bounded::line(&mut self.input, &mut self.text, bounded::STATEMENT_MAX)?;
        if self.line == 1 && self.text.starts_with(BYTE_ORDER_MARK) {
            self.text.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(length > 0)
    }

    /// Reads a field from `at` up to its delimiter. Returns the place of that.
    fn plain(&mut self, at: usize, record: &mut CsvRecord) -> Result<usize, CsvError> {
        let rest = &trimmed(&self.text)[at..];
        let end = rest.iter().position(|byte| *byte == self.delimiter).unwrap_or(rest.len());
        if rest[..end].contains(&b'"') {
            return Err(CsvError::Stray(self.line));
        }
        record.bytes.extend_from_slice(&rest[..end]);
        Ok(at + end)
    }

    /// Reads a field after its opening quote, over as many lines as it has.
    fn quoted(&mut self, mut at: usize, record: &mut CsvRecord) -> Result<usize, CsvError> {
        let begun = self.line;
        loop {
            match self.text.get(at) {
                None => {
                    if !self.next_line()? {
                        return Err(CsvError::Open(begun));
                    }
                    if record.bytes.len() as u64 > bounded::STATEMENT_MAX {
                        return Err(bounded::too_long(bounded::STATEMENT_MAX).into());
                    }
                    at = 0;
                }
                Some(b'"') if self.text.get(at + 1) == Some(&b'"') => {
                    record.bytes.push(b'"');
                    at += 2;
                }
                Some(b'"') => {
                    let ends = at + 1 >= trimmed(&self.text).len();
                    if !ends && self.text[at + 1] != self.delimiter {
                        return Err(CsvError::Stray(self.line));
                    }
                    return Ok(at + 1);
                }
                Some(byte) => {
                    record.bytes.push(*byte);
                    at += 1;
                }
            }
        }
    }
}

/// The bytes that spreadsheets put before a text of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The start of a record: its byte from 0, and its line from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsvPlace {
    /// Its first byte.
    pub byte: u64,
    /// Its line.
    pub line: u64,
}

/// The first records that begin at or after each of these bytes, which ascend; fewer if the file
/// ends before. A line ends a record unless it stands within quotes.
///
/// # Errors
/// The file cannot be read.
pub fn cuts(mut input: impl BufRead, wanted: &[u64]) -> std::io::Result<Vec<CsvPlace>> {
    let (mut found, mut at, mut line) = (Vec::with_capacity(wanted.len()), 0, 1);
    let mut is_quoted = false;
    while found.len() < wanted.len() {
        let piece = input.fill_buf()?;
        if piece.is_empty() {
            break;
        }
        for byte in piece {
            at += 1;
            is_quoted ^= *byte == b'"';
            if *byte == b'\n' {
                line += 1;
                let is_cut = !is_quoted && wanted.get(found.len()).is_some_and(|from| at >= *from);
                if is_cut {
                    found.push(CsvPlace { byte: at, line });
                }
            }
        }
        let length = piece.len();
        input.consume(length);
    }
    Ok(found)
}

/// A line without its end.
fn trimmed(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

// Texts that are not UTF-8: what their errors say, whatever reads them.

/// The way out of such a text, after its error.
pub const UTF8_HINT: &str = "\nhint: convert the file, for instance by `iconv -f latin1 -t utf8`";

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<Vec<String>>, CsvError> {
        let (mut reader, mut record) =
            (CsvReader::new(text.as_bytes(), b','), CsvRecord::default());
        let mut rows = Vec::new();
        while reader.read(&mut record)? {
            rows.push(record.texts());
        }
        Ok(rows)
    }

    #[test]
    fn fields_are_those_of_rfc_4180() {
        let check = |text: &str, want: &[&[&str]]| assert_eq!(read(text).unwrap(), want, "{text}");
        check("a,b\r\nc,\n", &[&["a", "b"], &["c", ""]]);
        check("\"a,\"\"b\"\"\",\"c\nd\"\n\ne", &[&["a,\"b\"", "c\nd"], &["e"]]);
        check(",\n", &[&["", ""]]);
        check("", &[]);
    }

    #[test]
    fn a_mark_before_the_header_is_no_part_of_it() {
        assert_eq!(read("\u{feff}a,b\n\u{feff}1,2\n").unwrap(), [["a", "b"], ["\u{feff}1", "2"]]);
        assert_eq!(read("\u{feff}\"a\"\n").unwrap(), [["a"]]);
    }

    #[test]
    fn parts_together_hold_every_record_once() {
        let text = "h,i\n1,\"a\nb\"\n2,\"\"\"\n\"\n3,c\n\n4,d";
        let whole = read(text).unwrap();
        for from in 1..text.len() as u64 {
            let found = cuts(text.as_bytes(), &[from]).unwrap();
            let cut = found.first().map_or(text.len(), |place| place.byte as usize);
            let line = found.first().map_or(0, |place| place.line);
            let lines = text[..cut].matches('\n').count() as u64 + 1;
            assert!(found.is_empty() || (line == lines && cut as u64 >= from), "{from}: {found:?}");
            let parts = [&text[..cut], &text[cut..]].map(|part| read(part).unwrap());
            assert_eq!(parts.concat(), whole, "{from}");
        }
        let several = cuts(text.as_bytes(), &[1, 2, 99]).unwrap();
        assert_eq!(several.len(), 2, "{several:?}");
    }

    #[test]
    fn quotes_out_of_place_are_refused_with_their_line() {
        let fails = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(fails("a\nb\"c"), "line 2: a quote stands in the middle of a field");
        assert_eq!(fails("\"a\"b"), "line 1: a quote stands in the middle of a field");
        let open = fails("a\n\"b\nc");
        assert_eq!(open, "line 2: the file ends within a quoted field that begins there");
    }

    #[test]
    fn any_fields_survive_being_written() {
        let mut rng = rqps_model::datagen::rng::Rng::new(5);
        for _ in 0..500 {
            let letters = [',', '"', '\n', 'a', 'é', ' ', '\\'];
            let field = |rng: &mut rqps_model::datagen::rng::Rng| -> String {
                (0..rng.below(5)).map(|_| letters[rng.below(7) as usize]).collect()
            };
            let rows: Vec<Vec<String>> =
                (0..3).map(|_| (0..3).map(|_| field(&mut rng)).collect()).collect();
            let quote = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
            let line = |row: &Vec<String>| row.iter().map(quote).collect::<Vec<_>>().join(",");
            let text = rows.iter().map(line).collect::<Vec<_>>().join("\n");
            assert_eq!(read(&text).unwrap(), rows, "{text}");
        }
    }
}
