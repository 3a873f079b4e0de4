//! A git repository as git itself reads it: references, commits between two, and the files of a
//! commit. Nothing in it is changed: no checkout, no work tree, no index.
//!
//! The configuration of a repository can name programs: filters, fsmonitor, gpg, transports. So in
//! the repository itself git only resolves names. Everything else runs with a configuration of
//! rqps's own, which has the objects of the repository and no more. If rqps is
//! root, git runs as the owner of the repository.

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::client::{Progress, Reason, shortened};
use rqps_host::child::{self, ChildTask, Keeper};
use rqps_host::command_output::{self, CommandOutput, end_group, gather, joined};
use rqps_host::user::{self, User};
use rqps_host::{beneath, confinement};
use rqps_model::{bounded, safe_path};
use rqps_stats::parallel;

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
        let said = command_output::run(trusting(folder)).map_err(missing)?;
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
        // A checkout of a CI job has the branches of its origin only.
        for wanted in [reference, &format!("origin/{reference}")] {
            let wanted = format!("{wanted}^{{commit}}");
            let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", &wanted];
            let said = command_output::run_stranger(self.own.there(&words)).map_err(missing)?;
            if said.success() {
                return Ok(said.output.trim().to_owned());
            }
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
        let said = command_output::run_stranger(command_with(command, &[commit, "--"]))
            .map_err(missing)?;
        if said.success() { Ok(said.output) } else { Err(self.failed("diff", &said.complaint())) }
    }

    /// True if a commit has this file or folder.
    pub(super) fn holds(&self, commit: &str, path: &str) -> Result<bool, Reason> {
        Ok(self.ask(&["cat-file", "-e", &format!("{commit}:{path}")])?.success())
    }

    /// Puts the files of a commit into a folder.
    pub(super) fn export(
        &self,
        commit: &str,
        into: &Path,
        progress: &mut Progress<'_>,
    ) -> Result<(), Reason> {
        let mut child = self
            .command(&["archive", "--format=tar", commit])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(missing)?;
        let (pipe, said) = (child.stdout.take(), gather(child.stderr.take()));
        let unpack = || {
            let Some(pipe) = pipe else { return Ok(0) };
            // All files have the time of the commit, so none looks older than its source.
            let mut archive = tar::Archive::new(pipe.take(MAX_BYTES));
            let unpacked = archive.unpack(into);
            // git pads the archive, and must be able to write all of it.
            unpacked.and_then(|()| io::copy(&mut archive.into_inner(), &mut io::sink()))
        };
        // A pipe in the place of an object has git wait for ever.
        let unpacked = parallel::watched(unpack, || {
            progress
                .tick(|| "reading the sources".to_owned())
                .inspect_err(|_| end_group(&mut child))
        });
        let status = child.wait().map_err(Reason::io("wait for", "git"))?;
        confinement::end_left(child.id());
        let said = joined(said);
        let unpacked = unpacked?;
        if !status.success() && !said.trim().is_empty() {
            return Err(self.failed("archive", &said));
        }
        unpacked.map_err(Reason::io("unpack the sources in", into))?;
        if status.success() { Ok(()) } else { Err(self.failed("archive", "it was stopped")) }
    }

    /// The answer of git.
    fn ask(&self, words: &[&str]) -> Result<CommandOutput, Reason> {
        command_output::run_stranger(self.command(words)).map_err(missing)
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

// A folder that git takes for a repository, with the objects of somebody's repository and a
// configuration of rqps's own.

/// Settings of a repository that decide whether a file was changed, and name no program.
const KEPT: &str = "^core\\.(filemode|autocrlf|symlinks|ignorecase|eol)$";
/// Their values.
const VALUES: [&str; 6] = ["true", "false", "input", "lf", "crlf", "native"];

/// What git asks of a repository before anything else.
const FACTS: [&str; 9] = [
    "--is-shallow-repository", "--git-path", "objects", "--git-path", "index", "--git-path",
    "shallow", "--absolute-git-dir", "--show-toplevel",
];

/// The folder. Dropped, it is removed.
pub(super) struct GitFolder {
    /// That of rqps.
    path: PathBuf,
    keeper: Option<Keeper>,
    /// The folder of sources that the user named.
    sources: PathBuf,
    /// Git runs as this user; `None` for that of rqps.
    owner: Option<User>,
    objects: PathBuf,
    index: PathBuf,
    top: Option<PathBuf>,
    is_shallow: bool,
    /// `core.filemode=false`: kept settings.
    settings: Vec<String>,
}

impl GitFolder {
    /// The one for a repository that git trusts.
    pub(super) fn of(sources: &Path) -> io::Result<GitFolder> {
        // Git reads its objects from a folder elsewhere, by this path.
        let sources = &sources.canonicalize()?;
        let mut made = GitFolder {
            path: PathBuf::new(),
            keeper: None,
            sources: sources.to_owned(),
            owner: owner_of(sources)?,
            objects: PathBuf::new(),
            index: PathBuf::new(),
            top: None,
            is_shallow: false,
            settings: Vec::new(),
        };
        let words: Vec<&str> = std::iter::once("rev-parse").chain(FACTS).collect();
        // Without a work tree the last word fails, and the answers to the others are there.
        let said = command_output::run_stranger(made.there(&words))?;
        let mut lines = said.output.lines();
        let mut next = || lines.next().unwrap_or_default();
        made.is_shallow = next() == "true";
        let [objects, index, shallow] = [(); 3].map(|()| sources.join(next()));
        let git = PathBuf::from(next());
        made.top = lines.next().map(PathBuf::from);
        if made.owner.is_none() {
            made.owner = owner_of(&git)?;
        }
        (made.objects, made.index) = (objects, index);
        made.settings = made.kept_settings()?;
        made.path = new_folder()?;
        made.keeper = Some(Keeper::of(&made.path)?);
        made.fill(&shallow)?;
        Ok(made)
    }

    /// The top of the work tree; `None` if there is none.
    pub(super) fn top(&self) -> Option<&PathBuf> {
        self.top.as_ref()
    }

    fn is_shallow(&self) -> bool {
        self.is_shallow
    }

    /// Writes what makes a folder a repository, then gives it away.
    fn fill(&self, shallow: &Path) -> io::Result<()> {
        let sha256 =
            command_output::run_stranger(self.there(&["rev-parse", "--show-object-format"]));
        let is_sha256 = sha256.is_ok_and(|said| said.output.trim() == "sha256");
        let format = if is_sha256 { "1\n[extensions]\n\tobjectFormat = sha256" } else { "0" };
        let config = format!(
            "[core]\n\trepositoryFormatVersion = {format}\n\
             [gpg]\n\tprogram = /bin/false\n[protocol]\n\tallow = never\n"
        );
        safe_path::new_folder(&self.path.join("refs"), 0o777)?;
        safe_path::new_folder(&self.path.join("objects"), 0o777)?;
        safe_path::write(&self.path.join("HEAD"), "ref: refs/heads/none\n")?;
        safe_path::write(&self.path.join("config"), config)?;
        if self.is_shallow {
            symlink(shallow, self.path.join("shallow"))?;
        }
        // The parts of an index that was split.
        let beside = self.index.parent().map(fs::read_dir);
        for entry in beside.into_iter().flatten().flatten().flatten() {
            if entry.file_name().as_encoded_bytes().starts_with(b"sharedindex.") {
                symlink(entry.path(), self.path.join(entry.file_name()))?;
            }
        }
        let Some(owner) = &self.owner else { return Ok(()) };
        for name in ["refs", "objects", "HEAD", "config", ""] {
            lchown(self.path.join(name), Some(owner.uid), Some(owner.gid))?;
        }
        Ok(())
    }

    /// Reads the settings that are kept.
    fn kept_settings(&self) -> io::Result<Vec<String>> {
        let said = command_output::run_stranger(self.there(&["config", "--get-regexp", KEPT]));
        let text = said?.output;
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        let pairs = pairs.filter(|(_, value)| VALUES.contains(value));
        Ok(pairs.map(|(name, value)| format!("{name}={value}")).collect())
    }

    /// git in the repository itself, to which only names and settings are to be asked.
    pub(super) fn there(&self, words: &[&str]) -> Command {
        let mut command = hardened();
        command.arg("-C").arg(&self.sources).args(words);
        if let Some(owner) = &self.owner {
            command.env("HOME", "/nonexistent");
            child::become_user(&mut command, owner.identity());
        }
        command
    }

    /// git with the objects of the repository and nothing else of it.
    pub(super) fn command(&self) -> Command {
        let mut command = hardened();
        command.env_remove("HOME").env_remove("XDG_CONFIG_HOME");
        command.env("HOME", &self.path).env("GIT_ATTR_NOSYSTEM", "1");
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        command.env("GIT_OBJECT_DIRECTORY", &self.objects).env("GIT_INDEX_FILE", &self.index);
        command.arg("--git-dir").arg(&self.path);
        for setting in &self.settings {
            command.arg("-c").arg(setting);
        }
        command.current_dir("/");
        if let Some(owner) = &self.owner {
            child::become_user(&mut command, owner.identity());
        }
        command
    }
}

impl Drop for GitFolder {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            // What stays goes with this process.
            let owner = self.owner.as_ref().map(User::identity);
            let _ = beneath::remove_made(&self.path, owner);
        }
    }
}

