//! Builds that are slower than their twins by a share of their own CPU.

mod burner;
mod campaign;
#[path = "../findings/columns.rs"]
mod columns;
mod share;

pub(crate) use campaign::{Campaign, Finding, Measuring, Twins, append};
pub(crate) use share::share;
