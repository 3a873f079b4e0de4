//! What other users of a server have made that acts when a statement is read, planned or executed,
//! wherever it hides: their code never runs as the login of rqps.

use std::fs;
use std::path::Path;

use rqps_model::build::Dbms;

use crate::attacks::servers::measure;
use crate::attacks::sql::{load, rqps};
use crate::support::theirs::Theirs;

/// Each act of the other user shows in the log.
const OF_EVIL: &[&str] = &[
    "CREATE USER guest; CREATE USER evil",
    "CREATE SCHEMA evils AUTHORIZATION evil; GRANT USAGE ON SCHEMA evils TO PUBLIC",
    "SET ROLE evil; CREATE FUNCTION evils.act(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS \
     $$ BEGIN RAISE LOG 'acted as %', current_user; RETURN $1; END $$",
    "SET ROLE evil; CREATE FUNCTION evils.plus(int, int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS \
     $$ BEGIN RETURN evils.act($1 + $2); END $$",
    "SET ROLE evil; CREATE OPERATOR evils.+ (LEFTARG = int, RIGHTARG = int, FUNCTION = evils.plus); \
     CREATE DOMAIN evils.dom AS int CHECK (evils.act(VALUE) > 0); \
     CREATE TYPE evils.span AS RANGE (SUBTYPE = evils.dom); \
     CREATE DOMAIN evils.held AS bigint CHECK (pg_try_advisory_lock(VALUE)); \
     CREATE TABLE evils.spans (a evils.span); CREATE TABLE evils.holders (a evils.held[]); \
     CREATE TABLE evils.lists (a evils.dom[]); \
     CREATE TABLE evils.parts (a int) PARTITION BY RANGE ((a + evils.act(1))); \
     CREATE TABLE evils.signs (a int); CREATE INDEX ON evils.signs ((a + (1 OPERATOR(evils.+) 1))); \
     CREATE VIEW evils.\"On \"\"it\" AS SELECT pg_try_advisory_lock(7)::int AS a",
    "GRANT SELECT ON ALL TABLES IN SCHEMA evils TO guest",
];

#[test]
fn what_others_made_acts_from_no_hiding_place() {
    let test = "what_others_made_acts_from_no_hiding_place";
    let Some(theirs) = Theirs::start(test, "postgres@17.2.0", Dbms::Postgres) else { return };
    theirs.owner(OF_EVIL);
    // Whoever owns an extension may add to it.
    let database = &theirs.login.database;
    theirs.owner(&[
        &format!("GRANT CREATE ON DATABASE {database} TO evil"),
        "SET ROLE evil; CREATE EXTENSION pg_trgm SCHEMA evils; \
         CREATE FUNCTION evils.added(int) RETURNS int IMMUTABLE LANGUAGE sql AS \
         'SELECT evils.act($1)'; ALTER EXTENSION pg_trgm ADD FUNCTION evils.added(int); \
         CREATE TABLE evils.brought (a int); CREATE INDEX ON evils.brought ((a + evils.added(1))); \
         GRANT SELECT ON evils.brought TO guest",
        "CREATE TABLE named (currval int, nextval int); INSERT INTO named VALUES (1, 2); \
         GRANT SELECT ON named TO guest; GRANT CREATE ON SCHEMA public TO guest",
    ]);
    let guest = theirs.dsn("a").replace(&format!("{}@", theirs.login.user), "guest@");
    let folder = tempfile::tempdir().unwrap();
    let mark = theirs.log_length();
    for (sql, why) in [
        ("SELECT '[1,2]'::evils.span", "the type evils.span"),
        ("SELECT a FROM evils.spans WHERE a = '[1,2]'", "the type evils.spans"),
        ("SELECT '{1}'::evils.dom[]", "the type evils.dom"),
        ("SELECT a FROM evils.lists WHERE a = '{1}'", "the type evils.lists"),
        ("SELECT a FROM evils.holders WHERE a = '{1}'", "the check held_check of evils.held"),
        ("SELECT a FROM evils.parts", "partitions by what calls evils.act(integer)"),
        ("SELECT a FROM evils.signs", "an index that calls evils.plus(integer,integer)"),
        ("SELECT a FROM evils.brought", "an index that calls evils.added(integer)"),
        ("SELECT a FROM evils.\"On \"\"it\"", "the view evils.\"On \"\"it\""),
    ] {
        let (code, said) = measure(folder.path(), &guest, sql, ("", &[]));
        assert!(code == Some(4) && said.contains(why), "{sql}: {code:?}: {said}");
    }
    // Columns are no functions.
    let sql = "SELECT n.currval, nextval FROM named AS n";
    let (code, said) = measure(folder.path(), &guest, sql, ("", &[]));
    assert_eq!(code, Some(0), "{said}");
    let schema = "CREATE TABLE own (currval int, nextval int);\n\
                  INSERT INTO own SELECT o.nextval, own.currval FROM own AS o, own;\n";
    let (code, said) = load(folder.path(), &guest, schema, "");
    assert_eq!(code, Some(0), "{said}");
    let words = ["init", guest.strip_prefix("a=").unwrap(), "-o", "w.toml"];
    let (code, said) = rqps(&words, folder.path());
    assert_eq!(code, Some(0), "{said}");
    let draft = fs::read_to_string(folder.path().join("w.toml")).unwrap();
    assert!(draft.contains("3 tables are left out") && draft.contains("named"), "{draft}");
    let heard = theirs.log_since(mark);
    assert!(!heard.contains("acted as guest"), "{heard}");
    check_plans(&theirs, folder.path());
}

