//! Prints for the user. Everything that goes to the terminal passes here, where text of servers,
//! files and names loses what could steer a terminal or the service that keeps a log.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use std::{env, fmt};

use anyhow::{Context, Result};
use clap::ColorChoice;
use clap::builder::styling::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::cli::args::ProgressForm;
use rqps_lab::lab::Event;
use rqps_model::benchmark::RateUnit;
use rqps_model::run::LoadedFile;
use rqps_model::{escape, safe_path, units};

/// Prints a note on standard error, unless notes are off.
macro_rules! info {
    ($($words:tt)*) => { $crate::cli::terminal::note(format_args!($($words)*)) };
}

/// Prints an error or a question on standard error, whatever the form of progress.
macro_rules! error {
    ($($words:tt)*) => { $crate::cli::terminal::complaint(format_args!($($words)*)) };
}

/// Prints a line on standard output. A reader that stops early, such as `head`, is no error.
macro_rules! out {
    ($($words:tt)*) => { $crate::cli::terminal::output(format_args!($($words)*)) };
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
        Some(ProgressForm::Json) => event_line(&json!({ "event": "note", "text": plain(text) })),
        _ => line(text),
    }
}

pub(super) fn complaint(text: fmt::Arguments<'_>) {
    match form() {
        Some(ProgressForm::Json) => event_line(&json!({ "event": "error", "text": plain(text) })),
        _ => line(text),
    }
}

