//! Options for the rules of verdicts.

use clap::Args;

/// Heading of the help.
const VERDICT: &str = "Verdict";

/// Thresholds of verdicts (docs/verdicts.md).
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = VERDICT)]
pub(super) struct RuleOptions {
    /// Equivalence margin: smallest relative difference that matters [default: 2%]
    #[arg(long, value_name = "SHARE", value_parser = share, allow_hyphen_values = true)]
    pub delta: Option<f64>,
    /// Relative differences up to this size are attributed to code layout [default: 1%]
    #[arg(long, value_name = "SHARE", value_parser = share, allow_hyphen_values = true)]
    pub tau: Option<f64>,
    /// False discovery rate of the listed differences [default: 0.05]
    #[arg(long, value_name = "SHARE", value_parser = share, allow_hyphen_values = true)]
    pub q: Option<f64>,
}

/// `2%`, `2 %` or `0.02`.
pub(super) fn share(word: &str) -> Result<f64, String> {
    let (number, scale) = match word.trim().strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (word.trim(), 1.0),
    };
    match number.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number / scale),
        _ => Err("write a share as 2% or 0.02".to_owned()),
    }
}
