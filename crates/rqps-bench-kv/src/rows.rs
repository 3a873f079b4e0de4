//! Keys and values as RocksDB's db_bench makes them: the same numbers give the same bytes, so that
//! its runs and those of rqps can be compared.
//!
//! Keys and values of db_bench.

use rqps_model::datagen::distribution::{HashedZipfian, Zipfian};
use rqps_model::datagen::rng::Rng;
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

// The key numbers that db_bench draws for a seed, a thread and a number of keys.

/// Draws key numbers in the order of a client of db_bench.
#[derive(Clone)]
pub struct KeyNumbers {
    random: Mt64,
    keys: u64,
    seed: u64,
    thread: u64,
    mixed: Option<Box<MixDraws>>,
}

impl KeyNumbers {
    /// For thread `thread` (from 1 over the whole process) of a process seeded with `seed`.
    pub fn new(seed: u64, thread: u64, keys: u64) -> KeyNumbers {
        let random = Mt64::new(seed.wrapping_add(thread));
        KeyNumbers { random, keys, seed, thread, mixed: None }
    }

    /// The random draws of YCSB's core workloads, from a generator of their own.
    pub fn mixed(&mut self) -> &mut MixDraws {
        let KeyNumbers { keys, seed, thread, mixed, .. } = self;
        mixed.get_or_insert_with(|| Box::new(MixDraws::new(*seed, *thread, *keys)))
    }

    /// The key number of a get or put. db_bench first draws the number of the database.
    #[inline]
    pub fn after_choice(&mut self) -> u64 {
        self.random.next_u64();
        self.random.next_u64() % self.keys
    }

    /// The key number of a seek, drawn alone.
    #[inline]
    pub fn plain(&mut self) -> u64 {
        self.random.next_u64() % self.keys
    }

    /// Draws the number of the database, before a batch.
    #[inline]
    pub fn choice(&mut self) {
        self.random.next_u64();
    }
}

// The random draws of YCSB's core workloads on keys and values.

/// Draws for a client of a YCSB core workload. A record has the number of its key, as with YCSB's
/// `insertorder=ordered`.
#[derive(Clone)]
pub struct MixDraws {
    rng: Rng,
    popular: HashedZipfian,
    latest: Zipfian,
    keys: u64,
    thread: u64,
    inserted: u64,
    /// Number of gets of existing keys that found nothing.
    pub missed: u64,
    /// Number of puts.
    pub puts: u64,
}

/// Client threads whose new keys do not collide.
const THREADS: u64 = 4096;

/// Most entries of a scan: `maxscanlength` of YCSB's workload E.
const SCAN_MOST: u64 = 100;

/// θ of the Zipf distribution of keys: `ZIPFIAN_CONSTANT` of YCSB.
const EXPONENT: f64 = 0.99;

impl MixDraws {
    pub(super) fn new(seed: u64, thread: u64, keys: u64) -> MixDraws {
        MixDraws {
            rng: Rng::stream(seed, "core mix", thread),
            popular: HashedZipfian::default(),
            latest: Zipfian::new(keys.max(1), EXPONENT),
            keys,
            thread,
            inserted: 0,
            missed: 0,
            puts: 0,
        }
    }

    /// True for `percent` of 100 draws.
    #[inline]
    pub fn is_among(&mut self, percent: u64) -> bool {
        self.rng.below(100) < percent
    }

    /// A loaded key, Zipf distributed over scrambled keys.
    #[inline]
    pub fn popular(&mut self) -> u64 {
        self.popular.draw(&mut self.rng, self.keys)
    }

    /// A loaded key, or one put by this client; newer keys are more frequent.
    #[inline]
    pub fn latest(&mut self) -> u64 {
        let back = self.latest.draw(&mut self.rng) - 1;
        match self.inserted.checked_sub(back + 1) {
            Some(place) => self.new_key(place),
            None => self.keys.saturating_sub(back - self.inserted + 1),
        }
    }

    /// A new key.
    #[inline]
    pub fn next_new(&mut self) -> u64 {
        self.inserted += 1;
        self.new_key(self.inserted - 1)
    }

    /// The number of entries of a scan.
    #[inline]
    pub fn scanned(&mut self) -> u32 {
        self.rng.uniform(1, SCAN_MOST) as u32
    }

