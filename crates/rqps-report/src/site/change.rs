//! Changes of all series of a site, the newest first.

use super::index::SiteMaterial;
use crate::document::Digits;
use rqps_analysis::history::StepSeries;
use rqps_model::metric::{Direction, Metric};

/// A change of level in a series.
#[derive(Clone, Debug)]
pub(super) struct SiteChange<'a> {
    /// The series.
    pub series: &'a StepSeries,
    /// The time of its first point, RFC 3339.
    pub date: &'a str,
    /// The result set of that point.
    pub result_set: &'a str,
    /// Label of the target; of a change between versions, the DBMS.
    pub of: &'a str,
    /// The version that begins the new level; `None` for a change over time.
    pub version: Option<&'a str>,
    /// New level / old level.
    pub ratio: f64,
    /// p, or the interval.
    pub evidence: String,
}

/// Changes of a series.
pub(super) fn of_series(series: &StepSeries) -> Vec<SiteChange<'_>> {
    let over_time = series.dates.iter().flat_map(|one| {
        one.dates.changes.iter().filter_map(move |change| {
            let point = one.dates.points.get(change.at)?;
            Some(SiteChange {
                series,
                date: &point.date,
                result_set: &point.result_set,
                of: &one.label,
                version: None,
                ratio: change.ratio,
                evidence: format!("p = {:.1e}", change.p),
            })
        })
    });
    let by_version = series.ladders.iter().flat_map(|ladder| {
        ladder.step.changes.iter().filter_map(move |change| {
            let (rung, since) = (ladder.rungs.get(change.at)?, ladder.since.get(change.at)?);
            let digits = Digits::Fixed(3);
            let [low, high] =
                [change.interval.low, change.interval.high].map(|end| digits.write(end));
            Some(SiteChange {
                series,
                date: &since.date,
                result_set: &since.result_set,
                of: &ladder.family,
                version: Some(rung.name()),
                ratio: change.ratio,
                evidence: format!("[{low}, {high}]"),
            })
        })
    });
    let mut all: Vec<SiteChange<'_>> = over_time.chain(by_version).collect();
    all.sort_by(newest_first);
    all
}

/// Changes of the site's headline metrics.
pub(super) fn headline<'a>(site: &SiteMaterial<'a>) -> Vec<SiteChange<'a>> {
    let wanted = site.series.iter().filter(|series| site.headline.contains(&series.metric));
    let mut all: Vec<SiteChange<'a>> = wanted.flat_map(of_series).collect();
    all.sort_by(newest_first);
    all
}

fn newest_first(a: &SiteChange<'_>, b: &SiteChange<'_>) -> std::cmp::Ordering {
    let size = |change: &SiteChange<'_>| change.ratio.ln().abs();
    b.date.cmp(a.date).then(size(b).total_cmp(&size(a)))
}

impl SiteChange<'_> {
    /// `worse`, `better`; empty if neither direction is.
    pub(super) fn way(&self) -> &'static str {
        match tone(self.series.metric, self.ratio) {
            Some(tone) if tone < 0.0 => "worse",
            Some(_) => "better",
            None => "",
        }
    }
}

/// ln of a ratio with the sign turned so that more is better; `None` if neither direction is.
pub(super) fn tone(metric: Metric, ratio: f64) -> Option<f64> {
    match metric.better() {
        Direction::Higher => Some(ratio.ln()),
        Direction::Lower => Some(-ratio.ln()),
        Direction::Neither => None,
    }
}
