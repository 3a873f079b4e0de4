//! Runs rqps as a user does, with a lock and calibrations of the test's own; what its result
//! folder holds; and the examples of the docs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard};

use serde_json::Value as Json;

/// Words for one short block without canaries, with its results in `out`.
pub(crate) const SHORT: [&str; 10] = [
    "--canaries", "off", "--blocks", "1", "--set", "seconds=0.2", "--set", "warmup_seconds=0.1",
    "--out", "out",
];

/// Tests that measure take turns: the machine is small.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The command, not started.
pub(crate) fn rqps<W: AsRef<OsStr>>(words: &[W], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rqps"));
    command.args(with_full_report(words)).stdin(Stdio::null());
    let (lock, state) = (folder.join("lock"), folder.join("state"));
    command.env("RQPS_HOST_LOCK", lock).env("RQPS_STATE", state);
    command
}

/// The words, with the whole report in place of the answer in twenty lines.
fn with_full_report<W: AsRef<OsStr>>(words: &[W]) -> Vec<&OsStr> {
    let mut words: Vec<&OsStr> = words.iter().map(AsRef::as_ref).collect();
    let is = |word: &[&str]| words.first().is_some_and(|first| word.iter().any(|it| first == it));
    let is_full = words.iter().any(|word| *word == "--full");
    if is(&["compare", "count", "run", "quickstart"]) && !is_full {
        words.insert(1, OsStr::new("--full"));
    }
    words
}

/// The command in that folder, not started.
pub(crate) fn rqps_in<W: AsRef<OsStr>>(words: &[W], folder: &Path) -> Command {
    let mut command = rqps(words, folder);
    command.current_dir(folder);
    command
}

/// Runs it to its end.
pub(crate) fn run<W: AsRef<OsStr>>(words: &[W], folder: &Path) -> Output {
    rqps(words, folder).output().expect("start rqps")
}

/// Runs it to its end. If it asks for the user's word, it is given with the hash that it names.
pub(crate) fn allowed<W: AsRef<OsStr>>(words: &[W], folder: &Path) -> Output {
    let first = rqps_in(words, folder).output().unwrap();
    match hash_to_allow(&said(&first)) {
        Some(hash) => rqps_in(words, folder).args(["--allow", &hash]).output().unwrap(),
        None => first,
    }
}

/// The hash that a refusal asks for.
pub(crate) fn hash_to_allow(said: &str) -> Option<String> {
    let (_, after) = said.split_once("add --allow ")?;
    Some(after.chars().take_while(char::is_ascii_hexdigit).collect())
}

/// The output of a program as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Its messages to the user: standard error.
pub(crate) fn said(output: &Output) -> String {
    text(&output.stderr)
}

/// The folders of a target's runs in a result folder, in order.
pub(crate) fn runs(out: &Path, label: &str) -> Vec<PathBuf> {
    let all = fs::read_dir(out).unwrap().flatten().map(|entry| entry.path());
    let of_target = |path: &PathBuf| path.to_string_lossy().ends_with(&format!("-{label}"));
    let mut runs: Vec<PathBuf> = all.filter(of_target).collect();
    runs.sort();
    runs
}

/// The records of all steps of a target, in order.
pub(crate) fn steps(out: &Path, label: &str) -> Vec<Json> {
    let of_run = |run: PathBuf| fs::read_dir(run.join("steps")).unwrap().flatten();
    let files = runs(out, label).into_iter().flat_map(of_run).map(|entry| entry.path());
    let mut records: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "json")).collect();
    records.sort();
    records.iter().map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap()).collect()
}

/// A folder with the files of docs/workloads.md: each stands in a block after a line with `before`
/// and its name. There must be so many.
pub(crate) fn files_of_docs(before: &str, wanted: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let docs = docs();
    let (mut name, mut lines, mut count) = (None, docs.lines(), 0);
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            if let Some(name) = name.take() {
                fs::write(folder.path().join::<&str>(name), block.join("\n") + "\n").unwrap();
                count += 1;
            }
            continue;
        }
        let rest = line.strip_prefix(before).and_then(|rest| rest.strip_prefix('`'));
        name = rest.and_then(|rest| rest.strip_suffix("`:")).or(name);
    }
    assert_eq!(count, wanted);
    folder
}

/// The words after `rqps` of the first example of docs/workloads.md with `part` in it.
pub(crate) fn example_of_docs(part: &str) -> Vec<String> {
    let docs = docs();
    let line = docs.lines().find(|line| line.contains(part)).unwrap();
    line.split_whitespace().skip(1).map(str::to_owned).collect()
}

/// The lines of the first block of docs/workloads.md with `part` in it.
pub(crate) fn block_of_docs(part: &str) -> String {
    let docs = docs();
    let block = docs.split("```").skip(1).step_by(2).find(|block| block.contains(part)).unwrap();
    block.split_once('\n').unwrap().1.to_owned()
}

/// The command lines of docs/workloads.md, without `rqps`.
pub(crate) fn commands_of_docs() -> Vec<Vec<String>> {
    let docs = docs();
    let blocks = docs.split("```").skip(1).step_by(2);
    let lines = blocks.flat_map(str::lines).filter_map(|line| line.strip_prefix("rqps "));
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    lines.map(words).collect()
}

fn docs() -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/workloads.md");
    fs::read_to_string(docs).unwrap()
}
