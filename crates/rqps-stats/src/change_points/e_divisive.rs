//! E-divisive means with Student's t test, as Hunter and Apache Otava compute it.
//!
//! Sources: Matteson and James (2014), "A nonparametric approach for multiple change point
//! analysis of multivariate data"; Fleming, Kołaczkowski and others (2023), "Hunter: using change
//! point detection to hunt for performance regressions", doi:10.1145/3578244.3583719; Otava 0.8.0.

use crate::student;

/// The treatment of two errors of Otava 0.8.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compatibility {
    /// Results of Otava 0.8.0 digit for digit: population standard deviations go into a t test that
    /// expects those of samples, and after a point is removed the two points behind it are tested
    /// again, not its two neighbours.
    Otava,
    /// Standard deviations of samples; both neighbours of a removed point are tested again.
    Mended,
}

/// Parameters of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EDivisive {
    /// Points that are searched at once; 2 or more.
    pub window: usize,
    /// A change must be less probable than this without a change.
    pub max_p: f64,
    /// Changes of the mean up to this share are no changes.
    pub min_magnitude: f64,
    /// The arithmetic: this package's, or that of another program.
    pub compatibility: Compatibility,
}

impl Default for EDivisive {
    /// The defaults of Otava's command.
    fn default() -> EDivisive {
        EDivisive {
            window: 50,
            max_p: 0.001,
            min_magnitude: 0.0,
            compatibility: Compatibility::Mended,
        }
    }
}

/// A change of the mean: from the points between the change before it and this one to those from
/// here to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The first point of the new level.
    pub index: usize,
    /// Means before and after.
    pub means: [f64; 2],
    /// Standard deviations before and after: of the population for [`Compatibility::Otava`], else
    /// of the sample.
    pub deviations: [f64; 2],
    /// p value of Student's t test with pooled variance, two-sided. NaN if both sides are the same
    /// number.
    pub p: f64,
}

impl Shift {
    /// The larger of the two relative changes, from before to after and back.
    pub fn magnitude(&self) -> f64 {
        let [before, after] = self.means;
        (after / before - 1.0).abs().max((before / after - 1.0).abs())
    }
}

/// The changes of `series`, in its order. Values must be finite; a shorter series than 2 has none.
pub fn e_divisive(series: &[f64], rules: &EDivisive) -> Vec<Shift> {
    let mut shifts = candidates(series, rules);
    while !shifts.is_empty() {
        let mut weakest = last_by(&shifts, |a, b| a.p > b.p);
        if shifts[weakest].p < rules.max_p {
            weakest = last_by(&shifts, |a, b| a.magnitude() < b.magnitude());
            if shifts[weakest].magnitude() > rules.min_magnitude {
                break;
            }
        }
        shifts.remove(weakest);
        let again = match rules.compatibility {
            Compatibility::Otava => weakest..weakest + 2,
            Compatibility::Mended => weakest.saturating_sub(1)..weakest + 1,
        };
        let indexes: Vec<usize> = shifts.iter().map(|shift| shift.index).collect();
        for place in again.filter(|place| *place < indexes.len()) {
            shifts[place] = tested(series, &indexes, place, rules.compatibility);
        }
    }
    shifts
}

/// The first element that no other one beats.
fn last_by(shifts: &[Shift], beats: impl Fn(&Shift, &Shift) -> bool) -> usize {
    let mut best = 0;
    for place in 1..shifts.len() {
        if beats(&shifts[place], &shifts[best]) {
            best = place;
        }
    }
    best
}

/// Candidates of overlapping windows, found with a weaker level.
fn candidates(series: &[f64], rules: &EDivisive) -> Vec<Shift> {
    let weaker = match rules.max_p {
        p if p < 0.05 => 10.0 * p,
        p if p < 0.5 => 2.0 * p,
        p => p,
    };
    let window = rules.window.max(2);
    let mut indexes: Vec<usize> = Vec::new();
    let mut start = 0;
    while start < series.len() {
        let end = (start + window).min(series.len());
        let found = detect(&series[start..end], weaker, rules.compatibility);
        let last = found.last().map_or(0, |index| index + start);
        for index in found {
            if !indexes.contains(&(index + start)) {
                indexes.push(index + start);
            }
        }
        start = last.max(start + window / 2);
    }
    indexes.sort_unstable();
    let places = 0..indexes.len();
    places.map(|place| tested(series, &indexes, place, rules.compatibility)).collect()
}

