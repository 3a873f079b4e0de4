//! The folder for the sockets of ssh. It goes with the process that made it, however that ends.

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::{fs, io};

use anyhow::{Context, Result, bail};

use rqps_host::child::{self, ChildTask};
use rqps_model::units::short_hash;

/// The folder above it, with a short path.
const PARENT: &str = "/tmp";
/// Waits until this process is gone, and then until the last connection has left the folder; a
/// connection that nobody uses ends by itself. One that was killed has left its socket.
const KEEPER: &str = "read -r nothing; tries=0; \
                      while [ -d \"$0\" ] && [ $tries -lt 60 ]; do \
                      for socket in \"$0\"/*; do \
                      grep -qF \"$socket\" /proc/net/unix || rm -f \"$socket\"; done; \
                      rmdir \"$0\" 2> /dev/null || sleep 5; tries=$((tries + 1)); done";

/// A folder that is there as long as this, or a connection in it, lives.
pub(in crate::lab) struct SocketFolder {
    path: PathBuf,
    keeper: Child,
}

impl SocketFolder {
    /// Makes a private folder, named after `of`. Its path is short, because the name of a socket
    /// ends at 107 bytes; anybody who may enter it could use the connections.
    ///
    /// # Errors
    /// The folder cannot be created, or it belongs to another user.
    pub(in crate::lab) fn make(of: &[u8]) -> Result<SocketFolder> {
        let path = Path::new(PARENT).join(format!("rqps-ssh-{}", short_hash(of)));
        let what = || format!("make {}", path.display());
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let there = fs::symlink_metadata(&path).with_context(what)?;
                let own = there.uid() == rustix::process::geteuid().as_raw();
                if !there.is_dir() || !own || there.mode() & 0o077 != 0 {
                    bail!("{}: another user owns it\nhint: remove it", what());
                }
            }
            made => made.with_context(what)?,
        }
        let mut command = child::command("sh", ChildTask::Work);
        command.args(["-c", KEEPER]).arg(&path);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let keeper = command.spawn().context("start sh")?;
        Ok(SocketFolder { path, keeper })
    }

    pub(in crate::lab) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        match fs::remove_dir(&self.path) {
            Ok(()) => {
                self.keeper.kill().ok();
                self.keeper.wait().ok();
            }
            // A connection has not ended yet: the keeper waits for it.
            Err(_) => drop(self.keeper.stdin.take()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn the_folder_goes_with_its_process_or_with_the_last_connection() {
        let folder = SocketFolder::make(b"a test of sockets: dropped").expect("a folder");
        let path = folder.path().to_owned();
        assert!(path.is_dir());
        drop(folder);
        assert!(!path.exists());
        // As with a process that is killed: only its end of the pipe closes.
        let mut folder = SocketFolder::make(b"a test of sockets: killed").expect("a folder");
        // As a connection that is killed leaves it.
        drop(UnixListener::bind(folder.path.join("socket")).expect("a socket"));
        drop(folder.keeper.stdin.take());
        folder.keeper.wait().expect("its end");
        assert!(!folder.path().exists());
    }
}
