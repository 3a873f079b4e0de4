//! Blocking client of the Postgres protocol, version 3. A prepared statement is Bind, Execute and
//! Sync in one write; the rows of its reply are counted by their headers.

mod client;
mod incoming;
mod login;
mod message;

pub use client::{PostgresClient, TextCall};
