//! Placeholder head of bench.
