//! One step in its family: the mean of its paired differences and what errors that mean has. A
//! test holds only if it holds with each of these errors.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::host::Widening;
use crate::comparison::StepComparison;
use rqps_model::benchmark::Group;
use rqps_stats::Interval;
use rqps_stats::moderated::{Estimate, Prior, SD_MIN, Spread, TESTS_MIN};
use rqps_stats::{correlation, student, summary};

/// Degrees of freedom of the error inside a block, at least: it averages many turns, so it is known
/// better than the scatter of two or three blocks.
const INSIDE_DF_MIN: f64 = 3.0;

/// Fewer pairs do not show that blocks follow each other.
const MEMORY_PAIRS: usize = 4;

/// The paired ln ratios of one step.
#[derive(Clone, Copy)]
pub(super) struct PairList<'a> {
    pub differences: &'a [f64],
    /// The standard error of each difference inside its block; empty where it is not known.
    pub block_errors: &'a [f64],
    /// The run of each difference, so that steps know what they share; empty to take the first of
    /// all lists as one block, and so on.
    pub blocks: &'a [usize],
    /// The steps that share their variance; `None` for a step that stands alone.
    pub kind: Option<Kind>,
    /// What the step may be off by beside the scatter of its pairs.
    pub offset: Option<Spread>,
}

/// Kinds of noise. A kind never lends its variance to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Steps that only read.
    Reads,
    /// Steps that write.
    Writes,
    /// Loads and indexing.
    Loads,
}

impl Kind {
    /// The kind of a step; `None` for one that repeats the pairs of measured ones.
    pub fn of(step: &StepComparison) -> Option<Kind> {
        (!step.is_choice()).then_some(match step.group {
            Group::Load => Kind::Loads,
            Group::Write => Kind::Writes,
            _ => Kind::Reads,
        })
    }

    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Reads => "reads",
            Kind::Writes => "writes",
            Kind::Loads => "loads",
        }
    }
}

