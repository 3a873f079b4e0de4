//! TLS over TCP, by rustls: with any certificate (`require`), or with one that a given file vouches
//! for (`verify-full`).

use std::io::{Error, ErrorKind};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme,
    StreamOwned,
};

use crate::domain::endpoint::Tls;
use crate::wire::WireError;

/// An encrypted connection.
pub(super) type TlsStream = StreamOwned<ClientConnection, TcpStream>;

/// Shakes hands, so that a certificate that does not fit is met here and not at the first write.
pub(super) fn begin(stream: TcpStream, host: &str, tls: &Tls) -> Result<TlsStream, WireError> {
    let doing = || format!("begin TLS with {host}");
    let fault = |source| WireError::Io { doing: doing(), source };
    let name = ServerName::try_from(host.to_owned())
        .map_err(|error| fault(Error::new(ErrorKind::InvalidInput, error)))?;
    let config = config(tls)?;
    let connection = ClientConnection::new(Arc::new(config), name)
        .map_err(|error| fault(Error::other(error)))?;
    let mut stream = StreamOwned::new(connection, stream);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock).map_err(fault)?;
    }
    Ok(stream)
}

fn config(tls: &Tls) -> Result<ClientConfig, WireError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| WireError::Protocol(format!("set up TLS: {error}")))?;
    Ok(match tls {
        Tls::Verify { root_certificate } => {
            builder.with_root_certificates(roots(root_certificate)?).with_no_client_auth()
        }
        Tls::Off | Tls::Require => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
            .with_no_client_auth(),
    })
}

fn roots(file: &Path) -> Result<RootCertStore, WireError> {
    let fault = |what: String| {
        WireError::Protocol(format!(
            "read the certificates of sslrootcert={}: {what}",
            file.display()
        ))
    };
    let mut store = RootCertStore::empty();
    let certificates =
        CertificateDer::pem_file_iter(file).map_err(|error| fault(error.to_string()))?;
    for certificate in certificates {
        let certificate = certificate.map_err(|error| fault(error.to_string()))?;
        store.add(certificate).map_err(|error| fault(error.to_string()))?;
    }
    if store.is_empty() {
        return Err(fault("it holds no CERTIFICATE in PEM form".to_owned()));
    }
    Ok(store)
}

/// Takes every certificate, as `sslmode=require` says. The handshake must still be signed with its
/// key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
