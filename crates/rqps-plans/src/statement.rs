//! Statements whose plans are compared.

use std::collections::BTreeSet;
use std::io::BufReader;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use rqps_model::bounded;
use rqps_model::dialect::Dialect;
use rqps_text::{SqlChunk, SqlSplitter, words};

/// A statement, and what share of the load it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// Its number in its file or list, from 1.
    pub number: usize,
    /// Its text, without the `;` at its end.
    pub text: String,
    /// Where it is from: a file and a line, or a list of the server.
    pub origin: String,
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
        found.push(Statement { number: found.len() + 1, text, origin, share: None });
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
