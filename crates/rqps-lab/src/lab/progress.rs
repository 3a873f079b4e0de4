//! Progress of the plan: the lab says what it begins and ends, and the estimate of the time left
//! goes on with the events. The command line shows both.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread::{self, available_parallelism};
use std::time::Instant;

use crate::plan::TimeLeft;
use crate::plan::cost::PlannedTask;
use rqps_builds::Said;
use rqps_model::benchmark::RateUnit;
use rqps_model::run::LoadedFile;

/// Between two events that tell the time left.
const TOLD_EVERY_SECONDS: f64 = 1.0;
/// The share of a load that its rows are, before the indexes.
const ROWS_SHARE: f64 = 0.7;

/// Passes events on and keeps the time.
pub(super) struct Progress<'a> {
    teller: Teller<'a>,
}

/// The receiver of what is told.
enum Teller<'a> {
    /// The whole plan, whose clock runs.
    Whole { events: &'a mut dyn FnMut(Event), clock: Box<Clock> },
    /// A part of the work beside others; the one who waits for all keeps the time.
    Part(&'a mut dyn FnMut(Told)),
}

struct Clock {
    began: Instant,
    left: TimeLeft,
    told: Option<f64>,
    /// False before the plan is known.
    is_planned: bool,
    /// What may follow the plan.
    more: Vec<PlannedTask>,
}

/// What a part of the work tells.
pub(super) enum Told {
    Event(Event),
    Time(TimeChange),
}

/// A change of what is left.
#[derive(Clone, Copy, Debug)]
pub(super) enum TimeChange {
    Begin(PlannedTask),
    Share(f64),
    End(PlannedTask),
    Skip(PlannedTask),
}

impl<'a> Progress<'a> {
    /// Nothing done yet.
    pub(super) fn new(events: &'a mut dyn FnMut(Event)) -> Progress<'a> {
        let clock = Clock {
            began: Instant::now(),
            left: TimeLeft::default(),
            told: None,
            is_planned: false,
            more: Vec::new(),
        };
        Progress { teller: Teller::Whole { events, clock: Box::new(clock) } }
    }

    /// Work beside other work: `tell` passes on what it tells.
    pub(super) fn of_part(tell: &'a mut dyn FnMut(Told)) -> Progress<'a> {
        Progress { teller: Teller::Part(tell) }
    }

    /// Replaces what is still to come, and what may follow it.
    pub(super) fn plan(&mut self, tasks: &[PlannedTask], more: Vec<PlannedTask>) {
        if let Teller::Whole { clock, .. } = &mut self.teller {
            clock.left.plan(tasks);
            (clock.is_planned, clock.more) = (true, more);
        }
        self.tell_time();
    }

    /// Adds to what is still to come.
    pub(super) fn more(&mut self, tasks: &[PlannedTask]) {
        if let Teller::Whole { clock, .. } = &mut self.teller {
            clock.left.more(tasks);
        }
        self.tell_time();
    }

    /// Seconds that these tasks will take, by what such tasks have taken so far.
    pub(super) fn expected(&self, tasks: &[PlannedTask]) -> f64 {
        match &self.teller {
            Teller::Whole { clock, .. } => clock.left.expected(tasks),
            Teller::Part(_) => tasks.iter().map(|task| task.seconds).sum(),
        }
    }

    /// A task begins.
    pub(super) fn begin(&mut self, task: PlannedTask) {
        self.change(TimeChange::Begin(task));
    }

    /// A task ended. The time since the end of the one before was its time.
    pub(super) fn end(&mut self, task: PlannedTask) {
        self.change(TimeChange::End(task));
    }

    /// A task was not necessary.
    pub(super) fn skip(&mut self, task: PlannedTask) {
        self.change(TimeChange::Skip(task));
    }

    /// Takes on what work beside other work told.
    pub(super) fn beside(&mut self, change: TimeChange) {
        match (change, &mut self.teller) {
            (TimeChange::End(task), Teller::Whole { clock, .. }) => {
                clock.left.end_beside(task, clock.began.elapsed().as_secs_f64());
                self.tell_time();
            }
            _ => self.change(change),
        }
    }

    fn change(&mut self, change: TimeChange) {
        match &mut self.teller {
            Teller::Part(tell) => tell(Told::Time(change)),
            Teller::Whole { clock, .. } => {
                let now = clock.began.elapsed().as_secs_f64();
                match change {
                    TimeChange::Begin(task) => clock.left.begin(task),
                    TimeChange::Share(share) => clock.left.share(share),
                    TimeChange::End(task) => clock.left.end(task, now),
                    TimeChange::Skip(task) => clock.left.skip(task, now),
                }
                if matches!(change, TimeChange::End(_) | TimeChange::Skip(_)) {
                    self.tell_time();
                }
            }
        }
    }

    /// The share of the task at work that is done.
    pub(super) fn share(&mut self, share: f64) {
        self.change(TimeChange::Share(share));
    }

    /// Something that may take a while.
    pub(super) fn doing(&mut self, label: &str, what: &str, done: Option<f64>) {
        let (label, what) = (label.to_owned(), what.to_owned());
        self.event(Event::Doing { label, what, done, begins: false });
    }

    /// Rows of a load, which come before its indexes.
    pub(super) fn loading(&mut self, label: &str, what: &str, done: Option<f64>) {
        if let Some(done) = done {
            self.share(ROWS_SHARE * done);
        }
        self.doing(label, what, done);
    }

    /// Indexes of a load.
    pub(super) fn indexing(&mut self, label: &str, done: f64) {
        self.share(ROWS_SHARE + (1.0 - ROWS_SHARE) * done);
        self.doing(label, "make indexes", Some(done));
    }

    /// A build that is being fetched.
    pub(super) fn fetching(&mut self, label: &str, said: Said<'_>) {
        self.event(Event::of_fetch(label, said));
    }

    /// A line worth keeping.
    pub(super) fn note(&mut self, text: &str) {
        self.event(Event::Note(text.to_owned()));
    }

    /// Any other event.
    pub(super) fn event(&mut self, event: Event) {
        match &mut self.teller {
            Teller::Part(tell) => tell(Told::Event(event)),
            Teller::Whole { events, clock } => {
                let told = clock.told.map(|told| clock.began.elapsed().as_secs_f64() - told);
                if told.is_some_and(|ago| ago >= TOLD_EVERY_SECONDS) {
                    events(clock.advance());
                }
                events(event);
            }
        }
    }

    fn tell_time(&mut self) {
        if let Teller::Whole { events, clock } = &mut self.teller
            && clock.is_planned
        {
            events(clock.advance());
        }
    }
}

impl Clock {
    fn advance(&mut self) -> Event {
        let done_seconds = self.began.elapsed().as_secs_f64();
        self.told = Some(done_seconds);
        let left_seconds = self.left.seconds(done_seconds);
        let more_seconds = self.left.expected(&self.more);
        Event::Advance { done_seconds, left_seconds, more_seconds }
    }
}

/// Something happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// An activity on a target that may take a while.
    Doing {
        /// Label of the target, or empty.
        label: String,
        /// "load rows", "settle".
        what: String,
        /// Share done, 0 to 1, if it is known.
        done: Option<f64>,
        /// True for the begin of a piece of work that may take minutes, such as a build.
        begins: bool,
    },
    /// A target is loaded and its snapshot taken.
    Loaded {
        /// Label of the target.
        label: String,
        /// Rows.
        rows: u64,
        /// Seconds for rows.
        load_seconds: f64,
        /// Seconds for indexes.
        index_seconds: f64,
        /// The user's files, in their order.
        files: Vec<LoadedFile>,
    },
    /// A step of one target was measured.
    Measured {
        /// Round.
        block: u32,
        /// Rounds in all.
        blocks: u32,
        /// Label of the target.
        label: String,
        /// Name of the step.
        step: String,
        /// Operations per second.
        rate: f64,
        /// The unit of the rate.
        unit: RateUnit,
    },
    /// Something a reader should see later too: a fault, something resumed, a fact that limits the
    /// result.
    Note(String),
    /// Progress of the plan by the clock.
    Advance {
        /// Seconds since it began.
        done_seconds: f64,
        /// Seconds that it will probably still take.
        left_seconds: f64,
        /// Seconds that it may take in addition: `--blocks auto` has not judged yet, or open steps
        /// may need more blocks than they seem to.
        more_seconds: f64,
    },
}

impl Event {
    /// What a fetch of the build of a target says.
    pub fn of_fetch(label: &str, said: Said<'_>) -> Event {
        let what = said.text();
        match said {
            Said::Note(_) => Event::Note(format!("{label}: {what}")),
            Said::Begins(_) | Said::GoesOn(_) => Event::Doing {
                label: label.to_owned(),
                what: what.to_owned(),
                done: None,
                begins: matches!(said, Said::Begins(_)),
            },
        }
    }
}

// Work on several targets at the same time, with one line of progress.

/// Calls `work` with each item, on as many threads as there are CPUs, but at most `at_most`.
/// Returns the results in the order of the items.
pub(super) fn side_by_side<T: Send, R: Send>(
    items: Vec<T>,
    at_most: usize,
    progress: &mut Progress<'_>,
    work: impl Fn(T, &mut Progress<'_>) -> R + Sync,
) -> Vec<R> {
    let workers =
        available_parallelism().map_or(1, NonZero::get).min(items.len()).min(at_most.max(1));
    let waiting = Mutex::new(items.into_iter().enumerate());
    let (told, received) = mpsc::channel();
    thread::scope(|scope| {
        let start = |_| {
            let (told, waiting, work) = (told.clone(), &waiting, &work);
            scope.spawn(move || {
                // Sending fails only after a panic has ended the work.
                let mut pass = |it| _ = told.send(it);
                let mut progress = Progress::of_part(&mut pass);
                let mut done = Vec::new();
                loop {
                    let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some((place, item)) = next else { break done };
                    done.push((place, work(item, &mut progress)));
                }
            })
        };
        let handles: Vec<_> = (0..workers).map(start).collect();
        drop(told);
        for told in received {
            match told {
                Told::Event(event) => progress.event(event),
                Told::Time(change) => progress.beside(change),
            }
        }
        let ended = |handle: thread::ScopedJoinHandle<'_, Vec<(usize, R)>>| {
            handle.join().unwrap_or_else(|panic| resume_unwind(panic))
        };
        let mut results: Vec<(usize, R)> = handles.into_iter().flat_map(ended).collect();
        results.sort_by_key(|(place, _)| *place);
        results.into_iter().map(|(_, result)| result).collect()
    })
}

/// The error and its causes as one text, outermost first. Some errors name their cause in their own
/// words too; a cause that was said already is left out.
pub fn error_text(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;
    use crate::lab::progress::Event;
    use crate::lab::progress::TimeChange;
    use crate::plan::cost::{PlannedTask, WorkKind};

    #[test]
    fn results_keep_their_order_and_progress_adds_up() {
        let mut told = Vec::new();
        let mut pass = |it| told.push(it);
        let mut progress = Progress::of_part(&mut pass);
        let results = side_by_side(vec![3, 1, 2], usize::MAX, &mut progress, |item, progress| {
            progress.end(PlannedTask {
                part: WorkKind::Load,
                count: 1.0,
                seconds: f64::from(item),
            });
            progress.note("done");
            item * 10
        });
        assert_eq!(results, [30, 10, 20]);
        let ended = told.iter().filter_map(|told| match told {
            Told::Time(TimeChange::End(task)) => Some(task.seconds),
            _ => None,
        });
        assert_eq!(ended.sum::<f64>(), 6.0);
        let is_note = |told: &&Told| matches!(told, Told::Event(Event::Note(_)));
        assert_eq!(told.iter().filter(is_note).count(), 3);
    }

    #[test]
    fn two_items_are_at_work_at_once() {
        let workers = available_parallelism().map_or(1, NonZero::get).min(2);
        let barrier = Barrier::new(workers);
        let items: Vec<usize> = (0..workers).collect();
        let mut progress = |_| ();
        let mut progress = Progress::of_part(&mut progress);
        let leads = |_, _: &mut Progress<'_>| barrier.wait().is_leader();
        let results = side_by_side(items, usize::MAX, &mut progress, leads);
        assert_eq!(results.iter().filter(|leads| **leads).count(), 1);
    }

    #[test]
    fn one_at_a_time_is_on_one_thread() {
        let mut progress = |_| ();
        let mut progress = Progress::of_part(&mut progress);
        let threads = side_by_side(vec![1, 2, 3], 1, &mut progress, |_, _| thread::current().id());
        assert!(threads.windows(2).all(|pair| pair[0] == pair[1]), "{threads:?}");
    }
}

#[cfg(test)]
mod fault_tests {
    use anyhow::anyhow;

    use super::error_text;

    #[test]
    fn each_cause_is_said_once() {
        let plain = anyhow!("disk full").context("write a.json").context("keep the step");
        assert_eq!(error_text(&plain), "keep the step: write a.json: disk full");
        let doubled = anyhow!("refused").context("connect: refused").context("start");
        assert_eq!(error_text(&doubled), "start: connect: refused");
    }
}
