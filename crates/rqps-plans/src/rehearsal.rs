//! Plans every statement on both versions, and judges.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::compare::{PlanClass, compare, cost_ratio};
use rqps_dbms::{ControlPlane, Interrupt, Site, UserConfigs, config, control_plane};
use rqps_host::child::KeptFolder;
use rqps_host::user::{self, User};
use rqps_model::bounded;
use rqps_model::build::{Build, Config};
use rqps_model::dialect::Dialect;
use rqps_text::{SqlChunk, SqlSplitter, words};

/// A condition of the first node: the types of the columns of the answer. A source does not tell
/// them.
pub(crate) const RESULT_TYPES: &str = "Result Types";

/// Takes a text about what goes on.
pub type Tell<'a> = dyn FnMut(&str) + 'a;

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// The server's words against the statement.
    Refused(String),
    /// EXPLAIN does not tell about such a statement; why.
    NotCovered(String),
    /// The planner can go on with no statement.
    Broken(String),
}

/// Gives plans of one version.
pub trait Planner {
    /// The plans of a statement: one, or one for each set of values of its parameters, by name. The
    /// text is one statement. Its conditions are normalised, so that equal ones have equal texts in
    /// all versions.
    ///
    /// # Errors
    /// The statement has no plan here.
    fn explain(&mut self, statement: &Statement) -> Result<Vec<(String, PlanNode)>, PlanError>;

    /// The method by which it planned the statement, where there are several.
    fn method(&self, _statement: &Statement) -> Option<String> {
        None
    }

    /// Why its plan of the statement proves nothing, although it is that of the source.
    fn doubt(&self, _statement: &Statement) -> Option<String> {
        None
    }
}

/// SQL that makes the source, where rqps runs it.
#[derive(Clone, Debug, Default)]
pub struct SourceFiles {
    /// Tables and what belongs to them.
    pub schema: Vec<PathBuf>,
    /// Rows.
    pub data: Vec<PathBuf>,
}

/// Both versions, ready to plan.
pub struct Rehearsal {
    /// How the report names the old version.
    pub old_name: String,
    /// How it names the new one.
    pub new_name: String,
    /// The old version.
    pub old: Box<dyn Planner>,
    /// The new version.
    pub new: Box<dyn Planner>,
    /// The source itself, where it explains.
    pub source: Option<Box<dyn Planner>>,
    /// What the source has and the new version does not take: settings, objects.
    pub preflight: Vec<String>,
    /// What the reader must know: what was left out, and what it means.
    pub notes: Vec<String>,
    /// Objects that only one version could make: statements that need them are not judged.
    pub lacking: Vec<String>,
}

/// A statement with both plans and what is said about them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Judged {
    /// Its number in its file or list, from 1.
    pub number: usize,
    /// Its text.
    pub text: String,
    /// Where it is from.
    pub origin: String,
    /// The step of a workload file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Its share of the time that the source spends.
    pub share: Option<f64>,
    /// What changes.
    pub class: PlanClass,
    /// The method by which both versions planned it, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The set of values of its parameters, where the class is of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<String>,
    /// What moved, in plain words.
    pub notes: Vec<String>,
    /// What to beware of.
    pub warnings: Vec<String>,
    /// Cost of the new plan by that of the old one.
    pub cost_ratio: Option<f64>,
    /// The plan of the old version.
    pub old: Option<PlanNode>,
    /// The plan of the new version.
    pub new: Option<PlanNode>,
    /// The source's own plan, where it differs from that of the old version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<PlanNode>,
    /// The words of the old version against the statement.
    pub old_error: Option<String>,
    /// The words of the new version against it.
    pub new_error: Option<String>,
}

/// All statements.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The old version.
    pub old: String,
    /// The new version.
    pub new: String,
    /// What the source has and the new version does not take.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preflight: Vec<String>,
    /// What the reader must know.
    pub notes: Vec<String>,
    /// In their own order.
    pub statements: Vec<Judged>,
}

impl Report {
    /// True if some statement changes.
    pub fn has_changes(&self) -> bool {
        self.statements.iter().any(|judged| judged.class.is_change())
    }

    /// True if something could not be said.
    pub fn has_unknowns(&self) -> bool {
        self.statements.iter().any(|judged| judged.class.is_unknown())
    }

