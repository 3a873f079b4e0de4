//! xoshiro256++ 1.0 (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2021),
//! seeded by SplitMix64 (Steele, Lea and Flood, 2014), with independent streams by name and index.
//!
//! Decimal digits have their own path because update-nonindex and the loader need 165 of them per
//! row: one random integer gives a whole group, and a group is spelled eight digits at a time.

/// Version of all sequences of [`datagen`](super) together.
pub const VERSION: u32 = 1;

/// Length of a group of digits in the text columns.
const GROUP: usize = 11;
/// 10 to the power of [`GROUP`].
const GROUP_VALUES: u64 = 100_000_000_000;
/// Values of eight decimal digits.
const EIGHT_VALUES: u64 = 100_000_000;

/// A generator. Cloning it repeats its future.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The generator whose four words are the first outputs of SplitMix64 from `seed`.
    pub fn new(seed: u64) -> Rng {
        let mut state = [0; 4];
        let mut counter = seed;
        for word in &mut state {
            counter = counter.wrapping_add(GOLDEN_GAMMA);
            *word = mix(counter);
        }
        Rng { state }
    }

    /// A stream of its own for one client, table or chunk: `purpose` names the kind, `index` the
    /// one. Two streams of one seed differ if either differs.
    pub fn stream(seed: u64, purpose: &str, index: u64) -> Rng {
        StreamKey::new(seed, purpose).at(index)
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [s0, s1, s2, s3] = self.state;
        let result = s0.wrapping_add(s3).rotate_left(23).wrapping_add(s0);
        let (mixed2, mixed3) = (s2 ^ s0, s3 ^ s1);
        self.state = [s0 ^ mixed3, s1 ^ mixed2, mixed2 ^ (s1 << 17), mixed3.rotate_left(45)];
        result
    }

    /// Uniform in 0..n without bias (Lemire, "Fast random integer generation in an interval",
    /// 2019). `n` = 0 stands for 2^64.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        if n == 0 {
            return self.next_u64();
        }
        loop {
            let product = u128::from(self.next_u64()) * u128::from(n);
            let low = product as u64;
            // The division is met only by a share of n / 2^64 of all draws.
            if low >= n || low >= n.wrapping_neg() % n {
                return (product >> 64) as u64;
            }
        }
    }

    /// Uniform in `first..=last`; the arguments are taken in either order.
    #[inline]
    pub fn uniform(&mut self, first: u64, last: u64) -> u64 {
        let (low, high) = if first <= last { (first, last) } else { (last, first) };
        low + self.below((high - low).wrapping_add(1))
    }

    /// Uniform in [0, 1), a multiple of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Exponential with mean 1: the gaps of a Poisson process, to be divided by its rate.
    pub fn exponential(&mut self) -> f64 {
        -(-self.unit()).ln_1p()
    }

    /// Fills `out` with uniform decimal digits, sixteen from one random integer.
    pub fn digits(&mut self, out: &mut [u8]) {
        for chunk in out.chunks_mut(16) {
            let value = self.below(EIGHT_VALUES * EIGHT_VALUES);
            let mut text = [0; 16];
            text[..8].copy_from_slice(&eight_digits(value / EIGHT_VALUES));
            text[8..].copy_from_slice(&eight_digits(value % EIGHT_VALUES));
            chunk.copy_from_slice(&text[..chunk.len()]);
        }
    }

    /// Fills `out` with groups of eleven uniform digits joined by `-`: 119 bytes make the ten
    /// groups of column c, 59 the five of column pad. What is left after whole groups stays as it
    /// was.
    #[inline]
    pub fn digit_groups(&mut self, out: &mut [u8]) {
        for group in out.chunks_mut(GROUP + 1) {
            if group.len() < GROUP {
                return;
            }
            let value = self.below(GROUP_VALUES);
            group[..3].copy_from_slice(&eight_digits(value / EIGHT_VALUES)[5..]);
            group[3..GROUP].copy_from_slice(&eight_digits(value % EIGHT_VALUES));
            if let Some(last) = group.get_mut(GROUP) {
                *last = b'-';
            }
        }
    }
}

