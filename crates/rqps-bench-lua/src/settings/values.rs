//! Checks values of script options by their kind.

/// The value in the form for scripts.
///
/// # Errors
///
/// The value is not of its kind; the text names the option.
pub(super) fn checked(name: &str, kind: &str, value: Option<&str>) -> Result<String, String> {
    let fault = |what: &str| {
        Err(format!("invalid option `--{name}={}`: {what}", value.unwrap_or_default()))
    };
    match (kind, value) {
        ("bool", None | Some("on" | "true" | "1")) => Ok("on".to_owned()),
        ("bool", Some("off" | "false" | "0")) => Ok("off".to_owned()),
        ("bool", Some(_)) => fault("write on or off"),
        (_, None) => fault("it needs a value"),
        ("number", Some(text)) => match text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(text.trim().to_owned()),
            _ => fault("write a number"),
        },
        ("size", Some(text)) => match size(text) {
            Some(bytes) => Ok(bytes.to_string()),
            None => fault("write a size such as 16K"),
        },
        (_, Some(text)) if text.chars().any(char::is_control) => fault("it holds a control code"),
        (_, Some(text)) => Ok(text.to_owned()),
    }
}

fn size(text: &str) -> Option<u64> {
    let (digits, factor) = match text.chars().last()? {
        'K' | 'k' => (&text[..text.len() - 1], 1 << 10),
        'M' | 'm' => (&text[..text.len() - 1], 1 << 20),
        'G' | 'g' => (&text[..text.len() - 1], 1 << 30),
        'T' | 't' => (&text[..text.len() - 1], 1 << 40),
        _ => (text, 1u64),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}
