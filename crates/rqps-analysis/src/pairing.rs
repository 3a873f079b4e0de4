//! Ratios of targets to their baseline, over pairs that were measured in the same block: of one
//! session, of clusters of pairs, of the turns within a block.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Serialize;

use super::comparison::{
    Comparison, GroupSummary, Relative, Robust, RunFacts, StepComparison, TargetResult,
    TargetSummary,
};
use super::measurement::Measurement;
use super::verdict::Kind;
use rqps_model::benchmark::Group;
use rqps_model::build::{Dbms, Target};
use rqps_model::gate::{SittingScatter, parse_ledger};
use rqps_model::metric::Metric;
use rqps_model::run::TurnFacts;
use rqps_stats::moderated::Spread;
use rqps_stats::paired::{
    self, ClusterEstimate, HodgesLehmann, PairedMean, error_of_shares, hodges_lehmann,
    mean_interval,
};
use rqps_stats::summary::{mean, median, summarize};
use rqps_stats::{Interval, parallel, student};

/// Confidence of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// Fills in the ratios of all targets but the baseline.
pub(super) fn divide(runs: &[RunFacts], step: &mut StepComparison) {
    let pair_keys = |target: &TargetResult| -> Vec<(usize, PairKey<'_>)> {
        let key = |sample: &Measurement| pair_key(&runs[sample.run]);
        target.samples.iter().enumerate().map(|(i, sample)| (i, key(sample))).collect()
    };
    let Some((baseline, others)) = step.targets.split_first_mut() else { return };
    let baseline_keys: BTreeMap<PairKey<'_>, usize> =
        pair_keys(baseline).into_iter().map(|(index, key)| (key, index)).collect();
    for target in others {
        let pairs: Vec<(usize, usize)> = pair_keys(target)
            .into_iter()
            .filter_map(|(index, key)| baseline_keys.get(&key).map(|baseline| (*baseline, index)))
            .collect();
        let known: Vec<Metric> = target.metrics.keys().copied().collect();
        for metric in known {
            let relative = relative(metric, baseline, target, &pairs, runs);
            if let Some(result) = target.metrics.get_mut(&metric) {
                result.relative = relative;
            }
        }
    }
}

/// The key that two runs of a pair share: block, attempt, result set. Numbers come first, because
/// most blocks differ by them and texts take longer to compare.
pub type PairKey<'a> = (u32, u32, &'a str);

/// The key of a run.
pub fn pair_key(run: &RunFacts) -> PairKey<'_> {
    (run.key.block, run.key.attempt, &run.result_set)
}

fn relative(
    metric: Metric,
    baseline: &TargetResult,
    target: &TargetResult,
    places: &[(usize, usize)],
    runs: &[RunFacts],
) -> Option<Relative> {
    let value = |side: &TargetResult, index: usize| side.samples[index].get(metric);
    let values = |(b, t): &(usize, usize)| Some((value(baseline, *b)?, value(target, *t)?));
    let with_runs: Vec<(usize, (f64, f64))> =
        places.iter().filter_map(|at| Some((target.samples[at.1].run, values(at)?))).collect();
    let pairs: Vec<(f64, f64)> = with_runs.iter().map(|(_, pair)| *pair).collect();
    if pairs.is_empty() {
        let ratio = field_ratio(target.absolute(metric)?, baseline.absolute(metric)?);
        return Some(Relative::of_medians(ratio, 0));
    }
    if pairs.iter().any(|(baseline, target)| *baseline <= 0.0 || *target <= 0.0) {
        let bases: Vec<f64> = pairs.iter().map(|pair| pair.0).collect();
        let targets: Vec<f64> = pairs.iter().map(|pair| pair.1).collect();
        let ratio = field_ratio(median(&targets)?, median(&bases)?);
        return Some(Relative::of_medians(ratio, pairs.len()));
    }
    let differences: Vec<f64> =
        pairs.iter().map(|(baseline, target)| target.ln() - baseline.ln()).collect();
    let mean = mean_interval(&differences, CONFIDENCE)?;
    // The check costs n² per step: on the rate only, which is what verdicts rest on.
    let robust =
        if metric == Metric::Rate { hodges_lehmann(&differences, CONFIDENCE) } else { None };
    // exp(ln − ln) of one pair may differ from its quotient in the last bit, which moves what is
    // printed of a ratio that lies halfway between two decimals.
    let own = match pairs.as_slice() {
        [(baseline, target)] => target / baseline,
        _ => mean.mean.exp(),
    };
    let blocks: Vec<usize> = with_runs.iter().map(|(run, _)| *run).collect();
    let with_runs = || blocks.iter().map(|run| &runs[*run]).zip(differences.iter().copied());
    let of_sessions: Vec<(&str, f64)> =
        with_runs().map(|(run, difference)| (run.session.as_str(), difference)).collect();
    let sessions = pool_sessions(&of_sessions, CONFIDENCE);
    // Sessions have loads of their own, so what loads differ by is in what sessions differ by.
    let loads = match &sessions {
        Some(_) => None,
        None => {
            let of_load = |(run, difference): (&RunFacts, f64)| Some((run.load?, difference));
            let of_loads: Option<Vec<(u32, f64)>> = with_runs().map(of_load).collect();
            of_loads.and_then(|of_loads| pool_loads(&of_loads, CONFIDENCE))
        }
    };
    let pooled = match (&sessions, &loads) {
        (Some(sessions), _) => Some(sessions.ratio(CONFIDENCE)),
        (None, loads) => loads.as_ref().map(|loads| loads.ratio(CONFIDENCE)),
    };
    let (ratio, interval) = match pooled {
        Some((ratio, interval)) => (ratio, Some(interval)),
        None => (own, mean.interval.map(Interval::exp)),
    };
    Some(Relative {
        ratio,
        interval,
        sd_ln: mean.sd,
        pairs: mean.n,
        robust: robust.filter(|_| pooled.is_none()).and_then(robust_ratio),
        differences,
        block_errors: block_errors(baseline, target, places, metric),
        blocks,
        sessions,
        loads,
        judgement: None,
    })
}

