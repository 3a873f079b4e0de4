//! Data source names: one URL that says what to speak, where, and as whom.
