//! Channel binding `tls-server-end-point` (RFC 5929): the hash of the server's certificate by the
//! hash function of its signature.

use sha2::{Digest, Sha256, Sha384, Sha512};

use crate::der::{FIELD_0, OBJECT, SEQUENCE, element};

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
