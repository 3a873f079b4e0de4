//! `rqps bisect`: measures versions between two until it is known which of them changed a step.

mod versions;

pub use versions::versions;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::campaign::bisect::versions::{Choice, CountedEnds, choose, level, lost_end};
use crate::campaign::{self, Stopped, compared, is_fault_of, step, unless_stopped};
use crate::lab::{self, Event, ExecutionOptions};
use crate::plan::file::PlanError;
use crate::plan::{Blocks, CountingPass, Plan, PlanDraft};
use rqps_analysis::comparison::{Comparison, StepComparison};
use rqps_analysis::history::{Bisection, BisectionCost, Culprit, CulpritCheck, VersionFacts};
use rqps_analysis::pairing::CONFIDENCE;
use rqps_builds as obtain;
use rqps_builds::{Cache, ObtainError, PackageClients, Reason, Said};
use rqps_model::bisection::{
    BisectionEntry, BisectionMeasurement, BisectionPass, BisectionRequest,
};
use rqps_model::metric::Metric;
use rqps_results::BisectionFolder;
use rqps_stats::Interval;
use rqps_stats::bisection::{
    EndsDifference, ExactRules, ExactSearch, ExactStep, Jump, NoisyRules, NoisySearch, NoisyStep,
    Suspects,
};
use rqps_stats::moderated::Estimate;
use rqps_stats::summary::mean;

// The loop of a bisection: asks the mathematics which version is next, measures it, and checks
// what was found on fresh blocks.

/// Changes below this share of the difference between the ends are left alone.
const SHARE_LEAST: f64 = 0.25;
/// Changes that are checked on fresh blocks.
const CHECKS_MOST: usize = 3;
/// Blocks of a check.
const CHECK_BLOCKS: u32 = 6;
/// Counts of a pair for its functions.
const PAIR_COUNTS: u32 = 3;
/// Functions named of a change.
const FUNCTIONS_MOST: usize = 5;
/// Blocks that are measured at once of one version: servers start anew for each measurement.
const BLOCKS_AT_ONCE: u32 = 4;
/// Blocks of one search at most.
const BLOCKS_MOST: usize = 400;

/// Searches for the versions that changed a step. The plan of `options` has the ends as targets.
/// `None` if the user stopped it; it can be resumed.
///
/// # Errors
/// An end cannot be measured; what makes every measurement impossible.
pub fn bisect(
    options: &ExecutionOptions,
    folder: BisectionFolder,
    events: &mut dyn FnMut(Event),
) -> Result<Option<Bisection>> {
    unless_stopped(search(&mut Measuring::new(options, folder, events)))
}

fn search(measuring: &mut Measuring<'_>) -> Result<Bisection> {
    let versions = measuring.request.versions.len();
    let able = measuring.request.versions.iter().skip(1).filter(|it| it.mass > 0.0).count();
    measuring.note(format!(
        "{versions} versions, {able} of which may have changed the step; measuring the ends first"
    ));
    let choice = choose(measuring)?;
    measuring.note(format!("searching by {}: {}", choice.metric.name(), choice.reason));
    match choice.counts {
        Some(ends) => by_counts(measuring, &choice, ends),
        None => by_blocks(measuring, &choice),
    }
}

fn masses(measuring: &Measuring<'_>) -> Vec<f64> {
    measuring.request.versions.iter().map(|version| version.mass).collect()
}

/// Searches by counted instructions.
fn by_counts(
    measuring: &mut Measuring<'_>,
    choice: &Choice,
    counted: CountedEnds,
) -> Result<Bisection> {
    let mass = masses(measuring);
    let last = mass.len() - 1;
    let counts = counts_of(choice.metric).unwrap_or(1);
    let rules = ExactRules { same_within: counted.same_within, share_least: SHARE_LEAST };
    let mut search = ExactSearch::new(&mass, rules);
    search.record(0, counted.first);
    search.record(last, counted.last);
    let ends = Ends { ln: counted.last - counted.first, interval: None };
    let seconds = seconds_of(measuring, BisectionPass::Count);
    measuring.note(format!(
        "at most {} more versions for one change; a version took {seconds:.0} s so far",
        search.left_for_one()
    ));
    let jumps = loop {
        match search.next_step() {
            ExactStep::Measure(place) => {
                match measuring.ask(BisectionPass::Count, &[place], counts)? {
                    Asked::Values(measured) => match measured.values.get(choice.metric.name()) {
                        Some(values) => search.record(place, level(choice.metric, values)),
                        None => bail!("bisect: {} has no counts", measured.folder),
                    },
                    Asked::Lost(place) => search.lose(place),
                }
            }
            ExactStep::NotReproduced(_) => return Ok(outcome(measuring, choice, ends, None)),
            ExactStep::Done(jumps) => break jumps,
        }
    };
    let mut culprits = Vec::new();
    for (at, jump) in jumps.iter().enumerate() {
        let mut culprit = of_jump(jump, ends);
        if at < CHECKS_MOST {
            culprit.functions = functions(measuring, &culprit, choice.metric)?;
            culprit.check = check(measuring, &culprit, Metric::Rate)?;
        }
        culprits.push(culprit);
    }
    Ok(outcome(measuring, choice, ends, Some(culprits)))
}

