//! What stands behind the names of statements on a server that rqps does not run, as its catalogue
//! tells: views, policies, and what others have made that acts when a name is read or planned.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use crate::reading;
use rqps_model::dialect::Dialect;
use rqps_model::escape;
use rqps_model::sql_name::Literal;

/// Views upon views.
const DEPTH_MOST: usize = 32;

/// What is older came with the server.
const FIRST_MADE: u32 = 16_384;

/// Statistics of several columns, since this version of Postgres.
const WITH_STATISTICS: u32 = 100_000;

/// Functions `p` that Postgres calls where a column could stand: `a.f` is `f(a)`. No text of SQL has
/// a value for those with an argument `internal`, such as `system` of `TABLESAMPLE`.
pub const AS_COLUMNS: &str = "p.pronargs > 0 AND p.pronargs - p.pronargdefaults <= 1 \
     AND p.proname <> 'setseed' AND 'internal'::regtype <> ALL (p.proargtypes)";

/// Those of them that take no row, so nothing after the name of a table calls one.
pub const OF_NO_ROW: &str = "(p.pronamespace = 'pg_catalog'::regnamespace AND \
     'b' = (SELECT a.typtype FROM pg_type a WHERE a.oid = p.proargtypes[0]))";

/// Users whose code may run as the login: superusers, who could do so anyway, and the login itself.
pub const TRUSTED: &str = "(SELECT oid FROM pg_roles WHERE rolsuper OR rolname = current_user)";

/// Functions `p` whose text is in a file of the server: only superusers make such.
const OF_C: &str = "p.prolang IN (SELECT oid FROM pg_language WHERE lanname IN ('c', 'internal'))";

/// Functions `p` that an extension brought. Whoever owns an extension may add functions to it, and
/// change those of his that are SQL.
pub fn from_files() -> String {
    format!(
        "(EXISTS (SELECT 1 FROM pg_depend e WHERE e.classid = 'pg_proc'::regclass \
         AND e.objid = p.oid AND e.deptype = 'e') AND (p.proowner IN {TRUSTED} OR {OF_C}))"
    )
}

/// What depends on the functions `made` (`oid`, `shown`) or on operators by them, and types whose
/// values call them: domains with checks or defaults, and types with casts. Types that hold others, as
/// ranges do, are `parts`. Joins by equality alone: a server may have 10,000 tables.
pub const CALLING: &str = "\
     uses AS (SELECT d.classid, d.objid, m.shown FROM made m JOIN pg_depend d \
     ON d.refclassid = 'pg_proc'::regclass AND d.refobjid = m.oid \
     UNION SELECT d.classid, d.objid, m.shown FROM made m JOIN pg_operator o ON o.oprcode = m.oid \
     JOIN pg_depend d ON d.refclassid = 'pg_operator'::regclass AND d.refobjid = o.oid), \
     parts AS (SELECT oid, typbasetype AS part FROM pg_type WHERE typbasetype <> 0 \
     UNION ALL SELECT oid, typelem FROM pg_type WHERE typelem <> 0 \
     UNION ALL SELECT d.objid, d.refobjid FROM pg_depend d WHERE d.classid = 'pg_type'::regclass \
     AND d.refclassid = 'pg_type'::regclass \
     UNION ALL SELECT t.oid, a.atttypid FROM pg_attribute a JOIN pg_type t \
     ON t.typrelid = a.attrelid), \
     calling AS ((SELECT u.objid AS oid FROM uses u WHERE u.classid = 'pg_type'::regclass \
     UNION SELECT c.contypid FROM pg_constraint c JOIN uses u ON u.objid = c.oid \
     AND u.classid = 'pg_constraint'::regclass \
     UNION SELECT unnest(ARRAY[k.castsource, k.casttarget]) FROM pg_cast k \
     WHERE k.castfunc IN (SELECT oid FROM made)) \
     UNION SELECT p.oid FROM parts p JOIN calling c ON c.oid = p.part), ";

