//! Keys and values of db_bench.

use rqps_model::rocksdb::KEY_BYTES;

/// The key for a number: 8 bytes, the most significant first, then `0` up to 20 bytes.
#[inline]
pub fn key(number: u64) -> [u8; KEY_BYTES] {
    let mut key = [b'0'; KEY_BYTES];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key
}

/// Smallest size of the pool, bytes.
const POOL_BYTES: usize = 1_048_576;
/// Bytes of a fragment: 50 random bytes, twice, so that half can be compressed away.
const FRAGMENT_BYTES: usize = 100;

/// The bytes of all values, which follow each other in it. Equal in every client.
pub struct ValuePool {
    pool: Vec<u8>,
    length: usize,
    next: usize,
}

impl ValuePool {
    /// Makes values of `length` bytes, at most as long as the pool.
    pub fn new(length: usize) -> ValuePool {
        let mut lcg: u64 = 301;
        let mut pool = Vec::with_capacity(POOL_BYTES + FRAGMENT_BYTES);
        while pool.len() < POOL_BYTES {
            let start = pool.len();
            for _ in 0..FRAGMENT_BYTES / 2 {
                lcg = lcg * 16_807 % 2_147_483_647;
                pool.push((lcg % 127) as u8);
            }
            pool.extend_from_within(start..);
        }
        ValuePool { length: length.min(pool.len()), pool, next: 0 }
    }

    /// The next value.
    #[inline]
    pub fn next_value(&mut self) -> &[u8] {
        if self.next + self.length > self.pool.len() {
            self.next = 0;
        }
        let start = self.next;
        self.next += self.length;
        &self.pool[start..self.next]
    }
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    // Golden bytes from db_bench.
    #[test]
    fn keys_are_big_endian_and_filled_with_zeros() {
        let wanted = *b"\x00\x00\x00\x00\x07\x5b\xcd\x15000000000000";
        assert_eq!(key(123_456_789), wanted);
    }

    #[test]
    fn the_pool_is_that_of_db_bench() {
        let mut values = ValuePool::new(400);
        assert_eq!(values.pool.len(), 1_048_600);
        let digest = Sha256::digest(&values.pool);
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "c6f1644ffd6c78636591d12877edb7e8a6fe8b35a1cd9cfff96524d5ae6bf1af");
        let first = values.next_value().to_vec();
        // 2621 values of 400 bytes, then from the start.
        for _ in 0..2620 {
            values.next_value();
        }
        assert_eq!(values.next_value(), first);
    }
}
