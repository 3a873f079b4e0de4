//! Names and texts from outside as parts of SQL: types that only quoting or a check can make.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::dialect::{Dialect, push_literal};

/// The longest name that a server takes, bytes.
const LONGEST: usize = 128;

/// Schema and name of a table, and a database before them.
const MOST_PARTS: usize = 3;

/// A name in the SQL of one dialect. It ends where it ends, whatever the name holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identifier(String);

/// A text in the SQL of one dialect, in quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal(String);

/// A name that needs no quotes: letters, digits and `_`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PlainName(String);

/// The name of a table as a user writes it: `orders`, `shop."Order"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TableName {
    text: String,
    /// From the outermost: schema, table.
    parts: Vec<NamePart>,
}

/// A part of a name, between points.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NamePart {
    /// Without quotes.
    text: String,
    quoted: bool,
}

impl Identifier {
    /// The name in quotes.
    pub fn quoted(dialect: Dialect, name: &str) -> Identifier {
        let quote = if dialect == Dialect::Mysql { '`' } else { '"' };
        let mut sql = String::from(quote);
        // No server has a name with a zero byte, which would end the statement.
        for letter in name.chars().filter(|letter| *letter != '\0') {
            if letter == quote {
                sql.push(quote);
            }
            sql.push(letter);
        }
        sql.push(quote);
        Identifier(sql)
    }

    /// The name as it is if it needs no quotes, so that the server folds its case; else in quotes.
    pub fn plain(dialect: Dialect, name: &str) -> Identifier {
        match PlainName::try_from(name.to_owned()) {
            Ok(PlainName(name)) => Identifier(name),
            Err(_) => Identifier::quoted(dialect, name),
        }
    }

    /// The name of something within this one: `schema.table`.
    #[must_use]
    pub fn dot(&self, inner: &Identifier) -> Identifier {
        Identifier(format!("{}.{}", self.0, inner.0))
    }

    /// Names with commas between them.
    pub fn list(names: &[Identifier]) -> Identifier {
        let names: Vec<&str> = names.iter().map(|name| name.0.as_str()).collect();
        Identifier(names.join(", "))
    }
}

impl Literal {
    /// The text in quotes.
    pub fn quoted(dialect: Dialect, text: &str) -> Literal {
        let mut sql = String::new();
        push_literal(&mut sql, text.as_bytes(), dialect == Dialect::Mysql);
        Literal(sql)
    }

    /// Texts with commas between them.
    pub fn list(texts: &[Literal]) -> Literal {
        let texts: Vec<&str> = texts.iter().map(|text| text.0.as_str()).collect();
        Literal(texts.join(", "))
    }
}

impl TableName {
    /// The name as SQL: its quotes are those of the dialect.
    pub fn identifier(&self, dialect: Dialect) -> Identifier {
        let part = |part: &NamePart| {
            if part.quoted { Identifier::quoted(dialect, &part.text).0 } else { part.text.clone() }
        };
        let parts: Vec<String> = self.parts.iter().map(part).collect();
        Identifier(parts.join("."))
    }

    /// The parts as the server stores them: Postgres folds the case of a name without quotes.
    pub fn folded(&self, dialect: Dialect) -> Vec<String> {
        let folds = dialect == Dialect::Postgres;
        let part = |part: &NamePart| {
            if folds && !part.quoted { part.text.to_ascii_lowercase() } else { part.text.clone() }
        };
        self.parts.iter().map(part).collect()
    }
}

impl TryFrom<String> for PlainName {
    type Error = String;

    fn try_from(text: String) -> Result<PlainName, String> {
        let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        let begins = text.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
        if begins && text.chars().all(is_of_name) && text.len() <= LONGEST {
            Ok(PlainName(text))
        } else {
            Err(format!("`{}` is no name of letters, digits and `_`", text.escape_debug()))
        }
    }
}

impl TryFrom<String> for TableName {
    type Error = String;

    fn try_from(text: String) -> Result<TableName, String> {
        match name_parts(&text) {
            Some(parts) => Ok(TableName { text, parts }),
            None => Err(format!(
                "`{}` is no name of a table\nhint: write a name of letters, digits and `_`, or one \
                 in quotes; a schema may stand before it",
                text.escape_debug()
            )),
        }
    }
}

