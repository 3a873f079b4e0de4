//! Rules that Cargo and clippy do not know: about documents, words, SQL, and who may print, remove
//! or start programs.
//!
//! Each rule is a function from texts to what is wrong with them. One test holds it against the
//! whole tree, another shows on a bad sample that it can fail.

#![allow(clippy::unwrap_used)] // A test file throughout; clippy only sees the marked functions.

mod glossary;
mod pages;
mod permissions;
mod phrases;
mod quoted;
mod references;
mod sources;
mod sql_parts;
mod texts;
