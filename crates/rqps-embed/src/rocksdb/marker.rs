//! A file beside each database that rqps makes: it marks the database as rqps's own and records its
//! state. A database without one is never opened, filled or removed.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Name of the file in the data folder.
pub const FILE: &str = "rqps-kv.json";
/// Name of the database's own folder in the data folder.
pub const DATABASE: &str = "db";

/// Content of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Marker {
    /// State of the database.
    pub state: State,
    /// The process that changed it last.
    pub process: u32,
}

/// Bytes of the file. A reason fits in place of the state before, which needs no new space on a
/// full disk.
const ROOM: usize = 4096;

/// State of a database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nothing is in it.
    Empty,
    /// It is being filled. If the process is gone, it never will be.
    Filling,
    /// All keys are in it.
    Filled,
    /// Filling it failed, for this reason.
    Broken(String),
}

/// The folder of the database in a data folder.
pub fn database_folder(data: &Path) -> PathBuf {
    data.join(DATABASE)
}

impl Marker {
    /// The marker of this process.
    pub fn new(state: State) -> Marker {
        Marker { state, process: std::process::id() }
    }

    /// Reads the file; `None` if there is none or it is another's.
    ///
    /// # Errors
    /// The file is there and cannot be read.
    pub fn read(data: &Path) -> io::Result<Option<Marker>> {
        match fs::read(data.join(FILE)) {
            Ok(bytes) => Ok(Marker::parse(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The marker of a file's content; `None` if it is another's.
    pub fn parse(bytes: &[u8]) -> Option<Marker> {
        serde_json::from_slice(bytes).ok()
    }

    /// The content of the file, with spaces up to [`ROOM`].
    ///
    /// # Errors
    /// None in practice.
    pub fn text(&self) -> io::Result<Vec<u8>> {
        let mut text = serde_json::to_vec(self)?;
        text.resize(text.len().max(ROOM), b' ');
        Ok(text)
    }

    /// Writes the file, at once or not at all; on a full disk over the one that is there.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn write(&self, data: &Path) -> io::Result<()> {
        let (partial, text) = (data.join(format!(".{FILE}.partial")), self.text()?);
        #[expect(clippy::disallowed_methods, reason = "the user of the data writes them")]
        let written =
            fs::write(&partial, &text).and_then(|()| fs::rename(&partial, data.join(FILE)));
        match written {
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                let there = fs::OpenOptions::new().write(true).open(data.join(FILE));
                there.and_then(|mut file| file.write_all(&text))
            }
            written => written,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_survives_its_file_and_others_are_not_ours() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Marker::read(folder.path()).unwrap(), None);
        let marker = Marker::new(State::Broken("no space".to_owned()));
        marker.write(folder.path()).unwrap();
        assert_eq!(Marker::read(folder.path()).unwrap(), Some(marker));
        fs::write(folder.path().join(FILE), "something else").unwrap();
        assert_eq!(Marker::read(folder.path()).unwrap(), None);
    }
}
