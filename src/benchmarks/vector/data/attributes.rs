//! Attributes of rows that filters and deletes ask: seeded, and independent of where a row lies.

use crate::datagen::rng::StreamKey;

/// Parts of the whole that attributes count in: ten thousand, a hundredth of a per cent.
pub(crate) const PARTS: u64 = 10_000;
/// An attribute of a row that has nothing to do with where the row lies: uniform in 0..[`PARTS`].
pub fn uniform(id: u32) -> u64 {
    StreamKey::new(0, "vector.uniform").at(u64::from(id)).below(PARTS)
}

/// Decides when a row is deleted: those below the share that is to go, uniform in 0..[`PARTS`].
pub fn fate(id: u32) -> u64 {
    StreamKey::new(0, "vector.fate").at(u64::from(id)).below(PARTS)
}

/// A share in per cent as a number of [`PARTS`].
pub fn parts(percent: f64) -> u64 {
    (percent * PARTS as f64 / 100.0).round() as u64
}
