//! The key numbers that db_bench draws for a seed, a thread and a number of keys.

use super::mix_draws::MixDraws;
use super::twister::Mt64;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
