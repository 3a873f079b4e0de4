//! The versions of a bisection: those given, or those that lie between two ends.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::campaign::bisect::{Asked, Measuring, counts_of};
use crate::plan::words;
use rqps_analysis::counted::COUNTS_TAU;
use rqps_builds::catalogue::Entry;
use rqps_builds::source::{self, Commit, IdleFiles};
use rqps_model::bisection::{BisectedVersion, BisectionPass};
use rqps_model::build::{BuildSource, Dbms, Target, Version};
use rqps_model::metric::Metric;
use rqps_stats::summary::{mean, stddev};

/// The versions of a bisection. Of two releases of one DBMS, those between them are those of
/// `known`; three or more targets are taken as they are.
///
/// # Errors
/// Fewer than two targets; ends that do not say what lies between them, or in the wrong order.
pub fn versions(
    targets: &[Target],
    known: &dyn Fn(Dbms) -> Vec<Entry>,
) -> Result<Vec<BisectedVersion>> {
    let as_given = |target: &Target| BisectedVersion {
        target: target.clone(),
        about: String::new(),
        mass: 1.0,
    };
    match targets {
        [] | [_] => bail!("bisect: name the baseline and the candidate"),
        [baseline, candidate] => match (&baseline.source, &candidate.source) {
            (BuildSource::Version { .. }, BuildSource::Version { .. })
                if baseline.dbms == candidate.dbms =>
            {
                releases(baseline, candidate, &known(baseline.dbms))
            }
            (
                BuildSource::Source { folder, reference: Some(first), variant },
                BuildSource::Source { folder: other, reference: Some(last), variant: another },
            ) if baseline.dbms == candidate.dbms && (folder, variant) == (other, another) => {
                commits((baseline, first), (candidate, last), folder)
            }
            _ => bail!(
                "bisect from {} to {}: rqps does not know the versions between them; give two \
                 versions of one DBMS, two commits of one repository (src:DIR@REF), or all \
                 targets in their order",
                baseline.label,
                candidate.label
            ),
        },
        all => Ok(all.iter().map(as_given).collect()),
    }
}

/// The releases from one to another, ends included.
fn releases(
    baseline: &Target,
    candidate: &Target,
    known: &[Entry],
) -> Result<Vec<BisectedVersion>> {
    let (
        BuildSource::Version { version: first, variant },
        BuildSource::Version { version: last, variant: other },
    ) = (&baseline.source, &candidate.source)
    else {
        bail!("bisect: the ends are not releases");
    };
    if variant != other {
        bail!("bisect from {} to {}: their variants differ", baseline.label, candidate.label);
    }
    if first.numbers() >= last.numbers() {
        bail!(
            "bisect from {} to {}: swap them, so that the older version is first",
            baseline.label,
            candidate.label
        );
    }
    let is_between = |version: &Version| {
        version.numbers() > first.numbers() && version.numbers() < last.numbers()
    };
    // `17` stands for the newest 17.x, so no other 17.x lies between.
    let is_end = |version: &Version| {
        let numbers = version.numbers();
        [first, last].iter().any(|end| numbers.starts_with(&end.numbers()))
    };
    // A beta is no release.
    let is_plain =
        |version: &Version| version.as_str().split('.').all(|it| it.parse::<u32>().is_ok());
    let mut known: Vec<Version> = known
        .iter()
        .filter(|entry| entry.variant == *variant)
        .map(|entry| entry.version.clone())
        .filter(|version| is_plain(version) && is_between(version) && !is_end(version))
        .collect();
    known.sort_by_key(Version::numbers);
    known.dedup();
    let between = known.into_iter().map(|version| {
        let source = BuildSource::Version { version, variant: variant.clone() };
        word_of(&Target { source, ..baseline.clone() })
    });
    let ends = [baseline, candidate].map(words::word);
    let [first, last] = ends;
    let all: Vec<String> = std::iter::once(first).chain(between).chain([last]).collect();
    let targets = words::targets(&all)?;
    let version = |target| BisectedVersion { target, about: String::new(), mass: 1.0 };
    Ok(targets.into_iter().map(version).collect())
}

