//! Runs a program that ends by itself, and keeps what it says.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};
use thiserror::Error;

use crate::{child, confinement};
use rqps_model::escape;

/// Time limit for a program's answer.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Time limit for the rest of the output of a program that has ended.
const AFTER_END: Duration = Duration::from_secs(2);
/// Between two looks whether the user stops rqps.
const LOOK_AT_STOP: Duration = Duration::from_millis(100);
/// Most bytes kept of a program's output; ldconfig lists thousands of libraries.
const KEPT: usize = 1 << 20;

/// The output and the end of a program.
#[derive(Debug)]
pub struct CommandOutput {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output, the first megabyte.
    pub output: String,
    /// Its standard error, likewise.
    pub errors: String,
}

impl CommandOutput {
    /// True if it ended with code 0.
    pub fn success(&self) -> bool {
        self.status.success()
    }

    /// All that it said.
    pub fn said(&self) -> String {
        format!("{}{}", self.output, self.errors)
    }

    /// How it ended, as in "make exited with 2".
    pub fn how(&self) -> String {
        how(self.status)
    }

    /// The error message of a failed program, or its other output, on one line.
    pub fn complaint(&self) -> String {
        let complained = !self.errors.trim().is_empty();
        let text = if complained { &self.errors } else { &self.output };
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
        match lines.as_slice() {
            [] => "it failed without a message".to_string(),
            lines => lines.join("; "),
        }
    }
}

/// How a program ended, as in "make exited with 2".
pub fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// Runs a program that ends by itself.
///
/// # Errors
/// It does not start, or is not done after 30 s.
pub fn run(command: Command) -> io::Result<CommandOutput> {
    run_apart(command, Stdio::null(), PATIENCE, false)
}

/// As [`run`], for a program that gives up the rights of root; what it leaves running is ended.
///
/// # Errors
/// As [`run`].
pub fn run_stranger(command: Command) -> io::Result<CommandOutput> {
    run_apart(command, Stdio::null(), PATIENCE, true)
}

/// As [`run_stranger`], with something to read and another limit.
///
/// # Errors
/// As [`run`].
pub fn run_with(command: Command, input: Stdio, patience: Duration) -> io::Result<CommandOutput> {
    run_apart(command, input, patience, true)
}

fn run_apart(
    mut command: Command,
    input: Stdio,
    patience: Duration,
    is_stranger: bool,
) -> io::Result<CommandOutput> {
    command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let end_left = |child: &Child| {
        if is_stranger {
            confinement::end_left(child.id());
        }
    };
    let (output, errors) = (gather(child.stdout.take()), gather(child.stderr.take()));
    let begun = Instant::now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if begun.elapsed() < patience => thread::sleep(Duration::from_millis(2)),
            None => {
                end_group(&mut child);
                end_left(&child);
                let what = format!("no answer within {} s", patience.as_secs_f64());
                return Err(io::Error::new(io::ErrorKind::TimedOut, what));
            }
        }
    };
    end_left(&child);
    Ok(CommandOutput { status, output: joined(output), errors: joined(errors) })
}

/// Bytes of a log before its end is cut out: what runs may write without end.
pub const LOG_MOST: u64 = 64 << 20;
/// Bytes of its end that stay.
const LOG_END: usize = 64 << 10;

/// Copies a stream into a log until the last process that has the pipe ends. Of a long one, the
/// beginning and the end stay. Tells when all is written.
pub fn keep_log(from: impl Read + Send + 'static, to: File) -> Receiver<()> {
    let (sender, written) = channel();
    thread::spawn(move || {
        let most = LOG_MOST.saturating_sub(to.metadata().map_or(0, |log| log.len()));
        // A log that cannot be written ends nothing.
        let _ = copy_ends(from, to, most);
        let _ = sender.send(());
    });
    written
}

/// A stream with `***` in the place of secrets.
pub struct Masked<R> {
    from: BufReader<R>,
    secrets: Vec<String>,
    /// The end of a long line, in which a secret may have begun.
    begun: Vec<u8>,
    ready: io::Cursor<Vec<u8>>,
}

impl<R: Read> Masked<R> {
    /// Over what a program says that was given these.
    pub fn over(from: R, secrets: Vec<String>) -> Masked<R> {
        let (begun, ready) = (Vec::new(), io::Cursor::default());
        Masked { from: BufReader::new(from), secrets, begun, ready }
    }
}

impl<R: Read> Read for Masked<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.secrets.is_empty() {
            return self.from.read(to);
        }
        let mut is_end = to.is_empty();
        loop {
            let read = self.ready.read(to)?;
            if read > 0 || is_end {
                return Ok(read);
            }
            is_end = self.refill()?;
        }
    }
}

