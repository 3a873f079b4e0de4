//! Reads the version of a binary.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::debian::ASIDE;
use crate::elf;
use crate::error::Reason;
use crate::libraries;
use crate::progress::Progress;
use rqps_dbms::spec::{self, DbmsSpec};
use rqps_host::{child, command_output};
use rqps_model::bounded;
use rqps_model::build::{Dbms, Version};
use rqps_model::units;

/// A program of a build, which runs as the unprivileged user and sees no variables.
fn stranger(program: &Path) -> Result<Command, Reason> {
    let other = |error| Reason::io("start", program)(std::io::Error::other(error));
    child::stranger(program).map_err(other)
}

/// The words that a server binary prints of itself, on one line, without the binary's folder. If
/// it does not start, the error says what it lacks.
pub(super) fn reported(binary: &Path, dbms: Dbms) -> Result<String, Reason> {
    let mut command = stranger(binary)?;
    command.args(spec::of(dbms).and_then(DbmsSpec::server).map_or(&[][..], |s| s.version_args));
    command.arg("--version");
    let answer = command_output::run_stranger(command)
        .map_err(|error| diagnosed(binary, error.to_string()))?;
    if !answer.success() {
        return Err(diagnosed(binary, answer.complaint()));
    }
    let mut lines = answer.output.lines().map(str::trim);
    let line = lines.find(|line| !line.is_empty()).unwrap_or_default();
    Ok(without_folder(line))
}

/// The first word of a line without the folder in it, and without what [`ASIDE`] adds.
fn without_folder(line: &str) -> String {
    let (first, rest) = line.split_at(line.find(char::is_whitespace).unwrap_or(line.len()));
    let name = first.rsplit('/').next().unwrap_or(first);
    format!("{}{rest}", name.strip_suffix(ASIDE).unwrap_or(name))
}

/// Checks whether the loader finds the dependencies of a shared library.
pub(super) fn loadable(library: &Path) -> Result<(), Reason> {
    let missing = libraries::missing(library);
    if missing.is_empty() {
        return Ok(());
    }
    Err(missing_libraries(library, &missing))
}

/// The reason why a program did not start.
fn diagnosed(binary: &Path, said: String) -> Reason {
    let missing = libraries::missing(binary);
    if !missing.is_empty() {
        return missing_libraries(binary, &missing);
    }
    // The loader's words: version `GLIBC_2.34' not found (required by …).
    if said.contains("GLIBC") && said.contains("not found") {
        return Reason::Build(format!(
            "{} needs newer system libraries than this host has: {said}; run it on a newer host, \
             or build it on this one and name the tree with DBMS=PATH",
            binary.display()
        ));
    }
    unrunnable(binary, &said)
}

pub(super) fn unrunnable(binary: &Path, said: &str) -> Reason {
    Reason::Build(format!("{} does not report its version: {said}", binary.display()))
}

fn missing_libraries(program: &Path, missing: &[(String, String)]) -> Reason {
    let list: Vec<String> =
        missing.iter().map(|(library, advice)| format!("{library} ({advice})")).collect();
    let word = if missing.len() == 1 { "a shared library" } else { "shared libraries" };
    let (program, list) = (program.file_name().unwrap_or_default(), list.join(", "));
    let program = program.to_string_lossy();
    Reason::Build(format!("{program} needs {word} that this host lacks: {list}"))
}

/// The DBMS and the version in a server's words; `None` if they are no server's.
pub(super) fn parse_reported(reported: &str) -> Option<(Dbms, Version)> {
    spec::ALL.iter().find_map(|spec| {
        let version = (spec.server()?.reported)(reported)?;
        Some((spec.dbms, version))
    })
}

/// SHA-256 of a file, hexadecimal.
pub(super) fn sha256(path: &Path, progress: &mut Progress<'_>) -> Result<String, Reason> {
    let mut file = bounded::plain(path).map_err(Reason::io("open", path))?;
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
    Ok(units::hex(&hash.finalize()))
}

/// The compilers of a binary as its `.comment` section names them, if it has one.
pub(super) fn compiler(binary: &Path) -> Option<String> {
    // The compiler is good to know, and no reason to refuse a build that runs.
    let mut aside = binary.as_os_str().to_owned();
    aside.push(ASIDE);
    let aside = PathBuf::from(aside);
    let comments = elf::comments(if aside.is_file() { &aside } else { binary }).ok()?;
    // Libraries that are linked in may leave a note of their own there.
    let names = ["GCC", "clang", "LLD", "rustc"];
    let is_compiler = |text: &String| names.iter().any(|name| text.contains(name));
    let compilers: Vec<String> = comments.into_iter().filter(is_compiler).collect();
    (!compilers.is_empty()).then(|| compilers.join("; "))
}

