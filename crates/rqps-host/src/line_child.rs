//! A program that answers lines with lines. What it says is bounded, and how long it takes.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use thiserror::Error;

use crate::command_output::{end_group, how};
use crate::{child, confinement};
use rqps_model::escape;

/// Longest line, bytes.
pub const LINE_MAX: usize = 1 << 20;
/// Bytes that are kept of the end of its standard error.
const LAST_WORDS: usize = 4 << 10;
/// Bytes for which a pipe that can be written to has room.
const PIECE: usize = 4 << 10;
/// Characters of a line that an error shows.
const SHOWN: usize = 200;
/// The time in which it may end by itself once its input has.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// The reason why there is no answer; a clause.
#[derive(Debug, Error)]
pub enum LineFault {
    /// It takes too long.
    #[error("gave no answer within {} s", .0.as_secs_f64())]
    Silent(Duration),
    /// It does not read.
    #[error("did not read its question within {} s", .0.as_secs_f64())]
    Deaf(Duration),
    /// It has ended, or closed its output.
    #[error("ended ({0})")]
    Ended(String),
    /// It floods.
    #[error("wrote more than {LINE_MAX} bytes without an end of line")]
    Long,
    /// It says more than it was asked for.
    #[error("wrote a line that nobody asked for: `{0}`; one answer is one line")]
    Unasked(String),
    /// It writes bytes that are no text.
    #[error("wrote a line that is not UTF-8")]
    NoText,
    /// The pipe fails.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// The beginning of a line, as errors show it.
pub fn shown(line: &str) -> String {
    let cut: String = line.chars().take(SHOWN).collect();
    let more = if cut.len() < line.len() { "…" } else { "" };
    format!("{}{more}", escape::line(cut.trim()))
}

/// The program. Dropping it ends it with its group.
pub struct LineChild {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    /// What came after the last line.
    unread: Vec<u8>,
    last_words: Arc<Mutex<Vec<u8>>>,
    listener: Option<JoinHandle<()>>,
}

impl LineChild {
    /// Starts it; it ends with the calling thread. What it writes to standard error goes to that of
    /// this process, too.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(mut command: Command) -> io::Result<LineChild> {
        child::end_with_thread(&mut command);
        let pipes = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = pipes.spawn()?;
        let missing = || io::Error::other("a pipe is missing");
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or_else(missing)?;
        let errors = child.stderr.take().ok_or_else(missing)?;
        let last_words = Arc::default();
        let kept = Arc::clone(&last_words);
        let listener = Some(thread::spawn(move || listen(errors, &kept)));
        Ok(LineChild { child, input, output, unread: Vec::new(), last_words, listener })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a line. One that it wrote before is a fault.
    ///
    /// # Errors
    /// It has ended, does not read in time, or has said more than it was asked for.
    pub fn say(&mut self, line: &str, patience: Duration) -> Result<(), LineFault> {
        if !self.unread.is_empty() || is_ready(&self.output, PollFlags::IN, Duration::ZERO)? {
            // What comes is a line that nobody asked for, or the end.
            let unasked = self.hear(END_PATIENCE)?;
            return Err(LineFault::Unasked(shown(&unasked)));
        }
        for piece in format!("{line}\n").as_bytes().chunks(PIECE) {
            let Some(input) = &mut self.input else { return Err(self.ended()) };
            if !is_ready(&*input, PollFlags::OUT, patience)? {
                return Err(LineFault::Deaf(patience));
            }
            match input.write_all(piece) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Err(self.ended()),
                sent => sent?,
            }
        }
        Ok(())
    }

