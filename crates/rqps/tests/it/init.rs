//! Drafts of workload files by `rqps init`: from a database of SQLite, and from servers that have
//! seen statements on ten tables whose foreign keys have several columns, reference their own table
//! or form a circle. What init writes runs as it is written.

// The lints know tests by their attribute; what they share has none.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use serde_json::Value as Json;

use crate::support::program::{SHORT, rqps_in, said, steps, turn};
use crate::support::skipped;
use crate::support::theirs::Theirs;
use rqps_embed::sqlite::{Sqlite, SqliteConnection};
use rqps_model::build::Dbms;

fn init(database: &str, folder: &Path) -> Output {
    rqps_in(&["init", database, "-o", "shop.toml"], folder).output().unwrap()
}

#[test]
fn a_draft_from_a_database_file_runs_as_it_is_written() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let schema = "CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, \
                  referrer INTEGER REFERENCES customer);\n\
                  CREATE TABLE \"order\" (code TEXT PRIMARY KEY, \"Total sum\" NUMERIC, \
                  customer INTEGER REFERENCES Customer (id));\n\
                  CREATE TABLE empty (id INTEGER PRIMARY KEY);\nCREATE TABLE nokey (a INTEGER);\n\
                  CREATE TABLE gap (\"where\" INTEGER PRIMARY KEY);\n\
                  INSERT INTO customer VALUES (1, 'a', NULL), (2, 'b''c', 1), (3, NULL, 1);\n\
                  INSERT INTO \"order\" VALUES ('x\"1', 1.5, 1), ('y\\2', 2, 1), ('z''3', 3, 2);\n\
                  INSERT INTO nokey VALUES (1);\nINSERT INTO gap VALUES (1), (4);\n";
    let database = folder.path().join("app.db");
    let library = std::sync::Arc::new(Sqlite::compiled_in());
    let mut connection = SqliteConnection::open(&library, &database, 1000).unwrap();
    for sql in schema.split(";\n").filter(|sql| !sql.is_empty()) {
        connection.simple(sql).unwrap();
    }
    drop(connection);
    let output = init("app.db", folder.path());
    assert!(output.status.success(), "{}", said(&output));
    let text = fs::read_to_string(folder.path().join("shop.toml")).unwrap();
    for part in [
        "#   customer: about 3 rows, references customer\n",
        "#   \"order\": about 3 rows, references customer\n",
        "customer_key = { kind = \"uniform\", from = 1, to = 3 }  # customer.id, INTEGER\n",
        "sql = \"SELECT * FROM customer WHERE id = :customer_key\"\nexpect.rows = 1\n",
        "# SQLite keeps no statistics of statements.\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("empty-by-key") && !text.contains("nokey-by-key"), "{text}");
    // Not every number between the smallest and the largest is there.
    assert_eq!(text.matches("expect.rows").count(), 1, "{text}");
    let again = init("app.db", folder.path());
    assert!(said(&again).contains("it already exists"), "{}", said(&again));
    fs::write(folder.path().join("dump.sql"), schema).unwrap();
    let loaded = text.replace("# [load]", "[load]").replace("# schema", "schema");
    fs::write(folder.path().join("shop.toml"), loaded).unwrap();
    let words = ["compare", "--bench", "sql:shop.toml", "sqlite", "b=sqlite"];
    let output = rqps_in(&words, folder.path()).args(SHORT).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let steps = steps(&folder.path().join("out"), "b");
    let names: Vec<&str> = steps.iter().map(|step| step["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["customer-by-key", "gap-by-key", "order-by-key"]);
    for step in steps.iter().filter(|step| step["name"] != "gap-by-key") {
        // Every value of the sample is found.
        let (events, rows) = (&step["outcome"]["events"], &step["outcome"]["rows"]);
        assert_eq!(events, rows, "{step}");
    }
}

/// Makes a draft with a dump and compares builds of it, without an edit.
fn dumped_draft_runs(database: &str, folder: &Path, target: &str) {
    let words = ["init", database, "-o", "shop.toml", "--dump"];
    let output = rqps_in(&words, folder).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let text = fs::read_to_string(folder.join("shop.toml")).unwrap();
    assert!(text.contains("[load]\nschema = [\"shop-dump.sql\"]\n"), "{text}");
    let words = ["compare", target, "--bench", "sql:shop.toml", "--steps", "customer-by-key"];
    let output = rqps_in(&words, folder).args(SHORT).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let steps = steps(&folder.join("out"), target.split('=').next().unwrap());
    assert_eq!(steps.len(), 1);
    assert!(steps[0]["outcome"]["rows"].as_u64().unwrap() > 0, "{}", steps[0]);
    fs::remove_file(folder.join("shop.toml")).unwrap();
    let again = rqps_in(&["init", database, "-o", "shop.toml", "--dump"], folder).output().unwrap();
    assert!(said(&again).contains("shop-dump.sql: it already exists"), "{}", said(&again));
    assert!(!folder.join("shop.toml").exists());
}

fn is_installed(test: &str, program: &str, package: &str) -> bool {
    let is_there = Path::new("/usr/bin").join(program).exists();
    if !is_there {
        skipped::note(test, &format!("needs {program} (package {package})"));
    }
    is_there
}

#[test]
fn a_dump_of_a_database_file_feeds_builds() {
    if !is_installed("a_dump_of_a_database_file_feeds_builds", "sqlite3", "sqlite3") {
        return;
    }
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let library = std::sync::Arc::new(Sqlite::compiled_in());
    let path = folder.path().join("app.db");
    let mut database = SqliteConnection::open(&library, &path, 1000).unwrap();
    database.simple("CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT)").unwrap();
    database.simple("INSERT INTO customer VALUES (1, 'a'), (2, 'b''c'), (3, NULL)").unwrap();
    drop(database);
    dumped_draft_runs("app.db", folder.path(), "a=sqlite");
    // A client that fails leaves no dump, and none is nothing to go on with.
    let tools = tempfile::tempdir().unwrap();
    let failing = tools.path().join("sqlite3");
    fs::write(&failing, "#!/bin/sh\necho 'CREATE TABLE'\necho broken >&2\nexit 3\n").unwrap();
    fs::set_permissions(&failing, fs::Permissions::from_mode(0o755)).unwrap();
    let words = ["init", "app.db", "-o", "b.toml", "--dump"];
    for (path, expected) in [
        (format!("{}:/usr/bin:/bin", tools.path().display()), "exited with 3: broken"),
        ("/nowhere".to_owned(), "no such program\nhint: install the Debian package sqlite3"),
    ] {
        let output = rqps_in(&words, folder.path()).env("PATH", path).output().unwrap();
        assert!(!output.status.success() && said(&output).contains(expected), "{}", said(&output));
        assert!(!folder.path().join("b-dump.sql").exists());
        assert!(!folder.path().join("b.toml").exists());
    }
}

#[test]
fn a_dump_of_a_server_feeds_builds() {
    let test = "a_dump_of_a_server_feeds_builds";
    if !is_installed(test, "pg_dump", "postgresql-client") {
        return;
    }
    let Some(server) = Theirs::start(test, "postgres@14.19.0", Dbms::Postgres) else { return };
    server.owner(&[
        "CREATE TABLE customer (id int PRIMARY KEY, name text)",
        "INSERT INTO customer SELECT i, 'n' || i FROM generate_series(1, 300) i",
        "ANALYZE",
    ]);
    let dsn = server.dsn("a");
    let dsn = dsn.strip_prefix("a=").unwrap();
    dumped_draft_runs(dsn, server.folder.path(), "b=postgres@14.19.0");
}

/// Ten tables. Keys of customers, employees and products have gaps, so that a random number is
/// hardly ever one.
const SCHEMA: &str = "\
CREATE TABLE country (code CHAR(2) PRIMARY KEY, name VARCHAR(40));
CREATE TABLE customer (id INT PRIMARY KEY, country CHAR(2) NOT NULL, referrer INT, note \
    VARCHAR(90), FOREIGN KEY (country) REFERENCES country (code), FOREIGN KEY (referrer) \
    REFERENCES customer (id));
CREATE TABLE department (id INT PRIMARY KEY, head INT);
CREATE TABLE employee (id INT PRIMARY KEY, department INT NOT NULL, name VARCHAR(40), \
    FOREIGN KEY (department) REFERENCES department (id));
ALTER TABLE department ADD CONSTRAINT department_head FOREIGN KEY (head) REFERENCES \
    employee (id);
CREATE TABLE product (id INT PRIMARY KEY, name VARCHAR(40));
CREATE TABLE warehouse (id INT PRIMARY KEY);
CREATE TABLE stock (warehouse INT, product INT, amount INT NOT NULL, PRIMARY KEY \
    (warehouse, product), FOREIGN KEY (warehouse) REFERENCES warehouse (id), FOREIGN KEY \
    (product) REFERENCES product (id));
CREATE TABLE orders (id INT PRIMARY KEY, customer INT NOT NULL, day DATE, FOREIGN KEY \
    (customer) REFERENCES customer (id));
CREATE TABLE line (orders INT, number INT, warehouse INT NOT NULL, product INT NOT NULL, \
    amount INT, PRIMARY KEY (orders, number), FOREIGN KEY (orders) REFERENCES orders (id), \
    FOREIGN KEY (warehouse, product) REFERENCES stock (warehouse, product));
CREATE TABLE payment (orders INT PRIMARY KEY, amount INT, FOREIGN KEY (orders) REFERENCES \
    orders (id));
INSERT INTO country VALUES ('no', 'Norway'), ('pt', 'Portugal');
";

/// Rows of the tables, in an order that foreign keys allow.
fn rows() -> String {
    let list = |row: &dyn Fn(i32) -> String, count: i32| {
        (1..=count).map(row).collect::<Vec<_>>().join(", ")
    };
    let of = |table: &str, row: &dyn Fn(i32) -> String, count: i32| {
        format!("INSERT INTO {table} VALUES {};\n", list(row, count))
    };
    [
        of("customer", &|i| format!("({}, 'no', NULL, NULL)", 1000 * i), 210),
        of("department", &|i| format!("({i}, NULL)"), 8),
        of("employee", &|i| format!("({}, {}, 'n{i}')", 777 * i, 1 + i % 8), 90),
        of("product", &|i| format!("({}, 'p{i}')", 500 * i), 60),
        of("warehouse", &|i| format!("({i})"), 5),
        of("stock", &|i| format!("({}, {}, 9)", 1 + i % 5, 500 * i), 60),
        of("orders", &|i| format!("({i}, {}, '2024-01-02')", 1000 * (1 + i % 200)), 300),
        of("line", &|i| format!("({i}, 1, {}, {}, 2)", 1 + i % 5, 500 * i), 60),
        of("payment", &|i| format!("({i}, 5)"), 200),
    ]
    .concat()
}

/// Statements that an application sends, and values in the places of `?`.
const STATEMENTS: [(&str, &[&str]); 8] = [
    ("INSERT INTO orders (id, customer, day) VALUES (?, ?, ?)", &["900", "1000", "'2024-02-03'"]),
    (
        "INSERT INTO line (orders, number, warehouse, product, amount) VALUES (?, ?, ?, ?, ?)",
        &["1", "7", "2", "500", "3"],
    ),
    ("INSERT INTO employee VALUES (?, ?, ?)", &["9", "1", "'x'"]),
    ("INSERT INTO customer (id, country, referrer) VALUES (?, ?, ?)", &["7", "'pt'", "2000"]),
    ("UPDATE department SET head = ? WHERE id = ?", &["777", "1"]),
    ("INSERT INTO payment (orders, amount) VALUES (?, ?)", &["250", "7"]),
    ("DELETE FROM customer WHERE id = ?", &["205000"]),
    ("SELECT name FROM employee WHERE id IN (?, ?, ?)", &["777", "1554", "2331"]),
];

/// Statements with their values.
fn sent<'a>(
    statements: impl Iterator<Item = &'a (&'static str, &'static [&'static str])>,
) -> Vec<String> {
    let with_values = |(sql, values): &(&str, &[&str])| {
        values.iter().fold((*sql).to_owned(), |sql, value| sql.replacen('?', value, 1))
    };
    statements.map(with_values).collect()
}

