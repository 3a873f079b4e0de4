//! Processes that die with their parent.
