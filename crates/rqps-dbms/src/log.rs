//! The last lines of a server's log, and what they tell.

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use rqps_host::plain;

/// Lines shown of a log.
const TAIL_LINES: usize = 15;

/// Most of the lines that may be earlier errors.
const ERROR_LINES: usize = 5;

/// Bytes of a log in which words are searched.
const SEARCHED_BYTES: u64 = 64 << 20;

/// Bytes read from the end of a log.
const TAIL_BYTES: u64 = 16 << 10;

/// The end of a failed server's log, to be appended to an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    /// The last lines with a heading; begins with a line break, unless there is no log.
    pub(super) tail: String,
    /// A hint; begins with a line break, and is empty if the log has no known message.
    pub(super) hint: String,
}

/// Reads the end of `path` from byte `start` on: older lines are of an earlier start.
pub(super) fn read(path: &Path, start: u64) -> Words {
    let text = plain::end(path, start, TAIL_BYTES).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let tail = if lines.is_empty() {
        format!("; its log {} is empty", path.display())
    } else {
        format!("; the last lines of {}:{}", path.display(), quote(&lines))
    };
    Words { tail, hint: hint(&text).map(|hint| format!("\n{hint}")).unwrap_or_default() }
}

/// The last lines, and those before them that tell of errors: some servers say a lot after the
/// decisive word. A gap is shown as dots.
fn quote(lines: &[&str]) -> String {
    let tells_error =
        |line: &&str| ["[ERROR]", "FATAL", "PANIC", "rror:"].iter().any(|word| line.contains(word));
    let last = lines.len().saturating_sub(TAIL_LINES);
    let earlier: Vec<usize> = (0..last).rev().filter(|at| tells_error(&lines[*at])).collect();
    let earlier = &earlier[..earlier.len().min(ERROR_LINES)];
    // Errors take the place of the oldest of the last lines.
    let shown = earlier.iter().rev().copied().chain(last + earlier.len()..lines.len());
    let mut text = String::new();
    let mut next = None;
    for at in shown {
        if next.is_some_and(|next| next != at) {
            text.push_str("\n  | ...");
        }
        text.push_str("\n  | ");
        text.push_str(lines[at]);
        next = Some(at + 1);
    }
    text
}

/// The size of a log before something is appended to it.
pub(super) fn end(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |facts| facts.len())
}

/// True if a line from byte `start` on holds the words.
pub(super) fn says(path: &Path, start: u64, words: &str) -> bool {
    let Ok(mut file) = plain::open(path) else { return false };
    let is_there = file.seek(SeekFrom::Start(start)).is_ok();
    let mut lines = BufReader::new(file.take(SEARCHED_BYTES)).split(b'\n').map_while(Result::ok);
    is_there && lines.any(|line| String::from_utf8_lossy(&line).contains(words))
}

/// Messages of servers in lower case, and their meanings. The first match counts.
const MEANINGS: [(&[&str], &str); 7] = [
    (
        &[
            "no space left on device",
            "disk is full",
            "disk full",
            "errcode: 28",
            "error number 28",
            "os error 28",
            "with error 28",
            // MySQL 5.6, only after a write that was cut short.
            "also check that the disk is not full",
        ],
        "The disk is full: free some space or choose another place for data folders.",
    ),
    (
        &["error while loading shared libraries", "cannot open shared object file"],
        "The system lacks a library that this build needs: install its package (on Debian: \
         libaio1, libnuma1, libncurses5 …; `apt-file search NAME` finds it).",
    ),
    (
        &[
            "unrecognized configuration parameter",
            "unknown variable",
            "unknown option",
            "ambiguous option",
            "invalid value for parameter",
            "requires a numeric value",
            "requires a boolean value",
            "syntax error in file",
            "found option without preceding group",
            "unknown suffix",
            "outside the valid range",
        ],
        "This version does not know a setting, or rejects its value: correct the config, or guard \
         its line with `# since VERSION` or `# until VERSION`.",
    ),
    (
        &["address already in use", "another mysqld server running on port", "bind on tcp/ip port"],
        "Another server uses the port or socket: stop it or choose another port.",
    ),
    (
        &[
            "lock file \"",
            "unable to lock ./ibdata1",
            "pre-existing shared memory block",
            "can't lock aria control file",
        ],
        "Another server uses this data folder: stop it first.",
    ),
    (
        &["cannot allocate memory", "could not map anonymous shared memory", "out of memory"],
        "Memory is too small for the requested caches: choose a smaller cache size.",
    ),
    (
        &["permission denied", "errcode: 13"],
        "The server's user may not access a file: see its name in the log.",
    ),
];

