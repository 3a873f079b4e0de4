//! Surveys a database: sizes and keys of tables, values of columns, and the statements with most
//! total time.

use std::collections::{BTreeMap, BTreeSet};

use super::digests;
use super::keys::{self, PLENTY, with_own_key};
use super::ranges::ValueGuess;
use super::statements::{
    NodeKind, OWN, TokenTree, bare, holds_text, is_of_tables, learn_columns, meaning, plain,
    prepared, with_casts,
};
use super::written::NamedTables;
use crate::sql::draft;
use rqps_model::compatible::CompatibleServer;
use rqps_model::dialect::{Dialect, SERVER_ONLY};
use rqps_text::{behind, is_one_statement};

/// Most tables in a survey; the largest.
const TABLES: usize = 200;

/// Most statements in a survey; those with most total time.
const STATEMENTS: usize = 15;

/// Sampled values per column.
const SAMPLE: usize = 20;

/// Longest statement, bytes.
const LONGEST_STATEMENT: usize = 20_000;

/// Longest sampled value, characters.
const LONGEST: usize = 60;

/// Most rows of a table that is searched for the smallest and the largest value of a column. An
/// index knows them for any number of rows.
const SEARCHED_ROWS: u64 = 20_000_000;

/// Most rows of a table whose values are counted.
const COUNTED_ROWS: u64 = 1_000_000;

/// Most attempts at casts of a statement.
const CASTS: usize = 8;

/// Most values of a statement that are tried as numbers.
const MOST_NUMBERS: usize = 40;

/// Surveys a database.
///
/// # Errors
///
/// The database does not list its tables.
pub fn survey(dialect: Dialect, ask: &mut AskDatabase<'_>) -> Result<DatabaseSurvey, String> {
    // What others made in the schemas of the login's path must not run with its rights. So the
    // queries name tables with their schemas, and the draft as the login finds them.
    let visible = match dialect {
        Dialect::Postgres => {
            let visible = ask(VISIBLE).unwrap_or_default();
            ask(SERVER_ONLY)?;
            // A policy of somebody's table would run with the rights of the login. The server then
            // refuses to read it. Servers that are only compatible have none.
            ask("SET row_security = off").ok();
            visible.into_iter().flatten().flatten().collect()
        }
        _ => BTreeSet::new(),
    };
    let acting = tables_that_act(dialect, ask)?;
    let (tables, drafted): (Vec<TableFacts>, Vec<String>) =
        tables(dialect, ask, &visible, &acting)?.into_iter().unzip();
    let mut found = DatabaseSurvey { tables, ..DatabaseSurvey::default() };
    if !acting.is_empty() {
        let count = acting.len();
        found.notes.push(format!(
            "{count} tables are left out: whoever reads them calls what other users made"
        ));
    }
    if let Err(why) = keys::read(dialect, ask, &mut found.tables) {
        found.notes.push(format!("foreign keys and unique indexes could not be read: {why}"));
    }
    match statements(dialect, ask, &found.tables, &mut found.left_out) {
        Ok(statements) => found.statements = statements,
        Err(note) => found.notes.push(note),
    }
    for table in &mut found.tables {
        for number in table.key.clone() {
            learn(dialect, ask, table, number);
        }
    }
    learn_columns(&mut found, &mut |table, column| {
        learn(dialect, ask, table, column);
    });
    for (table, column) in draft::learn(dialect, ask, &mut found) {
        learn(dialect, ask, &mut found.tables[table], column);
    }
    if dialect == Dialect::Postgres {
        learn_members(ask, &mut found);
        for row in ask(LABELS).unwrap_or_default() {
            if let [Some(name), Some(label)] = row.as_slice() {
                found.labels.entry(name.clone()).or_default().push(label.clone());
            }
        }
    }
    for (table, name) in found.tables.iter_mut().zip(drafted) {
        table.name = name;
    }
    Ok(found)
}

/// The tables of Postgres whose reading calls what others made. Servers that are only compatible tell
/// none.
///
/// # Errors
/// A Postgres does not tell them.
fn tables_that_act(
    dialect: Dialect,
    ask: &mut AskDatabase<'_>,
) -> Result<BTreeSet<String>, String> {
    if dialect != Dialect::Postgres {
        return Ok(BTreeSet::new());
    }
    let version = ask("SHOW server_version_num");
    let acting = version.and_then(|rows| {
        let number = rows.into_iter().flatten().flatten().find_map(|cell| cell.parse().ok());
        ask(&behind::tables_that_act(number.unwrap_or(0)))
    });
    match acting {
        Ok(rows) => Ok(rows.into_iter().filter_map(|mut row| row.pop().flatten()).collect()),
        Err(why) => {
            let words = ask("SELECT version()")?.into_iter().flatten().flatten().next();
            let mut answers = |query: &str| ask(query).is_ok_and(|rows| !rows.is_empty());
            let version = words.unwrap_or_default();
            match CompatibleServer::recognise(dialect, &version, "", &mut answers) {
                Some(_) => Ok(BTreeSet::new()),
                None => Err(format!("tell the tables that call what others made: {why}")),
            }
        }
    }
}

/// The values of enumerations.
const LABELS: &str = "SELECT enumtypid::regtype::text, enumlabel FROM pg_enum \
                      ORDER BY 1, enumsortorder";

