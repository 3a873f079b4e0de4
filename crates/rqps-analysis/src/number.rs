//! Numbers in JSON, which has no infinity.

use serde::Serializer;

/// Writes an infinite number as the text `inf`.
pub(super) fn number_or_inf<S: Serializer>(number: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if number.is_finite() {
        serializer.serialize_f64(*number)
    } else {
        serializer.serialize_str("inf")
    }
}
