//! Recipes to build Postgres from sources.

use crate::dbms::spec::SourceRecipe;

pub(super) const RECIPES: &[SourceRecipe] = &[SourceRecipe {
    name: "configure",
    marks: &["configure", "src/backend/postmaster/postmaster.c"],
    lines: &[
        // Since version 16 ICU is on by default; older ones call the option unknown and go on.
        "./configure --prefix=\"$PREFIX\" --without-readline --without-zlib --without-icu",
        "make -s -j\"$JOBS\"",
        "make -s install DESTDIR=\"$DEST\"",
    ],
    // Only the server: libraries and programs stay as they are.
    relink: &[
        "rm src/backend/postgres",
        "make -s -C src/backend LDFLAGS_EX=\"-Wl,-T,$ORDER\" postgres",
        "make -s -C src/backend install-bin DESTDIR=\"$DEST\"",
    ],
    // A release has the output of bison and flex; make names them where a checkout needs them.
    needs: &[("make", "the Debian package make")],
    below_prefix: true,
    version: None,
    idle: &["doc/", "src/test/", "README", "*.md", "*.sgml", "*/README", ".github/", ".cirrus.yml"],
}];
