//! The texts that a user brings: SQL with references to parameters, files of statements, scripts of
//! pgbench, CSV, TOML. They are read here without a server and without a file system.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod admission;
mod changes;
mod csv;
mod lexer;
pub mod mysql_dump;
mod ordering;
pub mod pgbench;
pub mod reading;
mod references;
mod splitter;
pub mod toml_reader;
mod utf8;

pub use admission::{
    Admitted, LoadRules, Token, TokenKind, VersionComment, dropped, is_one_statement, plain_modes,
    tokens,
};
pub use changes::{ChangedRelation, RelationKind, elsewhere, place_query};
pub use csv::{CsvError, CsvPlace, CsvReader, CsvRecord, cuts};
pub use lexer::SqlLexer;
pub use ordering::{KeyedQuery, RowLimit, keyed};
pub use references::{SqlPart, parts, words};
pub use splitter::{SplitError, SqlChunk, SqlSplitter};
pub use utf8::UTF8_HINT;
