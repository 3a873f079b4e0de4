//! Run folders as flat tables for programs: one row for each run, step, metric, second and relative
//! value. Columns that link tables have the same name everywhere: `run`, `step`, `target`.

use super::facts::status;
use super::flat::unit;
use rqps_analysis::Comparison;
use rqps_analysis::causes::per_operation;
use rqps_analysis::comparison::{Relative, StepComparison};
use rqps_analysis::metrics::rate_unit;
use rqps_model::metric::Metric;
use rqps_model::run::{Counter, Dataset, Run, Second, Status, StepRecord};

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

use SqlType::{Integer, Real, Text};

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

table! { STEPS "steps", fn of_step(at: usize, step: &StepRecord) { let outcome = &step.outcome; }
    "run" Integer at.to_string();
    "step" Text step.name.clone();
    "place" Integer step.index.to_string();
    "step_group" Text step.group.name().to_owned();
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
        "steps" => each_step(dataset, |at, _, step| take(&of_step(at, step))),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_to_zero_is_not_missing() {
        let cells = [Some(0.1), Some(f64::INFINITY), Some(f64::NAN), None].map(real);
        assert_eq!(cells, ["0.1", "inf", "", ""]);
    }
}
