//! Placeholder head of stats.
