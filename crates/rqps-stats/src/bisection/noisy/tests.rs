//! Simulated searches with known answers.

use super::*;
use rqps_model::datagen::rng::Rng;

fn normal(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
}

/// A made history: unit noise, one change, offsets of builds, versions that cannot be measured.
#[derive(Clone)]
struct Oracle {
    versions: usize,
    change: f64,
    offset: f64,
    against_first: bool,
    broken: Vec<usize>,
}

impl Oracle {
    fn new(versions: usize, change: f64) -> Oracle {
        Oracle { versions, change, offset: 0.0, against_first: false, broken: Vec::new() }
    }

    /// A search whose first version of the new level is `at`; its end, and the values that it took.
    fn search(&self, at: usize, rng: &mut Rng) -> (NoisyStep, usize) {
        let offsets: Vec<f64> = (0..self.versions).map(|_| self.offset * normal(rng)).collect();
        let rules = NoisyRules {
            layout_sd: self.offset,
            against_first: self.against_first,
            least: 0.3,
            ..NoisyRules::default()
        };
        let mut search = NoisySearch::new(&vec![1.0; self.versions], rules);
        let mut runs = 0;
        loop {
            match search.next_step() {
                NoisyStep::Measure(place) if self.broken.contains(&place) => search.lose(place),
                NoisyStep::Measure(place) => {
                    runs += 1;
                    let level = |place: usize| if place >= at { self.change } else { 0.0 };
                    let value = level(place) + offsets[place] + normal(rng);
                    let first = offsets[0] + normal(rng);
                    search.record(place, if self.against_first { value - first } else { value });
                }
                end => return (end, runs),
            }
        }
    }

    /// Share of searches that name the right version, and the mean number of values.
    fn right(&self, searches: u64, seed: u64) -> (f64, f64) {
        let mut rng = Rng::new(seed);
        let (mut right, mut values) = (0, 0);
        for _ in 0..searches {
            let at = 1 + rng.below(self.versions as u64 - 1) as usize;
            let (end, runs) = self.search(at, &mut rng);
            values += runs;
            right += u64::from(matches!(end, NoisyStep::Done(found) if found.best == at));
        }
        (right as f64 / searches as f64, values as f64 / searches as f64)
    }
}

#[test]
fn a_change_of_one_standard_deviation_is_found() {
    for (versions, seed) in [(256, 1), (64, 2), (1024, 3)] {
        let (right, values) = Oracle::new(versions, 1.0).right(200, seed);
        assert!(right >= 0.93, "{versions} versions: {right}, {values} values");
    }
}

#[test]
fn larger_changes_take_fewer_values() {
    let (small, many) = Oracle::new(256, 2.0).right(200, 4);
    let (large, few) = Oracle::new(256, 4.0).right(200, 5);
    assert!(small >= 0.93 && large >= 0.97, "{small} {large}");
    assert!(few < many && few < 40.0, "{few} {many}");
}

#[test]
fn offsets_of_builds_are_no_changes() {
    let oracle = Oracle { offset: 0.25, ..Oracle::new(256, 2.0) };
    let (right, values) = oracle.right(150, 6);
    assert!(right >= 0.9, "{right}, {values} values");
    let near = Oracle { offset: 0.5, ..Oracle::new(32, 4.0) };
    let (right, values) = near.right(150, 7);
    assert!(right >= 0.9, "{right}, {values} values");
}

#[test]
fn pairs_against_the_first_version_find_it_too() {
    let oracle = Oracle { against_first: true, offset: 0.2, ..Oracle::new(20, 3.0) };
    let (right, values) = oracle.right(200, 8);
    assert!(right >= 0.93, "{right}, {values} values");
}

#[test]
fn without_a_change_nothing_is_found() {
    for against_first in [false, true] {
        let mut rng = Rng::new(9);
        let oracle = Oracle { against_first, offset: 0.1, ..Oracle::new(64, 0.0) };
        let quiet = (0..200)
            .filter(|_| matches!(oracle.search(1, &mut rng).0, NoisyStep::NotReproduced(_)));
        let quiet = quiet.count();
        assert!(quiet >= 192, "{quiet} of 200, against the first: {against_first}");
    }
}

