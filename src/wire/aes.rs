//! AES-128 block by block (FIPS 197), decryption alone: what the login paths of MySQL's clients are
//! written in. Their key stands at the beginning of the same file, so this hides a password from a
//! glance and from nothing else, and needs no constant time.

/// Bytes of a block, and of a key.
pub(super) const BLOCK: usize = 16;

const ROUNDS: usize = 10;

/// Decrypts blocks one by one (ECB) and takes the padding off (PKCS #7). `None` if the bytes were
/// not made with this key.
pub(super) fn decrypt(key: [u8; BLOCK], encrypted: &[u8]) -> Option<Vec<u8>> {
    let (blocks, []) = encrypted.as_chunks::<BLOCK>() else { return None };
    let keys = round_keys(key);
    let mut text: Vec<u8> = blocks.iter().flat_map(|block| inverse_cipher(&keys, *block)).collect();
    let padding = usize::from(*text.last()?);
    if !(1..=BLOCK).contains(&padding) {
        return None;
    }
    let rest = text.split_off(text.len() - padding);
    rest.iter().all(|byte| usize::from(*byte) == padding).then_some(text)
}

/// x times the byte, in the field of AES.
const fn doubled(byte: u8) -> u8 {
    (byte << 1) ^ if byte & 0x80 != 0 { 0x1b } else { 0 }
}

/// The product of two bytes in the field of AES.
const fn product(mut a: u8, mut b: u8) -> u8 {
    let mut sum = 0;
    while b != 0 {
        if b & 1 == 1 {
            sum ^= a;
        }
        a = doubled(a);
        b >>= 1;
    }
    sum
}

/// The S-box: the multiplicative inverse, and an affine map of it.
const S_BOX: [u8; 256] = {
    let mut table = [0; 256];
    // 3 generates the field: p runs through all bytes but 0, and q is always its inverse.
    let (mut p, mut q) = (1u8, 1u8);
    loop {
        p = product(p, 3);
        // 0xf6 is the inverse of 3.
        q = product(q, 0xf6);
        let turned = q ^ q.rotate_left(1) ^ q.rotate_left(2) ^ q.rotate_left(3) ^ q.rotate_left(4);
        table[p as usize] = turned ^ 0x63;
        if p == 1 {
            break;
        }
    }
    table[0] = 0x63;
    table
};

const INVERSE_S_BOX: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[S_BOX[byte] as usize] = byte as u8;
        byte += 1;
    }
    table
};

fn round_keys(key: [u8; BLOCK]) -> [[u8; BLOCK]; ROUNDS + 1] {
    let mut keys = [key; ROUNDS + 1];
    let mut constant = 1;
    for round in 1..=ROUNDS {
        let before = keys[round - 1];
        let turned = [before[13], before[14], before[15], before[12]];
        let mut word = turned.map(|byte| S_BOX[usize::from(byte)]);
        word[0] ^= constant;
        constant = doubled(constant);
        for column in 0..4 {
            for row in 0..4 {
                word[row] ^= before[4 * column + row];
                keys[round][4 * column + row] = word[row];
            }
        }
    }
    keys
}

fn inverse_cipher(keys: &[[u8; BLOCK]; ROUNDS + 1], mut block: [u8; BLOCK]) -> [u8; BLOCK] {
    add(&mut block, &keys[ROUNDS]);
    for round in (0..ROUNDS).rev() {
        block = back(block);
        add(&mut block, &keys[round]);
        if round > 0 {
            unmix(&mut block);
        }
    }
    block
}

fn add(block: &mut [u8; BLOCK], key: &[u8; BLOCK]) {
    for (byte, key) in block.iter_mut().zip(key) {
        *byte ^= key;
    }
}

/// InvShiftRows and InvSubBytes.
fn back(block: [u8; BLOCK]) -> [u8; BLOCK] {
    let mut turned = [0; BLOCK];
    for (place, byte) in block.into_iter().enumerate() {
        let (column, row) = (place / 4, place % 4);
        turned[(column + row) % 4 * 4 + row] = INVERSE_S_BOX[usize::from(byte)];
    }
    turned
}

/// InvMixColumns.
fn unmix(block: &mut [u8; BLOCK]) {
    const FACTORS: [u8; 4] = [14, 11, 13, 9];
    for column in block.as_chunks_mut::<4>().0 {
        let before = *column;
        for (row, byte) in column.iter_mut().enumerate() {
            let terms = (0..4).map(|other| product(before[other], FACTORS[(other + 4 - row) % 4]));
            *byte = terms.fold(0, |sum, term| sum ^ term);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decrypts_the_example_of_the_standard() {
        // FIPS 197, appendix C.1.
        let key = std::array::from_fn(|place| place as u8);
        let cipher = [
            0x69, 0xc4, 0xe0, 0xd8, 0x6a, 0x7b, 0x04, 0x30, 0xd8, 0xcd, 0xb7, 0x80, 0x70, 0xb4,
            0xc5, 0x5a,
        ];
        let plain: [u8; BLOCK] = std::array::from_fn(|place| place as u8 * 0x11);
        assert_eq!(inverse_cipher(&round_keys(key), cipher), plain);
    }

    #[test]
    fn takes_off_padding_and_refuses_other_bytes() {
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
}
