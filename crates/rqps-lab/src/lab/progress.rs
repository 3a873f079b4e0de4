//! Progress of the plan: the lab says what it begins and ends, and the estimate of the time left
//! goes on with the events. The command line shows both.

use std::time::Instant;

use crate::plan::TimeLeft;
use crate::plan::cost::PlannedTask;
use rqps_builds::Said;
use rqps_model::benchmark::RateUnit;
use rqps_model::load::LoadedFile;

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

    /// Something that may take a while.
    pub(super) fn doing(&mut self, label: &str, what: &str, done: Option<f64>) {
        let (label, what) = (label.to_owned(), what.to_owned());
        self.event(Event::Doing { label, what, done, begins: false });
    }

    /// Rows of a load, which come before its indexes.
    pub(super) fn loading(&mut self, label: &str, what: &str, done: Option<f64>) {
        if let Some(done) = done {
            self.change(TimeChange::Share(ROWS_SHARE * done));
        }
        self.doing(label, what, done);
    }

    /// Indexes of a load.
    pub(super) fn indexing(&mut self, label: &str, done: f64) {
        self.change(TimeChange::Share(ROWS_SHARE + (1.0 - ROWS_SHARE) * done));
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
