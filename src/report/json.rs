//! The comparison as JSON (docs/results.md, "Report formats").

use std::io;

use serde::Serialize;

use crate::analyze::Comparison;

/// Version of the JSON report. It increases when a field changes its meaning or disappears, not
/// when a field is added.
pub const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Envelope<'a> {
    schema: u32,
    comparison: Content<'a>,
}

/// A comparison with its baseline under the field's word, too: `base` stays for older readers.
#[derive(Serialize)]
struct Content<'a> {
    baseline: &'a str,
    #[serde(flatten)]
    comparison: &'a Comparison,
}

/// Pretty JSON with a final line end.
pub(super) fn write(comparison: &Comparison, out: &mut impl io::Write) -> io::Result<()> {
    let comparison = Content { baseline: &comparison.base, comparison };
    let envelope = Envelope { schema: SCHEMA, comparison };
    serde_json::to_writer_pretty(&mut *out, &envelope)?;
    writeln!(out)
}
