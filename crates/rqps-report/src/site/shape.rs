//! Data of a site.

use crate::html::id;
use rqps_analysis::history::StepSeries;
use rqps_model::metric::Metric;

/// Input of the pages that show several result sets.
#[derive(Clone, Copy, Debug)]
pub struct SiteMaterial<'a> {
    /// Title of the site.
    pub title: &'a str,
    /// The published address, with a slash at the end; `None` if unknown.
    pub address: Option<&'a str>,
    /// Its result sets, the oldest first.
    pub sets: &'a [SiteSet],
    /// Its series, in the order of the overview.
    pub series: &'a [StepSeries],
    /// Metrics whose changes the overview and the feed list.
    pub headline: &'a [Metric],
    /// Result sets that could not be read, and why.
    pub left_out: &'a [(String, String)],
}

/// A result set of a site.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteSet {
    /// Its name, unique in the site.
    pub name: String,
    /// Start of its first run, RFC 3339.
    pub started: String,
    /// Title of its report.
    pub title: String,
    /// First paragraph of its report.
    pub verdict: String,
}

/// Address of the report of a result set in the site.
pub fn set_file(name: &str) -> String {
    format!("sets/{}.html", id(name))
}

/// Address of the values of a result set in the site.
pub fn data_file(name: &str) -> String {
    format!("data/{}.json", id(name))
}

/// The day of a time of RFC 3339.
pub(super) fn day(time: &str) -> &str {
    time.get(..10).unwrap_or(time)
}

/// Day, hour and minute of a time of RFC 3339.
pub(super) fn minute(time: &str) -> String {
    time.get(..16).unwrap_or(time).replace('T', " ")
}
