//! Distributions by which a benchmark picks one of many: zipfian, pareto, gaussian and special, as
//! sysbench defines them. The formulas are those of the published program, the sampling is exact
//! where it can be.

use crate::datagen::rng::{Rng, fnv1a, mix};

/// Draws ids, keys and range starts in 1..=rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Sampler {
    /// Every value alike.
    Uniform {
        /// The largest value.
        rows: u64,
    },
    /// Rank k with probability ∝ 1/k^θ, hottest value 1.
    Zipfian(Zipfian),
}

impl Sampler {
    /// The next value.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Sampler::Uniform { rows } => rng.uniform(1, *rows),
            Sampler::Zipfian(zipfian) => zipfian.draw(rng),
        }
    }
}

/// Zipf's distribution over 1..=n by rejection inversion (Hörmann and Derflinger, "Rejection-
/// inversion to generate variates from monotone discrete distributions", 1996): constant time and
/// memory for any n, no approximation.
#[derive(Clone, Debug, PartialEq)]
pub struct Zipfian {
    n: u64,
    theta: f64,
    /// H(1.5) - 1: the lower end of the inverted area.
    area_first: f64,
    /// H(n + 0.5): its upper end.
    area_last: f64,
    /// A draw within this distance below its rank is accepted without computing a power.
    squeeze: f64,
}

impl Zipfian {
    /// Over 1..=`n` with P(k) ∝ k^-`theta`. `n` of 0 counts as 1, a negative or undefined `theta`
    /// as 0, which is the uniform distribution.
    pub fn new(n: u64, theta: f64) -> Zipfian {
        let n = n.max(1);
        let theta = theta.max(0.0);
        let squeeze = 2.0 - area_inverse(area(2.5, theta) - 2f64.powf(-theta), theta);
        Zipfian {
            n,
            theta,
            area_first: area(1.5, theta) - 1.0,
            area_last: area(n as f64 + 0.5, theta),
            squeeze,
        }
    }

    /// The next rank, which is the value too: the hottest is 1, nothing is scrambled.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        self.draw_below(rng, (self.n, self.area_last))
    }

    /// The next rank of `n` ranks, where `n` may grow from draw to draw.
    #[inline]
    pub fn draw_of(&self, rng: &mut Rng, n: u64) -> u64 {
        let n = n.max(1);
        self.draw_below(rng, (n, area(n as f64 + 0.5, self.theta)))
    }

    #[inline]
    fn draw_below(&self, rng: &mut Rng, (n, area_last): (u64, f64)) -> u64 {
        loop {
            let v = self.area_first + rng.unit() * (area_last - self.area_first);
            let x = area_inverse(v, self.theta);
            let k = x.round().clamp(1.0, n as f64);
            if k - x <= self.squeeze || v >= area(k + 0.5, self.theta) - k.powf(-self.theta) {
                return k as u64;
            }
        }
    }
}

/// H(x) = (x^(1-θ) - 1) / (1 - θ), the integral of x^-θ from 1; ln x where θ is 1.
fn area(x: f64, theta: f64) -> f64 {
    let power = 1.0 - theta;
    if power == 0.0 { x.ln() } else { (x.powf(power) - 1.0) / power }
}

/// The inverse of [`area`].
fn area_inverse(v: f64, theta: f64) -> f64 {
    let power = 1.0 - theta;
    if power == 0.0 { v.exp() } else { (1.0 + v * power).powf(1.0 / power) }
}

/// Irwin-Hall: `first` + floor of the mean of twelve uniform numbers times the width; standard
/// deviation about a twelfth of the width.
pub fn gaussian(rng: &mut Rng, first: u64, last: u64) -> u64 {
    let width = (last - first) as f64 + 1.0;
    first + (mean_of_twelve(rng) * width) as u64
}

/// `first` + floor(width × u^p) with p = ln h / ln(1 - h): a share h of the values, the smallest,
/// gets a share 1 - h of the draws. sysbench's h is [`PARETO_H`]: 80 per cent on the first 20.
pub fn pareto(rng: &mut Rng, first: u64, last: u64, h: f64) -> u64 {
    let width = (last - first) as f64 + 1.0;
    let power = h.ln() / (1.0 - h).ln();
    (first + (width * rng.unit().powf(power)) as u64).min(last)
}

/// sysbench's default h of [`pareto`].
pub const PARETO_H: f64 = 0.2;