/// The statements as pg_stat_statements has them.
fn statistics() -> String {
    let mut rows = seen_by_postgres(STATEMENTS.iter());
    // As Postgres names what EXECUTE executes.
    rows[0] = rows[0].replacen("('", "('PREPARE put (int, int, date) AS ", 1);
    rows.push("('SELECT nothing FROM orders WHERE id = $1', 2, 475, 950)".to_owned());
    // Somebody looked.
    rows.push("('SELECT count(*) FROM orders', 1, 960, 960)".to_owned());
    // Of an earlier draft.
    rows.push(
        "('SELECT min(id) AS rqps_draft, max(id), NULL FROM orders', 1, 900, 900)".to_owned(),
    );
    view(&rows)
}

/// Statements as rows of pg_stat_statements.
fn seen_by_postgres<'a>(
    statements: impl Iterator<Item = &'a (&'static str, &'static [&'static str])>,
) -> Vec<String> {
    let row = |(number, (sql, values)): (usize, &(&str, &[&str]))| {
        let sql = (1..=values.len())
            .fold((*sql).to_owned(), |sql, place| sql.replacen('?', &format!("${place}"), 1));
        let sql = sql.replace('\'', "''");
        format!("('{sql}', {}, 0.5, {})", 100 - number, 100 - number)
    };
    statements.enumerate().map(row).collect()
}

