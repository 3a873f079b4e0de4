//! Traces, through the whole program: made of a server's own log, replayed on real servers to the same
//! end state, and refused where they are damaged.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::support::program::{rqps_in, said, steps, text, turn};
use crate::support::{builds, skipped};

/// Sessions of the trace.
const SESSIONS: u32 = 8;

/// Changes by each session.
const CHANGES: u32 = 5;

const SCHEMA: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, v BIGINT NOT NULL);\n\
                      INSERT INTO t VALUES (1, 0), (2, 0);\n";

/// A trace of sessions that change one row in turns. What they do does not commute, so the row tells the
/// order; at the end, a statement fails unless the rows are what that order makes of them.
fn trace(dialect: &str) -> String {
    let mut lines = vec![format!(
        r#"{{"trace":{{"version":1,"dialect":"{dialect}","precision_ms":0.001,"hashed":false}}}}"#
    )];
    let (mut texts, mut count, mut at, mut value) = (0, 0, 0.0, 0_i64);
    let mut add = |session: u32, text: String, values: &str| {
        texts += 1;
        count += 1;
        at += 1.0;
        lines.push(format!(r#"{{"text":"{text}"}}"#));
        let sent = format!(r#""session":{session},"at":{at},"ms":0.5,"text":{texts}{values}"#);
        lines.push(format!("{{\"sent\":{{{sent}}}}}"));
    };
    for change in 0..CHANGES {
        for session in 1..=SESSIONS {
            let own = i64::from(change * SESSIONS + session);
            value = (value * 2 + own) % 1_000_003;
            let update =
                |own: &str| format!("UPDATE t SET v = (v * 2 + {own}) % 1000003 WHERE id = 1");
            if dialect == "postgres" {
                add(session, "BEGIN".to_owned(), "");
                let values = format!(r#","values":["{own}"],"prepared":{}"#, session % 2 == 0);
                add(session, update("$1::bigint"), &values);
                add(session, "COMMIT".to_owned(), "");
            } else {
                add(session, update(&own.to_string()), "");
            }
            add(session, "SELECT count(*) FROM t WHERE v >= 0".to_owned(), r#","rows":1"#);
        }
    }
    let is_so = format!("(SELECT v FROM t WHERE id = 1) = {value}");
    add(1, format!("INSERT INTO t SELECT CASE WHEN {is_so} THEN 3 ELSE 1 END, 0"), "");
    lines.push(format!(r#"{{"end":{{"statements":{count}}}}}"#));
    lines.join("\n") + "\n"
}

fn compare(folder: &Path, targets: &[&str], more: &[&str]) -> Output {
    let mut command = rqps_in(&["compare", "--bench", "trace:shop.trace,schema.sql"], folder);
    let short = ["--canaries", "off", "--blocks", "2", "--out", "out"];
    command.args(targets).args(short).args(more).output().unwrap()
}

fn check_replay(test: &str, dialect: &str, targets: [&str; 2]) {
    let _turn = turn();
    if let Err(why) = builds::roots("", &[targets[1]]) {
        return skipped::note(test, &why);
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("schema.sql"), SCHEMA).unwrap();
    fs::write(folder.path().join("shop.trace"), trace(dialect)).unwrap();
    let output =
        compare(folder.path(), &[&format!("a={}", targets[0]), &format!("b={}", targets[1])], &[]);
    assert!(output.status.success(), "{}", said(&output));
    let report = text(&output.stdout);
    assert!(report.contains("replay.write-") && report.contains("replay.read-"), "{report}");
    let each = if dialect == "postgres" { 4 } else { 2 };
    let all = u64::from(SESSIONS * CHANGES) * each + 1;
    for label in ["a", "b"] {
        let steps = steps(&folder.path().join("out"), label);
        let [.., step] = steps.as_slice() else { panic!("{steps:?}") };
        let outcome = &step["outcome"];
        assert_eq!(outcome["statements"].as_u64(), Some(all), "{outcome}");
        // Every error and every other number of rows would be a note, and so would the wrong order.
        assert_eq!(outcome["notes"], serde_json::json!([]), "{outcome}");
        // BEGIN and COMMIT are no writes.
        assert_eq!(outcome["no_ops"].as_u64().unwrap_or(0), 0, "{outcome}");
        let reads = if dialect == "postgres" { "read-04" } else { "read-02" };
        assert_eq!(outcome["roles"][reads]["rows"].as_u64(), Some(40), "{outcome}");
    }
}

#[test]
fn eight_sessions_end_in_the_recorded_state_on_two_versions_of_postgres() {
    let test = "eight_sessions_end_in_the_recorded_state_on_two_versions_of_postgres";
    check_replay(test, "postgres", ["postgres@16.10.0", "postgres@17.6.0"]);
}

#[test]
fn eight_sessions_end_in_the_recorded_state_on_mysql() {
    let test = "eight_sessions_end_in_the_recorded_state_on_mysql";
    check_replay(test, "mysql", ["mysql@8.0.33", "mysql@8.0.33"]);
}

#[test]
fn a_damaged_trace_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shop.trace");
    fs::write(folder.path().join("schema.sql"), SCHEMA).unwrap();
    let whole = trace("postgres");
    let check = |content: &str, parts: &[&str]| {
        fs::write(&path, content).unwrap();
        let output = compare(folder.path(), &["postgres@17.6.0"], &[]);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        assert!(!folder.path().join("out").exists());
    };
    check(&whole[..whole.len() - 30], &["shop.trace", "line", "hint"]);
    check(&whole.replace("\"version\":1", "\"version\":7"), &["line 1", "version 7", "hint"]);
    check(&whole.replace("\"text\":3}", "\"text\":3000000}"), &["none of the", "hint"]);
    check("", &["it is empty"]);
    fs::write(&path, &whole).unwrap();
    let output = compare(folder.path(), &["sqlite"], &[]);
    assert!(said(&output).contains("which is of Postgres or MySQL"), "{}", said(&output));
    let output = compare(folder.path(), &["postgres@17.6.0"], &["--set", "order=any"]);
    assert!(said(&output).contains("must be recorded or free"), "{}", said(&output));
}

#[test]
fn a_trace_is_made_of_a_log_and_hides_values() {
    let folder = tempfile::tempdir().unwrap();
    let log = "2026-11-27 10:00:00.000 UTC [7] LOG:  duration: 1.000 ms  statement: SELECT 'Ada'\n\
               2026-11-27 10:00:01.000 UTC [7] LOG:  duration: 1.000 ms  statement: COPY t FROM stdin\n";
    fs::write(folder.path().join("server.log"), log).unwrap();
    let record = |words: &str| {
        let words = format!("record --dbms postgres --log server.log {words}");
        rqps_in(&words.split(' ').collect::<Vec<_>>(), folder.path()).output().unwrap()
    };
    let output = record("-o shop.trace");
    assert!(
        said(&output).contains("left out 1: COPY: its rows are in no log"),
        "{}",
        said(&output)
    );
    let made = fs::read_to_string(folder.path().join("shop.trace")).unwrap();
    assert!(made.contains(r#"{"text":"SELECT 'Ada'"}"#), "{made}");
    let output = record("-o hidden.trace --hash-values");
    assert!(output.status.success(), "{}", said(&output));
    let made = fs::read_to_string(folder.path().join("hidden.trace")).unwrap();
    assert!(!made.contains("Ada") && made.contains("\"hashed\":true"), "{made}");
    // It never writes over a file.
    assert_eq!(record("-o shop.trace").status.code(), Some(2));
    fs::write(folder.path().join("server.log"), "hello\n").unwrap();
    let output = record("-o none.trace");
    assert!(said(&output).contains("log_min_duration_statement"), "{}", said(&output));
    // A part of a trace would be in the way of the next try.
    assert!(!folder.path().join("none.trace").exists());
}
