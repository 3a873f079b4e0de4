//! Postgres: private servers whose files are holes of the true sizes, with the statistics of the
//! source.

mod hollow;
mod source;
mod statistics;
mod tree;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::postgres::hollow::{
    Hollow, PRIVATE, Reading, Row, Session, cell, number, server_address,
};
use crate::postgres::source::Facts;
use crate::postgres::tree::{Variants, has_parameters};
use crate::rehearsal::{
    PlanError, PlanNode, Planner, PrivatePlace, RESULT_TYPES, Rehearsal, SourceFiles, Statement,
    Tell, each_chunk,
};
use rqps_dbms::ControlPlane;
use rqps_model::build::Build;
use rqps_model::dialect::Dialect;
use rqps_model::endpoint::{Address, Login};
use rqps_model::sql_name::Literal;
use rqps_text::behind::Told;
use rqps_text::{SqlChunk, is_one_statement};
use rqps_wire::WireError;

/// First words of statements that have a plan.
const PLANNED: [&str; 8] =
    ["SELECT", "WITH", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE", "MERGE"];

/// Time limit of a plan on the source, milliseconds.
const PLAN_MS: u32 = 60_000;

/// Statements of a session that plans.
const PLANS: [&str; 2] = ["SET statement_timeout = '60s'", "SET client_min_messages = error"];

/// Where schema and statistics come from.
pub struct PostgresSource {
    session: Session,
    /// The server, if rqps runs it. It ends with this value.
    own: Option<Server>,
}

/// A server that stops when it is dropped.
struct Server(Box<dyn ControlPlane>);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.stop().ok();
    }
}

impl PostgresSource {
    /// A session that only reads with somebody's server.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub fn connect(address: &Address, login: &Login) -> Result<PostgresSource> {
        Ok(PostgresSource { session: Session::reader(address, login)?, own: None })
    }

    /// A server of the old version, made from the user's files.
    ///
    /// # Errors
    /// It does not start, or refuses a statement of a file.
    pub fn make(
        build: &Build,
        files: &SourceFiles,
        place: &PrivatePlace,
        tell: &mut Tell<'_>,
    ) -> Result<PostgresSource> {
        let mut control = place.server(build, "source", PRIVATE)?;
        control.init()?;
        control.start()?;
        let control = Server(control);
        let (address, login) = server_address(&*control.0)?;
        let mut session = Session::connect(&address, &login, &[])?;
        for path in files.schema.iter().chain(&files.data) {
            tell(&format!("executing {}", path.display()));
            execute(&mut session, path)?;
        }
        let analyzed = "SELECT EXISTS (SELECT FROM pg_stats WHERE schemaname !~ '^pg_' AND \
                        schemaname <> 'information_schema')";
        if !session.is_true(analyzed)? {
            // As autovacuum does on a server that was up for a while.
            session.run("VACUUM ANALYZE")?;
        }
        // So that files say what indexes are like.
        session.run("CHECKPOINT")?;
        let session = Session::reader(&address, &login)?;
        Ok(PostgresSource { session, own: Some(control) })
    }

    /// The version that the server tells, such as `15.14`.
    ///
    /// # Errors
    /// It does not answer.
    pub fn version(&mut self) -> Result<String> {
        let rows =
            self.session.rows("SELECT split_part(current_setting('server_version'), ' ', 1)")?;
        Ok(rows.first().map_or("", |row| cell(row, 0)).to_owned())
    }

    /// Tables whose statistics hold values of rows.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn tables_with_values(&mut self) -> Result<Vec<String>> {
        let rows = self.session.rows(
            "SELECT DISTINCT schemaname || '.' || tablename FROM pg_stats WHERE schemaname !~ \
             '^pg_' AND schemaname <> 'information_schema' AND (most_common_vals IS NOT NULL OR \
             histogram_bounds IS NOT NULL OR most_common_elems IS NOT NULL) ORDER BY 1",
        )?;
        Ok(rows.iter().map(|row| cell(row, 0).to_owned()).collect())
    }

    /// The statements that take most of the server's time, with their shares.
    ///
    /// # Errors
    /// There is no pg_stat_statements, or this role sees no texts.
    pub fn statements(&mut self, most: usize) -> Result<Vec<Statement>> {
        let doing = "read the statements of the source";
        let view = self.session.rows(
            "SELECT quote_ident(n.nspname) || '.pg_stat_statements', EXISTS (SELECT FROM \
             pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'total_exec_time') FROM \
             pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_depend d ON d.objid = \
             c.oid AND d.classid = 'pg_class'::regclass AND d.deptype = 'e' JOIN pg_extension e ON \
             e.oid = d.refobjid WHERE c.relname = 'pg_stat_statements' AND e.extname = c.relname \
             AND pg_get_userbyid(c.relowner) IN (SELECT rolname FROM pg_roles WHERE rolsuper)",
        )?;
        let Some(view) = view.first() else {
            bail!(
                "{doing}: it has no pg_stat_statements\nhint: name files with --statements FILE, or \
                 CREATE EXTENSION pg_stat_statements"
            );
        };
        let time = if cell(view, 1) == "t" { "total_exec_time" } else { "total_time" };
        let sql = [
            "SELECT query, sum(",
            time,
            "), sum(sum(",
            time,
            ")) OVER () FROM ",
            cell(view, 0),
            " WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) GROUP \
             BY query ORDER BY 2 DESC LIMIT ",
            &(most * 5).to_string(),
        ]
        .concat();
        let rows = self.session.rows(&sql).context(doing)?;
        let hidden = rows.iter().filter(|row| cell(row, 0) == "<insufficient privilege>").count();
        let mut found = Vec::new();
        for row in rows {
            let share = number(&row, 1) / number(&row, 2).max(f64::MIN_POSITIVE);
            let mut statement = Statement {
                number: 0,
                text: cell(&row, 0).trim().trim_end_matches(';').to_owned(),
                origin: "pg_stat_statements".to_owned(),
                share: Some(share),
                ..Statement::default()
            };
            if PLANNED.contains(&statement.first_word(Dialect::Postgres).as_str()) {
                statement.number = found.len() + 1;
                found.push(statement);
            }
        }
        found.truncate(most);
        if found.is_empty() && hidden > 0 {
            bail!(
                "{doing}: this role may not see the statements of others\nhint: GRANT \
                 pg_read_all_stats TO it"
            );
        }
        Ok(found)
    }
}

