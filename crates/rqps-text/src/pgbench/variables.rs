//! Names of variables, numbered, and references to them in SQL.

use std::collections::HashMap;

/// The variables that the scripts of a step name, each by its number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VariableNames {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl VariableNames {
    /// The number of a variable, which is new if nobody named it before.
    pub fn number(&mut self, name: &str) -> u32 {
        let known = self.find(name);
        known.unwrap_or_else(|| {
            let number = self.names.len() as u32;
            self.names.push(name.to_owned());
            self.numbers.insert(name.to_owned(), number);
            number
        })
    }

    /// The number of a variable, if somebody named it.
    pub fn find(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// All names in the order of their numbers.
    pub fn all(&self) -> &[String] {
        &self.names
    }
}

fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

/// True if a variable may have the name.
pub fn is_variable_name(name: &str) -> bool {
    reference(name.as_bytes()) == Some(name.len())
}

/// Length of the name that a text begins with.
fn reference(text: &[u8]) -> Option<usize> {
    begins_name(*text.first()?).then(|| {
        text.iter().take_while(|byte| begins_name(**byte) || byte.is_ascii_digit()).count()
    })
}

/// The first reference `:name` at `from` or later: where its colon is, and where its name ends.
/// Quotes and comments count for nothing, as in pgbench, and `::` is no reference.
pub(super) fn next_reference(text: &str, from: usize) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut at = from;
    loop {
        at += bytes[at..].iter().position(|byte| *byte == b':')?;
        if let Some(length) = reference(&bytes[at + 1..]) {
            return Some((at, at + 1 + length));
        }
        at += bytes[at..].iter().take_while(|byte| **byte == b':').count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_found_in_quotes_too_but_not_after_a_second_colon() {
        let names = |text: &str| {
            let (mut found, mut from) = (Vec::new(), 0);
            while let Some((at, end)) = next_reference(text, from) {
                found.push(text[at + 1..end].to_owned());
                from = end;
            }
            found
        };
        assert_eq!(names("a = :x AND ':y' || :z1::text /* :w */"), ["x", "y", "z1", "w"]);
        assert_eq!(names(":1 : a ::b :::c"), [""; 0]);
        assert_eq!(names(":a:b"), ["a", "b"]);
    }

    #[test]
    fn names_are_letters_and_digits_but_not_first() {
        assert!(is_variable_name("a_1") && is_variable_name("_") && is_variable_name("ä"));
        assert!(!is_variable_name("1a") && !is_variable_name("") && !is_variable_name("a-b"));
    }
}
