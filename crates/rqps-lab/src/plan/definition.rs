//! A plan, and what follows from it.
//!
//! A plan is either written by hand (a TOML file) or made from the words of `rqps compare`. Both
//! are a [`PlanDraft`] first. [`Plan::build`] checks it once; nothing changes it afterwards. The
//! same plan always gives the same order of runs.

use std::borrow::Cow;
use std::ops::Deref;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::benchmarks::{self, StepSet};
use crate::plan::blocks::{Blocks, Sittings};
use crate::plan::file::{self, PlanError};
use rqps_bench::spec::{DataSize, DefaultTurns};
use rqps_driver::request::RequestBody;
use rqps_driver::workload::SelectError;
use rqps_model::benchmark::{Idle, Pace, Phase, Placement, Step, StepBody, StepTurns, Workload};
use rqps_model::build::{BuildSource, Target};
use rqps_model::counted::StepCount;
use rqps_model::datagen::rng::Rng;
use rqps_model::dialect::Dialect;
use rqps_model::gate::Calibration;
use rqps_model::script::SourceValues;
use rqps_model::verdict::GateRules;

/// A plan that can be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan(Arc<BuiltPlan>);

#[derive(Debug, PartialEq)]
struct BuiltPlan {
    draft: PlanDraft,
    hash: String,
}

impl Deref for Plan {
    type Target = PlanDraft;

    fn deref(&self) -> &PlanDraft {
        &self.0.draft
    }
}

impl Plan {
    /// Checks what words or a file ask for.
    ///
    /// # Errors
    /// [`PlanError::Value`] names the field, [`PlanError::Steps`] the glob.
    pub fn build(draft: PlanDraft) -> Result<Plan, PlanError> {
        file::check(&draft)?;
        let hash = file::canonical_hash(&draft)?;
        Ok(Plan(Arc::new(BuiltPlan { draft, hash })))
    }

    /// A copy to change and to build again.
    pub fn draft(&self) -> PlanDraft {
        self.0.draft.clone()
    }

    /// Names what is measured: the same on every host, whatever prints plans. Rules of verdicts and
    /// the passes after the blocks are not part of it.
    pub fn hash(&self) -> &str {
        &self.0.hash
    }

    /// True if `other` asks for the same, passwords of DSNs aside.
    pub fn is_same(&self, other: &Plan) -> bool {
        let beside = |plan: &Plan| (plan.gate.clone(), plan.count, plan.profile);
        self.hash() == other.hash() && beside(self) == beside(other)
    }

    /// The plan of the counting pass, if there is one.
    ///
    /// # Errors
    /// As [`Plan::build`].
    pub fn counting(&self) -> Result<Option<Plan>, PlanError> {
        self.counting_pass().map(Plan::build).transpose()
    }

    /// The plan of the profiling pass, if there is one.
    ///
    /// # Errors
    /// As [`Plan::build`].
    pub fn profiling(&self) -> Result<Option<Plan>, PlanError> {
        self.profiling_pass().map(Plan::build).transpose()
    }
}

/// What words or a file ask for, before it is checked.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanDraft {
    /// The measured targets. The first is the baseline.
    pub targets: Vec<Target>,
    /// The sequence of steps.
    pub order: StepSet,
    /// Globs that choose steps; empty for all.
    pub steps: Vec<String>,
    /// Scale and shape.
    pub workload: Workload,
    /// Rounds, each measuring every target once.
    pub blocks: Blocks,
    /// Sittings that share the blocks; `None` for one.
    pub sittings: Option<Sittings>,
    /// Independent loads of each target; block i starts from the load i modulo this number, or from
    /// that of its sitting.
    pub loads: u32,
    /// The way in which targets take turns in a block.
    pub interleave: Interleave,
    /// Seed of the data, of the order, and of every client.
    pub seed: u64,
    /// True if rqps reads canaries before and after each block, and discards blocks that a
    /// disturbed host measured.
    pub canaries: bool,
    /// Rules of `rqps gate` and of reports; `None` for the defaults. They do not change the
    /// measurement, so the plan's hash does not include them.
    pub gate: Option<GateRules>,
    /// The pass after the blocks that counts instructions, if there is one. It measures no rate,
    /// so the plan's hash does not hold it.
    pub count: Option<CountingPass>,
    /// The pass after the blocks that samples stacks, if there is one. Its rates are no evidence,
    /// so the plan's hash does not hold it.
    pub profile: Option<ProfilingPass>,
}

