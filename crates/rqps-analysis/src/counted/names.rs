//! Names for functions without a name.

use std::sync::Arc;

const NO_SYMBOL: &str = "(no symbol) ";

/// The row of all nameless functions of a file.
pub(super) fn all_of(file: &str) -> Arc<str> {
    Arc::from(format!("{NO_SYMBOL}{file}"))
}

/// True for the row of all nameless functions of a file.
pub(super) fn is_all_of(name: &str) -> bool {
    name.starts_with(NO_SYMBOL)
}

/// The file of a nameless function.
pub(super) fn file_of(name: &str) -> Option<&str> {
    let (file, address) = name.rsplit_once("+0x")?;
    address.chars().all(|c| c.is_ascii_hexdigit()).then_some(file)
}
