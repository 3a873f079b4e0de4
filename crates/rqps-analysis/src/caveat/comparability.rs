//! Caveats on comparability: hosts, workloads, placements, builds, settings.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::Serialize;
use serde_json::Value;

use super::{Caveat, CaveatKind, Disagreement, Evidence, disagreement, distinct, spell};
use crate::compare::{setting_differences, spell_differences};
use crate::comparison::TargetFacts;
use crate::measurement::Extension;
use crate::measurement::rate_unit;
use crate::pairing::{PairKey, pair_key};
use rqps_model::benchmark::Workload;
use rqps_model::build::{BuildSource, Config, Manifest};
use rqps_model::host::Tuning;
use rqps_model::run::RunRecord;

/// Differing lines of settings that are shown; the rest is counted.
const LINES_SHOWN: usize = 8;

pub(super) fn find(evidence: &Evidence, extensions: &[&Extension]) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    caveats.extend(hosts(evidence));
    caveats.extend(tunings(evidence));
    caveats.extend(debug_builds(evidence));
    let differing =
        [(CaveatKind::DifferentBenchmark, "benchmark"), (CaveatKind::DifferentRqps, "version")];
    for (kind, name) in differing {
        let values = by_label(evidence, |record| match kind {
            CaveatKind::DifferentBenchmark => &record.benchmark,
            _ => &record.rqps_version,
        });
        caveats.extend(of_all(kind, name, &values));
    }
    caveats.extend(workloads(evidence, extensions));
    caveats.extend(turns(evidence));
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
                kind: CaveatKind::MixedBuilds,
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
            caveats.push(Caveat { kind: CaveatKind::MixedSettings, target, steps: vec![], text });
        }
    }
    caveats.extend(servers(evidence));
    caveats.extend(settings(evidence));
    caveats.extend(compilers(evidence));
    caveats.extend(same_code(evidence));
    caveats
}

/// Targets whose servers or libraries reported assertions, each with the setting that says so.
fn debug_builds(evidence: &Evidence) -> Vec<Caveat> {
    let records = evidence.dataset.runs.iter().map(|run| &run.record);
    let said = records
        .filter_map(|record| Some((record.key.label.as_str(), record.debug_build.as_deref()?)));
    let of_target = |(label, words): (&str, &str)| {
        Caveat::of(CaveatKind::DebugBuild, label, format!("built for debugging ({words})"))
    };
    said.collect::<BTreeSet<_>>().into_iter().map(of_target).collect()
}

/// Targets whose sources differ from those of the baseline in nothing that a compiler sees, with the
/// same settings.
fn same_code(evidence: &Evidence) -> Vec<Caveat> {
    let targets = &evidence.comparison.targets;
    let [baseline, others @ ..] = targets.as_slice() else { return Vec::new() };
    let code = |facts: &TargetFacts| match facts.manifests.as_slice() {
        [Manifest { code: Some(code), .. }] => Some(code.clone()),
        _ => None,
    };
    let is_same = |facts: &&TargetFacts| {
        code(facts).is_some() && code(facts) == code(baseline) && facts.configs == baseline.configs
    };
    let of_target = |facts: &TargetFacts| {
        let text = format!("its sources are those of {} but for comments", baseline.label);
        Caveat::of(CaveatKind::SameCode, &facts.label, text)
    };
    others.iter().filter(is_same).map(of_target).collect()
}

/// Compilers of the builds, where a side of a comparison tells its own and both are of one product:
/// between two products a compiler is the least difference.
fn compilers(evidence: &Evidence) -> Vec<Caveat> {
    let mut by_dbms: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
    for facts in &evidence.comparison.targets {
        for manifest in &facts.manifests {
            let compiler = compiler_of(manifest).unwrap_or_else(|| UNKNOWN.to_owned());
            let pair = (facts.label.clone(), compiler);
            by_dbms.entry(manifest.dbms.name()).or_default().push(pair);
        }
    }
    let caveats = by_dbms.into_values().filter_map(|pairs| {
        of_all(CaveatKind::DifferentCompiler, "compiler", &disagreement(pairs))
    });
    caveats.collect()
}

/// Stands for a compiler that a build does not tell.
const UNKNOWN: &str = "unknown";

