//! Writes statistics into the catalogue of a private server. One way for all versions: rows of
//! `pg_statistic`, whose form has not changed since 12.

use anyhow::{Context, Result};

use crate::postgres::hollow::{Row, Session, cell};
use crate::postgres::source::{Facts, Relation};
use rqps_model::dialect::Dialect::Postgres;
use rqps_model::sql_name::Literal;

/// Rows of sizes in a statement.
const ROWS: usize = 300;

/// Functions of the session: the type below domains, the type whose operators sort a type, its
/// operator, and the type of the elements that a column has for statistics.
const FUNCTIONS: &str = include_str!("functions.sql");

/// Where a row of statistics goes.
const COLUMNS: &str = "INSERT INTO pg_statistic (starelid, staattnum, stainherit, stanullfrac, \
    stawidth, stadistinct, stakind1, stakind2, stakind3, stakind4, stakind5, staop1, staop2, staop3, \
    staop4, staop5, stacoll1, stacoll2, stacoll3, stacoll4, stacoll5, stanumbers1, stanumbers2, \
    stanumbers3, stanumbers4, stanumbers5, stavalues1, stavalues2, stavalues3, stavalues4, \
    stavalues5) ";

/// A slot of a row, each part as SQL.
struct Slot {
    kind: u8,
    operator: &'static str,
    collation: &'static str,
    numbers: String,
    values: String,
}

fn literal(text: &str) -> String {
    Literal::quoted(Postgres, text).to_string()
}

/// The text of a column as SQL.
fn value(row: &Row, at: usize) -> String {
    row.get(at).and_then(Option::as_deref).map_or("NULL".to_owned(), literal)
}

/// Writes sizes and statistics. Returns what this version does not take.
///
/// # Errors
/// The server does not answer.
pub(super) fn write(server: &mut Session, facts: &Facts, version: u32) -> Result<Vec<String>> {
    for sql in FUNCTIONS.split("\n\n") {
        server.run(sql).context("prepare to write statistics")?;
    }
    sizes(server, facts, version)?;
    let mut refused = Vec::new();
    for row in &facts.columns {
        let sql = [
            COLUMNS,
            "SELECT k.rel, k.attnum, ",
            &value(row, 3),
            "::bool, ",
            &value(row, 4),
            "::float4, ",
            &value(row, 5),
            "::int, ",
            &value(row, 6),
            "::float4, ",
            &slots(&of_column(row)),
            " FROM (SELECT c.oid AS rel, a.attnum, a.attcollation AS coll, \
             pg_temp.base(a.atttypid) AS typ FROM pg_class c JOIN pg_namespace n ON n.oid = \
             c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid WHERE n.nspname = ",
            &value(row, 0),
            " AND c.relname = ",
            &value(row, 1),
            " AND a.attname = ",
            &value(row, 2),
            ") k",
        ]
        .concat();
        if let Err(words) = server.run(&sql) {
            let column = format!("{}.{}.{}", cell(row, 0), cell(row, 1), cell(row, 2));
            refused.push(format!("statistics of {column}: {words}"));
        }
    }
    refused.extend(extended(server, facts, version)?);
    Ok(refused)
}

fn sizes(server: &mut Session, facts: &Facts, version: u32) -> Result<()> {
    for chunk in facts.relations.chunks(ROWS) {
        let row = |relation: &Relation| {
            // From 14 on, a table that was never analyzed says so.
            let unknown =
                facts.version < 140_000 && relation.pages == 0.0 && relation.tuples == 0.0;
            let tuples = if unknown && version >= 140_000 { -1.0 } else { relation.tuples };
            let (pages, visible) = (relation.pages, relation.visible);
            let (schema, name) = (literal(&relation.schema), literal(&relation.name));
            format!("({schema}, {name}, {pages}, {tuples}, {visible})")
        };
        let rows = chunk.iter().map(row).collect::<Vec<_>>().join(", ");
        let sql = [
            "UPDATE pg_class c SET relpages = v.pages, reltuples = v.tuples, relallvisible = \
             v.visible FROM (VALUES ",
            &rows,
            ") v(schema, name, pages, tuples, visible) JOIN pg_namespace n ON n.nspname = v.schema \
             WHERE c.relnamespace = n.oid AND c.relname = v.name",
        ]
        .concat();
        server.run(&sql).context("write the sizes of tables")?;
    }
    Ok(())
}

