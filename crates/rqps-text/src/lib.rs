//! The texts that a user brings: SQL with references to parameters, files of statements, scripts of
//! pgbench, CSV, TOML. They are read here without a server and without a file system.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod admission;
pub mod behind;
mod c_source;
mod csv;
mod lexer;
mod ordering;
pub mod pgbench;
pub mod reading;
mod splitter;
pub mod toml_reader;
pub mod trace;

pub use admission::{
    Admitted, LoadRules, Token, TokenKind, VersionComment, dropped, is_one_statement, plain_modes,
    tokens,
};
pub use c_source::without_comments;
pub use csv::UTF8_HINT;
pub use csv::{CsvError, CsvPlace, CsvReader, CsvRecord, cuts};
pub use lexer::SqlLexer;
pub use lexer::{SqlPart, parts, words};
pub use ordering::{KeyedQuery, RowLimit, keyed};
pub use reading::{ChangedRelation, RelationKind, elsewhere, place_query};
pub use splitter::{SplitError, SqlChunk, SqlSplitter};
