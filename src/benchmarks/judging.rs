//! Hands the hooks of all benchmarks down to the modules that call them: analysis, reports and
//! importers name no benchmark.

use std::io::{self, Write};
use std::sync::Arc;

use super::registry::ALL;
use crate::analyze::measurement::Measurement;
use crate::analyze::{self, AnalyzeError, Comparison, Extension, VerdictOptions};
use crate::domain::run::{Dataset, ReadSeconds, Run, StepRecord};
use crate::import::{ImportError, ImportFormat};
use crate::report::{self, Document, FamilyReport, ReportOptions, Sections};

fn extensions() -> Vec<&'static Extension> {
    ALL.iter().map(|spec| &spec.extension).collect()
}

/// Hooks of all benchmarks in a report.
pub fn sections() -> Vec<&'static Sections> {
    ALL.iter().map(|spec| &spec.sections).collect()
}

/// Formats of all benchmarks.
pub fn import_formats() -> Vec<ImportFormat> {
    ALL.iter().flat_map(|spec| spec.imports).copied().collect()
}

/// See [`analyze::compare`].
///
/// # Errors
/// As there.
pub fn compare(dataset: &Dataset, options: &VerdictOptions) -> Result<Comparison, AnalyzeError> {
    analyze::compare(dataset, options, &extensions())
}

/// See [`analyze::compare_measured`].
///
/// # Errors
/// As there.
pub fn compare_measured(
    dataset: &Dataset,
    measured: Vec<Vec<Option<Measurement>>>,
    options: &VerdictOptions,
) -> Result<Comparison, AnalyzeError> {
    analyze::compare_measured(dataset, measured, options, &extensions())
}

/// See [`analyze::digest`].
pub fn digest(run: &mut Run, seconds: ReadSeconds) -> Vec<Option<Measurement>> {
    analyze::digest(run, seconds, &extensions())
}

/// See [`analyze::measure_step`].
pub fn measure(step: &StepRecord) -> Measurement {
    analyze::measure_step(&Arc::new(step.clone()), &extensions())
}

/// See [`mod@report::document`].
pub fn document(comparison: &Comparison, options: &ReportOptions) -> Document {
    report::document(comparison, options, &sections())
}

/// See [`report::render`].
pub fn render(comparison: &Comparison, format: report::Format) -> String {
    report::render(comparison, format, &sections())
}

/// See [`report::write`].
///
/// # Errors
/// As there.
pub fn write_report(
    comparison: &Comparison,
    format: report::Format,
    out: &mut dyn Write,
) -> io::Result<()> {
    report::write(comparison, format, &sections(), out)
}

/// See [`report::write_families`].
///
/// # Errors
/// As there.
pub fn write_families(
    parts: &[FamilyReport],
    format: report::Format,
    out: &mut dyn Write,
) -> io::Result<()> {
    report::write_families(parts, format, &sections(), out)
}

/// Finds what a word of `rqps import` reads.
///
/// # Errors
/// See [`ImportFormat::named`].
pub fn import_format(word: &str) -> Result<ImportFormat, ImportError> {
    ImportFormat::named(word, &import_formats())
}