/// The standard error of each pair by the shares of its window; empty if a pair has none, and for
/// other metrics than the rate.
fn block_errors(
    baseline: &TargetResult,
    target: &TargetResult,
    places: &[(usize, usize)],
    metric: Metric,
) -> Vec<f64> {
    if metric != Metric::Rate {
        return Vec::new();
    }
    fn shares(side: &TargetResult, index: usize) -> Option<&[(f64, u64)]> {
        Some(&side.samples[index].record.outcome.turns.as_ref()?.shares)
    }
    let error = |(b, t): &(usize, usize)| {
        error_of_shares(shares(baseline, *b)?, shares(target, *t)?).filter(|error| *error > 0.0)
    };
    places.iter().map(error).collect::<Option<Vec<f64>>>().unwrap_or_default()
}

fn robust_ratio(result: HodgesLehmann) -> Option<Robust> {
    let interval = result.interval?.exp();
    Some(Robust { ratio: result.estimate.exp(), interval })
}

/// The field's division: 0/0 is 1, x/0 is infinite.
pub fn field_ratio(target: f64, baseline: f64) -> f64 {
    match (target == 0.0, baseline == 0.0) {
        (true, true) => 1.0,
        (false, true) => f64::INFINITY,
        _ => target / baseline,
    }
}

// Summaries of the relative rate over the steps of a group.

/// True for steps whose relative rates enter group summaries and the geometric mean: not loads, not
/// steps that only warm or come before the writes, which the field leaves out since December 2024,
/// and not a choice among steps that count themselves. rqps itself leaves steps that only warm out
/// of a comparison; published tables have them, and the field strikes them out by hand.
pub fn is_summarized(step: &StepComparison) -> bool {
    matches!(step.group, Group::Point | Group::Range | Group::Write)
        && !step.is_choice()
        && step.parameters.purpose.is_result()
}

/// The relative rate of a target in a step, if both can be compared and one of them has a rate:
/// 0/0 is no ratio.
pub(super) fn relative_rate(step: &StepComparison, target: usize) -> Option<&Relative> {
    let rate = |place: usize| step.targets[place].absolute(Metric::Rate).unwrap_or(0.0);
    let relative = step.targets[target].comparable(Metric::Rate)?;
    (rate(0) > 0.0 || rate(target) > 0.0).then_some(relative)
}

/// Summaries of point, range and write, as far as there are steps: one for each number of clients.
pub fn summarize_groups(steps: &[StepComparison]) -> Vec<GroupSummary> {
    let groups = [Group::Point, Group::Range, Group::Write];
    let clients: BTreeSet<Option<u32>> = steps.iter().map(clients).collect();
    let pairs = groups.into_iter().flat_map(|group| clients.iter().map(move |it| (group, *it)));
    pairs.filter_map(|pair| summarize_group(steps, pair)).collect()
}

/// The number of clients of a step, where several were measured.
pub fn clients(step: &StepComparison) -> Option<u32> {
    step.client_count.as_ref().map(|count| count.clients)
}

