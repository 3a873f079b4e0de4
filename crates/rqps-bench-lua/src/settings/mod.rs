//! Settings of scripts: their names, their options, rqps's own settings.

mod foreign;
mod keys;
mod values;

pub use foreign::take;
pub use keys::{brought, data_size, files, no_file, pin, set};
