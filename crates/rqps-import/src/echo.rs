//! Text of others in messages.

use rqps_model::escape;

/// Characters of others' text that a message echoes.
const SHOWN_MAX: usize = 400;

/// A message that echoes text of a file: on one line, and cut in the middle where it is long.
pub(crate) fn echoed(text: &str) -> String {
    let count = text.chars().count();
    if count <= SHOWN_MAX {
        return escape::line(text).into_owned();
    }
    let half = SHOWN_MAX / 2;
    let begin: String = text.chars().take(half).collect();
    let end: String = text.chars().skip(count - half).collect();
    let cut = count - 2 * half;
    format!("{} [… {cut} characters …] {}", escape::line(&begin), escape::line(&end))
}