/// The default distribution of sysbench 1.0, with its default parameters (spec-res 75, spec-pct 1,
/// spec-iter 12).
///
/// A quarter of the draws is [`gaussian`] over the whole width. The others fall on a band that is
/// 1 per cent wide and centred. Because the original uses one uniform number for both the choice
/// and the place in the band, they fall on its upper three quarters only: 75 per cent of the draws
/// on about 0.75 per cent of the values. That is kept, for results to be comparable.
pub fn special(rng: &mut Rng, first: u64, last: u64) -> u64 {
    let t = (last - first) as f64;
    let u = rng.unit();
    let offset = if u < 0.25 {
        t * mean_of_twelve(rng)
    } else {
        let band = t * 0.01;
        u * (band + 1.0) + t / 2.0 - band / 2.0
    };
    (first + offset as u64).min(last)
}

/// A normal distribution over `0..=span`, cut at `cut` standard deviations on both sides of the
/// centre, which is the formula of pgbench's random_gaussian. `cut` is at least 2.
pub fn cut_gaussian(rng: &mut Rng, span: u64, cut: f64) -> u64 {
    let unit = loop {
        let (radius, angle) = (1.0 - rng.unit(), 1.0 - rng.unit());
        let z = (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).sin();
        if (-cut..cut).contains(&z) {
            break (z + cut) / (2.0 * cut);
        }
    };
    share_of(unit, span)
}

/// Small values of `0..=span` first, the more so the larger `steepness` is, which is above 0: the
/// formula of pgbench's random_exponential.
pub fn exponential(rng: &mut Rng, span: u64, steepness: f64) -> u64 {
    let rest = (-steepness).exp();
    let unit = -(rest + (1.0 - rest) * (1.0 - rng.unit())).ln() / steepness;
    share_of(unit, span)
}

/// The value of `0..=span` at a share of the way.
fn share_of(unit: f64, span: u64) -> u64 {
    (unit * (span as f64 + 1.0)).min(span as f64) as u64
}

/// A permutation of `0..n` that a key chooses: where ranks are to be spread over values so that no
/// two share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permutation {
    n: u64,
    /// Bits of each half of a value.
    half: u32,
    key: u64,
}

impl Permutation {
    /// A permutation of `0..n`.
    pub fn new(n: u64, key: u64) -> Permutation {
        let n = n.max(1);
        let bits = 64 - (n - 1).leading_zeros();
        Permutation { n, half: bits.div_ceil(2).max(1), key }
    }

    /// The image of `value`, which is less than n.
    pub fn apply(&self, value: u64) -> u64 {
        let mut value = value;
        // A Feistel network permutes a power of 4 that is at most 4 n; what falls outside goes on.
        loop {
            value = self.rounds(value);
            if value < self.n {
                return value;
            }
        }
    }

    fn rounds(&self, value: u64) -> u64 {
        let mask = u64::MAX >> (64 - self.half);
        let (mut left, mut right) = (value >> self.half & mask, value & mask);
        for round in 0..4u64 {
            let mixed = mix(self.key ^ mix(right | round << 60));
            (left, right) = (right, left ^ (mixed & mask));
        }
        left << self.half | right
    }
}