    /// Those that changed or are unknown, the worst first: by share of the load where it is known,
    /// else errors, then by the ratio of costs.
    pub fn worst_first(&self) -> Vec<&Judged> {
        let mut list: Vec<&Judged> =
            self.statements.iter().filter(|one| one.class != PlanClass::Same).collect();
        let weight = |one: &Judged| {
            let ratio = one.cost_ratio.map_or(1.0, |ratio| ratio.max(1.0 / ratio));
            let group = match one.class {
                PlanClass::Error => 0,
                class if class.is_unknown() => 2,
                _ => 1,
            };
            (group, -one.share.unwrap_or(0.0), one.warnings.is_empty(), -ratio)
        };
        list.sort_by(|one, other| {
            let order = weight(one).partial_cmp(&weight(other));
            order.unwrap_or(std::cmp::Ordering::Equal).then(one.number.cmp(&other.number))
        });
        list
    }
}

/// Plans all statements.
///
/// # Errors
/// A planner is broken.
pub fn judge(
    statements: &[Statement],
    rehearsal: &mut Rehearsal,
    tell: &mut Tell<'_>,
) -> Result<Report> {
    let mut judged = Vec::new();
    for (index, statement) in statements.iter().enumerate() {
        if index % 50 == 0 && index > 0 {
            tell(&format!("planned {index} of {} statements", statements.len()));
        }
        judged.push(judge_one(statement, rehearsal)?);
    }
    let mut notes = rehearsal.notes.clone();
    notes.extend(rehearsal.lacking.iter().cloned());
    notes.retain(|note| !rehearsal.preflight.contains(note));
    Ok(Report {
        old: rehearsal.old_name.clone(),
        new: rehearsal.new_name.clone(),
        preflight: rehearsal.preflight.clone(),
        notes,
        statements: judged,
    })
}

fn judge_one(statement: &Statement, rehearsal: &mut Rehearsal) -> Result<Judged> {
    let mut judged = Judged {
        number: statement.number,
        text: statement.text.clone(),
        origin: statement.origin.clone(),
        step: statement.step.clone(),
        share: statement.share,
        method: rehearsal.old.method(statement),
        ..Judged::default()
    };
    let old = answer(&mut *rehearsal.old, statement, &rehearsal.old_name)?;
    let new = answer(&mut *rehearsal.new, statement, &rehearsal.new_name)?;
    let own = match &mut rehearsal.source {
        Some(source) => match answer(&mut **source, statement, "the source") {
            Ok(answer) => Some(answer),
            Err(error) => {
                // Both versions still plan, unchecked.
                rehearsal.source = None;
                let from = statement.number;
                let note = format!("from statement {from} on, no plan is checked: {error:#}");
                rehearsal.notes.push(note);
                None
            }
        },
        None => None,
    };
    match (old, new) {
        (Ok(old), Ok(new)) => both(&mut judged, old, new),
        (old, new) => failed(&mut judged, old, new, &rehearsal.lacking),
    }
    if let Some(own) = own {
        check_against(&mut judged, own);
    }
    if let Some(doubt) = rehearsal.old.doubt(statement)
        && !judged.class.is_unknown()
        && judged.class != PlanClass::Error
    {
        judged.class = PlanClass::NotFaithful;
        judged.notes.insert(0, doubt);
    }
    Ok(judged)
}

/// An answer of a planner: plans, or words and whether they are against the statement.
type Answer = Result<Vec<(String, PlanNode)>, (String, bool)>;

fn answer(planner: &mut dyn Planner, statement: &Statement, name: &str) -> Result<Answer> {
    match planner.explain(statement) {
        Ok(plans) => Ok(Ok(plans)),
        Err(PlanError::Refused(words)) => Ok(Err((words, true))),
        Err(PlanError::NotCovered(words)) => Ok(Err((words, false))),
        Err(PlanError::Broken(words)) => {
            anyhow::bail!("plan statement {} on {name}: {words}", statement.number)
        }
    }
}

