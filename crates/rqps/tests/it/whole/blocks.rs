//! Blocks that are written down and carried elsewhere: `rqps block` in a process of its own
//! measures what the coordinator would.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use rqps_lab::plan::{BlockSpec, TargetSlot, file};
use rqps_model::run::BlockReport;
use rqps_model::run::Status;
use serde_json::Value as Json;

use crate::whole::{compare, configs, rqps, run, text, turn};

fn json(path: &Path) -> Json {
    serde_json::from_slice(&fs::read(path).expect("read")).expect("JSON")
}

/// Run folders of a block, by name.
fn run_folders(out: &Path, block: u32) -> BTreeMap<String, PathBuf> {
    let folders = fs::read_dir(out).expect("results").flatten().map(|entry| entry.path());
    let of_block = folders.filter(|folder| folder.join("run.json").exists());
    let of_block =
        of_block.filter(|folder| json(&folder.join("run.json"))["key"]["block"] == block);
    of_block
        .map(|folder| (folder.file_name().expect("name").to_string_lossy().into_owned(), folder))
        .collect()
}

/// All files of a folder, relative to it.
fn files(folder: &Path) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("folder").flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path => drop(files.insert(path.strip_prefix(folder).expect("below").to_owned())),
            }
        }
    }
    files
}

/// Writes down a block that was measured in the usual way: its run folders hold all it takes.
fn written_down(out: &Path, block: u32, attempt: u32) -> BlockSpec {
    let plan = fs::read_to_string(out.join("plan.toml")).expect("plan");
    let plan = file::parse(&plan).expect("plan");
    let mut slots = BTreeMap::new();
    for folder in run_folders(out, block).values() {
        let record = json(&folder.join("run.json"));
        let of_plan = record["targets"].as_array().expect("targets").iter();
        let place = of_plan.clone().position(|label| *label == record["key"]["label"]);
        let slot = TargetSlot {
            label: record["key"]["label"].as_str().expect("label").to_owned(),
            position: record["key"]["order"].as_u64().expect("order") as u32,
            build: serde_json::from_value(record["manifest"].clone()).expect("manifest"),
            config: serde_json::from_value(record["config"].clone()).expect("config"),
        };
        slots.insert(place.expect("a target of the plan"), slot);
    }
    BlockSpec::new(&plan, (block, attempt), slots.into_values().collect())
}

/// Carries a specification out in `out`: exit code and standard error.
fn carry_out(spec: &str, out: &Path) -> (Option<i32>, String) {
    let path = out.with_extension("spec.json");
    fs::write(&path, spec).expect("write");
    let run = |more: &[&str]| {
        let mut block = rqps();
        block.arg("block").arg(&path).arg("--out").arg(out).args(more).output().expect("start")
    };
    let mut output = run(&[]);
    // Settings that are not shipped need the user's word.
    if let Some((_, hash)) = text(&output.stderr).trim_end().split_once("add --allow ") {
        output = run(&["--allow", hash]);
    }
    (output.status.code(), text(&output.stderr))
}

fn carried_out(spec: &BlockSpec, out: &Path) -> BlockReport {
    let (code, said) = carry_out(&spec.print().expect("print"), out);
    assert_eq!(code, Some(0), "{said}");
    assert!(!out.join(".work").exists(), "nothing but results stays");
    serde_json::from_value(json(&out.join("block.json"))).expect("report")
}

