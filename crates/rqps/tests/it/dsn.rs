//! Targets that are servers which somebody else runs: every benchmark beside tables, views,
//! foreign keys and schemas of the same names, which must be the same afterwards; users without
//! rights; runs that were killed; and what is kept or replaced by a user's word.

// The lints know tests by their attribute; what they share has none.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use crate::support::{builds, server_place, skipped};
use std::process::Command;
use std::time::Duration;

use rqps_dbms::{ControlPlane, Site, control_plane};
use rqps_model::build::Dbms;
use rqps_model::endpoint::{Address, Endpoint, Login};
use rqps_wire::mysql::MysqlClient;
use rqps_wire::postgres::PostgresClient;
use rustix::process::Signal;
use serde_json::Value as Json;

use crate::support::scene::{Scene, entries, signal, turn};

/// A server that is not rqps's, and its owner.
struct Theirs {
    scene: Scene,
    plane: Box<dyn ControlPlane>,
    dbms: Dbms,
    login: Login,
}

impl Theirs {
    /// Starts one; `None`, and a note, if the build cannot be had.
    fn start(test: &str, target: &str, dbms: Dbms) -> Option<Theirs> {
        let root = match builds::roots("", &[target]) {
            Ok(roots) => roots.into_iter().next()?,
            Err(why) => {
                skipped::note(test, &why);
                return None;
            }
        };
        let scene = Scene::new();
        let version = target.split_once('@').unwrap().1.split('+').next().unwrap();
        let build = server_place::build(dbms, Some(&root), version);
        let site = Site {
            data: scene.path("theirs"),
            logs: scene.path("their-logs"),
            ..server_place::site(&scene.path(""), &build)
        };
        let mut plane = control_plane(site).unwrap();
        plane.init().unwrap();
        plane.start().unwrap();
        let (_, login) = plane.endpoint();
        Some(Theirs { scene, plane, dbms, login })
    }

    fn address(&self) -> Address {
        let (Endpoint::Server(address), _) = self.plane.endpoint() else { panic!("no server") };
        address
    }

    /// A target of that server as a user, in a database.
    fn dsn(&self, label: &str, user: &str, database: &str) -> String {
        let Address::Unix(socket) = self.address() else { panic!("no socket") };
        let socket = socket.display();
        match self.dbms {
            Dbms::Postgres => format!("{label}=postgres://{user}@/{database}?host={socket}"),
            _ => format!("{label}=mysql://{user}@/{database}?socket={socket}"),
        }
    }

    /// Runs statements of the owner's, one after another; the rows of the last, cells joined.
    fn owner(&self, database: &str, statements: &[&str]) -> Vec<String> {
        let login = Login { database: database.to_owned(), ..self.login.clone() };
        let (address, patience) = (self.address(), Duration::from_secs(30));
        type Rows = Vec<Vec<Option<String>>>;
        let mut ask: Box<dyn FnMut(&str) -> Rows> = match self.dbms {
            Dbms::Postgres => {
                let mut client = PostgresClient::connect(&address, &login, patience).unwrap();
                Box::new(move |sql| client.rows(sql).unwrap_or_else(|e| panic!("{sql}: {e}")))
            }
            _ => {
                let mut client = MysqlClient::connect(&address, &login, patience).unwrap();
                Box::new(move |sql| client.rows(sql).unwrap_or_else(|e| panic!("{sql}: {e}")))
            }
        };
        let mut rows = Vec::new();
        for sql in statements {
            rows = ask(sql);
        }
        let cell = |cell: Option<String>| cell.unwrap_or_else(|| "NULL".to_owned());
        rows.into_iter()
            .map(|row| row.into_iter().map(cell).collect::<Vec<_>>().join("|"))
            .collect()
    }

