//! Reads option files with groups: those of MySQL (`~/.my.cnf`) and services of libpq
//! (`~/.pg_service.conf`).
//!
//! Sources: <https://dev.mysql.com/doc/refman/8.4/en/option-files.html>,
//! <https://www.postgresql.org/docs/17/libpq-pgservice.html>.

/// The options of a MySQL group, in order; the last one of a name counts. An option without a value
/// has an empty one.
pub(super) fn group(text: &str, name: &str) -> Vec<(String, String)> {
    let options = options_of(text, name).filter(|(name, _)| !name.starts_with(';'));
    options.map(|(name, value)| (name.to_owned(), option_value(value))).collect()
}

/// The options of a libpq service; `None` if no service has that name. Values have no quotes and no
/// escapes.
pub(super) fn service(text: &str, name: &str) -> Option<Vec<(String, String)>> {
    let head = format!("[{name}]");
    let options = options_of(text, name).map(|(name, value)| (name.to_owned(), value.to_owned()));
    text.lines().any(|line| line.trim() == head).then(|| options.collect())
}

/// Names and values of a group, without empty lines and comments.
fn options_of<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let mut in_group = false;
    text.lines().map(str::trim).filter_map(move |line| {
        if let Some(group) = line.strip_prefix('[') {
            in_group = group.split(']').next().map(str::trim) == Some(name);
            return None;
        }
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        let is_option = in_group && !line.is_empty() && !line.starts_with('#');
        is_option.then(|| (name.trim(), value.trim()))
    })
}

/// The value of a MySQL option: in quotes (' or "), or up to a comment; with backslash escapes.
fn option_value(text: &str) -> String {
    let quote = text.chars().next().filter(|first| matches!(first, '\'' | '"'));
    let inner = match quote {
        Some(quote) => text.get(1..).and_then(|rest| rest.rsplit_once(quote)).map(|(it, _)| it),
        None => text.split(" #").next().map(str::trim_end),
    };
    let mut value = String::new();
    let mut characters = inner.unwrap_or(text).chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            value.push(character);
            continue;
        }
        match characters.next() {
            Some('b') => value.push('\u{8}'),
            Some('t') => value.push('\t'),
            Some('n') => value.push('\n'),
            Some('r') => value.push('\r'),
            Some('s') => value.push(' '),
            Some(other @ ('\\' | '\'' | '"')) => value.push(other),
            Some(other) => value.extend(['\\', other]),
            None => value.push('\\'),
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_has_its_lines_as_they_are() {
        let text = "# all\n[one]\nhost=a\n\n[two]\n host = b#1 \npassword=a'b\\c\n[one]\nport=1\n";
        let of = |name| service(text, name);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(of("two"), Some(vec![pair("host", "b#1"), pair("password", "a'b\\c")]));
        assert_eq!(of("one"), Some(vec![pair("host", "a"), pair("port", "1")]));
        assert_eq!(of("three"), None);
    }

    #[test]
    fn a_group_of_mysql_has_quotes_and_comments() {
        let text = "[client]\n;x=1\nuser = \"a#b\" \nssl\n[mysql]\nuser=no\n";
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(group(text, "client"), [pair("user", "a#b"), pair("ssl", "")]);
        assert_eq!(group(text, "other"), []);
    }
}
