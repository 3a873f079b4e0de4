//! Text made safe for the places of an HTML file that it goes to.

/// Text between tags.
pub(super) fn text(raw: &str) -> String {
    raw.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Text within double quotes.
pub(super) fn attribute(raw: &str) -> String {
    text(raw).replace('"', "&quot;")
}

/// A name as an `id`: what is safe in an address stays, everything else becomes `-`.
pub(super) fn id(raw: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_.=".contains(c);
    raw.chars().map(|c| if safe(c) { c } else { '-' }).collect()
}

/// JSON inside a script element: nothing in it may look like the end of the script.
pub(super) fn in_script(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// A path as a relative address: everything but slashes and unreserved characters is encoded.
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
        assert_eq!(text("a<b> & \"c\""), "a&lt;b&gt; &amp; \"c\"");
        assert_eq!(attribute("a\"b'<"), "a&quot;b'&lt;");
        assert_eq!(id("read-only.pre_range=100 (x)"), "read-only.pre_range=100--x-");
        assert_eq!(in_script(r#"{"a":"</script>"}"#), r#"{"a":"\u003c/script>"}"#);
        assert_eq!(address("../a b/c#d%é"), "../a%20b/c%23d%25%C3%A9");
    }
}
