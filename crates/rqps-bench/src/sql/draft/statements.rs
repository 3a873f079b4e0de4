//! Finds the column of each value in statements from a server's statistics.

use std::collections::BTreeMap;

use super::keys::outgrown;
use super::operands::{Operand, Operands};
use super::ranges::{Meaning, Relation, RowOfValues, ValueGuess};
use super::survey::{DatabaseSurvey, TableFacts, TopStatement};
use super::written::Target;
use rqps_model::dialect::Dialect;
use rqps_text::{Token, TokenKind, tokens, words};

/// A name in each statement by which a draft reads tables, so that the next draft does not take it
/// for one of the user's. Comments do not stay in the server's statistics.
pub(super) const OWN: &str = "rqps_draft";

/// The statement that `PREPARE name AS` prepares: so the statistics of Postgres name what EXECUTE
/// executes.
pub(super) fn prepared(sql: &str) -> &str {
    let is_prepare =
        sql.get(.."PREPARE ".len()).is_some_and(|start| start.eq_ignore_ascii_case("PREPARE "));
    let upper = sql.to_ascii_uppercase();
    match upper.find(" AS ").filter(|_| is_prepare) {
        Some(at) => &sql[at + " AS ".len()..],
        None => sql,
    }
}

/// True for a statement that uses the user's tables.
pub(super) fn is_of_tables(sql: &str) -> bool {
    const FIRST: [&str; 6] = ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "REPLACE"];
    let words = words(Dialect::Fake, sql);
    let first = words.iter().find(|word| *word != "(");
    let is_dml = first.is_some_and(|first| FIRST.contains(&first.as_str()));
    let from = ["FROM", "INTO", "UPDATE", "JOIN"];
    let lower = sql.to_lowercase();
    let is_internal =
        ["pg_", "information_schema", "performance_schema"].iter().any(|part| lower.contains(part));
    is_dml && !is_internal && words.iter().any(|word| from.contains(&word.as_str()))
}

/// True if a statement holds a text that may be an array, a row or a range. The statistics of
/// Postgres keep texts of GROUP BY. To prepare a statement, the server makes values of them, and
/// checks the domains in such a type, which may be anybody's.
pub(super) fn holds_text(sql: &str) -> bool {
    let Ok(all) = tokens(Dialect::Postgres, sql.as_bytes()) else { return true };
    let is_plain = |token: &Token| {
        let text = &sql[token.begin..token.end];
        text.starts_with('\'') && !text.contains(['{', '}', '(', ')', '[', ']'])
    };
    all.iter().any(|token| token.kind == TokenKind::Text && !is_plain(token))
}

/// Reads the values of the columns with which statements compare, and in which they store.
pub(super) fn learn_columns(
    found: &mut DatabaseSurvey,
    learn: &mut dyn FnMut(&mut TableFacts, usize),
) {
    use ValueGuess::{Array, Column, Pattern, Step, Stored, Year};
    for statement in found.statements.clone() {
        for guess in meaning(&statement, &found.tables).guesses {
            if let Column(table, column)
            | Stored(table, column)
            | Pattern(table, column)
            | Array(table, column)
            | Year(table, column)
            | Step(table, column) = guess
            {
                learn(&mut found.tables[table], column);
            }
        }
        if let Some((table, columns)) = outgrown(&found.tables, &statement) {
            columns.into_iter().for_each(|column| learn(&mut found.tables[table], column));
        }
    }
}

/// Where a value stands, as far as it decides which values one row has together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Together {
    /// Compared by `=`: the place of the table's name in the statement.
    Equal(usize),
    /// In a row of values: its parenthesis, and the place of the table's name.
    Tuple(usize, usize),
    /// Stored in this row.
    Stored(usize),
}

