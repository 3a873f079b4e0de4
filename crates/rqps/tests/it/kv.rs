//! The RocksDB sequence as a user meets it: real libraries from their packages, wrong words, faults
//! while it runs, and what stays behind.

use crate::support::{builds, skipped};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rqps_driver::request::{DriverRequest, RequestBody, StepRequest, VERSION};
use rqps_embed::rocksdb::marker::{Marker, State};
use rqps_host::cgroup::MemoryGroup;
use rqps_model::benchmark::{Pace, Placement, RateUnit};
use rqps_model::dialect::Dialect;
use rqps_model::endpoint::{Endpoint, Login};
use rqps_model::kv::{KvOperation, KvWork};

/// Measuring tests take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

fn turn() -> std::sync::MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn rqps(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rqps"));
    let lock = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kv.lock");
    command.args(words).stdin(Stdio::null()).env("RQPS_HOST_LOCK", lock);
    // What was found out about this host must not decide how often a block is measured.
    command.env("RQPS_STATE", concat!(env!("CARGO_TARGET_TMPDIR"), "/no-calibrations"));
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A library to measure, as a target word.
fn library(test: &str) -> Option<String> {
    match builds::roots("RQPS_ROCKSDB_ROOTS", &["rocksdb@9.9.3"]) {
        Ok(roots) => Some(format!("rocksdb={}", roots[0].join("lib/librocksdb.so").display())),
        Err(why) => {
            skipped::note(test, &why);
            None
        }
    }
}

/// Small and short: a run takes a few seconds.
const SMALL: [&str; 17] = [
    "--bench", "kv", "--set", "keys=20000", "--set", "seconds=0.3", "--set", "drain_seconds=0.1",
    "--set", "cache=64M", "--idle", "os", "--blocks", "1", "--seed", "7", "--out",
];

fn compare(targets: &[&str], out: &Path, more: &[&str]) -> Output {
    let out = out.to_string_lossy();
    let mut words = vec!["compare", "--full"];
    words.extend(targets);
    words.extend(SMALL);
    words.push(&out);
    words.extend(more);
    rqps(&words).output().expect("start rqps")
}

/// True for a run of a block that its canaries threw away: it was measured again.
fn is_discarded(run: &Path) -> bool {
    let bytes = std::fs::read(run.join("run.json")).unwrap_or_default();
    let json: Option<serde_json::Value> = serde_json::from_slice(&bytes).ok();
    json.is_some_and(|json| json["status"]["discarded"].is_string())
}

/// All step records of a result folder, but those of discarded runs: name, JSON.
fn steps(out: &Path) -> Vec<(String, serde_json::Value)> {
    let mut found = Vec::new();
    for run in std::fs::read_dir(out).expect("results").flatten() {
        let Ok(entries) = std::fs::read_dir(run.path().join("steps")) else { continue };
        if is_discarded(&run.path()) {
            continue;
        }
        for entry in entries.flatten().filter(|e| e.path().extension() == Some("json".as_ref())) {
            let bytes = std::fs::read(entry.path()).expect("read");
            let json: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
            found.push((json["name"].as_str().expect("name").to_owned(), json));
        }
    }
    found.sort_by_key(|(_, json)| json["index"].as_u64());
    found
}

#[test]
fn the_sequence_runs_on_a_real_library() {
    let _turn = turn();
    let Some(target) = library("the_sequence_runs_on_a_real_library") else { return };
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let (base, hyper) = (format!("base={target}"), format!("hyper={target}:hyperclock"));
    let output = compare(&[&base, &hyper], &out, &["--set", "multireads=true"]);
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{stderr}");
    assert!(!out.join(".work").exists(), "nothing but results stays");
    for part in ["w_amp", "overwriteandwait", "levels after", "writer_o/s", "fast CRC32"] {
        assert!(stdout.contains(part), "{part}: {stdout}");
    }
    let steps = steps(&out);
    assert_eq!(steps.len(), 22);
    for (name, json) in &steps {
        let outcome = &json["outcome"];
        assert_eq!(json["status"], "complete", "{name}");
        assert_eq!(outcome["errors"], serde_json::json!({}), "{name}: every key is found");
        assert!(outcome["facts"]["stats"].as_str().is_some_and(|s| s.contains("Uptime")), "{name}");
        // What writes takes turns by processes: its own time is a part of the window's.
        let turns = &outcome["turns"];
        let by_processes = turns["stopped"] == true;
        let writing = ["fill", "overwrite", "flush", "waitcompact", "compact"];
        let writing = writing.iter().any(|word| name.starts_with(word)) || name.contains("writing");
        assert_eq!(by_processes, writing, "{name}: {turns}");
        if by_processes && name != "flush_mt_l0" {
            let own = outcome["seconds"].as_f64().expect("seconds");
            let wall = turns["wall_seconds"].as_f64().expect("seconds");
            assert!(own < wall && turns["turns"].as_u64() > Some(0), "{name}: {turns}");
        }
        let writes = name.ends_with("whilewriting");
        assert_eq!(outcome["roles"]["writer"]["operations"].as_u64().is_some(), writes, "{name}");
        let operations = outcome["statements"].as_u64().expect("operations");
        match name.as_str() {
            "fillseq" => assert_eq!(operations, 20_000),
            "overwritesome" => assert_eq!(operations, 2_000),
            "flush_mt_l0" => assert_eq!(operations, 0),
            _ => assert!(operations > 0, "{name}"),
        }
    }
}

#[test]
fn core_workloads_of_ycsb_run_on_a_real_library() {
    let Some(library) = library("core_workloads_of_ycsb_run_on_a_real_library") else { return };
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let more = ["--set", "ycsb=a,b,c,f,d,e", "--set", "clients=2"];
    let output = compare(&[&format!("a={library}")], &out, &more);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let steps = steps(&out);
    let measured: Vec<&str> = steps.iter().map(|(name, _)| name.as_str()).collect();
    let mixes = ["ycsb-a", "ycsb-b", "ycsb-c", "ycsb-f", "ycsb-d", "ycsb-e"];
    assert_eq!(measured, [&["fillseq", "revrange.drain"][..], &mixes].concat());
    for (name, step) in &steps[2..] {
        let outcome = &step["outcome"];
        let count = |what: &str| outcome[what].as_u64().unwrap_or(0);
        assert!(count("events") > 0, "{name}: {outcome}");
        assert_eq!(count("reads") + count("writes"), count("statements"), "{name}: {outcome}");
        assert_eq!(count("writes") == 0, name == "ycsb-c", "{name}: {outcome}");
        // Whatever is asked for was loaded, or put in by the client itself.
        assert!(outcome["errors"].as_object().is_none_or(|errors| errors.is_empty()), "{outcome}");
    }
}

#[test]
fn chosen_steps_bring_the_load_along() {
    let _turn = turn();
    let Some(target) = library("chosen_steps_bring_the_load_along") else { return };
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let more = ["--steps", "readrandom", "--set", "style=universal", "--set", "data=iobuf"];
    let output = compare(&[&target], &out, &more);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let names: Vec<String> = steps(&out).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["fillseq", "readrandom"]);
}

