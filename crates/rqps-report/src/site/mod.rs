//! A site over many result sets: an overview, a page per series, a feed of changes, and all of it
//! as JSON. The pages are those of a report, with style and scripts in files that they share.

mod series;

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::json;

use super::document::{Block, Cell, Column, Digits, Document, Section, Table};
use super::html::{PageFrame, id, render_document};
use rqps_analysis::history::StepSeries;
use rqps_model::escape::{self, attribute, xml};
use rqps_model::metric::{Direction, Metric};
use rqps_model::units::{counted, short_hash};
use series::present;

pub use series::{series_file, series_page};

// Changes of all series of a site, the newest first.

/// A change of level in a series.
#[derive(Clone, Debug)]
struct SiteChange<'a> {
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
fn of_series(series: &StepSeries) -> Vec<SiteChange<'_>> {
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
fn headline<'a>(site: &SiteMaterial<'a>) -> Vec<SiteChange<'a>> {
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
    fn way(&self) -> &'static str {
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

// The overview of a site: changes, series, result sets.

/// More changes are in the feed's pages, not in the overview.
const CHANGES_MAX: usize = 200;

/// The overview.
pub fn index_page(site: &SiteMaterial) -> String {
    let mut sections = vec![changes(site)];
    if !site.series.is_empty() {
        sections.push(all_series(site));
    }
    sections.push(sets(site));
    if !site.left_out.is_empty() {
        sections.push(left_out(site));
    }
    let document = Document { title: site.title.to_owned(), sections };
    let newest = site.sets.last().map(|set| minute(&set.started)).filter(|it| !it.is_empty());
    let newest = newest.map(|minute| format!("; the newest is of {minute}")).unwrap_or_default();
    let sets = counted(site.sets.len(), "result set");
    let lead = format!("{sets}, {} series{newest}", site.series.len());
    render_document(&document, &lead, &[], PageFrame::Site { root: "" })
}

fn changes(site: &SiteMaterial) -> Section {
    let found = headline(site);
    let names: Vec<&str> = site.headline.iter().map(|metric| metric.name()).collect();
    let mut text = match found.len() {
        0 => format!("No change of {} was found.", names.join(", ")),
        1 => format!("1 change of {}.", names.join(", ")),
        count => format!("{count} changes of {}, the newest first.", names.join(", ")),
    };
    if found.len() > CHANGES_MAX {
        text.push_str(&format!(" The newest {CHANGES_MAX} are here."));
    }
    let rows = found.iter().take(CHANGES_MAX).map(|change| {
        let tone = tone(change.series.metric, change.ratio);
        let series = series_file(change.series);
        vec![
            Cell::text(minute(change.date)),
            Cell::text(&*change.series.step).linked(series),
            Cell::text(change.series.metric.name()),
            Cell::text(change.of),
            Cell::text(change.version.unwrap_or_default()),
            Cell::number(change.ratio, Digits::Fixed(3), "ratio").toned(tone),
            Cell::text(&*change.evidence),
            Cell::text(change.result_set).linked(set_file(change.result_set)),
        ]
    });
    let rows: Vec<Vec<Cell>> = rows.collect();
    let mut blocks = vec![Block::Paragraph(text)];
    if !rows.is_empty() {
        let columns = vec![
            Column::words("since"),
            Column::of_row("step"),
            Column::words("metric"),
            Column::words("target"),
            Column::words("version"),
            Column::numbers("new / old level"),
            Column::words("evidence"),
            Column::words("result set"),
        ];
        blocks.push(Block::Table(Table { caption: String::new(), columns, rows }));
    }
    Section { id: "changes", heading: "Changes".to_owned(), blocks }
}

fn all_series(site: &SiteMaterial) -> Section {
    let text = "Each number is the present level / the first level of a target over time, or the \
                last version / the first one. It leads to the charts.";
    let mut blocks = vec![Block::Paragraph(text.to_owned())];
    for same in site.series.chunk_by(|a, b| a.key == b.key) {
        blocks.extend(of_condition(same));
    }
    Section { id: "series", heading: "Series".to_owned(), blocks }
}

/// Series of one condition: a row for each step and label, a column for each metric.
fn of_condition(same: &[StepSeries]) -> [Block; 2] {
    let metrics: BTreeSet<Metric> = same.iter().map(|one| one.metric).collect();
    let mut columns = vec![Column::of_row("step"), Column::words("target")];
    columns.extend(metrics.iter().map(|metric| Column::of(*metric)));
    let mut rows = Vec::new();
    for step in same.chunk_by(|a, b| a.step == b.step && a.group == b.group) {
        let names: BTreeSet<String> = step.iter().flat_map(present).map(|(name, _)| name).collect();
        for name in names {
            let mut row = vec![Cell::text(&*step[0].step), Cell::text(&*name)];
            row.extend(metrics.iter().map(|metric| metric_cell(step, &name, *metric)));
            rows.push(row);
        }
    }
    let condition = &same[0].condition;
    let text = format!("{}; {}", condition.benchmark, condition.words);
    [Block::Paragraph(text), Block::Table(Table { caption: String::new(), columns, rows })]
}