/// git that runs no program of a repository's choice and fetches nothing.
fn hardened() -> Command {
    let mut command = child::command("git", ChildTask::Repository);
    command.env("LC_ALL", "C").env("GIT_TERMINAL_PROMPT", "0").env("GIT_OPTIONAL_LOCKS", "0");
    command.env("GIT_ALLOW_PROTOCOL", "none").env("GIT_NO_LAZY_FETCH", "1");
    command.env("GIT_NO_REPLACE_OBJECTS", "1").env("GIT_PAGER", "cat").env("GIT_EDITOR", "false");
    command.args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"]);
    command
}

/// Has git say whether this user trusts the repository of a folder.
fn trusting(folder: &Path) -> Command {
    let mut command = hardened();
    command.arg("-C").arg(folder).args(["rev-parse", "--git-dir"]);
    command
}

/// The owner of a folder, if rqps is root and somebody else owns it.
fn owner_of(folder: &Path) -> io::Result<Option<User>> {
    let facts = fs::metadata(folder)?;
    let is_other = user::is_root() && facts.uid() != 0;
    let (uid, gid) = (facts.uid(), facts.gid());
    Ok(is_other.then(|| User { name: uid.to_string(), uid, gid }))
}

/// Makes a folder that nobody else can enter or foresee.
fn new_folder() -> io::Result<PathBuf> {
    let path = Path::new("/tmp").join(format!("rqps-git-{}", user::name()?));
    safe_path::new_folder(&path, 0o700)?;
    Ok(path)
}

