//! Divides a dataset by family, so that the targets of each family have their own baseline; and
//! targets that cross settings.

use std::collections::BTreeMap;

use serde::Serialize;

use super::compare::AnalyzeError;
use super::comparison::{Comparison, Relative, StepComparison};
use super::history::family_of;
use super::measurement::Measurement;
use rqps_model::build::{Target, config_parts};
use rqps_model::metric::Metric;
use rqps_model::run::{Dataset, Run};
use rqps_stats::Interval;
use rqps_stats::paired::mean_interval;

/// The storage engine of MySQL and MariaDB if the target names none.
const DEFAULT_STORAGE: &str = "innodb";

/// The measurements that [`measure`](super::measure) or [`digest`](super::digest) made of one run.
type Measured = Vec<Option<Measurement>>;

/// The targets of one family: a DBMS, with its storage engine unless that is the default.
#[derive(Clone, Debug)]
pub struct FamilyPart {
    /// `mysql`, `mysql with rocksdb`.
    pub family: String,
    /// Label of its baseline; `None` for its first target.
    pub baseline: Option<String>,
    /// Its runs.
    pub dataset: Dataset,
    /// The measurements of each run, in the same order.
    pub measured: Vec<Measured>,
}

/// Divides runs and their measurements by the family of their target. Families come in the order of
/// their first targets in the plan, and runs keep their order.
///
/// # Errors
/// A baseline is not a target, or two are of one family.
pub fn by_family(
    dataset: Dataset,
    measured: Vec<Measured>,
    baselines: &[String],
) -> Result<Vec<FamilyPart>, AnalyzeError> {
    let Dataset { hosts, tunings, runs, gates } = dataset;
    let families = families(&runs);
    let chosen = baseline_by_family(&families, baselines)?;
    let mut names: Vec<&String> = Vec::new();
    for (_, family) in &families {
        if !names.contains(&family) {
            names.push(family);
        }
    }
    let of_label: BTreeMap<&str, &str> =
        families.iter().map(|(label, family)| (label.as_str(), family.as_str())).collect();
    let mut parts: Vec<FamilyPart> = names
        .iter()
        .map(|family| FamilyPart {
            family: (*family).clone(),
            baseline: chosen.get(*family).cloned(),
            dataset: Dataset {
                hosts: hosts.clone(),
                tunings: tunings.clone(),
                runs: Vec::new(),
                gates: gates.clone(),
            },
            measured: Vec::new(),
        })
        .collect();
    for (mut run, measured) in runs.into_iter().zip(measured) {
        let family = of_label[run.record.key.label.as_str()];
        let place = names.iter().position(|name| *name == family).unwrap_or(0);
        // The family of a target that never ran is unknown: it stays with the first family.
        run.record.targets.retain(|label| match of_label.get(label.as_str()) {
            Some(other) => *other == family,
            None => place == 0,
        });
        parts[place].dataset.runs.push(run);
        parts[place].measured.push(measured);
    }
    Ok(parts)
}

/// The DBMS, and the storage engine unless it is the default of current versions. A target without
/// a storage engine has the default.
fn family(target: &Target) -> String {
    let mut named = target.clone();
    named.storage_engine = named.storage_engine.filter(|engine| engine != DEFAULT_STORAGE);
    family_of(Some(&named))
}

/// Labels with their families, in the order of the plans.
fn families(runs: &[Run]) -> Vec<(String, String)> {
    let mut of_label: BTreeMap<&str, String> = BTreeMap::new();
    for run in runs {
        let label = run.record.key.label.as_str();
        of_label.entry(label).or_insert_with(|| family(&run.record.target));
    }
    let named =
        runs.iter().flat_map(|run| run.record.targets.iter().chain([&run.record.key.label]));
    let mut found: Vec<(String, String)> = Vec::new();
    for label in named {
        if let Some(family) = of_label.remove(label.as_str()) {
            found.push((label.clone(), family));
        }
    }
    found
}

