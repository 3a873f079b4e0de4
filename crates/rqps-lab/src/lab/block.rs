//! One block: every target measured once, on fresh servers over restored snapshots.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::lab::count;
use crate::lab::execution::{self, Execution};
use crate::lab::prepare::{self, Asked, KeptLoad, TargetState};
use crate::lab::progress::{Event, Progress, error_text, side_by_side};
use crate::lab::step_runner::{self, Measured, StepRunner};
use crate::lab::turns::{self, TurnParticipant};
use crate::plan::file::without_password;
use crate::plan::{BlockSpec, Interleave, ProfilingPass, cost};
use rqps_dbms::ControlPlane;
use rqps_host::cgroup::MemoryGroup;
use rqps_host::valgrind::{Callgrind, ProfileNames};
use rqps_host::{clock, disk};
use rqps_model::benchmark::{Phase, Prerequisite, Step};
use rqps_model::build::{BuildSource, CONNECTION, Version};
use rqps_model::counted::CallGraph;
use rqps_model::row_digest::{AnswerReply, StepAnswers};
use rqps_model::run::{BlockRun, FORMAT, RunKey, RunRecord, Sitting, Status, StepRecord};
use rqps_model::safe_path;
use rqps_results::RunFolder;

/// A target, and its place in the order of the block, from 1.
type Member<'a> = (u32, &'a mut TargetState);

/// Runs a block; returns the runs that have a folder.
///
/// # Errors
/// The result folder cannot be written. A failure of one target is written into its run, and the
/// others go on.
pub(super) fn run(
    execution: &Execution<'_>,
    states: &mut [TargetState],
    spec: &BlockSpec,
    progress: &mut Progress<'_>,
) -> Result<Vec<BlockRun>> {
    let mut members: Vec<Member<'_>> = Vec::new();
    for (slot, state) in spec.targets.iter().zip(states) {
        if !state.broken {
            members.push((slot.position, state));
        }
    }
    members.sort_by_key(|(position, _)| *position);
    let mut runs: Vec<BlockRun> = Vec::new();
    if execution.options.valgrind.is_some() {
        let cache = execution.plan.workload.cache_bytes;
        let fit = execution::servers_that_fit(cache, execution.memory_bytes);
        // Counts do not depend on the load of the host, so targets may run at the same time.
        let alone = |member, progress: &mut Progress<'_>| {
            if execution.stopped() {
                Ok(Vec::new())
            } else {
                together(execution, vec![member], spec, progress)
            }
        };
        for ended in side_by_side(members, fit, progress, alone) {
            runs.extend(ended?);
        }
        return Ok(runs);
    }
    let at_once = match execution.plan.interleave {
        Interleave::Turns | Interleave::Step => members.len(),
        Interleave::Run => 1,
    };
    while !members.is_empty() && !execution.stopped() {
        let rest = members.split_off(at_once.min(members.len()));
        let group = std::mem::replace(&mut members, rest);
        runs.extend(together(execution, group, spec, progress)?);
    }
    Ok(runs)
}

/// Runs the targets of a group together: each phase visits all of them in order.
fn together(
    execution: &Execution<'_>,
    group: Vec<Member<'_>>,
    spec: &BlockSpec,
    progress: &mut Progress<'_>,
) -> Result<Vec<BlockRun>> {
    let mut ended: Vec<BlockRun> = Vec::new();
    let mut runs = start(execution, group, spec, &mut ended, progress)?;
    let phases = runs.iter().map(|run| run.state.phases.len()).max().unwrap_or(0);
    let alone = runs.len() == 1;
    for phase in (0..phases).filter(|phase| spec.holds(*phase)) {
        if turns::are_taken(execution, &runs, phase) && !execution.stopped() {
            turns::phase(execution, &mut runs, phase, progress);
            continue;
        }
        for run in &mut runs {
            if run.record.status != Status::Running || execution.stopped() {
                continue;
            }
            if let Err(error) = run.turn(phase, alone, progress) {
                run.fail(&error, progress);
            }
        }
    }
    let plan = execution.plan;
    let finish = |run: ActiveRun<'_>, progress: &mut Progress<'_>| {
        let task = cost::stop(plan, &run.state.target);
        progress.begin(task);
        let ended = run.finish(progress);
        progress.end(task);
        ended
    };
    if plan.takes_turns() {
        for run in side_by_side(runs, usize::MAX, progress, finish) {
            ended.push(run?);
        }
    } else {
        for run in runs {
            ended.push(finish(run, progress)?);
        }
    }
    ended.sort_by_key(|run| run.key.order);
    Ok(ended)
}

