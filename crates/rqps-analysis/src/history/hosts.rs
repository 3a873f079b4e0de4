//! Changes of the host along a history: a new kernel or release of the system makes another
//! fingerprint, and so another history, unless the user takes both for one host.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::Comparison;
use rqps_model::host::{Host, compared};

/// Differing facts that are named at most.
const FACTS_MOST: usize = 6;

/// The first result set of another host than that before it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostChange {
    /// Start of its first run, RFC 3339.
    pub date: String,
    /// Fingerprint of the host before.
    pub before: String,
    /// Fingerprint of its host.
    pub after: String,
    /// The facts that differ: `os: Debian 12 → Debian 13`.
    pub differs: String,
}

/// The changes of host between the runs of a target, the oldest first, each pair of hosts once.
pub(super) fn host_changes(comparison: &Comparison, target: usize) -> Vec<HostChange> {
    let mut runs: Vec<(&str, &str)> = comparison.targets[target]
        .runs
        .iter()
        .map(|run| &comparison.runs[*run])
        .map(|run| (run.started.as_str(), run.host_fingerprint.as_str()))
        .collect();
    runs.sort_unstable();
    let mut known = BTreeSet::new();
    let changes = runs.windows(2).filter_map(|pair| {
        let [(_, before), (date, after)] = [pair[0], pair[1]];
        let new = before != after && known.insert([before.min(after), before.max(after)]);
        new.then(|| HostChange {
            date: date.to_owned(),
            before: before.to_owned(),
            after: after.to_owned(),
            differs: host_difference(comparison.hosts.get(before), comparison.hosts.get(after)),
        })
    });
    changes.collect()
}

/// `kernel: 6.1 → 6.12; os: Debian 12 → Debian 13` between two hosts.
pub(super) fn host_difference(before: Option<&Host>, after: Option<&Host>) -> String {
    let (Some(before), Some(after)) = (before, after) else {
        return "what differs is not recorded".to_owned();
    };
    let [before, after] = [before, after].map(facts);
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let value = |facts: &BTreeMap<String, String>, name| {
        facts.get(name).cloned().unwrap_or_else(|| "unknown".to_owned())
    };
    let pairs = names.into_iter().filter_map(|name| {
        let [before, after] = [value(&before, name), value(&after, name)];
        (before != after).then(|| format!("{name}: {before} → {after}"))
    });
    let mut pairs: Vec<String> = pairs.collect();
    let more = pairs.len().saturating_sub(FACTS_MOST);
    pairs.truncate(FACTS_MOST);
    if more > 0 {
        pairs.push(format!("{more} more"));
    }
    pairs.join("; ")
}

/// The facts of a fingerprint, those of a map one by one.
fn facts(host: &Host) -> BTreeMap<String, String> {
    let Ok(Value::Object(map)) = serde_json::to_value(compared(host)) else {
        return BTreeMap::new();
    };
    let mut facts = BTreeMap::new();
    for (name, value) in map {
        match value {
            Value::Null => {}
            Value::Object(inner) => facts.extend(
                inner.into_iter().map(|(own, value)| (format!("{name} {own}"), text(value))),
            ),
            value => {
                facts.insert(name, text(value));
            }
        }
    }
    facts
}

fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_another_host_is_named() {
        let before = Host {
            kernel: Some("6.1".to_owned()),
            memory_bytes: (8 << 30) - 5,
            mitigations: BTreeMap::from([("retbleed".to_owned(), "Vulnerable".to_owned())]),
            ..Host::default()
        };
        let check = |after: Host, expected: &str| {
            assert_eq!(host_difference(Some(&before), Some(&after)), expected);
        };
        check(before.clone(), "");
        check(Host { memory_bytes: (8 << 30) - 9, ..before.clone() }, "");
        check(Host { kernel: Some("6.12".to_owned()), ..before.clone() }, "kernel: 6.1 → 6.12");
        check(
            Host {
                os: Some("Debian 13".to_owned()),
                mitigations: BTreeMap::from([("retbleed".to_owned(), "Mitigated".to_owned())]),
                ..before.clone()
            },
            "mitigations retbleed: Vulnerable → Mitigated; os: unknown → Debian 13",
        );
        assert_eq!(host_difference(None, Some(&before)), "what differs is not recorded");
    }
}
