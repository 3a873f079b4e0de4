//! Blocking clients for the Postgres and MySQL protocols, made for measuring. A statement costs one
//! write and one read; on a unix socket also a poll, which is cheaper (see socket.rs). Clients
//! count rows without decoding them, and allocate nothing per statement once their buffers have
//! grown.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod cancel;
mod der;
pub mod dsn;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod mylogin;
pub mod mysql;
mod option_file;
pub mod password;
pub mod postgres;
mod reach;
mod results;
mod rows;
mod rsa;
mod socket;
mod statement;
mod tls;

pub use error::WireError;
pub use reach::stop_with;
pub use results::{LastRow, LastRows};
pub use rows::{RowTexts, TextRows};
pub use statement::{Prepared, Reply, Value, ValueType};
