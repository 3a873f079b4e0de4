//! Files whose names and statements are more than they seem, and servers on which another user has
//! laid something out for the login of rqps.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rqps_model::build::Dbms;

use crate::support::program;
use crate::support::theirs::Theirs;

/// Runs rqps in a folder; its exit code and what it said.
pub(super) fn rqps(words: &[&str], folder: &Path) -> (Option<i32>, String) {
    let output = program::rqps_in(words, folder).output().unwrap();
    (output.status.code(), program::said(&output) + &program::text(&output.stdout))
}

/// A plan that `words` make.
fn plan(words: &[&str], folder: &Path) -> String {
    let all: Vec<&str> = ["plan"].into_iter().chain(words.iter().copied()).collect();
    let output = program::rqps_in(&all, folder).output().unwrap();
    assert!(output.status.success(), "{}", program::said(&output));
    program::text(&output.stdout)
}

const NOBODY: &str = "a=postgres://nobody@/none?host=/nowhere";

#[test]
fn a_tablespace_of_a_plan_is_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let words = [NOBODY, "--bench", "pgbench", "--", "--tablespace", "fast"];
    let text = plan(&words, folder.path()).replace("--tablespace", "");
    for key in ["tablespace = \"fast\"", "index_tablespace = \"fast\""] {
        let text = if key.starts_with("index") {
            text.replace("tablespace = \"fast\"", key)
        } else {
            text.clone()
        };
        assert!(text.contains(key), "{text}");
        let attack = text.replace("\"fast\"", "\"fast; DROP TABLE customers\"");
        fs::write(folder.path().join("plan.toml"), attack).unwrap();
        let words = ["run", "plan.toml", "--out", "out", "--yes"];
        let (code, said) = rqps(&words, folder.path());
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("is no name of letters, digits and `_`"), "{said}");
    }
}

#[test]
fn the_table_of_a_csv_file_is_a_name() {
    let folder = program::files_of_docs("", 4);
    let path = folder.path().join("shop.toml");
    let text = fs::read_to_string(&path).unwrap();
    let attack = "table = \"customer (id) FROM STDIN; DROP TABLE orders; --\"";
    let changed = text.replacen("table = \"customer\"", attack, 1);
    assert_ne!(changed, text);
    fs::write(&path, changed).unwrap();
    let (code, said) = rqps(&["compare", "sqlite", "--bench", "sql:shop.toml"], folder.path());
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("is no name of a table"), "{said}");
}

/// What a plan says and no file holds reaches the server, too.
#[test]
fn a_plan_with_another_table_or_value_is_another_plan() {
    let folder = program::files_of_docs("", 4);
    let words = ["sqlite", "--bench", "sql:shop.toml", "--steps", "cities"];
    let words: Vec<&str> = words.iter().chain(&program::SHORT[..8]).copied().collect();
    let text = plan(&words, folder.path());
    let run = |text: &str| {
        fs::write(folder.path().join("plan.toml"), text).unwrap();
        rqps(&["run", "plan.toml", "--out", "none/none"], folder.path()).1
    };
    // Whoever made it here is not asked.
    assert!(!run(&text).contains("new on this host"));
    for (from, to) in [
        ("table = \"customer\"", "table = \"orders\""),
        ("\"Paris\"", "\"'; DROP TABLE orders; --\""),
        ("csv = \"customer.csv\"", "csv = \"./customer.csv\""),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        let said = run(&changed);
        let is_refused = said.contains("new on this host") || said.contains("failed to");
        assert!(is_refused && said.contains("statements of steps"), "{from}: {said}");
    }
}

/// A server of somebody else's, with tables `customers` in two places.
fn theirs(test: &str, target: &str, dbms: Dbms) -> Option<Theirs> {
    let theirs = Theirs::start(test, target, dbms)?;
    let place =
        if dbms == Dbms::Postgres { "CREATE SCHEMA other" } else { "CREATE DATABASE other" };
    theirs.owner(&[
        place,
        "CREATE TABLE customers (id int PRIMARY KEY)",
        "CREATE TABLE other.customers (id int PRIMARY KEY)",
        "INSERT INTO customers VALUES (7)",
        "INSERT INTO other.customers VALUES (7)",
    ]);
    Some(theirs)
}

/// Both tables are as they were.
fn is_unchanged(theirs: &Theirs) {
    for table in ["customers", "other.customers"] {
        let rows = theirs.owner_rows(&format!("SELECT id FROM {table}"));
        assert_eq!(rows, [[Some("7".to_owned())]], "{table}");
    }
}

