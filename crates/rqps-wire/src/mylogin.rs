//! Reads the login-path file of `mysql_config_editor`: four unused bytes, 20 bytes that give the
//! key, then lines, each encrypted on its own after its length. The file contains its key, so the
//! encryption protects nothing from a reader of the file.

use aes::Aes128;
use aes::cipher::{Array, BlockCipherDecrypt, KeyInit};

/// Bytes of a block of AES, and of its key.
const BLOCK: usize = 16;
const UNUSED: usize = 4;
const KEY_BYTES: usize = 20;

/// The decrypted text of the file. The error says what is wrong with the file.
pub(super) fn text(file: &[u8]) -> Result<String, String> {
    let (head, mut rest) =
        file.split_at_checked(UNUSED + KEY_BYTES).ok_or("the file of login paths is too short")?;
    let mut key = [0; BLOCK];
    for (place, byte) in head[UNUSED..].iter().enumerate() {
        key[place % BLOCK] ^= byte;
    }
    let mut text = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let line = after.split_at_checked(length);
        let (line, after) = line.ok_or("the file of login paths ends within a line")?;
        text.extend(decrypt(key, line).ok_or("the file of login paths is damaged")?);
        rest = after;
    }
    String::from_utf8(text).map_err(|error| error.to_string())
}

/// Decrypts block by block (AES-128, ECB) and removes the padding (PKCS #7). `None`: another key
/// encrypted the bytes.
fn decrypt(key: [u8; BLOCK], encrypted: &[u8]) -> Option<Vec<u8>> {
    let (blocks, []) = encrypted.as_chunks::<BLOCK>() else { return None };
    let cipher = Aes128::new(&Array::from(key));
    let mut text = Vec::with_capacity(encrypted.len());
    for block in blocks {
        let mut block = Array::from(*block);
        cipher.decrypt_block(&mut block);
        text.extend_from_slice(&block);
    }
    let padding = usize::from(*text.last()?);
    if !(1..=BLOCK).contains(&padding) {
        return None;
    }
    let rest = text.split_off(text.len() - padding);
    rest.iter().all(|byte| usize::from(*byte) == padding).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decrypts_and_takes_off_padding() {
        // printf '[client]\n' | openssl enc -aes-128-ecb -K 000102…0f
        let key = std::array::from_fn(|place| place as u8);
        let encrypted = OPENSSL;
        assert_eq!(decrypt(key, &encrypted).as_deref(), Some(&b"[client]\n"[..]));
        assert_eq!(decrypt([7; BLOCK], &encrypted), None);
        assert_eq!(decrypt(key, &encrypted[..15]), None);
        assert_eq!(decrypt(key, &[]), None);
    }

    const OPENSSL: [u8; BLOCK] = [
        0xe4, 0xf7, 0xde, 0xd1, 0x5a, 0x0d, 0x20, 0x73, 0x5d, 0xe0, 0xac, 0x7c, 0xdd, 0x08, 0x59,
        0x03,
    ];

    #[test]
    fn damage_is_told() {
        let check = |file: &[u8], words: &str| {
            assert!(text(file).expect_err("damaged").contains(words), "{file:?}");
        };
        check(&[0; 20], "too short");
        check(&[&[0; 24][..], &[16, 0, 0, 0, 1]].concat(), "within a line");
        check(&[&[0; 24][..], &[16, 0, 0, 0], &[9; 16]].concat(), "damaged");
        assert_eq!(text(&[0; 24]), Ok(String::new()));
    }
}