/// Divides a window at its most divergent point, and again, while the t test agrees. Indexes in
/// order.
fn detect(window: &[f64], max_p: f64, compatibility: Compatibility) -> Vec<usize> {
    let mut indexes: Vec<usize> = Vec::new();
    loop {
        let ends = |indexes: &[usize]| -> Vec<usize> { [&[0], indexes, &[window.len()]].concat() };
        let bounds = ends(&indexes);
        let mut best: Option<(f64, usize)> = None;
        for pair in bounds.windows(2) {
            let Some((divergence, at)) = most_divergent(&window[pair[0]..pair[1]]) else {
                continue;
            };
            if best.is_none_or(|(most, _)| divergence > most) {
                best = Some((divergence, pair[0] + at));
            }
        }
        let Some((_, index)) = best else { return indexes };
        let place = indexes.partition_point(|other| *other < index);
        indexes.insert(place, index);
        if tested(window, &indexes, place, compatibility).p <= max_p {
            continue;
        }
        indexes.remove(place);
        return indexes;
    }
}

/// The largest divergence of two neighbouring parts `[0, at)` and `[at, end)` of a segment, over
/// all `at` and `end`, and its `at`; of equals the first. `None` for fewer than two points.
fn most_divergent(segment: &[f64]) -> Option<(f64, usize)> {
    let count = segment.len();
    // distances[k][i]: from point k to the first i points.
    let distances: Vec<Vec<f64>> = (0..count)
        .map(|k| {
            let sums = segment[..=k].iter().scan(0.0, |sum, value| {
                *sum += (segment[k] - value).abs();
                Some(*sum)
            });
            std::iter::once(0.0).chain(sums).collect()
        })
        .collect();
    // within[k]: among the first k points.
    let mut within = vec![0.0; count + 1];
    for k in 0..count {
        within[k + 1] = within[k] + distances[k][k];
    }
    let mut best: Option<(f64, usize)> = None;
    for at in 1..count {
        let mut right = 0.0;
        for end in at + 1..=count {
            right += distances[end - 1][end - 1] - distances[end - 1][at];
            let (n, m) = (at as f64, (end - at) as f64);
            let across = within[end] - within[at] - right;
            let mut divergence = 2.0 * across / (m + n);
            if at > 1 {
                divergence -= 2.0 * m * within[at] / ((m + n) * (n - 1.0));
            }
            if end - at > 1 {
                divergence -= 2.0 * n * right / ((m + n) * (m - 1.0));
            }
            if best.is_none_or(|(most, _)| divergence > most) {
                best = Some((divergence, at));
            }
        }
    }
    best
}

