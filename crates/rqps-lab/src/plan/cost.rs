//! Estimates the time and space of a plan, from the plan alone.

use std::collections::BTreeMap;

use crate::plan::blocks::{Auto, Blocks};
use crate::plan::definition::{Interleave, PlanDraft};
use rqps_dbms::config::log_mb;
use rqps_model::benchmark::{Group, Phase};
use rqps_model::build::{BuildSource, Target};
use rqps_model::counted::StepCount;
use rqps_model::dialect::Dialect;
use rqps_model::sql_workload::ReplayWork;
use rqps_stats::summary::median;

/// Starting a driver process, connecting, preparing, asking for plans.
const STEP_OVERHEAD_SECONDS: f64 = 0.3;
/// Reading what the profiler sampled in a step, with the names of functions: three seconds in two of
/// three blocks.
const PROFILE_SECONDS: f64 = 2.0;
/// Asking the first statements of a step after a load.
const ASK_SECONDS: f64 = 0.1;
/// Rows read per second to compare what tables hold.
const READ_ROWS_PER_SECOND: f64 = 1e6;
/// What the settle rules do beside waiting.
const SETTLE_SECONDS: f64 = 0.3;
/// A step under valgrind: its driver starts there, connects and prepares.
const VALGRIND_STEP_SECONDS: f64 = 3.0;
/// A statement under valgrind.
const VALGRIND_STATEMENT_SECONDS: f64 = 0.005;
/// Removing the data and the snapshot of a server.
const CLEAR_SECONDS: f64 = 1.0;
/// Both readings of the canaries beside a block.
const CANARIES_SECONDS: f64 = 1.6;
/// Bytes per second of a snapshot that is copied, on the slow side.
const COPY_BYTES_PER_SECOND: f64 = 400e6;
/// A measured server's own files at least: redo logs and system tables, bytes.
const SERVER_BYTES: f64 = 700e6;

/// System tables and undo logs of a server without data, bytes.
const SYSTEM_TABLES_BYTES: f64 = 100e6;
/// Write-ahead log of a server that has just begun, bytes: a few files of 16 MiB.
const FIRST_WAL_BYTES: f64 = 3.0 * 16_777_216.0;

/// Parts of a plan, as the clock sees them. Tasks of one part take times that say something about
/// each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkKind {
    /// A load of a target, from an empty folder to its tables.
    Load,
    /// Reading the tables of a load and asking its first statements, and the snapshot of it.
    Read,
    /// The readings of the canaries beside a block.
    Canaries,
    /// Restoring a snapshot and starting a server.
    Start,
    /// A step.
    Step {
        /// The number of the phase, from 0.
        index: usize,
        /// True if it ends by itself, and its planned time is a guess.
        loads: bool,
    },
    /// Waiting after writes.
    Settle,
    /// Stopping, restoring the snapshot and starting again.
    Restore,
    /// Asking the first statements once more at the end of a block.
    Ask,
    /// Reading the last counters and stopping a server.
    Stop,
    /// Waiting for the next sitting.
    Wait,
    /// Removing data and snapshots at the end.
    Clear,
    /// A whole block on another host, with its loads.
    Block,
}

/// Something that takes time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlannedTask {
    /// What it is.
    pub part: WorkKind,
    /// So many of its kind: all targets in turns are several.
    pub count: f64,
    /// Seconds that are planned for all of them.
    pub seconds: f64,
}

impl PlannedTask {
    fn one(part: WorkKind, seconds: f64) -> PlannedTask {
        PlannedTask { part, count: 1.0, seconds }
    }

    /// The same, for several targets.
    #[must_use]
    pub fn times(self, count: usize) -> PlannedTask {
        let times = count as f64;
        PlannedTask { count: self.count * times, seconds: self.seconds * times, ..self }
    }
}

/// An estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// All loads of all targets.
    pub load_seconds: f64,
    /// One step measured on one target, on average.
    pub step_seconds: f64,
    /// One target in one block.
    pub run_seconds: f64,
    /// All targets in one block.
    pub block_seconds: f64,
    /// Blocks of the plan, or those that its budget has time for; one is always measured.
    pub blocks_most: u32,
    /// Everything, if all blocks are measured, or until the budget ends.
    pub total_seconds: f64,
    /// Everything, if no more than the fewest blocks are needed; the same for a fixed number.
    pub least_seconds: f64,
    /// Measured windows (steps × targets × blocks) of all blocks.
    pub windows: u64,
    /// Disk for data and snapshots of all targets, bytes.
    pub disk_bytes: u64,
}

