//! Labels of targets. A label becomes the name of a folder, so this rule holds wherever a file
//! brings one: plans, bundles, run records, blocks, reports of other hosts.

use serde::{Deserialize, Deserializer, de};

/// Bytes of the longest label. The name of a run folder has some more.
const BYTES_MOST: usize = 200;

/// The reason for refusing a label; `None` if it is one.
pub fn fault(label: &str) -> Option<&'static str> {
    if label.is_empty() {
        return Some("it is empty");
    }
    if label.len() > BYTES_MOST {
        return Some("it is longer than 200 bytes");
    }
    if label.starts_with('.') {
        return Some("it begins with a dot");
    }
    if label.contains('/') {
        return Some("it has a slash");
    }
    // Marks of direction are of a kind that `escape_debug` escapes, as control characters are.
    let hides = |c: char| !c.is_ascii_graphic() && c != ' ' && c.escape_debug().len() > 1;
    label.contains(hides).then_some("it has a character that is not shown")
}

/// Reads a label. For `#[serde(deserialize_with)]`.
///
/// # Errors
/// [`fault`].
pub fn checked<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let label = String::deserialize(from)?;
    match fault(&label) {
        None => Ok(label),
        Some(why) => {
            let shown: String = label.chars().take(60).flat_map(char::escape_debug).collect();
            Err(de::Error::custom(format!("`{shown}` is not the label of a target: {why}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::RunKey;
    use crate::target::Target;

    #[test]
    fn a_label_is_the_name_of_a_folder() {
        for fine in ["mysql-8.0.33", "before", "a b+c_d", "é", "x..y", "🦀"] {
            assert_eq!(fault(fine), None, "{fine}");
        }
        let long = "x".repeat(201);
        for wrong in ["", ".", "..", ".x", "../x", "a/b", "/etc", "a\0", "a\n", "\u{202e}x", &long]
        {
            assert!(fault(wrong).is_some(), "{wrong:?}");
        }
    }

    #[test]
    fn whoever_reads_a_label_checks_it() {
        let key = |label: &str| {
            let json = serde_json::json!({"block": 1, "attempt": 1, "order": 1, "label": label});
            serde_json::from_value::<RunKey>(json)
        };
        assert!(key("a").is_ok());
        assert!(key("x/../../x").unwrap_err().to_string().contains("has a slash"));
        let target = |label: &str| {
            let source = "compiled_in";
            serde_json::from_value::<Target>(serde_json::json!({"label": label, "dbms": "sqlite",
                "source": source, "config": "default", "storage_engine": null}))
        };
        assert!(target("a").is_ok());
        assert!(target("..").unwrap_err().to_string().contains("begins with a dot"));
    }
}