/// The pass that samples the stacks of servers in each step, after the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfilingPass {
    /// Blocks of the pass.
    pub blocks: u32,
    /// Samples per second of CPU time.
    pub hertz: u32,
}

impl ProfilingPass {
    /// False for each third block: it goes without the profiler, so that its cost is known.
    pub fn is_sampled(block: u32) -> bool {
        !block.is_multiple_of(3)
    }
}

/// The pass that counts the instructions of each step, after the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountingPass {
    /// Statements of each step that are counted.
    pub statements: u64,
    /// Counts of each step and target.
    pub repeats: u32,
    /// True to simulate caches and branches, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub simulate: bool,
}

/// The way in which targets take turns in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interleave {
    /// All servers of the block are up; within a step they take turns of milliseconds. Steps that
    /// cannot be measured so visit one target after the other, as [`Interleave::Step`].
    Turns,
    /// All servers of the block are up, idle ones stopped; each step visits every target.
    Step,
    /// One target's whole sequence after another: for machines where only one fits.
    Run,
}

impl Interleave {
    /// The default way.
    ///
    /// It is turns within steps for two or more targets of all benchmarks but one. Published presets keep the way in which they were published. A step that
    /// cannot take turns alternates as a whole.
    ///
    /// With clients on other hosts whole steps alternate: drivers there stop no server, so what it
    /// writes in the background would fall into the turns of others, and a long way makes turns
    /// long.
    ///
    /// In all other cases whole steps alternate, so that a pair is seconds apart. The exception is
    /// the Insert Benchmark, which runs one target after the other, as it is published: its steps
    /// leave dirty pages to the next step, and the operating system writes those of a stopped
    /// server back in the turns of another target.
    pub fn default_of(targets: &[Target], workload: &Workload, is_published: bool) -> Interleave {
        let real = targets.iter().all(|target| target.dbms.dialect() != Dialect::Fake);
        match benchmarks::of(workload).turns {
            DefaultTurns::Run => Interleave::Run,
            DefaultTurns::Within
                if targets.len() > 1
                    && real
                    && !is_published
                    && workload.client_hosts.is_none() =>
            {
                Interleave::Turns
            }
            DefaultTurns::Within => Interleave::Step,
        }
    }
}