impl Cost {
    /// Seconds for loading and this number of blocks.
    pub fn through(&self, blocks: u32) -> f64 {
        self.load_seconds + self.block_seconds * f64::from(blocks)
    }
}

/// The published wait after loading and writing, scaled: min(1200, 60 + rows / 1 000 000) seconds.
pub fn settle_seconds(rows_total: u64, scale: f64) -> f64 {
    scale * (60.0 + rows_total as f64 / 1e6).min(1200.0)
}

/// Seconds of all these tasks.
fn in_all(tasks: &[PlannedTask]) -> f64 {
    tasks.iter().map(|task| task.seconds).sum()
}

/// Estimates a plan whose targets all go through `phases`.
pub fn estimate(plan: &PlanDraft, phases: &[Phase]) -> Cost {
    let windows = phases.iter().filter(|phase| matches!(phase, Phase::Measure(_))).count();
    let in_phases: f64 = (0..)
        .zip(phases)
        .filter_map(|(index, phase)| Some(phase_task(plan, plan.targets.first()?, (index, phase))))
        .map(|task| task.seconds)
        .sum();
    let one_load = in_all(&one_load(plan));
    let loads = |blocks: u32| one_load * f64::from(plan.loads.clamp(1, blocks.max(1)));
    let load_seconds = loads(plan.blocks.most());
    let waits = f64::from(plan.sitting_of(plan.blocks.most()) - 1) * wait(plan).seconds;
    let all: Vec<&Target> = plan.targets.iter().collect();
    let block_seconds = in_all(&block(plan, &all, &numbered(phases)));
    let clear_seconds = clear(plan).seconds;
    let through =
        |blocks: u32| loads(blocks) + block_seconds * f64::from(blocks) + waits + clear_seconds;
    let disk = disk(plan);
    let most = plan.blocks.most();
    let budget = match plan.blocks {
        Blocks::Auto(Auto { budget_seconds: Some(budget), .. }) => budget,
        _ => f64::INFINITY,
    };
    Cost {
        load_seconds,
        step_seconds: in_phases / windows.max(1) as f64,
        run_seconds: block_seconds / all.len().max(1) as f64,
        block_seconds,
        blocks_most: (1..=most).take_while(|blocks| through(*blocks) <= budget).count().max(1)
            as u32,
        total_seconds: through(most).min(budget),
        least_seconds: through(plan.blocks.fewest()).min(budget),
        windows: windows as u64 * plan.targets.len() as u64 * u64::from(most),
        disk_bytes: (disk.data + disk.snapshots) as u64,
    }
}

/// Phases with their numbers, from 0.
pub fn numbered(phases: &[Phase]) -> Vec<(usize, &Phase)> {
    phases.iter().enumerate().collect()
}

/// A load of all targets, and what comes once for each of them.
pub fn one_load(plan: &PlanDraft) -> Vec<PlannedTask> {
    let of = |target| [load(plan, target), read(plan, target), ask(plan, target)];
    plan.targets.iter().flat_map(of).collect()
}

/// Waiting for the next sitting, after the blocks of one.
pub fn wait(plan: &PlanDraft) -> PlannedTask {
    let seconds = plan.sittings.as_ref().map_or(0.0, |sittings| {
        let all: Vec<&Target> = plan.targets.iter().collect();
        let phases = all.first().and_then(|first| plan.phases(first).ok()).unwrap_or_default();
        let block = in_all(&block(plan, &all, &numbered(&phases)));
        let each = f64::from(plan.blocks.most() / sittings.number.max(1));
        (sittings.every.as_secs_f64() - each * block).max(0.0)
    });
    PlannedTask::one(WorkKind::Wait, seconds)
}

/// A block of these targets and numbered phases, the parts of all targets one after another.
pub fn block(
    plan: &PlanDraft,
    targets: &[&Target],
    phases: &[(usize, &Phase)],
) -> Vec<PlannedTask> {
    let mut tasks: Vec<PlannedTask> =
        canaries(plan).map(|task| task.times(2)).into_iter().collect();
    for target in targets {
        tasks.push(start(plan, target));
        tasks.extend(phases.iter().map(|phase| phase_task(plan, target, *phase)));
        tasks.push(stop(plan, target));
    }
    tasks
}

/// A block on another host, which loads for it, where so many measure at once.
pub fn block_elsewhere(plan: &PlanDraft, block: &[PlannedTask], hosts: usize) -> PlannedTask {
    let whole = in_all(&one_load(plan)) + in_all(block);
    PlannedTask::one(WorkKind::Block, whole / hosts.max(1) as f64)
}

