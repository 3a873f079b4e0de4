//! Seeded generators: one named PRNG, the distributions that benchmarks draw from, and the rows of
//! their tables.
//!
//! A seed gives the same sequence on every machine and for ever; the golden values in the tests
//! hold that. Whoever changes a sequence raises [`VERSION`], since old and new results would
//! otherwise be compared as if the work had been the same.

pub mod distribution;
pub mod rng;

pub use rng::VERSION;