impl<'a> PairList<'a> {
    /// Differences of which nothing else is known.
    pub(super) fn of(differences: &'a [f64]) -> PairList<'a> {
        let kind = Some(Kind::Reads);
        PairList { differences, block_errors: &[], blocks: &[], kind, offset: None }
    }
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
    /// Degrees of freedom that other steps lend.
    pub df_lent: f64,
    /// The correlation of a block with the next one, where it was shown; else 0.
    pub memory: f64,
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

    /// The step with one more error of a known standard deviation, by Satterthwaite's degrees of
    /// freedom.
    pub(super) fn with_error(&self, sd: f64) -> Member {
        let add = |it: Estimate| it.with_error(sd);
        Member { blocks: add(self.blocks), inside: self.inside.map(add), ..*self }
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

/// The mean and the scatter of one list, where it has two pairs or more and a scatter.
#[derive(Clone, Copy)]
struct Own {
    mean: f64,
    spread: Spread,
    pairs: usize,
    /// Divisor of the standard deviation before steps share it.
    scale: f64,
    /// As [`Member::memory`].
    memory: f64,
}

/// Means over the first `most` pairs of each list, and the variance that each kind shares. Their
/// errors are moderated, and at least those of the host and those inside a block. A list with no
/// variance is not a member: copies of one measurement would prove any difference.
///
/// If all steps of a kind took turns, they share the ratio of their variance to the square of their
/// error inside a block, because this ratio varies less from step to step than the variance.
pub(super) fn members(
    lists: &[PairList<'_>],
    most: usize,
    host: &Widening,
) -> (Vec<Option<Member>>, Vec<(Kind, Prior)>) {
    let memory = memory(lists, most);
    let mut own: Vec<Option<Own>> = lists.iter().map(|list| own(list, most, memory)).collect();
    let kinds: BTreeSet<Kind> = lists.iter().filter_map(|list| list.kind).collect();
    let mut priors = Vec::new();
    for kind in kinds {
        let of_kind = |at: &usize| lists[*at].kind == Some(kind) && own[*at].is_some();
        let places: Vec<usize> = (0..lists.len()).filter(of_kind).collect();
        // A common effect moves all variances alike, so they tell nothing of each other.
        if moves_together(&places.iter().map(|at| lists[*at]).collect::<Vec<_>>(), most) {
            continue;
        }
        let errors: Option<Vec<f64>> =
            places.iter().map(|at| lists[*at].block_error(most)).collect();
        for (at, error) in places.iter().zip(errors.unwrap_or_default()) {
            own[*at].iter_mut().for_each(|own| own.scale = error);
        }
        let spreads: Vec<Spread> =
            places.iter().filter_map(|at| own[*at].as_ref()).map(Own::scaled).collect();
        priors.extend(Prior::robust(&spreads).map(|prior| (kind, prior)));
    }
    let member = |(own, list): (Option<Own>, &PairList<'_>)| {
        let own = own?;
        let prior = priors.iter().find(|(kind, _)| list.kind == Some(*kind));
        Some(own.member(prior.map(|(_, prior)| prior), list, most, host))
    };
    (own.into_iter().zip(lists).map(member).collect(), priors)
}

fn own(list: &PairList<'_>, most: usize, memory: f64) -> Option<Own> {
    let differences = &list.differences[..list.differences.len().min(most)];
    let mut sorted = differences.to_vec();
    // Sums in sorted order: the same pairs in any order give the same bits.
    sorted.sort_by(f64::total_cmp);
    let sd = summary::stddev(&sorted).filter(|sd| *sd >= SD_MIN)?;
    let spread = if memory > 0.0 {
        correlation::spread(differences, memory)
    } else {
        Spread { sd, df: (sorted.len() - 1) as f64 }
    };
    Some(Own { mean: summary::mean(&sorted), spread, pairs: sorted.len(), scale: 1.0, memory })
}

impl Own {
    fn scaled(&self) -> Spread {
        Spread { sd: self.spread.sd / self.scale, ..self.spread }
    }

    fn member(
        &self,
        prior: Option<&Prior>,
        list: &PairList<'_>,
        most: usize,
        host: &Widening,
    ) -> Member {
        let Own { mean, spread, pairs, scale, memory } = *self;
        let moderated = prior.map_or(spread, |prior| {
            let moderated = prior.moderate(self.scaled());
            Spread { sd: moderated.sd * scale, ..moderated }
        });
        let estimate = |spread: Spread| {
            let se = host.se(spread.sd / (pairs as f64).sqrt(), pairs);
            match list.offset {
                Some(offset) => {
                    Estimate { mean, se: se.hypot(offset.sd), df: spread.df.min(offset.df) }
                }
                None => Estimate { mean, se, df: spread.df },
            }
        };
        let inside = list.block_error(most);
        let inside = inside.map(|sd| Spread { sd, df: moderated.df.max(INSIDE_DF_MIN) });
        let sd = moderated.sd.max(inside.map_or(0.0, |inside| inside.sd)).max(host.pair_sd);
        let (blocks, inside) = (estimate(moderated), inside.map(estimate));
        let df_lent = moderated.df - spread.df;
        Member { mean, blocks, inside, sd, pairs, df_lent, memory }
    }
}

/// The correlation of a block's difference with the next one's, over four or more steps; 0 if it
/// is not shown.
fn memory(lists: &[PairList<'_>], most: usize) -> f64 {
    let long = |list: &&PairList<'_>| {
        list.kind.is_some() && list.differences.len().min(most) >= MEMORY_PAIRS
    };
    let lists: Vec<PairList<'_>> = lists.iter().filter(long).copied().collect();
    if lists.len() < TESTS_MIN {
        return 0.0;
    }
    let series: Vec<&[f64]> =
        lists.iter().map(|it| &it.differences[..it.differences.len().min(most)]).collect();
    correlation::shared(&series, moves_together(&lists, most))
}

/// True if the steps move together from block to block by more than each scatters by itself: the
/// variance of the median step exceeds the typical variance of a step around it.
fn moves_together(lists: &[PairList<'_>], most: usize) -> bool {
    let mut blocks: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let deviations = |list: &PairList<'_>| -> Vec<(usize, f64)> {
        let differences = &list.differences[..list.differences.len().min(most)];
        let mean = summary::mean(differences);
        let block = |at: usize| list.blocks.get(at).copied().unwrap_or(at);
        differences.iter().enumerate().map(|(at, d)| (block(at), d - mean)).collect()
    };
    let all: Vec<Vec<(usize, f64)>> = lists.iter().map(deviations).collect();
    for (block, deviation) in all.iter().flatten() {
        blocks.entry(*block).or_default().push(*deviation);
    }
    let common: BTreeMap<usize, f64> = blocks
        .into_iter()
        .filter_map(|(block, deviations)| Some((block, summary::median(&deviations)?)))
        .collect();
    let alone = all.iter().filter_map(|list| {
        let rest: Vec<f64> = list.iter().map(|(block, d)| d - common[block]).collect();
        Some(summary::stddev(&rest)?.powi(2))
    });
    let alone = summary::median(&alone.collect::<Vec<_>>()).unwrap_or(0.0);
    let together = summary::stddev(&common.into_values().collect::<Vec<_>>()).unwrap_or(0.0);
    lists.len() > 1 && together.powi(2) > alone
}