/// `gcc 7.5.0`, from `GCC: (Ubuntu 7.5.0-3ubuntu1) 7.5.0` of a binary, or `gcc (Debian 12.2.0-14)
/// 12.2.0` of a toolchain and of a server.
fn compiler_of(manifest: &Manifest) -> Option<String> {
    let mut names: Vec<String> =
        manifest.compiler.as_deref()?.split("; ").map(short_compiler).collect();
    names.sort();
    names.dedup();
    Some(names.join(" and "))
}

/// The name and the version of a compiler; the text itself where it has another form.
fn short_compiler(text: &str) -> String {
    let lower = text.to_lowercase();
    // A `cc` that is none of these calls itself by their name.
    let is_cc = lower.starts_with("cc (").then_some("gcc");
    let names = ["clang", "gcc", "icc", "msvc"];
    let name = names.into_iter().find(|name| lower.contains(name)).or(is_cc);
    // The version follows the brackets of who packaged it.
    let rest = text.split_once(')').map_or(text, |(_, rest)| rest);
    let is_version = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    match (name, rest.split_whitespace().find(is_version)) {
        (Some(name), Some(version)) => format!("{name} {version}"),
        _ => text.trim().to_owned(),
    }
}

/// Values of all runs by label, if they disagree.
fn by_label<'a>(evidence: &Evidence<'a>, get: impl Fn(&'a RunRecord) -> &'a str) -> Disagreement {
    let records = evidence.dataset.runs.iter().map(|run| &run.record);
    let pairs = records.map(|record| (record.key.label.as_str(), get(record)));
    // Nearly all runs of a label agree.
    let mut known = HashSet::new();
    let new = pairs.filter(|pair| known.insert(*pair));
    disagreement(new.map(|(label, value)| (label.to_owned(), value.to_owned())))
}

fn of_all(kind: CaveatKind, name: &str, values: &[(String, Vec<String>)]) -> Option<Caveat> {
    (!values.is_empty()).then(|| Caveat::on_all(kind, format!("{name}: {}", spell(values))))
}

