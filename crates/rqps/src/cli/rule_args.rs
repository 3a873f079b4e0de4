//! Options for the rules of verdicts.

use clap::Args;

use rqps_model::verdict::{AnswersRule, DataRule};

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
    /// Give verdicts although targets answer statements differently
    #[arg(long, value_name = "ignore", value_parser = ignore)]
    pub answers: Option<AnswersRule>,
    /// Give verdicts although targets hold different data
    #[arg(long, value_name = "differ", value_parser = differ)]
    pub data: Option<DataRule>,
}

fn ignore(word: &str) -> Result<AnswersRule, String> {
    let known = (word == "ignore").then_some(AnswersRule::Ignore);
    known.ok_or_else(|| "the only word is `ignore`".to_owned())
}

fn differ(word: &str) -> Result<DataRule, String> {
    let known = (word == "differ").then_some(DataRule::Differ);
    known.ok_or_else(|| "the only word is `differ`".to_owned())
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
