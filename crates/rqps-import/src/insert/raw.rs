//! Reads the raw files of an Insert Benchmark run: finds folders of targets and steps, parses their
//! files, and checks them against each other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::tables::split_size;
use crate::cells::{self, IostatFile, VmstatFile, count, decimals_agree, number, shown};
use crate::format::{ImportError, Notice, NoticeKind, Result};
use crate::published::Published;
use crate::text::{Row, Text, names};

/// The files of one step of one target.
#[derive(Debug, Default)]
pub(crate) struct RawInsertStep {
    pub folder: PathBuf,
    /// `20m`, if the folder of the target tells the size.
    pub size: Option<String>,
    pub target: String,
    pub step: String,
    pub clients: u32,
    /// Outputs by client number, from 1.
    pub outputs: BTreeMap<u32, (Text, ClientOutput)>,
    pub summary: Option<(Text, StepSummary)>,
    pub vm: Option<(Text, VmstatFile)>,
    pub io: Option<(Text, IostatFile)>,
    /// Operation, file and rows of each histogram file.
    pub times: Vec<(String, Text, Vec<HistogramRow>)>,
}

/// Parses `o.ib.dop4.2` as `ib`, 4 clients, number 2. `None` for another form.
pub fn file_name(name: &str) -> Option<(&str, Option<u32>, Option<u32>)> {
    let name = name.strip_suffix(".gz").unwrap_or(name);
    let rest = name.strip_prefix("o.").filter(|rest| !rest.is_empty())?;
    let Some((kind, numbers)) = rest.split_once(".dop") else { return Some((rest, None, None)) };
    let (clients, number) = match numbers.split_once('.') {
        Some((clients, number)) => (clients, Some(number.parse().ok()?)),
        None => (numbers, None),
    };
    let clients = clients.parse().ok().filter(|clients| *clients > 0)?;
    Some((kind, Some(clients), number))
}

/// True for the folder of a step: it contains the output of a client, or a summary.
pub(crate) fn is_step(folder: &Path) -> Result<bool> {
    let is = |name: &String| matches!(file_name(name), Some(("ib" | "res", Some(_), _)));
    Ok(names(folder)?.iter().any(is))
}

/// The folders of steps in the folder of a target; empty if there are none.
pub(crate) fn steps_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut steps = Vec::new();
    for name in names(folder)? {
        let path = folder.join(&name);
        if path.is_dir() && is_step(&path)? {
            steps.push(path);
        }
    }
    steps.sort_by_key(|path| place(&file(path)));
    Ok(steps)
}

/// True for the folder of all targets with one number of clients: `4u.1tno`.
pub(crate) fn is_of_clients(name: &str) -> bool {
    let Some((clients, tables)) = name.split_once("u.1t") else { return false };
    clients.parse::<u32>().is_ok() && ["yes", "no"].contains(&tables)
}

