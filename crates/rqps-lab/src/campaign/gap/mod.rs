//! `rqps gap`: puts what one target has into the other, measures what each change is worth, and adds
//! up.

mod measuring;
mod possible;
mod search;

pub use search::{GapEnd, close};
