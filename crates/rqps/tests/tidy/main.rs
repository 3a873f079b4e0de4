//! Rules of the house that the compiler does not know: layers, lengths, names, who may print.
//!
//! Each rule is a function from texts to what is wrong with them. One test holds it against the
//! whole tree, another shows on a bad sample that it can fail. What breaks a rule today stands in
//! `exceptions.rs`, and nowhere else.

#![allow(clippy::unwrap_used)] // A test file throughout; clippy only sees the marked functions.

mod cycles;
mod disk;
mod exceptions;
mod faces;
mod glossary;
mod graph;
mod headers;
mod homes;
mod imports;
mod limits;
mod pages;
mod permissions;
mod phrases;
mod quoted;
mod references;
mod rows;
mod sources;
mod sql_parts;
mod texts;
mod type_names;

/// Rules that have exceptions.
const RULES: [&str; 9] = [
    "cycles",
    "faces",
    "glossary",
    "homes",
    "imports",
    "limits",
    "phrases",
    "references",
    "type names",
];
