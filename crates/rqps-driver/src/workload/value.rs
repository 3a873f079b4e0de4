//! Values of settings as users write them, with limits. Errors name the valid values.

use rqps_model::units;

/// A whole number, with `_` between digits and a unit of powers of 1000: `10k`, `1_000_000`.
pub fn count(text: &str, low: u64, high: u64) -> Result<u64, String> {
    let wanted = || {
        let example = if high < 1_000_000 { "8" } else { "10M" };
        format!("write a whole number from {low} to {high}, such as {low} or {example}")
    };
    let (digits, unit) = split_unit(text);
    let factor: u64 = match unit {
        "" => 1,
        "k" | "K" => 1000,
        "m" | "M" => 1_000_000,
        "g" | "G" => 1_000_000_000,
        _ => return Err(wanted()),
    };
    let value = whole(digits).and_then(|value| value.checked_mul(factor));
    value.filter(|value| (low..=high).contains(value)).ok_or_else(wanted)
}

/// One client count, or several separated by commas without repetition.
pub fn client_counts(text: &str, most: u64) -> Result<Vec<u32>, String> {
    let mut counts = Vec::new();
    for word in text.split(',').map(str::trim) {
        let one = count(word, 1, most).map_err(|why| {
            let of_list = if text.contains(',') { format!("`{word}`: ") } else { String::new() };
            format!("{of_list}{why}; or several such as 1,4,16")
        })?;
        if counts.contains(&(one as u32)) {
            return Err(format!("write each count once; {one} is there twice"));
        }
        counts.push(one as u32);
    }
    Ok(counts)
}

/// Bytes with a unit of powers of 1024: `512M`, `4GiB`, `4GB`.
pub fn bytes(text: &str) -> Result<u64, String> {
    let wanted = || "write a size from 8M to 64T such as 512M or 4G, or auto".to_string();
    let (digits, unit) = split_unit(text);
    let shift = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(wanted()),
    };
    let value = whole(digits).and_then(|value| value.checked_mul(1 << shift));
    value.filter(|value| (8 << 20..=64 << 40).contains(value)).ok_or_else(wanted)
}

/// A memory limit in bytes, or `none`. Must be enough to start a server.
pub fn memory_limit(value: &str) -> Result<Option<u64>, String> {
    if value == "none" {
        return Ok(None);
    }
    let why = |_| "write a size from 64M to 64T such as 512M or 4G, or none".to_owned();
    let bytes = bytes(value).map_err(why)?;
    if bytes < 64 << 20 { Err(why(String::new())) } else { Ok(Some(bytes)) }
}

/// Seconds of a window.
pub fn seconds(text: &str) -> Result<f64, String> {
    time(text, 0.1, 86_400.0)
}

/// Seconds, as a number or with a unit: `2`, `2s`, `500ms`, `1m30s`.
pub fn time(text: &str, low: f64, high: f64) -> Result<f64, String> {
    match units::parse_duration(text) {
        Ok(time) => number(&time.as_secs_f64().to_string(), low, high),
        Err(_) => number(text, low, high),
    }
}

/// A decimal number within limits; infinities are outside.
pub fn number(text: &str, low: f64, high: f64) -> Result<f64, String> {
    let value: Option<f64> = text.parse().ok();
    let wanted = || format!("write a number from {low} to {high}");
    value.filter(|value| (low..=high).contains(value)).ok_or_else(wanted)
}

/// Splits digits (with `_`) from the text after them.
fn split_unit(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    (digits, unit.trim_start())
}

fn whole(digits: &str) -> Option<u64> {
    digits.replace('_', "").parse().ok()
}

/// Yes or no, in common spellings.
pub fn yes_or_no(text: &str) -> Result<bool, String> {
    match text {
        "yes" | "on" | "true" => Ok(true),
        "no" | "off" | "false" => Ok(false),
        _ => Err("write yes or no".to_string()),
    }
}

/// One of several words.
pub fn choice<T: Copy>(text: &str, known: &[(&str, T)]) -> Result<T, String> {
    match known.iter().find(|(word, _)| *word == text) {
        Some((_, value)) => Ok(*value),
        None => {
            let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
            Err(format!("write one of {}", words.join(", ")))
        }
    }
}

/// Words separated by commas, at least one, without repetition.
pub fn list<T: PartialEq>(
    text: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let mut all = Vec::new();
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let item = read(word).map_err(|why| format!("`{word}`: {why}"))?;
        if !all.contains(&item) {
            all.push(item);
        }
    }
    if all.is_empty() {
        Err("write a list separated by commas, with at least one entry".to_string())
    } else {
        Ok(all)
    }
}
