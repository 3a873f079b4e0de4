//! The tables that a statement names, and the columns that its names mean.

use super::facts::TableFacts;
use super::names::bare;
use super::token_tree::TokenTree;

/// Words that follow a table and are not its alias.
const NO_ALIAS: &[&str] = &[
    "WHERE", "ON", "JOIN", "LEFT", "RIGHT", "INNER", "CROSS", "FULL", "NATURAL", "USING", "GROUP",
    "ORDER", "LIMIT", "SET", "VALUES", "VALUE", "SELECT", "UNION", "HAVING", "FOR", "OFFSET",
    "RETURNING", "FORCE", "USE", "IGNORE", "STRAIGHT_JOIN", "WINDOW", "EXCEPT", "INTERSECT",
    "DEFAULT", "FETCH", "TABLESAMPLE", "OUTER", "PARTITION", "FROM",
];

/// Words that begin a clause.
const CLAUSES: &[&str] = &[
    "SELECT", "FROM", "WHERE", "SET", "BY", "ON", "HAVING", "VALUES", "INTO", "UPDATE", "JOIN",
    "LIMIT", "RETURNING", "USING",
];

/// A table that a statement names.
struct NamedTable<'a> {
    at: usize,
    table: usize,
    alias: &'a str,
    parent: Option<usize>,
}

/// The tables of a statement.
pub(super) struct NamedTables<'a> {
    tree: &'a TokenTree<'a>,
    tables: &'a [TableFacts],
    named: Vec<NamedTable<'a>>,
}

impl<'a> NamedTables<'a> {
    pub(super) fn of(tree: &'a TokenTree<'a>, tables: &'a [TableFacts]) -> NamedTables<'a> {
        let mut all = NamedTables { tree, tables, named: Vec::new() };
        for at in 0..tree.nodes.len() {
            all.named.extend(all.named_table(at));
        }
        all
    }

    /// How often the statement names a table.
    pub(super) fn count(&self) -> usize {
        self.named.len()
    }

    /// The table that a token names, if it does.
    fn named_table(&self, at: usize) -> Option<NamedTable<'a>> {
        let (tree, name) = (self.tree, self.tree.name(at)?);
        let is_it = |table: &TableFacts| bare(&table.name).eq_ignore_ascii_case(name);
        // With its schema before it, or in quotes with the other case, the name is the whole.
        let is_exact = |table: &TableFacts| {
            let begin = if tree.is_sign(at.wrapping_sub(1), ".") { at - 2 } else { at };
            let own = &tree.sql[tree.nodes[begin].begin..tree.nodes[at].end];
            table.name == own || bare(&table.name) == name && begin == at
        };
        let table =
            self.tables.iter().position(is_exact).or_else(|| self.tables.iter().position(is_it))?;
        let mut first = at;
        while first > 1 && tree.is_sign(first - 1, ".") {
            first -= 2;
        }
        let before = first.checked_sub(1)?;
        let is_listed = tree.is_sign(before, ",") || tree.is_sign(before, "(");
        let begins = ["FROM", "JOIN", "UPDATE", "INTO", "ONLY", "USING", "STRAIGHT_JOIN"];
        let modifies = ["LOW_PRIORITY", "IGNORE", "INSERT", "REPLACE", "DELAYED"];
        let is_named = tree.is_any(before, &begins)
            || tree.is_any(before, &modifies)
            || is_listed && ["FROM", "UPDATE"].contains(&self.clause(before).as_str());
        if !is_named || tree.is_sign(at + 1, ".") {
            return None;
        }
        let mut alias = at + 1;
        if tree.is(alias, "AS") {
            alias += 1;
        }
        let has_alias = tree.name(alias).is_some() && !tree.is_any(alias, NO_ALIAS);
        let alias = tree.name(if has_alias { alias } else { at })?;
        Some(NamedTable { at, table, alias, parent: tree.nodes[at].parent })
    }

    /// The word in capitals that begins the clause of a token.
    pub(super) fn clause(&self, at: usize) -> String {
        let parent = self.tree.nodes[at].parent;
        let mut before = (0..at).rev().filter(|other| self.tree.nodes[*other].parent == parent);
        let found = before.find(|other| self.tree.is_any(*other, CLAUSES));
        found.map_or(String::new(), |found| self.tree.text(found).to_uppercase())
    }

    /// The column that the name at `at` means: its table, its number, and where the statement names
    /// the table.
    pub(super) fn column(&self, at: usize) -> Option<(usize, usize, usize)> {
        let tree = self.tree;
        let name = tree.name(at)?;
        let column = |named: &&NamedTable<'_>| {
            let column = self.tables[named.table].column(name)?;
            Some((named.table, column, named.at))
        };
        if at > 1 && tree.is_sign(at - 1, ".") {
            let alias = tree.name(at - 2).unwrap_or_default();
            let is_it = |named: &&NamedTable<'_>| named.alias.eq_ignore_ascii_case(alias);
            self.named.iter().rev().filter(is_it).find_map(|named| column(&named))
        } else {
            let mut scope = Some(tree.nodes[at].parent);
            let mut found = None;
            while let (None, Some(parent)) = (found, scope) {
                let mut here = self.named.iter().filter(|named| named.parent == parent);
                found = here.find_map(|named| column(&named));
                scope = parent.map(|open| tree.nodes[open].parent);
            }
            found.or_else(|| self.named.iter().find_map(|named| column(&named)))
        }
    }
}
