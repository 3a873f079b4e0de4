//! Makes the record of a step from its raw files.

use std::collections::BTreeMap;

use super::raw::{
    BUCKETS, ClientOutput, KINDS, RawInsertStep, ResponseTimes, check_intervals, check_times,
};
use crate::cells::{Iostat, decimals_agree, number};
use crate::format::{ImportOptions, Notice, NoticeKind};
use crate::published::{Published, add_file};
use crate::text::Text;
use rqps_model::benchmark::RateUnit;
use rqps_model::metric::Metric;
use rqps_model::run::{Role, Status, StepRecord};

/// Kinds of workers, in the order of [`KINDS`].
const ROLES: [&str; 3] = ["inserts", "deletes", "queries"];
/// Longest interval that counts as a second, seconds.
const SECOND_MOST: f64 = 1.5;
/// Longest run of a client, seconds.
const SERIES_MOST: usize = 1_000_000;

/// Facts for reading raw files that are not in them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'a> {
    pub options: &'a ImportOptions,
    pub cpus: Option<u32>,
    /// True to correct the published error of vmstat's means, if all runs allow it.
    pub corrected: bool,
}

/// Fills a record and checks the files against each other.
pub(crate) fn fill(
    record: &mut StepRecord,
    raw: &RawInsertStep,
    reading: Reading<'_>,
    published: &mut Published,
) {
    for text in texts(raw) {
        add_file(record, &text.name());
    }
    if let Some(why) = fault(raw) {
        let what = format!("{} of {}: {why}", raw.step, raw.target);
        published.left(&raw.folder, what);
        record.status = Status::Failed(why);
        return;
    }
    let outputs: Vec<&ClientOutput> = raw.outputs.values().map(|(_, output)| output).collect();
    let mut filler = Filler { record, raw, reading, published, ips: None, rate: None };
    filler.rates(&outputs);
    filler.response_times(&outputs);
    filler.series(&outputs);
    filler.processor();
    filler.disk();
    filler.rest(&outputs);
    check_intervals(raw, published);
    check_times(raw, published);
}

fn texts(raw: &RawInsertStep) -> Vec<&Text> {
    let mut texts: Vec<&Text> = raw.outputs.values().map(|(text, _)| text).collect();
    texts.extend(raw.summary.iter().map(|(text, _)| text));
    texts.extend(raw.vm.iter().map(|(text, _)| text));
    texts.extend(raw.io.iter().map(|(text, _)| text));
    texts.extend(raw.times.iter().map(|(_, text, _)| text));
    texts
}

/// The reason why a step cannot be used; `None` if it can.
fn fault(raw: &RawInsertStep) -> Option<String> {
    if raw.outputs.is_empty() {
        return None;
    }
    if let Some(missing) = (1..=raw.clients).find(|number| !raw.outputs.contains_key(number)) {
        return Some(format!("the output of client {missing} of {} is missing", raw.clients));
    }
    raw.outputs.iter().find_map(|(number, (text, output))| {
        if !output.is_done {
            let end = "ends without Done";
            let died = "died, or its output is truncated";
            return Some(format!("client {number} {died}: {} {end}", text.name()));
        }
        output.rows.is_empty().then(|| format!("client {number} has no intervals"))
    })
}

/// The final count of all clients of one kind; `None` if no client counts it.
fn total(outputs: &[&ClientOutput], kind: usize) -> Option<u64> {
    let last = outputs.iter().map(|output| output.rows.last()?.totals[kind]);
    last.sum::<Option<u64>>().filter(|_| !outputs.is_empty())
}

struct Filler<'a> {
    record: &'a mut StepRecord,
    raw: &'a RawInsertStep,
    reading: Reading<'a>,
    published: &'a mut Published,
    /// Rows inserted per second.
    ips: Option<f64>,
    /// The step's rate, in its own unit per second.
    rate: Option<f64>,
}

