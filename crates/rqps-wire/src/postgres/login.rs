//! The start of a Postgres connection: TLS, password, parameters of the server.

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    self, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};

use super::message::{HEADER, ServerError, begin, end, text};
use crate::WireError;
use crate::postgres::message::{self, header, whole};
use crate::socket::Channel;
use rqps_model::endpoint::{Address, AuthMethods, ChannelBinding, Login};

const PROTOCOL_3_0: u32 = 196_608;

/// SSLRequest: asks whether the server has TLS.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// Asks for TLS and encrypts the channel. Without TLS on the server, the channel stays as it is if
/// the mode allows that.
pub(super) fn encrypt(mut channel: Channel, address: &Address) -> Result<Channel, WireError> {
    let Address::Tcp { tls, .. } = address else { return Ok(channel) };
    channel.send(&SSL_REQUEST)?;
    channel.need(1)?;
    let answer = channel.available()[0];
    channel.consume(1);
    match answer {
        b'S' => channel.encrypt(address),
        b'N' if tls.mode.server_decides() => Ok(channel),
        b'N' => Err(channel.confused(format!(
            "the server has TLS disabled (ssl = off), and sslmode={} requires it\nhint: enable it \
             on the server, or use sslmode=disable",
            tls.mode.word()
        ))),
        _ => Err(channel.confused("the server does not know TLS\nhint: use sslmode=disable")),
    }
}

/// The server's facts after the login.
pub(super) struct Welcome {
    pub(super) channel: Channel,
    pub(super) connection_id: u32,
    /// What the server wants to hear from who cancels a statement of this session.
    pub(super) cancel_key: Vec<u8>,
    pub(super) server_version: String,
    pub(super) escapes_backslash: bool,
}

