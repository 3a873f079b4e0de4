//! The site as JSON, for other programs.

use serde_json::json;

use super::change::of_series;
use super::series::{present, series_file};
use super::shape::{SiteMaterial, set_file};
use rqps_model::escape;

/// Version of `index.json`; it grows when a reader would have to change.
pub const SITE_SCHEMA: u32 = 1;

/// Result sets and series with their pages and changes.
///
/// # Errors
/// A number that JSON cannot write.
pub fn index_json(site: &SiteMaterial) -> serde_json::Result<String> {
    let sets = site.sets.iter().map(|set| {
        json!({ "name": set.name, "started": set.started, "title": set.title,
            "verdict": set.verdict, "page": set_file(&set.name) })
    });
    let series = site.series.iter().map(|series| {
        let changes = of_series(series).into_iter().map(|change| {
            json!({ "date": change.date, "result_set": change.result_set, "of": change.of,
                "version": change.version, "ratio": change.ratio, "evidence": change.evidence })
        });
        let levels = present(series)
            .into_iter()
            .map(|(name, ratio)| json!({ "of": name, "present_to_first": ratio }));
        json!({ "page": series_file(series), "benchmark": series.condition.benchmark,
            "workload": series.condition.workload, "host": series.condition.host,
            "step": series.step, "metric": series.metric.name(),
            "levels": levels.collect::<Vec<_>>(), "changes": changes.collect::<Vec<_>>() })
    });
    let mut text = serde_json::to_string(&json!({
        "schema": SITE_SCHEMA,
        "title": site.title,
        "sets": sets.collect::<Vec<_>>(),
        "series": series.collect::<Vec<_>>(),
    }))?;
    text.push('\n');
    Ok(escape::json(&text).into_owned())
}
