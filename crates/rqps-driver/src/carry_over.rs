//! Carry-over: how much the turns of other targets slow down a target. Of two turns in a row, only
//! the first follows a turn of another target.

use rqps_model::run::{CarryOver, Turn};
use rqps_stats::summary::{mean, stddev};

/// Fewer pairs tell nothing.
const PAIRS_MIN: usize = 10;

/// The turns of one target, in their order.
pub(super) fn carry_over(turns: &[Turn]) -> Option<CarryOver> {
    let ln_rate = |turn: &Turn| (turn.events as f64 / turn.ms).ln();
    let follows = |turn: &Turn, other: &Turn| other.turn == turn.turn + 1;
    let pairs = turns.windows(3).filter_map(|three| match three {
        [before, first, second] if !follows(before, first) && follows(first, second) => {
            Some(ln_rate(first) - ln_rate(second)).filter(|difference| difference.is_finite())
        }
        _ => None,
    });
    let pairs: Vec<f64> = pairs.collect();
    if pairs.len() < PAIRS_MIN {
        return None;
    }
    let error_ln = stddev(&pairs)? / (pairs.len() as f64).sqrt();
    Some(CarryOver { pairs: pairs.len() as u32, mean_ln: mean(&pairs), error_ln })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns of the target whose places in an order of A and B are those of `A`.
    fn turns(order: &str, events: impl Fn(bool) -> u64) -> Vec<Turn> {
        let order = order.as_bytes();
        let own = (0..order.len()).filter(|place| order[*place] == b'A');
        let turn = |place: usize| {
            let after_other = place > 0 && order[place - 1] != b'A';
            Turn { turn: place as u32, start_ms: 0.0, ms: 20.0, events: events(after_other) }
        };
        own.map(turn).collect()
    }

    #[test]
    fn only_the_first_of_two_turns_follows_another_target() {
        let found = carry_over(&turns(&"ABBA".repeat(50), |after| if after { 98 } else { 100 }));
        let found = found.expect("49 pairs");
        assert_eq!(found.pairs, 49);
        assert!((found.mean_ln - 0.98_f64.ln()).abs() < 1e-12, "{found:?}");
        assert!(found.error_ln < 1e-12, "{found:?}");
    }

    #[test]
    fn turns_without_pairs_or_events_tell_nothing() {
        assert_eq!(carry_over(&turns(&"AB".repeat(50), |_| 100)), None);
        assert_eq!(carry_over(&turns(&"ABBA".repeat(50), |_| 0)), None);
        assert_eq!(carry_over(&[]), None);
    }
}