/// A view in the place of the extension pg_stat_statements.
fn view(rows: &[String]) -> String {
    format!(
        "CREATE VIEW pg_stat_statements AS SELECT v.*, \
         (SELECT oid FROM pg_database WHERE datname = current_database()) AS dbid \
         FROM (VALUES {}) AS v (query, calls, mean_exec_time, total_exec_time)",
        rows.join(", ")
    )
}

/// Makes the ten tables.
fn make_tables(server: &Theirs) {
    let made = SCHEMA.to_owned() + &rows();
    server.owner(&made.split(";\n").filter(|sql| !sql.is_empty()).collect::<Vec<_>>());
}

/// Drafts from a server and runs the draft there. Returns its text and the records of its steps.
fn drafted(server: &Theirs, parts: &[&str]) -> (String, Vec<Json>) {
    let (folder, dsn) = (server.folder.path(), server.dsn("a"));
    let output = init(dsn.strip_prefix("a=").unwrap(), folder);
    assert!(output.status.success(), "{}", said(&output));
    let text = fs::read_to_string(folder.join("shop.toml")).unwrap();
    for part in parts {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let words = ["compare", &dsn, "--bench", "sql:shop.toml", "--yes"];
    let output = rqps_in(&words, folder).args(SHORT).output().unwrap();
    assert!(output.status.success(), "{}\n{text}", said(&output));
    let steps = steps(&folder.join("out"), "a");
    assert_eq!(steps.len(), STATEMENTS.len() + 1, "{text}");
    for step in &steps {
        assert_eq!(step["status"], "complete", "{step}\n{text}");
        assert!(step["outcome"]["events"].as_u64().unwrap_or(0) > 0, "{step}\n{text}");
    }
    (text, steps)
}

#[test]
fn a_draft_from_postgres_keeps_foreign_keys() {
    let test = "a_draft_from_postgres_keeps_foreign_keys";
    let Some(server) = Theirs::start(test, "postgres@17.2.0", Dbms::Postgres) else { return };
    make_tables(&server);
    // Whoever may make functions in a schema of the path would have this one run with the rights of
    // the login: it suits a name better than that of the server.
    let lure = "CREATE FUNCTION quote_ident(name) RETURNS text LANGUAGE sql AS \
                $$ SELECT pg_catalog.nextval('public.caught')::text $$";
    server.owner(&["CREATE SEQUENCE caught", lure, &statistics(), "ANALYZE"]);
    let parts = [
        ", references customer\n",
        ", references orders and stock\n",
        "\"DROP TABLE IF EXISTS ",
        "# 1 statements are left out: the server saw them once.\n",
        "name = \"insert-orders\"\n",
        "name = \"insert-line\"\n",
        "name = \"delete-customer\"\n",
        "# left out, because the server does not prepare it (column \"nothing\" does not exist",
        "s1_1 = { kind = \"sequential\", from = 301, ",
        "csv = \"shop-keys-1-customer.csv\", column = \"id\"",
        "column = \"warehouse\", row = \"s2-1-0\"",
        "column = \"product\", row = \"s2-1-0\"",
        "ignore = [\"23503\"]  # foreign keys forbid some\n",
        "sql = \"DELETE FROM payment WHERE orders = :s6_1\"\n[[step.event.statement]]\n",
    ];
    let (text, steps) = drafted(&server, &parts);
    let caught = server.owner_rows("SELECT is_called FROM caught");
    assert_eq!(caught, [[Some("f".to_owned())]]);
    // The login finds its tables without their schema.
    assert!(!text.contains("public."), "{text}");
    let keys = fs::read_to_string(server.folder.path().join("shop-keys-1-customer.csv")).unwrap();
    assert_eq!((keys.lines().next(), keys.lines().count()), (Some("\"id\""), 211), "{text}");
    for (step, (sql, _)) in steps.iter().zip(&STATEMENTS) {
        let outcome = &step["outcome"];
        let errors: Vec<&String> = outcome["errors"].as_object().unwrap().keys().collect();
        // What is referenced stays.
        let allowed = if sql.starts_with("DELETE") { "23503" } else { "none" };
        assert!(errors.iter().all(|code| *code == allowed), "{sql}: {errors:?}\n{text}");
        if sql.starts_with("INSERT") {
            assert!(outcome["writes"].as_u64().unwrap() > 5, "{sql}: {outcome}");
        }
    }
}

#[test]
fn a_draft_from_mysql_keeps_foreign_keys() {
    let test = "a_draft_from_mysql_keeps_foreign_keys";
    let Some(server) = Theirs::start(test, "mysql@8.0.33", Dbms::Mysql) else { return };
    make_tables(&server);
    server.owner(&[
        "ANALYZE TABLE country, customer, department, employee, product, warehouse, stock, orders, \
         line, payment",
        "TRUNCATE performance_schema.events_statements_summary_by_digest",
    ]);
    let sent = sent(STATEMENTS.iter());
    server.owner(&sent.iter().map(String::as_str).collect::<Vec<_>>());
    // Its statements stand in the order of their time.
    let parts = [
        "VALUES (:s",
        "IN (:s",
        ", count = 3 }",
        "kind = \"sequential\", from = 901, ",
        "csv = \"shop-keys-",
        "column = \"product\", row = ",
        "ignore = [\"1451\", \"1452\"]  # foreign keys forbid some\n",
        "sql = \"DELETE FROM payment WHERE orders = :s",
    ];
    let (text, _) = drafted(&server, &parts);
    assert!(!text.contains("(...)") && !text.contains("cannot infer"), "{text}");
    // What the first draft read is not among the statements of the second. Hints stay.
    server.owner(&["SELECT /*+ MAX_EXECUTION_TIME(1000) */ name FROM employee WHERE id = 777"]);
    let again = tempfile::tempdir().unwrap();
    let output = init(server.dsn("a").strip_prefix("a=").unwrap(), again.path());
    assert!(output.status.success(), "{}", said(&output));
    let text = fs::read_to_string(again.path().join("shop.toml")).unwrap();
    assert!(text.contains("INSERT INTO orders"), "{text}");
    assert!(text.contains("SELECT /*+ MAX_EXECUTION_TIME(1000) */ name"), "{text}");
    assert!(!text.contains("DISTINCT") && !text.contains("rqps_draft"), "{text}");
}

/// Drafts from each application and runs the drafts as they are.
fn drafts_run(test: &str, target: &str, dbms: Dbms) {
    let Some(server) = Theirs::start(test, target, dbms) else { return };
    let owner = |all: &[String]| server.owner(&all.iter().map(String::as_str).collect::<Vec<_>>());
    // A minute shows what runs out in a minute.
    let seconds = std::env::var("RQPS_DRAFT_SECONDS").unwrap_or_else(|_| "0.2".to_owned());
    for application in &ALL {
        owner(&application.made(dbms));
        let statements = || application.statements(dbms);
        match dbms {
            Dbms::Postgres => server.owner(&[&view(&seen_by_postgres(statements())), "ANALYZE"]),
            _ => {
                server.owner(&["TRUNCATE performance_schema.events_statements_summary_by_digest"]);
                owner(&sent(statements()));
            }
        }
        let (folder, dsn) = (server.folder.path().join(application.name), server.dsn("a"));
        fs::create_dir(&folder).unwrap();
        let output = init(dsn.strip_prefix("a=").unwrap(), &folder);
        assert!(output.status.success(), "{}", said(&output));
        let text = fs::read_to_string(folder.join("shop.toml")).unwrap();
        assert!(!said(&output).contains("left out"), "{}", said(&output));
        let words = ["compare", &dsn, "--bench", "sql:shop.toml", "--yes", "--clients", "2"];
        let set = format!("seconds={seconds}");
        let output = rqps_in(&words, &folder).args(SHORT).args(["--set", &set]).output().unwrap();
        assert!(output.status.success(), "{}\n{text}", said(&output));
        let steps = steps(&folder.join("out"), "a");
        // The server may also have counted the load.
        assert!(steps.len() > statements().count(), "{text}");
        for step in &steps {
            check_step(step, &text);
        }
        let made_tables: Vec<String> =
            application.tables.iter().map(|table| format!("DROP {table}")).collect();
        if dbms == Dbms::Postgres {
            server.owner(&["DROP VIEW pg_stat_statements"]);
        }
        owner(&made_tables);
    }
}

/// A step of a draft finds rows, or writes some.
fn check_step(step: &Json, text: &str) {
    let name = &step["name"];
    let about = || format!("{name} {}\n{text}", step["outcome"]);
    assert_eq!(step["status"], "complete", "{}", about());
    let number = |key: &str| step["outcome"][key].as_u64().unwrap_or(0);
    let events = number("events");
    assert!(events > 0, "{}", about());
    // A busy host may leave time for a few values only, and some of them find nothing.
    let found = number("rows") + number("writes");
    assert!(found > 0 || events < 50, "{}", about());
    let errors = step["outcome"]["errors"].as_object().unwrap();
    let allowed = ["23503", "23505", "1062", "1451", "1452", "40P01", "1213"];
    assert!(errors.keys().all(|code| allowed.contains(&code.as_str())), "{}", about());
    // A row that is deleted is found, but for one that another client has just deleted.
    let (_, own) = text.split_once(&format!("name = {name}\n")).unwrap();
    let own = own.split("[[step]]").next().unwrap_or_default();
    if name != "mix" && ["Puts the row back", "Makes the row"].iter().any(|part| own.contains(part))
    {
        assert!(number("writes") > events || events < 50, "{}", about());
    }
}

#[test]
fn drafts_of_three_applications_run_on_postgres() {
    let test = "drafts_of_three_applications_run_on_postgres";
    drafts_run(test, "postgres@17.2.0", Dbms::Postgres);
}

#[test]
fn drafts_of_three_applications_run_on_mariadb() {
    let test = "drafts_of_three_applications_run_on_mariadb";
    drafts_run(test, "mariadb@11.4.5", Dbms::Mariadb);
}

#[test]
fn drafts_of_three_applications_run_on_mysql() {
    let test = "drafts_of_three_applications_run_on_mysql";
    drafts_run(test, "mysql@8.0.33", Dbms::Mysql);
}

// Three small applications: a rental shop, a trader and a music store, each with the statements
// that its program sends. `{small}` is a small number that the server gives, `{serial}` a larger
// one, `{time}` a time, `{kind}` an enumeration, `{json}` a document.

/// An application.
pub(crate) struct Application {
    pub(crate) name: &'static str,
    /// Statements that make its tables.
    schema: &'static [&'static str],
    /// In the order in which they can be dropped.
    pub(crate) tables: &'static [&'static str],
    rows: fn() -> Vec<String>,
    /// Statements for both, with values in the places of `?`.
    both: &'static [(&'static str, &'static [&'static str])],
    postgres: &'static [(&'static str, &'static [&'static str])],
    mysql: &'static [(&'static str, &'static [&'static str])],
}

