//! Hooks of a benchmark in a report.

use super::document::Section;
use rqps_analysis::Comparison;
use rqps_model::benchmark::Workload;

/// The hooks of one benchmark. Each is asked about every comparison or workload, and returns
/// nothing where it has nothing to say.
#[derive(Clone, Copy, Debug)]
pub struct Sections {
    /// Returns the workload in one line; its caches are given in words.
    pub workload: fn(&Workload, &str) -> Option<String>,
    /// Returns the sections of a comparison.
    pub sections: fn(&Comparison) -> Vec<Section>,
}

impl Sections {
    /// A benchmark that adds nothing.
    pub const NONE: Sections = Sections { workload: |_, _| None, sections: |_| Vec::new() };
}