#[test]
fn an_open_rate_is_kept_beside_writers_of_several_rates() {
    let test = "an_open_rate_is_kept_beside_writers_of_several_rates";
    let _turn = turn();
    let Some(target) = library(test) else { return };
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let more = ["--steps", "*whilewriting*", "--rate", "400", "--placement", "together"];
    let output = compare(
        &[&target],
        &out,
        &[&more[..], &["--set", "writer_mb=0.5,1", "--set", "clients=2"]].concat(),
    );
    assert!(output.status.success(), "{}", text(&output.stderr));
    let steps = steps(&out);
    assert_eq!(steps.len(), 7);
    for (name, json) in &steps[1..] {
        let outcome = &json["outcome"];
        // 120 in 0.3 s, standard deviation 11.
        let due = outcome["open"]["due"].as_u64().expect("due");
        assert!((50..200).contains(&due), "{name}: {due}");
        // The window does not end with the last call that was due, but may begin a moment late.
        let seconds = outcome["seconds"].as_f64().expect("seconds");
        assert!(seconds > 0.25, "{name}: {seconds}");
        assert!(outcome["service"].is_string(), "{name}");
        let target = outcome["roles"]["writer"]["target_per_second"].as_f64().expect("rate");
        let rate = if name.ends_with(".writer=1") { 1.0 } else { 0.5 };
        assert!((target - rate * 1_048_576.0 / 420.0).abs() < 1.0, "{name}: {target}");
    }
    assert_eq!(steps[0].1["outcome"]["open"], serde_json::Value::Null, "a load has no pace");
}

