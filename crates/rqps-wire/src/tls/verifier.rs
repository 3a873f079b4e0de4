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
use sha2::{Digest, Sha256, Sha384, Sha512};

use crate::WireError;
use crate::rsa::{
    BIT_STRING, FIELD_0, GENERALIZED_TIME, OBJECT, SEQUENCE, UTC_TIME, any_element, element,
};
use crate::tls::certificates;
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
    let Some((algorithm, key)) = key(certificate) else { return Err(error) };
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
    let Some((from, until)) = dates(certificate) else {
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

// Reads the parts of certificates (RFC 5280, 4.1) that rustls does not expose.

/// A certificate in DER from its validity to its end.
fn from_validity(certificate: &[u8]) -> Option<&[u8]> {
    let (content, _) = element(certificate, SEQUENCE)?;
    let (content, _) = element(content, SEQUENCE)?;
    let mut rest = element(content, FIELD_0).map_or(content, |(_, rest)| rest);
    // Serial number, algorithm, issuer.
    for _ in 0..3 {
        rest = any_element(rest)?.2;
    }
    Some(rest)
}

/// The SubjectPublicKeyInfo.
pub(super) fn key_info(certificate: &[u8]) -> Option<&[u8]> {
    let (_, rest) = element(from_validity(certificate)?, SEQUENCE)?;
    // The subject.
    let info = any_element(rest)?.2;
    let after = any_element(info)?.2;
    info.get(..info.len() - after.len())
}

/// The identifier of the public key's algorithm, and the key itself.
pub(super) fn key(certificate: &[u8]) -> Option<(&[u8], &[u8])> {
    let (info, _) = element(key_info(certificate)?, SEQUENCE)?;
    let (algorithm, rest) = element(info, SEQUENCE)?;
    let (bits, _) = element(rest, BIT_STRING)?;
    Some((algorithm, bits.strip_prefix(&[0])?))
}

/// Begin and end of the validity of a certificate in DER, as `YYYYMMDDhhmmssZ`.
fn dates(certificate: &[u8]) -> Option<(String, String)> {
    let (validity, _) = element(from_validity(certificate)?, SEQUENCE)?;
    let (from, rest) = time(validity)?;
    let (until, _) = time(rest)?;
    Some((from, until))
}

fn time(der: &[u8]) -> Option<(String, &[u8])> {
    let (kind, digits, rest) = any_element(der)?;
    let digits = str::from_utf8(digits).ok().filter(|text| text.is_ascii())?;
    match kind {
        GENERALIZED_TIME => Some((digits.to_owned(), rest)),
        // RFC 5280: a year of UTCTime is in 1950 to 2049.
        UTC_TIME if digits >= "5" => Some((format!("19{digits}"), rest)),
        UTC_TIME => Some((format!("20{digits}"), rest)),
        _ => None,
    }
}

/// True if rustls cannot read the version of the certificate.
pub(super) fn is_old_version(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(OtherError(why))) = error else {
        return false;
    };
    matches!(why.downcast_ref(), Some(webpki::Error::UnsupportedCertVersion))
}

// Channel binding `tls-server-end-point` (RFC 5929): the hash of the server's certificate by the
// hash function of its signature.

/// Signature algorithms by hash function, as the content of their OBJECT IDENTIFIER. MD5 and SHA-1
/// count as SHA-256. No hash is defined for Ed25519.
const SHA256: [&[u8]; 5] = [
    // md5WithRSAEncryption, sha1WithRSAEncryption, sha256WithRSAEncryption
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x04],
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x05],
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b],
    // ecdsa-with-SHA1, ecdsa-with-SHA256
    &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01],
    &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02],
];
const SHA384: [&[u8]; 2] = [
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0c],
    &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x03],
];
const SHA512: [&[u8]; 2] = [
    &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0d],
    &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x04],
];

/// id-RSASSA-PSS: its parameters name the hash function.
const PSS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0a];
/// Hash functions in those parameters: id-sha256, -384 and -512 end with 1, 2 and 3.
const HASHES: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02];

/// The binding for a server's certificate in DER.
pub(crate) fn server_end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    match signature_bits(certificate)? {
        256 => Some(Sha256::digest(certificate).to_vec()),
        384 => Some(Sha384::digest(certificate).to_vec()),
        512 => Some(Sha512::digest(certificate).to_vec()),
        _ => None,
    }
}

