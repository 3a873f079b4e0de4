//! Builds from sources: recipes as data of each DBMS, and variants of flags.

use crate::domain::build::Version;

/// The way from a kind of source tree to a build.
#[derive(Clone, Copy, Debug)]
pub struct SourceRecipe {
    /// Its name in manifests.
    pub name: &'static str,
    /// Files that a tree of this kind has; the first recipe of a DBMS that has all is taken.
    pub marks: &'static [&'static str],
    /// Lines for `sh -e`, run in a copy of the sources. They see CC, CXX, CFLAGS, CXXFLAGS, JOBS,
    /// PREFIX (where the build will be) and DEST (an empty folder, which becomes the build).
    pub lines: &'static [&'static str],
    /// Lines that link the same objects once more, after all other lines, with the linker script
    /// ORDER, which names functions in another order; empty where rqps cannot.
    pub relink: &'static [&'static str],
    /// Programs that must be there, with the Debian package of each.
    pub needs: &'static [(&'static str, &'static str)],
    /// True if the lines install into `DEST/PREFIX`, as `make install` with DESTDIR does.
    pub below_prefix: bool,
    /// The file of the sources that has the version of a library whose own file does not tell it.
    pub version: Option<SourceVersion>,
    /// Folders and files of the sources that cannot change the build: a path below one of them, or
    /// with this ending after `*`.
    pub idle: &'static [&'static str],
}

/// The place of the version in the sources.
#[derive(Clone, Copy, Debug)]
pub struct SourceVersion {
    /// The file.
    pub file: &'static str,
    /// The version in its text.
    pub read: fn(&str) -> Option<Version>,
}

impl SourceRecipe {
    /// True if a file of the sources cannot change the build.
    pub fn is_idle(&self, path: &str) -> bool {
        self.idle.iter().any(|idle| match idle.strip_prefix('*') {
            Some(ending) => path.ends_with(ending),
            None => path.strip_prefix(idle).is_some_and(|rest| {
                rest.is_empty() || idle.ends_with('/') || rest.starts_with('/')
            }),
        })
    }
}

/// Flags that a word after `+` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildVariant {
    /// The word.
    pub name: &'static str,
    /// Additional compiler flags; a flag replaces an earlier one of the same group.
    pub flags: &'static [&'static str],
    /// The compilers for C and C++, if it names them.
    pub compilers: Option<(&'static str, &'static str)>,
}

const fn flags(name: &'static str, flags: &'static [&'static str]) -> BuildVariant {
    BuildVariant { name, flags, compilers: None }
}

const fn compilers(name: &'static str, c: &'static str, cxx: &'static str) -> BuildVariant {
    BuildVariant { name, flags: &[], compilers: Some((c, cxx)) }
}

/// All variants of builds from sources.
const BUILD_VARIANTS: &[BuildVariant] = &[
    flags("O0", &["-O0"]),
    flags("O1", &["-O1"]),
    flags("O2", &["-O2"]),
    flags("O3", &["-O3"]),
    flags("rel", &["-O2", "-g0"]),
    flags("rel_withdbg", &["-O2", "-g"]),
    flags("native", &["-march=native"]),
    flags("lto", &["-flto"]),
    flags("fp", &["-fno-omit-frame-pointer"]),
    flags("nofp", &["-fomit-frame-pointer"]),
    compilers("gcc", "gcc", "g++"),
    compilers("clang", "clang", "clang++"),
];

/// The word before the number of an order of linking.
const RELINK: &str = "relink";
/// The word before the file of a patch.
const PATCH: &str = "patch=";

/// The word of a build whose functions are linked in the order of this number.
pub fn relink_word(order: u32) -> String {
    format!("{RELINK}{order}")
}

/// The number of an order of linking in a word such as `relink3`.
pub fn relink_order(word: &str) -> Option<u32> {
    word.strip_prefix(RELINK)?.parse().ok()
}

/// The file of a patch in a word such as `patch=fix.diff`.
pub fn patch_file(word: &str) -> Option<&str> {
    word.strip_prefix(PATCH).filter(|file| !file.is_empty())
}

/// True for a word that may stand after `+` in a target with sources.
pub fn is_build_word(word: &str) -> bool {
    build_variant(word).is_some() || relink_order(word).is_some() || patch_file(word).is_some()
}

/// All words that may stand there, for errors.
pub fn build_words() -> String {
    let names = BUILD_VARIANTS.iter().map(|variant| variant.name);
    names.chain(["relinkN", "patch=FILE"]).collect::<Vec<_>>().join(", ")
}

/// The variant of a word, if it is one.
pub fn build_variant(name: &str) -> Option<&'static BuildVariant> {
    BUILD_VARIANTS.iter().find(|variant| variant.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_cannot_matter() {
        let recipe = SourceRecipe {
            name: "x",
            marks: &[],
            lines: &[],
            relink: &[],
            needs: &[],
            below_prefix: false,
            version: None,
            idle: &["doc", "test/", "README", "*.md"],
        };
        let check = |path: &str, expected| assert_eq!(recipe.is_idle(path), expected, "{path}");
        check("doc/a.c", true);
        check("doc", true);
        check("docs/a.c", false);
        check("test/a.c", true);
        check("src/test/a.c", false);
        check("README", true);
        check("src/NOTES.md", true);
        check("src/a.c", false);
    }
}
