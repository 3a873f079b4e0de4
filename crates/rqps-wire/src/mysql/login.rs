//! The start of a MySQL connection: greeting, TLS, password.

use sha1::{Digest, Sha1};
use sha2::Sha256;

use super::packet::{self, HEADER, Reader, ServerError};
use crate::socket::Channel;
use crate::{WireError, rsa};
use rqps_model::endpoint::{Address, Login, ServerKey, TlsMode};
use rqps_model::escape;

const CLIENT_LONG_PASSWORD: u32 = 1;
const CLIENT_LONG_FLAG: u32 = 1 << 2;
const CLIENT_CONNECT_WITH_DB: u32 = 1 << 3;
const CLIENT_LOCAL_FILES: u32 = 1 << 7;
const CLIENT_PROTOCOL_41: u32 = 1 << 9;
const CLIENT_SSL: u32 = 1 << 11;
const CLIENT_TRANSACTIONS: u32 = 1 << 13;
const CLIENT_SECURE_CONNECTION: u32 = 1 << 15;
const CLIENT_MULTI_STATEMENTS: u32 = 1 << 16;
const CLIENT_MULTI_RESULTS: u32 = 1 << 17;
const CLIENT_PS_MULTI_RESULTS: u32 = 1 << 18;
const CLIENT_PLUGIN_AUTH: u32 = 1 << 19;
const CLIENT_DEPRECATE_EOF: u32 = 1 << 24;

/// Capabilities of this client. Without CLIENT_FOUND_ROWS, as in sysbench, `affected` is the number
/// of changed rows. With CLIENT_LONG_PASSWORD, MariaDB uses none of its own extensions.
/// CLIENT_LOCAL_FILES is for bulk loads from memory; the client never sends a file of this host.
const CAPABILITIES: u32 = CLIENT_LONG_PASSWORD
    | CLIENT_LONG_FLAG
    | CLIENT_LOCAL_FILES
    | CLIENT_PROTOCOL_41
    | CLIENT_TRANSACTIONS
    | CLIENT_SECURE_CONNECTION
    | CLIENT_MULTI_STATEMENTS
    | CLIENT_MULTI_RESULTS
    | CLIENT_PS_MULTI_RESULTS
    | CLIENT_PLUGIN_AUTH
    | CLIENT_DEPRECATE_EOF;

/// Required capabilities; MySQL has all of them since 4.1.
const REQUIRED: u32 = CLIENT_PROTOCOL_41 | CLIENT_SECURE_CONNECTION;

/// utf8mb4_general_ci: known to MySQL since 5.5.3 and to every MariaDB.
const CHARACTER_SET: u8 = 45;

const LONGEST_STATEMENT: u32 = 1 << 30;

/// The code of a refused login.
const ACCESS_DENIED: &str = "1045";

/// Answers of a server before it says yes or no: a method, perhaps another one, and its steps.
const ROUNDS: usize = 16;

/// Why a password does not leave, and the ways out.
const NOT_CHECKED: &str = "the server wants the password itself, and nobody vouches that it is the \
                           server\nhint: use ssl-mode=VERIFY_IDENTITY (or VERIFY_CA with ssl-ca=\
                           FILE), the server's unix socket, ssl-mode=DISABLED with \
                           server-public-key-path=FILE; or get-server-public-key=true, which \
                           shows the password to anybody in between";

const NATIVE: &[u8] = b"mysql_native_password";
const CACHING_SHA2: &[u8] = b"caching_sha2_password";

/// The server's facts after the login.
pub(super) struct Welcome {
    pub(super) channel: Channel,
    pub(super) connection_id: u32,
    pub(super) server_version: String,
    /// True if client and server agreed that an OK packet ends result sets.
    pub(super) deprecate_eof: bool,
}

