//! Text of others in messages.

/// Characters of others' text that a message echoes.
const SHOWN_MAX: usize = 400;

/// A message that echoes text of a file: cut in the middle where it is long, and without characters
/// that would steer a terminal.
pub(crate) fn echoed(text: &str) -> String {
    let count = text.chars().count();
    let visible = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    if count <= SHOWN_MAX {
        return text.chars().map(visible).collect();
    }
    let half = SHOWN_MAX / 2;
    let begin: String = text.chars().take(half).map(visible).collect();
    let end: String = text.chars().skip(count - half).map(visible).collect();
    format!("{begin} [… {} characters …] {end}", count - 2 * half)
}
