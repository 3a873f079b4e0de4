//! The facts about a database that a draft of a workload needs.

use super::names::bare;

/// Asks a database; the rows are text.
pub type AskDatabase<'a> = dyn FnMut(&str) -> Result<Vec<Vec<Option<String>>>, String> + 'a;

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
    /// Indexes of the columns of each unique index, that of the primary key included.
    pub(super) unique: Vec<Vec<usize>>,
    pub(super) references: Vec<ForeignKey>,
}

/// A reference from a table to another, or to itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ForeignKey {
    /// Indexes of the columns that reference.
    pub(super) columns: Vec<usize>,
    /// Index of the referenced table.
    pub(super) table: usize,
    /// Indexes of the referenced columns, in the order of `columns`.
    pub(super) referenced: Vec<usize>,
    /// Some rows of the referenced columns; empty until [`super::survey`] reads them.
    pub(super) sample: Vec<Vec<String>>,
}

/// A column.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ColumnFacts {
    /// The name in SQL.
    pub(super) name: String,
    pub(super) type_name: String,
    pub(super) is_nullable: bool,
    /// Most characters, if there is a limit.
    pub(super) longest: Option<u32>,
    /// Its values; unknown until [`super::survey`] reads them.
    pub(super) values: ColumnValues,
    /// True if every whole number from the smallest to the largest value is there.
    pub(super) is_dense: bool,
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

impl TopStatement {
    /// True if it inserts rows.
    pub(super) fn is_insert(&self) -> bool {
        ["INSERT", "REPLACE"].contains(&self.first_word().as_str())
    }

    /// True if it inserts, changes or deletes rows, by its first word.
    pub(super) fn is_write(&self) -> bool {
        self.is_insert() || ["UPDATE", "DELETE"].contains(&self.first_word().as_str())
    }

    fn first_word(&self) -> String {
        let mut words = self.sql.split(|letter: char| !letter.is_ascii_alphabetic());
        words.find(|word| !word.is_empty()).unwrap_or_default().to_uppercase()
    }
}

impl TableFacts {
    /// Index of the column of this name.
    pub(super) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| bare(&column.name).eq_ignore_ascii_case(name))
    }
}

impl ColumnFacts {
    pub(super) fn is_whole(&self) -> bool {
        let name = self.type_name.to_lowercase();
        ["int", "serial"].iter().any(|part| name.contains(part)) && !name.contains("interval")
    }

    pub(super) fn is_text(&self) -> bool {
        let name = self.type_name.to_lowercase();
        ["char", "text"].iter().any(|part| name.contains(part))
    }

    /// The largest whole number of its type.
    pub(super) fn most_of_type(&self) -> i64 {
        match self.type_name.to_lowercase().as_str() {
            "tinyint" => i64::from(i8::MAX),
            "smallint" => i64::from(i16::MAX),
            "mediumint" => (1 << 23) - 1,
            "bigint" => i64::MAX,
            _ => i64::from(i32::MAX),
        }
    }
}
