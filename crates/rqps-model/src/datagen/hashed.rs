//! Keys and popular records as YCSB makes them: numbers that are scattered by a hash.

use crate::datagen::rng::{Rng, fnv1a};

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
mod tests {
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