/// The commits from one to another along first parents, ends included.
fn commits(
    (baseline, first): (&Target, &str),
    (candidate, last): (&Target, &str),
    folder: &Path,
) -> Result<Vec<BisectedVersion>> {
    let doing = || format!("bisect from {} to {}", baseline.label, candidate.label);
    let (first, between) = source::commits(folder, first, last).with_context(doing)?;
    let Some((last, between)) = between.split_last() else {
        bail!("{}: they are one commit", doing());
    };
    let at = |id: &str, label: String| {
        let BuildSource::Source { folder, variant, .. } = &baseline.source else {
            return Target { label, ..baseline.clone() };
        };
        let (folder, variant) = (folder.clone(), variant.clone());
        let source = BuildSource::Source { folder, reference: Some(id.to_owned()), variant };
        Target { label, source, ..baseline.clone() }
    };
    let BuildSource::Source { variant, .. } = &baseline.source else {
        bail!("{}: they are no sources", doing());
    };
    let idle = IdleFiles::of(baseline.dbms, variant.as_deref()).with_context(doing)?;
    let version = |commit: &Commit, label: String| BisectedVersion {
        target: at(&commit.id, label),
        about: about(commit),
        mass: mass(&idle, commit),
    };
    let dbms = baseline.dbms;
    let first = BisectedVersion {
        target: at(&first, baseline.label.clone()),
        about: String::new(),
        mass: 0.0,
    };
    let inner = between
        .iter()
        .map(|commit| version(commit, format!("{dbms}-{}", commit.id.get(..10).unwrap_or(""))));
    let last = version(last, candidate.label.clone());
    let all: Vec<BisectedVersion> = std::iter::once(first).chain(inner).chain([last]).collect();
    if all.iter().all(|version| version.mass == 0.0) {
        bail!("{}: the commits change only files that no build of {dbms} depends on", doing());
    }
    Ok(all)
}

fn about(commit: &Commit) -> String {
    let merge = if commit.parents > 1 { " (merge)" } else { "" };
    format!("{} {}{merge}", commit.date, commit.subject)
}

/// 0 for a commit of files that no build depends on.
fn mass(idle: &IdleFiles, commit: &Commit) -> f64 {
    if commit.paths.iter().all(|path| idle.has(path)) { 0.0 } else { 1.0 }
}

/// The word of a target without its label.
fn word_of(target: &Target) -> String {
    const LABEL: &str = "bisected";
    let word = words::word(&Target { label: LABEL.to_owned(), ..target.clone() });
    word.strip_prefix(&format!("{LABEL}=")).map_or(word.clone(), str::to_owned)
}

// By which metric a bisection searches: counted instructions where they tell of the difference
// between the ends, else the rate or the CPU of the server, or of the process with the library.

/// Counts of each end.
const END_COUNTS: u32 = 3;
/// Blocks of the ends before a metric is chosen.
const END_BLOCKS: u32 = 6;
/// Largest scatter of counts, in their standard deviations.
const SCATTER: f64 = 4.0;
/// Counts must explain this share of the difference of the rate.
const EXPLAINED_LEAST: f64 = 0.5;
/// Smallest difference that counts, in its standard errors.
const ERRORS_LEAST: f64 = 3.0;

/// The metric of a search, and the values of the ends that chose it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Choice {
    /// The metric.
    pub(super) metric: Metric,
    /// The reason, for the reader.
    pub(super) reason: String,
    /// Counted values of both ends, if the metric is counted.
    pub(super) counts: Option<CountedEnds>,
    /// ln ratios of the ends by block, if the metric is not.
    pub(super) blocks: Vec<f64>,
}

/// Counted instructions of both ends, as logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CountedEnds {
    pub(super) first: f64,
    pub(super) last: f64,
    /// Values that differ by no more than this are the same.
    pub(super) same_within: f64,
}

