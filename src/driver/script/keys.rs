//! Which records hashed keys are of, and what a client knows of those that it inserted.

use crate::datagen::distribution::Zipfian;
use crate::datagen::hashed::HashedZipfian;
use crate::datagen::rng::Rng;
use crate::domain::value_source::KeyChoice;

/// How the record of a hashed key is chosen.
pub(super) enum KeyDraws {
    Uniform { loaded: u64 },
    HashedZipfian { zipfian: HashedZipfian, loaded: u64 },
    Latest { loaded: u64, inserts: usize, from: u64, ranks: Zipfian },
    New { from: u64 },
}

impl KeyDraws {
    /// `first_new` tells the first new record of a source before.
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

    /// The first record that it adds, if it adds records.
    pub(super) fn first_new(&self) -> Option<u64> {
        match self {
            KeyDraws::New { from } => Some(*from),
            _ => None,
        }
    }
}

/// The records that a client has inserted.
pub(super) struct InsertedKeys {
    client: u64,
    clients: u64,
    /// How many it has drawn.
    drawn: u64,
    /// The source of the one that no server has confirmed yet.
    open: Option<usize>,
    /// Places of those that never came in.
    gaps: Vec<u64>,
}

impl InsertedKeys {
    pub(super) fn new(client: u32, clients: u32) -> InsertedKeys {
        let (client, clients) = (u64::from(client), u64::from(clients));
        InsertedKeys { client, clients, drawn: 0, open: None, gaps: Vec::new() }
    }

    /// What was drawn last came in.
    #[inline]
    pub(super) fn confirm(&mut self) {
        self.open = None;
    }

    /// The record of a hashed key of source `number`.
    #[inline]
    pub(super) fn record(&mut self, records: &KeyDraws, number: usize, rng: &mut Rng) -> u64 {
        match records {
            KeyDraws::Uniform { loaded } => rng.below((*loaded).max(1)),
            KeyDraws::HashedZipfian { zipfian, loaded } => zipfian.draw(rng, *loaded),
            KeyDraws::New { from } => {
                if self.open.replace(number).is_some() {
                    self.gaps.push(self.drawn - 1);
                }
                self.drawn += 1;
                self.at(*from, self.drawn - 1)
            }
            KeyDraws::Latest { loaded, inserts, from, ranks } => loop {
                let own = self.drawn - u64::from(self.open == Some(*inserts));
                let rank = ranks.draw(rng) - 1;
                if rank >= own {
                    break loaded.saturating_sub(1 + rank - own);
                }
                let place = own - 1 - rank;
                if !self.gaps.contains(&place) {
                    break self.at(*from, place);
                }
            },
        }
    }

    fn at(&self, from: u64, place: u64) -> u64 {
        from + self.client + place * self.clients
    }
}
