//! Where the values of sources come from: hashed keys, distributions, lists and files, days.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::MultiGzDecoder;

use rqps_model::bounded;
use rqps_model::datagen::distribution::{
    HashedZipfian, Permutation, Zipfian, cut_gaussian, exponential, pareto, special,
};
use rqps_model::datagen::rng::Rng;
use rqps_model::script::{KeyChoice, ValueSpread};
use rqps_text::{CsvReader, CsvRecord};

// Chooses the records of hashed keys, and remembers which records a client has inserted.

/// The choice of the record of a hashed key.
pub(super) enum KeyDraws {
    Uniform { loaded: u64 },
    HashedZipfian { zipfian: HashedZipfian, loaded: u64 },
    Latest { loaded: u64, inserts: usize, from: u64, ranks: Zipfian },
    New { from: u64 },
}

impl KeyDraws {
    /// `first_new` returns the first new record of an earlier source.
    pub(super) fn of(
        records: &KeyChoice,
        first_new: impl Fn(usize) -> Option<u64>,
    ) -> Result<KeyDraws, String> {
        Ok(match records {
            KeyChoice::Uniform { loaded } => KeyDraws::Uniform { loaded: *loaded },
            KeyChoice::HashedZipfian { loaded } => {
                KeyDraws::HashedZipfian { zipfian: HashedZipfian::default(), loaded: *loaded }
            }
            KeyChoice::New { from } => KeyDraws::New { from: *from },
            KeyChoice::Latest { loaded, inserts, exponent } => {
                let inserts = *inserts as usize;
                let from = first_new(inserts).ok_or("it follows no source of new records")?;
                let ranks = Zipfian::new(*loaded, *exponent);
                KeyDraws::Latest { loaded: *loaded, inserts, from, ranks }
            }
        })
    }

    /// The first record that the source adds, if it adds any.
    pub(super) fn first_new(&self) -> Option<u64> {
        match self {
            KeyDraws::New { from } => Some(*from),
            _ => None,
        }
    }
}

/// A sequence as drawn by one client, and which of its places are in the database.
#[derive(Default)]
pub(super) struct DrawnSequence {
    /// Number of places drawn.
    drawn: u64,
    /// Places before this one are confirmed or gaps.
    settled: u64,
    /// Numbers that were never inserted, ascending.
    gaps: Vec<u64>,
}

impl DrawnSequence {
    /// Draws the next place.
    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        self.drawn += 1;
        self.drawn - 1
    }

    /// Confirms that the drawn key is in the database.
    #[inline]
    pub(super) fn confirm(&mut self) {
        self.settled = self.drawn;
    }

    /// Begins a new attempt: unconfirmed places become gaps.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.gaps.extend(self.settled..self.drawn);
        self.settled = self.drawn;
    }

    /// Places that are confirmed or gaps.
    pub(super) fn settled(&self) -> u64 {
        self.settled
    }

    /// The place that `rank` others follow. The error is its distance before the first place.
    pub(super) fn ranked(&self, rank: u64) -> Result<u64, u64> {
        let mut rank = rank;
        while let Some(place) = self.settled.checked_sub(1 + rank) {
            if self.gaps.binary_search(&place).is_err() {
                return Ok(place);
            }
            rank += 1;
        }
        Err(rank - self.settled)
    }
}

/// The client that draws, and its sequences.
pub(super) struct KeyHistory<'a> {
    pub(super) client: u64,
    pub(super) clients: u64,
    /// Sequences by source.
    pub(super) sequences: &'a mut [DrawnSequence],
}

impl KeyHistory<'_> {
    /// The record of a hashed key of source `number`.
    #[inline]
    pub(super) fn record(&mut self, records: &KeyDraws, number: usize, rng: &mut Rng) -> u64 {
        let at = |from: u64, place: u64| from + self.client + place * self.clients;
        match records {
            KeyDraws::Uniform { loaded } => rng.below((*loaded).max(1)),
            KeyDraws::HashedZipfian { zipfian, loaded } => zipfian.draw(rng, *loaded),
            KeyDraws::New { from } => at(*from, self.sequences[number].next()),
            KeyDraws::Latest { loaded, inserts, from, ranks } => {
                match self.sequences[*inserts].ranked(ranks.draw(rng) - 1) {
                    Ok(place) => at(*from, place),
                    Err(before) => loaded.saturating_sub(1 + before),
                }
            }
        }
    }
}