/// The fingerprints, and the facts that make the difference where the hosts are known.
fn hosts(evidence: &Evidence) -> Option<Caveat> {
    let fingerprints = by_label(evidence, |record| &record.host_fingerprint);
    let kind = if pairs_within_hosts(evidence) {
        CaveatKind::SeveralHosts
    } else {
        CaveatKind::DifferentHost
    };
    let mut caveat = of_all(kind, "fingerprint", &fingerprints)?;
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

/// True if every block has one host, and every target shares a set with the baseline: then no ratio
/// is one of two hosts.
fn pairs_within_hosts(evidence: &Evidence) -> bool {
    let runs = &evidence.comparison.runs;
    let mut host_of: BTreeMap<PairKey<'_>, &str> = BTreeMap::new();
    let one_host = runs.iter().all(|run| {
        let host = host_of.entry(pair_key(run)).or_insert(&run.host_fingerprint);
        *host == run.host_fingerprint
    });
    let sets = |label: &str| -> BTreeSet<&str> {
        let of_label = runs.iter().filter(|run| run.key.label == label);
        of_label.map(|run| run.result_set.as_str()).collect()
    };
    let shared = sets(&evidence.comparison.baseline);
    let targets = &evidence.comparison.targets;
    one_host && targets.iter().all(|target| !sets(&target.label).is_disjoint(&shared))
}

/// Settings in which one host differs between result sets. Those of before they were recorded say
/// nothing.
fn tunings(evidence: &Evidence) -> Option<Caveat> {
    type Named = Vec<(String, BTreeMap<String, String>)>;
    let mut facts: BTreeMap<&str, Named> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for run in &evidence.dataset.runs {
        let Some(tuning) = evidence.dataset.tunings.get(&run.result_set) else { continue };
        if seen.insert(&run.result_set) {
            let own = facts.entry(&run.record.host_fingerprint).or_default();
            own.push((run.result_set.clone(), fields(tuning)));
        }
    }
    let differing = facts.into_values().flat_map(differing_fields);
    let text: Vec<String> =
        differing.map(|(fact, values)| format!("{fact}: {}", spell(&values))).collect();
    (!text.is_empty()).then(|| Caveat::on_all(CaveatKind::HostChanged, text.join("; ")))
}

/// Each field of the workload in which runs differ; placement and idle state have their own kind.
fn workloads(evidence: &Evidence, extensions: &[&Extension]) -> Vec<Caveat> {
    // Nearly always the same in every run of a target.
    let mut by_label: BTreeMap<&str, Vec<(bool, &Workload)>> = BTreeMap::new();
    let mut all = Vec::new();
    for record in evidence.dataset.runs.iter().map(|run| &run.record) {
        let known = by_label.entry(&record.key.label).or_default();
        let own = (is_imported(record), &record.workload);
        if !known.contains(&own) {
            known.push(own);
            all.push((record.key.label.clone(), known_workload(record, extensions)));
        }
    }
    let differing = differing_fields(all);
    let caveats = differing.into_iter().filter_map(|(field, values)| {
        let kind = match field.as_str() {
            "placement" => CaveatKind::DifferentPlacement,
            "idle" => CaveatKind::DifferentIdle,
            _ => CaveatKind::DifferentWorkload,
        };
        of_all(kind, &field, &values)
    });
    caveats.collect()
}

/// The fields of a run's workload. Imported files tell few, and 0 stands for what they do not.
fn known_workload(record: &RunRecord, extensions: &[&Extension]) -> BTreeMap<String, String> {
    let mut workload = record.workload.clone();
    extensions.iter().for_each(|own| (own.comparable)(&mut workload));
    let mut fields = fields(&workload);
    if is_imported(record) {
        let scale = ["tables", "rows", "clients", "read_seconds", "write_seconds"];
        fields.retain(|name, value| {
            scale.contains(&name.as_str()) && value.parse().is_ok_and(|value: f64| value > 0.0)
        });
    }
    fields
}

/// Steps that rqps measured in turns on some targets and continuously on others.
fn turns(evidence: &Evidence) -> Option<Caveat> {
    let mut found = Vec::new();
    let mut ways = Vec::new();
    for (step, records) in evidence.comparison.steps.iter().zip(&evidence.records) {
        let of_step = (evidence.comparison.targets.iter().zip(records))
            .flat_map(|(target, records)| records.iter().map(|record| (&target.label, *record)))
            .filter(|(_, record)| record.imported.is_none())
            .map(|(label, record)| {
                let way = if record.outcome.turns.is_some() { "in turns" } else { "continuously" };
                (label, way)
            });
        // Nearly always the same in every run.
        let of_step = distinct(of_step);
        if of_step.iter().any(|(_, way)| *way != of_step[0].1) {
            found.push(step.name.clone());
            ways.extend(of_step.into_iter().map(|(label, way)| (label.clone(), way.to_owned())));
        }
    }
    let text = spell(&disagreement(ways));
    let kind = CaveatKind::DifferentTurns;
    (!found.is_empty()).then_some(Caveat::on_all(kind, text).in_steps(found))
}

fn is_imported(record: &RunRecord) -> bool {
    matches!(record.target.source, BuildSource::Imported(_))
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
            let own = records.iter().map(|record| (record.group, record.rate));
            distinct(own).into_iter().map(|(group, rate)| {
                (target.label.clone(), format!("{} {}", group.name(), rate_unit(rate)))
            })
        });
        let meanings = disagreement(pairs);
        let pairs = step.targets.iter().zip(records).flat_map(|(target, records)| {
            // Published files lack these details. An unknown detail is no difference.
            let own = records.iter().filter(|record| record.imported.is_none());
            let own = distinct(own.map(|record| &record.detail));
            own.into_iter().map(|detail| (target.label.clone(), format!("`{detail}`")))
        });
        let details = disagreement(pairs);
        for (what, values) in [("group and unit", meanings), ("details", details)] {
            if let Some(caveat) = of_all(CaveatKind::DifferentStep, what, &values) {
                caveats.push(Caveat { steps: vec![step.name.clone()], ..caveat });
            }
        }
    }
    caveats
}

/// Servers that differ from that of the baseline in settings without which rates mean little.
fn servers(evidence: &Evidence) -> Vec<Caveat> {
    let Some((baseline, others)) = evidence.comparison.targets.split_first() else {
        return Vec::new();
    };
    let mut caveats = Vec::new();
    for facts in others {
        let found = setting_differences(baseline, facts);
        let (asked, other): (Vec<_>, Vec<_>) = found.iter().partition(|it| it.is_asked);
        let asked = asked.into_iter().filter(|it| it.is_of_durability()).collect();
        for (kind, found) in
            [(CaveatKind::DifferentServers, other), (CaveatKind::AskedDurability, asked)]
        {
            if !found.is_empty() {
                caveats.push(Caveat::on_all(
                    kind,
                    spell_differences(&found, &baseline.label, &facts.label),
                ));
            }
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
                caveats.push(Caveat::of(
                    CaveatKind::DifferentSettings,
                    label,
                    format!(
                        "config `{name}` of {dbms} differs from that of {first_label}: {}",
                        differing_lines(first, config)
                    ),
                ));
            }
        }
    }
    caveats
}

