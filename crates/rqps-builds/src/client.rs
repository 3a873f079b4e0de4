//! Running a package client of the host to its end, with words while it works and an end when the
//! user wants one.

use std::io;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::error::Reason;
use crate::progress::Progress;
use rqps_host::command_output::{CommandOutput, end_group, gather, joined};
use rqps_model::build::Dbms;

/// Time between two looks at a running client.
const POLL: Duration = Duration::from_millis(20);

/// What a package client is asked for.
pub(super) struct Fetch<'a> {
    /// The program, or its path.
    pub(super) client: &'a Path,
    /// The package.
    pub(super) coordinates: &'a str,
    /// For messages.
    pub(super) dbms: Dbms,
    /// An empty folder.
    pub(super) into: &'a Path,
}

impl Fetch<'_> {
    fn client(&self) -> String {
        self.client.display().to_string()
    }

    pub(super) fn no_network(&self, said: &str) -> Reason {
        let said = shortened(said);
        Reason::Network { client: self.client(), said, dbms: self.dbms }
    }

    pub(super) fn no_such_version(&self) -> Reason {
        let coordinates = self.coordinates.to_owned();
        Reason::NoSuchVersion { dbms: self.dbms, coordinates }
    }

    pub(super) fn failed(&self, ended: &str, said: &str) -> Reason {
        Reason::ClientFailed {
            client: self.client(),
            ended: ended.to_owned(),
            coordinates: self.coordinates.to_owned(),
            said: shortened(said),
        }
    }
}

/// The first line with one of these words; the earlier words count first.
pub(super) fn line_with<'a>(said: &'a str, words: &[&str]) -> Option<&'a str> {
    words.iter().find_map(|words| said.lines().find(|line| line.contains(words)))
}

/// Runs a client to its end; `text` says each second what it is doing. `package` is the Debian
/// package that has the client, for the error when it is missing.
pub(super) fn run(
    command: &mut Command,
    package: &'static str,
    dbms: Dbms,
    progress: &mut Progress<'_>,
    text: impl Fn() -> String,
) -> Result<CommandOutput, Reason> {
    let mut child = start(command, package, dbms)?;
    let output = gather(child.stdout.take());
    let errors = gather(child.stderr.take());
    let status = wait(&mut child, command, progress, &text)?;
    if !status.success() {
        // Ctrl-C reaches the client too, and it may be the first to end.
        progress.check()?;
    }
    Ok(CommandOutput { status, output: joined(output), errors: joined(errors) })
}

/// Starts a client with nothing to read and both its streams piped.
pub(super) fn start(
    command: &mut Command,
    package: &'static str,
    dbms: Dbms,
) -> Result<Child, Reason> {
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    spawned.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            let client = command.get_program().to_string_lossy().into_owned();
            Reason::ClientMissing { client, package, dbms }
        }
        _ => Reason::io("run", command.get_program())(error),
    })
}

/// Waits for the client; ends it if the caller wants to stop.
pub(super) fn wait(
    child: &mut Child,
    command: &Command,
    progress: &mut Progress<'_>,
    text: &impl Fn() -> String,
) -> Result<ExitStatus, Reason> {
    loop {
        let ended = child.try_wait().map_err(Reason::io("wait for", command.get_program()))?;
        if let Some(status) = ended {
            return Ok(status);
        }
        if let Err(stopped) = progress.tick(text) {
            end(child);
            return Err(stopped);
        }
        std::thread::sleep(POLL);
    }
}

/// Ends a client at once. It may have ended by itself in the meantime, which is as good.
pub(super) fn end(child: &mut Child) {
    end_group(child);
}

/// At most 300 characters of a line.
pub(super) fn shortened(line: &str) -> String {
    let line = line.trim();
    match line.char_indices().nth(300) {
        Some((end, _)) => format!("{} …", &line[..end]),
        None => line.to_string(),
    }
}
