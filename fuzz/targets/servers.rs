//! Both protocols both ways: what servers send, and what clients send for any value.

use std::os::unix::net::UnixStream;

use rqps_model::endpoint::Login;
use rqps_wire::fuzzing::{self, sent};
use rqps_wire::mysql::MysqlClient;
use rqps_wire::postgres::{PostgresClient, TextCall};
use rqps_wire::{LastRows, Prepared, Reply, RowTexts, Value, ValueType, WireError};

use super::split;

fn look(rows: &RowTexts) {
    for row in 0..=rows.rows() {
        let _ = rows.row(row).map(Iterator::count);
        let _ = rows.value(row, rows.columns());
    }
}

/// Fills one piece of rows.
fn fill(rows: &mut Vec<u8>) -> bool {
    rows.extend_from_slice(b"1\tx\n");
    false
}

fn postgres_requests(client: &mut PostgresClient, requests: u8) -> Result<(), WireError> {
    let (mut rows, mut last, mut ids) = (RowTexts::default(), LastRows::default(), Vec::new());
    let types = [ValueType::Int, ValueType::AnyText];
    let values = [Value::Int(-1), Value::Text(b"x")];
    let statement = client.prepare("SELECT $1, $2", &types).unwrap_or(Prepared(0));
    for request in [requests & 7, requests >> 3 & 7, 0, requests >> 6] {
        let done: Result<(), WireError> = match request {
            0 => client.rows("SELECT 1").map(drop),
            1 => client.execute(statement, &values).map(drop),
            2 => client.execute_rows(statement, &values, &mut rows).map(drop),
            3 => client.execute_ids(statement, &values, &mut ids).map(drop),
            4 => client.simple_results("SELECT 1", &mut last).map(drop),
            5 => client.copy_in("COPY t FROM STDIN", &mut fill).map(drop),
            6 => {
                client.begin_pipeline();
                client.queue(TextCall::Parsed("SELECT 1"), &[])?;
                client.sync_pipeline()?;
                client.end_pipeline(2, &mut |_: Reply| ())
            }
            _ => {
                let prepared = client.prepare_text("SELECT $1").unwrap_or(Prepared(0));
                let call = TextCall::Prepared(prepared);
                client.call_text(call, &values[1..], Some(&mut last)).map(drop)
            }
        };
        // An error of the statement leaves the session in step.
        let _ = (done, client.take_notices(), client.is_in_transaction());
    }
    look(&rows);
    last.results().iter().for_each(|result| assert!(result.cells().count() < 1 << 20));
    Ok(())
}

/// Messages of Postgres are whole: a letter, and the length of all that follows.
fn postgres_is_whole(mut bytes: &[u8]) {
    while let [kind, a, b, c, d, ..] = bytes {
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        assert!(b"PDSBEQCcdfpH".contains(kind) && length >= 4, "message {kind} of {length} bytes");
        bytes = bytes.get(1 + length..).expect("a message is as long as it says");
    }
    assert!(bytes.is_empty(), "half a message");
}

/// What a Postgres server sends after the login.
pub(super) fn postgres_replies(bytes: &[u8]) {
    let (requests, replies) = split(bytes);
    let (mut client, mut server) = fuzzing::postgres(replies);
    let _ = postgres_requests(&mut client, requests);
    postgres_is_whole(&sent(&mut server));
}

fn login() -> Login {
    Login { user: "u".to_owned(), password: "p".to_owned(), database: "d".to_owned() }
}

/// What it sends in the login.
pub(super) fn postgres_login(bytes: &[u8]) {
    let (_, mut server) = fuzzing::postgres_login(bytes, &login());
    let sent = sent(&mut server);
    let length = sent.first_chunk::<4>().map_or(0, |length| u32::from_be_bytes(*length));
    postgres_is_whole(sent.get(length as usize..).expect("a whole startup message"));
}

/// Values cut out of bytes: a kind, a length, the value.
fn values(mut bytes: &[u8]) -> Vec<(ValueType, Value<'_>)> {
    let mut values = Vec::new();
    while let [kind, length, rest @ ..] = bytes {
        let (value, after) = rest.split_at(usize::from(*length).min(rest.len()));
        let mut number = [0; 8];
        let digits = value.len().min(8);
        number[..digits].copy_from_slice(&value[..digits]);
        let number = Value::Int(i64::from_le_bytes(number));
        values.push(match kind % 8 {
            0 => (ValueType::Int, number),
            1 => (ValueType::AnyInt, number),
            2 => (ValueType::Text, Value::Text(value)),
            3 => (ValueType::AnyText, Value::Text(value)),
            4 => (ValueType::Bytes, Value::Bytes(value)),
            5 => (ValueType::Int, Value::Null),
            6 => (ValueType::Text, Value::Null),
            _ => (ValueType::Bytes, Value::Text(value)),
        });
        bytes = after;
    }
    values
}