/// The meaning of all values of a statement.
pub(super) fn meaning(statement: &TopStatement, tables: &[TableFacts]) -> Meaning {
    let tree = TokenTree::of(statement);
    let operands = Operands::of(&tree, tables);
    let target = Target::of(&tree, tables);
    let counted = target.as_ref().map_or(0, |target| target.table);
    let counters: Vec<usize> =
        target.iter().flat_map(|target| target.counters(&tree)).map(|(_, column)| column).collect();
    let mut meaning = Meaning::default();
    let mut together: BTreeMap<(Together, usize), Vec<(usize, usize)>> = BTreeMap::new();
    for (at, number) in tree.values() {
        let most = meaning.guesses.len().max(number + 1);
        meaning.guesses.resize(most, ValueGuess::Unknown);
        if meaning.guesses[number] != ValueGuess::Unknown {
            continue;
        }
        let stored = target.as_ref().and_then(|target| target.stored(&tree, at));
        let (guess, group) = match stored {
            // `VALUES (7, 1) … SET plays = plays + excluded.plays`
            Some((row, ValueGuess::Stored(table, column)))
                if statement.is_insert() && counters.contains(&column) =>
            {
                (ValueGuess::Step(table, column), Some(Together::Stored(row)))
            }
            Some((row, guess)) => (guess, Some(Together::Stored(row))),
            None => compared(&operands, at),
        };
        let column = match &guess {
            ValueGuess::Column(table, column) | ValueGuess::Stored(table, column) => {
                Some((*table, *column))
            }
            _ => None,
        };
        // `stock = stock - 1 … AND stock >= 1`: what is compared is what is taken away.
        let guess = match guess {
            ValueGuess::Column(table, column)
                if group.is_none() && counters.contains(&column) && table == counted =>
            {
                ValueGuess::Step(table, column)
            }
            guess => guess,
        };
        let is_one = matches!(tree.nodes[at].kind, NodeKind::Value(_));
        if let (Some((table, column)), Some(group), true) = (column, group, is_one) {
            together.entry((group, table)).or_default().push((column, number));
        }
        meaning.guesses[number] = guess;
    }
    for ((group, table), mut columns) in together {
        columns.sort_unstable();
        columns.dedup_by_key(|(column, _)| *column);
        let is_stored = matches!(group, Together::Stored(_));
        let is_equal = matches!(group, Together::Equal(_));
        meaning.rows.push(RowOfValues { table, columns, is_stored, is_equal });
    }
    meaning
}

/// The meaning of a value that the statement does not store.
fn compared(operands: &Operands<'_>, at: usize) -> (ValueGuess, Option<Together>) {
    let Some((operand, relation)) = operands.compared_with(at) else {
        return (operands.other(at), None);
    };
    let guess = match (operand, relation) {
        (Operand::Column { table, column, .. }, Relation::Pattern) => {
            ValueGuess::Pattern(table, column)
        }
        (Operand::Column { table, column, .. }, Relation::Array) => {
            ValueGuess::Array(table, column)
        }
        (Operand::Column { table, column, .. }, _) => ValueGuess::Column(table, column),
        (Operand::Year { table, column }, _) => ValueGuess::Year(table, column),
        (Operand::Fixed(values), _) => ValueGuess::Fixed(values),
        (Operand::Unknown, _) => operands.other(at),
    };
    let together = match (operand, relation) {
        (Operand::Column { name, .. }, Relation::Equal) if !operands.has_or(at) => {
            Some(Together::Equal(name))
        }
        (Operand::Column { name, .. }, Relation::Tuple(open)) => Some(Together::Tuple(open, name)),
        _ => None,
    };
    (guess, together)
}

/// A statement of Postgres that casts each value to the type of the column that it belongs to.
/// Types with a length stay away: the catalog tells them without it, and the cast would cut values.
pub(super) fn with_casts(statement: &TopStatement, tables: &[TableFacts]) -> String {
    let guesses = meaning(statement, tables).guesses;
    let tree = TokenTree::of(statement);
    tree.with(|at| {
        let type_name = match guesses.get(tree.value(at)?) {
            Some(ValueGuess::Column(table, column)) => &tables[*table].columns[*column].type_name,
            _ => return None,
        };
        let has_length = ["char", "bit"].iter().any(|part| type_name.starts_with(part));
        let is_cast = tree.is_sign(at + 1, ":");
        (!has_length && !is_cast).then(|| format!("{}::{type_name}", tree.text(at)))
    })
}