fn summarize_group(
    steps: &[StepComparison],
    (group, of_clients): (Group, Option<u32>),
) -> Option<GroupSummary> {
    let is_of = |step: &&StepComparison| step.group == group && clients(step) == of_clients;
    let counted: Vec<&StepComparison> =
        steps.iter().filter(is_of).filter(|step| is_summarized(step)).collect();
    let labels = counted.first()?.targets.iter().skip(1).map(|target| target.label.clone());
    let targets = labels.enumerate().map(|(index, label)| {
        let ratios: Vec<f64> = counted
            .iter()
            .filter_map(|step| relative_rate(step, index + 1))
            .map(|relative| relative.ratio)
            .filter(|ratio| ratio.is_finite())
            .collect();
        TargetSummary { label, summary: summarize(&ratios) }
    });
    let targets = targets.collect();
    Some(GroupSummary { group, clients: of_clients, steps: counted.len(), targets })
}

// Pairs in clusters: the pairs of one session, or of one load, share a random effect, which is what
// clusters differ by beyond the scatter of their pairs.

/// Clusters and their pooled estimate. Logarithms are natural.
struct Clusters {
    /// The mean of each cluster.
    means: Vec<PairedMean>,
    /// Standard deviation between clusters, τ of the random effect.
    between_sd: f64,
    /// Standard deviation of a pair within its cluster, pooled; `None` if each has one pair.
    within_sd: Option<f64>,
    /// One value for each cluster: their mean and standard error are those of the pooled estimate,
    /// so that what judges lists of pairs judges clusters the same way.
    values: Vec<f64>,
}

/// The values of each key, in the order in which keys appear.
pub(super) fn by_key<K: PartialEq + Copy>(pairs: &[(K, f64)]) -> Vec<(K, Vec<f64>)> {
    let mut clusters: Vec<(K, Vec<f64>)> = Vec::new();
    for (key, difference) in pairs {
        match clusters.iter_mut().find(|(known, _)| known == key) {
            Some((_, list)) => list.push(*difference),
            None => clusters.push((*key, vec![*difference])),
        }
    }
    clusters
}

/// Pools clusters of ln ratios, each with a pair or more. `None` for fewer than two.
///
/// The variance of a cluster's mean is s²/n with s² pooled over the clusters, on Σ (n − 1) degrees
/// of freedom: clusters of few pairs do not show their own. Pooling is [`paired::pool`].
fn pool_clusters<K>(clusters: &[(K, Vec<f64>)], confidence: f64) -> Option<Clusters> {
    // Most comparisons have one, and pool nothing.
    if clusters.len() < 2 {
        return None;
    }
    let means: Vec<PairedMean> =
        clusters.iter().filter_map(|(_, list)| mean_interval(list, confidence)).collect();
    let squares = means.iter().map(|m| m.sd.unwrap_or(0.0).powi(2) * (m.n - 1) as f64);
    let df = means.iter().map(|m| m.n - 1).sum::<usize>();
    let within = squares.sum::<f64>() / df.max(1) as f64;
    let estimates: Vec<ClusterEstimate> = means
        .iter()
        .map(|m| ClusterEstimate { mean: m.mean, variance: within / m.n as f64 })
        .collect();
    let pooled = paired::pool(&estimates)?;
    let own: Vec<f64> = means.iter().map(|mean| mean.mean).collect();
    let values = with_moments(&own, pooled.mean, pooled.se);
    let within_sd = (df > 0).then(|| within.sqrt());
    Some(Clusters { means, between_sd: pooled.between.sqrt(), within_sd, values })
}

/// The ratio of pooled values with the t interval of their standard error on k − 1 degrees of
/// freedom.
pub(super) fn ratio(values: &[f64], confidence: f64) -> (f64, Interval) {
    let k = values.len() as f64;
    let mean = values.iter().sum::<f64>() / k;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let se = (squares / (k - 1.0) / k).sqrt();
    let half = student::quantile(0.5 + confidence / 2.0, k - 1.0) * se;
    (mean.exp(), Interval { low: mean - half, high: mean + half }.exp())
}

/// `list` moved and stretched, so that its mean is `mean` and its standard error is `se`.
fn with_moments(list: &[f64], mean: f64, se: f64) -> Vec<f64> {
    let k = list.len() as f64;
    let own = list.iter().sum::<f64>() / k;
    let squares: f64 = list.iter().map(|value| (value - own).powi(2)).sum();
    let sd = (squares / (k - 1.0)).sqrt();
    let stretch = if sd > 0.0 { se * k.sqrt() / sd } else { 0.0 };
    list.iter().map(|value| mean + (value - own) * stretch).collect()
}

// Pairs of several sessions: of several result sets, or of the hosts or sittings that measured
// blocks of one plan. What sessions differ by beyond the scatter of their pairs is a random effect. Pairs are of
// one block, so they never mix hosts.