impl<R: Read> Masked<R> {
    /// Reads a line, or a part of a longer one, and masks it. True at the end of all.
    fn refill(&mut self) -> io::Result<bool> {
        // Whole lines: a secret has none of their ends. Of a longer one, its last bytes wait.
        let mut line = std::mem::take(&mut self.begun);
        let read = self.from.by_ref().take(LINE_MAX as u64).read_until(b'\n', &mut line)?;
        let is_whole = read < LINE_MAX || line.ends_with(b"\n");
        let of_letter = line.utf8_chunks().last().map_or(0, |last| last.invalid().len());
        let half_letter = line.split_off(line.len() - if is_whole { 0 } else { of_letter });
        if let Cow::Owned(masked) = escape::masked(&String::from_utf8_lossy(&line), &self.secrets) {
            line = masked.into_bytes();
        }
        if !is_whole {
            let longest = self.secrets.iter().map(String::len).max().unwrap_or(0);
            self.begun = line.split_off(line.len().saturating_sub(longest));
            self.begun.extend(half_letter);
        }
        // All of a part may wait; that is not the end.
        self.ready = io::Cursor::new(line);
        Ok(read == 0)
    }
}

fn copy_ends(mut from: impl Read, mut to: impl Write, most: u64) -> io::Result<()> {
    io::copy(&mut from.by_ref().take(most), &mut to)?;
    let (mut end, mut lost) = (Vec::new(), 0_u64);
    let mut piece = vec![0; LOG_END];
    loop {
        let length = match from.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        end.extend_from_slice(piece.get(..length).unwrap_or_default());
        let over = end.len().saturating_sub(LOG_END);
        end.drain(..over);
        lost += over as u64;
    }
    if lost > 0 {
        writeln!(to, "\nrqps: {lost} bytes of this log are left out here")?;
    }
    to.write_all(&end)
}

/// The standard output of a process that gives up the rights of root, and how it ended. One that
/// says more than `most` bytes is ended, as is one that still runs when the user stops rqps, and
/// what any leaves running.
///
/// # Errors
/// It says more, cannot be read, or `stop` is set.
pub fn output_of(
    mut child: Child,
    most: u64,
    stop: &AtomicBool,
) -> io::Result<(Vec<u8>, ExitStatus)> {
    let mut said = Vec::new();
    let read = child.stdout.take().map_or(Ok(()), |pipe| read_until(pipe, most, stop, &mut said));
    let is_long = said.len() as u64 > most;
    if is_long || read.is_err() {
        end_group(&mut child);
        confinement::end_left(child.id());
        read?;
        return Err(io::Error::other(format!("it says more than {most} bytes")));
    }
    let status = child.wait()?;
    confinement::end_left(child.id());
    Ok((said, status))
}

/// Reads to the end, or a little more than `most` bytes.
fn read_until(
    mut pipe: ChildStdout,
    most: u64,
    stop: &AtomicBool,
    said: &mut Vec<u8>,
) -> io::Result<()> {
    let mut piece = [0; 8192];
    while said.len() as u64 <= most {
        if stop.load(Ordering::Relaxed) {
            return Err(io::Error::new(io::ErrorKind::Interrupted, "interrupted"));
        }
        if !is_ready(&pipe, PollFlags::IN, LOOK_AT_STOP)? {
            continue;
        }
        match pipe.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(length) => said.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Ends a child with all processes of its group. They may have ended by themselves, which is as
/// good.
pub fn end_group(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// What a pipe has said so far, and its end.
pub struct Gathered {
    kept: Arc<Mutex<Vec<u8>>>,
    ended: Receiver<()>,
}

impl Gathered {
    /// True if it has said more than is kept.
    pub fn is_full(&self) -> bool {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).len() >= KEPT
    }
}

/// Reads a pipe to its end on a thread of its own, so that the writer never blocks on it; keeps
/// the beginning.
pub fn gather(pipe: Option<impl Read + Send + 'static>) -> Option<Gathered> {
    let mut pipe = pipe?;
    let kept = Arc::new(Mutex::new(Vec::new()));
    let (tell, ended) = channel();
    let keep = Arc::clone(&kept);
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            let mut kept = keep.lock().unwrap_or_else(PoisonError::into_inner);
            let room = KEPT.saturating_sub(kept.len()).min(count);
            kept.extend_from_slice(&buffer[..room]);
        }
        // Nobody may be waiting any more.
        let _ = tell.send(());
    });
    Some(Gathered { kept, ended })
}

/// The output that [`gather`] collected, of a program that has ended. A process that it left behind
/// may hold the pipe open for ever: nobody waits for that.
pub fn joined(gathered: Option<Gathered>) -> String {
    let Some(Gathered { kept, ended }) = gathered else { return String::new() };
    let _ = ended.recv_timeout(AFTER_END);
    let kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    String::from_utf8_lossy(&kept).into_owned()
}

