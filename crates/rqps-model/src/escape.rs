//! Escapes text from outside (files, servers, names on this host) for the place that it goes to:
//! one function for each medium. What shows nothing, or moves what stands beside it, becomes
//! visible everywhere: `\u{1b}`.

use std::borrow::Cow;
use std::fmt::Write;

/// True for characters that a reader does not see, or that change how others look: controls (C0,
/// DEL, C1), marks of direction, characters without a width, separators of lines, and tags.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// Replaces each character for which `is_special` by what `write` appends.
fn replaced(
    text: &str,
    is_special: impl Fn(char) -> bool,
    mut write: impl FnMut(&mut String, char),
) -> Cow<'_, str> {
    let Some(first) = text.find(&is_special) else { return Cow::Borrowed(text) };
    let mut escaped = String::with_capacity(text.len() + 16);
    escaped.push_str(&text[..first]);
    for c in text[first..].chars() {
        if is_special(c) { write(&mut escaped, c) } else { escaped.push(c) }
    }
    Cow::Owned(escaped)
}

/// Appends the visible form of a hidden character.
fn show(text: &mut String, c: char) {
    match c {
        '\n' | '\r' | '\t' => text.extend(c.escape_default()),
        // `escape_default` would leave some as they are.
        _ => text.extend(c.escape_unicode()),
    }
}

/// A part of a line: a name, a message of a server. Nothing in it can begin another line. Also for
/// comments of TOML.
pub fn line(text: &str) -> Cow<'_, str> {
    without_commands(replaced(text, is_hidden, show))
}

/// The words of a reader, which quotes what it reads.
pub fn fault(error: impl std::fmt::Display) -> String {
    line(&error.to_string()).into_owned()
}

/// Text of a program that was given secrets, with `***` in their place. Shorter ones than three
/// bytes are in every text.
pub fn masked<'a>(text: &'a str, secrets: &[String]) -> Cow<'a, str> {
    let mut found: Vec<&String> =
        secrets.iter().filter(|secret| secret.len() > 2 && text.contains(*secret)).collect();
    // One may be a part of another.
    found.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    found
        .into_iter()
        .fold(Cow::Borrowed(text), |text, secret| Cow::Owned(text.replace(secret.as_str(), "***")))
}

/// Text for a terminal or a log: lines and tabs stay, and no line is a command to the service that
/// keeps the log (`::error::` and `##[error]` of GitHub, `##vso[` of Azure).
pub fn terminal(text: &str) -> Cow<'_, str> {
    let shown = without_commands(replaced(text, |c| is_hidden(c) && !"\n\t".contains(c), show));
    if !shown.lines().any(is_command) {
        return shown;
    }
    let mut escaped = String::with_capacity(shown.len() + 16);
    for line in shown.split_inclusive('\n') {
        let rest = line.trim_start();
        escaped.push_str(&line[..line.len() - rest.len()]);
        escaped.push_str(if is_command(rest) { "\\" } else { "" });
        escaped.push_str(rest);
    }
    Cow::Owned(escaped)
}

/// True for a line that GitHub would take for a workflow command.
fn is_command(line: &str) -> bool {
    line.trim_start().strip_prefix("::").is_some_and(|rest| rest.contains("::"))
}

/// Puts a backslash into each `##word[`, which is a command anywhere in a line.
fn without_commands(text: Cow<'_, str>) -> Cow<'_, str> {
    if !text.contains("##") {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    let mut rest = &*text;
    while let Some(at) = rest.find("##") {
        let (before, after) = rest.split_at(at + 2);
        escaped.push_str(before);
        if after.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).starts_with('[') {
            escaped.push('\\');
        }
        rest = after;
    }
    escaped.push_str(rest);
    Cow::Owned(escaped)
}

/// JSON that was written already: hidden characters can only be in its texts, where they keep their
/// value as `\u202e`.
pub fn json(json: &str) -> Cow<'_, str> {
    let shown = replaced(
        json,
        |c| is_hidden(c) && !"\n\r\t".contains(c),
        |text, c| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        },
    );
    if shown.contains("##") { Cow::Owned(shown.replace("##", "#\\u0023")) } else { shown }
}

/// A word of a command as a shell takes it.
pub fn shell(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        Cow::Borrowed(word)
    } else {
        Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
    }
}

/// A basic string of TOML, on one line: hidden characters keep their value as `\u202e`.
pub fn toml(text: &str) -> String {
    let is_special = |c| is_hidden(c) || c == '"' || c == '\\';
    let inside = replaced(text, is_special, |text, c| match c {
        '"' | '\\' | '\n' | '\r' | '\t' => text.extend(c.escape_default()),
        _ => {
            let _ = write!(text, "\\U{:08x}", u32::from(c));
        }
    });
    format!("\"{inside}\"")
}

