//! An error as one text, its causes once each.

/// The error and its causes, outermost first. Some errors name their cause in their own words too;
/// a
/// cause that was said already is left out.
pub fn text(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::text;

    #[test]
    fn each_cause_is_said_once() {
        let plain = anyhow!("disk full").context("write a.json").context("keep the step");
        assert_eq!(text(&plain), "keep the step: write a.json: disk full");
        let doubled = anyhow!("refused").context("connect: refused").context("start");
        assert_eq!(text(&doubled), "start: connect: refused");
    }
}