fn of_jump(jump: &Jump, ends: Ends) -> Culprit {
    let each = 1.0 / jump.suspects.len().max(1) as f64;
    Culprit {
        suspects: jump.suspects.iter().map(|place| (*place, each)).collect(),
        after: jump.after,
        at: jump.at,
        ratio: jump.difference.exp(),
        share: jump.difference / ends.ln,
        check: None,
        functions: Vec::new(),
    }
}

/// Searches by values that scatter, in blocks against the baseline. Where the change that was found
/// is not the whole difference, both sides of it are searched, too.
fn by_blocks(measuring: &mut Measuring<'_>, choice: &Choice) -> Result<Bisection> {
    let last = measuring.request.versions.len() - 1;
    let seconds = seconds_of(measuring, BisectionPass::Rate);
    measuring.note(format!(
        "a measurement of {BLOCKS_AT_ONCE} blocks took about {seconds:.0} s so far; large \
         differences need 20 to 40 blocks, small ones some hundred"
    ));
    let mut culprits: Vec<Culprit> = Vec::new();
    let mut whole: Option<Ends> = None;
    let mut ranges = vec![(0, last)];
    while let Some((first, last)) = ranges.pop() {
        let (ends, found) = in_range(measuring, choice, (first, last))?;
        let Some(suspects) = found else {
            if whole.is_none() {
                return Ok(outcome(measuring, choice, ends, None));
            }
            continue;
        };
        let whole = *whole.get_or_insert(ends);
        if (ends.ln / whole.ln).abs() < SHARE_LEAST {
            continue;
        }
        let mut culprit = of_suspects(measuring, &suspects, first);
        if culprits.len() < CHECKS_MOST {
            culprit.check = check(measuring, &culprit, choice.metric)?;
        }
        let ratio = culprit.check.as_ref().map_or(ends.ln.exp(), |check| check.ratio);
        (culprit.ratio, culprit.share) = (ratio, ratio.ln() / whole.ln);
        let rest = ends.ln - ratio.ln();
        if (rest / whole.ln).abs() >= SHARE_LEAST && culprits.len() + 1 < CHECKS_MOST {
            measuring
                .note("the change is not the whole difference: searching on both sides".into());
            let sides = [(first, culprit.after), (culprit.at, last)];
            ranges.extend(sides.into_iter().filter(|(first, last)| first < last));
        }
        culprits.push(culprit);
    }
    let ends = whole.unwrap_or(Ends { ln: 0.0, interval: None });
    culprits.sort_by(|a, b| b.share.abs().total_cmp(&a.share.abs()));
    Ok(outcome(measuring, choice, ends, Some(culprits)))
}

/// Searches a range by blocks against its first version. Places of what it finds count from the
/// first version of all.
fn in_range(
    measuring: &mut Measuring<'_>,
    choice: &Choice,
    (first, last): (usize, usize),
) -> Result<(Ends, Option<Suspects>)> {
    let rules = measuring.request.rules;
    let rules = NoisyRules {
        layout_sd: rules.layout_sd(),
        against_first: true,
        least: rules.delta / 2.0,
        runs_most: BLOCKS_MOST,
        ..NoisyRules::default()
    };
    let mut search = NoisySearch::new(&masses(measuring)[first..=last], rules);
    if (first, last) == (0, measuring.request.versions.len() - 1) {
        choice.blocks.iter().for_each(|value| search.record(last, *value));
    }
    loop {
        match search.next_step() {
            NoisyStep::Measure(place) => {
                let pair = [first, first + place];
                match measuring.ask(BisectionPass::Rate, &pair, BLOCKS_AT_ONCE)? {
                    Asked::Values(measured) => {
                        let values = measured.values.get(choice.metric.name());
                        let Some(values) = values else {
                            bail!("bisect: {} lacks {}", measured.folder, choice.metric.name())
                        };
                        values.iter().for_each(|value| search.record(place, *value));
                    }
                    Asked::Lost(lost) if [first, last].contains(&lost) => {
                        return Err(lost_end(measuring, lost));
                    }
                    Asked::Lost(lost) => search.lose(lost - first),
                }
            }
            NoisyStep::NotReproduced(ends) => {
                return Ok((Ends::of(ends), None));
            }
            NoisyStep::Done(mut found) => {
                let ends = Ends::of(found.ends);
                found.best += first;
                found.set.iter_mut().for_each(|suspect| suspect.0 += first);
                return Ok((ends, Some(found)));
            }
        }
    }
}

