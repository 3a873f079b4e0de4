//! Running a package client of the host to its end, with words while it works and an end when the
//! user wants one.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::cache::Cache;
use crate::fetch;
use rqps_dbms::spec::{self, DbmsSpec};
use rqps_host::command_output::{CommandOutput, end_group, gather, joined};
use rqps_model::build::Dbms;

/// Time between two looks at a running client.
const POLL: Duration = Duration::from_millis(20);

/// What a package client is asked for.
pub(super) struct Fetch<'a> {
    /// The program, or its path.
    pub(super) client: &'a Path,
    /// The package.
    pub(super) coordinates: &'a str,
    /// For messages.
    pub(super) dbms: Dbms,
    /// An empty folder.
    pub(super) into: &'a Path,
}

impl Fetch<'_> {
    fn client(&self) -> String {
        self.client.display().to_string()
    }

    pub(super) fn no_network(&self, said: &str) -> Reason {
        let said = shortened(said);
        Reason::Network { client: self.client(), said, dbms: self.dbms }
    }

    pub(super) fn no_such_version(&self) -> Reason {
        let coordinates = self.coordinates.to_owned();
        Reason::NoSuchVersion { dbms: self.dbms, coordinates }
    }

    pub(super) fn failed(&self, ended: &str, said: &str) -> Reason {
        Reason::ClientFailed {
            client: self.client(),
            ended: ended.to_owned(),
            coordinates: self.coordinates.to_owned(),
            said: shortened(said),
        }
    }
}

/// The first line with one of these words; the earlier words count first.
pub(super) fn line_with<'a>(said: &'a str, words: &[&str]) -> Option<&'a str> {
    words.iter().find_map(|words| said.lines().find(|line| line.contains(words)))
}

/// Runs a client to its end; `text` says each second what it is doing. `package` is the Debian
/// package that has the client, for the error when it is missing.
pub(super) fn run(
    command: &mut Command,
    package: &'static str,
    dbms: Dbms,
    progress: &mut Progress<'_>,
    text: impl Fn() -> String,
) -> Result<CommandOutput, Reason> {
    let mut child = start(command, package, dbms)?;
    let output = gather(child.stdout.take());
    let errors = gather(child.stderr.take());
    let status = wait(&mut child, command, progress, &text)?;
    if !status.success() {
        // Ctrl-C reaches the client too, and it may be the first to end.
        progress.check()?;
    }
    Ok(CommandOutput { status, output: joined(output), errors: joined(errors) })
}

/// Starts a client with nothing to read and both its streams piped.
pub(super) fn start(
    command: &mut Command,
    package: &'static str,
    dbms: Dbms,
) -> Result<Child, Reason> {
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    spawned.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            let client = command.get_program().to_string_lossy().into_owned();
            Reason::ClientMissing { client, package, dbms }
        }
        _ => Reason::io("run", command.get_program())(error),
    })
}

/// Waits for the client; ends it if the caller wants to stop.
pub(super) fn wait(
    child: &mut Child,
    command: &Command,
    progress: &mut Progress<'_>,
    text: &impl Fn() -> String,
) -> Result<ExitStatus, Reason> {
    loop {
        let ended = child.try_wait().map_err(Reason::io("wait for", command.get_program()))?;
        if let Some(status) = ended {
            return Ok(status);
        }
        if let Err(stopped) = progress.tick(text) {
            end(child);
            return Err(stopped);
        }
        std::thread::sleep(POLL);
    }
}

/// Ends a client at once. It may have ended by itself in the meantime, which is as good.
pub(super) fn end(child: &mut Child) {
    end_group(child);
}

/// At most 300 characters of a line.
pub(super) fn shortened(line: &str) -> String {
    let line = line.trim();
    match line.char_indices().nth(300) {
        Some((end, _)) => format!("{} …", &line[..end]),
        None => line.to_string(),
    }
}

// The programs of the user that fetch builds.