/// True if a statement has the name of a table, with any schema.
pub(super) fn mentions(statement: &TopStatement, table: &str) -> bool {
    let (tree, table) = (TokenTree::of(statement), bare(table));
    (0..tree.nodes.len())
        .any(|at| tree.name(at).is_some_and(|name| name.eq_ignore_ascii_case(table)))
}

// The tokens of a statement from a server's statistics, with its values and parentheses.

/// Signs of which operators consist.
const OPERATORS: &str = "=<>!~+-*/%^&|@#?:";

/// Most parentheses around a token. Whoever may run statements on the server wrote them.
const DEEPEST: usize = 100;

/// What Postgres 18 writes after the first value of a list in its statistics.
pub(super) const SQUEEZED: &str = " /*, ... */";

/// What a token is to a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeKind {
    /// A keyword or a name without quotes.
    Word,
    /// A name in quotes.
    Name,
    /// A text or a number.
    Literal,
    Sign,
    /// The value of this number, from 0.
    Value(usize),
    /// Several values in the place of one.
    Values(usize),
}

/// A token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    pub(super) begin: usize,
    pub(super) end: usize,
    /// The parenthesis around it.
    pub(super) parent: Option<usize>,
    /// The other parenthesis of the pair.
    pub(super) partner: Option<usize>,
}

/// A statement as tokens.
pub(super) struct TokenTree<'a> {
    pub(super) sql: &'a str,
    pub(super) nodes: Vec<Node>,
}

impl<'a> TokenTree<'a> {
    /// Reads a statement. One that cannot be read has no tokens: nothing is known of its values.
    pub(super) fn of(statement: &'a TopStatement) -> TokenTree<'a> {
        TokenTree::read(statement.dialect(), &statement.sql)
    }

    /// Reads SQL whose values are `$n` on Postgres, and `?` or `?...` elsewhere.
    pub(super) fn read(dialect: Dialect, sql: &'a str) -> TokenTree<'a> {
        let mut tree = TokenTree { sql, nodes: Vec::new() };
        let Ok(all) = tokens(dialect, sql.as_bytes()) else { return tree };
        let (mut open, mut unnamed, mut after): (Vec<usize>, usize, usize) = (Vec::new(), 0, 0);
        for token in all {
            let (begin, mut end) = (token.begin, token.end);
            if begin < after {
                continue;
            }
            let mut kind = match token.kind {
                TokenKind::Word => NodeKind::Word,
                TokenKind::Name => NodeKind::Name,
                TokenKind::Text | TokenKind::Number => NodeKind::Literal,
                TokenKind::Sign => NodeKind::Sign,
            };
            let text = &sql[begin..end];
            match text.strip_prefix('$').map(str::parse::<usize>) {
                Some(Ok(number)) if dialect == Dialect::Postgres => {
                    let is_list = sql[end..].starts_with(SQUEEZED);
                    let number = number.max(1) - 1;
                    kind = if is_list { NodeKind::Values(number) } else { NodeKind::Value(number) };
                    end += if is_list { SQUEEZED.len() } else { 0 };
                }
                _ if text == "?" && dialect != Dialect::Postgres => {
                    let is_list = sql[end..].starts_with("...");
                    kind =
                        if is_list { NodeKind::Values(unnamed) } else { NodeKind::Value(unnamed) };
                    end += if is_list { "...".len() } else { 0 };
                    unnamed += 1;
                }
                _ => {}
            }
            after = end;
            let place = tree.nodes.len();
            let is_end = text == ")" && kind == NodeKind::Sign;
            let partner = if is_end { open.pop() } else { None };
            if let Some(partner) = partner {
                tree.nodes[partner].partner = Some(place);
            }
            let parent = open.last().copied();
            tree.nodes.push(Node { kind, begin, end, parent, partner });
            if text == "(" && kind == NodeKind::Sign {
                open.push(place);
            }
            if open.len() > DEEPEST {
                return TokenTree { sql, nodes: Vec::new() };
            }
        }
        tree
    }

    /// The text of a token; empty beyond both ends.
    pub(super) fn text(&self, at: usize) -> &'a str {
        self.nodes.get(at).map_or("", |node| &self.sql[node.begin..node.end])
    }

    /// The number of a value.
    pub(super) fn value(&self, at: usize) -> Option<usize> {
        match self.nodes.get(at)?.kind {
            NodeKind::Value(number) | NodeKind::Values(number) => Some(number),
            _ => None,
        }
    }

    /// Places of values and their numbers.
    pub(super) fn values(&self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.nodes.len()).filter_map(|at| Some((at, self.value(at)?)))
    }