/// Measures the ends and chooses.
///
/// # Errors
/// An end cannot be measured; the metric that was asked for is not there.
pub(super) fn choose(measuring: &mut Measuring<'_>) -> Result<Choice> {
    let wanted = measuring.request.metric;
    let by = wanted.unwrap_or(Metric::InstructionsPerOp);
    let counted = match (counts_of(by), measuring.count_fault()) {
        (Some(_), None) => counted_ends(measuring, by)?,
        (_, Some(fault)) => Err(fault),
        (None, None) => Err("they were not asked for".to_owned()),
    };
    if let Some(metric) = wanted.filter(|metric| counts_of(*metric).is_some()) {
        return match counted {
            Ok(ends) => Ok(by_counts(metric, ends, "as asked for".to_owned())),
            Err(reason) => bail!("bisect by instructions: {reason}"),
        };
    }
    let last = measuring.request.versions.len() - 1;
    let ends = match measuring.ask(BisectionPass::Rate, &[0, last], END_BLOCKS)? {
        Asked::Values(values) => values.values,
        Asked::Lost(place) => return Err(lost_end(measuring, place)),
    };
    let blocks = |metric: Metric| ends.get(metric.name()).cloned().unwrap_or_default();
    if let Some(metric) = wanted {
        let blocks = blocks(metric);
        if blocks.is_empty() {
            bail!("bisect by {}: this step has no values of it", metric.name());
        }
        return Ok(Choice { metric, reason: "as asked for".to_owned(), counts: None, blocks });
    }
    let rate = Effect::of(&blocks(Metric::Rate));
    // A library runs in the client's process, with its background threads.
    let of_cpu = if blocks(Metric::ServerCpuPerOp).is_empty() {
        Metric::ClientCpuPerOp
    } else {
        Metric::ServerCpuPerOp
    };
    let cpu = Effect::of(&blocks(of_cpu));
    let why_not = match counted {
        Ok(counts) => match explained(counts, rate, (of_cpu, cpu)) {
            Ok(reason) => return Ok(by_counts(by, counts, reason)),
            Err(reason) => reason,
        },
        Err(reason) => reason,
    };
    let metric = if cpu.strength() > rate.strength() { of_cpu } else { Metric::Rate };
    let reason = format!("largest difference per noise; instructions: {why_not}");
    Ok(Choice { metric, reason, counts: None, blocks: blocks(metric) })
}

fn by_counts(metric: Metric, ends: CountedEnds, reason: String) -> Choice {
    Choice { metric, reason, counts: Some(ends), blocks: Vec::new() }
}

/// Counts of both ends. The inner error says why there are none.
fn counted_ends(
    measuring: &mut Measuring<'_>,
    metric: Metric,
) -> Result<Result<CountedEnds, String>> {
    let last = measuring.request.versions.len() - 1;
    let mut both = Vec::new();
    for place in [0, last] {
        let values = match measuring.ask(BisectionPass::Count, &[place], END_COUNTS)? {
            Asked::Values(measured) => measured.values,
            // An end that does not build ends the search; one that cannot be counted does not.
            Asked::Lost(place) => return Ok(Err(reason(measuring, place))),
        };
        match values.get(metric.name()).filter(|values| values.iter().all(|value| *value > 0.0)) {
            Some(values) => both.push(values.clone()),
            None => return Ok(Err(format!("this step has no counts of {}", metric.name()))),
        }
    }
    let pairs = both[0].iter().zip(&both[1]);
    let differences: Vec<f64> = pairs.map(|(first, last)| (last / first).ln()).collect();
    let scatter = stddev(&differences).unwrap_or(0.0);
    Ok(Ok(CountedEnds {
        first: level(metric, &both[0]),
        last: level(metric, &both[1]),
        same_within: COUNTS_TAU.max(SCATTER * scatter),
    }))
}

/// The value of a version, as a logarithm, from its first counts: the same keys in all versions.
pub(super) fn level(metric: Metric, counts: &[f64]) -> f64 {
    let most = counts_of(metric).unwrap_or(1) as usize;
    mean(&counts[..counts.len().min(most)]).ln()
}

/// The reason why a version cannot be measured, from the log.
fn reason(measuring: &Measuring<'_>, place: usize) -> String {
    measuring.lost(place).next_back().unwrap_or("it cannot be measured").to_owned()
}

/// The error of an end that cannot be measured.
pub(super) fn lost_end(measuring: &Measuring<'_>, place: usize) -> anyhow::Error {
    let label = &measuring.request.versions[place].target.label;
    anyhow::anyhow!("measure {label}, an end of the range: {}", reason(measuring, place))
}

/// The difference of the ends by some blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Effect {
    ln: f64,
    error: f64,
}

impl Effect {
    fn of(blocks: &[f64]) -> Effect {
        let sd = stddev(blocks).unwrap_or(f64::INFINITY);
        Effect { ln: mean(blocks), error: sd / (blocks.len().max(1) as f64).sqrt() }
    }

    /// The difference in standard errors; 0 if unknown.
    fn strength(self) -> f64 {
        let strength = (self.ln / self.error).abs();
        if strength.is_nan() { 0.0 } else { strength }
    }
}