/// The culprit with its neighbours that can be measured.
fn of_suspects(measuring: &Measuring<'_>, found: &Suspects, first: usize) -> Culprit {
    let lost = |place: usize| measuring.lost(place).next().is_some();
    let count = measuring.request.versions.len();
    let after = (first..found.best).rev().find(|place| !lost(*place)).unwrap_or(first);
    let at = (found.best..count).find(|place| !lost(*place)).unwrap_or(found.best);
    Culprit {
        suspects: found.set.clone(),
        after,
        at,
        ratio: 1.0,
        share: 0.0,
        check: None,
        functions: Vec::new(),
    }
}

/// The verdict on fresh blocks of the versions before and after a change.
fn check(
    measuring: &mut Measuring<'_>,
    culprit: &Culprit,
    metric: Metric,
) -> Result<Option<CulpritCheck>> {
    let pair = [culprit.after, culprit.at];
    measuring.note("checking the change on fresh blocks".to_owned());
    let Asked::Values(measured) = measuring.ask(BisectionPass::Check, &pair, CHECK_BLOCKS)? else {
        return Ok(None);
    };
    let comparison = measuring.comparison(&measured.folder)?;
    let step = step(&comparison, &measuring.request.step)?;
    let relative = step.targets.last().and_then(|target| target.comparable(metric));
    let judged = relative.and_then(|relative| Some((relative, relative.judgement.as_ref()?)));
    Ok(judged.map(|(relative, judgement)| CulpritCheck {
        metric: metric.name().to_owned(),
        ratio: mean(&relative.differences).exp(),
        interval: relative.interval,
        verdict: judgement.verdict,
        pairs: relative.pairs,
        folder: measured.folder.clone(),
    }))
}

/// The functions that changed most, of the threads that the metric counts.
fn functions(
    measuring: &mut Measuring<'_>,
    culprit: &Culprit,
    metric: Metric,
) -> Result<Vec<(String, f64)>> {
    let pair = [culprit.after, culprit.at];
    let Asked::Values(measured) = measuring.ask(BisectionPass::Count, &pair, PAIR_COUNTS)? else {
        return Ok(Vec::new());
    };
    let comparison = measuring.comparison(&measured.folder)?;
    let step = step(&comparison, &measuring.request.step)?;
    let counted = step.targets.last().and_then(|target| target.counted.as_ref());
    let found = counted.and_then(|counted| match metric {
        Metric::BackgroundInstructionsPerOp => counted.background.as_ref().map(|it| &it.functions),
        _ => counted.functions.as_ref(),
    });
    let Some(found) = found else { return Ok(Vec::new()) };
    let all = found.changes.iter().take(FUNCTIONS_MOST);
    Ok(all.map(|change| (change.name.to_string(), change.difference())).collect())
}

/// Mean seconds of the measurements of a kind so far.
fn seconds_of(measuring: &Measuring<'_>, what: BisectionPass) -> f64 {
    let all = measured(measuring.rounds()).filter(|measured| measured.what == what);
    let seconds: Vec<f64> = all.map(|measured| measured.seconds).collect();
    if seconds.is_empty() { 0.0 } else { mean(&seconds) }
}

// The result of a bisection, from its log.

/// The difference of the ends: ln(candidate / baseline), with its 95 % interval if it scatters.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ends {
    ln: f64,
    interval: Option<Interval>,
}

impl Ends {
    /// By values that scatter: Student's t, because the scatter is estimated from few of them.
    fn of(ends: EndsDifference) -> Ends {
        let EndsDifference { difference, error, df } = ends;
        let estimate = Estimate { mean: difference, se: error, df: df as f64 };
        Ends { ln: difference, interval: (df > 0).then(|| estimate.interval(CONFIDENCE)) }
    }
}

