//! Recipes for builds from sources: shipped ones, and those that a user brings as a file, which is
//! TOML like the shipped ones, or a script.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::client::{Progress, Reason, shortened};
use crate::inspect;
use crate::source::{Toolchain, compile};
use rqps_dbms::spec::{self, is_recipe_file, recipe_name};
use rqps_host::beneath;
use rqps_host::child::{self, ChildTask};
use rqps_host::command_output::{self, PATIENCE};
use rqps_host::user::User;
use rqps_model::build::{Dbms, Version};
use rqps_model::{bounded, safe_path, units};
use rqps_text::{toml_reader, without_comments};

/// Endings of files of C and C++.
const C_ENDINGS: [&str; 8] = ["c", "h", "cc", "cpp", "cxx", "hpp", "hh", "ic"];

/// The way from a kind of source tree to a build.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(super) struct Recipe {
    /// Its name in errors.
    #[serde(skip)]
    pub(super) name: String,
    /// Files that a tree of this kind has.
    #[serde(default)]
    pub(super) marks: Vec<String>,
    /// Lines for `sh -e`, run in a copy of the sources. They see CC, CXX, CFLAGS, CXXFLAGS,
    /// LDFLAGS, JOBS, PREFIX (where the build will be) and DEST (an empty folder, which becomes the
    /// build; or what is in `DEST/PREFIX` does, as after `make install` with DESTDIR).
    pub(super) lines: Vec<String>,
    /// Lines that link the same objects once more, after all other lines, with the linker script
    /// ORDER, which names functions in another order; empty where rqps cannot.
    #[serde(default)]
    pub(super) relink: Vec<String>,
    /// Programs that must be there, with the Debian package of each.
    #[serde(default)]
    pub(super) needs: BTreeMap<String, String>,
    /// Programs that must be there if the sources lack a file, such as one that bison makes and a
    /// release has: by that file.
    #[serde(default)]
    pub(super) without: BTreeMap<String, BTreeMap<String, String>>,
    /// Libraries that must be there, as pkg-config calls them, with the Debian package of each.
    #[serde(default)]
    pub(super) libraries: BTreeMap<String, String>,
    /// The place of the version of a library whose own file does not tell it.
    #[serde(default)]
    pub(super) version: Option<SourceVersion>,
    /// Folders and files of the sources that cannot change the build: a path below one of them, or
    /// with this ending after `*`.
    #[serde(default)]
    idle: Vec<String>,
    /// True if `lines` compile no more than what depends on files with a new time, headers among
    /// them.
    #[serde(default)]
    pub(super) incremental: bool,
    /// Files of the sources whose comments the build reads.
    #[serde(default)]
    commented: Vec<String>,
    /// The script of the user that the only line runs, as RECIPE.
    #[serde(skip)]
    pub(super) script: Option<String>,
}

/// The place of the version in the sources.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub(super) struct SourceVersion {
    /// The file, a header of C.
    pub(super) file: String,
    /// The macros of its parts.
    macros: Vec<String>,
}

impl SourceVersion {
    /// The version in the text of the file; `None` if a macro is missing or is no number.
    pub(super) fn read(&self, text: &str) -> Option<Version> {
        let part = |name: &String| {
            let line = text.lines().find(|line| line.contains(&format!("define {name} ")))?;
            line.split_whitespace().last()?.parse::<u32>().ok().map(|part| part.to_string())
        };
        let parts: Vec<String> = self.macros.iter().map(part).collect::<Option<_>>()?;
        Some(Version::new(parts.join(".")))
    }
}

impl Recipe {
    /// The recipes that may know some sources: that of `recipe=` among the words of a variant, else
    /// all shipped ones.
    ///
    /// # Errors
    /// None is shipped, none has this name, or the file of the user cannot be read.
    pub(super) fn candidates(dbms: Dbms, variant: Option<&str>) -> Result<Vec<Recipe>, Reason> {
        let shipped = spec::of(dbms).map_or(&[][..], |spec| spec.recipes);
        let asked = variant.into_iter().flat_map(|words| words.split('+')).find_map(recipe_name);
        match asked {
            None if shipped.is_empty() => Err(Reason::Setup(format!(
                "rqps has no recipe to build {dbms}; name a script with +recipe=FILE, or build it \
                 yourself and write {dbms}=PATH"
            ))),
            None => shipped.iter().map(|(name, text)| Recipe::parse(name, text)).collect(),
            Some(asked) if is_recipe_file(asked) => Ok(vec![Recipe::read(Path::new(asked))?]),
            Some(asked) => match shipped.iter().find(|(name, _)| *name == asked) {
                Some((name, text)) => Ok(vec![Recipe::parse(name, text)?]),
                None => {
                    let known: Vec<&str> = shipped.iter().map(|(name, _)| *name).collect();
                    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                    Err(Reason::Setup(format!(
                        "unknown recipe {asked} of {dbms}; shipped recipes: {known}; write the \
                         path of a file as +recipe=./{asked}"
                    )))
                }
            },
        }
    }