/// The reason for or against counts.
fn explained(
    counts: CountedEnds,
    rate: Effect,
    (of_cpu, cpu): (Metric, Effect),
) -> Result<String, String> {
    let counted = counts.last - counts.first;
    if counted.abs() <= counts.same_within {
        return Err("the ends execute as many".to_owned());
    }
    let percent = |ln: f64| format!("{:+.1} %", 100.0 * (ln.exp() - 1.0));
    // More instructions go with a lower rate, and with more CPU.
    let (name, ln, strength) = if cpu.strength() > rate.strength() {
        (of_cpu.name(), cpu.ln, cpu.strength())
    } else {
        (Metric::Rate.name(), -rate.ln, rate.strength())
    };
    if strength < ERRORS_LEAST {
        return Ok(format!(
            "the ends differ by {} instructions per operation; {END_BLOCKS} blocks show no \
             difference of the rate",
            percent(counted)
        ));
    }
    let share = counted / ln;
    if share < EXPLAINED_LEAST {
        return Err(format!(
            "they differ by {}, which explains {:.0} % of the difference of {name} (--metric instr/o \
             searches by them all the same)",
            percent(counted),
            100.0 * share
        ));
    }
    Ok(format!(
        "the ends differ by {} instructions per operation, which explains the difference of {name}",
        percent(counted)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(list: &[&str]) -> Result<Vec<String>> {
        let list: Vec<String> = list.iter().map(|word| (*word).to_owned()).collect();
        let known = |dbms| rqps_builds::catalogue::known(Some(dbms));
        let all = versions(&words::targets(&list)?, &known)?;
        Ok(all.into_iter().map(|version| version.target.label).collect())
    }

    #[test]
    fn releases_between_the_ends_come_from_the_catalogue() {
        let check = |list: &[&str], expected: &[&str]| {
            assert_eq!(labels(list).unwrap(), expected, "{list:?}");
        };
        check(&["sqlite@3.34", "sqlite@3.46"], &["sqlite-3.34", "sqlite-3.40", "sqlite-3.46"]);
        // A version that no row has is tried as it is named.
        check(
            &["rocksdb@10.5.1", "rocksdb@10.6.9"],
            &["rocksdb-10.5.1", "rocksdb-10.6.2", "rocksdb-10.6.9"],
        );
        check(
            &["postgres@15.14.0:./a.conf", "new=postgres@17.6"],
            &["postgres-15.14.0.a", "postgres-16.10.0.a", "postgres-17.2.0.a", "new"],
        );
        check(&["sqlite@3.40", "sqlite@3.46"], &["sqlite-3.40", "sqlite-3.46"]);
        check(&["a=sqlite", "b=sqlite", "c=sqlite"], &["a", "b", "c"]);
    }

    #[test]
    fn ends_that_do_not_say_what_is_between_are_refused() {
        let check = |list: &[&str], expected: &str| {
            let said = labels(list).unwrap_err().to_string();
            assert!(said.contains(expected), "{said}");
        };
        check(&["sqlite@3.46", "sqlite@3.34"], "swap them, so that the older version is first");
        check(&["sqlite", "sqlite@3.46"], "rqps does not know the versions between them");
        check(&["mysql@5.6.14", "mariadb@11.4.5"], "rqps does not know the versions between them");
        check(&["sqlite"], "name the baseline and the candidate");
    }
}

#[cfg(test)]
mod choice_tests {
    use super::*;

    #[test]
    fn counts_are_chosen_where_they_explain_half_of_the_difference() {
        let check = |counted: f64, rate: f64, error: f64, expected: bool| {
            let counts = CountedEnds { first: 1.0, last: 1.0 + counted, same_within: 0.002 };
            let rate = Effect { ln: rate, error };
            let cpu = (Metric::ServerCpuPerOp, Effect::default());
            let said = explained(counts, rate, cpu);
            assert_eq!(said.is_ok(), expected, "{counted} {rate:?}: {said:?}");
        };
        check(0.02, -0.03, 0.001, true);
        check(0.02, -0.05, 0.001, false);
        check(0.02, 0.03, 0.001, false);
        check(-0.10, 0.08, 0.01, true);
        check(0.001, -0.08, 0.01, false);
        // The rate is too noisy to say anything.
        check(0.02, 0.03, 0.05, true);
        assert_eq!(Effect::of(&[]).strength(), 0.0);
        assert_eq!(Effect::of(&[0.1]).strength(), 0.0);
    }
}
