//! The driver's side of the conversation: messages out, and the end of the input as a sign that
//! the lab is gone.

use std::io::{BufRead, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use crate::driver::event::DriverEvent;

/// The other side is gone.
#[derive(Debug)]
pub struct LabGone;

/// Messages out, and whether anybody listens.
pub struct LabLink<W> {
    output: W,
    /// A line of the other side; closed when it goes.
    lines: Receiver<()>,
    /// Kept where nobody watches, so that the channel stays open.
    _open: Option<Sender<()>>,
}

impl<W: Write> LabLink<W> {
    /// Watches `input` for its end.
    pub fn watching(output: W, mut input: impl BufRead + Send + 'static) -> LabLink<W> {
        let (sender, lines) = channel();
        // The thread ends with the input or with the process, and is waited for by nobody.
        std::thread::spawn(move || {
            let mut rest = String::new();
            while input.read_line(&mut rest).is_ok_and(|length| length > 0) {
                rest.clear();
                // Without a receiver the job is done.
                let _ = sender.send(());
            }
        });
        LabLink { output, lines, _open: None }
    }

    /// Nobody to watch.
    pub fn alone(output: W) -> LabLink<W> {
        let (sender, lines) = channel();
        LabLink { output, lines, _open: Some(sender) }
    }

    /// Says one message, at once.
    pub fn say(&mut self, message: &DriverEvent) -> Result<(), LabGone> {
        let mut line = serde_json::to_vec(message).map_err(|_| LabGone)?;
        line.push(b'\n');
        self.output.write_all(&line).map_err(|_| LabGone)?;
        self.output.flush().map_err(|_| LabGone)
    }

    /// Sleeps for `duration`, less if the other side goes.
    pub fn sleep(&self, duration: Duration) -> Result<(), LabGone> {
        match self.lines.recv_timeout(duration) {
            Ok(()) | Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => Err(LabGone),
        }
    }

    /// Says that all is prepared and waits for a line, if there is somebody to write one.
    pub fn pause(&mut self) -> Result<(), LabGone> {
        self.pause_at(&DriverEvent::Prepared)
    }

    /// Says `message` and waits for a line, if there is somebody to write one.
    pub fn pause_at(&mut self, message: &DriverEvent) -> Result<(), LabGone> {
        if self._open.is_some() {
            return Ok(());
        }
        self.say(message)?;
        self.lines.recv().map_err(|_| LabGone)
    }

    /// Waits for something from `news` until `deadline`; `None` at the deadline or when all
    /// senders are gone.
    pub fn wait<T>(
        &self,
        news: &Receiver<T>,
        deadline: Option<Instant>,
    ) -> Result<Option<T>, LabGone> {
        /// How often the end of the input is looked for while nothing happens.
        const LOOK: Duration = Duration::from_millis(100);
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            match news.recv_timeout(left.map_or(LOOK, |left| left.min(LOOK))) {
                Ok(item) => return Ok(Some(item)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
            }
            self.sleep(Duration::ZERO)?;
            if left.is_some_and(|left| left <= LOOK) {
                return Ok(None);
            }
        }
    }
}