/// Starts the servers of a group; adds those that do not start to `ended`. Targets that take turns
/// start at the same time, so that all have run equally long when the first step begins.
fn start<'a>(
    execution: &'a Execution<'a>,
    group: Vec<Member<'a>>,
    spec: &BlockSpec,
    ended: &mut Vec<BlockRun>,
    progress: &mut Progress<'_>,
) -> Result<Vec<ActiveRun<'a>>> {
    let BlockSpec { block, attempt, .. } = *spec;
    let one = |(order, state): Member<'a>, progress: &mut Progress<'_>| {
        let key = RunKey { block, attempt, order, label: state.target.label.clone() };
        let task = cost::start(execution.plan, &state.target);
        progress.begin(task);
        let started = start_server(execution, state, key, progress);
        progress.end(task);
        started
    };
    let mut runs: Vec<ActiveRun<'a>> = Vec::new();
    let mut add = |started, runs: &mut Vec<ActiveRun<'a>>| match started {
        Started::Runs(run) => runs.push(*run),
        Started::Failed(run) => ended.push(run),
    };
    if execution.plan.takes_turns() && group.len() > 1 {
        for started in side_by_side(group, usize::MAX, progress, one) {
            add(started?, &mut runs);
        }
        runs.iter_mut().for_each(|run| run.wait(progress));
        return Ok(runs);
    }
    for member in group {
        // A server that waits for its turn must not run while another starts or is measured.
        if let Some(before) = runs.last_mut() {
            before.wait(progress);
        }
        add(one(member, progress)?, &mut runs);
    }
    Ok(runs)
}

// One target at work in a block: its server, its steps, and the run folder that they go to.

/// With a larger share of broken stacks, frame pointers do not lead to callers.
const BROKEN_MOST: f64 = 0.2;

/// One target at work in this block.
pub(super) struct ActiveRun<'a> {
    pub(super) execution: &'a Execution<'a>,
    pub(super) state: &'a mut TargetState,
    pub(super) record: RunRecord,
    pub(super) folder: RunFolder,
    pub(super) data: PathBuf,
    pub(super) control: Box<dyn ControlPlane>,
    /// The load that the block starts from.
    load: KeptLoad,
    /// The prerequisite that is missing since a step failed, and the name of that step.
    lost: Option<(Prerequisite, String)>,
    /// Holds the limit on the server's memory; goes when the server has gone.
    pub(super) group: Option<MemoryGroup>,
    /// Set if instructions are counted instead of time.
    callgrind: Option<Callgrind>,
    /// True once the server runs under callgrind.
    pub(super) is_under: bool,
    /// Names of functions that valgrind does not know.
    pub(super) names: ProfileNames,
    /// True once a step wrote, at the target's own rate.
    wrote: bool,
}

/// The result of a start.
pub(super) enum Started<'a> {
    /// The server is up.
    Runs(Box<ActiveRun<'a>>),
    /// It is not; the run says why.
    Failed(BlockRun),
}

/// Restores the snapshot and starts the server.
pub(super) fn start_server<'a>(
    execution: &'a Execution<'a>,
    state: &'a mut TargetState,
    key: RunKey,
    progress: &mut Progress<'_>,
) -> Result<Started<'a>> {
    let (name, number) = (key.folder(), execution.plan.load_of(key.block));
    let load = state.loads.get(&number).cloned().unwrap_or_default();
    let record = RunRecord { load: load.load.clone(), ..record(execution, state, key) };
    let folder = execution.results.begin_run(&record)?;
    let data = match execution.options.valgrind {
        Some(_) => execution.folders.counted(record.key.order),
        // Where a path lies in a process's memory moves what follows it.
        None => state.folder.join(name.clone() + &execution.plan.path_tail(record.key.block)),
    };
    // Counted runs of all blocks share folders, and one that was killed left its data there.
    remove(execution, &data, progress);
    let logs = folder.folder().join("logs");
    safe_path::make_folder(&logs).with_context(|| format!("make {}", logs.display()))?;
    progress.doing(&state.target.label, "restore the snapshot and start", None);
    let callgrind = count::callgrind(execution, &data);
    // Preparation is faster without valgrind.
    let is_under = count::counts_next(execution, &state.phases);
    let started = restore(execution, state, number, &data).and_then(|()| {
        let group = execution::group(execution.plan, &state.target)?;
        let path = group.as_ref().map(|group| group.path().to_owned());
        let under = callgrind.clone().filter(|_| is_under);
        let mut control = state.control(execution, data.clone(), logs.clone(), path, under)?;
        control.start().map_err(|error| match execution::killed(group.as_ref()) {
            Some(why) => anyhow::Error::new(error).context(why),
            None => error.into(),
        })?;
        Ok((control, group))
    });
    let (control, group) = match started {
        Ok(started) => started,
        Err(error) => {
            let mut record = record;
            let text = format!("start: {}", error_text(&error));
            record.status = Status::Failed(text.clone());
            record.finished = Some(clock::now_rfc3339());
            folder.update(&record)?;
            state.fault(format!("{name}: {text}"), progress);
            remove(execution, &data, progress);
            return Ok(Started::Failed(BlockRun { key: record.key, status: record.status }));
        }
    };
    let names = ProfileNames::new(execution.options.debug_folders.clone());
    let mut run = ActiveRun {
        execution,
        state,
        record,
        folder,
        data,
        control,
        load,
        lost: None,
        group,
        callgrind,
        is_under,
        names,
        wrote: false,
    };
    if let Err(error) = run.settle_in(&logs, progress) {
        run.fail(&error, progress);
    }
    Ok(Started::Runs(Box::new(run)))
}