/// The five slots as SQL: kinds, operators, collations, numbers, values.
fn slots(found: &[Slot]) -> String {
    let each = |part: &dyn Fn(&Slot) -> String, none: &str| {
        let of = |at: usize| found.get(at).map_or(none.to_owned(), part);
        (0..5).map(of).collect::<Vec<_>>().join(", ")
    };
    [
        each(&|slot| slot.kind.to_string(), "0"),
        each(&|slot| slot.operator.to_owned(), "0::oid"),
        each(&|slot| slot.collation.to_owned(), "0::oid"),
        each(&|slot| slot.numbers.clone(), "NULL::float4[]"),
        each(&|slot| slot.values.clone(), "NULL"),
    ]
    .join(", ")
}

/// An array of values as SQL.
fn array(text: &str, of: &str) -> String {
    ["array_in(", &literal(text), "::cstring, ", of, ", -1)"].concat()
}

fn numbers(text: &str) -> String {
    [&literal(text), "::float4[]"].concat()
}

/// The slots of a row of `pg_stats`.
fn of_column(row: &Row) -> Vec<Slot> {
    let has = |at: usize| row.get(at).and_then(Option::as_deref);
    let mut found = scalar_slots((has(7), has(8)), has(9), has(10));
    let elements = "CASE WHEN k.typ = 3614 THEN 100::oid ELSE k.coll END";
    if let (Some(values), Some(shares)) = (has(11), has(12)) {
        found.push(Slot {
            kind: 4,
            operator: "pg_temp.op(pg_temp.elem(k.typ), 3)",
            collation: elements,
            numbers: numbers(shares),
            values: array(values, "pg_temp.elem(k.typ)"),
        });
    }
    if let Some(counts) = has(13) {
        found.push(Slot {
            kind: 5,
            operator: "pg_temp.op(pg_temp.elem(k.typ), 3)",
            collation: elements,
            numbers: numbers(counts),
            values: "NULL".to_owned(),
        });
    }
    if let Some(lengths) = has(14) {
        let empty = format!("{{{}}}", has(15).unwrap_or("0"));
        found.push(Slot {
            kind: 6,
            operator: "672::oid",
            collation: "0::oid",
            numbers: numbers(&empty),
            values: array(lengths, "701"),
        });
    }
    if let Some(bounds) = has(16) {
        found.push(Slot {
            kind: 7,
            operator: "0::oid",
            collation: "0::oid",
            numbers: "NULL::float4[]".to_owned(),
            values: array(bounds, "k.typ"),
        });
    }
    found.truncate(5);
    found
}

fn scalar_slots(
    common: (Option<&str>, Option<&str>),
    histogram: Option<&str>,
    correlation: Option<&str>,
) -> Vec<Slot> {
    let mut found = Vec::new();
    let mut add = |kind, operator, numbers: String, values: String| {
        found.push(Slot { kind, operator, collation: "k.coll", numbers, values });
    };
    if let (Some(values), Some(shares)) = common {
        add(1, "pg_temp.op(k.typ, 3)", numbers(shares), array(values, "k.typ"));
    }
    if let Some(bounds) = histogram {
        add(2, "pg_temp.op(k.typ, 1)", "NULL::float4[]".to_owned(), array(bounds, "k.typ"));
    }
    if let Some(correlation) = correlation {
        let numbers = numbers(&format!("{{{correlation}}}"));
        add(3, "pg_temp.op(k.typ, 1)", numbers, "NULL".to_owned());
    }
    found
}

/// Extended statistics. Their types take no text, but bytes once a cast says so.
fn extended(server: &mut Session, facts: &Facts, version: u32) -> Result<Vec<String>> {
    let mut refused = Vec::new();
    if facts.extended.is_empty() {
        return Ok(refused);
    }
    for name in ["pg_ndistinct", "pg_dependencies", "pg_mcv_list"] {
        let sql = ["CREATE CAST (bytea AS ", name, ") WITHOUT FUNCTION"].concat();
        server.run(&sql).context("prepare to write extended statistics")?;
    }
    for row in &facts.extended {
        let bytes = |at: usize, of: &str| match row.get(at).and_then(Option::as_deref) {
            Some(hex) => ["decode(", &literal(hex), ", 'hex')::", of].concat(),
            None => "NULL".to_owned(),
        };
        let (column, inherit) = match version >= 150_000 {
            true => (", stxdinherit", [", coalesce(", &value(row, 2), "::bool, false)"].concat()),
            false => ("", String::new()),
        };
        let (expressions, list) = match version >= 140_000 {
            true => (", stxdexpr", [", ", &of_expressions(facts, row)].concat()),
            false => ("", String::new()),
        };
        let object = [
            "(SELECT s.oid FROM pg_statistic_ext s JOIN pg_namespace n ON n.oid = s.stxnamespace \
             WHERE n.nspname = ",
            &value(row, 0),
            " AND s.stxname = ",
            &value(row, 1),
            ")",
        ]
        .concat();
        // Versions before 15 make the row with the object.
        let same = if version < 150_000 {
            ""
        } else if cell(row, 2) == "t" {
            " AND stxdinherit"
        } else {
            " AND NOT stxdinherit"
        };
        let clear = ["DELETE FROM pg_statistic_ext_data WHERE stxoid = ", &object, same].concat();
        let insert = [
            "INSERT INTO pg_statistic_ext_data (stxoid",
            column,
            ", stxdndistinct, stxddependencies, stxdmcv",
            expressions,
            ") SELECT ",
            &object,
            &inherit,
            ", ",
            &bytes(3, "pg_ndistinct"),
            ", ",
            &bytes(4, "pg_dependencies"),
            ", ",
            &bytes(5, "pg_mcv_list"),
            &list,
        ]
        .concat();
        if let Err(words) = server.run(&clear).and_then(|()| server.run(&insert)) {
            let name = format!("{}.{}", cell(row, 0), cell(row, 1));
            refused.push(format!("extended statistics {name}: {words:#}"));
        }
    }
    Ok(refused)
}

