//! What stands today and breaks a rule. The list only ever shrinks: a line that is no longer needed
//! fails the test of its rule.
//!
//! One line each: the rule, a colon, what the rule found. Sorted, as `sort` does by bytes.

use std::collections::{BTreeMap, BTreeSet};

const EXCEPTIONS: &str = "\
cycles: benchmarks/insert/driver/fake
cycles: benchmarks/insert/driver/mod
cycles: benchmarks/insert/driver/observer
cycles: benchmarks/insert/driver/prepare
cycles: benchmarks/kv/import/metrics
cycles: benchmarks/kv/import/output
cycles: benchmarks/kv/import/table
cycles: benchmarks/vector/data/cache
cycles: benchmarks/vector/data/fvecs
cycles: benchmarks/vector/data/given
cycles: benchmarks/vector/data/hdf5
cycles: benchmarks/vector/data/mod
cycles: benchmarks/vector/data/npy
cycles: benchmarks/vector/data/synthetic
cycles: benchmarks/vector/driver/build
cycles: benchmarks/vector/driver/busy
cycles: benchmarks/vector/driver/capacity
cycles: benchmarks/vector/driver/churn
cycles: benchmarks/vector/driver/isolation
cycles: benchmarks/vector/driver/load
cycles: benchmarks/vector/driver/mixed
cycles: benchmarks/vector/driver/mod
cycles: benchmarks/vector/driver/search
cycles: benchmarks/vector/driver/target
cycles: driver/attempt
cycles: driver/client
cycles: driver/connection
cycles: driver/crew
cycles: driver/fake
cycles: driver/guest
cycles: driver/measure
cycles: driver/placement
cycles: driver/schedule
cycles: driver/script/explain
cycles: driver/script/program
cycles: driver/step
cycles: driver/turns
cycles: import/error
cycles: import/stream
cycles: import/text
cycles: obtain/debian/apt
cycles: obtain/debian/loader
cycles: obtain/debian/mirror
cycles: obtain/inspect
cycles: obtain/libraries
faces: benchmarks/insert/driver/fake imports from its own face
faces: benchmarks/insert/driver/mod defines things
faces: benchmarks/insert/driver/mod is longer than 60 lines
faces: benchmarks/insert/driver/prepare imports from its own face
faces: benchmarks/kv/driver/mod defines things
faces: benchmarks/kv/driver/mod is longer than 60 lines
faces: benchmarks/vector/data/cache imports from its own face
faces: benchmarks/vector/data/fvecs imports from its own face
faces: benchmarks/vector/data/given imports from its own face
faces: benchmarks/vector/data/hdf5 imports from its own face
faces: benchmarks/vector/data/mod defines things
faces: benchmarks/vector/data/mod is longer than 60 lines
faces: benchmarks/vector/data/npy imports from its own face
faces: benchmarks/vector/data/statistics imports from its own face
faces: benchmarks/vector/data/synthetic imports from its own face
faces: benchmarks/vector/driver/build imports from its own face
faces: benchmarks/vector/driver/busy imports from its own face
faces: benchmarks/vector/driver/capacity imports from its own face
faces: benchmarks/vector/driver/churn imports from its own face
faces: benchmarks/vector/driver/isolation imports from its own face
faces: benchmarks/vector/driver/load imports from its own face
faces: benchmarks/vector/driver/mixed imports from its own face
faces: benchmarks/vector/driver/mod defines things
faces: benchmarks/vector/driver/mod is longer than 60 lines
faces: benchmarks/vector/driver/search imports from its own face
faces: benchmarks/vector/driver/target imports from its own face
faces: dbms/guest/mod defines things
faces: dbms/guest/mod is longer than 60 lines
faces: obtain/debian/mod defines things
faces: obtain/debian/mod is longer than 60 lines
faces: obtain/mod defines things
faces: obtain/mod is longer than 60 lines
faces: plan/cost imports from its own face
faces: plan/file imports from its own face
faces: plan/mod defines things
faces: plan/mod is longer than 60 lines
homes: analyze/groups: asks the name of a step
homes: benchmarks/insert/driver/observer: a thread
homes: benchmarks/vector/analyze/extension: asks the name of a step
homes: benchmarks/vector/analyze/recall: asks the name of a step
homes: benchmarks/vector/data/synthetic: a thread
homes: benchmarks/vector/driver/truth: a thread
homes: benchmarks/vector/driver/verify: a thread
homes: benchmarks/vector/report: asks the name of a step
homes: dbms/settle: a thread
homes: obtain/cache: a thread
homes: obtain/inspect: a thread
imports: benchmarks/kv/presets -> benchmarks/mod
imports: benchmarks/vector/data/cache -> benchmarks/vector/driver/truth
imports: benchmarks/vector/data/given -> benchmarks/vector/driver/truth
imports: benchmarks/vector/data/hdf5 -> benchmarks/vector/driver/truth
imports: benchmarks/vector/data/mod -> benchmarks/vector/driver/truth
imports: benchmarks/vector/data/statistics -> benchmarks/vector/driver/truth
imports: benchmarks/vector/driver/verify -> stats/interval
imports: benchmarks/vector/driver/verify -> stats/paired
imports: benchmarks/vector/driver/verify -> stats/summary
imports: benchmarks/vector/steps -> benchmarks/mod
limits: benchmarks/insert/import/record has up to 550 lines
limits: benchmarks/kv/import/tables has up to 700 lines
limits: benchmarks/sysbench/steps has up to 700 lines
limits: cli/args has up to 550 lines
limits: dbms/guest/mod has up to 650 lines
type names: Clients: driver/step
type names: Clients: obtain/mod
type names: Connection: driver/connection
type names: Connection: driver/placement
type names: Dataset: benchmarks/vector/data/mod
type names: Dataset: domain/dataset
type names: Ending: analyze/gate
type names: Ending: driver/entry
type names: Form: benchmarks/vector/driver/encode
type names: Form: report/chart
type names: Found: embed/rocksdb/handle
type names: Found: obtain/mod
type names: Index: benchmarks/sysbench/steps
type names: Index: domain/vector/work
type names: Interval: driver/event
type names: Interval: stats/interval
type names: Level: analyze/gate
type names: Level: domain/vector/work
type names: Maintenance: domain/insert
type names: Maintenance: domain/kv
type names: Parts: benchmarks/insert/driver/querier
type names: Parts: benchmarks/insert/driver/writer
type names: Place: dbms/guest/mod
type names: Point: domain/vector/point
type names: Point: report/chart
type names: Preset: benchmarks/insert/presets
type names: Preset: benchmarks/sysbench/presets
type names: RawStep: benchmarks/insert/import/raw
type names: RawStep: benchmarks/sysbench/import/mytools_raw
type names: Server: dbms/server
type names: Server: driver/placement
type names: Sources: benchmarks/insert/import/sources
type names: Sources: benchmarks/sysbench/import/sources
type names: Stop: driver/stop
type names: Stop: os/process
type names: Table: benchmarks/sysbench/rows
type names: Table: report/document
type names: Value: report/document
type names: Value: wire/statement
";

