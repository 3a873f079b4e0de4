//! Tables for programs.

use std::fmt::Write;
use std::io;

use SqlType::{Integer, Real, Text};

use super::document::Digits;
use super::facts::status;
use rqps_analysis::Comparison;
use rqps_analysis::causes::per_operation;
use rqps_analysis::comparison::{Relative, StepComparison, TargetResult};
use rqps_analysis::measurement::Measurement;
use rqps_analysis::measurement::rate_unit;
use rqps_analysis::verdict::{Judgement, Test};
use rqps_model::benchmark::Group;
use rqps_model::escape;
use rqps_model::metric::Metric;
use rqps_model::run::{Counter, Dataset, Run, Second, Status, StepRecord};
use rqps_stats::Interval;

// Run folders as flat tables for programs: one row for each run, step, metric, second and relative
// value. Columns that link tables have the same name everywhere: `run`, `step`, `target`.

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlType {
    /// Text.
    Text,
    /// An integer.
    Integer,
    /// A floating-point number.
    Real,
}

/// A flat table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flat {
    /// Name.
    pub name: &'static str,
    /// Names and types of the columns, left to right.
    pub columns: &'static [(&'static str, SqlType)],
}

/// All tables. `run` counts run folders from 0; missing values are empty.
pub const TABLES: [Flat; 6] = [RUNS, STEPS, METRICS, SECONDS, COUNTERS, RELATIVE];

/// A table, and the function that makes a row of it: name, type and value of each column.
macro_rules! table {
    ($table:ident $name:literal, fn $row:ident($($given:ident: $kind:ty),*) { $($first:stmt;)* }
     $($column:literal $type:ident $value:expr;)*) => {
        const $table: Flat = Flat { name: $name, columns: &[$(($column, $type)),*] };

        fn $row($($given: $kind),*) -> [String; $table.columns.len()] {
            $($first)*
            [$($value),*]
        }
    };
}

table! { RUNS "runs", fn of_run(at: usize, run: &Run) { let record = &run.record; }
    "run" Integer at.to_string();
    "folder" Text run.folder.clone();
    "result_set" Text run.result_set.clone();
    "target" Text record.key.label.clone();
    "block" Integer record.key.block.to_string();
    "attempt" Integer record.key.attempt.to_string();
    "place" Integer record.key.order.to_string();
    "status" Text status(&record.status);
    "benchmark" Text record.benchmark.clone();
    "dbms" Text record.manifest.dbms.to_string();
    "version" Text record.manifest.version.to_string();
    "config" Text record.config.name.clone();
    "config_hash" Text record.config.hash.clone();
    "host" Text record.host_fingerprint.clone();
    "seed" Integer record.seed.to_string();
    "plan_hash" Text record.plan_hash.clone();
    "rqps_version" Text record.rqps_version.clone();
    "started" Text record.started.clone();
    "finished" Text record.finished.clone().unwrap_or_default();
}

table! { STEPS "steps", fn of_step(at: usize, step: &StepRecord, group: Group) {
        let outcome = &step.outcome;
    }
    "run" Integer at.to_string();
    "step" Text step.name.clone();
    "place" Integer step.index.to_string();
    "step_group" Text group.name().to_owned();
    "reported" Integer u8::from(step.reported).to_string();
    "status" Text status(&step.status);
    "rate_unit" Text rate_unit(step.rate).to_owned();
    "seconds_s" Real real(Some(outcome.seconds));
    "events" Integer outcome.events.to_string();
    "statements" Integer outcome.statements.to_string();
    "rows_read" Integer outcome.rows.to_string();
    "errors" Integer outcome.errors.values().sum::<u64>().to_string();
    "no_ops" Integer outcome.no_ops.to_string();
    "started" Text step.started.clone();
}

table! { METRICS "metrics",
    fn of_metric(run: usize, step: &StepComparison, metric: Metric, value: f64) {}
    "run" Integer run.to_string();
    "step" Text step.name.clone();
    "metric" Text metric.name().to_owned();
    "unit" Text unit(metric, step).to_owned();
    "value" Real real(Some(value));
}

