//! Builds that are slower than their twins by a share of their own CPU.

mod burner;
mod campaign;
#[path = "../findings/columns.rs"]
mod columns;
pub(crate) mod record;
mod share;
mod tally;
mod twins;

pub(crate) use campaign::{Campaign, Finding, Measuring};
pub(crate) use share::share;
pub(crate) use twins::Twins;