    /// Everything in a database that is not the server's own: definitions, and all rows.
    fn everything(&self, database: &str) -> Vec<String> {
        let (relations, name): (&str, fn(&str) -> String) = match self.dbms {
            Dbms::Postgres => (
                "SELECT c.oid, n.nspname, c.relname, c.relkind, c.relowner, c.relfilenode, \
                 obj_description(c.oid, 'pg_class') FROM pg_class c \
                 JOIN pg_namespace n ON n.oid = c.relnamespace \
                 WHERE n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema' \
                 ORDER BY n.nspname, c.relname",
                |row| {
                    let cells: Vec<&str> = row.split('|').collect();
                    let readable = ["r", "p", "v", "m", "S"].contains(&cells[3]);
                    let name = format!("\"{}\".\"{}\"", cells[1], cells[2]);
                    if readable { name } else { String::new() }
                },
            ),
            _ => (
                "SELECT table_schema, table_name, table_type, table_comment, create_time \
                 FROM information_schema.tables WHERE table_schema NOT IN \
                 ('mysql', 'sys', 'performance_schema', 'information_schema') ORDER BY 1, 2",
                |row| {
                    let cells: Vec<&str> = row.split('|').collect();
                    format!("`{}`.`{}`", cells[0], cells[1])
                },
            ),
        };
        let mut all = self.owner(database, &[relations]);
        for relation in all.clone() {
            let name = name(&relation);
            if !name.is_empty() {
                let rows = self.owner(database, &[&format!("SELECT * FROM {name} ORDER BY 1")]);
                all.push(format!("{name}: {rows:?}"));
            }
        }
        let (places, constraints) = match self.dbms {
            Dbms::Postgres => (
                "SELECT nspname FROM pg_namespace ORDER BY 1",
                "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint \
                 WHERE conrelid >= 16384 ORDER BY 1, 2",
            ),
            _ => (
                "SELECT schema_name FROM information_schema.schemata ORDER BY 1",
                "SELECT constraint_name, table_name, referenced_table_name \
                 FROM information_schema.referential_constraints ORDER BY 1, 2",
            ),
        };
        all.extend(self.owner(database, &[places]));
        all.extend(self.owner(database, &[constraints]));
        all
    }

    /// Settings that a session cannot have by itself.
    fn settings(&self) -> Vec<String> {
        match self.dbms {
            Dbms::Postgres => self.owner(
                &self.login.database,
                &["SELECT name, setting, source FROM pg_settings ORDER BY name"],
            ),
            _ => {
                let moving = ["gtid", "timestamp", "innodb_thread", "pseudo"];
                let all = self.owner(&self.login.database, &["SHOW GLOBAL VARIABLES"]);
                all.into_iter().filter(|row| !moving.iter().any(|it| row.contains(it))).collect()
            }
        }
    }

    /// Runs rqps to its end; its exit code and what it said.
    fn measure(&self, mut command: Command) -> (Option<i32>, String) {
        let output = command.output().unwrap();
        let said = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    }

    /// A comparison of the sysbench steps in a result folder of its own.
    fn sysbench(&self, out: &str, targets: &[&str], more: &[&str]) -> Command {
        let words = ["--steps", "point-query,update-index,!*.warm", "--blocks", "1"];
        let words: Vec<&str> = words.iter().chain(more).copied().collect();
        let mut command = self.scene.rqps();
        command.args(["compare", "--full"]).args(targets).arg("--out").arg(self.scene.path(out));
        command.args(["--canaries", "off"]);
        let sizes = ["tables=2", "rows=500", "read_seconds=0.1", "write_seconds=0.1"];
        for setting in sizes.iter().chain(&["warmup_seconds=0", "settle_scale=0"]) {
            command.args(["--set", setting]);
        }
        command.args(words);
        command
    }

    fn insert(&self, out: &str, target: &str, more: &[&str]) -> Command {
        let mut command = self.scene.rqps();
        command.args(["compare", target, "--bench", "insert", "--blocks", "1"]);
        command.args(["--canaries", "off", "--out"]).arg(self.scene.path(out));
        let sizes = ["rows=500", "query_seconds=0.3", "settle_scale=0", "i1_rows=200"];
        for setting in sizes.iter().chain(&["i2_rows=100", "partitions=2", "query_steps=100:range"])
        {
            command.args(["--set", setting]);
        }
        command.args(more);
        command
    }