/// Loads a file there with the question answered.
pub(super) fn load(folder: &Path, dsn: &str, schema: &str, more: &str) -> (Option<i32>, String) {
    let output = loading(folder, dsn, schema, more).output().unwrap();
    (output.status.code(), program::said(&output) + &program::text(&output.stdout))
}

/// The command that does it.
fn loading(folder: &Path, dsn: &str, schema: &str, more: &str) -> Command {
    let workload = format!(
        "[load]\nload = true\nschema = [\"schema.sql\"]\n{more}\n[[step]]\nname = \"count\"\n\
         [[step.event]]\n[[step.event.statement]]\nsql = \"SELECT count(*) FROM own\"\n"
    );
    fs::write(folder.join("schema.sql"), schema).unwrap();
    fs::write(folder.join("own.toml"), workload).unwrap();
    fs::remove_dir_all(folder.join("out")).ok();
    let words = ["compare", dsn, "--bench", "sql:own.toml", "--yes"];
    let words: Vec<&str> = words.iter().chain(&program::SHORT).copied().collect();
    program::rqps_in(&words, folder)
}

/// Each would have been executed, exit 0, before loads had a list of what they may do.
fn check_loads(test: &str, target: &str, dbms: Dbms, hostile: &[&str]) {
    let Some(theirs) = theirs(test, target, dbms) else { return };
    let folder = tempfile::tempdir().unwrap();
    let dsn = theirs.dsn("a");
    let own = "CREATE TABLE own (id int);\n";
    for sql in hostile {
        let schema = format!("{own}\n{sql};\nINSERT INTO own VALUES (1);\n");
        let (code, said) = load(folder.path(), &dsn, &schema, "");
        assert_eq!(code, Some(2), "{sql}: {said}");
        assert!(said.contains("schema.sql") && said.contains("line 3: "), "{sql}: {said}");
        is_unchanged(&theirs);
    }
    // Nothing of the files ran before the refusal.
    let (code, said) = load(folder.path(), &dsn, &format!("{own}INSERT INTO own VALUES (1);"), "");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(theirs.owner_rows("SELECT id FROM own"), [[Some("1".to_owned())]]);
    is_unchanged(&theirs);
    // Another table of that name, and the files of another place.
    let schema = format!("{own}CREATE TABLE IF NOT EXISTS customers (id int);");
    let (code, said) = load(folder.path(), &dsn, &schema, "drop = [\"own\"]");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("there are already customers"), "{said}");
    let schema = "CREATE TABLE other.own (id int);";
    let (code, said) = load(folder.path(), &dsn, schema, "drop = [\"own\"]");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("its files name `other`, but the login leads to"), "{said}");
    is_unchanged(&theirs);
}

#[test]
fn a_load_on_somebodys_server_makes_its_tables_and_does_nothing_else() {
    let test = "a_load_on_somebodys_server_makes_its_tables_and_does_nothing_else";
    let hostile = [
        "DROP SCHEMA other CASCADE",
        "DO $$ BEGIN DELETE FROM customers; END $$",
        "ALTER DATABASE rqps SET search_path TO other",
        "CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    ];
    check_loads(test, "postgres@17.2.0", Dbms::Postgres, &hostile);
    let hostile = [
        "DROP DATABASE other",
        "/*!40000 DROP DATABASE other */",
        "RENAME TABLE customers TO own2",
        "INSERT INTO other.customers SELECT 8",
    ];
    check_loads(test, "mysql@8.0.33", Dbms::Mysql, &hostile);
}

/// The order mix with stored procedures, for a moment.
fn orders(folder: &Path, dsn: &str) -> (Option<i32>, String) {
    let words = ["compare", dsn, "--bench", "orders", "--set", "procedures=on", "--clients", "1"];
    let words: Vec<&str> = words.iter().chain(&program::SHORT).copied().collect();
    rqps(&words, folder)
}

#[test]
fn procedures_of_others_stay_and_those_of_rqps_go() {
    let test = "procedures_of_others_stay_and_those_of_rqps_go";
    let procedure = "CREATE PROCEDURE orders_payment() SELECT 'mine'";
    let function =
        "CREATE FUNCTION orders_payment() RETURNS text LANGUAGE sql AS $$ SELECT 'mine' $$";
    for (target, dbms, made) in
        [("postgres@17.2.0", Dbms::Postgres, function), ("mysql@8.0.33", Dbms::Mysql, procedure)]
    {
        let Some(theirs) = Theirs::start(test, target, dbms) else { continue };
        let database = theirs.login.database.clone();
        let folder = tempfile::tempdir().unwrap();
        let (routines, grant) = match dbms {
            Dbms::Postgres => (
                "SELECT proname FROM pg_proc WHERE proname LIKE 'orders%'".to_owned(),
                "GRANT CREATE ON SCHEMA public TO guest".to_owned(),
            ),
            _ => (
                "SELECT routine_name FROM information_schema.routines \
                 WHERE routine_name LIKE 'orders%'"
                    .to_owned(),
                format!("GRANT ALL ON {database}.* TO guest"),
            ),
        };
        theirs.owner(&["CREATE USER guest", &grant, made]);
        // Without the right to a place of its own, rqps would share it with the procedure.
        let guest = theirs.dsn("a").replace(&format!("{}@", theirs.login.user), "guest@");
        let (code, said) = orders(folder.path(), &guest);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(" orders_payment()"), "{said}");
        assert_eq!(theirs.owner_rows(&routines), [[Some("orders_payment".to_owned())]]);
    }
}