#[test]
fn a_limit_on_memory_holds_for_the_process_that_loads_the_library() {
    let test = "a_limit_on_memory_holds_for_the_process_that_loads_the_library";
    let _turn = turn();
    if let Err(why) = MemoryGroup::create(Path::new("/"), "probe", 64 << 20) {
        return skipped::note(test, &why.to_string());
    }
    let Some(target) = library(test) else { return };
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("folder");
    // Eighty megabytes of memtables do not fit, and nothing is written before they are full.
    let more = ["--memory-limit", "64M", "--set", "keys=300000", "--set", "write_buffer_mb=512"];
    let more = [&more[..], &["--steps", "fillseq", "--set", "cache=8M"]].concat();
    let output = compare(&[&target], &folder.path().join("out"), &more);
    let said = text(&output.stderr);
    assert!(!output.status.success(), "{}", text(&output.stdout));
    assert!(said.contains("memory_limit is too small: the kernel killed 1"), "{said}");
}

/// Runs with one setting that is wrong; returns what was said.
fn refused(test: &str, more: &[&str]) -> Option<String> {
    let _turn = turn();
    let target = library(test)?;
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let output = compare(&[&target], &out, more);
    assert!(!output.status.success(), "{}", text(&output.stdout));
    let data = out.join(".work");
    assert!(!data.exists() || data.read_dir().is_ok_and(|mut d| d.next().is_none()));
    Some(text(&output.stderr))
}

#[test]
fn an_option_that_does_not_exist_is_named() {
    let test = "an_option_that_does_not_exist_is_named";
    let Some(said) = refused(test, &["--set", "option.num_lavels=9"]) else { return };
    assert!(said.contains("set the option num_lavels=9") && said.contains("hint"), "{said}");
    let Some(said) = refused(test, &["--set", "option.num_levels=many"]) else { return };
    assert!(said.contains("set the option num_levels=many"), "{said}");
    let Some(said) = refused(test, &["--set", "option.use_dynamic_delay=true"]) else { return };
    assert!(said.contains("only Speedb has it"), "{said}");
}

#[test]
fn a_cache_larger_than_memory_is_refused() {
    let test = "a_cache_larger_than_memory_is_refused";
    let Some(said) = refused(test, &["--set", "cache=64T"]) else { return };
    assert!(said.contains("this machine has") && said.contains("--set cache=SIZE"), "{said}");
}

#[test]
fn a_filesystem_that_refuses_direct_io_is_told() {
    let test = "a_filesystem_that_refuses_direct_io_is_told";
    let Some(target) = library(test) else { return };
    // A tmpfs takes O_DIRECT since Linux 6.6; a ramfs never did.
    // As root, the driver of a library is nobody.
    let mount = match Mount::of("ramfs", "mode=777") {
        Ok(mount) => mount,
        Err(why) => return skipped::note(test, &format!("a ramfs cannot be mounted here: {why}")),
    };
    Marker::new(State::Empty).write(&mount.folder).expect("mark");
    let setup = ["create_if_missing = true", "use_direct_io_for_flush_and_compaction = true"];
    let library = Path::new(target.trim_start_matches("rocksdb="));
    let job = job(&mount.folder, KvOperation::FillSequential, &setup, library);
    let mut driver = rqps(&["driver"]);
    let mut driver =
        driver.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("start a driver");
    let mut line = serde_json::to_vec(&job).expect("JSON");
    line.push(b'\n');
    let mut input = driver.stdin.take().expect("input");
    std::io::Write::write_all(&mut input, &line).expect("hand over the job");
    let said = text(&driver.wait_with_output().expect("wait").stdout);
    assert!(said.contains("does not support O_DIRECT") && said.contains("--work"), "{said}");
}

/// A small filesystem in memory; unmounted at the end.
struct Mount {
    folder: PathBuf,
    _parent: tempfile::TempDir,
}

