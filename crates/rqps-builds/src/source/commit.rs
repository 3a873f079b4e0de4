//! The commit that a name means in a git repository, read from its files: git itself runs programs
//! that the configuration of a repository names, and nobody has allowed these yet. Only for a name
//! that takes a walk, as HEAD~1, git is asked, which resolves it and does nothing else (`git.rs`).

use std::io::Read;
use std::path::{Path, PathBuf};

use super::git::Repository;
use rqps_model::bounded;

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
    let repository = folder.ancestors().find_map(repository)?;
    // References of a work tree that git has added stand in the repository that it belongs to.
    let common = text(&repository.join("commondir")).map(|path| repository.join(path.trim()));
    let places = [Some(repository), common];
    let forms = ["", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"];
    forms.iter().find_map(|form| look_up(&places, &format!("{form}{name}"), LINKS_MOST))
}

fn is_commit(name: &str) -> bool {
    name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn repository(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    if let Some(said) = text(&git) {
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
        text(&place.join(name)).or_else(|| {
            let packed = text(&place.join("packed-refs"))?;
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

fn text(path: &Path) -> Option<String> {
    let mut text = String::new();
    bounded::plain(path).ok()?.take(BYTES_MOST).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_host::child::{self, ChildTask};
    use rqps_host::command_output;
    use std::fs;

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
