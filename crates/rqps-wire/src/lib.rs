//! Blocking clients for the Postgres and MySQL protocols, made for measuring. A statement costs one
//! write and one read; on a unix socket also a poll, which is cheaper (see socket.rs). Clients
//! count rows without decoding them, and allocate nothing per statement once their buffers have
//! grown.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod dsn;
mod error;
pub mod mysql;
pub mod password;
pub mod postgres;
mod rows;
mod rsa;
mod socket;
mod tls;

pub use error::{Canceller, WireError, is_stopped, stop_with};
pub use rows::{LastRow, LastRows, Prepared, Reply, RowTexts, TextRows, Value, ValueType};

/// Entries for the fuzz targets (`fuzz/`): readers of what servers send and of files with logins,
/// which are private otherwise. Nothing else calls them.
#[doc(hidden)]
pub mod fuzzing {
    use std::io::{Read, Write};
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;

    use super::mysql::MysqlClient;
    use super::postgres::PostgresClient;
    use super::socket::Channel;
    use super::tls;
    use crate::password;
    use rqps_model::endpoint::{ChannelBinding, Login};

    /// A client whose server sends `bytes` and then leaves; the other end of its connection.
    fn connected(bytes: &[u8]) -> (Channel, UnixStream) {
        let pair = UnixStream::pair().and_then(|(ours, mut theirs)| {
            theirs.set_nonblocking(true)?;
            // What does not fit into the socket is left out.
            let _ = theirs.write_all(bytes);
            theirs.shutdown(Shutdown::Write)?;
            Ok((ours, theirs))
        });
        let (ours, theirs) = pair.expect("a pair of sockets");
        (Channel::over_pair(ours), theirs)
    }

    /// All that a client has sent so far.
    pub fn sent(server: &mut UnixStream) -> Vec<u8> {
        let mut all = Vec::new();
        let mut piece = [0; 4096];
        while let Ok(count @ 1..) = server.read(&mut piece) {
            all.extend_from_slice(&piece[..count]);
        }
        all
    }

    /// A client of Postgres after its login.
    pub fn postgres(bytes: &[u8]) -> (PostgresClient, UnixStream) {
        let (channel, server) = connected(bytes);
        (PostgresClient::over(channel), server)
    }

    /// Logs in to a Postgres server that sends `bytes`.
    pub fn postgres_login(bytes: &[u8], login: &Login) -> (bool, UnixStream) {
        let (channel, server) = connected(bytes);
        (PostgresClient::log_in(channel, login, ChannelBinding::Prefer).is_ok(), server)
    }

    /// A client of MySQL after its login.
    pub fn mysql(bytes: &[u8], deprecate_eof: bool) -> (MysqlClient, UnixStream) {
        let (channel, server) = connected(bytes);
        (MysqlClient::over(channel, deprecate_eof), server)
    }

    /// Logs in to a MySQL server that sends `bytes`.
    pub fn mysql_login(bytes: &[u8], login: &Login) -> (bool, UnixStream) {
        let (channel, server) = connected(bytes);
        (MysqlClient::log_in(channel, None, login).is_ok(), server)
    }

    /// The channel binding of a certificate.
    pub fn certificate(bytes: &[u8]) -> Option<Vec<u8>> {
        tls::server_end_point(bytes)
    }

    /// The text of a file of login paths.
    pub fn login_paths(bytes: &[u8]) -> Result<String, String> {
        password::login_paths_text(bytes)
    }

    /// The options of a group of MySQL, and those of a service of libpq.
    pub fn options(text: &str, name: &str) -> usize {
        password::group(text, name).len()
            + password::service_in_file(text, name).map_or(0, |it| it.len())
    }
}
