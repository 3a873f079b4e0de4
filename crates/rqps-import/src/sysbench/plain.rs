//! Importer `sysbench`: output of sysbench 1.0 and 1.1, with one or several runs per file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use base64::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use sha2::{Digest, Sha256};

use super::tables::{self, counts_rows, file_name, group};
use crate::cells::{count, each_second, number};
use crate::format::{ImportError, ImportFormat, ImportOptions, Named, Notice, NoticeKind, Result};
use crate::published::{self, Published, StepKind, Tag, add_file, untagged};
use crate::text::{self, Leftovers, Text};
use rqps_model::benchmark::{Group, RateUnit, Workload};
use rqps_model::build::Dbms;
use rqps_model::metric::Metric;
use rqps_model::run::StepRecord;

/// A run with the label of its target.
struct SysbenchOutput {
    text: Text,
    label: String,
    /// True if the user named the target before the path.
    said: bool,
    /// The step: the user's name, that of the file, or that in the command line.
    step: Option<String>,
    output: Output,
}

/// The importer.
pub const FORMAT: ImportFormat = ImportFormat { word: "sysbench", read };

/// Reads files and folders.
///
/// # Errors
///
/// A file is not output of sysbench or ends before its statistics; a folder has no output.
fn read(paths: &[Named], options: &ImportOptions) -> Result<Published> {
    let mut published = Published { benchmark: "sysbench", ..Published::default() };
    let mut runs = Vec::new();
    for named in paths {
        if named.path.is_dir() {
            take_folder(named, &mut runs, &mut published)?
        } else {
            take_text(Text::read(&named.path)?, named, &mut runs)?
        }
    }
    leave_copies(&mut runs, &mut published)?;
    name_steps(&mut runs);
    name_clients(&mut runs, &mut published);
    let mut repeats: BTreeMap<(String, String), u32> = BTreeMap::new();
    let threads: BTreeSet<u32> = runs.iter().filter_map(|run| run.output.clients).collect();
    for run in &runs {
        let step = run.step.clone().unwrap_or_default();
        let block = repeats.entry((run.label.clone(), step.clone())).or_default();
        *block += 1;
        put(run, &step, *block, threads.len() <= 1, &mut published);
    }
    let cpus = options.cpus.or_else(|| runs.iter().find_map(|run| run.output.cpus));
    published.host = published::host(cpus, None, None);
    Ok(published)
}

fn take_folder(
    named: &Named,
    runs: &mut Vec<SysbenchOutput>,
    published: &mut Published,
) -> Result<()> {
    let (mut left, before) = (Leftovers::default(), runs.len());
    for name in text::names(&named.path)? {
        left.take(&named.path, &name, |text| {
            if is_output(&text) { take_text(text, named, runs).map(|()| true) } else { Ok(false) }
        })?;
    }
    if runs.len() == before {
        return Err(ImportError::foreign(&named.path, "it holds no sysbench output"));
    }
    published.notices.extend(left.notice(&named.path, "no sysbench output"));
    Ok(())
}

fn take_text(text: Text, named: &Named, runs: &mut Vec<SysbenchOutput>) -> Result<()> {
    let path = text.path();
    if !is_output(&text) {
        let why = "it is not output of sysbench 1.0 or 1.1 (`sysbench 1.…`, `SQL statistics:`)";
        return Err(ImportError::foreign(path, why));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let of_name = file_name(&name);
    let folder = path.parent().and_then(Path::file_name);
    let folder = folder.map(|folder| folder.to_string_lossy().into_owned());
    for output in parse(&text)? {
        let label = named.label.clone().unwrap_or_else(|| match (&of_name, &folder) {
            // The folder of a target's files has its name.
            (Some(_), Some(folder)) => folder.clone(),
            _ => stem(path),
        });
        let of_file = of_name.as_ref().map(|name| name.step.clone());
        let said = named.step.clone().or(of_file);
        let step = said.or_else(|| output.script().map(str::to_owned));
        let said = named.label.is_some();
        runs.push(SysbenchOutput { text: text.clone(), label, said, step, output });
    }
    Ok(())
}

fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let endings = [".txt", ".log", ".out"];
    let stem = endings.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    stem.to_owned()
}