/// A planner calls what says of itself that it always gives the same value, also as a superuser: so
/// rqps has the source plan no statement that leads there.
fn check_plans(theirs: &Theirs, folder: &Path) {
    theirs.owner(&[
        "SET ROLE evil; CREATE FUNCTION evils.bt_metap(text) RETURNS TABLE (level int) \
         LANGUAGE sql AS 'SELECT evils.act(1)'; \
         CREATE VIEW evils.pg_stat_statements AS SELECT 'SELECT 1'::text AS query, \
         evils.act(1)::float AS total_exec_time, oid AS dbid FROM pg_database; \
         CREATE TABLE evils.large AS SELECT i AS a FROM generate_series(1, 9000) i; \
         CREATE INDEX ON evils.large (a); CREATE INDEX ON evils.large ((a + evils.act(1))); \
         ANALYZE evils.large; CREATE TABLE evils.filled (a int DEFAULT evils.act(1))",
        "CREATE TABLE plain AS SELECT i AS a FROM generate_series(1, 9000) i; \
         CREATE INDEX ON plain (a); ANALYZE plain",
    ]);
    let statements = "SELECT evils.act(1);\nSELECT a FROM evils.signs;\nSELECT a FROM evils.large;\n\
                      INSERT INTO evils.filled DEFAULT VALUES;\nSELECT '{1}'::evils.dom[];\n\
                      SELECT a FROM plain WHERE a = 7;\n";
    fs::write(folder.join("q.sql"), statements).unwrap();
    let dsn = theirs.dsn("a");
    let source = dsn.strip_prefix("a=").unwrap();
    let to = ["--to", "postgres@17.2.0", "--yes"];
    // The server itself analyses tables as their owner.
    let acted = format!("acted as {}", theirs.login.user);
    let mark = theirs.log_length();
    let words = [&["plans", source, "--statements", "q.sql"], &to[..]].concat();
    let (code, said) = rqps(&words, folder);
    assert!([Some(0), Some(1), Some(3)].contains(&code), "{code:?}: {said}");
    let heard = theirs.log_since(mark);
    assert!(heard.contains("EXPLAIN (FORMAT JSON) SELECT a FROM plain WHERE a = 7"), "{heard}");
    assert!(!heard.contains(&acted), "{heard}");
    // A view of somebody's is not the one of the extension.
    let (code, said) = rqps(&[&["plans", source], &to[..]].concat(), folder);
    assert!(code == Some(2) && said.contains("has no pg_stat_statements"), "{code:?}: {said}");
    let heard = theirs.log_since(mark);
    assert!(!heard.contains(&acted), "{heard}");
}

/// READ ONLY keeps a function from no setting of the server, and on some servers from nothing.
#[test]
fn a_query_calls_no_function_of_others_by_a_known_name() {
    check_functions("mysql@8.0.33");
    check_functions("mariadb@11.4.5");
}

fn check_functions(target: &str) {
    let test = "a_query_calls_no_function_of_others_by_a_known_name";
    let is_mariadb = target.starts_with("mariadb");
    let dbms = if is_mariadb { Dbms::Mariadb } else { Dbms::Mysql };
    let Some(theirs) = Theirs::start(test, target, dbms) else { return };
    theirs.owner(&[
        "SET GLOBAL log_bin_trust_function_creators = 1",
        "CREATE TABLE t (a INT, initcap INT)",
        "INSERT INTO t VALUES (1, 2)",
        "CREATE FUNCTION initcap(x INT) RETURNS INT SQL SECURITY INVOKER \
         BEGIN SET GLOBAL long_query_time = 7; RETURN x; END",
        "CREATE USER evil",
        "CREATE DEFINER = evil FUNCTION act() RETURNS INT SQL SECURITY INVOKER \
         BEGIN SET GLOBAL long_query_time = 7; RETURN 1; END",
        "CREATE VIEW `a``b` AS SELECT GET_LOCK('theirs', 0) AS a",
    ]);
    let (dsn, folder) = (theirs.dsn("a"), tempfile::tempdir().unwrap());
    let is_unchanged = || {
        let rows = theirs.owner_rows("SELECT @@GLOBAL.long_query_time > 8");
        assert_eq!(rows, [[Some("1".to_owned())]]);
    };
    theirs.owner(&["SET GLOBAL long_query_time = 9"]);
    for (sql, why) in [
        ("SELECT initcap(a) FROM t", "initcap"),
        ("SELECT initcap (a) FROM t", "initcap"),
        ("SELECT a FROM `a``b`", "a`b"),
    ] {
        let (code, said) = measure(folder.path(), &dsn, sql, ("", &[]));
        assert!(code == Some(4) && said.contains("it would use the "), "{sql}: {code:?}: {said}");
        assert!(said.contains(why), "{sql}: {said}");
        is_unchanged();
    }
    let (code, said) = measure(folder.path(), &dsn, "SELECT initcap FROM t", ("", &[]));
    assert_eq!(code, Some(0), "{said}");
    fs::write(folder.path().join("q.sql"), "SELECT * FROM (SELECT act()) x;\n").unwrap();
    let source = dsn.strip_prefix("a=").unwrap();
    let words = ["plans", source, "--statements", "q.sql", "--to", target, "--yes"];
    let (code, said) = rqps(&words, folder.path());
    assert!([Some(0), Some(1), Some(3)].contains(&code), "{code:?}: {said}");
    is_unchanged();
}