fn execute(session: &mut Session, path: &Path) -> Result<()> {
    let mut copy: Option<(String, Vec<u8>)> = None;
    each_chunk(path, Dialect::Postgres, &mut |chunk| {
        match chunk {
            SqlChunk::Statement(text, line) => {
                let text = String::from_utf8(text).context("the statement is not UTF-8");
                let ran = text.and_then(|text| session.run(&text));
                ran.with_context(|| format!("execute line {line} of {}", path.display()))?;
            }
            SqlChunk::Copy(sql, _) => copy = Some((sql, Vec::new())),
            SqlChunk::CopyLine(line) => {
                if let Some((_, rows)) = &mut copy {
                    rows.extend(line);
                }
            }
            SqlChunk::CopyEnd => {
                if let Some((sql, rows)) = copy.take() {
                    session.copy(&sql, rows).with_context(|| format!("copy {}", path.display()))?;
                }
            }
        }
        Ok(())
    })
}

/// Makes both versions ready.
///
/// # Errors
/// The source does not answer, or a private server does not start.
pub fn prepare(
    (old, new): (&Build, &Build),
    mut source: PostgresSource,
    place: &PrivatePlace,
    tell: &mut Tell<'_>,
) -> Result<Rehearsal> {
    let facts = Facts::read(&mut source.session, tell)?;
    tell(&format!(
        "starting private servers of {} and {} with {} tables and indexes and no rows",
        old.manifest.version,
        new.manifest.version,
        facts.relations.len()
    ));
    let (before, after) = std::thread::scope(|scope| {
        let other = scope.spawn(|| Hollow::make(new, "new", &facts, place, &mut |_| ()));
        let before = Hollow::make(old, "old", &facts, place, tell);
        (before, other.join())
    });
    let before = before.context("prepare the old version")?;
    let Ok(after) = after else { bail!("prepare the new version: its thread ended") };
    let after = after.context("prepare the new version")?;
    let mut notes = facts.notes.clone();
    let (mut lacking, mut preflight) = (Vec::new(), after.lacking.clone());
    let mut planner = |hollow: Hollow| -> Result<HollowPlanner> {
        lacking.extend(hollow.lacking);
        for note in hollow.notes {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        let mut session = Session::connect(&hollow.address, &hollow.login, &PLANS)?;
        notes.extend(apply(&mut session, &facts));
        Ok(HollowPlanner {
            session,
            settings: facts.settings.clone(),
            variants: Variants::of(&facts),
            old: facts.version,
            _server: Server(hollow.control),
        })
    };
    let (before, mut after) = (planner(before)?, planner(after)?);
    if source.own.is_none() {
        preflight.extend(refused_settings(&mut source.session, &mut after.session)?);
    }
    let name = |build: &Build| format!("postgres {}", build.manifest.version);
    let old_name = match source.own {
        Some(_) => name(old),
        None => format!("postgres {} (source)", facts.version_name),
    };
    let generic = facts.version >= 160_000;
    source.session.read(Reading::Plans, PLAN_MS);
    let generic_session = source.session.simple()?;
    Ok(Rehearsal {
        old_name,
        new_name: name(new),
        old: Box::new(before),
        new: Box::new(after),
        source: Some(Box::new(SourcePlanner {
            source,
            generic,
            generic_session,
            told: Told::default(),
        })),
        preflight,
        notes,
        lacking,
    })
}

/// Settings of the source that the new version does not have, or whose values it does not take: a
/// server with them in its configuration does not start. A role sees all of them as a member of
/// `pg_read_all_settings`.
fn refused_settings(source: &mut Session, new: &mut Session) -> Result<Vec<String>> {
    let said = source.rows(
        "SELECT name, setting, vartype FROM pg_settings WHERE source IN ('configuration file', \
         'command line', 'global', 'database', 'user', 'database user') AND context <> 'internal' \
         AND name NOT LIKE '%.%' ORDER BY name",
    )?;
    let known: BTreeMap<String, Row> = new
        .rows("SELECT name, vartype, min_val, max_val, enumvals::text FROM pg_settings")?
        .into_iter()
        .map(|row| (cell(&row, 0).to_owned(), row))
        .collect();
    let mut refused = Vec::new();
    for row in &said {
        let (name, value) = (cell(row, 0), cell(row, 1));
        let Some(new) = known.get(name) else {
            // Some are not shown to every role, but their names are known.
            let literal = Literal::quoted(Dialect::Postgres, name).to_string();
            let asked = ["SELECT current_setting(", &literal, ", true) IS NULL"].concat();
            if new.try_rows(&asked).is_ok_and(|rows| rows.iter().any(|row| cell(row, 0) == "t")) {
                refused.push(format!("the setting {name} = {value} is gone"));
            }
            continue;
        };
        let is_taken = match cell(new, 1) {
            "enum" => cell(new, 4).trim_matches(['{', '}']).split(',').any(|it| it == value),
            // Both versions count in the unit of the setting.
            "integer" | "real" if cell(row, 2) == cell(new, 1) => {
                (number(new, 2)..=number(new, 3)).contains(&number(row, 1))
            }
            _ => true,
        };
        if !is_taken {
            refused.push(format!("the setting {name} does not take {value} any more"));
        }
    }
    Ok(refused)
}

/// Gives a session the settings of the source. Returns those that this version does not take.
fn apply(session: &mut Session, facts: &Facts) -> Vec<String> {
    let mut notes = Vec::new();
    for (name, value) in &facts.settings {
        if let Err(words) = set(session, name, value) {
            notes.push(format!("the setting {name} = {value} is not taken: {words:#}"));
        }
    }
    notes
}

fn set(session: &mut Session, name: &str, value: &str) -> Result<()> {
    let literal = |text: &str| Literal::quoted(Dialect::Postgres, text).to_string();
    session.run(&["SELECT set_config(", &literal(name), ", ", &literal(value), ", false)"].concat())
}

/// Plans on a private server.
struct HollowPlanner {
    session: Session,
    settings: Vec<(String, String)>,
    variants: Variants,
    /// The version of the source.
    old: u32,
    _server: Server,
}

impl HollowPlanner {
    /// The plan of the query of a materialized view. From 17 on it runs without the schemas of the
    /// session, in which functions that it calls may look for tables.
    fn refresh(&mut self, text: &str) -> Result<PlanNode, PlanError> {
        let broken = |error: anyhow::Error| PlanError::Broken(format!("{error:#}"));
        let literal = Literal::quoted(Dialect::Postgres, view_of(text)).to_string();
        let name = ["SELECT to_regclass(", &literal, ")::oid"].concat();
        let oid = self.session.try_rows(&name).map_err(refusal)?;
        let oid = oid.first().map_or("", |row| cell(row, 0)).to_owned();
        set(&mut self.session, "search_path", "pg_catalog, pg_temp").map_err(broken)?;
        let literal = Literal::quoted(Dialect::Postgres, &oid).to_string();
        let query = ["SELECT pg_get_viewdef(nullif(", &literal, ", '')::oid)"].concat();
        let query = self.session.rows(&query).map_err(broken)?;
        let query = query.first().map_or("", |row| cell(row, 0)).trim_end_matches(';').to_owned();
        let number = "SELECT current_setting('server_version_num')::int >= 170000";
        if self.session.is_true(number).map_err(broken)? {
            self.check_functions(&literal)?;
        } else {
            self.restore_path().map_err(broken)?;
        }
        let plan = match query.is_empty() {
            true => Err(PlanError::Refused("there is no such materialized view".to_owned())),
            false => explain(&mut self.session, "EXPLAIN (FORMAT JSON) ", &query),
        };
        if !matches!(plan, Err(PlanError::Broken(_))) {
            self.restore_path().map_err(broken)?;
        }
        plan
    }

    /// What the functions of a view look for is not known before they run.
    fn check_functions(&mut self, view: &str) -> Result<(), PlanError> {
        if self.old >= 170_000 {
            return Ok(());
        }
        let sql = [
            "SELECT string_agg(DISTINCT p.proname, ', ') FROM pg_depend d JOIN pg_rewrite r ON r.oid \
             = d.objid AND d.classid = 'pg_rewrite'::regclass JOIN pg_proc p ON p.oid = d.refobjid \
             AND d.refclassid = 'pg_proc'::regclass JOIN pg_language l ON l.oid = p.prolang WHERE \
             l.lanname NOT IN ('internal', 'c', 'sql') AND NOT EXISTS (SELECT FROM \
             unnest(p.proconfig) s WHERE s LIKE 'search_path=%') AND r.ev_class = nullif(", view,
            ", '')::oid",
        ]
        .concat();
        let rows = self.session.rows(&sql);
        let rows = rows.map_err(|error| PlanError::Broken(format!("{error:#}")))?;
        match rows.first().map_or("", |row| cell(row, 0)) {
            "" => Ok(()),
            names => {
                self.restore_path().ok();
                Err(PlanError::NotCovered(format!(
                    "from 17 on, REFRESH runs with search_path = pg_catalog, pg_temp, and {names} \
                     may not find what it names without a schema: run it"
                )))
            }
        }
    }

    /// The types of the columns that a query answers, from a table that is made for it without
    /// executing it. `None` where no table has such columns.
    fn types(&mut self, text: &str) -> Option<String> {
        let make = ["CREATE TEMP TABLE rqps_types AS ", text, "\nWITH NO DATA"].concat();
        self.session.run(&make).ok()?;
        let types = self.session.rows(
            "SELECT string_agg(format_type(atttypid, atttypmod), ', ' ORDER BY attnum) FROM \
             pg_attribute WHERE attrelid = 'pg_temp.rqps_types'::regclass AND attnum > 0",
        );
        self.session.run("DROP TABLE pg_temp.rqps_types").ok()?;
        types.ok()?.first().map(|row| cell(row, 0).to_owned())
    }

    fn restore_path(&mut self) -> Result<()> {
        let path = self.settings.iter().find(|(name, _)| name == "search_path");
        set(&mut self.session, "search_path", path.map_or("", |(_, value)| value))
    }
}

/// The name in `REFRESH MATERIALIZED VIEW CONCURRENTLY name WITH NO DATA`.
fn view_of(text: &str) -> &str {
    let upper = text.to_ascii_uppercase();
    let begin = upper.find("VIEW").map_or(0, |at| at + 4);
    let skipped = upper[begin..].trim_start();
    let begin = match skipped.strip_prefix("CONCURRENTLY") {
        Some(rest) => text.len() - rest.len(),
        None => begin,
    };
    let name = text[begin..].trim();
    let is_with = name.to_ascii_uppercase().ends_with("DATA");
    let end = name.to_ascii_uppercase().rfind(" WITH ").filter(|_| is_with);
    name[..end.unwrap_or(name.len())].trim()
}

impl Planner for HollowPlanner {
    fn explain(&mut self, statement: &Statement) -> Result<Vec<(String, PlanNode)>, PlanError> {
        let is_refresh = statement.first_word(Dialect::Postgres) == "REFRESH";
        if !is_refresh {
            check_word(statement)?;
        }
        let result = if is_refresh {
            self.refresh(&statement.text).map(|plan| vec![(String::new(), plan)])
        } else if has_parameters(&statement.text) {
            self.variants.explain(&mut self.session, &statement.text)
        } else {
            explain(&mut self.session, "EXPLAIN (FORMAT JSON) ", &statement.text).map(|mut plan| {
                if let Some(types) = self.types(&statement.text) {
                    plan.condition(RESULT_TYPES, types);
                }
                vec![(String::new(), plan)]
            })
        };
        if let Err(PlanError::Broken(words)) = result {
            // The statement has ended the session, or the whole server, which starts anew.
            let mut again = self.session.again();
            for _ in 0..100 {
                if again.is_ok() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(100));
                again = self.session.again();
            }
            again.map_err(|error| PlanError::Broken(format!("{error:#}")))?;
            for (name, value) in &self.settings {
                // What is not taken was told before.
                set(&mut self.session, name, value).ok();
            }
            return Err(PlanError::Refused(format!("the server ended the session: {words}")));
        }
        result
    }
}

