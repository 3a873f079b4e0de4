//! The smallest ef with a wanted recall, by bisection, and what it costs.

use std::io::Write;

use super::Bench;
use super::score::{Score, score};
use super::search::{Ready, put_score};
use crate::domain::metric::Metric;
use crate::domain::run::Outcome;
use crate::domain::vector::Search;
use crate::driver::Stop;

/// One-sided 95 % quantile of the normal distribution: the recall over many queries is nearly so.
const ONE_SIDED: f64 = 1.645;

/// Finds the smallest ef whose recall is at least `recall` with 95 % confidence over the queries,
/// and measures with it.
pub(super) fn target<W: Write>(
    bench: &mut Bench<'_, W>,
    recall: f64,
    search: &Search,
) -> Result<Outcome, Stop> {
    let least = bench.work().k.max(search.ef).max(1);
    let largest = bench.sql().largest_ef();
    let mut tried = Vec::new();
    let mut at = |ef: u32, bench: &mut Bench<'_, W>| -> Result<Score, Stop> {
        let search = Search { ef, ..search.clone() };
        let ready = Ready::new(bench, &search)?;
        let answers = ready.ask_all(bench, &search)?;
        let score = score(&bench.data, &ready.truth, &answers);
        tried.push(format!("{ef}: {:.4}", score.recall));
        Ok(score)
    };
    // Doubling finds an upper end soon: where ef is large, recall rises slowly.
    let mut low = least - 1;
    let mut high = least;
    loop {
        let score = at(high, bench)?;
        if lower_bound(&score) >= recall {
            break;
        }
        if high == largest {
            return Err(format!(
                "failed to reach a recall of {recall}: it is {:.4} at ef_search {largest}, the \
                 widest; build the index with a larger m or ef_construction",
                score.recall
            )
            .into());
        }
        low = high;
        high = (high * 2).min(largest);
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if lower_bound(&at(middle, bench)?) >= recall {
            high = middle;
        } else {
            low = middle;
        }
    }
    let found = Search { ef: high, ..search.clone() };
    let ready = Ready::new(bench, &found)?;
    let answers = ready.ask_all(bench, &found)?;
    let score = score(&bench.data, &ready.truth, &answers);
    let mut outcome = ready.window(bench, &found, None)?;
    put_score(&mut outcome, &score);
    outcome.extra.insert(Metric::EfSearch, f64::from(high));
    outcome.facts.insert("ef_search: recall".to_owned(), tried.join(", "));
    Ok(outcome)
}

/// The recall that is surpassed with 95 % confidence, as far as the choice of queries goes.
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
}