/// Statistics on the expressions of an object, as an array of rows.
fn of_expressions(facts: &Facts, object: &Row) -> String {
    let own = facts.expressions.iter().filter(|row| row[..2] == object[..2]);
    let row = |row: &Row| {
        let has = |at: usize| row.get(at).and_then(Option::as_deref);
        let found = scalar_slots((has(6), has(7)), has(8), has(9));
        [
            "(SELECT ROW(0, 0, false, ",
            &value(row, 3),
            "::float4, ",
            &value(row, 4),
            "::int, ",
            &value(row, 5),
            "::float4, ",
            &slots(&found),
            ")::pg_statistic FROM (SELECT o.oprleft AS typ, CASE WHEN t.typcollation <> 0 THEN \
             100 ELSE 0 END::oid AS coll FROM pg_operator o JOIN pg_type t ON t.oid = o.oprleft \
             WHERE o.oid = ",
            &value(row, 10),
            "::oid) k)",
        ]
        .concat()
    };
    let rows: Vec<String> = own.map(row).collect();
    if rows.is_empty() { "NULL".to_owned() } else { format!("ARRAY[{}]", rows.join(", ")) }
}

// Queries of the catalogue that answer statements which make the schema again. The source's own
// `format` quotes the names in them. What they answer is executed on private servers only, one
// statement at a time, by a role without rights.

/// A kind of objects.
pub(super) struct ObjectQuery {
    /// As notes name it.
    pub(super) kind: &'static str,
    /// Answers the name of each object and the statement that makes it.
    pub(super) sql: String,
}

/// All kinds, in an order in which most of them can be made. What fails is tried again when more is
/// there.
pub(super) fn object_queries() -> Vec<ObjectQuery> {
    let queries = include_str!("objects.sql").split("-- object: ").skip(1);
    queries.filter_map(object_query).collect()
}

/// What is made of `kind, catalogue, oid, name` and the lines below it. Members of extensions are
/// left out.
fn object_query(text: &'static str) -> Option<ObjectQuery> {
    let (head, body) = text.split_once('\n')?;
    let [kind, catalogue, oid, name] = head.splitn(4, ", ").collect::<Vec<_>>().try_into().ok()?;
    let sql: Vec<&str> = body.lines().filter(|line| !line.starts_with("--")).collect();
    let sql = [
        "SELECT ",
        name,
        ", ",
        &sql.join("\n"),
        " AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND NOT EXISTS (SELECT FROM \
         pg_depend e WHERE e.classid = '",
        catalogue,
        "'::regclass AND e.objid = ",
        oid,
        " AND e.deptype = 'e') ORDER BY ",
        oid,
    ];
    Some(ObjectQuery { kind, sql: sql.concat() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_objects_is_read() {
        let queries = object_queries();
        assert_eq!((queries.len(), queries[5].kind), (27, "domain"));
        assert!(
            queries[0].sql.starts_with("SELECT n.nspname, format('CREATE SCHEMA IF NOT EXISTS")
        );
        assert!(queries[0].sql.contains("WHERE true\n AND n.nspname !~"), "{}", queries[0].sql);
        let cast = queries.iter().find(|query| query.kind == "cast").unwrap();
        assert!(
            cast.sql.starts_with("SELECT format_type(k.castsource, NULL), format('CREATE CAST")
        );
        assert!(queries.iter().all(|query| !query.sql.contains("--")));
    }
}
