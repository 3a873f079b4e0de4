//! Reads the parts of certificates (RFC 5280, 4.1) that rustls does not expose.

use rustls::{CertificateError, Error, OtherError};

use crate::der::{BIT_STRING, FIELD_0, GENERALIZED_TIME, SEQUENCE, UTC_TIME, any, element};

/// A certificate in DER from its validity to its end.
fn from_validity(certificate: &[u8]) -> Option<&[u8]> {
    let (content, _) = element(certificate, SEQUENCE)?;
    let (content, _) = element(content, SEQUENCE)?;
    let mut rest = element(content, FIELD_0).map_or(content, |(_, rest)| rest);
    // Serial number, algorithm, issuer.
    for _ in 0..3 {
        rest = any(rest)?.2;
    }
    Some(rest)
}

/// The SubjectPublicKeyInfo.
pub(super) fn key_info(certificate: &[u8]) -> Option<&[u8]> {
    let (_, rest) = element(from_validity(certificate)?, SEQUENCE)?;
    // The subject.
    let info = any(rest)?.2;
    let after = any(info)?.2;
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
pub(super) fn dates(certificate: &[u8]) -> Option<(String, String)> {
    let (validity, _) = element(from_validity(certificate)?, SEQUENCE)?;
    let (from, rest) = time(validity)?;
    let (until, _) = time(rest)?;
    Some((from, until))
}

fn time(der: &[u8]) -> Option<(String, &[u8])> {
    let (kind, digits, rest) = any(der)?;
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