/// The mean of twelve uniform numbers.
fn mean_of_twelve(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.unit()).sum::<f64>() / 12.0
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rqps_stats::goodness_of_fit;

    /// At 1 in 100,000, so that a fixed seed that passes says something and a hundred of these
    /// tests still do not cry wolf.
    pub(crate) fn assert_fits(counts: &[u64], weights: &[f64]) {
        assert!(goodness_of_fit(counts, weights) > 1e-5, "{counts:?}");
    }

    /// Half of the draws by a distribution over another number.
    fn zipfian_counts(n: u64, theta: f64, draws: usize) -> Vec<u64> {
        let (zipfian, other) = (Zipfian::new(n, theta), Zipfian::new(7, theta));
        let mut rng = Rng::new(1);
        let mut counts = vec![0; n as usize];
        for _ in 0..draws / 2 {
            counts[zipfian.draw(&mut rng) as usize - 1] += 1;
            counts[other.draw_of(&mut rng, n) as usize - 1] += 1;
        }
        counts
    }

    #[test]
    fn zipfian_has_the_exact_probabilities() {
        for theta in [0.0, 0.5, 0.8, 0.99, 1.0, 1.5] {
            for n in [1, 2, 3, 10, 200] {
                let weights: Vec<f64> = (1..=n).map(|k| (k as f64).powf(-theta)).collect();
                let counts = zipfian_counts(n, theta, 100_000);
                if n == 1 {
                    assert_eq!(counts, [100_000]);
                } else {
                    assert_fits(&counts, &weights);
                }
            }
        }
    }

    #[test]
    fn zipfian_over_ten_million_is_right_at_both_ends() {
        let n = 10_000_000;
        let zipfian = Zipfian::new(n, 0.8);
        // Classes: the ten hottest one by one, then by powers of ten.
        let bounds = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 100, 1000, 10_000, 100_000, 1_000_000, n];
        let mut weights = vec![0.0; bounds.len()];
        let mut class = 0;
        for k in 1..=n {
            class += usize::from(k > bounds[class]);
            weights[class] += (k as f64).powf(-0.8);
        }
        let mut counts = vec![0; bounds.len()];
        let mut rng = Rng::new(2);
        for _ in 0..200_000 {
            let k = zipfian.draw(&mut rng);
            counts[bounds.partition_point(|bound| *bound < k)] += 1;
        }
        assert_fits(&counts, &weights);
    }

    #[test]
    fn sequences_are_kept() {
        // From an independent program in another language.
        let draw = |mut next: Box<dyn FnMut(&mut Rng) -> u64>, count: usize| -> Vec<u64> {
            let mut rng = Rng::new(7);
            (0..count).map(|_| next(&mut rng)).collect()
        };
        let zipfian = Sampler::Zipfian(Zipfian::new(1_000_000, 0.8));
        assert_eq!(
            draw(Box::new(move |rng| zipfian.draw(rng)), 12),
            [15, 496, 212_089, 20_412, 839_815, 29_875, 220_875, 6_679, 919_286, 31, 117, 494]
        );
        assert_eq!(
            draw(Box::new(|rng| special(rng, 1, 1_000_000)), 8),
            [489_638, 425_284, 471_174, 502_403, 504_740, 501_176, 415_231, 503_172]
        );
        assert_eq!(
            draw(Box::new(|rng| gaussian(rng, 1, 1_000_000)), 4),
            [433_099, 425_136, 402_550, 465_866]
        );
        assert_eq!(
            draw(Box::new(|rng| pareto(rng, 1, 1_000_000, PARETO_H)), 6),
            [1, 4, 91_294, 2_168, 765_682, 4_039]
        );
        let uniform = Sampler::Uniform { rows: 100 };
        assert_eq!(draw(Box::new(move |rng| uniform.draw(rng)), 4), [6, 18, 72, 43]);
    }

    /// Share of 200,000 draws in `low..=high`.
    fn share(mut next: impl FnMut(&mut Rng) -> u64, low: u64, high: u64) -> f64 {
        let mut rng = Rng::new(4);
        let hits = (0..200_000).filter(|_| (low..=high).contains(&next(&mut rng))).count();
        hits as f64 / 200_000.0
    }

    #[test]
    fn pareto_gives_80_per_cent_to_the_first_20() {
        let hot = share(|rng| pareto(rng, 1, 1_000_000, PARETO_H), 1, 200_000);
        assert!((hot - 0.8).abs() < 0.005, "{hot}");
    }

    #[test]
    fn gaussian_has_a_deviation_of_a_twelfth() {
        // Irwin-Hall of twelve is within a per cent of the normal distribution here: 68.3 per cent
        // lie within one standard deviation.
        let middle = share(|rng| gaussian(rng, 1, 1_200_000), 500_001, 700_000);
        assert!((middle - 0.683).abs() < 0.01, "{middle}");
        assert_eq!(share(|rng| gaussian(rng, 10, 20), 10, 20), 1.0);
    }

    #[test]
    fn a_permutation_takes_every_value_once_and_keys_differ() {
        for n in [1, 2, 3, 10, 1000, 4097] {
            let permutation = Permutation::new(n, 7);
            let mut values: Vec<u64> = (0..n).map(|value| permutation.apply(value)).collect();
            values.sort_unstable();
            assert!(values.into_iter().eq(0..n), "{n}");
        }
        let first = |key| Permutation::new(1 << 40, key).apply(0);
        assert_ne!(first(1), first(2));
        assert!(Permutation::new(u64::MAX, 1).apply(u64::MAX - 1) < u64::MAX);
    }

    #[test]
    fn cut_normal_and_exponential_have_the_shares_of_their_formulas() {
        // Within one deviation of the centre, of a normal distribution that is cut at 4: 68.27 %.
        let middle = share(|rng| cut_gaussian(rng, 799, 4.0), 300, 499);
        assert!((middle - 0.6827).abs() < 0.005, "{middle}");
        assert_eq!(share(|rng| cut_gaussian(rng, 799, 4.0), 0, 799), 1.0);
        // (1 - e^-1) / (1 - e^-10) of the draws on the first tenth.
        let first = share(|rng| exponential(rng, 999, 10.0), 0, 99);
        assert!((first - 0.63215).abs() < 0.005, "{first}");
        assert_eq!(share(|rng| exponential(rng, 999, 10.0), 0, 999), 1.0);
    }

    #[test]
    fn special_puts_75_per_cent_on_three_quarters_of_a_band_of_one_per_cent() {
        let n = 1_000_000;
        // The band is 495,000 to 505,000; its upper three quarters begin at 497,500.
        let band = share(|rng| special(rng, 1, n), 497_501, 505_001);
        // The bell puts 0.0075 × 12 / sqrt(2 pi) = 3.6 per cent of the other quarter there.
        assert!((band - (0.75 + 0.25 * 0.0359)).abs() < 0.004, "{band}");
        let lowest_quarter = share(|rng| special(rng, 1, n), 495_001, 497_500);
        assert!((lowest_quarter - 0.25 * 0.0120).abs() < 0.001, "{lowest_quarter}");
        assert_eq!(share(|rng| special(rng, 1, 10), 1, 10), 1.0);
    }
}

