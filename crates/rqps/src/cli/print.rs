//! Prints for the user. Everything that goes to the terminal passes here, where text of servers,
//! files and names loses what could steer a terminal or the service that keeps a log.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use serde_json::json;

use crate::cli::args::ProgressForm;
use rqps_model::escape;

/// Prints a note on standard error, unless notes are off.
macro_rules! info {
    ($($words:tt)*) => { $crate::cli::print::note(format_args!($($words)*)) };
}

/// Prints an error or a question on standard error, whatever the form of progress.
macro_rules! error {
    ($($words:tt)*) => { $crate::cli::print::complaint(format_args!($($words)*)) };
}

/// Prints a line on standard output. A reader that stops early, such as `head`, is no error.
macro_rules! out {
    ($($words:tt)*) => { $crate::cli::print::output(format_args!($($words)*)) };
}

/// The form of progress that the command line requests; set once.
static FORM: OnceLock<ProgressForm> = OnceLock::new();

/// Sets the form of notes and progress.
pub(super) fn choose(form: Option<ProgressForm>) {
    if let Some(form) = form {
        // The second call would be an error of this program, and harmless.
        let _ = FORM.set(form);
    }
}

/// The form of progress that the command line requests.
pub(super) fn form() -> Option<ProgressForm> {
    FORM.get().copied()
}

pub(super) fn note(text: fmt::Arguments<'_>) {
    match form() {
        Some(ProgressForm::None) => {}
        Some(ProgressForm::Json) => event(&json!({ "event": "note", "text": plain(text) })),
        _ => line(text),
    }
}

pub(super) fn complaint(text: fmt::Arguments<'_>) {
    match form() {
        Some(ProgressForm::Json) => event(&json!({ "event": "error", "text": plain(text) })),
        _ => line(text),
    }
}

/// One line of `--progress json`.
pub(super) fn event(event: &serde_json::Value) {
    write_line(&escape::json(&event.to_string()));
}

pub(super) fn output(text: fmt::Arguments<'_>) {
    let _ = writeln!(io::stdout(), "{}", escape::terminal(&text.to_string()));
}

/// Prints a text that others read again, such as a plan: as it is, unless a terminal shows it.
pub(super) fn data(text: &str) {
    match io::stdout().is_terminal() {
        true => output(format_args!("{text}")),
        // A reader that stops early is no error.
        false => drop(writeln!(io::stdout(), "{text}")),
    }
}

/// Prints text on standard output that was escaped for its medium: Markdown, CSV, JSON, HTML.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn escaped(text: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text)?;
    stdout.flush()
}

/// The columns of the terminal that shows standard output; `None` if none does.
pub(super) fn columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
}

/// The text without the program's name.
fn plain(text: fmt::Arguments<'_>) -> String {
    let text = text.to_string();
    text.strip_prefix("rqps: ").map_or(text.clone(), str::to_owned)
}

/// Unlike `eprintln!`, this does not panic without a reader (`rqps compare … 2>&1 | head`), because
/// hours of measuring continue.
fn line(text: fmt::Arguments<'_>) {
    write_line(&escape::terminal(&text.to_string()));
}

fn write_line(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
