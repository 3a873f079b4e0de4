//! The account of published cells: every cell that was read is kept or named as left out.
//!
//! A parser counts what it reads. The code that uses a cell records its outcome. The two are
//! counted apart, so a column that nobody takes shows as a difference instead of vanishing.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::format::{ImportError, Notice, NoticeKind, Result};
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

/// Edits that make one head of the other. A long text is no column's name.
fn edits(a: &str, b: &str) -> usize {
    if a.len() > 32 { usize::MAX } else { strsim::levenshtein(a, b) }
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
    /// `1,200`: thousands to some, decimals to others.
    Separated,
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
            Fault::Separated => {
                "has a comma, of thousands or of decimals, which nobody knows: write it without"
            }
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
    let is_digits = unsigned.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '.'));
    if is_digits && unsigned.contains(',') {
        return Err(Fault::Separated);
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
    pub fn number(&self, line: usize, column: usize, head: &str, cell: &str) -> Result<f64> {
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

// Outputs of `iostat` and `vmstat`.

// `iostat -kx N`: columns by name, old and new forms, each device by itself.

/// One line of one device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Iostat {
    /// Reads per second.
    pub reads: f64,
    /// KiB read per second.
    pub read_kb: f64,
    /// Writes per second.
    pub writes: f64,
    /// KiB written per second.
    pub write_kb: f64,
    /// Mean wait of a read, ms; `None` in forms that do not tell it apart.
    pub read_wait: Option<f64>,
    /// Mean size of a read, KiB.
    pub read_size: Option<f64>,
    /// Mean wait of a write, ms.
    pub write_wait: Option<f64>,
    /// Mean size of a write, KiB.
    pub write_size: Option<f64>,
}

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IostatFile {
    /// Device → its lines in order.
    pub devices: BTreeMap<String, Vec<Iostat>>,
    /// The account of the cells.
    pub sampled: Sampled,
    /// CPUs of the host, from the first line.
    pub cpus: Option<u32>,
    /// Kernel of the host, from the first line.
    pub kernel: Option<String>,
}

impl IostatFile {
    /// Plain means over the lines of all devices whose name holds `device`, and how many lines
    /// there are: what the published scripts do. `None` if there is no such device.
    pub fn mean(&self, device: &str) -> Option<(Iostat, usize)> {
        let named = self.devices.iter().filter(|(name, _)| name.contains(device));
        let lines: Vec<&Iostat> = named.flat_map(|(_, lines)| lines).collect();
        let n = lines.len();
        let of =
            |get: fn(&Iostat) -> f64| lines.iter().map(|line| get(line)).sum::<f64>() / n as f64;
        let optional = |get: fn(&Iostat) -> Option<f64>| {
            let values: Vec<f64> = lines.iter().filter_map(|line| get(line)).collect();
            (values.len() == n).then(|| values.iter().sum::<f64>() / n as f64)
        };
        (n > 0).then(|| {
            let mean = Iostat {
                reads: of(|line| line.reads),
                read_kb: of(|line| line.read_kb),
                writes: of(|line| line.writes),
                write_kb: of(|line| line.write_kb),
                read_wait: optional(|line| line.read_wait),
                read_size: optional(|line| line.read_size),
                write_wait: optional(|line| line.write_wait),
                write_size: optional(|line| line.write_size),
            };
            (mean, n)
        })
    }
}

/// Columns that are read.
const USED: [&str; 10] = [
    "r/s", "rkB/s", "rMB/s", "w/s", "wkB/s", "wMB/s", "r_await", "rareq-sz", "w_await", "wareq-sz",
];

/// Reads a file. The CPU blocks are passed over; every other line belongs to a device.
///
/// # Errors
/// A device line before a line of heads, one with another number of cells than its heads, a cell
/// that is not a number, heads without rates, and a file without a device.
pub fn parse_iostat(text: &Text) -> Result<IostatFile> {
    let mut file = IostatFile::default();
    let mut heads: Vec<String> = Vec::new();
    let mut in_cpu_block = false;
    for (line, row) in text.lines() {
        let trimmed = row.trim();
        if trimmed.is_empty() {
            in_cpu_block = false;
        } else if trimmed.starts_with("Linux ") {
            (file.cpus, file.kernel) = host_of(trimmed);
        } else if trimmed.starts_with("avg-cpu") {
            in_cpu_block = true;
        } else if trimmed.starts_with("Device") {
            heads = trimmed.split_whitespace().map(str::to_owned).collect();
            // The two units of iostat: -k and -m.
            for kinds in [["r/s", "r/s"], ["w/s", "w/s"], ["rkB/s", "rMB/s"], ["wkB/s", "wMB/s"]] {
                if !heads.iter().any(|head| kinds.contains(&head.as_str())) {
                    let why = format!("the header has no column `{}`", kinds[0]);
                    return Err(text.malformed(line, why));
                }
            }
            in_cpu_block = false;
        } else if in_cpu_block || is_time(trimmed) {
            continue;
        } else if heads.is_empty() {
            return Err(text.malformed(line, "a line before the header (`Device r/s …`)"));
        } else {
            let (device, sample) = sample(text, line, trimmed, &heads)?;
            file.sampled.line(&heads[1..], &USED);
            file.devices.entry(device).or_default().push(sample);
        }
    }
    if file.devices.is_empty() {
        Err(text.cut_short("the first device of iostat"))
    } else {
        Ok(file)
    }
}

fn sample(text: &Text, line: usize, row: &str, heads: &[String]) -> Result<(String, Iostat)> {
    let cells: Vec<&str> = row.split_whitespace().collect();
    text.check_width(line, cells.len(), heads.len())?;
    let find = |name: &str| match heads.iter().position(|head| head == name) {
        None => Ok(None),
        // Some locales write a decimal comma.
        Some(place) => {
            let cell = cells[place].replace(',', ".");
            text.number(line, place + 1, name, &cell).map(Some)
        }
    };
    let kib = |kb: &str, mb: &str| match find(kb)? {
        Some(value) => Ok::<f64, ImportError>(value),
        None => Ok(find(mb)?.unwrap_or_default() * 1024.0),
    };
    let sample = Iostat {
        reads: find("r/s")?.unwrap_or_default(),
        read_kb: kib("rkB/s", "rMB/s")?,
        writes: find("w/s")?.unwrap_or_default(),
        write_kb: kib("wkB/s", "wMB/s")?,
        read_wait: find("r_await")?,
        read_size: find("rareq-sz")?,
        write_wait: find("w_await")?,
        write_size: find("wareq-sz")?,
    };
    Ok((cells[0].trim_end_matches(':').to_owned(), sample))
}

/// `Linux 5.15.0-119-generic (name) 03/05/2025 _x86_64_ (96 CPU)`.
fn host_of(line: &str) -> (Option<u32>, Option<String>) {
    let cpus = line.rsplit_once('(').and_then(|(_, rest)| rest.split_whitespace().next());
    (cpus.and_then(|cpus| cpus.parse().ok()), line.split_whitespace().nth(1).map(str::to_owned))
}

/// The line that `iostat -t` prints before each block.
fn is_time(line: &str) -> bool {
    line.starts_with(|c: char| c.is_ascii_digit())
        && line.contains(':')
        && line.contains(['/', '-'])
}

// `vmstat N`: columns by name, the sample since boot and repeated heads told apart.

/// One line of numbers, in the units of vmstat.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Vmstat {
    /// Context switches per second.
    pub cs: f64,
    /// Per cent of all CPUs: user and nice.
    pub us: f64,
    /// System, irq and softirq.
    pub sy: f64,
    /// Idle.
    pub id: f64,
    /// Waiting for I/O.
    pub wa: f64,
    /// Taken by the hypervisor; 0 where there is no such column.
    pub st: f64,
}

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VmstatFile {
    /// All lines of numbers. The first tells of the time since boot.
    pub samples: Vec<Vmstat>,
    /// The account of the cells.
    pub sampled: Sampled,
    /// `procs` lines: one at the start, then again every 20 or so samples.
    pub banners: usize,
}

