//! Readers of JSON. Shared, so that the compiler makes the reader of a type once for all crates.

use serde::de::DeserializeOwned;
use serde_json::Deserializer;

/// Reads one value. Ignores fields that its type does not have.
///
/// # Errors
/// Text that is no JSON, or not of this type; with line and column.
pub fn read<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    read_with_unknown(text, &mut |_| ())
}

/// As [`read`]. Calls `unknown` with each field that the type does not have, such as
/// `steps.0.rate`.
///
/// # Errors
/// See [`read`].
pub fn read_with_unknown<T: DeserializeOwned>(
    text: &str,
    unknown: &mut dyn FnMut(String),
) -> serde_json::Result<T> {
    let mut json = Deserializer::from_str(text);
    // A closure of its own type in each caller would be another reader of every field.
    let note: &mut dyn FnMut(serde_ignored::Path<'_>) = &mut |field| unknown(field.to_string());
    let value = serde_ignored::deserialize(&mut json, note)?;
    json.end().map(|()| value)
}

/// As [`read`], but faster, because it does not look for unknown fields. It costs another reader to
/// compile for each type, so use it only for records that a report reads by the thousand.
///
/// # Errors
/// See [`read`].
pub fn read_fast<T: DeserializeOwned>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(text)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Step {
        name: String,
    }

    #[test]
    fn unknown_fields_have_their_path() {
        let text = r#"[{"name": "a"}, {"name": "b", "extra": {"deep": 1}}]"#;
        let mut unknown = Vec::new();
        let steps: Vec<Step> =
            super::read_with_unknown(text, &mut |field| unknown.push(field)).unwrap();
        assert_eq!(steps.len(), 2);
        assert_eq!(unknown, ["1.extra"]);
        assert_eq!(super::read::<Vec<Step>>(text).unwrap(), steps);
    }

    #[test]
    fn text_after_the_value_and_a_wrong_type_are_errors_with_their_place() {
        let error = |text| super::read::<Step>(text).unwrap_err().to_string();
        assert_eq!(error("{\"name\": \"a\"} 1"), "trailing characters at line 1 column 15");
        assert!(error("{\n\"name\": 1}").ends_with("expected a string at line 2 column 9"));
    }
}