    /// True if a token is this keyword.
    pub(super) fn is(&self, at: usize, word: &str) -> bool {
        self.nodes.get(at).is_some_and(|node| node.kind == NodeKind::Word)
            && self.text(at).eq_ignore_ascii_case(word)
    }

    /// True if a token is one of these keywords.
    pub(super) fn is_any(&self, at: usize, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(at, word))
    }

    /// True if a token is this sign.
    pub(super) fn is_sign(&self, at: usize, sign: &str) -> bool {
        self.nodes.get(at).is_some_and(|node| node.kind == NodeKind::Sign) && self.text(at) == sign
    }

    /// The name that a token may be, without quotes.
    pub(super) fn name(&self, at: usize) -> Option<&'a str> {
        let node = self.nodes.get(at)?;
        matches!(node.kind, NodeKind::Word | NodeKind::Name).then(|| bare(self.text(at)))
    }

    /// The operator that ends with the token at `at`: its first token, and its text.
    pub(super) fn operator(&self, at: usize) -> Option<(usize, &'a str)> {
        let is_part = |at: usize| {
            let text = self.text(at);
            self.nodes[at].kind == NodeKind::Sign && OPERATORS.contains(text)
        };
        let end = self.nodes.get(at).filter(|_| is_part(at))?.end;
        let mut first = at;
        while first > 0
            && is_part(first - 1)
            && self.nodes[first - 1].end == self.nodes[first].begin
        {
            first -= 1;
        }
        Some((first, &self.sql[self.nodes[first].begin..end]))
    }

    /// The parts of a list in parentheses, or of the statement from a token on, up to `end`: first
    /// token and the one after the last.
    pub(super) fn items(&self, from: usize, end: usize) -> Vec<(usize, usize)> {
        let Some(first) = self.nodes.get(from).filter(|_| from < end) else { return Vec::new() };
        let (mut items, mut begin) = (Vec::new(), from);
        for at in from..end.min(self.nodes.len()) {
            if self.is_sign(at, ",") && self.nodes[at].parent == first.parent {
                items.push((begin, at));
                begin = at + 1;
            }
        }
        items.push((begin, end));
        items
    }

    /// The number of an item in its parentheses, from 0, for one of its tokens.
    pub(super) fn place_in_list(&self, open: usize, at: usize) -> usize {
        let is_comma = |at: &usize| self.is_sign(*at, ",") && self.nodes[*at].parent == Some(open);
        (open + 1..at).filter(is_comma).count()
    }

    /// The statement with other texts in the places of some tokens.
    pub(super) fn with(&self, other: impl Fn(usize) -> Option<String>) -> String {
        self.with_parts(|at| Some((at + 1, other(at)?)))
    }

    /// The statement with other texts in the places of some parts: `other` gets the first token of
    /// each, and tells the one after the last.
    pub(super) fn with_parts(&self, other: impl Fn(usize) -> Option<(usize, String)>) -> String {
        let (mut sql, mut from, mut at) = (String::new(), 0, 0);
        while let Some(node) = self.nodes.get(at) {
            let Some((after, text)) = other(at) else {
                at += 1;
                continue;
            };
            sql.push_str(&self.sql[from..node.begin]);
            sql.push_str(&text);
            from = self.nodes[after - 1].end;
            at = after;
        }
        sql + &self.sql[from..]
    }
}

