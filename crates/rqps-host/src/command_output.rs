//! Runs a program that ends by itself, and keeps what it says.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::confinement;
use rustix::process::{Pid, Signal, kill_process_group};

/// Time limit for a program's answer.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Time limit for the rest of the output of a program that has ended.
const AFTER_END: Duration = Duration::from_secs(2);
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
/// says more than `most` bytes is ended, and so is what any leaves running.
///
/// # Errors
/// It says more, or cannot be read.
pub fn output_of(mut child: Child, most: u64) -> io::Result<(Vec<u8>, ExitStatus)> {
    let mut said = Vec::new();
    let read = child.stdout.take().map_or(Ok(0), |pipe| pipe.take(most + 1).read_to_end(&mut said));
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
