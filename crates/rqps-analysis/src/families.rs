//! Divides a dataset by family, so that the targets of each family have their own baseline.

use std::collections::BTreeMap;

use thiserror::Error;

use super::history::family_of;
use super::measurement::Measurement;
use rqps_model::run::{Dataset, Run};
use rqps_model::target::Target;

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

/// A list of baselines that does not fit the targets.
#[derive(Debug, Error, PartialEq)]
pub enum FamilyError {
    /// No target has the label.
    #[error("compare with baseline `{baseline}`: no such target; these folders hold {labels}")]
    Unknown {
        /// The label.
        baseline: String,
        /// The labels with their families.
        labels: String,
    },
    /// Two baselines are of one family.
    #[error(
        "compare with baselines `{first}` and `{second}`: both are {family}; name one baseline for \
         each DBMS and storage engine"
    )]
    Twice {
        /// The first one named.
        first: String,
        /// The other one.
        second: String,
        /// The family of both.
        family: String,
    },
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
) -> Result<Vec<FamilyPart>, FamilyError> {
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
) -> Result<BTreeMap<String, String>, FamilyError> {
    let mut chosen: BTreeMap<String, String> = BTreeMap::new();
    for baseline in baselines {
        let Some((_, family)) = families.iter().find(|(label, _)| label == baseline) else {
            let labels: Vec<String> =
                families.iter().map(|(label, family)| format!("{label} ({family})")).collect();
            return Err(FamilyError::Unknown {
                baseline: baseline.clone(),
                labels: labels.join(", "),
            });
        };
        if let Some(first) = chosen.insert(family.clone(), baseline.clone()) {
            let (second, family) = (baseline.clone(), family.clone());
            return Err(FamilyError::Twice { first, second, family });
        }
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
