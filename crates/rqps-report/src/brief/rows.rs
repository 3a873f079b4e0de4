//! The rows of the answer's table, the largest loss first.

use rqps_analysis::Comparison;
use rqps_analysis::comparison::{Relative, StepComparison, TargetResult};
use rqps_analysis::counted::{FunctionComparison, TotalChange, is_counted};
use rqps_analysis::metrics::rate_unit;
use rqps_analysis::verdict::Explanation;
use rqps_model::metric::Metric;
use rqps_model::verdict::Verdict;
use rqps_stats::Interval;

use crate::document::{Cell, Column, Table};
use crate::text;

/// The most characters of a label, and of a step.
const LABEL: usize = 18;
const STEP: usize = 28;
/// A narrower last column says nothing.
const WHY_LEAST: usize = 16;

/// One step of one target.
pub(super) struct Row {
    /// Its place: demonstrated losses, what is undecided, what is the same, gains; then by ratio.
    rank: (u8, f64),
    pub(super) verdict: &'static str,
    /// The ratio with its interval; a single target has a rate.
    figure: String,
    pairs: Option<usize>,
    /// `None` if there is one target beside the baseline.
    target: Option<String>,
    pub(super) step: String,
    /// What moved with it, or why there is no verdict.
    why: String,
    /// True in a table of counts.
    is_count: bool,
}

impl Row {
    /// The ratio alone.
    pub(super) fn number(&self) -> &str {
        self.figure.split(' ').next().unwrap_or_default()
    }
}

/// The demonstrated difference that is worth the first look: the largest loss, else the largest.
pub(super) fn gravest(rows: &[Row]) -> Option<&Row> {
    let changed = |row: &&Row| {
        let words =
            [Verdict::SlowerSmall, Verdict::Faster, Verdict::FasterSmall].map(Verdict::name);
        is_loss(row) || words.contains(&row.verdict) || row.verdict == TotalChange::Fewer.word()
    };
    let size = |row: &Row| row.rank.1.abs().ln().abs();
    rows.iter()
        .filter(changed)
        .max_by(|a, b| is_loss(a).cmp(&is_loss(b)).then(size(a).total_cmp(&size(b))))
}

fn is_loss(row: &Row) -> bool {
    [Verdict::Slower.name(), TotalChange::More.word()].contains(&row.verdict)
}

/// All rows in their order.
pub(super) fn of(comparison: &Comparison) -> Vec<Row> {
    let several = comparison.targets.len() > 2;
    let counted = is_counted(comparison);
    let first = usize::from(comparison.targets.len() > 1);
    let mut rows = Vec::new();
    for step in &comparison.steps {
        for target in &step.targets[first.min(step.targets.len())..] {
            let row = match (first, counted) {
                (0, _) => alone(step, target, counted),
                (_, true) => count(step, target),
                (_, false) => rate(step, target),
            };
            let target = several.then(|| text::shortened(&target.label, LABEL));
            rows.extend(row.map(|row| Row { target, ..row }));
        }
    }
    rows.sort_by(|a, b| a.rank.0.cmp(&b.rank.0).then(a.rank.1.total_cmp(&b.rank.1)));
    rows
}

fn row(step: &StepComparison, rank: (u8, f64), verdict: &'static str, figure: String) -> Row {
    Row {
        rank,
        verdict,
        figure,
        pairs: None,
        target: None,
        step: step.name.clone(),
        why: String::new(),
        is_count: false,
    }
}

/// A target without another to compare with.
fn alone(step: &StepComparison, target: &TargetResult, counted: bool) -> Option<Row> {
    let metric = if counted { Metric::InstructionsPerOp } else { Metric::Rate };
    let number = target.absolute(metric)?;
    let digits = if number < 100.0 { 1 } else { 0 };
    let unit = if counted { "instructions/o" } else { rate_unit(step.rate) };
    Some(row(step, (0, 0.0), "", format!("{number:.digits$} {unit}")))
}

fn rate(step: &StepComparison, target: &TargetResult) -> Option<Row> {
    let Some(relative) = target.relative(Metric::Rate) else {
        let failed = target.samples.is_empty() && !target.failures.is_empty();
        return failed.then(|| row(step, (0, 0.0), "FAILED", String::new()));
    };
    let judgement = relative.judgement.as_ref()?;
    let rank = match judgement.verdict {
        Verdict::Slower | Verdict::SlowerSmall => 0,
        Verdict::Inconclusive | Verdict::NoVerdict => 1,
        Verdict::Same => 2,
        Verdict::Faster | Verdict::FasterSmall => 3,
    };
    let why = match judgement.verdict {
        Verdict::NoVerdict => judgement.reasons.join("; "),
        Verdict::Inconclusive => String::new(),
        _ => target.explanations.first().map(cost).unwrap_or_default(),
    };
    let figure = figure(relative.ratio, relative.shown_interval(), 3);
    let row = row(step, (rank, relative.ratio), judgement.verdict.name(), figure);
    Some(Row { pairs: Some(relative.pairs), why, ..row })
}

