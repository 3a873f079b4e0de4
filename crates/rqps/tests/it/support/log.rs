//! Reads what servers write down about the statements that they receive.

use std::collections::BTreeMap;

/// The protocol by which a statement came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Executed by the handle of a prepared statement.
    Prepared,
    /// As text.
    Text,
    /// To be prepared; MySQL only, since Postgres does not write it down.
    Prepare,
}

/// One statement in a server's log.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// The protocol by which it came.
    pub(crate) how: How,
    /// The text in the log: Postgres with `$1`, MySQL with literals in place.
    pub(crate) sql: String,
    /// Values of `$1` …, as logged.
    pub(crate) parameters: Vec<String>,
}

/// Sessions in the order of their first statement.
#[derive(Default)]
struct Sessions {
    places: BTreeMap<String, usize>,
    sessions: Vec<Vec<Seen>>,
}

impl Sessions {
    fn of(&mut self, id: &str) -> &mut Vec<Seen> {
        let next = self.sessions.len();
        let place = *self.places.entry(id.to_owned()).or_insert(next);
        if place == next {
            self.sessions.push(Vec::new());
        }
        &mut self.sessions[place]
    }
}

/// A log of Postgres with the line prefix `@%p `, statements and parameters.
pub(crate) fn postgres(log: &str) -> Vec<Vec<Seen>> {
    let mut sessions = Sessions::default();
    for line in log.lines() {
        let Some((id, said)) = line.strip_prefix('@').and_then(|line| line.split_once(' ')) else {
            continue;
        };
        if let Some(sql) = said.strip_prefix("LOG:  statement: ") {
            let sql = sql.to_owned();
            sessions.of(id).push(Seen { how: How::Text, sql, parameters: Vec::new() });
        } else if let Some(call) = said.strip_prefix("LOG:  execute ") {
            let (name, sql) = call.split_once(": ").expect("a name and its SQL");
            assert_ne!(name, "<unnamed>", "prepared once, not for each call: {sql}");
            let sql = sql.to_owned();
            sessions.of(id).push(Seen { how: How::Prepared, sql, parameters: Vec::new() });
        } else if let Some(rest) = said.strip_prefix("DETAIL:  ")
            && let Some(list) = rest.split_once("arameters: ").map(|(_, list)| list)
        {
            let last = sessions.of(id).last_mut().expect("a statement with these parameters");
            last.parameters = values(list);
        }
    }
    sessions.sessions
}

/// `$1 = '5', $2 = 'a'`: none of the values here contains a quote.
fn values(list: &str) -> Vec<String> {
    let value = |part: &str| {
        let (_, value) = part.split_once(" = ").expect("a number and its value");
        value.trim_matches('\'').to_owned()
    };
    list.split(", ").map(value).collect()
}

/// A general log of MySQL: `TIME<tab>ID COMMAND<tab>ARGUMENT`. Old versions leave the time out
/// when it is that of the line before.
pub(crate) fn mysql(log: &str) -> Vec<Vec<Seen>> {
    let mut sessions = Sessions::default();
    for line in log.lines() {
        let Some((id, command, sql)) = mysql_line(line) else { continue };
        let how = match command {
            "Query" => How::Text,
            "Execute" => How::Prepared,
            "Prepare" => How::Prepare,
            _ => continue,
        };
        let sql = sql.to_owned();
        sessions.of(id).push(Seen { how, sql, parameters: Vec::new() });
    }
    sessions.sessions
}

fn mysql_line(line: &str) -> Option<(&str, &str, &str)> {
    let mut rest = line;
    for _ in 0..3 {
        let (field, after) = rest.split_once('\t')?;
        let field = field.trim();
        if let Some((id, command)) = field.split_once(' ')
            && id.bytes().all(|byte| byte.is_ascii_digit())
            && command.bytes().all(|byte| byte.is_ascii_alphabetic())
        {
            return Some((id, command, after));
        }
        rest = after;
    }
    None
}

/// Sessions without those that only read, which ask for answers once more at the end of a block.
pub(crate) fn without_asking(mut sessions: Vec<Vec<Seen>>) -> Vec<Vec<Seen>> {
    const READ_ONLY: [&str; 2] =
        ["SET default_transaction_read_only = on", "SET SESSION TRANSACTION READ ONLY"];
    sessions.retain(|session| !session.iter().any(|seen| READ_ONLY.contains(&seen.sql.as_str())));
    sessions
}

/// Sessions of measuring clients, with what they do before an event left out: settings, pings and
/// query plans. Sessions that do nothing else belong to whoever looks after the server.
pub(crate) fn clients_only(sessions: Vec<Vec<Seen>>) -> Vec<Vec<Seen>> {
    const BEFORE: [&str; 4] = ["SET ", "EXPLAIN ", "SELECT 1", "SHOW "];
    let strip = |session: Vec<Seen>| -> Vec<Seen> {
        let measured = session.into_iter().skip_while(|seen| {
            seen.how == How::Prepare || BEFORE.iter().any(|word| seen.sql.starts_with(word))
        });
        measured.collect()
    };
    let touches = |session: &Vec<Seen>| {
        let first = session.first();
        let is_own = |seen: &Seen| seen.sql.contains("sbtest") || seen.sql == "BEGIN";
        let care = ["ANALYZE", "VACUUM"];
        first.is_some_and(|seen| is_own(seen) && !care.iter().any(|w| seen.sql.starts_with(w)))
    };
    without_asking(sessions).into_iter().map(strip).filter(touches).collect()
}
