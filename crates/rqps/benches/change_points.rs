//! Measures how many changes the searches of rqps and of Apache Otava find, and how many of those
//! are real: the tables of docs/history.md.
//!
//!     cargo bench --bench change_points
//!
//! Otava's search is that of `rqps history --otava`, which gives Otava's results digit for digit.

#![allow(clippy::print_stdout, reason = "a program of its own")]

use rqps_model::datagen::rng::Rng;
use rqps_stats::change_points::{
    Compatibility, EDivisive, VersionMean, e_divisive, partition, penalty,
};

/// Simulated series per row.
const SERIES: usize = 1000;
const VERSIONS: usize = 20;
/// Runs per version.
const RUNS: usize = 4;
/// Points per history.
const POINTS: usize = 200;
/// Sizes of the steps of a history, standard deviations.
const STEPS: [f64; 5] = [1.0, 1.5, 2.0, 3.0, 5.0];

fn main() {
    // `cargo bench` passes this option; `cargo test` needs only a few series.
    let series = if std::env::args().any(|word| word == "--bench") { SERIES } else { 5 };
    println!("| ladders | rqps | rqps, tau 0 | Otava, all runs | Otava, means |");
    println!("|---|---|---|---|---|");
    for (layout, step) in [(0.0, 0.03), (0.005, 0.03), (0.005, 0.02), (0.01, 0.05)] {
        for ways in [1, 2] {
            ladders(series, layout, step, ways);
        }
    }
    println!("\n| histories | rqps | Otava |\n|---|---|---|");
    for noise in [Noise::Normal, Noise::Heavy, Noise::Spikes, Noise::Autocorrelated(0.3)] {
        for step in STEPS {
            histories(series, noise, step);
        }
    }
    println!("\n| histories without a change | rqps | Otava |\n|---|---|---|");
    for noise in [
        Noise::Normal,
        Noise::Heavy,
        Noise::Spikes,
        Noise::Autocorrelated(0.3),
        Noise::Autocorrelated(0.6),
    ] {
        quiet(series, noise);
    }
}

/// Counts of found and real changes.
#[derive(Clone, Copy, Default)]
struct Score {
    real: usize,
    found: usize,
    /// Real changes with a found one nearby.
    hit: usize,
    /// Found changes with a real one nearby.
    right: usize,
}

impl Score {
    fn add(&mut self, real: &[usize], found: &[usize], near: usize) {
        let has = |all: &[usize], at: &usize| all.iter().any(|other| other.abs_diff(*at) <= near);
        self.real += real.len();
        self.found += found.len();
        self.hit += real.iter().filter(|at| has(found, at)).count();
        self.right += found.iter().filter(|at| has(real, at)).count();
    }

    fn text(&self) -> String {
        let share = |part: usize, whole: usize| match whole {
            0 => "–".to_owned(),
            _ => format!("{:.2}", part as f64 / whole as f64),
        };
        format!("{} / {}", share(self.hit, self.real), share(self.right, self.found))
    }
}

fn otava(values: &[f64], compatibility: Compatibility) -> Vec<usize> {
    let rules = EDivisive { compatibility, ..EDivisive::default() };
    e_divisive(values, &rules).iter().map(|shift| shift.index).collect()
}

