//! The driver process: clients, pace, recorder. It answers the lab in messages and writes nothing
//! else. It knows no benchmark; [`main`] receives the hooks of each as a [`DriverPart`].

pub mod attempt;
mod carry_over;
pub mod client;
pub mod clock;
pub mod columns;
pub mod connection;
pub mod crew;
pub mod csv_rows;
mod entry;
pub mod event;
pub mod fake;
pub mod guest;
pub mod interval;
pub mod link;
pub mod load;
pub mod load_changes;
pub mod load_files;
mod load_hints;
pub mod load_parts;
pub mod loaders;
mod lull;
pub mod measure;
pub mod merged;
pub mod outcome;
pub mod part;
pub mod placement;
pub mod recorder;
pub mod request;
pub mod ring;
pub mod row_stream;
pub mod schedule;
pub mod script;
mod simulated;
mod sql_file;
mod sqlite_file;
pub mod step;
mod stop;
mod text_statements;
pub mod turns;
pub mod watch;
pub mod window;

pub use entry::{Ending, main, run_request};
pub use part::DriverPart;
pub use stop::Stop;
