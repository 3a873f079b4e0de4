//! Compares the Postgres client with golden bytes in both directions, and feeds it arbitrary
//! replies.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use super::*;
use crate::postgres::message::ServerError;

const READY: &[u8] = b"Z\0\0\0\x05I";

/// Reply to Parse, Describe, Sync of a statement with one int8 parameter and no columns.
const PREPARED: &[u8] = b"1\0\0\0\x04t\0\0\0\x0a\0\x01\0\0\0\x14n\0\0\0\x04Z\0\0\0\x05I";

/// A client with `reply` waiting, and the server's end of the socket.
fn client(reply: &[u8]) -> (PostgresClient, UnixStream) {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(reply).unwrap();
    theirs.set_nonblocking(true).unwrap();
    let mut client = PostgresClient::over(Channel::over_pair(ours));
    // With wrong bytes, the test fails instead of waiting.
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    (client, theirs)
}

/// All that the client has sent.
fn sent(server: &mut UnixStream) -> Vec<u8> {
    let mut bytes = vec![0; 65536];
    let count = server.read(&mut bytes).unwrap();
    bytes.truncate(count);
    bytes
}

#[test]
fn prepares_and_executes() {
    let prepared = b"1\0\0\0\x04t\0\0\0\x0a\0\x01\0\0\0\x14T\0\0\0\x06\0\0Z\0\0\0\x05I";
    let (mut client, mut server) = client(prepared);
    let statement = client.prepare("SELECT $1", &[ValueType::Int]).unwrap();
    assert_eq!(
        sent(&mut server),
        b"P\0\0\0\x17s0\0SELECT $1\0\0\x01\0\0\0\x14D\0\0\0\x08Ss0\0S\0\0\0\x04"
    );
    server
        .write_all(b"2\0\0\0\x04D\0\0\0\x0e\0\x01\0\0\0\x04abcdC\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I")
        .unwrap();
    let reply = client.execute(statement, &[Value::Int(258)]).unwrap();
    assert_eq!(
        sent(&mut server),
        b"B\0\0\0\x1e\0s0\0\0\x01\0\x01\0\x01\0\0\0\x08\0\0\0\0\0\0\x01\x02\0\x01\0\x01\
          E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04"
    );
    assert_eq!(reply, Reply { rows: 1, affected: 0, bytes: 40, result_set: true });
}

#[test]
fn counts_that_no_server_has_do_not_overflow() {
    let done = b"C\0\0\0\x20UPDATE 18446744073709551615\0";
    let (mut client, _server) = client(&[&done[..], done, READY].concat());
    assert_eq!(client.simple("UPDATE").unwrap().affected, u64::MAX);
}

/// A server that always says something is never silent for as long as a read may take.
#[test]
fn an_answer_of_notices_without_end_ends() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let floods = std::thread::spawn(move || {
        let notice = [&b"N\0\0\0\x10SNOTICE\0Ma\0\0"[..]; 100].concat();
        while theirs.write_all(&notice).is_ok() {}
    });
    let mut client = PostgresClient::over(Channel::over_pair(ours));
    client.set_answer_limit(Some(Duration::from_millis(100)));
    let error = client.rows("SELECT 1").unwrap_err().to_string();
    assert!(error.contains("no reply within the time limit"), "{error}");
    drop(client);
    floods.join().unwrap();
}

/// Whoever cancels names the session by its number and key.
#[test]
fn a_statement_is_cancelled_by_number_and_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 16];
        stream.read_exact(&mut request).unwrap();
        request
    });
    let (address, limit) = (Address::Unix(path), Duration::from_secs(5));
    PostgresClient::cancel(&address, false, 258, b"\x01\x02\x03\x04", limit).unwrap();
    let request = server.join().unwrap();
    assert_eq!(&request, b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\x01\x02\x01\x02\x03\x04");
}

