//! The generator xoroshiro128**, by Blackman and Vigna (public domain), seeded by splitmix64.

/// A generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Xoroshiro128 {
    state: [u64; 2],
}

impl Xoroshiro128 {
    /// From 64 bits.
    pub fn seeded(mut seed: u64) -> Xoroshiro128 {
        let state = [split_mix(&mut seed), split_mix(&mut seed)];
        Xoroshiro128 { state }
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [first, second] = self.state;
        let mixed = second ^ first;
        self.state = [first.rotate_left(24) ^ mixed ^ (mixed << 16), mixed.rotate_left(37)];
        first.wrapping_mul(5).rotate_left(7).wrapping_mul(9)
    }

    /// A number from 0 to `most`, all alike; draws nothing if there is only one.
    #[inline]
    pub fn up_to(&mut self, most: u64) -> u64 {
        if most == 0 {
            return 0;
        }
        let shift = most.leading_zeros();
        loop {
            let drawn = self.next_u64() >> shift;
            if drawn <= most {
                return drawn;
            }
        }
    }

    /// A number of [0, 1) with 52 bits.
    #[inline]
    pub fn fraction(&mut self) -> f64 {
        (self.next_u64() >> 12) as f64 / (1u64 << 52) as f64
    }

    /// Another generator, whose seed this one draws.
    pub fn branch(&mut self) -> Xoroshiro128 {
        Xoroshiro128::seeded(self.next_u64())
    }
}

fn split_mix(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *seed;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_those_of_pgbench_15() {
        // `pgbench -c 2 -j 2 --random-seed=42`: five times random(1, 100000) of each client.
        let mut base = Xoroshiro128::seeded(42);
        let mut clients = [base.branch(), base.branch()];
        let mut draw = |client: usize| [(); 5].map(|()| 1 + clients[client].up_to(99_999));
        assert_eq!(draw(0), [83_532, 83_233, 7_682, 38_645, 86_390]);
        assert_eq!(draw(1), [81_172, 73_184, 37_222, 24_146, 6_060]);
    }

    #[test]
    fn a_range_of_one_draws_nothing_and_the_whole_range_is_the_bits() {
        let (mut one, mut other) = (Xoroshiro128::seeded(1), Xoroshiro128::seeded(1));
        assert_eq!(one.up_to(0), 0);
        assert_eq!(one.up_to(u64::MAX), other.next_u64());
        let fraction = one.fraction();
        assert!((0.0..1.0).contains(&fraction) && fraction != other.fraction() + 1.0);
    }
}