/// A reading of the canaries, if the plan has them.
pub fn canaries(plan: &PlanDraft) -> Option<PlannedTask> {
    plan.canaries.then(|| PlannedTask::one(WorkKind::Canaries, CANARIES_SECONDS / 2.0))
}

/// One load of a target. A server that somebody else runs is loaded in each block.
pub fn load(plan: &PlanDraft, target: &Target) -> PlannedTask {
    let seconds = if is_external(target) { 0.0 } else { load_seconds(plan, target) };
    PlannedTask::one(WorkKind::Load, seconds)
}

/// What a loaded target tells of its tables and statements before its snapshot.
pub fn read(plan: &PlanDraft, target: &Target) -> PlannedTask {
    let seconds = if is_external(target) { 0.0 } else { read_seconds(plan, target) };
    PlannedTask::one(WorkKind::Read, seconds)
}

/// Asking the first statements of all steps.
pub fn ask(plan: &PlanDraft, target: &Target) -> PlannedTask {
    let is_loaded = plan.load_request(target).is_some();
    let seconds = if is_loaded { asked_seconds(plan, target, 0) } else { 0.0 };
    PlannedTask::one(WorkKind::Ask, seconds)
}

fn is_external(target: &Target) -> bool {
    matches!(target.source, BuildSource::Dsn(_))
}

fn load_seconds(plan: &PlanDraft, target: &Target) -> f64 {
    let rows = u64::from(plan.workload.tables) * plan.workload.rows;
    let settle = settle_seconds(rows, plan.workload.settle_scale);
    let usual = Usual::of(target);
    let prepare = if is_external(target) { 0.0 } else { usual.prepare_seconds };
    match plan.load_request(target) {
        Some(_) => prepare + rows as f64 / usual.rows_per_second + settle,
        None => prepare,
    }
}

/// The share of [`read`] that is done once so many rows of the tables were read.
pub fn share_of_read(plan: &PlanDraft, target: &Target, rows: u64) -> f64 {
    let all = u64::from(plan.workload.tables) * plan.workload.rows;
    rows.min(all) as f64 / READ_ROWS_PER_SECOND / read_seconds(plan, target).max(f64::MIN_POSITIVE)
}

fn read_seconds(plan: &PlanDraft, target: &Target) -> f64 {
    let rows = u64::from(plan.workload.tables) * plan.workload.rows;
    plan.load_request(target).map_or(0.0, |_| asked_seconds(plan, target, rows))
}

/// Seconds in which a loaded target tells what its tables hold and what it answers.
fn asked_seconds(plan: &PlanDraft, target: &Target, rows: u64) -> f64 {
    let dialect = target.dbms.dialect();
    let is_asked = !matches!(dialect, Dialect::KeyValue | Dialect::Fake);
    if !is_asked || plan.workload.counted_statements.is_some() {
        return 0.0;
    }
    let phases = plan.phases(target).unwrap_or_default();
    let steps = phases.iter().filter(|phase| matches!(phase, Phase::Measure(_))).count();
    steps as f64 * ASK_SECONDS + rows as f64 / READ_ROWS_PER_SECOND
}

/// Restoring a snapshot and starting a target; several that take turns do so at the same time.
pub fn start(plan: &PlanDraft, target: &Target) -> PlannedTask {
    if is_external(target) {
        let seconds = load_seconds(plan, target) + read_seconds(plan, target);
        return PlannedTask::one(WorkKind::Start, seconds);
    }
    let usual = Usual::of(target);
    let counted = match plan.workload.counted_statements {
        Some(_) => usual.valgrind_seconds,
        None => 0.0,
    };
    let copy = copy_seconds(plan, target);
    PlannedTask::one(WorkKind::Start, (usual.start_seconds + counted) / at_once(plan) + copy)
}

/// Copying the rows of a snapshot: each is read and written.
fn copy_seconds(plan: &PlanDraft, target: &Target) -> f64 {
    plan.load_request(target).map_or(0.0, |_| 2.0 * plan.size().data_bytes / COPY_BYTES_PER_SECOND)
}

/// Stopping a target at the end of a block.
pub fn stop(plan: &PlanDraft, target: &Target) -> PlannedTask {
    if is_external(target) {
        return PlannedTask::one(WorkKind::Stop, 0.1);
    }
    PlannedTask::one(WorkKind::Stop, Usual::of(target).stop_seconds / at_once(plan))
}

/// Removing data and snapshots at the end.
pub fn clear(plan: &PlanDraft) -> PlannedTask {
    let servers = plan.targets.iter().filter(|target| !target.dbms.is_embedded());
    let own = servers.filter(|target| !is_external(target)).count();
    PlannedTask::one(WorkKind::Clear, 0.2 + own as f64 * CLEAR_SECONDS)
}