    fn vector(&self, out: &str, targets: &[&str], more: &[&str]) -> Command {
        let mut command = self.scene.rqps();
        command
            .args(["compare", "--full"])
            .args(targets)
            .args(["--bench", "vector", "--blocks", "1"]);
        command.args(["--canaries", "off", "--out"]).arg(self.scene.path(out));
        let sizes = ["rows=1000", "dims=16", "queries=20", "pgvector=8/32", "mariadb=6", "ef=10"];
        for setting in sizes.iter().chain(&["seconds=0.2", "warmup_seconds=0.1", "cases=sweep"]) {
            command.args(["--set", setting]);
        }
        command.args(more);
        command
    }

    /// Every step of a result folder was measured; the run says where its tables were.
    fn check_measured(&self, out: &str, place: &str) {
        let mut steps = 0;
        for run in entries(&self.scene.path(out)) {
            let Ok(record) = std::fs::read(run.join("run.json")) else { continue };
            let record: Json = serde_json::from_slice(&record).unwrap();
            assert_eq!(record["status"], "complete", "{record}");
            let words = record["place"].as_str().unwrap_or_default();
            assert!(words.contains(place), "{words}");
            // Tables of rqps's own, by the names that they have on any other target.
            let tables = record["tables"].as_array().cloned().unwrap_or_default();
            let names = tables.iter().filter_map(|table| table["name"].as_str());
            let mut seen = std::collections::BTreeSet::new();
            for name in names {
                assert!(!name.contains('.') && seen.insert(name), "{name}");
            }
            for step in entries(&run.join("steps")) {
                if step.extension() == Some("json".as_ref()) {
                    let step = std::fs::read(&step).unwrap();
                    let step: Json = serde_json::from_slice(&step).unwrap();
                    assert_eq!(step["status"], "complete", "{}: {}", step["name"], step["status"]);
                    steps += 1;
                }
            }
        }
        assert!(steps > 1, "{steps} steps in {out}");
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        self.plane.stop().ok();
    }
}

/// An application with the names of all benchmarks, in Postgres: data, a view, a materialised view,
/// foreign keys, partitions, sequences, and other schemas.
const APPLICATION: [&str; 18] = [
    "CREATE TABLE sbtest1 (id int PRIMARY KEY, note text)",
    "INSERT INTO sbtest1 VALUES (1, 'my data'), (2, NULL)",
    "CREATE TABLE sbtest2 (id int REFERENCES sbtest1)",
    "INSERT INTO sbtest2 VALUES (1)",
    "CREATE INDEX k_1 ON sbtest1 (note)",
    "CREATE TABLE orders (id int PRIMARY KEY)",
    "CREATE TABLE items (id int PRIMARY KEY, v text)",
    "INSERT INTO items SELECT n, 'item ' || n FROM generate_series(1, 100) n",
    "CREATE VIEW items_v AS SELECT v FROM items",
    "CREATE TABLE pi1 (id int NOT NULL) PARTITION BY RANGE (id)",
    "CREATE TABLE pi1_p0 PARTITION OF pi1 FOR VALUES FROM (0) TO (10)",
    "INSERT INTO pi1 VALUES (7)",
    "CREATE SEQUENCE pi1_transactionid_seq START 77",
    "CREATE MATERIALIZED VIEW pi1_pdc AS SELECT 5 AS five",
    "CREATE SCHEMA rqps",
    "CREATE TABLE rqps.sbtest1 AS SELECT 'other schema' AS note",
    "CREATE SCHEMA dev",
    "CREATE TABLE dev.items AS SELECT 'first in the search path' AS note",
];