/// The most telling of the pairs of plans.
fn both(judged: &mut Judged, old: Vec<(String, PlanNode)>, new: Vec<(String, PlanNode)>) {
    let mut flips = Vec::new();
    for (name, before) in old {
        let Some((_, after)) = new.iter().find(|(other, _)| *other == name) else { continue };
        let found = compare(&before, after);
        let ratio = cost_ratio(&before, after);
        let is_first = judged.old.is_none();
        if found.class.is_change() && !name.is_empty() {
            flips.push(name.clone());
        }
        if is_first || (judged.class == PlanClass::Same && found.class.is_change()) {
            judged.class = found.class;
            (judged.notes, judged.warnings) = (found.notes, found.warnings);
            judged.cost_ratio = ratio;
            judged.parameters = Some(name).filter(|name| !name.is_empty());
            (judged.old, judged.new) = (Some(before), Some(after.clone()));
        }
    }
    if !flips.is_empty() && judged.class != PlanClass::Same {
        judged.notes.push(format!("with {}", flips.join(", ")));
    }
    if judged.class == PlanClass::Same {
        judged.parameters = None;
    }
}

fn failed(judged: &mut Judged, old: Answer, new: Answer, lacking: &[String]) {
    let is_against = |answer: &Answer| matches!(answer, Err((_, true)));
    let is_one_sided = old.is_ok() != new.is_ok();
    let judged_by_words = is_one_sided && (is_against(&old) || is_against(&new));
    let take =
        |answer: Answer, plan: &mut Option<PlanNode>, error: &mut Option<String>| match answer {
            Ok(plans) => *plan = plans.into_iter().next().map(|(_, plan)| plan),
            Err((words, _)) => *error = Some(words),
        };
    take(old, &mut judged.old, &mut judged.old_error);
    take(new, &mut judged.new, &mut judged.new_error);
    let words = judged.new_error.as_ref().or(judged.old_error.as_ref()).cloned();
    let words = words.unwrap_or_default();
    let missing = lacking.iter().find(|object| names_missing(object, &words));
    judged.class = match missing {
        None if judged_by_words => PlanClass::Error,
        _ => PlanClass::NotCovered,
    };
    let side = if judged.old_error.is_none() { "only the new version: " } else { "" };
    judged.notes.push(format!("{side}{words}"));
    judged.notes.extend(missing.map(|object| format!("not judged: {object}")));
}

/// True if the words name an object that could not be made: its name is in quotes in both.
fn names_missing(object: &str, words: &str) -> bool {
    let quoted = object.split('"').skip(1).step_by(2);
    quoted.filter(|name| !name.is_empty()).any(|name| {
        let ways = [
            format!("\"{name}\""),
            format!("function {name}("),
            // MySQL: `Table 'shop.orders' doesn't exist`, `FUNCTION shop.tax does not exist`.
            format!(".{name}'"),
            format!(".{name} does not exist"),
        ];
        ways.iter().any(|way| words.contains(way))
    })
}

/// Holds the plan of the old version against the source's own.
fn check_against(judged: &mut Judged, own: Answer) {
    match (own, &judged.old) {
        (Ok(plans), Some(old)) => {
            let name = judged.parameters.clone().unwrap_or_default();
            let same_name = plans.iter().position(|(other, _)| *other == name);
            let Some((_, own)) = plans.into_iter().nth(same_name.unwrap_or(0)) else { return };
            let mut old = old.clone();
            old.conditions.retain(|condition| condition.name != RESULT_TYPES);
            let found = compare(&own, &old);
            if !matches!(found.class, PlanClass::Same | PlanClass::Estimates) {
                judged.class = PlanClass::NotFaithful;
                judged.notes.insert(
                    0,
                    format!("the source itself plans in another way: {}", found.notes.join("; ")),
                );
                judged.source = Some(own);
            }
        }
        (Ok(plans), None) if judged.old_error.is_some() && judged.class == PlanClass::Error => {
            // The source plans what its own version refuses here: something is not as there.
            judged.class = PlanClass::NotFaithful;
            judged.notes.insert(0, "the source itself plans this statement".to_owned());
            judged.source = plans.into_iter().next().map(|(_, plan)| plan);
        }
        (Err((words, true)), Some(_)) => {
            judged.warnings.push(format!("the source does not explain it: {words}"));
        }
        _ => {}
    }
}

// The place of private servers and files: new, and gone with this process.

/// The parent of data folders if the user names none: servers of another user reach it.
const USUAL: &str = "/var/tmp";

/// The parent of the folder of sockets, whose paths must be short.
const SHORT: &str = "/tmp";

/// All may pass through, and not look around: servers run as another user.
const PASSABLE: u32 = 0o711;

/// Time limit for a start or for making a data folder.
const START: Duration = Duration::from_secs(300);

/// Cache of a private server: it holds no data.
const CACHE_BYTES: u64 = 128 << 20;

