//! TLS over TCP by rustls. The server's certificate may be any (`require`), one signed by a trusted
//! authority (`verify-ca`), or one that is also for this host (`verify-full`).

mod verifier;

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, Error, StreamOwned,
};

use crate::WireError;
use crate::tls::verifier::is_old_version;
use rqps_model::bounded;
use rqps_model::endpoint::{ClientIdentity, Tls};

pub(super) use self::verifier::server_end_point;

// The TLS handshake.

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
        .map_err(|error| refused(host, tls, io::Error::other(error)))?;
    let mut stream = StreamOwned::new(connection, stream);
    shake(&mut stream, deadline).map_err(|error| refused(host, tls, error))?;
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
            return Err(io::Error::new(ErrorKind::InvalidData, error));
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

// Reads certificates and keys from PEM files.

/// The client's certificate and key.
fn shown(identity: &ClientIdentity) -> Result<CertifiedKey, WireError> {
    let chain = certificates(&identity.certificate, "sslcert")?;
    let path = &identity.key;
    let bad = |what: &str| {
        WireError::Protocol(format!("read the private key of sslkey={}: {what}", path.display()))
    };
    let permissions = fs::metadata(path).map_err(|error| bad(&error.to_string()))?.permissions();
    if is_open_to_others(&permissions) {
        return Err(bad(&format!("others can read it\nhint: chmod 600 {}", path.display())));
    }
    let text = bounded::bytes(path, bounded::PEM_MAX).map_err(|error| bad(&error.to_string()))?;
    let key = PrivateKeyDer::from_pem_slice(&text).map_err(|_| {
        bad("it holds no private key in PEM form without a passphrase\nhint: `openssl pkey -in \
             FILE -out PLAIN` writes one")
    })?;
    let key = ring::sign::any_supported_type(&key).map_err(|error| bad(&error.to_string()))?;
    let of_key = key.public_key();
    let of_chain = chain.first().and_then(|first| verifier::key_info(first));
    if of_key.is_some_and(|of_key| of_chain != Some(of_key.as_ref())) {
        return Err(bad(&format!(
            "it is not the key of sslcert={}",
            identity.certificate.display()
        )));
    }
    Ok(CertifiedKey::new(chain, key))
}

/// A key of root may be readable for a group, as in libpq.
fn is_open_to_others(permissions: &Permissions) -> bool {
    permissions.mode() & 0o037 != 0
}

/// The certificates of a PEM file.
fn certificates(file: &Path, option: &str) -> Result<Vec<CertificateDer<'static>>, WireError> {
    let fault = |what: String| {
        WireError::Protocol(format!("read the certificates of {option}={}: {what}", file.display()))
    };
    let text = bounded::bytes(file, bounded::PEM_MAX).map_err(|error| fault(error.to_string()))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.map_err(|error| fault(error.to_string()))?;
    if found.is_empty() {
        return Err(fault("it holds no CERTIFICATE in PEM form".to_owned()));
    }
    Ok(found)
}

// Explains why TLS failed, with a way out.

const NO_CHECK: &str = "or use sslmode=require, which checks no certificate";

/// The error of a failed handshake, with a hint.
fn refused(host: &str, tls: &Tls, error: io::Error) -> WireError {
    let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    let (why, hint) = match cause {
        Some(Error::InvalidCertificate(fault)) => of_certificate(host, tls, fault),
        Some(Error::AlertReceived(alert)) => of_alert(*alert),
        Some(Error::InvalidMessage(_)) => (
            "the server answers in no known form of TLS".to_owned(),
            "use sslmode=disable, or the port that speaks TLS".to_owned(),
        ),
        Some(Error::PeerIncompatible(fault)) => (
            format!("client and server have no form of TLS in common: {fault:?}"),
            "enable TLS 1.2 or 1.3 on the server, or use sslmode=disable".to_owned(),
        ),
        Some(other) => (other.to_string(), "use sslmode=disable".to_owned()),
        None if is_no_tls(&error) => (
            format!("the server closed the connection: {error}"),
            "its log may say why; sslmode=disable does without TLS".to_owned(),
        ),
        None if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => (
            "no reply within the time limit".to_owned(),
            "the port may speak no TLS; sslmode=disable does without it".to_owned(),
        ),
        None => return WireError::Io { doing: format!("begin TLS with {host}"), source: error },
    };
    WireError::Protocol(format!("begin TLS with {host}: {why}\nhint: {hint}"))
}

/// The error of a connection if the server rejected the client's certificate after the handshake.
pub(crate) fn refused_afterwards(peer: &str, error: &io::Error) -> Option<WireError> {
    let cause = error.get_ref()?.downcast_ref::<Error>()?;
    let Error::AlertReceived(alert) = cause else { return None };
    let (why, hint) = of_alert(*alert);
    Some(WireError::Protocol(format!("log in to {peer}: {why}\nhint: {hint}")))
}