// The commit that a name means in a git repository, read from its files: git itself runs programs
// that the configuration of a repository names, and nobody has allowed these yet. Only for a name
// that takes a walk, as HEAD~1, git is asked, which resolves it and does nothing else.

/// Bytes of the longest list of references that is read.
const BYTES_MOST: u64 = 16 << 20;

/// Links from one reference to the next.
const LINKS_MOST: u32 = 5;

/// The commit of a reference, or of HEAD; `None` if there is none.
pub fn commit_of(folder: &Path, reference: Option<&str>) -> Option<String> {
    looked_up(folder, reference)
        .or_else(|| Repository::of(folder).ok().flatten()?.resolve(reference?).ok())
}

/// As [`commit_of`], without git; `None` if it takes more than looking it up.
fn looked_up(folder: &Path, reference: Option<&str>) -> Option<String> {
    let name = reference.unwrap_or("HEAD");
    if is_commit(name) {
        return Some(name.to_owned());
    }
    let folder = folder.canonicalize().ok()?;
    let repository = folder.ancestors().find_map(repository_folder)?;
    // References of a work tree that git has added stand in the repository that it belongs to.
    let common = file_text(&repository.join("commondir")).map(|path| repository.join(path.trim()));
    let places = [Some(repository), common];
    let forms = ["", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"];
    forms.iter().find_map(|form| look_up(&places, &format!("{form}{name}"), LINKS_MOST))
}

fn is_commit(name: &str) -> bool {
    name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn repository_folder(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    if let Some(said) = file_text(&git) {
        return Some(folder.join(said.trim().strip_prefix("gitdir: ")?));
    }
    let is_bare = folder.join("HEAD").is_file() && folder.join("objects").is_dir();
    is_bare.then(|| folder.to_owned())
}

fn look_up(places: &[Option<PathBuf>], name: &str, links: u32) -> Option<String> {
    if name.split('/').any(|part| part == "..") || name.starts_with('/') {
        return None;
    }
    let found = places.iter().flatten().find_map(|place| {
        file_text(&place.join(name)).or_else(|| {
            let packed = file_text(&place.join("packed-refs"))?;
            let line = packed.lines().find(|line| line.split(' ').nth(1) == Some(name))?;
            line.split(' ').next().map(str::to_owned)
        })
    })?;
    match found.trim().strip_prefix("ref: ") {
        Some(next) if links > 0 => look_up(places, next, links - 1),
        Some(_) => None,
        None => Some(found.trim().to_owned()).filter(|found| is_commit(found)),
    }
}

fn file_text(path: &Path) -> Option<String> {
    let mut text = String::new();
    bounded::plain(path).ok()?.take(BYTES_MOST).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use rqps_host::child::{self, ChildTask};
    use rqps_host::command_output;

    #[test]
    fn a_name_is_looked_up_without_git() {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path().join(".git");
        fs::create_dir_all(git.join("refs/heads")).unwrap();
        fs::create_dir_all(folder.path().join("sub")).unwrap();
        let [one, two] = ["1", "2"].map(|digit| digit.repeat(40));
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(git.join("refs/heads/main"), format!("{one}\n")).unwrap();
        fs::write(git.join("packed-refs"), format!("# x\n{two} refs/tags/v1\n")).unwrap();
        let check = |name: Option<&str>, expected: Option<&str>| {
            assert_eq!(
                looked_up(&folder.path().join("sub"), name).as_deref(),
                expected,
                "{name:?}"
            );
        };
        check(None, Some(&one));
        check(Some("main"), Some(&one));
        check(Some("v1"), Some(&two));
        check(Some(&two), Some(&two));
        check(Some("HEAD~3"), None);
        check(Some("../../x"), None);
        fs::write(git.join("HEAD"), "ref: HEAD\n").unwrap();
        check(None, None);
    }

    #[test]
    fn a_name_that_takes_a_walk_is_a_commit_too() {
        let folder = tempfile::tempdir().unwrap();
        let git = |words: &[&str]| {
            let mut command = child::command("git", ChildTask::Work);
            command.arg("-C").arg(folder.path()).args(["-c", "user.name=a", "-c", "user.email=a"]);
            command_output::run({
                command.args(words);
                command
            })
            .unwrap()
            .output
        };
        git(&["init", "-q"]);
        git(&["commit", "-q", "--allow-empty", "-m", "one"]);
        let one = git(&["rev-parse", "HEAD"]);
        git(&["commit", "-q", "--allow-empty", "-m", "two"]);
        assert_eq!(one.trim().len(), 40);
        assert_eq!(commit_of(folder.path(), Some("HEAD~1")).as_deref(), Some(one.trim()));
        assert_eq!(commit_of(folder.path(), Some("HEAD~9")), None);
    }
}
