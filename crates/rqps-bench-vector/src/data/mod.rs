//! Sources of vectors: the generator, or the user's files; and the attributes of each row.

mod cache;
mod dataset;
mod error;
pub mod fashion;
pub mod fvecs;
pub mod given;
pub mod hdf5;
pub mod matrix;
pub mod npy;
mod open;
pub mod simd;
pub mod statistics;
mod synthetic;
pub mod truth;

pub use dataset::VectorSet;
pub use error::DataError;

use rqps_model::datagen::rng::StreamKey;

/// Units of attributes in the whole: one is a hundredth of a per cent.
pub(crate) const PARTS: u64 = 10_000;
/// An attribute for filters, uniform in 0..[`PARTS`].
pub fn uniform(id: u32) -> u64 {
    StreamKey::new(0, "vector.uniform").at(u64::from(id)).below(PARTS)
}

/// An attribute for deletes, uniform in 0..[`PARTS`]: rows below the share to delete are deleted.
pub fn fate(id: u32) -> u64 {
    StreamKey::new(0, "vector.fate").at(u64::from(id)).below(PARTS)
}

/// A share in per cent as a number of [`PARTS`].
pub fn parts(percent: f64) -> u64 {
    (percent * PARTS as f64 / 100.0).round() as u64
}
