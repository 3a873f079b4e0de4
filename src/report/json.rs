//! The comparison as JSON (docs/results.md, "Reports").

use serde::Serialize;

use crate::analyze::Comparison;

/// Version of the JSON report. It grows when a field changes its meaning or goes away; fields may
/// be added without.
pub const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Envelope<'a> {
    schema: u32,
    comparison: &'a Comparison,
}

/// Pretty JSON with a final line end.
pub(super) fn render(comparison: &Comparison) -> String {
    let envelope = Envelope { schema: SCHEMA, comparison };
    // Text keys and plain values only, so this cannot fail; a caller would have no way out.
    let mut json = serde_json::to_string_pretty(&envelope).unwrap_or_default();
    json.push('\n');
    json
}
