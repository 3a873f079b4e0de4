//! A small language for the shape of a statement: SQL with `#` for the number of the table and
//! `<…>` for values.
//!
//! `<id>`, `<k>`: random in 1..=rows. `<m>`, `<m+100>`: a random start, and that far behind it.
//! `<10 ids>`, `<10 ks>`, `<100 hot>`: as many, with commas. `<one>`, `<zipf>`, `<deleted>`: the
//! first id, a skewed one, the one deleted before. `<c>`, `<pad>`: texts of these columns.

use crate::support::log::Seen;

/// The meaning of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// Random id.
    Id,
    /// Random value of column k.
    Key,
    /// Start of a range.
    Start,
    /// So far behind the start.
    End(i64),
    /// One of the adjacent ids in the middle of the table.
    Hot,
    /// The id 1.
    One,
    /// A random id of which low ones are more frequent.
    Zipf,
    /// The id that the statement before deleted.
    Deleted,
    /// Text of column c.
    C,
    /// Text of column pad.
    Pad,
}

/// A value as it was given.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    /// Its meaning.
    pub(crate) value: Value,
    /// Its text without quotes.
    pub(crate) text: String,
    /// The number, if it is one.
    pub(crate) number: Option<i64>,
}

impl Given {
    /// True if all are placeholders still.
    pub(crate) fn are_open(given: &[Given]) -> bool {
        given.iter().all(|one| one.text == "?")
    }
}

#[derive(Debug)]
enum Part {
    Text(String),
    Table,
    Value(Value),
}

/// The shape of a statement.
#[derive(Debug)]
pub(crate) struct Shape {
    parts: Vec<Part>,
}

impl Shape {
    /// Reads the small language.
    pub(crate) fn parse(text: &str) -> Shape {
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            // `<` followed by a blank is a comparison.
            let mark = |(at, c): (usize, char)| {
                let comparison = rest[at + 1..].starts_with(' ');
                (c == '#' || (c == '<' && !comparison)).then_some(at)
            };
            let at = rest.char_indices().find_map(mark).unwrap_or(rest.len());
            if at > 0 {
                parts.push(Part::Text(rest[..at].to_owned()));
                rest = &rest[at..];
            } else if let Some(after) = rest.strip_prefix('#') {
                parts.push(Part::Table);
                rest = after;
            } else {
                let (word, after) = rest[1..].split_once('>').expect("a closing mark");
                Shape::push_values(&mut parts, word);
                rest = after;
            }
        }
        Shape { parts }
    }

    fn push_values(parts: &mut Vec<Part>, word: &str) {
        let (count, word) = match word.split_once(' ') {
            Some((count, word)) => (count.parse().expect("a count"), word),
            None => (1, word),
        };
        let value = match word {
            "id" | "ids" => Value::Id,
            "k" | "ks" => Value::Key,
            "m" => Value::Start,
            "hot" => Value::Hot,
            "one" => Value::One,
            "zipf" => Value::Zipf,
            "deleted" => Value::Deleted,
            "c" => Value::C,
            "pad" => Value::Pad,
            other => {
                let span = other.strip_prefix("m+").expect("a known word");
                Value::End(span.parse().expect("a span"))
            }
        };
        for index in 0..count {
            if index > 0 {
                parts.push(Part::Text(", ".to_owned()));
            }
            parts.push(Part::Value(value));
        }
    }

    /// True for a DELETE.
    pub(crate) fn is_delete(&self) -> bool {
        matches!(self.parts.first(), Some(Part::Text(text)) if text.starts_with("DELETE "))
    }

    /// The table and the values of a statement of this shape; `None` if it has another one.
    pub(crate) fn fit(&self, seen: &Seen) -> Option<(u32, Vec<Given>)> {
        let mut rest = seen.sql.as_str();
        let mut table = None;
        let mut given = Vec::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => rest = rest.strip_prefix(text.as_str())?,
                Part::Table => {
                    let digits = digits(rest);
                    table = Some(rest[..digits].parse().ok()?);
                    rest = &rest[digits..];
                }
                Part::Value(value) => {
                    let (text, after) = literal(rest, given.len(), &seen.parameters)?;
                    rest = after;
                    let number = text.parse().ok();
                    given.push(Given { value: *value, text: text.to_owned(), number });
                }
            }
        }
        // Every value that was sent has its place.
        let all = seen.parameters.is_empty() || seen.parameters.len() == given.len();
        (rest.is_empty() && all).then_some((table?, given))
    }
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// One value at the beginning of `text`: `$n`, `?`, an integer or a quoted text without escapes.
fn literal<'a>(
    text: &'a str,
    place: usize,
    parameters: &'a [String],
) -> Option<(&'a str, &'a str)> {
    if let Some(after) = text.strip_prefix('$') {
        let length = digits(after);
        let number: usize = after[..length].parse().ok()?;
        // Placeholders count up in the order of the statement.
        let own = number == place + 1;
        return own
            .then(|| parameters.get(place))
            .flatten()
            .map(|value| (value.as_str(), &after[length..]));
    }
    if let Some(after) = text.strip_prefix('?') {
        return Some(("?", after));
    }
    if let Some(after) = text.strip_prefix('\'') {
        return after.split_once('\'');
    }
    match digits(text) {
        0 => None,
        length => Some(text.split_at(length)),
    }
}
