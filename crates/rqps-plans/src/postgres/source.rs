//! What is read from the source: its catalogue, sizes, statistics and settings, by a session that
//! only reads.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::postgres::hollow::{Reading, Row, Session, cell, many, number};
use crate::postgres::statistics::object_queries;
use crate::rehearsal::Tell;
use rqps_model::dialect::Dialect::Postgres;
use rqps_model::sql_name::Literal;
use rqps_text::behind::tables_that_act;

/// The oldest version whose catalogue the queries know.
const OLDEST: u32 = 120_000;

/// Page size of all builds that rqps runs.
const PAGE: &str = "8192";

/// Tables whose statistics are asked for at once.
const CHUNK: usize = 200;

/// Time limit for looking up the ends of a column in its index, milliseconds.
const LOOKUP_MS: u32 = 2000;

/// Time limit for all those lookups.
const LOOKUPS: Duration = Duration::from_secs(60);

/// A table or an index.
#[derive(Clone, Debug, Default)]
pub(super) struct Relation {
    pub(super) schema: String,
    pub(super) name: String,
    /// As in `pg_class`: `r`, `i`, `m`, `p`, `I`.
    pub(super) kind: String,
    /// The access method of an index.
    pub(super) method: String,
    pub(super) pages: f64,
    pub(super) tuples: f64,
    pub(super) visible: f64,
    /// Blocks of the file.
    pub(super) blocks: u64,
    /// The level of the root of a B-tree.
    pub(super) level: Option<u32>,
    /// Average width of a key of an index, bytes, as far as statistics tell.
    key_width: f64,
}

/// All that the private servers need.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) version: u32,
    /// As the server names it: `15.14`.
    pub(super) version_name: String,
    /// Encoding, collation and character types of the database, its provider and locale.
    pub(super) database: Row,
    pub(super) extensions: Vec<(String, String)>,
    /// Kind, name and statement of each object.
    pub(super) objects: Vec<(&'static str, String, String)>,
    pub(super) relations: Vec<Relation>,
    /// Rows of `pg_stats`.
    pub(super) columns: Vec<Row>,
    /// Rows of extended statistics.
    pub(super) extended: Vec<Row>,
    /// Rows of extended statistics on expressions.
    pub(super) expressions: Vec<Row>,
    /// Settings of the planner that are not the default.
    pub(super) settings: Vec<(String, String)>,
    pub(super) notes: Vec<String>,
}

const RELATIONS: &str = include_str!("relations.sql");

const DATABASE: &str = include_str!("database.sql");

/// Settings on which plans depend. `shared_buffers` is none, nor are those of replication.
/// Those that reading changes have the value of the login.
const SETTINGS: &str = include_str!("settings.sql");

const STATISTICS: &str = "SELECT schemaname, tablename, attname, inherited, null_frac, avg_width, \
    n_distinct, most_common_vals::text, most_common_freqs::text, histogram_bounds::text, \
    correlation, most_common_elems::text, most_common_elem_freqs::text, \
    elem_count_histogram::text";

/// Columns that only the view of 17 and later has.
const RANGES: &str = ", range_length_histogram::text, range_empty_frac, \
    range_bounds_histogram::text";

/// First columns of B-trees over all rows, which the planner would ask for their ends.
const LEADING: &str = include_str!("leading.sql");

/// Tables with policies, which whoever reads them executes.
const GUARDED: &str = "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n \
    ON n.oid = c.relnamespace WHERE c.relrowsecurity";

impl Facts {
    /// Reads all of it. Values of rows are among the statistics.
    ///
    /// # Errors
    /// The source does not answer, or is of a version or form that rqps does not know.
    pub(super) fn read(source: &mut Session, tell: &mut Tell<'_>) -> Result<Facts> {
        let mut facts = Facts::begin(source)?;
        for query in object_queries() {
            let doing = || format!("read the {}s of the source", query.kind);
            for row in source.rows(&query.sql).with_context(doing)? {
                if let [Some(name), Some(sql)] = row.as_slice() {
                    facts.objects.push((query.kind, name.clone(), sql.clone()));
                }
            }
        }
        tell(&format!("read the definitions of {} objects", facts.objects.len()));
        facts.relations(source)?;
        facts.statistics(source, tell)?;
        facts.ends(source, tell)?;
        facts.extended(source)?;
        Ok(facts)
    }