/// One line of `--progress json`.
fn event_line(event: &serde_json::Value) {
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

/// Writes text that was escaped for its medium to a file, or prints it if none is named.
///
/// # Errors
/// The file or standard output cannot be written.
pub(super) fn put(output: Option<&Path>, text: &[u8]) -> Result<()> {
    match output {
        Some(path) => safe_path::create_file(path)
            .and_then(|mut file| file.write_all(text))
            .with_context(|| format!("write {}", path.display())),
        None => Ok(escaped(text)?),
    }
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

// Colours of text reports on a terminal.

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
pub(super) fn choose_color(choice: ColorChoice) {
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

// Progress on stderr, with the remaining time: a moving line on a terminal, plain lines elsewhere,
// or one JSON object per event for other programs.

/// Minimum interval between plain lines, except for lines worth keeping.
const PLAIN_PAUSE: Duration = Duration::from_secs(10);

/// The time of the plan, as it was told last.
struct Told {
    done_seconds: f64,
    left_seconds: f64,
    more_seconds: f64,
    at: Instant,
}

/// Displays events.
pub(super) struct Display {
    form: ProgressForm,
    bar: Option<ProgressBar>,
    /// Seconds of what follows this plan: passes that count or sample.
    later_seconds: f64,
    time: Option<Told>,
    last_plain: Option<Instant>,
    doing: String,
}

impl Display {
    pub(super) fn new() -> Display {
        Display::with("{bar:24} {percent:>3}% {wide_msg}")
    }

    /// For a plan after which other work of this length follows.
    pub(super) fn before(later_seconds: f64) -> Display {
        let mut display = Display::new();
        display.later_seconds = later_seconds;
        display
    }

    /// For work of which no share is known, such as fetching builds.
    pub(super) fn of_fetches() -> Display {
        Display::with("{spinner} {wide_msg}")
    }

    fn with(template: &str) -> Display {
        let form = form().unwrap_or(if std::io::stderr().is_terminal() {
            ProgressForm::Bar
        } else {
            ProgressForm::Plain
        });
        let bar = (form == ProgressForm::Bar).then(|| {
            let bar = ProgressBar::new(1000);
            let style = ProgressStyle::with_template(template);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        Display {
            form,
            bar,
            later_seconds: 0.0,
            time: None,
            last_plain: None,
            doing: String::new(),
        }
    }

    /// Shows an event.
    pub(super) fn show(&mut self, event: Event) {
        if self.form == ProgressForm::Json
            && let Some(object) = self.object(&event)
        {
            event_line(&object);
        }
        match event {
            Event::Note(text) => self.keep(&text),
            Event::Loaded { label, rows, load_seconds, index_seconds, files } => {
                let rate = rows as f64 / load_seconds.max(1e-9);
                self.keep(&format!(
                    "{label}: {} rows loaded in {load_seconds:.1} s ({} rows/s), indexes in \
                     {index_seconds:.1} s",
                    units::count(rows),
                    units::count(rate as u64)
                ));
                files.iter().for_each(|file| self.keep(&file_line(&label, file)));
            }
            Event::Measured { block, blocks, label, step, rate, unit } => {
                let rate = match unit {
                    RateUnit::Queries => format!("{rate:.0} qps"),
                    RateUnit::Transactions => format!("{rate:.0} tps"),
                    RateUnit::RowsScanned => format!("{:.0} Krows/s", rate / 1000.0),
                    RateUnit::RowsInserted => format!("{rate:.0} ips"),
                    RateUnit::Operations => format!("{rate:.0} ops/s"),
                    RateUnit::Relative => format!("{rate:.2} of the baseline"),
                };
                self.now(&format!("block {block}/{blocks}  {step}  {label}  {rate}"), false);
            }
            Event::Doing { label, what, done, begins } => {
                let share = done.map(|done| format!(" {:.0}%", done * 100.0)).unwrap_or_default();
                let label = if label.is_empty() { label } else { format!("{label}: ") };
                self.now(&format!("{label}{what}{share}"), begins);
            }
            Event::Advance { done_seconds, left_seconds, more_seconds } => {
                let left_seconds = left_seconds + self.later_seconds;
                let at = Instant::now();
                self.time = Some(Told { done_seconds, left_seconds, more_seconds, at });
                self.refresh();
            }
        }
    }

    /// Prints a permanent line.
    fn keep(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| info!("rqps: {text}")),
            // Its own JSON event has the same content.
            None if self.form == ProgressForm::Json => {}
            None => info!("rqps: {text}"),
        }
    }

    /// An event as described in docs/command_line.md.
    fn object(&self, event: &Event) -> Option<Value> {
        Some(match event {
            Event::Note(text) => json!({ "event": "note", "text": text }),
            Event::Loaded { label, rows, load_seconds, index_seconds, files } => json!({
                "event": "loaded", "target": label, "rows": rows,
                "seconds": load_seconds, "seconds_indexes": index_seconds, "files": files,
            }),
            Event::Measured { block, blocks, label, step, rate, unit } => json!({
                "event": "measured", "block": block, "blocks": blocks, "target": label,
                "step": step, "rate": rate, "unit": unit,
            }),
            Event::Doing { label, what, done, .. } => {
                json!({ "event": "doing", "target": label, "what": what, "done": done })
            }
            Event::Advance { done_seconds, left_seconds, more_seconds } => {
                let left = left_seconds + self.later_seconds;
                json!({
                    "event": "progress", "done_seconds": done_seconds,
                    "total_seconds": done_seconds + left, "seconds_left": left,
                    "seconds_most": left + more_seconds,
                })
            }
        })
    }

    /// The current activity. Plain lines tell each that `begins`, others only after a pause.
    fn now(&mut self, text: &str, begins: bool) {
        text.clone_into(&mut self.doing);
        self.refresh();
        if self.form == ProgressForm::Plain && self.is_due(begins, Instant::now()) {
            info!("rqps: {}{text}", self.left());
        }
    }

    /// True if a plain line may go out now; the next pause then begins.
    fn is_due(&mut self, begins: bool, now: Instant) -> bool {
        let due = begins || self.last_plain.is_none_or(|last| now - last >= PLAIN_PAUSE);
        if due {
            self.last_plain = Some(now);
        }
        due
    }

    fn refresh(&self) {
        if let Some(bar) = &self.bar {
            let time = self.time.as_ref();
            let (done, left) = time.map_or((0.0, 1.0), |it| (it.done_seconds, it.left_seconds));
            bar.set_position((done / (done + left).max(1e-9) * 1000.0) as u64);
            bar.set_message(format!("{}{}", self.left(), escape::line(&self.doing)));
        }
    }

    /// "about 3m20s left", or "3m20s to 8m left".
    fn left(&self) -> String {
        let Some(told) = &self.time else { return String::new() };
        let left = (told.left_seconds - told.at.elapsed().as_secs_f64()).max(0.0);
        let text =
            |seconds: f64| units::duration(Duration::from_secs_f64(seconds.round().max(1.0)));
        if told.more_seconds > 0.0 {
            format!("{} to {} left  ", text(left), text(left + told.more_seconds))
        } else {
            format!("about {} left  ", text(left))
        }
    }
}

/// A file that was loaded, and its rate.
fn file_line(label: &str, loaded: &LoadedFile) -> String {
    let LoadedFile { file, bytes, rows, seconds } = loaded;
    let rate = loaded.bytes_per_second().map(|rate| format!(" ({}/s)", units::bytes(rate as u64)));
    let rate = rate.unwrap_or_default();
    let (bytes, rows) = (units::bytes(*bytes), units::count(*rows));
    format!("{label}: {file}: {bytes} in {seconds:.1} s{rate}, {rows} rows")
}

impl Drop for Display {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
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

#[cfg(test)]
mod progress_tests {
    use super::*;

    fn silent() -> Display {
        Display {
            form: ProgressForm::None,
            bar: None,
            later_seconds: 0.0,
            time: None,
            last_plain: None,
            doing: String::new(),
        }
    }

    #[test]
    fn plain_lines_come_after_a_pause_or_when_work_begins() {
        let begin = Instant::now();
        let mut display = silent();
        let mut lines = |begins, from: u64, to: u64| {
            let at = |second| begin + Duration::from_secs(second);
            (from..to).filter(|second| display.is_due(begins, at(*second))).collect::<Vec<u64>>()
        };
        assert_eq!(lines(false, 0, 35), [0, 10, 20, 30]);
        assert_eq!(lines(true, 35, 36), [35]);
        assert_eq!(lines(false, 36, 60), [45, 55]);
    }

    #[test]
    fn what_follows_the_plan_is_left_too() {
        let mut display = silent();
        display.later_seconds = 30.0;
        let event =
            |more_seconds| Event::Advance { done_seconds: 5.0, left_seconds: 10.0, more_seconds };
        let object = display.object(&event(20.0)).expect("an object");
        let seconds = ["seconds_left", "total_seconds", "seconds_most"].map(|key| &object[key]);
        assert_eq!(seconds, [40.0, 45.0, 60.0]);
        display.show(event(20.0));
        assert_eq!(display.left(), "40s to 1m00s left  ");
        display.show(event(0.0));
        assert_eq!(display.left(), "about 40s left  ");
        display.later_seconds = 0.0;
        display.show(Event::Advance { done_seconds: 5.0, left_seconds: 0.1, more_seconds: 0.0 });
        assert_eq!(display.left(), "about 1s left  ");
    }
}
