//! SQLite: empty files with the schema and the tables of statistics, which are all that its planner
//! looks at.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};

use crate::rehearsal::{
    PlanError, PlanNode, Planner, PrivatePlace, Rehearsal, SourceFiles, Statement, Tell, each_chunk,
};
use rqps_dbms::{ControlRow, Interrupt, SqliteAnswers, SqliteFile};
use rqps_host::user::{self, User};
use rqps_model::build::{Build, Dbms, Manifest, Version};
use rqps_model::dialect::Dialect;
use rqps_model::sql_name::Literal;
use rqps_text::SqlChunk;

/// Words with which a statement begins that has a plan.
const PLANNED: [&str; 7] = ["SELECT", "WITH", "VALUES", "INSERT", "REPLACE", "UPDATE", "DELETE"];

/// Statements of a file that one process executes.
const BATCH: usize = 500;

/// Rows of statistics in a statement.
const ROWS: usize = 200;

/// Where schema and statistics come from.
#[derive(Clone, Debug)]
pub enum SqliteSource {
    /// A database of the user's.
    File(PathBuf),
    /// SQL that the old version executes.
    Made(SourceFiles),
}

/// A library with a file.
#[derive(Clone, Debug)]
pub struct Library {
    build: Build,
    program: PathBuf,
    run_as: Option<User>,
    path: PathBuf,
    read_only: bool,
    interrupt: Interrupt,
}

impl Library {
    fn ask(&self, statements: Vec<String>) -> Result<SqliteAnswers> {
        let file = SqliteFile {
            build: &self.build,
            program: &self.program,
            run_as: self.run_as.as_ref(),
            path: &self.path,
            read_only: self.read_only,
            interrupt: &self.interrupt,
        };
        let name = || format!("ask sqlite {}", self.build.manifest.version);
        file.ask(statements).with_context(name)?.map_err(|words| anyhow!("{}: {words}", name()))
    }

    /// A database of the user's, to be read by the SQLite in this program. For root, a process of
    /// whoever may have put files beside it reads it: SQLite takes those as its own.
    ///
    /// # Errors
    /// It is not there, or root finds a link of another user.
    pub fn of_user(path: &Path, program: &Path, interrupt: &Interrupt) -> Result<Library> {
        let found = user::who_reads(path);
        let (path, run_as) = found.with_context(|| format!("find {}", path.display()))?;
        let (program, interrupt) = (program.to_owned(), interrupt.clone());
        Ok(Library { build: compiled_in(), program, run_as, path, read_only: true, interrupt })
    }

    /// The rows of a query.
    ///
    /// # Errors
    /// The library cannot be asked, or refuses it.
    pub fn rows(&self, sql: &str) -> Result<Vec<ControlRow>> {
        Ok(self.execute(vec![sql.to_owned()])?.pop().unwrap_or_default())
    }

    /// Executes all, or none is of use.
    fn execute(&self, statements: Vec<String>) -> Result<Vec<Vec<ControlRow>>> {
        let answers: Result<Vec<_>, String> = self.ask(statements)?.into_iter().collect();
        answers.map_err(|words| anyhow!("ask sqlite {}: {words}", self.build.manifest.version))
    }
}

impl Planner for Library {
    fn explain(&mut self, statement: &Statement) -> Result<Vec<(String, PlanNode)>, PlanError> {
        let word = statement.first_word(Dialect::Sqlite);
        if !PLANNED.contains(&word.as_str()) {
            return Err(PlanError::NotCovered(format!("{word} has no plan")));
        }
        let explain = ["EXPLAIN QUERY PLAN ", &statement.text].concat();
        let before = format!("{explain}: ");
        // A library that ends its process by a statement is a finding about that statement.
        let answers = self.ask(vec![explain]);
        let answers = answers.map_err(|error| PlanError::Refused(format!("{error:#}")))?;
        let answer = answers.into_iter().next().unwrap_or_else(|| Err("no answer".to_owned()));
        match answer {
            Ok(rows) => Ok(vec![(String::new(), read(&rows))]),
            Err(words) => {
                let words = words.strip_prefix(&before).map(str::to_owned).unwrap_or(words);
                Err(PlanError::Refused(words))
            }
        }
    }
}

