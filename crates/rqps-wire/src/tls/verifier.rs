//! Checks a server's certificate.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, SignatureVerificationAlgorithm, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};

use super::certificate::{self, is_old_version};
use super::files::certificates;
use crate::WireError;
use rqps_model::endpoint::{Tls, TlsMode};

/// Certificates of trusted authorities, by distribution: Debian and Arch, Fedora and RHEL, SUSE,
/// Alpine, OpenSSL's own folder.
const SYSTEM_BUNDLES: [&str; 6] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/usr/lib/ssl/cert.pem",
];

/// The verifier for a mode.
///
/// # Errors
///
/// The certificates of the authorities cannot be read.
pub(super) fn verifier(
    tls: &Tls,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, WireError> {
    let (roots, named) = match (&tls.roots, tls.mode.verifies()) {
        (_, false) => (RootCertStore::empty(), Vec::new()),
        (None, true) => (of_system(&SYSTEM_BUNDLES)?, Vec::new()),
        (Some(file), true) => of_file(file)?,
    };
    Ok(Arc::new(Verifier { mode: tls.mode, roots, named, provider }))
}

fn of_system(bundles: &[&str]) -> Result<RootCertStore, WireError> {
    let bundle = bundles.iter().map(Path::new).find(|path| fs::metadata(path).is_ok());
    let Some(bundle) = bundle else {
        return Err(WireError::Protocol(format!(
            "check the server's certificate: the system has no certificates of authorities in {}\
             \nhint: install the package ca-certificates, or name a file with sslrootcert=FILE",
            bundles.join(", ")
        )));
    };
    let mut roots = RootCertStore::empty();
    // rustls may not know some of the bundle; the others count.
    roots.add_parsable_certificates(certificates(bundle, "the system's file")?);
    Ok(roots)
}

/// The certificates of a file, as authorities and as they are.
fn of_file(file: &Path) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), WireError> {
    let named = certificates(file, "sslrootcert")?;
    let mut roots = RootCertStore::empty();
    for certificate in &named {
        roots.add(certificate.clone()).map_err(|error| {
            WireError::Protocol(format!(
                "read the certificates of sslrootcert={}: {error}",
                file.display()
            ))
        })?;
    }
    Ok((roots, named))
}

/// Checks as much as its mode requires. In every mode, the key of the certificate must have signed
/// the handshake.
#[derive(Debug)]
struct Verifier {
    mode: TlsMode,
    roots: RootCertStore,
    /// Certificates of the user's file. A server may show one of them as its own, even one marked
    /// as an authority: `openssl req -x509` makes such certificates for servers.
    named: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.mode.verifies() {
            let parsed = ParsedCertificate::try_from(certificate)?;
            let algorithms = self.provider.signature_verification_algorithms.all;
            if self.named.iter().any(|named| named.as_ref() == certificate.as_ref()) {
                check_dates(certificate, now)?;
            } else {
                verify_server_cert_signed_by_trust_anchor(
                    &parsed, &self.roots, intermediates, now, algorithms,
                )?;
            }
            if self.mode == TlsMode::VerifyFull {
                verify_server_name(&parsed, name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        let checked = verify_tls12_signature(message, certificate, signature, known);
        checked.or_else(|error| signed_with_key(error, message, certificate, signature, known))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        let checked = verify_tls13_signature(message, certificate, signature, known);
        checked.or_else(|error| signed_with_key(error, message, certificate, signature, known))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Checks a signature with the public key of an X.509 version 1 certificate, which `openssl x509
/// -req` makes and rustls cannot read. Checks neither host nor validity. Returns any other error
/// unchanged.
fn signed_with_key(
    error: Error,
    message: &[u8],
    certificate: &[u8],
    signature: &DigitallySignedStruct,
    known: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    if !is_old_version(&error) {
        return Err(error);
    }
    let Some((algorithm, key)) = certificate::key(certificate) else { return Err(error) };
    let fits = |known: &&&dyn SignatureVerificationAlgorithm| {
        known.public_key_alg_id().as_ref() == algorithm
    };
    let known = known.mapping.iter().filter(|(scheme, _)| *scheme == signature.scheme);
    let Some(known) = known.flat_map(|(_, known)| *known).find(fits) else { return Err(error) };
    match known.verify_signature(key, message, signature.signature()) {
        Ok(()) => Ok(HandshakeSignatureValid::assertion()),
        Err(_) => Err(Error::InvalidCertificate(CertificateError::BadSignature)),
    }
}

/// Rejects a certificate outside its validity.
fn check_dates(certificate: &[u8], now: UnixTime) -> Result<(), Error> {
    let refuse = |why| Err(Error::InvalidCertificate(why));
    let Some((from, until)) = certificate::dates(certificate) else {
        return refuse(CertificateError::BadEncoding);
    };
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let Ok(now) = Timestamp::from_second(seconds) else {
        let why = OtherError(Arc::new(std::io::Error::other("the clock of this host is wrong")));
        return refuse(CertificateError::Other(why));
    };
    let now = now.to_zoned(TimeZone::UTC).strftime("%Y%m%d%H%M%SZ").to_string();
    if now < from {
        return refuse(CertificateError::NotValidYet);
    }
    if now > until {
        return refuse(CertificateError::Expired);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_without_authorities_is_told_with_a_way_out() {
        let error = of_system(&["/nowhere/a.crt"]).expect_err("no bundle").to_string();
        assert!(error.contains("/nowhere/a.crt\nhint: install the package"), "{error}");
    }
}
