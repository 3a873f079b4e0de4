//! A site over many result sets: an overview, a page per series, a feed of changes, and all of it
//! as JSON. The pages are those of a report, with style and scripts in files that they share.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::json;

use super::document::{
    Axis, Block, Cell, ChangeMark, Chart, Column, Digits, Document, Form, Line, Placed, Point,
    Section, Series, Table, name_of_row, numbers, words,
};
use super::history;
use super::html::{PageFrame, RunLink, id, render_document};
use rqps_analysis::history::{
    DatePoint, FamilyLadder, LabelDates, LevelLine, StepDates, StepSeries,
};
use rqps_model::escape::{self, attribute, xml};
use rqps_model::metric::{Direction, Metric};
use rqps_model::units::{counted, short_hash};

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
    /// What every table of changes tells: since when, which version, how much, on what evidence.
    fn cells(&self) -> [Placed; 4] {
        let ratio = Cell::number(self.ratio, Digits::Fixed(3), "ratio");
        let tone = tone(self.series.metric, self.ratio);
        [
            words("since", Cell::text(minute(self.date))),
            words("version", Cell::text(self.version.unwrap_or_default())),
            numbers("new / old level", ratio.toned(tone)),
            words("evidence", Cell::text(&*self.evidence)),
        ]
    }

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
        let series = change.series;
        let [since, version, ratio, evidence] = change.cells();
        let set = Cell::text(change.result_set).linked(set_file(change.result_set));
        [
            since,
            (Column::of_row("step"), Cell::text(&*series.step).linked(series_file(series))),
            words("metric", Cell::text(series.metric.name())),
            words("target", Cell::text(change.of)),
            version,
            ratio,
            evidence,
            words("result set", set),
        ]
    });
    let table = Table::of("", rows).map(Block::Table);
    let blocks = [Block::Paragraph(text)].into_iter().chain(table).collect();
    Section::new("changes", "Changes", blocks)
}

fn all_series(site: &SiteMaterial) -> Section {
    let text = "Each number is the present level / the first level of a target over time, or the \
                last version / the first one. It leads to the charts.";
    let mut blocks = vec![Block::text(text)];
    for same in site.series.chunk_by(|a, b| a.key == b.key) {
        blocks.extend(of_condition(same));
    }
    Section::new("series", "Series", blocks)
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
    [Block::Paragraph(text), Block::table("", columns, rows)]
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
    let rows = site.sets.iter().rev().map(|set| {
        [
            words("began", Cell::text(minute(&set.started))),
            (Column::of_row("result set"), Cell::text(&*set.name).linked(set_file(&set.name))),
            words("comparison", Cell::text(&*set.title)),
            words("verdict", Cell::text(&*set.verdict)),
        ]
    });
    let table = Table::of("", rows).map(Block::Table);
    Section::new("sets", "Result sets", Vec::from_iter(table))
}

