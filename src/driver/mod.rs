//! The driver process: clients, pace, recorder. It answers the lab in messages and writes nothing
//! else. It knows no benchmark: what one has of its own is handed to [`main`] as a [`DriverPart`].

pub(crate) mod attempt;
pub(crate) mod client;
pub(crate) mod clock;
pub(crate) mod columns;
pub(crate) mod connection;
pub(crate) mod crew;
pub(crate) mod csv_rows;
mod entry;
pub mod event;
pub(crate) mod fake;
pub(crate) mod guest;
pub(crate) mod interval;
pub(crate) mod link;
pub(crate) mod load;
pub(crate) mod load_files;
pub(crate) mod load_parts;
pub(crate) mod measure;
pub(crate) mod outcome;
pub mod part;
pub(crate) mod placement;
pub(crate) mod recorder;
pub mod request;
pub mod ring;
pub(crate) mod schedule;
pub(crate) mod script;
mod simulated;
pub(crate) mod step;
mod stop;
mod text_statements;
pub(crate) mod turns;
pub(crate) mod window;

pub use entry::{Ending, main, run_job};
pub use part::DriverPart;
pub(crate) use stop::Stop;