/// Copies the snapshot of a load to where the server finds its data.
fn restore(execution: &Execution<'_>, state: &TargetState, load: u32, data: &Path) -> Result<()> {
    if state.is_external() {
        return Ok(());
    }
    disk::copy_tree(&prepare::snapshot(state, load), data, &mut |_, _| {})
        .map(|_| ())
        .and_then(|()| match execution.plan.memory_limit() {
            // Cached by this process, they would be outside of the limit.
            Some(_) => disk::drop_cached(data),
            None => Ok(()),
        })
        .with_context(|| format!("restore the snapshot of {}", state.target.label))
}

fn record(execution: &Execution<'_>, state: &TargetState, key: RunKey) -> RunRecord {
    let (plan, key_block) = (execution.plan, key.block);
    RunRecord {
        format: FORMAT,
        key,
        target: without_password(&state.target),
        targets: plan.targets.iter().map(|target| target.label.clone()).collect(),
        manifest: state.build.manifest.clone(),
        debug_build: None,
        server_settings: Default::default(),
        place: None,
        config: state.config.clone(),
        benchmark: plan.benchmark().to_owned(),
        workload: plan.workload.clone(),
        seed: plan.seed,
        plan_hash: plan.hash().to_owned(),
        host_fingerprint: execution.session.host.clone(),
        node: execution.session.node.clone(),
        sitting: plan.sittings.as_ref().map(|_| Sitting {
            number: plan.sitting_of(key_block),
            begun: execution.session.started.clone(),
        }),
        rqps_version: env!("CARGO_PKG_VERSION").to_owned(),
        started: clock::now_rfc3339(),
        finished: None,
        status: Status::Running,
        load: None,
        schedule: Some(plan.blocks.looks()),
        tables: Vec::new(),
        answers_after: Default::default(),
    }
}

