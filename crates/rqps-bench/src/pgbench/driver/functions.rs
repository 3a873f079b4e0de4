//! Random numbers, hashes and permutations, computed as in pgbench 15 and later.

use std::f64::consts::PI;

use rqps_model::datagen::xoroshiro::Xoroshiro128;

/// A uniform number from `least` to `most`.
#[inline]
pub(super) fn uniform(random: &mut Xoroshiro128, least: i64, most: i64) -> i64 {
    least.wrapping_add(random.up_to(most.wrapping_sub(least) as u64) as i64)
}

/// The number at a share (0 to 1) of the range.
fn at_share(least: i64, most: i64, share: f64) -> i64 {
    let numbers = (most - least + 1) as f64;
    least + (numbers * share) as i64
}

/// Exponentially distributed; the distribution is cut at `parameter`. Small numbers are more
/// frequent.
pub(super) fn exponential(random: &mut Xoroshiro128, least: i64, most: i64, parameter: f64) -> i64 {
    let cut = (-parameter).exp();
    let drawn = 1.0 - random.fraction();
    let share = -(cut + (1.0 - cut) * drawn).ln() / parameter;
    at_share(least, most, share)
}

/// Normally distributed; the distribution is cut at `parameter` standard deviations.
pub(super) fn gaussian(random: &mut Xoroshiro128, least: i64, most: i64, parameter: f64) -> i64 {
    loop {
        let length = 1.0 - random.fraction();
        let angle = 1.0 - random.fraction();
        let deviation = (-2.0 * length.ln()).sqrt() * (2.0 * PI * angle).sin();
        if deviation >= -parameter && deviation < parameter {
            let share = (deviation + parameter) / (parameter * 2.0);
            return at_share(least, most, share);
        }
    }
}

/// Zipf distributed: rank k, from `least` on, with a probability in proportion to k^−exponent
/// (Devroye's rejection for exponents above 1).
pub(super) fn zipfian(random: &mut Xoroshiro128, least: i64, most: i64, exponent: f64) -> i64 {
    let ranks = most - least + 1;
    if ranks <= 1 {
        return least;
    }
    let below = exponent - 1.0;
    let bound = 2f64.powf(below);
    loop {
        let first = random.fraction();
        let second = random.fraction();
        let rank = first.powf(-1.0 / below).floor();
        let ratio = (1.0 + 1.0 / rank).powf(below);
        let is_under = second * rank * (ratio - 1.0) / (bound - 1.0) <= ratio / bound;
        if is_under && rank <= ranks as f64 {
            return least - 1 + rank as i64;
        }
    }
}

/// FNV-1a of the eight octets of a number, from the lowest.
pub(super) fn fnv1a(number: i64, seed: i64) -> i64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let mix = |hash: u64, octet: u8| (hash ^ u64::from(octet)).wrapping_mul(PRIME);
    number.to_le_bytes().into_iter().fold(BASIS ^ seed as u64, mix) as i64
}

/// 64-bit MurmurHash2 of a number (by Austin Appleby, public domain).
pub(super) fn murmur2(number: i64, seed: i64) -> i64 {
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let mut word = (number as u64).wrapping_mul(FACTOR);
    word ^= word >> SHIFT;
    word = word.wrapping_mul(FACTOR);
    let mut hash = seed as u64 ^ FACTOR.wrapping_mul(8);
    hash = (hash ^ word).wrapping_mul(FACTOR);
    hash = (hash ^ (hash >> SHIFT)).wrapping_mul(FACTOR);
    (hash ^ (hash >> SHIFT)) as i64
}

/// Rounds of the permutation.
const ROUNDS: u32 = 6;

/// The position of `number` in the permutation of `size` numbers by `seed`.
pub(super) fn permuted(number: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let mut random = Xoroshiro128::seeded(seed as u64);
    let size = size as u64;
    // C divides it as an unsigned number.
    let mut place = number as u64 % size;
    let half = HalfPermutation { bits: size.ilog2(), mask: (1u64 << size.ilog2()) - 1 };
    for _ in 0..ROUNDS {
        place = half.scatter(place, &mut random);
        let mirrored = half.scatter(size - 1 - place, &mut random);
        place = size - 1 - mirrored;
        let offset = random.up_to(size - 1);
        // Both are less than 2⁶³.
        place = (place + offset) % size;
    }
    place as i64
}

/// Scatters numbers below the largest power of two up to the size.
struct HalfPermutation {
    bits: u32,
    mask: u64,
}

impl HalfPermutation {
    /// Draws in any case; scatters the number if it is below the power of two.
    fn scatter(&self, number: u64, random: &mut Xoroshiro128) -> u64 {
        let factor = (random.next_u64() & self.mask) | 1;
        let toggled = random.next_u64() & self.mask;
        if number > self.mask {
            return number;
        }
        let mixed = (number.wrapping_mul(factor) ^ toggled) & self.mask;
        ((mixed << 1) & self.mask) | (mixed >> (self.bits - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_pgbenchs_own_tests() {
        assert_eq!(murmur2(10, 5432), -5_817_877_081_768_721_676);
        assert_eq!(fnv1a(10, 5432), -7_793_829_335_365_542_153);
        assert_eq!([permuted(0, 2, 5431), permuted(1, 2, 5431), permuted(0, 2, 5433)], [0, 1, 1]);
        let size = 9_223_372_036_854_775_797;
        assert_eq!(permuted(size - 1, size, 5432), 520_382_784_483_822_430);
    }

    #[test]
    fn distributions_are_those_of_pgbenchs_own_tests() {
        let mut random = Xoroshiro128::seeded(5432).branch();
        assert_eq!(uniform(&mut random, 10, 19), 17);
        assert_eq!(exponential(&mut random, 100, 199, 10.0), 104);
        assert_eq!(gaussian(&mut random, 1000, 1999, 10.0), 1498);
        assert_eq!(zipfian(&mut random, 1, 9, 1.3), 3);
    }

    #[test]
    fn a_permutation_has_every_number_once() {
        for size in [1, 2, 3, 7, 64, 100] {
            let mut all: Vec<i64> = (0..size).map(|number| permuted(number, size, 7)).collect();
            all.sort_unstable();
            assert_eq!(all, (0..size).collect::<Vec<i64>>());
        }
    }
}
