//! What other users of a server have laid out for the login of rqps, and what words do not show.

use std::fs;
use std::path::Path;

use rqps_model::build::Dbms;

use crate::program;
use crate::sql::{load, rqps};
use crate::theirs::Theirs;

/// Measures one statement of the user's there, with more keys of its step and more words.
fn measure(folder: &Path, dsn: &str, sql: &str, more: (&str, &[&str])) -> (Option<i32>, String) {
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
    for sql in ["SELECT a FROM busy", "SELECT c.touch FROM caught c"] {
        let (code, said) = measure(folder, guest, sql, ("", &[]));
        assert!(code == Some(4) && said.contains("(25006)"), "{code:?}: {said}");
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
}

/// Rows of somebody's table lead to a parent that is gone, which a load makes again.
#[test]
fn a_load_makes_no_parent_of_somebodys_rows() {
    let test = "a_load_makes_no_parent_of_somebodys_rows";
    let Some(theirs) = Theirs::start(test, "mysql@8.0.33", Dbms::Mysql) else { return };
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
    let (code, said) = load(folder.path(), &theirs.dsn("a"), schema, "");
    assert_eq!(code, Some(0), "{said}");
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
    let (code, said) = load(folder, &guest, schema, "");
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("a foreign key of a table that the login may not see"), "{said}");
    assert_eq!(theirs.owner_rows("SELECT p FROM hidden.child"), [[Some("1".to_owned())]]);
    assert!(theirs.owner_rows("SHOW TABLES LIKE 'own'").is_empty());
    let (code, said) = measure(folder, &guest, "SELECT a FROM busy", ("", &[]));
    assert!(code == Some(4) && said.contains("1792"), "{code:?}: {said}");
    assert!(theirs.owner_rows("SELECT a FROM caught").is_empty());
}
