//! Documented exit codes, which scripts use.

/// Success.
pub(crate) const FINE: u8 = 0;
/// `rqps gate`: a regression.
pub(crate) const REGRESSION: u8 = 1;
/// The command line or the plan file is wrong, or a general prerequisite is missing.
pub(crate) const USAGE: u8 = 2;
/// `rqps gate`: too many unclear verdicts, or the numbers are not comparable.
pub(crate) const NO_VERDICT: u8 = 3;
/// A run failed; the other runs are kept.
pub(crate) const RUN_FAILED: u8 = 4;
/// Stopped by the user.
pub(crate) const INTERRUPTED: u8 = 130;