/// A phase of one target, with its number.
pub fn phase_task(
    plan: &PlanDraft,
    target: &Target,
    (index, phase): (usize, &Phase),
) -> PlannedTask {
    let rows = u64::from(plan.workload.tables) * plan.workload.rows;
    let usual = Usual::of(target);
    match phase {
        Phase::Measure(step) => {
            let loads = step.group == Group::Load && plan.workload.counted_statements.is_none();
            let restart =
                if step.restart_before { usual.start_seconds + usual.stop_seconds } else { 0.0 };
            let sampled = plan.workload.profile_hertz.map_or(0.0, |_| PROFILE_SECONDS);
            // The seconds of a replay are its limit.
            let replay = step.own().and_then(|work: &ReplayWork| work.expected_seconds);
            let window = replay.map_or(step.seconds, |expected| expected.min(step.seconds));
            let timed = window + step.warmup_seconds + STEP_OVERHEAD_SECONDS + sampled;
            let seconds = match plan.workload.counted_statements.map(|_| plan.counted(step)) {
                None => timed,
                Some(StepCount::Events(events)) => {
                    VALGRIND_STEP_SECONDS + events as f64 * VALGRIND_STATEMENT_SECONDS
                }
                Some(StepCount::CarriedOut(_) | StepCount::LeftOut(_)) => 0.1,
            };
            PlannedTask::one(
                WorkKind::Step { index, loads },
                (seconds + restart) / counted_at_once(plan),
            )
        }
        Phase::Settle => {
            let settle = settle_seconds(rows, plan.workload.settle_scale);
            PlannedTask::one(WorkKind::Settle, settle + SETTLE_SECONDS)
        }
        Phase::Restore if is_external(target) => {
            PlannedTask::one(WorkKind::Restore, load_seconds(plan, target))
        }
        Phase::Restore => {
            let seconds = usual.start_seconds + usual.stop_seconds;
            PlannedTask::one(WorkKind::Restore, seconds + copy_seconds(plan, target))
        }
    }
}

/// Targets that take turns start and stop at the same time; so do counted ones, as many as there are
/// CPUs: two at least.
fn at_once(plan: &PlanDraft) -> f64 {
    match plan.takes_turns() {
        true => plan.targets.len().clamp(1, 2) as f64,
        false => counted_at_once(plan),
    }
}

/// Counted targets are measured side by side, as many as there are CPUs: two at least.
fn counted_at_once(plan: &PlanDraft) -> f64 {
    match plan.workload.counted_statements {
        Some(_) => plan.targets.len().clamp(1, 2) as f64,
        None => 1.0,
    }
}

/// Usual times of a DBMS on a small host.
struct Usual {
    /// Initialising a data folder, starting, stopping, keeping a snapshot.
    prepare_seconds: f64,
    /// Rows loaded and indexed per second.
    rows_per_second: f64,
    start_seconds: f64,
    stop_seconds: f64,
    /// It starts so much later under valgrind.
    valgrind_seconds: f64,
}

impl Usual {
    fn of(target: &Target) -> Usual {
        let (prepare_seconds, rows_per_second, start_seconds, stop_seconds, valgrind_seconds) =
            match target.dbms.dialect() {
                Dialect::Mysql => (8.0, 100_000.0, 3.0, 2.0, 20.0),
                Dialect::Postgres => (3.0, 200_000.0, 1.2, 0.5, 8.0),
                Dialect::Sqlite | Dialect::KeyValue | Dialect::Fake => {
                    (0.5, 100_000.0, 0.2, 0.1, 0.0)
                }
            };
        Usual { prepare_seconds, rows_per_second, start_seconds, stop_seconds, valgrind_seconds }
    }
}

/// Most bytes of disk that a plan needs at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DiskPeak {
    /// Data of the targets that are up at once.
    pub data: f64,
    /// Snapshots of the loads that are kept.
    pub snapshots: f64,
}