/// One ratio as one session found it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionRatio {
    /// The result set, and the host and the sitting where it has several.
    #[serde(rename = "result_set")]
    pub session: String,
    /// exp(mean d) over its pairs.
    pub ratio: f64,
    /// The t interval of the session alone, 95 %, as a ratio; `None` for one pair.
    pub interval: Option<Interval>,
    /// Its pairs.
    pub pairs: usize,
}

/// One ratio over several sessions. Logarithms are natural.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sessions {
    /// One for each session with a pair, in the order of their runs.
    pub sessions: Vec<SessionRatio>,
    /// Standard deviation between sessions, τ of the random effect, of ln ratios.
    pub between_sd: f64,
    /// Standard deviation of a pair within its session, pooled over the sessions; `None` if each
    /// has one pair.
    pub within_sd: Option<f64>,
    /// One value for each session: their mean and standard error are those of the pooled estimate,
    /// so that what judges lists of pairs judges sessions the same way.
    #[serde(skip)]
    pub values: Vec<f64>,
}

/// Pools pairs (session, ln ratio). `None` if they are all of one session.
fn pool_sessions(pairs: &[(&str, f64)], confidence: f64) -> Option<Sessions> {
    let sets = by_key(pairs);
    let pooled = pool_clusters(&sets, confidence)?;
    let sessions = sets.iter().zip(&pooled.means).map(|((set, _), mean)| SessionRatio {
        session: (*set).to_owned(),
        ratio: mean.mean.exp(),
        interval: mean.interval.map(Interval::exp),
        pairs: mean.n,
    });
    let sessions = sessions.collect();
    let Clusters { between_sd, within_sd, values, .. } = pooled;
    Some(Sessions { sessions, between_sd, within_sd, values })
}

impl Sessions {
    /// The pooled ratio with the t interval of its standard error on k − 1 degrees of freedom.
    pub(super) fn ratio(&self, confidence: f64) -> (f64, Interval) {
        ratio(&self.values, confidence)
    }
}

// Pairs of blocks that share loads. What one load happens to give (page splits, file layout,
// statistics) is in all of its blocks, so the load is a random effect.

/// One ratio as the blocks of one load found it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadRatio {
    /// Number of the load, from 1.
    pub load: u32,
    /// exp(mean d) over its pairs.
    pub ratio: f64,
    /// Its pairs.
    pub pairs: usize,
}

/// One ratio over several loads. Logarithms are natural.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loads {
    /// One for each load with a pair, in the order of the blocks.
    pub loads: Vec<LoadRatio>,
    /// Standard deviation between loads, τ of the random effect, of ln ratios.
    pub between_sd: f64,
    /// One value for each load, with the mean and the standard error of the pooled estimate.
    #[serde(skip)]
    pub values: Vec<f64>,
}

/// Pools pairs (number of the load, ln ratio). `None` for a single load, which says nothing of the
/// next, and where each pair has a load of its own: then pairs are independent as they are.
pub fn pool_loads(pairs: &[(u32, f64)], confidence: f64) -> Option<Loads> {
    let by_load = by_key(pairs);
    if by_load.len() < 2 || by_load.len() == pairs.len() {
        return None;
    }
    let pooled = pool_clusters(&by_load, confidence)?;
    let of_load = by_load.iter().zip(&pooled.means).map(|((load, _), mean)| LoadRatio {
        load: *load,
        ratio: mean.mean.exp(),
        pairs: mean.n,
    });
    let loads = of_load.collect();
    Some(Loads { loads, between_sd: pooled.between_sd, values: pooled.values })
}

impl Loads {
    /// The pooled ratio with the t interval of its standard error on k − 1 degrees of freedom.
    pub(super) fn ratio(&self, confidence: f64) -> (f64, Interval) {
        ratio(&self.values, confidence)
    }
}

// Scatter of the ratio inside a block and between blocks, if targets took turns within a step. The
// block stays the unit of statistics; the scatter inside shows whether longer windows or more
// blocks would help.

/// Turns of one target and the first one in one step.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnScatter {
    /// Name of the step.
    pub step: String,
    /// Label of the target.
    pub label: String,
    /// Shortest length of a turn, milliseconds; the longest of all runs.
    pub slice_ms: f64,
    /// The state of the DBMS in the turns of others.
    pub waiting: &'static str,
    /// Turns of the target in a block, the fewest of all.
    pub turns: u32,
    /// Standard error of the ln ratio of a block by the shares of its window, the root mean square
    /// over the blocks; `None` where windows have one share.
    pub inside_ln: Option<f64>,
    /// Standard deviation of the ln ratio between blocks; `None` for fewer than two.
    pub between_ln: Option<f64>,
    /// Blocks in which both took turns.
    pub blocks: usize,
}

