//! One trial from its scene to its verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use crate::kinds::Kind;
use crate::kinds::Trial;
use crate::record::{Outcome, Record};
use crate::running::{Ended, Running, reported, steps};
use crate::scene::{Scene, below, text};
use crate::setups::Builds;
use crate::strike::{Blow, heal, strike};
use crate::support::program;

/// A run takes seconds; under a fault on a busy machine it gets this much.
const PATIENCE: Duration = Duration::from_secs(150);
/// So soon after its end nothing may be left.
const ENDING: Duration = Duration::from_secs(30);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What a trial finds out.
struct Judge<'a> {
    trial: &'a Trial,
    scene: Scene,
    wrong: Vec<String>,
    details: String,
}

/// Carries a trial out.
pub(crate) fn judge(trial: &Trial, builds: &Builds) -> Record {
    let mut record = Record::of(trial);
    let scene = match Scene::make(trial, builds) {
        Ok(scene) => scene,
        Err(why) => {
            record.outcome = Outcome::Broken;
            record.note = why;
            return record;
        }
    };
    let mut judge = Judge { trial, scene, wrong: Vec::new(), details: String::new() };
    let outcome = judge.carry_out(&mut record);
    record.outcome = match (outcome, judge.wrong.is_empty()) {
        (Ok(Outcome::Missed), _) => Outcome::Missed,
        (Ok(outcome), true) => outcome,
        (Ok(_), false) => Outcome::Lost,
        (Err(why), _) => {
            record.note = why;
            Outcome::Broken
        }
    };
    if !judge.wrong.is_empty() {
        record.note = judge.wrong.join("; ");
    }
    record.details = judge.details;
    record
}