/// Types and the checks of domains of others that their values go through: a check may call what the
/// server brings.
pub const CHECKED: &str = "\
     checked AS (SELECT t.oid, k.oid AS rule FROM pg_type t JOIN pg_constraint k \
     ON k.contypid = t.oid WHERE k.contype = 'c' AND t.typowner NOT IN \
     (SELECT oid FROM pg_roles WHERE rolsuper OR rolname = current_user) \
     UNION SELECT p.oid, c.rule FROM parts p JOIN checked c ON c.oid = p.part) ";

/// What is done with the statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// They run, in sessions in which the server refuses writes.
    Reading,
    /// The server plans them, whatever they do, and executes none.
    Planning,
}

/// Why statements may do more than their words.
#[derive(Debug, thiserror::Error)]
pub enum HiddenAct<E: Display> {
    /// The server refuses to tell.
    #[error("it does not tell what stands behind names: {0}")]
    Untold(#[from] E),
    /// Something acts when a name is read.
    #[error("it would use {}", escape::line(.0))]
    Used(String),
    /// There are more than [`DEPTH_MOST`].
    #[error("its views lead to others, more than {DEPTH_MOST} one behind the other")]
    TooDeep,
}

/// How a function of MySQL is shown, and the check of a domain, which the server carries out as it reads
/// a text.
const FUNCTION: &str = "the function ";
const CHECK: &str = "the check ";

/// Users of MySQL and MariaDB to whom what came with the server belongs.
const OF_SERVER: &str = "'mysql.sys@localhost', 'mariadb.sys@localhost'";

/// Cells of rows.
pub type Rows = Vec<Vec<Option<String>>>;

/// Looks at what the names in these texts mean, and at what the names in that mean. A session of
/// Postgres must see its own catalogue alone; `path` are the schemas in which the statements look.
///
/// # Errors
/// Something acts when one of them is read, or the server does not tell.
pub fn check<E: Display>(
    dialect: Dialect,
    doing: Doing,
    path: &[String],
    texts: &str,
    ask: &mut dyn FnMut(&str) -> Result<Rows, E>,
) -> Result<(), HiddenAct<E>> {
    let version = match dialect {
        Dialect::Postgres => ask("SELECT pg_catalog.current_setting('server_version_num')")?,
        Dialect::Mysql => Rows::new(),
        _ => return Ok(()),
    };
    let version = version.into_iter().flatten().flatten();
    let version = version.filter_map(|number| number.parse().ok()).next().unwrap_or(0);
    // There may be none.
    let path = std::iter::once("").chain(path.iter().map(String::as_str));
    let path: Vec<Literal> = path.map(|schema| Literal::quoted(dialect, schema)).collect();
    let path = Literal::list(&path);
    let (mut texts, mut known) = (texts.to_owned(), BTreeSet::new());
    for _ in 0..DEPTH_MOST {
        let list = |words: &BTreeSet<String>| {
            let words = words.iter().map(String::as_str).chain([""]);
            let words: Vec<_> = words.map(|word| Literal::quoted(dialect, word)).collect();
            Literal::list(&words)
        };
        let (words, called, spellings) = (words(&texts), called(&texts), spellings(&texts));
        let values = reading::attributes_of_values(&texts);
        let sql = match (dialect, doing) {
            (Dialect::Mysql, Doing::Reading) => on_mysql(Some([&list(&words), &list(&called)])),
            (Dialect::Mysql, Doing::Planning) => on_mysql(None),
            (_, Doing::Reading) => {
                let values = list(values.as_ref().unwrap_or(&words));
                on_postgres(Some([&list(&words), &values]), &path, version)
            }
            (_, Doing::Planning) => on_postgres(None, &path, version),
        };
        let is_named =
            |name: &str, shown: &str| match name.bytes().all(|byte| is_of_name(byte.into())) {
                true if dialect == Dialect::Mysql && shown.starts_with(FUNCTION) => {
                    called.contains(name)
                }
                true => name.is_empty() || words.contains(name),
                false => spellings.iter().any(|text| text.contains(name)),
            };
        let mut more = String::new();
        for row in ask(&sql)? {
            let mut cells = row.into_iter();
            let mut next = || cells.next().flatten();
            let (name, definition, shown) = (next(), next(), next().unwrap_or_default());
            let name = name.unwrap_or_default().to_lowercase();
            if known.contains(&shown) || !is_named(&name, &shown) {
                continue;
            }
            // A planner calls nothing that changes from call to call.
            let is_planned = doing == Doing::Planning && !shown.starts_with(CHECK);
            let is_plain = |sql: &String| is_planned || !reading::may_write(sql);
            match definition.filter(|sql| !sql.is_empty() && is_plain(sql)) {
                Some(sql) => more.push_str(&format!("{sql}\n")),
                None => return Err(HiddenAct::Used(shown)),
            }
            known.insert(shown);
        }
        if more.is_empty() {
            return Ok(());
        }
        texts = more;
    }
    Err(HiddenAct::TooDeep)
}

/// What a server told about what stands behind names, for many statements that it plans.
#[derive(Clone, Debug, Default)]
pub struct Told(BTreeMap<String, Rows>);

impl Told {
    /// As [`check`] of statements that the server plans.
    ///
    /// # Errors
    /// As for [`check`].
    pub fn check<E: Display>(
        &mut self,
        dialect: Dialect,
        path: &[String],
        texts: &str,
        ask: &mut dyn FnMut(&str) -> Result<Rows, E>,
    ) -> Result<(), HiddenAct<E>> {
        check(dialect, Doing::Planning, path, texts, &mut |sql| {
            if let Some(rows) = self.0.get(sql) {
                return Ok(rows.clone());
            }
            let rows = ask(sql)?;
            self.0.insert(sql.to_owned(), rows.clone());
            Ok(rows)
        })
    }
}

/// A text in small letters, as it is and without the second one of two quotes: so names stand in it as
/// the catalogue has them.
fn spellings(text: &str) -> [String; 3] {
    let lower = text.to_lowercase();
    [lower.replace("\"\"", "\""), lower.replace("``", "`"), lower]
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "_$".contains(letter)
}

/// What may be names in a text. Servers fold the case of some.
fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter| !is_of_name(letter)).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// The words before parentheses. MySQL calls what somebody made under a name that it does not know, or
/// after which a blank stands.
fn called(text: &str) -> BTreeSet<String> {
    let before = |(at, _): (usize, &str)| {
        let before = text[..at].trim_end().trim_end_matches(['`', '"']);
        let begin = before.trim_end_matches(is_of_name).len();
        before[begin..].to_lowercase()
    };
    text.match_indices('(').map(before).collect()
}

