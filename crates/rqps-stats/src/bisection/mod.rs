//! Finds which of many versions in a row changed a value: by bisection where values repeat, by
//! Bayes' rule where they scatter. Both are state machines: they say which version to measure next,
//! and know nothing but the values so far.

mod noisy;

pub use noisy::{EndsDifference, NoisyRules, NoisySearch, NoisyStep, Suspects};

// Bisection of values that repeat, such as counted instructions: one value per version is enough.
// Every jump that is large enough is found, not only one.

/// The rules for a jump. Values are logarithms, so these are shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExactRules {
    /// Values that differ by no more than this are the same.
    pub same_within: f64,
    /// Jumps below this share of the difference between the ends are left alone.
    pub share_least: f64,
}

/// A search for jumps among versions in a row.
#[derive(Clone, Debug)]
pub struct ExactSearch {
    rules: ExactRules,
    mass: Vec<f64>,
    values: Vec<Option<f64>>,
    lost: Vec<bool>,
}

/// The next action.
#[derive(Clone, Debug, PartialEq)]
pub enum ExactStep {
    /// Measure this version.
    Measure(usize),
    /// The ends do not differ: last − first.
    NotReproduced(f64),
    /// All jumps, the largest first. Empty if the difference is spread over many small ones.
    Done(Vec<Jump>),
}

/// Neighbours whose values differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Jump {
    /// The last version before it that was measured.
    pub after: usize,
    /// The first version behind it that was measured.
    pub at: usize,
    /// The versions that may have made it: one, unless others could not be measured.
    pub suspects: Vec<usize>,
    /// Value behind − value before.
    pub difference: f64,
}

impl ExactSearch {
    /// A search among `mass.len()` versions, at least two. `mass[i]` says how probable it is that
    /// version i differs from the one before it; 0 where it cannot, `mass[0]` means nothing.
    pub fn new(mass: &[f64], rules: ExactRules) -> ExactSearch {
        let count = mass.len();
        ExactSearch {
            rules,
            mass: mass.to_vec(),
            values: vec![None; count],
            lost: vec![false; count],
        }
    }

    /// Takes the value of a version.
    pub fn record(&mut self, place: usize, value: f64) {
        self.values[place] = Some(value);
    }

    /// Leaves a version out that cannot be measured. The ends must be measured.
    pub fn lose(&mut self, place: usize) {
        self.lost[place] = true;
    }

    /// The next step.
    pub fn next_step(&self) -> ExactStep {
        let last = self.values.len() - 1;
        let (Some(first_value), Some(last_value)) = (self.values[0], self.values[last]) else {
            return ExactStep::Measure(if self.values[0].is_none() { 0 } else { last });
        };
        let total = last_value - first_value;
        if total.abs() <= self.rules.same_within {
            return ExactStep::NotReproduced(total);
        }
        let least = self.rules.same_within.max(self.rules.share_least * total.abs());
        let mut jumps = self.jumps();
        jumps.retain(|jump| jump.difference.abs() > least);
        jumps.sort_by(|a, b| b.difference.abs().total_cmp(&a.difference.abs()));
        match jumps.iter().find_map(|jump| self.middle(jump)) {
            Some(place) => ExactStep::Measure(place),
            None => ExactStep::Done(jumps),
        }
    }

    /// The most measurements that one jump may still take.
    pub fn left_for_one(&self) -> usize {
        let widest = self.jumps().into_iter().map(|jump| jump.suspects.len()).max().unwrap_or(0);
        widest.next_power_of_two().ilog2() as usize
    }

    /// Neighbours among the measured versions.
    fn jumps(&self) -> Vec<Jump> {
        let values = self.values.iter().enumerate();
        let measured: Vec<(usize, f64)> = values.filter_map(|(at, v)| Some((at, (*v)?))).collect();
        let jump = |pair: &[(usize, f64)]| {
            let ((after, before), (at, behind)) = (pair[0], pair[1]);
            let suspects = self.suspects(after, at);
            Jump { after, at, suspects, difference: behind - before }
        };
        measured.windows(2).map(jump).collect()
    }

    /// Versions between two that may differ from the one before them. If none should, all may.
    fn suspects(&self, after: usize, at: usize) -> Vec<usize> {
        let probable: Vec<usize> = (after + 1..=at).filter(|i| self.mass[*i] > 0.0).collect();
        if probable.is_empty() { (after + 1..=at).collect() } else { probable }
    }