    /// The version and the settings of the login.
    fn begin(source: &mut Session) -> Result<Facts> {
        let about = source.rows(
            "SELECT current_setting('server_version_num'), split_part(current_setting(\
             'server_version'), ' ', 1), current_setting('block_size')",
        )?;
        let about = about.into_iter().next().unwrap_or_default();
        let version: u32 = cell(&about, 0).parse().unwrap_or(0);
        if version < OLDEST {
            bail!(
                "read the source: it is Postgres {}, and rqps needs 12 or later",
                cell(&about, 1)
            );
        }
        if cell(&about, 2) != PAGE {
            bail!(
                "read the source: its pages have {} bytes, and builds of rqps 8192",
                cell(&about, 2)
            );
        }
        let pairs = |rows: Vec<Row>| {
            rows.into_iter()
                .map(|row| (cell(&row, 0).to_owned(), cell(&row, 1).to_owned()))
                .collect()
        };
        let mut facts = Facts {
            version,
            version_name: cell(&about, 1).to_owned(),
            settings: pairs(source.rows(SETTINGS)?),
            extensions: pairs(source.rows(
                "SELECT e.extname, n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = \
                 e.extnamespace WHERE e.extname <> 'plpgsql' ORDER BY e.oid",
            )?),
            ..Facts::default()
        };
        // Private servers have no schema of the source's user, whom the setting may name.
        let path = source.rows(
            "SELECT replace(reset_val, '\"$user\"', quote_ident(current_user)) FROM pg_settings \
             WHERE name = 'search_path'",
        )?;
        facts.settings.retain(|(name, _)| name != "search_path");
        let path = path.first().map_or("", |row| cell(row, 0)).to_owned();
        facts.settings.push(("search_path".to_owned(), path));
        facts.database = source.rows(DATABASE)?.into_iter().next().unwrap_or_default();
        let left_out = source.rows(
            "SELECT (SELECT count(*) FROM pg_foreign_table), (SELECT count(*) FROM pg_policy), \
             (SELECT count(*) FROM pg_tablespace WHERE spcoptions IS NOT NULL)",
        )?;
        let left_out = left_out.into_iter().next().unwrap_or_default();
        for (at, what) in [
            "foreign tables are left out: statements that read them are not judged",
            "policies of row security are left out: plans are those of the owner",
            "costs of tablespaces are left out: plans have those of the server",
        ]
        .into_iter()
        .enumerate()
        {
            if number(&left_out, at) > 0.0 {
                facts.notes.push(format!("{} {what}", cell(&left_out, at)));
            }
        }
        Ok(facts)
    }

    fn relations(&mut self, source: &mut Session) -> Result<()> {
        let rows = source.rows(RELATIONS).context("read the sizes of the source")?;
        let levels = Levels::choose(source)?;
        for row in rows {
            let mut relation = Relation {
                schema: cell(&row, 0).to_owned(),
                name: cell(&row, 1).to_owned(),
                kind: cell(&row, 2).to_owned(),
                method: cell(&row, 3).to_owned(),
                pages: number(&row, 4),
                tuples: number(&row, 5),
                visible: number(&row, 6),
                blocks: number(&row, 7) as u64,
                level: None,
                key_width: number(&row, 9),
            };
            if relation.kind == "i" && relation.method == "btree" {
                if cell(&row, 10) == "t" {
                    // A text of unknown length: what usual keys have.
                    relation.key_width += 16.0;
                }
                relation.level = levels.of(source, &relation, cell(&row, 8));
            }
            self.relations.push(relation);
        }
        Ok(())
    }

    fn statistics(&mut self, source: &mut Session, tell: &mut Tell<'_>) -> Result<()> {
        let ranges = if self.version >= 170_000 { RANGES } else { "" };
        let named: Vec<(String, String)> = self
            .relations
            .iter()
            .filter(|relation| relation.tuples != 0.0 || relation.kind == "p")
            .map(|relation| (relation.schema.clone(), relation.name.clone()))
            .collect();
        for (index, chunk) in named.chunks(CHUNK).enumerate() {
            if index % 10 == 9 {
                tell(&format!("read statistics of {} of {} tables", index * CHUNK, named.len()));
            }
            let literal = |text: &str| Literal::quoted(Postgres, text).to_string();
            let names = |(schema, name): &(String, String)| {
                format!("({}, {})", literal(schema), literal(name))
            };
            let list = chunk.iter().map(names).collect::<Vec<_>>().join(", ");
            let from = " FROM pg_stats WHERE (schemaname::text, tablename::text) IN (";
            let sql = [STATISTICS, ranges, from, &list, ")"].concat();
            self.columns.extend(source.rows(&sql).context("read the statistics of the source")?);
        }
        if self.columns.is_empty() && self.relations.iter().any(|table| table.tuples > 0.0) {
            self.notes.push(
                "this role may read no statistics, so plans are guesses: GRANT pg_read_all_data TO \
                 it (14 and later), or SELECT on the tables"
                    .to_owned(),
            );
        }
        if self.version < 170_000 {
            self.old_ranges(source)?;
        }
        Ok(())
    }