/// What acts when a table is read, or planned to be read or written: `acting` (`oid`, `what`), after
/// `made`, what others have made. Functions and operators behind indexes, constraints, statistics and the
/// division of tables are executed by planning.
fn acting(plans_writes: bool, version: u32) -> String {
    let statistics = match version {
        WITH_STATISTICS.. => {
            "UNION SELECT s.stxrelid, 'statistics that call ' || u.shown FROM uses u \
             JOIN pg_statistic_ext s ON s.oid = u.objid \
             AND u.classid = 'pg_statistic_ext'::regclass"
        }
        _ => "",
    };
    let of_writes = match plans_writes {
        true => format!(
            "UNION SELECT d.adrelid, 'a default that calls ' || u.shown FROM uses u \
             JOIN pg_attrdef d ON d.oid = u.objid AND u.classid = 'pg_attrdef'::regclass \
             UNION SELECT r.ev_class, 'the rule ' || r.rulename FROM pg_rewrite r \
             JOIN pg_class c ON c.oid = r.ev_class WHERE r.rulename <> '_RETURN' \
             AND c.relowner NOT IN {TRUSTED}"
        ),
        false => String::new(),
    };
    format!(
        "made AS (SELECT p.oid, p.proname, p.oid::regprocedure::text AS shown \
         FROM pg_proc p WHERE p.proowner NOT IN {TRUSTED} AND NOT {OF_C}), {CALLING} {CHECKED}, \
         acting AS (SELECT i.indrelid AS oid, 'an index that calls ' || u.shown AS what \
         FROM uses u JOIN pg_index i ON i.indexrelid = u.objid AND u.classid = 'pg_class'::regclass \
         UNION SELECT k.conrelid, 'a constraint that calls ' || u.shown FROM uses u \
         JOIN pg_constraint k ON k.oid = u.objid AND u.classid = 'pg_constraint'::regclass \
         UNION SELECT c.oid, 'partitions by what calls ' || u.shown FROM uses u \
         JOIN pg_class c ON c.oid = u.objid AND u.classid = 'pg_class'::regclass \
         AND c.relkind = 'p' \
         {statistics} {of_writes} \
         UNION SELECT oid, 'rows of another server' FROM pg_class WHERE relkind = 'f' \
         UNION SELECT h.inhparent, a.what FROM acting a JOIN pg_inherits h ON h.inhrelid = a.oid)"
    )
}

