//! Checks the raw files of a step against each other.

use crate::insert::client::{IntervalRow, KINDS};
use crate::insert::histograms::BUCKETS;
use crate::insert::raw::RawInsertStep;
use crate::number::decimals_agree;
use crate::published::Published;

/// Checks the rates of intervals against the counters, as far as the printed seconds (one decimal)
/// allow.
pub(super) fn check_intervals(raw: &RawInsertStep, published: &mut Published) {
    let follows = |row: &IntervalRow, before: Option<&IntervalRow>, kind: usize| {
        let (rate, total) = (row.rates[kind]?, row.totals[kind]?);
        let moved = (total - before.map_or(0, |before| before.totals[kind].unwrap_or(0))) as f64;
        let low = moved / (row.seconds + 0.05) - 1.0;
        let below = row.seconds - 0.05;
        let high = if below > 0.0 { moved / below + 1.0 } else { f64::INFINITY };
        Some((low..=high).contains(&rate))
    };
    for (text, output) in raw.outputs.values() {
        let (mut agree, mut of) = (0, 0);
        for (place, row) in output.rows.iter().enumerate() {
            let before = place.checked_sub(1).map(|before| &output.rows[before]);
            // Queries are counted 16 at a time.
            for kind in [0, 1] {
                let Some(good) = follows(row, before, kind) else { continue };
                (agree, of) = (agree + usize::from(good), of + 1);
                if !good {
                    let (letter, total, _) = KINDS[kind];
                    let what = format!(
                        "i_{letter}ps is {}, which contradicts {total} and i_sec",
                        row.rates[kind].unwrap_or_default()
                    );
                    published.mismatch(text.path(), row.line, what);
                }
            }
        }
        published.check("rates of intervals from their counters", agree, of);
    }
}

/// Checks the means and histograms that the summary and the step's table repeat.
pub(super) fn check_times(raw: &RawInsertStep, published: &mut Published) {
    let sums = |kind: usize| -> Option<Vec<u64>> {
        let own = raw.outputs.values().flat_map(|(_, output)| &output.histograms);
        let own: Vec<_> = own.filter(|times| times.kind == kind).collect();
        let sum = |class: usize| {
            own.iter().fold(0u64, |sum, times| sum.saturating_add(times.counts[class]))
        };
        (!own.is_empty()).then(|| (0..BUCKETS.len()).map(sum).collect())
    };
    for (op, text, rows) in &raw.times {
        let kind = KINDS.iter().position(|(_, _, name)| name.to_lowercase() == *op);
        let Some(sums) = kind.and_then(sums) else { continue };
        for row in rows.iter().filter(|row| row.tag.starts_with("sum:")) {
            let printed: Vec<Option<u64>> =
                row.cells.iter().map(|cell| cell.parse().ok()).collect();
            let agree = printed.iter().zip(&sums).filter(|(cell, sum)| **cell == Some(**sum));
            let agree = agree.count();
            published.check("classes of response times from the clients'", agree, sums.len());
            if agree < sums.len() {
                let what = format!("the clients' own histograms of {op}s add up to {sums:?}");
                published.mismatch(text.path(), row.line, what);
            }
        }
    }
    let (Some((text, summary)), Some((_, vm))) = (&raw.summary, &raw.vm) else { return };
    let Some((mean, _)) = vm.compat_mean() else { return };
    let cells = [("cs/s", mean.cs), ("cpu/s", mean.us + mean.sy)];
    for (head, again) in cells {
        let printed = summary.vm_by_row.iter().find(|(name, _)| name == head);
        let Some((_, printed)) = printed else { continue };
        let agrees = decimals_agree(again, printed);
        published.check("means of o.res from the samples of vmstat", usize::from(agrees), 1);
        if !agrees {
            let what = format!("{head}: published {printed}, recomputed from samples {again}");
            published.mismatch(text.path(), 8, what);
        }
    }
}