/// The outcome; `culprits` is `None` if the ends do not differ.
fn outcome(
    measuring: &Measuring<'_>,
    choice: &Choice,
    ends: Ends,
    culprits: Option<Vec<Culprit>>,
) -> Bisection {
    let request = &measuring.request;
    let entries = measuring.rounds();
    let versions = request.versions.iter().enumerate().map(|(place, version)| {
        let values = values(entries, choice.metric, place);
        let n = values.len();
        let lost = measuring.lost(place).next().map(str::to_owned);
        VersionFacts {
            label: version.target.label.clone(),
            about: version.about.clone(),
            ratio: ratio(entries, choice.metric, place),
            n,
            lost: lost.filter(|_| n == 0 && place > 0),
            passed_over: place > 0 && version.mass <= 0.0,
        }
    });
    let versions: Vec<VersionFacts> = versions.collect();
    Bisection {
        step: request.step.clone(),
        metric: choice.metric.name().to_owned(),
        reason: choice.reason.clone(),
        ends: ends.ln.exp(),
        ends_interval: ends.interval.map(Interval::exp),
        reproduced: culprits.is_some(),
        culprits: culprits.unwrap_or_default(),
        cost: cost(entries, versions.iter().filter(|version| version.lost.is_some()).count()),
        versions,
    }
}

fn measured(entries: &[BisectionEntry]) -> impl Iterator<Item = &BisectionMeasurement> {
    entries.iter().filter_map(|entry| match entry {
        BisectionEntry::Measured(measured) => Some(measured),
        BisectionEntry::Lost { .. } => None,
    })
}

/// Values of a version by the metric of the search: its own, or ln ratios against another.
fn values(entries: &[BisectionEntry], metric: Metric, place: usize) -> Vec<f64> {
    let what = pass(metric);
    let of_place = measured(entries)
        .filter(|it| it.what == what && it.places.last() == Some(&place))
        .filter(|it| what == BisectionPass::Rate || it.places.len() == 1);
    of_place.flat_map(|it| it.values.get(metric.name()).cloned().unwrap_or_default()).collect()
}

fn pass(metric: Metric) -> BisectionPass {
    if counts_of(metric).is_some() { BisectionPass::Count } else { BisectionPass::Rate }
}

/// A version relative to the baseline.
fn ratio(entries: &[BisectionEntry], metric: Metric, place: usize) -> Option<f64> {
    if pass(metric) == BisectionPass::Count {
        let of = |place| {
            let values = values(entries, metric, place);
            (!values.is_empty()).then(|| level(metric, &values))
        };
        return Some((of(place)? - of(0)?).exp());
    }
    ln_ratio(entries, metric, place).map(f64::exp)
}

/// ln(version / baseline): against the baseline itself, else through the version that it was
/// measured against.
fn ln_ratio(entries: &[BisectionEntry], metric: Metric, place: usize) -> Option<f64> {
    if place == 0 {
        return Some(0.0);
    }
    let of_place = |against: usize| {
        let pairs = measured(entries)
            .filter(|it| it.what == BisectionPass::Rate && it.places == [against, place]);
        let values: Vec<f64> = pairs
            .flat_map(|it| it.values.get(metric.name()).cloned().unwrap_or_default())
            .collect();
        (!values.is_empty()).then(|| mean(&values))
    };
    let through = |against: usize| Some(of_place(against)? + ln_ratio(entries, metric, against)?);
    (0..place).find_map(through)
}

fn cost(entries: &[BisectionEntry], lost: usize) -> BisectionCost {
    let places: BTreeSet<usize> =
        measured(entries).flat_map(|measured| measured.places.iter().copied()).collect();
    let mut cost = BisectionCost { versions: places.len(), lost, ..BisectionCost::default() };
    for measured in measured(entries) {
        cost.seconds += measured.seconds;
        let n = measured.values.values().map(Vec::len).max().unwrap_or(0);
        match measured.what {
            BisectionPass::Count => cost.counts += n * measured.places.len(),
            BisectionPass::Rate | BisectionPass::Check => cost.blocks += n,
        }
    }
    cost
}