// Distributions of whole numbers over a range.

/// A distribution over 0..=span.
pub(super) enum Spreading {
    Uniform,
    Zipfian(Zipfian, Option<Permutation>),
    Pareto(f64),
    Special,
    Gaussian(f64),
    Exponential(f64),
}

impl Spreading {
    pub(super) fn of(spread: ValueSpread, span: u64) -> Spreading {
        match spread {
            ValueSpread::Uniform => Spreading::Uniform,
            ValueSpread::Zipfian { exponent, scramble } => {
                let n = span.saturating_add(1);
                // The key is fixed: a hot value is the same for all clients, steps and targets.
                let permutation = scramble.then(|| Permutation::new(n, 1));
                Spreading::Zipfian(Zipfian::new(n, exponent), permutation)
            }
            ValueSpread::Pareto { h } => Spreading::Pareto(h),
            ValueSpread::Special => Spreading::Special,
            ValueSpread::Gaussian { parameter } => Spreading::Gaussian(parameter),
            ValueSpread::Exponential { parameter } => Spreading::Exponential(parameter),
        }
    }

    /// Draws a value of 0..=span.
    pub(super) fn draw(&self, rng: &mut Rng, span: u64) -> u64 {
        match self {
            Spreading::Uniform => rng.below(span.wrapping_add(1)),
            Spreading::Zipfian(zipfian, permutation) => {
                let rank = zipfian.draw(rng) - 1;
                permutation.map_or(rank, |permutation| permutation.apply(rank))
            }
            Spreading::Pareto(h) => pareto(rng, 0, span, *h),
            Spreading::Special => special(rng, 0, span),
            Spreading::Gaussian(cut) => cut_gaussian(rng, span, *cut),
            Spreading::Exponential(steepness) => exponential(rng, span, *steepness),
        }
    }
}

// The values that a source chooses from: a list, or a column of a CSV file.

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

// Days and moments as text, without a time zone.

const DAY: i64 = 86_400;

/// Writes a day, counted from 1970-01-01, as `2024-02-29`.
pub fn write_day(out: &mut Vec<u8>, day: i64) -> io::Result<()> {
    let (year, month, day) = civil(day);
    write!(out, "{year:04}-{month:02}-{day:02}")
}

/// Writes a moment, counted in seconds from 1970-01-01, as `2024-02-29 12:00:00`.
pub fn write_second(out: &mut Vec<u8>, second: i64) -> io::Result<()> {
    write_day(out, second.div_euclid(DAY))?;
    let of_day = second.rem_euclid(DAY);
    write!(out, " {:02}:{:02}:{:02}", of_day / 3600, of_day / 60 % 60, of_day % 60)
}

/// Year, month and day, by counting eras of 400 years that begin in March.
fn civil(day: i64) -> (i64, i64, i64) {
    let from_march = day + 719_468;
    let (era, of_era) = (from_march.div_euclid(146_097), from_march.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year + era * 400 + later, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_leads_past_gaps_and_then_before_the_first_place() {
        let mut sequence = DrawnSequence::default();
        for confirmed in [true, false, true, true] {
            sequence.begin();
            sequence.next();
            if confirmed {
                sequence.confirm();
            }
        }
        sequence.next();
        let ranked = [0, 1, 2, 3, 4].map(|rank| sequence.ranked(rank));
        assert_eq!(ranked, [Ok(3), Ok(2), Ok(0), Ok(0), Err(0)]);
    }

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

    #[test]
    fn days_are_those_of_a_calendar_that_counts_on() {
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for number in 0..60_000 {
            assert_eq!(civil(number), (year, month, day), "{number}");
            let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
            let length = match month {
                2 if leap => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (day, month) = (1, month + 1);
            }
            if month > 12 {
                (month, year) = (1, year + 1);
            }
        }
        let mut text = Vec::new();
        write_second(&mut text, -1).unwrap();
        assert_eq!(text, b"1969-12-31 23:59:59");
    }
}