/// The programs that fetch, and the wish to stop them. Each is a name to look for on the path, or a
/// path.
#[derive(Clone, Debug)]
pub struct PackageClients {
    /// Maven.
    pub mvn: PathBuf,
    /// Debian's apt-get; apt-config of the same package lies beside it.
    pub apt_get: PathBuf,
    /// Debian's dpkg-deb.
    pub dpkg_deb: PathBuf,
    /// Python's pip.
    pub pip: PathBuf,
    /// The file in which the package debian-archive-keyring has Debian's keys.
    pub debian_keyring: PathBuf,
    /// The SHA-256 that a package must have; `None` for one that nobody has looked at.
    pub pinned: fn(&str) -> Option<&'static str>,
    /// Set to true (by a signal handler, from another thread) to end a fetch: the client is
    /// killed, nothing is kept, the error says [`Reason::Stopped`](crate::Reason::Stopped).
    pub stop: Arc<AtomicBool>,
}

impl Default for PackageClients {
    fn default() -> PackageClients {
        PackageClients {
            mvn: PathBuf::from("mvn"),
            apt_get: PathBuf::from("apt-get"),
            dpkg_deb: PathBuf::from("dpkg-deb"),
            pip: PathBuf::from("pip3"),
            debian_keyring: PathBuf::from("/usr/share/keyrings/debian-archive-keyring.gpg"),
            pinned: fetch::pinned,
            stop: Arc::new(AtomicBool::new(false)),
        }
    }
}

/// With what, and where to.
pub(super) struct Tools<'a> {
    pub(super) clients: &'a PackageClients,
    pub(super) cache: &'a Cache,
}

// Words to the user while something takes long, and the wish to stop.

/// Time between two progress messages.
const EVERY: Duration = Duration::from_secs(1);

/// A message of a fetch to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// A fact that the user should see later, too.
    Note(&'a str),
    /// A piece of work begins that may take long.
    Begins(&'a str),
    /// It goes on. Comes once per second.
    GoesOn(&'a str),
}

impl<'a> Said<'a> {
    /// The words.
    pub fn text(self) -> &'a str {
        match self {
            Said::Note(text) | Said::Begins(text) | Said::GoesOn(text) => text,
        }
    }
}

/// What hears the messages of a fetch.
pub type Hear<'a> = dyn FnMut(Said<'_>) + 'a;

/// Carries messages to the caller, and the caller's stop request to the worker.
pub(super) struct Progress<'a> {
    hear: &'a mut Hear<'a>,
    stop: &'a AtomicBool,
    started: Instant,
    last: Instant,
}

impl<'a> Progress<'a> {
    pub(super) fn new(hear: &'a mut Hear<'_>, stop: &'a AtomicBool) -> Progress<'a> {
        let now = Instant::now();
        Progress { hear, stop, started: now, last: now }
    }

    /// A fact that the user should see later, too.
    pub(super) fn note(&mut self, text: &str) {
        (self.hear)(Said::Note(text));
    }

    /// A piece of work begins.
    pub(super) fn begin(&mut self, text: &str) {
        self.started = Instant::now();
        self.last = self.started;
        (self.hear)(Said::Begins(text));
    }

    /// The work goes on: at most once per second the text goes out, with the seconds since
    /// [`Progress::begin`]. An error if the caller wants to stop.
    pub(super) fn tick(&mut self, text: impl FnOnce() -> String) -> Result<(), Reason> {
        self.check()?;
        if self.last.elapsed() >= EVERY {
            self.last = Instant::now();
            let seconds = self.started.elapsed().as_secs();
            (self.hear)(Said::GoesOn(&format!("{}, {seconds} s", text())));
        }
        Ok(())
    }

    /// An error if the caller wants to stop.
    pub(super) fn check(&self) -> Result<(), Reason> {
        if self.stop.load(Ordering::Relaxed) { Err(Reason::Stopped) } else { Ok(()) }
    }
}

// Errors of obtaining a build, with hints.

/// The reason why a build is not available. Reads after "failed to".
#[derive(Debug, thiserror::Error)]
pub enum ObtainError {
    /// The cache folder cannot be used.
    #[error(
        "open the cache of builds {}: {source}; name another folder with --cache or \
         RQPS_CACHE",
        root.display()
    )]
    Cache {
        /// The folder.
        root: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// One build is not available.
    #[error("obtain {target}: {reason}")]
    Build {
        /// The target word: `mysql@8.0.33`, `postgres=/opt/pg`.
        target: String,
        /// The reason, with a way out.
        reason: Box<Reason>,
    },
}