/// What the planner looks at.
struct Facts {
    /// Names of objects and the statements that make them.
    objects: Vec<(String, String)>,
    stat1: Option<Vec<ControlRow>>,
    stat4: Option<Vec<ControlRow>>,
}

/// Makes both versions ready. The source's own plans are those of the SQLite in this program: they
/// tell whether an empty file with statistics plans as the database does.
///
/// # Errors
/// The source cannot be read, or a library cannot be loaded.
pub fn prepare(
    (old, new): (&Build, &Build),
    source: &SqliteSource,
    place: &PrivatePlace,
    tell: &mut Tell<'_>,
) -> Result<Rehearsal> {
    let folder = place.open_folder("sqlite")?;
    let library = |build: &Build, name: &str| Library {
        build: build.clone(),
        program: place.program.clone(),
        run_as: place.run_as.clone(),
        path: folder.join(name),
        read_only: false,
        interrupt: place.interrupt.clone(),
    };
    let own = match source {
        SqliteSource::File(path) => Library::of_user(path, &place.program, &place.interrupt)?,
        SqliteSource::Made(files) => {
            let made = library(old, "source.db");
            tell("making the source database");
            make(&made, files)?;
            Library { build: compiled_in(), ..made }
        }
    };
    let facts = facts(&own)?;
    let mut notes = Vec::new();
    if facts.stat1.is_none() {
        notes.push(
            "the source has no statistics (sqlite_stat1): all versions plan by their usual guesses"
                .to_owned(),
        );
    }
    let (before, after) = (library(old, "old.db"), library(new, "new.db"));
    let checked = library(&compiled_in(), "check.db");
    let mut lacking = Vec::new();
    for (library, told) in [(&before, true), (&after, true), (&checked, false)] {
        let failed = hollow(library, &facts)?;
        let version = &library.build.manifest.version;
        let told = failed.into_iter().filter(|_| told);
        lacking.extend(told.map(|words| format!("sqlite {version} cannot make {words}")));
    }
    notes.extend(options_note(&before, &after)?);
    let name = |build: &Build| format!("sqlite {}", build.manifest.version);
    let source = SelfCheck { own, hollow: checked, old: before.clone() };
    Ok(Rehearsal {
        old_name: name(old),
        new_name: name(new),
        old: Box::new(before),
        new: Box::new(after),
        source: Some(Box::new(source)),
        preflight: Vec::new(),
        notes,
        lacking,
    })
}

/// The SQLite in this program.
fn compiled_in() -> Build {
    let version = Version::new(String::new());
    let manifest = Manifest::new(Dbms::Sqlite, version, String::new(), "compiled in".to_owned());
    Build { root: None, manifest, cache: None }
}

/// The plan of the database itself, by the SQLite in this program. Where that version plans as on
/// an empty file, so does the old one: then the old version's plan stands for the source's.
struct SelfCheck {
    own: Library,
    hollow: Library,
    old: Library,
}

impl Planner for SelfCheck {
    fn explain(&mut self, statement: &Statement) -> Result<Vec<(String, PlanNode)>, PlanError> {
        let (own, hollow) = (self.own.explain(statement)?, self.hollow.explain(statement)?);
        if own == hollow { self.old.explain(statement) } else { Ok(own) }
    }
}

/// Executes the user's files.
fn make(library: &Library, files: &SourceFiles) -> Result<()> {
    let mut batch = Vec::new();
    let flush = |batch: &mut Vec<String>| -> Result<()> {
        // Each process has a connection of its own, so a transaction must not span two.
        library.execute(std::mem::take(batch)).map(drop)
    };
    for path in files.schema.iter().chain(&files.data) {
        let mut open = false;
        each_chunk(path, Dialect::Sqlite, &mut |chunk| {
            let SqlChunk::Statement(text, line) = chunk else { return Ok(()) };
            let text = String::from_utf8(text)
                .with_context(|| format!("read line {line} of {}", path.display()))?;
            let word: String = text.split_whitespace().next().unwrap_or_default().to_uppercase();
            open = (open || word == "BEGIN") && !["COMMIT", "END", "ROLLBACK"].contains(&&*word);
            batch.push(text);
            if batch.len() >= BATCH && !open { flush(&mut batch) } else { Ok(()) }
        })?;
        flush(&mut batch).with_context(|| format!("execute {}", path.display()))?;
    }
    Ok(())
}

