//! Errors of a build from sources, with hints.

use std::path::PathBuf;

use rqps_dbms::spec::build_words;
use rqps_model::build::Dbms;

/// The reason why there is no build from sources. Reads after a colon.
#[derive(Debug, thiserror::Error)]
pub enum SourceFault {
    /// git does not trust the repository of somebody else.
    #[error(
        "{} belongs to another user, so git refuses to read it; if you trust it, run `git config \
         --global --add safe.directory {}`",
        folder.display(), folder.display()
    )]
    ForeignRepository {
        /// The folder.
        folder: PathBuf,
    },
    /// The repository has no such commit.
    #[error("{} has no commit {reference}; {note}", folder.display())]
    NoSuchReference {
        /// The folder.
        folder: PathBuf,
        /// The requested reference.
        reference: String,
        /// A way out.
        note: &'static str,
    },
    /// git failed.
    #[error("`git {what}` fails in {}: {said}", folder.display())]
    GitFailed {
        /// The folder.
        folder: PathBuf,
        /// Its command.
        what: String,
        /// Its words.
        said: String,
    },
    /// git cannot be run.
    #[error("git does not run: {said}; install the Debian package git")]
    NoGit {
        /// The message.
        said: String,
    },
    /// A reference into a folder that is no repository.
    #[error(
        "{} is not the top folder of a git repository, so it has no commits; leave out @REF to \
         build its files",
        folder.display()
    )]
    NotARepository {
        /// The folder.
        folder: PathBuf,
    },
    /// The ends of a range do not follow on each other.
    #[error("{last} does not come from {first}, so no commits lie between them; {note}")]
    NotAnAncestor {
        /// The older end.
        first: String,
        /// The newer end.
        last: String,
        /// A way out.
        note: &'static str,
    },
    /// The ends of a range, the newer one first.
    #[error("{first} comes from {last}: swap them, so that the older one is first (--good)")]
    SwappedEnds {
        /// The end that was named first.
        first: String,
        /// The end that was named last.
        last: String,
    },
    /// Files were changed and not committed.
    #[error(
        "{} has changes that are not committed; commit them, or write @HEAD to build the last \
         commit without them",
        folder.display()
    )]
    DirtyTree {
        /// The folder.
        folder: PathBuf,
    },
    /// A word after `+` that means nothing.
    #[error("no variant of builds is called {name:?} (known: {})", build_words())]
    NoBuildVariant {
        /// The word.
        name: String,
    },
    /// The DBMS has no recipe.
    #[error(
        "rqps has no recipe to build {dbms}; name a script with +recipe=FILE, or build it yourself \
         and write {dbms}=PATH"
    )]
    NotFromSources {
        /// The product.
        dbms: Dbms,
    },
    /// No shipped recipe has this name.
    #[error(
        "unknown recipe {name} of {dbms}; shipped recipes: {known}; write the path of a file as \
         +recipe=./{name}"
    )]
    NoSuchRecipe {
        /// The product.
        dbms: Dbms,
        /// The word after `recipe=`.
        name: String,
        /// The names, or `none`.
        known: String,
    },
    /// A recipe that cannot be read.
    #[error("the recipe {name}: {said}")]
    BadRecipe {
        /// Its name or file.
        name: String,
        /// The message.
        said: String,
    },
    /// Programs and libraries that the recipe needs.
    #[error(
        "the recipe {recipe} needs {missing}, which this host lacks; install the Debian packages \
         with `apt-get install {packages}`, or build it yourself and give its tree as DBMS=PATH"
    )]
    Needs {
        /// The name of the recipe.
        recipe: String,
        /// Names of programs and libraries.
        missing: String,
        /// Names of packages.
        packages: String,
    },
    /// A library has no allocator of its own.
    #[error(
        "{dbms} is a library, which takes memory from the allocator of its program; leave out \
         jemalloc and tcmalloc"
    )]
    NoAllocator {
        /// The product.
        dbms: Dbms,
    },
    /// No recipe knows these sources.
    #[error(
        "these are no sources of {dbms} that rqps can build: {lacking}; add what is missing (commit \
         it, where a commit is built), or name a recipe of your own with +recipe=FILE"
    )]
    NoRecipe {
        /// The product.
        dbms: Dbms,
        /// What each recipe looked for in vain.
        lacking: String,
    },
    /// A command of the recipe failed.
    #[error("the build {ended}: {said}; the whole log is {}", log.display())]
    BuildFailed {
        /// "exited with 2".
        ended: String,
        /// The lines that name an error, or the last ones.
        said: String,
        /// The log.
        log: PathBuf,
    },
    /// A patch does not apply.
    #[error(
        "the patch {} does not apply: {said}; make it against these sources with paths as in \
         `git diff` (patch -p1)",
        file.display()
    )]
    PatchFailed {
        /// The file of the patch.
        file: PathBuf,
        /// The words of `patch`.
        said: String,
    },
    /// Objects that cannot be linked in another order.
    #[error("linking {dbms} in another order (relinkN): {reason}")]
    NoRelink {
        /// The product.
        dbms: Dbms,
        /// The reason.
        reason: &'static str,
    },
    /// The disk is full.
    #[error(
        "the disk of {} is full; make room, or name another cache with --cache",
        folder.display()
    )]
    DiskFull {
        /// The folder of the build.
        folder: PathBuf,
    },
    /// The recipe ended well and made no build.
    #[error(
        "the build ended without an error, but it made no {wanted}; its log is {}",
        log.display()
    )]
    NothingBuilt {
        /// The file that is missing.
        wanted: String,
        /// The log.
        log: PathBuf,
    },
}

impl SourceFault {
    /// True if another commit may build where this one does not.
    pub(super) fn is_of_the_build(&self) -> bool {
        matches!(
            self,
            SourceFault::BuildFailed { .. }
                | SourceFault::NoRecipe { .. }
                | SourceFault::NothingBuilt { .. }
                | SourceFault::PatchFailed { .. }
        )
    }
}
