//! Progress on stderr, with the remaining time: a moving line on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::domain::benchmark::RateUnit;
use crate::lab::Event;
use crate::units;

/// Minimum interval between plain lines, except for lines worth keeping.
const PLAIN_PAUSE: Duration = Duration::from_secs(10);

/// Displays events.
pub(super) struct Display {
    bar: Option<ProgressBar>,
    began: Instant,
    done_seconds: f64,
    total_seconds: f64,
    last_plain: Option<Instant>,
    doing: String,
}

impl Display {
    pub(super) fn new() -> Display {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(1000);
            let style = ProgressStyle::with_template("{bar:24} {percent:>3}% {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        Display {
            bar,
            began: Instant::now(),
            done_seconds: 0.0,
            total_seconds: 0.0,
            last_plain: None,
            doing: String::new(),
        }
    }

    /// Shows an event.
    pub(super) fn show(&mut self, event: Event) {
        match event {
            Event::Note(text) => self.keep(&text),
            Event::Loaded { label, rows, load_seconds, index_seconds } => {
                let rate = rows as f64 / load_seconds.max(1e-9);
                self.keep(&format!(
                    "{label}: {} rows loaded in {load_seconds:.1} s ({} rows/s), indexes in \
                     {index_seconds:.1} s",
                    units::count(rows),
                    units::count(rate as u64)
                ));
            }
            Event::Measured { block, blocks, label, step, rate, unit } => {
                let rate = match unit {
                    RateUnit::Queries => format!("{rate:.0} qps"),
                    RateUnit::RowsScanned => format!("{:.0} Krows/s", rate / 1000.0),
                    RateUnit::RowsInserted => format!("{rate:.0} ips"),
                    RateUnit::Operations => format!("{rate:.0} ops/s"),
                    RateUnit::Relative => format!("{rate:.2} of the baseline"),
                    RateUnit::Unknown(word) => format!("{rate:.0} {}", word.text()),
                };
                self.now(&format!("block {block}/{blocks}  {step}  {label}  {rate}"));
            }
            Event::Doing { label, what, done } => {
                let share = done.map(|done| format!(" {:.0}%", done * 100.0)).unwrap_or_default();
                let label = if label.is_empty() { label } else { format!("{label}: ") };
                self.now(&format!("{label}{what}{share}"));
            }
            Event::Advance { done_seconds, total_seconds } => {
                self.done_seconds = done_seconds;
                self.total_seconds = total_seconds;
                self.refresh();
            }
        }
    }

    /// Prints a line that stays.
    fn keep(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| tell!("rqps: {text}")),
            None => tell!("rqps: {text}"),
        }
    }

    /// The current activity.
    fn now(&mut self, text: &str) {
        text.clone_into(&mut self.doing);
        self.refresh();
        let due = self.last_plain.is_none_or(|last| last.elapsed() >= PLAIN_PAUSE);
        if self.bar.is_none() && due {
            self.last_plain = Some(Instant::now());
            tell!("rqps: {}{text}", self.left());
        }
    }

    fn refresh(&self) {
        if let Some(bar) = &self.bar {
            let share = self.done_seconds / self.total_seconds.max(1e-9);
            bar.set_position((share * 1000.0) as u64);
            bar.set_message(format!("{}{}", self.left(), self.doing));
        }
    }

    /// "about 3m20s left": the initial estimate, corrected by the duration of the completed part.
    fn left(&self) -> String {
        if self.total_seconds <= 0.0 {
            return String::new();
        }
        let left = self.total_seconds - self.done_seconds;
        let share = self.done_seconds / self.total_seconds;
        let measured = self.began.elapsed().as_secs_f64() / self.done_seconds.max(1e-9);
        // The estimate has the weight of a twentieth of the plan.
        let pace =
            if self.done_seconds > 0.0 { (measured * share + 0.05) / (share + 0.05) } else { 1.0 };
        format!(
            "about {} left  ",
            units::duration(Duration::from_secs_f64((left * pace).max(0.0).round()))
        )
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
