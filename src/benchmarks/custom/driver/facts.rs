//! What a database holds, as far as a draft of a workload needs it.

/// What was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DatabaseSurvey {
    /// The largest first.
    pub(super) tables: Vec<TableFacts>,
    /// Those that took most time first.
    pub(super) statements: Vec<TopStatement>,
    /// What could not be found.
    pub(super) notes: Vec<String>,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TableFacts {
    /// As SQL names it.
    pub(super) name: String,
    pub(super) rows: u64,
    pub(super) bytes: Option<u64>,
    pub(super) columns: Vec<ColumnFacts>,
    /// Numbers of the columns of the primary key in its order.
    pub(super) key: Vec<usize>,
}

/// A column.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ColumnFacts {
    /// As SQL names it.
    pub(super) name: String,
    pub(super) type_name: String,
    /// What it holds; unknown until somebody asks for it.
    pub(super) values: ColumnValues,
}

/// What a column holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum ColumnValues {
    #[default]
    Unknown,
    /// Whole numbers from the first to the second.
    Whole(i64, i64),
    /// Some of its values.
    Sample(Vec<String>),
}

/// A statement of the database's own statistics.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct TopStatement {
    /// With `$1` or `?` for values.
    pub(super) sql: String,
    pub(super) calls: u64,
    pub(super) mean_ms: f64,
    /// Types of its values, where the server tells.
    pub(super) types: Vec<String>,
}

impl ColumnFacts {
    pub(super) fn is_whole(&self) -> bool {
        let name = self.type_name.to_lowercase();
        ["int", "serial"].iter().any(|part| name.contains(part)) && !name.contains("interval")
    }
}