/// True if a binary that calls itself `found` may be the version that was asked for: the numbers
/// that both have are the same. Packages may add numbers of their own.
pub(super) fn agrees(dbms: Dbms, asked: &Version, found: &Version) -> bool {
    let own = spec::of(dbms).map_or(3, |spec| (spec.numbering.own)(asked));
    let (asked, found) = (asked.numbers(), found.numbers());
    !found.is_empty() && asked.iter().zip(&found).take(own).all(|(asked, found)| asked == found)
}

/// Old versions of MySQL set up their data folder with a script of Perl: that Perl and its modules
/// are here, is asked by having it compile the script.
pub(super) fn script_runs(root: &Path) -> Result<(), Reason> {
    let script = root.join("scripts/mysql_install_db");
    let Ok(bytes) = std::fs::read(&script) else { return Ok(()) };
    let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if !String::from_utf8_lossy(first).contains("perl") {
        return Ok(());
    }
    // `BEGIN` blocks run, although the script is only compiled.
    let mut command = stranger(Path::new("perl"))?;
    command.arg("-c").arg(&script);
    let said = match command_output::run_stranger(command) {
        Ok(answer) if answer.success() => return Ok(()),
        Ok(answer) => answer.complaint(),
        Err(error) => error.to_string(),
    };
    let purpose = format!("to run {}", script.display());
    Err(Reason::missing_program("perl", &purpose, said, "the Debian package perl"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(reported: &str, expected: Option<(Dbms, &str)>) {
        let found = parse_reported(reported);
        let found = found.as_ref().map(|(dbms, version)| (*dbms, version.as_str()));
        assert_eq!(found, expected, "{reported}");
    }

    #[test]
    fn servers_are_told_by_their_words() {
        check("postgres (PostgreSQL) 17.2", Some((Dbms::Postgres, "17.2")));
        check("postgres (PostgreSQL) 15.13 (Debian 15.13-1)", Some((Dbms::Postgres, "15.13")));
        check("postgres (PostgreSQL) 18beta2", Some((Dbms::Postgres, "18beta2")));
        let mysql = "mysqld  Ver 8.0.33 for Linux on x86_64 (MySQL Community Server - GPL)";
        check(mysql, Some((Dbms::Mysql, "8.0.33")));
        let old = "mysqld  Ver 5.6.14-log for linux-glibc2.5 on x86_64 (MySQL Community Server)";
        check(old, Some((Dbms::Mysql, "5.6.14")));
        let percona = "mysqld  Ver 8.0.35-27 for Linux on x86_64 (Percona Server (GPL))";
        check(percona, Some((Dbms::Mysql, "8.0.35")));
        let mariadb = "mariadbd  Ver 11.4.5-MariaDB for Linux on x86_64 (MariaDB Server)";
        check(mariadb, Some((Dbms::Mariadb, "11.4.5")));
        let named_mysqld = "mysqld  Ver 10.1.23-MariaDB for Linux on x86_64 (MariaDB Server)";
        check(named_mysqld, Some((Dbms::Mariadb, "10.1.23")));
        check("perl 5.36.0", None);
        check("nginx  Ver ", None);
        check("", None);
    }

    #[test]
    fn versions_agree_in_the_numbers_that_are_the_dbms_own() {
        let check = |dbms, asked: &str, found: &str| {
            agrees(dbms, &Version::new(asked), &Version::new(found))
        };
        assert!(check(Dbms::Postgres, "17.2.0", "17.2"));
        assert!(check(Dbms::Postgres, "11.22.1", "11.22"));
        assert!(check(Dbms::Postgres, "9.6.24", "9.6.24"));
        assert!(check(Dbms::Mysql, "8.0.33.1", "8.0.33"));
        assert!(!check(Dbms::Postgres, "17.2.0", "17.3"));
        assert!(!check(Dbms::Postgres, "9.6.24", "9.6.23"));
        assert!(!check(Dbms::Mariadb, "10.11.5", "10.1.23"));
        assert!(!check(Dbms::Mysql, "8.0.33", "beta"));
    }
}
