//! Recipes to build SQLite from sources.

use crate::dbms::spec::SourceRecipe;

/// Files of SQLite's sources that are in no library.
const IDLE: &[&str] = &["test/", "doc/", "art/", "contrib/", "mptest/", "*.md", "*.html", "*.test"];

pub(super) const RECIPES: &[SourceRecipe] = &[
    SourceRecipe {
        name: "amalgamation",
        marks: &["sqlite3.c", "sqlite3.h"],
        lines: &[COMPILE, LINK],
        relink: &[RELINK],
        needs: &[],
        below_prefix: false,
        version: None,
        idle: IDLE,
    },
    SourceRecipe {
        name: "sources",
        marks: &["configure", "src/main.c", "src/sqlite.h.in"],
        lines: &["./configure --disable-tcl", "make sqlite3.c", COMPILE, LINK],
        relink: &[RELINK],
        needs: &[("make", "the Debian package make"), ("tclsh", "the Debian package tcl")],
        below_prefix: false,
        version: None,
        idle: IDLE,
    },
];

const COMPILE: &str = "$CC $CFLAGS -DSQLITE_THREADSAFE=1 -fPIC -c -o rqps-sqlite3.o sqlite3.c";
const LINK: &str = "$CC $CFLAGS -fPIC -shared -o \"$DEST/libsqlite3.so\" rqps-sqlite3.o -lpthread \
                    -ldl -lm";
const RELINK: &str = "$CC $CFLAGS -fPIC -shared -o \"$DEST/libsqlite3.so\" \
                      -Wl,-T,\"$ORDER\" rqps-sqlite3.o -lpthread -ldl -lm";
