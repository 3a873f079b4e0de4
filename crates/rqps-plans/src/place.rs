//! The place of private servers and files: new, removed at the end.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use rqps_dbms::{ControlPlane, Interrupt, Site, UserConfigs, config, control_plane};
use rqps_host::beneath::FreshFolder;
use rqps_host::secret;
use rqps_host::user::{self, User};
use rqps_model::build::Build;
use rqps_model::config::Config;

/// The parent of data folders if the user names none: servers of another user reach it.
const USUAL: &str = "/var/tmp";

/// The parent of the folder of sockets, whose paths must be short.
const SHORT: &str = "/tmp";

/// All may pass through, and not look around: servers run as another user.
const PASSABLE: u32 = 0o711;

/// Time limit for a start or for making a data folder.
const START: Duration = Duration::from_secs(300);

/// Cache of a private server: it holds no data.
const CACHE_BYTES: u64 = 128 << 20;

/// A new folder for data and one for sockets. Dropped after all servers in it.
#[derive(Debug)]
pub struct PrivatePlace {
    folder: FreshFolder,
    sockets: FreshFolder,
    /// The program of rqps itself, which has wardens as a hidden subcommand.
    pub program: PathBuf,
    /// The user of servers and libraries, if rqps runs as root.
    pub run_as: Option<User>,
    /// Ends all waiting.
    pub interrupt: Interrupt,
}

impl PrivatePlace {
    /// Makes both folders, the first below `work` if the user names one.
    ///
    /// # Errors
    /// A folder cannot be made, or root finds no user for servers.
    pub fn make(
        work: Option<&Path>,
        program: PathBuf,
        interrupt: Interrupt,
    ) -> Result<PrivatePlace> {
        let run_as = user::choose(None)?;
        let fresh = |parent: &Path| {
            let name = format!("rqps-plans-{}", secret::name().unwrap_or_default());
            let path = parent.join(name);
            let made = FreshFolder::take(&path, PASSABLE);
            made.with_context(|| format!("make the folder {}", path.display()))
        };
        let parent = match work {
            Some(work) => {
                std::path::absolute(work).with_context(|| format!("find {}", work.display()))?
            }
            None => PathBuf::from(USUAL),
        };
        let folder = fresh(&parent)?;
        Ok(PrivatePlace { folder, sockets: fresh(Path::new(SHORT))?, program, run_as, interrupt })
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.folder().path().join(name)
    }

    /// A new folder that the user of servers owns.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn open_folder(&self, name: &str) -> Result<PathBuf> {
        let doing = || format!("make the folder {}", self.path(name).display());
        let folder = self.folder.folder().make(OsStr::new(name), 0o700).with_context(doing)?;
        if let Some(user) = &self.run_as {
            folder.give(user.identity()).with_context(doing)?;
        }
        Ok(self.path(name))
    }

    /// The control plane of a private server, which has yet to make its data folder.
    ///
    /// # Errors
    /// The build is none that rqps can run.
    pub fn server(
        &self,
        build: &Build,
        name: &str,
        settings: &str,
    ) -> Result<Box<dyn ControlPlane>> {
        let manifest = &build.manifest;
        let own = UserConfigs::default();
        let shipped = config::load_for_own_statements(
            manifest.dbms, "default", &own, &manifest.version, CACHE_BYTES,
        )?;
        let text = format!("{}{settings}", shipped.text);
        let config = Config { name: "plans".to_owned(), hash: config::hash(&text), text };
        let site = Site {
            build: build.clone(),
            accepted: None,
            config,
            data: self.path(name),
            logs: self.path(&format!("{name}-logs")),
            sockets: self.sockets.folder().path().join(name),
            storage_engine: None,
            run_as: self.run_as.clone(),
            memory_group: None,
            listen: None,
            callgrind: None,
            still: true,
            warden_program: self.program.clone(),
            start_timeout: START,
            interrupt: self.interrupt.clone(),
        };
        Ok(control_plane(site)?)
    }
}

impl Drop for PrivatePlace {
    fn drop(&mut self) {
        // What cannot be removed lies in a folder for temporary files.
        self.folder.remove().ok();
        self.sockets.remove().ok();
    }
}
