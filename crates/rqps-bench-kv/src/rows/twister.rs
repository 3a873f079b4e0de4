//! The random generator of db_bench.

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
    use super::*;

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
