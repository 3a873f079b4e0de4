use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use super::*;

/// A client that finds `reply` waiting, and the server's end of the socket.
fn client(reply: &[u8]) -> (Client, UnixStream) {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(reply).unwrap();
    theirs.set_nonblocking(true).unwrap();
    let client = Client {
        channel: Channel::over_pair(ours),
        output: Vec::new(),
        statements: Vec::new(),
        connection_id: 0,
        server_version: String::new(),
    };
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
