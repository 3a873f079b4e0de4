//! Statement templates: cut once, so that filling one in copies bytes and allocates nothing.

use crate::rows::{TIME_LEN, append_number};
use rqps_model::dialect::Dialect;
use rqps_model::sql_name::Identifier;

/// A text with numbered places.
pub(crate) struct Template {
    /// The text before each place, and the place's number.
    parts: Vec<(Vec<u8>, usize)>,
    last: Vec<u8>,
}

impl Template {
    /// Cuts `sql` at each of `places`; a place's number is its index in this list.
    pub(crate) fn new(sql: &str, places: &[&str]) -> Template {
        let mut parts = Vec::new();
        let mut rest = sql;
        let next = |rest: &str| {
            let found = places
                .iter()
                .enumerate()
                .filter_map(|(number, place)| rest.find(place).map(|at| (at, number, place.len())));
            found.min()
        };
        while let Some((at, number, length)) = next(rest) {
            parts.push((rest.as_bytes()[..at].to_vec(), number));
            rest = &rest[at + length..];
        }
        Template { parts, last: rest.as_bytes().to_vec() }
    }

    /// Appends the text; `put` appends the content of a place.
    #[inline]
    pub(crate) fn spell(&self, out: &mut Vec<u8>, mut put: impl FnMut(&mut Vec<u8>, usize)) {
        for (text, place) in &self.parts {
            out.extend_from_slice(text);
            put(out, *place);
        }
        out.extend_from_slice(&self.last);
    }
}

/// SQL with the table's number and the storage engine filled in.
pub(crate) fn for_table(sql: &str, table: u32, storage_engine: Option<&str>) -> String {
    let engine = match storage_engine {
        Some("myrocks" | "rocksdb") => "rocksdb",
        Some(other) => other,
        None => "InnoDB",
    };
    let engine = Identifier::plain(Dialect::Mysql, engine).to_string();
    sql.replace("{table}", &table.to_string()).replace("{engine}", &engine)
}

/// Date and time of batches: the wall clock in whole seconds, UTC, formatted once a second.
pub(crate) struct WallTime {
    /// Unix seconds at zero of the driver's clock.
    epoch: i64,
    spelled: i64,
    text: [u8; TIME_LEN],
}

impl WallTime {
    pub(crate) fn new(epoch: i64) -> WallTime {
        WallTime { epoch, spelled: i64::MIN, text: [b'0'; TIME_LEN] }
    }

    /// The time at `now_ns` on the driver's clock.
    #[inline]
    pub(crate) fn at(&mut self, now_ns: u64) -> &[u8; TIME_LEN] {
        let second = self.epoch + (now_ns / 1_000_000_000) as i64;
        if second != self.spelled {
            self.spelled = second;
            self.text = spell_time(second);
        }
        &self.text
    }
}

/// Unix seconds as `2026-01-31 08:05:09`.
fn spell_time(seconds: i64) -> [u8; TIME_LEN] {
    let time = jiff::Timestamp::from_second(seconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let text = time.strftime("%Y-%m-%d %H:%M:%S").to_string();
    let mut bytes = *b"1970-01-01 00:00:00";
    if text.len() == TIME_LEN {
        bytes.copy_from_slice(text.as_bytes());
    }
    bytes
}

/// Appends a number that may be negative.
pub(crate) fn append_signed(out: &mut Vec<u8>, number: i64) {
    if number < 0 {
        out.push(b'-');
    }
    append_number(out, number.unsigned_abs());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_in_the_order_of_the_text() {
        let template = Template::new("DELETE {key} LIMIT {rows} {key}.", &["{rows}", "{key}"]);
        let mut out = Vec::new();
        template.spell(&mut out, |out, place| append_signed(out, [50, -7][place]));
        assert_eq!(out, b"DELETE -7 LIMIT 50 -7.");
        let mut plain = Vec::new();
        Template::new("SELECT 1", &["{key}"]).spell(&mut plain, |_, _| {});
        assert_eq!(plain, b"SELECT 1");
    }

    #[test]
    fn time_moves_with_the_clock() {
        let mut time = WallTime::new(1_769_846_709);
        assert_eq!(time.at(999_999_999), b"2026-01-31 08:05:09");
        assert_eq!(time.at(1_000_000_000), b"2026-01-31 08:05:10");
    }

    #[test]
    fn the_storage_engine_has_its_name() {
        assert_eq!(for_table("pi{table} {engine}", 3, None), "pi3 InnoDB");
        assert_eq!(for_table("pi{table} {engine}", 3, Some("myrocks")), "pi3 rocksdb");
    }
}
