//! `rqps history`: where the level of a step changed along many versions.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::analyze::Comparison;
use crate::analyze::history::{LadderOptions, ladders};
use crate::cli::args::{History, HistoryFormat};
use crate::cli::compared::Compared;
use crate::cli::{exit, gate};
use crate::domain::metric::Metric;
use crate::report::{history_csv, history_document, history_json, render_markdown, render_text};

/// `rqps history`.
pub(super) fn print(words: &History) -> Result<u8> {
    let rules = gate::rules(&words.folders, &words.rules)?;
    let Compared { comparison, .. } = Compared::read(&words.folders, None, rules)?;
    let (comparison, metric) = metric(&comparison, &words.metric)?;
    let order = words.order.as_deref().map(order).transpose()?;
    let found = ladders(comparison, &LadderOptions { metric, order })
        .context("order the versions of --order")?;
    if found.is_empty() {
        bail!(
            "find a ladder in these results: no DBMS has two versions with \
             values of {}; compare several versions first, such as `rqps compare \
             postgres@12.22.0 postgres@15.10.0 postgres@17.2.0`",
            words.metric
        );
    }
    let text = match words.format {
        HistoryFormat::Text => render_text(&history_document(&found)),
        HistoryFormat::Markdown => render_markdown(&history_document(&found)),
        HistoryFormat::Csv => history_csv(&found),
        HistoryFormat::Json => history_json(&found)?,
    };
    match &words.output {
        Some(path) => {
            fs::write(path, text).with_context(|| format!("write {}", path.display()))?;
        }
        None => std::io::stdout().lock().write_all(text.as_bytes())?,
    }
    Ok(exit::FINE)
}

/// The metric of this name, and the comparison that has it: that of the rates, or that of the
/// counts beside them.
fn metric<'a>(comparison: &'a Comparison, name: &str) -> Result<(&'a Comparison, Metric)> {
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

/// The labels of an order file; empty lines and lines that begin with # do not count.
fn order(path: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(path)
        .with_context(|| format!("read the order of versions from {}", path.display()))?;
    let lines = text.lines().map(str::trim);
    let labels = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(labels.map(str::to_owned).collect())
}
