//! Formats counts, rates, bytes and durations, and parses durations.

use std::time::Duration;

use sha2::{Digest, Sha256};
use thiserror::Error;

/// A text that is no duration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "read {0:?} as a duration: write a number with ms, s, m, h or d, such as 90s, 1h30m or 250ms"
)]
pub struct DurationError(String);

/// A count with commas between thousands: `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with its noun: `1 cell`, `2 cells`.
pub fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Bytes as hexadecimal digits: `0a1b`.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The SHA-256 of a content as hexadecimal digits.
pub fn sha256(content: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(content))
}

/// The first 12 hexadecimal digits of a SHA-256: a name that depends on the content alone.
pub fn short_hash(content: impl AsRef<[u8]>) -> String {
    hex(&Sha256::digest(content)[..6])
}

/// A rate in few characters: `812`, `9.31k`, `31.2k`, `1.25M`; below 100 with one decimal.
pub fn rate(per_second: f64) -> String {
    if !per_second.is_finite() {
        return per_second.to_string();
    }
    // Values that round up to the next unit use that unit, so that no `1000k` appears.
    if per_second < 99.95 {
        return format!("{per_second:.1}");
    }
    if per_second < 999.5 {
        return format!("{per_second:.0}");
    }
    let (scaled, unit) = match per_second {
        r if r < 999_500.0 => (r / 1e3, "k"),
        r if r < 999_500_000.0 => (r / 1e6, "M"),
        r => (r / 1e9, "G"),
    };
    let decimals = if scaled < 9.995 { 2 } else { usize::from(scaled < 99.95) };
    format!("{scaled:.decimals$}{unit}")
}

/// Bytes in binary units, three digits: `512 B`, `1.50 KiB`, `64.0 MiB`, `119 GiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut scaled = bytes as f64 / 1024.0;
    let mut unit = 0;
    while scaled >= 1023.5 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    let decimals = if scaled < 9.995 { 2 } else { usize::from(scaled < 99.95) };
    format!("{scaled:.decimals$} {}", UNITS[unit])
}

/// A duration in its two largest units: `850ms`, `12.5s`, `3m20s`, `2h05m`, `3d04h`.
pub fn duration(duration: Duration) -> String {
    let tenths = (duration.as_millis() + 50) / 100;
    if duration.as_millis() < 1000 {
        return format!("{}ms", duration.as_millis());
    }
    if tenths < 600 {
        let (whole, tenth) = (tenths / 10, tenths % 10);
        return if tenth == 0 { format!("{whole}s") } else { format!("{whole}.{tenth}s") };
    }
    let seconds = (duration.as_millis() + 500) / 1000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match (hours, days) {
        (0, _) => format!("{minutes}m{:02}s", seconds % 60),
        (_, 0) => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{days}d{:02}h", hours % 24),
    }
}

/// Parses a duration: `30m`, `1h30m`, `2.5s`, `300ms`, or a bare number of seconds.
///
/// # Errors
///
/// Another form; the text says how to write it.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let fault = || DurationError(text.to_owned());
    let mut rest = text.trim();
    if let Some(seconds) = plain_number(rest) {
        return Duration::try_from_secs_f64(seconds).map_err(|_| fault());
    }
    let mut total = 0.0;
    if rest.is_empty() {
        return Err(fault());
    }
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(fault)?;
        let (number, tail) = rest.split_at(unit_at);
        let unit_end = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let seconds = match unit {
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return Err(fault()),
        };
        total += plain_number(number.trim()).ok_or_else(fault)? * seconds;
        rest = tail.trim_start();
    }
    Duration::try_from_secs_f64(total).map_err(|_| fault())
}

/// Digits with at most one point: no sign, no exponent, no infinity.
fn plain_number(text: &str) -> Option<f64> {
    let plain = text.chars().all(|c| c.is_ascii_digit() || c == '.');
    if plain && text.starts_with(|c: char| c.is_ascii_digit()) { text.parse().ok() } else { None }
}

// Formats of numbers.

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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counts_have_commas() {
        let check = |number, text: &str| assert_eq!(count(number), text);
        check(0, "0");
        check(999, "999");
        check(1000, "1,000");
        check(1_234_567, "1,234,567");
        check(u64::MAX, "18,446,744,073,709,551,615");
    }

    #[test]
    fn nouns_follow_their_number() {
        let words = [0, 1, 2].map(|number| counted(number, "cell"));
        assert_eq!(words, ["0 cells", "1 cell", "2 cells"]);
    }

    #[test]
    fn rates_are_short() {
        let check = |number, text: &str| assert_eq!(rate(number), text, "{number}");
        check(0.0, "0.0");
        check(3.12, "3.1");
        check(99.96, "100");
        check(812.4, "812");
        check(999.6, "1.00k");
        check(9_306.0, "9.31k");
        check(31_249.0, "31.2k");
        check(999_600.0, "1.00M");
        check(1_250_000.0, "1.25M");
        check(2e9, "2.00G");
        check(f64::NAN, "NaN");
    }

    #[test]
    fn bytes_are_binary() {
        let check = |number, text: &str| assert_eq!(bytes(number), text);
        check(0, "0 B");
        check(1023, "1023 B");
        check(1536, "1.50 KiB");
        check(64 << 20, "64.0 MiB");
        check(119 << 30, "119 GiB");
        check((1 << 20) - 1, "1.00 MiB");
        check(u64::MAX, "16.0 EiB");
    }

    #[test]
    fn durations_have_two_units() {
        let check = |ms, text: &str| assert_eq!(duration(Duration::from_millis(ms)), text);
        check(0, "0ms");
        check(850, "850ms");
        check(12_500, "12.5s");
        check(12_000, "12s");
        check(59_960, "1m00s");
        check(200_000, "3m20s");
        check(7_500_000, "2h05m");
        check(274_000_000, "3d04h");
    }

    #[test]
    fn durations_are_read() {
        let check = |text: &str, ms: Option<u64>| {
            let read = parse_duration(text).ok();
            assert_eq!(read, ms.map(Duration::from_millis), "{text}");
        };
        check("30m", Some(1_800_000));
        check("1h30m", Some(5_400_000));
        check("1h 30m", Some(5_400_000));
        check("2.5s", Some(2_500));
        check("300ms", Some(300));
        check("90", Some(90_000));
        check("1d", Some(86_400_000));
        for bad in ["", "s", "5y", "-5s", "5s3", "1e9s", "inf", "nan", "5 5s", "1.2.3s", "µs"] {
            check(bad, None);
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "\\PC{0,20}", number: u64, real: f64) {
            let _ = parse_duration(&text);
            let _ = (count(number), bytes(number), rate(real));
            let _ = duration(Duration::from_millis(number));
        }

        #[test]
        fn printed_durations_are_read_back(seconds in 0u64..60) {
            let whole = Duration::from_secs(seconds);
            prop_assert_eq!(parse_duration(&duration(whole)).unwrap(), whole);
        }
    }

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
