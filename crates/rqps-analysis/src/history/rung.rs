//! The targets of a ladder: which belong together, and in which order.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::Comparison;
use crate::comparison::TargetFacts;
use rqps_model::build::{Dbms, Version};
use rqps_model::target::Target;

/// One target of a ladder.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rung {
    /// Label of the target.
    pub label: String,
    /// The version, if known.
    pub version: Option<String>,
    /// Name of its configuration.
    pub config: String,
    /// The branch of the version, `10.11`; empty where the version is unknown.
    pub branch: String,
    /// Place in the comparison.
    #[serde(skip)]
    pub target: usize,
}

impl Rung {
    /// The version, which is short, or the label where no version is known.
    pub fn name(&self) -> &str {
        self.version.as_deref().unwrap_or(&self.label)
    }
}

/// The family of a target of a comparison.
pub(super) fn family(facts: &TargetFacts) -> String {
    family_of(facts.target.as_ref())
}

/// The name of a ladder: the DBMS, with its storage engine if the target names one.
pub fn family_of(target: Option<&Target>) -> String {
    let Some(target) = target else { return "unknown".to_owned() };
    let mut name = target.dbms.name().to_owned();
    if let Some(storage) = &target.storage_engine {
        name.push_str(&format!(" with {storage}"));
    }
    name
}

/// Apart by configuration if one version has several.
pub(super) fn by_config(family: String, rungs: Vec<Rung>) -> Vec<(String, Vec<Rung>)> {
    let mut names: Vec<&str> = rungs.iter().map(Rung::name).collect();
    names.sort_unstable();
    if names.windows(2).all(|pair| pair[0] != pair[1]) {
        return vec![(family, rungs)];
    }
    let mut parts: BTreeMap<String, Vec<Rung>> = BTreeMap::new();
    for rung in rungs {
        parts.entry(rung.config.clone()).or_default().push(rung);
    }
    let named = |(config, rungs)| (format!("{family}, config {config}"), rungs);
    parts.into_iter().map(named).collect()
}

/// The rung of a target.
pub(super) fn rung(comparison: &Comparison, target: usize) -> Rung {
    let facts = &comparison.targets[target];
    let version = facts.manifests.first().map(|manifest| manifest.version.as_str().to_owned());
    let config = facts.target.as_ref().map_or_else(String::new, |target| target.config.clone());
    let version = version.filter(|text| !text.is_empty());
    let branch = branch(facts.target.as_ref().map(|target| target.dbms), version.as_deref());
    Rung { label: facts.label.clone(), version, config, branch, target }
}

/// The branch of a version of a DBMS.
pub(super) fn branch(dbms: Option<Dbms>, version: Option<&str>) -> String {
    match (dbms, version) {
        (Some(dbms), Some(version)) => dbms.branch(&Version::new(version)),
        _ => String::new(),
    }
}

/// Places of versions along which changes are searched: all, or with branches the first version of
/// each branch and then each branch with two or more. A later branch begins from an early version
/// of the one before, not from its last fix.
pub(super) fn chains(rungs: &[Rung], branches: bool) -> Vec<Vec<usize>> {
    let all: Vec<usize> = (0..rungs.len()).collect();
    if !branches {
        return vec![all];
    }
    let parts: Vec<&[usize]> = all.chunk_by(|a, b| rungs[*a].branch == rungs[*b].branch).collect();
    let trunk: Vec<usize> = parts.iter().map(|part| part[0]).collect();
    let several = parts.into_iter().filter(|part| part.len() > 1).map(<[usize]>::to_vec);
    std::iter::once(trunk).chain(several).collect()
}

/// By the numbers of their versions, so that 10.11.14 stands before 11.0.6 although it came out
/// later: each branch is together. Equal versions keep the plan's order. Not sorted, and false, if
/// a version has no numbers.
pub(super) fn sorted(mut rungs: Vec<Rung>) -> (Vec<Rung>, bool) {
    let numbers = |rung: &Rung| {
        let version = rung.version.as_ref().map(Version::new);
        version.map(|version| version.numbers()).unwrap_or_default()
    };
    let known = rungs.iter().all(|rung| !numbers(rung).is_empty());
    if known {
        rungs.sort_by_key(numbers);
    }
    (rungs, known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rungs(versions: &[&str]) -> Vec<Rung> {
        let rung = |(target, version): (usize, &&str)| Rung {
            label: (*version).to_owned(),
            version: Some((*version).to_owned()).filter(|text| !text.is_empty()),
            branch: branch(Some(Dbms::Mariadb), Some(version)),
            config: format!("c{}", target % 2),
            target,
        };
        versions.iter().enumerate().map(rung).collect()
    }

    #[test]
    fn branches_stay_together() {
        let (sorted, by_version) = sorted(rungs(&["11.0.6", "10.11.14", "10.4.8", "10.4.34"]));
        let labels: Vec<&str> = sorted.iter().map(|rung| rung.label.as_str()).collect();
        assert_eq!(labels, ["10.4.8", "10.4.34", "10.11.14", "11.0.6"]);
        assert!(by_version);
    }

    #[test]
    fn configurations_are_ladders_where_a_version_has_several() {
        let one = by_config("mysql".to_owned(), rungs(&["5.6", "5.7", "8.0"]));
        assert_eq!(one.len(), 1);
        let two = by_config("mysql".to_owned(), rungs(&["5.6", "5.6", "8.0", "8.0"]));
        let names: Vec<&str> = two.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["mysql, config c0", "mysql, config c1"]);
        assert!(two.iter().all(|(_, rungs)| rungs.len() == 2));
    }

    #[test]
    fn branches_are_chains() {
        let all = rungs(&["10.2.30", "10.4.8", "10.4.34", "10.11.14", "11.0.6"]);
        assert_eq!(chains(&all, false), [vec![0, 1, 2, 3, 4]]);
        assert_eq!(chains(&all, true), [vec![0, 1, 3, 4], vec![1, 2]]);
        let of = |dbms, version| branch(Some(dbms), Some(version));
        assert_eq!(of(Dbms::Postgres, "17.2.0"), "17");
        assert_eq!(of(Dbms::Postgres, "9.6.24"), "9.6");
        assert_eq!(of(Dbms::Rocksdb, "10.6.2"), "10.6");
    }

    #[test]
    fn an_unknown_version_keeps_the_order_of_the_plan() {
        let (sorted, by_version) = sorted(rungs(&["11.0.6", "", "10.4.8"]));
        let targets: Vec<usize> = sorted.iter().map(|rung| rung.target).collect();
        assert_eq!(targets, [0, 1, 2]);
        assert!(!by_version);
    }
}
