//! Rows per statement over the windows of a step that only reads: the first answers may be the
//! same, and later ones not.

use super::finding::Told;
use rqps_model::metric::Metric;
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
pub(super) fn compare(pairs: &[(&Run, &Run)], index: u32, labels: [&str; 2]) -> Option<Told> {
    let of = |step: fn(&Run, u32) -> Option<&StepRecord>, count: Count| -> Vec<(Rows, Rows)> {
        let rows = |run| step(run, index).map(count).filter(|rows| rows.statements > 0);
        pairs.iter().filter_map(|(base, run)| Some((rows(base)?, rows(run)?))).collect()
    };
    let text = |found: &[(Rows, Rows)], what: &str| {
        let each = |of: fn(&(Rows, Rows)) -> Rows, label: &str| {
            let rows = found.iter().map(|it| of(it).rows as f64).sum::<f64>();
            let each = rows / found.iter().map(|it| of(it).statements as f64).sum::<f64>();
            format!("{each:.3} {what} on {label}")
        };
        let sides = [each(|it| it.0, labels[0]), each(|it| it.1, labels[1])];
        Some(Told::answer(format!("over the window: {}", sides.join(", "))))
    };
    let reads = of(read_only, returned);
    if differ(&reads).unwrap_or_else(|| is_beyond(&reads)) {
        return text(&reads, "rows per statement");
    }
    let beside_writes = of(of_paced_queries, returned);
    if is_beyond(&beside_writes) {
        return text(&beside_writes, "rows per query");
    }
    // Rows that random values meet are those that the target left before.
    let changed = of(whole, changed);
    let has_counts = changed.iter().all(|(one, other)| one.rows > 0 && other.rows > 0);
    let is_other = has_counts && differ(&changed) == Some(true);
    is_other.then(|| text(&changed, "rows changed per write"))?
}

/// Statements of a window, and the rows that they returned or changed.
#[derive(Clone, Copy)]
struct Rows {
    statements: u64,
    rows: u64,
}

type Count = fn(&StepRecord) -> Rows;

fn returned(step: &StepRecord) -> Rows {
    Rows { statements: step.outcome.reads, rows: step.outcome.rows }
}

fn changed(step: &StepRecord) -> Rows {
    Rows { statements: step.outcome.writes, rows: step.outcome.affected }
}

/// Whether both sides have another number of rows for each statement; `None` if not each has one.
fn differ(found: &[(Rows, Rows)]) -> Option<bool> {
    let one = exact(found.iter().map(|it| it.0))?;
    exact(found.iter().map(|it| it.1)).map(|other| one != other)
}

/// The step, if it came to its end and neither it nor one before it wrote: rows that are written at
/// a rate of the target's own change what later statements return.
fn read_only(run: &Run, index: u32) -> Option<&StepRecord> {
    let before = run.steps.iter().map(AsRef::as_ref).filter(|step| step.index <= index);
    if before.filter(|step: &&StepRecord| step.index > 0).any(writes) {
        return None;
    }
    whole(run, index)
}

/// The step, if it queried beside writes at a set rate: those of all targets are as many.
fn of_paced_queries(run: &Run, index: u32) -> Option<&StepRecord> {
    let is_paced = |step: &&StepRecord| {
        step.outcome.open.is_some() && step.outcome.extra.contains_key(&Metric::RowsPerQuery)
    };
    whole(run, index).filter(is_paced)
}

/// The step, if it came to its end without errors.
fn whole(run: &Run, index: u32) -> Option<&StepRecord> {
    let step = run.steps.iter().find(|step| step.index == index)?;
    (step.status == Status::Complete && step.outcome.errors.is_empty()).then_some(step)
}

/// True if statements of a step wrote, or tried to.
pub(super) fn writes(step: &StepRecord) -> bool {
    step.outcome.writes > 0 || step.outcome.no_ops > 0
}

/// Rows of each statement, if it is the same whole number in all windows.
fn exact(windows: impl Iterator<Item = Rows>) -> Option<u64> {
    let mut each: Option<u64> = None;
    for Rows { statements, rows } in windows {
        let is_whole = statements >= STATEMENTS && rows % statements == 0;
        let of_window = is_whole.then(|| rows / statements)?;
        if *each.get_or_insert(of_window) != of_window {
            return None;
        }
    }
    each
}

/// True if the interval of the ratio lies beyond 1 %.
fn is_beyond(found: &[(Rows, Rows)]) -> bool {
    let ratio = |(one, other): &(Rows, Rows)| {
        let each = |it: &Rows| it.rows as f64 / it.statements as f64;
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

    #[test]
    fn rows_are_exact_only_over_many_statements() {
        let check = |windows: &[(u64, u64)], want: Option<u64>| {
            let windows = windows
                .iter()
                .map(|(statements, rows)| Rows { statements: *statements, rows: *rows });
            assert_eq!(exact(windows), want);
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
            let of = |rows: u64| Rows { statements: 1000, rows };
            let pairs: Vec<(Rows, Rows)> =
                windows.iter().map(|(one, other)| (of(*one), of(*other))).collect();
            is_beyond(&pairs)
        };
        assert!(!beyond(&[(5000, 5200), (5100, 4900), (5050, 5060)]));
        assert!(!beyond(&[(5000, 5030), (5100, 5130), (5050, 5080)]), "less than 1 %");
        assert!(beyond(&[(5000, 5101), (5100, 5203), (5050, 5152)]));
        assert!(!beyond(&[(5000, 9000), (5100, 9100)]), "two blocks tell nothing of the luck");
    }
}