/// The disk space of a plan. Where one target runs after the other, the data of one are there at a
/// time. Where loading is a step, a snapshot holds no rows.
pub fn disk(plan: &PlanDraft) -> DiskPeak {
    let size = plan.size().data_bytes;
    let own = plan.targets.iter().filter(|target| !is_external(target));
    let server = |target: &Target| match target.dbms.is_embedded() {
        true => 0.0,
        false => server_bytes(plan, target),
    };
    let data = own.clone().map(|target| size + server(target));
    let data: f64 = match plan.interleave {
        // Those of a counted run are side by side.
        Interleave::Run if plan.workload.counted_statements.is_none() => data.fold(0.0, f64::max),
        _ => data.sum(),
    };
    let loaded = |target: &Target| plan.load_request(target).map_or(0.0, |_| size);
    let snapshots: f64 = own.map(|target| loaded(target) + server(target)).sum();
    let in_order = (1..plan.blocks.most()).all(|it| plan.load_of(it) <= plan.load_of(it + 1));
    let kept = if in_order { 1 } else { plan.loads.max(1) };
    DiskPeak { data, snapshots: snapshots * f64::from(kept) }
}

/// Bytes of a server's own files: system tables, and the log. MySQL makes its log as large as it may
/// become; that of Postgres grows with what is loaded. Steps of counted runs write little.
fn server_bytes(plan: &PlanDraft, target: &Target) -> f64 {
    let cache = plan.workload.cache_bytes.unwrap_or_else(|| plan.size().cached_bytes);
    let log = (log_mb(cache >> 20) << 20) as f64;
    let log = match (target.dbms.dialect(), plan.workload.counted_statements) {
        // The load writes each row into it, too.
        (Dialect::Postgres, Some(_)) => log.min(FIRST_WAL_BYTES + 2.0 * plan.size().data_bytes),
        _ => log,
    };
    let least = plan.workload.counted_statements.map_or(SERVER_BYTES, |_| 0.0);
    (SYSTEM_TABLES_BYTES + log).max(least)
}

// Estimates the time that is left of a plan: what each part was planned at, corrected by what such
// parts have taken so far. Pure: the caller has the clock.

/// A smaller share says nothing about the whole.
const SHARE_LEAST: f64 = 0.05;

/// A task that took so many times as long as the others of its part did something that comes once,
/// such as making a data set.
const ONCE: f64 = 3.0;
/// Tasks of one part teach those of others no more than this factor.
const FACTOR_MOST: f64 = 3.0;

/// Tasks of one part.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Amount {
    count: f64,
    planned: f64,
    took: f64,
}

/// What is left of a plan, and what its tasks have taken so far. Times are seconds of the clock
/// since the plan began.
#[derive(Clone, Debug, Default)]
pub struct TimeLeft {
    left: BTreeMap<WorkKind, Amount>,
    done: BTreeMap<WorkKind, Done>,
    /// The task at work, and the share of it that is done.
    current: Option<(PlannedTask, f64)>,
    /// The end of the task before: the time since then belongs to the next task that ends.
    since: f64,
}

impl TimeLeft {
    /// Replaces what is still to come.
    pub fn plan(&mut self, tasks: &[PlannedTask]) {
        self.left.clear();
        self.more(tasks);
    }

    /// Adds to what is still to come.
    pub fn more(&mut self, tasks: &[PlannedTask]) {
        for task in tasks {
            let left = self.left.entry(task.part).or_default();
            left.count += task.count;
            left.planned += task.seconds;
        }
    }

    /// A task begins.
    pub fn begin(&mut self, task: PlannedTask) {
        self.current = Some((task, 0.0));
    }

    /// The share of the current task that is done, from 0 to 1; it only grows.
    pub fn share(&mut self, share: f64) {
        if let Some((_, known)) = &mut self.current {
            *known = known.max(share);
        }
    }

    /// A task ended: it took the time since the end of the one before.
    pub fn end(&mut self, task: PlannedTask, now: f64) {
        let own = Amount::default().with(task, (now - self.since).max(0.0));
        let done = self.done.entry(task.part).or_default();
        if done.longest.is_none_or(|longest| longest.factor() < own.factor()) {
            done.longest = Some(own);
        }
        self.end_beside(task, now);
    }

    /// The same for one of several tasks that run side by side: only their sum has a meaning.
    pub fn end_beside(&mut self, task: PlannedTask, now: f64) {
        let done = self.done.entry(task.part).or_default();
        done.all = done.all.with(task, (now - self.since).max(0.0));
        self.skip(task, now);
    }

    /// A task was not necessary: its time says nothing about others.
    pub fn skip(&mut self, task: PlannedTask, now: f64) {
        if let Some(left) = self.left.get_mut(&task.part) {
            *left = left.without(task);
        }
        self.current = None;
        self.since = now;
    }

    /// Seconds that these tasks take, one after the other.
    pub fn expected(&self, tasks: &[PlannedTask]) -> f64 {
        let of =
            |task: &PlannedTask| of_part(task.part, Amount::default().with(*task, 0.0), &self.done);
        tasks.iter().map(of).sum()
    }

