//! Whether targets gave the same answers to the same statements, and hold the same data: where they
//! do not, a difference of their speed means nothing.

mod find;
mod finding;
mod order;
mod replies;
mod rows;
mod tables;
mod windows;

pub(super) use find::find;
pub use finding::{AnswerFinding, AnswerWeight};