/// The change at `indexes[place]`, tested between its neighbours.
fn tested(series: &[f64], indexes: &[usize], place: usize, of: Compatibility) -> Shift {
    let index = indexes[place];
    let from = place.checked_sub(1).map_or(0, |before| indexes[before]);
    let to = indexes.get(place + 1).copied().unwrap_or(series.len());
    let (left, right) = (&series[from..index], &series[index..to]);
    let means = [mean(left), mean(right)];
    let deviations = [deviation(left, means[0], of), deviation(right, means[1], of)];
    let (n, m) = (left.len() as f64, right.len() as f64);
    let df = n + m - 2.0;
    let p = if df > 0.0 {
        let [left, right] = deviations;
        let variance = ((n - 1.0) * left * left + (m - 1.0) * right * right) / df;
        let t = (means[0] - means[1]) / (variance * (1.0 / n + 1.0 / m)).sqrt();
        if t.is_nan() { f64::NAN } else { 2.0 * student::above(t.abs(), df) }
    } else {
        1.0
    };
    Shift { index, means, deviations, p }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64], mean: f64, of: Compatibility) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let divisor = match of {
        Compatibility::Otava => values.len(),
        Compatibility::Mended => values.len() - 1,
    };
    (squares / divisor as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTAVA: EDivisive = EDivisive {
        window: 30,
        max_p: 0.001,
        min_magnitude: 0.0,
        compatibility: Compatibility::Otava,
    };

    /// The first divergence by its definition, without shortcuts.
    fn divergence(left: &[f64], right: &[f64]) -> f64 {
        let (n, m) = (left.len() as f64, right.len() as f64);
        let sum = |pairs: &mut dyn Iterator<Item = (f64, f64)>| -> f64 {
            pairs.map(|(a, b)| (a - b).abs()).sum()
        };
        let inner = |side: &[f64]| -> f64 {
            let pairs = (0..side.len()).flat_map(|k| (0..k).map(move |i| (i, k)));
            sum(&mut pairs.map(|(i, k)| (side[i], side[k])))
        };
        let across = left.iter().flat_map(|a| right.iter().map(move |b| (*a, *b)));
        let mut value = 2.0 / (m + n) * sum(&mut across.into_iter());
        if left.len() > 1 {
            value -= 2.0 * m / ((m + n) * (n - 1.0)) * inner(left);
        }
        if right.len() > 1 {
            value -= 2.0 * n / ((m + n) * (m - 1.0)) * inner(right);
        }
        value
    }

    fn noise(seed: u64, count: usize) -> Vec<f64> {
        let mut rng = rqps_model::datagen::rng::Rng::new(seed);
        (0..count).map(|_| (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0).collect()
    }

    #[test]
    fn the_most_divergent_point_is_that_of_the_definition() {
        for seed in 1..20 {
            let values = noise(seed, 17);
            let (found, at) = most_divergent(&values).expect("points");
            let mut best = (f64::NEG_INFINITY, 0);
            for split in 1..values.len() {
                for end in split + 1..=values.len() {
                    let value = divergence(&values[..split], &values[split..end]);
                    if value > best.0 {
                        best = (value, split);
                    }
                }
            }
            assert_eq!(at, best.1, "seed {seed}");
            assert!((found - best.0).abs() < 1e-9, "seed {seed}: {found} {}", best.0);
        }
    }

    #[test]
    fn steps_are_found_and_noise_is_not() {
        let mut values: Vec<f64> = noise(8, 90).iter().map(|value| 100.0 + value).collect();
        let quiet = e_divisive(&values, &EDivisive::default());
        assert_eq!(quiet, []);
        for value in &mut values[40..] {
            *value += 6.0;
        }
        for value in &mut values[65..] {
            *value -= 9.0;
        }
        for compatibility in [Compatibility::Otava, Compatibility::Mended] {
            let rules = EDivisive { compatibility, ..EDivisive::default() };
            let found = e_divisive(&values, &rules);
            let indexes: Vec<usize> = found.iter().map(|shift| shift.index).collect();
            assert_eq!(indexes, [40, 65]);
            assert!((found[0].means[1] - 106.0).abs() < 0.8, "{:?}", found[0]);
            assert!(found.iter().all(|shift| shift.p < 1e-6));
        }
    }

    #[test]
    fn the_least_size_removes_small_steps() {
        let values: Vec<f64> = (0..40)
            .map(|i| 100.0 + f64::from(i % 3) * 0.1 + if i < 20 { 0.0 } else { 2.0 })
            .collect();
        assert_eq!(e_divisive(&values, &OTAVA).len(), 1);
        assert_eq!(e_divisive(&values, &EDivisive { min_magnitude: 0.05, ..OTAVA }), []);
    }

    #[test]
    fn short_and_constant_series_have_no_change() {
        for values in [vec![], vec![1.0], vec![1.0, 2.0], vec![5.0; 60]] {
            assert_eq!(e_divisive(&values, &OTAVA), [], "{values:?}");
        }
    }
}
