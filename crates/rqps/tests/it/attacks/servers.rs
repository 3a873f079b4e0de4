//! What other users of a server have laid out for the login of rqps, and what words do not show.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rqps_model::build::Dbms;
use rqps_model::endpoint::Address;
use rqps_wire::mysql::MysqlClient;

use crate::attacks::sql::{load, rqps};
use crate::support::program;
use crate::support::theirs::Theirs;

/// Measures one statement of the user's there, with more keys of its step and more words.
pub(super) fn measure(
    folder: &Path,
    dsn: &str,
    sql: &str,
    more: (&str, &[&str]),
) -> (Option<i32>, String) {
    let (keys, words) = more;
    let workload = format!(
        "[[step]]\nname = \"q\"\n{keys}\n[[step.event]]\n[[step.event.statement]]\nsql = '''{sql}'''\n"
    );
    fs::write(folder.join("own.toml"), workload).unwrap();
    fs::remove_dir_all(folder.join("out")).ok();
    let all = ["compare", dsn, "--bench", "sql:own.toml"];
    let all: Vec<&str> = all.iter().chain(words).chain(&program::SHORT).copied().collect();
    rqps(&all, folder)
}

/// A load writes LIKE, and the server calls what another user made under the operator behind it.
#[test]
fn a_load_runs_where_others_may_make_nothing() {
    let test = "a_load_runs_where_others_may_make_nothing";
    let Some(theirs) = Theirs::start(test, "postgres@17.2.0", Dbms::Postgres) else { return };
    let folder = tempfile::tempdir().unwrap();
    theirs.owner(&[
        "CREATE USER guest",
        "CREATE USER evil",
        "CREATE TABLE caught (who text)",
        "GRANT INSERT, SELECT ON caught TO PUBLIC",
        "GRANT CREATE ON SCHEMA public TO guest, evil",
        "CREATE FUNCTION act(varchar, text) RETURNS boolean LANGUAGE plpgsql AS \
         $$ BEGIN INSERT INTO public.caught VALUES (current_user); RETURN true; END $$",
        "CREATE OPERATOR ~~ (LEFTARG = varchar, RIGHTARG = text, FUNCTION = act)",
        "ALTER FUNCTION act OWNER TO evil",
        "ALTER OPERATOR ~~ (varchar, text) OWNER TO evil",
    ]);
    let guest = theirs.dsn("a").replace(&format!("{}@", theirs.login.user), "guest@");
    let schema = "CREATE TABLE own (a varchar(20) CHECK (a LIKE 'A%'));\n\
                  INSERT INTO own VALUES ('Abc');\n";
    let run = |code: i32, part: &str| {
        let (found, said) = load(folder.path(), &guest, schema, "");
        assert!(said.contains(part), "{said}");
        assert_eq!(found, Some(code), "{said}");
        assert_eq!(theirs.owner_rows("SELECT who FROM caught"), Vec::<Vec<Option<String>>>::new());
    };
    run(4, "evil may make objects in the schema public");
    theirs.owner(&["REVOKE CREATE ON SCHEMA public FROM evil"]);
    run(4, "evil has made objects in the schema public");
    theirs.owner(&["DROP FUNCTION act CASCADE"]);
    run(0, "");
    check_reads(&theirs, folder.path(), &guest);
}

/// A query names a view that writes, or a function as if it were a column: no word shows it.
fn check_reads(theirs: &Theirs, folder: &Path, guest: &str) {
    theirs.owner(&[
        "CREATE SEQUENCE theirs",
        "GRANT ALL ON theirs TO guest",
        "CREATE VIEW busy AS SELECT pg_catalog.setval('public.theirs', 7) AS a",
        "CREATE FUNCTION touch(caught) RETURNS int LANGUAGE plpgsql AS \
         $$ BEGIN INSERT INTO public.caught VALUES (current_user); RETURN 1; END $$",
        "INSERT INTO caught VALUES ('nobody')",
        "GRANT SELECT ON busy TO guest",
    ]);
    let is_as_before = || {
        let rows =
            theirs.owner_rows("SELECT last_value, (SELECT count(*) FROM caught) FROM theirs");
        assert_eq!(rows, [[Some("1".to_owned()), Some("1".to_owned())]]);
    };
    let touch = "SELECT c.touch FROM caught c";
    for (sql, why) in [("SELECT a FROM busy", "the view public.busy"), (touch, "(25006)")] {
        let (code, said) = measure(folder, guest, sql, ("", &[]));
        assert!(code == Some(4) && said.contains(why), "{code:?}: {said}");
        assert!(said.contains("hint: if the step may write, let it say so"), "{said}");
        is_as_before();
    }
    let says = "init = [\"SET default_transaction_read_only = off\"]";
    let (code, said) = measure(folder, guest, "SELECT a FROM busy", (says, &[]));
    assert!(code == Some(2) && said.contains("q may change rows"), "{code:?}: {said}");
    is_as_before();
    let (code, said) = measure(folder, guest, "SELECT a FROM busy", (says, &["--yes"]));
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(theirs.owner_rows("SELECT last_value FROM theirs"), [[Some("7".to_owned())]]);
    check_acts(theirs, folder, guest);
    check_hidden_words(theirs, folder, guest);
}