/// One entry for each step and target that took turns with the first target.
pub fn turn_scatter(comparison: &Comparison) -> Vec<TurnScatter> {
    let of_step = |step| -> Vec<TurnScatter> {
        let pairs = (1..comparison.targets.len()).filter_map(|place| {
            let target = comparison.targets.get(place)?.target.as_ref();
            let is_library = target.is_some_and(Target::is_in_client);
            one(&comparison.runs, step, (place, is_library))
        });
        pairs.collect()
    };
    parallel::map(comparison.steps.iter().collect(), of_step).into_iter().flatten().collect()
}

/// The share of the windows that belongs to no turn, because one target hands over to the next;
/// over all steps and blocks in which every target finished. `None` if no targets took turns.
pub fn share_between_turns(comparison: &Comparison) -> Option<f64> {
    let (mut between, mut windows) = (0.0, 0.0);
    for step in comparison.measured_steps() {
        let mut blocks: BTreeMap<PairKey<'_>, Window> = BTreeMap::new();
        for sample in step.targets.iter().flat_map(|target| &target.samples) {
            let outcome = &sample.record.outcome;
            // Windows of processes in turns do not begin together.
            if let Some(turns) = outcome.turns.as_ref().filter(|turns| !turns.shares.is_empty()) {
                let block = blocks.entry(pair_key(&comparison.runs[sample.run])).or_default();
                block.take(outcome.seconds, turns);
            }
        }
        for window in blocks.values().filter(|window| window.missing == 0) {
            between += window.seconds - window.own_seconds;
            windows += window.seconds;
        }
    }
    (windows > 0.0).then(|| between / windows)
}

/// Carry-over of a target: the effect of the turns of others, over all its steps and blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TargetCarryOver {
    /// Loss of rate in turns after those of others, compared with its own next turns: a share,
    /// below 0 for a gain.
    pub slower: f64,
    /// Standard error of that.
    pub error: f64,
}

/// The carry-over of each target: the mean over the pairs of turns of all steps; `None` for targets
/// without such pairs.
pub fn carry_over(comparison: &Comparison) -> Vec<Option<TargetCarryOver>> {
    let of_target = |target: usize| {
        let (mut pairs, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for step in comparison.measured_steps() {
            let samples = step.targets.get(target).map_or(&[][..], |target| &target.samples);
            let turns = samples.iter().filter_map(|sample| sample.record.outcome.turns.as_ref());
            for found in turns.filter_map(|turns| turns.carry_over) {
                let weight = f64::from(found.pairs);
                pairs += weight;
                sum += weight * found.mean_ln;
                squares += (weight * found.error_ln).powi(2);
            }
        }
        (pairs > 0.0).then(|| TargetCarryOver {
            slower: -(sum / pairs).exp_m1(),
            error: squares.sqrt() / pairs,
        })
    };
    (0..comparison.targets.len()).map(of_target).collect()
}

/// The window of a step in one block.
#[derive(Default)]
struct Window {
    /// To the end of the last turn.
    seconds: f64,
    /// Turns of all targets.
    own_seconds: f64,
    /// Targets that took turns and are not counted yet.
    missing: u32,
    counted: u32,
}

impl Window {
    fn take(&mut self, own_seconds: f64, turns: &TurnFacts) {
        self.seconds = self.seconds.max(turns.wall_seconds);
        self.own_seconds += own_seconds;
        self.counted += 1;
        self.missing = turns.targets.saturating_sub(self.counted);
    }
}

fn one<'a>(
    runs: &'a [RunFacts],
    step: &'a StepComparison,
    (target, is_library): (usize, bool),
) -> Option<TurnScatter> {
    let (first, other) = (step.targets.first()?, step.targets.get(target)?);
    let turns_of = |target: &'a TargetResult| {
        let facts = |sample: &'a Measurement| {
            Some((pair_key(&runs[sample.run]), sample.record.outcome.turns.as_ref()?))
        };
        target.samples.iter().filter_map(facts)
    };
    let baseline: BTreeMap<PairKey<'_>, &TurnFacts> = turns_of(first).collect();
    let pairs: Vec<[&TurnFacts; 2]> =
        turns_of(other).filter_map(|(key, own)| Some([*baseline.get(&key)?, own])).collect();
    let turns = pairs.iter().map(|[_, own]| own.turns).min()?;
    let error = |[a, b]: &[&TurnFacts; 2]| error_of_shares(&a.shares, &b.shares);
    let squares: Vec<f64> = pairs.iter().filter_map(error).map(|error| error * error).collect();
    let mean = squares.iter().sum::<f64>() / squares.len().max(1) as f64;
    Some(TurnScatter {
        step: step.name.clone(),
        label: other.label.clone(),
        slice_ms: pairs.iter().map(|[_, own]| own.slice_ms).fold(0.0, f64::max),
        waiting: match pairs.iter().any(|[_, own]| own.stopped) {
            true => "stopped",
            false if is_library => "with its client",
            false => "running",
        },
        turns,
        inside_ln: (!squares.is_empty()).then(|| mean.sqrt()),
        between_ln: other.relative(Metric::Rate).and_then(|relative| relative.sd_ln),
        blocks: pairs.len(),
    })
}

