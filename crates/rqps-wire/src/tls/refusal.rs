//! Explains why TLS failed, with a way out.

use std::io::{self, ErrorKind};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustls::pki_types::UnixTime;
use rustls::{AlertDescription, CertificateError, Error};

use super::certificate::is_old_version;
use crate::WireError;
use rqps_model::endpoint::Tls;

const NO_CHECK: &str = "or use sslmode=require, which checks no certificate";

/// The error of a failed handshake, with a hint.
pub(super) fn refused(host: &str, tls: &Tls, error: io::Error) -> WireError {
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
