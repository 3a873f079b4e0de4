//! The file of login paths that `mysql_config_editor` writes: four bytes that mean nothing, 20
//! bytes from which the key is made, then each line on its own, encrypted, after its length.

use super::aes::{self, BLOCK};

const UNUSED: usize = 4;
const KEY_BYTES: usize = 20;

/// The file's text, or why it has none.
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
        text.extend(aes::decrypt(key, line).ok_or("the file of login paths is damaged")?);
        rest = after;
    }
    String::from_utf8(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

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
