//! Estimates the time that is left of a plan: what each part was planned at, corrected by what such
//! parts have taken so far. Pure: the caller has the clock.

use std::collections::BTreeMap;

use crate::plan::cost::{PlannedTask, WorkKind};
use rqps_stats::summary::median;

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
