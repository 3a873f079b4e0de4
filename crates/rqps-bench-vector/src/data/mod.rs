//! Sources of vectors: the generator, or the user's files; and the attributes of each row.

mod attributes;
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

pub use attributes::{fate, parts, uniform};
pub use dataset::VectorSet;
pub use error::DataError;
