//! SQL is put together of constants, numbers and typed parts: a name or text from outside becomes
//! SQL as an `Identifier` or a `Literal` (crates/rqps-model/src/sql_name.rs), and in no other way.

#![allow(clippy::unwrap_used)] // A test file throughout; clippy only sees the marked functions.

mod sources;

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};

use sources::{Files, is_test_line, shipped, short, test_lines, tokens};

/// Words with which a statement, or a part of one, begins.
const BEGINNINGS: [&str; 31] = [
    "ALTER", "ANALYZE", "CALL", "CHECKSUM", "COMMENT", "COPY", "CREATE", "DELETE", "DROP",
    "ENGINE", "ENGINE=", "EXPLAIN", "FROM", "GRANT", "INSERT", "KILL", "LOAD", "PARTITION",
    "PRAGMA", "PREPARE", "REVOKE", "SELECT", "SET", "SHOW", "TABLESPACE", "TRUNCATE", "UPDATE",
    "USE", "USING", "VACUUM", "WITH",
];

/// Parts that are neither constants nor typed where they stand: file, and names of parts. A new one
/// needs a look at where it comes from: numbers, texts of the benchmark, and names that were quoted
/// before may stand here; texts of a plan, a file, a DSN or a server may not.
const KNOWN: &[(&str, &[&str])] = &[
    (
        "bench/sql/draft/mod",
        &[
            "column.name", "from", "known", "list", "names.join(\",\")", "random",
            "rows.join(\"OR\")", "table.name", "word",
        ],
    ),
    (
        "bench/sql/draft/keys",
        &["assignments", "columns", "facts.name", "key", "overriding", "values"],
    ),
    (
        "bench/sql/draft/survey",
        &[
            "counted", "from", "mean", "name", "quoted", "random", "sample", "sql", "table.name",
            "total", "view",
        ],
    ),
    ("bench/sql/steps/mod", &["level"]),
    (
        "bench-insert/rows",
        &[
            "add",
            "adds.join(\",\")",
            "columns",
            "condition",
            "from",
            "hint",
            "index",
            "kinds",
            "mysql_partitions(partitioning)",
            "name",
            "parameter",
            "parameters",
            "parts.join(\",\")",
            "price",
            "spelled(&dollars)",
            "split",
            "to",
            "u64::from(index+1)*rows",
            "workers",
        ],
    ),
    ("bench-insert/steps", &["rows::TABLE"]),
    (
        "bench/orders/driver/mod",
        &[
            "of_new(\"COUNT(*)\")", "of_new(\"MAX(no_o_id)\")", "of_new(\"MIN(no_o_id)\")",
            "table", "what",
        ],
    ),
    ("bench/orders/driver/inputs", &["marks", "mysql", "name", "postgres", "self.name"]),
    ("bench/orders/driver/statements", &["district"]),
    (
        "bench/orders/mod",
        &["columns", "index", "name", "partitions", "parts.join(\",\")", "rest", "self.key"],
    ),
    ("bench/pgbench/driver/mod", &["table.columns", "table.name"]),
    (
        "bench/pgbench/schema",
        &[
            "bound",
            "column",
            "columns",
            "end",
            "engine",
            "from",
            "key",
            "load.tables.partitions",
            "mysql_partitions(load,is_split)",
            "name",
            "number",
            "number+1",
            "other",
            "parts.join(\",\")",
            "space",
            "tables.partitions",
            "table",
            "tables.fillfactor.unwrap_or(100)",
            "to",
            "values",
            "way",
            "word",
        ],
    ),
    ("bench/sysbench/mod", &["engine", "id", "key", "workload.rows"]),
    ("bench/sysbench/steps", &["column", "columns", "list", "on", "tail"]),
    (
        "bench-vector/driver/mod",
        &["(memory>>20)+1", "index.workers", "memory", "seed&0x3fff_ffff", "seed>>34", "wanted"],
    ),
    ("bench-vector/driver/capacity", &["parts(percent)"]),
    ("bench-vector/driver/isolation", &["self.row", "words"]),
    (
        "bench-vector/driver/sql",
        &[
            "column",
            "condition",
            "dims",
            "distance",
            "ef",
            "first",
            "function",
            "id",
            "k",
            "kept",
            "key",
            "m",
            "near",
            "operator",
            "search.ef.max(k)",
            "search.iterative.name()",
            "self.query(search,&vector,&filter)",
            "self.types",
            "storage",
            "storage_engine",
            "types",
            "values.join(\",\")",
            "vector",
            "width",
        ],
    ),
    ("bench/ycsb/mod", &["columns(self.shape).join(\",\")", "engine", "field", "fields", "key"]),
    ("rqps/cli/convert", &["columns.join(\",\")", "table.name", "values.join(\",\")"]),
    ("dbms/fake", &["label"]),
    (
        "dbms/guest/catalogue",
        &[
            "full", "last", "literal(mark)", "literal(name)", "literal(place)",
            "lock_number(name)", "name", "names", "place", "sets",
        ],
    ),
    ("dbms/guest/claim", &["names.join(\",\")"]),
    ("dbms/guest/mod", &["condition", "rows.join(\",\")"]),
    ("dbms/guest/trust", &["from_files", "of", "of_place", "place", "schema", "tables", "what"]),
    ("dbms/mysql_family/mod", &["set", "table", "text(host)", "text(password)", "text(user)"]),
    ("dbms/mysql_family/statements", &["engine", "name", "table", "value"]),
    (
        "dbms/postgres",
        &["cleanup", "column", "encryption", "name", "own", "password", "table", "view"],
    ),
    ("dbms/sqlite", &["line", "name"]),
    ("driver/connection", &["id"]),
    (
        "driver/guest",
        &[
            "&function[..end]", "extension", "from_files", "function", "mark", "name", "names",
            "schemas", "table", "values",
        ],
    ),
    ("driver/load", &["name", "names", "self.columns.names", "tuples", "values"]),
    ("driver/load_changes", &["modes", "name", "table"]),
    (
        "driver/row_stream",
        &[
            "columns", "fields.join(\",\")", "marks", "self.name", "self.names()", "set",
            "sets.join(\",\")",
        ],
    ),
    ("driver/script/explain", &["operation.sql"]),
    ("driver/tables", &["name", "names", "place", "schema"]),
    ("plans/mysql/mod", &["name(&table.name)"]),
    (
        "plans/mysql/server",
        &[
            "assignment", "collation", "database", "error", "name(&table)", "name(variable)",
            "pattern", "quoted", "set", "statement", "value",
        ],
    ),
    ("plans/mysql/source", &["name(&function)", "names", "of", "quoted", "table", "values"]),
    (
        "plans/mysql/statistics",
        &[
            "alias", "column", "condition", "data", "into", "name(&table.name)", "names", "of",
            "own", "parts", "read", "selected.join(\",\")", "table", "values",
        ],
    ),
    ("text/behind", &["acting", "as_columns", "from_files", "functions", "named", "path", "views"]),
    ("text/reading", &["asked", "kind", "name", "right", "self.mysql_condition()", "self.name"]),
    ("wire/error", &["id"]),
];

