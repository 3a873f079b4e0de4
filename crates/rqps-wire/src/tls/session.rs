//! The TLS handshake.

use std::io::{self, Error, ErrorKind};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::files::shown;
use super::{refusal, verifier};
use crate::WireError;
use rqps_model::endpoint::Tls;

/// An encrypted connection.
pub(crate) type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// Completes the handshake, so that an unsuitable certificate fails here and not at the first
/// write.
pub(crate) fn begin(
    stream: TcpStream,
    host: &str,
    tls: &Tls,
    deadline: Option<Instant>,
) -> Result<TlsStream, WireError> {
    let name = ServerName::try_from(host.to_owned()).map_err(|_| {
        WireError::Protocol(format!(
            "begin TLS with {host}: this is no host name and no IP address\nhint: correct the DSN"
        ))
    })?;
    let config = config(tls)?;
    let connection = ClientConnection::new(Arc::new(config), name)
        .map_err(|error| refusal::refused(host, tls, Error::other(error)))?;
    let mut stream = StreamOwned::new(connection, stream);
    shake(&mut stream, deadline).map_err(|error| refusal::refused(host, tls, error))?;
    Ok(stream)
}

/// The handshake. All of it has one deadline, so that single bytes from time to time do not hold
/// it.
fn shake(stream: &mut TlsStream, deadline: Option<Instant>) -> io::Result<()> {
    let TlsStream { conn, sock } = stream;
    loop {
        while conn.wants_write() {
            conn.write_tls(sock)?;
        }
        if !conn.is_handshaking() {
            return Ok(());
        }
        if let Some(deadline) = deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            sock.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        }
        match conn.read_tls(sock) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        if let Err(error) = conn.process_new_packets() {
            // The alert that tells the server why.
            conn.write_tls(sock).ok();
            return Err(Error::new(ErrorKind::InvalidData, error));
        }
    }
}

/// The configuration without session resumption: a resumed session would begin faster by chance.
fn config(tls: &Tls) -> Result<ClientConfig, WireError> {
    let provider = Arc::new(ring::default_provider());
    let set_up = |error: rustls::Error| WireError::Protocol(format!("set up TLS: {error}"));
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(set_up)?
        .dangerous()
        .with_custom_certificate_verifier(verifier::verifier(tls, provider)?);
    let mut config = match &tls.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let shown = SingleCertAndKey::from(shown(identity)?);
            builder.with_client_cert_resolver(Arc::new(shown))
        }
    };
    config.resumption = Resumption::disabled();
    Ok(config)
}