/// Holds a run folder against the one of the block in the usual way. On a clock of its own the fake
/// DBMS gives the same counts, too.
fn same_run(folder: &Path, usual: &Path, same_counts: bool) {
    assert_eq!(files(folder), files(usual));
    let [record, expected] = [folder, usual].map(|folder| json(&folder.join("run.json")));
    for field in [
        "key", "target", "targets", "manifest", "config", "workload", "seed", "plan_hash",
        "host_fingerprint", "status",
    ] {
        assert_eq!(record[field], expected[field], "{field}");
    }
    for step in files(folder).iter().filter(|path| path.starts_with("steps")) {
        if step.extension().is_none_or(|end| end != "json") {
            continue;
        }
        let [step, expected] = [folder, usual].map(|folder| json(&folder.join(step)));
        for field in ["name", "index", "status", "group", "rate", "detail"] {
            assert_eq!(step[field], expected[field], "{field}");
        }
        for field in ["events", "statements", "reads", "writes", "latency"] {
            let [counted, expected] = [&step, &expected].map(|step| &step["outcome"][field]);
            assert!(!same_counts || counted == expected, "{field} of {}", step["name"]);
        }
    }
}

#[test]
fn a_written_down_block_gives_the_runs_of_the_usual_way() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("folder");
    let usual = folder.path().join("usual");
    let configs = configs(folder.path());
    let words = ["--blocks", "2", "--seed", "7", "--configs", &configs];
    let output = compare(&["fake@1", "slow=fake@1:slow"], &usual, &words);
    assert!(output.status.success(), "{}", text(&output.stderr));

    let spec = written_down(&usual, 2, 1);
    let out = folder.path().join("carried");
    let report = carried_out(&spec, &out);
    assert_eq!((report.id.as_str(), report.faults.len()), (spec.id.as_str(), 0));
    assert!(report.runs.iter().all(|run| run.status == Status::Complete));
    let named: Vec<String> = report.runs.iter().map(|run| run.key.folder()).collect();
    let (of_block, of_usual) = (run_folders(&out, 2), run_folders(&usual, 2));
    assert_eq!(named, of_usual.keys().cloned().collect::<Vec<_>>());
    assert_eq!(of_block.keys().collect::<Vec<_>>(), of_usual.keys().collect::<Vec<_>>());
    for (name, folder) in &of_block {
        same_run(folder, &of_usual[name], true);
    }
    let gate = json(&usual.join("gate.json"));
    let sessions: BTreeSet<String> = gate["blocks"]
        .as_array()
        .expect("blocks")
        .iter()
        .map(|block| block["session"].to_string())
        .collect();
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    let session: Json = serde_json::to_value(&report.session).expect("session");
    assert_eq!(gate["blocks"][0]["session"]["boot"], session["boot"]);
    assert_eq!(gate["blocks"][0]["session"]["host"], session["host"]);

    // Submitted again, it is not measured again.
    let before = fs::read(out.join("block.json")).expect("report");
    carried_out(&spec, &out);
    assert_eq!(fs::read(out.join("block.json")).expect("report"), before);
    assert_eq!(run_folders(&out, 2).len(), 2);
    let read = run(&["report", &out.to_string_lossy()]);
    assert!(read.status.success(), "{}", text(&read.stderr));
}

#[test]
fn a_written_down_block_on_sqlite_gives_the_runs_of_the_usual_way() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("folder");
    let usual = folder.path().join("usual");
    let out_word = usual.to_string_lossy().into_owned();
    let words = [
        "compare", "sqlite", "small=sqlite:small-cache", "--out", &out_word, "--blocks", "1",
        "--steps", "point-query,update-index", "--canaries", "off", "--set", "rows=2000", "--set",
        "read_seconds=0.2", "--set", "write_seconds=0.2", "--set", "warmup_seconds=0.1", "--set",
        "settle_scale=0",
    ];
    let output = run(&words);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let out = folder.path().join("carried");
    let report = carried_out(&written_down(&usual, 1, 1), &out);
    assert_eq!(report.canaries, [None, None]);
    let of_usual = run_folders(&usual, 1);
    assert_eq!(report.runs.len(), 2);
    for (name, folder) in &run_folders(&out, 1) {
        same_run(folder, &of_usual[name], false);
    }
}

