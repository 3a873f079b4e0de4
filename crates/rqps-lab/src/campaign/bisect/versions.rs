//! The versions of a bisection: those given, or those that lie between two ends.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::plan::words;
use rqps_builds::catalogue::Entry;
use rqps_builds::source::{self, Commit, IdleFiles};
use rqps_model::bisection::BisectedVersion;
use rqps_model::build::{BuildSource, Dbms, Version};
use rqps_model::target::Target;

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
    Ok(std::iter::once(first).chain(inner).chain([last]).collect())
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