/// The parts of a `format!` that makes SQL; empty for another one.
fn parts(arguments: TokenStream) -> Vec<String> {
    let all: Vec<TokenTree> = arguments.into_iter().collect();
    let mut pieces = all.split(|token| token.to_string() == ",");
    let first = pieces.next().and_then(<[TokenTree]>::first).map(ToString::to_string);
    let Some(Ok(syn::Lit::Str(text))) = first.map(|text| syn::parse_str::<syn::Lit>(&text)) else {
        return Vec::new();
    };
    let text = text.value().replace("{{", "").replace("}}", "");
    let begin = text.split_whitespace().next().unwrap_or_default().trim_start_matches('(');
    if !BEGINNINGS.contains(&begin) {
        return Vec::new();
    }
    // Without blanks, so that the layout of the source does not matter.
    let plain = |piece: &[TokenTree]| -> String {
        let text: String = piece.iter().map(ToString::to_string).collect();
        text.split_whitespace().collect()
    };
    let given: Vec<String> = pieces.map(plain).collect();
    let mut next = given.iter();
    let mut found = Vec::new();
    for hole in text.split('{').skip(1).filter_map(|rest| rest.split_once('}')) {
        let name = hole.0.split(':').next().unwrap_or_default();
        let said = if name.is_empty() {
            next.next().cloned().unwrap_or_default()
        } else {
            let named = format!("{name}=");
            let given = given.iter().find_map(|given| given.strip_prefix(&named));
            given.unwrap_or(name).to_owned()
        };
        found.push(said);
    }
    found
}