/// Answers the greeting, then the server's requests until it says OK. `address` is given if the
/// client may ask for TLS.
pub(super) fn log_in(
    mut channel: Channel,
    address: Option<&Address>,
    login: &Login,
) -> Result<Welcome, WireError> {
    let (body, mut sequence) = receive(&mut channel)?;
    if body.first() == Some(&packet::ERR) {
        return Err(ServerError::parse(&body).into_wire());
    }
    let greeting = match Greeting::parse(&body) {
        Ok(greeting) => greeting,
        Err(what) => return Err(channel.confused(what)),
    };
    let mut capabilities = CAPABILITIES & greeting.capabilities;
    if !login.database.is_empty() {
        capabilities |= CLIENT_CONNECT_WITH_DB;
    }
    if let Some(address) = address
        && asks_for_tls(&mut channel, address, greeting.capabilities)?
    {
        capabilities |= CLIENT_SSL;
        sequence = sequence.wrapping_add(1);
        send(&mut channel, sequence, &fixed_part(capabilities))?;
        channel = channel.encrypt(address)?;
    }
    let mut exchange = Exchange { channel, sequence, login, nonce: greeting.nonce };
    exchange.respond(capabilities, &greeting.plugin)?;
    exchange.until_ok().map_err(|error| exchange.explained(error))?;
    exchange.channel.logged_in()?;
    Ok(Welcome {
        channel: exchange.channel,
        connection_id: greeting.connection_id,
        server_version: greeting.version,
        deprecate_eof: capabilities & CLIENT_DEPRECATE_EOF != 0,
    })
}

/// True if the client asks for TLS.
fn asks_for_tls(
    channel: &mut Channel,
    address: &Address,
    capabilities: u32,
) -> Result<bool, WireError> {
    let Address::Tcp { tls, .. } = address else { return Ok(false) };
    match tls.mode {
        TlsMode::Off | TlsMode::Allow => Ok(false),
        _ if capabilities & CLIENT_SSL != 0 => Ok(true),
        TlsMode::Prefer => Ok(false),
        mode => Err(channel.confused(format!(
            "the server has no TLS, and ssl-mode={} requires it\nhint: enable it on the server, \
             or use ssl-mode=DISABLED",
            mode.word()
        ))),
    }
}

/// The server's first packet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Greeting {
    pub(super) version: String,
    pub(super) connection_id: u32,
    pub(super) capabilities: u32,
    /// 20 bytes, hashed together with the password.
    pub(super) nonce: Vec<u8>,
    pub(super) plugin: Vec<u8>,
}

impl Greeting {
    pub(super) fn parse(body: &[u8]) -> Result<Greeting, String> {
        let mut reader = Reader(body);
        match reader.u8() {
            Some(10) => {}
            Some(other) => {
                return Err(format!(
                    "got protocol version {other} instead of 10; is that a MySQL server?"
                ));
            }
            None => return Err("the greeting is empty".to_owned()),
        }
        let version = String::from_utf8_lossy(reader.until_zero()).into_owned();
        let short = || format!("the greeting of server {version:?} is too short");
        let greeting = Greeting::rest(&mut reader).ok_or_else(short)?;
        if greeting.capabilities & REQUIRED != REQUIRED {
            return Err(format!("server {version:?} is too old: rqps needs 4.1 or later"));
        }
        let version = match version.strip_prefix("5.5.5-") {
            Some(mariadb) if mariadb.contains("MariaDB") => mariadb.to_owned(),
            _ => version,
        };
        Ok(Greeting { version, ..greeting })
    }

    fn rest(reader: &mut Reader<'_>) -> Option<Greeting> {
        let connection_id = reader.u32()?;
        let mut nonce = reader.bytes(8)?.to_vec();
        reader.u8()?;
        let low = u32::from(reader.u16()?);
        let _character_set = reader.u8()?;
        let _status = reader.u16()?;
        let high = u32::from(reader.u16()?);
        let nonce_length = usize::from(reader.u8()?);
        reader.bytes(10)?;
        // The rest of the nonce has at least 13 bytes; the last is zero.
        let rest = reader.bytes(nonce_length.saturating_sub(8).max(13))?;
        nonce.extend_from_slice(rest.strip_suffix(&[0]).unwrap_or(rest));
        let plugin = match reader.until_zero() {
            [] => NATIVE.to_vec(),
            name => name.to_vec(),
        };
        let capabilities = low | high << 16;
        Some(Greeting { version: String::new(), connection_id, capabilities, nonce, plugin })
    }
}