/// A new folder for data and one for sockets. Dropped after all servers in it.
#[derive(Debug)]
pub struct PrivatePlace {
    folder: KeptFolder,
    sockets: KeptFolder,
    /// The program of rqps itself, which has wardens as a hidden subcommand.
    pub program: PathBuf,
    /// The user of servers and libraries, if rqps runs as root.
    pub run_as: Option<User>,
    /// Ends all waiting.
    pub interrupt: Interrupt,
}

impl PrivatePlace {
    /// Makes both folders, the first below `work` if the user names one.
    ///
    /// # Errors
    /// A folder cannot be made, or root finds no user for servers.
    pub fn make(
        work: Option<&Path>,
        program: PathBuf,
        interrupt: Interrupt,
    ) -> Result<PrivatePlace> {
        let run_as = user::choose(None)?;
        let fresh = |parent: &Path| {
            let name = format!("rqps-plans-{}", user::name().unwrap_or_default());
            let path = parent.join(name);
            let made = KeptFolder::make(&path, PASSABLE);
            made.with_context(|| format!("make the folder {}", path.display()))
        };
        let parent = match work {
            Some(work) => {
                std::path::absolute(work).with_context(|| format!("find {}", work.display()))?
            }
            None => PathBuf::from(USUAL),
        };
        let folder = fresh(&parent)?;
        Ok(PrivatePlace { folder, sockets: fresh(Path::new(SHORT))?, program, run_as, interrupt })
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.folder().folder().path().join(name)
    }

    /// A new folder that the user of servers owns.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn open_folder(&self, name: &str) -> Result<PathBuf> {
        let doing = || format!("make the folder {}", self.path(name).display());
        let folder =
            self.folder.folder().folder().make(OsStr::new(name), 0o700).with_context(doing)?;
        if let Some(user) = &self.run_as {
            folder.give(user.identity()).with_context(doing)?;
        }
        Ok(self.path(name))
    }

    /// The control plane of a private server, which has yet to make its data folder.
    ///
    /// # Errors
    /// The build is none that rqps can run.
    pub fn server(
        &self,
        build: &Build,
        name: &str,
        settings: &str,
    ) -> Result<Box<dyn ControlPlane>> {
        let manifest = &build.manifest;
        let own = UserConfigs::default();
        let shipped = config::load_for_own_statements(
            manifest.dbms, "default", &own, &manifest.version, CACHE_BYTES,
        )?;
        let text = format!("{}{settings}", shipped.text);
        let config = Config { name: "plans".to_owned(), hash: config::hash(&text), text };
        let site = Site {
            build: build.clone(),
            accepted: None,
            config,
            data: self.path(name),
            logs: self.path(&format!("{name}-logs")),
            sockets: self.sockets.folder().folder().path().join(name),
            storage_engine: None,
            run_as: self.run_as.clone(),
            memory_group: None,
            listen: None,
            callgrind: None,
            still: true,
            warden_program: self.program.clone(),
            start_timeout: START,
            interrupt: self.interrupt.clone(),
        };
        Ok(control_plane(site)?)
    }
}

// Statements whose plans are compared.

/// A statement, and what share of the load it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// Its number in its file or list, from 1.
    pub number: usize,
    /// Its text, without the `;` at its end.
    pub text: String,
    /// Where it is from: a file and a line, or a list of the server.
    pub origin: String,
    /// The step of a workload file.
    pub step: Option<String>,
    /// Its share of the time that the source spends, from 0 to 1.
    pub share: Option<f64>,
}

impl Statement {
    /// Its first word, in capitals.
    pub fn first_word(&self, dialect: Dialect) -> String {
        let mut words = words(dialect, &self.text).into_iter();
        words.find(|word| word != "(").unwrap_or_default()
    }

