//! In which order a block, or a load, visits its targets.
//!
//! Two targets: seeded random ABBA or BAAB, so that a linear drift of the host cancels within two
//! blocks. More: the rows of a Williams square (each target equally often in each place and after
//! each other target), relabelled and shuffled by the seed (Williams 1949). Several loads of each
//! target follow the same rule. docs/measuring.md describes the design.

use rqps_model::datagen::rng::Rng;

/// Order of the targets (indices) in each of `blocks` blocks.
pub fn orders(targets: usize, blocks: u32, seed: u64) -> Vec<Vec<usize>> {
    let mut rng = Rng::stream(seed, "block order", 0);
    let mut orders = Vec::new();
    while orders.len() < blocks as usize {
        let relabelled = permutation(targets, &mut rng);
        let mut square: Vec<Vec<usize>> = williams(targets)
            .into_iter()
            .map(|row| row.into_iter().map(|place| relabelled[place]).collect())
            .collect();
        // With two targets the square is AB, BA already; shuffling more would break ABBA.
        if targets > 2 {
            shuffle(&mut square, &mut rng);
        }
        orders.extend(square);
    }
    orders.truncate(blocks as usize);
    orders
}

/// The rows of a Williams design: n rows for an even number of targets, 2n for an odd one.
fn williams(targets: usize) -> Vec<Vec<usize>> {
    if targets < 2 {
        return vec![(0..targets).collect()];
    }
    // 0, 1, n−1, 2, n−2 …: neighbours differ by every distance once.
    let mut first = vec![0];
    for step in 1..targets {
        let place = if step % 2 == 1 { step.div_ceil(2) } else { targets - step / 2 };
        first.push(place);
    }
    let shifted = |by: usize| first.iter().map(|place| (place + by) % targets).collect();
    let mut rows: Vec<Vec<usize>> = (0..targets).map(shifted).collect();
    if targets % 2 == 1 {
        let mirrored: Vec<Vec<usize>> =
            rows.iter().map(|row| row.iter().rev().copied().collect()).collect();
        rows.extend(mirrored);
    }
    rows
}

fn permutation(length: usize, rng: &mut Rng) -> Vec<usize> {
    let mut places: Vec<usize> = (0..length).collect();
    shuffle(&mut places, rng);
    places
}

/// Fisher-Yates.
fn shuffle<T>(items: &mut [T], rng: &mut Rng) {
    for last in (1..items.len()).rev() {
        let other = rng.uniform(0, last as u64) as usize;
        items.swap(last, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_targets_go_abba() {
        for seed in 0..50 {
            for pair in orders(2, 8, seed).chunks(2) {
                assert_eq!(pair[0], pair[1].iter().rev().copied().collect::<Vec<_>>());
            }
        }
        let firsts: usize = (0..200).map(|seed| orders(2, 1, seed)[0][0]).sum();
        assert!((60..140).contains(&firsts), "the first place must be random: {firsts} of 200");
    }

    #[test]
    fn every_target_stands_in_every_place_and_after_every_other_equally_often() {
        for targets in 2..=9usize {
            let rows = williams(targets);
            let each = rows.len() / targets;
            for place in 0..targets {
                for target in 0..targets {
                    let count = rows.iter().filter(|row| row[place] == target).count();
                    assert_eq!(count, each, "{targets} targets: {target} in place {place}");
                }
            }
            for first in 0..targets {
                for second in (0..targets).filter(|second| *second != first) {
                    let follows = |row: &&Vec<usize>| row.windows(2).any(|w| w == [first, second]);
                    let count = rows.iter().filter(follows).count();
                    assert_eq!(count, each, "{targets} targets: {second} after {first}");
                }
            }
        }
    }

    #[test]
    fn the_seed_decides() {
        assert_eq!(orders(5, 12, 7), orders(5, 12, 7));
        assert_ne!(orders(5, 12, 7), orders(5, 12, 8));
        assert_eq!(orders(1, 3, 7), vec![vec![0]; 3]);
    }
}
