//! The time that a slowed build burned, in each tenth of a second.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

/// Length of a bucket of the tally: `BUCKET_NS` of burn.c.
const BUCKET_MS: u64 = 100;
/// More than a campaign lasts.
const LONGEST: Duration = Duration::from_secs(6 * 3600);

/// The file that a slowed build writes into.
pub(crate) struct Tally {
    path: PathBuf,
    /// Start of the first bucket, milliseconds since 1970.
    start: u64,
}

impl Tally {
    pub(crate) const BUCKETS: u64 = LONGEST.as_millis() as u64 / BUCKET_MS;

    /// An empty one, which servers of any user can write into.
    pub(crate) fn create(path: &Path) -> Result<Tally> {
        let doing = || format!("make {}", path.display());
        let file = File::create(path).with_context(doing)?;
        file.set_len(Tally::BUCKETS * 8).with_context(doing)?;
        file.set_permissions(PermissionsExt::from_mode(0o666)).with_context(doing)?;
        let start = SystemTime::now().duration_since(UNIX_EPOCH).context("read the clock")?;
        Ok(Tally { path: path.to_owned(), start: start.as_millis() as u64 })
    }

    /// Definitions that burn.c expects.
    pub(crate) fn definitions(&self) -> [String; 3] {
        [
            format!("-DTALLY=\"{}\"", self.path.display()),
            format!("-DTALLY_START={}ull", self.start),
            format!("-DTALLY_BUCKETS={}ull", Tally::BUCKETS),
        ]
    }

    /// Burned nanoseconds per second in the buckets that lie wholly in a time (milliseconds since
    /// 1970); `None` if it is too short to tell.
    pub(crate) fn burned_per_second(&self, from_ms: u64, to_ms: u64) -> Result<Option<f64>> {
        let first = from_ms.saturating_sub(self.start).div_ceil(BUCKET_MS);
        let end = to_ms.saturating_sub(self.start) / BUCKET_MS;
        if end < first + 5 || end > Tally::BUCKETS {
            return Ok(None);
        }
        let bytes =
            std::fs::read(&self.path).with_context(|| format!("read {}", self.path.display()))?;
        let (words, _) = bytes.as_chunks::<8>();
        let burned: u64 =
            words[first as usize..end as usize].iter().map(|word| u64::from_ne_bytes(*word)).sum();
        Ok(Some(burned as f64 / ((end - first) * BUCKET_MS) as f64 * 1e3))
    }
}