/// Plans on the source itself.
struct SourcePlanner {
    source: PostgresSource,
    /// True if EXPLAIN plans with parameters.
    generic: bool,
    generic_session: Session,
    told: Told,
}

impl Planner for SourcePlanner {
    fn explain(&mut self, statement: &Statement) -> Result<Vec<(String, PlanNode)>, PlanError> {
        check_word(statement)?;
        let (name, head) = match (has_parameters(&statement.text), self.generic) {
            (false, _) => ("", "EXPLAIN (FORMAT JSON) "),
            (true, true) if is_one_statement(Dialect::Postgres, &statement.text) => {
                (tree::GENERIC, "EXPLAIN (GENERIC_PLAN, FORMAT JSON) ")
            }
            (true, _) => {
                return Err(PlanError::NotCovered(
                    "the source plans no parameters by EXPLAIN".to_owned(),
                ));
            }
        };
        self.check_hidden(&statement.text)?;
        // Only the simple protocol takes a parameter without its value.
        let session =
            if name.is_empty() { &mut self.source.session } else { &mut self.generic_session };
        let plan = explain(session, head, &statement.text);
        if let Err(PlanError::Broken(words)) = plan {
            return Err(PlanError::Broken(format!("the source does not answer: {words}")));
        }
        plan.map(|plan| vec![(name.to_owned(), plan)])
    }
}