    /// Its text in one line.
    pub fn line(&self) -> String {
        self.text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

// Files of SQL that the user names.

/// Gives each part of a file, in order.
///
/// # Errors
/// The file cannot be read or split, or `take` refuses a part.
pub fn each_chunk(
    path: &Path,
    dialect: Dialect,
    take: &mut dyn FnMut(SqlChunk) -> Result<()>,
) -> Result<()> {
    let doing = || format!("read {}", path.display());
    let mut lines = BufReader::new(bounded::plain(path).with_context(doing)?);
    let (mut splitter, mut line, mut chunks) = (SqlSplitter::new(dialect), Vec::new(), Vec::new());
    loop {
        line.clear();
        let left = bounded::STATEMENT_MAX.saturating_sub(splitter.pending() as u64).max(1);
        let read = bounded::line(&mut lines, &mut line, left).with_context(doing)?;
        if read == 0 {
            splitter.end(&mut chunks).with_context(doing)?;
        } else {
            splitter.take(&line, &mut chunks).with_context(doing)?;
        }
        chunks.drain(..).try_for_each(&mut *take)?;
        if read == 0 {
            return Ok(());
        }
    }
}

/// The statements of a file, numbered on from those that are there.
///
/// # Errors
/// As [`each_chunk`], and a COPY with data.
pub fn statements_of(path: &Path, dialect: Dialect, found: &mut Vec<Statement>) -> Result<()> {
    each_chunk(path, dialect, &mut |chunk| {
        let SqlChunk::Statement(text, line) = chunk else {
            bail!("read {}: data of COPY are no statement to plan", path.display());
        };
        let origin = format!("{}:{line}", path.display());
        let text = String::from_utf8(text)
            .with_context(|| format!("read {origin}: the statement is not UTF-8"))?;
        let number = found.len() + 1;
        found.push(Statement { number, text, origin, ..Statement::default() });
        Ok(())
    })
}

// A plan as a tree: one type for all DBMSs.

/// A condition, a list of keys, or any other property by which a node works.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Condition {
    /// Its name: `Filter`, `Index Cond`, `Sort Key`.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// A node of a plan with the nodes below it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanNode {
    /// What it does: `Hash Join`, `Index Scan`, `SEARCH`.
    pub kind: String,
    /// Its place beside ordinary inputs: `InitPlan 1`, `CTE spread`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The table that it reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation: Option<String>,
    /// The name of that table in the statement. Every node that reads a table, a CTE or a function
    /// has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// The index that it uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
    /// The direction of a scan, where it is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<String>,
    /// Conditions and keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Estimated rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<f64>,
    /// Estimated cost, with what is below.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// True if several workers share its work.
    #[serde(default, skip_serializing_if = "is_false")]
    pub parallel: bool,
    /// True if the inputs are joined, in their order.
    #[serde(default, skip_serializing_if = "is_false")]
    pub joins: bool,
    /// Its inputs, and the plans of subqueries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<PlanNode>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_false(value: &bool) -> bool {
    !value
}

impl PlanNode {
    /// A node without inputs.
    pub fn of(kind: impl Into<String>) -> PlanNode {
        PlanNode { kind: kind.into(), ..PlanNode::default() }
    }

    /// Adds a condition.
    pub fn condition(&mut self, name: &str, text: impl Into<String>) {
        self.conditions.push(Condition { name: name.to_owned(), text: text.into() });
    }

    /// Its inputs: children that are no plans of subqueries.
    pub fn inputs(&self) -> impl Iterator<Item = &PlanNode> {
        self.children.iter().filter(|child| child.role.is_none())
    }

    /// This node and all below it, each before those below it.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a PlanNode)) {
        visit(self);
        self.children.iter().for_each(|child| child.walk(visit));
    }

    /// Changes this node and all below it.
    pub fn change(&mut self, with: &mut dyn FnMut(&mut PlanNode)) {
        with(self);
        self.children.iter_mut().for_each(|child| child.change(with));
    }