/// The message of a workflow command of GitHub, as its toolkit escapes it.
pub fn github_message(text: &str) -> String {
    let text = replaced(text, |c| is_hidden(c) && !"\n\r\t".contains(c), show);
    without_commands(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property of a workflow command of GitHub, as its toolkit escapes it.
pub fn github_property(text: &str) -> String {
    github_message(text).replace(':', "%3A").replace(',', "%2C")
}

/// Text within a line of Markdown, or within a cell of its tables: no markup, no link, no image, no
/// HTML. Underscores inside words need no escape, and names are full of them.
pub fn markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 16);
    let mut before = None;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let next = rest.clone().next();
        let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        match c {
            '\n' | '\t' | '\r' => escaped.push(' '),
            c if is_hidden(c) => {
                // As in `show`, with a backslash that stays one.
                escaped.push('\\');
                show(&mut escaped, c);
            }
            '\\' | '`' | '*' | '<' | '>' | '[' | ']' | '#' | '|' | '~' => {
                escaped.push('\\');
                escaped.push(c);
            }
            '_' if !(is_word(before) && is_word(next)) && (before, next) != (None, None) => {
                escaped.push_str("\\_");
            }
            // An image, an entity, mathematics.
            '!' if next == Some('[') => escaped.push_str("\\!"),
            '&' if next.is_some_and(|c| c == '#' || c.is_alphanumeric()) => {
                escaped.push_str("\\&");
            }
            '$' => escaped.push_str("\\$"),
            // Somebody who would be told.
            '@' if !is_word(before) && is_word(next) => escaped.push_str("@<!-- -->"),
            '@' => escaped.push('@'),
            // An address becomes a link by itself.
            ':' if rest.as_str().starts_with("//") && ends_with_web(&escaped) => {
                escaped.push_str("\\:");
            }
            '.' if ends_with_word(&escaped, "www") => escaped.push_str("\\."),
            c => escaped.push(c),
        }
        before = Some(c);
    }
    escaped
}

/// A paragraph of Markdown: as [`markdown`], and its first character begins no list and no rule.
pub fn markdown_paragraph(text: &str) -> String {
    let escaped = markdown(text.trim_start());
    let digits = escaped.bytes().take_while(u8::is_ascii_digit).count();
    match escaped.as_bytes().get(digits) {
        Some(b'.' | b')') if digits > 0 => {
            format!("{}\\{}", &escaped[..digits], &escaped[digits..])
        }
        Some(b'-' | b'+' | b'=') if digits == 0 => format!("\\{escaped}"),
        _ => escaped,
    }
}

fn ends_with_web(text: &str) -> bool {
    ["http", "https", "ftp"].iter().any(|scheme| ends_with_word(text, scheme))
}

/// True if the last word of a text is `word`, in any case.
fn ends_with_word(text: &str, word: &str) -> bool {
    let Some(at) = text.len().checked_sub(word.len()) else { return false };
    let is_word = text.get(at..).is_some_and(|end| end.eq_ignore_ascii_case(word));
    is_word && !text[..at].ends_with(|c: char| c.is_alphanumeric())
}

/// Text between tags of HTML.
pub fn html(text: &str) -> String {
    let text = replaced(text, |c| is_hidden(c) && !"\n\t".contains(c), show);
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    if !text.contains("::") && !text.contains("##") {
        return text;
    }
    // A report on standard output may be a part of a log, which takes commands at the begin of a line.
    let lines = text.split('\n').map(|line| match line.trim_start().strip_prefix("::") {
        Some(rest) => format!("&#58;:{rest}"),
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n").replace("##", "&#35;#")
}

/// Text within double quotes of HTML or XML.
pub fn attribute(text: &str) -> String {
    html(text).replace('"', "&quot;")
}

/// Text or an attribute of XML on one line; without characters that XML forbids.
pub fn xml(text: &str) -> String {
    let is_forbidden = |c| matches!(c, '\u{fffe}' | '\u{ffff}');
    attribute(&without_commands(replaced(text, |c| is_hidden(c) || is_forbidden(c), show)))
}

/// A field of a CSV file (RFC 4180), on one line. With `guarded`, a text that a spreadsheet would
/// take for a formula begins with an apostrophe; a number is none.
pub fn csv(text: &str, guarded: bool) -> Cow<'_, str> {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r'])
        && text.parse::<f64>().map_or(true, |number| number.is_nan());
    let text = line(text);
    let is_guarded = is_command(&text) || (guarded && is_formula);
    let text = if is_guarded { Cow::Owned(format!("'{text}")) } else { text };
    if text.contains([',', '"']) {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        text
    }
}

