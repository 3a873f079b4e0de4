//! The beginning of a Postgres session: TLS, password, and what the server tells of itself.

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};

use super::incoming::{header, whole};
use super::message::{self, HEADER, ServerError, begin, end, text};
use crate::domain::endpoint::{Address, Login};
use crate::wire::WireError;
use crate::wire::socket::Channel;

const PROTOCOL_3_0: u32 = 196_608;

/// "May we speak TLS?"
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// Asks for TLS and goes on under it.
pub(super) fn encrypt(mut channel: Channel, address: &Address) -> Result<Channel, WireError> {
    channel.send(&SSL_REQUEST)?;
    channel.need(1)?;
    let answer = channel.available()[0];
    channel.consume(1);
    if answer != b'S' {
        return Err(channel.confused(
            "the server has TLS disabled (ssl = off): enable it, or use sslmode=disable",
        ));
    }
    channel.encrypt(address)
}

/// What a session begins with.
pub(super) struct Welcome {
    pub(super) channel: Channel,
    pub(super) connection_id: u32,
    pub(super) server_version: String,
}

/// Sends the startup message and answers the server until it is ready.
pub(super) fn log_in(mut channel: Channel, login: &Login) -> Result<Welcome, WireError> {
    let mut output = Vec::new();
    startup(&mut output, login).map_err(WireError::Protocol)?;
    channel.send(&output)?;
    let mut exchange = Exchange { login, scram: None, verified: true };
    let (mut connection_id, mut server_version) = (0, String::new());
    loop {
        let (kind, length) = header(&mut channel)?;
        let body = whole(&mut channel, kind, length)?.to_vec();
        channel.consume(HEADER + length);
        match kind {
            b'R' => {
                output.clear();
                let answer = exchange.answer(&body, &mut output);
                answer.map_err(|what| channel.confused(what))?;
                if !output.is_empty() {
                    channel.send(&output)?;
                }
            }
            b'S' => {
                let mut words = body.split(|byte| *byte == 0);
                if words.next() == Some(b"server_version") {
                    let version = words.next().unwrap_or_default();
                    server_version = String::from_utf8_lossy(version).into_owned();
                }
            }
            b'K' => {
                if let Some(number) = body.first_chunk::<4>() {
                    connection_id = u32::from_be_bytes(*number);
                }
            }
            b'E' => return Err(ServerError::parse(&body).into_wire()),
            b'N' => {}
            b'Z' => return Ok(Welcome { channel, connection_id, server_version }),
            other => {
                let what = format!("unexpected message {:?}", char::from(other));
                return Err(channel.confused(what));
            }
        }
    }
}

fn startup(output: &mut Vec<u8>, login: &Login) -> Result<(), String> {
    output.extend_from_slice(&[0; 4]);
    output.extend_from_slice(&PROTOCOL_3_0.to_be_bytes());
    let settings = [("user", &login.user), ("database", &login.database)];
    for (name, value) in settings {
        if !value.is_empty() {
            text(output, name)?;
            text(output, value)?;
        }
    }
    text(output, "application_name")?;
    text(output, "rqps")?;
    output.push(0);
    end(output, 0)
}

/// The questions and answers about who we are.
struct Exchange<'a> {
    login: &'a Login,
    scram: Option<ScramSha256>,
    /// False between the beginning of SCRAM and the server's proof that it knows the password.
    verified: bool,
}

impl Exchange<'_> {
    /// Answers one Authentication message; nothing is put in `output` if there is nothing to say.
    fn answer(&mut self, body: &[u8], output: &mut Vec<u8>) -> Result<(), String> {
        let Some((kind, rest)) = body.split_first_chunk::<4>() else {
            return Err("the server's authentication message is too short".to_owned());
        };
        match u32::from_be_bytes(*kind) {
            0 if self.verified => Ok(()),
            0 => Err("the server ended SCRAM without proof that it knows the password".into()),
            3 => self.password(output, |login| Ok(login.password.clone())),
            5 => self.password(output, |login| {
                let salt = rest.first_chunk::<4>().ok_or("the md5 salt is too short")?;
                Ok(md5_hash(login.user.as_bytes(), login.password.as_bytes(), *salt))
            }),
            10 => self.begin_scram(rest, output),
            11 => {
                let scram = self.scram.as_mut().ok_or("SCRAM continues without a start")?;
                scram.update(rest).map_err(|error| format!("SCRAM: {error}"))?;
                let position = begin(output, b'p');
                output.extend_from_slice(scram.message());
                end(output, position)
            }
            12 => {
                let scram = self.scram.as_mut().ok_or("SCRAM ends without a start")?;
                scram.finish(rest).map_err(|error| {
                    format!("SCRAM: the server does not know the password: {error}")
                })?;
                self.scram = None;
                self.verified = true;
                Ok(())
            }
            other => Err(format!(
                "the server requires {}, which rqps does not support: use scram-sha-256, md5, \
                 password or trust in pg_hba.conf",
                authentication_name(other)
            )),
        }
    }

    fn password(
        &self,
        output: &mut Vec<u8>,
        answer: impl FnOnce(&Login) -> Result<String, &'static str>,
    ) -> Result<(), String> {
        self.need_password()?;
        let position = begin(output, b'p');
        text(output, &answer(self.login)?)?;
        end(output, position)
    }

    fn need_password(&self) -> Result<(), String> {
        if self.login.password.is_empty() {
            return Err(format!(
                "the server requires a password for user {:?}: set PGPASSWORD or add a line to \
                 ~/.pgpass",
                self.login.user
            ));
        }
        Ok(())
    }

    fn begin_scram(&mut self, mechanisms: &[u8], output: &mut Vec<u8>) -> Result<(), String> {
        let known = |name: &[u8]| name == SCRAM_SHA_256.as_bytes();
        if !mechanisms.split(|byte| *byte == 0).any(known) {
            return Err("the server offers no SCRAM-SHA-256".to_owned());
        }
        self.need_password()?;
        let password = self.login.password.as_bytes();
        let scram = ScramSha256::new(password, ChannelBinding::unsupported());
        let position = begin(output, b'p');
        text(output, SCRAM_SHA_256)?;
        output.extend_from_slice(&(scram.message().len() as u32).to_be_bytes());
        output.extend_from_slice(scram.message());
        self.scram = Some(scram);
        self.verified = false;
        message::end(output, position)
    }
}

fn authentication_name(number: u32) -> String {
    match number {
        2 => "Kerberos".to_owned(),
        7 | 8 => "GSSAPI".to_owned(),
        9 => "SSPI".to_owned(),
        other => format!("authentication method {other}"),
    }
}
