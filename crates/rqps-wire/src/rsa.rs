//! RSA encryption of a password with the server's public key (RSAES-OAEP with SHA-1, RFC 8017
//! section 7.1), for `caching_sha2_password` over plain TCP, which a user must allow (docs/dsn.md).
//!
//! It stays here because nothing in the tree encrypts with RSA: ring and rustls sign and check.
//! aws-lc-rs would build a C library in every first build; the crate rsa brings many others, among
//! them older versions of sha1 and digest. Here it is one power with a public exponent, by
//! num-bigint: no private key is involved, so nothing of a server needs constant time.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use num_bigint::BigUint;
use sha1::{Digest, Sha1};

use rqps_model::bounded;

const HASH_BYTES: usize = 20;

/// The least exponent of RSA that hides what it encrypts; servers use 65537.
const EXPONENT_MIN: u32 = 3;

/// A public key.
#[derive(Debug)]
pub(super) struct PublicKey {
    modulus: BigUint,
    exponent: u32,
}

impl PublicKey {
    /// Reads the SubjectPublicKeyInfo that MySQL sends (`-----BEGIN PUBLIC KEY-----`).
    pub(super) fn from_pem(pem: &str) -> Result<PublicKey, String> {
        let nonsense = || "unreadable public key of the server".to_owned();
        let base64: String = pem
            .lines()
            .map(str::trim)
            .filter(|line| !line.starts_with("-----"))
            .flat_map(|line| line.trim_end_matches('\0').chars())
            .collect();
        let der = STANDARD.decode(base64).map_err(|_| nonsense())?;
        let key = PublicKey::from_der(&der).ok_or_else(nonsense)?;
        // OAEP needs the lower bound for a password; the upper one limits the work.
        let bits = key.bytes() * 8;
        if !(1024..=16384).contains(&bits) {
            return Err(format!(
                "the server's public key has {bits} bits; rqps supports 1024 to 16384"
            ));
        }
        // With an exponent of 1, the password would only be encoded.
        if key.exponent < EXPONENT_MIN {
            return Err(format!(
                "the server's public key has the exponent {}, which hides nothing",
                key.exponent
            ));
        }
        Ok(key)
    }

    /// Reads the key that the user named.
    pub(super) fn from_file(path: &Path) -> Result<PublicKey, String> {
        let fault = |why: String| format!("read server-public-key-path={}: {why}", path.display());
        let text =
            bounded::text(path, bounded::PEM_MAX).map_err(|error| fault(error.to_string()))?;
        PublicKey::from_pem(&text).map_err(fault)
    }

    fn from_der(der: &[u8]) -> Option<PublicKey> {
        let (info, _) = element(der, SEQUENCE)?;
        let (_algorithm, rest) = element(info, SEQUENCE)?;
        let (bits, _) = element(rest, BIT_STRING)?;
        let (&0, key) = bits.split_first()? else { return None };
        let (key, _) = element(key, SEQUENCE)?;
        let (modulus, rest) = element(key, INTEGER)?;
        let (exponent, _) = element(rest, INTEGER)?;
        let mut value = 0u32;
        for byte in exponent {
            value = value.checked_mul(256)?.checked_add(u32::from(*byte))?;
        }
        let modulus = BigUint::from_bytes_be(modulus);
        // An odd modulus and an odd exponent, as every RSA key has.
        (modulus.bit(0) && value % 2 == 1).then_some(PublicKey { modulus, exponent: value })
    }

    /// The length of the modulus, and of what is encrypted.
    fn bytes(&self) -> usize {
        self.modulus.bits().div_ceil(8) as usize
    }

    /// Encrypts a message with fresh randomness.
    pub(super) fn encrypt(&self, message: &[u8]) -> Result<Vec<u8>, String> {
        let mut seed = [0; HASH_BYTES];
        File::open("/dev/urandom")
            .and_then(|mut file| file.read_exact(&mut seed))
            .map_err(|error| format!("no randomness from /dev/urandom: {error}"))?;
        self.encrypt_with(message, seed)
    }

    fn encrypt_with(&self, message: &[u8], seed: [u8; HASH_BYTES]) -> Result<Vec<u8>, String> {
        let size = self.bytes();
        let Some(padding) = size.checked_sub(message.len() + 2 * HASH_BYTES + 2) else {
            return Err(format!("the password is too long for the server's {size}-byte key"));
        };
        let mut data = Sha1::digest([]).to_vec();
        data.extend(std::iter::repeat_n(0, padding));
        data.push(1);
        data.extend_from_slice(message);
        mask(&mut data, &seed);
        let mut masked_seed = seed;
        mask(&mut masked_seed, &data);
        let block = [&[0], masked_seed.as_slice(), &data].concat();
        let power = BigUint::from_bytes_be(&block).modpow(&self.exponent.into(), &self.modulus);
        let power = power.to_bytes_be();
        Ok([vec![0; size.saturating_sub(power.len())], power].concat())
    }
}

