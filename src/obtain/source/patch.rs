//! Applies patches to a copy of the sources.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::obtain::client::shortened;
use crate::obtain::error::Reason;
use crate::obtain::source_fault::SourceFault;
use crate::os::answer;

/// Applies patches in their order, with paths as `git diff` writes them.
pub(super) fn apply(patches: &[PathBuf], sources: &Path) -> Result<(), Reason> {
    for file in patches {
        let whole = file.canonicalize().map_err(Reason::io("find the patch", file))?;
        let mut command = Command::new("patch");
        command.args(["-p1", "--batch", "--forward", "--input"]).arg(whole).current_dir(sources);
        let answer = answer::answer(command).map_err(|said| Reason::MissingProgram {
            program: "patch",
            purpose: "to apply a patch to sources".to_owned(),
            said,
            package: "the Debian package patch",
        })?;
        if !answer.success {
            let said = [&answer.output, &answer.errors];
            let said = said.into_iter().flat_map(|text| text.lines()).map(str::trim);
            let told = said.filter(|line| !line.is_empty() && !line.starts_with("patching file"));
            let said = told.take(3).map(shortened).collect::<Vec<_>>().join("; ");
            return Err(SourceFault::PatchFailed { file: file.clone(), said }.into());
        }
    }
    Ok(())
}
