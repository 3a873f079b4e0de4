//! Importer `sysbench`: output of sysbench 1.0 and 1.1, with one or several runs per file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use base64::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};

use super::output::{self, Output};
use super::tables::{self, counts_rows, file_name, group};
use crate::cells::{each_second, number};
use crate::format::{ImportError, ImportFormat, ImportOptions, Named, Notice, NoticeKind};
use crate::published::{self, Published, StepKind, add_file, untagged};
use crate::tag::{self, Tag};
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
fn read(paths: &[Named], options: &ImportOptions) -> Result<Published, ImportError> {
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
) -> Result<(), ImportError> {
    let (mut left, before) = (Leftovers::default(), runs.len());
    for name in text::names(&named.path)? {
        left.take(&named.path, &name, |text| {
            if output::is_output(&text) {
                take_text(text, named, runs).map(|()| true)
            } else {
                Ok(false)
            }
        })?;
    }
    if runs.len() == before {
        return Err(ImportError::foreign(&named.path, "it holds no sysbench output"));
    }
    published.notices.extend(left.notice(&named.path, "no sysbench output"));
    Ok(())
}

fn take_text(text: Text, named: &Named, runs: &mut Vec<SysbenchOutput>) -> Result<(), ImportError> {
    let path = text.path();
    if !output::is_output(&text) {
        let why = "it is not output of sysbench 1.0 or 1.1 (`sysbench 1.…`, `SQL statistics:`)";
        return Err(ImportError::foreign(path, why));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let of_name = file_name(&name);
    let folder = path.parent().and_then(Path::file_name);
    let folder = folder.map(|folder| folder.to_string_lossy().into_owned());
    for output in output::parse(&text)? {
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
fn leave_copies(
    runs: &mut Vec<SysbenchOutput>,
    published: &mut Published,
) -> Result<(), ImportError> {
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
    let tag = tag::decode_tag(&run.label);
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