/// Removes copies: a run that occurs twice, as a copy, a link or under another name, is one
/// measurement.
///
/// # Errors
///
/// The user gave one measurement two targets or two steps.
fn leave_copies(runs: &mut Vec<SysbenchOutput>, published: &mut Published) -> Result<()> {
    let mut taken: BTreeMap<[u8; 32], usize> = BTreeMap::new();
    let mut kept: Vec<SysbenchOutput> = Vec::new();
    for run in runs.drain(..) {
        let digest = run.output.digest();
        let Some(first) = taken.get(&digest).map(|place| &kept[*place]) else {
            taken.insert(digest, kept.len());
            kept.push(run);
            continue;
        };
        let (path, place) = (run.text.name(), first.output.line);
        let other = first.text.name();
        if run.said && first.said && (&run.label, &run.step) != (&first.label, &first.step) {
            let of = |run: &SysbenchOutput| match &run.step {
                Some(step) => format!("{}/{step}", run.label),
                None => run.label.clone(),
            };
            return Err(ImportError::Words(format!(
                "`{path}` as {} and `{other}`, line {place}, as {} hold the same run, but a \
                 measurement belongs to one target; leave one out",
                of(&run),
                of(first)
            )));
        }
        let what = format!("the same run as in {other}, line {place}: imported once");
        let notice = Notice::at(NoticeKind::Left, run.text.path(), run.output.line, what);
        published.notices.push(notice);
    }
    *runs = kept;
    Ok(())
}

/// Runs of one target with different numbers of clients are different steps: their names end with
/// `.dopN`. Notes targets that differ in it.
fn name_clients(runs: &mut [SysbenchOutput], published: &mut Published) {
    let mut clients: BTreeMap<String, BTreeMap<String, BTreeSet<u32>>> = BTreeMap::new();
    for run in runs.iter() {
        let labels = clients.entry(run.step.clone().unwrap_or_default()).or_default();
        labels.entry(run.label.clone()).or_default().extend(run.output.clients);
    }
    let several = |step: &str| clients[step].values().any(|clients| clients.len() > 1);
    for run in runs.iter_mut() {
        let step = run.step.clone().unwrap_or_default();
        if let (Some(threads), true) = (run.output.clients, several(&step)) {
            run.step = Some(format!("{step}.dop{threads}"));
        }
    }
    for (step, labels) in &clients {
        let numbers: BTreeSet<u32> = labels.values().flatten().copied().collect();
        let what = match (numbers.len(), several(step)) {
            (..2, _) => continue,
            (_, true) => "its steps have names with .dopN",
            (_, false) => "its targets differ in that",
        };
        let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        let text = format!("was run with {} threads: {what}", numbers.join(", "));
        let file = step.clone();
        published.note(file, text);
    }
}

/// Names runs without a step: `sysbench` if each target has one file, else the file's name.
fn name_steps(runs: &mut [SysbenchOutput]) {
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for run in runs.iter().filter(|run| run.step.is_none()) {
        let files = files.entry(run.label.clone()).or_default();
        let stem = stem(run.text.path());
        if !files.contains(&stem) {
            files.push(stem);
        }
    }
    let single = files.values().all(|files| files.len() == 1);
    for run in runs.iter_mut() {
        run.step.get_or_insert_with(|| {
            if single { "sysbench".to_owned() } else { stem(run.text.path()) }
        });
    }
}

fn put(
    run: &SysbenchOutput,
    step: &str,
    block: u32,
    same_clients: bool,
    published: &mut Published,
) {
    let output = &run.output;
    let tag = tag_of(run);
    let wrote = output.statements.is_some_and(|statements| statements.writes > 0);
    let group = match group(step) {
        Group::Range if wrote => Group::Write,
        group => group,
    };
    let record = published.run(&run.label, block, &tag).step(
        FORMAT.word,
        step,
        StepKind { group, rate: RateUnit::Queries },
    );
    record.parameters = tables::parameters(step);
    add_file(record, &run.text.name());
    fill_record(record, output);
    let rate = output.qps.as_deref().and_then(number).filter(|rate| *rate > 0.0);
    // Tests without SQL only have events.
    let rate = rate.or(output.eps).or_else(|| {
        let events = output.events? as f64;
        output.seconds.filter(|seconds| *seconds > 0.0).map(|seconds| events / seconds)
    });
    if let Some(rate) = rate {
        published::put(record, Metric::Rate, rate);
    }
    let target = published.run(&run.label, block, &tag);
    fill_workload(&mut target.record.workload, output, same_clients);
    if let Some(line) = command_line(step, output) {
        target.log("commands.txt", &line);
    }
    for (kind, what) in remarks(output) {
        published.notices.push(Notice::at(kind, run.text.path(), output.line, what));
    }
    if counts_rows(step) {
        let text = "a scan counts as one query here; published tables count its rows";
        published.note(run.text.path(), text);
    }
}