impl SourcePlanner {
    /// A planner calls what others made behind indexes, types and views, and functions that say of
    /// themselves that they always give the same value.
    fn check_hidden(&mut self, text: &str) -> Result<(), PlanError> {
        if self.source.own.is_some() {
            return Ok(());
        }
        let session = &mut self.source.session;
        let path = session.try_rows("SELECT pg_catalog.unnest(pg_catalog.current_schemas(false))");
        let path: Vec<String> = path.map_err(refusal)?.into_iter().flatten().flatten().collect();
        session.read(Reading::Catalogue, 0);
        let mut ask = |sql: &str| session.try_rows(sql);
        let checked = self.told.check(Dialect::Postgres, &path, text, &mut ask);
        session.read(Reading::Plans, PLAN_MS);
        checked.map_err(|why| PlanError::NotCovered(format!("not planned on the source: {why}")))
    }
}

fn check_word(statement: &Statement) -> Result<(), PlanError> {
    let word = statement.first_word(Dialect::Postgres);
    if PLANNED.contains(&word.as_str()) {
        return Ok(());
    }
    Err(PlanError::NotCovered(format!("{word} has no plan")))
}

/// The plan that a statement gets. The head is a constant that only explains.
fn explain(session: &mut Session, head: &str, text: &str) -> Result<PlanNode, PlanError> {
    let rows = session.try_rows(&[head, text].concat()).map_err(refusal)?;
    let lines: Vec<&str> = rows.iter().map(|row| cell(row, 0)).collect();
    tree::read(&lines.join("\n"))
        .ok_or_else(|| PlanError::NotCovered("its plan cannot be read".to_owned()))
}

/// Tables and conditions of a plan, in the server's own words.
fn raw_conditions(
    session: &mut Session,
    head: &str,
    text: &str,
) -> Result<Vec<(String, String)>, PlanError> {
    let rows = session.try_rows(&[head, text].concat()).map_err(refusal)?;
    let lines: Vec<&str> = rows.iter().map(|row| cell(row, 0)).collect();
    Ok(tree::conditions(&lines.join("\n")))
}

fn refusal(error: WireError) -> PlanError {
    match error {
        WireError::Server { code, message } if !code.starts_with("57P") => {
            PlanError::Refused(message)
        }
        other => PlanError::Broken(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_is_named_in_many_ways() {
        let check = |text: &str, name: &str| assert_eq!(view_of(text), name, "{text}");
        check("REFRESH MATERIALIZED VIEW a", "a");
        check("refresh materialized view concurrently app.\"My View\"", "app.\"My View\"");
        check("REFRESH MATERIALIZED VIEW a\n WITH NO DATA", "a");
    }
}