impl PlanDraft {
    /// The name of the benchmark, such as `sysbench`.
    pub fn benchmark(&self) -> &'static str {
        self.workload.shape.benchmark()
    }

    /// The targets that rqps starts itself.
    fn own_targets(&self) -> Vec<Target> {
        let starts = |target: &&Target| {
            let ours = !matches!(target.source, BuildSource::Dsn(_) | BuildSource::Client(_));
            ours && target.dbms.dialect() != Dialect::Fake
        };
        self.targets.iter().filter(starts).cloned().collect()
    }

    /// A pass after the blocks of the plan, on the targets that rqps starts.
    fn pass(&self, workload: Workload, blocks: u32, interleave: Interleave) -> PlanDraft {
        PlanDraft {
            targets: self.own_targets(),
            workload,
            blocks: Blocks::Fixed(blocks),
            sittings: None,
            interleave,
            canaries: false,
            gate: None,
            count: None,
            profile: None,
            ..self.clone()
        }
    }

    /// The counting pass, if there is one: the same steps on the same rows, with one client, on the
    /// targets that rqps starts itself.
    pub(super) fn counting_pass(&self) -> Option<PlanDraft> {
        let CountingPass { statements, repeats, simulate } = self.count?;
        let workload = Workload {
            clients: 1,
            client_counts: Vec::new(),
            client_hosts: None,
            // Limits would be those of valgrind as well.
            memory_limit: None,
            read_seconds: 1.0,
            write_seconds: 1.0,
            warmup_seconds: 0.0,
            settle_scale: 0.0,
            pace: Pace::Closed,
            placement: Placement::Os,
            idle: Idle::Os,
            turn_ms: None,
            waiting: None,
            counted_statements: Some(statements),
            simulated_caches: simulate,
            ..self.workload.clone()
        };
        let plan = self.pass(workload, repeats, Interleave::Run);
        Some(plan.with_counted_loads())
    }

    /// This plan of counted runs, with a load for each repeat unless loading is a step. Random
    /// properties of a load, such as how full pages are, then differ between repeats, and the
    /// interval contains them.
    #[must_use]
    pub fn with_counted_loads(self) -> PlanDraft {
        let loads_once = |target: &Target| self.load_request(target).is_some();
        let loads = if self.targets.iter().all(loads_once) { self.blocks.most() } else { 1 };
        PlanDraft { loads, ..self }
    }

    /// The profiling pass, if there is one: the same steps on the same rows, on the targets that
    /// rqps starts itself. A profiler of a server that others wait for would sample their turns, so
    /// whole steps alternate.
    pub(super) fn profiling_pass(&self) -> Option<PlanDraft> {
        let ProfilingPass { blocks, hertz } = self.profile?;
        let workload = Workload {
            turn_ms: None,
            waiting: None,
            profile_hertz: Some(hertz),
            ..self.workload.clone()
        };
        let interleave = match self.interleave {
            Interleave::Turns => Interleave::Step,
            other => other,
        };
        Some(PlanDraft { loads: 1, ..self.pass(workload, blocks, interleave) })
    }

    /// The treatment of a step in a counted run: count events, carry out, or leave out.
    pub fn counted(&self, step: &Step) -> StepCount {
        benchmarks::counted(step, &self.workload)
    }

    /// The workload as a target takes it: SQL under the name of its DBMS comes before SQL of its
    /// dialect.
    pub fn workload_of(&self, target: &Target) -> Cow<'_, Workload> {
        (benchmarks::of(&self.workload).of_dbms)(&self.workload, target.dbms)
    }

    /// The phases of one target. Phases depend on the target through its dialect and, in vector
    /// search, the name of its config.
    ///
    /// # Errors
    /// A glob that matches no step.
    pub fn phases(&self, target: &Target) -> Result<Vec<Phase>, SelectError> {
        let spec = benchmarks::of(&self.workload);
        let workload = self.workload_of(target);
        let mut phases = benchmarks::phases(target.dbms.dialect(), self.order, &workload);
        (spec.for_target)(&mut phases, target);
        (spec.choose)(phases, &self.steps)
    }

    /// The load of a target's tables before the first step; `None` if a step loads them.
    ///
    /// On a server that rqps does not run, a workload of the user's own uses the tables that are
    /// there, and there is no load, unless the workload asks for one.
    pub fn load_request(&self, target: &Target) -> Option<RequestBody> {
        let file = benchmarks::of(&self.workload).file.as_ref();
        let loads_there = file.is_some_and(|file| (file.loads_on_servers)(&self.workload));
        if matches!(target.source, BuildSource::Dsn(_)) && self.is_visitor() && !loads_there {
            return None;
        }
        let storage_engine = target.storage_engine.as_deref();
        benchmarks::load_task(target.dbms.dialect(), &self.workload_of(target), storage_engine)
    }

    /// True if the workload runs on tables of the user's.
    pub fn is_visitor(&self) -> bool {
        let spec = benchmarks::of(&self.workload);
        let visits = spec.words.as_ref().is_some_and(|words| (words.visits)(&self.workload));
        visits || spec.file.is_some()
    }

    /// True if statements of its steps are the user's.
    pub fn brings_statements(&self) -> bool {
        let words = &benchmarks::of(&self.workload).words;
        self.is_visitor() || words.as_ref().is_some_and(|words| (words.brings)(&self.workload))
    }

    /// True if drivers execute code of the user's.
    pub fn runs_scripts(&self) -> bool {
        benchmarks::of(&self.workload).driver.script.is_some()
    }

    /// The seed of the data of a load. Loads differ in the values of their rows, so also in where
    /// these stand in indexes; those of all targets are alike.
    pub fn load_seed(&self, load: u32) -> u64 {
        match load {
            1 => self.seed,
            load => Rng::stream(self.seed, "load", u64::from(load)).next_u64(),
        }
    }

    /// True if targets take turns within the steps that allow it.
    pub fn takes_turns(&self) -> bool {
        self.interleave == Interleave::Turns
    }

    /// How targets take turns within a step of this plan. rqps stops no process that somebody else
    /// runs, and none of another host.
    pub fn turns_of(&self, step: &Step) -> StepTurns {
        let is_own = |target: &Target| !target.source.is_elsewhere();
        let can_stop = self.workload.client_hosts.is_none() && self.targets.iter().all(is_own);
        // Arrivals of events by a schedule need own time.
        let turns = match (step.turns, self.workload.pace) {
            (StepTurns::Clients, Pace::Open { .. }) => StepTurns::Processes,
            (turns, _) => turns,
        };
        match turns {
            _ if !self.takes_turns() => StepTurns::None,
            StepTurns::Processes if !can_stop => StepTurns::None,
            turns => turns,
        }
    }

    /// True if several targets take turns within every step of these phases.
    pub fn takes_turns_in_all(&self, phases: &[Phase]) -> bool {
        let real = self.targets.iter().all(|target| !target.dbms.dialect().is_scripted());
        let allow = |phase: &Phase| match phase {
            Phase::Measure(step) => self.turns_of(step) != StepTurns::None,
            Phase::Settle | Phase::Restore => true,
        };
        self.takes_turns() && real && self.targets.len() > 1 && phases.iter().all(allow)
    }

    /// The calibration that fits best: of the host with this fingerprint and measured in the same
    /// way, and of a product, a number of clients, a placement and an idle state as like those of
    /// the plan as there are; of equals the latest.
    pub fn closest<'a>(
        &self,
        host_fingerprint: &str,
        stored: &'a [Calibration],
    ) -> Option<&'a Calibration> {
        let dbms = self.targets.first().map(|target| target.dbms);
        let likeness = |known: &Calibration| {
            let same = [
                Some(known.dbms) == dbms,
                known.placement == self.workload.placement,
                known.idle == self.workload.idle,
                known.clients == self.workload.clients,
            ];
            same.iter().filter(|same| **same).count()
        };
        let of_host = stored.iter().filter(|known| {
            // The noise of steps in turns says nothing about that of whole steps.
            let alike = known.turns == (self.interleave == Interleave::Turns);
            alike && known.host_fingerprint == host_fingerprint
        });
        of_host.max_by_key(|known| (likeness(known), known.made.clone()))
    }

    /// The name of a table, with `{table}` for its number; empty without tables.
    pub fn table_name(&self) -> &'static str {
        benchmarks::of(&self.workload).table_name
    }

    /// Every name that is made in the database of a target.
    pub fn names_made(&self, target: &Target) -> Vec<String> {
        (benchmarks::of(&self.workload).names_made)(target.dbms.dialect(), &self.workload)
    }

    /// An estimate of the data of one target.
    pub fn size(&self) -> DataSize {
        (benchmarks::of(&self.workload).size)(&self.workload)
    }

    /// Memory that a target with the page cache of its files may take, bytes.
    pub fn memory_limit(&self) -> Option<u64> {
        (benchmarks::of(&self.workload).memory_limit)(&self.workload)
    }
}