table! { SECONDS "seconds", fn of_second(at: usize, step: &StepRecord, row: &Second) {
        let usage = row.usage.as_ref();
        let host = usage.map(|usage| usage.host).filter(|host| host.cpus > 0);
        let disk = usage.and_then(|usage| usage.disk);
        let server = usage.and_then(|usage| usage.server_cpu);
    }
    "run" Integer at.to_string();
    "step" Text step.name.clone();
    "second" Integer row.second.to_string();
    "seconds_s" Real real(Some(row.seconds));
    "events" Integer row.events.to_string();
    "statements" Integer row.statements.to_string();
    "errors" Integer row.errors.to_string();
    "p50_us" Real real(Some(row.p50_us));
    "p95_us" Real real(Some(row.p95_us));
    "p99_us" Real real(Some(row.p99_us));
    "max_us" Real real(Some(row.max_us));
    "host_user_s" Real real(host.map(|host| host.user));
    "host_system_s" Real real(host.map(|host| host.system));
    "host_iowait_s" Real real(host.map(|host| host.iowait));
    "context_switches" Integer
        host.map(|host| host.context_switches.to_string()).unwrap_or_default();
    "read_kb" Real real(disk.map(|disk| disk.read_kb));
    "write_kb" Real real(disk.map(|disk| disk.write_kb));
    "server_cpu_us" Real real(server.map(|server| server.total_us()));
}

table! { COUNTERS "counters", fn of_counter(at: usize, step: &StepRecord, counter: &Counter) {}
    "run" Integer at.to_string();
    "step" Text step.name.clone();
    "counter" Text counter.name.clone();
    "before" Real real(Some(counter.before));
    "after" Real real(Some(counter.after));
    "per_operation" Real real(per_operation(step, counter.before, counter.after));
}

table! { RELATIVE "relative",
    fn of_ratio(
        base: &str, step: &StepComparison, label: &str, metric: Metric, absolute: Option<f64>,
        relative: &Relative
    ) {
        let judgement = relative.judgement.as_ref();
        let test = relative.test();
        let interval = relative.shown_interval();
    }
    "step" Text step.name.clone();
    "step_group" Text step.group.name().to_owned();
    "target" Text label.to_owned();
    "base" Text base.to_owned();
    "metric" Text metric.name().to_owned();
    "unit" Text unit(metric, step).to_owned();
    "absolute" Real real(absolute);
    "ratio" Real real(Some(relative.ratio));
    "low" Real real(interval.map(|interval| interval.low));
    "high" Real real(interval.map(|interval| interval.high));
    "pairs" Integer relative.pairs.to_string();
    "verdict" Text judgement.map(|j| j.verdict.word(metric).to_owned()).unwrap_or_default();
    "p_treat" Real real(test.map(|test| test.p_treat));
    "q_treat" Real real(test.map(|test| test.q_treat));
}

/// Readers of the files beside a step's record.
pub struct Beside<'a, E> {
    /// Reads its seconds.
    pub seconds: &'a Read<'a, Second, E>,
    /// Reads the counters of the DBMS.
    pub counters: &'a Read<'a, Counter, E>,
}

/// Reads the rows of a step's file.
pub type Read<'a, T, E> = dyn Fn(&Run, &StepRecord) -> Result<Vec<T>, E> + 'a;

/// Receives a row: one text per column, empty for a missing value.
pub type Take<'a, E> = dyn FnMut(&[String]) -> Result<(), E> + 'a;

/// Passes every row of a table to `take`. It reads seconds and counters one step at a time, so that
/// any number of runs fits into memory.
pub fn rows<E>(
    table: &Flat,
    comparison: &Comparison,
    dataset: &Dataset,
    beside: &Beside<'_, E>,
    take: &mut Take<'_, E>,
) -> Result<(), E> {
    match table.name {
        "runs" => dataset.runs.iter().enumerate().try_for_each(|(at, run)| take(&of_run(at, run))),
        "steps" => each_step(dataset, |at, _, step| {
            // The plan does not know whether a script writes; what it did tells.
            let known = comparison.steps.iter().find(|known| known.name == step.name);
            take(&of_step(at, step, known.map_or(step.group, |known| known.group)))
        }),
        "metrics" => both(comparison).try_for_each(|(part, first)| metrics(part, first, take)),
        "seconds" => each_step(dataset, |at, run, step| {
            if step.status != Status::Complete {
                return Ok(());
            }
            (beside.seconds)(run, step)?.iter().try_for_each(|row| take(&of_second(at, step, row)))
        }),
        "counters" => each_step(dataset, |at, run, step| {
            let counters = (beside.counters)(run, step)?;
            counters.iter().try_for_each(|counter| take(&of_counter(at, step, counter)))
        }),
        _ => both(comparison).try_for_each(|(part, _)| relative(part, take)),
    }
}

