//! Formats of numbers.

/// Format of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    /// This many digits after the point.
    Fixed(usize),
    /// At most this many significant digits, without trailing zeros.
    Significant(usize),
    /// Two digits after the point in the published form of ratios: `1` for 0/0, `inf` for x/0.
    Ratio,
}

impl Digits {
    /// Formats the number as text.
    pub fn write(self, number: f64) -> String {
        match self {
            _ if number.is_infinite() => "inf".to_owned(),
            Digits::Fixed(digits) => format!("{number:.digits$}"),
            Digits::Ratio => format!("{number:.2}"),
            Digits::Significant(digits) => significant(number, digits),
        }
    }
}

/// Formats like C's `%.Ng`: N significant digits, no trailing zeros, exponents only far from 1.
fn significant(number: f64, digits: usize) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    // Rounding to N digits may carry into the next power of ten, so this checks the rounded number.
    let rounded = format!("{number:.*e}", digits.saturating_sub(1));
    let (mantissa, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -5 || exponent >= digits as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trim_zeros(mantissa), exponent.abs());
    }
    let after_point = (digits as i32 - 1 - exponent).max(0) as usize;
    trim_zeros(&format!("{number:.after_point$}")).to_owned()
}

fn trim_zeros(number: &str) -> &str {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(digits: Digits, number: f64, expected: &str) {
        assert_eq!(digits.write(number), expected);
    }

    #[test]
    fn numbers_are_written_as_the_field_writes_them() {
        check(Digits::Fixed(2), 0.685, "0.69");
        check(Digits::Fixed(0), 24515.4, "24515");
        check(Digits::Ratio, f64::INFINITY, "inf");
        // printf("%.6g")
        check(Digits::Significant(6), 0.0, "0");
        check(Digits::Significant(6), 0.402, "0.402");
        check(Digits::Significant(6), 1234567.0, "1.23457e+06");
        check(Digits::Significant(6), 999999.7, "1e+06");
        check(Digits::Significant(6), 123456.4, "123456");
        check(Digits::Significant(3), 0.00012345, "0.000123");
        check(Digits::Significant(3), 0.0000012345, "1.23e-06");
    }
}
