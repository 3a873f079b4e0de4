//! Background work of a server, from its log: checkpoints, vacuum, flushing.

use rqps_model::run::ServerEvent;

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
