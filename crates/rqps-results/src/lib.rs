//! The run folder: results as files that stay readable, copyable and mergeable (docs/results.md).
//! Written whole or not at all; nothing is computed here.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod bundle;
mod calibrations;
mod campaign_folder;
#[doc(hidden)]
pub mod fuzzing;
mod profiles;
mod read;
mod seconds;
mod store;

pub use calibrations::{
    keep_accepted, keep_calibration, keep_in_ledger, keep_layout, read_accepted, read_calibrations,
    read_layouts, read_ledger,
};
pub use campaign_folder::{BisectionFolder, Campaign, CampaignFolder, GapFolder, RateFolder};
pub use read::{
    COUNTS, PROFILES, ResultsError, content_stamp, entries, quick_stamp, read, read_each, read_run,
};
pub use seconds::{
    COLUMNS, SecondsColumn, counters_of, each_counter, read_seconds, seconds_of, settings_of,
};
pub use store::{ResultSet, RunFolder, replace_whole, write_whole};
