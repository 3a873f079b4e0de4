//! An entry for the fuzz targets (`fuzz/`): the reader of what servers write, which is private
//! otherwise. Nothing else calls it.

use std::path::Path;

use super::log;

/// The words on a server that did not start, from its log.
pub fn server_log(path: &Path) -> String {
    let words = log::read(path, 0);
    words.tail + &words.hint
}
