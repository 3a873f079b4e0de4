//! The folders of a process that runs a script of the user's.

use std::path::{Path, PathBuf};

use rqps_host::beneath;

/// The places of a script's process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptPlaces {
    /// The folder in which the process was started.
    pub start: PathBuf,
    /// The folder of the script as it was named.
    pub(super) folder: PathBuf,
    /// The copy of that folder that is read instead, if the process may not read the folder itself.
    pub(super) copy: Option<PathBuf>,
    /// The working folder.
    pub(super) scratch: PathBuf,
}

impl ScriptPlaces {
    /// Where this process reads a script of the folder.
    pub fn readable(&self, script: &Path) -> PathBuf {
        swapped(script, &self.folder, self.copy.as_deref())
    }

    /// The name, before it was copied, of a file that this process reads.
    pub fn original(&self, file: &Path) -> PathBuf {
        match &self.copy {
            Some(copy) => swapped(file, copy, Some(&self.folder)),
            None => file.to_owned(),
        }
    }

    /// Removes the working folder.
    pub fn clear(&self) {
        // Whatever is left does not concern the request, which has been answered.
        let _ = beneath::remove_made(&self.scratch, None);
    }
}

/// The path with one folder in the place of another.
fn swapped(path: &Path, from: &Path, to: Option<&Path>) -> PathBuf {
    match (path.strip_prefix(from), to) {
        (Ok(rest), Some(to)) => to.join(rest),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copied_script_keeps_the_name_that_the_user_knows() {
        let places = |copy: Option<&str>| ScriptPlaces {
            start: "/".into(),
            folder: "/closed/bench".into(),
            copy: copy.map(PathBuf::from),
            scratch: "/tmp/s".into(),
        };
        let check = |copy, script: &str, read: &str| {
            let places = places(copy);
            assert_eq!(places.readable(Path::new(script)), Path::new(read));
            assert_eq!(places.original(Path::new(read)), Path::new(script));
        };
        check(Some("/tmp/s/scripts"), "/closed/bench/a.lua", "/tmp/s/scripts/a.lua");
        check(Some("/tmp/s/scripts"), "/usr/share/b.lua", "/usr/share/b.lua");
        check(None, "/closed/bench/a.lua", "/closed/bench/a.lua");
    }
}