impl ActiveRun<'_> {
    /// Reads the settings of the started server. On an external server, creates its tables.
    fn settle_in(&mut self, logs: &Path, progress: &mut Progress<'_>) -> Result<()> {
        let manifest = &mut self.record.manifest;
        manifest.reported = self.control.reported_version()?;
        if manifest.version.as_str().is_empty() {
            // A server that somebody else runs says for itself what it is.
            let first = manifest.reported.split_whitespace().next().unwrap_or_default();
            manifest.version = Version::new(first);
        }
        if manifest.compiler.is_none() {
            manifest.compiler = self.control.compiler();
        }
        self.record.debug_build = self.control.debug_build()?;
        self.record.server_settings = self.control.server_settings()?;
        if !self.record.server_settings.is_empty() {
            let is_remote = self.execution.plan.workload.client_hosts.is_some();
            let endpoint = match self.control.far_endpoint().filter(|_| is_remote) {
                Some((endpoint, _)) => endpoint,
                None => self.control.endpoint().0,
            };
            let way = endpoint.way().map(|way| (CONNECTION.to_owned(), way.to_owned()));
            self.record.server_settings.extend(way);
        }
        self.record.place = self.control.guest_place().map(|place| place.words);
        if self.state.is_external() {
            self.load_external(logs, progress)?;
        }
        if self.is_under && self.execution.plan.load_request(&self.state.target).is_some() {
            prepare::read_all(self.execution, self.state, self.control.as_mut(), progress)?;
        }
        if self.is_first_of_load() {
            self.record.tables = self.load.tables.clone();
        }
        self.folder.update(&self.record)?;
        Ok(())
    }

    /// Stops the server until its turn.
    pub(super) fn wait(&mut self, progress: &mut Progress<'_>) {
        if let Err(error) = self.control.pause() {
            self.fail(&error.into(), progress);
        }
    }

    /// Its turn in a phase: the server runs only now, unless it is alone.
    pub(super) fn turn(
        &mut self,
        index: usize,
        alone: bool,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        self.control.resume()?;
        self.phase(index, progress)?;
        if !alone {
            self.control.pause()?;
        }
        Ok(())
    }

    fn phase(&mut self, index: usize, progress: &mut Progress<'_>) -> Result<()> {
        let Some(phase) = self.state.phases.get(index).cloned() else { return Ok(()) };
        let task = cost::phase_task(self.execution.plan, &self.state.target, (index, &phase));
        progress.begin(task);
        match &phase {
            Phase::Settle => {
                prepare::settle(self.execution, self.state, self.control.as_mut(), progress)?;
            }
            Phase::Restore => self.start_afresh(progress)?,
            Phase::Measure(step) => self.measure(index, step, progress)?,
        }
        progress.end(task);
        Ok(())
    }

    /// Measures a step.
    fn measure(&mut self, index: usize, step: &Step, progress: &mut Progress<'_>) -> Result<()> {
        let label = self.record.key.label.clone();
        let number = index as u32 + 1;
        if !self.may_measure(step, number)? {
            return Ok(());
        }
        if step.restart_before && !self.state.is_external() {
            progress.doing(&label, "stop and start again", None);
            self.control.stop()?;
            self.control.start()?;
        }
        progress.doing(&label, &step.name, None);
        let seed = step_runner::seed_of(self.execution.plan.seed, self.record.key.block, number);
        if let Some(callgrind) = self.callgrind.clone()
            && self.count_or_leave_out((step, index), seed, &callgrind, progress)?
        {
            return Ok(());
        }
        let result = self.runner(None).measure(step, seed);
        self.conclude((step, number), result, progress)
    }

    /// The runner of a step.
    pub(super) fn runner<'s>(
        &'s mut self,
        participant: Option<TurnParticipant<'s>>,
    ) -> StepRunner<'s> {
        let is_sampled = ProfilingPass::is_sampled(self.record.key.block);
        let call_graph = is_sampled.then_some(self.state.call_graph);
        let (logs, control) = (self.folder.folder().join("logs"), self.control.as_mut());
        let runner = StepRunner::new(self.execution, &self.state.target, control, logs);
        StepRunner { participant, call_graph, ..runner }
    }

    /// False, and written down, if the step rests on one that failed.
    pub(super) fn may_measure(&mut self, step: &Step, number: u32) -> Result<bool> {
        let Some(cause) = self.rests_on_a_failure(step) else { return Ok(true) };
        // The fault was reported before. Without its prerequisite the step could only repeat it.
        let text = format!("skipped because {cause} failed");
        let record = step_runner::empty_record(step, number, Status::Failed(text));
        self.folder.write_step(&record, &[])?;
        Ok(false)
    }

    /// Writes down what came of a step. One that fails on a living server is written down as failed
    /// and the next one follows; if the server is gone, so is the run.
    pub(super) fn conclude(
        &mut self,
        (step, number): (&Step, u32),
        result: Result<Measured>,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        match result {
            Ok(measured) => {
                let tables = self.control.database_folder();
                self.keep(step, number, measured, tables.as_deref(), progress)
            }
            Err(error) if self.execution.stopped() => Err(error),
            // The error says how the server ended; asked again, it would only say that it is gone.
            Err(error) if self.control.check().is_err() => {
                Err(error.context(format!("measure {}", step.name)))
            }
            Err(error) => {
                let text = self.words(&error);
                let failed = step_runner::empty_record(step, number, Status::Failed(text.clone()));
                self.folder.write_step(&failed, &[])?;
                let run = self.record.key.folder();
                self.state.fault(format!("{run}: {}: {text}", step.name), progress);
                if let Some(made) = step.makes {
                    self.lost = Some((made, step.name.clone()));
                }
                Ok(())
            }
        }
    }

    /// Writes a measured step down. One that loads and reached its time limit has failed, and with
    /// it the steps that rest on its rows. One that queries has its numbers, and a write rate that
    /// says that they are not comparable.
    fn keep(
        &mut self,
        step: &Step,
        number: u32,
        mut measured: step_runner::Measured,
        tables: Option<&Path>,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        self.keep_version(&measured.outcome.facts);
        let rate = step_runner::rate(&measured.outcome, step.rate);
        let (seconds, turns) = (measured.seconds.clone(), measured.turns.clone());
        let counters = measured.counters.clone();
        let folded = measured.stacks.as_mut().map(|stacks| std::mem::take(&mut stacks.folded));
        let mut record = step_runner::record(step, number, measured, (&self.data, tables));
        if self.is_first_of_load() {
            record.answers = self.load.answers.get(&number).cloned();
        }
        self.wrote |= record.outcome.writes + record.outcome.no_ops > 0;
        self.choose_call_graph(&record);
        if self.callgrind.is_some()
            && let Some(why) = self.execution.plan.counted(step).reason()
        {
            record.counted = count::uncounted(step, why.to_owned());
        }
        if let (Some(why), Some(made)) = (&record.outcome.cut, step.makes) {
            record.status = Status::Failed(why.clone());
            let run = self.record.key.folder();
            self.state.fault(format!("{run}: {}: {why}", step.name), progress);
            self.lost = Some((made, step.name.clone()));
        }
        if !turns.is_empty() {
            self.folder.write_turns(&record, &turns)?;
        }
        if !counters.is_empty() {
            self.folder.write_counters(&record, &counters)?;
        }
        if let Some(folded) = folded {
            self.folder.write_stacks(&record, &folded)?;
        }
        self.folder.write_step(&record, &seconds)?;
        if record.status == Status::Complete {
            progress.event(Event::Measured {
                block: self.record.key.block,
                blocks: self.execution.plan.blocks.most(),
                label: self.record.key.label.clone(),
                step: step.name.clone(),
                rate,
                unit: step.rate,
            });
        }
        Ok(())
    }

    /// A program of the user's says what it talks to.
    fn keep_version(&mut self, facts: &BTreeMap<String, String>) {
        let is_client = matches!(self.state.target.source, BuildSource::Client(_));
        let Some(said) = facts.get("version").filter(|_| is_client) else { return };
        let mut words = said.split_whitespace();
        if let Some(version) = words.find(|word| word.starts_with(|c: char| c.is_ascii_digit())) {
            self.record.manifest.version = Version::new(version);
        }
        self.record.manifest.reported.clone_from(said);
    }

    /// Goes over to unwinding where the build keeps no frame pointers.
    fn choose_call_graph(&mut self, record: &StepRecord) {
        let Some(sampled) = &record.sampled else { return };
        if sampled.broken as f64 > BROKEN_MOST * sampled.samples as f64 {
            self.state.call_graph = CallGraph::Dwarf;
        }
    }

    /// The failed step that this one rests on. What it makes anew is no longer lost.
    fn rests_on_a_failure(&mut self, step: &Step) -> Option<String> {
        let (makes, needs) = (step.makes, step.needs);
        let (lost, cause) = self.lost.clone()?;
        if needs >= Some(lost) {
            return Some(cause);
        }
        if makes.is_some_and(|made| made <= lost) {
            self.lost = None;
        }
        None
    }

    /// A fault of its server in words, with what the kernel did to it.
    fn words(&self, error: &anyhow::Error) -> String {
        let text = error_text(error);
        match execution::killed(self.group.as_ref()) {
            Some(why) => format!("{text}; {why}"),
            None => text,
        }
    }

    pub(super) fn fail(&mut self, error: &anyhow::Error, progress: &mut Progress<'_>) {
        if self.execution.stopped() {
            self.record.status = Status::Interrupted;
            return;
        }
        let text = self.words(error);
        self.record.status = Status::Failed(text.clone());
        let run = self.record.key.folder();
        self.state.fault(format!("{run}: {text}"), progress);
    }

    /// Writes the load down as a step, in the first block that starts from it: once for each load.
    fn write_load(&self) -> Result<()> {
        let is_first = self.is_first_of_load();
        if let Some(step) = self.load.step.as_ref().filter(|_| is_first) {
            self.folder.write_step(step, &[])?;
        }
        Ok(())
    }

    /// Keeps what the server says of itself, stops it, and closes the run.
    pub(super) fn finish(mut self, progress: &mut Progress<'_>) -> Result<BlockRun> {
        if self.execution.stopped() && self.record.status == Status::Running {
            self.record.status = Status::Interrupted;
        }
        if self.record.status == Status::Running {
            self.record.status = Status::Complete;
            self.write_load()?;
            self.ask_again(progress);
            match self.control.resume().and_then(|()| self.control.status()) {
                Ok(texts) => {
                    for (name, text) in texts {
                        self.folder.write_log(&name, &text)?;
                    }
                }
                Err(error) => progress.note(&format!("{}: {error}", self.record.key.folder())),
            }
        }
        if let Err(error) = self.control.stop() {
            progress.note(&format!("{}: stop: {error}", self.record.key.folder()));
        }
        remove(self.execution, &self.data, progress);
        self.record.finished = Some(clock::now_rfc3339());
        self.folder.update(&self.record)?;
        Ok(BlockRun { key: self.record.key, status: self.record.status })
    }
}

