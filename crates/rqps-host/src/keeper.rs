//! Removes a new folder when this process is gone, however it went: a second Ctrl-C, or a kill.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::beneath::FreshFolder;
use crate::child::{self, ChildTask};

/// Waits for the end of its input, and removes the folder, unless that is gone. Servers in it may
/// need a moment to end. It follows no link, and nobody else can put one in the place of the folder.
const KEEPER: &str = "read -r nothing; tries=0; \
                      while [ -d \"$0\" ] && [ $tries -lt 60 ]; do \
                      rm -rf --one-file-system -- \"$0\" 2> /dev/null || sleep 1; \
                      tries=$((tries + 1)); done";

/// The process that does so. Dropping it has it look.
#[derive(Debug)]
pub struct Keeper {
    process: Child,
    folder: PathBuf,
}

impl Keeper {
    /// Starts it for a folder that this process alone has made, or is about to make.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn of(folder: &Path) -> io::Result<Keeper> {
        let mut command = child::command("sh", ChildTask::Work);
        command.args(["-c", KEEPER]).arg(folder).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Keeper { process: command.spawn()?, folder: folder.to_owned() })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        // Otherwise it goes on alone.
        if !self.folder.exists() {
            let _ = self.process.wait();
        }
    }
}

/// A new folder, which goes with this process.
#[derive(Debug)]
pub struct KeptFolder {
    folder: FreshFolder,
    _keeper: Keeper,
}

impl KeptFolder {
    /// Makes it.
    ///
    /// # Errors
    /// It cannot be made, or is not empty.
    pub fn make(path: &Path, mode: u32) -> io::Result<KeptFolder> {
        let folder = FreshFolder::take(path, mode)?;
        let keeper = Keeper::of(path);
        if keeper.is_err() {
            folder.remove()?;
        }
        Ok(KeptFolder { folder, _keeper: keeper? })
    }

    /// The folder.
    pub fn folder(&self) -> &FreshFolder {
        &self.folder
    }
}

impl Drop for KeptFolder {
    fn drop(&mut self) {
        // The keeper tries again.
        let _ = self.folder.remove();
    }
}