/// The product, from the label's tag or the driver in the command line.
fn tag_of(run: &SysbenchOutput) -> Tag {
    let tag = published::decode_tag(&run.label);
    if tag.dbms != Dbms::Other {
        return tag;
    }
    let driver = run.output.option("db-driver");
    let dbms = match driver {
        Some("pgsql") => Some(Dbms::Postgres),
        Some("mysql") => Some(Dbms::Mysql),
        _ => None,
    };
    // `mariadb` uses MySQL's driver.
    let label = run.label.to_lowercase();
    let named = Dbms::ALL.into_iter().find(|dbms| label.starts_with(dbms.name()));
    untagged(&run.label, named.or(dbms).unwrap_or(Dbms::Other))
}

// Makes the record of a step from sysbench output.

/// Sets counts, errors and latencies. Percentiles are kept as printed; a printed histogram becomes
/// one of rqps with each event at the value of its line.
pub(crate) fn fill_record(step: &mut StepRecord, output: &Output) {
    let outcome = &mut step.outcome;
    // After a checkpoint, counts cover the time since then.
    let before = output.checkpoint.unwrap_or(0.0);
    outcome.seconds = (output.seconds.unwrap_or(0.0) - before).max(0.0);
    outcome.events = output.events.or(output.transactions).unwrap_or(0);
    if let Some(statements) = output.statements {
        outcome.statements = statements.total;
        outcome.reads = statements.reads;
        outcome.writes = statements.writes;
        outcome.others = statements.others;
    }
    let errors = [("ignored errors", output.ignored_errors), ("reconnects", output.reconnects)];
    for (name, count) in errors {
        if let Some(count) = count.filter(|count| *count > 0) {
            outcome.errors.insert(name.to_owned(), count);
        }
    }
    let percentile = output.percentile;
    let percentile = percentile.and_then(|(which, value)| Some((metric_of(which)?, value)));
    let max = output.latency_max.map(|value| (Metric::Max, value));
    for (metric, value) in percentile.into_iter().chain(max) {
        outcome.extra.entry(metric).or_insert(value);
    }
    if let Some(histogram) = histogram(&output.histogram) {
        outcome.latency = histogram;
    }
    // Intermediate reports further apart than a second are not used as seconds.
    if each_second(&output.intervals) {
        step.per_second = output.intervals.iter().map(|(_, rate)| *rate).collect();
    }
}

/// Remarks on the output: values that no record holds (another percentile, reports further apart
/// than a second), and facts about the numbers.
pub(crate) fn remarks(output: &Output) -> Vec<(NoticeKind, String)> {
    let mut remarks = Vec::new();
    if let Some((which, value)) = output.percentile
        && metric_of(which).is_none()
        && output.histogram.is_empty()
    {
        let text = format!("the {which}th percentile, {value} ms: reports have 50, 95 and 99");
        remarks.push((NoticeKind::Left, text));
    }
    if !each_second(&output.intervals) {
        let text = format!("{} reports that are not each second's", output.intervals.len());
        remarks.push((NoticeKind::Left, text));
    }
    if let Some(unfinished) = output.unfinished {
        let text = format!("sysbench forced the run to end: {unfinished} unfinished transactions");
        remarks.push((NoticeKind::Note, text));
    }
    if let Some(checkpoint) = output.checkpoint {
        let text = format!(
            "the run has intermediate statistics: imported the last ones, which cover the time \
             since {checkpoint} s"
        );
        remarks.push((NoticeKind::Note, text));
    }
    remarks
}

fn metric_of(percentile: u32) -> Option<Metric> {
    match percentile {
        50 => Some(Metric::P50),
        95 => Some(Metric::P95),
        99 => Some(Metric::P99),
        _ => None,
    }
}

fn histogram(lines: &[(f64, u64)]) -> Option<String> {
    if lines.is_empty() {
        return None;
    }
    let mut histogram = Histogram::<u64>::new(3).ok()?;
    for (milliseconds, count) in lines {
        histogram.record_n((milliseconds * 1e6).round().max(1.0) as u64, *count).ok()?;
    }
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(&histogram, &mut bytes).ok()?;
    Some(base64::engine::general_purpose::STANDARD.encode(bytes))
}

