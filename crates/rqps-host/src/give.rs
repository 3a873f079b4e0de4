//! Gives folders to another user, with all that is in them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{FileType, Mode, Stat};

use crate::beneath::Folder;
use crate::disk::{DEPTH, TOO_DEEP};
use crate::user::{User, UserError};

/// Gives a folder and all in it to `user`, by descriptors. Links are changed, not followed. A file
/// that has a name outside of the folder stays whose it is, and is an error: who could write there
/// may have given a file of others a name in it. What root gets, nobody else can write to any more,
/// whatever its old owner allowed.
pub fn chown_tree(path: &Path, user: &User) -> Result<(), UserError> {
    let fault = |source| {
        let (path, user) = (path.to_owned(), user.name.clone());
        UserError::Chown { path, user, source }
    };
    let folder = Folder::open(path).map_err(fault)?;
    let mut names = BTreeMap::new();
    count_names(&folder, user, &mut names, 0).map_err(fault)?;
    if names.values().any(|(seen, all)| seen < all) {
        let why = "a file in it has another name outside of it, so it may be somebody else's";
        return Err(fault(io::Error::other(why)));
    }
    give_all(&folder, user, &names, 0).map_err(fault)
}

/// Files with several names: how many of them were seen, and how many there are.
type Names = BTreeMap<(u64, u64), (u64, u64)>;

fn count_names(folder: &Folder, user: &User, names: &mut Names, depth: usize) -> io::Result<()> {
    if depth > DEPTH {
        return Err(io::Error::other(TOO_DEEP));
    }
    for entry in folder.entries()? {
        if entry.kind == FileType::Directory {
            count_names(&folder.below(Path::new(&entry.name))?, user, names, depth + 1)?;
            continue;
        }
        let facts = folder.facts_of(&entry.name)?;
        if facts.st_nlink > 1 && facts.st_uid != user.uid {
            let (file, all) = key(&facts);
            names.entry(file).or_insert((0, all)).0 += 1;
        }
    }
    Ok(())
}

/// A folder goes before what is in it, so that its old owner can put nothing in any more.
fn give_all(folder: &Folder, user: &User, names: &Names, depth: usize) -> io::Result<()> {
    if depth > DEPTH {
        return Err(io::Error::other(TOO_DEEP));
    }
    folder.give(user.identity())?;
    if user.uid == 0 {
        only_own(folder.file())?;
    }
    for entry in folder.entries()? {
        match entry.kind {
            FileType::Directory => {
                give_all(&folder.below(Path::new(&entry.name))?, user, names, depth + 1)?;
            }
            _ => folder.give_file(&entry.name, user.identity(), |facts| {
                facts.st_nlink == 1 || facts.st_uid == user.uid || names.contains_key(&key(facts).0)
            })?,
        }
    }
    Ok(())
}

/// Takes the right to write from all but the owner.
fn only_own(file: &File) -> io::Result<()> {
    let mode = file.metadata()?.mode() & 0o7777;
    if mode & 0o022 != 0 {
        rustix::fs::fchmod(file, Mode::from_raw_mode(mode & !0o022))?;
    }
    Ok(())
}

/// The file, and how many names it has.
#[allow(clippy::useless_conversion, reason = "the types differ by architecture")]
fn key(facts: &Stat) -> ((u64, u64), u64) {
    ((u64::from(facts.st_dev), u64::from(facts.st_ino)), u64::from(facts.st_nlink))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn folders_within_each_other_have_an_end() {
        let work = tempfile::tempdir().unwrap();
        let mut folder = work.path().to_owned();
        (0..=DEPTH + 1).for_each(|_| folder.push("d"));
        fs::create_dir_all(&folder).unwrap();
        let own = rustix::process::geteuid().as_raw();
        let user = User { name: "own".to_owned(), uid: own, gid: own };
        let said = chown_tree(work.path(), &user).unwrap_err().to_string();
        assert!(said.contains(TOO_DEEP), "{said}");
    }

    #[test]
    fn a_file_with_a_name_elsewhere_is_not_given_away() {
        let work = tempfile::tempdir().unwrap();
        let (tree, elsewhere) = (work.path().join("tree"), work.path().join("precious"));
        fs::create_dir(&tree).unwrap();
        fs::write(tree.join("a"), "").unwrap();
        fs::hard_link(tree.join("a"), tree.join("b")).unwrap();
        std::os::unix::fs::symlink(&elsewhere, tree.join("link")).unwrap();
        fs::write(&elsewhere, "").unwrap();
        let root = rustix::process::geteuid().is_root();
        let stranger = User { name: "stranger".to_owned(), uid: 4_000_000, gid: 4_000_000 };
        if root {
            chown_tree(&tree, &stranger).unwrap();
            assert_eq!(fs::metadata(tree.join("b")).unwrap().uid(), stranger.uid);
            assert_eq!(fs::metadata(&elsewhere).unwrap().uid(), 0, "a link is not followed");
        }
        if root {
            // Its owner let everybody write, and may have a process that waits for it.
            for name in ["", "a"] {
                fs::set_permissions(tree.join(name), fs::Permissions::from_mode(0o777)).unwrap();
            }
            chown_tree(&tree, &User { name: "root".to_owned(), uid: 0, gid: 0 }).unwrap();
            for name in ["", "a"] {
                let facts = fs::metadata(tree.join(name)).unwrap();
                assert_eq!((facts.uid(), facts.mode() & 0o777), (0, 0o755), "{name}");
            }
        }
        fs::hard_link(&elsewhere, tree.join("trap")).unwrap();
        let said = chown_tree(&tree, &stranger).unwrap_err().to_string();
        assert!(said.contains("another name outside of it"), "{said}");
        assert_ne!(fs::metadata(&elsewhere).unwrap().uid(), stranger.uid);
    }
}
