//! Ranges in drafted statements: the second end follows from the first, so that a range is neither
//! empty nor half of the table.

use std::collections::BTreeMap;

use super::operands::widened;
use super::parameters::{DraftFile, Parameter, csv_line, name, quoted};
use super::statements::{NodeKind, TokenTree, bare};
use super::survey::{ColumnValues, TableFacts, TopStatement};

/// Rows that a range is assumed to hold.
const ROWS: i128 = 100;

/// A range of a small table has at most this part of its values.
const PART_OF_ALL: i128 = 10;

/// What a value of a statement is to a range. The number is that of the value at its first end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RangePart {
    First,
    Second(usize),
    /// The first end again, to which the statement adds the width.
    Again(usize),
    /// What it adds.
    Width(usize),
}

impl RangePart {
    /// The number of the value at the first end, for a part that is the value of this number.
    pub(super) fn first(self, own: usize) -> usize {
        match self {
            RangePart::First => own,
            RangePart::Second(first) | RangePart::Again(first) | RangePart::Width(first) => first,
        }
    }
}

/// The values of a statement that belong to ranges: `BETWEEN a AND b`, `BETWEEN a AND a + n`, and
/// `column >= a AND column < b`.
pub(super) fn ranges(
    statement: &TopStatement,
    guesses: &[ValueGuess],
) -> BTreeMap<usize, RangePart> {
    let column = |number: usize| match guesses.get(number) {
        Some(ValueGuess::Column(table, column)) => Some((*table, *column)),
        _ => None,
    };
    let tree = TokenTree::of(statement);
    let is_one = |(at, _): &(usize, usize)| matches!(tree.nodes[*at].kind, NodeKind::Value(_));
    let values: Vec<(usize, usize)> = tree.values().filter(is_one).collect();
    let mut found = BTreeMap::new();
    for (place, pair) in values.windows(2).enumerate() {
        let [(one, first), (other, second)] = *pair else { continue };
        let of_one = column(first).is_some() && column(first) == column(second);
        if !of_one || !is_range(&tree, one, other) {
            continue;
        }
        let end = widened(&tree, other).1;
        let width = values
            .get(place + 2)
            .filter(|(at, _)| tree.is_sign(end + 1, "+") && widened(&tree, *at).0 == end + 2);
        match width {
            Some((_, width)) => {
                found.entry(second).or_insert(RangePart::Again(first));
                found.entry(*width).or_insert(RangePart::Width(first));
            }
            None if first == second => continue,
            None => {
                found.entry(second).or_insert(RangePart::Second(first));
            }
        }
        // Also where both ends are one value.
        found.insert(first, RangePart::First);
    }
    found
}

/// True if two values, one after the other, are the ends of a range.
fn is_range(tree: &TokenTree<'_>, one: usize, other: usize) -> bool {
    let ((begin, end), (second, _)) = (widened(tree, one), widened(tree, other));
    if !tree.is(end + 1, "AND") {
        return false;
    }
    if begin > 0 && tree.is(begin - 1, "BETWEEN") {
        return second == end + 2;
    }
    let has = |at: usize, operators: [&str; 2]| {
        let sign = at.checked_sub(1).and_then(|at| tree.operator(at));
        sign.is_some_and(|(_, sign)| operators.contains(&sign))
    };
    // No other condition stands between them.
    let is_next = !(end + 2..second).any(|at| tree.is_any(at, &["AND", "OR"]));
    is_next && has(begin, [">", ">="]) && has(second, ["<", "<="])
}

/// The parameters of a range.
pub(super) struct RangeEnds {
    first: Parameter,
    second: Parameter,
    again: Parameter,
    /// `None` for values that are no whole numbers.
    width: Option<Parameter>,
}

impl RangeEnds {
    /// The parameter for a part of the range.
    pub(super) fn part(self, part: RangePart) -> Option<Parameter> {
        match part {
            RangePart::First => Some(self.first),
            RangePart::Second(_) => Some(self.second),
            RangePart::Again(_) => Some(self.again),
            RangePart::Width(_) => self.width,
        }
    }
}

