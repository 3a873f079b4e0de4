//! All sections of the Insert Benchmark in their order.

use super::{charts, classes, columns, stalls, summary, workload};
use crate::analyze::Comparison;
use crate::benchmarks::insert::analyze::metrics::is_insert;
use crate::domain::benchmark::RateUnit;
use crate::report::Sections;
use crate::report::document::Section;

/// The hooks of this benchmark.
pub(crate) const SECTIONS: Sections = Sections { workload: workload::workload_line, sections };

/// All sections of this benchmark; none for others.
fn sections(comparison: &Comparison) -> Vec<Section> {
    // Of ratios alone no column of these tables is known.
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