fn file(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The order of a step: first loads, then queries by the number after `L`.
fn place(step: &str) -> (u32, u32, String) {
    let load = ["l.i0", "l.x", "l.i1", "l.i2"].iter().position(|load| *load == step);
    let number = step
        .split_once(".L")
        .and_then(|(_, rest)| rest.split('.').next().and_then(|number| number.parse::<u32>().ok()));
    match (load, number) {
        (Some(load), _) => (0, load as u32, String::new()),
        (None, Some(number)) => (1, number, step.to_owned()),
        (None, None) => (2, 0, step.to_owned()),
    }
}

/// Names of steps from their folders, in order. In 2021, the second folder of 100 rows/s,
/// `q.L2.ips100`, was reported as `q100.2`.
fn step_names(folders: &[String]) -> Vec<String> {
    let rate = |name: &str| -> Option<u32> {
        let (_, rate) = name.strip_prefix("q.L")?.split_once(".ips")?;
        rate.parse().ok()
    };
    let named = |(place, name): (usize, &String)| match rate(name) {
        Some(of) => {
            let before = folders[..place].iter().filter(|other| rate(other) == Some(of)).count();
            format!("q{of}.{}", before + 1)
        }
        None => name.clone(),
    };
    folders.iter().enumerate().map(named).collect()
}

/// Reads `steps` of the target in `folder`.
///
/// # Errors
///
/// A damaged file, with its line; a folder with files for several numbers of clients.
pub(crate) fn read_raw(
    folder: &Path,
    steps: &[PathBuf],
    notices: &mut Vec<Notice>,
) -> Result<Vec<RawInsertStep>> {
    // `.` and `..` have no name.
    let real = std::fs::canonicalize(folder).map_err(ImportError::io(folder))?;
    let name = file(&real);
    let (size, target) = split_size(&name);
    let siblings: Vec<String> = steps_of(folder)?.iter().map(|path| file(path)).collect();
    let named = step_names(&siblings);
    let mut unused: BTreeMap<String, usize> = BTreeMap::new();
    let mut read = Vec::new();
    for path in steps {
        let own = file(&std::fs::canonicalize(path).map_err(ImportError::io(path))?);
        let place = siblings.iter().position(|sibling| *sibling == own);
        let step = place.map_or_else(|| own.clone(), |place| named[place].clone());
        let mut raw = RawInsertStep {
            folder: path.clone(),
            size: size.map(str::to_owned),
            target: target.to_owned(),
            step,
            ..RawInsertStep::default()
        };
        take_files(&mut raw, &mut unused)?;
        read.push(raw);
    }
    let beside: Vec<String> = names(folder)?
        .into_iter()
        .filter(|name| !siblings.contains(name) && steps.len() == siblings.len())
        .collect();
    if !read.is_empty() && !beside.is_empty() {
        let what = format!("no steps: {}", beside.join(", "));
        notices.push(Notice::of(NoticeKind::Left, folder, what));
    }
    if !unused.is_empty() {
        let kinds: Vec<String> = unused.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
        let what = format!("files without an rqps metric: {}", kinds.join(", "));
        notices.push(Notice::of(NoticeKind::Left, folder, what));
    }
    Ok(read)
}

fn take_files(raw: &mut RawInsertStep, unused: &mut BTreeMap<String, usize>) -> Result<()> {
    for name in names(&raw.folder)? {
        let path = raw.folder.join(&name);
        let Some((kind, clients, number)) = file_name(&name) else {
            *unused.entry(name).or_default() += 1;
            continue;
        };
        if let Some(clients) = clients {
            if raw.clients != 0 && raw.clients != clients {
                let why = format!("it holds files of {} and of {clients} clients", raw.clients);
                return Err(ImportError::foreign(&raw.folder, why));
            }
            raw.clients = clients;
        }
        match (kind, clients, number) {
            ("ib", Some(clients), Some(number)) => {
                if !(1..=clients).contains(&number) {
                    let why = format!("client {number} of {clients}");
                    return Err(ImportError::foreign(&path, why));
                }
                let text = Text::read(&path)?;
                let output = parse_client(&text)?;
                raw.outputs.insert(number, (text, output));
            }
            ("res", Some(clients), None) => {
                let text = Text::read(&path)?;
                let summary = parse_res(&text)?;
                if summary.clients != clients {
                    let why = format!(
                        "{} processes, but the file's name says {clients}",
                        summary.clients
                    );
                    return Err(text.malformed(1, why));
                }
                raw.summary = Some((text, summary));
            }
            ("vm", Some(_), None) => {
                let text = Text::read(&path)?;
                raw.vm = Some((text.clone(), cells::parse_vmstat(&text)?));
            }
            ("io", Some(_), None) => {
                let text = Text::read(&path)?;
                raw.io = Some((text.clone(), cells::parse_iostat(&text)?));
            }
            ("rt.t.insert" | "rt.t.delete" | "rt.t.query", None, None) => {
                let text = Text::read(&path)?;
                let rows = parse_histogram(&text)?;
                raw.times.push((kind["rt.t.".len()..].to_owned(), text, rows));
            }
            _ => *unused.entry(format!("o.{kind}")).or_default() += 1,
        }
    }
    Ok(())
}

// Checks the raw files of a step against each other.

/// Checks the rates of intervals against the counters, as far as the printed seconds (one decimal)
/// allow.
pub(super) fn check_intervals(raw: &RawInsertStep, published: &mut Published) {
    let follows = |row: &IntervalRow, before: Option<&IntervalRow>, kind: usize| {
        let (rate, total) = (row.rates[kind]?, row.totals[kind]?);
        let moved = (total - before.map_or(0, |before| before.totals[kind].unwrap_or(0))) as f64;
        let low = moved / (row.seconds + 0.05) - 1.0;
        let below = row.seconds - 0.05;
        let high = if below > 0.0 { moved / below + 1.0 } else { f64::INFINITY };
        Some((low..=high).contains(&rate))
    };
    for (text, output) in raw.outputs.values() {
        let (mut agree, mut of) = (0, 0);
        for (place, row) in output.rows.iter().enumerate() {
            let before = place.checked_sub(1).map(|before| &output.rows[before]);
            // Queries are counted 16 at a time.
            for kind in [0, 1] {
                let Some(good) = follows(row, before, kind) else { continue };
                (agree, of) = (agree + usize::from(good), of + 1);
                if !good {
                    let (letter, total, _) = KINDS[kind];
                    let what = format!(
                        "i_{letter}ps is {}, which contradicts {total} and i_sec",
                        row.rates[kind].unwrap_or_default()
                    );
                    published.mismatch(text.path(), row.line, what);
                }
            }
        }
        published.check("rates of intervals from their counters", agree, of);
    }
}

/// Checks the means and histograms that the summary and the step's table repeat.
pub(super) fn check_times(raw: &RawInsertStep, published: &mut Published) {
    let sums = |kind: usize| -> Option<Vec<u64>> {
        let own = raw.outputs.values().flat_map(|(_, output)| &output.histograms);
        let own: Vec<_> = own.filter(|times| times.kind == kind).collect();
        let sum = |class: usize| {
            own.iter().fold(0u64, |sum, times| sum.saturating_add(times.counts[class]))
        };
        (!own.is_empty()).then(|| (0..BUCKETS.len()).map(sum).collect())
    };
    for (op, text, rows) in &raw.times {
        let kind = KINDS.iter().position(|(_, _, name)| name.to_lowercase() == *op);
        let Some(sums) = kind.and_then(sums) else { continue };
        for row in rows.iter().filter(|row| row.tag.starts_with("sum:")) {
            let printed: Vec<Option<u64>> =
                row.cells.iter().map(|cell| cell.parse().ok()).collect();
            let agree = printed.iter().zip(&sums).filter(|(cell, sum)| **cell == Some(**sum));
            let agree = agree.count();
            published.check("classes of response times from the clients'", agree, sums.len());
            if agree < sums.len() {
                let what = format!("the clients' own histograms of {op}s add up to {sums:?}");
                published.mismatch(text.path(), row.line, what);
            }
        }
    }
    let (Some((text, summary)), Some((_, vm))) = (&raw.summary, &raw.vm) else { return };
    let Some((mean, _)) = vm.compat_mean() else { return };
    let cells = [("cs/s", mean.cs), ("cpu/s", mean.us + mean.sy)];
    for (head, again) in cells {
        let printed = summary.vm_by_row.iter().find(|(name, _)| name == head);
        let Some((_, printed)) = printed else { continue };
        let agrees = decimals_agree(again, printed);
        published.check("means of o.res from the samples of vmstat", usize::from(agrees), 1);
        if !agrees {
            let what = format!("{head}: published {printed}, recomputed from samples {again}");
            published.mismatch(text.path(), 8, what);
        }
    }
}

// Reads the summary of one step of the Insert Benchmark (`o.res.dopN`), computed from client
// output, vmstat and iostat. The numbers of its first 15 lines identify them.

/// Words after the numbers in the first line.
const WORDS: [&str; 8] = [
    "processes", "rows-per-process", "seconds", "rows-per-second", "rows-per-second-per-user",
    "queries", "queries-per-second", "deletes",
];
/// Heads of the block of iostat, per inserted row.
const IO_HEADS: [&str; 10] =
    ["nsamp", "r/s", "rMB/s", "w/s", "wMB/s", "r/i", "rKB/i", "w/i", "wKB/i", "ips"];
/// Heads of the block of vmstat.
const VM_HEADS: [&str; 5] = ["nsamp", "cs/s", "cpu/s", "cs/q", "cpu/q"];

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepSummary {
    /// Number of clients.
    pub clients: u32,
    /// Requested rows per client.
    pub rows_per_client: u64,
    /// Seconds from before the first client's start to after the last one's end, whole.
    pub seconds: f64,
    /// Rows inserted per second (in l.x: indexed), as printed.
    pub ips: String,
    /// Number of queries.
    pub queries: u64,
    /// Queries per second, as printed.
    pub qps: String,
    /// Block of iostat per inserted row: heads and cells.
    pub io_by_row: Row,
    /// Block of vmstat per inserted row: heads and cells.
    pub vm_by_row: Row,
    /// Block of iostat per query; meaningless in l steps, which have no queries.
    pub io_by_query: Row,
    /// Block of vmstat per query; meaningless in l steps.
    pub vm_by_query: Row,
    /// Size of the database, GiB.
    pub database_gb: Option<f64>,
    /// Size of the data folder, GiB.
    pub folder_gb: Option<f64>,
    /// Rate quantiles of client 1: per cent of seconds, and the rates of inserts, deletes and
    /// queries reached in them. `None` for `NA`.
    pub reached: Vec<(u32, [Option<f64>; 3])>,
    /// User and system CPU seconds of client 1.
    pub client_cpu: Option<[f64; 2]>,
    /// Histograms of the clients in order.
    pub histograms: Vec<ResponseTimes>,
    /// Lines of an unknown form: number from 1, text.
    pub others: Vec<(usize, String)>,
}

/// Reads a file.
///
/// # Errors
///
/// One of the first 15 lines is not of its form; a line begins as a known one and continues
/// differently.
pub fn parse_res(text: &Text) -> Result<StepSummary> {
    let mut summary = first_line(text)?;
    let io = |head, cells| block(text, [head, cells], &IO_HEADS);
    let vm = |head, cells| block(text, [head, cells], &VM_HEADS);
    summary.io_by_row = io(4, 5)?;
    summary.vm_by_row = vm(7, 8)?;
    summary.io_by_query = by_query(text, [11, 12], &IO_HEADS)?;
    summary.vm_by_query = by_query(text, [14, 15], &VM_HEADS)?;
    for line in [2, 6, 9, 13] {
        if !row(text, line)?.is_empty() {
            return Err(text.malformed(line, "expected an empty line"));
        }
    }
    let mut histograms = Histograms::default();
    for (line, row) in text.lines().skip(15).filter(|(_, row)| !row.trim().is_empty()) {
        if !histograms.take(text, line, row)? {
            summary.take(text, line, row)?;
        }
    }
    summary.histograms = histograms.end(text)?;
    Ok(summary)
}

/// The cells of a line by its number, from 1.
fn row(text: &Text, line: usize) -> Result<Vec<&str>> {
    match text.lines().nth(line - 1) {
        Some((_, row)) => Ok(row.split_whitespace().collect()),
        None => Err(text.cut_short(&format!("line {line} of a summary of a step"))),
    }
}

/// Reads `C processes, R rows-per-process, T seconds, …`.
fn first_line(text: &Text) -> Result<StepSummary> {
    let cells = row(text, 1)?;
    let expected = || {
        let words: Vec<String> = WORDS.iter().map(|word| format!("N {word}")).collect();
        text.malformed(1, format!("expected `{}`", words.join(", ")))
    };
    if cells.len() != 2 * WORDS.len() {
        return Err(expected());
    }
    for (pair, word) in cells.chunks(2).zip(WORDS) {
        if pair[1].trim_end_matches(',') != word {
            return Err(expected());
        }
    }
    // `deletes` has the value yes or no.
    let numbers: Option<Vec<f64>> =
        cells.iter().step_by(2).take(WORDS.len() - 1).map(|cell| number(cell)).collect();
    let whole = |place: usize| cells[2 * place].parse::<u64>().ok();
    let (Some(numbers), Some(clients), Some(rows), Some(queries)) =
        (numbers, whole(0), whole(1), whole(5))
    else {
        return Err(text.malformed(1, "one of the numbers is missing or not a count"));
    };
    let clients = u32::try_from(clients).ok().filter(|clients| *clients > 0);
    let Some(clients) = clients else {
        return Err(text.malformed(1, "a number is out of range"));
    };
    Ok(StepSummary {
        clients,
        rows_per_client: rows,
        seconds: numbers[2],
        ips: cells[6].to_owned(),
        queries,
        qps: cells[12].to_owned(),
        ..StepSummary::default()
    })
}

/// Reads a block of heads and numbers.
fn block(text: &Text, [heads, cells]: [usize; 2], expected: &[&str]) -> Result<Row> {
    let names = row(text, heads)?;
    if names != expected {
        return Err(text.malformed(heads, format!("expected the header `{}`", expected.join(" "))));
    }
    text.numbers_by_head(cells, &names, &row(text, cells)?)
}

/// Reads a block per query. In l steps its content is arbitrary, because there is no query rate.
fn by_query(text: &Text, [heads, cells]: [usize; 2], names: &[&str]) -> Result<Row> {
    if row(text, heads)?.len() != names.len() {
        return Err(text.malformed(heads, format!("expected {} columns", names.len())));
    }
    text.by_head(cells, names, &row(text, cells)?)
}

impl StepSummary {
    /// A cell of the blocks per inserted row as a number.
    pub fn value(&self, head: &str) -> Option<f64> {
        let cells = self.io_by_row.iter().chain(self.vm_by_row.iter());
        cells.skip(1).find(|(name, _)| name == head).and_then(|(_, cell)| number(cell))
    }

    /// Reads a line after the 15th.
    fn take(&mut self, text: &Text, line: usize, row: &str) -> Result<()> {
        let words: Vec<&str> = row.split_whitespace().collect();
        let expected = |form: &str| text.malformed(line, format!("expected `{form}`"));
        match words.first().copied().unwrap_or_default() {
            "dbGB" => match words.as_slice() {
                [_, size] if number(size).is_some() => self.database_gb = number(size),
                _ => return Err(expected("dbGB SIZE")),
            },
            "dbdirGB" => match words.as_slice() {
                [_, size, _path] if number(size).is_some() => self.folder_gb = number(size),
                _ => return Err(expected("dbdirGB SIZE PATH")),
            },
            "client:" => match words.as_slice() {
                [_, user, "user,", system, "system,", _, "total"] => {
                    let (Some(user), Some(system)) = (number(user), number(system)) else {
                        return Err(expected("client: U user, S system, T total"));
                    };
                    self.client_cpu.get_or_insert([user, system]);
                }
                _ => return Err(expected("client: U user, S system, T total")),
            },
            first if first.ends_with("th,") && first.starts_with(|c: char| c.is_ascii_digit()) => {
                let reached = reached(&words)
                    .ok_or_else(|| expected("Nth, OFFSET / LINES = A insert, B delete, C query"))?;
                // Client 1 comes first.
                if !self.reached.iter().any(|(percent, _)| *percent == reached.0) {
                    self.reached.push(reached);
                }
            }
            _ => self.others.push((line, row.trim_end().to_owned())),
        }
        Ok(())
    }
}

/// Reads `99th, 1782 / 1800 = 40123 insert, 0 delete, 0 query`.
fn reached(words: &[&str]) -> Option<(u32, [Option<f64>; 3])> {
    let [percent, _, "/", _, "=", insert, "insert,", delete, "delete,", query, "query"] = words
    else {
        return None;
    };
    let rate = |cell: &str| match cell {
        "NA" => Some(None),
        cell => number(cell).map(Some),
    };
    let percent = percent.strip_suffix("th,")?.parse().ok()?;
    Some((percent, [rate(insert)?, rate(delete)?, rate(query)?]))
}

// Reads the output of one client of the Insert Benchmark (`o.ib.dopN.K`): a row of numbers per
// second, histograms of response times, and the word Done.

/// Kinds of operations in the order of columns: letter of the columns, name of the counter, head of
/// the histogram.
pub const KINDS: [(char, &str, &str); 3] =
    [('i', "t_ins", "Insert"), ('d', "t_del", "Delete"), ('q', "t_query", "Query")];

/// Columns since 2023. The 12 columns of 2021 lack those of deletes.
const HEADS: [&str; 17] = [
    "i_sec", "t_sec", "i_ips", "t_ips", "i_dps", "t_dps", "i_qps", "t_qps", "max_i", "max_d",
    "max_q", "t_ins", "t_del", "t_query", "retry_i", "retry_d", "retry_q",
];
/// Columns that only the form since 2023 has.
const OF_DELETES: [&str; 5] = ["i_dps", "t_dps", "max_d", "t_del", "retry_d"];

/// The whole output of one client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientOutput {
    /// Its command line.
    pub command: String,
    /// One row per interval.
    pub rows: Vec<IntervalRow>,
    /// Histograms of inserts, deletes and queries that exist.
    pub histograms: Vec<ResponseTimes>,
    /// Seconds for making the secondary indexes.
    pub index_seconds: Option<f64>,
    /// Lines of an unknown form: number from 1, text.
    pub others: Vec<(usize, String)>,
    /// False if the last word is missing: the client died, or the file is incomplete.
    pub is_done: bool,
}