impl Filler<'_> {
    fn is_query(&self) -> bool {
        self.record.rate == RateUnit::Queries
    }

    /// Sets a metric, unless a table gave it before.
    fn put(&mut self, metric: Metric, value: Option<f64>) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.record.outcome.extra.entry(metric).or_insert(value);
        }
    }

    /// Sets a metric from a printed number, which must agree with an earlier one from a table.
    fn put_printed(&mut self, metric: Metric, printed: &str, line: usize) {
        let (Some(value), Some((text, _))) = (number(printed), &self.raw.summary) else { return };
        let before = *self.record.outcome.extra.entry(metric).or_insert(value);
        if !decimals_agree(before, printed) {
            let (step, target) = (&self.raw.step, &self.raw.target);
            let what = format!(
                "{} of {step} of {target}: {printed} here, {before} in a table; imported the \
                 table's value",
                metric.name()
            );
            self.published.mismatch(text.path(), line, what);
        }
    }

    fn rates(&mut self, outputs: &[&ClientOutput]) {
        let longest = outputs.iter().filter_map(|output| Some(output.rows.last()?.at));
        let longest = longest.fold(0.0, f64::max);
        let raw = self.raw;
        let summary = raw.summary.as_ref().map(|(_, summary)| summary);
        let seconds = summary.map_or(longest, |summary| summary.seconds);
        self.record.outcome.seconds = seconds;
        let per_second = |kind| total(outputs, kind).map(|total| total as f64 / seconds);
        // The rate of indexed rows depends on earlier rows and the time for indexes, which only the
        // summary has.
        let counted = if raw.step == "l.x" { None } else { per_second(0) };
        self.ips = summary.map_or(counted, |summary| number(&summary.ips));
        let queries = summary.map_or(per_second(2), |summary| number(&summary.qps));
        let is_query = self.is_query();
        self.rate = if is_query { queries } else { self.ips };
        if is_query {
            let counted = summary.map(|summary| summary.queries).or(total(outputs, 2));
            self.record.outcome.statements = counted.unwrap_or(0);
            self.record.outcome.events = counted.unwrap_or(0);
        }
        if let Some(summary) = summary {
            let own = if is_query { &summary.qps } else { &summary.ips };
            self.put_printed(Metric::Rate, own, 1);
            if is_query {
                self.put_printed(Metric::InsertRate, &summary.ips, 1);
            }
        }
        self.put(Metric::Rate, self.rate);
        if is_query {
            self.put(Metric::InsertRate, self.ips);
        }
        let deleted = per_second(1).filter(|rate| *rate > 0.0);
        self.put(Metric::DeleteRate, deleted);
    }

    /// Sets the response-time classes of all clients, and the longest time.
    fn response_times(&mut self, outputs: &[&ClientOutput]) {
        let raw = self.raw;
        let of_summary = raw.summary.iter().flat_map(|(_, summary)| &summary.histograms);
        let all: Vec<&ResponseTimes> = if outputs.is_empty() {
            of_summary.collect()
        } else {
            outputs.iter().flat_map(|output| &output.histograms).collect()
        };
        for (kind, role) in ROLES.into_iter().enumerate() {
            let own: Vec<&&ResponseTimes> = all.iter().filter(|times| times.kind == kind).collect();
            let mut counts = vec![0u64; BUCKETS.len()];
            for times in &own {
                for (sum, count) in counts.iter_mut().zip(&times.counts) {
                    *sum = sum.saturating_add(*count);
                }
            }
            let operations = counts.iter().fold(0u64, |sum, count| sum.saturating_add(*count));
            let rows = total(outputs, kind).unwrap_or(0);
            if operations == 0 && rows == 0 {
                continue;
            }
            let role_record = Role {
                workers: raw.clients,
                operations,
                rows: if kind == 2 { 0 } else { rows },
                ..Role::default()
            };
            self.record.outcome.roles.insert(role.to_owned(), role_record);
            if operations == 0 {
                continue;
            }
            self.record.outcome.buckets.insert(role.to_owned(), counts);
            let longest = own.iter().map(|times| times.longest).fold(0.0, f64::max) * 1e3;
            match kind {
                0 => self.put(Metric::InsertMax, Some(longest)),
                1 => self.put(Metric::DeleteMax, Some(longest)),
                _ => {}
            }
            if kind == if self.is_query() { 2 } else { 0 } {
                self.put(Metric::Max, Some(longest));
            }
        }
    }

    /// Sets the rates and longest operations of each second.
    fn series(&mut self, outputs: &[&ClientOutput]) {
        let index = outputs.iter().filter_map(|output| output.index_seconds);
        let index = index.fold(None, |most: Option<f64>, seconds| {
            Some(most.map_or(seconds, |most| most.max(seconds)))
        });
        self.put(Metric::IndexSeconds, index);
        let raw = self.raw;
        let series = match (outputs.is_empty(), &*raw.step, index) {
            (true, _, _) => return,
            // Making indexes inserts nothing; that is not a stall.
            (_, "l.x", None) => Err("the time to make indexes is unknown".to_owned()),
            _ => series(outputs),
        };
        match series {
            Ok(series) => {
                let main = if self.is_query() { "queries" } else { "inserts" };
                self.record.per_second = series.get(main).cloned().unwrap_or_default();
                self.record.outcome.series = series;
            }
            Err(why) => {
                let what = format!("{} of {}: no seconds: {why}", raw.step, raw.target);
                self.published.left(&raw.folder, what);
            }
        }
    }

    fn processor(&mut self) {
        let raw = self.raw;
        let samples = raw.vm.as_ref().and_then(|(_, vm)| {
            let mean = if self.reading.corrected { vm.mean() } else { vm.compat_mean() };
            mean.map(|(mean, _)| (mean.us + mean.sy, mean.cs))
        });
        let summary = raw.summary.as_ref().map(|(_, summary)| summary);
        let printed =
            || summary.and_then(|summary| Some((summary.value("cpu/s")?, summary.value("cs/s")?)));
        let Some((busy, switches)) = samples.or_else(printed) else { return };
        let rate = self.rate.filter(|rate| *rate > 0.0);
        self.put(Metric::CpuBusy, Some(busy));
        self.put(Metric::ContextSwitchesPerSecond, Some(switches));
        self.put(Metric::CpuPerOp, rate.map(|rate| busy / rate));
        self.put(Metric::ContextSwitchesPerOp, rate.map(|rate| switches / rate));
        let cpus = self.reading.cpus.map(f64::from);
        self.put(Metric::HostCpuPerOp, rate.zip(cpus).map(|(rate, cpus)| busy * cpus * 1e4 / rate));
    }

    fn disk(&mut self) {
        let raw = self.raw;
        let mean = match &raw.io {
            Some((text, _)) => {
                let device = device(raw, self.reading.options.device.as_deref());
                if let Err(devices) = &device {
                    let what = format!(
                        "unknown data device; name one of {} with --device",
                        devices.join(", ")
                    );
                    self.published.left(text.path(), what);
                }
                device.ok()
            }
            None => None,
        };
        let printed = || {
            let (_, summary) = raw.summary.as_ref()?;
            Some(Iostat {
                reads: summary.value("r/s")?,
                read_kb: summary.value("rMB/s")? * 1024.0,
                writes: summary.value("w/s")?,
                write_kb: summary.value("wMB/s")? * 1024.0,
                ..Iostat::default()
            })
        };
        let of_samples = mean.is_some();
        let Some(mean) = mean.or_else(printed) else { return };
        self.put(Metric::DiskReadsPerSecond, Some(mean.reads));
        self.put(Metric::DiskReadMbPerSecond, Some(mean.read_kb / 1024.0));
        self.put(Metric::DiskWritesPerSecond, Some(mean.writes));
        self.put(Metric::DiskWriteMbPerSecond, Some(mean.write_kb / 1024.0));
        let rate = self.rate.filter(|rate| *rate > 0.0);
        let ips = self.ips.filter(|ips| *ips > 0.0);
        if of_samples {
            self.put(Metric::ReadsPerOp, rate.map(|rate| mean.reads / rate));
            self.put(Metric::ReadKbPerOp, rate.map(|rate| mean.read_kb / rate));
            self.put(Metric::WriteKbPerOp, rate.map(|rate| mean.write_kb / rate));
            self.put(Metric::WritesPerInsert, ips.map(|ips| mean.writes / ips));
            self.put(Metric::WriteKbPerInsert, ips.map(|ips| mean.write_kb / ips));
            return;
        }
        // Printed with more digits than the quotients would have.
        let Some((_, summary)) = &raw.summary else { return };
        let block = if self.is_query() { &summary.io_by_query } else { &summary.io_by_row };
        let cell = |block: &[(String, String)], place: usize| {
            block.get(place).and_then(|(_, cell)| number(cell))
        };
        self.put(Metric::ReadsPerOp, cell(block, 5));
        self.put(Metric::ReadKbPerOp, cell(block, 6));
        self.put(Metric::WriteKbPerOp, cell(block, 8));
        self.put(Metric::WritesPerInsert, cell(&summary.io_by_row, 7));
        self.put(Metric::WriteKbPerInsert, cell(&summary.io_by_row, 8));
    }

    /// Sets sizes, client CPU time and rate quantiles, and keeps unknown lines.
    fn rest(&mut self, outputs: &[&ClientOutput]) {
        let raw = self.raw;
        if let Some((text, summary)) = &raw.summary {
            self.put(Metric::DatabaseSize, summary.database_gb);
            self.put(Metric::DataSize, summary.folder_gb.map(|size| size * 1024.0));
            // Only of client 1.
            let rows = self.rate.unwrap_or(0.0) * summary.seconds;
            if raw.clients == 1 && rows > 0.0 {
                let used = summary.client_cpu.map(|[user, system]| user + system);
                self.put(Metric::ClientCpuPerOp, used.map(|used| used * 1e6 / rows));
            }
            if outputs.is_empty() || self.reading.options.compat {
                let kind = if self.is_query() { 2 } else { 0 };
                for (percent, metric) in [(50, Metric::SecondsP50), (99, Metric::SecondsP99)] {
                    let found = summary.reached.iter().find(|(of, _)| *of == percent);
                    self.put(metric, found.and_then(|(_, rates)| rates[kind]));
                }
            }
            self.keep(text, &summary.others);
        }
        for (text, output) in raw.outputs.values() {
            self.keep(text, &output.others);
            let retries = output.rows.iter().flat_map(|row| row.retries).flatten().max();
            if let Some(retries) = retries.filter(|retries| *retries > 0) {
                let what = format!("retried operations: up to {retries} in a column");
                self.published.note(text.path(), what);
            }
        }
    }

    /// Keeps lines of an unknown form and says so.
    fn keep(&mut self, text: &Text, lines: &[(usize, String)]) {
        if lines.is_empty() {
            return;
        }
        self.published.notices.push(Notice::at(
            NoticeKind::Left,
            text.path(),
            lines[0].0,
            format!("lines of unknown form: {}, kept in logs/lines.txt", lines.len()),
        ));
        let (target, step) = (self.raw.target.clone(), self.raw.step.clone());
        for run in self.published.runs.iter_mut().filter(|run| run.record.key.label == target) {
            for (line, words) in lines {
                run.log("lines.txt", &format!("{step}\t{}\t{line}\t{words}\n", text.name()));
            }
        }
    }
}

