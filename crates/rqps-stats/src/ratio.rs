//! Ratios in the format of published tables.

/// value / baseline with two decimals; `1` if both are zero, `inf` if only the baseline is zero.
pub fn printed_ratio(value: f64, baseline: f64) -> String {
    match (value == 0.0, baseline == 0.0) {
        (true, true) => "1".to_owned(),
        (false, true) => "inf".to_owned(),
        _ => format!("{:.2}", value / baseline),
    }
}

/// Returns true if a printed ratio agrees with value and baseline. A quotient halfway between two
/// decimals agrees with both, because C, AWK and spreadsheets round it differently.
pub fn follows(printed: &str, value: f64, baseline: f64) -> bool {
    if printed == printed_ratio(value, baseline) {
        return true;
    }
    let Ok(number) = printed.parse::<f64>() else { return false };
    baseline != 0.0 && printed.len() > 1 && ((value / baseline - number).abs() - 0.005).abs() < 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_printed_as_published() {
        let check = |value, baseline, expected: &str| {
            assert_eq!(printed_ratio(value, baseline), expected);
            assert!(follows(expected, value, baseline));
        };
        check(3927.0, 4533.0, "0.87");
        check(0.0, 0.0, "1");
        check(0.001, 0.0, "inf");
        check(0.0, 0.003, "0.00");
        check(1.0, 1.0, "1.00");
    }

    #[test]
    fn only_a_tie_may_go_either_way() {
        // 0.125 is exact in binary: printf gives 0.12, others 0.13.
        assert!(follows("0.12", 1.0, 8.0) && follows("0.13", 1.0, 8.0));
        assert!(!follows("0.12", 1.01, 8.0));
        assert!(!follows("1", 0.0, 2.0));
        assert!(!follows("x", 1.0, 2.0));
    }
}