/// The texts of the values that Bind carries; `None` for NULL.
fn bound(message: &[u8]) -> Option<Vec<Option<&[u8]>>> {
    let names_end = message[6..].iter().position(|byte| *byte == 0)? + 7;
    let number = |at: usize| Some(u16::from_be_bytes(*message.get(at..)?.first_chunk()?) as usize);
    let mut at = names_end + 2 + 2 * number(names_end)?;
    let count = number(at)?;
    at += 2;
    let mut found = Vec::new();
    for _ in 0..count {
        let length = i32::from_be_bytes(*message.get(at..)?.first_chunk()?);
        at += 4;
        let value = usize::try_from(length).ok();
        found.push(value.map(|length| &message[at..at + length]));
        at += value.unwrap_or(0);
    }
    Some(found)
}

/// A longer message does not fit into a socket that nobody reads.
const LONGEST: usize = 32 << 10;

/// The bytes of a value as Postgres gets them; `None` if its form is the server's choice.
fn carried(value: &Value<'_>) -> Option<Vec<u8>> {
    match value {
        Value::Text(bytes) | Value::Bytes(bytes) => Some(bytes.to_vec()),
        Value::Int(_) | Value::Null => None,
    }
}

/// What is sent to Postgres is whole and carries the values, whatever they are.
pub(super) fn postgres_sent(bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(LONGEST)];
    let all = values(bytes);
    let (types, values): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    let count = types.len() as u16;
    // ParseComplete, as many parameters of this type, no data, ready.
    let oid = [20u32, 23, 21, 25, 17, 0][usize::from(count) % 6];
    let mut reply = b"1\0\0\0\x04t".to_vec();
    reply.extend((6 + 4 * u32::from(count)).to_be_bytes());
    reply.extend(count.to_be_bytes());
    types.iter().for_each(|_| reply.extend(oid.to_be_bytes()));
    reply.extend(b"n\0\0\0\x04Z\0\0\0\x05I");
    let (mut client, mut server) = fuzzing::postgres(&reply);
    let sql = String::from_utf8_lossy(bytes);
    let statement = client.prepare(&sql, &types);
    let prepared = sent(&mut server);
    postgres_is_whole(&prepared);
    assert!(prepared.is_empty() || !sql.contains('\0'), "a zero byte ends a text");
    if let Ok(statement) = statement {
        let _ = client.execute(statement, &values);
        check_bind(&sent(&mut server), &values);
    }
    let (mut client, mut server) = fuzzing::postgres(b"");
    let _ = client.call_text(TextCall::Parsed("SELECT 1"), &values, None);
    let message = sent(&mut server);
    postgres_is_whole(&message);
    let (mut client, mut server) = fuzzing::postgres(b"");
    let _ = client.simple(&sql);
    postgres_is_whole(&sent(&mut server));
    user_and_database(&sql);
}