/// One interval, with values for each of [`KINDS`]; `None` if the form has no such column.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalRow {
    /// Line number, from 1.
    pub line: usize,
    /// Length of the interval in seconds, with one decimal.
    pub seconds: f64,
    /// Seconds since the client's start, with one decimal.
    pub at: f64,
    /// Rows or queries per second, whole numbers.
    pub rates: [Option<f64>; 3],
    /// Longest operation that ended in the interval, microseconds; 0 without operations.
    pub longest_us: [Option<f64>; 3],
    /// Rows or queries since the start.
    pub totals: [Option<u64>; 3],
    /// Repeated operations.
    pub retries: [Option<u64>; 3],
}

/// A response-time histogram of one client and step.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseTimes {
    /// Index in [`KINDS`].
    pub kind: usize,
    /// Line number of the counts, from 1.
    pub line: usize,
    /// Number of operations in each of [`BUCKETS`].
    pub counts: Vec<u64>,
    /// The longest, seconds.
    pub longest: f64,
}

/// Reads a file.
///
/// # Errors
///
/// Heads of an unknown form; a row with a wrong number of cells, an invalid number, times or
/// counters that decrease; an incomplete histogram; text after the last word; a file without heads.
pub fn parse_client(text: &Text) -> Result<ClientOutput> {
    let mut reader = Reader { text, heads: Vec::new(), output: ClientOutput::default() };
    let mut histograms = Histograms::default();
    let last = last_but_done(text);
    for (line, row) in text.rows() {
        let row = row.trim_end();
        if reader.output.is_done {
            return Err(text.malformed(line, "a line after the word Done"));
        }
        if row == "Done" {
            reader.output.is_done = true;
        } else if row.starts_with("i_sec\t") {
            reader.take_heads(line, row)?;
        } else if histograms.take(text, line, row)? {
            continue;
        } else if line == 1 {
            reader.output.command = without_secrets(row);
        } else if row.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.') {
            // The line of totals comes last; its form is not documented.
            match reader.row(line, row) {
                Err(_) if last == Some(line) && !reader.heads.is_empty() => {
                    reader.output.others.push((line, row.to_owned()));
                }
                row => reader.output.rows.push(row?),
            }
        } else {
            reader.take_words(line, row)?;
        }
    }
    reader.output.histograms = histograms.end(text)?;
    if reader.heads.is_empty() {
        Err(text.cut_short("the header of the intervals (`i_sec t_sec i_ips …`)"))
    } else {
        Ok(reader.output)
    }
}

