//! The prompt for a password: a server that asks for one, and a terminal on which it is typed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use crate::support::terminal::Terminal;

/// A message of Postgres: its length, or its type and length, and then as many bytes.
fn message(stream: &mut TcpStream, has_type: bool) -> Vec<u8> {
    let mut head = [0; 5];
    stream.read_exact(&mut head[usize::from(!has_type)..]).unwrap();
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    let mut body = vec![0; length - 4];
    stream.read_exact(&mut body).unwrap();
    body
}

/// Answers two clients as Postgres does that has no TLS and wants a password in plain text. The
/// first has none. Refuses the second, and gives its password.
fn serve(listener: &TcpListener) -> String {
    let mut password = Vec::new();
    for has_one in [false, true] {
        let (mut stream, _) = listener.accept().unwrap();
        message(&mut stream, false);
        stream.write_all(b"N").unwrap();
        message(&mut stream, false);
        stream.write_all(b"R\0\0\0\x08\0\0\0\x03").unwrap();
        if has_one {
            password = message(&mut stream, true);
            stream.write_all(b"E\0\0\0\x17SFATAL\0C28P01\0Mno\0\0").unwrap();
        }
    }
    String::from_utf8_lossy(&password).trim_end_matches('\0').to_owned()
}

#[test]
fn a_password_is_asked_for_and_not_shown() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = thread::spawn(move || serve(&listener));
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_rqps");
    let words = format!(
        "{program} init 'postgres://me@127.0.0.1:{port}/app?require_auth=password' -o draft.toml"
    );
    let mut terminal = Terminal::start(&words, folder.path());
    let prompt = terminal.until(": ");
    assert!(prompt.ends_with(&format!("Password for user me at 127.0.0.1:{port}: ")), "{prompt}");
    let (code, text) = terminal.end(b"wrong\x15open ses\x7fsame\n");
    assert_ne!(code, Some(0));
    assert!(!text.contains("sesame"), "{text}");
    assert!(text.contains("(28P01)"), "{text}");
    assert_eq!(server.join().unwrap(), "open sesame");
}