impl Mount {
    fn of(kind: &str, options: &str) -> Result<Mount, String> {
        let parent = tempfile::tempdir().map_err(|error| error.to_string())?;
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(parent.path(), open).map_err(|error| error.to_string())?;
        let folder = parent.path().join("small");
        std::fs::create_dir(&folder).map_err(|error| error.to_string())?;
        let words = ["-t", kind, "-o", options, kind];
        let mounted = Command::new("mount").args(words).arg(&folder).output();
        match mounted {
            Ok(output) if output.status.success() => Ok(Mount { folder, _parent: parent }),
            Ok(output) => Err(text(&output.stderr)),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // If it fails, the folder cannot be removed, which is all that is lost.
        let _ = Command::new("umount").arg(&self.folder).output();
    }
}

#[test]
fn a_full_disk_ends_the_run_and_nothing_is_measured_on_half_a_database() {
    let test = "a_full_disk_ends_the_run_and_nothing_is_measured_on_half_a_database";
    let Some(target) = library(test) else { return };
    let mount = match Mount::of("tmpfs", "size=500m") {
        Ok(mount) => mount,
        Err(why) => return skipped::note(test, &format!("a tmpfs cannot be mounted here: {why}")),
    };
    let _turn = turn();
    let out = tempfile::tempdir().expect("folder");
    let out = out.path().join("out");
    let (out_text, work) = (out.to_string_lossy(), mount.folder.join("work"));
    let work_text = work.to_string_lossy();
    let mut words = vec!["compare", &target];
    words.extend(SMALL);
    words.extend([&*out_text, "--set", "keys=500k", "--work", &work_text, "--yes-disk"]);
    let mut child =
        rqps(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("start");
    // There was room when it began; somebody else takes it while keys are put, and what failing
    // writes give back, too.
    wait_for("the driver of fillseq", || driver_of(&child));
    let mut filler = std::fs::File::create(mount.folder.join("filler")).expect("filler");
    // At once: a slow host would write the last key before a loop of writes had filled the disk.
    let mut filled = 0;
    for size in (16..29).rev().map(|bits| 1_u64 << bits) {
        let nothing = rustix::fs::FallocateFlags::empty();
        while rustix::fs::fallocate(&filler, nothing, filled, size).is_ok() {
            filled += size;
        }
    }
    std::io::Seek::seek(&mut filler, std::io::SeekFrom::End(0)).expect("end of the filler");
    while child.try_wait().expect("wait").is_none() {
        while std::io::Write::write_all(&mut filler, &[1; 1 << 12]).is_ok() {}
        std::thread::sleep(Duration::from_millis(1));
    }
    let output = child.wait_with_output().expect("wait");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("No space left") && said.contains("free space"), "{said}");
    let complete = steps(&out).iter().filter(|(_, json)| json["status"] == "complete").count();
    assert_eq!(complete, 0, "no step is measured after it");
}

/// Waits until `found` gives something.
fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(value) = found() {
            return value;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "waited for {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn is_driver(process: u32) -> bool {
    let words = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    words.split(|byte| *byte == 0).any(|word| word == b"driver")
}

/// The driver processes of a running rqps.
fn drivers_of(rqps: &Child) -> Vec<u32> {
    let processes = rqps_host::tree::processes(rqps.id()).unwrap_or_default();
    processes.into_iter().filter(|process| is_driver(*process)).collect()
}

fn driver_of(rqps: &Child) -> Option<u32> {
    drivers_of(rqps).first().copied()
}

#[test]
fn writes_take_turns_and_no_kill_leaves_a_stopped_process() {
    let _turn = turn();
    let test = "writes_take_turns_and_no_kill_leaves_a_stopped_process";
    let Some(target) = library(test) else { return };
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let out_text = out.to_string_lossy().into_owned();
    let (base, next) = (format!("base={target}"), format!("next={target}"));
    let mut words = vec!["compare", &base, &next];
    words.extend(SMALL);
    words.extend([&out_text, "--set", "write_seconds=3", "--steps", "overwriteandwait"]);
    words.extend(["--canaries", "off"]);
    // Both have filled their databases so many times in all, and now overwrite.
    let two = |child: &Child, filled: usize| {
        wait_for("both drivers at work", || {
            let drivers = drivers_of(child);
            let fills = steps_if_any(&out).iter().filter(|name| *name == "fillseq").count();
            let writes = log_bytes(&out.join(".work")) > 1 << 20;
            (drivers.len() == 2 && fills == filled && writes).then_some(drivers)
        })
    };
    let start = |words: &[&str]| {
        rqps(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start")
    };
    // The lab is killed: one of the drivers stands still at that moment.
    let mut child = start(&words);
    let drivers = two(&child, 2);
    child.kill().expect("kill");
    child.wait().expect("wait");
    wait_for("the end of both", || (!drivers.iter().any(|it| is_driver(*it))).then_some(()));
    // A driver is killed: the other one goes on alone.
    let child = start(&["run", "--resume", &out_text]);
    let drivers = two(&child, 4);
    let killed = Command::new("kill").args(["-9", &drivers[0].to_string()]).status();
    assert!(killed.expect("kill").success());
    let output = child.wait_with_output().expect("wait");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("signal: 9"), "{said}");
    let ends = steps(&out).into_iter().filter(|(name, _)| name == "overwriteandwait");
    let complete: Vec<serde_json::Value> =
        ends.map(|(_, json)| json).filter(|json| json["status"] == "complete").collect();
    assert_eq!(complete.len(), 1, "{said}");
    assert!(complete[0]["outcome"]["turns"]["alone_seconds"].as_f64() > Some(0.0));
    let notes = complete[0]["outcome"]["notes"].to_string();
    assert!(notes.contains("ran alone for the last"), "{notes}");
}

#[test]
fn a_driver_killed_while_it_overwrites_costs_its_step_and_the_plan_is_taken_up_again() {
    let _turn = turn();
    let test = "a_driver_killed_while_it_overwrites_costs_its_step_and_the_plan_is_taken_up_again";
    let Some(target) = library(test) else { return };
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let mut words = vec!["compare", &target];
    words.extend(SMALL);
    let out_text = out.to_string_lossy().into_owned();
    words.extend([&out_text, "--set", "write_seconds=8", "--steps", "readrandom,overwriteandwait"]);
    // A block that they throw away would be measured again at once.
    words.extend(["--canaries", "off"]);
    let child = rqps(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("start");
    let has_read = || steps_if_any(&out).contains(&"readrandom".to_owned()).then_some(());
    wait_for("readrandom", has_read);
    let driver = wait_for("the driver of overwriteandwait", || {
        driver_of(&child).filter(|_| log_bytes(&out.join(".work")) > 1 << 20)
    });
    let killed = Command::new("kill").args(["-9", &driver.to_string()]).status().expect("kill");
    assert!(killed.success());
    let output = child.wait_with_output().expect("wait");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("overwriteandwait") && said.contains("signal: 9"), "{said}");
    let status = |wanted: &str| {
        let found = steps(&out).into_iter().find(|(name, _)| name == wanted);
        found.map(|(_, json)| json["status"].clone())
    };
    assert_eq!(status("readrandom"), Some("complete".into()));
    assert_ne!(status("overwriteandwait"), Some("complete".into()));
    assert!(!out.join(".work").exists(), "data are removed");
    let output = rqps(&["run", "--resume", &out_text]).output().expect("resume");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let complete = steps(&out).into_iter().filter(|(_, json)| json["status"] == "complete");
    let complete: Vec<String> = complete.map(|(name, _)| name).collect();
    for name in ["fillseq", "readrandom", "overwriteandwait"] {
        assert!(complete.contains(&name.to_owned()), "{name}: {complete:?}");
    }
    assert!(!out.join(".work").exists(), "data are removed");
}

/// Bytes of RocksDB's write-ahead logs below a folder: overwriting has begun where there are many.
fn log_bytes(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.path() {
        path if path.is_dir() => log_bytes(&path),
        path if path.extension() == Some("log".as_ref()) => {
            entry.metadata().map_or(0, |metadata| metadata.len())
        }
        _ => 0,
    });
    bytes.sum()
}