/// Bits of the hash in the signature of a certificate.
fn signature_bits(certificate: &[u8]) -> Option<u32> {
    let (content, _) = element(certificate, SEQUENCE)?;
    let (_, rest) = element(content, SEQUENCE)?;
    let (algorithm, _) = element(rest, SEQUENCE)?;
    let (name, parameters) = element(algorithm, OBJECT)?;
    if name == PSS {
        return pss_bits(parameters);
    }
    [(256, &SHA256[..]), (384, &SHA384), (512, &SHA512)]
        .into_iter()
        .find_map(|(bits, names)| names.contains(&name).then_some(bits))
}

/// Without a named hash function, it is SHA-1, which counts as SHA-256.
fn pss_bits(parameters: &[u8]) -> Option<u32> {
    let (parameters, _) = element(parameters, SEQUENCE)?;
    let Some((hash, _)) = element(parameters, FIELD_0) else { return Some(256) };
    let (hash, _) = element(hash, SEQUENCE)?;
    let (name, _) = element(hash, OBJECT)?;
    match name.strip_prefix(HASHES) {
        Some([1]) => Some(256),
        Some([2]) => Some(384),
        Some([3]) => Some(512),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_without_authorities_is_told_with_a_way_out() {
        let error = of_system(&["/nowhere/a.crt"]).expect_err("no bundle").to_string();
        assert!(error.contains("/nowhere/a.crt\nhint: install the package"), "{error}");
    }

    #[test]
    fn times_of_both_forms_compare() {
        let of = |kind: u8, text: &str| {
            let der = [&[kind, text.len() as u8], text.as_bytes()].concat();
            time(&der).map(|(time, _)| time)
        };
        assert_eq!(of(UTC_TIME, "260102030405Z").as_deref(), Some("20260102030405Z"));
        assert_eq!(of(UTC_TIME, "990102030405Z").as_deref(), Some("19990102030405Z"));
        assert_eq!(of(GENERALIZED_TIME, "20600102030405Z").as_deref(), Some("20600102030405Z"));
        assert_eq!(of(SEQUENCE, "260102030405Z"), None);
    }

    #[test]
    fn bytes_that_are_no_certificate_have_no_parts() {
        for bytes in [&b""[..], b"\x30", b"\x30\x02\x30\x00", b"\x30\x04\x30\x02\xa0\x00"] {
            assert_eq!((key(bytes), dates(bytes), key_info(bytes)), (None, None, None));
        }
    }

    fn nested(kind: u8, body: &[u8]) -> Vec<u8> {
        [&[kind, body.len() as u8], body].concat()
    }

    fn signed_by(algorithm: &[u8]) -> Vec<u8> {
        nested(SEQUENCE, &[nested(SEQUENCE, b""), nested(SEQUENCE, algorithm)].concat())
    }

    #[test]
    fn the_signature_chooses_the_hash() {
        let check = |name: &[u8], bytes: Option<usize>| {
            let certificate = signed_by(&nested(OBJECT, name));
            assert_eq!(server_end_point(&certificate).map(|hash| hash.len()), bytes, "{name:?}");
        };
        check(SHA256[0], Some(32));
        check(SHA256[4], Some(32));
        check(SHA384[1], Some(48));
        check(SHA512[0], Some(64));
        // Ed25519.
        check(&[0x2b, 0x65, 0x70], None);
    }

    #[test]
    fn pss_names_its_hash() {
        let of = |hash: &[u8]| {
            let hash = nested(SEQUENCE, &nested(OBJECT, hash));
            let parameters = nested(SEQUENCE, &nested(FIELD_0, &hash));
            server_end_point(&signed_by(&[nested(OBJECT, PSS), parameters].concat()))
        };
        assert_eq!(of(&[HASHES, &[2]].concat()).map(|hash| hash.len()), Some(48));
        assert_eq!(of(&[HASHES, &[9]].concat()), None);
        let plain = signed_by(&[nested(OBJECT, PSS), nested(SEQUENCE, b"")].concat());
        assert_eq!(server_end_point(&plain).map(|hash| hash.len()), Some(32));
    }

    #[test]
    fn bytes_that_are_no_certificate_bind_nothing() {
        for bytes in [&b""[..], b"\x30", b"\x30\x05ab", &[0x30, 0x84, 255, 255, 255, 255]] {
            assert_eq!(server_end_point(bytes), None);
        }
    }
}