/// Measures a script of pgbench, with rqps's tables beside it or without.
fn measure_script(folder: &Path, dsn: &str, text: &str, words: &[&str]) -> (Option<i32>, String) {
    fs::write(folder.join("own.sql"), text).unwrap();
    fs::remove_dir_all(folder.join("out")).ok();
    let all = ["compare", dsn, "--bench", "pgbench:own.sql"];
    let all: Vec<&str> = all.iter().chain(&program::SHORT).chain(words).copied().collect();
    rqps(&all, folder)
}

/// The step is asked about: its words, read once more, may do more than they seem to.
fn is_asked((code, said): (Option<i32>, String)) {
    assert!(code == Some(2) && said.contains(" may change rows"), "{code:?}: {said}");
}

/// Names that values complete, values that end their literal, settings after which names mean
/// something else or writing is allowed, values of types that call somebody's function.
fn check_hidden_words(theirs: &Theirs, folder: &Path, guest: &str) {
    theirs.owner(&[
        "CREATE VIEW busy1 AS SELECT pg_try_advisory_lock(7)::int AS a",
        "GRANT SELECT ON busy1 TO guest; GRANT DELETE ON caught TO guest",
        "SET ROLE evil; CREATE FUNCTION evils.plus(int, int) RETURNS int LANGUAGE sql AS \
         'SELECT evils.act($1)'; \
         CREATE OPERATOR evils.+ (LEFTARG = int, RIGHTARG = int, FUNCTION = evils.plus)",
        "SET ROLE evil; CREATE DOMAIN evils.dom AS int CHECK (evils.act(VALUE) > 0); \
         CREATE TYPE evils.pair AS (a int); \
         CREATE FUNCTION evils.to_pair(text) RETURNS evils.pair LANGUAGE sql AS \
         'SELECT ROW(evils.act(1))::evils.pair'; \
         CREATE CAST (text AS evils.pair) WITH FUNCTION evils.to_pair(text)",
    ]);
    let mark = theirs.log_length();
    for init in [
        "SET statement_timeout = 0; RESET ALL",
        "SET \\\"default_transaction_read_only\\\" = off",
        "SET search_path = evils, pg_catalog",
    ] {
        let keys = format!("init = [\"{init}\"]");
        is_asked(measure(folder, guest, "SELECT a + 1 FROM public.tables", (&keys, &[])));
    }
    let number = "n = { kind = \"uniform\", from = 1, to = 1 }";
    let text = "text = { kind = \"list\", values = [\"\\\\' UNION SELECT 1 FROM busy1 -- \"] }";
    for (value, sql) in [
        (number, "SELECT a FROM public.busy:n"),
        (text, "SELECT E:text"),
        (text, "SELECT E'a'\n:text"),
    ] {
        let workload = format!(
            "[parameter]\n{value}\n[[step]]\nname = \"q\"\n[[step.event]]\n\
             [[step.event.statement]]\nprotocol = \"text\"\nsql = \"\"\"{sql}\"\"\"\n"
        );
        fs::write(folder.join("own.toml"), workload).unwrap();
        let words = ["compare", guest, "--bench", "sql:own.toml"];
        let words: Vec<&str> = words.iter().chain(&program::SHORT).copied().collect();
        is_asked(rqps(&words, folder));
    }
    for (script, more) in [
        ("SELECT a FROM public.bu:x;\n", &["--set", "load=none", "--", "-D", "x=sy1"][..]),
        ("\\set n 1\nSELECT a FROM public.busy:n;\n", &["--set", "load=none"]),
        // The tables are rqps's, the script is not.
        ("DELETE FROM public.caught;\n", &[]),
    ] {
        is_asked(measure_script(folder, guest, script, more));
    }
    let (code, said) = measure_script(folder, guest, "SELECT a FROM public.busy1;\n", &[]);
    assert!(code == Some(4) && said.contains("the view public.busy1"), "{code:?}: {said}");
    for (sql, name) in [
        ("SELECT 1::evils.dom", "dom"),
        ("SELECT ARRAY[1]::evils.dom[]", "dom"),
        ("SELECT '1'::text::evils.pair", "pair"),
    ] {
        let (code, said) = measure(folder, guest, sql, ("", &[]));
        let why = format!("it would use the type evils.{name}");
        assert!(code == Some(4) && said.contains(&why), "{code:?}: {said}");
    }
    let heard = theirs.log_since(mark);
    assert!(!heard.contains("acted as guest"), "{heard}");
    assert_eq!(theirs.owner_rows("SELECT who FROM caught"), [[Some("nobody".to_owned())]]);
}