/// Makes the ends of ranges in one database.
pub(super) struct Ranges<'a> {
    tables: &'a [TableFacts],
    /// The workload file's name without its end.
    stem: &'a str,
    /// Files with both ends, by table and column.
    files: BTreeMap<(usize, usize), DraftFile>,
}

impl<'a> Ranges<'a> {
    pub(super) fn new(tables: &'a [TableFacts], stem: &'a str) -> Ranges<'a> {
        Ranges { tables, stem, files: BTreeMap::new() }
    }

    /// The files that parameters read.
    pub(super) fn into_files(self) -> impl Iterator<Item = DraftFile> {
        self.files.into_values()
    }

    /// The ends of a range of these values; `first` is the name of the parameter at its first end.
    /// `None` if too few values are known.
    pub(super) fn ends(&mut self, values: &ValueGuess, first: &str) -> Option<RangeEnds> {
        let ValueGuess::Column(table, column) = *values else { return None };
        let (tables, stem) = (self.tables, self.stem);
        let facts = &tables[table];
        let of = name(facts, column);
        match &facts.columns[column].values {
            ColumnValues::Whole(least, most) => whole(facts, &of, (*least, *most), first),
            ColumnValues::Sample(texts) => {
                let pairs = pairs(texts);
                if pairs.is_empty() {
                    return None;
                }
                let count = self.files.len() + 1;
                let file = self.files.entry((table, column)).or_insert_with(|| {
                    let word: String = bare(&facts.name)
                        .chars()
                        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' })
                        .collect();
                    let rows = pairs.iter().map(|pair| csv_line(pair.iter().copied()));
                    let text: String = std::iter::once(csv_line(["first", "second"].into_iter()))
                        .chain(rows)
                        .collect();
                    DraftFile { name: format!("{stem}-ranges-{count}-{word}.csv"), text }
                });
                let file = quoted(&file.name);
                let end = |column: &str| {
                    format!(
                        "{{ kind = \"file\", csv = {file}, column = \"{column}\", \
                         row = \"{first}\" }}"
                    )
                };
                let comment = format!("  # {of}: a range between two values");
                let assumed = "  # the next larger value that was read; assumed".to_owned();
                Some(RangeEnds {
                    first: Parameter::new(end("first"), comment),
                    second: Parameter::new(end("second"), assumed),
                    again: Parameter::new(end("first"), format!("  # {of}: the same value")),
                    width: None,
                })
            }
            ColumnValues::Unknown => None,
        }
    }
}

/// A range of whole numbers that holds about [`ROWS`] rows if values are spread evenly.
fn whole(
    facts: &TableFacts,
    of: &str,
    (least, most): (i64, i64),
    first: &str,
) -> Option<RangeEnds> {
    let span = i128::from(most) - i128::from(least);
    if span < 2 {
        return None;
    }
    let all = i128::from(facts.rows.max(1));
    let width = (span * ROWS / all).min(span / PART_OF_ALL).max(1);
    let rows = ((width + 1) * all / (span + 1)).max(1);
    let to = i128::from(most) - width;
    Some(RangeEnds {
        first: Parameter::new(
            format!("{{ kind = \"uniform\", from = {least}, to = {to} }}"),
            format!("  # {of}: the first end of a range"),
        ),
        second: Parameter::new(
            format!("{{ kind = \"same\", of = \"{first}\", plus = {width} }}"),
            format!("  # its second end: assumed, for about {rows} rows"),
        ),
        again: Parameter::new(
            format!("{{ kind = \"same\", of = \"{first}\" }}"),
            format!("  # {of}: the same value"),
        ),
        width: Some(Parameter::new(
            format!("{{ kind = \"list\", values = [{width}] }}"),
            format!("  # the width of the range: assumed, for about {rows} rows"),
        )),
    })
}

/// Neighbours among these values, the smaller first. Numbers are in the order of numbers, dates and
/// other texts in that of their characters.
fn pairs(texts: &[String]) -> Vec<[&str; 2]> {
    let mut sorted: Vec<&str> = texts.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<f64>().ok();
    if sorted.iter().all(|text| number(text).is_some()) {
        sorted.sort_by(|one, other| {
            number(one).unwrap_or_default().total_cmp(&number(other).unwrap_or_default())
        })
    } else {
        sorted.sort_unstable()
    }
    sorted.dedup();
    sorted.windows(2).filter_map(|pair| <[&str; 2]>::try_from(pair).ok()).collect()
}