/// Rates and longest operations of all clients by second. Rates are added by each client's own
/// clock.
fn series(outputs: &[&ClientOutput]) -> Result<BTreeMap<String, Vec<f64>>, String> {
    let mut columns: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let kinds: Vec<usize> =
        (0..KINDS.len()).filter(|kind| total(outputs, *kind).unwrap_or(0) > 0).collect();
    for output in outputs {
        let mut lengths: Vec<f64> = output.rows.iter().map(|row| row.seconds).collect();
        lengths.sort_by(f64::total_cmp);
        let usual = lengths[lengths.len() / 2];
        if usual > SECOND_MOST {
            return Err(format!("intervals are of {usual} s"));
        }
        let mut from = 0usize;
        for row in &output.rows {
            // The partial second at the end is left out.
            let seconds = row.seconds.round() as usize;
            if seconds == 0 {
                continue;
            }
            let to = from.saturating_add(seconds);
            if to > SERIES_MOST {
                return Err(format!("line {} makes it longer than any run", row.line));
            }
            for kind in &kinds {
                add(&mut columns, ROLES[*kind], from..to, row.rates[*kind], row.longest_us[*kind]);
            }
            from = to;
        }
    }
    let longest = columns.values().map(Vec::len).max().unwrap_or(0);
    columns.values_mut().for_each(|column| column.resize(longest, 0.0));
    Ok(columns)
}

