//! Draws a trial: a setup, a fault and a moment, all by the seed of the campaign and the number of
//! the trial.

use rqps_model::datagen::rng::Rng;

use crate::kinds::{KINDS, Kind};
use crate::setups::{Builds, SETUPS, Setup};

/// Longest wait after the line of progress that a fault follows.
const LONGEST_DELAY: u64 = 500;

/// One fault in one run.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    pub(crate) seed: u64,
    pub(crate) number: u64,
    pub(crate) setup: &'static Setup,
    pub(crate) kind: Kind,
    /// rqps runs as a user without rights.
    pub(crate) as_nobody: bool,
    /// The fault strikes so many lines of progress after the start …
    pub(crate) after_lines: u64,
    /// … and so many milliseconds.
    pub(crate) delay: u64,
    /// What else the fault depends on.
    pub(crate) dice: u64,
}

/// The next one of these with their weights.
fn weighted<T: Copy>(rng: &mut Rng, of: &[(T, u64)]) -> Option<T> {
    let total: u64 = of.iter().map(|(_, weight)| weight).sum();
    let mut left = if total == 0 { return None } else { rng.below(total) };
    for (thing, weight) in of {
        match left.checked_sub(*weight) {
            Some(rest) => left = rest,
            None => return Some(*thing),
        }
    }
    None
}

impl Trial {
    /// Trial `number` of the campaign `seed`, among the setups that are possible and wanted.
    pub(crate) fn draw(
        (seed, number): (u64, u64),
        builds: &Builds,
        wanted: &dyn Fn(&str, &str) -> bool,
    ) -> Option<Trial> {
        let mut rng = Rng::stream(seed, "faults", number);
        let of = |setup: &'static Setup| {
            let kinds = KINDS.iter().filter(move |(kind, _)| kind.fits(setup));
            kinds.filter(move |(kind, _)| wanted(setup.name, &kind.name())).copied()
        };
        let setups: Vec<(&Setup, u64)> = SETUPS
            .iter()
            .filter(|setup| setup.is_possible(builds) && of(setup).next().is_some())
            .map(|setup| (setup, setup.weight))
            .collect();
        let setup = weighted(&mut rng, &setups)?;
        let kinds: Vec<(Kind, u64)> = of(setup).collect();
        let kind = weighted(&mut rng, &kinds)?;
        let as_nobody = rng.below(4) == 0 && kind.fits_nobody(setup);
        Some(Trial {
            seed,
            number,
            setup,
            kind,
            as_nobody,
            after_lines: rng.below(setup.lines),
            delay: rng.below(LONGEST_DELAY),
            dice: rng.next_u64(),
        })
    }
}