impl VmstatFile {
    /// Means without the sample since boot, and how many samples they rest on. `None` if there is
    /// no other.
    pub fn mean(&self) -> Option<(Vmstat, usize)> {
        let samples = self.samples.get(1..).unwrap_or_default();
        mean(samples, samples.len()).map(|mean| (mean, samples.len()))
    }

    /// Means as the published scripts have them, and their divisor: the sample since boot counts,
    /// and so does every repeated `procs` line, as a sample of zeros. Some 4.5 % too low.
    pub fn compat_mean(&self) -> Option<(Vmstat, usize)> {
        let divisor = self.samples.len() + self.banners.saturating_sub(1);
        mean(&self.samples, divisor).map(|mean| (mean, divisor))
    }
}

fn mean(samples: &[Vmstat], divisor: usize) -> Option<Vmstat> {
    let of = |get: fn(&Vmstat) -> f64| samples.iter().map(get).sum::<f64>() / divisor as f64;
    (divisor > 0).then(|| Vmstat {
        cs: of(|s| s.cs),
        us: of(|s| s.us),
        sy: of(|s| s.sy),
        id: of(|s| s.id),
        wa: of(|s| s.wa),
        st: of(|s| s.st),
    })
}

/// Columns that are read.
const VMSTAT_USED: [&str; 6] = ["cs", "us", "sy", "id", "wa", "st"];