impl Judge<'_> {
    fn carry_out(&mut self, record: &mut Record) -> Result<Outcome, String> {
        let trial = self.trial;
        let command = self.scene.rqps(&self.scene.words, trial.kind.needs_shim());
        let mut run = Running::start(command, &self.scene.at.join("first.txt"))?;
        self.enter_group(run.pid());
        let is_at_once = trial.kind == Kind::Squatter;
        if !is_at_once {
            // Before its first line, a second rqps would be the first one.
            let is_second = matches!(trial.kind, Kind::SameResults | Kind::SameHost);
            run.wait_for_lines(trial.after_lines.max(u64::from(is_second)));
            thread::sleep(Duration::from_millis(trial.delay));
        }
        let (before, struck) = loop {
            if run.has_ended() {
                return self.without_a_fault(record, run);
            }
            let before = (reported(&run.lines()), steps(&self.scene.out()));
            match strike(trial, &self.scene, &mut run) {
                Blow::Struck(what) => break (before, what),
                Blow::NoVictim => thread::sleep(Duration::from_millis(3)),
                Blow::Broken(why) => return Err(why),
                Blow::Wrong(why) => {
                    self.wrong.push(why);
                    break (before, String::new());
                }
            }
        };
        record.moment = run.milliseconds();
        record.struck = struck;
        let ended = match run.end(PATIENCE) {
            Ok(ended) => ended,
            Err(lines) => {
                self.tell("first run", &lines);
                return Err("it does not end".to_owned()).or_else(|why: String| {
                    self.wrong.push(why);
                    Ok(Outcome::Lost)
                });
            }
        };
        record.exit = ended.code;
        record.note = last_error(&ended.lines).replace(&text(&self.scene.at), "…");
        self.tell("first run", &ended.lines);
        if ended.code == 0 && trial.kind.waits_for_a_call() && !self.scene.met().exists() {
            record.note = "no call came to it".to_owned();
            return Ok(Outcome::Missed);
        }
        self.check_words(&ended);
        // What the fault itself has taken is given back before anything is looked for.
        let given_back = heal(trial, &self.scene);
        self.check_left("after the fault", ended.code == 0);
        given_back?;
        self.check_kept(&before.0, &before.1);
        if ended.code != 0 {
            self.resume(record)?;
            self.check_kept(&before.0, &before.1);
        }
        self.check_report();
        Ok(if ended.code == 0 { Outcome::Unharmed } else { Outcome::Resumed })
    }

    /// The run came to its end before the fault.
    fn without_a_fault(&mut self, record: &mut Record, run: Running) -> Result<Outcome, String> {
        let ended = run.end(PATIENCE).map_err(|_| "it does not end without a fault".to_owned())?;
        self.tell("first run", &ended.lines);
        record.exit = ended.code;
        record.note = "the run had ended".to_owned();
        match ended.code {
            0 => Ok(Outcome::Missed),
            _ => Err(format!("without a fault: {}", ended.lines.join(" "))),
        }
    }

    /// Only so that its memory is counted; what it starts follows it.
    fn enter_group(&self, pid: i32) {
        if let Some(group) = &self.scene.group {
            fs::write(group.join("cgroup.procs"), pid.to_string()).ok();
        }
    }

    fn tell(&mut self, what: &str, lines: &[String]) {
        self.details.push_str(&format!("--- {what}\n{}\n", lines.join("\n")));
    }

    /// The exit code is one of the README, with words that say what, and nothing panicked.
    fn check_words(&mut self, ended: &Ended) {
        let signal = match self.trial.kind {
            Kind::Kill(crate::kinds::Role::Lab) | Kind::PowerCut => Some(137),
            Kind::Ask(rustix::process::Signal::HUP) => Some(129),
            // Whichever process the kernel chooses.
            Kind::Memory => Some(137),
            _ => None,
        };
        if ![0, 2, 4, 130].contains(&ended.code) && Some(ended.code) != signal {
            self.wrong.push(format!("exit code {}", ended.code));
        }
        let is_error = |line: &&String| {
            let event: Option<Json> = serde_json::from_str(line).ok();
            event.is_none_or(|event| event["event"] == "error")
        };
        let errors = ended.lines.iter().filter(is_error).count();
        if [2, 4].contains(&ended.code) && errors == 0 {
            self.wrong.push(format!("exit code {} without a word", ended.code));
        }
        let mut said = ended.lines.join("\n");
        for path in below(&self.scene.out()) {
            if path.extension().is_some_and(|end| end == "log") {
                said.push_str(&fs::read_to_string(path).unwrap_or_default());
            }
        }
        if let Some(line) = said.lines().find(|line| line.contains("panicked at")) {
            self.wrong.push(format!("panic: {line}"));
        }
    }

    /// Waits until nothing is left; what stays is wrong.
    fn check_left(&mut self, when: &str, is_done: bool) {
        let began = Instant::now();
        loop {
            let left = self.scene.left(is_done);
            if left.is_empty() {
                return;
            }
            if began.elapsed() > ENDING {
                self.wrong.push(format!("left {when}: {}", left.join(", ")));
                return;
            }
            thread::sleep(LOOK_AGAIN);
        }
    }

    /// Every step that was whole before the fault is the same now, and each that was reported is
    /// there.
    fn check_kept(
        &mut self,
        reported: &[(u64, String, String)],
        before: &BTreeMap<PathBuf, Vec<u8>>,
    ) {
        let now = steps(&self.scene.out());
        for (path, bytes) in before {
            if now.get(path) != Some(bytes) {
                let how = if now.contains_key(path) { "changed" } else { "gone" };
                self.wrong.push(format!("{how}: {}", path.display()));
            }
        }
        for (block, target, step) in reported {
            let is_it = |path: &&PathBuf| {
                let path = path.display().to_string();
                path.contains(&format!("/b{block:02}-"))
                    && path.contains(&format!("-{target}"))
                    && path.ends_with(&format!("-{step}.json"))
            };
            let found = now.iter().find(|(path, _)| is_it(path));
            let is_whole = found.is_some_and(|(_, bytes)| {
                serde_json::from_slice::<Json>(bytes).is_ok_and(|it| it["status"] == "complete")
            });
            if !is_whole {
                self.wrong.push(format!("reported and not there: {block} {target} {step}"));
            }
        }
    }

    /// The run goes on where it was, or begins if there was nothing yet.
    fn resume(&mut self, record: &mut Record) -> Result<(), String> {
        let is_begun = self.scene.out().join("plan.toml").exists();
        let words = if is_begun { &self.scene.resuming } else { &self.scene.words };
        let command = self.scene.rqps(words, false);
        let run = Running::start(command, &self.scene.at.join("second.txt"))?;
        match run.end(PATIENCE) {
            Ok(ended) => {
                record.resumed = Some(ended.code);
                self.tell("resumed", &ended.lines);
                if ended.code != 0 {
                    self.wrong.push(format!("resuming ends with {}", ended.code));
                }
                self.check_words(&ended);
            }
            Err(lines) => {
                self.tell("resumed", &lines);
                self.wrong.push("resuming does not end".to_owned());
            }
        }
        self.check_left("after resuming", true);
        Ok(())
    }

    /// There is a report, and in it each block once.
    fn check_report(&mut self) {
        let out = self.scene.out();
        let words = ["report".to_owned(), out.display().to_string()];
        let output = self.scene.rqps(&words, false).stdin(Stdio::null()).output();
        match output {
            Ok(output) if output.status.success() => {}
            Ok(output) => self.wrong.push(format!("no report: {}", program::said(&output).trim())),
            Err(error) => self.wrong.push(format!("no report: {error}")),
        }
        let counting = complete_runs(&out);
        if counting.len() != self.trial.setup.blocks() * 2 {
            self.wrong.push(format!("blocks that count: {counting:?}"));
        }
    }
}

/// The last error that was said; empty if there was none.
fn last_error(lines: &[String]) -> String {
    let error = |line: &String| {
        let event: Json = serde_json::from_str(line).ok()?;
        (event["event"] == "error").then(|| event["text"].as_str().map(str::to_owned))?
    };
    lines.iter().rev().find_map(error).unwrap_or_default()
}

/// Block and target of each run whose last attempt came to its end.
fn complete_runs(out: &Path) -> BTreeSet<(u64, String)> {
    let mut last: BTreeMap<(u64, String), (u64, bool)> = BTreeMap::new();
    for entry in fs::read_dir(out).into_iter().flatten().flatten() {
        let Ok(bytes) = fs::read(entry.path().join("run.json")) else { continue };
        let Ok(record) = serde_json::from_slice::<Json>(&bytes) else { continue };
        let number = |name: &str| record["key"][name].as_u64().unwrap_or_default();
        let label = record["key"]["label"].as_str().unwrap_or_default().to_owned();
        let attempt = (number("attempt"), record["status"] == "complete");
        let of_run = last.entry((number("block"), label)).or_default();
        *of_run = attempt.max(*of_run);
    }
    last.retain(|_, (_, is_complete)| *is_complete);
    last.into_keys().collect()
}