/// The relations that the login finds without a schema. No operator and no function that somebody
/// could have made.
const VISIBLE: &str =
    "SELECT c.oid FROM pg_catalog.pg_class c WHERE pg_catalog.pg_table_is_visible(c.oid)";

/// The tables, and the names of each in the draft.
fn tables(
    dialect: Dialect,
    ask: &mut AskDatabase<'_>,
    visible: &BTreeSet<String>,
    acting: &BTreeSet<String>,
) -> Result<Vec<(TableFacts, String)>, String> {
    let sql = match dialect {
        Dialect::Postgres => {
            "SELECT c.oid::regclass::text, greatest(c.reltuples, 0)::bigint, \
             pg_total_relation_size(c.oid), c.oid, quote_ident(c.relname) FROM pg_class c \
             JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p') \
             AND NOT c.relispartition AND n.nspname !~ '^pg_' \
             AND n.nspname <> 'information_schema' ORDER BY 3 DESC, 1"
        }
        Dialect::Mysql => {
            "SELECT CONCAT('`', REPLACE(TABLE_NAME, '`', '``'), '`'), TABLE_ROWS, \
             DATA_LENGTH + INDEX_LENGTH, TABLE_NAME FROM information_schema.TABLES \
             WHERE TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'BASE TABLE' ORDER BY 3 DESC, 1"
        }
        _ => {
            "SELECT '\"' || replace(name, '\"', '\"\"') || '\"', NULL, NULL, name \
             FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY 1"
        }
    };
    let mut rows = ask(sql)?;
    rows.retain(|row| !row.get(3).cloned().flatten().is_some_and(|oid| acting.contains(&oid)));
    let number = |cell: Option<&Option<String>>| cell?.as_ref()?.parse::<u64>().ok();
    let mut tables = Vec::new();
    for row in rows.iter().take(TABLES) {
        let text = |index: usize| row.get(index).cloned().flatten().unwrap_or_default();
        let mut table = TableFacts {
            name: plain(dialect, &text(0)),
            rows: number(row.get(1)).unwrap_or(0),
            bytes: number(row.get(2)),
            ..TableFacts::default()
        };
        if table.rows == 0 {
            let counted = ask(&format!("SELECT count(*) AS {OWN} FROM {}", table.name));
            let counted = counted.unwrap_or_default();
            table.rows = number(counted.first().and_then(|row| row.first())).unwrap_or(0);
        }
        columns(dialect, ask, &mut table, &text(3))?;
        let is_visible = visible.contains(&text(3));
        let drafted = if is_visible { plain(dialect, &text(4)) } else { table.name.clone() };
        tables.push((table, drafted));
    }
    for (view, drafted, definition) in views(dialect, ask, visible) {
        let mut view = view;
        let known: Vec<TableFacts> = tables.iter().map(|(table, _)| table.clone()).collect();
        let shown = shown_columns(dialect, &definition, &known);
        for (column, shows) in view.columns.iter_mut().zip(shown) {
            column.shows = shows;
        }
        tables.push((view, drafted));
    }
    Ok(tables)
}

/// The views, the names of each in the draft, and their definitions. A server that shows none has
/// none.
fn views(
    dialect: Dialect,
    ask: &mut AskDatabase<'_>,
    visible: &BTreeSet<String>,
) -> Vec<(TableFacts, String, String)> {
    let sql = match dialect {
        Dialect::Postgres => {
            "SELECT c.oid::regclass::text, c.oid, quote_ident(c.relname), pg_get_viewdef(c.oid) \
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE c.relkind IN ('v', 'm') AND n.nspname !~ '^pg_' \
             AND n.nspname <> 'information_schema' ORDER BY c.oid"
        }
        Dialect::Mysql => {
            "SELECT CONCAT('`', REPLACE(TABLE_NAME, '`', '``'), '`'), TABLE_NAME, NULL, \
             VIEW_DEFINITION FROM information_schema.VIEWS WHERE TABLE_SCHEMA = DATABASE() \
             ORDER BY 1"
        }
        _ => return Vec::new(),
    };
    let mut found = Vec::new();
    for row in ask(sql).unwrap_or_default().iter().take(TABLES) {
        let text = |index: usize| row.get(index).cloned().flatten().unwrap_or_default();
        let name = plain(dialect, &text(0));
        let mut view = TableFacts { name, is_view: true, ..TableFacts::default() };
        if columns(dialect, ask, &mut view, &text(1)).is_ok() {
            let is_visible = visible.contains(&text(1));
            let drafted = if is_visible { plain(dialect, &text(2)) } else { view.name.clone() };
            found.push((view, drafted, text(3)));
        }
    }
    found
}