// Keys and popular records as YCSB makes them: numbers that are scattered by a hash.

/// The hash that makes a key of a number: FNV-1a of 64 bits over the eight octets of the number,
/// the lowest first, without its sign.
#[inline]
pub fn key_hash(number: u64) -> u64 {
    (fnv1a(&number.to_le_bytes()) as i64).unsigned_abs()
}

/// Ranks that [`HashedZipfian`] draws from, whatever the number of records.
const RANKS: f64 = 1e10;
/// Σ k^-θ over all ranks.
const ZETA: f64 = 26.469_028_201_783_02;
/// θ.
const THETA: f64 = 0.99;

/// Records with a zipfian popularity: a rank of 10^10 is drawn, and its hash chooses the record.
/// Records of several popular ranks are there, as they are in YCSB.
///
/// Ranks come by the approximation of Gray et al. ("Quickly generating billion-record synthetic
/// databases", 1994): exact for the first two, close for the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HashedZipfian {
    eta: f64,
    alpha: f64,
    second: f64,
}

impl Default for HashedZipfian {
    fn default() -> HashedZipfian {
        let second = 1.0 + 0.5f64.powf(THETA);
        let eta = (1.0 - (2.0 / RANKS).powf(1.0 - THETA)) / (1.0 - second / ZETA);
        HashedZipfian { eta, alpha: 1.0 / (1.0 - THETA), second }
    }
}

impl HashedZipfian {
    /// The next rank, from 0.
    #[inline]
    pub fn rank(&self, rng: &mut Rng) -> u64 {
        let unit = rng.unit();
        let area = unit * ZETA;
        if area < 1.0 {
            return 0;
        }
        if area < self.second {
            return 1;
        }
        (RANKS * (self.eta * unit - self.eta + 1.0).powf(self.alpha)) as u64
    }

    /// The next record of `0..records`.
    #[inline]
    pub fn draw(&self, rng: &mut Rng, records: u64) -> u64 {
        key_hash(self.rank(rng)) % records.max(1)
    }
}

/// Fills `out` with random printable characters of 64 kinds.
#[inline]
pub fn printable(rng: &mut Rng, out: &mut [u8]) {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-.";
    for chunk in out.chunks_mut(10) {
        let mut bits = rng.next_u64();
        for byte in chunk {
            *byte = LETTERS[(bits & 63) as usize];
            bits >>= 6;
        }
    }
}

#[cfg(test)]
mod hashed_tests {
    use super::*;
    use crate::datagen::distribution::tests::assert_fits;

    /// By the published definition: offset basis, then exclusive or and product for each octet.
    fn by_definition(number: u64) -> u64 {
        let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
        for octet in 0..8 {
            hash ^= (number >> (8 * octet)) & 0xff;
            hash = hash.wrapping_mul(1_099_511_628_211);
        }
        if hash >> 63 == 1 { hash.wrapping_neg() } else { hash }
    }