    /// Names of what it and its inputs read.
    pub fn leaves(&self) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        self.walk(&mut |node| found.extend(node.alias.as_deref()));
        found
    }

    /// The node in one line, without estimates: `Index Scan Backward using a_key on a`.
    pub fn title(&self) -> String {
        let mut title = String::new();
        if self.parallel {
            title.push_str("Parallel ");
        }
        title.push_str(&self.kind);
        if let Some(direction) = &self.direction {
            title.push_str(&format!(" {direction}"));
        }
        if let Some(index) = &self.index {
            title.push_str(&format!(" using {index}"));
        }
        match (&self.relation, &self.alias) {
            (Some(relation), Some(alias)) if relation != alias => {
                title.push_str(&format!(" on {relation} {alias}"));
            }
            (Some(name), _) | (None, Some(name)) => title.push_str(&format!(" on {name}")),
            (None, None) => {}
        }
        title
    }

    /// The tree as text, with estimates, as people know it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, 0);
        text
    }

    fn write(&self, text: &mut String, depth: usize) {
        let indent = "  ".repeat(depth);
        if let Some(role) = self.role.as_ref().filter(|role| **role != self.kind) {
            text.push_str(&format!("{indent}{role}\n"));
        }
        let estimates = match (self.cost, self.rows) {
            (Some(cost), Some(rows)) => format!("  (cost={cost:.2} rows={rows})"),
            (Some(cost), None) => format!("  (cost={cost:.2})"),
            (None, Some(rows)) => format!("  (rows={rows})"),
            (None, None) => String::new(),
        };
        text.push_str(&format!("{indent}{}{estimates}\n", self.title()));
        for Condition { name, text: condition } in &self.conditions {
            text.push_str(&format!("{indent}    {name}: {condition}\n"));
        }
        self.children.iter().for_each(|child| child.write(text, depth + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed(Result<PlanNode, PlanError>);

    impl Planner for Fixed {
        fn explain(&mut self, _: &Statement) -> Result<Vec<(String, PlanNode)>, PlanError> {
            self.0.clone().map(|plan| vec![(String::new(), plan)])
        }
    }

    fn plan(kind: &str) -> Result<PlanNode, PlanError> {
        Ok(PlanNode { alias: Some("a".to_owned()), ..PlanNode::of(kind) })
    }

    fn refused(words: &str) -> Result<PlanNode, PlanError> {
        Err(PlanError::Refused(words.to_owned()))
    }

    fn check(
        [old, new, source]: [Result<PlanNode, PlanError>; 3],
        lacking: &[&str],
        class: PlanClass,
    ) -> Judged {
        let mut rehearsal = Rehearsal {
            old_name: "old".to_owned(),
            new_name: "new".to_owned(),
            old: Box::new(Fixed(old)),
            new: Box::new(Fixed(new)),
            source: Some(Box::new(Fixed(source))),
            notes: Vec::new(),
            preflight: Vec::new(),
            lacking: lacking.iter().map(|object| object.to_string()).collect(),
        };
        let statement =
            Statement { number: 1, text: "SELECT 1".to_owned(), ..Statement::default() };
        let mut report = judge(&[statement], &mut rehearsal, &mut |_| {}).unwrap();
        let judged = report.statements.remove(0);
        assert_eq!(judged.class, class, "{judged:?}");
        judged
    }

    #[test]
    fn an_error_on_one_side_is_a_finding_unless_something_lacks_there() {
        let words = "relation \"fee\" does not exist";
        let found =
            check([plan("Seq Scan"), refused(words), plan("Seq Scan")], &[], PlanClass::Error);
        assert_eq!(found.new_error.as_deref(), Some(words));
        let lacking = ["postgres 18 cannot make table \"fee\": no such type"];
        check(
            [plan("Seq Scan"), refused(words), plan("Seq Scan")],
            &lacking,
            PlanClass::NotCovered,
        );
        check([refused(words), refused(words), refused(words)], &[], PlanClass::NotCovered);
        let utility = || Err(PlanError::NotCovered("REFRESH has no plan".to_owned()));
        check([utility(), utility(), utility()], &[], PlanClass::NotCovered);
    }

    #[test]
    fn types_of_an_answer_are_a_difference_of_versions_but_not_from_the_source() {
        let of = |types: &str| {
            let mut plan = plan("Seq Scan").unwrap();
            plan.condition(RESULT_TYPES, types);
            Ok(plan)
        };
        let (float, numeric) = ("double precision", "numeric");
        let judged = check([of(float), of(numeric), plan("Seq Scan")], &[], PlanClass::Conditions);
        assert_eq!(judged.notes, ["Result Types double precision -> Result Types numeric"]);
        check([of(float), of(float), plan("Seq Scan")], &[], PlanClass::Same);
    }

    #[test]
    fn the_source_decides_whether_the_method_is_faithful() {
        let [seq, index] = ["Seq Scan", "Index Scan"];
        check([plan(seq), plan(index), plan(seq)], &[], PlanClass::AccessPath);
        let judged = check([plan(seq), plan(index), plan(index)], &[], PlanClass::NotFaithful);
        assert!(judged.old.is_some() && judged.new.is_some() && judged.source.is_some());
        let denied = check([plan(seq), plan(seq), refused("denied")], &[], PlanClass::Same);
        assert_eq!(denied.warnings, ["the source does not explain it: denied"]);
    }
}
