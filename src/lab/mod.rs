//! Placeholder head of lab.