fn hint(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    let found = MEANINGS.iter().find(|(said, _)| said.iter().any(|words| text.contains(words)));
    found.map(|(_, meaning)| *meaning)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_words_have_a_meaning() {
        let check = |text: &str, wanted: Option<&str>| match (hint(text), wanted) {
            (None, None) => {}
            (Some(found), Some(wanted)) => assert!(found.contains(wanted), "{text}: {found}"),
            (found, _) => panic!("{text}: {found:?}"),
        };
        // Each line is what a server really said.
        check("FATAL:  could not write lock file: No space left on device", Some("disk is full"));
        check("[ERROR] /x/mysqld: Disk full (/tmp/MLfd=1); waiting", Some("disk is full"));
        check(
            "[ERROR] InnoDB: preallocating 268435456 bytes failed with error 28",
            Some("is full"),
        );
        check("[ERROR] mysqld: unknown variable 'innodb_foo=1'", Some("does not know a setting"));
        check(
            "LOG:  unrecognized configuration parameter \"x\" in file",
            Some("does not know a setting"),
        );
        check("LOG:  could not bind IPv4 address: Address already in use", Some("uses the port"));
        check("InnoDB: Unable to lock ./ibdata1, error: 11", Some("Another server"));
        check("FATAL:  lock file \"postmaster.pid\" already exists", Some("Another server"));
        check("mysqld: error while loading shared libraries: libaio.so.1", Some("lacks a library"));
        check("Shutdown complete", None);
    }

    #[test]
    fn words_of_an_earlier_start_are_not_of_this_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "LOG:  terminating any other processes\nLOG:  ready\n").unwrap();
        assert!(says(&path, 0, "terminating any other") && !says(&path, 30, "terminating any"));
        assert!(!says(&path, 0, "processes\nLOG") && !says(&folder.path().join("x"), 0, ""));
    }

    #[test]
    fn an_error_before_a_long_farewell_is_shown() {
        let mut lines = vec!["ready", "[ERROR] unknown variable 'x'", "[ERROR] Aborting"];
        lines.extend(["[Note] Shutting down plugin"; 30]);
        let shown = quote(&lines);
        assert_eq!(shown.matches("\n  | ").count(), TAIL_LINES + 1, "{shown}");
        let head = "\n  | [ERROR] unknown variable 'x'\n  | [ERROR] Aborting\n  | ...\n";
        assert!(shown.starts_with(head), "{shown}");
        assert_eq!(quote(&["[ERROR] a", "b"]), "\n  | [ERROR] a\n  | b");
    }

    #[test]
    fn only_the_last_lines_of_this_start_are_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.log");
        std::fs::write(&path, "of an earlier start\n").unwrap();
        let start = end(&path);
        let mut all = std::fs::read_to_string(&path).unwrap();
        for line in 1..=20 {
            all.push_str(&format!("line {line}\n\n"));
        }
        std::fs::write(&path, all).unwrap();
        let words = read(&path, start);
        assert!(words.tail.ends_with("\n  | line 20"), "{}", words.tail);
        assert!(words.tail.contains("\n  | line 6\n"), "{}", words.tail);
        assert!(!words.tail.contains("| line 5\n"), "{}", words.tail);
        assert_eq!(words.hint, "");
        std::fs::write(&path, "of an earlier start\n").unwrap();
        assert!(read(&path, start).tail.ends_with("is empty"));
        assert!(read(&folder.path().join("none"), 0).tail.ends_with("none is empty"));
    }
}
