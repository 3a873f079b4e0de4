//! Placeholder head of analyze.