/// Holds what a rule found against its exceptions.
pub(crate) fn hold_all_but_exceptions(rule: &str, found: impl IntoIterator<Item = String>) {
    hold_explained(rule, found.into_iter().map(|found| (found, String::new())).collect());
}

/// The same for findings with more to say: finding → what helps to mend it.
pub(crate) fn hold_explained(rule: &str, found: BTreeMap<String, String>) {
    let faults = faults(EXCEPTIONS, rule, &found);
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

fn faults(exceptions: &str, rule: &str, found: &BTreeMap<String, String>) -> Vec<String> {
    let of_rule = |line: &str| line.strip_prefix(rule)?.strip_prefix(": ").map(str::to_string);
    let excused: BTreeSet<String> = exceptions.lines().filter_map(of_rule).collect();
    let new = found.iter().filter(|(found, _)| !excused.contains(*found));
    let new = new.map(|(found, more)| format!("{rule}: {found}{more}"));
    let stale = excused.iter().filter(|excused| !found.contains_key(*excused)).map(|excused| {
        format!("{rule}: {excused}: no longer so: remove it from tests/tidy/exceptions.rs")
    });
    new.chain(stale).collect()
}

#[test]
fn exceptions_are_sorted_and_of_rules_that_are_there() {
    let rules: BTreeSet<&str> = crate::RULES.iter().copied().collect();
    for line in EXCEPTIONS.lines() {
        let rule = line.split(": ").next().unwrap_or("");
        assert!(rules.contains(rule), "no rule has the name {rule}: {line}");
    }
    for (line, next) in EXCEPTIONS.lines().zip(EXCEPTIONS.lines().skip(1)) {
        assert!(line < next, "not sorted, or twice: {line}, {next}");
    }
}

#[test]
fn an_exception_that_is_not_needed_is_found() {
    let found = |names: &[&str]| -> BTreeMap<String, String> {
        names.iter().map(|name| (name.to_string(), String::new())).collect()
    };
    let list = "a: x\na: y\nab: z";
    assert_eq!(faults(list, "a", &found(&["x", "y"])), [""; 0]);
    assert_eq!(faults(list, "a", &found(&["x", "y", "z"])), ["a: z"]);
    let stale = faults(list, "a", &found(&["x"]));
    assert_eq!(stale, ["a: y: no longer so: remove it from tests/tidy/exceptions.rs"]);
}
