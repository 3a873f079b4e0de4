//! The work of a step of a vector search.

use serde::{Deserialize, Serialize};

use super::shape::{DataSource, Iterative, Variant};
use crate::benchmark::Prerequisite;

/// The work of a step's clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VectorWork {
    /// The vectors.
    pub data: DataSource,
    /// Rows of a generated set.
    pub rows: u64,
    /// Neighbours asked for.
    pub k: u32,
    /// The form of a vector in pgvector's index.
    pub variant: Variant,
    /// The operation.
    #[serde(rename = "act")]
    pub operation: VectorOperation,
}

impl VectorWork {
    /// True for what is measured on a server that was just started.
    pub fn is_cold(&self) -> bool {
        matches!(&self.operation, VectorOperation::Search(search) if search.cold)
    }

    /// True if clients ask one query after the other, of what is in caches as far as it fits.
    pub fn is_warm_search(&self) -> bool {
        matches!(&self.operation, VectorOperation::Search(_) | VectorOperation::Payload(_))
            && !self.is_cold()
    }
}

/// The operation of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VectorOperation {
    /// Create the table and fill it, in a random order.
    Load {
        /// Rows left out, which are inserted later.
        spare: u64,
    },
    /// Build the index; another one is dropped first.
    Build(Index),
    /// Ask.
    Search(Box<Search>),
    /// Send the queries' vectors with a statement that does nothing with them.
    Payload(Box<Search>),
    /// Find the smallest ef with this recall, then ask with it.
    Target {
        /// The recall, 0 to 1.
        recall: f64,
        /// All else; its ef is where the search begins.
        search: Box<Search>,
    },
    /// Ask, while another client inserts the rows that were spared.
    Mixed {
        /// Rows per second.
        insert_rate: f64,
        /// The queries.
        search: Box<Search>,
    },
    /// Delete rows.
    Delete {
        /// Share of all rows that are gone afterwards, per cent.
        percent: f64,
    },
    /// VACUUM, OPTIMIZE.
    Clean,
    /// Let two transactions change and ask, and hold what they see against what they may.
    Isolate {
        /// The level of both.
        level: IsolationLevel,
        /// The queries.
        search: Box<Search>,
    },
    /// Make an empty table with the index, and insert until it takes no more, the set is in, or
    /// the time is over.
    Fill {
        /// The index.
        index: Index,
        /// Clients that insert.
        clients: u32,
        /// Rows of a transaction.
        commit_rows: u32,
    },
}

/// Levels of isolation, as SQL names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IsolationLevel {
    /// READ UNCOMMITTED.
    ReadUncommitted,
    /// READ COMMITTED.
    ReadCommitted,
    /// REPEATABLE READ.
    RepeatableRead,
    /// SERIALIZABLE.
    Serializable,
}

impl IsolationLevel {
    /// From the weakest to the strictest.
    pub const ALL: [IsolationLevel; 4] = [
        IsolationLevel::ReadUncommitted,
        IsolationLevel::ReadCommitted,
        IsolationLevel::RepeatableRead,
        IsolationLevel::Serializable,
    ];

    /// The words of SQL in names of steps: with hyphens.
    pub fn name(self) -> &'static str {
        match self {
            IsolationLevel::ReadUncommitted => "read-uncommitted",
            IsolationLevel::ReadCommitted => "read-committed",
            IsolationLevel::RepeatableRead => "repeatable-read",
            IsolationLevel::Serializable => "serializable",
        }
    }

    /// True if a whole transaction sees the data committed when it began to read.
    pub fn keeps_snapshot(self) -> bool {
        matches!(self, IsolationLevel::RepeatableRead | IsolationLevel::Serializable)
    }
}

impl VectorOperation {
    /// The prerequisite that it makes for later steps.
    pub fn makes(&self) -> Option<Prerequisite> {
        match self {
            // Filling makes table and index anew.
            VectorOperation::Load { .. } | VectorOperation::Fill { .. } => {
                Some(Prerequisite::Table)
            }
            VectorOperation::Build(_) => Some(Prerequisite::Index),
            _ => None,
        }
    }

    /// The queries, if it asks any with a width that is known before.
    pub fn search(&self) -> Option<&Search> {
        match self {
            VectorOperation::Search(search)
            | VectorOperation::Payload(search)
            | VectorOperation::Mixed { search, .. }
            | VectorOperation::Isolate { search, .. } => Some(search),
            _ => None,
        }
    }

    /// The prerequisite that it needs.
    pub fn needs(&self) -> Option<Prerequisite> {
        match self {
            VectorOperation::Load { .. } | VectorOperation::Fill { .. } => None,
            VectorOperation::Build(_) | VectorOperation::Delete { .. } | VectorOperation::Clean => {
                Some(Prerequisite::Table)
            }
            VectorOperation::Search(_)
            | VectorOperation::Payload(_)
            | VectorOperation::Target { .. }
            | VectorOperation::Mixed { .. }
            | VectorOperation::Isolate { .. } => Some(Prerequisite::Index),
        }
    }
}

/// An index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Index {
    /// Links of a node.
    pub m: u32,
    /// Width of the search while building; `None` where the DBMS has no such option.
    pub ef_construction: Option<u32>,
    /// Workers beside the leader, where the DBMS builds in parallel.
    pub workers: u32,
}

/// Queries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// Width of the search.
    pub ef: u32,
    /// Clients.
    pub clients: u32,
    /// The filter of rows.
    pub filter: Filter,
    /// The rows in the table.
    pub rows: Present,
    /// hnsw.iterative_scan.
    pub iterative: Iterative,
    /// True if the first query and the first pass over all queries are measured on their own, after
    /// a restart.
    pub cold: bool,
}

/// A filter of the rows that a query may return.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    /// All.
    None,
    /// A share of the rows, chosen without regard to where they lie.
    Random {
        /// The share, per cent.
        percent: f64,
    },
    /// The rows of the query's own class: about a tenth.
    OwnClass,
    /// The rows of a class that the query is not of.
    OtherClass,
}

/// The rows in the table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Present {
    /// All rows.
    All,
    /// All but the last.
    AllBut {
        /// This number of rows.
        spare: u64,
    },
    /// The rows that were not deleted.
    Kept {
        /// Share that was deleted, per cent.
        deleted: f64,
    },
    /// The rows that a query of the table finds.
    Found,
}
