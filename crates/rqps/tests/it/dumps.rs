//! A database of Postgres goes by the real pg_dump into builds of two versions: NULLs, arrays,
//! JSON, bytes and texts arrive as they were, values of these types find their rows, and a
//! statement that one version does not know fails its step there alone.

// The lints know tests by their attribute; what they share has none.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use crate::support::{builds, program, skipped};
use std::fs;
use std::process::{Command, Output};

use crate::support::program::{SHORT, rqps_in, said, steps};
use crate::support::theirs::Theirs;
use rqps_model::build::Dbms;

/// Statements that make the dumped database, with the kinds of objects that dumps have besides
/// rows.
const DATABASE: [&str; 7] = [
    "CREATE TABLE thing (id serial PRIMARY KEY, name text, tags text[], facts jsonb, raw bytea, \
     amount numeric(10,2), twice numeric GENERATED ALWAYS AS (amount * 2) STORED)",
    "INSERT INTO thing (name, tags, facts, raw, amount) SELECT \
     CASE WHEN i % 7 = 0 THEN NULL ELSE E'n\u{e4}me\t\\\\' || i || ' \"q\" ''s'' \u{1f600}\n' END, \
     ARRAY['a' || i, NULL, 'x,\"y\"'], jsonb_build_object('k', i, 'none', null, 'line', E'a\nb'), \
     decode(md5(i::text), 'hex'), i * 1.25 FROM generate_series(1, 1000) AS i",
    "CREATE INDEX thing_by_name ON thing (name)",
    "CREATE VIEW named AS SELECT id FROM thing WHERE name IS NOT NULL",
    "CREATE FUNCTION plus(n int) RETURNS int LANGUAGE plpgsql AS $f$ BEGIN RETURN n + 1; END; $f$",
    "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS \
     $f$ BEGIN NEW.name := 'a;b'; RETURN NEW; END; $f$",
    "CREATE TRIGGER kept BEFORE UPDATE ON thing FOR EACH ROW EXECUTE FUNCTION keep()",
];

const SUM: &str = "SELECT md5(string_agg(t::text, '|' ORDER BY id)) FROM thing t";

/// A workload on the dump; SUM is the checksum of its origin.
const WORKLOAD: &str = r#"
[load]
schema = ["dump.sql"]

[parameter]
tag  = { kind = "list", values = ["a1", "a500", "a1000"] }
fact = { kind = "list", values = ['{"k": 1}', '{"k": 500, "none": null}'], type = "jsonb" }
raw  = { kind = "list", values = ['\xc4ca4238a0b923820dcc509a6f75849b'], type = "bytea" }
none = { kind = "list", values = ["x"], null = 1.0, type = "text" }
tags = { kind = "list", values = ['{a7,NULL,"x,\"y\""}'], type = "text[]" }

[[step]]
name = "same"
[[step.event]]
[[step.event.statement]]
sql = "SELECT 1 WHERE (@SUM@) = '@WANTED@' AND plus(1) = 2 AND (SELECT count(*) FROM named) = 858"
expect.rows = 1

[[step]]
name = "types"
[[step.event]]
[[step.event.statement]]
sql = "SELECT id FROM thing WHERE :tag = ANY (tags)"
expect.rows = 1
[[step.event.statement]]
sql = "SELECT id FROM thing WHERE facts @> :fact"
expect.rows = 1
[[step.event.statement]]
sql = "SELECT id FROM thing WHERE raw = :raw"
expect.rows = 1
[[step.event.statement]]
sql = "SELECT id FROM thing WHERE tags = :tags AND :none IS NULL"
expect.rows = 1
[[step.event.statement]]
protocol = "text"
sql = "SELECT id FROM thing WHERE tags = :tags AND :none IS NULL AND raw <> :raw AND facts ? 'k'"
expect.rows = 1

[[step]]
name = "newer"
[[step.event]]
[[step.event.statement]]
sql = "SELECT any_value(id) FROM thing"
"#;

/// Dumps the database of a server.
fn dump(server: &Theirs) -> Result<Vec<u8>, String> {
    let mut command = Command::new("pg_dump");
    let socket = server.socket();
    command.arg("-h").arg(socket.parent().unwrap()).arg("-p").arg(socket.extension().unwrap());
    command.args(["-U", &server.login.user, &server.login.database]);
    let Output { status, stdout, stderr } = command.output().map_err(|error| error.to_string())?;
    if status.success() { Ok(stdout) } else { Err(program::text(&stderr)) }
}