// Functions of servers in drafted statements: their results, and what they take beside data.

/// Functions whose result is a value like those of their column.
pub(super) const SAME: &[&str] = &[
    "LOWER", "UPPER", "DATE", "CAST", "COALESCE", "IFNULL", "TRIM", "LTRIM", "RTRIM", "MIN", "MAX",
    "ANY_VALUE", "BINARY", "UNACCENT",
];

/// Functions and the values of their results.
pub(super) const RESULTS: &[(&[&str], &str)] = &[
    (&["COUNT"], "1, 2, 5"),
    (&["LENGTH", "CHAR_LENGTH", "OCTET_LENGTH"], "5, 10, 20"),
    (&["MONTH", "QUARTER", "DAYOFWEEK"], "1, 2, 3, 4"),
    (&["DAY", "DAYOFMONTH", "WEEK", "DAYOFYEAR", "HOUR", "MINUTE"], "1, 5, 12, 20"),
    (&["DATEDIFF", "TIMESTAMPDIFF"], "1, 7, 30"),
];

/// What functions take beside data: names, the place of the argument, values.
pub(super) const ARGUMENTS: &[(&[&str], usize, &str)] = &[
    (&["DATE_TRUNC", "DATE_PART"], 0, "\"month\""),
    (&["TO_CHAR", "TO_DATE", "TO_TIMESTAMP"], 1, "\"YYYY-MM-DD\""),
    (&["DATE_FORMAT", "STR_TO_DATE"], 1, "\"%Y-%m-%d\""),
    (&["ROUND", "TRUNC", "TRUNCATE"], 1, "2"),
    (&["SUBSTRING", "SUBSTR", "MID"], 1, "1"),
    (&["SUBSTRING", "SUBSTR", "MID"], 2, "3"),
    (&["LEFT", "RIGHT"], 1, "3"),
    (&["LPAD", "RPAD"], 1, "10"),
    (&["LPAD", "RPAD"], 2, "\"0\""),
    (&["CONCAT_WS"], 0, "\"-\""),
    (&["CONCAT", "CONCAT_WS"], 1, "\"-\""),
    (&["CONCAT", "CONCAT_WS"], 2, "\"-\""),
    (&["GROUP_CONCAT", "STRING_AGG", "ARRAY_TO_STRING", "STRING_TO_ARRAY"], 1, "\",\""),
    (&["TO_TSVECTOR", "TO_TSQUERY", "PLAINTO_TSQUERY", "WEBSEARCH_TO_TSQUERY"], 0, "\"simple\""),
    (&["TO_TSQUERY", "PLAINTO_TSQUERY", "WEBSEARCH_TO_TSQUERY"], 1, "\"a\""),
    (&["GENERATE_SERIES"], 0, "1"),
    (&["GENERATE_SERIES"], 1, "10"),
    (&["PERCENTILE_CONT", "PERCENTILE_DISC"], 0, "0.5"),
    (&["NTILE"], 0, "4"),
    (&["LAG", "LEAD", "NTH_VALUE", "ADDDATE", "SUBDATE"], 1, "1"),
    (&["SPLIT_PART", "SUBSTRING_INDEX"], 1, "\" \""),
    (&["SPLIT_PART", "SUBSTRING_INDEX"], 2, "1"),
    (&["MOD", "NULLIF"], 1, "10"),
    (&["POWER", "POW"], 1, "2"),
    (&["REGEXP_REPLACE", "REGEXP_LIKE", "REPLACE", "STRPOS", "INSTR"], 1, "\"a\""),
    (&["REGEXP_REPLACE", "REPLACE"], 2, "\"b\""),
    (&["LOCATE", "POSITION"], 0, "\"a\""),
    (&["JSON_EXTRACT", "JSON_VALUE"], 1, "\"$\""),
    (&["ENCODE", "DECODE"], 1, "\"hex\""),
    (&["CONVERT_TZ"], 1, "\"+00:00\""),
    (&["CONVERT_TZ"], 2, "\"+00:00\""),
    (&["MAKE_INTERVAL"], 0, "1"),
    (&["SYSTEM", "BERNOULLI"], 0, "10"),
    (&["INT4RANGE", "INT8RANGE", "NUMRANGE"], 0, "1"),
    (&["INT4RANGE", "INT8RANGE", "NUMRANGE"], 1, "10"),
    (&["DATERANGE", "TSRANGE", "TSTZRANGE"], 0, "\"2024-01-01\""),
    (&["DATERANGE", "TSRANGE", "TSTZRANGE"], 1, "\"2025-01-01\""),
    (&["MAKE_DATE", "MAKE_TIMESTAMP", "MAKE_TIMESTAMPTZ"], 0, "2024"),
    (&["MAKE_DATE", "MAKE_TIMESTAMP", "MAKE_TIMESTAMPTZ", "MAKE_TIME"], 1, "1"),
    (&["MAKE_DATE", "MAKE_TIMESTAMP", "MAKE_TIMESTAMPTZ", "MAKE_TIME"], 2, "1"),
];