/// Views, whose definitions are queries; policies; [`acting`] tables; what others have made that a query
/// calls without naming it, or as if it were a column: functions, operators, casts, types whose values
/// call one or go through a check. Names with other signs than [`words`] has come, too. Without `names`,
/// the words of a text and its attributes of values, all that a planner could call.
fn on_postgres(names: Option<[&Literal; 2]>, path: &Literal, version: u32) -> String {
    let (as_columns, named) = match names {
        None => (String::new(), String::new()),
        Some([words, values]) => (
            format!(
                "UNION ALL SELECT p.proname, NULL, 'the function ' || p.oid::regprocedure::text \
                 FROM pg_proc p WHERE {AS_COLUMNS} AND p.provolatile = 'v' \
                 AND NOT ({OF_NO_ROW} AND p.proname NOT IN ({values})) \
                 AND NOT (p.oid >= {FIRST_MADE} AND NOT EXISTS (SELECT 1 FROM pg_depend e \
                 WHERE e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e'))"
            ),
            format!("WHERE lower(name) IN ({words}) OR name !~ '^[0-9A-Za-z_$]+$'"),
        ),
    };
    let (from_files, acting) = (from_files(), acting(names.is_none(), version));
    format!(
        "SELECT * FROM (WITH RECURSIVE {acting} \
         SELECT * FROM (SELECT c.relname::text AS name, pg_get_viewdef(c.oid) AS sql, \
         'the view ' || c.oid::regclass::text AS shown FROM pg_class c \
         JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'v' \
         AND n.nspname NOT IN ('pg_catalog', 'information_schema') \
         UNION ALL SELECT c.relname, 'SELECT 1 WHERE ' || \
         coalesce(pg_get_expr(p.polqual, p.polrelid), 'true'), 'the policy ' || p.polname || \
         ' of ' || c.oid::regclass::text FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid \
         WHERE c.relrowsecurity \
         UNION ALL SELECT c.relname, NULL, c.oid::regclass::text || ', which has ' || a.what \
         FROM acting a JOIN pg_class c ON c.oid = a.oid \
         UNION ALL SELECT t.typname, NULL, 'the type ' || t.oid::regtype::text FROM pg_type t \
         JOIN calling y ON y.oid = t.oid \
         UNION ALL SELECT t.typname, 'SELECT 1 WHERE ' || substr(pg_get_constraintdef(k.oid), 6), \
         '{CHECK}' || k.conname || ' of ' || k.contypid::regtype::text FROM checked y \
         JOIN pg_type t ON t.oid = y.oid JOIN pg_constraint k ON k.oid = y.rule \
         UNION ALL SELECT proname, NULL, 'the function ' || shown FROM made \
         UNION ALL SELECT p.proname, NULL, 'the function ' || p.oid::regprocedure::text \
         FROM pg_proc p WHERE p.pronamespace = 'pg_catalog'::regnamespace \
         AND p.proname ~ '_to_xml' AND p.provolatile <> 'i' {as_columns}) o {named} \
         UNION ALL SELECT o.oprname, NULL, 'the operator ' || o.oid::regoperator::text \
         FROM pg_operator o JOIN pg_namespace n ON n.oid = o.oprnamespace \
         JOIN pg_proc p ON p.oid = o.oprcode \
         WHERE n.nspname IN ({path}) AND o.oprowner NOT IN {TRUSTED} AND NOT {from_files} \
         UNION ALL SELECT '', NULL, 'the cast by ' || m.shown FROM pg_cast k \
         JOIN made m ON m.oid = k.castfunc WHERE k.castcontext = 'i') told"
    )
}

