//! `rqps history`: finds changes of level along many versions.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;

use crate::cli::args::{RuleOptions, share};
use crate::cli::compared::Compared;
use crate::cli::{completion, exit, gate, print};
use rqps_analysis::Comparison;
use rqps_analysis::counted::is_counted;
use rqps_analysis::history::{DateOptions, LadderOptions, date_histories, ladders};
use rqps_model::bounded;
use rqps_model::metric::Metric;
use rqps_report::{
    dates_csv, dates_document, dates_json, history_csv, history_document, history_json,
    render_markdown, render_text,
};

/// Largest p value of a change over time: Otava's default.
pub(super) const MAX_P: f64 = 0.001;

/// `rqps history`.
pub(super) fn print(words: &History) -> Result<u8> {
    let rules = gate::rules(&words.folders, &words.rules)?;
    let Compared { comparison, .. } = Compared::read(&words.folders, None, rules)?;
    let (comparison, metric) = metric(&comparison, words.metric.as_deref())?;
    if words.by == HistoryOrder::Date {
        return by_date(words, comparison, metric);
    }
    if words.otava || words.min_magnitude.is_some() || words.same_host {
        bail!(
            "find changes between versions: --otava, --min-magnitude and --same-host need --by date"
        );
    }
    let order = words.order.as_deref().map(order).transpose()?;
    let found = ladders(comparison, &LadderOptions { metric, order, branches: words.branches })
        .context("order the versions of --order")?;
    if found.is_empty() {
        bail!(
            "find a ladder in these results: no DBMS has two versions with \
             values of {}; compare several versions first, such as `rqps compare \
             postgres@12.22.0 postgres@15.10.0 postgres@17.2.0`",
            metric.name()
        );
    }
    let text = match words.format {
        HistoryFormat::Text => render_text(&history_document(&found), print::columns()),
        HistoryFormat::Markdown => render_markdown(&history_document(&found)),
        HistoryFormat::Csv => history_csv(&found),
        HistoryFormat::Json => history_json(&found)?,
    };
    write(words, &text)
}

/// Prints changes over time.
fn by_date(words: &History, comparison: &Comparison, metric: Metric) -> Result<u8> {
    if words.order.is_some() || words.branches {
        bail!("order result sets by date: leave out --order and --branches");
    }
    let of = DateOptions {
        metric,
        as_otava: words.otava,
        max_p: MAX_P,
        min_magnitude: words.min_magnitude.unwrap_or(0.0),
        same_host: words.same_host,
    };
    let found = date_histories(comparison, &of);
    if found.is_empty() {
        bail!(
            "find a history in these results: no target has values of {} in two result sets of \
             one host; name the folders of several days, or add --same-host where a host only got \
             a new kernel or system",
            metric.name()
        );
    }
    let text = match words.format {
        HistoryFormat::Text => render_text(&dates_document(&found), print::columns()),
        HistoryFormat::Markdown => render_markdown(&dates_document(&found)),
        HistoryFormat::Csv => dates_csv(&found),
        HistoryFormat::Json => dates_json(&found)?,
    };
    write(words, &text)
}

fn write(words: &History, text: &str) -> Result<u8> {
    match &words.output {
        Some(path) => {
            fs::write(path, text).with_context(|| format!("write {}", path.display()))?;
        }
        None => print::escaped(text.as_bytes())?,
    }
    Ok(exit::FINE)
}

/// The metric of this name, and the comparison that has it: of the rates, or of the counts beside
/// them. Without a name, the rate; of nothing but counts, instructions per operation.
fn metric<'a>(comparison: &'a Comparison, name: Option<&str>) -> Result<(&'a Comparison, Metric)> {
    let only_counts = name.is_none() && is_counted(comparison);
    let usual = if only_counts { Metric::InstructionsPerOp } else { Metric::Rate };
    let name = name.unwrap_or(usual.name());
    let all = || std::iter::once(comparison).chain(comparison.counts.as_deref());
    let known = || all().flat_map(|one| one.metrics().into_iter().map(move |it| (one, it)));
    match known().find(|(_, metric)| metric.name() == name) {
        Some(found) => Ok(found),
        None => {
            let names: Vec<&str> = known().map(|(_, metric)| metric.name()).collect();
            bail!("find the metric `{name}`: these results have {}", names.join(", "))
        }
    }
}

/// The labels in an order file, without empty lines and lines that begin with #.
fn order(path: &Path) -> Result<Vec<String>> {
    let text = bounded::text(path, bounded::WRITTEN_MAX)
        .with_context(|| format!("read the order of versions from {}", path.display()))?;
    let lines = text.lines().map(str::trim);
    let labels = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(labels.map(str::to_owned).collect())
}

#[derive(Debug, Args)]
pub(super) struct History {
    /// Result folders with two or more versions of a DBMS; with --by date, of two or more days
    #[arg(required = true, value_name = "DIR")]
    #[arg(add = ArgValueCompleter::new(completion::result_folders))]
    pub folders: Vec<PathBuf>,
    /// Order of the points: versions of a DBMS, or dates of the result sets of each target
    #[arg(long, value_enum, default_value = "version")]
    pub by: HistoryOrder,
    /// With --by date: compute as Apache Otava 0.8.0 does, digit for digit
    #[arg(long)]
    pub otava: bool,
    /// With --by date: ignore changes up to this size [default: 0]
    #[arg(long, value_name = "SHARE", value_parser = share, allow_hyphen_values = true)]
    pub min_magnitude: Option<f64>,
    /// With --by date: take all hosts of a target for one, such as before and after a new kernel
    #[arg(long)]
    pub same_host: bool,
    /// Metric, such as o/s, server_cpu_us/o or instr/o [default: o/s, or instr/o if there are only
    /// counts]
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// Look for changes along the first version of each branch (10.4.8, 10.5.6, …) and along each
    /// branch, not along all versions
    #[arg(long, conflicts_with = "order")]
    pub branches: bool,
    /// File with one target label per line, the oldest first [default: by version number]
    #[arg(long, value_name = "FILE")]
    pub order: Option<PathBuf>,
    #[command(flatten)]
    pub rules: RuleOptions,
    /// Format of the report
    #[arg(long, value_enum, default_value = "text")]
    pub format: HistoryFormat,
    /// Write the report to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum HistoryOrder {
    Version,
    Date,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum HistoryFormat {
    Text,
    Markdown,
    Csv,
    Json,
}
