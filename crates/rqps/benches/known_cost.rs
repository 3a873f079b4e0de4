//! Tests whether rqps finds a function that costs a known share of an operation, and lists no
//! function of equal builds: campaigns of `rqps count` and `rqps compare --profile`.
//!
//!     cargo bench --bench known_cost -- --by count,sample --burn 0.5%,2% --campaigns 10
//!
//! docs/explaining.md explains the table and has results.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program of its own")]

#[path = "slowdown/burner.rs"]
mod burner;
#[path = "known_cost/campaign.rs"]
mod campaign;
mod folders;
#[path = "slowdown/share.rs"]
mod share;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;
use rqps_builds as obtain;
use rqps_builds::Said;
use rqps_lab::lab;
use rqps_lab::plan;

use crate::campaign::{Finding, Measuring, PLAIN, Source};
use crate::folders::Folders;
use crate::share::share;

/// A build against builds that burn a share of its work in one function, many times.
#[derive(Parser)]
struct Options {
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
    /// The build: a server by version or path.
    #[arg(long, default_value = "postgres@17.2.0")]
    target: String,
    #[arg(long, value_delimiter = ',', default_value = "count,sample")]
    by: Vec<Source>,
    /// Share of an operation's instructions or CPU time that each further build burns.
    #[arg(long, value_delimiter = ',', default_value = "0.5%,2%", value_parser = share)]
    burn: Vec<f64>,
    /// Comparisons of all builds, each with another seed.
    #[arg(long, default_value_t = 10)]
    campaigns: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, default_value = "point-query")]
    step: String,
    #[arg(long, default_value_t = 20_000)]
    rows: u64,
    /// Counts of each build in a comparison.
    #[arg(long, default_value_t = 3)]
    repeats: u32,
    /// Sampled seconds per build and block.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Keep builds and results in this folder; comparisons that are there are read, not repeated.
    #[arg(long)]
    keep: Option<PathBuf>,
    /// The program rqps, by default that of this build.
    #[arg(long, default_value = env!("CARGO_BIN_EXE_rqps"))]
    rqps: PathBuf,
    #[command(flatten)]
    folders: Folders,
}

fn main() -> ExitCode {
    match compare(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("known_cost: failed to {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn compare(options: &Options) -> Result<()> {
    let folder = tempfile::Builder::new()
        .prefix("known-cost-")
        .permissions(PermissionsExt::from_mode(0o755))
        .tempdir_in(&options.folders.work)
        .with_context(|| format!("make a folder in {}", options.folders.work.display()))?;
    let place = options.keep.as_deref().unwrap_or(folder.path());
    let measuring = Measuring {
        rqps: options.rqps.clone(),
        step: options.step.clone(),
        rows: options.rows,
        repeats: options.repeats,
        seconds: options.seconds,
        work: options.folders.work.clone(),
    };
    println!(
        "| by | burns | campaigns | difference stated | function listed | first | its share \
         | others listed |"
    );
    println!("{}|", "|---".repeat(8));
    for source in &options.by {
        let builds = builds(options, *source, &measuring, place)?;
        let mut rows: Vec<Vec<Finding>> = builds[1..].iter().map(|_| Vec::new()).collect();
        for seed in options.seed..options.seed + options.campaigns {
            let results = place.join(format!("{}-{seed}", source.name()));
            let words: Vec<String> = builds.iter().map(|build| build.word.clone()).collect();
            let campaign = measuring.carry_out(*source, &words, seed, &results)?;
            tell(*source, seed, &campaign);
            for (row, finding) in rows.iter_mut().zip(campaign.findings) {
                row.push(finding);
            }
        }
        for (build, row) in builds[1..].iter().zip(&rows) {
            print_row(*source, build.burns, row);
        }
    }
    Ok(())
}

/// A build of the comparison.
struct Burning {
    /// `LABEL=DBMS=PATH`.
    word: String,
    burns: f64,
}

/// The build that burns nothing, twice, then those that burn.
fn builds(
    options: &Options,
    source: Source,
    measuring: &Measuring,
    place: &Path,
) -> Result<Vec<Burning>> {
    let cache = lab::open_cache(&options.folders.cache)?;
    let target = plan::words::targets(std::slice::from_ref(&options.target))?.remove(0);
    let mut say = |said: Said<'_>| eprintln!("{}", said.text());
    let build = obtain::obtain(target.dbms, &target.source, &cache, &mut say)
        .with_context(|| format!("obtain {}", target.label))?;
    let place = place.join(source.name());
    fs::create_dir_all(&place).with_context(|| format!("make {}", place.display()))?;
    let make = |label: &str, definition: String| {
        let definitions = ["-DNAMED".to_owned(), definition];
        let place = place.join(label);
        if place.exists() {
            fs::remove_dir_all(&place).with_context(|| format!("clear {}", place.display()))?;
        }
        burner::make(&build, target.dbms, &definitions, &place)
    };
    let instructions = match source {
        Source::Sample => 0.0,
        Source::Count => {
            let trial = make("trial", "-DLOOPS=0".to_owned())?;
            measuring.instructions(&trial, &place.join("trial-results"))?
        }
    };
    // Paths of one length: what it costs to compare strings depends on where they lie.
    let labels = [PLAIN.to_owned(), "again".to_owned()].into_iter();
    let labels = labels.chain((1..=options.burn.len()).map(|number| format!("burn{number}")));
    let mut all = Vec::new();
    for (label, burns) in labels.zip([0.0, 0.0].iter().chain(&options.burn)) {
        let definition = match source {
            // A loop is two instructions.
            Source::Count => format!("-DLOOPS={:.0}", burns * instructions / 2.0),
            Source::Sample => format!("-DSHARE={burns:?}"),
        };
        let word = format!("{label}={}", make(&label, definition)?);
        all.push(Burning { word, burns: *burns });
    }
    Ok(all)
}

fn tell(source: Source, seed: u64, campaign: &campaign::Campaign) {
    let overhead = campaign.overhead.map_or_else(String::new, |ratio| {
        format!("; rates with the profiler {ratio:.3} times those without")
    });
    eprintln!("{} {seed}{overhead}", source.name());
    for one in &campaign.findings {
        let burned = one.burned.map_or_else(
            || "not listed".to_owned(),
            |share| format!("listed with {:.2} %", 100.0 * share),
        );
        let differs = if one.differs { "differs" } else { "no difference" };
        eprintln!("    {}: {differs}, burning function {burned}, {} others", one.label, one.others);
    }
}

fn print_row(source: Source, burns: f64, found: &[Finding]) {
    let count = |holds: fn(&Finding) -> bool| found.iter().filter(|one| holds(one)).count();
    let shares: Vec<f64> = found.iter().filter_map(|one| one.burned).collect();
    let lowest = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = shares.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let range = if shares.is_empty() {
        "-".to_owned()
    } else {
        format!("{:.2} to {:.2} %", 100.0 * lowest, 100.0 * highest)
    };
    println!(
        "| {} | {:.1} % | {} | {} | {} | {} | {range} | {} |",
        source.name(),
        100.0 * burns,
        found.len(),
        count(|one| one.differs),
        count(|one| one.burned.is_some()),
        count(|one| one.is_first),
        found.iter().map(|one| one.others).sum::<usize>(),
    );
}