fn metric_cell(step: &[StepSeries], name: &str, metric: Metric) -> Cell {
    let Some(series) = step.iter().find(|one| one.metric == metric) else {
        return Cell::missing("fewer than two result sets have values");
    };
    match present(series).into_iter().find(|(other, _)| *other == name) {
        Some((_, ratio)) => Cell::number(ratio, Digits::Fixed(3), "ratio")
            .toned(tone(metric, ratio))
            .linked(series_file(series)),
        None => Cell::missing("fewer than two result sets have values"),
    }
}

fn sets(site: &SiteMaterial) -> Section {
    let columns = vec![
        Column::words("began"),
        Column::of_row("result set"),
        Column::words("comparison"),
        Column::words("verdict"),
    ];
    let rows = site.sets.iter().rev().map(|set| {
        vec![
            Cell::text(minute(&set.started)),
            Cell::text(&*set.name).linked(set_file(&set.name)),
            Cell::text(&*set.title),
            Cell::text(&*set.verdict),
        ]
    });
    let table = Table { caption: String::new(), columns, rows: rows.collect() };
    Section { id: "sets", heading: "Result sets".to_owned(), blocks: vec![Block::Table(table)] }
}

fn left_out(site: &SiteMaterial) -> Section {
    let lines = site.left_out.iter().map(|(name, why)| format!("{name}: {why}"));
    let blocks = vec![Block::List(lines.collect())];
    Section { id: "left-out", heading: "Folders that cannot be read".to_owned(), blocks }
}

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
fn day(time: &str) -> &str {
    time.get(..10).unwrap_or(time)
}

/// Day, hour and minute of a time of RFC 3339.
fn minute(time: &str) -> String {
    time.get(..16).unwrap_or(time).replace('T', " ")
}

// The Atom feed of changes (RFC 4287).

/// Readers keep older entries themselves.
const ENTRIES_MAX: usize = 200;

/// The feed. An entry keeps its id as long as the change begins at the same result set.
pub fn feed(site: &SiteMaterial) -> String {
    let changes = headline(site);
    let newest = site.sets.last().map_or("", |set| set.started.as_str());
    let address = site.address.unwrap_or_default();
    let mut feed = String::from("<?xml version=\"1.0\" encoding=\"utf-8\"?>\n");
    let _ = write!(
        feed,
        "<feed xmlns=\"http://www.w3.org/2005/Atom\">\n<title>{}: changes</title>\n<id>{}</id>\n\
         <updated>{}</updated>\n<link rel=\"self\" href=\"{}\"/>\n<link href=\"{}\"/>\n\
         <author><name>rqps</name></author>\n",
        xml(site.title),
        feed_id(&format!("{} {address}", site.title)),
        xml(time(newest)),
        attribute(&format!("{address}feed.xml")),
        attribute(&format!("{address}index.html")),
    );
    for change in changes.iter().take(ENTRIES_MAX) {
        push_entry(&mut feed, change, address);
    }
    feed.push_str("</feed>\n");
    feed
}

fn push_entry(feed: &mut String, change: &SiteChange<'_>, address: &str) {
    let (series, metric) = (change.series, change.series.metric.name());
    let page = series_file(series);
    let version = change.version.map(|version| format!(" {version}")).unwrap_or_default();
    let title = format!(
        "{} {metric} of {}{version}: ×{:.3} {}",
        series.step,
        change.of,
        change.ratio,
        change.way()
    );
    let since = change.version.unwrap_or(change.result_set);
    let summary = format!(
        "Since {since}: new / old level {:.3}, {}. {}; {}.",
        change.ratio, change.evidence, series.condition.benchmark, series.condition.words
    );
    let _ = write!(
        feed,
        "<entry>\n<title>{}</title>\n<id>{}</id>\n<updated>{}</updated>\n<link href=\"{}\"/>\n\
         <summary>{}</summary>\n</entry>\n",
        xml(title.trim_end()),
        feed_id(&format!("{page} {} {since}", change.of)),
        xml(time(change.date)),
        attribute(&format!("{address}{page}#changes")),
        xml(&summary),
    );
}

/// A feed needs a time for everything, also for results without one.
fn time(known: &str) -> &str {
    if known.is_empty() { "1970-01-01T00:00:00Z" } else { known }
}

/// An id that depends on nothing but the text: the form of a UUID of version 8.
fn feed_id(of: &str) -> String {
    let (a, b) = (short_hash(of), short_hash(format!("{of}\nid")));
    format!("urn:uuid:{}-{}-8{}-8{}-{b}", &a[..8], &a[8..12], &a[1..4], &a[5..8])
}