    /// The recipe in a file of the user.
    fn read(file: &Path) -> Result<Recipe, Reason> {
        let text = bounded::text(file, bounded::WRITTEN_MAX)
            .map_err(Reason::io("read the recipe", file))?;
        let name = file.display().to_string();
        if file.extension().is_some_and(|ending| ending == "toml") {
            return Recipe::parse(&name, &text);
        }
        // The kernel starts a script with a first line of its own.
        let line = if text.starts_with("#!") { "\"$RECIPE\"" } else { "sh -e \"$RECIPE\"" };
        Ok(Recipe { name, lines: vec![line.to_owned()], script: Some(text), ..Recipe::default() })
    }

    fn parse(name: &str, text: &str) -> Result<Recipe, Reason> {
        let bad = |said: String| Reason::Setup(format!("the recipe {name}: {said}"));
        let recipe: Recipe = toml_reader::read(text).map_err(|error| bad(error.to_string()))?;
        Ok(Recipe { name: name.to_owned(), ..recipe })
    }

    /// The files of the sources that decide whether it fits and what it needs.
    pub(super) fn looks_for(&self) -> impl Iterator<Item = &String> {
        self.marks.iter().chain(self.without.keys())
    }

    /// Programs that it needs for sources with these files, with the Debian package of each.
    pub(super) fn programs(&self, present: &BTreeSet<String>) -> BTreeMap<&str, &str> {
        let without = self.without.iter().filter(|(file, _)| !present.contains(*file));
        let all = std::iter::once(&self.needs).chain(without.map(|(_, programs)| programs));
        all.flatten().map(|(name, package)| (name.as_str(), package.as_str())).collect()
    }

    /// All that decides about the build.
    pub(super) fn inputs(&self, with_relink: bool) -> impl Iterator<Item = &String> {
        let relink = if with_relink { self.relink.as_slice() } else { &[] };
        self.lines.iter().chain(relink).chain(&self.script)
    }

    /// True for a file whose change makes a build compile what depends on it, or matters to none.
    /// `stays` is true if both states of the sources have it.
    pub(super) fn is_followed(&self, file: &Path, stays: bool) -> bool {
        let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        stays && C_ENDINGS.contains(&ending) || self.is_idle(&file.to_string_lossy())
    }

    /// The hash of all that decides about the code of a build, but for patches, which are in the
    /// sources: not comments of C and C++, and not what no build depends on. `None` for a recipe of
    /// the user's, which may read comments.
    pub(super) fn hash_of_code(
        &self,
        toolchain: &Toolchain,
        sources: &Path,
        progress: &mut Progress<'_>,
    ) -> Result<Option<String>, Reason> {
        if is_recipe_file(&self.name) {
            return Ok(None);
        }
        let mut hash = Sha256::new();
        let unpatched = Toolchain { patches: Vec::new(), ..toolchain.clone() };
        hash.update(unpatched.text());
        self.inputs(false).for_each(|input| hash.update(Sha256::digest(input)));
        for path in compile::source_files(sources)? {
            let name = path.strip_prefix(sources).unwrap_or(&path).to_string_lossy();
            if self.is_idle(&name) {
                continue;
            }
            let reading = || Reason::io("read", &path);
            let mut content = Vec::new();
            if path.is_symlink() {
                let target = fs::read_link(&path).map_err(reading())?;
                content.extend_from_slice(target.as_os_str().as_encoded_bytes());
            } else {
                let mut file = beneath::open_without_links(&path).map_err(reading())?;
                file.read_to_end(&mut content).map_err(reading())?;
            }
            let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
            if C_ENDINGS.contains(&ending) && !self.commented.iter().any(|file| *file == name) {
                content = without_comments(&content);
            }
            hash.update(Sha256::digest(name.as_bytes()));
            hash.update(Sha256::digest(content));
            progress.tick(|| "reading the sources".to_owned())?;
        }
        Ok(Some(units::hex(&hash.finalize())))
    }