/// Its catalogue lacks what later versions have.
#[test]
fn an_old_server_tells_what_stands_behind_names() {
    let test = "an_old_server_tells_what_stands_behind_names";
    let Some(theirs) = Theirs::start(test, "postgres@9.6.24", Dbms::Postgres) else { return };
    theirs.owner(&[
        "CREATE TABLE own AS SELECT 1 AS a",
        "CREATE VIEW busy AS SELECT pg_try_advisory_lock(7) AS a",
    ]);
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = measure(folder.path(), &theirs.dsn("a"), "SELECT a FROM own", ("", &[]));
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = measure(folder.path(), &theirs.dsn("a"), "SELECT a FROM busy", ("", &[]));
    assert!(code == Some(4) && said.contains("the view public.busy"), "{code:?}: {said}");
}

/// What READ ONLY allows: a view, a policy, a function behind an index or a cast of somebody's that
/// takes a lock, which the log shows. A view that is only a query raises no question.
fn check_acts(theirs: &Theirs, folder: &Path, guest: &str) {
    theirs.owner(&[
        "CREATE SCHEMA evils AUTHORIZATION evil",
        "SET ROLE evil; CREATE FUNCTION evils.act(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS \
         $$ BEGIN RAISE LOG 'acted as %', current_user; RETURN $1; END $$",
        "CREATE TABLE tables (a int); CREATE TABLE parts (a int) PARTITION BY RANGE (a)",
        "CREATE TABLE part PARTITION OF parts FOR VALUES FROM (0) TO (9)",
        "CREATE INDEX ON tables ((a + evils.act(1))); CREATE INDEX ON part ((a + evils.act(1)))",
        "CREATE TABLE guarded (a int); ALTER TABLE guarded ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY p ON guarded USING (evils.act(a) > 0)",
        "CREATE VIEW locking AS SELECT pg_try_advisory_lock(7)::int AS a",
        "CREATE VIEW \"On it\" AS SELECT a FROM locking",
        "CREATE VIEW plain AS SELECT count(*)::numeric(9,2) AS a, max(relname::varchar(9)) AS b \
         FROM pg_class JOIN tables ON (tables.a = 1) WHERE relname LIKE 'a%'",
        "CREATE VIEW upon AS SELECT b FROM plain WHERE a IN (1, 2)",
        "GRANT USAGE ON SCHEMA evils TO guest",
        "GRANT SELECT ON tables, parts, guarded, locking, \"On it\", plain, upon TO guest",
    ]);
    let mark = theirs.log_length();
    for (sql, why) in [
        ("SELECT a FROM tables", "tables, which has an index that calls evils.act(integer)"),
        ("SELECT a FROM parts", "parts, which has an index that calls evils.act(integer)"),
        ("SELECT a FROM guarded", "the policy p of public.guarded"),
        ("SELECT a FROM \"On it\"", "the view public.locking"),
        ("SELECT f.PG_Sleep FROM abs(0.0::float8) AS f", "the function pg_sleep(double precision)"),
    ] {
        let (code, said) = measure(folder, guest, sql, ("", &[]));
        assert!(code == Some(4) && said.contains(why), "{sql}: {code:?}: {said}");
    }
    let heard = theirs.log_since(mark);
    assert!(!heard.contains("acted as guest"), "{heard}");
    theirs.owner(&["DROP TABLE parts", "DROP INDEX tables_expr_idx"]);
    let (code, said) = measure(folder, guest, "SELECT b FROM upon", ("", &[]));
    assert_eq!(code, Some(0), "{said}");
}