/// A field of a tab-separated file: it has no way to write a tab or the end of a line.
pub fn tsv(text: &str) -> Cow<'_, str> {
    let text = line(text);
    if is_command(&text) { Cow::Owned(format!("\\{text}")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A title of a terminal, a cleared line, an override of direction, a new line.
    const NASTY: &str = "a\u{1b}]0;x\u{7}\u{9b}2K\u{202e}b\u{200b}\r\nc";

    #[test]
    fn nothing_hidden_gets_out_in_any_medium() {
        let media: [(&str, String); 10] = [
            ("line", line(NASTY).into_owned()),
            ("terminal", terminal(NASTY).replace('\n', "")),
            ("json", json(NASTY).replace(['\r', '\n'], "")),
            ("github", github_property(NASTY)),
            ("markdown", markdown(NASTY)),
            ("paragraph", markdown_paragraph(NASTY)),
            ("html", html(NASTY).replace(['\r', '\n'], "")),
            ("xml", xml(NASTY)),
            ("csv", csv(NASTY, true).into_owned()),
            ("tsv", tsv(NASTY).into_owned()),
        ];
        for (medium, text) in media {
            assert!(!text.chars().any(is_hidden), "{medium}: {text:?}");
            assert!(text.contains("202e"), "{medium}: {text:?}");
        }
        assert_eq!(line(NASTY), "a\\u{1b}]0;x\\u{7}\\u{9b}2K\\u{202e}b\\u{200b}\\r\\nc");
        assert!(matches!(line("µ — ü 数"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_log_sees_no_commands() {
        let check = |text: &str, expected: &str| assert_eq!(terminal(text), expected);
        check("a\tb\n  ::set-env name=x::y\n", "a\tb\n  \\::set-env name=x::y\n");
        check("server: ##[error]x ##vso[task]y", "server: ##\\[error]x ##\\vso[task]y");
        check("::1:5432 says a::b", "\\::1:5432 says a::b");
        check("::1 and ## heading", "::1 and ## heading");
        check("\r::error::x", "\\r::error::x");
        assert_eq!(html("a::b\n ::error::x ##[b]"), "a::b\n&#58;:error::x &#35;#[b]");
    }

    #[test]
    fn a_string_of_toml_is_one_line_with_the_same_value() {
        for text in [NASTY, "\"]\n[load]\nschema = [\"x\"", "\\u0041", "\u{e0001}\u{85}", ""] {
            let toml = toml(text);
            assert!(!toml.chars().any(is_hidden), "{toml:?}");
            let table: toml::Table = format!("a = [{toml}]").parse().unwrap();
            assert_eq!(table["a"][0].as_str(), Some(text));
        }
    }

    #[test]
    fn json_keeps_its_values() {
        let text = json("{\"a\": \"\u{202e}\u{7f}\u{e0001}\"}\n").into_owned();
        assert_eq!(text, "{\"a\": \"\\u202e\\u007f\\udb40\\udc01\"}\n");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["a"], "\u{202e}\u{7f}\u{e0001}");
    }

    #[test]
    fn commands_of_github_end_where_they_should() {
        assert_eq!(github_message("100 %\r\n::error::x"), "100 %25%0D%0A::error::x");
        assert_eq!(github_property("a,b::c"), "a%2Cb%3A%3Ac");
    }

    #[test]
    fn markdown_shows_the_text_alone() {
        let check = |text: &str, expected: &str| assert_eq!(markdown(text), expected);
        check("a|b <c> `d` *e* ~~f~~", "a\\|b \\<c\\> \\`d\\` \\*e\\* \\~\\~f\\~\\~");
        check("![x](https://evil.test/a)", "\\!\\[x\\](https\\://evil.test/a)");
        check("http://a www.b HTTPS://c", "http\\://a www\\.b HTTPS\\://c");
        check("postgres://me@host/db", "postgres://me@host/db");
        check("cc @octocat, a@b", "cc @<!-- -->octocat, a@b");
        check("&lt; &#8238; a & b", "\\&lt; \\&\\#8238; a & b");
        check("d_e_f _g_ __h__", "d_e_f \\_g\\_ \\_\\_h\\_\\_");
        check("a\nb $x$", "a b \\$x\\$");
        check("\u{1b}", "\\\\u{1b}");
        let check = |text: &str, expected: &str| assert_eq!(markdown_paragraph(text), expected);
        check("- a", "\\- a");
        check("  + a", "\\+ a");
        check("12. a", "12\\. a");
        check("12 runs", "12 runs");
        check("# a", "\\# a");
        check("", "");
    }

    #[test]
    fn markup_stays_text() {
        assert_eq!(html("a<b> & \"c\""), "a&lt;b&gt; &amp; \"c\"");
        assert_eq!(attribute("a\"b'<"), "a&quot;b'&lt;");
        assert_eq!(xml("a\u{0}\u{ffff}<\n"), "a\\u{0}\\u{ffff}&lt;\\n");
    }

    #[test]
    fn a_spreadsheet_calculates_nothing() {
        let check = |text: &str, expected: &str| assert_eq!(csv(text, true), expected);
        check("=HYPERLINK(\"a\",1)", "\"'=HYPERLINK(\"\"a\"\",1)\"");
        check("@SUM(1)", "'@SUM(1)");
        check("+1+cmd|' /C calc'!A0", "'+1+cmd|' /C calc'!A0");
        check("\t=1", "'\\t=1");
        check("::error::x", "'::error::x");
        check("-0.25", "-0.25");
        check("-1e-7", "-1e-7");
        check("-inf", "-inf");
        check("a,b", "\"a,b\"");
        assert_eq!(csv("=1", false), "=1");
    }
}