/// XORs data with the mask that MGF1 derives from the seed.
fn mask(data: &mut [u8], seed: &[u8]) {
    for (counter, chunk) in (0u32..).zip(data.chunks_mut(HASH_BYTES)) {
        let block = Sha1::new().chain_update(seed).chain_update(counter.to_be_bytes()).finalize();
        for (byte, mask) in chunk.iter_mut().zip(block) {
            *byte ^= mask;
        }
    }
}

// Reads the parts of DER (ITU-T X.690) that occur in public keys and certificates.
//
// rustls-webpki, which is in the tree, checks certificates and shows none of their parts; a parser
// of all of X.509 would be a new dependency for one name of an algorithm and one public key.

pub(super) const INTEGER: u8 = 0x02;
pub(super) const BIT_STRING: u8 = 0x03;
pub(super) const OBJECT: u8 = 0x06;
pub(super) const UTC_TIME: u8 = 0x17;
pub(super) const GENERALIZED_TIME: u8 = 0x18;
pub(super) const SEQUENCE: u8 = 0x30;
/// The first field of a choice or of optional fields.
pub(super) const FIELD_0: u8 = 0xa0;

/// Splits off the first element. Returns its type, its content and the bytes after it.
pub(super) fn any_element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&kind, rest) = der.split_first()?;
    let (&length, mut rest) = rest.split_first()?;
    let mut size = usize::from(length);
    if length & 0x80 != 0 {
        let (digits, after) = rest.split_at_checked(usize::from(length & 0x7f))?;
        if digits.len() > 4 {
            return None;
        }
        size = digits.iter().fold(0, |size, digit| size << 8 | usize::from(*digit));
        rest = after;
    }
    let (content, rest) = rest.split_at_checked(size)?;
    Some((kind, content, rest))
}

/// Splits off the first element if it has the type `kind`. Returns its content and the bytes after
/// it.
pub(super) fn element(der: &[u8], kind: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = any_element(der)?;
    (found == kind).then_some((content, rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::{Config, RngSeed};

    use super::*;

    const KEY: &str = "-----BEGIN PUBLIC KEY-----\n\
        MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQChphQQUeoCC33P/gQiioMvW45I\n\
        jXKSZCh8O4HlrXH4XLfTwyYYj8i3xSG6u+ynQcNelEgMilw+UfS+GGBnflHY/kxQ\n\
        UlldhbeQCEM4vzvtFmRdoq58osQYRXn8U/I7vSda5N0/cd4MrujHKQmrN+YninZk\n\
        cicFb4jzVqOr/qOX/QIDAQAB\n\
        -----END PUBLIC KEY-----\n\0";

    #[test]
    fn encrypts_as_others_do() {
        let key = PublicKey::from_pem(KEY).unwrap();
        let mut seed = [0; HASH_BYTES];
        for (byte, number) in seed.iter_mut().zip(0..) {
            *byte = number;
        }
        let encrypted = key.encrypt_with(b"secret\0", seed).unwrap();
        let hex: String = encrypted.iter().map(|byte| format!("{byte:02x}")).collect();
        // By Python's pow and hashlib; `openssl pkeyutl -decrypt` gives the message back.
        let expected = "72e724dcfeda08490c7c3e1cc075c5781aa55739b55aec06ac449af0dcb2a448\
            492392bbbbc2ba5f753424e73df1b1a62713b14ac6181cebe487ed974144543e\
            347586b4030dd3b03eb9024934e3af3b5fa0f9b5ab884219e6f56042b573d7a7\
            c1555a7a072c2d6c67f0368312a81d2c26f5831344cc9908ad142ee722d2bf9d";
        assert_eq!(hex, expected);
        assert_ne!(key.encrypt(b"secret").unwrap(), key.encrypt(b"secret").unwrap());
    }

    #[test]
    fn refuses_what_does_not_fit() {
        let key = PublicKey::from_pem(KEY).unwrap();
        assert_eq!(key.encrypt(&[b'x'; 86]).unwrap().len(), 128);
        let error = key.encrypt(&[b'x'; 87]).unwrap_err();
        assert_eq!(error, "the password is too long for the server's 128-byte key");
        // The same key with the exponent 1 in place of 65537.
        let pem: String = KEY.lines().filter(|line| !line.contains('-')).collect();
        let mut der = STANDARD.decode(pem.trim_end_matches('\0')).unwrap();
        let exponent = der.len() - 3;
        der[exponent] = 0;
        let error = PublicKey::from_pem(&STANDARD.encode(der)).unwrap_err();
        assert_eq!(error, "the server's public key has the exponent 1, which hides nothing");
        let error = PublicKey::from_pem("MAA=").unwrap_err();
        assert_eq!(error, "unreadable public key of the server");
    }

    proptest! {
        #![proptest_config(Config { rng_seed: RngSeed::Fixed(1), ..Config::default() })]

        #[test]
        fn no_key_makes_it_panic(der in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = PublicKey::from_der(&der);
            let nested = |kind: u8, body: &[u8]| [&[kind, body.len() as u8], body].concat();
            let bits = nested(3, &[&[0], nested(0x30, &der).as_slice()].concat());
            let info = [nested(0x30, &[]), bits].concat();
            let _ = PublicKey::from_der(&nested(0x30, &info));
        }
    }
}