/// Family → the baseline that the user named.
fn baseline_by_family(
    families: &[(String, String)],
    baselines: &[String],
) -> Result<BTreeMap<String, String>, AnalyzeError> {
    let mut chosen: BTreeMap<String, String> = BTreeMap::new();
    for baseline in baselines {
        let Some((_, family)) = families.iter().find(|(label, _)| label == baseline) else {
            let labels: Vec<String> =
                families.iter().map(|(label, family)| format!("{label} ({family})")).collect();
            return Err(AnalyzeError(format!(
                "compare with baseline `{baseline}`: no such target; these folders hold {}",
                labels.join(", ")
            )));
        };
        if let Some(first) = chosen.insert(family.clone(), baseline.clone()) {
            return Err(AnalyzeError(format!(
                "compare with baselines `{first}` and `{baseline}`: both are {family}; name one \
                 baseline for each DBMS and storage engine"
            )));
        }
    }
    Ok(chosen)
}

// Targets that are every combination of some settings: the effect of each setting over all levels
// of the others, and how far two of them depend on each other.

/// The factor that is the build and the config.
const BUILD: &str = "target";

/// A factor: its name and its levels, the first one the base.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Factor {
    /// A setting, or `target`.
    pub name: String,
    /// Its values, in the order of the targets.
    pub levels: Vec<String>,
}

/// The effect of a factor, or of two together, in one step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FactorEffect {
    /// `fanout: 32 / 8`, or `fanout 32 with cache lru` for a ratio of two such ratios.
    pub name: String,
    /// A ratio of rates; of an interaction, the ratio of ratios: 1 if neither depends on the other.
    pub ratio: f64,
    /// Its t interval; `None` for one replicate.
    pub interval: Option<Interval>,
    /// Replicates: blocks; loads or sittings where several blocks share one.
    pub n: usize,
}

/// A full crossing of at least two factors.
#[derive(Clone, Debug, PartialEq)]
pub struct Crossing {
    /// The factors.
    pub factors: Vec<Factor>,
    /// The level of each factor, for each target.
    cells: Vec<Vec<usize>>,
}

impl Crossing {
    /// The crossing that the targets are, if they are one.
    pub fn of(comparison: &Comparison) -> Option<Crossing> {
        let targets = comparison.targets.iter().map(|facts| facts.target.as_ref());
        Crossing::of_targets(&targets.collect::<Option<Vec<&Target>>>()?)
    }