// Names in SQL, with and without quotes.

/// Words that need quotes as names in some version of Postgres, MySQL, MariaDB or SQLite, and that
/// tables and columns may well be called. A draft from an old server is for newer ones, too: in
/// Postgres 16 `system_user` is a function.
const RESERVED: &str = " \
    abort accessible action add after all alter always analyse analyze and any array as asc \
    asensitive asymmetric attach authorization autoincrement before begin between bigint \
    binary blob both by call cascade case cast change char character check collate \
    column commit concurrently condition conflict constraint continue convert create cross \
    cube cume_dist current current_catalog current_date current_role current_schema \
    current_time current_timestamp current_user cursor database databases day_hour \
    day_microsecond day_minute day_second dec decimal declare default deferrable delayed \
    delete dense_rank desc describe detach deterministic distinct distinctrow div do double \
    drop dual each else elseif elsif empty enclosed end escape escaped except exclude \
    exclusive exists exit explain external fail false fetch filter first_value float float4 \
    float8 following for force foreign freeze from full fulltext function generated get glob \
    goto grant group grouping groups having high_priority hour_microsecond \
    hour_minute hour_second if ignore ilike in index indexed infile initially inner inout \
    insensitive insert instead int int1 int2 int3 int4 int8 integer intersect interval into \
    is isnull iterate join json_table key keys kill lag last_value lateral lead leading \
    leave left library like limit linear lines load localtime localtimestamp lock long \
    longblob longtext loop low_priority manual match materialized maxvalue mediumblob \
    mediumint mediumtext middleint minute_microsecond minute_second mod modifies natural no \
    not nothing notnull nth_value ntile null nulls numeric of offset on only optimize \
    optimizer_costs option optionally or order others out outer outfile over overlaps \
    package page_checksum parallel partition percent_rank period placing plan pragma \
    preceding precision primary procedure purge qualify query raise range rank read \
    read_write reads real recursive references regexp reindex release rename repeat replace \
    require resignal restrict return returning revoke right rlike rollback row row_number \
    rownum rows rowtype savepoint schema schemas second_microsecond select sensitive \
    separator session_user set show signal similar slow smallint some spatial specific sql \
    sqlexception sqlstate sqlwarning ssl starting stored straight_join symmetric system \
    system_time system_user table tablesample temp temporary terminated then ties tinyblob \
    tinyint tinytext to trailing transaction trigger true unbounded undo union unique unlock \
    unsigned update usage use user using utc_date utc_time utc_timestamp vacuum values \
    varbinary varchar varcharacter variadic varying vector verbose versioning view virtual \
    when where while window with without write xor year_month zerofill ";

/// A name as each version reads it, without quotes where it needs none: a server quotes what it
/// must itself.
pub(super) fn plain(dialect: Dialect, name: &str) -> String {
    let bare = name.trim_matches(['"', '`']);
    let begins = bare.starts_with(|letter: char| letter.is_ascii_lowercase() || letter == '_');
    let is_word = bare
        .chars()
        .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    let is_reserved = RESERVED.contains(&format!(" {bare} "));
    match dialect {
        Dialect::Postgres if is_reserved && bare == name => format!("\"{bare}\""),
        _ if dialect == Dialect::Postgres || is_reserved || !begins || !is_word => name.to_owned(),
        _ => bare.to_owned(),
    }
}

