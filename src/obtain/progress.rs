//! Words to the user while something takes long, and the wish to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::obtain::error::Reason;

/// Time between two progress messages.
const EVERY: Duration = Duration::from_secs(1);

/// Carries messages to the caller, and the caller's stop request to the worker.
pub(super) struct Progress<'a> {
    say: &'a mut dyn FnMut(&str),
    stop: &'a AtomicBool,
    started: Instant,
    last: Instant,
}

impl<'a> Progress<'a> {
    pub(super) fn new(say: &'a mut dyn FnMut(&str), stop: &'a AtomicBool) -> Progress<'a> {
        let now = Instant::now();
        Progress { say, stop, started: now, last: now }
    }

    /// A piece of work begins.
    pub(super) fn begin(&mut self, text: &str) {
        self.started = Instant::now();
        self.last = self.started;
        (self.say)(text);
    }

    /// The work goes on: at most once per second the text goes out, with the seconds since
    /// [`Progress::begin`]. An error if the caller wants to stop.
    pub(super) fn tick(&mut self, text: impl FnOnce() -> String) -> Result<(), Reason> {
        self.check()?;
        if self.last.elapsed() >= EVERY {
            self.last = Instant::now();
            let seconds = self.started.elapsed().as_secs();
            (self.say)(&format!("{}, {seconds} s", text()));
        }
        Ok(())
    }

    /// An error if the caller wants to stop.
    pub(super) fn check(&self) -> Result<(), Reason> {
        if self.stop.load(Ordering::Relaxed) { Err(Reason::Stopped) } else { Ok(()) }
    }
}