    fn of_targets(targets: &[&Target]) -> Option<Crossing> {
        let mut keys: Vec<&str> = Vec::new();
        for target in targets {
            for (key, _) in config_parts(&target.config).1 {
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
        // A setting that only some targets have is no factor: its other level has no name.
        let value = |target: &Target, key: &str| {
            let settings = config_parts(&target.config).1;
            settings.iter().find(|(known, _)| *known == key).map(|(_, value)| (*value).to_owned())
        };
        let mut columns: Vec<(String, Vec<String>)> = Vec::new();
        for key in keys {
            let values = targets.iter().map(|target| value(target, key)).collect::<Option<_>>()?;
            columns.push((key.to_owned(), values));
        }
        columns.push((BUILD.to_owned(), targets.iter().map(|target| identity(target)).collect()));
        let (mut factors, mut cells) = (Vec::new(), vec![Vec::new(); targets.len()]);
        for (name, values) in columns {
            let mut levels: Vec<String> = Vec::new();
            let mut places = Vec::new();
            for value in values {
                let known = levels.iter().position(|level| *level == value);
                places.push(known.unwrap_or(levels.len()));
                if known.is_none() {
                    levels.push(value);
                }
            }
            if name == BUILD {
                let first = |level| places.iter().position(|place| *place == level).unwrap_or(0);
                levels = (0..levels.len()).map(|level| shown(targets[first(level)])).collect();
            }
            if levels.len() > 1 {
                cells.iter_mut().zip(places).for_each(|(cell, place)| cell.push(place));
                factors.push(Factor { name, levels });
            }
        }
        let all: usize = factors.iter().map(|factor| factor.levels.len()).product();
        let mut distinct = cells.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let is_full = all == targets.len() && distinct.len() == all;
        (factors.len() > 1 && is_full).then_some(Crossing { factors, cells })
    }

    /// The effects in a step: each level of a factor against its first, then each pair of factors.
    /// Empty where a target lacks a replicate that others have.
    pub fn effects(&self, comparison: &Comparison, step: &StepComparison) -> Vec<FactorEffect> {
        let others = step.targets.iter().skip(1).map(|target| target.comparable(Metric::Rate));
        let Some(others) = others.collect::<Option<Vec<_>>>() else { return Vec::new() };
        let Some(first) = others.first() else { return Vec::new() };
        let blocks = |it: &Relative| -> Vec<(&str, u32)> {
            let runs = it.blocks.iter().filter_map(|run| comparison.runs.get(*run));
            runs.map(|run| (run.result_set.as_str(), run.key.block)).collect()
        };
        let alike = |it: &&Relative| {
            blocks(it) == blocks(first) && it.evidence().len() == first.evidence().len()
        };
        if !others.iter().all(alike) {
            return Vec::new();
        }
        // Relative to the baseline, which is 0 and cancels in every contrast.
        let mut logs = vec![vec![0.0; first.evidence().len()]];
        logs.extend(others.iter().map(|relative| relative.evidence().to_vec()));
        self.effects_of(&logs, comparison.rules.confidence)
    }

    fn effects_of(&self, logs: &[Vec<f64>], confidence: f64) -> Vec<FactorEffect> {
        let mut effects = Vec::new();
        let mut add = |name: String, weights: &[f64]| {
            let n = logs.first().map_or(0, Vec::len);
            let of =
                |at: usize| logs.iter().zip(weights).map(|(log, weight)| log[at] * weight).sum();
            let values: Vec<f64> = (0..n).map(of).collect();
            let Some(mean) = mean_interval(&values, confidence) else { return };
            let (ratio, interval) = (mean.mean.exp(), mean.interval.map(Interval::exp));
            effects.push(FactorEffect { name, ratio, interval, n });
        };
        for (at, factor) in self.factors.iter().enumerate() {
            for level in 1..factor.levels.len() {
                let [base, this] = [0, level].map(|place| factor.levels[place].as_str());
                add(format!("{}: {this} / {base}", factor.name), &self.weights(&[(at, level)]));
            }
        }
        for (one, factor) in self.factors.iter().enumerate() {
            for (two, other) in self.factors.iter().enumerate().skip(one + 1) {
                for a in 1..factor.levels.len() {
                    for b in 1..other.levels.len() {
                        let [x, y] = [(factor, a), (other, b)]
                            .map(|(it, level)| format!("{} {}", it.name, it.levels[level]));
                        let weights = self.weights(&[(one, a), (two, b)]);
                        add(format!("{x} with {y}"), &weights);
                    }
                }
            }
        }
        effects
    }

    /// The weight of each target in a contrast: each of these factors at its level against its first
    /// level, averaged over all levels of the others.
    fn weights(&self, wanted: &[(usize, usize)]) -> Vec<f64> {
        let weight = |cell: &Vec<usize>| -> f64 {
            let sign = |(factor, level): &(usize, usize)| match cell[*factor] {
                place if place == *level => 1.0,
                0 => -1.0,
                _ => 0.0,
            };
            wanted.iter().map(sign).product()
        };
        let weights: Vec<f64> = self.cells.iter().map(weight).collect();
        let each = weights.iter().map(|weight| weight.abs()).sum::<f64>()
            / 2_f64.powi(wanted.len() as i32);
        weights.into_iter().map(|weight| weight / each).collect()
    }
}

/// What a target is without its own settings.
fn identity(target: &Target) -> String {
    let Target { dbms, source, config, storage_engine, .. } = target;
    format!("{dbms} {source:?} {storage_engine:?} {}", config_parts(config).0)
}

/// The label of a target without the settings that a sweep adds to it.
fn shown(target: &Target) -> String {
    let without = |label, (_, value): &(&str, &str)| {
        let setting = str::strip_suffix(label, value).and_then(|rest| rest.strip_suffix('-'));
        setting.and_then(|rest| rest.rsplit_once('.')).map_or(label, |(before, _)| before)
    };
    let settings = config_parts(&target.config).1;
    settings.iter().rev().fold(target.label.as_str(), without).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::build::{BuildSource, Dbms};

    #[test]
    fn each_family_has_one_baseline() {
        let text = str::to_owned;
        let families = [
            (text("a"), text("mysql")),
            (text("b"), text("mysql with rocksdb")),
            (text("c"), text("mysql")),
        ];
        let of = |baselines: &[&str]| {
            let baselines: Vec<String> = baselines.iter().copied().map(text).collect();
            baseline_by_family(&families, &baselines)
        };
        let found = of(&["c", "b"]).expect("baselines");
        assert_eq!((&*found["mysql"], &*found["mysql with rocksdb"]), ("c", "b"));
        let said = of(&["a", "c"]).expect_err("two of one family").to_string();
        assert!(said.contains("`a` and `c`: both are mysql;"), "{said}");
        let said = of(&["x"]).expect_err("no such target").to_string();
        assert!(said.contains("`x`") && said.contains("b (mysql with rocksdb)"), "{said}");
    }

    fn target(label: &str, config: &str) -> Target {
        Target {
            label: label.to_owned(),
            dbms: Dbms::Sqlite,
            source: BuildSource::CompiledIn,
            config: config.to_owned(),
            storage_engine: None,
        }
    }

    fn crossing(configs: &[(&str, &str)]) -> Option<Crossing> {
        let targets: Vec<Target> =
            configs.iter().map(|(label, config)| target(label, config)).collect();
        Crossing::of_targets(&targets.iter().collect::<Vec<_>>())
    }

    const TWO: [(&str, &str); 6] = [
        ("a.x-1.y-1", "default,x=1,y=1"),
        ("a.x-1.y-2", "default,x=1,y=2"),
        ("a.x-1.y-3.5", "default,x=1,y=3.5"),
        ("a.x-9.y-1", "default,x=9,y=1"),
        ("a.x-9.y-2", "default,x=9,y=2"),
        ("a.x-9.y-3.5", "default,x=9,y=3.5"),
    ];

    #[test]
    fn only_a_full_crossing_is_one() {
        let found = crossing(&TWO).expect("a crossing");
        let names: Vec<&str> = found.factors.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(names, ["x", "y"], "the build is the same");
        assert_eq!(crossing(&TWO[..5]), None);
        assert_eq!(crossing(&TWO[..3]), None, "one factor is a comparison");
        assert_eq!(crossing(&[TWO[0], TWO[1], TWO[3], ("b", "default")]), None);
        let builds = [
            ("a.x-1", "default,x=1"),
            ("a.x-2", "default,x=2"),
            ("b.x-1", "mine,x=1"),
            ("b.x-2", "mine,x=2"),
        ];
        let found = crossing(&builds).expect("a crossing");
        assert_eq!(found.factors[1].levels, ["a", "b"]);
    }

    #[test]
    fn effects_are_those_that_made_the_rates() {
        let crossing = crossing(&TWO).expect("a crossing");
        let (x9, y2, y3, both) = (0.1, -0.2, 0.3, 0.05);
        let ln = [0.0, y2, y3, x9, x9 + y2 + both, x9 + y3];
        // A block that is faster as a whole changes nothing.
        let noise = [[0.01, -0.01, 0.0]; 6];
        let logs: Vec<Vec<f64>> =
            ln.iter().zip(noise).map(|(ln, noise)| noise.map(|it| ln + it).to_vec()).collect();
        let effects = crossing.effects_of(&logs, 0.95);
        let names: Vec<&str> = effects.iter().map(|it| it.name.as_str()).collect();
        let expected = ["x: 9 / 1", "y: 2 / 1", "y: 3.5 / 1", "x 9 with y 2", "x 9 with y 3.5"];
        assert_eq!(names, expected);
        let found: Vec<f64> = effects.iter().map(|it| it.ratio.ln()).collect();
        let wanted = [x9 + both / 3.0, y2 + both / 2.0, y3, both, 0.0];
        for (found, wanted) in found.iter().zip(wanted) {
            assert!((found - wanted).abs() < 1e-12, "{effects:?}");
        }
        let width = |it: &FactorEffect| it.interval.map(|it| it.high - it.low);
        assert!(effects.iter().all(|it| it.n == 3 && width(it).is_some_and(|it| it < 1e-9)));
    }
}