/// Rows of somebody's table lead to a parent that is gone, which a load makes again.
#[test]
fn a_load_makes_no_parent_of_somebodys_rows() {
    check_parents("mysql@8.0.33", &[], ("", ""));
    check_parents("mariadb@11.4.5", &[], ("", ""));
    // There, no statement makes a table with its rows.
    let drops = ["LOCK TABLES own WRITE", "SELECT 1 FROM own LIMIT 1", "DROP TABLE own"];
    let with_ids = "log_bin = log\nserver_id = 1\nenforce_gtid_consistency = ON";
    check_parents("mysql@5.7.22", &drops, ("skip_log_bin", with_ids));
}

/// `drops`: what the server hears until a table by which rqps looks for keys is gone. Where that is
/// nothing but a statement that fails, no row of others can be in it.
fn check_parents(target: &str, drops: &[&str], config: (&str, &str)) {
    let test = "a_load_makes_no_parent_of_somebodys_rows";
    let is_mariadb = target.starts_with("mariadb");
    let dbms = if is_mariadb { Dbms::Mariadb } else { Dbms::Mysql };
    let Some(theirs) = Theirs::start_with(test, target, dbms, config) else { return };
    let folder = tempfile::tempdir().unwrap();
    theirs.owner(&[
        "CREATE TABLE own (id INT PRIMARY KEY)",
        "CREATE TABLE child (p INT, FOREIGN KEY (p) REFERENCES own (id) ON DELETE CASCADE)",
        "INSERT INTO own VALUES (1)",
        "INSERT INTO child VALUES (1)",
        "SET GLOBAL foreign_key_checks = 0",
        "DROP TABLE own",
        "SET GLOBAL foreign_key_checks = 1",
    ]);
    let schema = "CREATE TABLE own (id INT PRIMARY KEY);\nSET foreign_key_checks = 0;\n\
                  INSERT INTO own VALUES (1);\nSET foreign_key_checks = 1;\n\
                  REPLACE INTO own VALUES (1);\n";
    let (code, said) = load(folder.path(), &theirs.dsn("a"), schema, "");
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("a foreign key of") && said.contains("leads to own"), "{said}");
    assert_eq!(theirs.owner_rows("SELECT p FROM child"), [[Some("1".to_owned())]]);
    theirs.owner(&["DROP TABLE child"]);
    let mark = theirs.log_length();
    let (code, said) = load(folder.path(), &theirs.dsn("a"), schema, "");
    assert_eq!(code, Some(0), "{said}");
    let heard = theirs.log_since(mark);
    let is_of_drop = |line: &&str| line.contains("DROP TABLE") || line.contains(" 1 FROM own");
    let is_of_lock = |line: &&str| line.contains("LOCK TABLES own");
    let dropped = heard.lines().filter(|line| is_of_drop(line) || is_of_lock(line));
    let dropped: Vec<&str> = dropped.filter_map(|line| line.split('\t').next_back()).collect();
    assert_eq!(dropped, drops, "{heard}");
    check_hidden(&theirs, folder.path(), schema);
}

