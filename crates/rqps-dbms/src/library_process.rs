//! Questions to a DBMS that is a library: a process of its own loads it, answers one, and ends.

use std::io::{self, Read, Write};
use std::process::{Command, ExitCode, Stdio};

use serde::Serialize;
use serde::de::DeserializeOwned;

use rqps_host::command_output;

/// Starts the process and asks it. It says at most `most` bytes.
pub(super) fn ask<A: DeserializeOwned>(
    mut command: Command,
    question: &impl Serialize,
    most: u64,
) -> io::Result<Result<A, String>> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(&serde_json::to_vec(question)?)?;
    }
    let (said, status) = command_output::output_of(child, most)?;
    serde_json::from_slice(&said).map_err(|_| {
        io::Error::other(format!("the process that loads the library ended with {status}"))
    })
}

/// Answers the question on `input`. Ends with the process that asks.
pub(super) fn answer<Q: DeserializeOwned, A: Serialize>(
    mut input: impl Read,
    mut output: impl Write,
    work: impl FnOnce(&Q) -> Result<A, String>,
) -> ExitCode {
    let signal = rustix::process::Signal::KILL;
    let _ = rustix::process::set_parent_process_death_signal(Some(signal));
    let mut text = String::new();
    let answer = input
        .read_to_string(&mut text)
        .map_err(|error| format!("read the request: {error}"))
        .and_then(|_| {
            serde_json::from_str(&text).map_err(|error| format!("parse the request: {error}"))
        })
        .and_then(|question| work(&question));
    match serde_json::to_writer(&mut output, &answer).map(|()| output.flush()) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
