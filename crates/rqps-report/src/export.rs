//! Run folders as flat tables for programs: one row for each run, step, metric, second and relative
//! value. Columns that link tables have the same name everywhere: `run`, `step`, `target`.

use super::facts::status;
use rqps_analysis::Comparison;
use rqps_analysis::counters::per_operation;
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

const RUNS: Flat = Flat {
    name: "runs",
    columns: &[
        ("run", Integer),
        ("folder", Text),
        ("result_set", Text),
        ("target", Text),
        ("block", Integer),
        ("attempt", Integer),
        ("place", Integer),
        ("status", Text),
        ("benchmark", Text),
        ("dbms", Text),
        ("version", Text),
        ("config", Text),
        ("config_hash", Text),
        ("host", Text),
        ("seed", Integer),
        ("plan_hash", Text),
        ("rqps_version", Text),
        ("started", Text),
        ("finished", Text),
    ],
};

const STEPS: Flat = Flat {
    name: "steps",
    columns: &[
        ("run", Integer),
        ("step", Text),
        ("place", Integer),
        ("step_group", Text),
        ("reported", Integer),
        ("status", Text),
        ("rate_unit", Text),
        ("seconds_s", Real),
        ("events", Integer),
        ("statements", Integer),
        ("rows_read", Integer),
        ("errors", Integer),
        ("no_ops", Integer),
        ("started", Text),
    ],
};

const METRICS: Flat = Flat {
    name: "metrics",
    columns: &[("run", Integer), ("step", Text), ("metric", Text), ("unit", Text), ("value", Real)],
};

const SECONDS: Flat = Flat {
    name: "seconds",
    columns: &[
        ("run", Integer),
        ("step", Text),
        ("second", Integer),
        ("seconds_s", Real),
        ("events", Integer),
        ("statements", Integer),
        ("errors", Integer),
        ("p50_us", Real),
        ("p95_us", Real),
        ("p99_us", Real),
        ("max_us", Real),
        ("host_user_s", Real),
        ("host_system_s", Real),
        ("host_iowait_s", Real),
        ("context_switches", Integer),
        ("read_kb", Real),
        ("write_kb", Real),
        ("server_cpu_us", Real),
    ],
};

const COUNTERS: Flat = Flat {
    name: "counters",
    columns: &[
        ("run", Integer),
        ("step", Text),
        ("counter", Text),
        ("before", Real),
        ("after", Real),
        ("per_operation", Real),
    ],
};

const RELATIVE: Flat = Flat {
    name: "relative",
    columns: &[
        ("step", Text),
        ("step_group", Text),
        ("target", Text),
        ("base", Text),
        ("metric", Text),
        ("unit", Text),
        ("absolute", Real),
        ("ratio", Real),
        ("low", Real),
        ("high", Real),
        ("pairs", Integer),
        ("verdict", Text),
        ("p_treat", Real),
        ("q_treat", Real),
    ],
};

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

fn of_run(at: usize, run: &Run) -> [String; RUNS.columns.len()] {
    let record = &run.record;
    [
        at.to_string(),
        run.folder.clone(),
        run.result_set.clone(),
        record.key.label.clone(),
        record.key.block.to_string(),
        record.key.attempt.to_string(),
        record.key.order.to_string(),
        status(&record.status),
        record.benchmark.clone(),
        record.manifest.dbms.to_string(),
        record.manifest.version.to_string(),
        record.config.name.clone(),
        record.config.hash.clone(),
        record.host_fingerprint.clone(),
        record.seed.to_string(),
        record.plan_hash.clone(),
        record.rqps_version.clone(),
        record.started.clone(),
        record.finished.clone().unwrap_or_default(),
    ]
}

fn of_step(at: usize, step: &StepRecord) -> [String; STEPS.columns.len()] {
    let outcome = &step.outcome;
    [
        at.to_string(),
        step.name.clone(),
        step.index.to_string(),
        step.group.name().to_owned(),
        u8::from(step.reported).to_string(),
        status(&step.status),
        rate_unit(step.rate).to_owned(),
        real(Some(outcome.seconds)),
        outcome.events.to_string(),
        outcome.statements.to_string(),
        outcome.rows.to_string(),
        outcome.errors.values().sum::<u64>().to_string(),
        outcome.no_ops.to_string(),
        step.started.clone(),
    ]
}

fn of_counter(at: usize, step: &StepRecord, counter: &Counter) -> [String; COUNTERS.columns.len()] {
    [
        at.to_string(),
        step.name.clone(),
        counter.name.clone(),
        real(Some(counter.before)),
        real(Some(counter.after)),
        real(per_operation(step, counter.before, counter.after)),
    ]
}

fn of_second(at: usize, step: &StepRecord, row: &Second) -> [String; SECONDS.columns.len()] {
    let usage = row.usage.as_ref();
    let host = usage.map(|usage| usage.host).filter(|host| host.cpus > 0);
    let disk = usage.and_then(|usage| usage.disk);
    let server = usage.and_then(|usage| usage.server_cpu);
    [
        at.to_string(),
        step.name.clone(),
        row.second.to_string(),
        real(Some(row.seconds)),
        row.events.to_string(),
        row.statements.to_string(),
        row.errors.to_string(),
        real(Some(row.p50_us)),
        real(Some(row.p95_us)),
        real(Some(row.p99_us)),
        real(Some(row.max_us)),
        real(host.map(|host| host.user)),
        real(host.map(|host| host.system)),
        real(host.map(|host| host.iowait)),
        host.map(|host| host.context_switches.to_string()).unwrap_or_default(),
        real(disk.map(|disk| disk.read_kb)),
        real(disk.map(|disk| disk.write_kb)),
        real(server.map(|server| server.total_us())),
    ]
}

fn metrics<E>(comparison: &Comparison, first_run: usize, take: &mut Take<'_, E>) -> Result<(), E> {
    for step in &comparison.steps {
        for sample in step.targets.iter().flat_map(|target| &target.samples) {
            for (metric, value) in sample.numbers() {
                take(&[
                    (first_run + sample.run).to_string(),
                    step.name.clone(),
                    metric.name().to_owned(),
                    unit(metric, rate_unit(step.rate)).to_owned(),
                    real(Some(value)),
                ])?;
            }
        }
    }
    Ok(())
}

fn relative<E>(comparison: &Comparison, take: &mut Take<'_, E>) -> Result<(), E> {
    for step in &comparison.steps {
        for target in step.targets.iter().skip(1) {
            for (metric, result) in &target.metrics {
                let Some(relative) = &result.relative else { continue };
                let judgement = relative.judgement.as_ref();
                let test = judgement.and_then(|judgement| judgement.test.as_ref());
                let interval = test.map(|test| test.interval).or(relative.interval);
                take(&[
                    step.name.clone(),
                    step.group.name().to_owned(),
                    target.label.clone(),
                    comparison.baseline.clone(),
                    metric.name().to_owned(),
                    unit(*metric, rate_unit(step.rate)).to_owned(),
                    real(result.absolute),
                    real(Some(relative.ratio)),
                    real(interval.map(|interval| interval.low)),
                    real(interval.map(|interval| interval.high)),
                    relative.pairs.to_string(),
                    judgement.map(|j| j.verdict.word(*metric).to_owned()).unwrap_or_default(),
                    real(test.map(|test| test.p_treat)),
                    real(test.map(|test| test.q_treat)),
                ])?;
            }
        }
    }
    Ok(())
}

fn unit(metric: Metric, of_rate: &'static str) -> &'static str {
    if metric == Metric::Rate { of_rate } else { metric.unit() }
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