/// Sends the startup message and answers the server until it is ready.
pub(super) fn log_in(
    mut channel: Channel,
    login: &Login,
    binding: ChannelBinding,
) -> Result<Welcome, WireError> {
    let mut output = Vec::new();
    startup(&mut output, login)?;
    channel.send(&output)?;
    let end_point = channel.server_end_point();
    let (methods, trusted) = (channel.consent().methods.clone(), channel.is_trusted());
    let mut exchange = Exchange {
        login,
        binding,
        end_point,
        methods,
        trusted,
        asked: false,
        scram: None,
        verified: true,
        bound: false,
    };
    let (mut connection_id, mut server_version) = (0, String::new());
    let (mut cancel_key, mut escapes_backslash) = (Vec::new(), false);
    loop {
        let (kind, length) = header(&mut channel)?;
        let body = whole(&mut channel, kind, length)?.to_vec();
        channel.consume(HEADER + length);
        match kind {
            b'R' => {
                output.clear();
                exchange.answer(&body, &mut output).map_err(|error| match error {
                    WireError::Protocol(what) => channel.confused(what),
                    other => other,
                })?;
                if !output.is_empty() {
                    channel.send(&output)?;
                }
            }
            b'S' => {
                escapes_backslash = message::escapes_backslash(&body).unwrap_or(escapes_backslash);
                let mut words = body.split(|byte| *byte == 0);
                if words.next() == Some(b"server_version") {
                    let version = words.next().unwrap_or_default();
                    server_version = String::from_utf8_lossy(version).into_owned();
                }
            }
            b'K' => {
                if let Some(number) = body.first_chunk::<4>() {
                    connection_id = u32::from_be_bytes(*number);
                    cancel_key = body.get(4..).unwrap_or_default().to_vec();
                }
            }
            b'E' => return Err(ServerError::parse(&body).into_wire()),
            b'N' => {}
            b'Z' => {
                return Ok(Welcome {
                    channel,
                    connection_id,
                    cancel_key,
                    server_version,
                    escapes_backslash,
                });
            }
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

/// The exchange of authentication messages.
struct Exchange<'a> {
    login: &'a Login,
    binding: ChannelBinding,
    /// The channel binding of a proof; `None` without TLS.
    end_point: Option<Vec<u8>>,
    /// The methods that the server may use.
    methods: Option<AuthMethods>,
    /// True if nobody in between can read or change the traffic.
    trusted: bool,
    /// True once the server asked for a proof or for the password.
    asked: bool,
    scram: Option<ScramSha256>,
    /// False from the start of SCRAM until the server has proved that it knows the password.
    verified: bool,
    /// True after a proof that includes the server's certificate.
    bound: bool,
}

impl Exchange<'_> {
    /// Answers one Authentication message. Leaves `output` empty if no answer is due.
    fn answer(&mut self, body: &[u8], output: &mut Vec<u8>) -> Result<(), WireError> {
        let protocol = |what: &str| WireError::Protocol(what.to_owned());
        let Some((kind, rest)) = body.split_first_chunk::<4>() else {
            return Err(protocol("the server's authentication message is too short"));
        };
        match u32::from_be_bytes(*kind) {
            0 if !self.verified => {
                Err(protocol("the server ended SCRAM without proof that it knows the password"))
            }
            0 if self.binding == ChannelBinding::Require && !self.bound => {
                Err(WireError::Protocol(NOT_BOUND.to_owned()))
            }
            0 if !self.asked => self.may("none"),
            0 => Ok(()),
            3 => {
                self.may("password")?;
                let named = self.methods.as_ref().is_some_and(|it| it.names("password"));
                if !self.trusted && !named {
                    return Err(protocol(NOT_CHECKED));
                }
                self.password(output, |login| Ok(login.password.clone()))
            }
            5 => {
                self.may("md5")?;
                self.password(output, |login| {
                    let salt = rest.first_chunk::<4>().ok_or("the md5 salt is too short")?;
                    Ok(md5_hash(login.user.as_bytes(), login.password.as_bytes(), *salt))
                })
            }
            10 => {
                self.may("scram-sha-256")?;
                self.begin_scram(rest, output)
            }
            11 => self.continue_scram(rest, output).map_err(WireError::Protocol),
            12 => self.end_scram(rest).map_err(WireError::Protocol),
            other => Err(WireError::Protocol(format!(
                "the server requires {}, which rqps does not support: use scram-sha-256, md5, \
                 password or trust in pg_hba.conf",
                authentication_name(other)
            ))),
        }
    }

    /// Refuses a method that `require_auth` does not have, and a second one.
    fn may(&mut self, method: &str) -> Result<(), WireError> {
        if let Some(methods) = &self.methods
            && !methods.allows(method)
        {
            let asks = match method {
                "none" => "lets the client in without a question".to_owned(),
                method => format!("asks by the method {method}"),
            };
            return Err(WireError::Protocol(format!(
                "the server {asks}, and require_auth={methods}"
            )));
        }
        if std::mem::replace(&mut self.asked, true) {
            Err(WireError::Protocol("the server asks twice for a password".to_owned()))
        } else {
            Ok(())
        }
    }

    fn password(
        &self,
        output: &mut Vec<u8>,
        answer: impl FnOnce(&Login) -> Result<String, &'static str>,
    ) -> Result<(), WireError> {
        self.need_password()?;
        if self.binding == ChannelBinding::Require {
            return Err(WireError::Protocol(NOT_BOUND.to_owned()));
        }
        let protocol = |what: &str| WireError::Protocol(what.to_owned());
        let answer = answer(self.login).map_err(protocol)?;
        let position = begin(output, b'p');
        text(output, &answer).and_then(|()| end(output, position)).map_err(WireError::Protocol)
    }

    fn need_password(&self) -> Result<(), WireError> {
        if self.login.password.is_empty() {
            let words = format!(
                "the server requires a password for user {:?}: set PGPASSWORD or add a line to \
                 ~/.pgpass",
                self.login.user
            );
            return Err(WireError::NoPassword { code: "28P01", words });
        }
        Ok(())
    }

    fn begin_scram(&mut self, mechanisms: &[u8], output: &mut Vec<u8>) -> Result<(), WireError> {
        let offered = |name: &str| {
            mechanisms.split(|byte| *byte == 0).any(|offered| offered == name.as_bytes())
        };
        let (mechanism, binding) = self
            .mechanism(offered(SCRAM_SHA_256), offered(SCRAM_SHA_256_PLUS))
            .map_err(|what| WireError::Protocol(what.to_owned()))?;
        self.need_password()?;
        self.bound = mechanism == SCRAM_SHA_256_PLUS;
        let scram = ScramSha256::new(self.login.password.as_bytes(), binding);
        let position = begin(output, b'p');
        text(output, mechanism)?;
        output.extend_from_slice(&(scram.message().len() as u32).to_be_bytes());
        output.extend_from_slice(scram.message());
        self.scram = Some(scram);
        self.verified = false;
        end(output, position).map_err(WireError::Protocol)
    }

    /// Chooses the SCRAM mechanism: with channel binding if both sides support it. A client that
    /// supports it and gets no offer says so; the server then notices if somebody in between
    /// removed the offer.
    fn mechanism(
        &mut self,
        plain: bool,
        plus: bool,
    ) -> Result<(&'static str, sasl::ChannelBinding), &'static str> {
        let end_point = match self.binding {
            ChannelBinding::Disable => None,
            ChannelBinding::Prefer | ChannelBinding::Require => self.end_point.take(),
        };
        match (end_point, self.binding) {
            (Some(end_point), _) if plus => {
                Ok((SCRAM_SHA_256_PLUS, sasl::ChannelBinding::tls_server_end_point(end_point)))
            }
            (_, ChannelBinding::Require) => Err(NOT_BOUND),
            (Some(_), _) if plain => Ok((SCRAM_SHA_256, sasl::ChannelBinding::unrequested())),
            (None, _) if plain => Ok((SCRAM_SHA_256, sasl::ChannelBinding::unsupported())),
            _ => Err("the server offers no SCRAM-SHA-256"),
        }
    }

    fn continue_scram(&mut self, message: &[u8], output: &mut Vec<u8>) -> Result<(), String> {
        let trusted = self.trusted;
        let scram = self.scram.as_mut().ok_or("SCRAM continues without a start")?;
        // The library checks that the nonce continues ours, and the upper bound.
        let least = if trusted { 1 } else { ITERATIONS_MIN };
        if iterations(message).is_none_or(|count| count < least) {
            return Err(format!(
                "SCRAM with less than {least} iterations: whoever gets the proof finds the \
                 password soon\nhint: set the password again with scram_iterations of \
                 {ITERATIONS_MIN} or more, or use sslmode=verify-full or the server's unix socket"
            ));
        }
        scram.update(message).map_err(|error| format!("SCRAM: {error}"))?;
        let position = begin(output, b'p');
        output.extend_from_slice(scram.message());
        end(output, position)
    }

    fn end_scram(&mut self, message: &[u8]) -> Result<(), String> {
        let scram = self.scram.as_mut().ok_or("SCRAM ends without a start")?;
        scram
            .finish(message)
            .map_err(|error| format!("SCRAM: the server does not know the password: {error}"))?;
        self.scram = None;
        self.verified = true;
        Ok(())
    }
}

/// Least iterations of SCRAM where others may listen (RFC 7677, section 4).
const ITERATIONS_MIN: u32 = 4096;

/// The iterations in the first message of the server.
fn iterations(message: &[u8]) -> Option<u32> {
    let text = str::from_utf8(message).ok()?;
    text.split(',').find_map(|part| part.strip_prefix("i="))?.parse().ok()
}

/// Why the password does not leave, and the ways out.
const NOT_CHECKED: &str = "the server wants the password itself, and nobody vouches that it is the \
                           server\nhint: use sslmode=verify-full, the server's unix socket, or \
                           scram-sha-256 in its pg_hba.conf; or require_auth=password, which \
                           shows the password to anybody in between";

/// The error if the DSN requires channel binding and the login has none.
const NOT_BOUND: &str = "channel_binding=require, and the server or its way of asking for the \
                         password cannot bind to TLS\nhint: it needs TLS and scram-sha-256 (with a \
                         certificate that is not Ed25519), or use channel_binding=prefer";

fn authentication_name(number: u32) -> String {
    match number {
        2 => "Kerberos".to_owned(),
        7 | 8 => "GSSAPI".to_owned(),
        9 => "SSPI".to_owned(),
        other => format!("authentication method {other}"),
    }
}
