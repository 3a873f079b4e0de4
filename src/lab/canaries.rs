//! Canaries of a plan: where readings come from, and which of them call the host another one than
//! usual. Judged is only whether a block is thrown away; its rates have no say in that.

use std::path::PathBuf;

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::domain::gate::{Canary, CanaryRule};
use crate::os::noise::canary;

/// Readings before the first block: enough for a first median.
pub(super) const FIRST_READINGS: usize = 3;
/// A block with a host that never changes is thrown away this often, by a calibration: 1 %.
const CHANCE: f64 = 0.01;
/// Values that a block is judged by: three canaries, before and after.
const VALUES_OF_BLOCK: f64 = 6.0;
/// Turns a median absolute deviation into a standard deviation, for normal noise.
const MAD_TO_SD: f64 = 1.4826;

/// The three values of a canary.
struct Kind {
    name: &'static str,
    /// Larger is slower, whatever the unit.
    slowness: fn(&Canary) -> Option<f64>,
    /// Changes up to this factor are never out of range, with a calibration and without.
    floor: [f64; 2],
}

const KINDS: [Kind; 3] = [
    Kind { name: "spin", slowness: |canary| canary.spin_ns, floor: [1.03, 1.15] },
    Kind {
        name: "memory",
        slowness: |canary| canary.memory_mb_s.map(|rate| 1e6 / rate),
        floor: [1.05, 1.25],
    },
    Kind { name: "fsync", slowness: |canary| canary.fsync_ns, floor: [1.3, 3.0] },
];

/// Where readings come from.
pub(super) enum Source {
    /// Nowhere.
    Off,
    /// This host; the file to be fsynced lies in the folder.
    Host(PathBuf),
    /// A script of the fake DBMS: the factor by which each reading is slower, then 1 for ever.
    Script(Vec<f64>),
}

impl Source {
    /// The reading of this number, from 0; `None` if canaries are off.
    pub(super) fn read(&self, number: usize) -> Option<Canary> {
        match self {
            Source::Off => None,
            Source::Host(folder) => Some(canary::read(folder)),
            Source::Script(factors) => Some(Canary {
                at: super::now(),
                spin_ns: Some(1e6 * factors.get(number).copied().unwrap_or(1.0)),
                memory_mb_s: Some(1000.0),
                fsync_ns: Some(1e6),
                ..Canary::default()
            }),
        }
    }

    pub(super) fn is_off(&self) -> bool {
        matches!(self, Source::Off)
    }

    /// True if waiting may make a difference.
    pub(super) fn is_real(&self) -> bool {
        matches!(self, Source::Host(_))
    }
}

/// Why `reading` is out of the range that `reference` gives by `rule`; `None` if it is in it, or if
/// there is too little to tell.
///
/// With a calibration the range is the prediction interval of normal noise on logarithms, at 99 %
/// for a block as a whole. Without, it is the same around the median, with a robust standard
/// deviation (1.4826 × median absolute deviation) of the plan's own readings, and it has no lower
/// end: a host that is faster than before shows that the readings before were disturbed. Both are
/// at least as wide as the floors: a change of 3 % (15 % without a calibration) of spin, 5 %
/// (25 %) of memory, 1.3 times (3 times) of fsync.
pub(super) fn out_of_range(
    rule: CanaryRule,
    reference: &[&Canary],
    reading: &Canary,
) -> Option<String> {
    let faults: Vec<String> = KINDS
        .iter()
        .filter_map(|kind| {
            let slowness =
                |canary: &Canary| (kind.slowness)(canary).filter(|value| *value > 0.0).map(f64::ln);
            let values: Vec<f64> = reference.iter().filter_map(|canary| slowness(canary)).collect();
            let (centre, half) = match rule {
                CanaryRule::Off => return None,
                CanaryRule::Calibration => prediction(&values)?,
                CanaryRule::Own => around_median(&values)?,
            };
            let floor = kind.floor[usize::from(rule == CanaryRule::Own)];
            let half = half.max(floor.ln());
            let difference = slowness(reading)? - centre;
            let least = if rule == CanaryRule::Own { f64::NEG_INFINITY } else { -half };
            (difference > half || difference < least).then(|| {
                format!(
                    "{} {:.2} times as slow as usual, allowed {:.2} to {:.2}",
                    kind.name,
                    difference.exp(),
                    least.exp(),
                    half.exp()
                )
            })
        })
        .collect();
    (!faults.is_empty()).then(|| faults.join("; "))
}