/// The comparison and that of its counted runs, each with the place of its first run.
fn both(comparison: &Comparison) -> impl Iterator<Item = (&Comparison, usize)> {
    let counts = comparison.counts.iter().map(|counts| (&**counts, comparison.runs.len()));
    std::iter::once((comparison, 0)).chain(counts)
}

fn each_step<E>(
    dataset: &Dataset,
    mut visit: impl FnMut(usize, &Run, &StepRecord) -> Result<(), E>,
) -> Result<(), E> {
    for (at, run) in dataset.runs.iter().enumerate() {
        run.steps.iter().try_for_each(|step| visit(at, run, step))?;
    }
    Ok(())
}

fn metrics<E>(comparison: &Comparison, first_run: usize, take: &mut Take<'_, E>) -> Result<(), E> {
    for step in &comparison.steps {
        for sample in step.targets.iter().flat_map(|target| &target.samples) {
            for (metric, value) in sample.numbers() {
                take(&of_metric(first_run + sample.run, step, metric, value))?;
            }
        }
    }
    Ok(())
}

fn relative<E>(comparison: &Comparison, take: &mut Take<'_, E>) -> Result<(), E> {
    let base = &comparison.baseline;
    for step in &comparison.steps {
        for target in step.targets.iter().skip(1) {
            for (metric, result) in &target.metrics {
                let Some(relative) = &result.relative else { continue };
                let (label, absolute) = (&target.label, result.absolute);
                take(&of_ratio(base, step, label, *metric, absolute, relative))?;
            }
        }
    }
    Ok(())
}

/// The shortest text that reads back as the same number, `inf` for a ratio to zero; empty for a
/// missing number.
fn real(number: Option<f64>) -> String {
    let number = number.filter(|number| !number.is_nan());
    number.map(|number| format!("{number:?}")).unwrap_or_default()
}

// Tables for programs: TSV in the published layout, and one long CSV.

/// Sections of tab-separated rows, separated by blank lines. The first two are in the layout of
/// published qps.rel and qps.abs files; the others begin with a header row.
pub(super) fn tsv(comparison: &Comparison) -> String {
    let sections = [
        relative_section(comparison),
        absolute_section(comparison),
        rates_section(comparison),
        groups_section(comparison),
        metrics_section(comparison),
    ];
    sections.join("\n")
}

/// `Relative to:`, `col-N :`, then a row for each step with its name last.
fn relative_section(comparison: &Comparison) -> String {
    let mut text = format!("Relative to: {}\n", escape::line(&comparison.baseline));
    let labels = comparison.targets.iter().skip(1).map(|target| target.label.as_str());
    push_columns(&mut text, &labels.collect::<Vec<_>>());
    for step in &comparison.steps {
        let ratios = step.targets.iter().skip(1).map(|target| {
            let relative = target.comparable(Metric::Rate);
            relative.map(|relative| Digits::Ratio.write(relative.ratio)).unwrap_or_default()
        });
        push_row(&mut text, ratios.chain([step.name.clone()]));
    }
    text
}

fn absolute_section(comparison: &Comparison) -> String {
    let mut text = String::new();
    let labels = comparison.targets.iter().map(|target| target.label.as_str());
    push_columns(&mut text, &labels.collect::<Vec<_>>());
    for step in &comparison.steps {
        let rates = step.targets.iter().map(|target| whole(target.absolute(Metric::Rate)));
        push_row(&mut text, rates.chain([step.name.clone()]));
    }
    text
}

