//! `rqps vector verify-data`: checks a vector data set.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::cli::args::VerifyData;
use crate::cli::{exit, folders};
use rqps_bench_vector::analyze::verify::{self, DataCheck, Progress, Seeded};
use rqps_bench_vector::data::statistics;
use rqps_bench_vector::data::{VectorSet, files};
use rqps_lab::benchmarks;
use rqps_lab::plan::Plan;
use rqps_model::benchmark::BenchmarkParameters;
use rqps_model::vector::{DataSource, Distance, Filter, PgBuild, Present};

/// Neighbours per query in the statistics.
const K: usize = 100;
/// Queries whose given neighbours are checked.
const SAMPLE: usize = 500;
/// Minimum interval between progress messages.
const PAUSE: Duration = Duration::from_secs(10);

/// `rqps vector verify-data`.
pub(super) fn verify(words: &VerifyData) -> Result<u8> {
    let (mut workload, _) = benchmarks::workload("vector", "full").map_err(anyhow::Error::msg)?;
    for setting in &words.settings {
        benchmarks::set(&mut workload, setting)?;
    }
    let BenchmarkParameters::Vector(shape) = &workload.shape else { return Ok(exit::USAGE) };
    let wanted = words.indexes.as_deref().map(indexes).transpose()?;
    let cache = folders::cache(words.cache.cache.as_deref()).join("datasets");
    info!("rqps: generating or reading the data set");
    let data = VectorSet::open(&shape.data, workload.rows, shape.k as usize, Some(&cache))?;
    info!("rqps: finding the {K} exact neighbours of {} queries", data.test.rows());
    let truth = data
        .truth(Filter::None, Present::All, K, Some(&cache))
        .context("find the exact neighbours")?;
    out!("{} [{}], {:?}", data.name, data.hash, data.distance);
    let sized = (data.train.rows(), data.train.dims) == verify::SPECIFIED;
    let specified = sized && matches!(&shape.data, DataSource::Fashion { rounded: true, .. });
    // A file of this size and distance may be the real set with published recalls; its name proves
    // nothing.
    let comparable = specified || (sized && is_the_real_one(&data));
    let found = statistics(&data, &truth);
    if found.equal_rows > 0.0 {
        out!(
            "{:.2} % of the rows equal another row, and {:.2} % of the queries have ties at the \
             10th neighbour: recall counts rows as near as the k-th, and scatters more between \
             builds of an index",
            100.0 * found.equal_rows,
            100.0 * found.ties
        );
    }
    let mut checks = verify::statistics(&found, specified);
    let builds = wanted.unwrap_or_else(|| {
        if comparable {
            verify::published()
        } else {
            vec![PgBuild { m: 8, ef_construction: 32 }, PgBuild { m: 16, ef_construction: 64 }]
        }
    });
    let mut progress = Watch::new(&data, &builds);
    let hear = &mut |news| progress.hear(&news);
    let found = verify::graphs(&data, &truth, &builds, comparable, hear);
    checks.extend(verify::recalls(&found, comparable));
    let mut wrong = print(&checks);
    if !specified {
        out!(
            "rqps knows the expected statistics of 60000 generated rows of 784 dimensions, and the \
             expected recall of these rows and of fashion-mnist"
        );
    }
    wrong += tell_given(&data, &files::wrong(&data, &truth, SAMPLE));
    match wrong {
        0 => out!("all checks passed"),
        wrong => out!("{wrong} checks FAILED"),
    }
    Ok(if wrong == 0 { exit::FINE } else { exit::RUN_FAILED })
}

/// Checks the user's vectors before any download or start.
pub(super) fn check_files(plan: &Plan) -> Result<()> {
    if let BenchmarkParameters::Vector(shape) = &plan.workload.shape
        && let DataSource::Files { .. } = &shape.data
    {
        VectorSet::open(&shape.data, plan.workload.rows, shape.k as usize, None)?;
    }
    Ok(())
}

/// fashion-mnist has bytes, euclidean distance, and 10,000 queries.
fn is_the_real_one(data: &VectorSet) -> bool {
    data.distance == Distance::Euclidean
        && data.test.rows() == 10_000
        && matches!(data.train.values, rqps_bench_vector::data::Numbers::Bytes(_))
}

