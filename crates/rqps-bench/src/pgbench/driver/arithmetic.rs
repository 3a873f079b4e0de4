//! Operators on values: 64-bit whole numbers with overflow errors, doubles, NULL.

use rqps_text::pgbench::{PgbenchFunction, PgbenchValue};

use PgbenchFunction as F;
use PgbenchValue::{Boolean, Double, Integer, Null};

/// The name of a value's type, for messages.
fn kind(value: PgbenchValue) -> &'static str {
    match value {
        Null => "NULL",
        Boolean(_) => "a boolean",
        Integer(_) => "a whole number",
        Double(_) => "a double",
    }
}

/// Converts to a whole number; a double is rounded, halves to the even number.
pub(super) fn whole(value: PgbenchValue) -> Result<i64, String> {
    match value {
        Integer(number) => Ok(number),
        Double(number) => {
            let rounded = number.round_ties_even();
            // 2⁶³ is exact as a double, and just too large.
            let fits = rounded >= i64::MIN as f64 && rounded < -(i64::MIN as f64);
            if fits {
                Ok(rounded as i64)
            } else {
                Err(format!("double to int overflow for {number}"))
            }
        }
        other => Err(format!("cannot take {} as a whole number", kind(other))),
    }
}

/// Converts to a double.
pub(super) fn double(value: PgbenchValue) -> Result<f64, String> {
    match value {
        Double(number) => Ok(number),
        Integer(number) => Ok(number as f64),
        other => Err(format!("cannot take {} as a double", kind(other))),
    }
}

/// Returns a boolean; any other type is an error.
pub(super) fn boolean(value: PgbenchValue) -> Result<bool, String> {
    match value {
        Boolean(truth) => Ok(truth),
        other => Err(format!("cannot take {} as a boolean", kind(other))),
    }
}

/// True if a value holds as a condition: numbers except zero do, NULL does not.
pub(super) fn holds(value: PgbenchValue) -> bool {
    match value {
        Null => false,
        Boolean(truth) => truth,
        Integer(number) => number != 0,
        Double(number) => number != 0.0,
    }
}

/// Computes `+ - * / %` and comparisons.
pub(super) fn arithmetic(
    function: F,
    left: PgbenchValue,
    right: PgbenchValue,
) -> Result<PgbenchValue, String> {
    let is_double = |value| matches!(value, Double(_));
    if function != F::Modulo && (is_double(left) || is_double(right)) {
        return of_doubles(function, double(left)?, double(right)?);
    }
    of_whole(function, whole(left)?, whole(right)?)
}

fn of_doubles(function: F, left: f64, right: f64) -> Result<PgbenchValue, String> {
    Ok(match function {
        F::Add => Double(left + right),
        F::Subtract => Double(left - right),
        F::Multiply => Double(left * right),
        F::Divide => Double(left / right),
        F::Equal => Boolean(left == right),
        F::NotEqual => Boolean(left != right),
        F::Less => Boolean(left < right),
        _ => Boolean(left <= right),
    })
}

fn of_whole(function: F, left: i64, right: i64) -> Result<PgbenchValue, String> {
    let in_range = |result: Option<i64>, what: &str| {
        result.map(Integer).ok_or_else(|| format!("bigint {what} out of range"))
    };
    match function {
        F::Add => in_range(left.checked_add(right), "add"),
        F::Subtract => in_range(left.checked_sub(right), "sub"),
        F::Multiply => in_range(left.checked_mul(right), "mul"),
        F::Divide | F::Modulo if right == 0 => Err("division by zero".to_owned()),
        F::Divide => in_range(left.checked_div(right), "div"),
        F::Modulo => Ok(Integer(left.wrapping_rem(right))),
        F::Equal => Ok(Boolean(left == right)),
        F::NotEqual => Ok(Boolean(left != right)),
        F::Less => Ok(Boolean(left < right)),
        _ => Ok(Boolean(left <= right)),
    }
}

/// Computes `& | # << >>` of whole numbers.
pub(super) fn bits(
    function: F,
    left: PgbenchValue,
    right: PgbenchValue,
) -> Result<PgbenchValue, String> {
    let (left, right) = (whole(left)?, whole(right)?);
    Ok(Integer(match function {
        F::BitAnd => left & right,
        F::BitOr => left | right,
        F::BitXor => left ^ right,
        // Processors use six bits of the distance.
        F::ShiftLeft => left.wrapping_shl(right as u32),
        _ => left.wrapping_shr(right as u32),
    }))
}

/// The smallest or the greatest value.
pub(super) fn extreme(values: &[PgbenchValue], is_greatest: bool) -> Result<PgbenchValue, String> {
    if values.iter().any(|value| matches!(value, Double(_))) {
        let mut best = double(values[0])?;
        for value in &values[1..] {
            let value = double(*value)?;
            if if is_greatest { value > best } else { value < best } {
                best = value;
            }
        }
        return Ok(Double(best));
    }
    let mut best = whole(values[0])?;
    for value in &values[1..] {
        let value = whole(*value)?;
        best = if is_greatest { best.max(value) } else { best.min(value) };
    }
    Ok(Integer(best))
}