    /// Statistics of ranges, which views before 17 do not show: of superusers only.
    fn old_ranges(&mut self, source: &mut Session) -> Result<()> {
        if !source.is_true("SELECT has_table_privilege('pg_statistic', 'SELECT')")? {
            return Ok(());
        }
        let slot = |column: &str, kind: u8| {
            let cases: Vec<String> = (1..=5)
                .map(|slot| format!("WHEN s.stakind{slot} = {kind} THEN s.{column}{slot}::text"))
                .collect();
            format!("CASE {} END", cases.join(" "))
        };
        let sql = [
            "SELECT n.nspname, c.relname, a.attname, s.stainherit, ",
            &slot("stavalues", 6),
            ", ",
            &slot("stanumbers", 6),
            ", ",
            &slot("stavalues", 7),
            " FROM pg_statistic s JOIN pg_class c ON c.oid = s.starelid JOIN pg_namespace n ON \
             n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = \
             s.staattnum WHERE 6 IN (s.stakind1, s.stakind2, s.stakind3, s.stakind4, s.stakind5)",
        ]
        .concat();
        for mut row in source.rows(&sql)? {
            let tail = row.split_off(4.min(row.len()));
            if let Some(column) = self.columns.iter_mut().find(|column| column[..4] == row[..]) {
                let mut tail = tail.into_iter();
                let length = tail.next().flatten();
                let empty = tail.next().flatten().map(|it| it.trim_matches(['{', '}']).to_owned());
                column.extend([length, empty, tail.next().flatten()]);
            }
        }
        Ok(())
    }

    /// Puts the true ends of columns into their histograms: the planner would ask the index.
    fn ends(&mut self, source: &mut Session, tell: &mut Tell<'_>) -> Result<()> {
        let mut leading = source.rows(LEADING)?;
        // Whoever reads these calls what their owners made.
        let mut acting = source.rows(&tables_that_act(self.version))?;
        acting.extend(source.rows(GUARDED)?);
        let acting: BTreeSet<&[Option<String>]> = acting.iter().map(|row| &row[..2]).collect();
        leading.retain(|row| !acting.contains(&row[..2]));
        let begin = std::time::Instant::now();
        let mut looked = 0;
        source.read(Reading::Catalogue, LOOKUP_MS);
        for row in leading {
            if begin.elapsed() > LOOKUPS {
                self.notes.push(format!(
                    "the ends of {looked} columns were looked up in a minute, those of the others \
                     are the ones that ANALYZE saw"
                ));
                break;
            }
            let is_of = |column: &&mut Row| column[..3] == row[..3] && column[9].is_some();
            let Some(column) = self.columns.iter_mut().find(is_of) else { continue };
            let Ok(found) = source.rows(&ends_query(&row)) else { continue };
            looked += 1;
            if looked % 500 == 0 {
                tell(&format!("looked up the ends of {looked} columns"));
            }
            if let [Some(low), Some(high)] = found.into_iter().next().unwrap_or_default().as_slice()
                && let Some(bounds) = &column[9]
            {
                column[9] = Some(many::with_ends(bounds, low, high));
            }
        }
        source.read(Reading::Catalogue, 0);
        Ok(())
    }

    fn extended(&mut self, source: &mut Session) -> Result<()> {
        if !source.is_true("SELECT has_table_privilege('pg_statistic_ext_data', 'SELECT')")? {
            let count = source.rows("SELECT count(*) FROM pg_statistic_ext")?;
            let count = count.first().map_or(0.0, |row| number(row, 0));
            if count > 0.0 {
                self.notes.push(format!(
                    "{count} extended statistics are left out: only superusers can read them"
                ));
            }
            return Ok(());
        }
        let inherit = if self.version >= 150_000 { "d.stxdinherit" } else { "NULL" };
        self.extended = source.rows(
            &[
                "SELECT n.nspname, s.stxname, ",
                inherit,
                ", encode(d.stxdndistinct::bytea, 'hex'), encode(d.stxddependencies::bytea, \
                 'hex'), encode(d.stxdmcv::bytea, 'hex') FROM pg_statistic_ext s JOIN \
                 pg_statistic_ext_data d ON d.stxoid = s.oid JOIN pg_namespace n ON n.oid = \
                 s.stxnamespace",
            ]
            .concat(),
        )?;
        if self.version >= 140_000 {
            self.expressions = source.rows(
                "SELECT x.statistics_schemaname, x.statistics_name, x.expr, x.null_frac, \
                 x.avg_width, x.n_distinct, x.most_common_vals::text, x.most_common_freqs::text, \
                 x.histogram_bounds::text, x.correlation, e.typ FROM (SELECT n.nspname, s.stxname, \
                 u.at, (pg_get_statisticsobjdef_expressions(s.oid))[u.at] AS expr, \
                 ((d.stxdexpr[u.at]).staop1)::oid AS typ FROM pg_statistic_ext s JOIN \
                 pg_statistic_ext_data d ON d.stxoid = s.oid JOIN pg_namespace n ON n.oid = \
                 s.stxnamespace, generate_subscripts(d.stxdexpr, 1) AS u(at)) e JOIN \
                 pg_stats_ext_exprs x ON x.statistics_schemaname = e.nspname AND \
                 x.statistics_name = e.stxname AND x.expr = e.expr ORDER BY 1, 2, e.at",
            )?;
        }
        Ok(())
    }
}

