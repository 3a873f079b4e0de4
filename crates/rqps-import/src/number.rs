//! Numbers of published files: one parser for all importers, which says what is wrong with a cell.
//!
//! Published numbers are counts and measurements, so none is negative or infinite. Any other number
//! is a damaged cell, which must not become a ratio.

use super::ImportError;
use super::text::Text;

/// No published value comes near this: bytes of an exabyte, nanoseconds of thirty years.
const LARGEST: f64 = 1e18;

/// The reason why a cell is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is a word.
    Word,
    /// `nan`: programs print it for 0/0.
    NotANumber,
    /// `inf`: programs print it for x/0.
    Infinite,
    /// Below zero, or `-0`, which rounding leaves of such a number.
    BelowZero,
    /// Larger than 10^18.
    TooLarge,
}

impl Fault {
    /// The problem, to be read after the cell.
    pub fn why(self) -> &'static str {
        match self {
            Fault::Word => "is not a number",
            Fault::NotANumber => "is not a measured number",
            Fault::Infinite => "is infinite",
            Fault::BelowZero => "is below zero",
            Fault::TooLarge => "is larger than 10^18, far above any published value",
        }
    }
}

/// Reads an amount as programs print it: `12`, `.5`, `1.25e-05`.
///
/// # Errors
/// The text is no finite number from 0 to 10^18.
pub(crate) fn parse(text: &str) -> Result<f64, Fault> {
    let text = text.trim();
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    match unsigned.to_ascii_lowercase().as_str() {
        "inf" | "infinity" => return Err(Fault::Infinite),
        "nan" => return Err(Fault::NotANumber),
        _ => {}
    }
    if !unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Err(Fault::Word);
    }
    let number: f64 = unsigned.parse().map_err(|_| Fault::Word)?;
    match number {
        _ if unsigned.len() < text.len() => Err(Fault::BelowZero),
        _ if number > LARGEST => Err(Fault::TooLarge),
        _ => Ok(number),
    }
}

/// The number; `None` for anything else.
pub(crate) fn number(text: &str) -> Option<f64> {
    parse(text).ok()
}

/// A count as programs print it, at most 10^18.
pub(crate) fn count(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.starts_with(|c: char| c.is_ascii_digit());
    text.parse().ok().filter(|count| digits && *count <= LARGEST as u64)
}

/// True for a word: neither a number nor what a program prints in place of one. `-1` and `inf` are
/// no words, so they cannot be names.
pub(crate) fn is_word(text: &str) -> bool {
    parse(text) == Err(Fault::Word)
}

impl Text {
    /// Reads a cell of a table. Its column counts from 1; `head` may be empty.
    ///
    /// # Errors
    /// The cell is no amount. The error has file, line, column and head.
    pub fn number(
        &self,
        line: usize,
        column: usize,
        head: &str,
        cell: &str,
    ) -> Result<f64, ImportError> {
        parse(cell).map_err(|fault| self.cell_fault(line, column, head, cell, fault))
    }

    /// The error of a cell that is not a number.
    pub fn cell_fault(
        &self,
        line: usize,
        column: usize,
        head: &str,
        cell: &str,
        fault: Fault,
    ) -> ImportError {
        let under = if head.is_empty() { String::new() } else { format!(" under `{head}`") };
        self.bad_cell(line, column, format!("`{}`{under} {}", shown(cell), fault.why()))
    }
}

/// A cell as errors show it: a damaged one may be of any length.
pub(crate) fn shown(cell: &str) -> String {
    const MOST: usize = 40;
    match cell.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &cell[..end]),
        None => cell.to_owned(),
    }
}

/// True if a number is the printed one, as far as both have decimals: `24515` is `24515.07`.
pub(crate) fn decimals_agree(number: f64, printed: &str) -> bool {
    let Ok(other) = printed.parse::<f64>() else { return false };
    let decimals = |text: &str| text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let places = decimals(printed).min(decimals(&number.to_string()));
    // A unit, not a half: programs round, truncate and print six significant digits.
    (number - other).abs() < 10f64.powi(-i32::try_from(places).unwrap_or(0)) + 1e-12
        || (number - other).abs() <= 1e-5 * number.abs()
}

/// True if reports, seconds since the start and a rate, come every second from the first on.
pub(crate) fn each_second(reports: &[(f64, f64)]) -> bool {
    let mut before = 0.0;
    reports.iter().all(|(time, _)| {
        let step = time - before;
        before = *time;
        (step - 1.0).abs() < 0.5
    })
}

/// RFC 3339 of a date of this form (strftime) whose time zone nobody names.
pub(crate) fn rfc3339(date: &str, form: &str) -> Option<String> {
    let date = jiff::civil::DateTime::strptime(form, date).ok()?;
    Some(date.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn numbers_are_those_that_programs_print() {
        let check = |text: &str, expected| assert_eq!(parse(text), expected, "{text}");
        check(" 12.50 ", Ok(12.5));
        check(".5", Ok(0.5));
        check("1e-3", Ok(0.001));
        check("1e18", Ok(1e18));
        for text in ["", "-", "1,000", "1.2k", "3M", "0x1f", "+1", "1e", "innodb", "-x"] {
            check(text, Err(Fault::Word));
        }
        check("nan", Err(Fault::NotANumber));
        check("-nan", Err(Fault::NotANumber));
        check("inf", Err(Fault::Infinite));
        check("-Infinity", Err(Fault::Infinite));
        check("-3", Err(Fault::BelowZero));
        check("-0", Err(Fault::BelowZero));
        check("-0.00", Err(Fault::BelowZero));
        check("1e24", Err(Fault::TooLarge));
        check("1000000000000000000000000", Err(Fault::TooLarge));
        check("1e999", Err(Fault::TooLarge));
        assert_eq!((count("17"), count("+17"), count("1e3")), (Some(17), None, None));
        assert_eq!(
            (count("1000000000000000001"), is_word("-1"), is_word("x")),
            (None, false, true)
        );
    }

    #[test]
    fn a_bad_cell_names_its_place() {
        let text = Text::of(Path::new("o.sum"), "");
        let fault = text.number(3, 4, "ips", "inf").unwrap_err().to_string();
        assert!(
            fault.starts_with("import `o.sum`, line 3, column 4: `inf` under `ips` is infinite")
        );
        let long = "x".repeat(1 << 20);
        assert!(text.number(3, 4, "", &long).unwrap_err().to_string().len() < 300);
    }

    #[test]
    fn numbers_agree_as_far_as_they_are_printed() {
        let check = |number, printed, expected| {
            assert_eq!(decimals_agree(number, printed), expected, "{number} {printed}");
        };
        check(24515.0, "24515.07", true);
        check(24515.07, "24515", true);
        check(24516.0, "24514.9", false);
        check(0.000164, "0.000164", true);
        check(0.000164, "0.000172", false);
        check(0.0, "0.000", true);
        check(1.0, "x", false);
    }

    #[test]
    fn dates_have_days_of_one_or_two_digits() {
        let date = |text| rfc3339(text, "%Y-%m-%dT%H:%M:%S");
        assert_eq!(date("2025-05-9T01:44:24").as_deref(), Some("2025-05-09T01:44:24Z"));
        assert_eq!(
            (date("2025-05-9"), date("x-y-zT00:00:00"), date("2025-05-39T00:00:00")),
            (None, None, None)
        );
    }
}