#[test]
fn binds_text_as_text() {
    let (mut client, mut server) =
        client(b"1\0\0\0\x04t\0\0\0\x0e\0\x02\0\0\x04\x13\0\0\0\x14n\0\0\0\x04Z\0\0\0\x05I");
    let types = [ValueType::Text, ValueType::Int];
    let statement = client.prepare("UPDATE t SET c=$1 WHERE id=$2", &types).unwrap();
    let parse = sent(&mut server);
    assert_eq!(&parse[38..48], b"\0\x02\0\0\x04\x13\0\0\0\x14");
    server.write_all(b"2\0\0\0\x04C\0\0\0\x0dUPDATE 7\0Z\0\0\0\x05T").unwrap();
    let reply = client.execute(statement, &[Value::Text(b"hi"), Value::Int(-1)]).unwrap();
    assert_eq!(
        sent(&mut server),
        b"B\0\0\0\x26\0s0\0\0\x02\0\0\0\x01\0\x02\0\0\0\x02hi\0\0\0\x08\xff\xff\xff\xff\xff\xff\
          \xff\xff\0\x01\0\x01E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04"
    );
    assert_eq!((reply.affected, reply.result_set), (7, false));
}

#[test]
fn sends_text() {
    let (mut client, mut server) = client(b"I\0\0\0\x04Z\0\0\0\x05I");
    client.simple(";").unwrap();
    assert_eq!(sent(&mut server), b"Q\0\0\0\x06;\0");
    assert!(client.simple("a\0b").unwrap_err().to_string().contains("zero byte"));
}

#[test]
fn keeps_rows_as_text() {
    let (mut client, _server) = client(
        b"T\0\0\0\x06\0\0D\0\0\0\x10\0\x02\xff\xff\xff\xff\0\0\0\x02\xc3\xa4\
          D\0\0\0\x0e\0\x02\0\0\0\0\0\0\0\0C\0\0\0\x0dSELECT 2\0Z\0\0\0\x05I",
    );
    let rows = client.rows("SELECT").unwrap();
    let empty = || Some(String::new());
    assert_eq!(rows, [[None, Some("ä".to_owned())], [empty(), empty()]]);
}

#[test]
fn an_error_leaves_the_session_in_step() {
    let error = b"E\0\0\0\x2cSERROR\0VERROR\0C23505\0Mdup\0Dkey 1\0Hhint\0\0Z\0\0\0\x05E";
    let (mut client, mut server) = client(error);
    let refused = client.simple("INSERT").unwrap_err();
    assert_eq!(refused.to_string(), "dup: key 1 (23505)");
    assert_eq!(refused.code(), Some("23505"));
    server.write_all(b"C\0\0\0\x0dROLLBACK\0Z\0\0\0\x05I").unwrap();
    assert_eq!(client.simple("ROLLBACK").unwrap().affected, 0);
}

#[test]
fn a_farewell_ends_the_session() {
    let (mut client, _server) = client(b"E\0\0\0\x18SFATAL\0C57P01\0Mbye\0\0");
    let error = client.simple("SELECT 1").unwrap_err();
    assert_eq!(error.to_string(), "log in to a test: FATAL: bye (57P01)");
    assert!(client.simple("SELECT 1").unwrap_err().to_string().contains("connect again"));
}

#[test]
fn a_closed_connection_is_named() {
    let (mut client, server) = client(b"");
    drop(server);
    let error = client.simple("SELECT 1").unwrap_err().to_string();
    assert!(error.contains("log in to a test: the server closed the connection"), "{error}");
}

#[test]
fn a_late_reply_ends_the_session() {
    let (mut client, _server) = client(b"");
    client.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    let error = client.simple("SELECT 1").unwrap_err().to_string();
    assert!(error.contains("no reply within the time limit"), "{error}");
    assert!(client.simple("SELECT 1").unwrap_err().to_string().contains("connect again"));
}

#[test]
fn copies_in() {
    let (mut client, mut server) = client(b"G\0\0\0\x07\0\0\0C\0\0\0\x0bCOPY 2\0Z\0\0\0\x05I");
    let mut parts = [&b"1\n"[..], b"", b"2\n"].into_iter();
    let rows = client.copy_in("COPY", &mut |output| match parts.next() {
        Some(part) => {
            output.extend_from_slice(part);
            true
        }
        None => false,
    });
    assert_eq!(rows.unwrap(), 2);
    assert_eq!(sent(&mut server), b"Q\0\0\0\x09COPY\0d\0\0\0\x061\nd\0\0\0\x062\nc\0\0\0\x04");
}

