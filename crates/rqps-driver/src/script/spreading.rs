//! Distributions of whole numbers over a range.

use rqps_model::datagen::distribution::{
    Permutation, Zipfian, cut_gaussian, exponential, pareto, special,
};
use rqps_model::datagen::rng::Rng;
use rqps_model::value_source::ValueSpread;

/// A distribution over 0..=span.
pub(super) enum Spreading {
    Uniform,
    Zipfian(Zipfian, Option<Permutation>),
    Pareto(f64),
    Special,
    Gaussian(f64),
    Exponential(f64),
}

impl Spreading {
    pub(super) fn of(spread: ValueSpread, span: u64) -> Spreading {
        match spread {
            ValueSpread::Uniform => Spreading::Uniform,
            ValueSpread::Zipfian { exponent, scramble } => {
                let n = span.saturating_add(1);
                // The key is fixed: a hot value is the same for all clients, steps and targets.
                let permutation = scramble.then(|| Permutation::new(n, 1));
                Spreading::Zipfian(Zipfian::new(n, exponent), permutation)
            }
            ValueSpread::Pareto { h } => Spreading::Pareto(h),
            ValueSpread::Special => Spreading::Special,
            ValueSpread::Gaussian { parameter } => Spreading::Gaussian(parameter),
            ValueSpread::Exponential { parameter } => Spreading::Exponential(parameter),
        }
    }

    /// Draws a value of 0..=span.
    pub(super) fn draw(&self, rng: &mut Rng, span: u64) -> u64 {
        match self {
            Spreading::Uniform => rng.below(span.wrapping_add(1)),
            Spreading::Zipfian(zipfian, permutation) => {
                let rank = zipfian.draw(rng) - 1;
                permutation.map_or(rank, |permutation| permutation.apply(rank))
            }
            Spreading::Pareto(h) => pareto(rng, 0, span, *h),
            Spreading::Special => special(rng, 0, span),
            Spreading::Gaussian(cut) => cut_gaussian(rng, span, *cut),
            Spreading::Exponential(steepness) => exponential(rng, span, *steepness),
        }
    }
}