/// The metrics that a bisection may search by.
pub fn searched() -> impl Iterator<Item = Metric> {
    let is_searched = |metric: &Metric| {
        counts_of(*metric).is_some()
            || matches!(metric, Metric::Rate | Metric::ServerCpuPerOp | Metric::ClientCpuPerOp)
    };
    Metric::ALL.iter().copied().filter(is_searched)
}

/// Counts of a version by a counted metric; `None` for metrics that are measured in blocks. What
/// other threads execute depends on when they run, so one count of it does not decide.
fn counts_of(metric: Metric) -> Option<u32> {
    match metric {
        Metric::InstructionsPerOp => Some(1),
        Metric::BackgroundInstructionsPerOp => Some(3),
        _ => None,
    }
}

/// Statements of a step that are counted.
const COUNTED_STATEMENTS: u64 = 1000;

/// The result of a requested measurement.
#[derive(Clone, Debug, PartialEq)]
enum Asked {
    /// Values, and the result folder.
    Values(BisectionMeasurement),
    /// This version cannot be measured.
    Lost(usize),
}

/// What is known of builds beside the log.
#[derive(Default)]
struct BuildsSeen {
    /// Versions that do not build, with the reason: what failed once is not built again.
    lost: BTreeMap<usize, String>,
    /// Open during the search: a commit is built with the objects of the last one.
    cache: Option<Cache>,
}

type Measuring<'a> = campaign::Measuring<'a, BisectionRequest, BuildsSeen>;

