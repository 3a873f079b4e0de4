//! Rows in words, and rows that are alike.

use super::finding::Sides;
use rqps_model::row_digest::{RowsRecord, SampleRow, is_near};

/// Most characters of a row.
const ROW: usize = 160;

/// `(1, abc, NULL)`.
pub(super) fn row(values: &[Option<String>]) -> String {
    let values: Vec<&str> = values.iter().map(|it| it.as_deref().unwrap_or("NULL")).collect();
    let text = values.join(", ");
    if text.chars().count() > ROW {
        format!("({}…)", text.chars().take(ROW).collect::<String>())
    } else {
        format!("({text})")
    }
}

/// `1 row`, `2 rows`.
pub(super) fn count(rows: u64) -> String {
    if rows == 1 { "1 row".to_owned() } else { format!("{rows} rows") }
}

/// True if only digits of numbers differ.
pub(super) fn are_near(sides: &Sides<'_, RowsRecord>) -> bool {
    let (one, other) = (sides.base, sides.target);
    if one.without_floats != other.without_floats || !one.floats.is_near(&other.floats) {
        return false;
    }
    if !(one.is_whole() && other.is_whole()) {
        return true;
    }
    match_up(one, other, is_near)
}

/// True if only values differ that each load makes for itself: its time, random identifiers.
pub(super) fn are_excused(sides: &Sides<'_, RowsRecord>) -> bool {
    let (one, other) = (sides.base, sides.target);
    let is_excused = |a: &str, b: &str| {
        is_near(a, b) || [begins_with_date, is_uuid].iter().any(|is_of| is_of(a) && is_of(b))
    };
    !(one.is_whole() && other.is_whole()) || match_up(one, other, is_excused)
}

/// True if each of few rows has one on the other side with values that are the same or alike.
fn match_up(one: &RowsRecord, other: &RowsRecord, alike: impl Fn(&str, &str) -> bool) -> bool {
    let matches = |a: &SampleRow, b: &SampleRow| {
        let mut pairs = a.values.iter().zip(&b.values);
        pairs.all(|(a, b)| match (a, b) {
            (Some(a), Some(b)) => a == b || alike(a, b),
            (a, b) => a == b,
        })
    };
    one.sample.iter().all(|a| other.sample.iter().any(|b| matches(a, b)))
}

/// Numbers of rows, and the first row that only one of both has.
pub(super) fn difference(sides: &Sides<'_, RowsRecord>) -> String {
    let (one, other) = (sides.base, sides.target);
    let first = |of: &RowsRecord, against: &RowsRecord| {
        // Beyond its last checksum, the other sample tells nothing.
        let end = against.sample.last().map(|row| row.checksum.as_str());
        let known = |row: &&SampleRow| {
            let is_known =
                against.is_whole() || end.is_some_and(|end| row.checksum.as_str() <= end);
            is_known && !against.sample.iter().any(|other| other.checksum == row.checksum)
        };
        of.sample.iter().find(known).map(|found| row(&found.values))
    };
    let said = |label: &str, of: &RowsRecord, against: &RowsRecord| {
        let only = first(of, against).map(|row| format!(", {row} only there"));
        format!("{} on {label}{}", count(of.rows), only.unwrap_or_default())
    };
    format!("{}; {}", said(sides.labels[0], one, other), said(sides.labels[1], other, one))
}

/// `2026-01-31…`.
pub(super) fn begins_with_date(text: &str) -> bool {
    let is_date = |(place, byte): (usize, &u8)| match place {
        4 | 7 => *byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    text.len() >= 10 && text.as_bytes()[..10].iter().enumerate().all(is_date)
}

/// `123e4567-e89b-42d3-a456-426614174000`.
pub(super) fn is_uuid(text: &str) -> bool {
    let is_of_uuid = |(place, byte): (usize, u8)| match place {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.bytes().enumerate().all(is_of_uuid)
}