// What another sitting of such a host would find: the interval of one sitting, widened by what the
// ledger knows of the scatter between sittings.

/// The ledger that rqps ships. A unit test reads it.
static SHIPPED: LazyLock<Vec<SittingScatter>> =
    LazyLock::new(|| parse_ledger(include_str!("ledger.csv")).unwrap_or_default());

/// The DBMS of a target and its baseline, if it is one.
fn dbms_of(comparison: &Comparison, target: usize) -> Option<Dbms> {
    let dbms = |place: usize| Some(comparison.targets[place].target.as_ref()?.dbms);
    dbms(target).filter(|_| dbms(target) == dbms(0))
}

/// The class of the only host.
fn host_of(comparison: &Comparison) -> Option<String> {
    let mut classes = comparison.hosts.values().map(|host| host.class());
    classes.next().filter(|_| comparison.hosts.len() == 1)
}

/// The scatter between sittings: of this class of hosts where it is known, else of all.
fn known(comparison: &Comparison, dbms: Dbms, kind: Kind) -> Option<Spread> {
    let own = comparison.gates.values().flat_map(|gate| &gate.ledger);
    let all = SHIPPED.iter().chain(own);
    let lines: Vec<&SittingScatter> = all
        .filter(|line| line.dbms == dbms && line.kind == kind.name() && line.is_possible())
        .collect();
    let host = host_of(comparison);
    let here: Vec<&SittingScatter> =
        lines.iter().filter(|line| Some(&line.host) == host.as_ref()).copied().collect();
    let lines = if here.is_empty() { lines } else { here };
    let df: f64 = lines.iter().map(|line| line.df).sum();
    let squares: f64 = lines.iter().map(|line| line.df * line.sd.powi(2)).sum();
    (df > 0.0).then(|| Spread { sd: (squares / df).sqrt(), df })
}

/// Adds to each rate of a single sitting the interval of what another one would find.
///
/// This sitting and the other are both off by what the ledger knows, so the variance is
/// se² + 2 σ², on Satterthwaite's degrees of freedom.
pub(super) fn widen(comparison: &mut Comparison) {
    let first = comparison.runs.first().map(|run| run.session.clone());
    if comparison.runs.iter().any(|run| Some(&run.session) != first.as_ref()) {
        return;
    }
    let mut spreads = BTreeMap::new();
    for target in 1..comparison.targets.len() {
        let Some(dbms) = dbms_of(comparison, target) else { continue };
        for kind in [Kind::Reads, Kind::Writes, Kind::Loads] {
            spreads.extend(known(comparison, dbms, kind).map(|it| ((target, kind), it)));
        }
    }
    let confidence = comparison.rules.confidence;
    for step in &mut comparison.steps {
        let Some(kind) = Kind::of(step) else { continue };
        for (place, target) in step.targets.iter_mut().enumerate().skip(1) {
            let Some(between) = spreads.get(&(place, kind)) else { continue };
            let rate = target.metrics.get_mut(&Metric::Rate).and_then(|it| it.relative.as_mut());
            let Some(relative) = rate else { continue };
            let centre = relative.ratio.ln();
            let test = relative.judgement.as_mut().and_then(|judgement| judgement.test.as_mut());
            let Some(test) = test else { continue };
            let (own, other) = (test.se.powi(2), 2.0 * between.sd.powi(2));
            let df = (own + other).powi(2) / (own.powi(2) / test.df + other.powi(2) / between.df);
            let half = student::quantile(0.5 + confidence / 2.0, df) * (own + other).sqrt();
            let all = Interval { low: centre - half, high: centre + half }.exp();
            // What the host or layout adds to this sitting, it adds to the next.
            let this = test.interval;
            test.another_sitting =
                Some(Interval { low: all.low.min(this.low), high: all.high.max(this.high) });
        }
    }
}

