//! Asks a program that answers and ends.

use std::io::Read;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time limit for a program's answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most bytes kept of a program's output; ldconfig lists thousands of libraries.
const KEPT: usize = 1 << 20;

/// The output and the end of a program.
pub struct Answer {
    /// It ended with code 0.
    pub success: bool,
    /// Its standard output, the first megabyte.
    pub output: String,
    /// Its standard error, likewise.
    pub errors: String,
}

impl Answer {
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

/// Runs a program that answers and ends.
///
/// # Errors
/// The program does not start, or is not done after 30 s; the text says which.
pub fn answer(mut command: Command) -> Result<Answer, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let output = gather(child.stdout.take());
    let errors = gather(child.stderr.take());
    let begun = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begun.elapsed() < PATIENCE => {}
            Ok(None) => {
                // It may have ended by itself in the meantime, which is as good.
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("no answer within {} s", PATIENCE.as_secs()));
            }
            Err(error) => return Err(error.to_string()),
        }
        thread::sleep(Duration::from_millis(2));
    };
    Ok(Answer { success: status.success(), output: joined(output), errors: joined(errors) })
}

/// Reads a pipe to its end on a thread of its own, so that the writer never blocks on it; keeps
/// the beginning.
pub fn gather(pipe: Option<impl Read + Send + 'static>) -> Option<JoinHandle<String>> {
    let mut pipe = pipe?;
    Some(thread::spawn(move || {
        let mut kept = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            let room = KEPT.saturating_sub(kept.len()).min(count);
            kept.extend_from_slice(&buffer[..room]);
        }
        String::from_utf8_lossy(&kept).into_owned()
    }))
}

/// The output that [`gather`] collected.
pub fn joined(thread: Option<JoinHandle<String>>) -> String {
    thread.and_then(|thread| thread.join().ok()).unwrap_or_default()
}
