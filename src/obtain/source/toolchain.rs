//! Compiler and flags of a build from sources.

use std::process::Command;

use crate::dbms::spec::{BuildVariant, build_variant};
use crate::obtain::error::Reason;
use crate::obtain::source_fault::SourceFault;
use crate::os::answer;

/// Compilers and flags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Toolchain {
    /// The C compiler.
    pub(super) cc: String,
    /// The C++ compiler.
    pub(super) cxx: String,
    /// Flags for both.
    pub(super) flags: Vec<String>,
    /// The version text of the C compiler, on one line.
    pub(super) reported: String,
}

impl Toolchain {
    /// The toolchain of a variant such as `O3+native`; without one -O2 -g by `cc`.
    pub(super) fn of(variant: Option<&str>) -> Result<Toolchain, Reason> {
        let mut flags: Vec<&str> = vec!["-O2", "-g"];
        let (mut cc, mut cxx) = ("cc", "c++");
        for name in variant.into_iter().flat_map(|names| names.split('+')) {
            let Some(BuildVariant { flags: own, compilers, .. }) = build_variant(name) else {
                return Err(SourceFault::NoBuildVariant { name: name.to_owned() }.into());
            };
            for flag in *own {
                flags.retain(|other| group(other) != group(flag));
                flags.push(flag);
            }
            if let Some((c, cplusplus)) = compilers {
                (cc, cxx) = (c, cplusplus);
            }
        }
        let mut command = Command::new(cc);
        command.arg("--version");
        let package =
            if cc == "clang" { "the Debian package clang" } else { "the Debian package gcc" };
        let missing = |said: String| Reason::MissingProgram {
            program: "a C compiler",
            purpose: format!("to build from sources ({cc})"),
            said,
            package,
        };
        let answer = answer::answer(command).map_err(missing)?;
        let reported = answer.output.lines().next().unwrap_or_default().trim().to_owned();
        Ok(Toolchain {
            cc: cc.to_owned(),
            cxx: cxx.to_owned(),
            flags: flags.into_iter().map(str::to_owned).collect(),
            reported,
        })
    }

    /// Compiler and flags, for manifests.
    pub(super) fn text(&self) -> String {
        format!("{} {}", self.reported, self.flags.join(" "))
    }
}

/// Flags of one group exclude each other.
fn group(flag: &str) -> &str {
    ["-O", "-g", "-march"].into_iter().find(|group| flag.starts_with(group)).unwrap_or(flag)
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
        check(Some("rel"), "-O2 -g0");
        check(Some("gcc+O0"), "-g -O0");
        let said = Toolchain::of(Some("O3+fast")).unwrap_err().to_string();
        assert!(said.contains("fast") && said.contains("rel_withdbg"), "{said}");
    }
}