// The user's own files that a plan reads.

/// Bytes of the largest file of which results keep a copy.
const COPIED_BYTES: u64 = 1 << 20;

/// A file of which results keep a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFile {
    /// Its path on this host.
    pub path: PathBuf,
    /// Name of its copy: the path in the workload, below its folder.
    pub copy: PathBuf,
}

/// Scripts and small data files that the workload reads. Results keep copies, so that a report can
/// be traced to them.
pub fn own_files(plan: &PlanDraft) -> Vec<OwnFile> {
    let Some(own) = &benchmarks::of(&plan.workload).file else { return Vec::new() };
    let folder = (own.folder)(&plan.workload).unwrap_or_default();
    let files = (own.files)(&plan.workload).into_iter();
    let small = files.filter_map(|(name, known)| {
        let file = known.filter(|file| file.bytes <= COPIED_BYTES)?;
        let copy = copy_name(Path::new(&name), &file.sha256);
        Some(OwnFile { path: folder.join(&name), copy })
    });
    small.collect()
}

/// A file that a driver reads in a step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepFile {
    /// Its path on this host.
    pub path: PathBuf,
    /// SHA-256 of its content in hex, if the plan knows it.
    pub sha256: Option<String>,
}

/// The user's own files that the drivers of steps read, each once: CSV files, scripts, vectors.
/// Excludes files that only the load reads.
pub fn step_files(plan: &PlanDraft) -> Vec<StepFile> {
    let spec = benchmarks::of(&plan.workload);
    let mut pinned = Vec::new();
    if let Some(own) = &spec.file {
        let folder = (own.folder)(&plan.workload).unwrap_or_default();
        let files = (own.files)(&plan.workload).into_iter();
        pinned.extend(files.map(|(name, file)| (folder.join(name), file)));
    }
    let mut paths = (spec.own_data)(&plan.workload);
    // If a glob matches no step, `plan.phases` reports that elsewhere.
    let phases = plan.targets.iter().filter_map(|target| plan.phases(target).ok());
    for phase in phases.flatten() {
        let Phase::Measure(step) = phase else { continue };
        match &step.work {
            StepBody::Script(script) => {
                paths.extend(script.sources.iter().filter_map(|source| match &source.values {
                    SourceValues::File { path, .. } => Some(path.clone()),
                    _ => None,
                }));
            }
            _ => paths.extend(pinned.iter().map(|(path, _)| path.clone())),
        }
    }
    paths.sort();
    paths.dedup();
    let known = |path: &PathBuf| {
        let (_, file) = pinned.iter().find(|(other, _)| other == path)?;
        Some(file.as_ref()?.sha256.clone())
    };
    paths.into_iter().map(|path| StepFile { sha256: known(&path), path }).collect()
}

