//! Escapes text for places that only HTML files have.

use rqps_model::escape;

/// Converts a name to an `id`: characters that are unsafe in an address become `-`.
pub(crate) fn id(raw: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_.=".contains(c);
    raw.chars().map(|c| if safe(c) { c } else { '-' }).collect()
}

/// Escapes JSON inside a script element, so that nothing in it looks like the end of the script.
pub(super) fn in_script(json: &str) -> String {
    escape::json(json).replace('<', "\\u003c")
}

/// Encodes a path as a relative address: everything except slashes and unreserved characters.
pub(super) fn address(path: &str) -> String {
    let mut address = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                address.push(char::from(byte));
            }
            _ => address.push_str(&format!("%{byte:02X}")),
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out_of_its_place() {
        assert_eq!(id("read-only.pre_range=100 (x)"), "read-only.pre_range=100--x-");
        assert_eq!(in_script(r#"{"a":"</script>"}"#), r#"{"a":"\u003c/script>"}"#);
        assert_eq!(address("../a b/c#d%é"), "../a%20b/c%23d%25%C3%A9");
    }
}
