//! What the command line says of scripts of pgbench.

mod keys;
mod options;
mod scripts;
mod taking;

pub(super) use keys::{data_size, finish, set};
pub(super) use scripts::sha256;
pub(super) use taking::take;
