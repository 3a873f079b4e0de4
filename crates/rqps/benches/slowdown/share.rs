//! Shares of a whole on the command line of benches.

/// `2%` or `0.02`.
pub(crate) fn share(word: &str) -> Result<f64, String> {
    let (number, unit) = word.strip_suffix('%').map_or((word, 1.0), |number| (number, 0.01));
    let share = number.trim().parse::<f64>().map_err(|error| error.to_string())? * unit;
    (0.0..1.0).contains(&share).then_some(share).ok_or_else(|| "it must be 0 to 100 %".to_owned())
}
