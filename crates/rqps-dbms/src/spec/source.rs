//! Variants of builds from sources: the words after `+` of a target.

use std::path::Path;

/// Flags that a word after `+` stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildVariant {
    /// The word.
    pub name: &'static str,
    /// Additional compiler flags; a flag replaces an earlier one of the same group.
    pub flags: &'static [&'static str],
    /// The compilers for C and C++, if it names them.
    pub compilers: Option<(&'static str, &'static str)>,
    /// The library that replaces malloc, if it names one, and its Debian package.
    pub allocator: Option<(&'static str, &'static str)>,
}

const PLAIN: BuildVariant = BuildVariant { name: "", flags: &[], compilers: None, allocator: None };

const fn flags(name: &'static str, flags: &'static [&'static str]) -> BuildVariant {
    BuildVariant { name, flags, ..PLAIN }
}

const fn compilers(name: &'static str, c: &'static str, cxx: &'static str) -> BuildVariant {
    BuildVariant { name, compilers: Some((c, cxx)), ..PLAIN }
}

const fn allocator(
    name: &'static str,
    library: &'static str,
    package: &'static str,
) -> BuildVariant {
    BuildVariant { name, allocator: Some((library, package)), ..PLAIN }
}

/// Keeps frame pointers. Published results call it `nofp`, for "no omit frame pointer".
const FRAME_POINTER: &str = "-fno-omit-frame-pointer";

/// All variants of builds from sources.
const BUILD_VARIANTS: &[BuildVariant] = &[
    flags("O0", &["-O0"]),
    flags("O1", &["-O1"]),
    flags("O2", &["-O2"]),
    flags("O3", &["-O3"]),
    // Names of builds in published results: `rel` is CMake's Release.
    flags("rel", &["-O3", "-g0"]),
    flags("rel_o2", &["-O2", "-g0"]),
    flags("rel_native", &["-O3", "-g0", "-march=native"]),
    flags("rel_lto", &["-O3", "-g0", "-flto"]),
    flags("rel_o2_lto", &["-O2", "-g0", "-flto"]),
    flags("rel_native_lto", &["-O3", "-g0", "-march=native", "-flto"]),
    flags("rel_o2nofp", &["-O2", "-g0", FRAME_POINTER]),
    flags("rel_withdbg", &["-O2", "-g"]),
    flags("o2nofp", &["-O2", FRAME_POINTER]),
    flags("native", &["-march=native"]),
    flags("lto", &["-flto"]),
    flags("fp", &[FRAME_POINTER]),
    flags("omitfp", &["-fomit-frame-pointer"]),
    compilers("gcc", "gcc", "g++"),
    compilers("clang", "clang", "clang++"),
    allocator("jemalloc", "libjemalloc.so.2", "the Debian package libjemalloc2"),
    allocator("tcmalloc", "libtcmalloc_minimal.so.4", "the Debian package libtcmalloc-minimal4"),
];

/// The word before the number of an order of linking.
const RELINK: &str = "relink";
/// The word before the file of a patch.
const PATCH: &str = "patch=";
/// The word before a recipe.
const RECIPE: &str = "recipe=";

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

/// The recipe in a word such as `recipe=sources`: the name of a shipped one, or a file.
pub fn recipe_name(word: &str) -> Option<&str> {
    word.strip_prefix(RECIPE).filter(|name| !name.is_empty())
}

/// A file of the user's that a variant names: what it is, and its path.
pub type VariantFile<'a> = (&'static str, &'a Path);

/// The files of the user's that the words of a variant name. A name of a recipe without `/` and `.`
/// is that of a shipped one.
pub fn files_of_variant(words: &str) -> impl Iterator<Item = VariantFile<'_>> {
    words.split('+').filter_map(|word| {
        let recipe = recipe_name(word).filter(|name| is_recipe_file(name));
        let recipe = recipe.map(|file| ("recipe", Path::new(file)));
        recipe.or_else(|| patch_file(word).map(|file| ("patch", Path::new(file))))
    })
}

/// True if a recipe is a file, and not the name of a shipped one.
pub fn is_recipe_file(name: &str) -> bool {
    name.contains(['/', '.'])
}

/// True for a word that may stand after `+` in a target with sources.
pub fn is_build_word(word: &str) -> bool {
    build_variant(word).is_some()
        || relink_order(word).is_some()
        || patch_file(word).is_some()
        || recipe_name(word).is_some()
}

/// All words that may stand there, for errors.
pub fn build_words() -> String {
    let names = BUILD_VARIANTS.iter().map(|variant| variant.name);
    names.chain(["relinkN", "patch=FILE", "recipe=NAME or FILE"]).collect::<Vec<_>>().join(", ")
}

/// The variant of a word, if it is one.
pub fn build_variant(name: &str) -> Option<&'static BuildVariant> {
    BUILD_VARIANTS.iter().find(|variant| variant.name == name)
}
