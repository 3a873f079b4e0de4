//! The driver process: clients, pace, recorder. It answers the lab in messages and writes nothing
//! else. It knows no benchmark; [`main`] receives the hooks of each as a [`DriverPart`].

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod answer_keeper;
pub mod answers;
pub mod attempt;
mod cancel;
pub mod client;
pub mod clock;
pub mod columns;
pub mod columns_of_roles;
pub mod confined;
pub mod connection;
pub mod control_channel;
pub mod csv_rows;
mod entry;
pub mod event;
pub mod fake;
pub mod guest;
pub mod interval;
pub mod load;
mod load_calls;
pub mod load_changes;
pub mod load_files;
pub mod load_parts;
pub mod loaders;
pub mod measure;
pub mod merged;
pub mod outcome;
pub mod part;
pub mod placement;
pub mod recorder;
pub mod request;
pub mod row_stream;
pub mod schedule;
pub mod script;
mod simulated;
mod sql_file;
pub mod step;
mod tables;
mod text_statements;
pub mod turns;
pub mod watch;
pub mod window;
pub mod worker_pool;

pub use control_channel::Stop;
pub use entry::{Ending, main, run_request};
pub use part::DriverPart;
pub mod workload;
