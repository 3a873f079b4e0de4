//! The unprivileged user that servers run as when rqps runs as root: servers refuse to run as root,
//! and should not.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use rqps_model::{safe_path, units};

/// The user that is taken when none is named.
const DEFAULT_USER: &str = "nobody";

/// User and group that a process runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// User id.
    pub uid: u32,
    /// Group id; all other groups are dropped.
    pub gid: u32,
}

/// A line of /etc/passwd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Its name.
    pub name: String,
    /// User id.
    pub uid: u32,
    /// Primary group id.
    pub gid: u32,
}

/// The reason why a user is unavailable or cannot reach a folder.
#[derive(Debug, Error)]
pub enum UserError {
    /// A file or folder.
    #[error("{doing}: {source}")]
    Io {
        /// What was attempted, and its object.
        doing: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// What stands in the way, and a way out.
    #[error("{0}")]
    Refused(String),
}

impl User {
    /// The identity in the warden's form.
    pub fn identity(&self) -> Identity {
        Identity { uid: self.uid, gid: self.gid }
    }
}

/// True if this process may do everything.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The user that servers run as: `None` (as rqps itself) unless rqps runs as root; then the one
/// `wanted` by name or number, or `nobody`.
pub fn choose(wanted: Option<&str>) -> Result<Option<User>, UserError> {
    if !is_root() {
        let uid = rustix::process::geteuid().as_raw();
        return match wanted {
            Some(name) => Err(UserError::Refused(format!(
                "run servers as '{name}': only root can do that and this is user {uid}; leave out \
                 the option"
            ))),
            None => Ok(None),
        };
    }
    let passwd = fs::read_to_string("/etc/passwd").map_err(|source| UserError::Io {
        doing: "read /etc/passwd to find the user to run servers as".to_owned(),
        source,
    })?;
    find(&passwd, wanted.unwrap_or(DEFAULT_USER)).map(Some)
}

/// The user that libraries under test run as if rqps runs as root, also where a container has no
/// users: then by the number that Linux itself gives to nobody.
pub fn of_libraries() -> User {
    let nobody = User { name: DEFAULT_USER.to_owned(), uid: 65_534, gid: 65_534 };
    choose(None).ok().flatten().unwrap_or(nobody)
}

/// The user of that name or number in the text of /etc/passwd; never root.
pub(super) fn find(passwd: &str, wanted: &str) -> Result<User, UserError> {
    let number: Option<u32> = wanted.parse().ok();
    let user = passwd
        .lines()
        .filter_map(parse_line)
        .find(|user| user.name == wanted || Some(user.uid) == number)
        .ok_or_else(|| {
            UserError::Refused(format!(
                "find the user '{wanted}' to run servers as: not in /etc/passwd; create it \
                 (useradd --system {wanted}), or run rqps as a user other than root"
            ))
        })?;
    if user.uid == 0 {
        return Err(UserError::Refused(format!(
            "run servers as '{wanted}': servers refuse to run as root; name another user"
        )));
    }
    Ok(user)
}

/// `name:x:uid:gid:…`.
fn parse_line(line: &str) -> Option<User> {
    let mut fields = line.split(':');
    let name = fields.next()?.to_owned();
    let uid = fields.nth(1)?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    Some(User { name, uid, gid })
}

/// Checks that `user`, who runs code under test, cannot put another folder in the place of `path`
/// or of one above it.
///
/// # Errors
/// He owns one, or may write into one that is not sticky.
pub fn check_alone(path: &Path, user: &User) -> Result<(), UserError> {
    for folder in whole(path)?.ancestors() {
        let facts = look(folder)?;
        let may_write = facts.mode() & (class_bit(facts.uid(), facts.gid(), user) << 1) != 0;
        let is_sticky = facts.mode() & 0o1000 != 0;
        if facts.uid() == user.uid || (may_write && !is_sticky) {
            let (folder, user) = (folder.display(), &user.name);
            return Err(UserError::Refused(format!(
                "keep data below {folder}: user {user}, who runs code under test, may write there, \
                 and rqps runs as root; choose a place outside it, or forbid it with `chmod o-w \
                 {folder}`"
            )));
        }
    }
    Ok(())
}

/// Checks that, if rqps runs as root, nobody else can change a folder or put another one in its
/// place.
///
/// # Errors
/// Another user owns it or a folder above it, or may write into one: into the folder itself, or
/// into one above that is not sticky.
pub fn check_roots(path: &Path) -> Result<(), UserError> {
    check_entries(path)?;
    if !is_root() {
        return Ok(());
    }
    let whole = whole(path)?;
    let facts = look(&whole)?;
    if others_write(&facts) { Err(not_roots(&whole, &facts)) } else { Ok(()) }
}

/// Checks that, if rqps runs as root, nobody else can touch what root makes in a folder. Others may
/// make entries of their own in it, as in `/tmp`.
///
/// # Errors
/// Another user owns it or a folder above it, or may write into one that is not sticky.
pub fn check_entries(path: &Path) -> Result<(), UserError> {
    if !is_root() {
        return Ok(());
    }
    for folder in whole(path)?.ancestors() {
        let facts = look(folder)?;
        if facts.uid() != 0 || (others_write(&facts) && facts.mode() & 0o1000 == 0) {
            return Err(not_roots(folder, &facts));
        }
    }
    Ok(())
}

/// The user as whom root has a library read a file that the user named, if the library opens or makes
/// files beside it, as SQLite does: where others could have put them, the owner of the file, or the
/// user of libraries for one of root's. `None` is this user. Also its path without links.
///
/// # Errors
/// A link of another user leads there; the file is not there.
pub fn who_reads(file: &Path) -> io::Result<(PathBuf, Option<User>)> {
    let file = safe_path::real(file)?;
    let folder = file.parent().unwrap_or(Path::new("/"));
    if !is_root() || check_roots(folder).is_ok() {
        return Ok((file, None));
    }
    let reader = match (fs::symlink_metadata(&file)?.uid(), of_libraries()) {
        (0, nobody) => nobody,
        (uid, User { gid, .. }) => User { name: uid.to_string(), uid, gid },
    };
    Ok((file, Some(reader)))
}

fn others_write(facts: &fs::Metadata) -> bool {
    facts.mode() & 0o002 != 0 || (facts.mode() & 0o020 != 0 && facts.gid() != 0)
}

fn not_roots(folder: &Path, facts: &fs::Metadata) -> UserError {
    UserError::Refused(format!(
        "others than root may write to {} (owner {}, mode {:o})",
        folder.display(),
        facts.uid(),
        facts.mode() & 0o7777
    ))
}

fn whole(path: &Path) -> Result<PathBuf, UserError> {
    fs::canonicalize(path).map_err(|source| unseen(path, source))
}

fn look(path: &Path) -> Result<fs::Metadata, UserError> {
    fs::metadata(path).map_err(|source| unseen(path, source))
}

fn unseen(path: &Path, source: io::Error) -> UserError {
    UserError::Io { doing: format!("look at {}", path.display()), source }
}

/// Checks that `user` can get to `path`: every folder above it, and itself if it is a folder, may
/// be entered. Access control lists and supplementary groups are not considered.
pub fn check_reachable(path: &Path, user: &User) -> Result<(), UserError> {
    let whole = whole(path)?;
    let folders: Vec<&Path> = whole.ancestors().collect();
    for folder in folders.into_iter().rev() {
        let facts = look(folder)?;
        if facts.is_dir() && facts.mode() & class_bit(facts.uid(), facts.gid(), user) == 0 {
            let (path, folder, mode) = (path.display(), folder.display(), facts.mode() & 0o7777);
            let user = &user.name;
            return Err(UserError::Refused(format!(
                "reach {path} as user {user} (rqps runs as root, so servers run as {user}): {user} \
                 may not enter {folder} (mode {mode:o}); choose a place outside it, or allow it \
                 with `chmod o+x {folder}`"
            )));
        }
    }
    Ok(())
}

/// True if `user` can get to a file and may read it, as far as [`check_reachable`] knows.
pub fn can_read(path: &Path, user: &User) -> bool {
    let is_open =
        |facts: fs::Metadata| facts.mode() & (class_bit(facts.uid(), facts.gid(), user) << 2) != 0;
    check_reachable(path, user).is_ok() && fs::metadata(path).is_ok_and(is_open)
}

/// The execute bit of the owner, else of the group, else of others.
fn class_bit(uid: u32, gid: u32, user: &User) -> u32 {
    if uid == user.uid {
        0o100
    } else if gid == user.gid {
        0o010
    } else {
        0o001
    }
}

// Random passwords, keys and names.

/// Random bytes of a password: as many as nobody tries out.
const BYTES: usize = 24;

/// A new password: hexadecimal digits, so that no statement and no shell reads them differently.
///
/// # Errors
/// The kernel gives no random bytes.
pub fn password() -> io::Result<String> {
    random::<BYTES>()
}

/// A new key.
pub(super) fn key() -> io::Result<String> {
    random::<32>()
}

/// A name that nobody foresees, for a file or folder in a place for everyone. Short, because the
/// path of a socket ends at 107 bytes.
///
/// # Errors
/// The kernel gives no random bytes.
pub fn name() -> io::Result<String> {
    random::<8>()
}

fn random<const N: usize>() -> io::Result<String> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(units::hex(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\n\
        broken line\n\
        postgres:x:113:121:,,,:/var/lib/postgresql:/bin/bash\n\
        nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";

    #[test]
    fn users_are_found_by_name_and_number() {
        let check = |wanted, name: &str, uid, gid| {
            let user = User { name: name.to_owned(), uid, gid };
            assert_eq!(find(PASSWD, wanted).unwrap(), user, "{wanted}");
        };
        check("nobody", "nobody", 65534, 65534);
        check("postgres", "postgres", 113, 121);
        check("113", "postgres", 113, 121);
        let refused = |wanted| find(PASSWD, wanted).unwrap_err().to_string();
        assert!(refused("mysql").contains("useradd --system mysql"));
        assert!(refused("root").contains("'root': servers refuse to run as root"));
        assert!(refused("0").contains("'0': servers refuse to run as root"));
    }

    #[test]
    fn the_bit_of_owner_group_or_others_counts() {
        let user = User { name: "u".to_owned(), uid: 7, gid: 8 };
        let check = |mode, uid, gid, may| {
            assert_eq!(mode & class_bit(uid, gid, &user) != 0, may, "{mode:o} {uid} {gid}");
        };
        check(0o700, 7, 0, true);
        check(0o077, 7, 8, false);
        check(0o710, 0, 8, true);
        check(0o701, 0, 8, false);
        check(0o701, 0, 0, true);
        check(0o770, 0, 0, false);
    }

    #[test]
    fn the_first_closed_folder_is_named() {
        use std::os::unix::fs::PermissionsExt;
        let outer = tempfile::tempdir().unwrap();
        let closed = outer.path().join("closed");
        let inner = closed.join("inner");
        fs::create_dir_all(&inner).unwrap();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        set(outer.path(), 0o755);
        set(&closed, 0o700);
        // Nobody that owns any of these.
        let stranger = User { name: "stranger".to_owned(), uid: 4_000_000, gid: 4_000_000 };
        let refusal = check_reachable(&inner, &stranger).unwrap_err().to_string();
        assert!(refusal.contains("/closed (mode 700)"), "{refusal}");
        set(&closed, 0o711);
        check_reachable(&inner, &stranger).unwrap();
        let file = inner.join("file");
        fs::write(&file, "").unwrap();
        set(&file, 0o604);
        assert!(can_read(&file, &stranger));
        set(&file, 0o640);
        assert!(!can_read(&file, &stranger), "no bit for others");
        set(&file, 0o604);
        set(&closed, 0o700);
        assert!(!can_read(&file, &stranger), "behind a closed folder");
    }
}

#[cfg(test)]
mod secret_tests {
    use super::*;

    #[test]
    fn no_password_comes_twice() {
        let (one, two) = (password().unwrap(), password().unwrap());
        assert_eq!(one.len(), 2 * BYTES);
        assert_ne!(one, two);
    }
}