/// The command line for the logs, without passwords.
pub(crate) fn command_line(step: &str, output: &Output) -> Option<String> {
    let words = output.command.as_ref()?.split_whitespace();
    let words: Vec<&str> = words.filter(|word| !word.contains("password")).collect();
    Some(format!("{step}\t{}\n", words.join(" ")))
}

/// Copies the scale from the command line. Copies clients only if all steps have the same.
pub(crate) fn fill_workload(workload: &mut Workload, output: &Output, same_clients: bool) {
    let option = |name: &str| output.option(name).and_then(|value| value.parse::<u64>().ok());
    if let Some(tables) = option("tables") {
        workload.tables = u32::try_from(tables).unwrap_or(0);
    }
    if let Some(rows) = option("table-size") {
        workload.rows = rows;
    }
    if let Some(warmup) = output.warmup_seconds {
        workload.warmup_seconds = warmup;
    }
    if same_clients && let Some(clients) = output.clients {
        workload.clients = clients;
    }
    if let Some(seconds) = option("time") {
        let writes = output.statements.is_some_and(|statements| statements.writes > 0);
        let field = if writes { &mut workload.write_seconds } else { &mut workload.read_seconds };
        *field = field.max(seconds as f64);
    }
}

// Reads the output of sysbench 1.0 and 1.1: options, intermediate reports, statistics, histogram.

/// One run of sysbench; `None` or empty for values that the output lacks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// Its first line number in the file.
    pub line: usize,
    /// The command line, if a script wrote it before the output.
    pub command: Option<String>,
    /// CPUs of the host, if a script wrote `N CPUs`.
    pub cpus: Option<u32>,
    /// Version of sysbench.
    pub version: Option<String>,
    /// Client threads.
    pub clients: Option<u32>,
    /// Seconds of warm-up.
    pub warmup_seconds: Option<f64>,
    /// Statements by kind.
    pub statements: Option<Statements>,
    /// Transactions, that is events.
    pub transactions: Option<u64>,
    /// Queries per second, as printed.
    pub qps: Option<String>,
    /// Events per second, as printed; for tests without SQL.
    pub eps: Option<f64>,
    /// Errors after which the event was repeated.
    pub ignored_errors: Option<u64>,
    /// Connections made again.
    pub reconnects: Option<u64>,
    /// Length of the window without warm-up, seconds.
    pub seconds: Option<f64>,
    /// Events.
    pub events: Option<u64>,
    /// Mean latency of an event, ms.
    pub latency_avg: Option<f64>,
    /// Smallest latency of an event, ms.
    pub latency_min: Option<f64>,
    /// Largest latency of an event, ms.
    pub latency_max: Option<f64>,
    /// Sum of the latencies of all events, ms.
    pub latency_sum: Option<f64>,
    /// The requested percentile (per cent), and its value, ms.
    pub percentile: Option<(u32, f64)>,
    /// Intermediate reports: seconds since the start, queries (or events) per second.
    pub intervals: Vec<(f64, f64)>,
    /// Bins of `--histogram`: latency in ms, number of events.
    pub histogram: Vec<(f64, u64)>,
    /// Transactions in flight that `--forced-shutdown` did not wait for.
    pub unfinished: Option<u64>,
    /// Seconds from the start to the last report of `--report-checkpoints`; the statistics cover
    /// the time since then.
    pub checkpoint: Option<f64>,
}

/// Numbers of statements by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statements {
    /// Statements with a result set.
    pub reads: u64,
    /// Statements that changed rows.
    pub writes: u64,
    /// Other statements: BEGIN, COMMIT and the rest.
    pub others: u64,
    /// All statements.
    pub total: u64,
}

impl Output {
    /// An option in the command line: `option("table-size")`.
    pub fn option(&self, name: &str) -> Option<&str> {
        let words = self.command.as_deref()?.split_whitespace();
        words.rev().find_map(|word| word.strip_prefix("--")?.strip_prefix(name)?.strip_prefix('='))
    }