fn steps_if_any(out: &Path) -> Vec<String> {
    if out.exists() { steps(out).into_iter().map(|(name, _)| name).collect() } else { Vec::new() }
}

#[test]
fn a_plan_that_is_killed_is_taken_up_again() {
    let _turn = turn();
    let test = "a_plan_that_is_killed_is_taken_up_again";
    let Some(target) = library(test) else { return };
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let mut words = vec!["compare", &target];
    words.extend(SMALL);
    let out_text = out.to_string_lossy().into_owned();
    words.extend([&out_text, "--steps", "readrandom,fwdrange", "--set", "read_seconds=2"]);
    let mut child =
        rqps(&words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start");
    wait_for("fillseq", || steps_if_any(&out).contains(&"fillseq".to_owned()).then_some(()));
    child.kill().expect("kill");
    child.wait().expect("wait");
    let output = rqps(&["run", "--resume", &out_text]).output().expect("resume");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let complete = steps(&out).iter().filter(|(_, json)| json["status"] == "complete").count();
    assert!(complete >= 4, "fillseq of the first attempt, and all three of the second: {complete}");
    assert!(!out.join(".work").exists(), "data are removed");
}

#[test]
fn benchmarks_and_products_must_fit() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let said = text(&compare(&["sqlite"], &out, &[]).stderr);
    assert!(said.contains("the benchmark kv needs rocksdb or speedb"), "{said}");
    let output = rqps(&["compare", "rocksdb@9.9.3", "--bench", "sysbench"]).output().expect("run");
    let said = text(&output.stderr);
    assert!(said.contains("--bench kv"), "{said}");
    let said = text(&compare(&["rocksdb=/bin/sh"], &out, &[]).stderr);
    assert!(said.contains("not a shared library with RocksDB's C API"), "{said}");
}

