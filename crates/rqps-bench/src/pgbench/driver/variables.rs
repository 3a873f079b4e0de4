//! The variables of one client.

use std::io::Write;

use rqps_text::pgbench::PgbenchValue;

/// The content of a variable.
#[derive(Clone, Debug, Default)]
struct Variable {
    content: Content,
    text: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Content {
    #[default]
    Unset,
    /// Only a text; an expression parses it when needed.
    Text,
    /// Only a value; its text is made when needed.
    Value(PgbenchValue),
    /// A value with its text.
    Both(PgbenchValue),
}

/// The variables of one client by number.
#[derive(Clone, Debug, Default)]
pub(in crate::pgbench) struct Variables(Vec<Variable>);

impl Variables {
    /// Makes this number of variables, none set.
    pub(super) fn new(count: usize) -> Variables {
        Variables(vec![Variable::default(); count])
    }

    /// Sets a variable to a value.
    #[inline]
    pub(super) fn set(&mut self, number: u32, value: PgbenchValue) {
        self.0[number as usize].content = Content::Value(value);
    }

    /// Sets a variable to a text.
    pub(super) fn set_text(&mut self, number: u32, text: &[u8]) {
        let variable = &mut self.0[number as usize];
        variable.text.clear();
        variable.text.extend_from_slice(text);
        variable.content = Content::Text;
    }

    /// Makes the text of a variable.
    #[inline]
    pub(super) fn spell(&mut self, number: u32) {
        let variable = &mut self.0[number as usize];
        if let Content::Value(value) = variable.content {
            variable.text.clear();
            spell(&mut variable.text, value);
            variable.content = Content::Both(value);
        }
    }

    /// The text that [`Variables::spell`] made; `None` if the variable is not set.
    #[inline]
    pub(super) fn text(&self, number: u32) -> Option<&[u8]> {
        let variable = &self.0[number as usize];
        match variable.content {
            Content::Unset => None,
            Content::Text | Content::Value(_) | Content::Both(_) => Some(&variable.text),
        }
    }

    /// The value of a variable.
    ///
    /// # Errors
    ///
    /// It is not set, or its text is not a value. The error completes a sentence that begins with
    /// the name of the variable.
    #[inline]
    pub(super) fn value(&self, number: u32) -> Result<PgbenchValue, String> {
        let variable = &self.0[number as usize];
        match variable.content {
            Content::Value(value) | Content::Both(value) => Ok(value),
            Content::Unset => Err("is not set".to_owned()),
            Content::Text => read(&variable.text).ok_or_else(|| {
                let text = String::from_utf8_lossy(&variable.text);
                format!("holds `{text}`, which is not a value of an expression")
            }),
        }
    }
}

// Writes and reads numbers as text like pgbench.

/// Significant digits of a double in a variable.
const DIGITS: usize = 15;

/// Appends the text of a value.
pub(super) fn spell(out: &mut Vec<u8>, value: PgbenchValue) {
    // Writing to memory cannot fail.
    let _ = match value {
        PgbenchValue::Null => out.write_all(b"NULL"),
        PgbenchValue::Boolean(true) => out.write_all(b"true"),
        PgbenchValue::Boolean(false) => out.write_all(b"false"),
        PgbenchValue::Integer(number) => write!(out, "{number}"),
        PgbenchValue::Double(number) => {
            spell_double(out, number);
            Ok(())
        }
    };
}

/// Appends a double with 15 significant digits, without trailing zeros: pgbench's `%.15g`.
fn spell_double(out: &mut Vec<u8>, number: f64) {
    if !number.is_finite() {
        let text: &[u8] = match (number.is_nan(), number > 0.0) {
            (true, _) => b"NaN",
            (false, true) => b"Infinity",
            (false, false) => b"-Infinity",
        };
        out.extend_from_slice(text);
        return;
    }
    let begin = out.len();
    // One digit before the point, 14 behind it, and the exponent.
    let _ = write!(out, "{number:.*e}", DIGITS - 1);
    let mark = out[begin..].iter().rposition(|byte| *byte == b'e').unwrap_or(0) + begin;
    let exponent: i32 =
        std::str::from_utf8(&out[mark + 1..]).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    if (-5 < exponent) && (exponent < DIGITS as i32) {
        out.truncate(begin);
        let places = (DIGITS as i32 - 1 - exponent) as usize;
        let _ = write!(out, "{number:.places$}");
        trim_zeros(out, begin);
        return;
    }
    out.truncate(mark);
    trim_zeros(out, begin);
    let sign = if exponent < 0 { '-' } else { '+' };
    let _ = write!(out, "e{sign}{:02}", exponent.unsigned_abs());
}

/// Removes trailing zeros of a fraction, and its point.
fn trim_zeros(out: &mut Vec<u8>, begin: usize) {
    if !out[begin..].contains(&b'.') {
        return;
    }
    while out.last() == Some(&b'0') {
        out.pop();
    }
    if out.last() == Some(&b'.') {
        out.pop();
    }
}

/// The value of a text: NULL, a boolean, a whole number or a double; `None` for anything else.
pub(super) fn read(text: &[u8]) -> Option<PgbenchValue> {
    let text = std::str::from_utf8(text).ok()?;
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    let begins = |word: &str| word.get(..text.len()).is_some_and(is);
    if text.is_empty() {
        return None;
    }
    if is("null") {
        return Some(PgbenchValue::Null);
    }
    if begins("true") || begins("yes") || is("on") {
        return Some(PgbenchValue::Boolean(true));
    }
    if begins("false") || begins("no") || is("off") || is("of") {
        return Some(PgbenchValue::Boolean(false));
    }
    let digits = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let digits = digits.strip_prefix(['-', '+']).unwrap_or(digits).trim_end();
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.trim().parse().ok().map(PgbenchValue::Integer);
    }
    let number: f64 = text.trim_start().parse().ok()?;
    let is_word = text.contains(['n', 'N']);
    (number.is_finite() || is_word).then_some(PgbenchValue::Double(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_spelled_as_pgbench_spells_them() {
        let check = |number: f64, want: &str| {
            let mut out = Vec::new();
            spell(&mut out, PgbenchValue::Double(number));
            assert_eq!(String::from_utf8(out).unwrap(), want);
        };
        check(0.0, "0");
        check(-0.0, "-0");
        check(1.0, "1");
        check(0.1 + 0.2, "0.3");
        check(std::f64::consts::PI, "3.14159265358979");
        check(1e15, "1e+15");
        check(123_456_789_012_345.0, "123456789012345");
        check(1e-4, "0.0001");
        check(1.5e-5, "1.5e-05");
        check(-2.5e300, "-2.5e+300");
        check(f64::INFINITY, "Infinity");
        check(f64::NEG_INFINITY, "-Infinity");
        check(-f64::NAN, "NaN");
        check(999_999_999_999_999.9, "1e+15");
    }

    #[test]
    fn texts_are_read_in_the_order_null_truth_number() {
        let check =
            |text: &str, want: Option<PgbenchValue>| assert_eq!(read(text.as_bytes()), want);
        check("NULL", Some(PgbenchValue::Null));
        check("t", Some(PgbenchValue::Boolean(true)));
        check("YE", Some(PgbenchValue::Boolean(true)));
        check("on", Some(PgbenchValue::Boolean(true)));
        check("o", None);
        check("of", Some(PgbenchValue::Boolean(false)));
        check("-12", Some(PgbenchValue::Integer(-12)));
        check("1.50", Some(PgbenchValue::Double(1.5)));
        check("9223372036854775808", None);
        check("", None);
        check("a", None);
    }
}