/// Three steps in 20 versions of four runs with a noise of 1 %: all down, or in both directions.
fn ladders(series: usize, layout: f64, step: f64, ways: u64) {
    let mut rng = Rng::stream(11, "ladders", 0);
    let mut scores = [Score::default(); 4];
    for _ in 0..series {
        let real = [4, 9, 14].map(|from| from + rng.below(3) as usize);
        let by = real.map(|_| if rng.below(ways) == 0 { -step } else { step });
        let levels: Vec<f64> = (0..VERSIONS)
            .map(|at| {
                let before = real.iter().zip(by).filter(|(change, _)| **change <= at);
                before.map(|(_, by)| by).sum::<f64>() + layout * normal(&mut rng)
            })
            .collect();
        let runs: Vec<Vec<f64>> = levels
            .iter()
            .map(|level| (0..RUNS).map(|_| level + 0.01 * normal(&mut rng)).collect())
            .collect();
        let means: Vec<f64> = runs.iter().map(|runs| mean(runs)).collect();
        let squares: f64 = runs
            .iter()
            .zip(&means)
            .flat_map(|(runs, mean)| runs.iter().map(move |value| (value - mean).powi(2)))
            .sum();
        let variance = squares / (VERSIONS * (RUNS - 1)) as f64 / RUNS as f64;
        let found = |layout: f64| -> Vec<usize> {
            let versions: Vec<VersionMean> = means
                .iter()
                .map(|mean| VersionMean { mean: *mean, variance: variance + layout * layout })
                .collect();
            let levels =
                partition(&versions, penalty(VERSIONS, (VERSIONS * (RUNS - 1)) as f64, 0.05))
                    .levels;
            levels.iter().skip(1).map(|level| level.from).collect()
        };
        let shifted = |logs: &[f64]| -> Vec<f64> { logs.iter().map(|ln| ln.exp()).collect() };
        let of_runs = otava(&shifted(&runs.concat()), Compatibility::Otava);
        let of_runs: Vec<usize> = of_runs.iter().map(|at| (at + RUNS / 2) / RUNS).collect();
        let all =
            [found(layout), found(0.0), of_runs, otava(&shifted(&means), Compatibility::Otava)];
        for (score, found) in scores.iter_mut().zip(&all) {
            score.add(&real, found, 1);
        }
    }
    let cells = scores.map(|score| score.text()).join(" | ");
    let name = if ways == 1 { "down" } else { "down or up" };
    let [step, layout] = [step, layout].map(|share| 100.0 * share);
    println!("| steps of {step:.0} % {name}, layouts of {layout:.1} % | {cells} |");
}

/// The distribution of points around their level, with a standard deviation of 1.
#[derive(Clone, Copy)]
enum Noise {
    Normal,
    /// Student's t with three degrees of freedom.
    Heavy,
    /// One point of twenty is eight standard deviations away.
    Spikes,
    /// Each point keeps this share of the one before.
    Autocorrelated(f64),
}

impl Noise {
    fn name(self) -> String {
        match self {
            Noise::Normal => "normal".to_owned(),
            Noise::Heavy => "t with 3 degrees of freedom".to_owned(),
            Noise::Spikes => "5 % of points off by 8".to_owned(),
            Noise::Autocorrelated(share) => format!("autocorrelation {share}"),
        }
    }

    fn points(self, rng: &mut Rng) -> Vec<f64> {
        let mut last = normal(rng);
        let mut point = || match self {
            Noise::Normal => normal(rng),
            Noise::Heavy => {
                let square: f64 = (0..3).map(|_| normal(rng).powi(2)).sum();
                normal(rng) / (square / 3.0).sqrt() / 3.0_f64.sqrt()
            }
            Noise::Spikes => {
                let own = normal(rng);
                if rng.unit() < 0.05 { own + 8.0 } else { own }
            }
            Noise::Autocorrelated(share) => {
                last = share * last + (1.0 - share * share).sqrt() * normal(rng);
                last
            }
        };
        (0..POINTS).map(|_| point()).collect()
    }
}

/// Three steps of random direction in 200 points; a change counts within two points.
fn histories(series: usize, noise: Noise, step: f64) {
    let mut rng = Rng::stream(12, "histories", 0);
    let mut scores = [Score::default(); 2];
    for _ in 0..series {
        let mut values: Vec<f64> = noise.points(&mut rng).iter().map(|it| 1000.0 + it).collect();
        let real = [40, 90, 140].map(|from| from + rng.below(20) as usize);
        for change in real {
            let by = if rng.unit() < 0.5 { step } else { -step };
            values[change..].iter_mut().for_each(|value| *value += by);
        }
        for (score, whose) in scores.iter_mut().zip([Compatibility::Mended, Compatibility::Otava]) {
            score.add(&real, &otava(&values, whose), 2);
        }
    }
    println!("| {}, steps of {step} | {} | {} |", noise.name(), scores[0].text(), scores[1].text());
}

/// The share of series without a change in which one is found.
fn quiet(series: usize, noise: Noise) {
    let mut rng = Rng::stream(13, "quiet", 0);
    let mut wrong = [0; 2];
    for _ in 0..series {
        let values: Vec<f64> = noise.points(&mut rng).iter().map(|it| 1000.0 + it).collect();
        for (wrong, whose) in wrong.iter_mut().zip([Compatibility::Mended, Compatibility::Otava]) {
            *wrong += usize::from(!otava(&values, whose).is_empty());
        }
    }
    let [own, theirs] = wrong.map(|wrong| wrong as f64 / series as f64);
    println!("| {} | {own:.2} | {theirs:.2} |", noise.name());
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Nearly normal: the sum of twelve uniform numbers.
fn normal(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
}
