//! The texts that a user brings: SQL with references to parameters, files of statements, scripts of
//! pgbench, CSV, TOML. They are read here without a server and without a file system.

mod changes;
mod csv;
mod lexer;
pub mod mysql_dump;
pub mod pgbench;
mod references;
mod splitter;
pub mod toml_reader;

pub use changes::{ChangedRelation, RelationKind, changes};
pub use csv::{CsvError, CsvPlace, CsvReader, CsvRecord, cuts};
pub use lexer::SqlLexer;
pub use references::{SqlPart, parts, words};
pub use splitter::{SplitError, SqlChunk, SqlSplitter};

/// The way out of a text that is not UTF-8, after its error.
pub const UTF8_HINT: &str = "\nhint: convert the file, for instance by `iconv -f latin1 -t utf8`";
