//! Placeholder head of plan.
