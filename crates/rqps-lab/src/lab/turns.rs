//! A step that all targets of a block go through at once, in turns of milliseconds: one thread and
//! one driver process for each target. The drivers pass a token on among themselves, or the lab
//! stops all processes but those of one target.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use crate::lab::block::ActiveRun;
use crate::lab::driver_process::DriverProcess;
use crate::lab::execution::Execution;
use crate::lab::process_turns::ProcessTurns;
use crate::lab::progress::{Progress, error_text};
use crate::lab::step_runner::{self, Measured, StepRunner};
use crate::plan::{cost, orders};
use rqps_driver::control_channel::DriverEvent;
use rqps_driver::request::{DriverCommand, DriverRequest};
use rqps_driver::turns::token::{
    Heartbeat, STALL_TIMEOUT, TurnPhase, TurnRequest, TurnRules, TurnToken,
};
use rqps_model::benchmark::{BackgroundState, Group, Phase, Step, StepTurns, Workload};
use rqps_model::endpoint::Endpoint;
use rqps_model::run::{HostUsage, Outcome, Status, Usage};

/// Rounds that are laid down beforehand; then they come again. No more turns than this, but one
/// round at least.
const TURNS_LAID_DOWN: usize = 1024;

/// The step of one target.
fn step_of(run: &ActiveRun<'_>, phase: usize) -> Option<Step> {
    match run.state.phases.get(phase)? {
        Phase::Measure(step) => Some(step.as_ref().clone()),
        Phase::Settle | Phase::Restore => None,
    }
}

/// True if the targets are to take turns in this phase: where it is the same step for all of them,
/// but for the words of their dialects.
pub(super) fn are_taken(execution: &Execution<'_>, runs: &[ActiveRun<'_>], phase: usize) -> bool {
    let running = runs.iter().filter(|run| run.record.status == Status::Running);
    let steps: Vec<Option<Step>> =
        running.map(|run| step_of(run, phase).filter(|_| keeps_time(run))).collect();
    let [Some(first), _, ..] = steps.as_slice() else { return false };
    let alike = |step: &Option<Step>| {
        step.as_ref().is_some_and(|step| step.turns == first.turns && step.name == first.name)
    };
    execution.plan.turns_of(first) != StepTurns::None && steps.iter().all(alike)
}

/// False for the fake DBMS on its own clock, which waits for nobody.
fn keeps_time(run: &ActiveRun<'_>) -> bool {
    !matches!(run.control.endpoint().0, Endpoint::Fake { real_time: false, .. })
}

