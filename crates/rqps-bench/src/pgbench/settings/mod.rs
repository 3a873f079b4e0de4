//! Settings of pgbench scripts: scripts, the program's options, rqps's own settings.

mod keys;
mod options;
mod scripts;
mod words;

pub(super) use keys::{brought, data_size, finish, set};
pub(super) use words::take;
