//! A git repository as git itself reads it: references, commits between two, and the files of a
//! commit. Nothing in it is changed: no checkout, no work tree, no index.
//!
//! The configuration of a repository can name programs: filters, fsmonitor, gpg, transports. So in
//! the repository itself git only resolves names. Everything else runs with a configuration of
//! rqps's own, which has the objects of the repository and no more (`git_folder.rs`). If rqps is
//! root, git runs as the owner of the repository.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use super::git_folder::{self, GitFolder};
use crate::client::shortened;
use crate::error::Reason;
use rqps_host::command_output::{self, CommandOutput, gather, joined};

/// No commit has more files, in bytes.
const MAX_BYTES: u64 = 32 << 30;

/// A commit between two others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its id, 40 hexadecimal digits.
    pub id: String,
    /// The day it was committed.
    pub date: String,
    /// The first line of its message.
    pub subject: String,
    /// The files that differ from its first parent.
    pub paths: Vec<String>,
    /// Number of its parents.
    pub parents: usize,
}

/// A repository.
pub(super) struct Repository<'a> {
    folder: &'a Path,
    own: GitFolder,
}

impl<'a> Repository<'a> {
    /// The repository of a folder; `None` if it belongs to none.
    pub(super) fn of(folder: &'a Path) -> Result<Option<Repository<'a>>, Reason> {
        // Git refuses a repository of another user whom nobody has declared safe.
        let said = command_output::run(git_folder::trusting(folder)).map_err(missing)?;
        if !said.success() {
            if said.errors.contains("dubious ownership") {
                let folder = folder.display();
                return Err(Reason::Setup(format!(
                    "{folder} belongs to another user, so git refuses to read it; if you trust \
                     it, run `git config --global --add safe.directory {folder}`"
                )));
            }
            return Ok(None);
        }
        let own = GitFolder::of(folder).map_err(missing)?;
        // A folder of sources in somebody's repository is no repository of its own.
        let is_top = own.top().is_none_or(|top| folder.canonicalize().is_ok_and(|it| it == *top));
        Ok(is_top.then_some(Repository { folder, own }))
    }

    /// The id of the commit that a reference means.
    pub(super) fn resolve(&self, reference: &str) -> Result<String, Reason> {
        let unknown = |note: &'static str| {
            let folder = self.folder.display();
            Reason::Setup(format!("{folder} has no commit {reference}; {note}"))
        };
        if reference.starts_with('-') {
            return Err(unknown("a reference does not begin with -"));
        }
        let wanted = format!("{reference}^{{commit}}");
        let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted];
        let said = command_output::run(self.own.there(&words)).map_err(missing)?;
        if said.success() {
            return Ok(said.output.trim().to_owned());
        }
        Err(unknown(self.shallow_note()))
    }

    /// A note for missing objects if the repository is shallow.
    fn shallow_note(&self) -> &'static str {
        if self.own.is_shallow() {
            "the repository is a shallow clone: `git fetch --unshallow` gets the other commits"
        } else {
            "`git log --all --oneline` lists those there are"
        }
    }

    /// True if files that git knows differ from those of this commit.
    pub(super) fn is_dirty(&self, commit: &str) -> Result<bool, Reason> {
        Ok(!self.diff(commit, "--name-only")?.trim().is_empty())
    }

    /// How files that git knows differ from those of this commit, as a patch.
    pub(super) fn changes(&self, commit: &str) -> Result<String, Reason> {
        self.diff(commit, "--no-textconv")
    }

    fn diff(&self, commit: &str, form: &str) -> Result<String, Reason> {
        if self.own.top().is_none() {
            return Ok(String::new());
        }
        let mut command = self.own.command();
        command.arg("--work-tree").arg(self.folder);
        // Modules in it have a configuration of their own, too.
        command.args(["diff", form, "--no-ext-diff", "--ignore-submodules=dirty"]);
        let said = command_output::run(command_with(command, &[commit, "--"])).map_err(missing)?;
        if said.success() { Ok(said.output) } else { Err(self.failed("diff", &said.complaint())) }
    }

    /// True if a commit has this file or folder.
    pub(super) fn holds(&self, commit: &str, path: &str) -> Result<bool, Reason> {
        Ok(self.ask(&["cat-file", "-e", &format!("{commit}:{path}")])?.success())
    }

    /// Puts the files of a commit into a folder.
    pub(super) fn export(&self, commit: &str, into: &Path) -> Result<(), Reason> {
        let mut child = self
            .command(&["archive", "--format=tar", commit])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(missing)?;
        let said = gather(child.stderr.take());
        let unpacked = match child.stdout.take() {
            Some(pipe) => {
                // All files have the time of the commit, so none looks older than its source.
                let mut archive = tar::Archive::new(pipe.take(MAX_BYTES));
                let unpacked = archive.unpack(into);
                // git pads the archive, and must be able to write all of it.
                unpacked.and_then(|()| io::copy(&mut archive.into_inner(), &mut io::sink()))
            }
            None => Ok(0),
        };
        let status = child.wait().map_err(Reason::io("wait for", "git"))?;
        let said = joined(said);
        if !status.success() && !said.trim().is_empty() {
            return Err(self.failed("archive", &said));
        }
        unpacked.map_err(Reason::io("unpack the sources in", into))?;
        if status.success() { Ok(()) } else { Err(self.failed("archive", "it was stopped")) }
    }

    /// The answer of git.
    fn ask(&self, words: &[&str]) -> Result<CommandOutput, Reason> {
        command_output::run(self.command(words)).map_err(missing)
    }

    /// The output of git, if it succeeds.
    fn checked(&self, words: &[&str]) -> Result<String, Reason> {
        let said = self.ask(words)?;
        if said.success() { Ok(said.output) } else { Err(self.failed(words[0], &said.complaint())) }
    }

    fn failed(&self, what: &str, said: &str) -> Reason {
        let said = shortened(said.trim());
        Reason::Setup(format!("`git {what}` fails in {}: {said}", self.folder.display()))
    }

    fn command(&self, words: &[&str]) -> Command {
        command_with(self.own.command(), words)
    }
}