fn left_out(site: &SiteMaterial) -> Section {
    let lines = site.left_out.iter().map(|(name, why)| format!("{name}: {why}"));
    let blocks = vec![Block::List(lines.collect())];
    Section::new("left-out", "Folders that cannot be read", blocks)
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

// The page of a series: its charts, levels and changes, and the other metrics of its step.

/// From a page of a series to the folder of the site.
const ROOT: &str = "../../";

/// Address of a series in the site. It depends on nothing but the series, so that links to it last.
pub fn series_file(series: &StepSeries) -> String {
    let step = file_name(&series.step);
    format!("series/{}/{step}.{}.html", series.key, file_name(series.metric.spec().key))
}

/// A name as a file name. One that must be altered gets a part of its hash, so that two names never
/// share a file.
fn file_name(raw: &str) -> String {
    let safe = id(raw);
    if safe == raw && raw.len() < 100 {
        return safe;
    }
    let hash = rqps_model::units::short_hash(raw);
    let short: String = safe.chars().take(100).collect();
    format!("{short}-{}", &hash[..6])
}

/// The page of a series.
pub fn series_page(site: &SiteMaterial, series: &StepSeries) -> String {
    let (step, metric) = (&series.step, series.metric);
    let mut sections = Vec::new();
    if !series.dates.is_empty() {
        sections.push(over_time(series));
    }
    if !series.ladders.is_empty() {
        let blocks = series.ladders.iter().flat_map(|ladder| by_version(series, ladder));
        let (id, heading) = ("versions", "By version".to_owned());
        sections.push(Section::new(id, heading, blocks.collect()));
    }
    sections.push(changes_of(series));
    sections.push(siblings(site, series));
    let title = format!("{step}: {}", metric.name());
    let lead = format!("{}; {}", series.condition.benchmark, series.condition.words);
    let links: Vec<RunLink> = sets_of(series)
        .into_iter()
        .map(|(name, date)| RunLink {
            address: format!("{ROOT}{}", set_file(&name)),
            name: format!("{name}, {}", minute(&date)),
            folder: name,
        })
        .collect();
    render_document(&Document { title, sections }, &lead, &links, PageFrame::Site { root: ROOT })
}

/// Result sets of a series with their dates.
fn sets_of(series: &StepSeries) -> BTreeMap<String, String> {
    let points = series.dates.iter().flat_map(|one| &one.dates.points);
    let of_dates = points.map(|point| (point.result_set.clone(), point.date.clone()));
    let since = series.ladders.iter().flat_map(|ladder| &ladder.since);
    of_dates.chain(since.map(|one| (one.result_set.clone(), one.date.clone()))).collect()
}

fn over_time(series: &StepSeries) -> Section {
    let metric = series.metric;
    let mut points: Vec<(&str, &str)> = series
        .dates
        .iter()
        .flat_map(|one| &one.dates.points)
        .map(|point| (point.date.as_str(), point.result_set.as_str()))
        .collect();
    points.sort_unstable();
    points.dedup();
    let places: BTreeMap<&str, usize> =
        points.iter().enumerate().map(|(place, (_, set))| (*set, place)).collect();
    let distinct = points.windows(2).all(|pair| day(pair[0].0) != day(pair[1].0));
    let names =
        points.iter().map(|(date, _)| if distinct { day(date).to_owned() } else { minute(date) });
    let axis = Axis::of_categories("result set", names.collect());
    let title = format!("{}: {} over time", series.step, metric.name());
    let mut chart = Chart::new("time", title, Form::Points)
        .axes(axis, Axis::linear(metric.name(), metric.unit()).fitted());
    for (place, one) in series.dates.iter().enumerate() {
        push_label(&mut chart, place, one, &places);
    }
    let table = Table::of("", series.dates.iter().map(|one| level_row(metric, one)));
    let blocks = [Block::Chart(chart)].into_iter().chain(table.map(Block::Table)).collect();
    Section::new("dates", "Over time", blocks)
}

fn level_row(metric: Metric, one: &LabelDates) -> [Placed; 6] {
    let [first, last] = [one.dates.first_level(), one.dates.present_level()];
    let since = one.dates.changes.last().map_or(0, |change| change.at);
    let since = one.dates.points.get(since).map_or("", |point| day(&point.date));
    let (name, points) = (name_of_row("target", &*one.label), one.dates.points.len());
    let tone = tone(metric, last / first);
    history::level_row(name, points, [first, last], metric.digits(), (since, tone))
}

/// Points of a label, its levels as steps, its changes as marks.
fn push_label(chart: &mut Chart, slot: usize, one: &LabelDates, places: &BTreeMap<&str, usize>) {
    let at = |point: &DatePoint| places.get(point.result_set.as_str()).map_or(0, |at| *at) as f64;
    let StepDates { points, changes, .. } = &one.dates;
    for change in changes {
        let Some(point) = points.get(change.at) else { continue };
        let label = format!("×{:.2}", change.ratio);
        chart.marks.push(ChangeMark { at: at(point), label, series: chart.series.len() });
    }
    let mut values = Series::new(&*one.label, slot + 1, Line::None);
    values.points = points
        .iter()
        .map(|point| {
            Point::at(at(point), point.value)
                .noted(format!("{}, n = {}", point.result_set, point.n))
                .from_runs(vec![point.result_set.clone()])
        })
        .collect();
    let mut levels = Series::new(&*one.label, slot + 1, Line::Steps);
    let begins = std::iter::once(0).chain(changes.iter().map(|change| change.at));
    let begins: Vec<usize> = begins.chain([points.len()]).collect();
    for pair in begins.windows(2) {
        let level = one.dates.level(pair[0]..pair[1]);
        levels.points.extend(points.get(pair[0]).map(|it| Point::at(at(it), level).noted("level")));
        if pair[1] == points.len() {
            levels.points.extend(points.last().map(|it| Point::at(at(it), level).noted("level")));
        }
    }
    chart.series.extend([values, levels]);
}

fn by_version(series: &StepSeries, ladder: &FamilyLadder) -> impl Iterator<Item = Block> {
    let metric = series.metric;
    let names: Vec<String> = ladder.rungs.iter().map(|rung| rung.name().to_owned()).collect();
    let title = format!("{}: {} by version of {}", series.step, metric.name(), ladder.family);
    let y = Axis::linear(format!("{} relative to {}", metric.name(), names[0]), "").fitted();
    let mut chart = Chart::new(format!("versions-{}", ladder.family), title, Form::Points)
        .axes(Axis::of_categories("version", names), y);
    let mut values = Series::new(&*ladder.family, 1, Line::None);
    let lines = ladder.level_lines();
    let has_branches = ladder.chains.len() > 1;
    let mut rows = Vec::new();
    for (place, rung) in ladder.rungs.iter().enumerate() {
        let Some(point) = &ladder.step.points[place] else { continue };
        let change = ladder.step.changes.iter().find(|change| change.at == place);
        let note = match (point.outlier, change.is_some()) {
            (true, _) => ", an outlier: its neighbours share a level",
            (false, true) => ", a new level begins",
            (false, false) => "",
        };
        let mut shown = Point::at(place as f64, point.ratio).within(point.interval);
        shown = shown.noted(format!("{}{note}", rung.label));
        if let Some(since) = ladder.since.get(place) {
            shown = shown.from_runs(vec![since.result_set.clone()]);
        }
        values.points.push(shown);
        if let Some(change) = change {
            let label = format!("×{:.2}", change.ratio);
            // Placed after the series of values. The first version of a branch belongs to the first
            // line, the chain of first versions.
            let own = |line: &LevelLine| line.levels.iter().skip(1).any(|it| it.0 == place);
            let series = lines.iter().position(own).map_or(0, |line| line + 1);
            chart.marks.push(ChangeMark { at: place as f64, label, series });
        }
        let ratio = |value| Cell::number(value, Digits::Fixed(3), "ratio");
        let branch = has_branches.then(|| words("branch", Cell::text(&*rung.branch)));
        let shown = ratio(point.ratio).within(point.interval).toned(tone(metric, point.ratio));
        let rest = [
            words("target", Cell::text(&*rung.label)),
            numbers("relative to the first", shown),
            numbers("level", ratio(point.level)),
            words("note", Cell::text(note.trim_start_matches(", "))),
        ];
        let name = name_of_row("version", rung.name());
        rows.push([name].into_iter().chain(branch).chain(rest));
    }
    let drawn = lines.iter().enumerate().map(|line| levels(line, &ladder.family));
    chart.series = std::iter::once(values).chain(drawn).collect();
    if has_branches {
        chart.notes.push(
            "Changes are those along the first versions of the branches, and along each branch."
                .to_owned(),
        );
    }
    let remarks = &ladder.step.remarks;
    chart.notes.extend(remarks.iter().map(|text| format!("Author's remark: {text}")));
    let table = Table::of(ladder.family.clone(), rows).map(Block::Table);
    [Block::Chart(chart)].into_iter().chain(table)
}

/// The levels along one chain of versions as a line.
fn levels((place, line): (usize, &LevelLine), family: &str) -> Series {
    let name = line.branch.as_ref().map_or_else(|| family.to_owned(), |it| format!("branch {it}"));
    let mut levels = Series::new(name, place + 1, Line::Steps);
    let point = |(at, level): &(usize, f64)| Point::at(*at as f64, *level).noted("level");
    levels.points = line.levels.iter().map(point).collect();
    levels
}

fn changes_of(series: &StepSeries) -> Section {
    let found = of_series(series);
    let row = |change: &SiteChange<'_>| {
        let [since, version, ratio, evidence] = change.cells();
        let set = Cell::text(change.result_set);
        let set = set.linked(format!("{ROOT}{}", set_file(change.result_set)));
        let target = words("target", Cell::text(change.of));
        [since, words("result set", set), target, version, ratio, evidence]
    };
    let none = || Block::text("No change of level was found.");
    let table = Table::of("", found.iter().map(row)).map_or_else(none, Block::Table);
    Section::new("changes", "Changes", vec![table])
}

