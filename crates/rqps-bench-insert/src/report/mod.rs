//! Report sections of the Insert Benchmark: the summary tables and metrics rows of the published
//! perf reports with their colours, response-time classes, longest operations and stalls with the
//! activity of server and host, and charts by second.

mod charts;
mod classes;
mod columns;
mod stalls;
mod summary;

use crate::analyze::metrics::is_insert;
use crate::analyze::rules::{Shade, share_gray};
use rqps_analysis::Comparison;
use rqps_model::benchmark::{BenchmarkParameters, RateUnit, Workload};
use rqps_model::insert::Pacing;
use rqps_report::Sections;
use rqps_report::document::{Block, Column, Mark, Section};

/// The hooks.
pub(crate) const SECTIONS: Sections = Sections { workload: workload_line, sections };

/// All sections of this benchmark; none for others.
fn sections(comparison: &Comparison) -> Vec<Section> {
    // A comparison of published ratios has no columns for these tables.
    let only_ratios = comparison.steps.iter().all(|step| step.rate == RateUnit::Relative);
    if !is_insert(comparison) || comparison.steps.is_empty() || only_ratios {
        return Vec::new();
    }
    let mut sections = vec![summary::summary(comparison), columns::metrics(comparison)];
    sections.extend(classes::response_times(comparison));
    sections.push(stalls::variance(comparison));
    sections.extend(charts::over_time(comparison));
    sections
}

/// The workload in one line; `None` for other benchmarks.
fn workload_line(workload: &Workload, cache: &str) -> Option<String> {
    let BenchmarkParameters::Insert(shape) = &workload.shape else { return None };
    let commit = &shape.rows_per_commit;
    let mut parts = vec![
        format!("profile {}", shape.profile.name()),
        format!("{} tables for {} clients", workload.tables, workload.clients),
        format!("rows per client: {} in l.i0, {} in l.i1", workload.rows, shape.i1_rows),
    ];
    if !shape.profile.is_2021() {
        parts.push(format!("{} in l.i2", shape.i2_rows));
    }
    parts.push(if shape.deletes { "as many deletes" } else { "no deletes" }.to_owned());
    parts.push(format!("{} s a query step", shape.query_seconds));
    parts.push(format!("{}/{}/{}/{} rows a commit", commit.i0, commit.i1, commit.i2, commit.query));
    if shape.partitions > 1 {
        parts.push(format!("{} partitions", shape.partitions));
    }
    parts.push(match shape.pacing {
        Pacing::Open => "open pace".to_owned(),
        Pacing::Compat => "compat pace".to_owned(),
    });
    parts.push(format!("settle x {}", workload.settle_scale));
    parts.push(cache.to_owned());
    parts.extend(shape.memory_limit.map(|limit| format!("memory limit {} MiB", limit >> 20)));
    Some(parts.join(", "))
}

fn section(id: &'static str, heading: &str, blocks: Vec<Block>) -> Section {
    Section { id, heading: heading.to_owned(), blocks }
}

/// The sign and colour of a cell.
fn mark(shade: Shade) -> Option<Mark> {
    let (sign, meaning) = match shade {
        Shade::Plain => return None,
        Shade::Red => (" -", "in the lowest quarter, or target missed"),
        Shade::Gray => (" ?", "target rate of inserts missed"),
        Shade::Green => (" +", "in the highest quarter"),
        Shade::Blue => (" +", "more than 5 % above the baseline"),
        Shade::Yellow => (" -", "more than 5 % below the baseline"),
    };
    Some(Mark { sign, colour: shade.css(), meaning })
}

/// The shade of a class of response times.
fn gray(percent: f64) -> Option<Mark> {
    let meaning = "darker means more";
    share_gray(percent).map(|colour| Mark { sign: "", colour, meaning })
}

fn with_heads(first: &str, heads: impl Iterator<Item = String>) -> Vec<Column> {
    std::iter::once(Column::of_row(first)).chain(heads.map(Column::numbers)).collect()
}