/// For each column of a view, the column that it shows as it is.
fn shown_columns(
    dialect: Dialect,
    definition: &str,
    tables: &[TableFacts],
) -> Vec<Option<(usize, usize)>> {
    let tree = TokenTree::read(dialect, definition);
    // Servers put joins into parentheses.
    let mut around_joins: BTreeSet<usize> = BTreeSet::new();
    for at in 1..tree.nodes.len() {
        let is_after = tree.is_any(at - 1, &["FROM", "JOIN"]) || around_joins.contains(&(at - 1));
        if is_after && tree.is_sign(at, "(") && !tree.is(at + 1, "SELECT") {
            around_joins.insert(at);
        }
    }
    let ends = around_joins.iter().filter_map(|open| tree.nodes[*open].partner);
    let all: BTreeSet<usize> = ends.chain(around_joins.iter().copied()).collect();
    let flat = tree.with(|at| all.contains(&at).then(String::new));
    let tree = TokenTree::read(dialect, &flat);
    let named = NamedTables::of(&tree, tables);
    let outer = |word: &str| {
        (0..tree.nodes.len()).find(|at| tree.nodes[*at].parent.is_none() && tree.is(*at, word))
    };
    let (Some(select), Some(from)) = (outer("SELECT"), outer("FROM")) else { return Vec::new() };
    let first = select + 1 + usize::from(tree.is(select + 1, "DISTINCT"));
    let shown = |(begin, end): (usize, usize)| {
        let mut last = end - 1;
        if last > begin + 1 && tree.is(last - 1, "AS") {
            last -= 2;
        }
        let is_path = (begin..=last).all(|at| tree.name(at).is_some() || tree.is_sign(at, "."));
        let (table, column, _) = named.column(last).filter(|_| is_path)?;
        Some((table, column))
    };
    tree.items(first, from).into_iter().map(shown).collect()
}

/// The query of a table's columns: name, type, place in the primary key, whether it may be NULL,
/// length, whether the server computes it, whether it is an identity.
fn columns_query(dialect: Dialect, id: &str) -> String {
    let quoted = id.replace('\'', "''");
    match dialect {
        Dialect::Postgres => format!(
            "SELECT quote_ident(a.attname), \
             coalesce(nullif(t.typbasetype, 0), t.oid)::regtype::text, \
             (SELECT array_position(i.indkey::int2[]::int[], a.attnum::int) FROM pg_index i \
             WHERE i.indrelid = a.attrelid AND i.indisprimary), NOT a.attnotnull, \
             CASE WHEN m.typmod <= 4 THEN NULL \
             WHEN coalesce(nullif(t.typbasetype, 0), t.oid) IN (1042, 1043) THEN m.typmod - 4 \
             WHEN coalesce(nullif(t.typbasetype, 0), t.oid) = 1700 \
             THEN ((m.typmod - 4) >> 16) - ((m.typmod - 4) & 65535) END, \
             to_jsonb(a) ->> 'attgenerated' = 's', to_jsonb(a) ->> 'attidentity' = 'a' \
             FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid \
             CROSS JOIN LATERAL (SELECT CASE WHEN t.typbasetype = 0 THEN a.atttypmod \
             ELSE t.typtypmod END) AS m(typmod) \
             WHERE a.attrelid = {quoted} AND a.attnum > 0 AND NOT a.attisdropped \
             ORDER BY a.attnum"
        ),
        Dialect::Mysql => format!(
            "SELECT CONCAT('`', REPLACE(c.COLUMN_NAME, '`', '``'), '`'), \
             CONCAT(c.DATA_TYPE, IF(c.COLUMN_TYPE LIKE '%unsigned%', ' unsigned', '')), \
             k.ORDINAL_POSITION, c.IS_NULLABLE, \
             COALESCE(c.CHARACTER_MAXIMUM_LENGTH, c.NUMERIC_PRECISION - c.NUMERIC_SCALE), \
             c.EXTRA LIKE '%GENERATED%' AND c.EXTRA NOT LIKE '%DEFAULT_GENERATED%', 0 \
             FROM information_schema.COLUMNS c \
             LEFT JOIN information_schema.KEY_COLUMN_USAGE k \
             ON k.TABLE_SCHEMA = c.TABLE_SCHEMA AND k.TABLE_NAME = c.TABLE_NAME \
             AND k.COLUMN_NAME = c.COLUMN_NAME AND k.CONSTRAINT_NAME = 'PRIMARY' \
             WHERE c.TABLE_SCHEMA = DATABASE() AND c.TABLE_NAME = '{quoted}' \
             ORDER BY c.ORDINAL_POSITION"
        ),
        _ => format!(
            "SELECT '\"' || replace(name, '\"', '\"\"') || '\"', type, nullif(pk, 0), \
             NOT \"notnull\", NULL, NULL, NULL FROM pragma_table_info('{quoted}')"
        ),
    }
}

fn columns(
    dialect: Dialect,
    ask: &mut AskDatabase<'_>,
    table: &mut TableFacts,
    id: &str,
) -> Result<(), String> {
    let mut key = Vec::new();
    for (index, row) in ask(&columns_query(dialect, id))?.into_iter().enumerate() {
        let mut cells = row.into_iter();
        let mut cell = || cells.next().flatten();
        let name = plain(dialect, &cell().unwrap_or_default());
        let type_name = cell().unwrap_or_default();
        if let Some(position) = cell().and_then(|text| text.parse::<u32>().ok()) {
            key.push((position, index));
        }
        // In the order of the query's columns.
        table.columns.push(ColumnFacts {
            name,
            type_name,
            is_nullable: matches!(cell().as_deref(), Some("t" | "YES" | "1")),
            longest: cell().and_then(|text| text.parse().ok()),
            is_computed: matches!(cell().as_deref(), Some("t" | "1")),
            is_identity: matches!(cell().as_deref(), Some("t" | "1")),
            ..ColumnFacts::default()
        });
    }
    key.sort_unstable();
    table.key = key.into_iter().map(|(_, index)| index).collect();
    Ok(())
}