/// The legend, a blank line, and the header row.
fn push_columns(text: &mut String, labels: &[&str]) {
    for (index, label) in labels.iter().enumerate() {
        let _ = writeln!(text, "col-{} : {}", index + 1, escape::line(label));
    }
    text.push('\n');
    push_row(text, (1..=labels.len()).map(|number| format!("col-{number}")));
}

fn rates_section(comparison: &Comparison) -> String {
    let mut text = String::new();
    let heads = "group step target unit absolute relative low95 high95 pairs sd_ln robust \
                 robust_low95 robust_high95 verdict moderated_low95 moderated_high95 p_treat \
                 q_treat holm_treat p_zero q_zero mde pairs_needed";
    push_row(&mut text, heads.split_whitespace().map(str::to_owned));
    for (step, target) in cells(comparison) {
        let relative = target.relative(Metric::Rate);
        let interval = relative.and_then(|relative| relative.interval);
        let robust = relative.and_then(|relative| relative.robust.as_ref());
        let robust_interval = robust.map(|robust| robust.interval);
        let row = [
            step.group.name().to_owned(),
            step.name.clone(),
            target.label.clone(),
            rate_unit(step.rate).to_owned(),
            exact(target.absolute(Metric::Rate)),
            exact(relative.map(|relative| relative.ratio)),
            exact(interval.map(|interval| interval.low)),
            exact(interval.map(|interval| interval.high)),
            relative.map(|relative| relative.pairs.to_string()).unwrap_or_default(),
            exact(relative.and_then(|relative| relative.sd_ln)),
            exact(robust.map(|robust| robust.ratio)),
            exact(robust_interval.map(|interval| interval.low)),
            exact(robust_interval.map(|interval| interval.high)),
        ];
        push_row(&mut text, row.into_iter().chain(judged(target.judgement(Metric::Rate))));
    }
    text
}

/// Verdict and figures of the rate; empty cells if there are none.
fn judged(judgement: Option<&Judgement>) -> [String; 10] {
    let test = judgement.and_then(|judgement| judgement.test.as_ref());
    let figure = |get: fn(&Test) -> f64| exact(test.map(get));
    [
        judgement.map(|judgement| judgement.verdict.name().to_owned()).unwrap_or_default(),
        figure(|test| test.interval.low),
        figure(|test| test.interval.high),
        figure(|test| test.p_treat),
        figure(|test| test.q_treat),
        figure(|test| test.holm_treat),
        figure(|test| test.p_zero),
        figure(|test| test.q_zero),
        figure(|test| test.mde),
        judgement.and_then(|j| j.pairs_needed).map(|n| n.to_string()).unwrap_or_default(),
    ]
}

fn groups_section(comparison: &Comparison) -> String {
    let mut text = String::new();
    let heads = "group target steps min max average median stddev geomean";
    push_row(&mut text, heads.split_whitespace().map(str::to_owned));
    for group in &comparison.groups {
        for target in &group.targets {
            let Some(summary) = &target.summary else { continue };
            let row = [
                group.name(),
                target.label.clone(),
                summary.n.to_string(),
                exact(Some(summary.min)),
                exact(Some(summary.max)),
                exact(Some(summary.average)),
                exact(Some(summary.median)),
                exact(summary.stddev),
                exact(summary.geomean),
            ];
            push_row(&mut text, row);
        }
    }
    text
}

fn metrics_section(comparison: &Comparison) -> String {
    let mut text = String::new();
    let heads = "step target metric unit absolute runs relative low95 high95 pairs verdict \
                 moderated_low95 moderated_high95";
    push_row(&mut text, heads.split_whitespace().map(str::to_owned));
    for (step, target) in cells(comparison) {
        for (metric, result) in &target.metrics {
            let relative = result.relative.as_ref();
            let interval: Option<Interval> = relative.and_then(|relative| relative.interval);
            let row = [
                step.name.clone(),
                target.label.clone(),
                metric.name().to_owned(),
                unit(*metric, step).to_owned(),
                exact(result.absolute),
                result.n.to_string(),
                exact(relative.map(|relative| relative.ratio)),
                exact(interval.map(|interval| interval.low)),
                exact(interval.map(|interval| interval.high)),
                relative.map(|relative| relative.pairs.to_string()).unwrap_or_default(),
            ];
            let test = relative.and_then(|relative| relative.test());
            let verdict = [
                target
                    .judgement(*metric)
                    .map(|j| j.verdict.word(*metric).to_owned())
                    .unwrap_or_default(),
                exact(test.map(|test| test.interval.low)),
                exact(test.map(|test| test.interval.high)),
            ];
            push_row(&mut text, row.into_iter().chain(verdict));
        }
    }
    text
}

