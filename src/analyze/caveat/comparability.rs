//! Whether the runs may be compared at all: hosts, workloads, placements, builds, settings.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::{Caveat, Disagreement, Evidence, Kind, disagreement, distinct, spell};
use crate::analyze::metrics::rate_unit;
use crate::domain::benchmark::Workload;
use crate::domain::build::Source;
use crate::domain::config::Config;
use crate::domain::run::RunRecord;

/// Differing lines of settings that are shown; the rest is counted.
const LINES_SHOWN: usize = 8;

pub(super) fn find(evidence: &Evidence) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    caveats.extend(hosts(evidence));
    let differing = [(Kind::DifferentBenchmark, "benchmark"), (Kind::DifferentRqps, "version")];
    for (kind, name) in differing {
        let values = by_label(evidence, |record| match kind {
            Kind::DifferentBenchmark => record.benchmark.clone(),
            _ => record.rqps_version.clone(),
        });
        caveats.extend(of_all(kind, name, &values));
    }
    caveats.extend(workloads(evidence));
    caveats.extend(steps(evidence));
    for (place, label) in evidence.targets() {
        let facts = &evidence.comparison.targets[place];
        let target = Some(label.to_owned());
        if facts.manifests.len() > 1 {
            let builds = facts.manifests.iter().map(|manifest| {
                let sha = manifest.sha256.as_deref().unwrap_or("no checksum");
                let short: String = sha.chars().take(12).collect();
                format!("{} {} from {} ({short})", manifest.dbms, manifest.version, manifest.origin)
            });
            let text = builds.collect::<Vec<_>>().join("; ");
            caveats.push(Caveat {
                kind: Kind::MixedBuilds,
                target: target.clone(),
                steps: vec![],
                text,
            });
        }
        if let [first, others @ ..] = facts.configs.as_slice()
            && !others.is_empty()
        {
            let texts = others.iter().map(|other| differing_lines(first, other));
            let text = texts.collect::<Vec<_>>().join("; ");
            caveats.push(Caveat { kind: Kind::MixedSettings, target, steps: vec![], text });
        }
    }
    caveats.extend(settings(evidence));
    caveats.extend(compilers(evidence));
    caveats
}

/// Compilers of the builds, where both sides of a comparison tell theirs and are of one product:
/// between two products a compiler is the least difference.
fn compilers(evidence: &Evidence) -> Vec<Caveat> {
    let mut by_dbms: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
    for facts in &evidence.comparison.targets {
        for manifest in &facts.manifests {
            if let Some(compiler) = &manifest.compiler {
                let pair = (facts.label.clone(), compiler.clone());
                by_dbms.entry(manifest.dbms.name()).or_default().push(pair);
            }
        }
    }
    let caveats = by_dbms
        .into_values()
        .filter_map(|pairs| of_all(Kind::DifferentCompiler, "compiler", &disagreement(pairs)));
    caveats.collect()
}

/// Values of all runs by label, if they disagree.
fn by_label(evidence: &Evidence, get: impl Fn(&RunRecord) -> String) -> Disagreement {
    let runs = evidence.dataset.runs.iter();
    disagreement(runs.map(|run| (run.record.key.label.clone(), get(&run.record))))
}

fn of_all(kind: Kind, name: &str, values: &[(String, Vec<String>)]) -> Option<Caveat> {
    (!values.is_empty()).then(|| Caveat {
        kind,
        target: None,
        steps: Vec::new(),
        text: format!("{name}: {}", spell(values)),
    })
}

/// The fingerprints, and the facts that make the difference where the hosts are known.
fn hosts(evidence: &Evidence) -> Option<Caveat> {
    let fingerprints = by_label(evidence, |record| record.host_fingerprint.clone());
    let mut caveat = of_all(Kind::DifferentHost, "fingerprint", &fingerprints)?;
    let known = fingerprints.iter().filter_map(|(fingerprint, _)| {
        let host = evidence.dataset.hosts.get(fingerprint)?;
        Some((fingerprint.clone(), fields(host)))
    });
    for (fact, values) in differing_fields(known.collect()) {
        if fact != "missing" {
            caveat.text.push_str(&format!("; {fact}: {}", spell(&values)));
        }
    }
    Some(caveat)
}

/// Each field of the workload in which runs differ; placement and idle state have their own kind.
fn workloads(evidence: &Evidence) -> Vec<Caveat> {
    // Nearly always the same in every run of a target.
    let mut by_label: BTreeMap<&str, Vec<(bool, &Workload)>> = BTreeMap::new();
    let mut all = Vec::new();
    for record in evidence.dataset.runs.iter().map(|run| &run.record) {
        let known = by_label.entry(&record.key.label).or_default();
        let own = (is_imported(record), &record.workload);
        if !known.contains(&own) {
            known.push(own);
            all.push((record.key.label.clone(), known_workload(record)));
        }
    }
    let differing = differing_fields(all);
    let caveats = differing.into_iter().filter_map(|(field, values)| {
        let kind = match field.as_str() {
            "placement" => Kind::DifferentPlacement,
            "idle" => Kind::DifferentIdle,
            _ => Kind::DifferentWorkload,
        };
        of_all(kind, &field, &values)
    });
    caveats.collect()
}