    /// True if a file of the sources cannot change the build.
    fn is_idle(&self, path: &str) -> bool {
        self.idle.iter().any(|idle| match idle.strip_prefix('*') {
            Some(ending) => path.ends_with(ending),
            None => path.strip_prefix(idle.as_str()).is_some_and(|rest| {
                rest.is_empty() || idle.ends_with('/') || rest.starts_with('/')
            }),
        })
    }
}

/// Files of sources that no build of a DBMS depends on.
pub struct IdleFiles(Vec<Recipe>);

impl IdleFiles {
    /// Those of a DBMS and a variant.
    ///
    /// # Errors
    /// No recipe is there, or it cannot be read.
    pub fn of(dbms: Dbms, variant: Option<&str>) -> Result<IdleFiles, Reason> {
        Recipe::candidates(dbms, variant).map(IdleFiles)
    }

    /// True for a path in the repository that is one of them.
    pub fn has(&self, path: &str) -> bool {
        self.0.iter().all(|recipe| recipe.is_idle(path))
    }
}

// Applies patches to a copy of the sources.

/// Checks that the program is there, if there is a patch.
pub(super) fn check_patches(patches: &[PathBuf]) -> Result<(), Reason> {
    if patches.is_empty() {
        return Ok(());
    }
    let mut command = child::command("patch", ChildTask::Work);
    command.arg("--version");
    command_output::run(command).map(|_| ()).map_err(no_patch)
}

fn no_patch(error: io::Error) -> Reason {
    let purpose = "to apply a patch to sources";
    Reason::missing_program("patch", purpose, error, "the Debian package patch")
}

/// Applies patches in their order, with paths as `git diff` writes them. A patch may have `patch`
/// run an editor, so it runs as the user that builds.
pub(super) fn apply_patches(
    patches: &[PathBuf],
    sources: &Path,
    user: Option<&User>,
) -> Result<(), Reason> {
    for file in patches {
        let text = bounded::plain(file).map_err(Reason::io("read the patch", file))?;
        let mut command = child::command("patch", ChildTask::Work);
        command.args(["-p1", "--batch", "--forward"]).current_dir(sources);
        if let Some(user) = user {
            child::become_user(&mut command, user.identity());
        }
        let answer = command_output::run_with(command, text.into(), PATIENCE).map_err(no_patch)?;
        if !answer.success() {
            let said = [&answer.output, &answer.errors];
            let said = said.into_iter().flat_map(|text| text.lines()).map(str::trim);
            let told = said.filter(|line| !line.is_empty() && !line.starts_with("patching file"));
            let said = told.take(3).map(shortened).collect::<Vec<_>>().join("; ");
            return Err(Reason::Build(format!(
                "the patch {} does not apply: {said}; make it against these sources with paths \
                 as in `git diff` (patch -p1)",
                file.display()
            )));
        }
    }
    Ok(())
}

// The functions of a build in another order. Compilers put each function into a section of its
// own (`-ffunction-sections`); a linker script then names all of them in a shuffled order.

/// Writes the linker script of an order of the functions in all objects below a folder. An order
/// is the same on every host: functions are sorted by the hash of their name and its number.
pub(super) fn write_order(
    dbms: Dbms,
    objects: &Path,
    order: u32,
    script: &Path,
) -> Result<(), Reason> {
    let mut found = BTreeSet::new();
    // Who built them may still change them: no link is followed below.
    let objects = objects.canonicalize().map_err(Reason::io("find", objects))?;
    for path in compile::source_files(&objects)?.into_iter().filter(|path| !path.is_symlink()) {
        if path.extension().is_some_and(|ending| ending == "o") {
            found.extend(inspect::elf_functions(&path).map_err(Reason::io("read", &path))?);
        }
    }
    if found.len() < 2 {
        let reason = "the objects have no sections of functions; leave out lto";
        return Err(Reason::no_relink(dbms, reason));
    }
    let text = text(shuffled(found, order));
    safe_path::write(script, text).map_err(Reason::io("write", script))
}

fn shuffled(names: BTreeSet<String>, order: u32) -> Vec<String> {
    let mut keyed: Vec<([u8; 32], String)> = names
        .into_iter()
        .map(|name| {
            let mut hash = Sha256::new();
            hash.update(order.to_le_bytes());
            hash.update(&name);
            (hash.finalize().into(), name)
        })
        .collect();
    keyed.sort();
    keyed.into_iter().map(|(_, name)| name).collect()
}

