//! Recipes to build RocksDB from sources.

use crate::dbms::spec::{SourceRecipe, SourceVersion};
use crate::domain::build::Version;

pub(super) const RECIPES: &[SourceRecipe] = &[SourceRecipe {
    name: "make",
    marks: &["Makefile", "include/rocksdb/version.h"],
    lines: &[
        "EXTRA_CXXFLAGS=\"$CXXFLAGS\" EXTRA_CFLAGS=\"$CFLAGS\" make -j\"$JOBS\" shared_lib \
         DEBUG_LEVEL=0 PORTABLE=1 DISABLE_WARNING_AS_ERROR=1",
        "mkdir \"$DEST/lib\" && cp -L librocksdb.so \"$DEST/lib/librocksdb.so\"",
    ],
    relink: &[],
    needs: &[("make", "the Debian package make")],
    below_prefix: false,
    version: Some(SourceVersion { file: "include/rocksdb/version.h", read: version }),
    idle: &["docs/", "java/", "*_test.cc", "*.md", "unreleased_history/", ".github/"],
}];

/// Its parts are macros of a header.
fn version(text: &str) -> Option<Version> {
    let part = |name: &str| {
        let line = text.lines().find(|line| line.contains(&format!("define {name} ")))?;
        line.split_whitespace().last()?.parse::<u32>().ok()
    };
    let [major, minor, patch] = ["ROCKSDB_MAJOR", "ROCKSDB_MINOR", "ROCKSDB_PATCH"].map(part);
    Some(Version::new(format!("{}.{}.{}", major?, minor?, patch?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_in_the_header() {
        let text = "#pragma once\n#define ROCKSDB_MAJOR 10\n#define ROCKSDB_MINOR 6\n\
                    #define ROCKSDB_PATCH 2\n";
        assert_eq!(version(text), Some(Version::new("10.6.2")));
        assert_eq!(version("#define ROCKSDB_MAJOR 10"), None);
    }
}