/// After Ctrl-C, the server of somebody else does not go on with a statement of hours.
#[test]
fn an_interrupted_load_leaves_nothing_at_work_on_the_server() {
    let test = "an_interrupted_load_leaves_nothing_at_work_on_the_server";
    let of_postgres = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' \
                       AND query LIKE 'INSERT INTO own%'";
    let of_mysql = "SELECT count(*) FROM information_schema.processlist \
                    WHERE info LIKE 'INSERT INTO own%'";
    let rows = "SELECT a.i FROM generate_series(1, 2000000000) AS a (i) WHERE a.i < 0";
    let many = "WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 900) \
                SELECT a.n FROM s a, s b, s c, s d WHERE a.n + b.n + c.n + d.n < 0";
    for (target, dbms, at_work, long) in [
        ("postgres@17.2.0", Dbms::Postgres, of_postgres, rows),
        ("mysql@8.0.33", Dbms::Mysql, of_mysql, many),
    ] {
        let Some(theirs) = theirs(test, target, dbms) else { continue };
        let folder = tempfile::tempdir().unwrap();
        let schema = format!("CREATE TABLE own (id bigint);\nINSERT INTO own {long};\n");
        let command = loading(folder.path(), &theirs.dsn("a"), &schema, "");
        let mut child = { command }.stderr(Stdio::null()).spawn().unwrap();
        let count = || theirs.owner_rows(at_work)[0][0].clone().unwrap();
        let end = Instant::now() + Duration::from_secs(60);
        while count() != "1" && Instant::now() < end {
            thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(count(), "1", "{target}");
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        child.wait().unwrap();
        assert_eq!(count(), "0", "{target}");
    }
}

/// A policy of somebody's table would be executed by whoever reads the table.
#[test]
fn init_executes_no_policy_of_others() {
    let test = "init_executes_no_policy_of_others";
    let Some(theirs) = theirs(test, "postgres@17.2.0", Dbms::Postgres) else { return };
    theirs.owner(&[
        "CREATE USER guest",
        "CREATE USER evil",
        "GRANT USAGE, CREATE ON SCHEMA other TO evil",
        "GRANT USAGE ON SCHEMA other TO guest",
        "CREATE TABLE caught (who text)",
        "GRANT INSERT ON caught TO PUBLIC",
        "SET ROLE evil; CREATE FUNCTION other.act() RETURNS bool LANGUAGE plpgsql AS \
         $$ BEGIN INSERT INTO public.caught VALUES (current_user); RETURN true; END $$; \
         CREATE TABLE other.bait (id int PRIMARY KEY, name text); \
         INSERT INTO other.bait SELECT i, 'a' FROM generate_series(1, 9) i; \
         ALTER TABLE other.bait ENABLE ROW LEVEL SECURITY; \
         CREATE POLICY p ON other.bait USING (other.act()); \
         GRANT SELECT ON other.bait TO PUBLIC",
        // The server makes values of texts when it prepares a statement, and checks their domains.
        "SET ROLE evil; CREATE FUNCTION other.check(int) RETURNS bool LANGUAGE sql AS \
         'SELECT other.act()'; CREATE DOMAIN other.dom AS int CHECK (other.check(VALUE)); \
         CREATE TABLE other.texts (id int PRIMARY KEY, a other.dom[]); \
         GRANT SELECT ON other.texts TO PUBLIC",
        // As the statistics keep it once they have forgotten the first time.
        "CREATE VIEW pg_stat_statements AS SELECT 1::oid AS userid, \
         (SELECT oid FROM pg_database WHERE datname = current_database()) AS dbid, \
         'SELECT id FROM other.texts WHERE a = ''{1}''' AS query, 1 AS calls, \
         1.0 AS mean_exec_time, 1.0 AS total_exec_time; \
         GRANT SELECT ON pg_stat_statements TO PUBLIC",
        "GRANT SELECT ON customers TO guest",
    ]);
    let folder = tempfile::tempdir().unwrap();
    let guest = theirs.dsn("a").replace(&format!("{}@", theirs.login.user), "guest@");
    let words = ["init", guest.strip_prefix("a=").unwrap(), "-o", "w.toml"];
    let (code, said) = rqps(&words, folder.path());
    assert_eq!(code, Some(0), "{said}");
    let draft = fs::read_to_string(folder.path().join("w.toml")).unwrap();
    assert!(draft.contains("other.bait") && draft.contains("customers"), "{draft}");
    assert!(said.contains("it holds a text"), "{said}");
    assert!(theirs.owner_rows("SELECT who FROM caught").is_empty());
}

#[test]
fn a_place_in_which_others_may_act_is_refused() {
    let test = "a_place_in_which_others_may_act_is_refused";
    let Some(theirs) = Theirs::start(test, "postgres@17.2.0", Dbms::Postgres) else { return };
    let folder = tempfile::tempdir().unwrap();
    // What the attacker's code does shows in this table.
    theirs.owner(&[
        "CREATE USER guest",
        "CREATE USER evil",
        "CREATE TABLE caught (who text)",
        "GRANT INSERT, SELECT ON caught TO PUBLIC",
        "CREATE FUNCTION act() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN INSERT INTO public.caught VALUES (current_user); RETURN NEW; END $$",
        "GRANT CREATE ON SCHEMA public TO guest, evil",
    ]);
    let guest = theirs.dsn("a").replace(&format!("{}@", theirs.login.user), "guest@");
    let run = || {
        let words = ["compare", &guest, "--steps", "point-query", "--set", "rows=200"];
        let words: Vec<&str> = words.iter().chain(&program::SHORT).copied().collect();
        let found = rqps(&words, folder.path());
        assert_eq!(theirs.owner_rows("SELECT who FROM caught"), Vec::<Vec<Option<String>>>::new());
        found
    };
    let (code, said) = run();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("the user evil may make functions in it"), "{said}");
    assert!(said.contains("REVOKE CREATE ON SCHEMA public"), "{said}");
    // A ledger of somebody else's with the comment of rqps's, and a trigger.
    theirs.owner(&[
        "REVOKE CREATE ON SCHEMA public FROM evil",
        "CREATE TABLE rqps_owner (tag VARCHAR(16), name VARCHAR(64), plan VARCHAR(16), \
         results VARCHAR(1000), host VARCHAR(255), label VARCHAR(255), version VARCHAR(32), \
         made VARCHAR(32), kept INT)",
        "COMMENT ON TABLE rqps_owner IS 'rqps: what rqps made here, for which plan, and when'",
        "CREATE TRIGGER act BEFORE INSERT ON rqps_owner FOR EACH ROW EXECUTE FUNCTION act()",
        "GRANT ALL ON rqps_owner TO guest",
        "ALTER TABLE rqps_owner OWNER TO evil",
    ]);
    let (code, said) = run();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("its table rqps_owner has the trigger act"), "{said}");
    theirs.owner(&["DROP TABLE rqps_owner", "ALTER SCHEMA public OWNER TO evil"]);
    let (code, said) = run();
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("it belongs to the user evil"), "{said}");
    theirs.owner(&["ALTER SCHEMA public OWNER TO pg_database_owner"]);
    let (code, said) = run();
    assert_eq!(code, Some(0), "{said}");
}