impl Measuring<'_> {
    /// The reasons why a version could not be measured; none for one that could.
    fn lost(&self, place: usize) -> impl DoubleEndedIterator<Item = &str> {
        self.rounds().iter().filter_map(move |entry| match entry {
            BisectionEntry::Lost { place: at, reason } if *at == place => Some(reason.as_str()),
            _ => None,
        })
    }

    /// The reason why versions cannot be counted; `None` if they can.
    fn count_fault(&self) -> Option<String> {
        if self.options.valgrind.is_none() {
            return Some("valgrind is not installed".to_owned());
        }
        self.plan(BisectionPass::Count, &[0], 1).err().map(|error| error.to_string())
    }

    /// Measures versions, or finds in the log what was measured of them.
    ///
    /// # Errors
    /// [`Stopped`]; what makes every measurement impossible; a log of another search.
    fn ask(&mut self, what: BisectionPass, places: &[usize], repeats: u32) -> Result<Asked> {
        let known = self.known(|entry| match entry {
            BisectionEntry::Measured(known) if known.what == what && known.places == places => {
                Some(Asked::Values(known.clone()))
            }
            BisectionEntry::Lost { place, .. } => {
                places.contains(place).then_some(Asked::Lost(*place))
            }
            BisectionEntry::Measured(_) => None,
        })?;
        if let Some(asked) = known {
            return Ok(asked);
        }
        let began = Instant::now();
        for place in places {
            if let Some(reason) = self.state.lost.get(place).cloned() {
                return self.lose(*place, reason);
            }
            if let Some(reason) = self.build_fault(*place)? {
                self.state.lost.insert(*place, reason.clone());
                self.note_lost(*place, &reason);
                return self.lose(*place, reason);
            }
        }
        let labels: Vec<&str> =
            places.iter().map(|at| self.request.versions[*at].target.label.as_str()).collect();
        let mut name = format!("{:02}-{}-{}", self.used + 1, what.word(), labels.join("-vs-"));
        name.truncate(name.floor_char_boundary(120));
        let values = match self.carried_out(what, places, repeats, &name)? {
            Ok(values) => values,
            Err((place, reason)) => {
                self.note_lost(place, &reason);
                return self.lose(place, reason);
            }
        };
        let measured = BisectionMeasurement {
            what,
            places: places.to_vec(),
            folder: name,
            seconds: began.elapsed().as_secs_f64(),
            values,
        };
        self.keep(BisectionEntry::Measured(measured.clone()))?;
        Ok(Asked::Values(measured))
    }

    fn note_lost(&mut self, place: usize, reason: &str) {
        let label = &self.request.versions[place].target.label;
        self.note(format!("{label} cannot be measured: {}", first_line(reason)));
    }

    fn lose(&mut self, place: usize, reason: String) -> Result<Asked> {
        self.keep(BisectionEntry::Lost { place, reason })?;
        Ok(Asked::Lost(place))
    }

    /// Makes a build available. Returns why there is none, if that is the build's own fault.
    fn build_fault(&mut self, place: usize) -> Result<Option<String>> {
        let target = &self.request.versions[place].target;
        let cache = match &self.state.cache {
            Some(cache) => cache.clone(),
            None => self.state.cache.insert(lab::open_cache(&self.options.cache)?).clone(),
        };
        let stop = Arc::clone(&self.options.stop);
        let clients = PackageClients { stop, ..PackageClients::default() };
        let label = target.label.clone();
        let mut say = |said: Said<'_>| (self.events)(Event::of_fetch(&label, said));
        let built = obtain::obtain_with(&clients, target.dbms, &target.source, &cache, &mut say);
        match built {
            Ok(_) => Ok(None),
            Err(ObtainError::Build { reason, .. }) if matches!(*reason, Reason::Stopped) => {
                Err(Stopped.into())
            }
            Err(ObtainError::Build { reason, .. }) if reason.is_of_the_build() => {
                Ok(Some(reason.to_string()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Measures. The inner error names a version that cannot be measured, and why.
    fn carried_out(
        &mut self,
        what: BisectionPass,
        places: &[usize],
        repeats: u32,
        name: &str,
    ) -> Result<Result<Values, (usize, String)>> {
        let out = self.folder.path().join(name);
        let plan = self.plan(what, places, repeats)?;
        let valgrind = self.options.valgrind.clone().filter(|_| what == BisectionPass::Count);
        let options = ExecutionOptions { plan, out, valgrind, ..self.options.clone() };
        let summary = campaign::run_plan(&options, None, self.events)
            .with_context(|| format!("measure {name}"))?;
        if summary.interrupted {
            return Err(Stopped.into());
        }
        if let Some(fault) = summary.faults.first() {
            let names =
                |place: &&usize| is_fault_of(fault, &self.request.versions[**place].target.label);
            // A fault without a label is taken to be of the newer version.
            let named = places.iter().find(names);
            let place = named.or(places.last()).copied().unwrap_or_default();
            return Ok(Err((place, fault.clone())));
        }
        let comparison = self.comparison(name)?;
        Ok(Ok(values_of(step(&comparison, &self.request.step)?)))
    }

    /// The plan of a measurement: that of the request with other targets.
    fn plan(&self, what: BisectionPass, places: &[usize], repeats: u32) -> Result<Plan, PlanError> {
        let targets = places.iter().map(|at| self.request.versions[*at].target.clone()).collect();
        let base = PlanDraft { targets, gate: None, count: None, ..self.options.plan.draft() };
        if what == BisectionPass::Count {
            // All versions get the same statements: counts differ by the version alone.
            let count =
                Some(CountingPass { statements: COUNTED_STATEMENTS, repeats, simulate: false });
            let whole = Plan::build(PlanDraft { count, ..base })?;
            return Ok(whole.counting()?.unwrap_or(whole));
        }
        // Each measurement has another order and other keys.
        let seed = base.seed.wrapping_add(1 + self.used as u64);
        let loads = base.loads.min(repeats);
        Plan::build(PlanDraft { blocks: Blocks::Fixed(repeats), loads, seed, ..base })
    }

    /// The comparison in a result folder.
    fn comparison(&self, name: &str) -> Result<Comparison> {
        compared(&self.read(name)?, self.request.rules)
    }
}

/// Name of a metric → its values.
type Values = BTreeMap<String, Vec<f64>>;

/// The measurements of a step: ln(second / first) by block, or the values of the only target.
fn values_of(step: &StepComparison) -> Values {
    let of = |metric: Metric| {
        let values: Vec<f64> = match step.targets.as_slice() {
            [only] => only.samples.iter().filter_map(|sample| sample.get(metric)).collect(),
            all => {
                let relative = all.last().and_then(|target| target.comparable(metric));
                relative.map(|it| it.differences.clone()).unwrap_or_default()
            }
        };
        (!values.is_empty()).then(|| (metric.name().to_owned(), values))
    };
    searched().filter_map(of).collect()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_give_the_interval_of_student_s_t() {
        let ends = Ends::of(EndsDifference { difference: 0.1, error: 0.01, df: 5 });
        let interval = ends.interval.expect("an interval");
        // t(0.975, 5) = 2.570582.
        assert!((interval.high - 0.125_705_82).abs() < 1e-8, "{interval:?}");
        assert!((interval.low - 0.074_294_18).abs() < 1e-8, "{interval:?}");
        let none = Ends::of(EndsDifference { difference: 0.1, error: 0.01, df: 0 });
        assert_eq!(none.interval, None);
    }
}
