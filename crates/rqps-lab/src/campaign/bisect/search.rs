//! The loop of a bisection: asks the mathematics which version is next, measures it, and checks
//! what was found on fresh blocks.

use anyhow::{Result, bail};

use super::choice::{Choice, CountedEnds, choose, level, lost_end};
use super::measuring::{Asked, Measuring, counts_of, step};
use super::outcome::{Ends, outcome};
use crate::campaign::Stopped;
use crate::lab::{Event, ExecutionOptions};
use rqps_analysis::bisection::{Bisection, Culprit, CulpritCheck};
use rqps_model::bisection::{BisectionEntry, BisectionPass};
use rqps_model::metric::Metric;
use rqps_results::BisectionFolder;
use rqps_stats::bisection::{
    ExactRules, ExactSearch, ExactStep, Jump, NoisyRules, NoisySearch, NoisyStep, Suspects,
};
use rqps_stats::summary::mean;

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

/// The end of a bisection.
#[derive(Clone, Debug, PartialEq)]
pub enum BisectionEnd {
    /// It found what there is to find.
    Found(Box<Bisection>),
    /// The user stopped it; it can be resumed.
    Interrupted,
}

/// Searches for the versions that changed a step. The plan of `options` has the ends as targets.
///
/// # Errors
/// An end cannot be measured; what makes every measurement impossible.
pub fn bisect(
    options: &ExecutionOptions,
    folder: BisectionFolder,
    events: &mut dyn FnMut(Event),
) -> Result<BisectionEnd> {
    let mut measuring = Measuring::new(options, folder, events);
    match search(&mut measuring) {
        Ok(found) => Ok(BisectionEnd::Found(Box::new(found))),
        Err(error) if error.is::<Stopped>() => Ok(BisectionEnd::Interrupted),
        Err(error) => Err(error),
    }
}

fn search(measuring: &mut Measuring<'_>) -> Result<Bisection> {
    let versions = measuring.request().versions.len();
    let able = measuring.request().versions.iter().skip(1).filter(|it| it.mass > 0.0).count();
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
    measuring.request().versions.iter().map(|version| version.mass).collect()
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
    let last = measuring.request().versions.len() - 1;
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
    let rules = measuring.request().rules;
    let rules = NoisyRules {
        layout_sd: rules.layout_sd(),
        against_first: true,
        least: rules.delta / 2.0,
        runs_most: BLOCKS_MOST,
        ..NoisyRules::default()
    };
    let mut search = NoisySearch::new(&masses(measuring)[first..=last], rules);
    if (first, last) == (0, measuring.request().versions.len() - 1) {
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
    let lost = |place: usize| {
        measuring
            .entries()
            .iter()
            .any(|entry| matches!(entry, BisectionEntry::Lost { place: at, .. } if *at == place))
    };
    let count = measuring.request().versions.len();
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
    let comparison = measuring.read(&measured.folder)?;
    let step = step(&comparison, &measuring.request().step)?;
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
    let comparison = measuring.read(&measured.folder)?;
    let step = step(&comparison, &measuring.request().step)?;
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
    let seconds: Vec<f64> = measuring
        .entries()
        .iter()
        .filter_map(|entry| match entry {
            BisectionEntry::Measured(measured) if measured.what == what => Some(measured.seconds),
            _ => None,
        })
        .collect();
    if seconds.is_empty() { 0.0 } else { mean(&seconds) }
}