/// The output of a driver for a request on a data folder.
fn driver_says(data: &Path, action: KvOperation, setup: &[&str], library: &Path) -> String {
    let mut said = Vec::new();
    let parts = rqps_lab::benchmarks::driver_parts();
    rqps_driver::run_request(&job(data, action, setup, library), &parts, &mut said);
    text(&said)
}

/// Ten operations on a data folder.
fn job(data: &Path, action: KvOperation, setup: &[&str], library: &Path) -> DriverRequest {
    let work = KvWork {
        action,
        clients: 1,
        operations: Some(10),
        keys: 10,
        value_bytes: 400,
        write_ahead_log: true,
        pace: Pace::Closed,
        writer_mb: None,
        writer_named: false,
        after: vec![],
        options: vec![],
        overrides: vec![],
    };
    DriverRequest {
        version: VERSION,
        dialect: Dialect::KeyValue,
        endpoint: Endpoint::File { path: data.to_owned(), library: Some(library.to_owned()) },
        login: Login::default(),
        target: None,
        session_setup: setup.iter().map(|line| (*line).to_owned()).collect(),
        mark: None,
        seed: 1,
        tables: 1,
        rows: 10,
        pause: false,
        task: RequestBody::Step(Box::new(StepRequest {
            work: work.into(),
            rate: RateUnit::Operations,
            plans: false,
            clients: 1,
            warmup_seconds: 0.0,
            seconds: 1.0,
            pace: Pace::Closed,
            placement: Placement::Os,
            server_pid: None,
            storage_engine: None,
            cache: None,
        })),
        away: None,
        turns: None,
        standstill: None,
        counted_events: None,
        asks: false,
        only_reads: false,
        scratch: None,
        places: None,
    }
}

#[test]
fn a_folder_that_is_not_ours_is_not_touched() {
    let folder = tempfile::tempdir().expect("folder");
    let none = Path::new("/no/library");
    std::fs::create_dir(folder.path().join("db")).expect("folder");
    std::fs::write(folder.path().join("db/CURRENT"), "MANIFEST-000001\n").expect("write");
    for action in [KvOperation::FillSequential, KvOperation::Read] {
        let said = driver_says(folder.path(), action, &[], none);
        assert!(said.contains("rqps did not make this database"), "{said}");
    }
    let left = std::fs::read_to_string(folder.path().join("db/CURRENT")).expect("read");
    assert_eq!(left, "MANIFEST-000001\n");
    Marker::new(State::Empty).write(folder.path()).expect("mark");
    let said = driver_says(folder.path(), KvOperation::FillSequential, &[], none);
    assert!(said.contains("it already holds a database"), "{said}");
    let said = driver_says(folder.path(), KvOperation::Read, &[], none);
    assert!(said.contains("run fillseq first"), "{said}");
    Marker::new(State::Broken("no space".to_owned())).write(folder.path()).expect("mark");
    let said = driver_says(folder.path(), KvOperation::Read, &[], none);
    assert!(said.contains("no filled database: no space"), "{said}");
}

#[test]
fn what_a_version_lacks_is_told_with_the_versions_that_have_it() {
    let folder = tempfile::tempdir().expect("folder");
    Marker::new(State::Empty).write(folder.path()).expect("mark");
    // libc stands in for a library without the C API.
    let libc = Path::new("libc.so.6");
    let said = driver_says(folder.path(), KvOperation::FillSequential, &[], libc);
    assert!(said.contains("find the function rocksdb_") && said.contains("since 6.0"), "{said}");
    let test = "what_a_version_lacks_is_told_with_the_versions_that_have_it";
    let root = match builds::roots("RQPS_ROCKSDB_7_ROOTS", &["rocksdb@7.10.2"]) {
        Ok(roots) => roots[0].join("lib/librocksdb.so"),
        Err(why) => return skipped::note(test, &why),
    };
    let _turn = turn();
    let target = format!("rocksdb={}:hyperclock", root.display());
    let said = text(&compare(&[&target], &folder.path().join("out"), &[]).stderr);
    assert!(said.contains("RocksDB 7.10.2 lacks it") && said.contains("since 8.1"), "{said}");
}