fn check_bind(message: &[u8], values: &[Value<'_>]) {
    postgres_is_whole(message);
    if message.is_empty() {
        return;
    }
    let found = bound(message).expect("a whole Bind");
    assert_eq!(found.len(), values.len());
    for (found, value) in found.iter().zip(values) {
        assert_eq!(found.is_none(), *value == Value::Null);
        if let Some(bytes) = carried(value) {
            assert_eq!(*found, Some(bytes.as_slice()));
        }
    }
}

/// Names and passwords stay within their places in the login.
fn user_and_database(words: &str) {
    let mut words = words.split('\u{1}').map(str::to_owned);
    let mut word = || words.next().unwrap_or_default();
    let login = Login { user: word(), password: word(), database: word() };
    let whole = |server: &mut UnixStream| {
        let sent = sent(server);
        let length = sent.first_chunk::<4>().map_or(0, |length| u32::from_be_bytes(*length));
        postgres_is_whole(sent.get(length as usize..).expect("a whole startup message"));
    };
    // Asked for the password in the clear.
    whole(&mut fuzzing::postgres_login(b"R\0\0\0\x08\0\0\0\x03", &login).1);
    mysql_is_whole(&sent(&mut fuzzing::mysql_login(GREETING, &login).1));
}

/// The greeting of a server with all required capabilities.
const GREETING: &[u8] = b"\x4a\0\0\0\x0a8.0.33\0\x02\x01\0\0\x01\x02\x03\x04\x05\x06\x07\x08\0\
    \xff\xff\xff\x02\0\xff\xdf\x15\0\0\0\0\0\0\0\0\0\0\
    \x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\0caching_sha2_password\0";

/// Packets of MySQL are whole: three bytes of length, a number.
fn mysql_is_whole(mut bytes: &[u8]) {
    while let [a, b, c, _, ..] = bytes {
        let length = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
        bytes = bytes.get(4 + length..).expect("a packet is as long as it says");
    }
    assert!(bytes.is_empty(), "half a packet");
}

/// What a MySQL server sends after the login.
pub(super) fn mysql_replies(bytes: &[u8]) {
    let (requests, replies) = split(bytes);
    let (mut client, mut server) = fuzzing::mysql(replies, requests & 0x80 != 0);
    let (mut rows, mut ids) = (RowTexts::default(), Vec::new());
    let types = [ValueType::Int, ValueType::Text];
    let values = [Value::Int(-1), Value::Text(b"x")];
    let statement = client.prepare("SELECT ?, ?", &types).unwrap_or(Prepared(0));
    for request in [requests & 7, requests >> 3 & 7, 0] {
        let done: Result<(), WireError> = match request {
            0 => client.rows("SELECT 1").map(drop),
            1 => client.execute(statement, &values).map(drop),
            2 => client.execute_rows(statement, &values, &mut rows).map(drop),
            3 => client.execute_ids(statement, &values, &mut ids).map(drop),
            4 => client.load_local("LOAD DATA LOCAL INFILE 'x'", &mut fill).map(drop),
            5 => client.simple_rows("SELECT 1", &mut rows).map(drop),
            _ => client.simple("SELECT 1").map(drop),
        };
        let _ = (done, client.sql_state());
    }
    look(&rows);
    mysql_is_whole(&sent(&mut server));
}

/// What it sends in the login.
pub(super) fn mysql_login(bytes: &[u8]) {
    let (_, mut server) = fuzzing::mysql_login(bytes, &login());
    mysql_is_whole(&sent(&mut server));
}

/// What is sent to MySQL is whole, and carries the values.
pub(super) fn mysql_sent(bytes: &[u8]) {
    let bytes = &bytes[..bytes.len().min(LONGEST)];
    let all = values(bytes);
    let (types, values): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    let count = types.len() as u16;
    let mut reply = b"\x0c\0\0\x01\0\x05\0\0\0\0\0".to_vec();
    reply.extend(count.to_le_bytes());
    reply.extend(b"\0\0\0");
    (0..count).for_each(|at| reply.extend([1, 0, 0, (at + 2) as u8, b'?']));
    let execute = |client: &mut MysqlClient, server: &mut UnixStream| {
        let sql = String::from_utf8_lossy(bytes);
        let statement = client.prepare(&sql, &types).ok();
        mysql_is_whole(&sent(server));
        let _ = client.execute(statement?, &values);
        Some(sent(server))
    };
    let (mut client, mut server) = fuzzing::mysql(&reply, true);
    if let Some(message) = execute(&mut client, &mut server) {
        mysql_is_whole(&message);
        check_execute(&message, &types, &values);
    }
    let (mut client, mut server) = fuzzing::mysql(b"", true);
    let _ = client.simple_bytes(bytes);
    mysql_is_whole(&sent(&mut server));
}

fn check_execute(message: &[u8], types: &[ValueType], values: &[Value<'_>]) {
    // Refused: a value of another type than its placeholder. Header and command take 14 bytes.
    if message.is_empty() || values.is_empty() {
        return;
    }
    let nulls = values.len().div_ceil(8);
    let mut rest = &message[14 + nulls + 1 + 2 * types.len()..];
    for (at, value) in values.iter().enumerate() {
        let is_null = message[14 + at / 8] >> (at % 8) & 1 == 1;
        assert_eq!(is_null, *value == Value::Null);
        match value {
            Value::Null => {}
            Value::Int(number) => {
                assert!(rest.starts_with(&number.to_le_bytes()));
                rest = &rest[8..];
            }
            Value::Text(bytes) | Value::Bytes(bytes) => {
                let head = if bytes.len() > 250 { 3 } else { 1 };
                assert_eq!(&rest[head..head + bytes.len()], *bytes);
                rest = &rest[head + bytes.len()..];
            }
        }
    }
    assert!(rest.is_empty(), "more than the values");
}

/// The channel binding of certificates.
pub(super) fn certificate(bytes: &[u8]) {
    let _ = fuzzing::certificate(bytes);
}
