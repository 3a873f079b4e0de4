//! Sessions with Postgres, and what their rows become.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use rqps_model::endpoint::{Address, Login};
use rqps_wire::WireError;
use rqps_wire::postgres::PostgresClient;

/// Time limit for connecting.
const CONNECT: Duration = Duration::from_secs(20);

/// Time limit for an answer.
const ANSWER: Duration = Duration::from_secs(600);

/// A row of text; NULL is `None`.
pub(super) type Row = Vec<Option<String>>;

/// The text of a column; empty for NULL and where there is none.
pub(super) fn cell(row: &[Option<String>], at: usize) -> &str {
    row.get(at).and_then(Option::as_deref).unwrap_or_default()
}

/// The number in a column, else 0.
pub(super) fn number(row: &[Option<String>], at: usize) -> f64 {
    cell(row, at).parse().ok().filter(|number: &f64| number.is_finite()).unwrap_or(0.0)
}

/// What a session on somebody else's server is for. Each of its statements is in a transaction of
/// its own that only reads and is rolled back, and its settings end with that: a pooler may give the
/// same connection to an application afterwards, and no lock outlives a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// Queries of rqps. Names and operators are those of the catalogue, never of another user, and
    /// literals are read in one way.
    Catalogue,
    /// EXPLAIN of the user's statements, with the settings of the login.
    Plans,
}

/// The settings of a transaction, with the time limit of its statement in milliseconds.
fn settings(reading: Reading, limit_ms: u32) -> String {
    let limits = [
        "SELECT pg_catalog.set_config('lock_timeout', '2s', true), \
         pg_catalog.set_config('client_min_messages', 'error', true), \
         pg_catalog.set_config('statement_timeout', '",
        &limit_ms.to_string(),
        "', true)",
    ]
    .concat();
    match reading {
        Reading::Plans => limits,
        Reading::Catalogue => {
            limits
                + ", pg_catalog.set_config('search_path', 'pg_catalog', true), \
                   pg_catalog.set_config('standard_conforming_strings', 'on', true), \
                   pg_catalog.set_config('extra_float_digits', '1', true)"
        }
    }
}

/// A session that sends one statement at a time, so that no text can hold a second one.
pub(super) struct Session {
    client: PostgresClient,
    address: Address,
    login: Login,
    first: &'static [&'static str],
    /// On somebody else's server.
    reading: Option<Reading>,
    /// Time limit of a statement there, milliseconds; 0 is none.
    limit_ms: u32,
}

impl Session {
    /// Connects, and runs these statements first.
    pub(super) fn connect(
        address: &Address,
        login: &Login,
        first: &'static [&'static str],
    ) -> Result<Session> {
        let mut client = open(address, login, first)?;
        client.one_statement_each();
        let (address, login) = (address.clone(), login.clone());
        Ok(Session { client, address, login, first, reading: None, limit_ms: 0 })
    }

    /// Connects to somebody else's server, to read its catalogue.
    pub(super) fn reader(address: &Address, login: &Login) -> Result<Session> {
        let session = Session::connect(address, login, &[])?;
        Ok(Session { reading: Some(Reading::Catalogue), ..session })
    }

    /// From now on, a session on somebody else's server is for this, with this time limit of a
    /// statement.
    pub(super) fn read(&mut self, reading: Reading, limit_ms: u32) {
        (self.reading, self.limit_ms) = (Some(reading), limit_ms);
    }

    /// Connects anew: the server has ended the session.
    pub(super) fn again(&mut self) -> Result<()> {
        let Session { reading, limit_ms, .. } = *self;
        let session = Session::connect(&self.address, &self.login, self.first)?;
        *self = Session { reading, limit_ms, ..session };
        Ok(())
    }

    /// Another session of the same kind, in which a text can hold several statements.
    pub(super) fn simple(&self) -> Result<Session> {
        let client = open(&self.address, &self.login, self.first)?;
        let (address, login) = (self.address.clone(), self.login.clone());
        let Session { first, reading, limit_ms, .. } = *self;
        Ok(Session { client, address, login, first, reading, limit_ms })
    }

    pub(super) fn try_rows(&mut self, sql: &str) -> Result<Vec<Row>, WireError> {
        let Some(reading) = self.reading else { return self.client.rows(sql) };
        self.client.rows("BEGIN TRANSACTION READ ONLY")?;
        let rows =
            self.client.rows(&settings(reading, self.limit_ms)).and_then(|_| self.client.rows(sql));
        // Nobody answers a session that has ended.
        if !matches!(rows, Err(WireError::Io { .. })) {
            self.client.rows("ROLLBACK")?;
        }
        rows
    }

    pub(super) fn rows(&mut self, sql: &str) -> Result<Vec<Row>> {
        self.try_rows(sql).map_err(|error| anyhow!("{error}"))
    }

    pub(super) fn run(&mut self, sql: &str) -> Result<()> {
        self.rows(sql).map(drop)
    }

    /// Sends rows in the text form of COPY.
    pub(super) fn copy(&mut self, sql: &str, rows: Vec<u8>) -> Result<()> {
        let mut rows = Some(rows);
        let copied = self.client.copy_in(sql, &mut |output| {
            output.extend(rows.take().unwrap_or_default());
            false
        });
        copied.map(drop).map_err(|error| anyhow!("{error}"))
    }

    /// True if the answer is one true value.
    pub(super) fn is_true(&mut self, sql: &str) -> Result<bool> {
        Ok(self.rows(sql)?.first().is_some_and(|row| cell(row, 0) == "t"))
    }
}

