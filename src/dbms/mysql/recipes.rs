//! Recipes to build MySQL from sources.

use crate::dbms::spec::SourceRecipe;

pub(super) const RECIPES: &[SourceRecipe] = &[SourceRecipe {
    name: "cmake",
    marks: &["CMakeLists.txt", "sql/mysqld.cc"],
    lines: &[
        "cmake -S . -B rqps-build -DCMAKE_BUILD_TYPE=None -DCMAKE_INSTALL_PREFIX=\"$PREFIX\" \
         -DWITH_UNIT_TESTS=OFF -DWITH_SSL=system -DWITH_BOOST=boost -DDOWNLOAD_BOOST=0",
        "cmake --build rqps-build -j \"$JOBS\"",
        "DESTDIR=\"$DEST\" cmake --install rqps-build",
    ],
    relink: &[],
    needs: &[
        ("cmake", "the Debian package cmake"),
        ("bison", "the Debian package bison"),
        ("pkg-config", "the Debian package pkg-config"),
    ],
    below_prefix: true,
    version: None,
    idle: &["mysql-test/", "Docs/", "unittest/", "man/", "*.md", "README", ".github/"],
}];
