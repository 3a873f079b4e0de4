//! The TLS handshake.

use std::io::Error;
use std::net::TcpStream;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::files::shown;
use super::{refusal, verifier};
use crate::domain::endpoint::Tls;
use crate::wire::WireError;

/// An encrypted connection.
pub(in crate::wire) type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// Completes the handshake, so that an unsuitable certificate fails here and not at the first
/// write.
pub(in crate::wire) fn begin(
    stream: TcpStream,
    host: &str,
    tls: &Tls,
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
    while stream.conn.is_handshaking() {
        let shaken = stream.conn.complete_io(&mut stream.sock);
        shaken.map_err(|error| refusal::refused(host, tls, error))?;
    }
    Ok(stream)
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