/// The line before the word Done.
fn last_but_done(text: &Text) -> Option<usize> {
    let lines = text.rows();
    let mut last = None;
    for (line, row) in lines {
        if row.trim_end() == "Done" {
            return last;
        }
        last = Some(line);
    }
    None
}

/// The command line without its passwords.
fn without_secrets(row: &str) -> String {
    let words = row.split_whitespace().filter(|word| !word.contains("pass"));
    words.collect::<Vec<_>>().join(" ")
}

struct Reader<'a> {
    text: &'a Text,
    heads: Vec<String>,
    output: ClientOutput,
}

impl Reader<'_> {
    fn take_heads(&mut self, line: usize, row: &str) -> Result<()> {
        let heads: Vec<&str> = row.split('\t').map(str::trim).collect();
        let missing = |names: &[&str]| names.iter().any(|name| !heads.contains(name));
        let newest = !missing(&HEADS);
        let older: Vec<&str> =
            HEADS.into_iter().filter(|head| !OF_DELETES.contains(head)).collect();
        let expected = if newest { HEADS.len() } else { older.len() };
        if missing(&older) || heads.len() != expected {
            let why = format!(
                "{} columns; known forms have 17 (`{}`) or the 12 without deletes",
                heads.len(),
                HEADS.join(" ")
            );
            return Err(self.text.malformed(line, why));
        }
        if !self.heads.is_empty() && self.heads != heads {
            let why = "the header differs from the earlier one in this file";
            return Err(self.text.malformed(line, why));
        }
        self.heads = heads.into_iter().map(str::to_owned).collect();
        Ok(())
    }

    fn row(&self, line: usize, row: &str) -> Result<IntervalRow> {
        if self.heads.is_empty() {
            return Err(self.text.malformed(line, "a row before the header (`i_sec t_sec …`)"));
        }
        let cells: Vec<&str> = row.split('\t').map(str::trim).collect();
        self.text.check_width(line, cells.len(), self.heads.len())?;
        let cell = |name: &str| {
            let place = self.heads.iter().position(|head| head == name);
            place.map(|place| (place + 1, cells[place]))
        };
        let text = self.text;
        let value = |name: &str| match cell(name) {
            None => Ok(None),
            Some((column, cell)) => text.number(line, column, name, cell).map(Some),
        };
        let whole = |name: &str| match cell(name) {
            None => Ok(None),
            Some((column, cell)) => match count(cell) {
                Some(value) => Ok(Some(value)),
                None => {
                    let why = format!("`{}` under `{name}` is not a count", shown(cell));
                    Err(text.bad_cell(line, column, why))
                }
            },
        };
        let mut interval = IntervalRow {
            line,
            seconds: value("i_sec")?.unwrap_or_default(),
            at: value("t_sec")?.unwrap_or_default(),
            rates: [None; 3],
            longest_us: [None; 3],
            totals: [None; 3],
            retries: [None; 3],
        };
        for (place, (letter, total, _)) in KINDS.into_iter().enumerate() {
            interval.rates[place] = value(&format!("i_{letter}ps"))?;
            interval.longest_us[place] = value(&format!("max_{letter}"))?;
            interval.totals[place] = whole(total)?;
            interval.retries[place] = whole(&format!("retry_{letter}"))?;
            // Unused, but read to detect damage.
            value(&format!("t_{letter}ps"))?;
        }
        self.check_order(&interval)?;
        Ok(interval)
    }

    /// Checks that clocks and counters only increase.
    fn check_order(&self, row: &IntervalRow) -> Result<()> {
        let Some(before) = self.output.rows.last() else { return Ok(()) };
        if row.at < before.at {
            let why = format!("t_sec goes back from {} to {}", before.at, row.at);
            return Err(self.text.malformed(row.line, why));
        }
        for (place, (_, name, _)) in KINDS.into_iter().enumerate() {
            if row.totals[place] < before.totals[place] {
                return Err(self.text.malformed(row.line, format!("{name} goes back")));
            }
        }
        Ok(())
    }

    fn take_words(&mut self, line: usize, row: &str) -> Result<()> {
        let small = row.trim().to_ascii_lowercase();
        let Some(rest) = small.strip_prefix("created secondary indexes") else {
            self.output.others.push((line, row.to_owned()));
            return Ok(());
        };
        let words: Vec<&str> = rest.split_whitespace().collect();
        match words.as_slice() {
            ["in", seconds, "seconds"] if number(seconds).is_some() => {
                self.output.index_seconds = number(seconds);
                Ok(())
            }
            _ => {
                let why = "expected `created secondary indexes in S seconds`";
                Err(self.text.malformed(line, why))
            }
        }
    }
}