// A program that answers lines with lines. What it says is bounded, and how long it takes.

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

/// Sends a program a line.
///
/// # Errors
/// It has ended, or does not read in time.
pub fn say(input: &mut ChildStdin, line: &str, patience: Duration) -> Result<(), LineFault> {
    for piece in format!("{line}\n").as_bytes().chunks(PIECE) {
        if !is_ready(&*input, PollFlags::OUT, patience)? {
            return Err(LineFault::Deaf(patience));
        }
        input.write_all(piece)?;
    }
    Ok(())
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
        let Some(input) = &mut self.input else { return Err(self.ended()) };
        match say(input, line, patience) {
            Err(LineFault::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                Err(self.ended())
            }
            sent => sent,
        }
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
fn is_ready(pipe: impl AsFd, what: PollFlags, patience: Duration) -> io::Result<bool> {
    let until = Instant::now() + patience;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&pipe, what)], Some(&left)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
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

    fn shell(line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        command
    }

    #[test]
    fn a_flood_leaves_its_beginning_and_its_end() {
        let mut log = Vec::new();
        let flood = io::repeat(b'x').take(10 << 20).chain(&b" panicked at the end"[..]);
        copy_ends(b"begin".chain(flood), &mut log, 1000).unwrap();
        assert!(log.len() < 1100 + LOG_END && log.starts_with(b"beginx"), "{}", log.len());
        let text = String::from_utf8(log).unwrap();
        assert!(text.contains(" bytes of this log are left out here\nxx"));
        assert!(text.ends_with("panicked at the end"));
        let mut short = Vec::new();
        copy_ends(&b"all of it"[..], &mut short, 9).unwrap();
        assert_eq!(short, b"all of it");
    }

    #[test]
    fn a_process_that_stays_behind_keeps_nobody_waiting() {
        let begun = Instant::now();
        let said = run(shell("echo yes; sleep 20 &")).unwrap();
        assert!(said.success() && said.output == "yes\n", "{}", said.output);
        assert!(begun.elapsed() < Duration::from_secs(20), "it waited for the other process");
    }

    #[test]
    fn the_first_word_of_the_user_ends_a_process_that_is_asked() {
        let mut command = shell("echo $$; exec sleep 1000");
        let child = command.stdout(Stdio::piped()).spawn().unwrap();
        let place = std::path::PathBuf::from(format!("/proc/{}", child.id()));
        let stop = Arc::new(AtomicBool::new(false));
        let user = Arc::clone(&stop);
        let ends = thread::spawn(move || {
            thread::sleep(Duration::from_millis(300));
            user.store(true, Ordering::Relaxed);
        });
        let error = output_of(child, 1000, &stop).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted);
        assert!(!place.exists());
        ends.join().unwrap();
    }

    #[test]
    fn a_process_that_does_not_answer_is_ended() {
        let line = "echo $$ >&2; exec sleep 1000";
        let patience = Duration::from_millis(20);
        let error = run_with(shell(line), Stdio::null(), patience).unwrap_err();
        assert_eq!(error.to_string(), "no answer within 0.02 s");
        let said = run_with(shell("echo yes; echo no >&2; exit 3"), Stdio::null(), PATIENCE);
        let said = said.unwrap();
        assert_eq!((said.said().as_str(), said.how().as_str()), ("yes\nno\n", "exited with 3"));
    }

    #[test]
    fn of_endless_output_the_beginning_is_kept() {
        let said = run(shell("head -c 3000000 /dev/zero")).unwrap();
        assert_eq!(said.output.len(), KEPT);
    }

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
    fn a_secret_in_a_long_line_is_masked_wherever_the_line_is_cut() {
        for before in LINE_MAX - 9..=LINE_MAX {
            let said = format!("{}Gehéimnis!{}", "x".repeat(before), "y".repeat(9));
            let mut masked = String::new();
            let secrets = vec!["Gehéimnis!".to_owned(), "none such".to_owned()];
            Masked::over(said.as_bytes(), secrets).read_to_string(&mut masked).unwrap();
            assert_eq!(masked.trim_start_matches('x'), format!("***{}", "y".repeat(9)));
        }
        // A secret that fills a part leaves nothing to show of it yet.
        let secret = "s".repeat(LINE_MAX - 9);
        let mut masked = String::new();
        let said = format!("{}{secret}end", "x".repeat(9));
        Masked::over(said.as_bytes(), vec![secret]).read_to_string(&mut masked).unwrap();
        assert_eq!(masked, format!("{}***end", "x".repeat(9)));
    }

    #[test]
    fn a_program_that_hears_no_end_is_ended() {
        let hanging = started("trap '' TERM; while :; do sleep 60; done");
        let pid = hanging.pid();
        drop(hanging);
        assert!(crate::tree::stat_of(pid).is_err());
    }
}
