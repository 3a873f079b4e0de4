//! Words and separators of DSNs.

use rqps_model::build::Dbms;
use rqps_model::compatible::CompatibleServer;
use rqps_model::dialect::SocketName;

/// The name in a password of the form `${NAME}`.
pub(super) fn variable(password: &str) -> Option<&str> {
    let name = password.strip_prefix("${")?.strip_suffix('}')?;
    let is_name = |name: &str| {
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && !name.starts_with(|first: char| first.is_ascii_digit())
    };
    (!name.is_empty() && is_name(name)).then_some(name)
}

/// The DBMS whose protocol a scheme means, and the port of a DSN that names none.
pub fn known_scheme(scheme: &str) -> Option<(Dbms, u16)> {
    if let Some(row) = CompatibleServer::of_scheme(scheme) {
        let dbms = Dbms::ALL.into_iter().find(|dbms| dbms.dialect() == row.dialect)?;
        return Some((dbms, row.port));
    }
    let dbms = Dbms::from_name(scheme)?;
    Some((dbms, dbms.dialect().spec().server.as_ref()?.port))
}

/// True for Postgres, where the host may be the folder of the socket. DSNs of MySQL name the
/// socket's file.
pub(super) fn names_folder(dbms: Dbms) -> bool {
    let server = dbms.dialect().spec().server.as_ref();
    server.is_some_and(|server| server.socket == SocketName::HostFolder)
}

/// Names of the options of both dialects.
const OPTIONS: [&str; 21] = [
    "host", "port", "user", "password", "dbname", "service", "login-path", "socket", "sslmode",
    "ssl-mode", "sslrootcert", "ssl-ca", "sslcert", "ssl-cert", "sslkey", "ssl-key",
    "channel_binding", "require_auth", "get-server-public-key", "server-public-key-path",
    "enable-cleartext-plugin",
];

/// True for a known option with a value: `user=me`.
pub(super) fn is_option(pair: &str) -> bool {
    let name = pair.split_once('=').map_or("", |(name, _)| name);
    OPTIONS.contains(&name)
}

/// Splits the text after `://` into the address and the options. As in libpq, an unencoded `?` in
/// the password does not begin the options.
pub(super) fn split_options(rest: &str) -> (&str, &str) {
    let mut from = 0;
    while let Some(at) = rest[from..].find('?').map(|at| from + at) {
        let options = &rest[at + 1..];
        match options.split_once('@') {
            Some((before, _)) if !before.split('&').any(is_option) => {
                from = at + 1 + before.len();
            }
            _ => return (&rest[..at], options),
        }
    }
    (rest, "")
}

/// The beginning of a text that is not a DSN, short enough for an error and without a password.
pub(super) fn first_word(text: &str) -> &str {
    text.split([':', '/', '@', ' ']).next().unwrap_or_default()
}