/// The same step by other metrics.
fn siblings(site: &SiteMaterial, series: &StepSeries) -> Section {
    let others =
        site.series.iter().filter(|other| other.step == series.step && other.key == series.key);
    let rows = others.map(|other| {
        let ratios: Vec<String> =
            present(other).into_iter().map(|(name, ratio)| format!("{name} {ratio:.3}")).collect();
        let link = format!("{ROOT}{}", series_file(other));
        [
            (Column::of_row("metric"), Cell::text(other.metric.name()).linked(link)),
            words("present / first level", Cell::text(ratios.join(", "))),
            words("meaning", Cell::text(other.metric.spec().meaning)),
        ]
    });
    let table = Table::of("", rows).map(Block::Table);
    Section::new("metrics", "All metrics of this step", Vec::from_iter(table))
}

/// Names and ratios: for each label over time, its present / first level; for each DBMS by version,
/// the level of its last / first version. The names differ even if a label is the name of a DBMS.
pub(super) fn present(series: &StepSeries) -> Vec<(String, f64)> {
    let dates = series
        .dates
        .iter()
        .map(|one| (one.label.clone(), one.dates.present_level() / one.dates.first_level()));
    let ladders = series.ladders.iter().filter_map(|ladder| {
        let mut levels = ladder.step.points.iter().flatten().map(|point| point.level);
        let first = levels.next()?;
        Some((format!("{} by version", ladder.family), levels.next_back()? / first))
    });
    dates.chain(ladders).collect()
}

