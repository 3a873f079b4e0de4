//! What a binary says of itself.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::domain::build::{Dbms, Version};
use crate::obtain::error::Reason;
use crate::obtain::progress::Progress;

/// A program that does not tell its version in this time is none of ours.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest answer that is read, bytes.
const ANSWER: u64 = 4096;

/// The words that a server binary prints of itself, on one line, without the binary's folder.
pub(super) fn reported(binary: &Path, dbms: Dbms) -> Result<String, Reason> {
    ask(binary, dbms).map_err(|said| Reason::Unrunnable { binary: binary.to_path_buf(), said })
}

fn ask(binary: &Path, dbms: Dbms) -> Result<String, String> {
    let mut command = Command::new(binary);
    if dbms != Dbms::Postgres {
        // A my.cnf of this host may hold settings that this version does not know.
        command.arg("--no-defaults");
    }
    command.arg("--version");
    let (success, output, errors) = answer(command)?;
    if !success {
        let said = if errors.trim().is_empty() { output } else { errors };
        return Err(said.trim().to_string());
    }
    let line = output.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let name = binary.file_name().unwrap_or_default().to_string_lossy();
    Ok(line.trim().replace(&*binary.to_string_lossy(), &name))
}

/// Runs a program that answers and ends: success, standard output, standard error.
pub(super) fn answer(mut command: Command) -> Result<(bool, String, String), String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let (mut output, mut errors) = (child.stdout.take(), child.stderr.take());
    let begun = Instant::now();
    // Answers are far shorter than a pipe holds, so the program never waits for us to read.
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begun.elapsed() < PATIENCE => {}
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("no answer within {} s", PATIENCE.as_secs()));
            }
            Err(error) => return Err(error.to_string()),
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let mut texts = [String::new(), String::new()];
    read_some(output.as_mut(), &mut texts[0]);
    read_some(errors.as_mut(), &mut texts[1]);
    let [output, errors] = texts;
    Ok((status.success(), output, errors))
}

fn read_some(pipe: Option<impl Read>, text: &mut String) {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // Whatever came before an error is all there is to show.
        let _ = pipe.take(ANSWER).read_to_end(&mut bytes);
    }
    text.push_str(&String::from_utf8_lossy(&bytes));
}

/// The DBMS and the version in a server's words; `None` if they are no server's.
///
/// `postgres (PostgreSQL) 17.2`, `mysqld  Ver 8.0.33 for Linux on x86_64 (MySQL Community …)`,
/// `mariadbd  Ver 11.4.5-MariaDB for Linux …`.
pub(super) fn parse_reported(reported: &str) -> Option<(Dbms, Version)> {
    if let Some((_, rest)) = reported.split_once("(PostgreSQL) ") {
        let version = rest.split_whitespace().next()?;
        return Some((Dbms::Postgres, Version::new(version)));
    }
    let (_, rest) = reported.split_once(" Ver ")?;
    let word = rest.split_whitespace().next()?;
    let version = word.split('-').next().filter(|text| !text.is_empty())?;
    let mariadb = reported.to_lowercase().contains("mariadb");
    let mysql = reported.contains("MySQL") || reported.starts_with("mysqld");
    match (mariadb, mysql || reported.contains("Percona")) {
        (true, _) => Some((Dbms::Mariadb, Version::new(version))),
        (false, true) => Some((Dbms::Mysql, Version::new(version))),
        (false, false) => None,
    }
}

/// SHA-256 of a file, hexadecimal.
pub(super) fn sha256(path: &Path, progress: &mut Progress<'_>) -> Result<String, Reason> {
    let mut file = File::open(path).map_err(Reason::io("open", path))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    loop {
        match file.read(&mut buffer).map_err(Reason::io("read", path))? {
            0 => break,
            count => hash.update(&buffer[..count]),
        }
        progress.tick(|| format!("checksumming {name}"))?;
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The compiler of a binary, if it tells.
pub(super) fn compiler(_binary: &Path) -> Option<String> {
    None
}