/// Reads the values of a column. A failure leaves them unknown, and the draft says so.
fn learn(dialect: Dialect, ask: &mut AskDatabase<'_>, table: &mut TableFacts, number: usize) {
    let Some(column) = table.columns.get(number) else { return };
    if column.values != ColumnValues::Unknown || table.rows == 0 {
        return;
    }
    let (name, from) = (&column.name, &table.name);
    let (mut values, mut is_dense, mut is_sparse) = (ColumnValues::Unknown, false, false);
    let is_indexed = table.unique.iter().any(|index| index.first() == Some(&number));
    if column.is_whole() && (table.rows <= SEARCHED_ROWS || is_indexed) {
        let counted = if table.rows <= COUNTED_ROWS {
            format!("count(DISTINCT {name})")
        } else {
            "NULL".to_owned()
        };
        let sql = format!("SELECT min({name}) AS {OWN}, max({name}), {counted} FROM {from}");
        let bounds = ask(&sql);
        let mut cells = bounds.ok().and_then(|rows| rows.into_iter().next()).into_iter().flatten();
        let mut next = || cells.next()??.parse::<i64>().ok();
        if let (Some(least), Some(most)) = (next(), next()) {
            values = ColumnValues::Whole(least, most);
            let span = most.wrapping_sub(least).wrapping_add(1);
            let counted = next();
            is_dense = counted == Some(span);
            let is_key = table.unique.iter().any(|index| *index == [number]);
            let rows = Some(i64::try_from(table.rows).unwrap_or(i64::MAX)).filter(|_| is_key);
            is_sparse = counted.or(rows).is_some_and(|count| count < span / 2 || span < 0);
        }
    }
    if values == ColumnValues::Unknown {
        let random = if dialect == Dialect::Mysql { "rand()" } else { "random()" };
        let sql = format!(
            "SELECT {name} FROM (SELECT {name} FROM {from} WHERE {name} IS NOT NULL LIMIT 10000) \
             AS {OWN} ORDER BY {random} LIMIT {SAMPLE}"
        );
        let sample = ask(&sql).unwrap_or_default().into_iter().flatten().flatten();
        let mut sample: Vec<String> = sample.filter(|text| text.len() <= LONGEST).collect();
        sample.sort_unstable();
        sample.dedup();
        is_sparse = sample.len() > SAMPLE * 2 / 3;
        if !sample.is_empty() {
            values = ColumnValues::Sample(sample);
        }
    }
    if let Some(column) = table.columns.get_mut(number) {
        (column.values, column.is_dense, column.is_sparse) = (values, is_dense, is_sparse);
    }
}

/// Reads names of the members of documents that statements ask for.
fn learn_members(ask: &mut AskDatabase<'_>, found: &mut DatabaseSurvey) {
    for statement in found.statements.clone() {
        for guess in meaning(&statement, &found.tables).guesses {
            let ValueGuess::Member(table, column) = guess else { continue };
            let facts = &found.tables[table];
            let (name, from) = (&facts.columns[column].name, &facts.name);
            // The cast of another type may be anybody's function.
            if !["json", "jsonb", "text"].contains(&facts.columns[column].type_name.as_str()) {
                continue;
            }
            let sql = format!(
                "SELECT DISTINCT k FROM (SELECT {name}::jsonb AS d FROM {from} \
                 WHERE jsonb_typeof({name}::jsonb) = 'object' LIMIT 1000) AS {OWN}, \
                 LATERAL jsonb_object_keys(d) AS k ORDER BY 1 LIMIT {SAMPLE}"
            );
            let names = ask(&sql).unwrap_or_default().into_iter().flatten().flatten();
            let names = names.filter(|name| name.len() <= LONGEST).collect();
            found.members.entry((table, column)).or_insert(names);
        }
    }
}

/// Calls of a statement beside which one that was seen once is no part of the load.
const MANY_CALLS: u64 = 100;