/// The smallest and the largest value of a column, each by one step into its index.
fn ends_query(row: &Row) -> String {
    use rqps_model::sql_name::Identifier;
    let name = |at: usize| Identifier::quoted(Postgres, cell(row, at));
    let table = name(0).dot(&name(1)).to_string();
    let column = name(2).to_string();
    ["SELECT min(", &column, ")::text, max(", &column, ")::text FROM ONLY ", &table].concat()
}

/// How the levels of B-trees can be known.
enum Levels {
    /// By the function of pageinspect, in this schema.
    PageInspect(String),
    /// From the file itself.
    File,
    /// Only from the size.
    Size,
}

impl Levels {
    fn choose(source: &mut Session) -> Result<Levels> {
        let inspect = source.rows(
            "SELECT n.nspname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE \
             p.proname = 'bt_metap' AND p.oid::regprocedure::text LIKE '%.bt_metap(text)' AND \
             p.prolang = (SELECT oid FROM pg_language WHERE lanname = 'c') AND \
             has_function_privilege(p.oid, 'EXECUTE') AND (SELECT rolsuper FROM pg_roles WHERE \
             rolname = current_user)",
        )?;
        if let Some(row) = inspect.first() {
            return Ok(Levels::PageInspect(cell(row, 0).to_owned()));
        }
        let may_read = source.is_true(
            "SELECT has_function_privilege('pg_read_binary_file(text, bigint, bigint, boolean)', \
             'EXECUTE') AND (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)",
        )?;
        Ok(if may_read { Levels::File } else { Levels::Size })
    }

    fn of(&self, source: &mut Session, index: &Relation, oid: &str) -> Option<u32> {
        use rqps_model::sql_name::Identifier;
        let by_size = level_by_size(index.blocks, index.key_width);
        let sql = match self {
            Levels::Size => return Some(by_size),
            // A small index has no choice.
            _ if index.blocks <= 2 => return Some(0),
            Levels::PageInspect(schema) => {
                let function = Identifier::quoted(Postgres, schema);
                let name = Identifier::quoted(Postgres, &index.schema)
                    .dot(&Identifier::quoted(Postgres, &index.name));
                let name = Literal::quoted(Postgres, &name.to_string()).to_string();
                ["SELECT level FROM ", &function.to_string(), ".bt_metap(", &name, "::text)"]
                    .concat()
            }
            Levels::File => {
                let oid = Literal::quoted(Postgres, oid).to_string();
                // The level stands behind the header, the magic number, the version and the root.
                [
                    "SELECT get_byte(b, 0) FROM pg_read_binary_file(pg_relation_filepath(",
                    &oid,
                    "::oid), 36, 1, true) AS f(b) WHERE length(b) = 1",
                ]
                .concat()
            }
        };
        let answer = source.rows(&sql).ok().and_then(|rows| cell(rows.first()?, 0).parse().ok());
        // No tree that fits on a disk is higher; a file may not be written yet.
        let answer = answer.filter(|level: &u32| *level <= 12);
        Some(answer.filter(|level| *level > 0 || by_size == 0).unwrap_or(by_size))
    }
}

/// The level of the root of a B-tree of so many blocks. Inner pages are filled to 70 %, each entry
/// has a header of 8 bytes, a pointer of 4 and the key.
fn level_by_size(blocks: u64, key_width: f64) -> u32 {
    let aligned = ((key_width.max(1.0) + 7.0) / 8.0).floor() * 8.0;
    let fanout = (8152.0 * 0.7 / (12.0 + aligned)).max(2.0);
    let mut pages = blocks.saturating_sub(1) as f64;
    let mut level = 0;
    while pages > 1.5 && level < 12 {
        pages /= fanout;
        level += 1;
    }
    level
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_follow_from_sizes() {
        let check =
            |blocks, width, level| assert_eq!(level_by_size(blocks, width), level, "{blocks}");
        // A metapage alone, a root that is a leaf, a root over leaves.
        check(1, 4.0, 0);
        check(2, 4.0, 0);
        check(4, 4.0, 1);
        // 1M rows of an integer: 2745 blocks, root of level 2.
        check(2745, 4.0, 2);
        check(276, 4.0, 1);
    }
}