#[cfg(test)]
mod series_tests {
    use super::*;
    use rqps_analysis::history::{
        Condition, PointRun, PointTarget, SeriesOptions, SeriesSet, SetPoints, StepPoints,
        step_series,
    };
    use rqps_model::benchmark::Group;

    #[test]
    fn a_label_and_a_dbms_of_one_name_are_two_rows() {
        let text = str::to_owned;
        let set = |(day, (version, value)): (usize, &(&str, f32))| SeriesSet {
            name: format!("day{day}"),
            points: SetPoints {
                started: format!("2026-01-0{day}T00:00:00Z"),
                targets: vec![PointTarget {
                    label: text("sqlite"),
                    family: text("sqlite"),
                    version: Some(text(version)),
                    config: String::new(),
                    branch: String::new(),
                }],
                conditions: vec![Condition {
                    benchmark: text("sysbench"),
                    workload: text("w"),
                    host: text("h"),
                    words: String::new(),
                }],
                runs: vec![PointRun { target: 0, condition: 0, block: (1, 1) }],
                steps: vec![StepPoints {
                    step: text("scan"),
                    group: Group::Range,
                    metrics: vec![(Metric::Rate, vec![Some(*value)])],
                }],
            },
        };
        let days = [("3.40", 100.0), ("3.41", 100.0), ("3.42", 100.0), ("3.43", 50.0)];
        let sets: Vec<SeriesSet> = days.iter().enumerate().map(set).collect();
        let of = SeriesOptions { max_p: 0.001, layout_sd: 0.0035, branches: false };
        let series = step_series(&sets, &of);
        let found = present(&series[0]);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["sqlite", "sqlite by version"]);
        assert!((found[1].1 - 0.5).abs() < 0.01, "{found:?}");
    }
}