/// A family of streams: seed and purpose mixed once, so that a stream per row costs little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamKey(u64);

impl StreamKey {
    /// The family of `purpose` under `seed`.
    pub fn new(seed: u64, purpose: &str) -> StreamKey {
        StreamKey(seed).and(fnv1a(purpose.as_bytes()))
    }

    /// The family one level down, e.g. of one table.
    pub fn and(self, index: u64) -> StreamKey {
        // `mix` is a permutation, so two indices of one family never share a stream.
        StreamKey(mix(self.0.wrapping_add(GOLDEN_GAMMA) ^ mix(index.wrapping_add(GOLDEN_GAMMA))))
    }

    /// Member `index` of the family.
    #[inline]
    pub fn at(self, index: u64) -> Rng {
        Rng::new(self.and(index).0)
    }
}

/// 2^64 divided by the golden ratio, the step of SplitMix64.
const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of SplitMix64 (variant 13 of Stafford's mixers).
#[inline]
pub(crate) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// FNV-1a, 64 bits: names of purposes are short and few.
#[inline]
pub(super) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The eight ASCII digits of `value` < 10^8, most significant first.
///
/// All lanes of one word are divided at once: by 10^4, then both halves by 100, then four lanes by
/// 10. The reciprocals are exact over their lanes' ranges (tested for every value of each lane).
#[inline]
fn eight_digits(value: u64) -> [u8; 8] {
    // The digit that comes first in memory must be in the lowest byte.
    let fours = (value / 10_000) | ((value % 10_000) << 32);
    let hundreds = ((fours * 5243) >> 19) & 0x0000_007f_0000_007f;
    let pairs = hundreds | ((fours - hundreds * 100) << 16);
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    let digits = tens | ((pairs - tens * 10) << 8);
    (digits | 0x3030_3030_3030_3030).to_le_bytes()
}

// The generator xoroshiro128**, by Blackman and Vigna (public domain), seeded by splitmix64.

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
    fn xoshiro_gives_the_values_of_its_reference() {
        // First outputs of the authors' C program from the state 1, 2, 3, 4.
        let mut rng = Rng { state: [1, 2, 3, 4] };
        for want in [
            41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386,
            9_228_616_714_210_784_205, 9_973_669_472_204_895_162, 14_011_001_112_246_962_877,
            12_406_186_145_184_390_807, 15_849_039_046_786_891_736, 10_450_023_813_501_588_000,
        ] {
            assert_eq!(rng.next_u64(), want);
        }
    }

    #[test]
    fn seeding_gives_the_values_of_splitmix64() {
        // First outputs of SplitMix64 from 1234567, as its C program prints them.
        let want = [
            6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
        ];
        assert_eq!(Rng::new(1_234_567).state, want);
    }

    #[test]
    fn eight_digits_are_those_of_format() {
        let check = |value: u64| {
            assert_eq!(eight_digits(value).as_slice(), format!("{value:08}").as_bytes());
        };
        // Every value of the upper and of the lower half covers every value of every lane.
        (0..10_000).for_each(|four| check(four * 10_000));
        (0..10_000).for_each(check);
        let mut rng = Rng::new(1);
        (0..10_000).for_each(|_| check(rng.below(EIGHT_VALUES)));
    }

    // The golden values below are those of an independent program in another language.

    #[test]
    fn streams_keep_their_sequences() {
        let check = |mut rng: Rng, want: [u64; 3]| {
            assert_eq!([rng.next_u64(), rng.next_u64(), rng.next_u64()], want);
        };
        check(
            Rng::new(0),
            [5_987_356_902_031_041_503, 7_051_070_477_665_621_255, 6_633_766_593_972_829_180],
        );
        check(
            Rng::stream(42, "client", 0),
            [16_301_515_229_244_687_250, 5_171_031_019_457_996_872, 333_435_318_869_940_342],
        );
        check(
            Rng::stream(42, "client", 1),
            [7_875_495_736_646_755_968, 125_399_572_070_838_161, 4_378_884_575_129_360_258],
        );
    }

    #[test]
    fn streams_differ_by_seed_purpose_and_index() {
        let mut firsts = std::collections::HashSet::new();
        for seed in 0..10 {
            for purpose in ["client", "schedule", "sbtest"] {
                for index in 0..100 {
                    firsts.insert(Rng::stream(seed, purpose, index).next_u64());
                }
            }
        }
        assert_eq!(firsts.len(), 10 * 3 * 100);
    }

    #[test]
    fn uniform_keeps_its_sequence_and_its_limits() {
        let mut rng = Rng::new(7);
        let drawn: Vec<u64> = (0..12).map(|_| rng.uniform(1, 100)).collect();
        assert_eq!(drawn, [6, 18, 72, 43, 97, 47, 73, 33, 99, 8, 12, 18]);
        assert_eq!(rng.uniform(5, 5), 5);
        assert!((3..=9).contains(&rng.uniform(9, 3)));
        // The whole width of 64 bits is a legal range.
        rng.uniform(0, u64::MAX);
        assert!(rng.uniform(u64::MAX - 1, u64::MAX) >= u64::MAX - 1);
    }

    #[test]
    fn uniform_is_unbiased_where_a_plain_multiplication_is_not() {
        // Over three quarters of 2^64 values, a plain multiplication gives every third one twice
        // as often as the others; the remainder by three then shows it.
        let mut rng = Rng::new(11);
        let n = 3 << 62;
        let mut counts = [0u64; 3];
        (0..30_000).for_each(|_| counts[(rng.below(n) % 3) as usize] += 1);
        crate::datagen::distribution::tests::assert_fits(&counts, &[1.0; 3]);
    }

    #[test]
    fn unit_is_half_open() {
        let mut rng = Rng::new(7);
        assert_eq!(rng.unit(), 0.055_360_436_478_333_11);
        assert_eq!(rng.unit(), 0.172_115_854_448_117_72);
        let mean = (0..100_000).map(|_| rng.unit()).sum::<f64>() / 100_000.0;
        // Standard error: 1 / sqrt(12 n) = 0.0009.
        assert!((mean - 0.5).abs() < 0.004, "{mean}");
        assert_eq!((u64::MAX >> 11) as f64 * (1.0 / (1u64 << 53) as f64), 1.0 - 2f64.powi(-53));
    }

    #[test]
    fn exponential_has_mean_and_deviation_one() {
        let mut rng = Rng::new(3);
        let drawn: Vec<f64> = (0..100_000).map(|_| rng.exponential()).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let square = drawn.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / drawn.len() as f64;
        // Standard errors 0.0032 and 0.0089.
        assert!((mean - 1.0).abs() < 0.015 && (square - 1.0).abs() < 0.045, "{mean} {square}");
        assert!(drawn.iter().all(|x| x.is_finite() && *x >= 0.0));
    }

    #[test]
    fn digits_keep_their_sequence() {
        let mut out = [0; 40];
        Rng::new(7).digits(&mut out);
        assert_eq!(&out, b"0553604364783331172115854448117871757612");
    }

    #[test]
    fn every_place_has_uniform_digits() {
        let mut rng = Rng::new(5);
        let mut counts = vec![[0u64; 10]; 119];
        let mut text = [0; 119];
        for _ in 0..2_000 {
            rng.digit_groups(&mut text);
            for (place, byte) in text.iter().enumerate() {
                match place % 12 {
                    11 => assert_eq!(*byte, b'-'),
                    _ => counts[place][usize::from(byte - b'0')] += 1,
                }
            }
        }
        for place in (0..119).filter(|place| place % 12 != 11) {
            crate::datagen::distribution::tests::assert_fits(&counts[place], &[1.0; 10]);
        }
    }

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