/// Reads histograms: a line of labels, then one of counts, each after `Insert rt:` or a similar
/// word.
#[derive(Debug, Default)]
pub(crate) struct Histograms {
    labels: Option<(usize, usize)>,
    done: Vec<ResponseTimes>,
}

impl Histograms {
    /// True if the line belongs to a histogram.
    pub(crate) fn take(&mut self, text: &Text, line: usize, row: &str) -> Result<bool> {
        let words: Vec<&str> = row.split_whitespace().collect();
        let kind = words.first().and_then(|word| {
            KINDS.iter().position(|(_, _, name)| name == word && words.get(1) == Some(&"rt:"))
        });
        let Some(kind) = kind else {
            return match self.labels {
                Some(_) => Err(text.malformed(line, "expected the counts of the histogram above")),
                None => Ok(false),
            };
        };
        let cells = &words[2..];
        if cells.len() != BUCKETS.len() + 1 {
            let why = format!("{} cells of a histogram of ten classes and max", cells.len());
            return Err(text.malformed(line, why));
        }
        let labels = BUCKETS.iter().chain(&["max"]).eq(cells);
        match self.labels.take() {
            None if labels => self.labels = Some((kind, line)),
            Some((of, _)) if of == kind && !labels => {
                self.done.push(response_times(text, line, kind, cells)?);
            }
            _ => {
                let why = "a histogram is a line of labels (`256us 1ms … gt max`), then one of \
                           counts of the same operations";
                return Err(text.malformed(line, why));
            }
        }
        Ok(true)
    }