    /// Seconds that are left.
    pub fn seconds(&self, now: f64) -> f64 {
        let elapsed = (now - self.since).max(0.0);
        let mut done = self.done.clone();
        let mut left = self.left.clone();
        let Some((task, share)) = self.current else {
            return (sum(&left, &done) - elapsed).max(0.0);
        };
        let expected = self.expected(&[task]);
        let is_known = share > SHARE_LEAST;
        let whole = if is_known {
            let weight = (4.0 * share).min(1.0);
            weight * elapsed / share + (1.0 - weight) * expected.max(elapsed)
        } else {
            expected.max(elapsed)
        };
        if is_known || elapsed > expected {
            // It speaks for the others of its kind, too.
            let known = done.entry(task.part).or_default();
            known.all = known.all.with(task, whole);
        }
        if let Some(left) = left.get_mut(&task.part) {
            *left = left.without(task);
        }
        sum(&left, &done) + (whole - elapsed).max(0.0)
    }
}

fn sum(left: &BTreeMap<WorkKind, Amount>, done: &BTreeMap<WorkKind, Done>) -> f64 {
    left.iter().map(|(part, left)| of_part(*part, *left, done)).sum()
}

/// Seconds of tasks of one part, if these were done. A part that was not done yet learns from
/// others: steps of a fixed time need the same time before and after it, and loads are as much
/// slower or faster than planned.
fn of_part(part: WorkKind, tasks: Amount, done: &BTreeMap<WorkKind, Done>) -> f64 {
    if let Some(own) = done.get(&part).map(Done::usual).filter(|own| own.planned > 0.0) {
        return tasks.planned * own.factor();
    }
    let WorkKind::Step { loads, .. } = part else { return tasks.planned };
    let alike = done.iter().filter_map(|(other, amount)| match other {
        WorkKind::Step { loads: others, .. } if *others == loads => Some(amount.usual()),
        _ => None,
    });
    let alike = alike.filter(|amount| amount.planned > 0.0 && amount.count > 0.0);
    if loads {
        let factors: Vec<f64> = alike.map(|amount| amount.factor()).collect();
        let factor = median(&factors).unwrap_or(1.0);
        tasks.planned * factor.clamp(1.0 / FACTOR_MOST, FACTOR_MOST)
    } else {
        let more = alike.map(|amount| (amount.took - amount.planned) / amount.count);
        let more = median(&more.collect::<Vec<f64>>());
        let seconds = tasks.planned + tasks.count * more.unwrap_or(0.0);
        seconds.clamp(0.0, FACTOR_MOST * tasks.planned)
    }
}

/// Tasks of one part that ended.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Done {
    all: Amount,
    /// That of the greatest factor, of those that were alone.
    longest: Option<Amount>,
}

impl Done {
    /// Those that count for what is to come.
    fn usual(&self) -> Amount {
        let Some(longest) = self.longest else { return self.all };
        let others = Amount {
            count: self.all.count - longest.count,
            planned: self.all.planned - longest.planned,
            took: self.all.took - longest.took,
        };
        let is_once =
            others.count > 0.5 && others.planned > 0.0 && longest.factor() > ONCE * others.factor();
        if is_once { others } else { self.all }
    }
}

impl Amount {
    /// How many times as long as planned they took.
    fn factor(&self) -> f64 {
        self.took / self.planned.max(f64::MIN_POSITIVE)
    }

    fn with(self, task: PlannedTask, took: f64) -> Amount {
        Amount {
            count: self.count + task.count,
            planned: self.planned + task.seconds,
            took: self.took + took,
        }
    }