    /// Name of the script in the command line, without folders and extension: `oltp_read_only`.
    pub fn script(&self) -> Option<&str> {
        let words = self.command.as_deref()?.split_whitespace();
        let words = words.filter(|word| !word.starts_with('-') && !word.contains('='));
        let path = words.into_iter().find(|word| word.ends_with(".lua")).or_else(|| {
            let known = [
                "oltp_", "select_random_", "bulk_insert", "fileio", "cpu", "memory", "threads",
                "mutex",
            ];
            let mut words = self.command.as_deref()?.split_whitespace();
            words.find(|word| known.iter().any(|name| word.starts_with(name)))
        })?;
        let name = path.rsplit('/').next().unwrap_or(path);
        Some(name.strip_suffix(".lua").unwrap_or(name)).filter(|name| !name.is_empty())
    }

    /// A digest of the results, independent of the file's name and of lines that a script wrote
    /// above. Times and counts of two runs never agree in all digits, so outputs with one digest
    /// are copies.
    pub fn digest(&self) -> [u8; 32] {
        let measured = Output { line: 0, command: None, cpus: None, ..self.clone() };
        Sha256::digest(format!("{measured:?}").as_bytes()).into()
    }

    /// True if the run has the statistics of a complete one.
    fn is_complete(&self) -> bool {
        self.seconds.is_some() && (self.qps.is_some() || self.events.is_some())
    }

    /// True if the latencies begin and lack their last line, the sum.
    fn is_cut(&self) -> bool {
        self.latency_min.is_some() && self.latency_sum.is_none()
    }
}

/// True if a line begins the output of a run.
fn begins(line: &str) -> bool {
    line.trim_start().starts_with("sysbench 1.") && line.contains('(')
}

/// True if the text looks like the output of sysbench.
pub fn is_output(text: &Text) -> bool {
    text.lines().any(|(_, line)| begins(line) || line.trim() == "SQL statistics:")
}

/// Reads all runs of a file in order.
///
/// # Errors
///
/// An invalid number, or a run that ends before its statistics; both with the line.
pub fn parse(text: &Text) -> Result<Vec<Output>> {
    let mut outputs: Vec<Output> = Vec::new();
    let mut current = Output { line: 1, ..Output::default() };
    let mut section = Section::Head;
    for (line, row) in text.lines() {
        let again = section != Section::Head && begins(row);
        if again || (current.is_complete() && is_command(row)) {
            if !current.is_complete() || current.is_cut() {
                return Err(
                    text.malformed(line, "a run begins before the previous one has statistics")
                );
            }
            outputs.push(std::mem::take(&mut current));
            current.line = line;
            section = Section::Head;
        }
        take_line(text, line, row, &mut section, &mut current)?;
    }
    if !current.is_complete() {
        let why = match fatal(text, current.line) {
            Some((line, said)) => {
                return Err(text.malformed(line, format!("the run was interrupted: {said}")));
            }
            None => "the statistics of sysbench: the run was interrupted",
        };
        return Err(text.cut_short(why));
    }
    if current.is_cut() {
        return Err(text.cut_short("the sum of the latencies"));
    }
    outputs.push(current);
    Ok(outputs)
}

/// The message with which sysbench aborted a run that begins at this line.
fn fatal(text: &Text, begin: usize) -> Option<(usize, &str)> {
    let mut lines = text.lines().filter(|(line, _)| *line >= begin);
    let (line, said) = lines.find(|(_, row)| row.trim_start().starts_with("FATAL:"))?;
    Some((line, said.trim()))
}

/// True for the command line that scripts write before the output.
fn is_command(line: &str) -> bool {
    line.contains("sysbench") && line.contains(" --") && line.contains(" run")
}

#[derive(Clone, Copy, PartialEq)]
enum Section {
    Head,
    Running,
    Histogram,
    Statements,
    Latency,
    Fairness,
}

fn take_line(
    text: &Text,
    line: usize,
    row: &str,
    section: &mut Section,
    output: &mut Output,
) -> Result<()> {
    if *section == Section::Head && output.command.is_none() && is_command(row) {
        output.command = Some(row.trim().to_owned());
        return Ok(());
    }
    if begins(row) {
        output.version = row.split_whitespace().nth(1).map(str::to_owned);
        *section = Section::Running;
        return Ok(());
    }
    let trimmed = row.trim();
    match trimmed {
        "SQL statistics:" | "General statistics:" | "Throughput:" | "CPU speed:" => {
            *section = Section::Statements;
            return Ok(());
        }
        "Latency (ms):" => *section = Section::Latency,
        "Threads fairness:" => *section = Section::Fairness,
        _ if trimmed.starts_with("Latency histogram") => *section = Section::Histogram,
        _ if trimmed.starts_with("[ ") && trimmed.ends_with("] Checkpoint report:") => {
            output.checkpoint = Some(time(text, line, trimmed)?);
        }
        _ if trimmed.starts_with("[ ") => {
            output.intervals.extend(interval(text, line, trimmed)?);
            return Ok(());
        }
        _ => {}
    }
    match *section {
        Section::Head | Section::Running => head(text, line, trimmed, output),
        Section::Histogram => histogram_lines(text, line, trimmed, output),
        Section::Statements | Section::Latency => statistic(text, line, trimmed, output),
        Section::Fairness => Ok(()),
    }
}