// The meaning of values in statements from a server's statistics.

/// The meaning of a value in a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ValueGuess {
    /// A value of a column: indexes of its table and its column.
    Column(usize, usize),
    /// A value that the statement stores in a column: indexes of its table and its column.
    Stored(usize, usize),
    /// A pattern for values of a column.
    Pattern(usize, usize),
    /// An array of values of a column.
    Array(usize, usize),
    /// What is added to or subtracted from a column that the statement changes.
    Step(usize, usize),
    /// By what an UPDATE multiplies a column, or what it appends: the value that changes nothing,
    /// as TOML.
    Neutral(&'static str),
    /// The year of a value of a column.
    Year(usize, usize),
    /// The name of a member of a document in a column.
    Member(usize, usize),
    /// A number of rows.
    Limit,
    /// A number of rows to pass over.
    Offset,
    /// One of these values, as TOML: what the place takes, whatever the data.
    Fixed(&'static str),
    /// Unknown.
    Unknown,
}

/// Values that belong together because one row has them all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowOfValues {
    pub(super) table: usize,
    /// Each column, ascending, with the number of the value.
    pub(super) columns: Vec<(usize, usize)>,
    pub(super) is_stored: bool,
    /// A row must have all of them to be found.
    pub(super) is_equal: bool,
}

/// What a statement does with its values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Meaning {
    /// By number of the value.
    pub(super) guesses: Vec<ValueGuess>,
    /// Values that the statement compares with one row of a table, or stores in one.
    pub(super) rows: Vec<RowOfValues>,
}

