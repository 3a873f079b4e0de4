//! Progress on stderr, with the remaining time: a moving line on a terminal, plain lines elsewhere,
//! or one JSON object per event for other programs.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::cli::args::ProgressForm;
use crate::cli::print;
use rqps_lab::lab::Event;
use rqps_model::benchmark::RateUnit;
use rqps_model::load::LoadedFile;
use rqps_model::{escape, units};

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
        let form = print::form().unwrap_or(if std::io::stderr().is_terminal() {
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
            print::event(&object);
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
