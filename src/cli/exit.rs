//! Documented exit codes, which scripts use.

/// Success.
pub const FINE: u8 = 0;
/// `rqps gate`: a regression.
pub const REGRESSION: u8 = 1;
/// The command line or the plan file is wrong, or a general prerequisite is missing.
pub const USAGE: u8 = 2;
/// `rqps gate`: too many unclear verdicts, or the numbers are not comparable.
pub const NO_VERDICT: u8 = 3;
/// A run failed; the other runs are kept.
pub const RUN_FAILED: u8 = 4;
/// Stopped by the user.
pub const INTERRUPTED: u8 = 130;
