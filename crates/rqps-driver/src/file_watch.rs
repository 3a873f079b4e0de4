//! Watches the load of a file: counts the bytes that were read, and reports them to the lab.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::event::DriverEvent;
use crate::file_progress::FileProgress;
use crate::link::{ControlChannel, LabGone};
use rqps_model::load::LoadedFile;

/// Time between two progress reports.
const PAUSE: Duration = Duration::from_millis(500);

/// Smaller files are not reported: their bytes say nothing of their statements' time.
const LEAST_BYTES: u64 = 1 << 20;

/// Watches a file that is read.
pub(super) struct FileWatch {
    file: String,
    bytes: u64,
    read: Arc<AtomicU64>,
    begun: Instant,
    told: Instant,
}

impl FileWatch {
    /// Begins now.
    pub(super) fn over(path: &Path) -> FileWatch {
        let now = Instant::now();
        FileWatch {
            file: name_of(path),
            bytes: length_of(path),
            read: Arc::default(),
            begun: now,
            told: now,
        }
    }

    /// The counter of bytes for the reader of the file.
    pub(super) fn counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.read)
    }

    /// Sends the progress if the last report is some time ago.
    pub(super) fn tell<W: Write>(&mut self, link: &mut ControlChannel<W>) -> Result<(), LabGone> {
        if self.bytes < LEAST_BYTES || self.told.elapsed() < PAUSE {
            return Ok(());
        }
        self.told = Instant::now();
        link.say(&DriverEvent::LoadingFile(FileProgress {
            file: self.file.clone(),
            bytes: self.read.load(Ordering::Relaxed),
            of: self.bytes,
            seconds: self.begun.elapsed().as_secs_f64(),
        }))
    }

    /// The file is loaded.
    pub(super) fn loaded(self, rows: u64) -> LoadedFile {
        let FileWatch { file, bytes, begun, .. } = self;
        LoadedFile { file, bytes, rows, seconds: begun.elapsed().as_secs_f64() }
    }
}

/// The name of a file without folders.
pub(super) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The length of a file; 0 if it cannot be read, which its reader reports.
pub(super) fn length_of(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |facts| facts.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_files_are_told_and_not_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("shop.sql");
        let told = |bytes: usize, ago: Duration| {
            fs::write(&path, vec![b'-'; bytes]).expect("write a file");
            let mut watch = FileWatch::over(&path);
            watch.counter().fetch_add(7, Ordering::Relaxed);
            watch.told = watch.told.checked_sub(ago).expect("the host is up for longer");
            let mut said = Vec::new();
            assert!(watch.tell(&mut ControlChannel::alone(&mut said)).is_ok());
            assert_eq!(watch.loaded(3).rows, 3);
            String::from_utf8(said).expect("JSON")
        };
        assert_eq!(told(LEAST_BYTES as usize, Duration::ZERO), "");
        assert_eq!(told(10, PAUSE), "");
        let line = told(LEAST_BYTES as usize, PAUSE);
        let wanted = r#"{"loading_file":{"file":"shop.sql","bytes":7,"of":1048576,"seconds":"#;
        assert!(line.starts_with(wanted), "{line}");
    }
}