/// The statements with most total time. `left_out` gets those that the server does not prepare.
fn statements(
    dialect: Dialect,
    ask: &mut AskDatabase<'_>,
    tables: &[TableFacts],
    left_out: &mut Vec<String>,
) -> Result<Vec<TopStatement>, String> {
    let rows = match dialect {
        Dialect::Postgres => postgres_statements(ask)?,
        Dialect::Mysql => mysql_statements(ask)?,
        _ => return Err("SQLite keeps no statistics of statements".to_owned()),
    };
    let is_delete = |sql: &String| sql.to_uppercase().starts_with("DELETE");
    let deletes = rows.iter().filter_map(|row| row.first()?.clone()).filter(is_delete);
    let deletes: Vec<String> = deletes.collect();
    let calls_of = |row: &Vec<Option<String>>| -> u64 {
        row.get(1).and_then(|calls| calls.as_ref()?.parse().ok()).unwrap_or(1)
    };
    let is_of = |row: &Vec<Option<String>>| {
        row.first().and_then(|sql| sql.as_deref()).is_some_and(|sql| is_of_tables(prepared(sql)))
    };
    let rows: Vec<_> = rows.into_iter().filter(is_of).collect();
    let is_busy = rows.iter().any(|row| calls_of(row) >= MANY_CALLS);
    let (once, rows): (Vec<_>, Vec<_>) =
        rows.into_iter().partition(|row| is_busy && calls_of(row) == 1);
    if !once.is_empty() {
        left_out.push(format!("{} statements are left out: the server saw them once", once.len()));
    }
    let mut found: Vec<TopStatement> = Vec::new();
    for row in rows {
        let mut cells = row.into_iter();
        let mut cell = || cells.next().flatten();
        let (Some(sql), Some(calls), Some(mean)) = (cell(), cell(), cell()) else { continue };
        let sample = cell();
        let sql = prepared(&sql);
        if found.len() == STATEMENTS {
            continue;
        }
        let spellings = match dialect {
            Dialect::Mysql if sql.len() <= LONGEST_STATEMENT => {
                digests::spellings(sql, sample.as_deref(), tables)
            }
            _ => vec![TopStatement { sql: sql.to_owned(), ..TopStatement::default() }],
        };
        let (calls, mean_ms) = (calls.parse().unwrap_or(1), mean.parse().unwrap_or(0.0));
        let mut first_fault = None;
        let statement = spellings.into_iter().find_map(|spelling| {
            let statement = TopStatement { calls, mean_ms, ..spelling };
            let statement = with_own_key(statement, tables, &deletes);
            let described = described(dialect, ask, tables, statement);
            described.map_err(|why| first_fault.get_or_insert(why).len()).ok()
        });
        found.extend(statement.clone());
        if statement.is_none() {
            let why = first_fault.unwrap_or_default();
            let text = shortened(sql);
            left_out.push(format!(
                "left out, because the server does not prepare it ({}): {text}",
                why.lines().next().unwrap_or_default()
            ));
        }
    }
    if found.is_empty() {
        Err("the server's statistics hold no statement on these tables".to_owned())
    } else {
        Ok(found)
    }
}

/// From version 8.0.3 on, with a statement as it was sent.
fn mysql_statements(ask: &mut AskDatabase<'_>) -> Result<Vec<Vec<Option<String>>>, String> {
    let sql = |sample: &str| {
        format!(
            "SELECT DIGEST_TEXT, COUNT_STAR, AVG_TIMER_WAIT / 1e9, {sample} \
             FROM performance_schema.events_statements_summary_by_digest \
             WHERE SCHEMA_NAME = DATABASE() AND DIGEST_TEXT NOT LIKE '%{OWN}%' \
             ORDER BY SUM_TIMER_WAIT DESC LIMIT 100"
        )
    };
    ask(&sql("QUERY_SAMPLE_TEXT"))
        .or_else(|_| ask(&sql("NULL")))
        .map_err(|why| format!("performance_schema has no statements: {why}"))
}

fn postgres_statements(ask: &mut AskDatabase<'_>) -> Result<Vec<Vec<Option<String>>>, String> {
    let view = ask(STATISTICS)?.into_iter().flatten().flatten().next();
    let view = view.ok_or("there is no pg_stat_statements of a superuser")?;
    let sql = |mean: &str, total: &str| {
        format!(
            "SELECT query, calls, {mean} FROM {view} \
             WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) \
             AND query NOT LIKE '%{OWN}%' ORDER BY {total} DESC LIMIT 100"
        )
    };
    // The name since version 13.
    ask(&sql("mean_exec_time", "total_exec_time"))
        .or_else(|_| ask(&sql("mean_time", "total_time")))
        .map_err(|why| format!("pg_stat_statements has no statements: {why}"))
}

/// The view of the statistics, with its schema. That of an ordinary user would run with the rights
/// of the login.
const STATISTICS: &str = "SELECT c.oid::regclass::text FROM pg_class c WHERE c.relkind = 'v' \
    AND c.relname = 'pg_stat_statements' AND (EXISTS (SELECT 1 FROM pg_depend d \
    JOIN pg_extension e ON e.oid = d.refobjid WHERE d.objid = c.oid AND d.deptype = 'e' \
    AND d.refclassid = 'pg_extension'::regclass AND e.extname = 'pg_stat_statements') \
    OR EXISTS (SELECT 1 FROM pg_roles r WHERE r.oid = c.relowner AND (r.rolsuper \
    OR r.rolname = current_user))) ORDER BY 1 LIMIT 1";

