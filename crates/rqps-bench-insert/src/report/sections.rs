//! The order of the Insert Benchmark's report sections.

use super::{charts, classes, columns, stalls, summary, workload};
use crate::analyze::metrics::is_insert;
use rqps_analysis::Comparison;
use rqps_model::benchmark::RateUnit;
use rqps_report::Sections;
use rqps_report::document::Section;

/// The hooks.
pub(crate) const SECTIONS: Sections = Sections { workload: workload::workload_line, sections };

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