/// The parts of a whole text that is a name; `None` if it is anything else.
fn name_parts(text: &str) -> Option<Vec<NamePart>> {
    let (mut parts, mut letters) = (Vec::new(), text.chars().peekable());
    if text.len() > MOST_PARTS * LONGEST {
        return None;
    }
    loop {
        let mut part = NamePart { text: String::new(), quoted: false };
        match letters.peek().copied() {
            Some(quote @ ('"' | '`')) => {
                part.quoted = true;
                letters.next();
                loop {
                    match letters.next()? {
                        // A doubled quote stands for one.
                        letter if letter == quote && letters.next_if_eq(&quote).is_none() => break,
                        letter if letter.is_control() => return None,
                        letter => part.text.push(letter),
                    }
                }
            }
            _ => {
                let is_of_name = |letter: &char| letter.is_alphanumeric() || "_$".contains(*letter);
                while let Some(letter) = letters.next_if(is_of_name) {
                    part.text.push(letter);
                }
            }
        }
        if part.text.is_empty() || parts.len() == MOST_PARTS {
            return None;
        }
        parts.push(part);
        match letters.next() {
            None => return Some(parts),
            Some('.') => {}
            Some(_) => return None,
        }
    }
}

impl From<PlainName> for String {
    fn from(name: PlainName) -> String {
        name.0
    }
}

impl From<TableName> for String {
    fn from(name: TableName) -> String {
        name.text
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for PlainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// As the user wrote it: for people, not for servers.
impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::Dialect::{Mysql, Postgres};

    #[test]
    fn names_and_texts_are_quoted_as_each_dialect_reads_them() {
        let name = |dialect, name: &str| Identifier::quoted(dialect, name).to_string();
        assert_eq!(name(Postgres, "my \"app\""), "\"my \"\"app\"\"\"");
        assert_eq!(name(Mysql, "my `app`"), "`my ``app```");
        assert_eq!(name(Postgres, "a\0b"), "\"ab\"");
        let text = |dialect, text: &str| Literal::quoted(dialect, text).to_string();
        assert_eq!(text(Postgres, r"it's \n"), r"'it''s \n'");
        assert_eq!(text(Mysql, r"it's \n"), r"'it''s \\n'");
        assert_eq!(Identifier::plain(Mysql, "InnoDB").to_string(), "InnoDB");
        let attack = "InnoDB; DROP TABLE t";
        assert_eq!(Identifier::plain(Mysql, attack).to_string(), "`InnoDB; DROP TABLE t`");
    }

    #[test]
    fn the_name_of_a_table_holds_nothing_else() {
        let sql = |text: &str| {
            let name = TableName::try_from(text.to_owned()).ok()?;
            Some((name.identifier(Postgres).to_string(), name.identifier(Mysql).to_string()))
        };
        let same = |text: &str| assert_eq!(sql(text), Some((text.to_owned(), text.to_owned())));
        same("orders");
        same("shop.orders_2024");
        let quoted = ("\"a;b\".\"c`\"\"\"".to_owned(), "`a;b`.`c``\"`".to_owned());
        assert_eq!(sql("\"a;b\".`c``\"`"), Some(quoted));
        for text in [
            "t (id) FROM STDIN; DROP TABLE u; --",
            "t; DROP TABLE u",
            "t DROP",
            "t--",
            "a.b.c.d",
            "a..b",
            "",
            "\"a",
            "\"a\"b",
            "\"\"",
            "\"a\nb\"",
            "t\0",
        ] {
            assert_eq!(sql(text), None, "{text:?}");
        }
    }

    #[test]
    fn postgres_folds_names_without_quotes() {
        let folded = |dialect, text: &str| {
            TableName::try_from(text.to_owned()).map(|name| name.folded(dialect)).unwrap()
        };
        assert_eq!(folded(Postgres, "Shop.\"Order\""), ["shop", "Order"]);
        assert_eq!(folded(Mysql, "Shop.`Order`"), ["Shop", "Order"]);
    }

    #[test]
    fn a_plain_name_is_checked_when_it_is_read() {
        let read = |text: &str| serde_json::from_value::<PlainName>(text.into()).is_ok();
        assert!(read("fast_disk") && read("pg_default"));
        for text in ["", "1a", "a b", "x; DROP TABLE t", "a\"", "\u{e9}"] {
            assert!(!read(text), "{text}");
        }
    }
}
