//! Tables for programs: TSV in the published layout, and one long CSV.

use std::fmt::Write;
use std::io;

use super::document::Digits;
use rqps_analysis::Comparison;
use rqps_analysis::comparison::{StepComparison, TargetResult};
use rqps_analysis::measurement::Measurement;
use rqps_analysis::metrics::rate_unit;
use rqps_analysis::verdict::{Judgement, Test};
use rqps_model::escape;
use rqps_model::metric::Metric;
use rqps_stats::Interval;

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
    fn numbers_read_back_exactly() {
        assert_eq!(exact(Some(0.1)), "0.1");
        assert_eq!(exact(Some(1.0 / 3.0)).parse::<f64>().unwrap(), 1.0 / 3.0);
        assert_eq!(exact(Some(f64::INFINITY)), "inf");
        assert_eq!(exact(None), "");
    }
}