    /// Returns all histograms.
    pub(crate) fn end(self, text: &Text) -> Result<Vec<ResponseTimes>> {
        match self.labels {
            Some((_, line)) => Err(text.malformed(line, "histogram labels without counts")),
            None => Ok(self.done),
        }
    }
}

fn response_times(text: &Text, line: usize, kind: usize, cells: &[&str]) -> Result<ResponseTimes> {
    let (longest, counts) = cells.split_last().unwrap_or((&"", &[]));
    let counts: Option<Vec<u64>> = counts.iter().map(|cell| count(cell)).collect();
    match (counts, number(longest)) {
        (Some(counts), Some(longest)) => Ok(ResponseTimes { kind, line, counts, longest }),
        _ => {
            let why = "a histogram class is not a count, or its max is not a number";
            Err(text.malformed(line, why))
        }
    }
}

// Reads response-time tables of the Insert Benchmark: a row of ten buckets and the longest time
// per target or client, as counts or per cent.

/// Names of the buckets: their upper bounds, and the one for all longer times.
pub const BUCKETS: [&str; 10] =
    ["256us", "1ms", "4ms", "16ms", "64ms", "256ms", "1s", "4s", "16s", "gt"];

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramRow {
    /// Line number, from 1.
    pub line: usize,
    /// `20m.my`, if there is such a column.
    pub report: Option<String>,
    /// The step, if there is such a column.
    pub step: Option<String>,
    /// `insert`, `delete` or `query`, if there is such a column.
    pub op: Option<String>,
    /// One cell per bucket of [`BUCKETS`]: a count, a percentage, or `nonzero`.
    pub cells: Vec<String>,
    /// Longest response time in seconds, as printed.
    pub max: String,
    /// Column number of the first bucket, from 1.
    pub first: usize,
    /// The target; in files of one step `t1:TARGET`, `sum:TARGET` and `pct:TARGET`.
    pub tag: String,
}

/// True if the text begins with the heads of such a table.
pub fn is_histogram(text: &Text) -> bool {
    let heads: Vec<&str> = text.first().split_whitespace().collect();
    BUCKETS.iter().all(|bucket| heads.contains(bucket)) && heads.contains(&"max")
}

/// Reads a table; the line of heads may repeat.
///
/// # Errors
///
/// A row with a wrong number of cells, a cell that is neither a number nor `nonzero`, percentages
/// that do not add up to 100 ± 0.1, a table without rows.
pub fn parse_histogram(text: &Text) -> Result<Vec<HistogramRow>> {
    let mut heads: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for (line, row) in text.rows() {
        let cells: Vec<&str> = row.split_whitespace().collect();
        if cells.contains(&"256us") {
            heads = cells.iter().map(|cell| (*cell).to_owned()).collect();
            continue;
        }
        if heads.is_empty() {
            return Err(text.malformed(line, "a row before the header (`256us 1ms … max tag`)"));
        }
        // Some heads omit the word tag.
        if cells.len() != heads.len() + 1 {
            text.check_width(line, cells.len(), heads.len())?;
        }
        let cell = |name: &str| {
            heads.iter().position(|head| head == name).map(|place| cells[place].to_owned())
        };
        let tag = cell("tag").or_else(|| cells.last().map(|cell| (*cell).to_owned()));
        let row = HistogramRow {
            line,
            report: cell("report"),
            step: cell("step"),
            op: cell("op"),
            cells: BUCKETS.iter().filter_map(|bucket| cell(bucket)).collect(),
            max: cell("max").unwrap_or_default(),
            first: heads.iter().position(|head| head == BUCKETS[0]).unwrap_or(0) + 1,
            tag: tag.unwrap_or_default(),
        };
        check(text, &row)?;
        rows.push(row);
    }
    if rows.is_empty() { Err(text.cut_short("the first row of the histogram")) } else { Ok(rows) }
}