/// Takes all targets through a step, in turns.
pub(super) fn phase(
    execution: &Execution<'_>,
    runs: &mut [ActiveRun<'_>],
    phase: usize,
    progress: &mut Progress<'_>,
) {
    let number = phase as u32 + 1;
    let mut team: Vec<(&mut ActiveRun<'_>, Step)> = Vec::new();
    for run in runs.iter_mut().filter(|run| run.record.status == Status::Running) {
        let Some(step) = step_of(run, phase) else { continue };
        let resumed = run.control.resume().map_err(anyhow::Error::from);
        match resumed.and_then(|()| run.may_measure(&step, number)) {
            Ok(true) => team.push((run, step)),
            Ok(false) => {}
            Err(error) => run.fail(&error, progress),
        }
    }
    let Some((first, step)) = team.first() else { return };
    let labels: Vec<&str> = team.iter().map(|(run, _)| run.record.key.label.as_str()).collect();
    progress.doing(&labels.join(", "), &format!("{} in turns", step.name), None);
    let seed = step_runner::seed_of(execution.plan.seed, first.record.key.block, number);
    let of_one = Phase::Measure(Box::new(step.clone()));
    let plan = execution.plan;
    let task = cost::phase_task(plan, &first.state.target, (phase, &of_one)).times(team.len());
    progress.begin(task);
    let results = match at_once(execution, &mut team, seed) {
        Ok(results) => results,
        Err(error) => {
            let why = error_text(&error);
            team.iter().map(|_| Err(anyhow!(why.clone()))).collect()
        }
    };
    for ((run, step), result) in team.into_iter().zip(results) {
        let concluded = run.conclude((&step, number), result, progress);
        // Also where a driver died and left its server standing: this is known as paused now.
        let paused = concluded.and_then(|()| Ok(run.control.pause()?));
        if let Err(error) = paused {
            run.fail(&error, progress);
        }
    }
    progress.end(task);
}

fn at_once(
    execution: &Execution<'_>,
    team: &mut [(&mut ActiveRun<'_>, Step)],
    seed: u64,
) -> Result<Vec<Result<Measured>>> {
    let Some((run, step)) = team.first() else { return Ok(Vec::new()) };
    let workload = &execution.plan.workload;
    let rules = rules(team.len(), step, workload, seed);
    if execution.plan.turns_of(step) == StepTurns::Processes {
        return by_processes(team, &ProcessTurns::new(rules)?, seed);
    }
    let page = match &execution.clients {
        None => TurnPage::here(rules)?,
        Some(clients) => {
            let log = run.folder.folder().join("logs/turns.log");
            let keeper = clients.keep_turns(&rules, &log);
            keeper
                .and_then(|keeper| TurnPage::away(keeper, rules))
                .context("keep turns on the client host")?
        }
    };
    // All alike: drivers stop no server that somebody else runs, and none of another host.
    let external = team.iter().any(|(run, _)| run.state.is_external());
    let stopped = is_stopped(step, workload) && !external && execution.clients.is_none();
    let runners = team.iter_mut().enumerate().map(|(place, (run, step))| {
        let own = run.control.server().is_some();
        let root = run.control.server_pid().filter(|_| stopped && own);
        let participant = TurnParticipant::of_clients(&page, place, root);
        (run.runner(Some(participant)), &*step)
    });
    Ok(measure_all(runners.collect(), None, seed))
}

/// All processes of a target stand still in the turns of others.
fn by_processes(
    team: &mut [(&mut ActiveRun<'_>, Step)],
    turns: &ProcessTurns,
    seed: u64,
) -> Result<Vec<Result<Measured>>> {
    let runners = team.iter_mut().enumerate().map(|(place, (run, step))| {
        let server = run.control.server_pid();
        let participant = TurnParticipant::of_processes(turns, place, server);
        (run.runner(Some(participant)), &*step)
    });
    Ok(measure_all(runners.collect(), Some(turns), seed))
}

/// Measures each target in a thread of its own, and leads the turns of their processes.
fn measure_all(
    runners: Vec<(StepRunner<'_>, &Step)>,
    led: Option<&ProcessTurns>,
    seed: u64,
) -> Vec<Result<Measured>> {
    thread::scope(|scope| {
        if let Some(turns) = led {
            scope.spawn(|| turns.lead());
        }
        let all: Vec<_> = runners
            .into_iter()
            .map(|(mut runner, step)| scope.spawn(move || runner.measure(step, seed)))
            .collect();
        let ended = all.into_iter().map(|thread| {
            thread.join().unwrap_or_else(|_| Err(anyhow!("the thread of this target panicked")))
        });
        ended.collect()
    })
}

/// Servers stand still in the turns of others where a step writes, so that what they do in the
/// background falls into their own turns.
fn is_stopped(step: &Step, workload: &Workload) -> bool {
    match workload.waiting {
        Some(waiting) => waiting == BackgroundState::Stopped,
        None => step.group == Group::Write,
    }
}

/// Every target follows every other equally often within a round.
fn rules(targets: usize, step: &Step, workload: &Workload, seed: u64) -> TurnRules {
    let rows = if targets.is_multiple_of(2) { targets } else { 2 * targets };
    let round = rows * targets;
    let rounds = (TURNS_LAID_DOWN / round).max(1);
    let orders = orders(targets, (rounds * rows) as u32, seed);
    let ns = |seconds: f64| (seconds * 1e9) as u64;
    TurnRules {
        order: orders.into_iter().flatten().map(|place| place as u32).collect(),
        round: round as u32,
        turn_ns: ns(workload.turn_ms.unwrap_or(step.group.turn_ms()) / 1e3),
        warmup_ns: ns(step.warmup_seconds),
        window_ns: ns(step.seconds),
    }
}

// The part of one target in a step in turns.

/// Shares of its time alone, and of turns in which it did not stand still, from which on a target
/// says so.
const TOLD: f64 = 0.1;

/// The reason why figures of the whole host are missing.
const OF_ALL: &str = "targets took turns, and this counter covers all of them together";

/// The part of one target in the turns of a step.
pub(super) struct TurnParticipant<'a> {
    turns: TakenTurns<'a>,
    place: usize,
}

/// How the targets take turns.
enum TakenTurns<'a> {
    /// Their clients pass a token on.
    Clients {
        page: &'a TurnPage,
        freezes: Option<u32>,
        /// Signs of life of the driver, if it is on this host.
        heartbeat: Cell<Heartbeat>,
    },
    /// The lab stops all processes of the others, the server among them.
    Processes { turns: &'a ProcessTurns, server: Option<u32> },
}

impl<'a> TurnParticipant<'a> {
    /// Its clients take part at this place; the process tree of `freezes` stands still in the turns
    /// of others.
    pub(super) fn of_clients(page: &'a TurnPage, place: usize, freezes: Option<u32>) -> Self {
        let heartbeat = Cell::new(Heartbeat::of(place));
        TurnParticipant { turns: TakenTurns::Clients { page, freezes, heartbeat }, place }
    }

    /// Its processes take part at this place, with those of a server.
    fn of_processes(turns: &'a ProcessTurns, place: usize, server: Option<u32>) -> Self {
        TurnParticipant { turns: TakenTurns::Processes { turns, server }, place }
    }

    /// Puts its part into the request to the driver.
    pub(super) fn put(&self, request: &mut DriverRequest) {
        match &self.turns {
            TakenTurns::Clients { page, freezes, .. } => {
                request.turns = Some(TurnRequest {
                    page: page.path().to_owned(),
                    place: self.place as u32,
                    rules: page.rules().clone(),
                    freezes: *freezes,
                });
            }
            TakenTurns::Processes { turns, .. } => {
                request.standstill = Some(turns.page(self.place));
            }
        }
    }

    /// The driver has started.
    pub(super) fn driver_started(&self, driver: Option<u32>) {
        if let (TakenTurns::Processes { turns, server }, Some(driver)) = (&self.turns, driver) {
            turns.begin(self.place, driver, *server);
        }
    }

    /// Number of targets that may be waited for.
    pub(super) fn targets(&self) -> u32 {
        let rules = match &self.turns {
            TakenTurns::Clients { page, .. } => page.rules(),
            TakenTurns::Processes { turns, .. } => turns.rules(),
        };
        rules.targets() as u32
    }

    /// The counters before the window have been read; it begins or began at this moment of the
    /// driver's host.
    pub(super) fn counters_read(&self, window_start_ns: u64) {
        match &self.turns {
            TakenTurns::Clients { page, .. } => page.sampled(self.place),
            TakenTurns::Processes { turns, .. } => {
                turns.window_began(self.place, window_start_ns);
            }
        }
    }

    /// Adds what the lab knows of the turns; clients report their own.
    pub(super) fn report(&self, outcome: &mut Outcome) {
        let TakenTurns::Processes { turns, .. } = &self.turns else { return };
        outcome.turns = turns.facts(self.place);
        let alone = outcome.turns.as_ref().map_or(0.0, |turns| turns.alone_seconds);
        let share = alone / outcome.seconds.max(f64::MIN_POSITIVE);
        if share > TOLD {
            let percent = 100.0 * share.min(1.0);
            outcome.notes.push(format!(
                "ran alone for the last {percent:.0} % of its time: the others were done"
            ));
        }
        let missed = turns.missed(self.place);
        if missed > TOLD {
            outcome.notes.push(format!(
                "did not stand still in {:.0} % of the turns of others: its threads hung in the \
                 kernel, or got no CPU to stop on",
                100.0 * missed
            ));
        }
    }

    /// This target takes no more turns. Called at once, so that no other target waits for it.
    pub(super) fn leave(&self) {
        match &self.turns {
            TakenTurns::Clients { page, .. } => page.leave(self.place),
            TakenTurns::Processes { turns, .. } => turns.leave(self.place),
        }
    }

    /// True while others are waited for: then this one has nothing to say.
    pub(super) fn is_waiting(&self) -> bool {
        match &self.turns {
            TakenTurns::Clients { page, .. } => page.waits(self.place),
            TakenTurns::Processes { turns, .. } => turns.waits(self.place),
        }
    }

    /// Looks whether the driver can take its turns.
    ///
    /// # Errors
    /// It cannot, or the turns cannot be seen any more.
    pub(super) fn check(&self) -> Result<()> {
        if let TakenTurns::Clients { page, heartbeat, .. } = &self.turns {
            let mut signs = heartbeat.get();
            let is_stuck = page.is_stuck(self.place, &mut signs)?;
            heartbeat.set(signs);
            if is_stuck {
                let seconds = STALL_TIMEOUT.as_secs();
                bail!("the driver was stuck for {seconds} s in its turn (stopped by a signal?)");
            }
        }
        Ok(())
    }
}

impl Drop for TurnParticipant<'_> {
    /// No target waits for it, however it ends.
    fn drop(&mut self) {
        self.leave();
    }
}

/// Takes out what cannot be divided among targets.
pub(super) fn hide_host(usage: &mut Usage) {
    usage.host = HostUsage::default();
    usage.disk = None;
    for counter in ["host", "disk"] {
        usage.missing.insert(counter.to_owned(), OF_ALL.to_owned());
    }
}

// The page of turns, as the lab reaches it: in memory of this host, or on the host of the clients
// through a driver there that keeps it.

/// Time limit for another host to make the page.
const ANSWER: Duration = Duration::from_secs(30);

/// The page of one step.
pub(super) enum TurnPage {
    /// On this host.
    Here(TurnToken),
    /// On the host of the clients.
    Away(KeptPage),
}

/// A page on another host. Dropping it ends the driver that keeps it.
pub(super) struct KeptPage {
    /// Its path there.
    path: PathBuf,
    rules: TurnRules,
    keeper: Mutex<Keeper>,
}

/// The driver that keeps a page, and what it said last.
struct Keeper {
    process: DriverProcess,
    /// A bit for each target that waits for others.
    waiting: u64,
    /// The target whose driver stands still in its turn.
    stuck: Option<u32>,
    /// Why the page is lost.
    fault: Option<String>,
}

impl TurnPage {
    /// Makes the page on this host.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn here(rules: TurnRules) -> Result<TurnPage> {
        let token = TurnToken::create(rules.targets(), rules).map_err(anyhow::Error::msg)?;
        Ok(TurnPage::Here(token))
    }

    /// Waits for the page that a driver on another host makes.
    ///
    /// # Errors
    /// It does not.
    pub(super) fn away(mut process: DriverProcess, rules: TurnRules) -> Result<TurnPage> {
        let path = match process.next(ANSWER)? {
            Some(DriverEvent::TurnPage(path)) => path,
            Some(DriverEvent::Failed { fault }) => bail!("{fault}"),
            Some(other) => bail!("expected a page of turns from the driver, got {other:?}"),
            None => bail!("no message from the driver that keeps turns for {} s", ANSWER.as_secs()),
        };
        let keeper = Keeper { process, waiting: 0, stuck: None, fault: None };
        Ok(TurnPage::Away(KeptPage { path, rules, keeper: Mutex::new(keeper) }))
    }

    /// Its path on the host of the drivers.
    pub(super) fn path(&self) -> &Path {
        match self {
            TurnPage::Here(token) => token.path(),
            TurnPage::Away(page) => &page.path,
        }
    }

    pub(super) fn rules(&self) -> &TurnRules {
        match self {
            TurnPage::Here(token) => token.rules(),
            TurnPage::Away(page) => &page.rules,
        }
    }

    /// Says that the counters of a target have been read.
    pub(super) fn sampled(&self, place: usize) {
        match self {
            TurnPage::Here(token) => token.arrive_at_barrier(place, TurnPhase::Sample),
            TurnPage::Away(page) => page.tell(DriverCommand::Sampled(place as u32)),
        }
    }

    /// Takes a target out.
    pub(super) fn leave(&self, place: usize) {
        match self {
            TurnPage::Here(token) => token.remove_target(place),
            TurnPage::Away(page) => page.tell(DriverCommand::Leave(place as u32)),
        }
    }

    /// True while a target waits for others.
    pub(super) fn waits(&self, place: usize) -> bool {
        match self {
            TurnPage::Here(token) => token.is_others(place),
            TurnPage::Away(page) => page.look().waiting & (1 << place) != 0,
        }
    }

    /// True if the driver of a target has the token and stands still; `signs` has its signs of
    /// life on this host.
    ///
    /// # Errors
    /// The page is lost.
    fn is_stuck(&self, place: usize, signs: &mut Heartbeat) -> Result<bool> {
        let page = match self {
            TurnPage::Here(token) => return Ok(signs.is_gone(token)),
            TurnPage::Away(page) => page,
        };
        let keeper = page.look();
        match &keeper.fault {
            Some(fault) => bail!("keep turns on the client host: {fault}"),
            None => Ok(keeper.stuck == Some(place as u32)),
        }
    }
}

impl KeptPage {
    fn lock(&self) -> MutexGuard<'_, Keeper> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the driver that keeps the page. If it is gone, whoever looks next hears why.
    fn tell(&self, word: DriverCommand) {
        let mut keeper = self.lock();
        if let Err(error) = keeper.process.tell(word) {
            keeper.lose(format!("{error:#}"));
        }
    }

    /// Hears what the driver has said.
    fn look(&self) -> MutexGuard<'_, Keeper> {
        let mut keeper = self.lock();
        while keeper.fault.is_none() {
            match keeper.process.next(Duration::ZERO) {
                Ok(None) => break,
                Ok(Some(DriverEvent::TurnState { waiting, stuck })) => {
                    (keeper.waiting, keeper.stuck) = (waiting, stuck);
                }
                Ok(Some(DriverEvent::Failed { fault })) => keeper.lose(fault),
                Ok(Some(other)) => keeper.lose(format!("expected the state, got {other:?}")),
                Err(error) => keeper.lose(format!("{error:#}")),
            }
        }
        keeper
    }
}

impl Keeper {
    fn lose(&mut self, fault: String) {
        self.fault.get_or_insert(fault);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_bench::sysbench;
    use rqps_model::dialect::Dialect;

    #[test]
    fn rounds_are_balanced_and_the_seed_decides() {
        let workload = sysbench::workload("quick").unwrap().0;
        let phases = crate::benchmarks::phases(Dialect::Sqlite, Default::default(), &workload);
        let step = phases.iter().find_map(|phase| match phase {
            Phase::Measure(step) => Some(step.as_ref().clone()),
            Phase::Settle | Phase::Restore => None,
        });
        let step = step.expect("a step");
        for (targets, round) in [(2, 4), (3, 18), (4, 16), (40, 1600)] {
            let made = rules(targets, &step, &workload, 7);
            assert_eq!(made.round, round);
            assert!(made.order.len().is_multiple_of(round as usize));
            for part in made.order.chunks(targets) {
                let mut places = part.to_vec();
                places.sort_unstable();
                assert_eq!(places, (0..targets as u32).collect::<Vec<_>>());
            }
            assert_ne!(made.order, rules(targets, &step, &workload, 8).order);
        }
        let two = rules(2, &step, &workload, 7);
        for quadruple in two.order.chunks(4) {
            assert!(
                [[0, 1, 1, 0], [1, 0, 0, 1]]
                    .contains(&[quadruple[0], quadruple[1], quadruple[2], quadruple[3]])
            );
        }
        assert_eq!(two.turn_ns, 10_000_000, "a step that reads");
        let writes = Step { group: Group::Write, ..step.clone() };
        assert_eq!(rules(2, &writes, &workload, 7).turn_ns, 20_000_000);
        let wanted = Workload { turn_ms: Some(5.0), ..workload };
        assert_eq!(rules(2, &writes, &wanted, 7).turn_ns, 5_000_000);
    }
}
