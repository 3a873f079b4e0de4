//! The run folder: results as files that stay readable, copyable and mergeable (docs/results.md).
//! Written whole or not at all; nothing is computed here.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod accepted;
mod atomic;
pub mod bundle;
mod calibrations;
mod callgrind;
mod campaign_folder;
mod counters;
mod error;
mod files;
mod folded;
#[doc(hidden)]
pub mod fuzzing;
mod plain_set;
mod read;
mod seconds;
mod settings;
mod stamp;
mod store;

pub use accepted::{keep_accepted, read_accepted};
pub use atomic::{replace as replace_whole, write as write_whole};

pub use calibrations::{keep_calibration, read_calibrations};
pub use calibrations::{keep_in_ledger, keep_layout, read_layouts, read_ledger};
pub use campaign_folder::{BisectionFolder, GapFolder};
pub use counters::{counters_of, each_counter};
pub use error::ResultsError;
pub use files::entries;
pub use read::{COUNTS, PROFILES, read, read_each, read_run};
pub use seconds::{COLUMNS, SecondsColumn, read_seconds, seconds_of};
pub use settings::settings_of;
pub use stamp::{content_stamp, quick_stamp};
pub use store::{ResultSet, RunFolder};