fn cells(comparison: &Comparison) -> impl Iterator<Item = (&StepComparison, &TargetResult)> {
    comparison.steps.iter().flat_map(|step| step.targets.iter().map(move |target| (step, target)))
}

fn push_row(text: &mut String, cells: impl IntoIterator<Item = String>) {
    let cells: Vec<String> =
        cells.into_iter().map(|cell| escape::tsv(&cell).into_owned()).collect();
    text.push_str(&cells.join("\t"));
    text.push('\n');
}

fn whole(number: Option<f64>) -> String {
    number.map(|number| Digits::Fixed(0).write(number)).unwrap_or_default()
}

/// The shortest text that reads back as the same number; empty for a missing number.
fn exact(number: Option<f64>) -> String {
    match number {
        Some(number) if number.is_infinite() => "inf".to_owned(),
        Some(number) => number.to_string(),
        None => String::new(),
    }
}

/// The unit of a metric in a step.
pub(super) fn unit(metric: Metric, step: &StepComparison) -> &'static str {
    if metric == Metric::Rate { rate_unit(step.rate) } else { metric.unit() }
}

/// Heads of the columns of the CSV.
pub(super) const CSV_HEAD: &str = "step,group,target,block,attempt,metric,value,unit,run_folder";

/// A header and one row for each number of each completed step of each run.
pub(super) fn write_csv(comparison: &Comparison, out: &mut impl io::Write) -> io::Result<()> {
    writeln!(out, "{CSV_HEAD}")?;
    write_csv_rows(comparison, "", out)
}

/// The rows, each with `more` at its end.
pub(super) fn write_csv_rows(
    comparison: &Comparison,
    more: &str,
    out: &mut impl io::Write,
) -> io::Result<()> {
    for (step, target) in cells(comparison) {
        for sample in &target.samples {
            write_sample(out, comparison, (step, &target.label, more), sample)?;
        }
    }
    Ok(())
}

fn write_sample(
    out: &mut impl io::Write,
    comparison: &Comparison,
    (step, label, more): (&StepComparison, &str, &str),
    sample: &Measurement,
) -> io::Result<()> {
    let run = &comparison.runs[sample.run];
    let head = format!(
        "{},{},{},{},{}",
        quoted(&step.name),
        step.group.name(),
        quoted(label),
        run.key.block,
        run.key.attempt
    );
    let folder = format!("{}{more}", quoted(&run.folder));
    for (metric, value) in sample.numbers() {
        let (name, unit) = (quoted(metric.name()), unit(metric, step));
        writeln!(out, "{head},{name},{value},{unit},{folder}")?;
    }
    let counts = [
        ("events", sample.events),
        ("statements", sample.statements),
        ("errors", sample.errors),
        ("no_ops", sample.no_ops),
    ];
    for (name, count) in counts {
        writeln!(out, "{head},{name},{count},count,{folder}")?;
    }
    Ok(())
}

/// A field of CSV.
pub(super) fn quoted(text: &str) -> String {
    escape::csv(text, true).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_to_zero_is_not_missing() {
        let cells = [Some(0.1), Some(f64::INFINITY), Some(f64::NAN), None].map(real);
        assert_eq!(cells, ["0.1", "inf", "", ""]);
    }

    #[test]
    fn numbers_read_back_exactly() {
        assert_eq!(exact(Some(0.1)), "0.1");
        assert_eq!(exact(Some(1.0 / 3.0)).parse::<f64>().unwrap(), 1.0 / 3.0);
        assert_eq!(exact(Some(f64::INFINITY)), "inf");
        assert_eq!(exact(None), "");
    }
}
