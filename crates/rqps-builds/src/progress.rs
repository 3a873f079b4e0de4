//! Words to the user while something takes long, and the wish to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::Reason;

/// Time between two progress messages.
const EVERY: Duration = Duration::from_secs(1);

/// A message of a fetch to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// A fact that the user should see later, too.
    Note(&'a str),
    /// A piece of work begins that may take long.
    Begins(&'a str),
    /// It goes on. Comes once per second.
    GoesOn(&'a str),
}

impl<'a> Said<'a> {
    /// The words.
    pub fn text(self) -> &'a str {
        match self {
            Said::Note(text) | Said::Begins(text) | Said::GoesOn(text) => text,
        }
    }
}

/// What hears the messages of a fetch.
pub type Hear<'a> = dyn FnMut(Said<'_>) + 'a;

/// Carries messages to the caller, and the caller's stop request to the worker.
pub(super) struct Progress<'a> {
    hear: &'a mut Hear<'a>,
    stop: &'a AtomicBool,
    started: Instant,
    last: Instant,
}

impl<'a> Progress<'a> {
    pub(super) fn new(hear: &'a mut Hear<'_>, stop: &'a AtomicBool) -> Progress<'a> {
        let now = Instant::now();
        Progress { hear, stop, started: now, last: now }
    }

    /// A fact that the user should see later, too.
    pub(super) fn note(&mut self, text: &str) {
        (self.hear)(Said::Note(text));
    }

    /// A piece of work begins.
    pub(super) fn begin(&mut self, text: &str) {
        self.started = Instant::now();
        self.last = self.started;
        (self.hear)(Said::Begins(text));
    }

    /// The work goes on: at most once per second the text goes out, with the seconds since
    /// [`Progress::begin`]. An error if the caller wants to stop.
    pub(super) fn tick(&mut self, text: impl FnOnce() -> String) -> Result<(), Reason> {
        self.check()?;
        if self.last.elapsed() >= EVERY {
            self.last = Instant::now();
            let seconds = self.started.elapsed().as_secs();
            (self.hear)(Said::GoesOn(&format!("{}, {seconds} s", text())));
        }
        Ok(())
    }

    /// An error if the caller wants to stop.
    pub(super) fn check(&self) -> Result<(), Reason> {
        if self.stop.load(Ordering::Relaxed) { Err(Reason::Stopped) } else { Ok(()) }
    }
}