fn command_with(mut command: Command, words: &[&str]) -> Command {
    command.args(words);
    command
}

fn missing(error: io::Error) -> Reason {
    Reason::Setup(format!("git does not run: {error}; install the Debian package git"))
}

/// The commits after `first` up to `last` along first parents, the oldest first.
///
/// # Errors
/// No repository, unknown references, or a `first` that `last` does not come from.
pub fn commits(folder: &Path, first: &str, last: &str) -> Result<(String, Vec<Commit>), Reason> {
    let repository = Repository::of(folder)?.ok_or_else(|| Reason::no_repository(folder))?;
    let [first, last] = [repository.resolve(first)?, repository.resolve(last)?];
    let ancestor = repository.ask(&["merge-base", "--is-ancestor", &first, &last])?;
    if !ancestor.success() {
        if repository.ask(&["merge-base", "--is-ancestor", &last, &first])?.success() {
            let short = |id: &str| id.get(..12).unwrap_or(id).to_owned();
            let (first, last) = (short(&first), short(&last));
            return Err(Reason::Setup(format!(
                "{first} comes from {last}: swap them, so that the older one is first (--good)"
            )));
        }
        let note = repository.shallow_note();
        return Err(Reason::Setup(format!(
            "{last} does not come from {first}, so no commits lie between them; {note}"
        )));
    }
    let range = format!("{first}..{last}");
    // Records begin with 1, fields are separated by 0x1f, and the files follow line by line.
    let text = repository.checked(&[
        "log",
        "--first-parent",
        "--diff-merges=first-parent",
        "--reverse",
        "--no-renames",
        "--name-only",
        "--format=%x01%H%x1f%cs%x1f%P%x1f%s",
        &range,
    ])?;
    Ok((first, text.split('\u{1}').filter_map(commit).collect()))
}

/// One record of the log.
pub(crate) fn commit(record: &str) -> Option<Commit> {
    let mut lines = record.lines();
    let mut fields = lines.next()?.split('\u{1f}');
    let (id, date) = (fields.next()?.to_owned(), fields.next()?.to_owned());
    let parents = fields.next()?.split_whitespace().count();
    let subject = fields.next().unwrap_or_default().to_owned();
    let paths = lines.filter(|line| !line.is_empty()).map(str::to_owned).collect();
    Some(Commit { id, date, subject, paths, parents })
}
