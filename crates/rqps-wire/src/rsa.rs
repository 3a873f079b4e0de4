//! RSA encryption of a password with the server's public key (RSAES-OAEP with SHA-1, RFC 8017
//! section 7.1), for `caching_sha2_password` over plain TCP, which a user must allow (docs/dsn.md).
//!
//! It stays here because nothing in the tree encrypts with RSA: ring and rustls sign and check.
//! aws-lc-rs would build a C library in every first build; the crate rsa brings many others, among
//! them older versions of sha1 and digest. Here it is one power with a public exponent: no
//! private key is involved, so nothing of a server needs constant time.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

use crate::der::{BIT_STRING, INTEGER, SEQUENCE, element};
use rqps_model::bounded;

const HASH_BYTES: usize = 20;

/// The least exponent of RSA that hides what it encrypts; servers use 65537.
const EXPONENT_MIN: u32 = 3;

/// A public key.
#[derive(Debug)]
pub(super) struct PublicKey {
    modulus: Number,
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
        if !(1024..=16384).contains(&(key.modulus.bytes() * 8)) {
            return Err(format!(
                "the server's public key has {} bits; rqps supports 1024 to 16384",
                key.modulus.bytes() * 8
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
        let modulus = Number::from_bytes(modulus);
        // An odd modulus and an odd exponent, as every RSA key has.
        (modulus.0.first()? % 2 == 1 && value % 2 == 1)
            .then_some(PublicKey { modulus, exponent: value })
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
        let size = self.modulus.bytes();
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
        let power = Number::from_bytes(&block).power(self.exponent, &self.modulus);
        Ok(power.to_bytes(size))
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

/// A natural number: digits to the base 2³², the least one first, without leading zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Number(Vec<u32>);

impl Number {
    fn from_bytes(bytes: &[u8]) -> Number {
        let digit =
            |chunk: &[u8]| chunk.iter().fold(0, |digit, byte| digit << 8 | u32::from(*byte));
        let mut number = Number(bytes.rchunks(4).map(digit).collect());
        number.trim();
        number
    }

    fn to_bytes(&self, size: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.0.iter().flat_map(|digit| digit.to_le_bytes()).collect();
        bytes.resize(size, 0);
        bytes.reverse();
        bytes
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    /// The bytes of the number without leading zeros.
    fn bytes(&self) -> usize {
        let Some(last) = self.0.last() else { return 0 };
        self.0.len() * 4 - last.leading_zeros() as usize / 8
    }

    fn is_at_least(&self, other: &Number) -> bool {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
            != std::cmp::Ordering::Less
    }

    /// Subtracts `other`, which must not be larger.
    fn subtract(&mut self, other: &Number) {
        let mut borrow = false;
        for (position, digit) in self.0.iter_mut().enumerate() {
            let other = other.0.get(position).copied().unwrap_or(0);
            let (without, first) = digit.overflowing_sub(other);
            let (without, second) = without.overflowing_sub(u32::from(borrow));
            *digit = without;
            borrow = first || second;
        }
        self.trim();
    }

    /// Doubles the number and adds `other`.
    fn double_and_add(&mut self, other: Option<&Number>) {
        let size = self.0.len().max(other.map_or(0, |other| other.0.len())) + 1;
        self.0.resize(size, 0);
        let mut carry = 0u64;
        for (position, digit) in self.0.iter_mut().enumerate() {
            let added = other.and_then(|other| other.0.get(position)).copied().unwrap_or(0);
            let sum = (u64::from(*digit) << 1) + u64::from(added) + carry;
            *digit = sum as u32;
            carry = sum >> 32;
        }
        self.trim();
    }

    /// self × other mod modulus, bit by bit; fast enough for one login.
    fn times(&self, other: &Number, modulus: &Number) -> Number {
        let mut product = Number(Vec::new());
        for digit in other.0.iter().rev() {
            for bit in (0..32).rev() {
                product.double_and_add((digit >> bit & 1 == 1).then_some(self));
                while product.is_at_least(modulus) {
                    product.subtract(modulus);
                }
            }
        }
        product
    }

    /// self^exponent mod modulus. `self` must be less than the modulus.
    fn power(&self, exponent: u32, modulus: &Number) -> Number {
        let mut power = Number(vec![1]);
        for bit in (0..32 - exponent.leading_zeros()).rev() {
            power = power.times(&power, modulus);
            if exponent >> bit & 1 == 1 {
                power = power.times(self, modulus);
            }
        }
        power
    }
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

        #[test]
        fn powers_are_right(base in 0u64.., exponent in 1u32.., modulus in 3u64..) {
            let (mut square, mut expected) = (u128::from(base % modulus), 1);
            let wide = u128::from(modulus);
            for bit in 0..32 {
                if exponent >> bit & 1 == 1 {
                    expected = expected * square % wide;
                }
                square = square * square % wide;
            }
            let number = |value: u64| Number::from_bytes(&value.to_be_bytes());
            let power = number(base % modulus).power(exponent, &number(modulus));
            prop_assert_eq!(power.to_bytes(8), (expected as u64).to_be_bytes());
        }
    }
}