    #[test]
    fn keys_are_those_of_the_published_hash() {
        for number in (0..1000).chain([1 << 32, u64::MAX]) {
            assert_eq!(key_hash(number), by_definition(number), "{number}");
        }
        assert_eq!(key_hash(0), 6_284_781_860_667_377_211);
        assert_eq!(key_hash(1), 8_517_097_267_634_966_620);
        assert_eq!(key_hash(2), 1_820_151_046_732_198_393);
    }

    #[test]
    fn the_most_popular_ranks_have_their_shares() {
        let zipfian = HashedZipfian::default();
        let mut rng = Rng::new(5);
        let draws = 1_000_000;
        let (mut counts, mut rest) = ([0u64; 3], 0);
        for _ in 0..draws {
            match zipfian.rank(&mut rng) {
                rank @ 0..=1 => counts[rank as usize] += 1,
                rank => {
                    assert!(rank < RANKS as u64);
                    rest += 1;
                }
            }
        }
        counts[2] = rest;
        let second = 0.5f64.powf(THETA);
        assert_fits(&counts, &[1.0, second, ZETA - 1.0 - second]);
    }

    /// The share of draws below a rank, from the formula solved for the uniform number.
    fn below(zipfian: &HashedZipfian, rank: f64) -> f64 {
        match rank {
            rank if rank < 2.0 => rank / ZETA,
            2.0 => zipfian.second / ZETA,
            rank => ((rank / RANKS).powf(1.0 - THETA) - 1.0 + zipfian.eta) / zipfian.eta,
        }
    }

    #[test]
    fn the_hottest_records_have_the_share_of_the_ranks_that_meet_there() {
        let (zipfian, records, hottest) = (HashedZipfian::default(), 1000, 10);
        let (ranks, draws) = (300_000u32, 300_000u32);
        // Less popular ranks are so many that all records have the same of them.
        let rest = (1.0 - below(&zipfian, f64::from(ranks))) / records as f64;
        let mut shares: Vec<(f64, u64)> = (0..records).map(|record| (rest, record)).collect();
        for rank in 0..ranks {
            let share = below(&zipfian, f64::from(rank + 1)) - below(&zipfian, f64::from(rank));
            shares[(key_hash(u64::from(rank)) % records) as usize].0 += share;
        }
        shares.sort_by(|one, other| other.0.total_cmp(&one.0));
        let top = &shares[..hottest];
        let share: f64 = top.iter().map(|(share, _)| share).sum();
        let mut rng = Rng::new(3);
        let is_top = |record: u64| top.iter().any(|(_, hot)| *hot == record);
        let met = (0..draws).filter(|_| is_top(zipfian.draw(&mut rng, records))).count();
        let found = met as f64 / f64::from(draws);
        let sigma = (share * (1.0 - share) / f64::from(draws)).sqrt();
        assert!((found - share).abs() < 3.0 * sigma, "{found} instead of {share} +- {sigma}");
        assert!((0.1..0.2).contains(&share), "1 % of the records get {share} of the draws");
    }

    #[test]
    fn ranks_follow_the_inverse_of_the_published_formula() {
        let zipfian = HashedZipfian::default();
        let below = |rank: f64| below(&zipfian, rank);
        let edges = [2.0, 10.0, 100.0, 1e3, 1e4, 1e6, 1e8, 1e10];
        let mut weights = vec![zipfian.second / ZETA, below(10.0) - zipfian.second / ZETA];
        weights.extend(edges[1..].windows(2).map(|edge| below(edge[1]) - below(edge[0])));
        let mut counts = vec![0u64; weights.len()];
        let mut rng = Rng::new(11);
        for _ in 0..1_000_000 {
            let rank = zipfian.rank(&mut rng) as f64;
            counts[edges.iter().take_while(|edge| rank >= **edge).count()] += 1;
        }
        assert_fits(&counts, &weights);
    }

    #[test]
    fn printable_text_needs_no_escapes() {
        let mut text = [0; 1003];
        printable(&mut Rng::new(1), &mut text);
        assert!(text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(byte)));
        let kinds: std::collections::BTreeSet<&u8> = text.iter().collect();
        assert_eq!(kinds.len(), 64);
    }
}
