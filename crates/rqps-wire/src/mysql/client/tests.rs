//! Compares the MySQL client with golden bytes in both directions, and feeds it arbitrary replies.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};

use super::*;
use crate::mysql::login::{Greeting, scramble};
use rqps_model::endpoint::{Tls, TlsMode};

const OK: &[u8] = b"\x07\0\0\x01\0\0\0\x02\0\0\0";
/// Reply to COM_STMT_PREPARE: statement 5, one placeholder, no column.
const PREPARED: &[u8] = b"\x0c\0\0\x01\0\x05\0\0\0\0\0\x01\0\0\0\0\x01\0\0\x02?";
/// The greeting of a server 8.0.33 for connection 258, with all required capabilities and
/// caching_sha2_password. The nonce is 1 to 20.
const GREETING: &[u8] = b"\x4a\0\0\0\x0a8.0.33\0\x02\x01\0\0\x01\x02\x03\x04\x05\x06\x07\x08\0\
    \xff\xff\xff\x02\0\xff\xdf\x15\0\0\0\0\0\0\0\0\0\0\
    \x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\0caching_sha2_password\0";

/// A client with `reply` waiting, and the server's end of the socket.
fn client(reply: &[u8], deprecate_eof: bool) -> (MysqlClient, UnixStream) {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(reply).unwrap();
    theirs.set_nonblocking(true).unwrap();
    let mut client = MysqlClient::over(Channel::over_pair(ours), deprecate_eof);
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

fn login() -> Login {
    Login { user: "u".to_owned(), password: "p".to_owned(), database: "d".to_owned() }
}

#[test]
fn has_the_server_refuse_several_statements_in_one_text() {
    // With either end of a result; and a server without the option.
    for reply in [&b"\x05\0\0\x01\xfe\0\0\x02\0"[..], b"\x07\0\0\x01\xfe\0\0\x02\0\0\0"] {
        let (mut client, mut server) = client(reply, true);
        client.one_statement_each().unwrap();
        assert_eq!(sent(&mut server), b"\x03\0\0\0\x1b\x01\0");
        server.write_all(OK).unwrap();
        client.simple("DO 1").unwrap();
    }
    let (mut client, _server) = client(b"\x0c\0\0\x01\xff\x17\x04#08S01no.", true);
    assert_eq!(client.one_statement_each().unwrap_err().to_string(), "no. (1047)");
}

#[test]
fn tells_types_until_the_server_has_them() {
    let (mut client, mut server) = client(PREPARED, true);
    let statement = client.prepare("SELECT ?", &[ValueType::Int]).unwrap();
    assert_eq!(sent(&mut server), b"\x09\0\0\0\x16SELECT ?");
    let execute = |value: i64, tell: bool| {
        let mut body = b"\x17\x05\0\0\0\0\x01\0\0\0\0".to_vec();
        body.extend_from_slice(if tell { b"\x01\x08\0" } else { b"\0" });
        body.extend_from_slice(&value.to_le_bytes());
        [&[body.len() as u8, 0, 0, 0], body.as_slice()].concat()
    };
    server.write_all(b"\x0d\0\0\x01\xff\x26\x04#23000dup.").unwrap();
    let refused = client.execute(statement, &[Value::Int(1)]).unwrap_err();
    assert_eq!(refused.to_string(), "dup. (1062)");
    assert_eq!(sent(&mut server), execute(1, true));
    server.write_all(b"\x07\0\0\x01\0\x03\0\x02\0\0\0").unwrap();
    let reply = client.execute(statement, &[Value::Int(-2)]).unwrap();
    assert_eq!(reply, Reply { rows: 0, affected: 3, bytes: 11, result_set: false });
    assert_eq!(sent(&mut server), execute(-2, true));
    server.write_all(OK).unwrap();
    client.execute(statement, &[Value::Int(258)]).unwrap();
    assert_eq!(sent(&mut server), execute(258, false));
}

#[test]
fn counts_that_no_server_has_do_not_overflow() {
    let ok = |status: u8, sequence: u8| {
        [&[0x0f, 0, 0, sequence, 0, 0xfe][..], &[0xff; 8], &[0, status, 0, 0, 0]].concat()
    };
    let (mut client, _server) = client(&[ok(8, 1), ok(0, 2)].concat(), true);
    assert_eq!(client.simple("DO 1").unwrap().affected, u64::MAX);
}

#[test]
fn sends_text_values_with_their_length() {
    let prepared =
        b"\x0c\0\0\x01\0\x01\0\0\0\0\0\x01\0\0\0\0\x01\0\0\x02?\x05\0\0\x03\xfe\0\0\x02\0";
    let (mut client, mut server) = client(prepared, false);
    let statement = client.prepare("?", &[ValueType::Text]).unwrap();
    sent(&mut server);
    server.write_all(OK).unwrap();
    client.execute(statement, &[Value::Text(b"hi")]).unwrap();
    assert_eq!(sent(&mut server), b"\x11\0\0\0\x17\x01\0\0\0\0\x01\0\0\0\0\x01\xfd\0\x02hi");
    let check = |length: usize, head: &[u8]| {
        let mut output = Vec::new();
        packet::length_encoded(&mut output, &vec![0; length]);
        assert_eq!(&output[..head.len()], head);
        assert_eq!(output.len(), head.len() + length);
        assert_eq!(packet::Reader(&output).length(), Some(length as u64));
    };
    check(250, b"\xfa");
    check(251, b"\xfc\xfb\0");
    check(65_535, b"\xfc\xff\xff");
    check(65_536, b"\xfd\0\0\x01");
    check(1 << 24, b"\xfe\0\0\0\x01\0\0\0\0");
}

#[test]
fn counts_rows_with_and_without_eof() {
    let column = b"\x01\0\0\x01\x02\x03\0\0\x02def\x03\0\0\x03def";
    let rows = b"\x05\0\0\x05\0\0abc\x01\0\0\x06\xfb";
    let old = [&column[..], b"\x05\0\0\x04\xfe\0\0\x02\0", rows, b"\x05\0\0\x07\xfe\0\0\x02\0"];
    let new = [&column[..], rows, b"\x07\0\0\x07\xfe\0\0\x02\0\0\0"];
    for (reply, deprecate_eof) in [(old.concat(), false), (new.concat(), true)] {
        let (mut client, _server) = client(&reply, deprecate_eof);
        let counted = client.simple("").unwrap();
        let bytes = reply.len() as u64;
        assert_eq!(counted, Reply { rows: 2, affected: 0, bytes, result_set: true });
    }
}

#[test]
fn adds_up_several_results() {
    let reply = b"\x07\0\0\x01\0\x03\0\x0a\0\0\0\x01\0\0\x02\x01\x03\0\0\x03def\x02\0\0\x04\x01a\
        \x07\0\0\x05\xfe\0\0\x0a\0\0\0\x07\0\0\x06\0\x04\0\x02\0\0\0";
    let (mut client, _server) = client(reply, true);
    let counted = client.simple("").unwrap();
    assert_eq!((counted.rows, counted.affected, counted.result_set), (1, 7, true));
}

#[test]
fn keeps_rows_as_text() {
    let reply =
        b"\x01\0\0\x01\x03\x01\0\0\x02c\x01\0\0\x03c\x01\0\0\x04c\x05\0\0\x05\xfb\x02\xc3\xa4\0\
        \x07\0\0\x06\xfe\0\0\x02\0\0\0";
    let (mut client, _server) = client(reply, true);
    let row = [None, Some("ä".to_owned()), Some(String::new())];
    assert_eq!(client.rows("").unwrap(), [row]);
}

#[test]
fn cuts_long_statements() {
    let check = |argument: usize, lengths: &[usize]| {
        let mut output = Vec::new();
        packet::command(&mut output, packet::COM_QUERY, &vec![b'x'; argument]);
        let mut rest = output.as_slice();
        for (sequence, length) in lengths.iter().enumerate() {
            assert_eq!((packet::body_length(rest), rest[3]), (*length, sequence as u8));
            rest = &rest[HEADER + length..];
        }
        assert!(rest.is_empty());
    };
    check(LONGEST - 2, &[LONGEST - 1]);
    check(LONGEST - 1, &[LONGEST, 0]);
    check(LONGEST, &[LONGEST, 1]);
    check(2 * LONGEST, &[LONGEST, LONGEST, 1]);
}

#[test]
fn a_farewell_ends_the_session() {
    let (mut client, _server) = client(b"\x0a\0\0\0\xff\x1d\x04#08S01x", true);
    let error = client.simple("SELECT 1").unwrap_err();
    assert_eq!(error.to_string(), "log in to a test: x (1053)");
    assert!(client.simple("SELECT 1").unwrap_err().to_string().contains("connect again"));
}

#[test]
fn gives_no_file_away() {
    let reply = b"\x05\0\0\x01\xfbfile\x07\0\0\x03\0\0\0\x02\0\0\0";
    let (mut client, mut server) = client(reply, true);
    assert_eq!(client.simple("").unwrap().rows, 0);
    assert_eq!(sent(&mut server), b"\x01\0\0\0\x03\0\0\0\x02");
}

#[test]
fn logs_in() {
    let more = b"\x02\0\0\x02\x01\x03\x07\0\0\x03\0\0\0\x02\0\0\0";
    let (client, mut server) = client(&[GREETING, more].concat(), true);
    let client = MysqlClient::log_in(client.channel, None, &login()).unwrap();
    assert_eq!((client.connection_id(), client.server_version()), (258, "8.0.33"));
    assert!(client.deprecate_eof);
    let bytes = sent(&mut server);
    assert_eq!(&bytes[3..13], b"\x01\x8d\xa2\x0f\x01\0\0\0\x40\x2d");
    assert_eq!(&bytes[13..36], [0; 23]);
    assert_eq!(&bytes[36..39], b"u\0\x20");
    assert_eq!(&bytes[71..], b"d\0caching_sha2_password\0");
}

#[test]
fn a_server_without_tls_is_refused_or_taken_as_the_mode_says() {
    // CLIENT_SSL is the fourth bit of the second byte.
    let mut greeting = GREETING.to_vec();
    let capabilities = greeting.iter().position(|byte| *byte == 0xff).unwrap();
    greeting[capabilities + 1] &= !8;
    let more = b"\x02\0\0\x02\x01\x03\x07\0\0\x03\0\0\0\x02\0\0\0";
    let log_in = |mode| {
        let (client, _server) = client(&[greeting.as_slice(), more].concat(), true);
        let tls = Tls::of(mode);
        let address = Address::Tcp { host: "h".to_owned(), port: 1, tls };
        MysqlClient::log_in(client.channel, Some(&address), &login())
    };
    for mode in [TlsMode::Off, TlsMode::Prefer] {
        assert!(!log_in(mode).unwrap().is_encrypted());
    }
    for mode in [TlsMode::Require, TlsMode::VerifyCa, TlsMode::VerifyFull] {
        let error = log_in(mode).err().unwrap().to_string();
        assert!(error.contains("the server has no TLS, and ssl-mode="), "{error}");
        assert!(error.contains("hint: enable it on the server"), "{error}");
    }
}

#[test]
fn answers_a_switch_of_methods() {
    let switch = b"\x2c\0\0\x02\xfemysql_native_password\0abcdefghijklmnopqrst\0";
    let ok = b"\x07\0\0\x04\0\0\0\x02\0\0\0";
    let (client, mut server) = client(&[GREETING, switch, ok].concat(), true);
    MysqlClient::log_in(client.channel, None, &login()).unwrap();
    let bytes = sent(&mut server);
    let proof = scramble(b"mysql_native_password", "p", b"abcdefghijklmnopqrst");
    assert_eq!(proof.len(), 20);
    assert!(bytes.ends_with(&[b"\x14\0\0\x03", proof.as_slice()].concat()));
}

#[test]
fn names_what_a_login_lacks() {
    let check = |reply: &[u8], words: &str| {
        let (client, _server) = client(reply, true);
        let error = MysqlClient::log_in(client.channel, None, &login()).err().unwrap().to_string();
        assert!(error.contains(words), "{error}");
    };
    check(b"\x0b\0\0\0\xff\x10\x04Too many", "Too many");
    check(b"\x01\0\0\0\x09", "protocol version 9 instead of 10");
    check(b"\x08\0\0\0\x0a5.0.1\0\0", "the greeting of server \"5.0.1\" is too short");
    let then = |more: &[u8]| [GREETING, more].concat();
    check(&then(b"\x01\0\0\x02\xfe"), "mysql_old_password, which rqps does not support");
    check(&then(b"\x08\0\0\x02\xfedialog\0"), "user \"u\" logs in with dialog");
    check(&then(b"\x02\0\0\x02\x01\x09"), "invalid answer");
}

#[test]
fn hides_the_password_as_the_server_expects() {
    let nonce: Vec<u8> = (1..=20).collect();
    let hex = |plugin: &[u8]| -> String {
        scramble(plugin, "secret", &nonce).iter().map(|byte| format!("{byte:02x}")).collect()
    };
    // By Python's hashlib.
    assert_eq!(hex(b"mysql_native_password"), "b32bb3a583e1340c0a1108d58b1be49781ad8c2f");
    assert_eq!(
        hex(b"caching_sha2_password"),
        "746ebe205d56a0707acb3e796e834e0dd7b1d61743b26bd5202c7a623230c7c9"
    );
    assert_eq!(scramble(b"mysql_native_password", "", &nonce), Vec::<u8>::new());
}

#[test]
fn takes_mariadbs_mask_off() {
    let version = |text: &str| {
        let mut body = b"\x0a".to_vec();
        body.extend_from_slice(text.as_bytes());
        body.extend_from_slice(b"\0\x01\0\0\0\x01\x02\x03\x04\x05\x06\x07\x08\0\xff\xff\x08\x02\0");
        body.extend_from_slice(b"\xff\x81\x15\0\0\0\0\0\0\0\0\0\0ABCDEFGHIJKL\0");
        Greeting::parse(&body).unwrap().version
    };
    assert_eq!(version("5.5.5-10.11.5-MariaDB"), "10.11.5-MariaDB");
    assert_eq!(version("11.4.5-MariaDB"), "11.4.5-MariaDB");
    assert_eq!(version("5.5.5-m3"), "5.5.5-m3");
}

/// Bytes in the form of packets, so that the parsers get beyond the first one.
fn packets() -> impl Strategy<Value = Vec<u8>> {
    let first =
        prop_oneof![Just(0u8), Just(1), Just(2), Just(0xfb), Just(0xfe), Just(0xff), any::<u8>()];
    let body = prop::collection::vec(any::<u8>(), 0..24);
    let packet = (first, body).prop_map(|(first, body)| {
        let mut bytes = vec![body.len() as u8 + 1, 0, 0, 1, first];
        bytes.extend_from_slice(&body);
        bytes
    });
    prop::collection::vec(packet, 0..12).prop_map(|packets| packets.concat())
}

proptest! {
    #![proptest_config(Config { rng_seed: RngSeed::Fixed(1), ..Config::default() })]

    #[test]
    fn no_bytes_make_it_panic(
        bytes in prop_oneof![packets(), prop::collection::vec(any::<u8>(), 0..200)],
        what in 0..5, deprecate_eof in any::<bool>(),
    ) {
        let before: &[u8] = match what {
            1 => PREPARED,
            4 => GREETING,
            _ => b"",
        };
        let (mut client, server) = client(before, deprecate_eof || what == 1);
        let statement = (what == 1).then(|| client.prepare("", &[ValueType::Int]).unwrap());
        (&server).write_all(&bytes).unwrap();
        server.shutdown(std::net::Shutdown::Write).unwrap();
        // Each call returns: a reply, an error, or the end of the bytes.
        match (what, statement) {
            (0, _) => drop(client.prepare("", &[])),
            (1, Some(statement)) => drop(client.execute(statement, &[Value::Int(1)])),
            (2, _) => drop(client.rows("")),
            (3, _) => drop(client.simple("")),
            _ => drop(MysqlClient::log_in(client.channel, None, &login())),
        }
    }

    #[test]
    fn a_greeting_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = Greeting::parse(&bytes);
        let _ = Greeting::parse(&[&[10], bytes.as_slice()].concat());
    }
}
