//! Colours of text reports on a terminal.

use std::env;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use clap::ColorChoice;
use clap::builder::styling::{AnsiColor, Style};

use rqps_model::escape;

static CHOICE: OnceLock<ColorChoice> = OnceLock::new();

/// Verdicts as in reports. The first match counts, so SLOWER-SMALL is before SLOWER.
const VERDICTS: [(&str, AnsiColor); 12] = [
    ("SLOWER-SMALL", AnsiColor::Yellow),
    ("FASTER-SMALL", AnsiColor::Cyan),
    ("SLOWER", AnsiColor::Red),
    ("FASTER", AnsiColor::Green),
    ("WORSE-SMALL", AnsiColor::Yellow),
    ("BETTER-SMALL", AnsiColor::Cyan),
    ("WORSE", AnsiColor::Red),
    ("BETTER", AnsiColor::Green),
    ("INCONCLUSIVE", AnsiColor::Magenta),
    ("NO VERDICT", AnsiColor::Magenta),
    ("FAILED", AnsiColor::Red),
    ("SAME", AnsiColor::Blue),
];

/// Stores the choice of the command line.
pub(super) fn choose(choice: ColorChoice) {
    // The second call would be an error of this program, and harmless.
    let _ = CHOICE.set(choice);
}

/// True if standard output gets colours: by the user's choice, otherwise on a terminal unless
/// NO_COLOR (no-color.org) is set.
fn wanted() -> bool {
    match CHOICE.get() {
        Some(ColorChoice::Always) => true,
        Some(ColorChoice::Never) => false,
        _ => {
            let refused = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            let dumb = env::var_os("TERM").is_none_or(|term| term == "dumb");
            !refused && !dumb && io::stdout().is_terminal()
        }
    }
}

/// Prints a text report on standard output.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn print(report: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    // The only codes of a terminal are those that are added here.
    let report = escape::terminal(report);
    if wanted() {
        stdout.write_all(painted(&report).as_bytes())?
    } else {
        stdout.write_all(report.as_bytes())?
    }
    stdout.flush()
}

/// The report with bold title and headings, and coloured verdicts.
fn painted(report: &str) -> String {
    let mut text = String::with_capacity(report.len() + report.len() / 8);
    let lines: Vec<&str> = report.lines().collect();
    for (place, line) in lines.iter().enumerate() {
        let ruled = lines.get(place + 1).is_some_and(|next| {
            !next.is_empty()
                && next.len() >= line.chars().count()
                && next.bytes().all(|c| c == b'-')
        });
        if place == 0 || (ruled && !line.is_empty()) {
            text.push_str(&styled(line, Style::new().bold()));
        } else {
            paint_verdicts(line, &mut text);
        }
        text.push('\n');
    }
    text
}

fn paint_verdicts(line: &str, text: &mut String) {
    let mut rest = line;
    let mut before = None;
    while let Some(next) = rest.chars().next() {
        let begins = before.is_none_or(|c: char| !c.is_alphanumeric() && c != '-');
        let here = |(word, _): &&(&str, AnsiColor)| begins && is_word(rest, word);
        if let Some((word, colour)) = VERDICTS.iter().find(here) {
            text.push_str(&styled(word, colour.on_default()));
            rest = &rest[word.len()..];
            before = word.chars().last();
            continue;
        }
        text.push(next);
        before = Some(next);
        rest = &rest[next.len_utf8()..];
    }
}

/// True if the text begins with the whole word.
fn is_word(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|after| {
        after.chars().next().is_none_or(|c| !c.is_alphanumeric() && c != '-' && c != '_')
    })
}

fn styled(text: &str, style: Style) -> String {
    format!("{}{text}{}", style.render(), style.render_reset())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_and_headings_are_painted_and_nothing_else() {
        let report = "rqps: b relative to a\n\nVerdicts\n--------\nSLOWER-SMALL 0.98 x SLOWERS\n";
        let expected = "\u{1b}[1mrqps: b relative to a\u{1b}[0m\n\n\u{1b}[1mVerdicts\u{1b}[0m\n\
                        --------\n\u{1b}[33mSLOWER-SMALL\u{1b}[0m 0.98 x SLOWERS\n";
        assert_eq!(painted(report), expected);
    }

    #[test]
    fn a_report_without_its_colours_is_the_report() {
        let report = "title\n\nof 4 steps 3 SLOWER, 1 NO VERDICT (SAME: µ)\nq(tau) —\n";
        let mut plain = String::new();
        let mut inside = false;
        for c in painted(report).chars() {
            match (inside, c) {
                (false, '\u{1b}') => inside = true,
                (true, 'm') => inside = false,
                (false, c) => plain.push(c),
                (true, _) => {}
            }
        }
        assert_eq!(plain, report);
    }
}