/// The claimed probability is what happens.
#[test]
fn the_credible_set_holds_the_version_as_often_as_it_says() {
    let mut rng = Rng::new(10);
    let oracle = Oracle { offset: 0.25, ..Oracle::new(64, 1.5) };
    let (mut held, mut all) = (0, 0);
    for _ in 0..150 {
        let at = 1 + rng.below(63) as usize;
        if let (NoisyStep::Done(found), _) = oracle.search(at, &mut rng) {
            all += 1;
            held += u32::from(found.set.iter().any(|suspect| suspect.0 == at));
            let sum: f64 = found.set.iter().map(|suspect| suspect.1).sum();
            assert!(sum >= found.probability - 1e-9);
        }
    }
    let share = f64::from(held) / f64::from(all);
    assert!(all > 120 && share >= 0.92, "{held} of {all}");
}

#[test]
fn a_version_that_cannot_be_measured_is_named_with_the_next_one() {
    let mut rng = Rng::new(11);
    let oracle = Oracle { broken: vec![9, 20], ..Oracle::new(32, 4.0) };
    let (end, _) = oracle.search(10, &mut rng);
    let NoisyStep::Done(found) = end else { panic!("{end:?}") };
    let set: Vec<usize> = found.set.iter().map(|suspect| suspect.0).collect();
    assert_eq!(set, [9, 10]);
    assert!(found.probability >= 0.95, "{found:?}");
}

#[test]
fn the_same_values_give_the_same_search() {
    let oracle = Oracle { offset: 0.25, ..Oracle::new(64, 2.0) };
    let [one, again] = [(); 2].map(|()| oracle.search(40, &mut Rng::new(12)));
    assert_eq!(one, again);
}

fn all(values: &[&[f64]]) -> Vec<Runs> {
    let runs = |values: &&[f64]| {
        let mut runs = Runs::default();
        values.iter().for_each(|value| runs.add(*value));
        runs
    };
    values.iter().map(runs).collect()
}

fn scatter(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

#[test]
fn likelihoods_are_those_of_the_formulas() {
    let all = all(&[&[1.0, 1.5], &[], &[1.2], &[4.0, 4.4], &[4.1]]);
    let found = ln_likelihoods(&all, 0.0, None);
    let (left, right) = ([1.0, 1.5, 1.2], [4.0, 4.4, 4.1]);
    let squares: f64 = scatter(&left) + scatter(&right);
    let expected = -0.5 * 9.0_f64.ln() - (6.0 - 2.0) / 2.0 * squares.ln();
    assert!((found[3] - expected).abs() < 1e-9, "{found:?}");
    let best = (1..5).max_by(|a, b| found[*a].total_cmp(&found[*b]));
    assert_eq!(best, Some(3));
    // The version without a value cannot be distinguished from the one after it.
    assert!((found[1] - found[2]).abs() < 1e-9);

    let (variance, df) = variance(&all).expect("two values");
    assert_eq!(df, 2);
    assert!((variance - (0.125 + 0.08) / 2.0).abs() < 1e-12);
    let found = ln_likelihoods(&all, 0.3, None);
    let weight = |count: f64| 1.0 / (0.09 + variance / count);
    let of = |terms: &[(f64, f64)]| {
        let w: f64 = terms.iter().map(|term| term.0).sum();
        let y: f64 = terms.iter().map(|term| term.0 * term.1).sum();
        let q: f64 = terms.iter().map(|term| term.0 * term.1 * term.1).sum();
        (w.ln(), q - y * y / w)
    };
    let (two, one) = (weight(2.0), weight(1.0));
    let (left, right) = (of(&[(two, 1.25), (one, 1.2)]), of(&[(two, 4.2), (one, 4.1)]));
    // Two degrees of freedom, four versions with two levels.
    let squares: f64 = left.1 + right.1;
    let expected = -0.5 * (left.0 + right.0 + (2.0 + 2.0) * (1.0 + squares / 2.0).ln());
    assert!((found[3] - expected).abs() < 1e-9, "{found:?} {expected}");
}