    /// The next line.
    ///
    /// # Errors
    /// There is none in time, or none that can be read.
    pub fn hear(&mut self, patience: Duration) -> Result<String, LineFault> {
        let begun = Instant::now();
        let mut piece = [0; 16 << 10];
        let mut searched = 0;
        loop {
            let end = self.unread[searched..].iter().position(|byte| *byte == b'\n');
            if let Some(end) = end.map(|end| end + searched) {
                let rest = self.unread.split_off(end + 1);
                let mut line = std::mem::replace(&mut self.unread, rest);
                line.pop();
                return String::from_utf8(line).map_err(|_| LineFault::NoText);
            }
            searched = self.unread.len();
            if searched > LINE_MAX {
                return Err(LineFault::Long);
            }
            let left = patience.saturating_sub(begun.elapsed());
            if !is_ready(&self.output, PollFlags::IN, left)? {
                return Err(LineFault::Silent(patience));
            }
            match self.output.read(&mut piece) {
                Ok(0) => return Err(self.ended()),
                Ok(length) => self.unread.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// How it ended, with its last words.
    fn ended(&mut self) -> LineFault {
        let begun = Instant::now();
        let is_heard = |listener: &JoinHandle<()>| listener.is_finished();
        let mut status = None;
        while begun.elapsed() < END_PATIENCE {
            status = status.or_else(|| self.child.try_wait().ok().flatten());
            if status.is_some() && self.listener.as_ref().is_none_or(is_heard) {
                break;
            }
            thread::sleep(Duration::from_millis(2));
        }
        let how = status.map_or("it closed its output".to_owned(), how);
        let words = self.last_words.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&words);
        let last = text.lines().rev().find(|line| !line.trim().is_empty()).map(shown);
        LineFault::Ended(last.map_or(how.clone(), |last| format!("{how}: {last}")))
    }
}

/// True if a pipe can be read or written, or its other end is closed, within `patience`.
fn is_ready(pipe: impl AsFd, what: PollFlags, patience: Duration) -> Result<bool, LineFault> {
    let until = Instant::now() + patience;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&pipe, what)], Some(&left)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(LineFault::Io(error.into())),
        }
    }
}

/// Passes what a program complains of on to the log, and keeps the end.
fn listen(mut errors: ChildStderr, kept: &Mutex<Vec<u8>>) {
    let mut log = confinement::log().ok();
    let mut piece = [0; LAST_WORDS];
    while let Ok(length) = errors.read(&mut piece) {
        if length == 0 {
            break;
        }
        // A log that cannot be written ends no run.
        log = log.filter(|log| (&*log).write_all(&piece[..length]).is_ok());
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&piece[..length]);
        let over = kept.len().saturating_sub(LAST_WORDS);
        kept.drain(..over);
    }
}

impl Drop for LineChild {
    fn drop(&mut self) {
        self.input = None;
        let begun = Instant::now();
        while begun.elapsed() < END_PATIENCE && matches!(self.child.try_wait(), Ok(None)) {
            thread::sleep(Duration::from_millis(1));
        }
        end_group(&mut self.child);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::{ChildTask, command};

    const WAIT: Duration = Duration::from_millis(300);

    fn started(script: &str) -> LineChild {
        let mut sh = command("sh", ChildTask::Work);
        sh.args(["-c", script]);
        LineChild::start(sh).unwrap()
    }

    fn fault(script: &str) -> String {
        let mut child = started(script);
        let said = child.say("one", WAIT).and_then(|()| child.hear(WAIT));
        let said = said.and_then(|_| {
            thread::sleep(Duration::from_millis(100));
            child.say("two", WAIT).and_then(|()| child.hear(WAIT))
        });
        said.expect_err(script).to_string()
    }

    #[test]
    fn each_fault_of_a_program_has_its_words() {
        let mut polite = started("while read line; do echo \"<$line>\"; done");
        for line in ["one", "two"] {
            polite.say(line, Duration::from_secs(60)).unwrap();
            assert_eq!(polite.hear(Duration::from_secs(60)).unwrap(), format!("<{line}>"));
        }
        let check = |script: &str, words: &str| {
            let text = fault(script);
            assert!(text.contains(words), "{script}: {text}");
        };
        check("sleep 60", "gave no answer within 0.3 s");
        check("read a; echo 'no module named redis' >&2; exit 3", "exited with 3: no module named");
        check("read a; kill -9 $$", "was killed by signal 9");
        check("read a; echo 1; echo 2; sleep 60", "a line that nobody asked for: `2`");
        let deaf = started("exec sleep 60").say(&"x".repeat(LINE_MAX), WAIT);
        assert!(deaf.unwrap_err().to_string().contains("did not read its question within 0.3 s"));
        check("exec cat /dev/zero", "without an end of line");
        check("read a; printf '\\377\\n'; sleep 60", "not UTF-8");
    }

    #[test]
    fn a_program_that_hears_no_end_is_ended() {
        let hanging = started("trap '' TERM; while :; do sleep 60; done");
        let pid = hanging.pid();
        drop(hanging);
        assert!(crate::tree::stat_of(pid).is_err());
    }
}
