//! Rows per statement over the windows of a step that only reads: the first answers may be the
//! same, and later ones not.

use super::finding::{AnswerWeight, Told};
use rqps_model::run::{Run, Status, StepRecord};
use rqps_stats::paired::mean_interval;

/// Difference of the rows per statement that counts.
const COUNTS: f64 = 0.01;

/// Fewest blocks by which a difference can be told from the luck of the draw.
const BLOCKS: usize = 3;

/// Fewest statements of a window by which rows of each are known to be the same number.
const STATEMENTS: u64 = 1000;

/// Confidence of the interval, high because every step of every target is looked at.
const CONFIDENCE: f64 = 0.999;

/// Rows per statement of both sides differ in these blocks of a step, by index.
pub(super) fn compare(pairs: &[(&Run, &Run)], index: u32, labels: (&str, &str)) -> Option<Told> {
    let found: Vec<(&StepRecord, &StepRecord)> = pairs
        .iter()
        .filter_map(|(base, run)| Some((read_only(base, index)?, read_only(run, index)?)))
        .collect();
    let all = |of: fn(&(&StepRecord, &StepRecord)) -> f64| found.iter().map(of).sum::<f64>();
    let reads = (all(|pair| pair.0.outcome.reads as f64), all(|pair| pair.1.outcome.reads as f64));
    let rows = (all(|pair| pair.0.outcome.rows as f64), all(|pair| pair.1.outcome.rows as f64));
    let each = (rows.0 / reads.0, rows.1 / reads.1);
    let differs = match (exact(found.iter().map(|it| it.0)), exact(found.iter().map(|it| it.1))) {
        // Always as many rows on each side.
        (Some(one), Some(other)) => one != other,
        _ => is_beyond(&found),
    };
    let text = |label: &str, rows: f64| format!("{rows:.3} rows per statement on {label}");
    differs.then(|| {
        let text = format!("{}, {}", text(labels.0, each.0), text(labels.1, each.1));
        (AnswerWeight::Answer, format!("over the window: {text}"))
    })
}

/// The step, if it came to its end and neither it nor one before it wrote: rows that are written at
/// a rate of the target's own change what later statements return.
fn read_only(run: &Run, index: u32) -> Option<&StepRecord> {
    let writes = |step: &&StepRecord| step.outcome.writes > 0 || step.outcome.no_ops > 0;
    let before = run.steps.iter().map(AsRef::as_ref).filter(|step| step.index <= index);
    if before.filter(|step: &&StepRecord| step.index > 0).any(|step| writes(&step)) {
        return None;
    }
    let step = run.steps.iter().find(|step| step.index == index)?;
    let is_whole = step.status == Status::Complete && step.outcome.errors.is_empty();
    (is_whole && step.outcome.reads > 0).then_some(step)
}

/// Rows of each statement, if it is the same whole number in all windows.
fn exact<'a>(steps: impl Iterator<Item = &'a StepRecord>) -> Option<u64> {
    let mut each: Option<u64> = None;
    for step in steps {
        let (rows, reads) = (step.outcome.rows, step.outcome.reads);
        let of_step = (reads >= STATEMENTS && rows % reads == 0).then(|| rows / reads)?;
        if *each.get_or_insert(of_step) != of_step {
            return None;
        }
    }
    each
}

/// True if the interval of the ratio lies beyond 1 %.
fn is_beyond(found: &[(&StepRecord, &StepRecord)]) -> bool {
    let ratio = |(one, other): &(&StepRecord, &StepRecord)| {
        let each = |step: &StepRecord| step.outcome.rows as f64 / step.outcome.reads as f64;
        (each(other) / each(one)).ln()
    };
    let differences: Vec<f64> = found.iter().map(ratio).collect();
    if found.len() < BLOCKS || differences.iter().any(|it| !it.is_finite()) {
        return false;
    }
    let interval = mean_interval(&differences, CONFIDENCE).and_then(|mean| mean.interval);
    let limit = COUNTS.ln_1p();
    interval.is_some_and(|interval| interval.low > limit || interval.high < -limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::benchmark::{Group, RateUnit};

    fn step(index: u32, reads: u64, rows: u64, writes: u64) -> StepRecord {
        let mut step = StepRecord::empty(index, "s", Group::Range, RateUnit::Queries);
        (step.outcome.reads, step.outcome.rows, step.outcome.writes) = (reads, rows, writes);
        step
    }

    #[test]
    fn rows_are_exact_only_over_many_statements() {
        let check = |windows: &[(u64, u64)], want: Option<u64>| {
            let steps: Vec<StepRecord> =
                windows.iter().map(|(reads, rows)| step(1, *reads, *rows, 0)).collect();
            assert_eq!(exact(steps.iter()), want, "{windows:?}");
        };
        check(&[(1000, 2000), (3000, 6000)], Some(2));
        check(&[(1000, 0)], Some(0));
        check(&[(1000, 2000), (3000, 9000)], None);
        check(&[(1000, 2001)], None);
        check(&[(1, 37)], None);
    }

    #[test]
    fn the_luck_of_the_draw_is_no_difference() {
        let beyond = |windows: &[(u64, u64)]| {
            let steps: Vec<(StepRecord, StepRecord)> = windows
                .iter()
                .map(|(one, other)| (step(1, 1000, *one, 0), step(1, 1000, *other, 0)))
                .collect();
            let pairs: Vec<(&StepRecord, &StepRecord)> =
                steps.iter().map(|(one, other)| (one, other)).collect();
            is_beyond(&pairs)
        };
        assert!(!beyond(&[(5000, 5200), (5100, 4900), (5050, 5060)]));
        assert!(!beyond(&[(5000, 5030), (5100, 5130), (5050, 5080)]), "less than 1 %");
        assert!(beyond(&[(5000, 5101), (5100, 5203), (5050, 5152)]));
        assert!(!beyond(&[(5000, 9000), (5100, 9100)]), "two blocks tell nothing of the luck");
    }
}