/// GNU ld, gold and lld put the sections of an inserted statement before those of the script that
/// they have by default.
fn text(sections: Vec<String>) -> String {
    let lines: String = sections.iter().map(|name| format!("    *({name})\n")).collect();
    format!("SECTIONS {{\n  .text.reordered : {{\n{lines}  }}\n}}\nINSERT BEFORE .text;\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_cannot_matter() {
        let idle = ["doc", "test/", "README", "*.md"].map(str::to_owned).to_vec();
        let recipe = Recipe { idle, ..Recipe::default() };
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

    #[test]
    fn shipped_recipes_can_be_read() {
        let mut count = 0;
        for spec in spec::ALL {
            for (name, text) in spec.recipes {
                let recipe = Recipe::parse(name, text).unwrap_or_else(|error| panic!("{error}"));
                assert!(!recipe.lines.is_empty() && !recipe.marks.is_empty(), "{name}");
                assert!(!recipe.idle.is_empty(), "{name}");
                count += 1;
            }
        }
        assert!(count >= 6);
        let all = Recipe::candidates(Dbms::Sqlite, Some("O3+recipe=sources")).unwrap();
        assert_eq!(all.iter().map(|recipe| recipe.name.as_str()).collect::<Vec<_>>(), ["sources"]);
        assert!(all[0].needs.contains_key("tclsh"));
    }

    #[test]
    fn a_checkout_needs_programs_that_a_release_does_not() {
        let recipe = Recipe::candidates(Dbms::Postgres, None).unwrap().remove(0);
        let check = |made: &str, expected: &[&str]| {
            let programs = recipe.programs(&BTreeSet::from([made.to_owned()]));
            assert_eq!(programs.into_keys().collect::<Vec<_>>(), expected, "{made}");
        };
        check("src/backend/parser/gram.c", &["make"]);
        check("src/backend/parser/gram.y", &["bison", "flex", "make", "perl"]);
        assert!(recipe.looks_for().any(|file| file.ends_with("gram.c")));
    }

    #[test]
    fn the_version_is_in_the_header() {
        let all = Recipe::candidates(Dbms::Rocksdb, None).unwrap();
        let known = all[0].version.clone().unwrap();
        let text = "#pragma once\n#define ROCKSDB_MAJOR 10\n#define ROCKSDB_MINOR 6\n\
                    #define ROCKSDB_PATCH 2\n";
        assert_eq!(known.read(text), Some(Version::new("10.6.2")));
        assert_eq!(known.read("#define ROCKSDB_MAJOR 10"), None);
    }

    #[test]
    fn errors_name_the_file_and_the_place() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("own.toml");
        let check = |text: &str, expected: &[&str]| {
            fs::write(&file, text).unwrap();
            let word = format!("recipe={}", file.display());
            let said = Recipe::candidates(Dbms::Fake, Some(&word)).unwrap_err().to_string();
            for part in expected.iter().chain(&["own.toml"]) {
                assert!(said.contains(part), "{part}: {said}");
            }
        };
        check("lines = \"make\"\n", &["line 1, column 9", "expected a sequence"]);
        check("marks = []\n", &["missing field `lines`"]);
        check(
            "lines = []\nneed = []\n",
            &["line 2, column 1: unknown key `need`, expected one of `marks`, `lines`"],
        );
        fs::remove_file(&file).unwrap();
        let word = format!("recipe={}", file.display());
        let said = Recipe::candidates(Dbms::Fake, Some(&word)).unwrap_err().to_string();
        assert!(said.contains("read the recipe") && said.contains("own.toml"), "{said}");
        let said = Recipe::candidates(Dbms::Sqlite, Some("recipe=meson")).unwrap_err().to_string();
        assert!(said.contains("meson") && said.contains("amalgamation, sources"), "{said}");
        let said = Recipe::candidates(Dbms::Fake, None).unwrap_err().to_string();
        assert!(said.contains("recipe=FILE"), "{said}");
    }

    #[test]
    fn each_number_is_an_order_of_its_own() {
        let names = || ('a'..='z').map(|name| format!(".text.{name}")).collect();
        let (first, again, other) =
            (shuffled(names(), 1), shuffled(names(), 1), shuffled(names(), 2));
        assert_eq!(first, again);
        assert_ne!(first, other);
        let all = |list: &[String]| list.iter().cloned().collect::<BTreeSet<_>>();
        assert_eq!((all(&first), all(&other)), (names(), names()));
        // The hash of the bytes 1, 0, 0, 0 and the name decides, by sha256sum.
        assert!(first.iter().position(|name| name == ".text.a").is_some_and(|at| at < 26));
        let script = text(first);
        assert!(script.contains("*(.text.a)") && script.ends_with("INSERT BEFORE .text;\n"));
    }
}