/// Views, but those that came with the server, and functions: READ ONLY keeps none from a setting of the
/// server. A view that does not show its definition to the login has none here. Without `names`, the words
/// of a text and those that it calls, all that a planner could call with the rights of the login.
fn on_mysql(names: Option<[&Literal; 2]>) -> String {
    let among = |column: &str, names: &Literal| {
        format!("AND (LOWER({column}) IN ({names}) OR NOT {column} REGEXP '^[0-9A-Za-z_$]+$')")
    };
    let (views, functions) = match names {
        Some([words, called]) => (
            among("table_name", words),
            format!("routine_schema = DATABASE() {}", among("routine_name", called)),
        ),
        // One that has the rights of its definer is no matter of the login.
        None => {
            (String::new(), "security_type = 'INVOKER' AND definer <> CURRENT_USER()".to_owned())
        }
    };
    format!(
        "SELECT table_name, view_definition, CONCAT('the view ', table_schema, '.', table_name) \
         FROM information_schema.views WHERE NOT (table_schema IN ('mysql', 'sys') \
         AND definer IN ({OF_SERVER})) {views} \
         UNION ALL SELECT routine_name, NULL, \
         CONCAT('{FUNCTION}', routine_schema, '.', routine_name) \
         FROM information_schema.routines WHERE routine_type = 'FUNCTION' AND {functions}"
    )
}

/// The tables of a Postgres of this version number whose reading, or the planning of it, may call what
/// others made: schema, name and oid.
pub fn tables_that_act(version: u32) -> String {
    let acting = acting(true, version);
    format!(
        "SELECT * FROM (WITH RECURSIVE {acting} SELECT n.nspname, c.relname, c.oid FROM acting a \
         JOIN pg_class c ON c.oid = a.oid JOIN pg_namespace n ON n.oid = c.relnamespace) told"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_of_a_text_are_found() {
        let found = words("SELECT \"Busy\".a FROM t$1, \u{e9}\nSET v2 = 1");
        for name in ["busy", "t$1", "v2"] {
            assert!(found.contains(name), "{name}: {found:?}");
        }
        let found = called("SELECT initcap (a), `shop`.`Act`(1) FROM (SELECT 1) x");
        for name in ["initcap", "act", "from"] {
            assert!(found.contains(name), "{name}: {found:?}");
        }
    }

    /// A server that has one view of this name.
    fn view(dialect: Dialect, name: &str, text: &str) -> Result<(), HiddenAct<String>> {
        let row = [Some(name), Some("SELECT pg_sleep(1)"), Some("the view")];
        let row: Vec<_> = row.iter().map(|cell| cell.map(str::to_owned)).collect();
        let mut ask = |_: &str| Ok::<_, String>(vec![row.clone()]);
        check(dialect, Doing::Reading, &[], text, &mut ask)
    }

    #[test]
    fn a_quote_in_a_name_hides_nothing() {
        use Dialect::{Mysql, Postgres};
        for (dialect, name, text) in [
            (Postgres, "On \"it\"", "SELECT a FROM \"On \"\"it\"\"\""),
            (Postgres, "a``b\"c", "SELECT a FROM \"a``b\"\"c\""),
            (Mysql, "a`b", "SELECT a FROM `a``b`"),
            (Mysql, "a\"\"`b", "SELECT a FROM `a\"\"``b`"),
        ] {
            assert!(matches!(view(dialect, name, text), Err(HiddenAct::Used(_))), "{text}");
        }
        assert!(view(Postgres, "b", "SELECT a FROM t").is_ok());
    }
}
