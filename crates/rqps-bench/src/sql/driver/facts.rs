//! The facts about a database that a draft of a workload needs.

use std::collections::BTreeMap;

use super::names::bare;
use rqps_model::dialect::Dialect;

/// Asks a database; the rows are text.
pub type AskDatabase<'a> = dyn FnMut(&str) -> Result<Vec<Vec<Option<String>>>, String> + 'a;

/// The facts about a database.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DatabaseSurvey {
    /// Tables, the largest first.
    pub(super) tables: Vec<TableFacts>,
    /// Statements, that with most total time first.
    pub(super) statements: Vec<TopStatement>,
    /// Rows of some columns of a table, from which a statement takes several values together: by
    /// table and columns, the latter ascending.
    pub(super) rows: BTreeMap<(usize, Vec<usize>), Vec<Vec<String>>>,
    /// Names of members of documents, by table and column.
    pub(super) members: BTreeMap<(usize, usize), Vec<String>>,
    /// Facts that could not be read.
    pub(super) notes: Vec<String>,
    /// Statements that are left out, and why.
    pub(super) left_out: Vec<String>,
}

impl DatabaseSurvey {
    /// Statements that are left out, each with its reason.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }
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
    /// Most characters, or most digits of a number, if there is a limit.
    pub(super) longest: Option<u32>,
    /// The server computes it: no statement stores a value there.
    pub(super) is_computed: bool,
    /// The server numbers rows by it, and takes other numbers only if the statement says so.
    pub(super) is_identity: bool,
    /// Its values; unknown until [`super::survey`] reads them.
    pub(super) values: ColumnValues,
    /// True if every whole number from the smallest to the largest value is there.
    pub(super) is_dense: bool,
    /// True if less than half of these numbers are there, or if it has more texts than were read: a
    /// value that must be found is drawn from rows.
    pub(super) is_sparse: bool,
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
    /// Values are `?`, and literals and names have MySQL's quotes.
    pub(super) is_mysql: bool,
    /// The literals that stood in the places of values, if the server keeps them.
    pub(super) seen: Vec<String>,
    /// The number of values in each place, if the server keeps them.
    pub(super) counts: Vec<u32>,
    pub(super) calls: u64,
    pub(super) mean_ms: f64,
    /// A field in it is assumed, because the server does not keep it.
    pub(super) is_assumed: bool,
    /// Types of its values, if the server tells them.
    pub(super) types: Vec<String>,
}

impl TopStatement {
    pub(super) fn dialect(&self) -> Dialect {
        if self.is_mysql { Dialect::Mysql } else { Dialect::Postgres }
    }

    /// True if it inserts rows.
    pub(super) fn is_insert(&self) -> bool {
        ["INSERT", "REPLACE"].contains(&self.first_word().as_str())
    }

    /// True if it inserts, changes or deletes rows, by its first word.
    pub(super) fn is_write(&self) -> bool {
        self.is_insert() || ["UPDATE", "DELETE"].contains(&self.first_word().as_str())
    }

    /// True if it changes rows.
    pub(super) fn is_update(&self) -> bool {
        ["UPDATE", "WITH"].contains(&self.first_word().as_str())
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

    /// True for a value that is sent and stored as its text.
    pub(super) fn has_text(&self) -> bool {
        let name = self.type_name.to_lowercase();
        let is_binary = ["blob", "binary", "bit", "geometry", "point", "polygon", "linestring"];
        !is_binary.iter().any(|part| name.contains(part)) && name != "bytea"
    }

    /// About how often one may be added to its values.
    pub(super) fn room_to_count(&self) -> i64 {
        match (&self.values, self.is_whole(), self.longest) {
            (ColumnValues::Whole(_, most), ..) => self.most_of_type().saturating_sub(*most),
            (_, true, _) => self.most_of_type(),
            (_, false, Some(digits)) => 10_i64.saturating_pow(digits),
            _ => i64::MAX,
        }
    }

    /// About how many values the column can still get.
    pub(super) fn new_values(&self) -> i64 {
        match self.values {
            ColumnValues::Whole(_, most) => self.most_of_type().saturating_sub(most),
            _ if self.is_whole() => self.most_of_type(),
            _ if self.is_text() => 36_i64.saturating_pow(self.longest.unwrap_or(9).min(9)),
            _ => i64::MAX,
        }
    }

    /// The largest whole number of its type.
    pub(super) fn most_of_type(&self) -> i64 {
        let name = self.type_name.to_lowercase();
        let bits = match name.split(' ').next().unwrap_or_default() {
            "tinyint" => 8,
            "smallint" | "int2" | "smallserial" => 16,
            "mediumint" => 24,
            "bigint" | "int8" | "bigserial" => 64,
            _ => 32,
        };
        // Of 64 bits without a sign, half is enough.
        if name.contains("unsigned") && bits < 64 {
            (1 << bits) - 1
        } else {
            i64::MAX >> (64 - bits)
        }
    }
}