/// A name in SQL without schema and quotes.
pub(super) fn bare(name: &str) -> &str {
    match name.chars().next_back() {
        Some(quote @ ('"' | '`')) => {
            let name = &name[..name.len() - 1];
            &name[name.rfind(quote).map_or(0, |at| at + 1)..]
        }
        _ => name.rsplit('.').next().unwrap_or(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::draft::survey::ColumnFacts;

    fn table(name: &str, columns: &[&str]) -> TableFacts {
        let column = |name: &&str| ColumnFacts { name: (*name).to_owned(), ..Default::default() };
        let columns = columns.iter().map(column).collect();
        TableFacts { name: name.to_owned(), columns, ..TableFacts::default() }
    }

    #[test]
    fn a_name_that_a_later_version_reserves_has_quotes() {
        let check = |dialect, name, expected| assert_eq!(plain(dialect, name), expected);
        // As version 15 tells them.
        check(Dialect::Postgres, "system_user", "\"system_user\"");
        check(Dialect::Postgres, "\"order\"", "\"order\"");
        check(Dialect::Postgres, "app.customer", "app.customer");
        check(Dialect::Mysql, "`rank`", "`rank`");
        check(Dialect::Mysql, "`qualify`", "`qualify`");
        check(Dialect::Mysql, "`city`", "city");
        check(Dialect::Sqlite, "\"returning\"", "\"returning\"");
    }

    fn tables() -> [TableFacts; 3] {
        [
            table("orders", &["id", "customer_id", "day"]),
            table("customer", &["id", "city", "\"Shelf No\""]),
            table("\"Order Details\"", &["\"OrderID\"", "amount"]),
        ]
    }

    fn of(sql: &str) -> TopStatement {
        let is_mysql = sql.contains('`') || !sql.contains('$');
        TopStatement { sql: sql.to_owned(), is_mysql, ..TopStatement::default() }
    }

    fn check(sql: &str, want: &[ValueGuess]) {
        assert_eq!(meaning(&of(sql), &tables()).guesses, want, "{sql}");
    }

    #[test]
    fn values_are_cast_to_the_types_of_their_columns() {
        let mut tables = [table("line", &["product", "code"])];
        tables[0].columns[0].type_name = "integer".to_owned();
        tables[0].columns[1].type_name = "character".to_owned();
        let sql = "SELECT 1 FROM line WHERE code = $1 AND product BETWEEN $2 AND $3 + $4";
        let wanted = "SELECT 1 FROM line WHERE code = $1 AND product BETWEEN $2::integer \
                      AND $3::integer + $4";
        assert_eq!(with_casts(&of(sql), &tables), wanted);
        assert_eq!(with_casts(&of(wanted), &tables), wanted);
    }

    #[test]
    fn what_prepare_prepares_is_the_statement() {
        let plain = "SELECT name AS n FROM customer WHERE id = $1";
        for begin in ["PREPARE c AS ", "prepare \"c d\" (integer) as ", ""] {
            assert_eq!(prepared(&format!("{begin}{plain}")), plain);
        }
    }

    #[test]
    fn a_value_is_of_the_column_that_it_is_compared_with() {
        use ValueGuess::{Limit, Stored, Unknown};
        let column = ValueGuess::Column;
        check("SELECT * FROM customer WHERE id = $1", &[column(1, 0)]);
        check(
            "SELECT 1 FROM orders o JOIN customer AS c ON c.id = o.customer_id \
             WHERE c.id = $1 AND o.id>$2 AND day >= $3 LIMIT $4",
            &[column(1, 0), column(0, 0), column(0, 2), Limit],
        );
        check(
            "SELECT `id` FROM `customer` WHERE `city` IN (?, ?) AND `id` BETWEEN ? AND ?",
            &[column(1, 1), column(1, 1), column(1, 0), column(1, 0)],
        );
        check("UPDATE orders SET day = id + $2 WHERE id = $1", &[column(0, 0), Unknown]);
        check("DELETE FROM `customer` WHERE `id` = ?", &[column(1, 0)]);
        check("INSERT INTO orders VALUES ($1, $2)", &[Stored(0, 0), Stored(0, 1)]);
        check("UPDATE customer SET city = $2 WHERE id = $1", &[column(1, 0), Stored(1, 1)]);
        check("INSERT INTO orders (id) SELECT $1", &[Stored(0, 0)]);
        check(
            "SELECT 1 FROM \"Order Details\" WHERE \"OrderID\" = $1 AND $2 <= amount",
            &[column(2, 0), column(2, 1)],
        );
        check(
            "SELECT CASE WHEN c.city = $1 THEN $2 END FROM customer c WHERE lower(city) = \
             lower($3) AND city::text <> $4::text",
            &[column(1, 1), Unknown, column(1, 1), column(1, 1)],
        );
        // The innermost table that has the column.
        check(
            "SELECT 1 FROM customer WHERE id IN (SELECT customer_id FROM orders WHERE id = $1) \
             AND id NOT IN ($2)",
            &[column(0, 0), column(1, 0)],
        );
    }

    #[test]
    fn other_places_take_what_they_can() {
        use ValueGuess::{Array, Fixed, Limit, Member, Offset, Pattern, Unknown, Year};
        check("SELECT 1 FROM customer WHERE city LIKE $1", &[Pattern(1, 1)]);
        check("SELECT 1 FROM customer WHERE city NOT ILIKE $1", &[Pattern(1, 1)]);
        check("SELECT 1 FROM customer WHERE id = ANY ($1)", &[Array(1, 0)]);
        check("SELECT 1 FROM customer WHERE id = ANY ($1::int[])", &[Array(1, 0)]);
        check("SELECT city ->> $1, city -> $2 FROM customer", &[Member(1, 1), Member(1, 1)]);
        check("SELECT city FROM `customer` LIMIT ?, ?", &[Offset, Limit]);
        check("SELECT city FROM customer LIMIT $1 OFFSET $2", &[Limit, Offset]);
        check("SELECT city FROM customer OFFSET $1 FETCH FIRST $2 ROWS ONLY", &[Offset, Limit]);
        check("SELECT 1 FROM orders WHERE extract(year FROM day) = $1", &[Year(0, 2)]);
        check("SELECT 1 FROM orders WHERE YEAR ( `day` ) = ?", &[Year(0, 2)]);
        check("SELECT date_trunc($1, day) FROM orders", &[Fixed("\"month\"")]);
        check("SELECT 1 FROM orders HAVING count(*) > $1", &[Fixed("1, 2, 5")]);
        check("SELECT 1 FROM orders WHERE day > now() - $1::interval", &[Unknown]);
        check("SELECT day AT TIME ZONE $1 FROM orders", &[Fixed("\"UTC\"")]);
        check("SELECT 1 FROM orders WHERE city @> $1", &[Fixed("\"{}\"")]);
        let step = ValueGuess::Step(0, 0);
        check("SELECT coalesce(city, $1) FROM customer", &[ValueGuess::Column(1, 1)]);
        check("UPDATE orders SET id = id + $1", std::slice::from_ref(&step));
        check("UPDATE orders SET id = id - $1 WHERE id >= $2", &[step.clone(), step]);
        let neutral = ["\"\"", "1", "1"].map(ValueGuess::Neutral);
        check("UPDATE orders SET day = day || $1, id = id * $2, a = round(id * $3)", &neutral);
        check(
            "SELECT make_date($1, 1, 1) FROM orders TABLESAMPLE SYSTEM ($2)",
            &[Fixed("2024"), Fixed("10")],
        );
    }

    #[test]
    fn values_of_one_row_belong_together() {
        let check = |sql: &str, want: &[&[(usize, usize)]]| {
            let rows = meaning(&of(sql), &tables()).rows;
            let columns: Vec<&[(usize, usize)]> =
                rows.iter().map(|row| row.columns.as_slice()).collect();
            assert_eq!(columns, want, "{sql}");
        };
        check("SELECT 1 FROM orders WHERE day = $1 AND id = $2", &[&[(0, 1), (2, 0)]]);
        check("SELECT 1 FROM orders WHERE day = $1 OR id = $2", &[]);
        check("SELECT 1 FROM orders WHERE day = $1 AND id IN ($2, $3)", &[&[(0, 1), (2, 0)]]);
        check("SELECT 1 FROM orders WHERE day = $1 AND id NOT IN ($2)", &[&[(2, 0)]]);
        check("SELECT 1 FROM orders WHERE day > $1 AND id = $2", &[&[(0, 1)]]);
        check(
            "SELECT 1 FROM orders WHERE (id, day) IN (($1, $2), ($3, $4))",
            &[&[(0, 0), (2, 1)], &[(0, 2), (2, 3)]],
        );
        check("SELECT 1 FROM orders WHERE (id, day) > ($1, $2)", &[&[(0, 0), (2, 1)]]);
        check("SELECT 1 FROM orders WHERE ROW(id, day) = ROW($1, $2)", &[&[(0, 0), (2, 1)]]);
        // Two rows of one table.
        check(
            "SELECT 1 FROM orders a, orders b WHERE a.id = $1 AND a.day = $2 AND b.id = $3",
            &[&[(0, 0), (2, 1)], &[(0, 2)]],
        );
        check(
            "INSERT INTO orders (id, day) VALUES ($1, $2), ($3, $4)",
            &[&[(0, 0), (2, 1)], &[(0, 2), (2, 3)]],
        );
    }

    #[test]
    fn statements_on_the_server_itself_are_left_out() {
        assert!(is_of_tables("SELECT 1 FROM t"));
        assert!(is_of_tables("WITH x AS (SELECT 1) UPDATE t SET a = 1"));
        assert!(is_of_tables("REPLACE INTO t VALUES (1)") && is_of_tables("(SELECT 1 FROM t)"));
        for sql in ["SELECT 1", "VACUUM t", "SELECT * FROM pg_class", "BEGIN", "SET x = 1"] {
            assert!(!is_of_tables(sql), "{sql}");
        }
    }

    #[test]
    fn a_statement_with_an_array_or_a_row_as_a_text_is_not_prepared() {
        for sql in [
            "SELECT a FROM t WHERE b = $1",
            "SELECT \"{a}\" + INTERVAL '1 day' FROM t GROUP BY date_trunc('month', b)",
        ] {
            assert!(!holds_text(sql), "{sql}");
        }
        for sql in [
            "SELECT a FROM t WHERE b = '{1}'",
            "SELECT '(1)'::evil.row FROM t",
            "SELECT '[1,2]'::evil.range FROM t",
            "SELECT E'\\x7b1}'::evil.dom[] FROM t",
            "SELECT $${1}$$::evil.dom[] FROM t",
            "SELECT U&'{1}' FROM t",
        ] {
            assert!(holds_text(sql), "{sql}");
        }
    }

    #[test]
    fn values_are_those_of_the_dialect() {
        let check = |dialect, sql: &str, want: &[usize]| {
            let tree = TokenTree::read(dialect, sql);
            assert_eq!(tree.values().map(|(_, number)| number).collect::<Vec<_>>(), want, "{sql}");
        };
        check(
            Dialect::Postgres,
            "SELECT a ? $2, '$1', \"$1\" /* $1 */ FROM t WHERE b = $1",
            &[1, 0],
        );
        check(Dialect::Mysql, "SELECT '?', `?`, a FROM t WHERE b IN (?...) AND c = ?", &[0, 1]);
        check(Dialect::Mysql, "SELECT 'a", &[]);
        check(Dialect::Mysql, &format!("SELECT {}?", "(".repeat(100_000)), &[]);
    }

    #[test]
    fn lists_and_operators_are_found() {
        let tree = TokenTree::read(Dialect::Postgres, "f(a, (b, c), $1) <= 3");
        assert_eq!(tree.items(2, 11).len(), 3);
        assert_eq!(tree.place_in_list(1, 10), 2);
        assert_eq!(tree.operator(13), Some((12, "<=")));
        assert_eq!(tree.with(|at| (at == 14).then(|| "4".to_owned())), "f(a, (b, c), $1) <= 4");
    }
}