fn add(
    columns: &mut BTreeMap<String, Vec<f64>>,
    role: &str,
    seconds: std::ops::Range<usize>,
    rate: Option<f64>,
    longest_us: Option<f64>,
) {
    let column = columns.entry(role.to_owned()).or_default();
    column.resize(column.len().max(seconds.end), 0.0);
    for second in seconds.clone() {
        column[second] += rate.unwrap_or(0.0);
    }
    let column = columns.entry(format!("{role}_max_us")).or_default();
    column.resize(column.len().max(seconds.end), 0.0);
    // It ended in one of these seconds; which one is unknown.
    let last = &mut column[seconds.end - 1];
    *last = last.max(longest_us.unwrap_or(0.0));
}

/// The device of the data: the requested one, the one that matches the printed means, or the only
/// active one. Otherwise the names of all devices.
fn device(raw: &RawInsertStep, asked: Option<&str>) -> Result<Iostat, Vec<String>> {
    let Some((_, io)) = &raw.io else { return Err(Vec::new()) };
    let all = || io.devices.keys().cloned().collect::<Vec<_>>();
    let mean = |name: &str| io.mean(name).map(|(mean, _)| mean);
    if let Some(asked) = asked {
        return mean(asked).ok_or_else(all);
    }
    let summary = raw.summary.as_ref().map(|(_, summary)| summary);
    let fits = |mean: &Iostat| match summary {
        Some(summary) => [("r/s", mean.reads), ("w/s", mean.writes)].iter().all(|(head, value)| {
            let cell = summary.io_by_row.iter().find(|(name, _)| name == head);
            cell.is_some_and(|(_, printed)| decimals_agree(*value, printed))
        }),
        None => mean.reads > 0.0 || mean.writes > 0.0,
    };
    let found: Vec<Iostat> = io.devices.keys().filter_map(|name| mean(name)).filter(fits).collect();
    match found.as_slice() {
        [one] => Ok(*one),
        // Both halves of a mirror match.
        [first, ..] if summary.is_some() => Ok(*first),
        _ => Err(all()),
    }
}
