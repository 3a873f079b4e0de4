//! Progress events of the lab. Events carry facts; the command line formats them.

use rqps_builds::Said;
use rqps_model::benchmark::RateUnit;
use rqps_model::load::LoadedFile;

/// Something happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// An activity on a target that may take a while.
    Doing {
        /// Label of the target, or empty.
        label: String,
        /// "load rows", "settle".
        what: String,
        /// Share done, 0 to 1, if it is known.
        done: Option<f64>,
        /// True for the begin of a piece of work that may take minutes, such as a build.
        begins: bool,
    },
    /// A target is loaded and its snapshot taken.
    Loaded {
        /// Label of the target.
        label: String,
        /// Rows.
        rows: u64,
        /// Seconds for rows.
        load_seconds: f64,
        /// Seconds for indexes.
        index_seconds: f64,
        /// The user's files, in their order.
        files: Vec<LoadedFile>,
    },
    /// A step of one target was measured.
    Measured {
        /// Round.
        block: u32,
        /// Rounds in all.
        blocks: u32,
        /// Label of the target.
        label: String,
        /// Name of the step.
        step: String,
        /// Operations per second.
        rate: f64,
        /// The unit of the rate.
        unit: RateUnit,
    },
    /// Something a reader should see later too: a fault, something resumed, a fact that limits the
    /// result.
    Note(String),
    /// Progress of the plan by the clock.
    Advance {
        /// Seconds since it began.
        done_seconds: f64,
        /// Seconds that it will probably still take.
        left_seconds: f64,
        /// True if `--blocks auto` may measure more: it has not judged yet, or open steps may need
        /// more blocks than they seem to.
        is_least: bool,
    },
}

impl Event {
    /// What a fetch of the build of a target says.
    pub fn of_fetch(label: &str, said: Said<'_>) -> Event {
        let what = said.text();
        match said {
            Said::Note(_) => Event::Note(format!("{label}: {what}")),
            Said::Begins(_) | Said::GoesOn(_) => Event::Doing {
                label: label.to_owned(),
                what: what.to_owned(),
                done: None,
                begins: matches!(said, Said::Begins(_)),
            },
        }
    }
}
