//! Positions of keys in TOML text.

use toml::de::{DeTable, DeValue};

use rqps_model::sql_workload::TextPosition;
use rqps_text::toml_reader;

/// The position of the value at a path such as `step.0.event.1.name`. If the value is missing, it
/// is the position of the last part of the path that exists.
pub(super) fn of_path(text: &str, path: &str) -> TextPosition {
    let Ok(table) = DeTable::parse(text) else { return TextPosition::default() };
    let mut offset = 0;
    let root = DeValue::Table(table.get_ref().clone());
    let mut value = &root;
    for word in path.split('.') {
        let next = match value {
            DeValue::Table(table) => {
                let found = table.iter().find(|(key, _)| key.get_ref() == word);
                found.map(|(_, value)| value)
            }
            DeValue::Array(array) => word.parse().ok().and_then(|index: usize| array.get(index)),
            _ => None,
        };
        let Some(next) = next else { break };
        offset = next.span().start;
        value = next.get_ref();
    }
    toml_reader::position(text, offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_the_place_of_its_value() {
        let text = "a = 1\n[[step]]\nname = \"x\"\n[[step]]\n  name = \"é\"\nother.b = 2\n";
        let check = |path: &str, line, column| {
            let found = of_path(text, path);
            assert_eq!((found.line, found.column), (line, column), "{path}");
        };
        check("a", 1, 5);
        check("step.0.name", 3, 8);
        check("step.1.name", 5, 10);
        check("step.1.other.b", 6, 11);
        check("step.1", 4, 1);
        check("step.1.missing", 4, 1);
    }
}
