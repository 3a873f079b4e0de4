//! Finds the column in which a statement stores a value: by its place in VALUES, or by SET.

use super::operands::widened;
use super::ranges::ValueGuess;
use super::statements::{NodeKind, TokenTree, bare};
use super::survey::TableFacts;

/// Rows of assignments are none of VALUES.
const ASSIGNED: usize = usize::MAX;

/// The table that a statement inserts into or changes.
pub(super) struct Target<'a> {
    pub(super) table: usize,
    facts: &'a TableFacts,
    /// The columns that an INSERT names, or all, and the list of their names in the statement.
    pub(super) columns: Vec<Option<usize>>,
    pub(super) list: Option<usize>,
    /// The word VALUES.
    pub(super) values: Option<usize>,
    /// The select list of an INSERT: its first token and the one after its last.
    pub(super) select: Option<(usize, usize)>,
    /// Assignments: their first token and the one after their last.
    assignments: Option<(usize, usize)>,
}

impl<'a> Target<'a> {
    pub(super) fn of(tree: &TokenTree<'_>, tables: &'a [TableFacts]) -> Option<Target<'a>> {
        let all = tree.nodes.len();
        let is_outer = |at: &usize| tree.nodes[*at].parent.is_none();
        let find = |from: usize, words: &[&str]| {
            (from..all).filter(is_outer).find(|at| tree.is_any(*at, words))
        };
        let verb = find(0, &["INSERT", "REPLACE", "UPDATE", "SELECT", "DELETE"])?;
        let is_update = tree.is(verb, "UPDATE");
        if tree.is_any(verb, &["SELECT", "DELETE"]) {
            return None;
        }
        let mut at = verb + 1;
        while tree.is_any(at, &["INTO", "ONLY", "IGNORE", "LOW_PRIORITY", "DELAYED"]) {
            at += 1;
        }
        // `schema.table`: the last part counts.
        while tree.is_sign(at + 1, ".") {
            at += 2;
        }
        let name = tree.name(at)?;
        let is_it = |table: &TableFacts| bare(&table.name).eq_ignore_ascii_case(name);
        let is_exact = |table: &TableFacts| bare(&table.name) == name;
        let table = tables.iter().position(is_exact).or_else(|| tables.iter().position(is_it))?;
        let mut target = Target {
            table,
            facts: &tables[table],
            columns: (0..tables[table].columns.len()).map(Some).collect(),
            list: None,
            values: None,
            select: None,
            assignments: None,
        };
        let end_of = |from: usize| {
            find(from, &["WHERE", "FROM", "RETURNING", "ORDER", "LIMIT"]).unwrap_or(all)
        };
        if is_update {
            target.assignments = find(at, &["SET"]).map(|set| (set + 1, end_of(set)));
            return Some(target);
        }
        let source = find(at, &["VALUES", "VALUE", "SELECT", "SET"]);
        let list = (at..source.unwrap_or(at)).find(|at| tree.is_sign(*at, "("));
        if let Some((open, close)) = list.and_then(|open| Some((open, tree.nodes[open].partner?))) {
            let column = |(_, end): (usize, usize)| tables[table].column(tree.name(end - 1)?);
            target.columns = tree.items(open + 1, close).into_iter().map(column).collect();
            target.list = Some(open);
        }
        let source = source?;
        let on = find(source, &["ON"]).filter(|on| {
            !tree.is(source, "SELECT") || tree.is_any(on + 1, &["CONFLICT", "DUPLICATE"])
        });
        let update = on.and_then(|on| find(on, &["UPDATE"]));
        target.assignments = update.map(|update| (update + 1, end_of(update)));
        match tree.text(source).to_uppercase().as_str() {
            "SELECT" => target.select = Some((source + 1, end_of(source))),
            "SET" => target.assignments = Some((source + 1, all)),
            _ => target.values = Some(source),
        }
        Some(target)
    }

    /// The column in which the value at `at` is stored as it is, or to which it is added; and the
    /// number of its row.
    pub(super) fn stored(&self, tree: &TokenTree<'_>, at: usize) -> Option<(usize, ValueGuess)> {
        let (mut begin, mut end) = widened(tree, at);
        // `coalesce(value, column)`
        if let Some(open) = begin.checked_sub(1)
            && open > 0
            && tree.is_sign(open, "(")
            && tree.is_any(open - 1, &["COALESCE", "IFNULL"])
        {
            (begin, end) = (open - 1, tree.nodes[open].partner?);
        }
        let before = begin.checked_sub(1)?;
        if self.assignments.is_some_and(|(from, to)| (from..to).contains(&begin)) {
            let is_factor =
                tree.operator(before).is_some_and(|(_, sign)| ["*", "/"].contains(&sign));
            if is_factor && tree.nodes[begin].parent.is_some() {
                return Some((ASSIGNED, ValueGuess::Neutral("1")));
            }
            return self.assigned(tree, (begin, end));
        }
        let ends = |limit: usize| end + 1 == limit || tree.is_sign(end + 1, ",");
        let stored = |row: usize, place: usize| {
            let column = (*self.columns.get(place)?)?;
            Some((row, ValueGuess::Stored(self.table, column)))
        };
        if let Some((from, to)) = self.select
            && (from..to).contains(&begin)
            && tree.nodes[begin].parent.is_none()
        {
            let is_item = begin == from || tree.is_sign(before, ",");
            let items = tree.items(from, to);
            let place = items.iter().position(|(first, _)| *first == begin)?;
            return if is_item && ends(to) { stored(0, place) } else { None };
        }
        let values = self.values.filter(|values| *values < begin)?;
        let open = tree.nodes[begin].parent.filter(|open| tree.nodes[*open].parent.is_none())?;
        let is_item = before == open || tree.is_sign(before, ",");
        if !is_item || !ends(tree.nodes[open].partner?) {
            return None;
        }
        let is_row = |at: &usize| tree.is_sign(*at, "(") && tree.nodes[*at].parent.is_none();
        let row = (values..open).filter(is_row).count();
        stored(row, tree.place_in_list(open, begin))
    }

    /// For a value of an assignment.
    fn assigned(
        &self,
        tree: &TokenTree<'_>,
        (begin, end): (usize, usize),
    ) -> Option<(usize, ValueGuess)> {
        let (_, to) = self.assignments?;
        let (first, sign) = tree.operator(begin.checked_sub(1)?)?;
        let ends = end + 1 == to || tree.is_sign(end + 1, ",");
        if !ends || tree.nodes[begin].parent.is_some() {
            return None;
        }
        let name_at = first.checked_sub(1)?;
        let column = self.facts.column(tree.name(name_at)?)?;
        let guess = match sign {
            "=" => ValueGuess::Stored(self.table, column),
            "+" | "-" if self.is_counted(tree, name_at) => ValueGuess::Step(self.table, column),
            "*" | "/" if self.is_counted(tree, name_at) => ValueGuess::Neutral("1"),
            "||" if self.is_counted(tree, name_at) => {
                let is_document = self.facts.columns[column].type_name.starts_with("json");
                ValueGuess::Neutral(if is_document { "\"{}\"" } else { "\"\"" })
            }
            _ => return None,
        };
        Some((ASSIGNED, guess))
    }

    /// True if the name at `at` begins what is assigned to its own column: `a = a + …`.
    fn is_counted(&self, tree: &TokenTree<'_>, at: usize) -> bool {
        let mut begin = at;
        while begin > 1 && tree.is_sign(begin - 1, ".") {
            begin -= 2;
        }
        let assigned = begin.checked_sub(2).and_then(|at| tree.name(at));
        let is_same =
            assigned.zip(tree.name(at)).is_some_and(|(one, other)| one.eq_ignore_ascii_case(other));
        is_same && tree.is_sign(begin - 1, "=")
    }

    /// What the statement assigns to columns that grow by it each time, as in `a = a * 1.1` and
    /// `a = concat(a, 'x')`: the column, the first token and the one after the last.
    pub(super) fn grown(&self, tree: &TokenTree<'_>) -> Vec<(usize, usize, usize)> {
        let (from, to) = self.assignments.unwrap_or_default();
        let of_item = |(begin, end): (usize, usize)| {
            let sign = (begin..end).find(|at| tree.is_sign(*at, "="))?;
            let name = tree.name(sign.checked_sub(1)?)?;
            let column = self.facts.column(name)?;
            let is_own =
                |at: &usize| tree.name(*at).is_some_and(|it| it.eq_ignore_ascii_case(name));
            // A factor or a text that is a value of the draft changes nothing.
            let is_literal =
                |at: usize| tree.nodes.get(at).map(|it| it.kind) == Some(NodeKind::Literal);
            let grows = |at: usize| match tree.operator(at) {
                Some((first, "*" | "||")) => {
                    is_literal(at + 1) || is_literal(first.wrapping_sub(1))
                }
                // Taken away again, it could go below zero: others change the rows meanwhile.
                Some((first, "+")) if self.facts.columns[column].is_narrow_unsigned() => {
                    first.checked_sub(1).is_some_and(|at| self.is_counted(tree, at))
                }
                _ => tree.is_any(at, &["CONCAT", "CONCAT_WS"]),
            };
            let is_grown = (sign + 1..end).any(|at| is_own(&at)) && (sign + 1..end).any(grows);
            is_grown.then_some((column, sign + 1, end))
        };
        tree.items(from, to).into_iter().filter_map(of_item).collect()
    }

    /// The row and the column that an INSERT gives the value at `at`.
    pub(super) fn inserted(&self, tree: &TokenTree<'_>, at: usize) -> Option<(usize, usize)> {
        let (row, guess) = self.stored(tree, at)?;
        match guess {
            ValueGuess::Stored(_, column) if row != ASSIGNED => Some((row, column)),
            _ => None,
        }
    }

    /// The signs by which the statement adds to columns or subtracts from them, and the column.
    pub(super) fn counters(&self, tree: &TokenTree<'_>) -> Vec<(usize, usize)> {
        let (from, to) = self.assignments.unwrap_or_default();
        let sign = |at: usize| {
            let is_it = tree.is_sign(at, "+") || tree.is_sign(at, "-");
            let name_at = at.checked_sub(1).filter(|_| is_it && tree.nodes[at].parent.is_none())?;
            let column = self.facts.column(tree.name(name_at)?)?;
            self.is_counted(tree, name_at).then_some((at, column))
        };
        (from..to).filter_map(sign).collect()
    }
}

