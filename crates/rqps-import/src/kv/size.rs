//! Reads sizes as db_bench and its reports print them.

use crate::number::number;

/// A size such as `439GB` in GiB: RocksDB's units are powers of two.
pub(crate) fn gib(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number_text, unit) = text.split_at(end);
    let factor = match unit.trim() {
        "KB" => 1.0 / (1024.0 * 1024.0),
        "MB" => 1.0 / 1024.0,
        "GB" => 1.0,
        "TB" => 1024.0,
        "B" | "" => 1.0 / (1024.0 * 1024.0 * 1024.0),
        _ => return None,
    };
    number(number_text).map(|number| number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_gib() {
        assert_eq!(
            (gib("439GB"), gib("2TB"), gib("512MB")),
            (Some(439.0), Some(2048.0), Some(0.5))
        );
        assert_eq!((gib("x"), gib("1XB")), (None, None));
    }
}
