//! A host that is ready to run this rqps.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::link::SshLink;
use super::shell_word;
use crate::lab::progress::Progress;
use rqps_host::host;

/// A host that has this rqps.
pub(in crate::lab) struct PreparedHost {
    pub(in crate::lab) link: SshLink,
    /// Folder there for rqps and what it needs, from the root.
    pub(in crate::lab) folder: String,
    /// The program there, as a word of a shell.
    pub(in crate::lab) program: String,
}

impl PreparedHost {
    /// Reaches a host and brings it the program, by its name, unless it has it.
    ///
    /// # Errors
    /// The host cannot be reached, or rqps does not run there.
    pub(in crate::lab) fn open(
        (host, config, sockets): (&str, Option<&Path>, &Path),
        (program, name): (&Path, &str),
        progress: &mut Progress<'_>,
    ) -> Result<PreparedHost> {
        progress.doing(host, "connect", None);
        let link = SshLink::open(host, config, sockets)?;
        let prepared = check_machine(&link).and_then(|()| {
            let folder = home(&link)?;
            let there = bring_program(&link, &folder, (program, name), progress)?;
            Ok((folder, there))
        });
        match prepared {
            Ok((folder, program)) => Ok(PreparedHost { link, folder, program }),
            Err(error) => {
                // Close it now: nobody else can, and its socket would keep the folder.
                link.close();
                Err(error)
            }
        }
    }
}

/// Looks whether a host can run this program.
///
/// # Errors
/// It is of another architecture.
pub(in crate::lab) fn check_machine(link: &SshLink) -> Result<()> {
    let (machine, here) = (link.run("uname -m")?, host::machine());
    if machine.trim() == here {
        Ok(())
    } else {
        bail!("measure on {}: it is {}, and this rqps is for {here}", link.host, machine.trim())
    }
}

/// The folder for rqps on a host: in the cache of the user there.
fn home(link: &SshLink) -> Result<String> {
    let script = "folder=${XDG_CACHE_HOME:-$HOME/.cache}/rqps/hosts; umask 077; \
                  mkdir -p \"$folder\" && cd \"$folder\" && pwd";
    Ok(link.run(script)?.trim().to_owned())
}

/// Copies rqps, unless the host has the same one. Returns it as a word of a shell.
fn bring_program(
    link: &SshLink,
    folder: &str,
    (program, name): (&Path, &str),
    progress: &mut Progress<'_>,
) -> Result<String> {
    let path = shell_word(&format!("{folder}/{name}"));
    let there = link.run(&format!("if [ -x {path} ]; then echo yes; fi"))?;
    if there.trim().is_empty() {
        progress.doing(&link.host, "copy rqps", None);
        let partial = shell_word(&format!("{folder}/.{name}.{}", std::process::id()));
        let script = format!("cat > {partial} && chmod 755 {partial} && mv {partial} {path}");
        link.send_file(&script, program)?;
    }
    let said = link
        .run(&format!("{path} --version"))
        .with_context(|| format!("run rqps on {}", link.host))?;
    let own = env!("CARGO_PKG_VERSION");
    if said.split_whitespace().nth(1) != Some(own) {
        bail!(
            "use {folder}/{name} on {}: it is {}, and this is rqps {own}\nhint: remove that file",
            link.host,
            said.trim()
        );
    }
    Ok(path)
}
