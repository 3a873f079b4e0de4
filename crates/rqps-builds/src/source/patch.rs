//! Applies patches to a copy of the sources.

use std::io;
use std::path::{Path, PathBuf};

use crate::client::shortened;
use crate::error::Reason;
use rqps_host::child::{self, ChildTask};
use rqps_host::command_output::{self, PATIENCE};
use rqps_host::user::User;
use rqps_model::bounded;

/// Checks that the program is there, if there is a patch.
pub(super) fn check(patches: &[PathBuf]) -> Result<(), Reason> {
    if patches.is_empty() {
        return Ok(());
    }
    let mut command = child::command("patch", ChildTask::Work);
    command.arg("--version");
    command_output::run(command).map(|_| ()).map_err(missing)
}

fn missing(error: io::Error) -> Reason {
    let purpose = "to apply a patch to sources";
    Reason::missing_program("patch", purpose, error, "the Debian package patch")
}

/// Applies patches in their order, with paths as `git diff` writes them. A patch may have `patch`
/// run an editor, so it runs as the user that builds.
pub(super) fn apply(
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
        let answer = command_output::run_with(command, text.into(), PATIENCE).map_err(missing)?;
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