    /// The version that halves the mass of the suspects best.
    fn middle(&self, jump: &Jump) -> Option<usize> {
        let (_, inner) = jump.suspects.split_last()?;
        let mass = |place: usize| self.mass[place].max(f64::MIN_POSITIVE);
        let total: f64 = jump.suspects.iter().map(|place| mass(*place)).sum();
        let mut before = 0.0;
        let shares = inner.iter().map(|place| {
            before += mass(*place);
            (*place, (before / total - 0.5).abs())
        });
        let able = shares.filter(|(place, _)| !self.lost[*place]);
        able.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(place, _)| place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: ExactRules = ExactRules { same_within: 0.002, share_least: 0.25 };

    /// Runs a search on true values; places in `broken` cannot be measured. Returns what it ends
    /// with and how many versions it measured.
    fn run(values: &[f64], mass: &[f64], broken: &[usize]) -> (ExactStep, usize) {
        let mut search = ExactSearch::new(mass, RULES);
        let mut measured = 0;
        loop {
            match search.next_step() {
                ExactStep::Measure(place) if broken.contains(&place) => search.lose(place),
                ExactStep::Measure(place) => {
                    measured += 1;
                    search.record(place, values[place]);
                }
                end => return (end, measured),
            }
        }
    }

    fn stairs(count: usize, jumps: &[(usize, f64)]) -> Vec<f64> {
        let height = |at: usize| jumps.iter().filter(|jump| jump.0 <= at).map(|jump| jump.1).sum();
        (0..count).map(height).collect()
    }

    fn places(end: &ExactStep) -> Vec<Vec<usize>> {
        match end {
            ExactStep::Done(jumps) => jumps.iter().map(|jump| jump.suspects.clone()).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_jump_is_found_anywhere_in_few_steps() {
        for count in [2, 3, 32, 100] {
            for at in 1..count {
                let mut values = stairs(count, &[(at, 0.02)]);
                for (place, value) in values.iter_mut().enumerate() {
                    // The scatter of repeats of one build.
                    *value += 0.0005 * ((place % 3) as f64 - 1.0);
                }
                let (end, measured) = run(&values, &vec![1.0; count], &[]);
                assert_eq!(places(&end), [[at]], "{count}");
                let most = 2 + (count - 1).next_power_of_two().ilog2() as usize;
                assert!(measured <= most, "{count} {at}: {measured}");
            }
        }
    }

    #[test]
    fn several_jumps_are_found_the_largest_first() {
        let values = stairs(40, &[(7, 0.02), (8, 0.05), (31, 0.03), (20, 0.004)]);
        let (end, _) = run(&values, &[1.0; 40], &[]);
        assert_eq!(places(&end), [[8], [31]]);
        let slow_and_fast = stairs(16, &[(5, 0.10), (11, -0.04)]);
        assert_eq!(places(&run(&slow_and_fast, &[1.0; 16], &[]).0), [[5], [11]]);
    }

    #[test]
    fn equal_ends_are_not_searched() {
        let (end, measured) = run(&[0.0, 0.5, 0.001], &[1.0; 3], &[]);
        assert_eq!((end, measured), (ExactStep::NotReproduced(0.001), 2));
    }

    #[test]
    fn a_difference_of_many_small_jumps_has_no_place() {
        let all: Vec<(usize, f64)> = (1..11).map(|at| (at, 0.01)).collect();
        assert_eq!(places(&run(&stairs(11, &all), &[1.0; 11], &[]).0), [[0; 0]; 0]);
    }

    #[test]
    fn versions_that_cannot_be_measured_stay_suspects_with_their_neighbour() {
        let values = stairs(16, &[(9, 0.02)]);
        let check = |broken: &[usize], expected: &[usize]| {
            assert_eq!(places(&run(&values, &[1.0; 16], broken).0), [expected], "{broken:?}");
        };
        check(&[3, 12], &[9]);
        check(&[9], &[9, 10]);
        check(&[8], &[8, 9]);
        check(&[8, 9, 10], &[8, 9, 10, 11]);
        let inner: Vec<usize> = (1..15).collect();
        check(&inner, &(1..16).collect::<Vec<usize>>());
    }

    #[test]
    fn versions_that_cannot_matter_are_neither_measured_nor_suspects() {
        let values = stairs(32, &[(17, 0.02)]);
        let mut mass = vec![0.0; 32];
        for place in [4, 9, 17, 22, 30] {
            mass[place] = 1.0;
        }
        let (end, measured) = run(&values, &mass, &[]);
        assert_eq!(places(&end), [[17]]);
        assert!(measured <= 5, "{measured}");
        // Nothing should matter and something does: all are suspects.
        mass.fill(0.0);
        let far = stairs(32, &[(31, 0.02)]);
        assert_eq!(places(&run(&far, &mass, &[]).0), [[31]]);
    }
}