#[test]
fn a_text_may_be_held_to_one_statement() {
    let begun = b"1\0\0\0\x042\0\0\0\x04n\0\0\0\x04";
    let (mut client, mut server) = client(&[begun, &b"C\0\0\0\x0bCOPY 0\0"[..], READY].concat());
    client.one_statement_each();
    client.simple("DO").unwrap();
    let asked = b"P\0\0\0\x0a\0DO\0\0\0B\0\0\0\x0c\0\0\0\0\0\0\0\0\
                  D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0";
    assert_eq!(sent(&mut server), [asked, &b"S\0\0\0\x04"[..]].concat());
    let copied = [begun, &b"G\0\0\0\x07\0\0\0C\0\0\0\x0bCOPY 2\0"[..], READY].concat();
    server.write_all(&copied).unwrap();
    let mut parts = [&b"1\n"[..]].into_iter();
    let rows = client.copy_in("DO", &mut |output| {
        parts.next().is_some_and(|part| {
            output.extend_from_slice(part);
            true
        })
    });
    assert_eq!(rows.unwrap(), 2);
    let data = b"H\0\0\0\x04d\0\0\0\x061\nc\0\0\0\x04S\0\0\0\x04";
    assert_eq!(sent(&mut server), [asked, &data[..]].concat());
    // A refused COPY leaves the session in step.
    server.write_all(&[&b"E\0\0\0\x0cC42601\0\0"[..], READY].concat()).unwrap();
    assert_eq!(client.copy_in("DO", &mut |_| false).unwrap_err().code(), Some("42601"));
    assert!(sent(&mut server).ends_with(b"H\0\0\0\x04S\0\0\0\x04"));
}

#[test]
fn a_copy_that_nobody_wanted_is_refused() {
    let (mut client, mut server) = client(PREPARED);
    let statement = client.prepare("COPY", &[ValueType::Int]).unwrap();
    sent(&mut server);
    server.write_all(b"G\0\0\0\x07\0\0\0E\0\0\0\x0cC57014\0\0Z\0\0\0\x05I").unwrap();
    let refused = client.execute(statement, &[Value::Int(0)]).unwrap_err();
    assert_eq!(refused.code(), Some("57014"));
    let bytes = sent(&mut server);
    assert!(
        bytes.ends_with(b"f\0\0\0\x31the server expects rows, but rqps sends none\0S\0\0\0\x04"),
        "{bytes:?}"
    );
}

#[test]
fn counts_changed_rows_by_the_tag() {
    let check = |tag: &[u8], count| assert_eq!(message::affected(tag), count, "{tag:?}");
    check(b"INSERT 0 5\0", 5);
    check(b"UPDATE 3\0", 3);
    check(b"DELETE 0\0", 0);
    check(b"MERGE 12\0", 12);
    check(b"COPY 1000000\0", 1_000_000);
    check(b"SELECT 5\0", 0);
    check(b"MOVE 4\0", 0);
    check(b"CREATE TABLE\0", 0);
    check(b"DELETE 99999999999999999999999\0", u64::MAX);
    check(b"", 0);
    check(b"DE", 0);
}

#[test]
fn reads_what_is_left_of_an_error() {
    let error = ServerError::parse(b"");
    assert_eq!(error.into_wire().to_string(), " ()");
    assert!(ServerError::parse(b"VFATAL\0SFATAL\0").is_fatal());
    // V is never translated, so the translated S does not matter.
    assert!(ServerError::parse(b"SFATALE\0VFATAL\0").is_fatal());
}

#[test]
fn logs_in_by_md5_and_reads_what_the_server_tells() {
    let (client, mut server) = client(
        b"R\0\0\0\x0c\0\0\0\x05salt\
          R\0\0\0\x08\0\0\0\0S\0\0\0\x18server_version\x0017.2\0\
          K\0\0\0\x0c\0\0\x01\x02\0\0\0\0Z\0\0\0\x05I",
    );
    let login = Login { user: "u".to_owned(), password: "p".to_owned(), database: "d".to_owned() };
    let client = PostgresClient::log_in(client.channel, &login, ChannelBinding::Prefer).unwrap();
    assert_eq!((client.connection_id(), client.server_version()), (258, "17.2"));
    let bytes = sent(&mut server);
    let startup = b"\0\0\0\x31\0\x03\0\0user\0u\0database\0d\0application_name\0rqps\0\0";
    assert_eq!(&bytes[..startup.len()], startup);
    // md5(md5("pu") ‖ "salt"), by md5sum.
    let rest = &bytes[startup.len()..];
    assert_eq!(rest, b"p\0\0\0\x28md5c827f95590aef08f2d04ac5e8d94d9c3\0");
}