fn installed(dbms: Dbms) -> &'static str {
    match spec::of(dbms).and_then(DbmsSpec::library) {
        Some(_) => "a shared library",
        None => "an installed tree",
    }
}

/// Why a build cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// The repository has no such package.
    #[error(
        "no package {coordinates} exists; `rqps builds {dbms}` lists available versions, and \
         {dbms}=PATH takes {}", installed(*dbms)
    )]
    NoSuchVersion {
        /// The product.
        dbms: Dbms,
        /// What was asked for.
        coordinates: String,
    },
    /// The package client is not installed.
    #[error(
        "fetching this build needs the program {client}: install it (Debian package {package}), or \
         name an installed tree with {dbms}=PATH"
    )]
    ClientMissing {
        /// The program.
        client: String,
        /// Its package in Debian.
        package: &'static str,
        /// The product.
        dbms: Dbms,
    },
    /// The package client reached no repository.
    #[error(
        "{client} could not reach its package repository: {said}; check the network, and the proxy \
         and mirror in {client}'s settings, or name an installed tree with {dbms}=PATH"
    )]
    Network {
        /// The program.
        client: String,
        /// Its words.
        said: String,
        /// The product.
        dbms: Dbms,
    },
    /// The package client failed for another reason.
    #[error("{client} {ended} while fetching {coordinates}: {said}")]
    ClientFailed {
        /// The program.
        client: String,
        /// How it ended.
        ended: String,
        /// What was asked for.
        coordinates: String,
        /// Its words.
        said: String,
    },
    /// There is no such build, or it is not what it ought to be.
    #[error("{0}")]
    Build(String),
    /// Something of this host or in the request stands in the way of any build.
    #[error("{0}")]
    Setup(String),
    /// The user ended it.
    #[error("stopped; the cache is unchanged")]
    Stopped,
    /// A file or program cannot be used.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// What was attempted.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl Reason {
    /// True if another version may be had where this one cannot: not without its package client,
    /// a network or a cache that can be written.
    pub fn is_of_the_build(&self) -> bool {
        match self {
            Reason::NoSuchVersion { .. } | Reason::ClientFailed { .. } | Reason::Build(_) => true,
            Reason::ClientMissing { .. }
            | Reason::Network { .. }
            | Reason::Setup(_)
            | Reason::Stopped
            | Reason::Io { .. } => false,
        }
    }

    pub(super) fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Reason {
        let path = path.into();
        move |source| Reason::Io { doing, path, source }
    }

    pub(super) fn missing_program(
        program: &str,
        purpose: &str,
        said: impl Display,
        package: &str,
    ) -> Reason {
        Reason::Build(format!(
            "{program}, needed {purpose}, does not run here: {said}; install {package}"
        ))
    }

    pub(super) fn other_dbms(path: &Path, dbms: Dbms, found: Dbms) -> Reason {
        let path = path.display();
        Reason::Build(format!("{path} is {found}, not {dbms}: write {found}={path}"))
    }

    pub(super) fn no_repository(folder: &Path) -> Reason {
        Reason::Setup(format!(
            "{} is not the top folder of a git repository, so it has no commits; leave out @REF \
             to build its files",
            folder.display()
        ))
    }

    pub(super) fn no_relink(dbms: Dbms, reason: &str) -> Reason {
        Reason::Setup(format!("linking {dbms} in another order (relinkN): {reason}"))
    }
}

/// The path without links.
pub(super) fn real(path: &Path) -> Result<PathBuf, Reason> {
    path.canonicalize().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Reason::Build(format!("{} does not exist", path.display())),
        _ => Reason::io("find", path)(error),
    })
}
