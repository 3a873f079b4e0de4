//! The page docs/evidence.md: how often verdicts on real servers were right, from the findings in
//! docs/evidence.

mod columns;
mod counts;
mod finding;
mod page;

pub(crate) use finding::read;
pub(crate) use page::page;