    fn without(self, task: PlannedTask) -> Amount {
        Amount {
            count: (self.count - task.count).max(0.0),
            planned: (self.planned - task.seconds).max(0.0),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmarks;
    use crate::plan::words;
    use rqps_model::benchmark::{RateUnit, Step};

    fn published(interleave: Interleave) -> PlanDraft {
        let words = ["rocksdb@9.9.3", "rocksdb@10.6.2"].map(str::to_owned);
        let (workload, order) = benchmarks::workload("kv", "c48r128-iobuf").expect("a preset");
        PlanDraft {
            targets: words::targets(&words).expect("words"),
            order,
            steps: Vec::new(),
            workload,
            blocks: Blocks::Fixed(2),
            sittings: None,
            loads: 1,
            interleave,
            seed: 1,
            canaries: false,
            gate: None,
            count: None,
            profile: None,
        }
    }

    #[test]
    fn the_published_volume_holds_the_databases_that_are_there_at_once() {
        let (step, run) = (disk(&published(Interleave::Step)), disk(&published(Interleave::Run)));
        assert_eq!(step.data, 2.0 * run.data);
        // Published: 440 GB at rest, on a volume of 1.9 TB.
        assert!((440e9..950e9).contains(&run.data), "{run:?}");
        assert_eq!(run.snapshots, 0.0, "loading is a step");
        assert_eq!(
            start(&published(Interleave::Run), &published(Interleave::Run).targets[0]).seconds,
            0.2
        );
    }

    #[test]
    fn a_replay_takes_the_time_of_its_trace_and_not_its_limit() {
        let plan = published(Interleave::Run);
        let of = |expected_seconds| {
            let work = ReplayWork { expected_seconds, ..ReplayWork::default() };
            let step = Step::new("replay", Group::Write, RateUnit::Queries, work);
            let phase = Phase::Measure(Box::new(Step { seconds: 60.0, ..step }));
            phase_task(&plan, &plan.targets[0], (0, &phase)).seconds
        };
        assert_eq!(of(None) - of(Some(7.0)), 53.0);
        assert_eq!(of(Some(90.0)), of(None));
    }

    #[test]
    fn a_small_tree_is_as_large_as_measured_ones() {
        let check = |settings: &[&str], measured: f64| {
            let mut plan = published(Interleave::Run);
            plan.workload = benchmarks::workload("kv", "quick").expect("a preset").0;
            for setting in settings {
                benchmarks::set(&mut plan.workload, setting).expect("a setting");
            }
            let peak = disk(&plan).data;
            assert!((measured..2.1 * measured).contains(&peak), "{settings:?}: {peak}");
        };
        // Largest sizes during all steps with 1 M keys, and during overwrites of 4 M.
        check(&["keys=1M"], 738e6);
        check(&["keys=1M", "compression=lz4"], 718e6);
        check(&["keys=1M", "compression=zstd"], 638e6);
        check(&["keys=1M", "style=universal"], 1168e6);
        check(&["keys=4M"], 2342e6);
        check(&["keys=4M", "compression=lz4"], 1430e6);
        check(&["keys=4M", "style=universal"], 2319e6);
    }

    #[test]
    fn counted_targets_start_side_by_side() {
        let check = |word: &str, expected: f64| {
            let targets = words::targets(&[word.to_owned(), format!("b={word}")]).unwrap();
            let (mut workload, order) = benchmarks::workload("sysbench", "quick").unwrap();
            (workload.counted_statements, workload.rows) = (Some(100), 0);
            let plan = PlanDraft { targets, workload, order, ..published(Interleave::Run) };
            let seconds: f64 = plan.targets.iter().map(|target| start(&plan, target).seconds).sum();
            assert!((seconds - expected).abs() < 0.1, "{word}: {seconds}");
        };
        check("postgres@17.2.0", 9.2);
        check("mysql@8.0.33", 23.0);
    }

    #[test]
    fn the_published_wait() {
        assert_eq!(settle_seconds(50_000_000, 1.0), 110.0);
        assert_eq!(settle_seconds(80_000_000, 1.0), 140.0);
        assert_eq!(settle_seconds(2_000_000_000, 1.0), 1200.0);
        assert_eq!(settle_seconds(1_000_000, 0.0), 0.0);
    }
}

#[cfg(test)]
mod time_left_tests {
    use super::*;

    fn task(part: WorkKind, seconds: f64) -> PlannedTask {
        PlannedTask { part, count: 1.0, seconds }
    }

    fn step(index: usize, seconds: f64) -> PlannedTask {
        task(WorkKind::Step { index, loads: false }, seconds)
    }

    /// Walks a plan with these tasks along a timeline of true durations: what was said to be left
    /// at the begin of each task, and what was left.
    fn walk(planned: &[PlannedTask], truth: &[f64]) -> Vec<(f64, f64)> {
        let mut time = TimeLeft::default();
        time.plan(planned);
        let (mut now, mut said) = (0.0, Vec::new());
        for (place, (task, took)) in planned.iter().zip(truth).enumerate() {
            time.begin(*task);
            said.push((time.seconds(now), truth[place..].iter().sum()));
            now += took;
            time.end(*task, now);
        }
        said.push((time.seconds(now), 0.0));
        said
    }

    fn check(said: (f64, f64)) {
        assert!((said.0 - said.1).abs() < 1e-9, "{} said, {} true", said.0, said.1);
    }

    #[test]
    fn a_plan_that_keeps_its_times_is_right_from_the_start() {
        let plan =
            [task(WorkKind::Load, 20.0), task(WorkKind::Start, 2.0), step(0, 10.0), step(1, 10.0)];
        walk(&plan, &[20.0, 2.0, 10.0, 10.0]).into_iter().for_each(check);
    }

    #[test]
    fn blocks_teach_the_blocks_after_them() {
        let block = [
            task(WorkKind::Canaries, 1.0),
            task(WorkKind::Start, 6.0),
            step(0, 10.5),
            step(1, 20.5),
            task(WorkKind::Stop, 6.0),
        ];
        let plan =
            [vec![task(WorkKind::Load, 42.0)], block.to_vec(), block.to_vec(), block.to_vec()];
        let of_block = [1.5, 0.2, 10.1, 20.1, 0.1];
        let truth = [vec![2.0], of_block.to_vec(), of_block.to_vec(), of_block.to_vec()];
        let said = walk(&plan.concat(), &truth.concat());
        assert!(said[0].0 > 1.4 * said[0].1, "the plan alone does not know: {said:?}");
        // After one block, everything is known.
        said[6..].iter().copied().for_each(check);
        // After its first step, only the end of a block is not.
        assert!((said[4].0 - said[4].1) < 3.0 * 6.0 + 1e-9, "{said:?}");
    }

    #[test]
    fn steps_of_a_fixed_time_learn_what_is_around_them() {
        // Each takes two seconds more than planned, whatever its length.
        let said = walk(&[step(0, 10.0), step(1, 60.0), step(2, 5.0)], &[12.0, 62.0, 7.0]);
        said[1..].iter().copied().for_each(check);
    }

    #[test]
    fn loads_learn_a_factor_and_teach_steps_of_a_fixed_time_nothing() {
        let load = |index, seconds| task(WorkKind::Step { index, loads: true }, seconds);
        let plan = [load(0, 10.0), load(1, 30.0), step(2, 60.0)];
        walk(&plan, &[20.0, 60.0, 60.0])[1..].iter().copied().for_each(check);
    }

    #[test]
    fn the_time_left_runs_down_within_a_task_and_waits_where_it_is_late() {
        let mut time = TimeLeft::default();
        time.plan(&[step(0, 10.0), step(1, 5.0)]);
        time.begin(step(0, 10.0));
        check((time.seconds(4.0), 11.0));
        check((time.seconds(10.0), 5.0));
        // Late by two seconds: so will the other one be.
        check((time.seconds(12.0), 7.0));
    }

    #[test]
    fn a_load_that_tells_how_far_it_is_speaks_for_the_next_one() {
        let mut time = TimeLeft::default();
        time.plan(&[task(WorkKind::Load, 20.0), task(WorkKind::Load, 20.0), step(0, 100.0)]);
        time.begin(task(WorkKind::Load, 20.0));
        time.share(0.5);
        // A half took 50 seconds.
        check((time.seconds(50.0), 50.0 + 100.0 + 100.0));
    }

    #[test]
    fn what_is_not_necessary_or_no_longer_wanted_is_not_left() {
        let mut time = TimeLeft::default();
        time.plan(&[task(WorkKind::Load, 20.0), task(WorkKind::Load, 20.0), step(0, 10.0)]);
        time.skip(task(WorkKind::Load, 20.0), 0.1);
        check((time.seconds(0.1), 30.0));
        time.end(task(WorkKind::Load, 20.0), 40.1);
        time.plan(&[step(0, 10.0), step(0, 10.0)]);
        check((time.seconds(40.1), 20.0));
        check((time.expected(&[task(WorkKind::Load, 10.0)]), 20.0));
    }

    #[test]
    fn targets_that_start_side_by_side_are_learned_by_the_clock() {
        let mut time = TimeLeft::default();
        time.plan(&[task(WorkKind::Start, 5.0), task(WorkKind::Start, 5.0)]);
        time.more(&[task(WorkKind::Start, 5.0), task(WorkKind::Start, 5.0)]);
        // Both are up after four seconds.
        time.end_beside(task(WorkKind::Start, 5.0), 3.9);
        time.end_beside(task(WorkKind::Start, 5.0), 4.0);
        check((time.seconds(4.0), 4.0));
    }

    #[test]
    fn what_comes_once_is_not_expected_again() {
        let load = |index| task(WorkKind::Step { index, loads: true }, 1.0);
        let plan = [load(0), load(0), load(1), load(0), load(0), load(1)];
        // The first one makes the data set.
        let said = walk(&plan, &[17.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
        said[2..].iter().copied().for_each(check);
        // Another part takes no more than three times its plan for it.
        let said = walk(&[load(0), load(1), load(2)], &[17.0, 1.0, 1.0]);
        assert_eq!(said[1].0, 6.0);
    }
}
