//! Blocking clients for the Postgres and MySQL protocols, made for measuring: a statement costs one
//! write and one read (on a unix socket with a poll between them, which is cheaper: socket.rs says
//! why), rows are counted but not decoded, and nothing is allocated per statement once buffers have
//! grown.

mod der;
pub mod dsn;
mod error;
mod mylogin;
pub mod mysql;
mod option_file;
pub mod password;
pub mod postgres;
mod results;
mod rows;
mod rsa;
mod socket;
mod statement;
mod tls;

pub use error::WireError;
pub use results::{LastRow, LastRows};
pub use rows::{RowTexts, TextRows};
pub use statement::{Prepared, Reply, Value, ValueType};