fn of_certificate(host: &str, tls: &Tls, fault: &CertificateError) -> (String, String) {
    let authority = match &tls.roots {
        Some(file) => format!("no certificate of sslrootcert={}", file.display()),
        None => "no authority that this system trusts".to_owned(),
    };
    if is_old_version(&Error::InvalidCertificate(fault.clone())) {
        return (
            "the server's certificate is of version 1 of X.509, which cannot be checked".to_owned(),
            format!("give the server one of version 3 (with a subjectAltName), {NO_CHECK}"),
        );
    }
    match fault {
        CertificateError::NotValidForNameContext { presented, .. } => {
            wrong_name(host, &presented.iter().map(|name| bare(name)).collect::<Vec<_>>())
        }
        CertificateError::NotValidForName => wrong_name(host, &[]),
        CertificateError::Expired => expired(""),
        CertificateError::ExpiredContext { not_after, .. } => {
            expired(&format!(" on {}", day(*not_after)))
        }
        CertificateError::NotValidYet => too_early(""),
        CertificateError::NotValidYetContext { not_before, .. } => {
            too_early(&format!(" before {}", day(*not_before)))
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => (
            format!("{authority} signed the server's certificate"),
            format!("name the file of its authority with sslrootcert=FILE, {NO_CHECK}"),
        ),
        other => (
            format!("the server's certificate cannot be checked: {other}"),
            format!("give the server another certificate, {NO_CHECK}"),
        ),
    }
}

fn wrong_name(host: &str, names: &[&str]) -> (String, String) {
    let has = match names {
        [] => "names no host as a subjectAltName".to_owned(),
        names => format!("is for {}", names.join(", ")),
    };
    (
        format!("the server's certificate {has}, not for '{host}'"),
        "connect by a name of the certificate, or use sslmode=verify-ca with sslrootcert=FILE, \
         which does not check the name"
            .to_owned(),
    )
}

/// The name in `DnsName("a.example")`.
fn bare(name: &str) -> &str {
    name.split('"').nth(1).unwrap_or(name)
}

fn expired(when: &str) -> (String, String) {
    (
        format!("the server's certificate expired{when}"),
        format!("renew it on the server, {NO_CHECK}"),
    )
}

fn too_early(when: &str) -> (String, String) {
    (
        format!("the server's certificate is not valid{when}"),
        "compare the clocks of both hosts".to_owned(),
    )
}

fn day(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    match Timestamp::from_second(seconds) {
        Ok(time) => time.to_zoned(TimeZone::UTC).date().to_string(),
        Err(_) => format!("second {seconds} since 1970"),
    }
}

fn of_alert(alert: AlertDescription) -> (String, String) {
    match alert {
        AlertDescription::CertificateRequired
        | AlertDescription::NoCertificate
        | AlertDescription::BadCertificate
        | AlertDescription::UnknownCA
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::CertificateRevoked
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::AccessDenied => (
            format!("the server refuses the client's certificate ({alert:?})"),
            "name one that the server's authority signed with sslcert=FILE and sslkey=FILE \
             (MySQL: ssl-cert, ssl-key)"
                .to_owned(),
        ),
        AlertDescription::UnrecognisedName => (
            "the server knows no host of this name".to_owned(),
            "correct the host of the DSN".to_owned(),
        ),
        other => (
            format!("the server refuses the handshake ({other:?})"),
            "the server may want a client certificate (sslcert, sslkey), or speak no TLS 1.2 or \
             1.3; sslmode=disable does without TLS"
                .to_owned(),
        ),
    }
}

/// True if the peer does not speak TLS.
fn is_no_tls(error: &io::Error) -> bool {
    error.kind() == ErrorKind::UnexpectedEof || error.kind() == ErrorKind::ConnectionReset
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::endpoint::TlsMode;

    fn shown(error: Error) -> String {
        let tls = Tls { roots: Some("/ca.pem".into()), ..Tls::of(TlsMode::VerifyFull) };
        refused("db", &tls, io::Error::new(io::ErrorKind::InvalidData, error)).to_string()
    }

    #[test]
    fn every_refusal_has_a_way_out() {
        let now = UnixTime::since_unix_epoch(std::time::Duration::from_secs(86_400));
        let certificate = |fault| shown(Error::InvalidCertificate(fault));
        let error = certificate(CertificateError::ExpiredContext { time: now, not_after: now });
        assert_eq!(
            error,
            "begin TLS with db: the server's certificate expired on 1970-01-02\nhint: renew it on \
             the server, or use sslmode=require, which checks no certificate"
        );
        let error = certificate(CertificateError::UnknownIssuer);
        assert!(error.contains("no certificate of sslrootcert=/ca.pem signed"), "{error}");
        let error = certificate(CertificateError::NotValidYet);
        assert!(error.contains("hint: compare the clocks"), "{error}");
        let error = certificate(CertificateError::NotValidForName);
        assert!(error.contains("names no host as a subjectAltName, not for 'db'"), "{error}");
        let error = shown(Error::AlertReceived(AlertDescription::CertificateRequired));
        assert!(error.contains("sslcert=FILE and sslkey=FILE"), "{error}");
        let closed = io::Error::from(io::ErrorKind::UnexpectedEof);
        let error = refused("db", &Tls::of(TlsMode::Require), closed).to_string();
        assert!(error.contains("hint: its log may say why"), "{error}");
        let silent = io::Error::from(io::ErrorKind::WouldBlock);
        let error = refused("db", &Tls::of(TlsMode::Require), silent).to_string();
        assert!(error.contains("no reply within the time limit\nhint: the port may"), "{error}");
    }
}
