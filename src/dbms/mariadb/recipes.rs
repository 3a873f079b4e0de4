//! Recipes to build MariaDB from sources.

use crate::dbms::spec::SourceRecipe;

pub(super) const RECIPES: &[SourceRecipe] = &[SourceRecipe {
    name: "cmake",
    marks: &["CMakeLists.txt", "sql/mysqld.cc", "storage/maria"],
    lines: &[
        "cmake -S . -B rqps-build -DCMAKE_BUILD_TYPE=None -DCMAKE_INSTALL_PREFIX=\"$PREFIX\" \
         -DWITH_UNIT_TESTS=OFF -DPLUGIN_COLUMNSTORE=NO -DPLUGIN_MROONGA=NO \
         -DPLUGIN_ROCKSDB=NO -DPLUGIN_SPIDER=NO",
        "cmake --build rqps-build -j \"$JOBS\"",
        "DESTDIR=\"$DEST\" cmake --install rqps-build",
    ],
    relink: &[],
    needs: &[("cmake", "the Debian package cmake"), ("bison", "the Debian package bison")],
    below_prefix: true,
    version: None,
    idle: &["mysql-test/", "Docs/", "unittest/", "man/", "debian/", "*.md", ".github/"],
}];