// The tables that a statement names, and the columns that its names mean.

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
            let facts = &self.tables[named.table];
            let column = facts.column(name)?;
            let (table, column) = facts.columns[column].shows.unwrap_or((named.table, column));
            Some((table, column, named.at))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::draft::survey::ColumnFacts;
    use rqps_model::dialect::Dialect;

    fn tables() -> Vec<TableFacts> {
        let table = |name: &str, columns: &[&str]| {
            let column =
                |name: &&str| ColumnFacts { name: (*name).to_owned(), ..ColumnFacts::default() };
            let columns = columns.iter().map(column).collect();
            TableFacts { name: name.to_owned(), columns, ..TableFacts::default() }
        };
        vec![
            table("customer", &["id", "city"]),
            table("shop.\"Order\"", &["id", "customer_id", "\"Total sum\""]),
            table("\"Order Details\"", &["order_id", "amount"]),
        ]
    }

    #[test]
    fn a_stored_value_has_the_column_of_its_place() {
        // The last value of each.
        let check = |sql: &str, want: Option<(usize, usize)>| {
            let tables = tables();
            let tree = TokenTree::read(Dialect::Postgres, sql);
            let target = Target::of(&tree, &tables);
            let (at, _) = tree.values().last().unwrap();
            let found = target.and_then(|target| target.stored(&tree, at));
            let found = found.map(|(_, guess)| guess);
            assert_eq!(found, want.map(|(table, it)| ValueGuess::Stored(table, it)), "{sql}");
        };
        check("INSERT INTO customer VALUES ($1)", Some((0, 0)));
        check("INSERT INTO customer VALUES ($1, $2)", Some((0, 1)));
        check("INSERT INTO customer VALUES ($1, $2, $3)", None);
        check(
            "insert into shop.\"Order\" (customer_id, \"Total sum\") values ($1,$2)",
            Some((1, 2)),
        );
        check("INSERT INTO \"Order Details\" (amount) VALUES ($1::int)", Some((2, 1)));
        check("INSERT INTO customer (city) VALUES ($1), ($2)", Some((0, 1)));
        check("INSERT INTO customer (city, id) VALUES (concat('(', $1), $2)", Some((0, 0)));
        check("INSERT INTO customer (city, id) VALUES (concat($1), 1)", None);
        check("INSERT INTO customer (city, id) VALUES (1 + $1, 1)", None);
        check("INSERT INTO customer (id, city) SELECT id, $1 FROM customer", Some((0, 1)));
        check("INSERT INTO customer (id, city) SELECT id, city FROM customer WHERE id = $1", None);
        check("INSERT INTO customer (id) VALUES ($1) ON CONFLICT (id) DO NOTHING", Some((0, 0)));
        let upsert = "INSERT INTO customer (id) VALUES ($1) ON CONFLICT (id) DO UPDATE SET city =";
        check(&format!("{upsert} $2"), Some((0, 1)));
        check(&format!("{upsert} $2 WHERE customer.id = $3"), None);
        check("UPDATE ONLY shop.\"Order\" SET id = $1, customer_id = $2", Some((1, 1)));
        check("UPDATE customer SET city = coalesce($1, city) WHERE id = 1", Some((0, 1)));
        check("UPDATE customer SET id = city + $1", None);
        check("UPDATE customer SET city = $1 WHERE id = $2", None);
        check("WITH x AS (SELECT 1) UPDATE customer SET city = $1", Some((0, 1)));
        check("INSERT INTO other VALUES ($1)", None);
        check("DELETE FROM customer WHERE id = $1", None);
    }

    #[test]
    fn what_is_added_to_a_column_is_no_value_of_it() {
        let (sql, tables) = ("UPDATE customer c SET city = $1, id = c.id - $2", tables());
        let tree = TokenTree::read(Dialect::Postgres, sql);
        let target = Target::of(&tree, &tables).unwrap();
        let (at, _) = tree.values().last().unwrap();
        let (_, guess) = target.stored(&tree, at).unwrap();
        assert_eq!(guess, ValueGuess::Step(0, 0));
        let counters = target.counters(&tree);
        assert_eq!(counters.iter().map(|(at, _)| tree.text(*at)).collect::<Vec<_>>(), ["-"]);
    }
}
