//! The driver process: clients, pace, recorder. It answers the lab in messages and writes nothing
//! else. It knows no benchmark; [`main`] receives the hooks of each as a [`DriverPart`].

pub mod answers;
pub mod attempt;
mod behind;
pub mod client;
pub mod clock;
pub mod confined;
pub mod connection;
pub mod control_channel;
pub mod fake;
pub mod files;
pub mod guest;
pub mod load;
pub mod load_changes;
pub mod load_files;
pub mod loaders;
pub mod outcome;
pub mod part;
pub mod recorder;
pub mod request;
pub mod row_stream;
pub mod script;
pub mod step;
mod tables;
pub mod turns;
pub mod worker_pool;

pub use crate::part::{Ending, main, run_request};
pub use control_channel::Stop;
pub use part::DriverPart;
pub mod workload;