#[test]
fn benchmarks_of_postgres_touch_nothing_of_others() {
    let test = "benchmarks_of_postgres_touch_nothing_of_others";
    let _turn = turn();
    let Some(theirs) = Theirs::start(test, "postgres@17+pgvector", Dbms::Postgres) else { return };
    theirs.owner("rqps", &["CREATE USER dev", "CREATE DATABASE app"]);
    theirs.owner("app", &["GRANT CREATE ON DATABASE app TO dev"]);
    theirs.owner("app", &APPLICATION);
    // What a user sees without a schema is rqps's, although the extension is elsewhere.
    theirs.owner(
        "app",
        &["CREATE EXTENSION vector SCHEMA public", "GRANT USAGE ON SCHEMA dev TO dev"],
    );
    let (before, settings) = (theirs.everything("app"), theirs.settings());
    let [a, b] = ["a", "b"].map(|label| theirs.dsn(label, "dev", "app"));
    let (code, said) = theirs.measure(theirs.sysbench("sysbench", &[&a, &b], &[]));
    assert_eq!(code, Some(0), "{said}");
    theirs.check_measured("sysbench", "schema rqps_");
    assert!(said.contains("a: rqps made the schema rqps_"), "{said}");
    assert!(said.contains("removed at the end"), "{said}");
    assert!(said.contains(", schema rqps_"), "the report says it, too: {said}");
    let (code, said) = theirs.measure(theirs.insert("insert", &a, &[]));
    assert_eq!(code, Some(0), "{said}");
    theirs.check_measured("insert", "schema rqps_");
    let (code, said) = theirs.measure(theirs.vector("vector", &[&a, &b], &[]));
    assert_eq!(code, Some(0), "{said}");
    theirs.check_measured("vector", "schema rqps_");
    assert_eq!(theirs.everything("app"), before);
    assert_eq!(theirs.settings(), settings);
}

#[test]
fn an_extension_that_rqps_makes_goes_with_its_schema() {
    let test = "an_extension_that_rqps_makes_goes_with_its_schema";
    let _turn = turn();
    let Some(theirs) = Theirs::start(test, "postgres@17+pgvector", Dbms::Postgres) else { return };
    let before = theirs.everything("rqps");
    let [a, b] = ["a", "b"].map(|label| theirs.dsn(label, "rqps", "rqps"));
    // The second finds it in the schema of the first.
    let (code, said) = theirs.measure(theirs.vector("vector", &[&a, &b], &[]));
    assert_eq!(code, Some(0), "{said}");
    theirs.check_measured("vector", "schema rqps_");
    assert_eq!(theirs.everything("rqps"), before);
    let extensions = theirs.owner("rqps", &["SELECT extname FROM pg_extension"]);
    assert_eq!(extensions, ["plpgsql"]);
}

#[test]
fn benchmarks_of_mysql_touch_nothing_of_others() {
    let test = "benchmarks_of_mysql_touch_nothing_of_others";
    let _turn = turn();
    for target in ["mysql@8.0.33", "mariadb@11.8"] {
        let dbms = if target.starts_with("mysql") { Dbms::Mysql } else { Dbms::Mariadb };
        let Some(theirs) = Theirs::start(test, target, dbms) else { continue };
        theirs.owner("test", &["CREATE DATABASE app CHARACTER SET latin1", "CREATE DATABASE more"]);
        let application = [
            "CREATE TABLE sbtest1 (id INT PRIMARY KEY, note TEXT)",
            "INSERT INTO sbtest1 VALUES (1, 'my data'), (2, NULL)",
            "CREATE TABLE sbtest2 (id INT, FOREIGN KEY (id) REFERENCES sbtest1 (id))",
            "INSERT INTO sbtest2 VALUES (1)",
            "CREATE TABLE items (id INT PRIMARY KEY, v TEXT)",
            "INSERT INTO items VALUES (1, 'one')",
            "CREATE VIEW pi1 AS SELECT id FROM items",
            "CREATE TABLE more.sbtest1 AS SELECT 'other database' AS note",
        ];
        theirs.owner("app", &application);
        let (before, settings) = (theirs.everything("app"), theirs.settings());
        let [a, b] = ["a", "b"].map(|label| theirs.dsn(label, "root", "app"));
        let (code, said) = theirs.measure(theirs.sysbench("sysbench", &[&a, &b], &[]));
        assert_eq!(code, Some(0), "{said}");
        theirs.check_measured("sysbench", "database rqps_");
        let (code, said) = theirs.measure(theirs.insert("insert", &a, &[]));
        assert_eq!(code, Some(0), "{said}");
        theirs.check_measured("insert", "database rqps_");
        if dbms == Dbms::Mariadb {
            let a = a.replace("mysql://", "mariadb://");
            let (code, said) = theirs.measure(theirs.vector("vector", &[&a], &[]));
            assert_eq!(code, Some(0), "{said}");
            theirs.check_measured("vector", "database rqps_");
        }
        assert_eq!(theirs.everything("app"), before, "{target}");
        assert_eq!(theirs.settings(), settings, "{target}");
        passwords_stay_out_of_what_is_written(&theirs);
    }
}

