//! How functions without a name are called.

use std::sync::Arc;

/// The row of all nameless functions of a file.
pub(super) fn all_of(file: &str) -> Arc<str> {
    Arc::from(format!("(no symbol) {file}"))
}

/// The file of a nameless function.
pub(super) fn file_of(name: &str) -> Option<&str> {
    let (file, address) = name.rsplit_once("+0x")?;
    address.chars().all(|c| c.is_ascii_hexdigit()).then_some(file)
}
