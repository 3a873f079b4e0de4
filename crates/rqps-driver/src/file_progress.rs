//! How far the load of a file is: bytes that were read, the rate, and the time left.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use rqps_model::units;

/// Progress of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileProgress {
    /// Its name without folders.
    pub file: String,
    /// Bytes read so far.
    pub bytes: u64,
    /// All bytes.
    pub of: u64,
    /// Seconds since its first byte.
    pub seconds: f64,
}

impl FileProgress {
    /// Share of the bytes that are read; `None` for an empty file.
    pub fn share(&self) -> Option<f64> {
        (self.of > 0).then(|| (self.bytes as f64 / self.of as f64).min(1.0))
    }

    /// The file, how much of it is read, and at which rate: "shop.sql: 1.20 GiB of 9.80 GiB, 85.0
    /// MiB/s, about 1m43s left".
    pub fn words(&self) -> String {
        let FileProgress { file, bytes, of, seconds } = self;
        let (done, all) = (units::bytes(*bytes), units::bytes(*of));
        let rate = *bytes as f64 / seconds.max(1e-9);
        let mut text = format!("{file}: {done} of {all}, {}/s", units::bytes(rate as u64));
        if rate >= 1.0 {
            let left = of.saturating_sub(*bytes) as f64 / rate;
            let left = units::duration(Duration::from_secs_f64(left.round()));
            text.push_str(&format!(", about {left} left"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_has_the_rate_and_the_time_left() {
        let of = |bytes, of, seconds| {
            let file = "shop.sql".to_owned();
            FileProgress { file, bytes, of, seconds }
        };
        let half = of(50 << 20, 100 << 20, 2.0);
        assert_eq!(half.words(), "shop.sql: 50.0 MiB of 100 MiB, 25.0 MiB/s, about 2s left");
        assert_eq!(half.share(), Some(0.5));
        let begun = of(0, 100 << 20, 0.5);
        assert_eq!(begun.words(), "shop.sql: 0 B of 100 MiB, 0 B/s");
        assert_eq!(of(0, 0, 1.0).share(), None);
    }
}
