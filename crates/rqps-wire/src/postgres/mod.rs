//! Blocking client for version 3 of the Postgres protocol. A prepared statement costs Bind, Execute
//! and Sync in one write; the client counts the rows of its reply by their headers.

mod client;
mod login;
mod message;

pub use client::{PostgresClient, TextCall};