/// The fixed part of the login packet. Sent alone, it asks for TLS.
fn fixed_part(capabilities: u32) -> Vec<u8> {
    let mut body = capabilities.to_le_bytes().to_vec();
    body.extend_from_slice(&LONGEST_STATEMENT.to_le_bytes());
    body.push(CHARACTER_SET);
    body.extend_from_slice(&[0; 23]);
    body
}

fn send(channel: &mut Channel, sequence: u8, body: &[u8]) -> Result<(), WireError> {
    let mut output = vec![0; HEADER];
    output.extend_from_slice(body);
    packet::frame(&mut output, sequence);
    channel.send(&output)
}

/// The next packet's body and sequence number.
fn receive(channel: &mut Channel) -> Result<(Vec<u8>, u8), WireError> {
    channel.need(HEADER)?;
    let length = packet::body_length(channel.available());
    let sequence = channel.available()[3];
    channel.need(HEADER + length)?;
    let body = channel.available()[HEADER..HEADER + length].to_vec();
    channel.consume(HEADER + length);
    Ok((body, sequence))
}

/// The exchange of authentication packets.
struct Exchange<'a> {
    channel: Channel,
    /// Number of the last packet, sent or received.
    sequence: u8,
    login: &'a Login,
    nonce: Vec<u8>,
}

impl Exchange<'_> {
    fn send(&mut self, body: &[u8]) -> Result<(), WireError> {
        self.sequence = self.sequence.wrapping_add(1);
        send(&mut self.channel, self.sequence, body)
    }

    /// Sends the login packet. If the client does not know the server's default method, it offers
    /// the native one, and the server asks again.
    fn respond(&mut self, capabilities: u32, plugin: &[u8]) -> Result<(), WireError> {
        let plugin = if plugin == CACHING_SHA2 { CACHING_SHA2 } else { NATIVE };
        let proof = scramble(plugin, &self.login.password, &self.nonce);
        let login = self.login;
        for (what, text) in [("user", &login.user), ("database", &login.database)] {
            if text.as_bytes().contains(&0) {
                return Err(WireError::Protocol(format!("the {what} name holds a zero byte")));
            }
        }
        let mut body = fixed_part(capabilities);
        body.extend_from_slice(login.user.as_bytes());
        body.push(0);
        body.push(proof.len() as u8);
        body.extend_from_slice(&proof);
        if capabilities & CLIENT_CONNECT_WITH_DB != 0 {
            body.extend_from_slice(login.database.as_bytes());
            body.push(0);
        }
        if capabilities & CLIENT_PLUGIN_AUTH != 0 {
            body.extend_from_slice(plugin);
            body.push(0);
        }
        self.send(&body)
    }

    /// Adds a hint to a refusal, where there is one.
    fn explained(&self, error: WireError) -> WireError {
        let is_refused = error.code() == Some(ACCESS_DENIED);
        if is_refused && self.login.password.is_empty() {
            let words = format!(
                "{error}\nhint: no password is known for user {:?}: set MYSQL_PWD, or write it \
                 into ~/.my.cnf or a login path",
                self.login.user
            );
            return WireError::NoPassword { code: ACCESS_DENIED, words };
        }
        error.with_tls_hint(self.channel.is_encrypted())
    }

    fn until_ok(&mut self) -> Result<(), WireError> {
        for _ in 0..ROUNDS {
            let (body, sequence) = receive(&mut self.channel)?;
            self.sequence = sequence;
            match body.split_first() {
                Some((&packet::OK, _)) => return Ok(()),
                Some((&packet::ERR, _)) => return Err(ServerError::parse(&body).into_wire()),
                Some((&packet::EOF, request)) => self.switch(request)?,
                Some((1, [3])) => {}
                Some((1, [4])) => self.full_sha2()?,
                _ => return Err(self.channel.confused("invalid answer to the login")),
            }
        }
        Err(self.channel.confused("the server asks again and again who the client is"))
    }

    /// The server asks for another authentication method.
    fn switch(&mut self, request: &[u8]) -> Result<(), WireError> {
        let mut reader = Reader(request);
        let plugin = reader.until_zero();
        if plugin == NATIVE || plugin == CACHING_SHA2 {
            self.nonce = reader.0.strip_suffix(&[0]).unwrap_or(reader.0).to_vec();
            let proof = scramble(plugin, &self.login.password, &self.nonce);
            return self.send(&proof);
        }
        let name = match plugin {
            // The server checks the peer of the socket; the client sends nothing.
            b"auth_socket" | b"unix_socket" => return self.send(&[]),
            b"mysql_clear_password" => return self.clear_password(),
            [] => "mysql_old_password".into(),
            name => String::from_utf8_lossy(name),
        };
        let name = escape::line(&name);
        let what = format!(
            "user {:?} logs in with {name}, which rqps does not support: give the user a password \
             with mysql_native_password or caching_sha2_password",
            self.login.user
        );
        Err(self.channel.confused(what))
    }

    /// The server must see the tokens of cloud logins to check them. As the client of MySQL, this
    /// one must be told to send them; it also must know whom it sends them to.
    fn clear_password(&mut self) -> Result<(), WireError> {
        let is_local = self.channel.is_trusted() && !self.channel.is_encrypted();
        if is_local || (self.channel.is_trusted() && self.channel.consent().clear) {
            let mut password = self.login.password.clone().into_bytes();
            password.push(0);
            return self.send(&password);
        }
        Err(self.channel.confused(
            "the server wants the password itself (mysql_clear_password)\nhint: if it is to have \
             it, use enable-cleartext-plugin=true with ssl-mode=VERIFY_IDENTITY (or VERIFY_CA \
             with ssl-ca=FILE), or the server's unix socket",
        ))
    }

    /// The server has no cached hash and asks for the password itself. The client sends it as it is
    /// over a trusted channel, otherwise encrypted with the server's key, if it may.
    fn full_sha2(&mut self) -> Result<(), WireError> {
        let mut password = self.login.password.clone().into_bytes();
        password.push(0);
        let consent = self.channel.consent().key.clone();
        let is_encrypted = self.channel.is_encrypted();
        let key = match consent {
            _ if self.channel.is_trusted() => return self.send(&password),
            // With TLS, the server takes the password as it is.
            ServerKey::Asked if is_encrypted => return self.send(&password),
            ServerKey::Asked => self.asked_key()?,
            ServerKey::File(path) if !is_encrypted => rsa::PublicKey::from_file(&path),
            ServerKey::File(_) | ServerKey::Refused => {
                return Err(self.channel.confused(NOT_CHECKED));
            }
        };
        for (byte, mask) in password.iter_mut().zip(self.nonce.iter().cycle()) {
            *byte ^= mask;
        }
        match key.and_then(|key| key.encrypt(&password)) {
            Ok(encrypted) => self.send(&encrypted),
            Err(what) => Err(self.channel.confused(format!(
                "{what}; use the server's unix socket, TLS, or a user with mysql_native_password"
            ))),
        }
    }
}