fn indexes(text: &str) -> Result<Vec<PgBuild>> {
    if text == "none" {
        return Ok(Vec::new());
    }
    let words = text.split(',').map(|word| PgBuild::try_from(word.trim().to_owned()));
    words.collect::<Result<_, _>>().map_err(anyhow::Error::msg).context("read --indexes")
}

/// Prints a line per check. Returns the number of failed checks.
fn print(checks: &[DataCheck]) -> u32 {
    out!("{:<42} {:>9} {:>9} {:>19}  verdict  expected by", "check", "found", "expected", "range");
    let mut wrong = 0;
    for check in checks {
        let expected = check.expected.map_or("-".to_owned(), |value| format!("{value:.4}"));
        let range = match &check.range {
            Some(range) => format!("{:.4} … {:.4}", range.start(), range.end()),
            None => "-".to_owned(),
        };
        let verdict = match (&check.range, check.holds()) {
            (None, _) => "-",
            (Some(_), true) => "ok",
            (Some(_), false) => "FAILED",
        };
        let source = match check.interval {
            None => check.source.to_owned(),
            Some(interval) => format!(
                "{}; mean of several graphs, 95 % interval {:.4} … {:.4}{}",
                check.source,
                interval.low,
                interval.high,
                if check.is_close() { ", within the limit" } else { "" }
            ),
        };
        wrong += u32::from(!check.holds());
        let line = format!(
            "{:<42} {:>9.4} {expected:>9} {range:>19}  {verdict:<7}  {source}",
            check.what, check.found
        );
        out!("{}", line.trim_end());
    }
    wrong
}

/// Prints whether the neighbours in the file are correct. Returns 1 if they are wrong.
fn tell_given(data: &VectorSet, wrong: &Option<String>) -> u32 {
    match (&data.given, wrong) {
        (_, Some(what)) => out!("the file's neighbours are WRONG: {what}"),
        (Some(given), None) => {
            out!("the file's neighbours (k = {}) agree with the exact ones", given.k);
        }
        (None, None) => {}
    }
    u32::from(wrong.is_some())
}

/// Prints the progress of the indexes on stderr.
struct Watch {
    rows: usize,
    began: Instant,
    told: Instant,
    left: Vec<(Seeded, usize)>,
}

impl Watch {
    fn new(data: &VectorSet, builds: &[PgBuild]) -> Watch {
        if !builds.is_empty() {
            info!("rqps: building {} indexes in memory", builds.len());
        }
        let left = builds.iter().map(|build| (Seeded::first(*build), 0)).collect();
        let now = Instant::now();
        Watch { rows: data.train.rows(), began: now, told: now, left }
    }

    fn hear(&mut self, news: &Progress) {
        match news {
            Progress::More(more) => {
                if !more.is_empty() {
                    info!(
                        "rqps: building {} more graphs of indexes whose recall is near its limit",
                        more.len()
                    );
                }
                self.left.extend(more.iter().map(|of| (*of, 0)));
            }
            Progress::Rows(of, rows) => {
                let entry = self.left.iter_mut().find(|(other, _)| other == of);
                if let Some((_, done)) = entry {
                    *done = *rows;
                }
                if self.told.elapsed() > PAUSE {
                    self.told = Instant::now();
                    let begun = self.left.iter().filter(|(_, done)| *done > 0);
                    let begun = begun.map(|(of, done)| {
                        format!("{of}: {} % of the rows", 100 * done / self.rows.max(1))
                    });
                    let begun: Vec<String> = begun.collect();
                    let later = self.left.len() - begun.len();
                    info!("rqps: {}; {later} not yet started", begun.join(", "));
                }
            }
            Progress::Asked(of, points) => {
                self.left.retain(|(other, _)| other != of);
                let points = points.iter().map(|point| {
                    format!(
                        "ef {}: {:.4} ({:.0} distances)",
                        point.ef, point.recall, point.computed
                    )
                });
                info!(
                    "rqps: after {:.0} s, {of}: {}",
                    self.began.elapsed().as_secs_f64(),
                    points.collect::<Vec<_>>().join(", ")
                );
            }
        }
    }
}
