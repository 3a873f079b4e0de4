//! Findings of comparisons as lines of a CSV file, which many runs of the bench append to.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use super::Finding;

/// The first line of the file.
const HEAD: &str = "date,cpu,cpus,build,burned,seed,step,metric,blocks,measured_seconds,verdict,\
                    beyond_tau,found,low,high,true_ratio";

/// Appends the findings of one comparison.
pub(crate) fn append(
    path: &Path,
    build: &str,
    burned: f64,
    seed: u64,
    findings: &[Finding],
) -> Result<()> {
    let doing = || format!("write to {}", path.display());
    let mut file = OpenOptions::new().append(true).create(true).open(path).with_context(doing)?;
    let mut text = String::new();
    if file.metadata().with_context(doing)?.len() == 0 {
        text = format!("{HEAD}\n");
    }
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d");
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").context("read the name of the CPU")?;
    let cpu = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cpu = cpu.map_or("?", |(_, name)| name).replace(',', " ");
    let cpus = std::thread::available_parallelism().context("count the CPUs")?;
    for one in findings {
        let mean = one.differences.iter().sum::<f64>() / one.differences.len() as f64;
        let [low, high] = one.interval.map_or([None; 2], |it| [Some(it.low), Some(it.high)]);
        let number = |ratio: Option<f64>| ratio.map_or_else(String::new, |one| format!("{one:.5}"));
        text += &format!(
            "{date},{cpu},{cpus},{build},{burned},{seed},{},{},{},{:.1},{},{},{},{},{},{}\n",
            one.step,
            one.metric.name(),
            one.differences.len(),
            one.measured,
            one.verdict.name(),
            u8::from(one.beyond_tau),
            number(Some(mean.exp())),
            number(low),
            number(high),
            number(one.truth.map(f64::exp)),
        );
    }
    file.write_all(text.as_bytes()).with_context(doing)
}