impl Application {
    pub(crate) fn made(&self, dbms: Dbms) -> Vec<String> {
        let is_mysql = dbms != Dbms::Postgres;
        let choose = |mysql: &'static str, postgres| if is_mysql { mysql } else { postgres };
        let spelled = |sql: &&str| {
            sql.replace("{small}", choose("TINYINT UNSIGNED AUTO_INCREMENT", "SMALLSERIAL"))
                .replace(
                    "{serial}",
                    choose("INT AUTO_INCREMENT", "INT GENERATED ALWAYS AS IDENTITY"),
                )
                .replace("{time}", choose("DATETIME", "TIMESTAMP"))
                .replace("{json}", choose("JSON", "JSONB"))
                .replace("{kind}", choose("ENUM ('G', 'PG', 'R')", "rating"))
        };
        let own = if is_mysql {
            Vec::new()
        } else {
            vec![
                "DROP TYPE IF EXISTS rating".to_owned(),
                "CREATE TYPE rating AS ENUM ('G', 'PG', 'R')".to_owned(),
            ]
        };
        let rows = (self.rows)().into_iter().map(|sql| {
            if is_mysql { sql } else { sql.replace(" VALUES ", " OVERRIDING SYSTEM VALUE VALUES ") }
        });
        own.into_iter().chain(self.schema.iter().map(spelled)).chain(rows).collect()
    }