/// The beginning of a statement, on one line.
fn shortened(sql: &str) -> String {
    let line = Vec::from_iter(sql.split_whitespace()).join(" ");
    match line.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// A statement with the types of its values.
///
/// # Errors
/// The server does not prepare it.
fn described(
    dialect: Dialect,
    ask: &mut AskDatabase<'_>,
    tables: &[TableFacts],
    mut statement: TopStatement,
) -> Result<TopStatement, String> {
    if statement.sql.len() > LONGEST_STATEMENT {
        return Err(format!("it is longer than {LONGEST_STATEMENT} bytes"));
    }
    // Whoever may run statements on the server wrote it.
    if !is_one_statement(dialect, &statement.sql) {
        return Err("it is more than one statement".to_owned());
    }
    if dialect != Dialect::Postgres {
        let tree = TokenTree::of(&statement);
        let is_list = |at: usize| matches!(tree.nodes[at].kind, NodeKind::Values(_));
        let sql = tree.with(|at| is_list(at).then(|| "?".to_owned()));
        let sql = sql.replace('\\', "\\\\").replace('\'', "''");
        ask(&format!("PREPARE {OWN} FROM '{sql}'"))?;
        ask(&format!("DEALLOCATE PREPARE {OWN}"))?;
        return Ok(statement);
    }
    if holds_text(&statement.sql) {
        return Err("it holds a text by whose type the server may run what others made".to_owned());
    }
    statement.sql = digests::with_same_values(&statement);
    (statement.sql, statement.is_assumed) = digests::with_values(&statement, tables);
    prepare_any(ask, tables, &mut statement)?;
    let types = ask(&format!(
        "SELECT unnest(parameter_types)::text FROM pg_prepared_statements WHERE name = '{OWN}'"
    ));
    statement.types = types.unwrap_or_default().into_iter().flatten().flatten().collect();
    // The end of the session frees it if this fails.
    ask(&format!("DEALLOCATE {OWN}"))?;
    Ok(statement)
}

/// Has Postgres prepare a statement; with casts where it does not take it otherwise.
fn prepare_any(
    ask: &mut AskDatabase<'_>,
    tables: &[TableFacts],
    statement: &mut TopStatement,
) -> Result<(), String> {
    let Err(first) = prepare(ask, &statement.sql) else { return Ok(()) };
    let mut fault = first.clone();
    for _ in 0..CASTS {
        let cast = match untyped(&fault) {
            Some(number) => cast(statement, number, "text"),
            // The server knows no type for two values that are added, as in
            // BETWEEN $1 AND $2 + $3.
            None => with_casts(statement, tables),
        };
        if cast == statement.sql {
            break;
        }
        statement.sql = cast;
        match prepare(ask, &statement.sql) {
            Ok(()) => return Ok(()),
            Err(why) => fault = why,
        }
    }
    prepare_with_numbers(ask, tables, statement, fault).map_err(|_| first)
}

/// Has Postgres prepare a statement in which some values were numbers: without a cast they are
/// texts, as in `sum(CASE WHEN … THEN $1 ELSE $2 END)` and `current_date - $1`.
fn prepare_with_numbers(
    ask: &mut AskDatabase<'_>,
    tables: &[TableFacts],
    statement: &mut TopStatement,
    mut fault: String,
) -> Result<(), String> {
    let guesses = meaning(statement, tables).guesses;
    let may_be_number = |guess: &ValueGuess| match guess {
        ValueGuess::Unknown => true,
        ValueGuess::Fixed(values) => !values.starts_with('"'),
        _ => false,
    };
    let open: Vec<usize> =
        (0..guesses.len()).filter(|number| may_be_number(&guesses[*number])).collect();
    let mut all = statement.clone();
    for number in open.into_iter().take(MOST_NUMBERS) {
        all.sql = cast(&all, number, "integer");
        let one = cast(statement, number, "integer");
        match prepare(ask, &one) {
            Ok(()) => {
                statement.sql = one;
                return Ok(());
            }
            // The server finds the next fault, which is not that of the number.
            Err(why) if why != fault && !why.contains("integer") => {
                (statement.sql, fault) = (one, why);
            }
            Err(_) => {}
        }
    }
    statement.sql = all.sql;
    prepare(ask, &statement.sql)
}

/// A statement with a cast of one value.
fn cast(statement: &TopStatement, number: usize, type_name: &str) -> String {
    let tree = TokenTree::of(statement);
    let is_it = |at: usize| tree.value(at) == Some(number);
    tree.with(|at| is_it(at).then(|| format!("{}::{type_name}", tree.text(at))))
}

/// The number, from 0, of the value of which Postgres does not find the type.
fn untyped(fault: &str) -> Option<usize> {
    let (_, after) = fault.split_once("data type of parameter $")?;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse::<usize>().ok()?.checked_sub(1)
}

/// Has Postgres prepare a statement of the user's, which finds its tables by the login's path.
fn prepare(ask: &mut AskDatabase<'_>, sql: &str) -> Result<(), String> {
    ask("RESET search_path")?;
    let prepared = ask(&format!("PREPARE {OWN} AS {sql}"));
    ask(SERVER_ONLY)?;
    prepared.map(drop)
}

// The facts about a database that a draft of a workload needs.

/// Asks a database; the rows are text.
pub type AskDatabase<'a> = dyn FnMut(&str) -> Result<Vec<Vec<Option<String>>>, String> + 'a;

/// The facts about a database.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DatabaseSurvey {
    /// Tables, the largest first.
    pub(super) tables: Vec<TableFacts>,
    /// Statements, that with most total time first.
    pub(super) statements: Vec<TopStatement>,
    /// Rows of some columns of a table, from which a statement takes several values together: by
    /// table and columns, the latter ascending.
    pub(super) rows: BTreeMap<(usize, Vec<usize>), Vec<Vec<String>>>,
    /// Names of members of documents, by table and column.
    pub(super) members: BTreeMap<(usize, usize), Vec<String>>,
    /// Values of each enumeration.
    pub(super) labels: BTreeMap<String, Vec<String>>,
    /// Facts that could not be read.
    pub(super) notes: Vec<String>,
    /// Statements that are left out, each with its reason.
    pub left_out: Vec<String>,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TableFacts {
    /// The name in SQL.
    pub(super) name: String,
    pub(super) rows: u64,
    pub(super) bytes: Option<u64>,
    pub(super) columns: Vec<ColumnFacts>,
    /// Indexes of the columns of the primary key, in its order.
    pub(super) key: Vec<usize>,
    /// Indexes of the columns of each unique index, that of the primary key included.
    pub(super) unique: Vec<Vec<usize>>,
    pub(super) references: Vec<ForeignKey>,
    /// A view. Nothing is read from it: somebody's function may stand in it.
    pub(super) is_view: bool,
}

/// A reference from a table to another, or to itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ForeignKey {
    /// Indexes of the columns that reference.
    pub(super) columns: Vec<usize>,
    /// Index of the referenced table.
    pub(super) table: usize,
    /// Indexes of the referenced columns, in the order of `columns`.
    pub(super) referenced: Vec<usize>,
    /// Some rows of the referenced columns; empty until [`survey`] reads them.
    pub(super) sample: Vec<Vec<String>>,
}

