//! `rqps vector verify-data`: is a set of vectors what it should be?

use anyhow::{Context, Result};

use crate::bench;
use crate::cli::args::VerifyData;
use crate::cli::{exit, folders};
use crate::domain::benchmark::Shape;
use crate::domain::vector::{DataSource, Filter, Present};
use crate::driver::vector::dataset::Dataset;
use crate::driver::vector::dataset::statistics::{Statistics, statistics, wrong_given};

/// Neighbours of each query that the figures rest on.
const K: usize = 100;
/// Queries whose given neighbours are computed again.
const SAMPLE: usize = 500;
/// Rows of the set for which the specification has figures.
const SPECIFIED_ROWS: usize = 60_000;

/// A figure of the specified set: its name, its value, how far another seed may be from it, and
/// where it is found.
type Figure = (&'static str, f64, f64, fn(&Statistics) -> f64);

/// What the prototype of the generator had at 60,000 rows and 784 dimensions; three seeds differed
/// by less than a per cent in dimensionality.
const FIGURES: [Figure; 8] = [
    ("zeros", 0.61, 0.05, |s| s.zeros),
    ("mean", 25.6, 0.05, |s| s.mean),
    ("local dimensionality, mean", 10.0, 0.05, |s| s.dimensionality[0]),
    ("local dimensionality, median", 9.1, 0.05, |s| s.dimensionality[1]),
    ("local dimensionality, 10 %", 4.2, 0.05, |s| s.dimensionality[2]),
    ("local dimensionality, 90 %", 17.2, 0.05, |s| s.dimensionality[3]),
    ("relative contrast at 10", 2.41, 0.05, |s| s.contrast),
    ("skewness of 10-occurrence", 1.55, 0.10, |s| s.skewness),
];

/// `rqps vector verify-data`.
pub(super) fn verify(words: &VerifyData) -> Result<u8> {
    let (mut workload, _) = bench::workload("vector", "full").map_err(anyhow::Error::msg)?;
    for setting in &words.settings {
        bench::set(&mut workload, setting)?;
    }
    let Shape::Vector(shape) = &workload.shape else { return Ok(exit::USAGE) };
    let cache = folders::cache(words.cache.cache.as_deref())?.join("datasets");
    let data = Dataset::open(&shape.data, workload.rows, K, Some(&cache))?;
    let truth = data
        .truth(Filter::None, Present::All, K, Some(&cache))
        .context("find the exact neighbours")?;
    say!("{} [{}], {:?}", data.name, data.hash, data.distance);
    let found = statistics(&data, &truth);
    let specified = matches!(&shape.data, DataSource::Fashion { dims: 784, rounded: true, .. })
        && data.train.rows() == SPECIFIED_ROWS;
    let mut wrong = 0;
    say!("{:<30} {:>8} {:>10} {:>8}", "figure", "found", "specified", "differs");
    for (name, value, allowed, get) in FIGURES {
        let have = get(&found);
        if !specified {
            say!("{name:<30} {have:>8.3} {:>10} {:>8}", "-", "-");
            continue;
        }
        let differs = have / value - 1.0;
        let verdict = if differs.abs() <= allowed { "" } else { "  TOO FAR" };
        wrong += u32::from(!verdict.is_empty());
        say!("{name:<30} {have:>8.3} {value:>10.3} {:>7.1}%{verdict}", differs * 100.0);
    }
    if !specified {
        say!("there are figures to hold it against for 60000 generated rows of 784 only");
    }
    match (&data.given, wrong_given(&data, &truth, SAMPLE)) {
        (_, Some(what)) => {
            say!("the neighbours of the file are WRONG: {what}");
            wrong += 1;
        }
        (Some(given), None) => {
            say!("the neighbours of the file (k = {}) agree with exact ones", given.k);
        }
        (None, None) => {}
    }
    Ok(if wrong == 0 { exit::FINE } else { exit::RUN_FAILED })
}
