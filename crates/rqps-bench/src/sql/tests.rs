//! Tests that workload files become scripts, or explain their errors.

use super::{SPEC, steps};
use crate::sql;
use rqps_driver::request::RequestBody;
use rqps_driver::workload::at_each_count;
use rqps_model::benchmark::{
    BenchmarkParameters, Group, Phase, RateUnit, Step, StepTurns, Workload,
};
use rqps_model::build::Dbms;
use rqps_model::dialect::Dialect;
use rqps_model::script::{Fragment, Parameter, Script};

const SHOP: &str = r#"
[variables]
customers = 1_000
[parameter]
id = { kind = "uniform", from = 1, to = "customers" }
next = { kind = "same", of = "id", plus = 10 }
ids = { kind = "uniform", from = 1, to = 9, count = 3, distinct = true }
day = { kind = "date", from = "2024-01-01", to = "2024-12-31", type = "date", each = "use" }

[[step]]
name = "look"
[[step.event]]
[[step.event.statement]]
sql = "SELECT a::text FROM t WHERE id BETWEEN :id AND :next AND ':x' <> '{1}' AND id > :id"

[[step]]
name = "buy"
[[step.event]]
weight = 9
[[step.event.statement]]
sql = "SELECT 1 FROM t WHERE id IN (:ids)"
expect.rows = [0, 3]
[[step.event]]
name = "pay"
transaction = "serializable"
[[step.event.statement]]
sql.postgres = "UPDATE t SET d = :day WHERE id = :id RETURNING id"
sql.any = "UPDATE t SET d = :day WHERE id = :id"
"#;

fn workload(text: &str) -> Result<Workload, String> {
    let (mut workload, _) = (SPEC.workload)("quick").unwrap();
    sql::read(&mut workload, text)?;
    Ok(workload)
}

fn measured(text: &str, dialect: Dialect) -> Vec<Step> {
    let workload = workload(text).unwrap();
    steps::check(&workload, dialect).unwrap();
    let phases = steps::phases(dialect, &workload).into_iter();
    phases
        .filter_map(|phase| match phase {
            Phase::Measure(step) => Some(*step),
            Phase::Settle | Phase::Restore => None,
        })
        .collect()
}

fn script(text: &str, dialect: Dialect, number: usize) -> Script {
    measured(text, dialect)[number].script().unwrap().clone()
}

#[test]
fn references_become_placeholders_of_each_dialect() {
    let look = |dialect| script(SHOP, dialect, 0).events[0].operations[0].clone();
    let postgres = look(Dialect::Postgres);
    assert_eq!(
        postgres.sql,
        "SELECT a::text FROM t WHERE id BETWEEN $1 AND $2 AND ':x' <> '{1}' AND id > $1"
    );
    assert_eq!(postgres.parameters.len(), 2);
    let sqlite = look(Dialect::Sqlite);
    assert_eq!(
        sqlite.sql,
        "SELECT a::text FROM t WHERE id BETWEEN ? AND ? AND ':x' <> '{1}' AND id > ?"
    );
    assert_eq!(sqlite.parameters.len(), 3);
    assert_eq!(sqlite.parameters[0], sqlite.parameters[2]);
    let literals = |operation: &[Fragment]| {
        operation.iter().filter(|one| matches!(one, Fragment::Literal(_))).count()
    };
    assert_eq!((literals(&postgres.fragments), literals(&sqlite.fragments)), (3, 3));
}

