//! Blocking client of the MySQL protocol, version 10, as MySQL 5.5 to 9 and MariaDB speak it. A
//! prepared statement is one COM_STMT_EXECUTE in one write; the rows of its binary result set are
//! counted by their headers.

mod binary_row;
mod client;
mod login;
mod packet;

pub use client::{LOCAL_REFUSED, MysqlClient};
