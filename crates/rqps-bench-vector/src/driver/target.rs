//! Finds the smallest ef with a required recall by bisection, and measures its cost.

use std::io::Write;

use super::score::{Score, score};
use super::search::{Ready, put_score};
use crate::driver::context::VectorContext;
use rqps_driver::Stop;
use rqps_model::metric::Metric;
use rqps_model::run::Outcome;
use rqps_model::vector::Search;

/// One-sided 95 % quantile of the normal distribution, which approximates the mean recall over many
/// queries.
const ONE_SIDED: f64 = 1.645;

/// The result of a width.
enum Tried {
    /// Its recall, which is too low.
    Below(f64),
    /// Its recall suffices.
    Enough,
    /// The planner uses no index at this width: it is too large.
    Scan,
}

/// Finds the smallest ef whose recall is at least `recall` with 95 % confidence over the queries,
/// and measures it.
pub(super) fn target<W: Write>(
    context: &mut VectorContext<'_, W>,
    recall: f64,
    search: &Search,
) -> Result<Outcome, Stop> {
    let least = context.work().k.max(search.ef).max(1);
    let largest = context.sql().largest_ef();
    let mut tried = Vec::new();
    let found = smallest(least, largest, |ef| {
        let search = Search { ef, ..search.clone() };
        let ready = Ready::with_any_plan(context, &search)?;
        if !ready.uses_index {
            tried.push(format!("{ef}: no index"));
            return Ok(Tried::Scan);
        }
        let answers = ready.ask_all(context, &search)?;
        let score = score(&context.data, &ready.truth, &answers);
        tried.push(format!("{ef}: {:.4}", score.recall));
        let enough = lower_bound(&score) >= recall;
        Ok(if enough { Tried::Enough } else { Tried::Below(score.recall) })
    })?;
    let high = found.map_err(|(ef, best)| if ef < least { format!("failed to reach a recall of {recall}: no query uses the index") } else { format!(
            "failed to reach a recall of {recall}: it is {best:.4} at ef_search {ef}, the widest \
             search that uses the index; build it with a larger m or ef_construction"
        ) })?;
    let found = Search { ef: high, ..search.clone() };
    let ready = Ready::new(context, &found)?;
    let answers = ready.ask_all(context, &found)?;
    let score = score(&context.data, &ready.truth, &answers);
    let mut outcome = ready.window(context, &found)?;
    put_score(&mut outcome, &score);
    outcome.extra.insert(Metric::EfSearch, f64::from(high));
    outcome.facts.insert("ef_search: recall".to_owned(), tried.join(", "));
    Ok(outcome)
}

/// The smallest sufficient width from `least` to `largest`. The error is the widest usable one and
/// its recall.
fn smallest(
    least: u32,
    largest: u32,
    mut at: impl FnMut(u32) -> Result<Tried, Stop>,
) -> Result<Result<u32, (u32, f64)>, Stop> {
    let (mut below, mut best) = (least - 1, 0.0);
    // Doubling finds an upper bound quickly: for large ef, recall rises slowly.
    let (mut high, mut enough) = (least, false);
    loop {
        match at(high)? {
            Tried::Below(recall) => (below, best) = (high, recall),
            Tried::Enough => enough = true,
            Tried::Scan => {}
        }
        if below < high {
            break;
        }
        if high == largest {
            return Ok(Err((below, best)));
        }
        high = (high * 2).min(largest);
    }
    while high - below > 1 {
        let middle = below + (high - below) / 2;
        match at(middle)? {
            Tried::Below(recall) => (below, best) = (middle, recall),
            Tried::Enough => (high, enough) = (middle, true),
            Tried::Scan => high = middle,
        }
    }
    Ok(if enough { Ok(high) } else { Err((below, best)) })
}

/// Lower bound of the recall with 95 % confidence over the choice of queries.
fn lower_bound(score: &Score) -> f64 {
    score.recall - ONE_SIDED * score.deviation / (score.queries.max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_below_the_mean_by_its_standard_error() {
        let score = Score { recall: 0.96, deviation: 0.1, queries: 100, ..Score::default() };
        assert!((lower_bound(&score) - (0.96 - 0.01645)).abs() < 1e-12);
        let all = Score { recall: 1.0, deviation: 0.0, queries: 10, ..Score::default() };
        assert_eq!(lower_bound(&all), 1.0, "a recall of 1 can be reached");
    }

    /// Searches with a recall of ef / 1000 that use an index below `scans`.
    fn found(wanted: f64, scans: u32) -> Result<u32, (u32, f64)> {
        let result = smallest(10, 1000, |ef| {
            let recall = f64::from(ef) / 1000.0;
            Ok(match ef {
                _ if ef >= scans => Tried::Scan,
                _ if recall >= wanted => Tried::Enough,
                _ => Tried::Below(recall),
            })
        });
        result.unwrap_or_else(|_| panic!("nothing fails here"))
    }

    #[test]
    fn the_smallest_width_is_found() {
        assert_eq!(found(0.5, 2000), Ok(500));
        assert_eq!(found(0.001, 2000), Ok(10), "the least is enough");
        assert_eq!(found(1.0, 2000), Ok(1000));
        assert_eq!(found(1.1, 2000), Err((1000, 1.0)));
    }

    #[test]
    fn a_scan_is_too_wide_and_no_answer() {
        assert_eq!(found(0.5, 600), Ok(500), "640 scans, and 500 does not");
        assert_eq!(found(0.9, 600), Err((599, 0.599)));
        assert_eq!(found(0.5, 10), Err((9, 0.0)));
    }
}