/// The scatter between the sittings of one plan, a line for each DBMS and kind of step. Steps share
/// their sittings, so a line has as many degrees of freedom as one step. The same results give the
/// same lines.
pub fn measured(comparison: &Comparison) -> Vec<SittingScatter> {
    let (Some(host), Some(first)) = (host_of(comparison), comparison.runs.first()) else {
        return Vec::new();
    };
    let origin = format!("plan {} of {}", first.plan_hash, first.started);
    let mut found: BTreeMap<(Dbms, Kind), (Vec<f64>, usize)> = BTreeMap::new();
    for step in &comparison.steps {
        for target in 1..comparison.targets.len() {
            let (Some(kind), Some(dbms)) = (Kind::of(step), dbms_of(comparison, target)) else {
                continue;
            };
            let Some((variance, sittings)) = between(step, target) else { continue };
            let (variances, fewest) = found.entry((dbms, kind)).or_insert((Vec::new(), sittings));
            variances.push(variance);
            *fewest = sittings.min(*fewest);
        }
    }
    let line =
        |((dbms, kind), (variances, sittings)): ((Dbms, Kind), (Vec<f64>, usize))| SittingScatter {
            dbms,
            kind: kind.name().to_owned(),
            host: host.clone(),
            sd: mean(&variances).max(0.0).sqrt(),
            df: (sittings - 1) as f64,
            origin: format!("{sittings} sittings; steps: {}; {origin}", variances.len()),
        };
    found.into_iter().map(line).collect()
}

