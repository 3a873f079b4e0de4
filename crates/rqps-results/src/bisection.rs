//! The folder of a bisection: its log, and one result folder for each measurement.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{ResultsError, atomic, files, plain_set};
use rqps_model::bisection::{BISECTION_FORMAT, BisectionEntry, BisectionLog, BisectionRequest};

const LOG: &str = "bisect.json";

/// The folder of a bisection.
#[derive(Debug)]
pub struct BisectionFolder {
    path: PathBuf,
    log: BisectionLog,
}

impl BisectionFolder {
    /// Makes the folder of a bisection, or opens the one that was begun there with this request.
    ///
    /// # Errors
    /// It holds another bisection, or cannot be written.
    pub fn create(path: &Path, request: BisectionRequest) -> Result<BisectionFolder, ResultsError> {
        if path.join(LOG).exists() {
            let folder = BisectionFolder::open(path)?;
            if folder.log.request == request {
                return Ok(folder);
            }
            let why = "it holds a bisection of something else".to_owned();
            return Err(ResultsError::Occupied { path: path.to_owned(), why });
        }
        atomic::create_folder(path)?;
        let log = BisectionLog { format: BISECTION_FORMAT, request, entries: Vec::new() };
        let folder = BisectionFolder { path: path.to_owned(), log };
        folder.write()?;
        Ok(folder)
    }

    /// Opens the folder of a bisection that was begun.
    ///
    /// # Errors
    /// The file is no bisection, or one of a newer rqps.
    pub fn open(path: &Path) -> Result<BisectionFolder, ResultsError> {
        plain_set::check(path)?;
        let file = path.join(LOG);
        let log = files::versioned(&file, BISECTION_FORMAT, |log: &BisectionLog| log.format)?;
        let log = log.ok_or_else(|| ResultsError::io("read", &file)(ErrorKind::NotFound.into()))?;
        let count = log.request.versions.len();
        let places = log.entries.iter().flat_map(|entry| match entry {
            BisectionEntry::Measured(measured) => measured.places.clone(),
            BisectionEntry::Lost { place, .. } => vec![*place],
        });
        if count < 2 || places.max().is_some_and(|place| place >= count) {
            let why = format!("it has {count} versions, and measurements of others");
            return Err(ResultsError::Malformed { path: file, line: 0, field: None, why });
        }
        Ok(BisectionFolder { path: path.to_owned(), log })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The request, and the measurements so far.
    pub fn log(&self) -> &BisectionLog {
        &self.log
    }

    /// Adds an entry, durably.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn add(&mut self, entry: BisectionEntry) -> Result<(), ResultsError> {
        self.log.entries.push(entry);
        self.write()
    }

    fn write(&self) -> Result<(), ResultsError> {
        let file = self.path.join(LOG);
        let text = serde_json::to_string_pretty(&self.log).map_err(|error| {
            ResultsError::io("write", &file)(std::io::Error::other(error.to_string()))
        })?;
        atomic::write(&file, format!("{text}\n").as_bytes())
    }
}