#[test]
fn names_what_a_login_lacks() {
    let check = |reply: &[u8], words: &str| {
        let (client, _server) = client(reply);
        let login = Login { user: "u".to_owned(), ..Login::default() };
        let error = PostgresClient::log_in(client.channel, &login, ChannelBinding::Prefer)
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(words), "{error}");
    };
    check(b"R\0\0\0\x08\0\0\0\x03", "requires a password for user \"u\"");
    check(b"R\0\0\0\x08\0\0\0\x07", "GSSAPI, which rqps does not support");
    check(b"R\0\0\0\x13\0\0\0\x0aSCRAM-X\0\0\0\0", "offers no SCRAM-SHA-256");
    check(b"R\0\0\0\x08\0\0\0\x0b", "SCRAM continues without a start");
    check(b"R\0\0\0\x06\0\0", "too short");
    check(b"E\0\0\0\x0cC57P03\0\0", "57P03");
    check(b"HTTP/1.1 400 Bad Request\r\n\r\n", "too long; is that a Postgres server?");
}

/// Bytes in the form of messages, so that the parsers get beyond the first one.
fn messages() -> impl Strategy<Value = Vec<u8>> {
    let kinds = b"12CDEGHIKNRSTWZcdnst";
    let body = prop::collection::vec(any::<u8>(), 0..40);
    let message =
        (prop::sample::select(&kinds[..]), body, -5i32..5).prop_map(|(kind, body, off)| {
            let off = if off < -3 { off } else { 0 };
            let mut bytes = vec![kind];
            bytes.extend_from_slice(&(body.len() as i32 + 4 + off).to_be_bytes());
            bytes.extend_from_slice(&body);
            bytes
        });
    prop::collection::vec(message, 0..12).prop_map(|messages| messages.concat())
}

proptest! {
    #![proptest_config(Config { rng_seed: RngSeed::Fixed(1), ..Config::default() })]

    #[test]
    fn no_bytes_make_it_panic(
        bytes in prop_oneof![messages(), prop::collection::vec(any::<u8>(), 0..200)],
        what in 0..5,
    ) {
        let (mut client, server) = client(if what == 1 { PREPARED } else { b"" });
        let login = Login { user: "u".to_owned(), password: "p".to_owned(), ..Login::default() };
        let statement = (what == 1).then(|| client.prepare("", &[ValueType::Int]).unwrap());
        (&server).write_all(&bytes).unwrap();
        server.shutdown(std::net::Shutdown::Write).unwrap();
        // Each call returns: a reply, an error, or the end of the bytes.
        match (what, statement) {
            (0, _) => drop(client.prepare("", &[])),
            (1, Some(statement)) => drop(client.execute(statement, &[Value::Int(1)])),
            (2, _) => drop(client.rows("")),
            (3, _) => drop(client.copy_in("", &mut |_| false)),
            _ => drop(PostgresClient::log_in(client.channel, &login, ChannelBinding::Prefer)),
        }
    }

    #[test]
    fn a_reply_counts_the_same_however_it_is_cut(
        rows in prop::collection::vec(0usize..50_000, 0..8), cut in 1usize..9000,
    ) {
        let mut reply = b"2\0\0\0\x04".to_vec();
        for length in &rows {
            reply.push(b'D');
            reply.extend_from_slice(&(*length as u32 + 4).to_be_bytes());
            reply.extend(std::iter::repeat_n(0, *length));
        }
        reply.extend_from_slice(b"C\0\0\0\x0dSELECT 9\0");
        reply.extend_from_slice(READY);
        let (mut client, mut server) = client(PREPARED);
        let statement = client.prepare("", &[ValueType::Int]).unwrap();
        server.set_nonblocking(false).unwrap();
        let expected = (rows.len() as u64, reply.len() as u64);
        let writer = std::thread::spawn(move || {
            for piece in reply.chunks(cut) {
                server.write_all(piece).unwrap();
            }
            server
        });
        let counted = client.execute(statement, &[Value::Int(1)]).unwrap();
        writer.join().unwrap();
        prop_assert_eq!((counted.rows, counted.bytes), expected);
    }
}