/// A password from the environment reaches the server and no file; one in the DSN is told to be
/// visible.
fn passwords_stay_out_of_what_is_written(theirs: &Theirs) {
    let secret = "Pass-7f3d";
    let statements = [
        &format!("CREATE USER bench IDENTIFIED BY '{secret}'"),
        "CREATE DATABASE own",
        "GRANT ALL ON *.* TO bench",
    ];
    theirs.owner("app", &statements);
    let dsn = theirs.dsn("a", "bench", "own");
    let home = theirs.scene.path("home-of-nobody");
    let compare = |out: &str, dsn: &str| {
        let mut command = theirs.sysbench(out, &[dsn], &[]);
        command.env_remove("MYSQL_PWD").env("HOME", &home);
        command
    };
    let (code, said) = theirs.measure(compare("none", &dsn));
    assert_eq!(code, Some(2), "{said}");
    let mut command = compare("variable", &dsn);
    command.env("MYSQL_PWD", secret);
    let (code, said) = theirs.measure(command);
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains(secret) && !said.contains("contains its password"), "{said}");
    theirs.check_measured("variable", "database rqps_");
    let named = dsn.replace("bench@", "bench:${RQPS_TEST_SECRET}@");
    let (code, said) = theirs.measure(compare("named", &named));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("RQPS_TEST_SECRET, which is not set"), "{said}");
    let mut command = compare("named", &named);
    command.env("RQPS_TEST_SECRET", secret);
    let (code, said) = theirs.measure(command);
    assert_eq!(code, Some(0), "{said}");
    let plan = std::fs::read_to_string(theirs.scene.path("named/plan.toml")).unwrap();
    assert!(plan.contains("bench:${RQPS_TEST_SECRET}@"), "{plan}");
    let visible = dsn.replace("bench@", &format!("bench:{secret}@"));
    let (code, said) = theirs.measure(compare("visible", &visible));
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("leave it out and set MYSQL_PWD"), "{said}");
    for out in ["variable", "named", "visible"] {
        let found = Command::new("grep").args(["-rl", secret]).arg(theirs.scene.path(out)).output();
        assert_eq!(String::from_utf8_lossy(&found.unwrap().stdout), "", "{out}");
    }
}

