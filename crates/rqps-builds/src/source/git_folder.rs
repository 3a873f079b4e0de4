//! A folder that git takes for a repository, with the objects of somebody's repository and a
//! configuration of rqps's own.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use rqps_host::child::{self, ChildTask};
use rqps_host::user::{self, User};
use rqps_host::{beneath, command_output, secret};

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
        let said = command_output::run(made.there(&words))?;
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
        made.fill(&shallow)?;
        Ok(made)
    }

    /// The top of the work tree; `None` if there is none.
    pub(super) fn top(&self) -> Option<&PathBuf> {
        self.top.as_ref()
    }

    pub(super) fn is_shallow(&self) -> bool {
        self.is_shallow
    }

    /// Writes what makes a folder a repository, then gives it away.
    fn fill(&self, shallow: &Path) -> io::Result<()> {
        let sha256 = command_output::run(self.there(&["rev-parse", "--show-object-format"]));
        let is_sha256 = sha256.is_ok_and(|said| said.output.trim() == "sha256");
        let format = if is_sha256 { "1\n[extensions]\n\tobjectFormat = sha256" } else { "0" };
        let config = format!(
            "[core]\n\trepositoryFormatVersion = {format}\n\
             [gpg]\n\tprogram = /bin/false\n[protocol]\n\tallow = never\n"
        );
        fs::create_dir(self.path.join("refs"))?;
        fs::create_dir(self.path.join("objects"))?;
        File::create_new(self.path.join("HEAD"))?.write_all(b"ref: refs/heads/none\n")?;
        File::create_new(self.path.join("config"))?.write_all(config.as_bytes())?;
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
        let said = command_output::run(self.there(&["config", "--get-regexp", KEPT]));
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
            // What stays takes four small files of /tmp.
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
pub(super) fn trusting(folder: &Path) -> Command {
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
    let path = Path::new("/tmp").join(format!("rqps-git-{}", secret::name()?));
    fs::DirBuilder::new().mode(0o700).create(&path)?;
    Ok(path)
}