/// Functions, operators and types of others on the server, each of which writes to their table.
const OTHERS_ON_POSTGRES: &[&str] = &[
    "CREATE FUNCTION hash(int) RETURNS int LANGUAGE sql AS \
     'INSERT INTO public.customers VALUES (8) RETURNING 1'",
    "CREATE FUNCTION plus(int, text) RETURNS int LANGUAGE sql AS \
     'INSERT INTO public.customers VALUES (9) RETURNING 1'",
    "CREATE OPERATOR + (LEFTARG = int, RIGHTARG = text, FUNCTION = plus)",
    // It says that it writes nothing, and calls one that does.
    "CREATE FUNCTION mod(text) RETURNS int LANGUAGE plpgsql IMMUTABLE AS \
     'BEGIN RETURN public.hash(1); END'",
    "CREATE DOMAIN audited AS int CHECK (public.mod(VALUE::text) > 0)",
    "CREATE DOMAIN over_audited AS audited",
    "CREATE TYPE marked AS (a int)",
    "CREATE FUNCTION to_marked(text) RETURNS marked LANGUAGE sql AS \
     'SELECT ROW(public.hash(1))::public.marked'",
    "CREATE CAST (text AS marked) WITH FUNCTION to_marked(text)",
];

/// The same on MySQL.
const OTHERS_ON_MYSQL: &[&str] = &[
    "SET GLOBAL log_bin_trust_function_creators = 1",
    "CREATE FUNCTION `count`(x int) RETURNS int \
     BEGIN INSERT INTO customers VALUES (8); RETURN 1; END",
    "CREATE FUNCTION initcap(x int) RETURNS int \
     BEGIN INSERT INTO customers VALUES (9); RETURN 1; END",
];