#[test]
fn what_is_left_out_of_a_block_is_not_measured() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("folder");
    let usual = folder.path().join("usual");
    let output = compare(&["fake@1", "b=fake@1"], &usual, &["--blocks", "1"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (_, first) = run_folders(&usual, 1).pop_first().expect("a run");
    let names = files(&first.join("steps"));
    let last = names.iter().rfind(|name| name.extension().is_some_and(|end| end == "json"));
    let last = last.expect("a step").to_string_lossy().into_owned();
    let number: u32 = last[..2].parse().expect("a number");
    let spec = BlockSpec {
        left_out: BTreeMap::from([(number, "decided".to_owned())]),
        ..written_down(&usual, 1, 3)
    };
    let out = folder.path().join("carried");
    let report = carried_out(&spec, &out);
    assert!(report.runs.iter().all(|run| run.key.attempt == 3));
    for folder in run_folders(&out, 1).values() {
        let left = names.iter().filter(|name| !name.to_string_lossy().starts_with(&last[..2]));
        assert_eq!(files(&folder.join("steps")), left.cloned().collect());
    }
}

/// Each node leaves its canary where others find it. One that is much slower than they were is
/// unfit.
#[test]
fn a_node_that_is_much_slower_than_others_is_unfit() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("folder");
    let (usual, pool) = (folder.path().join("usual"), folder.path().join("pool"));
    let configs = configs(folder.path());
    let slow = folder.path().join("configs/fake/slow.conf");
    fs::write(slow, "mean_us = 125\ncanaries.n2 = 2, 1.7, 1.2\ncanaries.n3 = 2, 2, 2, 1.8\n")
        .expect("write");
    let words = ["--blocks", "1", "--configs", &configs];
    let output = compare(&["fake@1", "slow=fake@1:slow"], &usual, &words);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let spec = folder.path().join("spec.json");
    fs::write(&spec, written_down(&usual, 1, 1).print().expect("print")).expect("write");
    let check = |node: &str| {
        let mut command = rqps();
        command.arg("check-node").arg(&spec).args(["--node", node, "--work"]).arg(folder.path());
        let output = command.arg("--pool").arg(&pool).output().expect("start");
        (output.status.code(), text(&output.stdout))
    };
    // The first one has nobody to be compared with.
    for node in ["n1", "n2", "n1"] {
        assert_eq!(check(node), (Some(0), String::new()), "{node}");
    }
    let (code, said) = check("n3");
    assert_eq!(code, Some(4), "{said}");
    let why = "measure on a sick node: spin 1.6 times as slow (limit 1.5), by the canaries of";
    assert!(said.starts_with(why), "{said}");
    assert_eq!(files(&pool), ["nodes/n1.json", "nodes/n2.json"].map(PathBuf::from).into());
}

#[test]
fn a_block_that_cannot_be_carried_out_says_what_to_do() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("folder");
    let usual = folder.path().join("usual");
    let output = compare(&["fake@1", "b=fake@1"], &usual, &["--blocks", "1"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let spec = written_down(&usual, 1, 1);
    let out = folder.path().join("carried");
    let fails = |change: &dyn Fn(&mut Json), part: &str| {
        let mut json = serde_json::to_value(&spec).expect("JSON");
        change(&mut json);
        let (code, said) = carry_out(&json.to_string(), &out);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.starts_with("rqps: failed to ") && said.contains(part), "{said}");
        assert!(!out.exists(), "nothing is made for it");
    };
    fails(&|json| json["format"] = 9.into(), "with rqps 0.1.0: its format is 9");
    fails(&|json| json["cluster"] = "a".into(), "hint: use the same version of rqps on all hosts");
    fails(
        &|json| json["targets"][1]["build"]["sha256"] = "00".into(),
        "measure the block: run b: the block specification names another build",
    );

    // A run without a report was interrupted: its numbers are not taken for those of a block.
    carried_out(&spec, &out);
    fs::remove_file(out.join("block.json")).expect("remove");
    let (code, said) = carry_out(&spec.print().expect("print"), &out);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("and no report, so it was interrupted\nhint: choose a new"), "{said}");
}
