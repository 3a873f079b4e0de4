//! One step in its family: the mean of its paired differences and what errors that mean has. A
//! test holds only if it holds with each of these errors.

use super::host::Widening;
use rqps_stats::Interval;
use rqps_stats::moderated::{Estimate, Prior, SD_MIN, Spread};
use rqps_stats::{student, summary};

/// Degrees of freedom of the error inside a block, at least: it averages many turns, so it is known
/// better than the scatter of two or three blocks.
const INSIDE_DF_MIN: f64 = 3.0;

/// The paired ln ratios of one step.
#[derive(Clone, Copy)]
pub(super) struct PairList<'a> {
    pub differences: &'a [f64],
    /// The standard error of each difference inside its block; empty where it is not known.
    pub block_errors: &'a [f64],
}

impl PairList<'_> {
    /// The root mean square of the errors inside the first `most` blocks.
    fn block_error(&self, most: usize) -> Option<f64> {
        let errors = self.block_errors.get(..self.differences.len().min(most))?;
        let squares: f64 = errors.iter().map(|error| error * error).sum();
        Some((squares / errors.len() as f64).sqrt()).filter(|error| *error > 0.0)
    }
}

/// One step with two pairs or more, at some look.
#[derive(Clone, Copy)]
pub(super) struct Member {
    /// The mean of its differences.
    pub mean: f64,
    /// By the scatter of the blocks: moderated, and at least that of the host.
    blocks: Estimate,
    /// By the error inside a block, where it is known. The turns inside the blocks alone make them
    /// scatter by this error; a few blocks that agree better are luck.
    inside: Option<Estimate>,
    /// Standard deviation of one pair's difference: the larger of both.
    pub sd: f64,
    pub pairs: usize,
}

impl Member {
    /// The mean with each of its errors.
    pub(super) fn estimates(&self) -> impl Iterator<Item = &Estimate> {
        [&self.blocks].into_iter().chain(&self.inside)
    }

    /// The estimate with the widest interval of 95 %.
    pub(super) fn widest(&self) -> &Estimate {
        let half = |it: &Estimate| student::quantile(0.975, it.df) * it.se;
        self.inside
            .as_ref()
            .filter(|inside| half(inside) > half(&self.blocks))
            .unwrap_or(&self.blocks)
    }

    /// As [`Estimate::p_beyond`].
    pub(super) fn p_beyond(&self, threshold: f64) -> f64 {
        self.estimates().map(|it| it.p_beyond(threshold)).fold(0.0, f64::max)
    }

    /// As [`Estimate::tails_beyond`].
    pub(super) fn tails_beyond(&self, threshold: f64) -> (f64, f64) {
        let tails = self.estimates().map(|it| it.tails_beyond(threshold));
        tails.fold((0.0, 0.0), |(near, far), tails| (tails.0.max(near), tails.1.max(far)))
    }

    /// As [`Estimate::p_within`].
    pub(super) fn p_within(&self, limit: f64) -> f64 {
        self.estimates().map(|it| it.p_within(limit)).fold(0.0, f64::max)
    }

    /// As [`Estimate::interval_beyond`]. All intervals have the same centre.
    pub(super) fn interval_beyond(&self, tail: f64) -> Interval {
        let none = Interval { low: self.mean, high: self.mean };
        self.estimates().map(|it| it.interval_beyond(tail)).fold(none, |widest, it| Interval {
            low: widest.low.min(it.low),
            high: widest.high.max(it.high),
        })
    }
}

/// Means over the first `most` pairs of each list. Their errors are moderated, and at least those
/// of the host and those inside a block. A list with no variance, of its own or borrowed, is not a
/// member: copies of one measurement would prove any difference.
///
/// If all steps took turns, they share the ratio of their variance to the square of their error
/// inside a block, because this ratio varies less from step to step than the variance.
pub(super) fn members(
    lists: &[PairList<'_>],
    most: usize,
    host: &Widening,
) -> (Vec<Option<Member>>, Option<Prior>) {
    let own = |list: &PairList<'_>| -> Option<(f64, Spread, usize)> {
        let mut sorted = list.differences[..list.differences.len().min(most)].to_vec();
        // Sums in sorted order: the same pairs in any order give the same bits.
        sorted.sort_by(f64::total_cmp);
        let sd = summary::stddev(&sorted)?;
        let sd = if sd < SD_MIN { 0.0 } else { sd };
        let df = (sorted.len() - 1) as f64;
        Some((summary::mean(&sorted), Spread { sd, df }, sorted.len()))
    };
    let own: Vec<Option<(f64, Spread, usize)>> = lists.iter().map(own).collect();
    let scales = scales(lists, &own, most);
    let scaled = |(own, scale): (&Option<(f64, Spread, usize)>, &f64)| {
        own.map(|(_, spread, _)| Spread { sd: spread.sd / scale, ..spread })
    };
    let spreads: Vec<Spread> = own.iter().zip(&scales).filter_map(scaled).collect();
    let prior = Prior::fit(&spreads);
    let member = |(own, list, scale): (Option<(f64, Spread, usize)>, &PairList<'_>, f64)| {
        let (mean, spread, pairs) = own?;
        let moderate = |prior: Prior| {
            let moderated = prior.moderate(Spread { sd: spread.sd / scale, ..spread });
            Spread { sd: moderated.sd * scale, ..moderated }
        };
        let moderated = prior.map_or(spread, moderate);
        let estimate = |spread: Spread| {
            let se = host.se(spread.sd / (pairs as f64).sqrt(), pairs);
            Estimate { mean, se, df: spread.df }
        };
        let inside = list.block_error(most);
        let inside = inside.map(|sd| Spread { sd, df: moderated.df.max(INSIDE_DF_MIN) });
        let sd = moderated.sd.max(inside.map_or(0.0, |inside| inside.sd)).max(host.pair_sd);
        let (blocks, inside) = (estimate(moderated), inside.map(estimate));
        (moderated.sd > 0.0).then_some(Member { mean, blocks, inside, sd, pairs })
    };
    let members = own.into_iter().zip(lists).zip(scales);
    (members.map(|((own, list), scale)| member((own, list, scale))).collect(), prior)
}

/// The divisors of standard deviations before the steps share their variance: the error inside a
/// block if it is known for all members, else 1.
fn scales<T>(lists: &[PairList<'_>], own: &[Option<T>], most: usize) -> Vec<f64> {
    let scale = |(list, own): (&PairList<'_>, &Option<T>)| match own {
        Some(_) => list.block_error(most),
        None => Some(1.0),
    };
    let known: Option<Vec<f64>> = lists.iter().zip(own).map(scale).collect();
    known.unwrap_or_else(|| vec![1.0; lists.len()])
}
