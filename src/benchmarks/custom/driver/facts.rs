//! The facts about a database that a draft of a workload needs.

/// The facts about a database.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DatabaseSurvey {
    /// Tables, the largest first.
    pub(super) tables: Vec<TableFacts>,
    /// Statements, that with most total time first.
    pub(super) statements: Vec<TopStatement>,
    /// Facts that could not be read.
    pub(super) notes: Vec<String>,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TableFacts {
    /// The name in SQL.
    pub(super) name: String,
    pub(super) rows: u64,
    pub(super) bytes: Option<u64>,
    pub(super) columns: Vec<ColumnFacts>,
    /// Indexes of the columns of the primary key, in its order.
    pub(super) key: Vec<usize>,
}

/// A column.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ColumnFacts {
    /// The name in SQL.
    pub(super) name: String,
    pub(super) type_name: String,
    /// Its values; unknown until [`super::survey`] reads them.
    pub(super) values: ColumnValues,
}

/// The values of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum ColumnValues {
    #[default]
    Unknown,
    /// Whole numbers from the first to the second.
    Whole(i64, i64),
    /// Some of its values.
    Sample(Vec<String>),
}

/// A statement from the database's statistics.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TopStatement {
    /// The text, with `$1` or `?` for values.
    pub(super) sql: String,
    pub(super) calls: u64,
    pub(super) mean_ms: f64,
    /// Types of its values, if the server tells them.
    pub(super) types: Vec<String>,
}

impl ColumnFacts {
    pub(super) fn is_whole(&self) -> bool {
        let name = self.type_name.to_lowercase();
        ["int", "serial"].iter().any(|part| name.contains(part)) && !name.contains("interval")
    }
}