/// Reads an option, or a line that a script prints.
fn head(text: &Text, line: usize, row: &str, output: &mut Output) -> Result<()> {
    let bad = |what: &str| text.bad_word(line, what, format!("`{what}` is not a number"));
    if let Some(clients) = row.strip_prefix("Number of threads:") {
        let clients = clients.trim();
        output.clients = Some(clients.parse().map_err(|_| bad(clients))?);
    } else if let Some(warmup) = row.strip_prefix("Warmup time:") {
        let warmup = warmup.trim().trim_end_matches('s');
        output.warmup_seconds = Some(number(warmup).ok_or_else(|| bad(warmup))?);
    } else if let Some(cpus) = row.strip_suffix(" CPUs") {
        output.cpus = cpus.trim().parse().ok();
    }
    Ok(())
}

/// Reads `[ 10s ] thds: 8 tps: 123.40 qps: 2468.00 (r/w/o: …`, or `eps:` for a test without SQL.
/// Reports of a rate's queue and of checkpoints have neither.
fn interval(text: &Text, line: usize, row: &str) -> Result<Option<(f64, f64)>> {
    let rate = ["qps:", "eps:"].iter().find_map(|name| row.split_once(name).map(|(_, rest)| rest));
    let Some(rate) = rate else { return Ok(None) };
    let rate = rate.split_whitespace().next().unwrap_or("");
    match number(rate) {
        Some(rate) => Ok(Some((time(text, line, row)?, rate))),
        None => {
            let why = format!("`{rate}` is not a rate of an intermediate report");
            Err(text.bad_word(line, rate, why))
        }
    }
}

/// Reads 10 from `[ 10s ] …`.
fn time(text: &Text, line: usize, row: &str) -> Result<f64> {
    let time = row.trim_start_matches('[').split(']').next().unwrap_or("");
    let time = time.trim().trim_end_matches('s');
    number(time)
        .ok_or_else(|| text.bad_word(line, time, format!("`{time}` is not a time of a report")))
}

/// Reads `     0.123 |****          42`.
fn histogram_lines(text: &Text, line: usize, row: &str, output: &mut Output) -> Result<()> {
    let Some((value, rest)) = row.split_once('|') else { return Ok(()) };
    let events = rest.split_whitespace().last().and_then(|word| count(word.trim_matches('*')));
    match (number(value), events) {
        (Some(value), Some(events)) => output.histogram.push((value, events)),
        _ => return Err(text.malformed(line, "a histogram line without value and count")),
    }
    Ok(())
}

