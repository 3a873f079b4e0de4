//! A server for both programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rqps_builds as obtain;
use rqps_builds::Said;
use rqps_dbms::{self as dbms, ControlPlane, Interrupt, SettleLoad, Site, config};
use rqps_host::{affinity, user};
use rqps_lab::lab;
use rqps_lab::plan;
use rqps_model::build::Target;
use rqps_model::build::{Build, BuildSource};
use rqps_model::dialect::Dialect;
use rqps_model::endpoint::{Address, Endpoint, Login};
use tempfile::TempDir;

use super::RQPS;

/// A running server. Dropping this value stops it.
pub(crate) struct Subject {
    pub(crate) label: String,
    pub(crate) dialect: Dialect,
    /// The server's version string.
    pub(crate) version: String,
    control: Box<dyn ControlPlane>,
    stop: Arc<AtomicBool>,
    // Removed after the server has stopped.
    folder: TempDir,
    _sockets: TempDir,
}

/// The named targets with their builds.
pub(crate) fn builds(
    targets: &[String],
    cache: &Path,
    say: &mut dyn FnMut(&str),
) -> Result<Vec<(Target, Build)>> {
    let cache = lab::open_cache(cache)?;
    let mut found = Vec::new();
    for target in plan::words::targets(targets)? {
        let speaks = matches!(target.dbms.dialect(), Dialect::Postgres | Dialect::Mysql);
        if !speaks || matches!(target.source, BuildSource::Dsn(_)) {
            bail!("compare on {}: only servers that are started here will do", target.label);
        }
        let mut hear = |said: Said<'_>| say(said.text());
        let build = obtain::obtain(target.dbms, &target.source, &cache, &mut hear)
            .with_context(|| format!("obtain {}", target.label))?;
        found.push((target, build));
    }
    Ok(found)
}

impl Subject {
    /// Initializes a data folder in `work` and starts the server on it.
    pub(crate) fn start(
        target: &Target,
        build: &Build,
        work: &Path,
        cache_bytes: u64,
        stop: &Arc<AtomicBool>,
    ) -> Result<Subject> {
        let run_as = user::choose(None)?;
        let folder = private_folder(work)?;
        let sockets = private_folder(Path::new("/tmp"))?;
        let (data, logs) = (folder.path().join("data"), folder.path().join("logs"));
        fs::create_dir(&logs).with_context(|| format!("make {}", logs.display()))?;
        let version = &build.manifest.version;
        let site = Site {
            accepted: None,
            build: build.clone(),
            config: config::load(
                target.dbms,
                &target.config,
                &Default::default(),
                version,
                cache_bytes,
            )?,
            data,
            logs,
            sockets: sockets.path().join("s"),
            storage_engine: target.storage_engine.clone(),
            run_as,
            memory_group: None,
            callgrind: None,
            still: false,
            listen: None,
            warden_program: RQPS.into(),
            start_timeout: Duration::from_secs(120),
            interrupt: Interrupt(Arc::clone(stop)),
        };
        let mut control = dbms::control_plane(site)?;
        control.init()?;
        control.start()?;
        Ok(Subject {
            label: target.label.clone(),
            dialect: target.dbms.dialect(),
            version: control.reported_version()?,
            control,
            stop: Arc::clone(stop),
            folder,
            _sockets: sockets,
        })
    }

    /// Fails if Ctrl-C was pressed or the server has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            bail!("go on: stopped by the user");
        }
        Ok(self.control.check()?)
    }

    /// The socket and the login.
    pub(crate) fn socket(&self) -> Result<(PathBuf, Login)> {
        match self.control.endpoint() {
            (Endpoint::Server(Address::Unix(path)), login) => Ok((path, login)),
            (other, _) => bail!("reach {} over a unix socket: it is at {other:?}", self.label),
        }
    }

    /// The endpoint for the driver.
    pub(crate) fn endpoint(&self) -> (Endpoint, Login, Vec<String>) {
        let (endpoint, login) = self.control.endpoint();
        (endpoint, login, self.control.session_setup(false))
    }

    /// Root process of the server.
    pub(crate) fn pid(&self) -> Result<u32> {
        self.control.server_pid().with_context(|| format!("find the process of {}", self.label))
    }

    /// Removes pins of an earlier run: MySQL gives threads to new connections.
    pub(crate) fn unpin(&self) -> Result<()> {
        Ok(affinity::pin_tree(self.pid()?, &affinity::allowed_cpus())?)
    }

    /// The folder of a driver that runs a script. It goes with the subject's, however the driver
    /// ends.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.folder.path().join("scratch")
    }

    /// Does the lab's work before a load.
    pub(crate) fn before_load(&mut self) -> Result<()> {
        Ok(self.control.before_load()?)
    }

    /// Does the lab's work after a load.
    pub(crate) fn after_load(&mut self) -> Result<()> {
        Ok(self.control.after_load()?)
    }

    /// Maintenance after writes, without the published wait.
    pub(crate) fn settle(&mut self, rows: u64) -> Result<()> {
        let table = "sbtest{table}".to_owned();
        let load = SettleLoad { tables: 1, rows_total: rows, table, scale: 0.0 };
        Ok(self.control.settle(&load, &mut |_: &str| {})?)
    }

    /// Shuts the server down regularly.
    pub(crate) fn stop(mut self) -> Result<()> {
        Ok(self.control.stop()?)
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        // After an error or Ctrl-C. Stopping a stopped server does nothing.
        self.control.stop().ok();
    }
}

/// A temporary folder that a server of another user can access.
fn private_folder(parent: &Path) -> Result<TempDir> {
    let folder = tempfile::Builder::new()
        .prefix("rqps-bench-")
        .tempdir_in(parent)
        .with_context(|| format!("make a folder in {}", parent.display()))?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))
        .with_context(|| format!("open {} to the server", folder.path().display()))?;
    Ok(folder)
}
