//! Reads TOML by the readers of JSON, with the places of the text.
//!
//! The text is written again as JSON, one token per line, so that the line of an error names the
//! token. A type whose reader exists for JSON then needs no second one for TOML, which is several
//! times the size: its values can be dates and can know their places.

use std::ops::Range;

use serde::de::DeserializeOwned;
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use rqps_model::json;
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
        TomlError { message: in_words(message), at, line }
    }
}

/// One value; the path of each key that its type does not have goes to `unknown`, as in
/// `step.0.rate`.
///
/// # Errors
/// See [`TomlError`]; a number that is infinite or not a number is an error, too.
pub fn read<T: DeserializeOwned>(
    text: &str,
    unknown: &mut dyn FnMut(String),
) -> Result<T, TomlError> {
    let fault = |error: toml::de::Error| TomlError::new(text, error.span(), error.message());
    let table = DeTable::parse(text).map_err(fault)?;
    let mut tokens = Tokens::default();
    tokens
        .table(table.get_ref(), table.span())
        .map_err(|(span, message)| TomlError::new(text, Some(span), &message))?;
    json::read_with_unknown(&tokens.json, unknown).map_err(|error| {
        let message = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let span = tokens.spans.get(error.line().saturating_sub(1)).cloned();
        TomlError::new(text, span, message.strip_suffix(&place).unwrap_or(&message))
    })
}

/// The message of a reader with a description in place of the program's name of a number type.
fn in_words(message: &str) -> String {
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

/// A value in the text, and what is wrong with it.
type Fault = (Range<usize>, String);

/// JSON with one token per line, and where each line comes from.
#[derive(Default)]
struct Tokens {
    json: String,
    spans: Vec<Range<usize>>,
}

impl Tokens {
    fn push(&mut self, token: &str, span: &Range<usize>) {
        self.json.push_str(token);
        self.json.push('\n');
        self.spans.push(span.clone());
    }

    fn table(&mut self, table: &DeTable<'_>, span: Range<usize>) -> Result<(), Fault> {
        self.push("{", &span);
        for (index, (key, value)) in table.iter().enumerate() {
            if index > 0 {
                self.push(",", &key.span());
            }
            self.push(&quoted(key.get_ref()), &key.span());
            self.push(":", &key.span());
            self.value(value)?;
        }
        self.push("}", &span);
        Ok(())
    }

    fn value(&mut self, value: &Spanned<DeValue<'_>>) -> Result<(), Fault> {
        let span = value.span();
        let token = match value.get_ref() {
            DeValue::Table(table) => return self.table(table, span),
            DeValue::Array(array) => {
                self.push("[", &span);
                for (index, item) in array.iter().enumerate() {
                    if index > 0 {
                        self.push(",", &item.span());
                    }
                    self.value(item)?;
                }
                "]".to_owned()
            }
            DeValue::String(text) => quoted(text),
            DeValue::Boolean(truth) => truth.to_string(),
            DeValue::Datetime(date) => quoted(&date.to_string()),
            DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
                .map_err(|_| {
                    (span.clone(), "the integer is not within -2^63 and 2^63 - 1".to_owned())
                })?
                .to_string(),
            DeValue::Float(float) => match float.as_str().parse::<f64>() {
                Ok(number) if number.is_finite() => format!("{number:?}"),
                _ => return Err((span, format!("{} is not a finite number", float.as_str()))),
            },
        };
        self.push(&token, &span);
        Ok(())
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, Deserialize, PartialEq)]
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
        read(text, &mut |_| ()).map_err(|error| error.to_string())
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
        let long = "line 1, column 8: the integer is not within -2^63 and 2^63 - 1";
        check("1_000", "9223372036854775808", long, "   1 | rows = 9223372036854775808 # many");
        let broken = parsed("rows = 1\nstep = [").unwrap_err();
        assert!(broken.starts_with("line 2, column 9: "), "{broken}");
    }

    #[test]
    fn unknown_keys_have_their_path() {
        let mut unknown = Vec::new();
        let text = TEXT.replace("weight", "wieght");
        let file: File = read(&text, &mut |key| unknown.push(key)).unwrap();
        assert_eq!(file.step.len(), 2);
        assert_eq!(unknown, ["step.0.wieght", "step.1.wieght"]);
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
            prop_assert_eq!(read::<All>(&text, &mut |_| ()).unwrap(), all);
        }
    }
}
