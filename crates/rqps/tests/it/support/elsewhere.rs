//! Shared by tests with other hosts: a comparison of the fake DBMS, and its results.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value as Json;

/// Writes configurations of the fake DBMS: a slow one, one that takes the time that it says, and
/// one that also has a server process.
pub(crate) fn write_configs(configs: &Path) {
    let fake = configs.join("fake");
    fs::create_dir_all(&fake).expect("folder");
    fs::write(fake.join("slow.conf"), "mean_us = 125\n").expect("write");
    let waiting = "mean_us = 1000\nreal_time = true\n";
    fs::write(fake.join("waiting.conf"), waiting).expect("write");
    fs::write(fake.join("serving.conf"), format!("{waiting}process = true\n")).expect("write");
}

/// Words that compare the fake DBMS with itself in this configuration.
pub(crate) fn words(configs: &Path, config: &str, blocks: u32, out: &str) -> Vec<String> {
    let words = [
        "compare",
        "--full",
        "fake@1",
        &format!("b=fake@1:{config}"),
        "--steps",
        "point-query,update-index",
        "--set",
        "read_seconds=1",
        "--set",
        "write_seconds=1",
        "--set",
        "warmup_seconds=0.1",
        "--set",
        "settle_scale=0",
        "--configs",
        &configs.display().to_string(),
        "--blocks",
        &blocks.to_string(),
        "--out",
        out,
    ];
    words.map(str::to_owned).to_vec()
}

pub(crate) fn json(path: &Path) -> Json {
    serde_json::from_slice(&fs::read(path).expect("read")).expect("JSON")
}

/// Block and label of every run that counts, each once and complete.
pub(crate) fn runs(out: &str) -> BTreeSet<(u64, String)> {
    let mut runs = BTreeSet::new();
    for entry in fs::read_dir(out).expect("results").flatten() {
        let record = entry.path().join("run.json");
        if record.exists() {
            let record = json(&record);
            assert_eq!(record["status"], "complete", "{record}");
            let label = record["key"]["label"].as_str().expect("label").to_owned();
            let block = record["key"]["block"].as_u64().expect("block");
            assert!(runs.insert((block, label)), "block {block} counts twice");
        }
    }
    runs
}

/// Every step of every run, by folder and file, without what a clock decides.
pub(crate) fn counts(out: &str) -> BTreeMap<String, Json> {
    let mut counts = BTreeMap::new();
    for run in fs::read_dir(out).expect("results").flatten() {
        for step in fs::read_dir(run.path().join("steps")).into_iter().flatten().flatten() {
            let name = format!("{:?}/{:?}", run.file_name(), step.file_name());
            if name.contains(".json") {
                let outcome = &json(&step.path())["outcome"];
                let fields = ["seconds", "events", "statements", "reads", "latency", "plans"];
                counts.insert(name, fields.iter().map(|field| outcome[field].clone()).collect());
            }
        }
    }
    counts
}
