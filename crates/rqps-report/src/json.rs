//! The comparison as JSON (docs/results.md, "Report formats").

use std::io;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use rqps_analysis::Comparison;
use rqps_model::escape;

/// Version of the JSON report. It increases when a field changes its meaning or disappears, not
/// when a field is added.
pub const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Envelope<'a> {
    schema: u32,
    comparison: Content<'a>,
}

/// A comparison with its baseline under both keys: `baseline`, and `base` for older readers.
#[derive(Serialize)]
pub(super) struct Content<'a> {
    baseline: &'a str,
    #[serde(flatten)]
    comparison: &'a Comparison,
}

impl Content<'_> {
    pub(super) fn of(comparison: &Comparison) -> Content<'_> {
        Content { baseline: &comparison.baseline, comparison }
    }
}

/// Pretty JSON with a final line end.
pub(super) fn write(comparison: &Comparison, out: &mut impl io::Write) -> io::Result<()> {
    let envelope = Envelope { schema: SCHEMA, comparison: Content::of(comparison) };
    let text = serde_json::to_string_pretty(&envelope)?;
    writeln!(out, "{}", escape::json(&text))
}

/// Pretty JSON of any other form, with its version and a final line end:
/// `{"schema": 1, "NAME": VALUE}`.
///
/// # Errors
/// A number that JSON cannot write.
pub(super) fn versioned<T: Serialize + ?Sized>(
    schema: u32,
    name: &'static str,
    value: &T,
) -> serde_json::Result<String> {
    let text = serde_json::to_string_pretty(&Versioned { schema, name, value })?;
    Ok(format!("{}\n", escape::json(&text)))
}

/// `{"schema": 1, "NAME": VALUE}`.
pub(super) struct Versioned<'a, T: ?Sized> {
    pub schema: u32,
    pub name: &'static str,
    pub value: &'a T,
}

impl<T: Serialize + ?Sized> Serialize for Versioned<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("schema", &self.schema)?;
        map.serialize_entry(self.name, self.value)?;
        map.end()
    }
}
