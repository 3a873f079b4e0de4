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
const FUNCTIONS: [&str; 4] = [
    "CREATE FUNCTION pg_temp.base(oid) RETURNS oid LANGUAGE sql STABLE AS $$ WITH RECURSIVE d(t) AS \
     (SELECT $1 UNION ALL SELECT y.typbasetype FROM d JOIN pg_type y ON y.oid = d.t WHERE y.typtype \
     = 'd') SELECT t FROM d JOIN pg_type y ON y.oid = d.t WHERE y.typtype <> 'd' $$",
    "CREATE FUNCTION pg_temp.key(oid) RETURNS oid LANGUAGE sql STABLE AS $$ SELECT coalesce((SELECT \
     o.opcintype FROM pg_opclass o WHERE o.opcdefault AND o.opcmethod = 403 AND o.opcintype = $1), \
     (SELECT k.casttarget FROM pg_cast k JOIN pg_opclass o ON o.opcintype = k.casttarget AND \
     o.opcdefault AND o.opcmethod = 403 WHERE k.castsource = $1 AND k.castmethod = 'b' AND \
     k.castcontext = 'i' LIMIT 1), (SELECT CASE WHEN t.typtype = 'e' THEN 3500 WHEN t.typtype = \
     'r' THEN 3831 WHEN t.typtype = 'm' THEN 4537 WHEN t.typtype = 'c' THEN 2249 WHEN t.typelem <> \
     0 AND t.typlen = -1 THEN 2277 END FROM pg_type t WHERE t.oid = $1)::oid) $$",
    "CREATE FUNCTION pg_temp.op(oid, int) RETURNS oid LANGUAGE sql STABLE AS $$ SELECT \
     coalesce((SELECT a.amopopr FROM pg_opclass o JOIN pg_amop a ON a.amopfamily = o.opcfamily AND \
     a.amoplefttype = o.opcintype AND a.amoprighttype = o.opcintype WHERE o.opcdefault AND \
     o.opcmethod = 403 AND a.amopstrategy = $2 AND o.opcintype = pg_temp.key($1)), CASE WHEN $2 = 3 \
     THEN (SELECT a.amopopr FROM pg_opclass o JOIN pg_amop a ON a.amopfamily = o.opcfamily AND \
     a.amoplefttype = o.opcintype AND a.amoprighttype = o.opcintype WHERE o.opcdefault AND \
     o.opcmethod = 405 AND o.opcintype = $1) END, 0) $$",
    "CREATE FUNCTION pg_temp.elem(oid) RETURNS oid LANGUAGE sql STABLE AS $$ SELECT CASE WHEN $1 = \
     3614 THEN 25 ELSE (SELECT t.typelem FROM pg_type t WHERE t.oid = $1) END $$",
];

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
    for sql in FUNCTIONS {
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

/// A kind of objects: its name, and a query for names and statements. The first `%` parameters are
/// none: each query is a constant.
pub(super) struct ObjectQuery {
    /// As notes name it.
    pub(super) kind: &'static str,
    /// Answers the name of each object and the statement that makes it.
    pub(super) sql: &'static str,
}

/// Puts a query together: what it selects, from where, and the catalogue whose members of
/// extensions are left out.
macro_rules! objects {
    ($kind:literal, $catalogue:literal, $oid:literal, $name:literal; $ddl:literal, $rest:literal) => {
        ObjectQuery {
            kind: $kind,
            sql: concat!(
                "SELECT ",
                $name,
                ", ",
                $ddl,
                " FROM ",
                $rest,
                " AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND NOT EXISTS \
                 (SELECT FROM pg_depend e WHERE e.classid = '",
                $catalogue,
                "'::regclass AND e.objid = ",
                $oid,
                " AND e.deptype = 'e') ORDER BY ",
                $oid
            ),
        }
    };
}

/// All kinds, in an order in which most of them can be made. What fails is tried again when more is
/// there.
pub(super) const OBJECTS: [ObjectQuery; 27] = [
    objects!("schema", "pg_namespace", "n.oid", "n.nspname";
        "format('CREATE SCHEMA IF NOT EXISTS %I', n.nspname)",
        "pg_namespace n WHERE true"
    ),
    objects!("collation", "pg_collation", "c.oid", "c.collname";
        "format('CREATE COLLATION %I.%I (PROVIDER = %s, %s, DETERMINISTIC = %s)', n.nspname, \
         c.collname, CASE c.collprovider WHEN 'i' THEN 'icu' WHEN 'b' THEN 'builtin' ELSE 'libc' \
         END, CASE WHEN c.collprovider = 'c' THEN format('LC_COLLATE = %L, LC_CTYPE = %L', \
         c.collcollate, c.collctype) ELSE format('LOCALE = %L', coalesce(to_jsonb(c) ->> \
         'colllocale', to_jsonb(c) ->> 'colliculocale', c.collcollate)) END, \
         c.collisdeterministic)",
        "pg_collation c JOIN pg_namespace n ON n.oid = c.collnamespace WHERE true"
    ),
    objects!("type", "pg_type", "t.oid", "t.typname";
        "format('CREATE TYPE %I.%I AS ENUM (%s)', n.nspname, t.typname, (SELECT \
         string_agg(quote_literal(e.enumlabel), ', ' ORDER BY e.enumsortorder) FROM pg_enum e \
         WHERE e.enumtypid = t.oid))",
        "pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE t.typtype = 'e'"
    ),
    objects!("type", "pg_type", "t.oid", "t.typname";
        "format('CREATE TYPE %I.%I AS (%s)', n.nspname, t.typname, (SELECT \
         string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ' ORDER \
         BY a.attnum) FROM pg_attribute a WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT \
         a.attisdropped))",
        "pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace JOIN pg_class c ON c.oid = \
         t.typrelid WHERE c.relkind = 'c'"
    ),
    objects!("type", "pg_type", "t.oid", "t.typname";
        "format('CREATE TYPE %I.%I AS RANGE (SUBTYPE = %s)', n.nspname, t.typname, \
         format_type(r.rngsubtype, NULL))",
        "pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace JOIN pg_range r ON r.rngtypid = \
         t.oid WHERE t.typtype = 'r'"
    ),
    // Without its checks: they change no plan, and a superuser who writes statistics would run them.
    objects!("domain", "pg_type", "t.oid", "t.typname";
        "format('CREATE DOMAIN %I.%I AS %s%s', n.nspname, t.typname, format_type(t.typbasetype, \
         t.typtypmod), CASE WHEN t.typnotnull THEN ' NOT NULL' ELSE '' END)",
        "pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace WHERE t.typtype = 'd'"
    ),
    objects!("sequence", "pg_class", "c.oid", "c.relname";
        "format('CREATE SEQUENCE %I.%I', n.nspname, c.relname)",
        "pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'S'"
    ),
    objects!("function", "pg_proc", "p.oid", "p.proname";
        "pg_get_functiondef(p.oid)",
        "pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE p.prokind IN ('f', 'p')"
    ),
    objects!("aggregate", "pg_proc", "p.oid", "p.proname";
        "format('CREATE AGGREGATE %I.%I (%s) (SFUNC = %s, STYPE = %s%s%s%s, PARALLEL = %s)', \
         n.nspname, p.proname, pg_get_function_arguments(p.oid), g.aggtransfn::regproc, \
         format_type(g.aggtranstype, NULL), CASE WHEN g.aggfinalfn = 0 THEN '' ELSE ', FINALFUNC \
         = ' || g.aggfinalfn::regproc END, CASE WHEN g.aggcombinefn = 0 THEN '' ELSE ', \
         COMBINEFUNC = ' || g.aggcombinefn::regproc END, CASE WHEN g.agginitval IS NULL THEN '' \
         ELSE ', INITCOND = ' || quote_literal(g.agginitval) END, CASE p.proparallel WHEN 's' \
         THEN 'safe' WHEN 'r' THEN 'restricted' ELSE 'unsafe' END)",
        "pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_aggregate g ON g.aggfnoid \
         = p.oid WHERE g.aggkind = 'n'"
    ),
    objects!("operator", "pg_operator", "o.oid", "o.oprname";
        "format('CREATE OPERATOR %I.%s (FUNCTION = %s%s%s%s%s%s)', n.nspname, o.oprname, \
         o.oprcode::regproc, CASE WHEN o.oprleft = 0 THEN '' ELSE ', LEFTARG = ' || \
         format_type(o.oprleft, NULL) END, CASE WHEN o.oprright = 0 THEN '' ELSE ', RIGHTARG = ' \
         || format_type(o.oprright, NULL) END, CASE WHEN o.oprrest = 0 THEN '' ELSE ', RESTRICT = \
         ' || o.oprrest::regproc END, CASE WHEN o.oprjoin = 0 THEN '' ELSE ', JOIN = ' || \
         o.oprjoin::regproc END, CASE WHEN o.oprcanhash THEN ', HASHES' ELSE '' END)",
        "pg_operator o JOIN pg_namespace n ON n.oid = o.oprnamespace WHERE true"
    ),
    // Dropped columns keep the numbers of those behind them, which statistics refer to. Defaults
    // change no plan.
    objects!("table", "pg_class", "c.oid", "c.relname";
        "format('CREATE TABLE %I.%I (%s)%s%s', n.nspname, c.relname, (SELECT string_agg(CASE WHEN \
         a.attisdropped THEN format('rqps_dropped_%s integer', a.attnum) ELSE format('%I %s%s%s%s', \
         a.attname, format_type(a.atttypid, a.atttypmod), (SELECT format(' COLLATE %I.%I', \
         cn.nspname, co.collname) FROM pg_collation co JOIN pg_namespace cn ON cn.oid = \
         co.collnamespace JOIN pg_type ct ON ct.oid = a.atttypid WHERE co.oid = a.attcollation AND \
         a.attcollation <> ct.typcollation), CASE WHEN a.attgenerated <> '' THEN format(' \
         GENERATED ALWAYS AS (%s) %s', pg_get_expr(d.adbin, d.adrelid), CASE a.attgenerated WHEN \
         's' THEN 'STORED' ELSE 'VIRTUAL' END) ELSE '' END, CASE WHEN a.attnotnull THEN ' NOT NULL' \
         ELSE '' END) END, ', ' ORDER BY a.attnum) FROM pg_attribute a LEFT JOIN pg_attrdef d ON \
         d.adrelid = a.attrelid AND d.adnum = a.attnum WHERE a.attrelid = c.oid AND a.attnum > 0), \
         CASE WHEN c.relkind = 'p' THEN ' PARTITION BY ' || pg_get_partkeydef(c.oid) ELSE '' END, \
         (SELECT format(' WITH (%s)', string_agg(format('%s=%L', split_part(o, '=', 1), substr(o, \
         strpos(o, '=') + 1)), ', ')) FROM unnest(c.reloptions) o HAVING count(*) > 0))",
        "pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p') AND \
         c.relpersistence <> 't'"
    ),
    objects!("column", "pg_class", "c.oid", "c.relname";
        "format('ALTER TABLE ONLY %I.%I DROP COLUMN rqps_dropped_%s', n.nspname, c.relname, \
         a.attnum)",
        "pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = \
         c.relnamespace WHERE a.attnum > 0 AND a.attisdropped AND c.relkind IN ('r', 'p') AND \
         c.relpersistence <> 't'"
    ),
    objects!("constraint", "pg_class", "c.oid", "k.conname";
        "format('ALTER TABLE ONLY %I.%I ADD CONSTRAINT %I %s', n.nspname, c.relname, k.conname, \
         pg_get_constraintdef(k.oid))",
        "pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = \
         c.relnamespace WHERE k.contype = 'c'"
    ),
    objects!("partition", "pg_class", "c.oid", "c.relname";
        "format('ALTER TABLE ONLY %I.%I ATTACH PARTITION %I.%I %s', pn.nspname, p.relname, \
         n.nspname, c.relname, pg_get_expr(c.relpartbound, c.oid))",
        "pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_namespace n ON n.oid = \
         c.relnamespace JOIN pg_class p ON p.oid = i.inhparent JOIN pg_namespace pn ON pn.oid = \
         p.relnamespace WHERE c.relispartition AND c.relkind IN ('r', 'p')"
    ),
    objects!("inheritance", "pg_class", "c.oid", "c.relname";
        "format('ALTER TABLE %I.%I INHERIT %I.%I', n.nspname, c.relname, pn.nspname, p.relname)",
        "pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_namespace n ON n.oid = \
         c.relnamespace JOIN pg_class p ON p.oid = i.inhparent JOIN pg_namespace pn ON pn.oid = \
         p.relnamespace WHERE NOT c.relispartition AND c.relkind = 'r'"
    ),
    objects!("constraint", "pg_class", "c.oid", "k.conname";
        "format('ALTER TABLE ONLY %I.%I ADD CONSTRAINT %I %s', n.nspname, c.relname, k.conname, \
         pg_get_constraintdef(k.oid))",
        "pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = \
         c.relnamespace WHERE k.contype IN ('p', 'u', 'x')"
    ),
    objects!("view", "pg_class", "c.oid", "c.relname";
        "format('CREATE VIEW %I.%I%s AS %s', n.nspname, c.relname, (SELECT format(' WITH (%s)', \
         string_agg(format('%s=%L', split_part(o, '=', 1), substr(o, strpos(o, '=') + 1)), ', ')) \
         FROM unnest(c.reloptions) o HAVING count(*) > 0), pg_get_viewdef(c.oid))",
        "pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'v' AND \
         c.relpersistence <> 't'"
    ),
    objects!("materialized view", "pg_class", "c.oid", "c.relname";
        "format('CREATE MATERIALIZED VIEW %I.%I AS %s WITH NO DATA', n.nspname, c.relname, \
         rtrim(pg_get_viewdef(c.oid), '; '))",
        "pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'm'"
    ),
    objects!("index", "pg_class", "c.oid", "c.relname";
        "pg_get_indexdef(c.oid)",
        "pg_index x JOIN pg_class c ON c.oid = x.indexrelid JOIN pg_namespace n ON n.oid = \
         c.relnamespace JOIN pg_class r ON r.oid = x.indrelid WHERE x.indisvalid AND \
         r.relpersistence <> 't' AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = \
         c.oid AND k.contype IN ('p', 'u', 'x'))"
    ),
    objects!("index", "pg_class", "c.oid", "c.relname";
        "format('ALTER INDEX %I.%I ATTACH PARTITION %I.%I', pn.nspname, p.relname, n.nspname, \
         c.relname)",
        "pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_namespace n ON n.oid = \
         c.relnamespace JOIN pg_class p ON p.oid = i.inhparent JOIN pg_namespace pn ON pn.oid = \
         p.relnamespace WHERE c.relkind IN ('i', 'I')"
    ),
    objects!("constraint", "pg_class", "c.oid", "k.conname";
        "format('ALTER TABLE %I.%I ADD CONSTRAINT %I %s', n.nspname, c.relname, k.conname, \
         pg_get_constraintdef(k.oid))",
        "pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = \
         c.relnamespace WHERE k.contype = 'f' AND k.conparentid = 0"
    ),
    objects!("statistics", "pg_statistic_ext", "s.oid", "s.stxname";
        "pg_get_statisticsobjdef(s.oid)",
        "pg_statistic_ext s JOIN pg_namespace n ON n.oid = s.stxnamespace WHERE true"
    ),
    objects!("rule", "pg_class", "c.oid", "r.rulename";
        "pg_get_ruledef(r.oid)",
        "pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class JOIN pg_namespace n ON n.oid = \
         c.relnamespace WHERE r.rulename <> '_RETURN'"
    ),
    objects!("trigger", "pg_class", "c.oid", "t.tgname";
        "pg_get_triggerdef(t.oid)",
        "pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = \
         c.relnamespace WHERE NOT t.tgisinternal AND c.relkind = 'v'"
    ),
    objects!("cast", "pg_cast", "k.oid", "format_type(k.castsource, NULL)";
        "format('CREATE CAST (%s AS %s) %s%s', format_type(k.castsource, NULL), \
         format_type(k.casttarget, NULL), CASE k.castmethod WHEN 'f' THEN 'WITH FUNCTION ' || \
         k.castfunc::regprocedure WHEN 'i' THEN 'WITH INOUT' ELSE 'WITHOUT FUNCTION' END, CASE \
         k.castcontext WHEN 'a' THEN ' AS ASSIGNMENT' WHEN 'i' THEN ' AS IMPLICIT' ELSE '' END)",
        "pg_cast k JOIN pg_type t ON t.oid = k.castsource JOIN pg_namespace n ON true WHERE k.oid \
         >= 16384 AND n.nspname = 'public'"
    ),
    objects!("text search dictionary", "pg_ts_dict", "d.oid", "d.dictname";
        "format('CREATE TEXT SEARCH DICTIONARY %I.%I (TEMPLATE = %I.%I%s)', n.nspname, d.dictname, \
         tn.nspname, t.tmplname, ', ' || d.dictinitoption)",
        "pg_ts_dict d JOIN pg_namespace n ON n.oid = d.dictnamespace JOIN pg_ts_template t ON t.oid \
         = d.dicttemplate JOIN pg_namespace tn ON tn.oid = t.tmplnamespace WHERE true"
    ),
    objects!("text search configuration", "pg_ts_config", "c.oid", "c.cfgname";
        "format('CREATE TEXT SEARCH CONFIGURATION %I.%I (PARSER = pg_catalog.%I)', n.nspname, \
         c.cfgname, p.prsname)",
        "pg_ts_config c JOIN pg_namespace n ON n.oid = c.cfgnamespace JOIN pg_ts_parser p ON p.oid \
         = c.cfgparser WHERE true"
    ),
];