#[test]
fn a_dump_of_an_old_version_is_the_same_database_on_both() {
    let test = "a_dump_of_an_old_version_is_the_same_database_on_both";
    if let Err(why) = builds::roots("", &["postgres@17.2.0"]) {
        return skipped::note(test, &why);
    }
    let Some(server) = Theirs::start(test, "postgres@12.22.0", Dbms::Postgres) else { return };
    server.owner(&DATABASE);
    let sum = server.owner_rows(SUM).remove(0).remove(0).unwrap();
    let dumped = match dump(&server) {
        Ok(dumped) => dumped,
        Err(why) => return skipped::note(test, &format!("no pg_dump for version 12: {why}")),
    };
    let folder = server.folder.path();
    fs::write(folder.join("dump.sql"), dumped).unwrap();
    let workload = WORKLOAD.replace("@SUM@", SUM).replace("@WANTED@", &sum);
    fs::write(folder.join("things.toml"), workload).unwrap();
    let words = ["compare", "old=postgres@12.22.0", "new=postgres@17.2.0", "--bench"];
    let mut command = rqps_in(&words, folder);
    let output = command.arg("sql:things.toml").args(SHORT).output().unwrap();
    let words = said(&output);
    assert!(words.contains("old: 1,000 rows loaded"), "{words}");
    let status = |label: &str| -> Vec<String> {
        let all = steps(&folder.join("out"), label).into_iter();
        all.map(|step| format!("{}: {}", step["name"], step["status"])).collect()
    };
    let (old, new) = (status("old"), status("new"));
    let complete = ["same", "types", "newer"].map(|name| format!("\"{name}\": \"complete\""));
    assert_eq!(new, complete, "{words}");
    assert_eq!(old[..2], complete[..2], "{words}");
    let unknown = "function any_value(integer) does not exist";
    assert!(old[2].contains("failed") && old[2].contains(unknown), "{old:?}");
    // A finding of the comparison, with the server's words.
    let report = program::text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(report.contains("newer") && report.contains(unknown), "{report}");
}

/// A script for the client of MySQL: it makes its database, which a view and a procedure spell.
const SCRIPT: &str = "\
DROP SCHEMA IF EXISTS rental;
CREATE SCHEMA rental DEFAULT CHARACTER SET utf8mb4;
USE rental;
CREATE TABLE film (id INT PRIMARY KEY, title VARCHAR(40));
INSERT INTO film VALUES (1, 'one'), (2, 'two');
CREATE VIEW titles AS SELECT rental.film.title FROM rental.film;
DELIMITER $$
CREATE PROCEDURE longest() READS SQL DATA
BEGIN
  # The longest title.
  SELECT max(length(title)) FROM rental.film;
END$$
DELIMITER ;
";

const OF_SCRIPT: &str = "[load]\nschema = [\"rental.sql\"]\ndatabase = \"rental\"\n\n\
    [[step]]\nname = \"titles\"\n[[step.event]]\n[[step.event.statement]]\n\
    sql = \"SELECT title FROM titles\"\nexpect.rows = 2\n";

#[test]
fn a_script_of_mysql_finds_its_database() {
    let folder = tempfile::tempdir().unwrap();
    if let Err(why) = builds::roots("", &["mysql@8.0.33"]) {
        skipped::note("a_script_of_mysql_finds_its_database", &why);
        return;
    }
    fs::write(folder.path().join("rental.sql"), SCRIPT).unwrap();
    let run = |workload: &str| {
        fs::write(folder.path().join("rental.toml"), workload).unwrap();
        let words = ["compare", "a=mysql@8.0.33", "--bench", "sql:rental.toml", "--yes"];
        rqps_in(&words, folder.path()).args(SHORT).output().unwrap()
    };
    let output = run(OF_SCRIPT);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("left out: USE rental"), "{}", said(&output));
    let steps = steps(&folder.path().join("out"), "a");
    assert_eq!(steps[0]["status"], "complete", "{}", steps[0]);
    fs::remove_dir_all(folder.path().join("out")).unwrap();
    // Without the key it is refused before a server starts.
    let output = run(&OF_SCRIPT.replace("database = \"rental\"\n", ""));
    let wanted = "rental.sql: line 1: the file names a database: DROP SCHEMA IF EXISTS rental\n\
                  hint: dump one database without --databases, or name it with `database = ";
    assert!(said(&output).contains(wanted), "{}", said(&output));
    assert!(!said(&output).contains("start"), "{}", said(&output));
}

#[test]
fn commands_of_clients_are_refused_before_a_load() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("rental.sql"), "CREATE TABLE t (a INT);\n.read more.sql\n")
        .unwrap();
    fs::write(folder.path().join("rental.toml"), OF_SCRIPT).unwrap();
    let words = ["compare", "sqlite", "--bench", "sql:rental.toml"];
    let output = rqps_in(&words, folder.path()).args(SHORT).output().unwrap();
    let wanted = "line 2: `.read` is a command of sqlite3\nhint: name the file in `schema`";
    assert!(!output.status.success() && said(&output).contains(wanted), "{}", said(&output));
    assert!(!said(&output).contains("loaded"), "{}", said(&output));
    // Statements in the place of a workload file.
    let words = ["compare", "sqlite", "--bench", "sql:rental.sql"];
    let output = rqps_in(&words, folder.path()).args(SHORT).output().unwrap();
    assert!(said(&output).contains("--bench pgbench:FILE"), "{}", said(&output));
}