/// The moment estimate of the variance between the sittings of a step, which may be below 0, so that
/// the mean over steps is not biased; and their number.
fn between(step: &StepComparison, target: usize) -> Option<(f64, usize)> {
    let sessions = step.targets[target].relative(Metric::Rate)?.sessions.as_ref()?;
    let means: Vec<f64> = sessions.sessions.iter().map(|it| it.ratio.ln()).collect();
    let centre = mean(&means);
    let squares: f64 = means.iter().map(|it| (it - centre).powi(2)).sum();
    let pairs: Vec<f64> = sessions.sessions.iter().map(|it| 1.0 / it.pairs as f64).collect();
    let within = sessions.within_sd?.powi(2) * mean(&pairs);
    Some((squares / (means.len() - 1) as f64 - within, means.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{Judgement, judge_cluster_means};
    use rqps_model::datagen::rng::Rng;
    use rqps_model::verdict::{Rules, Verdict};
    use rqps_stats::paired::mean_interval;

    /// Box and Muller (1958).
    fn normal(rng: &mut Rng) -> f64 {
        (2.0 * rng.exponential()).sqrt() * (std::f64::consts::TAU * rng.unit()).cos()
    }

    #[test]
    fn one_session_is_not_pooled() {
        assert_eq!(pool_sessions(&[("a", 0.1), ("a", 0.2)], 0.95), None);
        assert_eq!(pool_sessions(&[], 0.95), None);
    }

    /// Balanced sessions: REML and HKSJ give the plain t over the means of the sessions.
    #[test]
    fn balanced_sessions_give_the_t_over_their_means() {
        let pairs = [("a", 0.00), ("a", 0.02), ("b", 0.09), ("b", 0.11), ("c", 0.04), ("c", 0.06)];
        let pooled = pool_sessions(&pairs, 0.95).unwrap();
        let (ratio, interval) = pooled.ratio(0.95);
        // Means .01, .10, .05: mean .16/3, variance .0020333, t(.975; 2) = 4.302653.
        assert!((ratio.ln() - 0.16 / 3.0).abs() < 1e-9, "{ratio}");
        let half = 4.302_652_7 * (0.006_1f64 / 3.0 / 3.0).sqrt();
        assert!((interval.high.ln() - (0.16 / 3.0 + half)).abs() < 1e-7, "{interval:?}");
        // Within: .0002 each, so .0001 of each mean.
        assert!((pooled.between_sd.powi(2) - (0.006_1 / 3.0 - 0.000_1)).abs() < 1e-9);
        let of_b = &pooled.sessions[1];
        assert_eq!((of_b.session.as_str(), of_b.pairs), ("b", 2));
        assert!((of_b.ratio - 0.1f64.exp()).abs() < 1e-12);
    }

    /// Sittings that all steps share shift by 1 %, blocks scatter by .45 %: what blocks promise is not
    /// kept (below .6 of their intervals hold the truth), what sittings promise is.
    #[test]
    fn the_interval_over_sittings_holds_the_truth() {
        let rules = Rules::default();
        let mut rng = Rng::new(43);
        for sittings in [3, 5] {
            let (mut held, mut by_blocks, mut any, mut total) = (0, 0, 0, 0);
            for _ in 0..1000 {
                let shifts: Vec<f64> = (0..sittings).map(|_| 0.01 * normal(&mut rng)).collect();
                let mut values = Vec::new();
                for _ in 0..6 {
                    let names = ["a", "b", "c", "d", "e"];
                    let pairs = names.iter().zip(&shifts).flat_map(|(name, shift)| {
                        [(); 4].map(|()| (*name, shift + 0.0045 * normal(&mut rng)))
                    });
                    let pairs: Vec<(&str, f64)> = pairs.collect();
                    let pooled = pool_sessions(&pairs, 0.95).unwrap();
                    let of_one: Vec<f64> = pairs[..4].iter().map(|pair| pair.1).collect();
                    let alone = mean_interval(&of_one, 0.95).unwrap().interval.unwrap();
                    let holds = |it: Interval, truth: f64| it.low <= truth && truth <= it.high;
                    held += usize::from(holds(pooled.ratio(0.95).1, 1.0));
                    by_blocks += usize::from(holds(alone, 0.0));
                    values.push(pooled.values);
                    total += 1;
                }
                let lists: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
                let judged = judge_cluster_means(&lists, &rules);
                let is_false =
                    |it: &Judgement| matches!(it.verdict, Verdict::Slower | Verdict::Faster);
                any += usize::from(judged.iter().any(is_false));
            }
            let share = |count: usize, of: usize| count as f64 / of as f64;
            assert!(share(held, total) >= 0.94, "{sittings}: {}", share(held, total));
            assert!(share(by_blocks, total) < 0.6, "{sittings}: {}", share(by_blocks, total));
            assert!(share(any, 1000) <= 0.05, "{sittings}: {}", share(any, 1000));
        }
    }

    /// A session that is quiet in itself and elsewhere the next time shows nothing for sure.
    #[test]
    fn two_sessions_that_disagree_are_wide() {
        let of = |set: &'static str, mean: f64| [-0.001, 0.0, 0.001].map(|d| (set, mean + d));
        let pairs: Vec<(&str, f64)> = [of("a", 0.0), of("b", 0.05)].concat();
        let (ratio, interval) = pool_sessions(&pairs, 0.95).unwrap().ratio(0.95);
        assert!((ratio.ln() - 0.025).abs() < 1e-9);
        // t(.975; 1) = 12.706205, standard error .025.
        assert!((interval.low.ln() - (0.025 - 12.706_205 * 0.025)).abs() < 1e-5, "{interval:?}");
    }

    #[test]
    fn a_single_load_and_a_load_for_each_pair_are_not_pooled() {
        assert_eq!(pool_loads(&[], 0.95), None);
        assert_eq!(pool_loads(&[(1, 0.1), (1, 0.2)], 0.95), None);
        assert_eq!(pool_loads(&[(1, 0.1), (2, 0.2), (3, 0.0)], 0.95), None);
    }

    /// Balanced loads: REML and HKSJ give the plain t over the means of the loads.
    #[test]
    fn balanced_loads_give_the_t_over_their_means() {
        let pairs = [(1, 0.00), (2, 0.09), (3, 0.04), (1, 0.02), (2, 0.11), (3, 0.06)];
        let pooled = pool_loads(&pairs, 0.95).unwrap();
        let (ratio, interval) = pooled.ratio(0.95);
        // Means .01, .10, .05: mean .16/3, variance .0020333, t(.975; 2) = 4.302653.
        assert!((ratio.ln() - 0.16 / 3.0).abs() < 1e-9, "{ratio}");
        let half = 4.302_652_7 * (0.006_1f64 / 3.0 / 3.0).sqrt();
        assert!((interval.high.ln() - (0.16 / 3.0 + half)).abs() < 1e-7, "{interval:?}");
        assert!((pooled.between_sd.powi(2) - (0.006_1 / 3.0 - 0.000_1)).abs() < 1e-9);
        let numbers: Vec<(u32, usize)> = pooled.loads.iter().map(|l| (l.load, l.pairs)).collect();
        assert_eq!(numbers, [(1, 2), (2, 2), (3, 2)]);
    }

    #[test]
    fn what_no_turn_holds_lies_between_turns() {
        let facts = |wall_seconds| TurnFacts { targets: 2, wall_seconds, ..TurnFacts::default() };
        let mut window = Window::default();
        window.take(1.0, &facts(1.98));
        assert_eq!(window.missing, 1, "a target that failed leaves turns that nobody counts");
        window.take(0.96, &facts(2.0));
        assert_eq!((window.missing, window.seconds), (0, 2.0));
        assert!((window.seconds - window.own_seconds - 0.04).abs() < 1e-12);
    }
}

#[cfg(test)]
mod ledger_tests {
    #[test]
    fn the_shipped_ledger_can_be_read() {
        let lines = rqps_model::gate::parse_ledger(include_str!("ledger.csv")).unwrap();
        assert!(lines.iter().all(|line| !line.origin.is_empty()));
    }
}