/// Removes the data of a run, which are no result.
fn remove(execution: &Execution<'_>, data: &Path, progress: &mut Progress<'_>) {
    for folder in [data, &execution.folders.counts(data)] {
        if let Err(error) = execution.folders.remove(folder) {
            progress.note(&format!("{error:#}"));
        }
    }
}

// The data of a server that somebody else runs: each block loads its own. What a target is asked
// at the end of a block.

impl ActiveRun<'_> {
    /// Creates the tables, and asks what they hold in the first block of a load.
    fn load_external(&mut self, logs: &Path, progress: &mut Progress<'_>) -> Result<()> {
        let is_first = self.is_first_of_load();
        let control = self.control.as_mut();
        let number = self.execution.plan.load_of(self.record.key.block);
        let loaded = prepare::load(self.execution, self.state, control, (logs, number), progress)?;
        if loaded.is_some() {
            prepare::settle(self.execution, self.state, control, progress)?;
        }
        let asked = if is_first {
            prepare::ask(self.execution, self.state, control, (logs, number), progress)?
        } else {
            Asked::default()
        };
        self.load = prepare::keep(self.execution, loaded, asked);
        self.record.load = self.load.load.clone();
        Ok(())
    }

    /// True in the first block that starts from its load.
    fn is_first_of_load(&self) -> bool {
        self.execution.plan.is_first_of_load(self.record.key.block)
    }

    /// Asks the first statements of each step once more, in the first block of a load: every block
    /// begins with the same data.
    fn ask_again(&mut self, progress: &mut Progress<'_>) {
        let load = self.execution.plan.load_of(self.record.key.block);
        if !self.is_first_of_load() || self.load.answers.is_empty() {
            return;
        }
        let task = cost::ask(self.execution.plan, &self.state.target);
        progress.begin(task);
        progress.doing(&self.record.key.label, "ask the first statements once more", None);
        let phases = self.state.phases.clone();
        let mut asked = || {
            self.control.resume()?;
            // What commands have changed, they would change twice.
            self.runner(None).ask_steps(&phases, load, |step| !step.runs_commands())
        };
        match asked() {
            Ok(mut answers) => {
                answers.retain(|number, after| {
                    let Some(before) = self.load.answers.get_mut(number) else { return false };
                    let all = before.answers.iter_mut().chain(&mut after.answers);
                    all.for_each(|answer| answer.plan = None);
                    // After writes, only errors can be compared.
                    let refused = |answers: &StepAnswers| {
                        let replies = answers.answers.iter().map(|answer| &answer.reply);
                        replies.filter(|reply| matches!(reply, AnswerReply::Refused { .. })).count()
                    };
                    if self.wrote { refused(before) != refused(after) } else { before != after }
                });
                self.record.answers_after = answers;
            }
            Err(error) => {
                let text = error_text(&error);
                progress.note(&format!("{}: ask once more: {text}", self.record.key.folder()));
            }
        }
        progress.end(task);
    }
}

impl ActiveRun<'_> {
    /// Gives the target its data back as they were loaded.
    fn start_afresh(&mut self, progress: &mut Progress<'_>) -> Result<()> {
        let label = self.record.key.label.clone();
        let number = self.execution.plan.load_of(self.record.key.block);
        if self.state.is_external() {
            let logs = self.folder.folder().join("logs");
            let control = self.control.as_mut();
            if prepare::load(self.execution, self.state, control, (&logs, number), progress)?
                .is_some()
            {
                prepare::settle(self.execution, self.state, control, progress)?;
            }
            return Ok(());
        }
        progress.doing(&label, "restore the snapshot and start again", None);
        self.control.stop()?;
        self.execution.folders.remove(&self.data)?;
        restore(self.execution, self.state, number, &self.data)?;
        self.control.start()?;
        Ok(())
    }
}