fn facts(own: &Library) -> Result<Facts> {
    let questions = [
        "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid",
        "SELECT tbl, idx, stat FROM sqlite_stat1",
        "SELECT tbl, idx, neq, nlt, ndlt, hex(sample) FROM sqlite_stat4",
    ];
    let mut answers = own.ask(questions.map(str::to_owned).to_vec())?.into_iter();
    let schema = answers.next().unwrap_or_else(|| Err("no answer".to_owned()));
    let schema = schema.map_err(|words| anyhow!("read {}: {words}", own.path.display()))?;
    let object = |row: ControlRow| {
        let mut cells = row.into_iter().flatten();
        Some((cells.next()?, cells.next()?))
    };
    let objects = schema.into_iter().filter_map(object);
    let objects = objects.filter(|(name, _)| !name.starts_with("sqlite_")).collect();
    let mut rows = || answers.next().and_then(Result::ok);
    Ok(Facts { objects, stat1: rows(), stat4: rows().filter(|rows| !rows.is_empty()) })
}

/// True if the statistics of a database hold values of rows.
///
/// # Errors
/// The file cannot be read.
pub fn holds_values(path: &Path, place: &PrivatePlace) -> Result<bool> {
    let own = Library::of_user(path, &place.program, &place.interrupt)?;
    Ok(facts(&own)?.stat4.is_some())
}

/// Makes an empty file with schema and statistics. Returns what this version cannot make.
fn hollow(library: &Library, facts: &Facts) -> Result<Vec<String>> {
    let mut statements: Vec<String> = facts.objects.iter().map(|(_, sql)| sql.clone()).collect();
    if let Some(rows) = &facts.stat1 {
        statements.extend(["ANALYZE", "DELETE FROM sqlite_stat1"].map(str::to_owned));
        statements.extend(inserts("INSERT INTO sqlite_stat1 VALUES ", rows, usize::MAX));
        // A build without this table has no use for its rows.
        statements.push("DELETE FROM sqlite_stat4".to_owned());
        let samples = facts.stat4.iter().flatten().cloned().collect::<Vec<_>>();
        statements.extend(inserts("INSERT INTO sqlite_stat4 VALUES ", &samples, 5));
    }
    let answers = library.ask(statements)?;
    let failed = facts.objects.iter().zip(answers).filter_map(|((name, sql), answer)| {
        let words = answer.err()?;
        let words = words.strip_prefix(&format!("{sql}: ")).map(str::to_owned).unwrap_or(words);
        // Tables that a virtual table makes for itself are there already.
        (!words.contains("already exists")).then(|| format!("\"{name}\": {words}"))
    });
    Ok(failed.collect())
}

/// Statements that insert rows; the column `binary` is one of hexadecimal digits.
fn inserts(head: &str, rows: &[ControlRow], binary: usize) -> Vec<String> {
    let value = |(column, cell): (usize, &Option<String>)| match cell {
        None => "NULL".to_owned(),
        Some(text) if column == binary => {
            let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
            format!("X'{digits}'")
        }
        Some(text) => Literal::quoted(Dialect::Sqlite, text).to_string(),
    };
    let row = |row: &ControlRow| {
        let values: Vec<String> = row.iter().enumerate().map(value).collect();
        format!("({})", values.join(", "))
    };
    let list = |rows: &[ControlRow]| rows.iter().map(row).collect::<Vec<_>>().join(", ");
    rows.chunks(ROWS).map(|rows| [head, &list(rows)].concat()).collect()
}

