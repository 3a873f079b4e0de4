//! The forms of a report.

use std::io::{self, BufWriter, Write};

use super::build::Sections;
use super::build::{self, ReportOptions};
use super::document::Document;
use super::{flat, json, markdown, text};
use rqps_analysis::Comparison;

/// Forms of a report that need only a comparison; [`crate::html::render`] needs more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For reading and for pasting into a bug report.
    Text,
    /// Sections of tab-separated rows; the first has the layout of published files of relative
    /// rates, byte for byte.
    Tsv,
    /// One long table: a row for each metric of each step of each run.
    Csv,
    /// The whole comparison, with a schema version.
    Json,
    /// For a bug report or a comment.
    Markdown,
}

impl Format {
    /// All forms, in the order of help texts.
    pub const ALL: [Format; 5] =
        [Format::Text, Format::Tsv, Format::Csv, Format::Json, Format::Markdown];

    /// Name on the command line.
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

/// Renders the report in one form, with the sections of `own` benchmarks. The text ends with a line
/// end.
pub fn render(comparison: &Comparison, format: Format, own: &[&Sections]) -> String {
    let mut bytes = Vec::new();
    // Writing to memory cannot fail, and every form consists of text and plain values.
    let _ = write(comparison, format, own, &mut bytes);
    String::from_utf8(bytes).unwrap_or_default()
}

/// Streams the report, because forms with rows for each step of each run are longer than a large
/// comparison itself.
///
/// # Errors
/// Writing to `out` fails.
pub fn write(
    comparison: &Comparison,
    format: Format,
    own: &[&Sections],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    match format {
        Format::Text => {
            let document = build::document(comparison, &ReportOptions::default(), own);
            out.write_all(text::render(&document, None).as_bytes())?;
        }
        Format::Tsv => out.write_all(flat::tsv(comparison).as_bytes())?,
        Format::Csv => flat::write_csv(comparison, &mut out)?,
        Format::Json => json::write(comparison, &mut out)?,
        Format::Markdown => {
            let document = build::bug_report(comparison, own);
            out.write_all(markdown::render(&document).as_bytes())?;
        }
    }
    out.flush()
}

/// The most characters of a comment on GitHub.
const COMMENT_MOST: usize = 65_536;

/// Renders the tables of a report as Markdown that fits a comment.
pub fn brief_markdown(comparison: &Comparison, own: &[&Sections]) -> String {
    let document = build::document(comparison, &ReportOptions { efficiency: false }, own);
    markdown::render_tables(&document, COMMENT_MOST)
}

/// Renders a document as Markdown.
pub fn render_markdown(document: &Document) -> String {
    markdown::render(document)
}

/// Renders a document as text for a terminal with so many columns, or for a file.
pub fn render_text(document: &Document, columns: Option<usize>) -> String {
    text::render(document, columns)
}