/// Reads a file. Columns are found by the names in the line that holds `swpd`; lines with a time
/// stamp after the numbers (`vmstat -t`) are fine.
///
/// # Errors
/// A line that is neither head nor numbers, numbers before any head, a head without `cs`, `us` or
/// `sy`, and a file without a sample.
pub fn parse_vmstat(text: &Text) -> Result<VmstatFile> {
    let mut file = VmstatFile::default();
    let mut heads: Vec<String> = Vec::new();
    for (line, row) in text.rows() {
        // `vmstat -w` writes `--procs--`.
        if row.trim_start().trim_start_matches('-').starts_with("procs") {
            file.banners += 1;
            continue;
        }
        let cells: Vec<&str> = row.split_whitespace().collect();
        if cells.contains(&"swpd") {
            heads = cells.iter().map(|cell| (*cell).to_owned()).collect();
            for name in ["cs", "us", "sy"] {
                if !heads.iter().any(|head| head == name) {
                    return Err(text.malformed(line, format!("the header has no column `{name}`")));
                }
            }
            continue;
        }
        if heads.is_empty() {
            return Err(text.malformed(line, "numbers before the header (`r b swpd …`)"));
        }
        // A time stamp may follow.
        text.check_width(line, cells.len().min(heads.len()), heads.len())?;
        let value = |name: &str| match heads.iter().position(|head| head == name) {
            Some(place) => text.number(line, place + 1, name, cells[place]),
            None => Ok(0.0),
        };
        file.sampled.line(&heads, &VMSTAT_USED);
        file.samples.push(Vmstat {
            cs: value("cs")?,
            us: value("us")?,
            sy: value("sy")?,
            id: value("id")?,
            wa: value("wa")?,
            st: value("st")?,
        });
    }
    if file.samples.is_empty() {
        return Err(text.cut_short("the first sample of vmstat"));
    }
    Ok(file)
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
        for text in ["", "-", "1.2k", "3M", "0x1f", "+1", "1e", "innodb", "-x"] {
            check(text, Err(Fault::Word));
        }
        for text in ["1,000", "1,5", "-1.000,5", "1,200,300.5"] {
            check(text, Err(Fault::Separated));
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

#[cfg(test)]
mod stat_files_iostat_tests {
    use std::path::Path;

    use super::*;

    fn of(text: &str) -> Result<IostatFile> {
        parse_iostat(&Text::of(Path::new("o.io"), text))
    }

    /// The same block in the forms of three releases.
    const FORMS: [&str; 4] = [
        "Device:         rrqm/s   wrqm/s     r/s     w/s    rkB/s    wkB/s avgrq-sz await  %util\n\
         md2  0 0 2.00 4.00 8.00 64.00 1 1 1\n",
        "Device            r/s     w/s     rkB/s     wkB/s   rrqm/s  %util\n\
         md2 2.00 4.00 8.00 64.00 0 1\n",
        "Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz  w/s     wkB/s  %util\n\
         md2 2.00 8.00 0 0 0.5 4.0 4.00 64.00 1\n",
        "Device   r/s  rMB/s  w/s  wMB/s\nmd2 2,00 0,0078125 4,00 0,0625\n",
    ];

    #[test]
    fn all_releases_tell_the_same() {
        for form in FORMS {
            let file =
                of(&format!("Linux 6.1 (h) 01/01/2025 _x86_64_ (96 CPU)\n\n{form}\n")).unwrap();
            let (mean, n) = file.mean("md").unwrap();
            assert_eq!((mean.reads, mean.read_kb), (2.0, 8.0), "{form}");
            assert_eq!((mean.writes, mean.write_kb, n), (4.0, 64.0, 1), "{form}");
            assert_eq!(file.cpus, Some(96));
            assert_eq!(file.kernel.as_deref(), Some("6.1"));
        }
    }

    #[test]
    fn cpu_blocks_and_times_are_passed_over() {
        let block = "03/05/25 10:00:01\navg-cpu:  %user %nice\n  25.70 0.00\n\n";
        let text = format!("{block}{}\n{block}{}", FORMS[2], FORMS[2]);
        let file = of(&text).unwrap();
        assert_eq!(file.devices["md2"].len(), 2);
        assert_eq!(file.mean("md2").unwrap().0.read_wait, Some(0.5));
        assert_eq!(file.mean("sda"), None);
    }

    #[test]
    fn faults_name_the_line() {
        let check = |text: &str, expected: &str| {
            let fault = of(text).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check("md2 1 2\n", "line 1: a line before the header");
        check("Device r/s w/s rkB/s wkB/s\nmd2 1 2\n", "line 2: 3 cells for 5 columns");
        check("Device r/s w/s rkB/s wkB/s\nmd2 1 2 x 3\n", "line 2, column 4: `x` under `rkB/s`");
        check("Device r/s rkB/s wkB/s\n", "line 1: the header has no column `w/s`");
        check("\n", "line 1: the file ends here");
    }
}

#[cfg(test)]
mod stat_files_vmstat_tests {
    use std::path::Path;

    use super::*;

    const HEAD: &str = "procs ---memory--- --cpu--\n r  b   swpd   free   in   cs us sy id wa st\n";

    fn of(text: &str) -> Result<VmstatFile> {
        parse_vmstat(&Text::of(Path::new("o.vm"), text))
    }

    #[test]
    fn wide_output_has_dashes_around_its_banner() {
        let wide = "--procs-- -----------------------memory---------------------- -cpu-\n   r    b \
                    swpd free in cs us sy id wa st\n 1 0 0 99 5 7 40 10 50 0 0\n";
        let file = of(wide).unwrap();
        assert_eq!((file.samples.len(), file.banners, file.samples[0].cs), (1, 1, 7.0));
    }

    #[test]
    fn the_banner_counts_only_for_the_published_means() {
        let sample = |cs: u32| format!(" 1  0      0  99   5 {cs} 40 10 50  0  0\n");
        let text = format!("{HEAD}{}{}{HEAD}{}", sample(7), sample(100), sample(200));
        let file = of(&text).unwrap();
        let (mean, samples) = file.mean().unwrap();
        assert_eq!((mean.cs, mean.us + mean.sy, samples), (150.0, 50.0, 2));
        // (7 + 100 + 200) / (3 samples + 1 repeated banner)
        let (compat, divisor) = file.compat_mean().unwrap();
        assert_eq!((compat.cs, compat.us + compat.sy, divisor), (76.75, 37.5, 4));
    }

    #[test]
    fn columns_go_by_their_names() {
        let text = "procs\n cs us sy swpd id wa\n9 1 2 0 90 7 2025-03-05 10:00:00\n";
        let file = of(text).unwrap();
        let expected = Vmstat { cs: 9.0, us: 1.0, sy: 2.0, id: 90.0, wa: 7.0, st: 0.0 };
        assert_eq!(file.samples, [expected]);
        assert_eq!(file.mean(), None);
    }

    #[test]
    fn faults_name_the_line() {
        let check = |text: &str, expected: &str| {
            let fault = of(text).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check("1 2 3\n", "line 1: numbers before");
        check(&format!("{HEAD}1 2\n"), "line 3: 2 cells for 11 columns");
        check(&format!("{HEAD}1 0 0 9 5 x 40 10 50 0 0\n"), "line 3, column 6: `x` under `cs`");
        check("procs\n r b swpd us sy\n", "no column `cs`");
        check(HEAD, "line 2: the file ends here");
    }
}