/// `server CPU x2.34`.
fn cost(cost: &Explanation) -> String {
    let name = match cost.metric {
        Metric::ServerCpuPerOp => "server CPU",
        Metric::ClientCpuPerOp => "client CPU",
        other => other.name(),
    };
    let detail: String = cost.detail.iter().map(|detail| format!(" ({detail})")).collect();
    let digits = if cost.ratio < 10.0 { 2 } else { 0 };
    format!("{name} x{:.digits$}{detail}", cost.ratio)
}

fn count(step: &StepComparison, target: &TargetResult) -> Option<Row> {
    let relative: &Relative = target.comparable(Metric::InstructionsPerOp)?;
    let change = TotalChange::of(relative);
    let rank = match change {
        TotalChange::More => 0,
        TotalChange::Unclear => 1,
        TotalChange::Same => 2,
        TotalChange::Fewer => 3,
    };
    let functions = target.counted.as_ref().and_then(|counted| counted.functions.as_ref());
    let changed = functions.and_then(FunctionComparison::leading).filter(|_| rank != 2);
    let why =
        changed.map(|one| format!("{} {:+.0}", text::shortened(&one.name, STEP), one.difference()));
    let figure = figure(relative.ratio, relative.interval, 4);
    let row = row(step, (rank, -relative.ratio), change.word(), figure);
    let pairs = Some(relative.pairs);
    Some(Row { pairs, why: why.unwrap_or_default(), is_count: true, ..row })
}

/// `0.438 [0.427, 0.449]`. What an interval cannot tell within three digits has no digits.
fn figure(ratio: f64, interval: Option<Interval>, digits: usize) -> String {
    let number = |number: f64| match number {
        huge if huge >= 1000.0 => ">999".to_owned(),
        tiny if tiny > 0.0 && tiny < 0.0005 => "<0.001".to_owned(),
        usual => format!("{usual:.digits$}"),
    };
    match interval {
        Some(it) => format!("{} [{}, {}]", number(ratio), number(it.low), number(it.high)),
        None => number(ratio),
    }
}

/// The lines of a table of these rows.
pub(super) fn table(rows: &[Row], width: usize) -> Vec<String> {
    let Some(first) = rows.first() else { return Vec::new() };
    let is_alone = first.verdict.is_empty();
    let has_targets = first.target.is_some();
    let has_whys = rows.iter().any(|row| !row.why.is_empty());
    let mut columns = Vec::new();
    if !is_alone {
        columns.push(Column::words(if first.is_count { "change" } else { "verdict" }));
    }
    columns.push(match (is_alone, first.is_count) {
        (true, _) => Column::numbers("rate"),
        (false, true) => Column::numbers("ratio [95 % interval]"),
        (false, false) => Column::numbers("rate [95 % interval]"),
    });
    if !is_alone {
        columns.push(Column::numbers("n"));
    }
    if has_targets {
        columns.push(Column::words("target"));
    }
    columns.push(Column::words("step"));
    if has_whys {
        columns.push(Column::words(if first.is_count { "function" } else { "why" }));
    }
    let cells = |row: &Row| {
        let mut cells = Vec::new();
        if !is_alone {
            cells.push(row.verdict.to_owned());
        }
        cells.push(row.figure.clone());
        if !is_alone {
            cells.push(row.pairs.map_or_else(String::new, |pairs| pairs.to_string()));
        }
        cells.extend(row.target.clone());
        cells.push(text::shortened(&row.step, STEP));
        if has_whys {
            cells.push(row.why.clone());
        }
        cells.into_iter().map(Cell::text).collect()
    };
    let mut table =
        Table { caption: String::new(), columns, rows: rows.iter().map(cells).collect() };
    let mut lines = text::table_lines(&table, None);
    let room = |lines: &[String]| {
        let why = lines.first().and_then(|head| head.rfind("  ")).unwrap_or(0) + 2;
        width.saturating_sub(why)
    };
    if has_whys && room(&lines) < WHY_LEAST {
        table.columns.pop();
        table.rows.iter_mut().for_each(|row| drop(row.pop()));
        lines = text::table_lines(&table, None);
    }
    lines.iter().map(|line| text::fitted(line, width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_difference_has_the_first_look() {
        let check = |rows: &[(&'static str, f64)], expected: Option<f64>| {
            let row = |&(verdict, ratio): &(&'static str, f64)| Row {
                rank: (0, ratio),
                verdict,
                figure: String::new(),
                pairs: None,
                target: None,
                step: String::new(),
                why: String::new(),
                is_count: false,
            };
            let rows: Vec<Row> = rows.iter().map(row).collect();
            assert_eq!(gravest(&rows).map(|row| row.rank.1), expected, "{expected:?}");
        };
        check(&[("FASTER-SMALL", 1.012), ("FASTER", 1.3), ("FASTER", 1.9)], Some(1.9));
        check(&[("SLOWER-SMALL", 0.985), ("FASTER", 1.9)], Some(1.9));
        check(&[("SLOWER", 0.9), ("SLOWER", 0.7), ("FASTER", 1.9)], Some(0.7));
        check(&[("MORE", -1.1), ("FEWER", -0.5)], Some(-1.1));
        check(&[("SAME", 1.0), ("FEWER", -0.5)], Some(-0.5));
        check(&[("INCONCLUSIVE", 0.5)], None);
    }
}