/// Options with which only one of the builds was compiled: they change plans and answers as
/// versions do.
fn options_note(old: &Library, new: &Library) -> Result<Option<String>> {
    let options = |library: &Library| -> Result<Vec<String>> {
        let rows = library.execute(vec!["PRAGMA compile_options".to_owned()])?;
        let options = rows.into_iter().flatten().flatten().flatten();
        let matters = |option: &String| {
            [
                "ENABLE_STAT", "OMIT_AUTO", "OMIT_LIKE", "OMIT_OR", "DQS", "LIKE_", "CASE_",
                "DEFAULT_AUTOMATIC", "ENABLE_MATH",
            ]
            .iter()
            .any(|begin| option.starts_with(begin))
        };
        Ok(options.filter(matters).collect())
    };
    let (before, after) = (options(old)?, options(new)?);
    let only = |one: &[String], other: &[String]| {
        let only: Vec<&str> =
            one.iter().filter(|option| !other.contains(option)).map(String::as_str).collect();
        only.join(", ")
    };
    let parts = [("old", only(&before, &after)), ("new", only(&after, &before))];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(side, list)| format!("only the {side} one has {list}"))
        .collect();
    Ok((!parts.is_empty()).then(|| format!("the builds differ in options: {}", parts.join("; "))))
}

// Reads the rows of EXPLAIN QUERY PLAN.

/// Deepest nesting that is kept.
const DEPTH: usize = 200;

/// The tree of the rows of EXPLAIN QUERY PLAN: id, parent, unused, detail.
fn read(rows: &[ControlRow]) -> PlanNode {
    let mut below: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    for row in rows {
        let cell = |at: usize| row.get(at).and_then(Option::as_deref).unwrap_or_default();
        below.entry(cell(1)).or_default().push((cell(0), cell(3)));
    }
    let mut root = PlanNode::of("QUERY PLAN");
    fill(&mut root, "0", &below, 0);
    root
}

fn fill(node: &mut PlanNode, id: &str, below: &BTreeMap<&str, Vec<(&str, &str)>>, depth: usize) {
    for (child, detail) in below.get(id).into_iter().flatten() {
        let Some(mut made) = step(detail) else { continue };
        if depth < DEPTH {
            fill(&mut made, child, below, depth + 1);
        }
        node.children.push(made);
    }
    let is_loop =
        |child: &&PlanNode| ["SCAN", "SEARCH", "MULTI-INDEX OR"].contains(&child.kind.as_str());
    node.joins = !["MULTI-INDEX OR", "INDEX"].contains(&node.kind.as_str())
        && node.children.iter().filter(is_loop).count() > 1;
}