/// Mean and half width of the interval that the next value lies in.
fn prediction(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((mean, deviations(values.len())? * (squares / (n - 1.0)).sqrt()))
}

/// The same with the median and the median absolute deviation, which a few disturbed readings do
/// not move.
fn around_median(values: &[f64]) -> Option<(f64, f64)> {
    let centre = median(values)?;
    let distances: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    Some((centre, deviations(values.len())? * MAD_TO_SD * median(&distances)?))
}

/// How many standard deviations, estimated from `n` values, the next value may be off:
/// t × √(1 + 1/n). `None` below three values.
fn deviations(n: usize) -> Option<f64> {
    if n < 3 {
        return None;
    }
    let n = n as f64;
    let t = StudentsT::new(0.0, 1.0, n - 1.0).ok()?;
    Some(t.inverse_cdf(1.0 - CHANCE / VALUES_OF_BLOCK / 2.0) * (1.0 + 1.0 / n).sqrt())
}

fn median(values: &[f64]) -> Option<f64> {
    crate::stats::summary::median(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canary(spin_ns: f64) -> Canary {
        Canary {
            spin_ns: Some(spin_ns),
            memory_mb_s: Some(5000.0),
            fsync_ns: Some(1e6),
            ..Canary::default()
        }
    }

    fn judge(rule: CanaryRule, reference: &[f64], reading: &Canary) -> Option<String> {
        let reference: Vec<Canary> = reference.iter().map(|spin| canary(*spin)).collect();
        out_of_range(rule, &reference.iter().collect::<Vec<_>>(), reading)
    }

    #[test]
    fn prediction_intervals_are_those_of_the_t_distribution() {
        // scipy: m ± t.ppf(1 - 0.01/12, 4) · std(ddof=1) · sqrt(1 + 1/5) of 1, 2, 3, 4, 5.
        let (centre, half) = prediction(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((centre - 3.0).abs() < 1e-12);
        assert!((half - 13.040_041).abs() < 1e-4, "{half}");
        assert_eq!(prediction(&[1.0, 1.0]), None);
    }

    #[test]
    fn small_changes_are_in_range_and_large_ones_are_told() {
        let steady = [100.0, 100.1, 99.9, 100.0, 100.05, 99.95];
        for rule in [CanaryRule::Own, CanaryRule::Calibration] {
            assert_eq!(judge(rule, &steady, &canary(102.0)), None);
            let fault = judge(rule, &steady, &canary(130.0)).unwrap();
            assert!(fault.starts_with("spin 1.30 times as slow"), "{fault}");
        }
        // A host that is faster than on the day of its calibration is another one, too.
        assert!(judge(CanaryRule::Calibration, &steady, &canary(70.0)).is_some());
        assert_eq!(judge(CanaryRule::Own, &steady, &canary(70.0)), None);
        assert!(judge(CanaryRule::Calibration, &steady, &canary(106.0)).is_some());
        assert_eq!(judge(CanaryRule::Own, &steady, &canary(106.0)), None);
        assert_eq!(judge(CanaryRule::Off, &steady, &canary(900.0)), None);
    }

    #[test]
    fn a_noisy_host_has_a_wide_range() {
        let noisy = [100.0, 140.0, 80.0, 120.0, 95.0, 150.0];
        assert_eq!(judge(CanaryRule::Own, &noisy, &canary(160.0)), None);
        assert_eq!(judge(CanaryRule::Calibration, &noisy, &canary(160.0)), None);
    }

    #[test]
    fn what_could_not_be_read_has_no_say() {
        let blind = Canary { spin_ns: None, ..canary(1.0) };
        assert_eq!(judge(CanaryRule::Own, &[100.0, 100.0, 100.0], &blind), None);
        assert_eq!(judge(CanaryRule::Own, &[], &canary(100.0)), None);
        let slow_disk = Canary { fsync_ns: Some(5e6), ..canary(100.0) };
        let fault = judge(CanaryRule::Own, &[100.0, 100.0, 100.0], &slow_disk).unwrap();
        assert!(fault.starts_with("fsync 5.00"), "{fault}");
    }
}
