//! The cost of loading one file of a user's.

use serde::{Deserialize, Serialize};

/// A file that was loaded: SQL, a dump, CSV or a database.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadedFile {
    /// Its name without folders.
    pub file: String,
    /// Its length; of a compressed file, as it is on disk.
    pub bytes: u64,
    /// Rows that it brought by INSERT, REPLACE, COPY or CSV.
    pub rows: u64,
    /// Seconds from its first to its last statement or row.
    pub seconds: f64,
}

impl LoadedFile {
    /// Bytes per second; `None` if no time was spent.
    pub fn bytes_per_second(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| self.bytes as f64 / self.seconds)
    }
}
