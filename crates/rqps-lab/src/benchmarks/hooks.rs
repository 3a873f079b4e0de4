//! Passes the hooks of all benchmarks to analysis and reports, which name no benchmark.

use std::io::{self, Write};
use std::sync::Arc;

use super::registry::ALL;
use rqps_analysis::measurement::Measurement;
use rqps_analysis::{self as analyze, AnalyzeError, Comparison, Extension, VerdictOptions};
use rqps_model::run::{Dataset, ReadSeconds, Run, StepRecord};
use rqps_report::{self as report, Document, FamilyReport, ReportOptions, Sections};

fn extensions() -> Vec<&'static Extension> {
    ALL.iter().map(|spec| &spec.extension).collect()
}

/// Report hooks of all benchmarks.
pub fn sections() -> Vec<&'static Sections> {
    ALL.iter().map(|spec| &spec.sections).collect()
}

/// [`analyze::compare`] with the hooks of all benchmarks.
///
/// # Errors
///
/// As [`analyze::compare`].
pub fn compare(dataset: &Dataset, options: &VerdictOptions) -> Result<Comparison, AnalyzeError> {
    analyze::compare(dataset, options, &extensions())
}

/// [`analyze::compare_measured`] with the hooks of all benchmarks.
///
/// # Errors
///
/// As [`analyze::compare_measured`].
pub fn compare_measured(
    dataset: &Dataset,
    measured: Vec<Vec<Option<Measurement>>>,
    options: &VerdictOptions,
) -> Result<Comparison, AnalyzeError> {
    analyze::compare_measured(dataset, measured, options, &extensions())
}

/// [`analyze::digest`] with the hooks of all benchmarks.
pub fn digest(run: &mut Run, seconds: ReadSeconds) -> Vec<Option<Measurement>> {
    analyze::digest(run, seconds, &extensions())
}

/// [`analyze::measure_step`] with the hooks of all benchmarks.
pub fn measure(step: &StepRecord) -> Measurement {
    analyze::measure_step(&Arc::new(step.clone()), &extensions())
}

/// [`mod@report::document`] with the hooks of all benchmarks.
pub fn document(comparison: &Comparison, options: &ReportOptions) -> Document {
    report::document(comparison, options, &sections())
}

/// [`report::render`] with the hooks of all benchmarks.
pub fn render(comparison: &Comparison, format: report::Format) -> String {
    report::render(comparison, format, &sections())
}

/// [`report::write`] with the hooks of all benchmarks.
///
/// # Errors
///
/// As [`report::write`].
pub fn write_report(
    comparison: &Comparison,
    format: report::Format,
    out: &mut dyn Write,
) -> io::Result<()> {
    report::write(comparison, format, &sections(), out)
}

/// [`report::write_families`] with the hooks of all benchmarks.
///
/// # Errors
///
/// As [`report::write_families`].
pub fn write_families(
    parts: &[FamilyReport],
    format: report::Format,
    out: &mut dyn Write,
) -> io::Result<()> {
    report::write_families(parts, format, &sections(), out)
}