/// How a statement compares a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    /// By another operator, or one of a list.
    Other,
    /// As a part of the row of values in this parenthesis.
    Tuple(usize),
    Pattern,
    Array,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::draft::survey::ColumnFacts;

    const ID: ValueGuess = ValueGuess::Column(0, 0);

    fn of(sql: &str) -> TopStatement {
        let is_mysql = sql.contains('?');
        TopStatement { sql: sql.to_owned(), is_mysql, ..TopStatement::default() }
    }

    fn table(rows: u64, values: ColumnValues) -> Vec<TableFacts> {
        let column = ColumnFacts { name: "id".to_owned(), values, ..ColumnFacts::default() };
        vec![TableFacts {
            name: "line".to_owned(),
            rows,
            columns: vec![column],
            ..Default::default()
        }]
    }

    #[test]
    fn both_spellings_of_a_range_are_found() {
        let column = |column| ValueGuess::Column(0, column);
        let check = |sql: &str, guesses: &[ValueGuess], want: &[(usize, usize)]| {
            let found: Vec<(usize, usize)> = ranges(&of(sql), guesses)
                .into_iter()
                .filter(|(_, part)| *part != RangePart::First)
                .map(|(number, part)| (number, part.first(number)))
                .collect();
            assert_eq!(found, want, "{sql}");
        };
        let two = [column(0), column(0)];
        check("SELECT 1 FROM t WHERE a BETWEEN $1 AND $2", &two, &[(1, 0)]);
        check("SELECT 1 FROM t WHERE a between ? and ? LIMIT ?", &two, &[(1, 0)]);
        check("SELECT 1 FROM t WHERE t.a >= $1 AND t.a < $2", &two, &[(1, 0)]);
        check("SELECT 1 FROM t WHERE `a` > ? and `a` <= ?", &two, &[(1, 0)]);
        check("SELECT 1 FROM t WHERE a > ? AND a <> ?", &two, &[]);
        check("SELECT 1 FROM t WHERE a <> ? AND a < ?", &two, &[]);
        check("SELECT 1 FROM t WHERE a = ? AND a = ?", &two, &[]);
        check("SELECT 1 FROM t WHERE a > ? OR a < ?", &two, &[]);
        check("SELECT 1 FROM t WHERE a > ? AND b < ?", &[column(0), column(1)], &[]);
        check("SELECT 1 FROM t WHERE a BETWEEN $1 AND $1", &two, &[]);
        check("SELECT 1 FROM t WHERE a IN (?...) AND a < ?", &two, &[]);
        check("SELECT 1 FROM t WHERE a BETWEEN $1::date AND $2::date", &two, &[(1, 0)]);
        let four = [column(0), column(0), column(1), column(1)];
        let sql = "SELECT 1 FROM t WHERE a BETWEEN ? AND ? AND b BETWEEN ? AND ?";
        check(sql, &four, &[(1, 0), (3, 2)]);
        use RangePart::{Again, First, Width};
        let all = |sql: &str| ranges(&of(sql), &[column(0), column(0), ValueGuess::Unknown]);
        let found = all("SELECT 1 FROM t WHERE a BETWEEN $1 AND $2 + $3");
        assert_eq!(found, [(0, First), (1, Again(0)), (2, Width(0))].into());
        let found = all("SELECT 1 FROM t WHERE a BETWEEN $1 AND $1 + $2");
        assert_eq!(found, [(0, First), (1, Width(0))].into());
    }

    #[test]
    fn a_range_of_numbers_holds_about_as_many_rows_in_large_and_sparse_tables() {
        let check = |rows, values: (i64, i64), first: &str, second: &str| {
            let tables = table(rows, ColumnValues::Whole(values.0, values.1));
            let ends = Ranges::new(&tables, "shop").ends(&ID, "s1_1").unwrap();
            let [one, other] = [ends.first.value, ends.second.value + &ends.second.comment];
            assert_eq!(one, format!("{{ kind = \"uniform\", {first} }}"));
            assert_eq!(other, format!("{{ kind = \"same\", of = \"s1_1\", {second}"));
        };
        let end = |plus: u32, rows: u32| {
            format!("plus = {plus} }}  # its second end: assumed, for about {rows} rows")
        };
        check(100_001, (0, 100_000), "from = 0, to = 99901", &end(99, 100));
        check(10_000, (1, 1_000_001), "from = 1, to = 990001", &end(10_000, 100));
        check(50, (1, 51), "from = 1, to = 46", &end(5, 5));
        check(
            i64::MAX as u64,
            (i64::MIN, i64::MAX),
            &format!("from = {}, to = {}", i64::MIN, i64::MAX - 200),
            &end(200, 100),
        );
        let one = table(9, ColumnValues::Whole(1, 2));
        assert!(Ranges::new(&one, "shop").ends(&ID, "s1_1").is_none());
    }

    #[test]
    fn other_values_form_ranges_with_their_neighbours() {
        let texts = ["10.5", "9", "100", "9"].map(str::to_owned).to_vec();
        assert_eq!(pairs(&texts), [["9", "10.5"], ["10.5", "100"]]);
        let texts = ["2024-02-01", "2023-12-31"].map(str::to_owned).to_vec();
        let tables = table(9, ColumnValues::Sample(texts));
        let mut ranges = Ranges::new(&tables, "shop");
        let ends = ranges.ends(&ID, "s3_1").unwrap();
        let wanted = "{ kind = \"file\", csv = \"shop-ranges-1-line.csv\", column = \"second\", \
                      row = \"s3_1\" }";
        assert_eq!(ends.second.value, wanted);
        let files: Vec<DraftFile> = ranges.into_files().collect();
        assert_eq!(files[0].text, "\"first\",\"second\"\n\"2023-12-31\",\"2024-02-01\"\n");
    }
}
