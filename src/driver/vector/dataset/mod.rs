//! Where vectors come from.

pub mod matrix;
