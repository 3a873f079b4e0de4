//! The plans of statements on two versions of a DBMS, without a row of data: both versions plan on
//! empty servers of rqps's own, which have the schema, the sizes and the statistics of the source.
//! So a difference is never one of method. Where the source itself explains a statement, its plan
//! says whether the method is faithful.
//!
//! Nothing is executed here but EXPLAIN. What is read from a source is hostile: it is bounded where
//! it is read, quoted where it becomes SQL, and escaped where it is shown.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod compare;
mod log;
pub mod mysql;
pub mod postgres;
mod record;
mod rehearsal;
mod report;
pub mod sqlite;

pub use self::compare::{Difference, PlanClass, compare, cost_ratio};
pub use self::log::StatementLog;
pub use self::record::record;
pub use self::rehearsal::{Condition, PlanNode, Statement, each_chunk, statements_of};
pub use self::rehearsal::{
    Judged, PlanError, Planner, PrivatePlace, Rehearsal, Report, SourceFiles, Tell, judge,
};
pub use self::report::{cut, framed, html, json, text};