    fn new_key(&self, place: u64) -> u64 {
        self.keys + place * THREADS + self.thread % THREADS
    }
}

// The random generator of db_bench.

const N: usize = 312;
const M: usize = 156;
const UPPER: u64 = 0xffff_ffff_8000_0000;
const LOWER: u64 = 0x7fff_ffff;
const TWIST: u64 = 0xb502_6f5a_a966_19e9;

/// The 64-bit Mersenne twister (M. Matsumoto and T. Nishimura, 2004), as C++'s `mt19937_64`.
#[derive(Clone)]
pub(super) struct Mt64 {
    state: [u64; N],
    next: usize,
}

impl Mt64 {
    /// Seeded as `std::mt19937_64(seed)`.
    pub(super) fn new(seed: u64) -> Mt64 {
        let mut state = [0; N];
        state[0] = seed;
        for index in 1..N {
            let before: u64 = state[index - 1];
            state[index] = (before ^ (before >> 62))
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(index as u64);
        }
        Mt64 { state, next: N }
    }

    /// Draws the next number.
    #[inline]
    pub(super) fn next_u64(&mut self) -> u64 {
        if self.next == N {
            self.refill();
        }
        let mut x = self.state[self.next];
        self.next += 1;
        x ^= (x >> 29) & 0x5555_5555_5555_5555;
        x ^= (x << 17) & 0x71d6_7fff_eda6_0000;
        x ^= (x << 37) & 0xfff7_eee0_0000_0000;
        x ^ (x >> 43)
    }

    fn refill(&mut self) {
        for index in 0..N {
            let x = (self.state[index] & UPPER) | (self.state[(index + 1) % N] & LOWER);
            let twisted = (x >> 1) ^ if x & 1 == 1 { TWIST } else { 0 };
            self.state[index] = self.state[(index + M) % N] ^ twisted;
        }
        self.next = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use sha2::{Digest, Sha256};

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

    // Golden numbers from db_bench.
    #[test]
    fn key_numbers_are_those_of_db_bench() {
        let mut reads = KeyNumbers::new(999, 1, 1_000_000);
        let numbers: Vec<u64> = (0..5).map(|_| reads.after_choice()).collect();
        assert_eq!(numbers, [239_071, 130_198, 572_195, 488_098, 973_592]);
        let mut seeks = KeyNumbers::new(1000, 0, 1_000_000);
        let numbers: Vec<u64> = (0..5).map(|_| seeks.plain()).collect();
        assert_eq!(numbers, [921_198, 239_071, 793_948, 130_198, 298_196]);
    }

    #[test]
    fn a_client_of_a_mix_reads_what_is_there_and_puts_in_what_is_not() {
        let mut draws = MixDraws::new(7, 3, 1000);
        let mut there: BTreeSet<u64> = (0..1000).collect();
        for _ in 0..2000 {
            let read = draws.latest();
            assert!(there.contains(&read), "{read}");
            assert!(draws.popular() < 1000);
            assert!((1..=100).contains(&draws.scanned()));
            if draws.is_among(5) {
                assert!(there.insert(draws.next_new()));
            }
        }
        assert!((1050..1150).contains(&there.len()), "{}", there.len());
        let other = MixDraws::new(7, 4, 1000).next_new();
        assert!(!there.contains(&other), "two clients put in the same key");
    }

    // Golden numbers from the C++ standard library.
    #[test]
    fn the_twister_is_that_of_the_standard() {
        assert_eq!(Mt64::new(5489).next_u64(), 14_514_284_786_278_117_030);
        let mut random = Mt64::new(1000);
        let first: Vec<u64> = (0..4).map(|_| random.next_u64()).collect();
        assert_eq!(
            first,
            [
                2_632_470_296_759_921_198, 18_115_171_260_975_239_071, 15_206_147_180_661_793_948,
                8_100_504_859_641_130_198
            ]
        );
        // The 10000th number of the default seed, by ISO C++ [rand.predef].
        let mut random = Mt64::new(5489);
        assert_eq!((0..10_000).map(|_| random.next_u64()).last(), Some(9_981_545_732_273_789_042));
    }
}
