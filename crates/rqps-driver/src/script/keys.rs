//! Chooses the records of hashed keys, and remembers which records a client has inserted.

use rqps_model::datagen::distribution::{HashedZipfian, Zipfian};
use rqps_model::datagen::rng::Rng;
use rqps_model::value_source::KeyChoice;

/// The choice of the record of a hashed key.
pub(super) enum KeyDraws {
    Uniform { loaded: u64 },
    HashedZipfian { zipfian: HashedZipfian, loaded: u64 },
    Latest { loaded: u64, inserts: usize, from: u64, ranks: Zipfian },
    New { from: u64 },
}

impl KeyDraws {
    /// `first_new` returns the first new record of an earlier source.
    pub(super) fn of(
        records: &KeyChoice,
        first_new: impl Fn(usize) -> Option<u64>,
    ) -> Result<KeyDraws, String> {
        Ok(match records {
            KeyChoice::Uniform { loaded } => KeyDraws::Uniform { loaded: *loaded },
            KeyChoice::HashedZipfian { loaded } => {
                KeyDraws::HashedZipfian { zipfian: HashedZipfian::default(), loaded: *loaded }
            }
            KeyChoice::New { from } => KeyDraws::New { from: *from },
            KeyChoice::Latest { loaded, inserts, exponent } => {
                let inserts = *inserts as usize;
                let from = first_new(inserts).ok_or("it follows no source of new records")?;
                let ranks = Zipfian::new(*loaded, *exponent);
                KeyDraws::Latest { loaded: *loaded, inserts, from, ranks }
            }
        })
    }

    /// The first record that the source adds, if it adds any.
    pub(super) fn first_new(&self) -> Option<u64> {
        match self {
            KeyDraws::New { from } => Some(*from),
            _ => None,
        }
    }
}

/// A sequence as drawn by one client, and which of its places are in the database.
#[derive(Default)]
pub(super) struct DrawnSequence {
    /// Number of places drawn.
    drawn: u64,
    /// Places before this one are confirmed or gaps.
    settled: u64,
    /// Numbers that were never inserted, ascending.
    gaps: Vec<u64>,
}

impl DrawnSequence {
    /// Draws the next place.
    #[inline]
    pub(super) fn next(&mut self) -> u64 {
        self.drawn += 1;
        self.drawn - 1
    }

    /// Confirms that the drawn key is in the database.
    #[inline]
    pub(super) fn confirm(&mut self) {
        self.settled = self.drawn;
    }

    /// Begins a new attempt: unconfirmed places become gaps.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.gaps.extend(self.settled..self.drawn);
        self.settled = self.drawn;
    }

    /// Places that are confirmed or gaps.
    pub(super) fn settled(&self) -> u64 {
        self.settled
    }

    /// The place that `rank` others follow. The error is its distance before the first place.
    pub(super) fn ranked(&self, rank: u64) -> Result<u64, u64> {
        let mut rank = rank;
        while let Some(place) = self.settled.checked_sub(1 + rank) {
            if self.gaps.binary_search(&place).is_err() {
                return Ok(place);
            }
            rank += 1;
        }
        Err(rank - self.settled)
    }
}

/// The client that draws, and its sequences.
pub(super) struct KeyHistory<'a> {
    pub(super) client: u64,
    pub(super) clients: u64,
    /// Sequences by source.
    pub(super) sequences: &'a mut [DrawnSequence],
}

impl KeyHistory<'_> {
    /// The record of a hashed key of source `number`.
    #[inline]
    pub(super) fn record(&mut self, records: &KeyDraws, number: usize, rng: &mut Rng) -> u64 {
        let at = |from: u64, place: u64| from + self.client + place * self.clients;
        match records {
            KeyDraws::Uniform { loaded } => rng.below((*loaded).max(1)),
            KeyDraws::HashedZipfian { zipfian, loaded } => zipfian.draw(rng, *loaded),
            KeyDraws::New { from } => at(*from, self.sequences[number].next()),
            KeyDraws::Latest { loaded, inserts, from, ranks } => {
                match self.sequences[*inserts].ranked(ranks.draw(rng) - 1) {
                    Ok(place) => at(*from, place),
                    Err(before) => loaded.saturating_sub(1 + before),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_leads_past_gaps_and_then_before_the_first_place() {
        let mut sequence = DrawnSequence::default();
        for confirmed in [true, false, true, true] {
            sequence.begin();
            sequence.next();
            if confirmed {
                sequence.confirm();
            }
        }
        sequence.next();
        let ranked = [0, 1, 2, 3, 4].map(|rank| sequence.ranked(rank));
        assert_eq!(ranked, [Ok(3), Ok(2), Ok(0), Ok(0), Err(0)]);
    }
}
