//! The Atom feed of changes (RFC 4287).

use std::fmt::Write;

use super::change::{SiteChange, headline};
use super::index::SiteMaterial;
use super::series::series_file;
use rqps_model::escape::{attribute, xml};
use rqps_model::units::short_hash;

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
        id(&format!("{} {address}", site.title)),
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
        id(&format!("{page} {} {since}", change.of)),
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
fn id(of: &str) -> String {
    let (a, b) = (short_hash(of), short_hash(format!("{of}\nid")));
    format!("urn:uuid:{}-{}-8{}-8{}-{b}", &a[..8], &a[8..12], &a[1..4], &a[5..8])
}
