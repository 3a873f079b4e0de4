//! Rows, seconds and bytes of a load, and of each of the user's files in it.

use serde::{Deserialize, Serialize};

/// Rows, seconds and bytes of one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadRecord {
    /// The number of the load, from 1; absent in files of plans with a single load.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub number: u32,
    /// Rows of all tables.
    pub rows: u64,
    /// Seconds from the first CREATE TABLE to the last row.
    pub load_seconds: f64,
    /// Seconds for the secondary indexes.
    pub index_seconds: f64,
    /// Bytes of the data folder after the load and its settling.
    pub data_bytes: Option<u64>,
    /// The user's files that it read, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<LoadedFile>,
}

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

fn first() -> u32 {
    1
}

fn is_first(number: &u32) -> bool {
    *number == 1
}
