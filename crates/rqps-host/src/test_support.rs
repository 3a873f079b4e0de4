//! For tests: a folder that looks like `/` with the files that a test is about.

use std::fs;

/// The folder with these files, by their paths below it; it goes when it is dropped.
pub(super) fn root_with(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().expect("a temporary folder");
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("make a folder");
        fs::write(path, text).expect("write");
    }
    root
}