/// What a file says that a name is, and what the server has under it: rows for a table go through
/// no view of somebody's table, and no function of somebody's is called by the name of a known one.
#[test]
fn a_name_of_a_load_means_nothing_else_on_the_server() {
    let test = "a_name_of_a_load_means_nothing_else_on_the_server";
    let own = "CREATE TABLE own (id int);\n";
    let through = "CREATE VIEW x AS SELECT id FROM customers;\n";
    let rolled_back = "BEGIN;\nDROP VIEW x;\nCREATE TABLE x (id int);\n";
    let failed = "SET transaction_timeout_of_later = 0;\nCOMMIT;\nINSERT INTO x VALUES (8);\n";
    let hidden = "/*!99999 CREATE TABLE x (id int) */;\n";
    let of_mariadb = "/*M! CREATE TABLE x (id int) */;\n";
    let of_postgres: [&[&str]; 12] = [
        &["BEGIN;\nCREATE TABLE x (id int);\n", through, "INSERT INTO x VALUES (8);\n"],
        &[through, rolled_back, "INSERT INTO x VALUES (8);\n"],
        &[through, rolled_back, failed],
        &["INSERT INTO own VALUES (hash(1));\n"],
        &["INSERT INTO own VALUES (1 + 'x'::text);\n"],
        &["INSERT INTO own VALUES (mod('x'::text));\n"],
        &["CREATE TABLE x (a audited);\nINSERT INTO x VALUES (8);\n"],
        &["INSERT INTO own SELECT 8::over_audited;\n"],
        &["INSERT INTO own SELECT audited '8';\n"],
        &["INSERT INTO own SELECT json_value('8', '$' RETURNING audited);\n"],
        &["INSERT INTO own VALUES ((('x'::text)::marked).a);\n"],
        &["INSERT INTO own SELECT (1).hash;\n"],
    ];
    let of_mysql: [&[&str]; 4] = [
        &[hidden, through, "INSERT INTO x VALUES (8);\n"],
        &[of_mariadb, through, "REPLACE INTO x VALUES (8);\n"],
        &["INSERT INTO own SELECT count (1);\n"],
        &["INSERT INTO own SELECT initcap(1);\n"],
    ];
    for (target, dbms, attacks) in [
        ("postgres@17.2.0", Dbms::Postgres, &of_postgres[..]),
        ("mysql@8.0.33", Dbms::Mysql, &of_mysql[..]),
    ] {
        let Some(theirs) = theirs(test, target, dbms) else { continue };
        theirs.owner(match dbms {
            Dbms::Postgres => OTHERS_ON_POSTGRES,
            _ => OTHERS_ON_MYSQL,
        });
        for (number, parts) in attacks.iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            // Each part is a file, and all of it one.
            let parts: Vec<String> =
                std::iter::once(&own).chain(*parts).map(|it| (*it).to_owned()).collect();
            for files in [parts.clone(), vec![parts.concat()]] {
                let place = format!("{dbms} {number} {}", files.len());
                for (file, text) in files.iter().enumerate().skip(1) {
                    fs::write(folder.path().join(format!("{file}.sql")), text).unwrap();
                }
                let more: Vec<String> =
                    (1..files.len()).map(|file| format!("\"{file}.sql\"")).collect();
                let more =
                    format!("index = [{}]\ndrop = [\"DROP TABLE IF EXISTS own\"]", more.join(", "));
                theirs.owner(&["DROP VIEW IF EXISTS x", "DROP TABLE IF EXISTS own"]);
                let (_, said) = load(folder.path(), &theirs.dsn("a"), &files[0], &more);
                assert!(!said.contains("panic"), "{place}: {said}");
                is_unchanged(&theirs);
            }
        }
    }
}
