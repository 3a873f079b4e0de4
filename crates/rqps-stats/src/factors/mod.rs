//! What each of several changes is worth: which of many move a value at all, and how those share
//! the difference that they make together.

mod account;
mod screen;
#[cfg(test)]
mod tests;

pub use account::{Account, Design, Effect};
pub use screen::{Finding, Screen, ScreenRules};