    pub(crate) fn statements(
        &self,
        dbms: Dbms,
    ) -> impl Iterator<Item = &'static (&'static str, &'static [&'static str])> {
        self.both.iter().chain(match dbms {
            Dbms::Postgres => self.postgres,
            Dbms::Mariadb => &[],
            _ => self.mysql,
        })
    }
}

pub(crate) const ALL: [Application; 3] = [
    Application {
        name: "rental",
        schema: &[
            "CREATE TABLE language (language_id {small} PRIMARY KEY, name CHAR(20) NOT NULL)",
            "CREATE TABLE actor (actor_id INT PRIMARY KEY, first_name VARCHAR(45) NOT NULL, \
             last_name VARCHAR(45) NOT NULL)",
            "CREATE TABLE film (film_id INT PRIMARY KEY, title VARCHAR(60) NOT NULL, language_id \
             SMALLINT NOT NULL, length SMALLINT NOT NULL, rate DECIMAL(4, 2) NOT NULL, rating \
             {kind} NOT NULL, taxed DECIMAL(6, 2) GENERATED ALWAYS AS (rate * 1.2) STORED)",
            "CREATE TABLE film_actor (actor_id INT NOT NULL, film_id INT NOT NULL, \
             PRIMARY KEY (actor_id, film_id), FOREIGN KEY (actor_id) REFERENCES actor (actor_id), \
             FOREIGN KEY (film_id) REFERENCES film (film_id))",
            "CREATE TABLE rental (rental_id {serial} PRIMARY KEY, rental_date {time} NOT NULL, \
             film_id INT NOT NULL, customer_id INT NOT NULL, return_date {time}, \
             UNIQUE (rental_date, film_id, customer_id), CHECK (return_date >= rental_date), \
             FOREIGN KEY (film_id) REFERENCES film (film_id))",
        ],
        tables: &[
            "TABLE rental", "TABLE film_actor", "TABLE film", "TABLE actor", "TABLE language",
        ],
        rows: || {
            vec![
                list("language (language_id, name)", 6, |i| format!("({i}, 'tongue {i}')")),
                list("actor (actor_id, first_name, last_name)", 200, |i| {
                    format!("({i}, 'FIRST{i}', 'LAST{}')", i % 50)
                }),
                list("film (film_id, title, language_id, length, rate, rating)", 300, |i| {
                    let rating = ["G", "PG", "R"][i % 3];
                    format!(
                        "({}, 'title {i} of', {}, {}, 4.9, '{rating}')",
                        7 * i,
                        1 + i % 6,
                        40 + i
                    )
                }),
                list("film_actor (actor_id, film_id)", 600, |i| {
                    format!("({}, {})", 1 + i % 200, 7 * (1 + i % 300))
                }),
                list("rental (rental_date, film_id, customer_id, return_date)", 800, |i| {
                    let (month, day) = (1 + i % 12, 1 + i % 28);
                    let from = format!("2024-{month:02}-{day:02} 10:00:00");
                    let to = format!("2025-{month:02}-01");
                    format!("('{from}', {}, {i}, '{to} 00:00:00')", 7 * (1 + i % 300))
                }),
            ]
        },
        both: &[
            ("INSERT INTO language (name) VALUES (?)", &["'Latin'"]),
            ("DELETE FROM film_actor WHERE actor_id = ? AND film_id = ?", &["1", "999999"]),
            (
                "SELECT * FROM film_actor WHERE (actor_id, film_id) IN ((?, ?), (?, ?))",
                &["1", "7", "2", "14"],
            ),
            ("SELECT film_id FROM film WHERE title LIKE ? AND length > ?", &["'title 1%'", "50"]),
            (
                "UPDATE film SET length = length + ?, rating = ? WHERE film_id = ?",
                &["30", "'PG'", "14"],
            ),
            (
                "INSERT INTO rental (rental_date, film_id, customer_id, return_date) \
                 VALUES (?, ?, ?, ?)",
                &["'2024-05-05 10:00:00'", "14", "900", "'2024-05-06 10:00:00'"],
            ),
            (
                "SELECT COUNT(*), SUM(rate) FROM film WHERE rating = ? HAVING COUNT(*) > ?",
                &["'G'", "2"],
            ),
            (
                "UPDATE rental SET return_date = ? WHERE rental_id = ?",
                &["'2025-05-05 10:00:00'", "5"],
            ),
        ],
        postgres: &[
            (
                "SELECT date_trunc(?, rental_date), count(*) FROM rental WHERE rental_date >= date \
                 ? AND rental_date < date ? + interval ? GROUP BY date_trunc('month', rental_date)",
                &["'month'", "'2024-01-01'", "'2024-01-01'", "'1 month'"],
            ),
            // Without casts the server takes the numbers for texts.
            (
                "SELECT sum(CASE WHEN length > ? THEN ? ELSE ? END), ? AS one FROM film WHERE \
                 rating = ANY (?::rating[]) OR rating <> ?::rating",
                &["60", "1", "0", "1", "'{G}'", "'R'"],
            ),
            (
                "SELECT v.label, f.title FROM (VALUES (?, ?), (?, ?)) AS v (id, label) JOIN film f \
                 ON f.film_id = v.id",
                &["7", "'a'", "14", "'b'"],
            ),
            (
                "SELECT make_date(?, ?, ?), tsrange(?, ?), d::date FROM generate_series(?::date, ?::date, \
                 ?::interval) d, film TABLESAMPLE SYSTEM (?)",
                &[
                    "2024", "1", "1", "'2024-01-01'", "'2025-01-01'", "'2024-01-01'",
                    "'2024-01-04'", "'1 day'", "10",
                ],
            ),
            (
                "UPDATE film SET rate = rate * ?, title = title || ? WHERE film_id = ?",
                &["1.1", "'!'", "14"],
            ),
            (
                "SELECT extract(? from rental_date), count(*) FROM rental WHERE film_id = ANY (?) \
                 AND extract(? from rental_date) = ? GROUP BY extract(month from rental_date)",
                &["month", "'{7,14}'", "year", "2024"],
            ),
        ],
        mysql: &[
            (
                "SELECT DATE_FORMAT(rental_date, ?) AS m, COUNT(DISTINCT film_id) FROM rental \
                 WHERE rental_date BETWEEN DATE ? AND ? GROUP BY m LIMIT ?, ?",
                &["'%Y-%m'", "'2024-02-01'", "'2024-03-01'", "0", "5"],
            ),
            (
                "UPDATE film SET rate = rate * ?, title = CONCAT(title, ?), length = ROUND(length * \
                 ?) WHERE film_id = ?",
                &["1.1", "'!'", "1.1", "14"],
            ),
            (
                "SELECT EXTRACT(YEAR FROM rental_date), IF(film_id > ?, ?, ?) FROM rental WHERE \
                 rental_date > ? - INTERVAL ? DAY AND film_id IN (?, ?, ?)",
                &["50", "'new'", "'old'", "'2024-06-01'", "200", "7", "14", "21"],
            ),
        ],
    },
    Application {
        name: "trader",
        schema: &[
            "CREATE TABLE customers (customer_id CHAR(5) PRIMARY KEY, company VARCHAR(40) NOT \
             NULL, country VARCHAR(15), data {json})",
            "CREATE TABLE products (product_id SMALLINT PRIMARY KEY, name VARCHAR(40) NOT NULL, \
             price DECIMAL(6, 2) NOT NULL, stock SMALLINT NOT NULL, CHECK (stock >= 0))",
            "CREATE TABLE orders (order_id INT PRIMARY KEY, customer_id CHAR(5) NOT NULL, ordered \
             DATE NOT NULL, freight DECIMAL(8, 2), FOREIGN KEY (customer_id) REFERENCES customers \
             (customer_id))",
            "CREATE TABLE order_details (order_id INT NOT NULL, product_id SMALLINT NOT NULL, \
             quantity SMALLINT NOT NULL, discount DECIMAL(3, 2) NOT NULL, PRIMARY KEY (order_id, \
             product_id), FOREIGN KEY (order_id) REFERENCES orders (order_id), FOREIGN KEY \
             (product_id) REFERENCES products (product_id))",
            "CREATE VIEW order_sums AS SELECT o.order_id, c.country AS land, o.ordered, \
             sum(d.quantity) AS pieces FROM orders o JOIN customers c ON c.customer_id = \
             o.customer_id JOIN order_details d ON d.order_id = o.order_id GROUP BY o.order_id, \
             c.country, o.ordered",
        ],
        tables: &[
            "VIEW order_sums", "TABLE order_details", "TABLE orders", "TABLE products",
            "TABLE customers",
        ],
        rows: || {
            vec![
                list("customers (customer_id, company, country, data)", 90, |i| {
                    let country = ["Norway", "Peru", "Italy"][i % 3];
                    format!("('C{i:04}', 'Company {i}', '{country}', '{{\"vip\": \"{}\"}}')", i % 2)
                }),
                list("products (product_id, name, price, stock)", 77, |i| {
                    format!("({i}, 'product {i}', {i}.5, {})", i % 4)
                }),
                list("orders (order_id, customer_id, ordered, freight)", 500, |i| {
                    let (month, day) = (1 + i % 12, 1 + i % 28);
                    let of = 1 + i % 90;
                    format!("({i}, 'C{of:04}', '2024-{month:02}-{day:02}', {i}.25)")
                }),
                list("order_details (order_id, product_id, quantity, discount)", 1500, |i| {
                    format!("({}, {}, 3, 0.1)", 1 + i % 500, 1 + i % 77)
                }),
            ]
        },
        both: &[
            ("DELETE FROM order_details WHERE order_id = ? AND product_id = ?", &["1", "999"]),
            (
                "UPDATE products SET stock = stock - ? WHERE product_id = ? AND stock >= ?",
                &["1", "7", "1"],
            ),
            (
                "INSERT INTO order_details (order_id, product_id, quantity, discount) \
                 VALUES (?, ?, ?, ?)",
                &["1", "3", "2", "0.2"],
            ),
            (
                "INSERT INTO customers (customer_id, company, country) VALUES (?, ?, ?)",
                &["'ZZZZZ'", "'Zed'", "'Peru'"],
            ),
            (
                "INSERT INTO products (product_id, name, price, stock) VALUES (?, ?, ?, ?), (?, ?, \
                 ?, ?)",
                &["900", "'a'", "2.5", "4", "901", "'b'", "3.5", "4"],
            ),
            (
                "SELECT c.company, SUM(d.quantity * p.price * (? - d.discount)) FROM customers c \
                 JOIN orders o ON o.customer_id = c.customer_id JOIN order_details d ON d.order_id \
                 = o.order_id JOIN products p ON p.product_id = d.product_id WHERE c.country = ? \
                 AND o.ordered BETWEEN ? AND ? GROUP BY c.company",
                &["1", "'Norway'", "'2024-01-01'", "'2024-06-01'"],
            ),
            (
                "SELECT order_id FROM orders WHERE (ordered, order_id) > (?, ?) LIMIT ?",
                &["'2024-06-01'", "5", "10"],
            ),
            ("DELETE FROM orders WHERE order_id = ?", &["99999"]),
            (
                "SELECT s.pieces FROM order_sums s WHERE s.land = ? AND s.ordered >= ? AND \
                 s.order_id = ?",
                &["'Peru'", "'2024-06-01'", "7"],
            ),
        ],
        postgres: &[
            (
                "SELECT order_id, ordered + ? FROM orders WHERE ordered > current_date - ? OR \
                 ordered BETWEEN ?::date AND ?::date + ?",
                &["7", "30", "'2024-03-01'", "'2024-03-01'", "7"],
            ),
            (
                "WITH RECURSIVE r AS (SELECT ? AS n UNION ALL SELECT n + ? FROM r WHERE n < ?) \
                 SELECT r.n, o.freight FROM r JOIN orders o ON o.order_id = r.n",
                &["1", "1", "10"],
            ),
            (
                "SELECT company FROM customers WHERE data ->> ? IS NOT NULL AND country ILIKE ?",
                &["'vip'", "'%r%'"],
            ),
            (
                "SELECT count(*) FROM orders WHERE ordered > timestamp ? AND freight > ?::numeric",
                &["'2024-03-01'", "20"],
            ),
        ],
        mysql: &[(
            "SELECT company, data->? FROM customers WHERE data->>? = ? AND country LIKE ? LIMIT ?",
            &["'$.vip'", "'$.vip'", "'1'", "'%r%'", "5"],
        )],
    },
    Application {
        name: "music",
        schema: &[
            "CREATE TABLE artist (artist_id {small} PRIMARY KEY, name VARCHAR(120))",
            "CREATE TABLE album (album_id INT PRIMARY KEY, title VARCHAR(160) NOT NULL, artist_id \
             SMALLINT NOT NULL)",
            "CREATE TABLE track (track_id {serial} PRIMARY KEY, name VARCHAR(200) NOT NULL, \
             album_id INT, milliseconds INT NOT NULL, unit_price NUMERIC(10, 2) NOT NULL, plays \
             SMALLINT NOT NULL)",
            "CREATE TABLE playlist_track (playlist_id INT NOT NULL, track_id INT NOT NULL, added \
             DATE NOT NULL, PRIMARY KEY (playlist_id, track_id))",
            "CREATE TABLE heard (track_id INT PRIMARY KEY, times SMALLINT NOT NULL)",
        ],
        tables: &[
            "TABLE heard", "TABLE playlist_track", "TABLE track", "TABLE album", "TABLE artist",
        ],
        rows: || {
            vec![
                list("artist (artist_id, name)", 100, |i| format!("({i}, 'Artist {i}')")),
                list("album (album_id, title, artist_id)", 300, |i| {
                    format!("({i}, 'Album {i}', {})", 1 + i % 100)
                }),
                list("track (name, album_id, milliseconds, unit_price, plays)", 2000, |i| {
                    format!(
                        "('Track {i}', {}, {}, {}.99, {})",
                        1 + i % 300,
                        1000 + i,
                        i % 5,
                        32000 + i % 9
                    )
                }),
                list("playlist_track (playlist_id, track_id, added)", 3000, |i| {
                    format!("({}, {i}, '2024-01-01')", 1 + i % 18)
                }),
                list("heard (track_id, times)", 500, |i| format!("({i}, {})", 32000 + i)),
            ]
        },
        both: &[
            ("UPDATE track SET plays = plays + ? WHERE track_id = ?", &["1", "17"]),
            ("INSERT INTO playlist_track VALUES (?, ?, ?)", &["1", "100000", "'2024-05-05'"]),
            ("INSERT INTO artist (name) VALUES (?), (?)", &["'one'", "'two'"]),
            ("DELETE FROM playlist_track WHERE (playlist_id, track_id) = (?, ?)", &["1", "99999"]),
            (
                "SELECT t.name FROM track t JOIN album b ON b.album_id = t.album_id JOIN artist a \
                 ON a.artist_id = b.artist_id WHERE a.name = ? AND t.milliseconds >= ? AND \
                 t.milliseconds < ? ORDER BY t.name LIMIT ?",
                &["'Artist 5'", "1500", "2500", "10"],
            ),
            (
                "SELECT CASE WHEN milliseconds > ? THEN ? ELSE ? END AS kind, COUNT(*) FROM track \
                 WHERE album_id IN (?, ?) AND COALESCE(unit_price, ?) < ? GROUP BY 1",
                &["1500", "'long'", "'short'", "4", "5", "0", "2"],
            ),
        ],
        postgres: &[
            (
                "INSERT INTO playlist_track (playlist_id, track_id, added) VALUES (?, ?, ?) \
                 ON CONFLICT (playlist_id, track_id) DO UPDATE SET added = ?",
                &["1", "5", "'2024-05-05'", "'2024-05-05'"],
            ),
            (
                "INSERT INTO heard (track_id, times) VALUES (?, ?) ON CONFLICT (track_id) DO \
                 UPDATE SET times = heard.times + ?",
                &["7", "1", "1"],
            ),
            (
                "INSERT INTO heard AS h (track_id, times) VALUES (?, ?) ON CONFLICT (track_id) DO \
                 UPDATE SET times = h.times + excluded.times",
                &["7", "1"],
            ),
        ],
        mysql: &[
            (
                "SELECT GROUP_CONCAT(name ORDER BY name SEPARATOR ?), ROUND(AVG(unit_price), ?) \
                 FROM track WHERE album_id = ?",
                &["', '", "2", "9"],
            ),
            ("REPLACE INTO playlist_track VALUES (?, ?, ?)", &["1", "5", "'2024-05-05'"]),
            (
                "INSERT INTO heard (track_id, times) VALUES (?, ?) ON DUPLICATE KEY UPDATE times \
                 = times + ?",
                &["7", "1", "1"],
            ),
            (
                "INSERT INTO heard (track_id, times) VALUES (?, ?) ON DUPLICATE KEY UPDATE times \
                 = times + VALUES(times)",
                &["7", "1"],
            ),
        ],
    },
];

/// An INSERT of so many rows.
fn list(table: &str, count: usize, row: impl Fn(usize) -> String) -> String {
    let rows: Vec<String> = (1..=count).map(row).collect();
    format!("INSERT INTO {table} VALUES {}", rows.join(", "))
}