/// A column.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ColumnFacts {
    /// The name in SQL.
    pub(super) name: String,
    pub(super) type_name: String,
    pub(super) is_nullable: bool,
    /// Most characters, or most digits of a number, if there is a limit.
    pub(super) longest: Option<u32>,
    /// The server computes it: no statement stores a value there.
    pub(super) is_computed: bool,
    /// The server numbers rows by it, and takes other numbers only if the statement says so.
    pub(super) is_identity: bool,
    /// Its values; unknown until [`survey`] reads them.
    pub(super) values: ColumnValues,
    /// True if every whole number from the smallest to the largest value is there.
    pub(super) is_dense: bool,
    /// True if less than half of these numbers are there, or if it has more texts than were read: a
    /// value that must be found is drawn from rows.
    pub(super) is_sparse: bool,
    /// The column of a table that a view shows here as it is.
    pub(super) shows: Option<(usize, usize)>,
}

/// The values of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum ColumnValues {
    #[default]
    Unknown,
    /// Whole numbers from the first to the second.
    Whole(i64, i64),
    /// Some of its values.
    Sample(Vec<String>),
}

/// A statement from the database's statistics.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TopStatement {
    /// The text, with `$1` or `?` for values.
    pub(super) sql: String,
    /// Values are `?`, and literals and names have MySQL's quotes.
    pub(super) is_mysql: bool,
    /// The literals that stood in the places of values, if the server keeps them.
    pub(super) seen: Vec<String>,
    /// The number of values in each place, if the server keeps them.
    pub(super) counts: Vec<u32>,
    pub(super) calls: u64,
    pub(super) mean_ms: f64,
    /// A field in it is assumed, because the server does not keep it.
    pub(super) is_assumed: bool,
    /// Types of its values, if the server tells them.
    pub(super) types: Vec<String>,
}

impl TopStatement {
    pub(super) fn dialect(&self) -> Dialect {
        if self.is_mysql { Dialect::Mysql } else { Dialect::Postgres }
    }

    /// True if it inserts rows.
    pub(super) fn is_insert(&self) -> bool {
        ["INSERT", "REPLACE"].contains(&self.first_word().as_str())
    }

    /// True if it inserts, changes or deletes rows, by its first word.
    pub(super) fn is_write(&self) -> bool {
        self.is_insert() || ["UPDATE", "DELETE"].contains(&self.first_word().as_str())
    }

    /// True if it changes rows.
    pub(super) fn is_update(&self) -> bool {
        ["UPDATE", "WITH"].contains(&self.first_word().as_str())
    }

    /// Its first word, in capitals.
    pub(super) fn first_word(&self) -> String {
        let mut words = self.sql.split(|letter: char| !letter.is_ascii_alphabetic());
        words.find(|word| !word.is_empty()).unwrap_or_default().to_uppercase()
    }
}

impl TableFacts {
    /// Index of the column of this name.
    pub(super) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| bare(&column.name).eq_ignore_ascii_case(name))
    }
}

impl ColumnFacts {
    pub(super) fn is_whole(&self) -> bool {
        let name = self.type_name.to_lowercase();
        ["int", "serial"].iter().any(|part| name.contains(part)) && !name.contains("interval")
    }

    pub(super) fn is_text(&self) -> bool {
        let name = self.type_name.to_lowercase();
        ["char", "text"].iter().any(|part| name.contains(part))
    }

    /// True for a value that is sent and stored as its text.
    pub(super) fn has_text(&self) -> bool {
        let name = self.type_name.to_lowercase();
        let is_binary = ["blob", "binary", "bit", "geometry", "point", "polygon", "linestring"];
        !is_binary.iter().any(|part| name.contains(part)) && name != "bytea"
    }

    /// About how often one may be added to its values.
    pub(super) fn room_to_count(&self) -> i64 {
        match (&self.values, self.is_whole(), self.longest) {
            (ColumnValues::Whole(_, most), ..) => self.most_of_type().saturating_sub(*most),
            (_, true, _) => self.most_of_type(),
            _ if self.type_name.eq_ignore_ascii_case("year") => 100,
            (_, false, Some(digits)) => 10_i64.saturating_pow(digits),
            _ => i64::MAX,
        }
    }