/// Lines that only one of two settings has: `-` marks lines of the first.
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
        differing.push("same lines in a different order, or different comments".to_owned());
    }
    let more = if hidden > 0 { format!(" and {hidden} more") } else { String::new() };
    format!("{} to {}: {}{more}", first.hash, second.hash, differing.join(" "))
}

// Readahead that asks for more than the disk takes at once.

/// Settings of servers by which reads are made larger, and the bytes of a plain number there.
const SETTINGS: [(&str, u64); 3] = [
    ("rocksdb_compaction_readahead_size", 1),
    // Blocks of Postgres.
    ("io_combine_limit", 8192),
    ("io_max_combine_limit", 8192),
];

pub(super) fn readahead(evidence: &Evidence) -> Vec<Caveat> {
    let mut caveats: Vec<Caveat> = Vec::new();
    let mut seen = BTreeSet::new();
    for run in &evidence.dataset.runs {
        let Some(tuning) = evidence.dataset.tunings.get(&run.result_set) else { continue };
        let Some(limit_kb) = tuning.max_sectors_kb else { continue };
        let label = &run.record.key.label;
        let configured = of_target(&run.record).map(|found| (Some(label.clone()), found));
        let found = configured.into_iter().chain(of_kernel(tuning).map(|found| (None, found)));
        for (target, (name, kb)) in found.filter(|(_, (_, kb))| *kb > limit_kb) {
            if seen.insert((target.clone(), name.clone(), kb)) {
                caveats.push(too_large(target, &name, kb, limit_kb));
            }
        }
    }
    caveats
}

/// A readahead that is larger than a request to the disk, in KiB.
pub fn too_large(target: Option<String>, name: &str, kb: u64, limit_kb: u64) -> Caveat {
    let text = format!("{name} is {kb} KiB, max_sectors_kb of the disk is {limit_kb}");
    Caveat { kind: CaveatKind::Readahead, target, steps: Vec::new(), text }
}

type Found = (String, u64);

/// The page cache's.
fn of_kernel(tuning: &Tuning) -> Option<Found> {
    Some(("read_ahead_kb of the disk".to_owned(), tuning.read_ahead_kb?))
}

/// The largest that the configuration asks for.
fn of_target(record: &RunRecord) -> Option<Found> {
    let lines = record.config.text.lines().filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        let name = name.trim().to_lowercase().replace('-', "_");
        let (_, unit) = SETTINGS.iter().find(|(known, _)| *known == name)?;
        Some((name, bytes(value.trim().trim_matches(['\'', '"']), *unit)? >> 10))
    });
    lines.max_by_key(|(_, kb)| *kb)
}

/// `128kB`, `2M`, or a plain number of `unit` bytes.
fn bytes(text: &str, unit: u64) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..end].parse().ok()?;
    let factor = match text[end..].trim().to_lowercase().as_str() {
        "" => unit,
        "b" => 1,
        "k" | "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        "g" | "gb" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_are_known_by_name_and_version() {
        let check = |text: &str, expected: &str| {
            assert_eq!(short_compiler(text), expected, "{text}");
        };
        check("GCC: (Ubuntu 7.5.0-3ubuntu1~18.04) 7.5.0", "gcc 7.5.0");
        check("gcc (Debian 12.2.0-14+deb12u1) 12.2.0", "gcc 12.2.0");
        check("cc (Debian 12.2.0-14+deb12u1) 12.2.0 -O2 -g, patch 1f.patch", "gcc 12.2.0");
        check("GCC: (GNU) 8.5.0 20210514 (Red Hat 8.5.0-4)", "gcc 8.5.0");
        check("Debian clang version 14.0.6", "clang 14.0.6");
        check("GCC 4.4.7", "gcc 4.4.7");
        check("tcc", "tcc");
    }

    #[test]
    fn sizes_are_those_of_configs() {
        let check = |text: &str, unit, wanted| assert_eq!(bytes(text, unit), wanted, "{text}");
        check("16", 8192, Some(131_072));
        check("128kB", 8192, Some(131_072));
        check("2M", 1, Some(2 << 20));
        check("2097152", 1, Some(2 << 20));
        check("many", 1, None);
        check("99999999999999999G", 1, None);
    }
}