/// True for a constant and for what only quoting can make.
fn is_typed(part: &str) -> bool {
    let is_constant =
        part.chars().all(|letter| letter.is_ascii_uppercase() || "_0123456789".contains(letter));
    is_constant
        || ["Identifier::", "Literal::", ".identifier("].iter().any(|made| part.contains(made))
}

fn collect(
    stream: TokenStream,
    tests: &[std::ops::RangeInclusive<usize>],
    found: &mut BTreeSet<String>,
) {
    let all: Vec<TokenTree> = stream.into_iter().collect();
    for (at, token) in all.iter().enumerate() {
        if is_test_line(tests, token.span().start().line) {
            continue;
        }
        let TokenTree::Group(group) = token else { continue };
        let before = |back: usize| at.checked_sub(back).map(|at| all[at].to_string());
        if before(1).as_deref() == Some("!") && before(2).as_deref() == Some("format") {
            found.extend(parts(group.stream()).into_iter().filter(|part| !is_typed(part)));
        }
        collect(group.stream(), tests, found);
    }
}

/// Parts of SQL that are not known.
fn unknown(files: Files, known: &[(&str, &[&str])]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut stale: BTreeSet<String> = known
        .iter()
        .flat_map(|(file, parts)| parts.iter().map(move |part| format!("{file}: {part}")))
        .collect();
    for (path, text) in files {
        let mut found = BTreeSet::new();
        collect(tokens(&path, &text), &test_lines(&path, &text), &mut found);
        for part in found {
            let line = format!("{}: {part}", short(&path));
            if !stale.remove(&line) {
                faults.push(line);
            }
        }
    }
    faults.extend(stale.into_iter().map(|line| format!("{line}: no longer so: remove it")));
    faults
}

#[test]
fn sql_is_made_of_constants_numbers_and_typed_parts() {
    let faults = unknown(shipped(), KNOWN);
    let help = "quote it: Identifier::quoted, Identifier::plain, Literal::quoted";
    assert!(faults.is_empty(), "\n{}\n{help}\n", faults.join("\n"));
}

#[test]
fn a_raw_text_in_sql_is_found() {
    let check = |text: &str, known: &[(&str, &[&str])], want: &[&str]| {
        let files = sources::made(&[("crates/rqps-dbms/src/x.rs", text)]);
        assert_eq!(unknown(files, known), want, "{text}");
    };
    let raw = "fn f(name: &str) -> String { format!(\"DROP TABLE {name}\") }";
    check(raw, &[], &["dbms/x: name"]);
    check(raw, &[("dbms/x", &["name"])], &[]);
    check("fn f() {}", &[("dbms/x", &["name"])], &["dbms/x: name: no longer so: remove it"]);
    check("fn f() { run(&format!(\"USE {}\", plan.name)); }", &[], &["dbms/x: plan.name"]);
    check("fn f() { format!(\"SELECT {OWN} FROM {TABLE_1}\"); }", &[], &[]);
    check("fn f() { format!(\"USE {}\", Identifier::quoted(d, name)); }", &[], &[]);
    check("fn f() { format!(\"failed to drop {name}\"); }", &[], &[]);
    check("fn f() { format!(\"WITH {name} AS (SELECT 1)\"); }", &[], &["dbms/x: name"]);
    check(&format!("#[cfg(test)] mod tests {{ {raw} }}"), &[], &[]);
}