#[test]
fn events_have_weights_transactions_and_draws_in_the_order_of_names() {
    let steps = measured(SHOP, Dialect::Postgres);
    assert_eq!((steps[0].group, steps[1].group), (Group::Range, Group::Write));
    assert!(steps[0].only_reads && !steps[1].only_reads);
    let buy = steps[1].script().unwrap();
    let names: Vec<&str> = buy.sources.iter().map(|source| source.name.as_str()).collect();
    assert_eq!(names, ["day", "id", "ids", "next"]);
    assert_eq!(steps[0].script().unwrap().events[0].draws, [1, 3]);
    let [read, pay] = buy.events.as_slice() else { panic!("{buy:?}") };
    assert_eq!((read.weight, pay.weight), (9, 1));
    assert_eq!(read.operations[0].sql, "SELECT 1 FROM t WHERE id IN ($1, $2, $3)");
    assert_eq!(read.operations[0].expect, Some([0, 3]));
    assert_eq!(pay.begin, ["BEGIN ISOLATION LEVEL SERIALIZABLE"]);
    assert_eq!(pay.operations[0].sql, "UPDATE t SET d = $1::date WHERE id = $2 RETURNING id");
    assert_eq!((pay.draws.as_slice(), pay.operations[0].draws.as_slice()), (&[1][..], &[0][..]));
    assert!(matches!(pay.operations[0].parameters[0], Parameter::Value { whole: false, .. }));
    // Nine of one statement and one of three: 1.2 on average, rounded up.
    assert_eq!(buy.statements_per_event(), 2);
    let mysql = script(SHOP, Dialect::Mysql, 1);
    assert_eq!(mysql.events[1].begin, ["SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "BEGIN"]);
    let sqlite = script(SHOP, Dialect::Sqlite, 1);
    assert_eq!(sqlite.events[1].begin, ["BEGIN IMMEDIATE"]);
    assert_eq!(sqlite.events[1].operations[0].sql, "UPDATE t SET d = ? WHERE id = ?");
}

/// MySQL finds a text by its index only if it is compared with a text.
#[test]
fn texts_that_look_like_numbers_are_sent_as_texts() {
    let list = "day = { kind = \"date\", from = \"2024-01-01\", to = \"2024-12-31\", type = \"date\", \
                each = \"use\" }";
    let check = |values: &str, want: bool| {
        let text = SHOP.replace(list, &format!("day = {{ kind = \"list\", values = [{values}] }}"));
        assert_ne!(text, SHOP);
        let pay = &script(&text, Dialect::Mysql, 1).events[1];
        let Parameter::Value { whole, .. } = pay.operations[0].parameters[0] else { panic!() };
        assert_eq!(whole, want, "{values}");
    };
    check("1, -2", true);
    check("\"1\", \"22\"", false);
    check("1, \"2\"", false);
}

#[test]
fn all_dialects_draw_the_same_sources() {
    let draws = |dialect| {
        let script = script(SHOP, dialect, 1);
        script.events.iter().map(|event| event.draws.clone()).collect::<Vec<_>>()
    };
    assert_eq!(draws(Dialect::Postgres), draws(Dialect::Mysql));
    assert_eq!(draws(Dialect::Postgres), draws(Dialect::Sqlite));
}

#[test]
fn a_select_that_writes_is_a_write() {
    let group = |sql: &str| {
        let text = format!(
            "[[step]]\nname = \"a\"\n[[step.event]]\n[[step.event.statement]]\n\
                            sql = \"\"\"{sql}\"\"\"\nexpect.rows = 1\n"
        );
        measured(&text, Dialect::Postgres)[0].group
    };
    assert_eq!(group("SELECT 1"), Group::Point);
    assert_eq!(group("SELECT replace(a, 'insert', 'b') FROM t -- delete"), Group::Point);
    assert_eq!(group("WITH x AS (DELETE FROM t RETURNING a) SELECT a FROM x"), Group::Write);
    assert_eq!(group("SELECT a FROM t FOR UPDATE"), Group::Write);
    assert_eq!(group("SELECT a INTO b FROM t"), Group::Write);
    assert_eq!(group("CALL p()"), Group::Write);
    assert_eq!(group("(SELECT 1) UNION (SELECT 1)"), Group::Point);
}

#[test]
fn variables_are_settings() {
    let mut workload = workload(SHOP).unwrap();
    sql::set(&mut workload, "customers=5").unwrap();
    let BenchmarkParameters::Sql(shape) = &workload.shape else { panic!("no statements") };
    assert_eq!(shape.variables["customers"], 5);
    sql::set(&mut workload, "seconds=7").unwrap();
    assert_eq!(workload.read_seconds, 7.0);
    let unknown = sql::set(&mut workload, "rows=7").unwrap_err().to_string();
    assert!(unknown.contains("unknown key of the benchmark `sql`; valid keys: customers, clients"));
    let wrong = sql::set(&mut workload, "customers=many").unwrap_err().to_string();
    assert!(wrong.contains("write a whole number"), "{wrong}");
}

#[test]
fn a_workload_survives_a_record() {
    let workload = workload(SHOP).unwrap();
    let json = serde_json::to_string(&workload).unwrap();
    assert_eq!(serde_json::from_str::<Workload>(&json).unwrap(), workload);
}

/// The error after an edit of the shop's file, for Postgres.
fn refusal(from: &str, to: &str) -> String {
    assert!(SHOP.contains(from), "{from}");
    let text = SHOP.replacen(from, to, 1);
    match workload(&text) {
        Err(fault) => fault,
        Ok(workload) => steps::check(&workload, Dialect::Postgres).unwrap_err(),
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let mut wrong = Vec::new();
    let mut check = |from: &str, to: &str, want: &str| {
        let said = refusal(from, to);
        if !said.contains(want) {
            wrong.push(format!("{said}\n  instead of {want}"));
        }
    };
    check(
        "id > :id",
        "id > :idd",
        "line 14, column 7: step `look`, statement 1: it uses `:idd`, and no parameter has that \
         name; parameters are day, id, ids, next",
    );
    check(
        "kind = \"date\"",
        "kind = \"dat\"",
        "line 8, column 7: parameter `day`: `dat` is not a kind",
    );
    check("to = 9,", "to = 0,", "line 7, column 7: parameter `ids`: `from` 1 is above `to` 0");
    check("to = 9,", "to = 2,", "3 distinct values do not fit from 1 to 2");
    check("to = 9,", "too = 9,", "line 7, column 37: unknown key `too`");
    check("plus = 10", "digits = 1", "`digits` is not a key of same; its keys are of, plus, each");
    check("of = \"id\"", "of = \"it\"", "parameter `next`: there is no parameter `it`");
    check("to = \"customers\"", "to = \"clients\"", "`clients` is neither a whole number nor");
    check("IN (:ids)", "id = :ids", "`ids` has `count = 3` and stands outside IN (…)");
    check(":next AND", "9 AND", "line 6, column 8: parameter `next` is used by no statement");
    check("name = \"buy\"", "name = \"look\"", "line 16, column 1: two steps have the name `look`");
    check("name = \"buy\"", "name = \"Buy it\"", "must be lower-case letters, digits and `-`");
    check("SELECT 1 FROM t", "SELECT 2; SELECT 1 FROM t", "two statements in one `sql`");
    check("SELECT 1 FROM", "START TRANSACTION -- ", "`START` is written as `transaction = true`");
    check("SELECT 1 FROM", "SELECT 1 \\r FROM", "the control character '\\r'");
    check("SELECT 1 FROM", "COPY t FROM STDIN -- ", "belongs in [load]");
    check("'{1}'", "'{1}", "the SQL ends within a text in quotes");
    check("sql.postgres", "sql.oracle", "`oracle` is not a dialect; dialects are postgres, mysql");
    check("serializable", "strict", "`transaction` must be true, false or one of read");
    check("expect.rows = [0, 3]", "expect.rows = [3, 0]", "`expect.rows` must ascend");
    check("expect.rows = [0, 3]", "protocol = \"fast\"", "`protocol` must be prepared or text");
    let empty = "[[step]]\nname = \"none\"\n[[step]]\nname = \"look\"";
    check("[[step]]\nname = \"look\"", empty, "line 10, column 1: step `none` has no event");
    check("[variables]", "[variable]", "line 2, column 2: unknown key `variable`");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// An event whose second statement has values from the row of the first.
const REFUND: &str = r#"
[parameter]
new = { kind = "sequential", from = 1001, to = 9999 }
old = { kind = "latest", of = "new" }
[[step]]
name = "warm"
[[step.event]]
[[step.event.statement]]
sql = "SELECT a FROM t WHERE id = :old"

[[step]]
name = "refund"
clients = 3
rate = 250.5
unit = "events"
fresh = true
[[step.event]]
[[step.event.statement]]
sql = "SELECT customer, total FROM t WHERE id = :old"
into = ["who", "much"]
[[step.event.statement]]
sql = "INSERT INTO t VALUES (:new, :who, :much)"
"#;

#[test]
fn the_latest_of_a_sequence_that_begins_with_the_first_row_are_none() {
    let workload = workload(&REFUND.replace("from = 1001", "from = 1")).unwrap();
    let fault = steps::check(&workload, Dialect::Postgres).unwrap_err();
    assert!(fault.contains("parameter `old`: `of` begins at 1, so at first no value"), "{fault}");
}

#[test]
fn each_client_count_of_a_fresh_step_begins_on_a_copy() {
    let kinds = |text: &str| -> Vec<String> {
        let mut workload = workload(text).unwrap();
        workload.set_counts(vec![1, 4]);
        let phases = at_each_count(&workload, |one| steps::phases(Dialect::Postgres, one));
        let kind = |phase: &Phase| match phase {
            Phase::Measure(step) => step.name.clone(),
            Phase::Restore => "restore".to_owned(),
            Phase::Settle => "settle".to_owned(),
        };
        phases.iter().map(kind).collect()
    };
    let warm = ["warm.clients=1", "warm.clients=4"];
    let refund = ["refund.clients=1", "restore", "refund.clients=4"];
    assert_eq!(kinds(REFUND), [&warm[..], &["restore"], &refund].concat());
    let first = REFUND.replacen("name = \"warm\"", "name = \"warm\"\nfresh = true", 1);
    let warm = ["warm.clients=1", "restore", "warm.clients=4"];
    assert_eq!(kinds(&first), [&warm[..], &["restore"], &refund].concat());
}

#[test]
fn a_row_gives_values_to_later_statements_and_a_step_has_its_own_pace() {
    let workload = workload(REFUND).unwrap();
    steps::check(&workload, Dialect::Postgres).unwrap();
    let phases = steps::phases(Dialect::Postgres, &workload);
    let [Phase::Measure(warm), Phase::Restore, Phase::Measure(refund)] = phases.as_slice() else {
        panic!("{phases:?}")
    };
    assert_eq!((warm.rate, refund.rate), (RateUnit::Queries, RateUnit::Transactions));
    assert_eq!((warm.turns, refund.turns), (StepTurns::Clients, StepTurns::Processes));
    assert_eq!(refund.parameters.clients, Some(3));
    assert_eq!(refund.parameters.events_per_second, Some(250.5));
    let event = &refund.script().unwrap().events[0];
    let [select, insert] = event.operations.as_slice() else { panic!("{event:?}") };
    assert_eq!(insert.sql, "INSERT INTO t VALUES ($1, $2, $3)");
    let slots = insert.parameters.iter().map(|parameter| match parameter {
        Parameter::Value { slot, .. } => *slot,
        other => panic!("{other:?}"),
    });
    assert_eq!(slots.skip(1).collect::<Vec<u32>>(), select.into);
    assert_eq!(event.draws.len(), 2, "what a row gives is never drawn");
    let mut wrong = Vec::new();
    let mut check = |from: &str, to: &str, want: &str| {
        assert!(REFUND.contains(from), "{from}");
        let said = match self::workload(&REFUND.replacen(from, to, 1)) {
            Err(fault) => fault,
            Ok(workload) => match steps::check(&workload, Dialect::Postgres) {
                Err(fault) => fault,
                Ok(()) => "nothing".to_owned(),
            },
        };
        if !said.contains(want) {
            wrong.push(format!("{said}\n  instead of {want}"));
        }
    };
    check("SELECT a FROM t", "SELECT :who FROM t", "no statement before it has that in `into`");
    check("\"who\", ", "\"old\", ", "`into = [\"old\"]`: a parameter has that name");
    check("\"who\", ", "\"much\", ", "`into` has `much` twice");
    check(", :who", ", 1", "`into` gives a value to `who`, and no statement uses it");
    check("into =", "expect.rows = 1\ninto =", "`into` needs one row anyway");
    check(
        "of = \"new\"",
        "of = \"old\"",
        "parameter `old`: it copies itself through other parameters",
    );
    check("kind = \"sequential\"", "kind = \"uniform\"", "`of` must name a sequential parameter");
    check("clients = 3", "clients = 0", "the clients of step `refund` must be from 1 to 10000");
    check("250.5", "0.0", "the rate of step `refund` must be above 0");
    check("\"events\"", "\"tps\"", "the unit of step `refund` must be statements or events");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn mariadb_has_texts_of_its_own_or_those_of_mysql() {
    let text = SHOP.replace(
        "sql.any = \"UPDATE t",
        "sql.mysql = \"UPDATE t SET d = :day\"\nsql.mariadb = \"DELETE FROM t\"\n\
         sql.any = \"UPDATE t",
    );
    let all = workload(&text).unwrap();
    let pay = |dbms: Dbms| {
        let of_dbms = steps::of_dbms(&all, dbms);
        steps::check(&of_dbms, dbms.dialect()).unwrap();
        let phases = steps::phases(dbms.dialect(), &of_dbms);
        let Some(Phase::Measure(step)) = phases.last() else { panic!("no step") };
        let event = step.script().unwrap().events[1].clone();
        (event.operations[0].sql.clone(), event.draws, event.operations[0].draws.clone())
    };
    let [mysql, mariadb] = [Dbms::Mysql, Dbms::Mariadb].map(pay);
    assert_eq!((mysql.0.as_str(), mariadb.0.as_str()), ("UPDATE t SET d = ?", "DELETE FROM t"));
    assert_eq!((mysql.1, mysql.2), (mariadb.1, mariadb.2), "both draw the same values");
    let shared = text.replace("sql.mariadb = \"DELETE FROM t\"\n", "");
    assert_eq!(
        steps::of_dbms(&workload(&shared).unwrap(), Dbms::Mariadb).shape,
        workload(&shared).unwrap().shape
    );
    let other = text.replace("sql.mariadb", "sql.oracle");
    let refused = steps::check(&workload(&other).unwrap(), Dialect::Sqlite).unwrap_err();
    assert!(
        refused.contains("`oracle` is not a dialect; dialects are postgres, mysql, mariadb"),
        "{refused}"
    );
}

#[test]
fn a_statement_that_never_ends_is_watched_for() {
    assert!(measured(SHOP, Dialect::Sqlite).iter().all(|step| step.script().unwrap().watched));
}

#[test]
fn sessions_of_mysql_speak_utf8() {
    assert_eq!(script(SHOP, Dialect::Mysql, 0).init, ["SET NAMES utf8mb4"]);
    assert!(script(SHOP, Dialect::Postgres, 0).init.is_empty());
}

#[test]
fn a_load_that_makes_no_sense_is_refused_with_its_line() {
    let fails = |load: &str| {
        steps::check(&workload(&format!("[load]\n{load}\n{SHOP}")).unwrap(), Dialect::Sqlite)
            .unwrap_err()
    };
    let sessions = fails("threads = 0");
    assert_eq!(sessions, "line 1, column 1: [load]: `threads` must be from 1 to 256");
    let delimiter = fails("data = [{ csv = \"a.csv\", table = \"a\", delimiter = \"||\" }]");
    assert!(
        delimiter.ends_with("of a.csv must be one character of ASCII, not \"||\""),
        "{delimiter}"
    );
    let check = |load: &str, want: &str| {
        let said = fails(load);
        assert!(said.contains(want), "{said}");
    };
    check("load = true", "`load = true` needs `schema` or `data`");
    check("schema = [\"a.sql\"]\ndrop = [\"t\"]", "`drop` needs `load = true`");
    let there = "load = true\nschema = [\"a.sql\"]\ndrop";
    check(&format!("{there} = [\"t; DROP TABLE u\"]"), "one DROP statement without `;`");
    check(&format!("{there} = [\"DROP DATABASE shop\"]"), "may drop one of TABLE, VIEW");
    check(&format!("{there} = [\"t u\"]"), "not \"t u\": it is no name");
    check(&format!("{there}.oracle = [\"t\"]"), "`oracle` is not a dialect");
    let twice = SHOP.replace("weight = 9", "name = \"pay\"");
    let twice = steps::check(&workload(&twice).unwrap(), Dialect::Sqlite).unwrap_err();
    assert!(twice.ends_with("two events of step `buy` have the name `pay`"), "{twice}");
}

#[test]
fn a_step_writes_by_what_it_begins_with_and_by_comments_that_are_executed() {
    let writes = |from: &str, to: &str| {
        let text = SHOP.replacen(from, to, 1);
        assert_eq!(text == SHOP, from == to);
        steps::writes(&workload(&text).unwrap()).contains(&"look".to_owned())
    };
    let init = |sql: &str| writes("[[step]]\n", &format!("[[step]]\ninit = [\"{sql}\"]\n"));
    assert!(!writes("", ""));
    assert!(!init("SET work_mem = '1MB'") && !init("SELECT 1"));
    assert!(init("DROP TABLE customers") && init("SET GLOBAL general_log = 1"));
    assert!(init("/*!50000 DROP TABLE customers */"));
    for hidden in [
        "SELECT a::text /*! INTO OUTFILE 'x' */ FROM t",
        "SELECT 1 --1 INTO OUTFILE '/tmp/x'",
        "SELECT setval('theirs', 1) FROM t",
    ] {
        assert!(writes("SELECT a::text FROM t", hidden), "{hidden}");
    }
    assert!(init("SET @a = refund(1)"));
}

#[test]
fn a_load_on_servers_drops_what_the_file_says() {
    let load = "[load]\nload = true\nschema = [\"a.sql\"]\n\
                drop.any = [\"t\", \"drop view if exists v\"]\ndrop.mariadb = [\"m\"]";
    let workload = workload(&format!("{load}\n{SHOP}")).unwrap();
    steps::check(&workload, Dialect::Postgres).unwrap();
    let drop = |dbms: Dbms| {
        let workload = steps::of_dbms(&workload, dbms);
        match crate::sql::load(dbms.dialect(), &workload, None) {
            RequestBody::LoadFiles(load) => load.drop,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(drop(Dbms::Postgres), ["DROP TABLE IF EXISTS t", "drop view if exists v"]);
    assert_eq!(drop(Dbms::Mariadb), ["DROP TABLE IF EXISTS m"]);
}