fn check(text: &Text, row: &HistogramRow) -> Result<()> {
    if row.cells.len() != BUCKETS.len() {
        return Err(text.malformed(row.line, "expected ten buckets"));
    }
    let heads = BUCKETS.into_iter().chain(["max"]);
    for (place, (head, cell)) in heads.zip(row.cells.iter().chain([&row.max])).enumerate() {
        if cell != "nonzero" {
            text.number(row.line, row.first + place, head, cell)?;
        }
    }
    let shares = row.cells.iter().any(|cell| cell.contains('.'));
    let sum: f64 = row.cells.iter().filter_map(|cell| number(cell)).sum();
    if shares && (sum - 100.0).abs() > 0.1 && sum != 0.0 {
        return Err(text.malformed(row.line, format!("the shares add up to {sum:.3} per cent")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn names_of_files_are_taken_apart() {
        let check = |name: &str, expected| assert_eq!(file_name(name), expected, "{name}");
        check("o.ib.dop4.2", Some(("ib", Some(4), Some(2))));
        check("o.top.dop1.gz", Some(("top", Some(1), None)));
        check("o.pg.lswal.dop20", Some(("pg.lswal", Some(20), None)));
        check("o.rt.t.insert", Some(("rt.t.insert", None, None)));
        for name in ["", "o.", "ib.dop1.1", "o.ib.dopx.1", "o.ib.dop0.1", "o.ib.dop1.x"] {
            check(name, None);
        }
        assert!(is_of_clients("20u.1tyes") && is_of_clients("1u.1tno"));
        assert!(!is_of_clients("u.1tno") && !is_of_clients("1u.1tmaybe"));
    }

    #[test]
    fn steps_have_the_names_of_reports() {
        let mut folders: Vec<String> =
            ["q.L10.ips100", "q.L2.ips100", "q.L1.ips100", "l.i1", "l.x", "q.L3.ips200", "l.i0"]
                .map(str::to_owned)
                .to_vec();
        folders.sort_by_key(|folder| place(folder));
        assert_eq!(
            step_names(&folders),
            ["l.i0", "l.x", "l.i1", "q100.1", "q100.2", "q200.1", "q100.3"]
        );
        assert_eq!(step_names(&["qr100.L1".to_owned()]), ["qr100.L1"]);
    }

    const RES: &str = include_str!("../../../rqps/tests/data/import/ib_res.txt");

    fn of(text: &str) -> Result<StepSummary> {
        parse_res(&Text::of(Path::new("o.res.dop2"), text))
    }

    #[test]
    fn a_summary_is_read() {
        let summary = of(RES).unwrap();
        assert_eq!((summary.clients, summary.rows_per_client, summary.seconds), (2, 12_000, 12.0));
        assert_eq!((summary.ips.as_str(), summary.qps.as_str()), ("2000.0", "2400.0"));
        assert_eq!((summary.value("cs/s"), summary.value("w/s")), (Some(2500.0), Some(60.0)));
        assert_eq!(summary.database_gb.zip(summary.folder_gb), Some((1.3, 2.5)));
        assert_eq!(summary.reached[0], (50, [Some(1000.0), Some(1000.0), Some(1200.0)]));
        assert_eq!(summary.reached.len(), 3);
        assert_eq!(summary.client_cpu, Some([4.5, 0.5]));
        assert_eq!(summary.histograms.len(), 6);
        assert!(summary.others.iter().any(|(_, text)| text.starts_with("Max insert")));
    }

    #[test]
    fn faults_name_the_line() {
        let check = |from: &str, to: &str, expected: &str| {
            let fault = of(&RES.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(fault.contains(expected), "{from}: {fault}");
        };
        check("seconds,", "hours,", "line 1: expected `N processes, N rows-per-process");
        check("2 processes", "x processes", "line 1: one of the numbers is missing");
        check("2 processes", "0 processes", "line 1: a number is out of range");
        check("nsamp\tr/s", "nsamp\tx/s", "line 4: expected the header `nsamp r/s");
        check("\t60.0\t", "\t", "line 5: 9 cells for 10 columns");
        check("2500", "many", "line 8, column 2: `many` under `cs/s` is not a number");
        check("dbGB 1.3", "dbGB big", "expected `dbGB SIZE`");
        check("50th, 6 / 12", "50th, 6 of 12", "expected `Nth, OFFSET / LINES");
        check("0.5 system", "0.5 sys", "expected `client: U user");
        let cut: String = RES.lines().take(7).map(|line| format!("{line}\n")).collect();
        let fault = of(&cut).unwrap_err().to_string();
        assert!(fault.contains("line 7: the file ends here, before line 8"), "{fault}");
    }
}

#[cfg(test)]
mod client_client_tests {
    use std::path::Path;

    use super::*;

    fn of(text: &str) -> Result<ClientOutput> {
        parse_client(&Text::of(Path::new("o.ib.dop1.1"), text))
    }

    const OLD: &str = "iibench.py --db_password=pw --dbms=mysql\n\
        i_sec\tt_sec\ti_ips\tt_ips\ti_qps\tt_qps\tmax_i\tmax_q\tt_ins\tt_query\tretry_i\tretry_q\n\
        1.0\t1.0\t5000\t5000\t0\t0\t9000\t0\t5000\t0\t0\t0\n\
        1.1\t2.1\t4000\t4476\t0\t0\t12345\t0\t9400\t0\t0\t0\n\
        Insert rt:\t256us\t1ms\t4ms\t16ms\t64ms\t256ms\t1s\t4s\t16s\tgt\tmax\n\
        Insert rt:\t0\t90\t3\t1\t0\t0\t0\t0\t0\t0\t0.012345\n\
        2.1 4476 9400 0 0 0\n\
        Done\n";

    #[test]
    fn the_form_of_2021_is_read() {
        let output = of(OLD).unwrap();
        assert_eq!(output.command, "iibench.py --dbms=mysql");
        assert_eq!(output.rows.len(), 2);
        let row = &output.rows[1];
        assert_eq!((row.seconds, row.at, row.line), (1.1, 2.1, 4));
        assert_eq!(row.rates, [Some(4000.0), None, Some(0.0)]);
        assert_eq!(row.longest_us, [Some(12345.0), None, Some(0.0)]);
        assert_eq!(row.totals, [Some(9400), None, Some(0)]);
        let [inserts] = output.histograms.as_slice() else { panic!("{output:?}") };
        assert_eq!((inserts.kind, inserts.counts[1], inserts.longest), (0, 90, 0.012_345));
        assert_eq!(output.others, [(7, "2.1 4476 9400 0 0 0".to_owned())]);
        assert!(output.is_done);
    }

    #[test]
    fn one_that_died_has_no_last_word() {
        let cut = OLD.replace("Done\n", "");
        let fault = of(&cut).unwrap_err().to_string();
        assert!(fault.contains("line 7: 1 cell for 12 columns"), "{fault}");
        let cut: String = OLD.lines().take(4).map(|line| format!("{line}\n")).collect();
        assert!(!of(&cut).unwrap().is_done);
    }

    #[test]
    fn faults_name_the_line() {
        let check = |from: &str, to: &str, expected: &str| {
            let fault = of(&OLD.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(fault.contains(expected), "{from}: {fault}");
        };
        check("1.1\t2.1\t4000\t", "1.1\t2.1\t", "line 4: 11 cells for 12 columns");
        check("\t12345\t", "\tlong\t", "column 7: `long` under `max_i` is not a number");
        check("\t9400\t", "\t4.5\t", "`4.5` under `t_ins` is not a count");
        check("\t9400\t", "\t4000\t", "line 4: t_ins goes back");
        check("1.1\t2.1", "1.1\t0.1", "line 4: t_sec goes back from 1 to 0.1");
        check("max_q\t", "max_p\t", "line 2: 12 columns");
        check("\tt_query\t", "\tt_query\tmore\t", "line 2: 13 columns");
        check("i_sec\tt_sec", "sec\tt_sec", "line 3: a row before the header");
        check("\t90\t", "\t", "line 6: 10 cells of a histogram");
        check("\t90\t", "\t9x\t", "line 6: a histogram class is not a count");
        check("Insert rt:\t0", "Delete rt:\t0", "line 6: a histogram is a line of labels");
        check("Insert rt:\t0", "Insert: 0", "line 6: expected the counts");
        check("Done\n", "Done\nmore\n", "line 9: a line after the word Done");
        check(OLD, "one\ntwo\n", "line 2: the file ends here, before the header");
    }

    #[test]
    fn seconds_of_indexes_are_read() {
        let with = OLD.replace("2.1 4476", "created secondary indexes in 66.5 seconds\n2.1 4476");
        assert_eq!(of(&with).unwrap().index_seconds, Some(66.5));
        let bad = with.replace("66.5", "some");
        let fault = of(&bad).unwrap_err().to_string();
        assert!(fault.contains("line 7: expected `created secondary indexes in S"), "{fault}");
    }
}

#[cfg(test)]
mod client_histograms_tests {
    use std::path::Path;

    use super::*;

    const TABLE: &str = "report\tstep\top\t256us\t1ms\t4ms\t16ms\t64ms\t256ms\t1s\t4s\t16s\tgt\t\
        max\ttag\n20m.my\tl.i0\tinsert\t0.000\t98.919\t1.081\tnonzero\t0.000\t0.000\t0.000\t0.000\t\
        0.000\t0.000\t0.098\tmy5649.cy8\n";

    fn of(text: &str) -> Result<Vec<HistogramRow>> {
        parse_histogram(&Text::of(Path::new("rt"), text))
    }

    #[test]
    fn rows_are_read_with_and_without_steps() {
        let rows = of(TABLE).unwrap();
        assert_eq!(
            (rows[0].step.as_deref(), rows[0].op.as_deref()),
            (Some("l.i0"), Some("insert"))
        );
        assert_eq!((rows[0].max.as_str(), rows[0].tag.as_str()), ("0.098", "my5649.cy8"));
        let counts = "256us 1ms 4ms 16ms 64ms 256ms 1s 4s 16s gt max\n\
            1 2 3 4 5 6 7 8 9 10 0.123 sum:DBMS\n";
        let rows = of(counts).unwrap();
        assert_eq!((rows[0].cells.len(), rows[0].tag.as_str()), (10, "sum:DBMS"));
    }

    #[test]
    fn faults_name_the_line() {
        let check = |text: &str, expected: &str| {
            let fault = of(text).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check("1 2\n", "line 1: a row before the header");
        check(&TABLE.replace("\t0.098", ""), "");
        check(&TABLE.replace("98.919", "88.919"), "line 2: the shares add up to 90.000");
        check(
            &TABLE.replace("nonzero", "some"),
            "line 2, column 7: `some` under `16ms` is not a number",
        );
        check(TABLE.lines().next().unwrap(), "line 1: the file ends here");
    }
}
