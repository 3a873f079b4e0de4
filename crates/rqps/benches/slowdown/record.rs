//! Findings of comparisons as lines of a CSV file, which many runs of the bench append to.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, Result};
use rqps_host::host;
use rqps_stats::summary::mean;

use super::Finding;
use super::columns::HEAD;

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
    let host = host::read(path);
    let cpu = host.cpu_model.as_deref().unwrap_or("?").replace(',', " ");
    let cpus = host.cpus;
    for one in findings {
        // No difference has no mean.
        let found = Some(mean(&one.differences).exp()).filter(|ratio| ratio.is_finite());
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
            number(found),
            number(low),
            number(high),
            number(one.truth.map(f64::exp)),
        );
    }
    file.write_all(text.as_bytes()).with_context(doing)
}
