//! Compiler and flags of a build from sources.

use std::path::PathBuf;

use crate::error::Reason;
use rqps_dbms::spec::{
    BuildVariant, build_variant, build_words, patch_file, recipe_name, relink_order,
};
use rqps_host::child::{self, ChildTask};
use rqps_host::command_output;

/// Compilers and flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Toolchain {
    /// The C compiler.
    pub(super) cc: String,
    /// The C++ compiler.
    pub(super) cxx: String,
    /// Flags for both.
    pub(super) flags: Vec<String>,
    /// The library that replaces malloc, and its Debian package.
    pub(super) allocator: Option<(&'static str, &'static str)>,
    /// The version text of the C compiler, on one line.
    pub(super) reported: String,
    /// The number of the order in which functions are linked; `None` for that of the compiler.
    pub(super) order: Option<u32>,
    /// Patches to the sources, in their order.
    pub(super) patches: Vec<PathBuf>,
}

impl Toolchain {
    /// The toolchain of a variant such as `O3+native`; without one -O2 -g by `cc`.
    pub(super) fn of(variant: Option<&str>) -> Result<Toolchain, Reason> {
        let mut flags: Vec<&str> = vec!["-O2", "-g"];
        let (mut cc, mut cxx) = ("cc", "c++");
        let (mut order, mut patches, mut allocator) = (None, Vec::new(), None);
        for name in variant.into_iter().flat_map(|names| names.split('+')) {
            if let Some(file) = patch_file(name) {
                patches.push(PathBuf::from(file));
                continue;
            }
            if let Some(number) = relink_order(name) {
                order = Some(number);
                flags.push("-ffunction-sections");
                continue;
            }
            if recipe_name(name).is_some() {
                continue;
            }
            let Some(found) = build_variant(name) else {
                return Err(Reason::Setup(format!(
                    "no variant of builds is called {name:?} (known: {})",
                    build_words()
                )));
            };
            let BuildVariant { flags: own, compilers, allocator: library, .. } = found;
            allocator = library.or(allocator);
            for flag in *own {
                flags.retain(|other| group(other) != group(flag));
                flags.push(flag);
            }
            if let Some((c, cplusplus)) = compilers {
                (cc, cxx) = (c, cplusplus);
            }
        }
        let mut command = child::command(cc, ChildTask::Work);
        command.arg("--version");
        let package =
            if cc == "clang" { "the Debian package clang" } else { "the Debian package gcc" };
        let purpose = format!("to build from sources ({cc})");
        let answer = command_output::run(command)
            .map_err(|error| Reason::missing_program("a C compiler", &purpose, error, package))?;
        let reported = answer.output.lines().next().unwrap_or_default().trim().to_owned();
        Ok(Toolchain {
            cc: cc.to_owned(),
            cxx: cxx.to_owned(),
            flags: flags.into_iter().map(str::to_owned).collect(),
            allocator,
            reported,
            order,
            patches,
        })
    }

    /// The flags of the linker. The library comes before libc in the list of each program, so its
    /// malloc is taken, as with LD_PRELOAD.
    pub(super) fn link_flags(&self) -> String {
        self.allocator.map_or_else(String::new, |(library, _)| {
            format!("-Wl,--push-state,--no-as-needed -l:{library} -Wl,--pop-state")
        })
    }

    /// Compiler, flags, allocator, order of linking and patches, for manifests.
    pub(super) fn text(&self) -> String {
        let order = self.order.map(|order| format!(", functions in order {order}"));
        let patches = self.patches.iter().map(|file| {
            format!(", patch {}", file.file_name().unwrap_or_default().to_string_lossy())
        });
        let patches: String = patches.collect();
        let allocator = self.allocator.map(|(library, _)| format!(", {library}"));
        let (flags, allocator) = (self.flags.join(" "), allocator.unwrap_or_default());
        format!("{} {flags}{allocator}{}{patches}", self.reported, order.unwrap_or_default())
    }
}

/// The flag that excludes `-fomit-frame-pointer`.
const FRAME_POINTER: &str = "-fno-omit-frame-pointer";

/// Flags of one group exclude each other.
fn group(flag: &str) -> &str {
    let groups = ["-O", "-g", "-march", FRAME_POINTER];
    let flag = if flag == "-fomit-frame-pointer" { FRAME_POINTER } else { flag };
    groups.into_iter().find(|group| flag.starts_with(group)).unwrap_or(flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_flags_replace_those_of_their_group() {
        let check = |variant: Option<&str>, expected: &str| {
            let found = Toolchain::of(variant).unwrap();
            assert_eq!(found.flags.join(" "), expected, "{variant:?}");
            assert!(found.text().starts_with(&found.reported) && !found.reported.is_empty());
        };
        check(None, "-O2 -g");
        check(Some("O3+native"), "-g -O3 -march=native");
        check(Some("rel"), "-O3 -g0");
        check(Some("rel_native_lto"), "-O3 -g0 -march=native -flto");
        check(Some("o2nofp"), "-g -O2 -fno-omit-frame-pointer");
        check(Some("o2nofp+omitfp"), "-g -O2 -fomit-frame-pointer");
        check(Some("gcc+O0"), "-g -O0");
        check(Some("O3+relink7+patch=../a.diff"), "-g -O3 -ffunction-sections");
        check(Some("recipe=sources+jemalloc"), "-O2 -g");
        let found = Toolchain::of(Some("tcmalloc+rel_o2+jemalloc")).unwrap();
        assert!(found.text().ends_with("-O2 -g0, libjemalloc.so.2"), "{}", found.text());
        assert!(found.link_flags().contains("-l:libjemalloc.so.2"));
        let found = Toolchain::of(Some("O3+relink7+patch=../a.diff")).unwrap();
        assert!(found.text().ends_with("-ffunction-sections, functions in order 7, patch a.diff"));
        // Published results mean the opposite of what this word said here.
        assert!(Toolchain::of(Some("nofp")).is_err());
        let said = Toolchain::of(Some("O3+fast")).unwrap_err().to_string();
        assert!(said.contains("fast") && said.contains("rel_withdbg"), "{said}");
    }
}
