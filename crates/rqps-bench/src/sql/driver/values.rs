//! The meaning of values in statements from a server's statistics.

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