fn open(address: &Address, login: &Login, first: &[&str]) -> Result<PostgresClient> {
    let mut client = PostgresClient::connect(address, login, CONNECT)
        .with_context(|| format!("connect as {} to {}", login.user, login.database))?;
    client.set_answer_limit(Some(ANSWER));
    for sql in first {
        client.simple(sql).context("set up the session")?;
    }
    Ok(client)
}

/// Arrays in Postgres's text form.
pub(super) mod many {
    /// Places of elements of `{a,"b c",NULL}`.
    fn elements(text: &str) -> Vec<(usize, usize)> {
        let inner = text.len().saturating_sub(1);
        let (mut found, mut begin, mut quoted, mut escaped) = (Vec::new(), 1, false, false);
        for (at, byte) in text.bytes().enumerate().take(inner).skip(1) {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => quoted = !quoted,
                b',' if !quoted => {
                    found.push((begin, at));
                    begin = at + 1;
                }
                _ => {}
            }
        }
        if inner > 1 {
            found.push((begin, inner));
        }
        found
    }

    fn quoted(element: &str) -> String {
        format!("\"{}\"", element.replace('\\', "\\\\").replace('"', "\\\""))
    }

    /// The array with other first and last elements.
    pub(in crate::postgres) fn with_ends(array: &str, first: &str, last: &str) -> String {
        let places = elements(array);
        let ([(begin, end), .., (from, to)], true) = (places.as_slice(), array.starts_with('{'))
        else {
            return array.to_owned();
        };
        let middle = &array[*end..*from];
        [&array[..*begin], &quoted(first), middle, &quoted(last), &array[*to..]].concat()
    }

    /// The values of the elements.
    pub(in crate::postgres) fn values(array: &str) -> Vec<String> {
        let value = |(begin, end): (usize, usize)| {
            let text = &array[begin..end];
            let Some(inner) = text.strip_prefix('"').and_then(|it| it.strip_suffix('"')) else {
                return text.to_owned();
            };
            let (mut made, mut escaped) = (String::new(), false);
            for letter in inner.chars() {
                if letter == '\\' && !escaped {
                    escaped = true;
                } else {
                    made.push(letter);
                    escaped = false;
                }
            }
            made
        };
        if array.starts_with("{{") {
            return Vec::new();
        }
        elements(array).into_iter().map(value).collect()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn ends_replace_elements_whatever_they_hold() {
            let check = |array: &str, want: &str| assert_eq!(with_ends(array, "a\"b", "z"), want);
            check("{1,2,3}", r#"{"a\"b",2,"z"}"#);
            check(r#"{"x,y","q\"}",b}"#, r#"{"a\"b","q\"}","z"}"#);
            check("{1}", "{1}");
            check("{}", "{}");
            assert_eq!(values(r#"{1,"a \"b\", \\c",NULL}"#), ["1", "a \"b\", \\c", "NULL"]);
            assert!(values("{}").is_empty());
        }
    }
}
