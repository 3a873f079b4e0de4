//! Reads TOML, with the place of what is wrong in words.

use std::ops::Range;

use serde::de::DeserializeOwned;
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue, Deserializer, Error as Fault};

use rqps_model::escape;
use rqps_model::sql_workload::TextPosition;

/// Characters of the longest line that an error shows.
const SHOWN_MAX: usize = 200;

/// A text that is no TOML, or not of the type that is wanted.
#[derive(Debug, Error)]
#[error("{}{message}\n{:>4} | {line}", .at.prefix(), .at.line)]
pub struct TomlError {
    /// The problem.
    message: String,
    /// The value that is wrong.
    at: TextPosition,
    /// The line with it.
    line: String,
}

impl TomlError {
    fn new(text: &str, at: Option<Range<usize>>, message: &str) -> TomlError {
        let at = position(text, at.map_or(0, |span| span.start));
        let line = text.lines().nth(at.line as usize - 1).unwrap_or_default();
        let line = line.chars().take(SHOWN_MAX).collect();
        TomlError { message: escape::line(&in_words(message)).into_owned(), at, line }
    }
}

/// One value.
///
/// # Errors
/// See [`TomlError`]; a number that is infinite or not a number is an error, too.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, TomlError> {
    let fault = |error: Fault| TomlError::new(text, error.span(), error.message());
    let mut root = DeTable::parse(text).map_err(fault)?;
    for (_, value) in root.get_mut().iter_mut() {
        plain(value).map_err(|(span, message)| TomlError::new(text, Some(span), &message))?;
    }
    T::deserialize(Deserializer::from(root)).map_err(fault)
}

/// Makes texts of dates, and refuses numbers that cannot be computed with.
fn plain(value: &mut Spanned<DeValue<'_>>) -> Result<(), (Range<usize>, String)> {
    let span = value.span();
    match value.get_mut() {
        DeValue::Table(table) => table.iter_mut().try_for_each(|(_, value)| plain(value)),
        DeValue::Array(array) => array.iter_mut().try_for_each(plain),
        DeValue::Float(float) if !float.as_str().parse().is_ok_and(f64::is_finite) => {
            Err((span, format!("{float} is not a finite number")))
        }
        other => {
            if let DeValue::Datetime(date) = other {
                *other = DeValue::String(DeString::Owned(date.to_string()));
            }
            Ok(())
        }
    }
}

/// The message of a reader in the words of TOML.
fn in_words(message: &str) -> String {
    if let Some(key) = message.strip_prefix("unknown field ") {
        return format!("unknown key {key}");
    }
    let Some((problem, name)) = message.rsplit_once("expected ") else {
        return message.to_owned();
    };
    let wanted = match name {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number, 0 or more",
        "i64" => "a whole number",
        "f64" => "a number",
        "a boolean" => "true or false",
        _ => return message.to_owned(),
    };
    format!("{problem}expected {wanted}")
}

/// The position of a byte of a text.
pub fn position(text: &str, offset: usize) -> TextPosition {
    let before = &text[..text.floor_char_boundary(offset)];
    let line = before.matches('\n').count() as u32 + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() as u32 + 1;
    TextPosition { line, column }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Step {
        name: String,
        #[serde(default)]
        weight: f64,
        #[serde(default)]
        mode: Option<Mode>,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        Read,
        Write(u8),
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct File {
        rows: u64,
        #[serde(default)]
        step: Vec<Step>,
    }

    const TEXT: &str = "rows = 1_000 # many\n\n[[step]]\nname = 'é \"x\"'\nweight = 2.5e-1\n\n\
                        [[step]]\n  name = \"b\"\n  weight = 3\n  mode = { write = 0x0F }\n";

    fn parsed(text: &str) -> Result<File, String> {
        read(text).map_err(|error| error.to_string())
    }

    #[test]
    fn values_are_those_of_the_text() {
        let step = |name: &str, weight, mode| Step { name: name.to_owned(), weight, mode };
        let expected = File {
            rows: 1000,
            step: vec![step("é \"x\"", 0.25, None), step("b", 3.0, Some(Mode::Write(15)))],
        };
        assert_eq!(parsed(TEXT), Ok(expected));
    }

    #[test]
    fn an_error_has_the_place_and_the_line() {
        let check = |from: &str, to: &str, expected: &str, line: &str| {
            assert!(TEXT.contains(from), "{from}");
            let error = parsed(&TEXT.replacen(from, to, 1)).unwrap_err();
            assert_eq!(error.split_once('\n'), Some((expected, line)));
        };
        let wrong = "line 1, column 8: invalid type: string \"many\", expected a whole number, \
                     0 or more";
        check("= 1_000", "= \"many\"", wrong, "   1 | rows = \"many\" # many");
        let missing = "line 7, column 1: missing field `name`";
        check("  name = \"b\"\n", "", missing, "   7 | [[step]]");
        let variant = "line 10, column 12: unknown variant `erase`, expected `read` or `write`";
        check("write =", "erase =", variant, "  10 |   mode = { erase = 0x0F }");
        let value = "line 10, column 20: invalid value: integer `300`, expected a whole number \
                     from 0 to 255";
        check("0x0F", "300", value, "  10 |   mode = { write = 300 }");
        let infinite = "line 5, column 10: inf is not a finite number";
        check("2.5e-1", "inf", infinite, "   5 | weight = inf");
        let broken = parsed("rows = 1\nstep = [").unwrap_err();
        assert!(broken.starts_with("line 2, column 9: "), "{broken}");
    }

    #[test]
    fn unknown_keys_have_their_place() {
        let error = parsed(&TEXT.replacen("weight", "wieght", 1)).unwrap_err();
        let key =
            "line 5, column 1: unknown key `wieght`, expected one of `name`, `weight`, `mode`";
        assert!(error.starts_with(key), "{error}");
    }

    proptest! {
        #[test]
        fn any_table_reads_as_the_library_reads_it(
            texts in proptest::collection::btree_map(".{0,8}", ".{0,12}", 0..5),
            whole in any::<i64>(),
            part in any::<f64>().prop_filter("finite", |number| number.is_finite()),
        ) {
            #[derive(Debug, serde::Serialize, Deserialize, PartialEq)]
            struct All {
                whole: i64,
                part: f64,
                list: Vec<(String, i64)>,
                texts: BTreeMap<String, String>,
            }
            let list = texts.keys().map(|key| (key.clone(), whole)).collect();
            let all = All { whole, part, list, texts };
            let text = toml::to_string(&all).unwrap();
            prop_assert_eq!(read::<All>(&text).unwrap(), all);
        }
    }
}
