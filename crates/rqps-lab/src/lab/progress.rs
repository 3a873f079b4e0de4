//! Progress of the plan, in seconds of its estimate: the lab counts, the command line shows.

use crate::domain::benchmark::Phase;
use crate::lab::event::Event;
use crate::obtain::Said;
use crate::plan::{Plan, cost};

/// Passes events on and keeps count.
pub(super) struct Progress<'a> {
    events: &'a mut dyn FnMut(Event),
    done_seconds: f64,
    total_seconds: f64,
}

impl<'a> Progress<'a> {
    /// Nothing done yet.
    pub(super) fn new(events: &'a mut dyn FnMut(Event)) -> Progress<'a> {
        Progress { events, done_seconds: 0.0, total_seconds: 0.0 }
    }

    /// A part of a plan that counts for itself: `events` adds what it does to the whole.
    pub(super) fn of_part(events: &'a mut dyn FnMut(Event)) -> Progress<'a> {
        Progress { events, done_seconds: 0.0, total_seconds: f64::INFINITY }
    }

    /// The estimate for the loads of all targets and `blocks` blocks.
    pub(super) fn plan(&mut self, plan: &Plan, phases: &[Phase], blocks: usize) {
        let cost = cost::estimate(plan, phases);
        let targets = plan.targets.len() as f64;
        let load = if blocks > 0 { cost.load_seconds } else { 0.0 };
        self.total_seconds = load + cost.run_seconds * targets * blocks as f64;
        self.advance(0.0);
    }

    /// Sets the seconds that are left from now on.
    pub(super) fn left(&mut self, seconds: f64) {
        self.total_seconds = self.done_seconds + seconds;
        self.advance(0.0);
    }

    /// Adds seconds to the estimate.
    pub(super) fn more(&mut self, seconds: f64) {
        self.total_seconds += seconds;
        self.advance(0.0);
    }

    /// Marks seconds of the estimate as done.
    pub(super) fn advance(&mut self, seconds: f64) {
        self.done_seconds = (self.done_seconds + seconds).min(self.total_seconds);
        let (done_seconds, total_seconds) = (self.done_seconds, self.total_seconds);
        (self.events)(Event::Advance { done_seconds, total_seconds });
    }

    /// Something that may take a while.
    pub(super) fn doing(&mut self, label: &str, what: &str, done: Option<f64>) {
        let (label, what) = (label.to_owned(), what.to_owned());
        (self.events)(Event::Doing { label, what, done, begins: false });
    }

    /// A build that is being fetched.
    pub(super) fn fetching(&mut self, label: &str, said: Said<'_>) {
        (self.events)(Event::of_fetch(label, said));
    }

    /// A line worth keeping.
    pub(super) fn note(&mut self, text: &str) {
        (self.events)(Event::Note(text.to_owned()));
    }

    /// Any other event.
    pub(super) fn event(&mut self, event: Event) {
        (self.events)(event);
    }
}
