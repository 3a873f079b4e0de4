//! Blocking client for version 10 of the MySQL protocol, as in MySQL 5.5 to 9 and MariaDB. A
//! prepared statement costs one COM_STMT_EXECUTE in one write; the client counts the rows of its
//! binary result by their headers.

mod client;
mod login;
mod packet;

pub use client::{LOCAL_REFUSED, MysqlClient};
