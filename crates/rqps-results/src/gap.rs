//! The folder of a gap: its log, the configs of its targets, and one result folder for each round.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{ResultsError, atomic, files, plain_set};
use rqps_model::gap::{GAP_FORMAT, GapLog, GapRequest, GapRound};

const LOG: &str = "gap.json";

/// The folder of a gap.
#[derive(Debug)]
pub struct GapFolder {
    path: PathBuf,
    log: GapLog,
}

impl GapFolder {
    /// Makes the folder of a gap, or opens the one that was begun there with this request.
    ///
    /// # Errors
    /// It holds another gap, or cannot be written.
    pub fn create(path: &Path, request: GapRequest) -> Result<GapFolder, ResultsError> {
        if path.join(LOG).exists() {
            let folder = GapFolder::open(path)?;
            if folder.log.request == request {
                return Ok(folder);
            }
            let why = "it holds the gap of something else".to_owned();
            return Err(ResultsError::Occupied { path: path.to_owned(), why });
        }
        atomic::create_folder(path)?;
        let log = GapLog { format: GAP_FORMAT, request, rounds: Vec::new() };
        let folder = GapFolder { path: path.to_owned(), log };
        folder.write()?;
        Ok(folder)
    }

    /// Opens the folder of a gap that was begun.
    ///
    /// # Errors
    /// The file is no gap, or one of a newer rqps.
    pub fn open(path: &Path) -> Result<GapFolder, ResultsError> {
        plain_set::check(path)?;
        let file = path.join(LOG);
        let log = files::versioned(&file, GAP_FORMAT, |log: &GapLog| log.format)?;
        let log = log.ok_or_else(|| ResultsError::io("read", &file)(ErrorKind::NotFound.into()))?;
        if log.rounds.iter().any(|round| round.blocks.iter().any(|it| it.len() != round.arms.len()))
        {
            let why = "a block has another number of rates than its round has targets".to_owned();
            return Err(ResultsError::Malformed { path: file, line: 0, field: None, why });
        }
        Ok(GapFolder { path: path.to_owned(), log })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The request, and the rounds so far.
    pub fn log(&self) -> &GapLog {
        &self.log
    }

    /// Adds a round, durably.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn add(&mut self, round: GapRound) -> Result<(), ResultsError> {
        self.log.rounds.push(round);
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
