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
pub mod mysql;
pub mod password;
pub mod postgres;
mod rows;
mod rsa;
mod socket;
mod tls;

pub use cancel::stop_with;
pub use error::WireError;
pub use rows::{LastRow, LastRows};
pub use rows::{Prepared, Reply, Value, ValueType};
pub use rows::{RowTexts, TextRows};