#[test]
fn without_the_right_to_a_schema_what_is_not_rqps_s_is_refused_and_named() {
    let test = "without_the_right_to_a_schema_what_is_not_rqps_s_is_refused_and_named";
    let _turn = turn();
    let Some(theirs) = Theirs::start(test, "postgres@17.2.0", Dbms::Postgres) else { return };
    theirs.owner("rqps", &["CREATE USER guest", "CREATE DATABASE app", "CREATE DATABASE free"]);
    theirs.owner("app", &["GRANT CREATE ON SCHEMA public TO guest"]);
    theirs.owner("app", &APPLICATION);
    let before = theirs.everything("app");
    let dsn = theirs.dsn("a", "guest", "app");
    let refused = |command, parts: &[&str]| {
        let (code, said) = theirs.measure(command);
        assert_eq!(code, Some(2), "{said}");
        for part in parts {
            assert!(said.contains(part), "no `{part}`: {said}");
        }
        assert_eq!(theirs.everything("app"), before);
        assert!(!theirs.scene.path("no").exists(), "a refusal makes no result folder");
    };
    let grant = "GRANT CREATE ON DATABASE app TO guest";
    let referred = "table sbtest1: the foreign key sbtest2_id_fkey of sbtest2 refers to it";
    let owner = "table sbtest2: it belongs to the user rqps";
    refused(theirs.sysbench("no", &[&dsn], &[]), &[referred, owner, grant, "rqps changed nothing"]);
    // What cannot be given up is not dropped by anybody's word.
    let more = ["--replace-tables", "sbtest1,sbtest2"];
    refused(theirs.sysbench("no", &[&dsn], &more), &[referred, owner]);
    let more = ["--replace-tables", "orders"];
    refused(theirs.sysbench("no", &[&dsn], &more), &["makes no table of that name"]);
    let pi1 = ["table pi1", "table pi1_p0: it is a partition of pi1", "materialised view pi1_pdc"];
    refused(theirs.insert("no", &dsn, &[]), &pi1);
    refused(theirs.insert("no", &dsn, &[]), &["sequence pi1_transactionid_seq"]);
    let items = ["table items: the view items_v reads it", "view items_v"];
    refused(theirs.vector("no", &[&dsn], &[]), &items);
    // Two targets want one place at the same time.
    theirs.owner("free", &["GRANT CREATE ON SCHEMA public TO guest"]);
    let [a, b] = ["a", "b"].map(|label| theirs.dsn(label, "guest", "free"));
    let (code, said) = theirs.measure(theirs.sysbench("no", &[&a, &b], &[]));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("another target of this plan"), "{said}");
    // One at a time may have it, and leaves nothing.
    let before = theirs.everything("free");
    let command = theirs.sysbench("both", &[&a, &b], &["--interleave", "run"]);
    let (code, said) = theirs.measure(command);
    assert_eq!(code, Some(0), "{said}");
    theirs.check_measured("both", "schema public of the database free");
    assert_eq!(theirs.everything("free"), before);
    // No right to anything.
    theirs.owner("free", &["REVOKE CREATE ON SCHEMA public FROM guest"]);
    let (code, said) = theirs.measure(theirs.sysbench("no", &[&a], &[]));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("no table in the schema public"), "{said}");
}

#[test]
fn a_table_is_replaced_by_its_name_only_and_kept_ones_are_known_again() {
    let test = "a_table_is_replaced_by_its_name_only_and_kept_ones_are_known_again";
    let _turn = turn();
    let Some(theirs) = Theirs::start(test, "postgres@17.2.0", Dbms::Postgres) else { return };
    let given_up =
        ["SET ROLE guest", "CREATE TABLE sbtest1 (id int)", "CREATE INDEX k_1 ON sbtest1 (id)"];
    theirs.owner("rqps", &["CREATE USER guest", "GRANT CREATE ON SCHEMA public TO guest"]);
    theirs.owner("rqps", &given_up);
    let before = theirs.everything("rqps");
    let dsn = theirs.dsn("a", "guest", "rqps");
    let (code, said) = theirs.measure(theirs.sysbench("one", &[&dsn], &[]));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--replace-tables sbtest1"), "{said}");
    assert_eq!(theirs.everything("rqps"), before);
    let more = ["--replace-tables", "sbtest1", "--keep"];
    let (code, said) = theirs.measure(theirs.sysbench("one", &[&dsn], &more));
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("dropped, as --replace-tables allows: sbtest1"), "{said}");
    let kept = "SELECT count(*) FROM sbtest1";
    assert_eq!(theirs.owner("rqps", &[kept]), ["500"]);
    let owner = "SELECT DISTINCT label, version, kept FROM rqps_owner WHERE name = 'sbtest1'";
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(theirs.owner("rqps", &[owner]), [format!("a|{version}|1")]);
    // Another plan must not have them; the owner's table under an old name is not rqps's.
    let (code, said) = theirs.measure(theirs.sysbench("two", &[&dsn], &["--seed", "2"]));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("table sbtest1: rqps made it for "), "{said}");
    theirs
        .owner("rqps", &["SET ROLE guest", "DROP TABLE sbtest2", "CREATE TABLE sbtest2 (id int)"]);
    let (code, said) = theirs.measure(theirs.sysbench("one", &[&dsn], &[]));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("  table sbtest2\n") && !said.contains("table sbtest1"), "{said}");
    theirs.owner("rqps", &["DROP TABLE sbtest2"]);
    // Without --keep the same plan removes what it kept, though nothing is left to measure.
    let (code, said) = theirs.measure(theirs.sysbench("one", &[&dsn], &[]));
    assert_eq!(code, Some(0), "{said}");
    let names = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace";
    assert_eq!(theirs.owner("rqps", &[names]), Vec::<String>::new());
}

