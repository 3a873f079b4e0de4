//! What may lie in a result folder that is resumed. It may come from somebody else: a link in it
//! would lead writes elsewhere, and a pipe would hold them for ever.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::ResultsError;

/// Refuses a result folder in which something is neither a plain file nor a folder; if rqps runs as
/// root, also one with a folder of another user. What begins with a dot has checks of its own.
///
/// # Errors
/// There is such an entry, or it cannot be read.
pub(super) fn check(folder: &Path) -> Result<(), ResultsError> {
    let refused =
        |path: &Path, why: String| Err(ResultsError::Occupied { path: path.to_owned(), why });
    let facts = fs::metadata(folder).map_err(ResultsError::io("read", folder))?;
    let user = rustix::process::geteuid();
    if user.is_root() && facts.uid() != 0 {
        let why = format!(
            "it belongs to user {}, and rqps runs as root: resume it as that user, or copy it",
            facts.uid()
        );
        return refused(folder, why);
    }
    for entry in fs::read_dir(folder).map_err(ResultsError::io("read", folder))? {
        let entry = entry.map_err(ResultsError::io("read", folder))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(ResultsError::io("read", &path))?;
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if kind.is_dir() {
            if !is_hidden {
                check(&path)?;
            }
        } else if !kind.is_file() && !is_hidden {
            let why = "it is neither a plain file nor a folder, so rqps writes nothing beside it; \
                       remove it, or copy the results without it";
            return refused(&path, why.to_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_and_pipes_are_found_at_any_depth() {
        let set = tempfile::tempdir().unwrap();
        let steps = set.path().join("b01-1-a/steps");
        fs::create_dir_all(&steps).unwrap();
        fs::write(steps.join("01-x.json"), "{}").unwrap();
        check(set.path()).unwrap();
        symlink("/nowhere", set.path().join(".hidden")).unwrap();
        check(set.path()).unwrap();
        for name in ["report.html", "b01-1-a/logs", "b01-1-a/steps/02-y.json"] {
            let link = set.path().join(name);
            symlink("/nowhere", &link).unwrap();
            let error = check(set.path()).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("neither"), "{error}");
            fs::remove_file(link).unwrap();
        }
        let pipe = set.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert!(check(set.path()).is_err());
    }
}
