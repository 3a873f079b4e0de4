//! The last lines of a server's log, and what they tell.

use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use rqps_host::beneath;
use rqps_model::run::ServerEvent;

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
    let text = beneath::end(path, start, TAIL_BYTES).unwrap_or_default();
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
    let Ok(mut file) = beneath::open(path) else { return false };
    let is_there = file.seek(SeekFrom::Start(start)).is_ok();
    let mut lines = BufReader::new(file.take(SEARCHED_BYTES)).split(b'\n').map_while(Result::ok);
    is_there && lines.any(|line| String::from_utf8_lossy(&line).contains(words))
}

/// Meanings of messages of servers, each with messages below it in lower case. The first match
/// counts.
const MEANINGS: &str = include_str!("meanings.txt");

fn hint(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    let meanings = MEANINGS.split("\n\n").filter_map(|part| part.split_once('\n'));
    let mut found = meanings.filter(|(_, said)| said.lines().any(|words| text.contains(words)));
    found.next().map(|(meaning, _)| meaning)
}

// Background work of a server, from its log: checkpoints, vacuum, flushing.

/// Words of a log line, in small letters, and what they are about. The first that fits counts.
const KINDS: [(&str, &str); 8] = [
    ("checkpoint starting", "checkpoint"),
    ("checkpoint complete", "checkpoint"),
    ("checkpoints are occurring too frequently", "checkpoint"),
    ("automatic vacuum", "vacuum"),
    ("automatic aggressive vacuum", "vacuum"),
    ("automatic analyze", "analyze"),
    ("page_cleaner", "flush"),
    ("difficult to find free blocks", "flush"),
];

/// Longest text that is kept of a line.
const TEXT_MAX: usize = 200;

/// Events of `log`, a part of the log of a Postgres, MySQL or MariaDB that runs in UTC, dated from
/// `start`, in Unix seconds. Lines without a date belong to the one before.
pub fn events(log: &str, start: f64) -> Vec<ServerEvent> {
    let mut events: Vec<ServerEvent> = Vec::new();
    let mut open = false;
    for line in log.lines() {
        match dated(line) {
            Some((at, rest)) => {
                let kind = kind_of(rest);
                open = kind.is_some();
                if let Some(kind) = kind {
                    events.push(ServerEvent {
                        at_seconds: ((at - start) * 1000.0).round() / 1000.0,
                        took_seconds: took(rest),
                        kind: kind.to_owned(),
                        text: words(rest),
                    });
                }
            }
            // `system usage: … elapsed: 0.53 s` of a vacuum comes lines after its head.
            None if open => {
                if let Some(event) = events.last_mut() {
                    event.took_seconds = event.took_seconds.or_else(|| took(line));
                }
            }
            None => {}
        }
    }
    events
}

/// Unix seconds of the date at the beginning of a line, and what follows it.
fn dated(line: &str) -> Option<(f64, &str)> {
    let text = line.get(..19)?;
    let text = text.replacen(' ', "T", 1);
    let civil: jiff::civil::DateTime = text.parse().ok()?;
    let seconds = civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second();
    let rest = &line[19..];
    let digits = rest
        .strip_prefix('.')
        .map_or(0, |fraction| fraction.bytes().take_while(u8::is_ascii_digit).count());
    let fraction: f64 = format!("0.{}", rest.get(1..=digits).unwrap_or("0")).parse().ok()?;
    let rest = if digits > 0 { &rest[digits + 1..] } else { rest };
    Some((seconds as f64 + fraction, rest))
}

fn kind_of(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    KINDS.iter().find(|(words, _)| text.contains(words)).map(|(_, kind)| *kind)
}

/// `total=0.539 s`, `elapsed: 0.53 s`, `loop took 4321ms`.
fn took(text: &str) -> Option<f64> {
    let number = |after: &str| {
        let rest = &text[text.find(after)? + after.len()..];
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest[..end].parse::<f64>().ok()
    };
    number("total=")
        .or_else(|| number("elapsed: "))
        .or_else(|| number("loop took ").map(|milliseconds| milliseconds / 1e3))
}

/// The line without zone, process and level.
fn words(rest: &str) -> String {
    let from = ["LOG:  ", "[Note] ", "[Warning] ", "[ERROR] "]
        .iter()
        .find_map(|level| rest.find(level).map(|at| at + level.len()))
        .unwrap_or(0);
    rest[from..].trim().chars().take(TEXT_MAX).collect()
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

    /// 2026-11-20 14:50:00 UTC.
    const START: f64 = 1_795_186_200.0;

    fn check(line: &str, at: f64, kind: &str, took: Option<f64>) {
        let events = events(line, START);
        assert_eq!(events.len(), 1, "{line}");
        assert_eq!((events[0].at_seconds, events[0].kind.as_str()), (at, kind), "{line}");
        assert_eq!(events[0].took_seconds, took, "{line}");
    }

    #[test]
    fn lines_of_every_server_are_dated() {
        check(
            "2026-11-20 14:50:02.125 UTC [77] LOG:  checkpoint complete: wrote 47 buffers (0.1%); \
             write=4.510 s, sync=0.013 s, total=4.539 s; sync files=40",
            2.125,
            "checkpoint",
            Some(4.539),
        );
        check(
            "2026-11-20T14:50:03.500000Z 0 [Note] [MY-011953] [InnoDB] Page cleaner took: \
             page_cleaner: 1000ms intended loop took 4321ms",
            3.5,
            "flush",
            Some(4.321),
        );
        check("2026-11-20 14:49:59 7f1 [Note] InnoDB: page_cleaner: slow", -1.0, "flush", None);
    }

    #[test]
    fn a_vacuum_ends_with_its_usage() {
        let log = "2026-11-20 14:50:10.000 UTC [9] LOG:  automatic vacuum of table \
                   \"rqps.public.pi1\": index scans: 1\n\tpages: 0 removed\n\tsystem usage: CPU: \
                   user: 0.1 s, elapsed: 0.53 s\n2026-11-20 14:50:11.000 UTC [9] LOG:  other\n\
                   \telapsed: 9 s\n";
        let events = events(log, START);
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].took_seconds, Some(0.53));
        assert!(events[0].text.starts_with("automatic vacuum of table"), "{}", events[0].text);
    }

    #[test]
    fn other_lines_are_no_events() {
        assert_eq!(events("ready for connections\n2026-11-20 x\n\nä", START), []);
        assert_eq!(events("2026-11-20 14:50:02 0 [Note] ready for connections", START), []);
    }
}
