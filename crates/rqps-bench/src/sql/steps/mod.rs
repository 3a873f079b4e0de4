//! Steps of the user's own statements, compiled to scripts for each dialect.

mod amounts;
mod dialects;
mod load;
mod positions;
mod reading;
mod sequence;
mod statements;
mod values;

pub use dialects::{of_dbms, of_dialect};
pub use reading::{executed_files, files, has_load, loads_on_servers, placed, read, shape};
pub use sequence::{check, phases, writes};
