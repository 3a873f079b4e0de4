//! Placeholder head of obtain.