/// The same where the login may not see these rows; and a view that writes.
fn check_hidden(theirs: &Theirs, folder: &Path, schema: &str) {
    let name = &theirs.login.database;
    theirs.owner(&[
        "CREATE DATABASE hidden",
        &format!(
            "CREATE TABLE hidden.child (p INT, FOREIGN KEY (p) REFERENCES {name}.own (id) \
             ON DELETE CASCADE)"
        ),
        "INSERT INTO hidden.child VALUES (1)",
        "SET GLOBAL foreign_key_checks = 0",
        "DROP TABLE own",
        "SET GLOBAL foreign_key_checks = 1",
        "SET GLOBAL log_bin_trust_function_creators = 1",
        "CREATE TABLE caught (a INT)",
        "CREATE FUNCTION act() RETURNS INT DETERMINISTIC MODIFIES SQL DATA \
         BEGIN INSERT INTO caught VALUES (1); RETURN 1; END",
        "CREATE VIEW busy AS SELECT act() AS a",
        "CREATE USER guest",
        &format!("GRANT ALL ON {name}.* TO guest"),
    ]);
    let guest = theirs.dsn("a").replace(&format!("{}@", theirs.login.user), "guest@");
    let check = || {
        let (code, said) = load(folder, &guest, schema, "");
        assert_eq!(code, Some(4), "{said}");
        assert!(said.contains("a foreign key of a table that the login may not see"), "{said}");
        assert_eq!(theirs.owner_rows("SELECT p FROM hidden.child"), [[Some("1".to_owned())]]);
    };
    check();
    // Somebody holds their table until the server gives up to look at it.
    theirs.owner(&["SET GLOBAL lock_wait_timeout = 1"]);
    let (address, patience) = (Address::Unix(theirs.socket()), Duration::from_secs(30));
    let mut holder = MysqlClient::connect(&address, &theirs.login, patience).unwrap();
    holder.simple("BEGIN").unwrap();
    holder.simple("SELECT p FROM hidden.child").unwrap();
    check();
    drop(holder);
    assert!(theirs.owner_rows("SHOW TABLES LIKE 'own'").is_empty());
    let (code, said) = measure(folder, &guest, "SELECT a FROM busy", ("", &[]));
    assert!(code == Some(4) && said.contains("the view") && said.contains(".busy"), "{said}");
    assert!(theirs.owner_rows("SELECT a FROM caught").is_empty());
    // READ ONLY does not stop this one.
    theirs.owner(&[
        "CREATE VIEW locking AS SELECT GET_LOCK('theirs', 0) AS a",
        "CREATE VIEW plain AS SELECT COUNT(*) AS a, MAX(CONCAT(c.a, 'x')) AS b \
         FROM caught c JOIN caught o ON (c.a = o.a) WHERE c.a IN (1, 2)",
    ]);
    let (code, said) = measure(folder, &guest, "SELECT a FROM locking", ("", &[]));
    assert!(code == Some(4) && said.contains("the view") && said.contains(".locking"), "{said}");
    let (code, said) = measure(folder, &guest, "SELECT b FROM plain", ("", &[]));
    assert_eq!(code, Some(0), "{said}");
    check_hidden_statements(theirs, folder, &guest);
}

/// Statements within others, and a value that ends its literal where letters have other bytes.
fn check_hidden_statements(theirs: &Theirs, folder: &Path, guest: &str) {
    theirs.owner(&["INSERT INTO caught VALUES (1)"]);
    let script = "BEGIN NOT ATOMIC EXECUTE IMMEDIATE 'SET SESSION TRANSACTION READ WRITE'\\; END;\n\
                  BEGIN NOT ATOMIC EXECUTE IMMEDIATE 'DELETE FROM caught'\\; END;\n";
    is_asked(measure_script(folder, guest, script, &["--set", "load=none"]));
    for init in ["SET STATEMENT max_statement_time = 9 FOR KILL 0", "SET NAMES gbk"] {
        let keys = format!("init = [\"{init}\"]");
        is_asked(measure(folder, guest, "SELECT a FROM caught", (&keys, &[])));
    }
    assert_eq!(theirs.owner_rows("SELECT a FROM caught"), [[Some("1".to_owned())]]);
    // A server may prefer another set than that of the login.
    theirs.owner(&["SET GLOBAL init_connect = 'SET NAMES gbk'"]);
    let workload = "[parameter]\ntext = { kind = \"list\", \
                    values = [\"嘢\\\\' UNION SELECT GET_LOCK(0x68, 0) -- \"] }\n\
                    [[step]]\nname = \"q\"\n[[step.event]]\n[[step.event.statement]]\n\
                    protocol = \"text\"\nsql = \"SELECT 1 FROM caught WHERE 'a' = :text\"\n\
                    expect.rows = 0\n";
    fs::write(folder.join("own.toml"), workload).unwrap();
    fs::remove_dir_all(folder.join("out")).ok();
    let words = ["compare", guest, "--bench", "sql:own.toml"];
    let words: Vec<&str> = words.iter().chain(&program::SHORT).copied().collect();
    let (code, said) = rqps(&words, folder);
    assert_eq!(code, Some(0), "{said}");
}