impl Exchange<'_> {
    /// The key that the server, or whoever is in its place, sends.
    fn asked_key(&mut self) -> Result<Result<rsa::PublicKey, String>, WireError> {
        const REQUEST_KEY: [u8; 1] = [2];
        self.send(&REQUEST_KEY)?;
        let (body, sequence) = receive(&mut self.channel)?;
        self.sequence = sequence;
        Ok(match body.split_first() {
            Some((&packet::ERR, _)) => return Err(ServerError::parse(&body).into_wire()),
            Some((1, pem)) => rsa::PublicKey::from_pem(&String::from_utf8_lossy(pem)),
            _ => Err("the server sent no public key".to_owned()),
        })
    }
}

/// A proof of the password that does not reveal it; empty for an empty password.
pub(super) fn scramble(plugin: &[u8], password: &str, nonce: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    if plugin == CACHING_SHA2 {
        // SHA256(p) ⊕ SHA256(SHA256(SHA256(p)) ‖ nonce)
        let once = Sha256::digest(password);
        let twice = Sha256::digest(once);
        let mask = Sha256::new().chain_update(twice).chain_update(nonce).finalize();
        return once.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect();
    }
    // SHA1(p) ⊕ SHA1(nonce ‖ SHA1(SHA1(p)))
    let once = Sha1::digest(password);
    let twice = Sha1::digest(once);
    let mask = Sha1::new().chain_update(nonce).chain_update(twice).finalize();
    once.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect()
}
