//! db_bench's histogram: 109 limits in whole microseconds, with percentiles by linear interpolation
//! between them. It is coarse, and published percentiles come from it.

use rqps_analysis::metrics::Histogram;

/// Counts by db_bench's limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Buckets {
    limits: Vec<u64>,
    counts: Vec<u64>,
    total: u64,
    min: u64,
    max: u64,
}

/// The limits, µs: 1, 2, then each 1.5 times the one before, cut to two leading digits.
fn limits() -> Vec<u64> {
    let mut limits = vec![1, 2];
    let mut exact = 2.0f64;
    loop {
        exact *= 1.5;
        if exact > u64::MAX as f64 {
            return limits;
        }
        let whole = exact as u64;
        let power = 10u64.pow((whole.max(1).ilog10() + 1).saturating_sub(2));
        limits.push(whole / power * power);
    }
}

impl Buckets {
    /// Converts latencies to db_bench's form: nanoseconds become whole microseconds.
    pub fn of(histogram: &Histogram) -> Buckets {
        let limits = limits();
        let mut buckets =
            Buckets { counts: vec![0; limits.len()], limits, total: 0, min: u64::MAX, max: 0 };
        for (nanoseconds, count) in histogram.steps() {
            let value = nanoseconds / 1000;
            let place = buckets.limits.partition_point(|limit| *limit < value);
            buckets.counts[place.min(buckets.limits.len() - 1)] += count;
            buckets.total += count;
            buckets.min = buckets.min.min(value);
            buckets.max = buckets.max.max(value);
        }
        buckets
    }

    /// A percentile (0 to 100), µs; 0 without events.
    pub fn percentile(&self, percent: f64) -> f64 {
        let wanted = self.total as f64 * percent / 100.0;
        let mut below = 0.0;
        for (place, count) in self.counts.iter().enumerate() {
            let count = *count as f64;
            if count > 0.0 && below + count >= wanted {
                let left = if place == 0 { 0 } else { self.limits[place - 1] } as f64;
                let right = self.limits[place] as f64;
                let value = left + (right - left) * (wanted - below) / count;
                return value.clamp(self.min as f64, self.max as f64);
            }
            below += count;
        }
        self.max as f64
    }

    /// The largest latency, whole µs.
    pub fn max(&self) -> f64 {
        self.max as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(values: &[(u64, u64)]) -> Buckets {
        let limits = limits();
        let mut counts = vec![0; limits.len()];
        for (value, count) in values {
            counts[limits.partition_point(|limit| limit < value)] += count;
        }
        let total = values.iter().map(|(_, count)| count).sum();
        let (min, max) = (values[0].0, values[values.len() - 1].0);
        Buckets { limits, counts, total, min, max }
    }

    #[test]
    fn limits_are_those_of_db_bench() {
        let head = [
            1, 2, 3, 4, 6, 10, 15, 22, 34, 51, 76, 110, 170, 250, 380, 580, 870, 1300, 1900, 2900,
            4400, 6600, 9900, 14_000, 22_000, 33_000, 50_000, 75_000, 110_000, 170_000, 250_000,
            380_000, 570_000, 860_000, 1_200_000, 1_900_000, 2_900_000, 4_300_000, 6_500_000,
        ];
        assert_eq!(limits()[..head.len()], head);
        assert_eq!(limits().len(), 109);
    }

    #[test]
    fn percentiles_are_interpolated_between_limits() {
        // 100 values in (2, 3], 100 in (6, 10]: the 50th percentile ends the first bucket.
        let some = buckets(&[(3, 100), (9, 100)]);
        assert_eq!(some.percentile(50.0), 3.0);
        assert_eq!(some.percentile(75.0), 8.0);
        // (6, 10] at 100 % is 10, but nothing was above 9.
        assert_eq!(some.percentile(100.0), 9.0);
        // All below a microsecond: db_bench shows 0.5 for the median of (0, 1].
        assert_eq!(buckets(&[(0, 50), (1, 50)]).percentile(50.0), 0.5);
    }
}