/// The fields of a run's workload. Imported files tell few, and 0 stands for what they do not.
fn known_workload(record: &RunRecord) -> BTreeMap<String, String> {
    let mut fields = fields(&record.workload);
    if is_imported(record) {
        let scale = ["tables", "rows", "clients", "read_seconds", "write_seconds"];
        fields.retain(|name, value| {
            scale.contains(&name.as_str()) && value.parse().is_ok_and(|value: f64| value > 0.0)
        });
    }
    fields
}

fn is_imported(record: &RunRecord) -> bool {
    matches!(record.target.source, Source::Imported(_))
}

/// Top-level fields of a record as compact JSON, text without its quotes.
fn fields<T: Serialize>(record: &T) -> BTreeMap<String, String> {
    let Ok(Value::Object(map)) = serde_json::to_value(record) else { return BTreeMap::new() };
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    map.into_iter().map(|(name, value)| (name, text(value))).collect()
}

/// The fields in which named records differ, with their values by name.
fn differing_fields(
    records: Vec<(String, BTreeMap<String, String>)>,
) -> Vec<(String, Disagreement)> {
    let names: BTreeSet<&String> = records.iter().flat_map(|(_, fields)| fields.keys()).collect();
    let differing = names.into_iter().filter_map(|field| {
        let pairs = records
            .iter()
            .filter_map(|(name, fields)| Some((name.clone(), fields.get(field)?.clone())));
        let values = disagreement(pairs);
        (!values.is_empty()).then(|| (field.clone(), values))
    });
    differing.collect()
}

/// Steps of one name whose rate, group or true parameters differ.
fn steps(evidence: &Evidence) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    for (step, records) in evidence.comparison.steps.iter().zip(&evidence.records) {
        let pairs = step.targets.iter().zip(records).flat_map(|(target, records)| {
            let own = records.iter().map(|record| (record.group, record.rate, &record.detail));
            distinct(own).into_iter().map(|(group, rate, detail)| {
                let meaning = format!("{} {} `{detail}`", group.name(), rate_unit(rate));
                (target.label.clone(), meaning)
            })
        });
        let values = disagreement(pairs);
        if let Some(caveat) = of_all(Kind::DifferentStep, "group, unit and details", &values) {
            caveats.push(Caveat { steps: vec![step.name.clone()], ..caveat });
        }
    }
    caveats
}

/// Targets of one DBMS that name the same configuration and read different settings.
fn settings(evidence: &Evidence) -> Vec<Caveat> {
    let mut named: BTreeMap<(&str, &str), Vec<(&str, &Config)>> = BTreeMap::new();
    for facts in &evidence.comparison.targets {
        let (Some(manifest), Some(config)) = (facts.manifests.first(), facts.configs.first())
        else {
            continue;
        };
        let key = (manifest.dbms.name(), config.name.as_str());
        named.entry(key).or_default().push((&facts.label, config));
    }
    let mut caveats = Vec::new();
    for ((dbms, name), configs) in named {
        let Some(((first_label, first), others)) = configs.split_first() else { continue };
        for (label, config) in others {
            if config.hash != first.hash {
                caveats.push(Caveat {
                    kind: Kind::DifferentSettings,
                    target: Some((*label).to_owned()),
                    steps: Vec::new(),
                    text: format!(
                        "config `{name}` of {dbms} differs from that of {first_label}: {}",
                        differing_lines(first, config)
                    ),
                });
            }
        }
    }
    caveats
}

/// Lines that only one of two settings has: `-` for those of the first.
fn differing_lines(first: &Config, second: &Config) -> String {
    let lines = |config: &Config| -> Vec<String> {
        let lines = config.text.lines().map(|line| line.trim().to_owned());
        lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
    };
    let (a, b) = (lines(first), lines(second));
    let only = |of: &[String], not_of: &[String], sign: &str| -> Vec<String> {
        let own = of.iter().filter(|line| !not_of.contains(line));
        own.map(|line| format!("`{sign}{line}`")).collect()
    };
    let mut differing = only(&a, &b, "-");
    differing.extend(only(&b, &a, "+"));
    let hidden = differing.len().saturating_sub(LINES_SHOWN);
    differing.truncate(LINES_SHOWN);
    if differing.is_empty() {
        differing.push("the same lines in another order, or other comments".to_owned());
    }
    let more = if hidden > 0 { format!(" and {hidden} more") } else { String::new() };
    format!("{} to {}: {}{more}", first.hash, second.hash, differing.join(" "))
}