/// A node of a detail, in the words of the newest version; `None` for what has no meaning for the
/// order of work.
fn step(detail: &str) -> Option<PlanNode> {
    let mut detail = detail.trim();
    // Estimates of versions before 3.8, and the mark of 3.39.
    if let Some((rest, estimate)) = detail.rsplit_once(" (~")
        && estimate.ends_with("rows)")
    {
        detail = rest;
    }
    detail = detail.strip_suffix(" LEFT-JOIN").unwrap_or(detail);
    let detail = detail.strip_prefix("EXECUTE ").unwrap_or(detail);
    if detail.starts_with("BLOOM FILTER") {
        return None;
    }
    let (word, rest) = detail.split_once(' ').unwrap_or((detail, ""));
    match word {
        "SCAN" | "SEARCH" => Some(access(word, rest)),
        // Their names are numbers in some versions.
        "MATERIALIZE" | "CO-ROUTINE" => Some(subquery(word)),
        "USE" => {
            let (kind, of) = detail.split_once(" FOR ").unwrap_or((detail, ""));
            let mut node = PlanNode::of(kind);
            let part = ["RIGHT PART OF ", "LAST "].iter().any(|begin| of.starts_with(begin));
            let of = of.rsplit_once(" OF ").map_or(of, |(_, of)| of);
            node.condition("For", if part { format!("PART OF {of}") } else { of.to_owned() });
            Some(node)
        }
        _ if detail.contains("SUBQUERY") && !detail.starts_with("LEFT-MOST") => {
            let kind: Vec<&str> = detail.split(' ').filter(|word| !is_number(word)).collect();
            Some(subquery(&kind.join(" ")))
        }
        "INDEX" if is_number(rest) => Some(PlanNode::of("INDEX")),
        _ => Some(PlanNode::of(detail)),
    }
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn subquery(kind: &str) -> PlanNode {
    PlanNode { role: Some(kind.to_owned()), ..PlanNode::of(kind) }
}

/// `TABLE a AS b USING INDEX c (d=?)`, `b USING INDEX c (d=?)`.
fn access(kind: &str, rest: &str) -> PlanNode {
    let mut node = PlanNode::of(kind);
    let cut = |text: &str, at: &str| {
        text.split_once(at).map(|(before, after)| (before.to_owned(), after.to_owned()))
    };
    let (table, how) = cut(rest, " USING ")
        .or_else(|| {
            cut(rest, " VIRTUAL TABLE INDEX ").map(|(it, of)| (it, format!("VIRTUAL {of}")))
        })
        .unwrap_or_else(|| (rest.to_owned(), String::new()));
    let table = table.strip_prefix("TABLE ").unwrap_or(&table);
    let name = table.rsplit_once(" AS ").map_or(table, |(_, alias)| alias);
    let is_numbered = |name: &str| {
        name.strip_prefix("SUBQUERY ").is_some_and(is_number)
            || name.starts_with("(subquery-")
            || name.starts_with("(join-")
    };
    node.alias = Some(if is_numbered(name) { "(subquery)" } else { name }.to_owned());
    let (index, condition) = match how.split_once(" (") {
        Some((index, condition)) => (index, condition.strip_suffix(')').unwrap_or(condition)),
        None => (how.as_str(), ""),
    };
    node.index = Some(index.to_owned()).filter(|index| !index.is_empty());
    if !condition.is_empty() {
        node.condition("Index Cond", condition);
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{PlanClass, compare};

    fn plan(details: &[(&str, &str, &str)]) -> PlanNode {
        let cell = |text: &str| Some(text.to_owned());
        let row = |(id, parent, detail): &(&str, &str, &str)| {
            vec![cell(id), cell(parent), cell("0"), cell(detail)]
        };
        read(&details.iter().map(row).collect::<Vec<_>>())
    }

    #[test]
    fn words_of_versions_are_no_difference() {
        let old = plan(&[
            ("2", "0", "MATERIALIZE 2"),
            ("5", "2", "SEARCH TABLE member AS m USING INDEX member_club (club_id=?)"),
            ("9", "0", "SCAN SUBQUERY 2"),
            ("12", "0", "EXECUTE SCALAR SUBQUERY 3"),
            ("20", "0", "USE TEMP B-TREE FOR RIGHT PART OF ORDER BY"),
        ]);
        let new = plan(&[
            ("3", "0", "MATERIALIZE (subquery-2)"),
            ("6", "3", "SEARCH m USING INDEX member_club (club_id=?) LEFT-JOIN"),
            ("9", "0", "BLOOM FILTER ON x (a=?)"),
            ("10", "0", "SCAN (subquery-2)"),
            ("12", "0", "SCALAR SUBQUERY 4"),
            ("20", "0", "USE TEMP B-TREE FOR LAST 2 TERMS OF ORDER BY"),
        ]);
        assert_eq!(old, new);
        assert_eq!(compare(&old, &new).class, PlanClass::Same);
    }

    #[test]
    fn order_index_and_condition_are_told_apart() {
        let check = |old: &[&str], new: &[&str], class: PlanClass, note: &str| {
            let numbered = |details: &[&str]| {
                let ids: Vec<String> = (1..=details.len()).map(|id| id.to_string()).collect();
                let rows = ids.iter().zip(details).map(|(id, detail)| (id.as_str(), "0", *detail));
                plan(&rows.collect::<Vec<_>>())
            };
            let found = compare(&numbered(old), &numbered(new));
            assert_eq!(found.class, class, "{found:?}");
            assert!(found.notes[0].contains(note), "{found:?}");
        };
        let (a, b) = ("SCAN a", "SEARCH b USING INDEX b_x (x=?)");
        check(
            &[a, b],
            &["SCAN b", "SEARCH a USING INDEX a_x (x=?)"],
            PlanClass::JoinOrder,
            "b is read first, then a",
        );
        check(&[b], &["SCAN b"], PlanClass::AccessPath, "b: SEARCH INDEX b_x -> SCAN");
        check(
            &[b],
            &["SEARCH b USING INDEX b_x (x=? AND y>?)"],
            PlanClass::Conditions,
            "Index Cond x=? -> Index Cond x=? AND y>?",
        );
        check(&[a], &[a, "USE TEMP B-TREE FOR ORDER BY"], PlanClass::Nodes, "new: USE TEMP B-TREE");
    }
}