/// Reads `name:   value (… per sec.)`.
fn statistic(text: &Text, line: usize, row: &str, output: &mut Output) -> Result<()> {
    let Some((name, rest)) = row.split_once(':') else { return Ok(()) };
    let value = rest.split_whitespace().next().unwrap_or("");
    let whole = || {
        count(value).ok_or_else(|| {
            text.bad_word(line, value, format!("`{value}` is not a count of {name}"))
        })
    };
    let real = || {
        number(value.trim_end_matches('s'))
            .ok_or_else(|| text.bad_word(line, value, format!("`{value}` is an invalid {name}")))
    };
    let per_second = || {
        let rate = rest.split_once('(').and_then(|(_, rest)| rest.split_whitespace().next());
        let rate = rate.filter(|rate| number(rate).is_some());
        rate.map(str::to_owned)
            .ok_or_else(|| text.malformed(line, format!("no rate per second of {name}")))
    };
    match name.trim() {
        // Tests of files: `read: IOPS=2089.10 32.64 MiB/s`.
        _ if value.starts_with("IOPS=") => {}
        name @ ("read" | "write" | "other" | "total") => {
            let count = whole()?;
            let statements = output.statements.get_or_insert_default();
            *match name {
                "read" => &mut statements.reads,
                "write" => &mut statements.writes,
                "other" => &mut statements.others,
                _ => &mut statements.total,
            } = count;
        }
        "transactions" => output.transactions = Some(whole()?),
        "queries" => {
            whole()?;
            output.qps = Some(per_second()?);
        }
        "ignored errors" => output.ignored_errors = Some(whole()?),
        "reconnects" => output.reconnects = Some(whole()?),
        "events/s (eps)" | "events per second" => output.eps = Some(real()?),
        "time elapsed" | "total time" => output.seconds = Some(real()?),
        "total number of events" => output.events = Some(whole()?),
        "min" => output.latency_min = Some(real()?),
        "avg" => output.latency_avg = Some(real()?),
        "max" => output.latency_max = Some(real()?),
        "sum" => output.latency_sum = Some(real()?),
        name if name.starts_with("Number of unfinished transactions") => {
            output.unfinished = Some(whole()?);
        }
        // `percentile stats: disabled` has no value.
        name if name.ends_with("th percentile") => {
            let which = name.trim_end_matches("th percentile").trim();
            let which = count(which).and_then(|which| u32::try_from(which).ok());
            let which = which.ok_or_else(|| text.malformed(line, "which percentile?"))?;
            output.percentile = Some((which, real()?));
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod output_tests {
    use std::path::Path;

    use super::*;

    /// A run of version 1.1 with all optional output.
    const NEW: &str = "\
/opt/sysbench --table-size=1000 --tables=2 --threads=4 --time=10 /s/oltp_read_only.lua run
8 CPUs
sysbench 1.1.0-3ceba0b (using bundled LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: 4
Warmup time: 5s

Threads started!

[ 1s ] thds: 4 tps: 100.00 qps: 1600.00 (r/w/o: 1400.00/0.00/200.00) lat (ms,95%): 9.22
[ 1s ] queue length: 0, concurrency: 1
[ 2s ] thds: 4 tps: 101.00 qps: 1616.00 (r/w/o: 1414.00/0.00/202.00) lat (ms,95%): 9.22
Latency histogram (values are in milliseconds)
       value  ------------- distribution ------------- count
       1.250 |****************************************  30
       2.500 |*****                                      4

SQL statistics:
    queries performed:
        read:                            14000
        write:                           20
        other:                           2000
        total:                           16020
    transactions:                        1000   (100.00 per sec.)
    queries:                             16020  (1602.00 per sec.)
    ignored errors:                      3      (0.30 per sec.)
    reconnects:                          0      (0.00 per sec.)

Throughput:
    events/s (eps):                      100.0000
    time elapsed:                        10.0007s
    total number of events:              1000

Latency (ms):
         min:                                    1.29
         avg:                                    1.60
         max:                                  111.26
         95th percentile:                        1.96
         sum:                                 1600.00

Threads fairness:
    events (avg/stddev):           250.0000/3109.71
    execution time (avg/stddev):   9.5896/0.01

";

    /// The end of version 1.0's output, without percentile.
    const OLD: &str = "\
sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: 1
Initializing random number generator from current time

SQL statistics:
    queries performed:
        read:                            10
        write:                           0
        other:                           0
        total:                           10
    transactions:                        10     (1.00 per sec.)
    queries:                             10     (1.00 per sec.)
    ignored errors:                      0      (0.00 per sec.)
    reconnects:                          0      (0.00 per sec.)

General statistics:
    total time:                          10.0001s
    total number of events:              10

Latency (ms):
         min:                                    1.29
         avg:                                    1.60
         max:                                    3.26
         percentile stats:               disabled
         sum:                                   16.00
";

    fn of(text: &str) -> Result<Vec<Output>> {
        parse(&Text::of(Path::new("sb.o"), text))
    }

    #[test]
    fn the_new_version_is_read_whole() {
        let outputs = of(NEW).unwrap();
        let [output] = outputs.as_slice() else { panic!("{outputs:?}") };
        assert_eq!(output.version.as_deref(), Some("1.1.0-3ceba0b"));
        assert_eq!((output.cpus, output.clients), (Some(8), Some(4)));
        assert_eq!(output.script(), Some("oltp_read_only"));
        assert_eq!(output.option("table-size"), Some("1000"));
        assert_eq!(output.option("table"), None);
        let statements = Statements { reads: 14000, writes: 20, others: 2000, total: 16020 };
        assert_eq!(output.statements, Some(statements));
        assert_eq!((output.transactions, output.events), (Some(1000), Some(1000)));
        assert_eq!((output.qps.as_deref(), output.seconds), (Some("1602.00"), Some(10.0007)));
        assert_eq!((output.ignored_errors, output.reconnects), (Some(3), Some(0)));
        assert_eq!((output.latency_max, output.percentile), (Some(111.26), Some((95, 1.96))));
        assert_eq!(output.intervals, [(1.0, 1600.0), (2.0, 1616.0)]);
        assert_eq!(output.histogram, [(1.25, 30), (2.5, 4)]);
    }

    #[test]
    fn the_old_version_and_several_runs_in_a_file() {
        let outputs = of(&format!("{OLD}\n{NEW}")).unwrap();
        assert_eq!(outputs.len(), 2);
        assert_eq!((outputs[0].seconds, outputs[0].percentile), (Some(10.0001), None));
        assert_eq!(outputs[0].qps.as_deref(), Some("1.00"));
        assert_eq!(outputs[1].script(), Some("oltp_read_only"));
        assert_eq!(of(&OLD.replace('\n', "\r\n")).unwrap(), of(OLD).unwrap());
    }

    /// Version 1.1's output for files: two parts are called Throughput.
    const FILES: &str = "\
sysbench 1.1.0-de18a036cc (using bundled LuaJIT 2.1.0-beta3)

Running the test with following options:
Number of threads: 1

[ 1s ] reads: 32.64 MiB/s writes: 21.76 MiB/s fsyncs: 4467.33/s latency (ms,95%): 0.500

Throughput:
         read:  IOPS=2089.10 32.64 MiB/s (34.23 MB/s)
         write: IOPS=1392.73 21.76 MiB/s (22.82 MB/s)
         fsync: IOPS=4467.33

Latency (ms):
         min:                                    0.00
         avg:                                    0.12
         max:                                    3.26
         95th percentile:                        0.50
         sum:                                 9876.54

Throughput:
    events/s (eps):                      7949.1600
    time elapsed:                        10.0220s
    total number of events:              79618
";

    #[test]
    fn tests_of_files_have_events() {
        let outputs = of(FILES).unwrap();
        assert_eq!((outputs[0].eps, outputs[0].events), (Some(7949.16), Some(79618)));
        assert_eq!((outputs[0].statements, outputs[0].percentile), (None, Some((95, 0.5))));
        let old =
            FILES.replace("Throughput:\n         read:  IOPS=", "File operations:\n reads/s: ");
        let old = old.replace("Latency", "Throughput:\n    read, MiB/s:   32.64\n\nLatency");
        assert_eq!(of(&old).unwrap()[0].events, Some(79618));
    }

    #[test]
    fn what_was_forced_or_reported_on_the_way_is_known() {
        let forced = OLD.replace(
            "General statistics:",
            "Number of unfinished transactions on forced shutdown: 3\n\nGeneral statistics:",
        );
        assert_eq!(of(&forced).unwrap()[0].unfinished, Some(3));
        let report = NEW.split_once("SQL statistics:").unwrap().1;
        let checkpoint = format!("[ 4s ] Checkpoint report:\nSQL statistics:{report}");
        let both = NEW.replace("Latency histogram", &format!("{checkpoint}Latency histogram"));
        let outputs = of(&both).unwrap();
        assert_eq!((outputs.len(), outputs[0].checkpoint), (1, Some(4.0)));
    }

    #[test]
    fn faults_name_the_line() {
        let check = |text: &str, expected: &str| {
            let fault = of(text).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check(&OLD[..200], "before the statistics of sysbench");
        check(
            &OLD.replace("10.0001s", "soon"),
            "line 19, column 42: `soon` is an invalid total time",
        );
        check(&OLD.replace("(1.00 per sec.)", ""), "no rate per second of queries");
        let cut = OLD.split("         max:").next().unwrap();
        check(cut, "the file ends here, before the sum of the latencies");
        check(&OLD.replace("1.60", "-nan"), "`-nan` is an invalid avg");
        check(&OLD.replace("1.60", "-1.60"), "`-1.60` is an invalid avg");
        let gave_up = format!("{}\nFATAL: `thread_run' function failed\n", &OLD[..200]);
        check(&gave_up, "the run was interrupted: FATAL: `thread_run' function failed");
        let twice = format!("{}\n{OLD}", &OLD[..300]);
        check(&twice, "a run begins before the previous one has statistics");
        check("", "line 1: the file ends here");
    }
}