/// The path unchanged if it stays below the folder; else the hash and the name of the file.
fn copy_name(name: &Path, sha256: &str) -> PathBuf {
    let is_below = name.components().all(|part| matches!(part, Component::Normal(_)));
    if is_below {
        return name.to_owned();
    }
    let last = name.file_name().map(|last| last.to_string_lossy().into_owned());
    // The text is a plan's.
    let hash: String = sha256.chars().filter(char::is_ascii_hexdigit).take(8).collect();
    PathBuf::from(format!("{hash}-{}", last.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::words;
    use rqps_bench::sysbench;
    use rqps_model::build::Dbms;
    use rqps_model::gate::SlotEffect;

    fn plan_in_turns() -> PlanDraft {
        let words = ["mysql@8.0.33", "b=mysql@5.6.14"].map(str::to_owned);
        PlanDraft {
            targets: words::targets(&words).expect("words"),
            order: StepSet::Abbreviated,
            steps: Vec::new(),
            workload: sysbench::workload("quick").unwrap().0,
            blocks: Blocks::Fixed(4),
            sittings: None,
            loads: 1,
            interleave: Interleave::Turns,
            seed: 1,
            canaries: true,
            gate: None,
            count: None,
            profile: None,
        }
    }

    #[test]
    fn the_same_host_and_way_count_first_then_likeness_then_the_latest() {
        let workload = sysbench::workload("quick").unwrap().0;
        let known = |host: &str, turns: bool, dbms: Dbms, made: &str| Calibration {
            format: 1,
            host_fingerprint: host.to_owned(),
            made: made.to_owned(),
            rqps_version: String::new(),
            target: made.to_owned(),
            dbms,
            clients: workload.clients,
            placement: workload.placement,
            idle: workload.idle,
            turns,
            read_seconds: 2.0,
            write_seconds: 2.0,
            blocks: 4,
            steps: Vec::new(),
            slot: SlotEffect::default(),
            canary_pairs: Vec::new(),
            out_of_range: 0,
        };
        let plan = plan_in_turns();
        let mut stored =
            vec![known("other", true, Dbms::Mysql, "5"), known("here", false, Dbms::Mysql, "4")];
        assert_eq!(plan.closest("here", &stored), None);
        let made = |stored: &[Calibration]| plan.closest("here", stored).expect("one").made.clone();
        stored.push(known("here", true, Dbms::Postgres, "3"));
        assert_eq!(made(&stored), "3");
        stored.push(known("here", true, Dbms::Mysql, "1"));
        stored.push(known("here", true, Dbms::Mysql, "2"));
        assert_eq!(made(&stored), "2");
    }

    #[test]
    fn a_counting_pass_leaves_out_servers_that_somebody_else_runs() {
        let mut plan = plan_in_turns();
        let theirs = words::targets(&["theirs=mysql://me@host/db".to_owned()]);
        plan.targets.extend(theirs.expect("a DSN"));
        assert_eq!(plan.counting_pass(), None);
        plan.count = Some(CountingPass { statements: 100, repeats: 2, simulate: true });
        let counting = plan.counting_pass().expect("a pass");
        let labels: Vec<&str> = counting.targets.iter().map(|it| it.label.as_str()).collect();
        assert_eq!(labels, ["mysql-8.0.33", "b"]);
        let Workload { counted_statements, simulated_caches, clients, .. } = counting.workload;
        assert_eq!((counted_statements, simulated_caches, clients), (Some(100), true, 1));
        assert_eq!((counting.blocks.most(), counting.loads), (2, 2), "a load for each repeat");
    }

    #[test]
    fn a_step_that_takes_no_turns_or_a_single_target_leaves_steps_whole() {
        let mut plan = plan_in_turns();
        let points = plan.phases(&plan.targets[0]).expect("phases");
        assert!(plan.takes_turns_in_all(&points));
        let mut whole = points.clone();
        for phase in &mut whole {
            if let Phase::Measure(step) = phase {
                step.turns = StepTurns::None;
            }
        }
        assert!(!plan.takes_turns_in_all(&whole));
        plan.workload.pace = Pace::Open { events_per_second: 100.0 };
        let Some(Phase::Measure(step)) = points.first() else { panic!("a step") };
        assert_eq!(plan.turns_of(step), StepTurns::Processes);
        assert!(plan.takes_turns_in_all(&points));
        let theirs = words::targets(&["theirs=mysql://me@host/db".to_owned()]);
        plan.targets.extend(theirs.expect("a DSN"));
        assert_eq!(plan.turns_of(step), StepTurns::None, "nobody stops it");
        plan.targets.pop();
        plan.workload.pace = Pace::Closed;
        plan.targets.truncate(1);
        assert!(!plan.takes_turns_in_all(&points));
    }
}

#[cfg(test)]
mod own_files_tests {
    use super::*;
    use crate::plan::file;
    use rqps_model::sql_workload::PinnedFile;

    #[test]
    fn drivers_read_the_files_of_parameters_and_not_those_of_the_load() {
        let text = "targets = [\"a=postgres@17.2\"]\nbenchmark = \"sysbench\"\n\
                    order = \"abbreviated\"\nsteps = []\nblocks = 1\ninterleave = \"step\"\n\
                    seed = \"1\"\n[workload]\ntables = 1\nrows = 10\nclients = 1\n\
                    read_seconds = 1.0\nwrite_seconds = 1.0\nwarmup_seconds = 0.1\n\
                    settle_scale = 0.0\npace = \"closed\"\nidle = \"os\"\nplacement = \"os\"\n";
        let mut plan = file::draft(text).unwrap();
        let text = "[load]\ndata = [{ csv = \"rows.csv\", table = \"t\" }]\n\
                    [parameter]\nword = { kind = \"file\", csv = \"w.csv\", column = \"w\" }\n\
                    [[step]]\nname = \"look\"\n[[step.event]]\n\
                    [[step.event.statement]]\nsql = \"SELECT 1 FROM t WHERE w = :word\"\n";
        let own = benchmarks::named("sql").unwrap().file.as_ref().unwrap();
        (own.read)(&mut plan.workload, text).unwrap();
        let known = PinnedFile { sha256: "ab".to_owned(), bytes: 1 };
        let names = ["rows.csv", "w.csv"].map(|name| (name.to_owned(), known.clone()));
        (own.pin)(&mut plan.workload, Path::new("/data"), names.into_iter().collect());
        let path = PathBuf::from("/data/w.csv");
        assert_eq!(step_files(&plan), [StepFile { path, sha256: Some("ab".to_owned()) }]);
    }

    #[test]
    fn a_copy_never_leaves_its_folder() {
        let check = |name: &str, want: &str| {
            assert_eq!(copy_name(Path::new(name), "0123456789ab"), Path::new(want), "{name}");
        };
        check("a.sql", "a.sql");
        check("data/a.csv", "data/a.csv");
        check("../a.csv", "01234567-a.csv");
        check("/usr/share/x.lua", "01234567-x.lua");
        let other = copy_name(Path::new("../x.lua"), "../../..");
        assert_eq!(other, Path::new("-x.lua"));
    }
}
