//! From a comparison to a document, and from there to text; to tables and JSON for programs.
//! No clock, no network, no environment: the same comparison gives the same bytes.

mod blocks;
mod build;
pub mod chart;
pub mod document;
mod evenness;
pub mod export;
mod facts;
mod figures;
mod flat;
pub mod gate;
pub mod heat;
pub mod html;
mod insert;
mod json;
mod kv;
mod markdown;
mod page;
mod settings;
mod tables;
mod text;
pub mod timeline;
mod vector;
mod verdicts;

use crate::analyze::Comparison;

pub use build::{Options, document};
pub use document::Document;
pub use flat::quoted;
pub use json::SCHEMA;

/// Forms of a report that need nothing but a comparison; [`html::render`] needs more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For reading and for pasting into a bug report.
    Text,
    /// Sections of tab-separated rows; the first is the field's file of relative rates, byte for
    /// byte in its layout.
    Tsv,
    /// One long table: a row for each metric of each step of each run.
    Csv,
    /// The whole comparison, with a schema version.
    Json,
    /// For a bug report or a comment.
    Markdown,
}

impl Format {
    /// All, in the order of help texts.
    pub const ALL: [Format; 5] =
        [Format::Text, Format::Tsv, Format::Csv, Format::Json, Format::Markdown];

    /// The word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Text => "text",
            Format::Tsv => "tsv",
            Format::Csv => "csv",
            Format::Json => "json",
            Format::Markdown => "markdown",
        }
    }
}

/// The whole report in one form. It ends with a line end.
pub fn render(comparison: &Comparison, format: Format) -> String {
    match format {
        Format::Text => text::render(&document(comparison, &Options::default())),
        Format::Tsv => flat::tsv(comparison),
        Format::Csv => flat::csv(comparison),
        Format::Json => json::render(comparison),
        Format::Markdown => markdown::render(&build::bug_report(comparison)),
    }
}

/// A document as text.
pub fn render_text(document: &Document) -> String {
    text::render(document)
}
