//! Placeholder head of report.