    /// True for a column of few numbers without a sign.
    pub(super) fn is_narrow_unsigned(&self) -> bool {
        self.type_name.contains("unsigned") && self.room_to_count() < PLENTY
    }

    /// About how many values the column can still get.
    pub(super) fn new_values(&self) -> i64 {
        match self.values {
            ColumnValues::Whole(_, most) => self.most_of_type().saturating_sub(most),
            _ if self.is_whole() => self.most_of_type(),
            _ if self.is_text() => 36_i64.saturating_pow(self.longest.unwrap_or(9).min(9)),
            _ => i64::MAX,
        }
    }

    /// The largest whole number of its type.
    pub(super) fn most_of_type(&self) -> i64 {
        let name = self.type_name.to_lowercase();
        let bits = match name.split(' ').next().unwrap_or_default() {
            "tinyint" => 8,
            "smallint" | "int2" | "smallserial" => 16,
            "mediumint" => 24,
            "bigint" | "int8" | "bigserial" => 64,
            _ => 32,
        };
        // Of 64 bits without a sign, half is enough.
        if name.contains("unsigned") && bits < 64 {
            (1 << bits) - 1
        } else {
            i64::MAX >> (64 - bits)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks a server that complains of the first of these parts that a statement has.
    fn prepared_by(faults: &[(&str, &str)], sql: &str) -> Result<String, String> {
        let mut ask = |sql: &str| match faults.iter().find(|(part, _)| sql.contains(part)) {
            Some((_, fault)) => Err((*fault).to_owned()),
            None => Ok(Vec::new()),
        };
        let mut statement = TopStatement { sql: sql.to_owned(), ..TopStatement::default() };
        prepare_any(&mut ask, &[], &mut statement).map(|()| statement.sql)
    }

    #[test]
    fn views_show_columns_of_tables() {
        let table = |name: &str, columns: [&str; 2]| {
            let column = |name: &str| ColumnFacts { name: name.to_owned(), ..Default::default() };
            let columns = columns.map(column).to_vec();
            TableFacts { name: name.to_owned(), columns, ..TableFacts::default() }
        };
        let tables = [table("o", ["id", "customer"]), table("customers", ["id", "country"])];
        let want = [Some((0, 0)), Some((1, 1)), None];
        let check = |dialect, definition| {
            assert_eq!(shown_columns(dialect, definition, &tables), want, "{definition}");
        };
        check(
            Dialect::Postgres,
            " SELECT o.id,\n    c.country AS land,\n    count(*) AS n\n   FROM ((o\n     JOIN \
             customers c ON ((c.id = o.customer)))\n     JOIN d ON ((d.o = o.id)))\n  GROUP BY o.id;",
        );
        check(
            Dialect::Mysql,
            "select `shop`.`o`.`id` AS `id`,`c`.`country` AS `land`,count(0) AS `n` from \
             ((`shop`.`o` join `shop`.`customers` `c` on((`c`.`id` = `shop`.`o`.`customer`))) join \
             `shop`.`d` on(true)) group by `shop`.`o`.`id`",
        );
        assert_eq!(shown_columns(Dialect::Mysql, "", &tables), []);
    }

    #[test]
    fn values_that_must_be_numbers_are_cast() {
        let sum = ("THEN $1 ", "function sum(text) does not exist");
        let date = ("day > current_date - $4 ", "operator does not exist: date > integer");
        let sql = "SELECT sum(CASE WHEN a THEN $1 ELSE $2 END) WHERE day > current_date - $4 ";
        let want = sql.replace("$1", "$1::integer");
        assert_eq!(prepared_by(&[sum], sql), Ok(want.clone()));
        // The second fault speaks of integers itself: all are cast.
        let all = want.replace("$2", "$2::integer").replace("$4", "$4::integer");
        assert_eq!(prepared_by(&[sum, date], sql), Ok(all));
        let other = ("day > current_date - $4 ", "operator is not unique: date + unknown");
        assert_eq!(prepared_by(&[sum, other], sql), Ok(want.replace("$4", "$4::integer")));
        // The server complains of two places in the same words.
        let twice = [("day + $1 ", other.1), ("day + $2 ", other.1)];
        let want = "SELECT day + $1::integer , day + $2::integer ".to_owned();
        assert_eq!(prepared_by(&twice, "SELECT day + $1 , day + $2 "), Ok(want));
        let none = [("nothing", "column \"nothing\" does not exist")];
        assert!(prepared_by(&none, "SELECT nothing + $1").is_err());
    }

    #[test]
    fn a_postgres_that_does_not_tell_what_acts_is_not_read() {
        let survey_of = |version: &'static str| {
            let mut read = false;
            let mut ask = |sql: &str| match sql {
                "SELECT version()" => Ok(vec![vec![Some(version.to_owned())]]),
                _ if sql.contains("pg_proc") => Err("canceled".to_owned()),
                _ => {
                    read |= sql.contains("relkind");
                    Ok(Vec::new())
                }
            };
            let found = survey(Dialect::Postgres, &mut ask);
            (found.err(), read)
        };
        let (why, read) = survey_of("PostgreSQL 16.10 on x86_64");
        assert!(!read && why.is_some_and(|why| why.ends_with("others made: canceled")));
        assert!(survey_of("CockroachDB CCL v23.1").1);
    }
}