/// Kills or interrupts a run while its tables are there, and looks what the next one makes of it.
fn interrupted(theirs: &Theirs, user: &str, database: &str, place: &str) {
    let before = theirs.everything(database);
    let dsn = theirs.dsn("a", user, database);
    // Writes come first, and are short.
    let long = ["--set", "read_seconds=60"];
    let begin = |command, out: &str| {
        let folder = theirs.scene.path(out);
        let steps = || entries(&folder).iter().map(|run| entries(&run.join("steps")).len()).sum();
        let before: usize = steps();
        let mut running = theirs.scene.start(command);
        assert!(running.until(|_| steps() > before).is_none(), "{}", running.said());
        running
    };
    let started = |out: &str| begin(theirs.sysbench(out, &[&dsn], &long), out);
    // Ctrl-C: nothing stays.
    let mut running = started("one");
    signal(running.pid(), Signal::INT);
    assert_eq!(running.end().code(), Some(130), "{}", running.said());
    assert_eq!(theirs.everything(database), before);
    // Killed: it stays, and another plan neither takes nor drops it.
    let mut running = started("one");
    running.kill();
    let left = theirs.everything(database);
    assert_ne!(left, before);
    let (code, said) = theirs.measure(theirs.sysbench("other", &[&dsn], &[]));
    if place.starts_with("public") {
        assert_eq!((code, said.contains("rqps made it for")), (Some(2), true), "{said}")
    } else {
        assert_eq!((code, said.contains("left over from another plan")), (Some(0), true), "{said}")
    }
    assert_eq!(theirs.everything(database), left);
    // The same plan in another folder removes it.
    let mut running = started("two");
    signal(running.pid(), Signal::INT);
    assert_eq!(running.end().code(), Some(130), "{}", running.said());
    assert_eq!(theirs.everything(database), before, "{}", running.said());
    // And the same folder goes on.
    let mut running = started("two");
    running.kill();
    let mut resumed = theirs.scene.rqps();
    resumed.args(["run", "--resume"]).arg(theirs.scene.path("two"));
    let mut running = begin(resumed, "two");
    signal(running.pid(), Signal::INT);
    assert_eq!(running.end().code(), Some(130), "{}", running.said());
    assert_eq!(theirs.everything(database), before);
    for out in ["one", "two", "other"] {
        std::fs::remove_dir_all(theirs.scene.path(out)).ok();
    }
}

#[test]
fn what_an_interrupted_run_leaves_is_removed_by_its_plan_alone() {
    let test = "what_an_interrupted_run_leaves_is_removed_by_its_plan_alone";
    let _turn = turn();
    if let Some(theirs) = Theirs::start(test, "postgres@17.2.0", Dbms::Postgres) {
        theirs.owner("rqps", &["CREATE USER guest", "CREATE DATABASE free"]);
        theirs.owner("free", &["GRANT CREATE ON SCHEMA public TO guest"]);
        interrupted(&theirs, "rqps", "rqps", "rqps_");
        interrupted(&theirs, "guest", "free", "public");
    }
    if let Some(theirs) = Theirs::start(test, "mysql@8.0.33", Dbms::Mysql) {
        let rights = "GRANT ALL ON free.* TO guest@'%'";
        theirs.owner("test", &["CREATE DATABASE free", "CREATE USER guest@'%'", rights]);
        interrupted(&theirs, "root", "test", "rqps_");
        interrupted(&theirs, "guest", "free", "public");
    }
}
