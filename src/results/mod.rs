//! Placeholder head of results.
