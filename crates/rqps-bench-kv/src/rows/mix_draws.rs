//! The random draws of YCSB's core workloads on keys and values.

use rqps_model::datagen::distribution::Zipfian;
use rqps_model::datagen::hashed::HashedZipfian;
use rqps_model::datagen::rng::Rng;

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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

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
}
