//! Importer `series`: values over time as CSV or JSON, for `rqps history --by date`.
//!
//! Both become rows of cells with heads. Heads that are known say what a column is; else its cells
//! do: a column of dates, of numbers, or of words.

use std::collections::BTreeMap;

use jiff::civil::DateTime;
use jiff::tz::Offset;
use rqps_text::{CsvReader, CsvRecord};
use serde_json::Value;

use super::ImportFormat;
use super::cells::{Fault, Kept, is_word, number, parse_number, rfc3339, shown};
use super::format::{ImportError, ImportOptions, Named, Result};
use super::published::{self, Published, StepKind, Tag, add_file, annotate, untagged};
use super::text::{RATES_MAX, Row, Text, names};
use rqps_model::benchmark::{Group, RateUnit};
use rqps_model::build::{Dbms, Version};
use rqps_model::host::Host;
use rqps_model::metric::Metric;

/// The importer.
pub(crate) const FORMAT: ImportFormat = ImportFormat { word: "series", read };

/// Label of values whose target nobody named.
const TARGET: &str = "series";

const DATES: &[&str] = &["date", "time", "timestamp", "datetime", "day", "ts", "created_at"];
const STEPS: &[&str] = &["step", "test", "metric", "benchmark", "name", "workload", "query"];
/// Columns by which a file has several series, if their cells differ.
const TARGETS: &[&str] =
    &["target", "version", "branch", "dbms", "database", "host", "machine", "runner"];
/// Numbers beside a value that are no values.
const REMARKS: &[&str] = &[
    "commit", "revision", "sha", "hash", "id", "build", "job", "run", "unit", "units", "n",
    "count", "samples", "runs", "iterations", "sd", "stddev", "stdev", "error", "range", "tool",
    "comment",
];
/// Keys of lists that name no step.
const LISTS: &[&str] =
    &["data", "points", "values", "series", "results", "rows", "entries", "benches", "value"];
/// Heads and units of values of which less is better.
const LESS: &[&str] = &["ms", "us", "ns", "s", "sec", "secs", "seconds", "latency", "bytes", "mb"];

/// One value.
struct SeriesPoint {
    line: usize,
    date: String,
    target: Option<String>,
    step: Option<String>,
    value: f64,
    remarks: Row,
}

fn read(paths: &[Named], options: &ImportOptions) -> Result<Published> {
    let mut published = Published { benchmark: "sql", by_date: true, ..Published::default() };
    for named in paths {
        if !named.path.is_dir() {
            take(&Text::read(&named.path)?, named, &mut published)?;
            continue;
        }
        for name in names(&named.path)? {
            let path = named.path.join(&name);
            let ends = [".csv", ".tsv", ".json", ".jsonl", ".ndjson"];
            if path.is_file() && ends.iter().any(|end| name.ends_with(end)) {
                take(&Text::read(&path)?, named, &mut published)?;
            }
        }
    }
    if published.runs.is_empty() {
        let path = paths.first().map(|named| named.path.clone()).unwrap_or_default();
        return Err(ImportError::foreign(&path, "it holds no series (.csv, .json)"));
    }
    published.host = published::host(options.cpus, None, None);
    Ok(published)
}

fn take(text: &Text, named: &Named, published: &mut Published) -> Result<()> {
    text.at_most(RATES_MAX)?;
    let first = text.first().trim_start();
    let is_json = first.starts_with(['[', '{']) || first.starts_with("window.");
    let mut rows = if is_json { of_json(text)? } else { of_csv(text)? };
    for (head, of_what) in without_commas(&mut rows, !is_json && separator(text) == ';') {
        published.note(text.path(), format!("commas under `{head}` are those of {of_what}"));
    }
    let columns = Columns::of(text, &rows)?;
    let stem = text.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
    // Several values of one date are repetitions.
    let mut blocks: BTreeMap<(String, String, String), u32> = BTreeMap::new();
    for point in columns.points(text, &rows, published)? {
        let label = named.label.clone().or(point.target).unwrap_or_else(|| TARGET.to_owned());
        let step = named.step.clone().or(point.step).unwrap_or_else(|| stem.clone());
        let key = (label.clone(), step.clone(), point.date.clone());
        let block = blocks.entry(key).or_default();
        *block += 1;
        let tag = untagged(&label, Dbms::Other);
        let run = published.run_at(&label, *block, &point.date, &tag);
        let kind = StepKind { group: Group::Range, rate: RateUnit::Queries };
        let record = run.step(FORMAT.word, &step, kind);
        add_file(record, &text.name());
        record.started.clone_from(&point.date);
        for (head, cell) in &point.remarks {
            annotate(record, head, cell);
        }
        if !published::put(record, Metric::Rate, point.value) {
            let why = format!("`{step}` already has another value at {}", point.date);
            return Err(text.malformed(point.line, why));
        }
    }
    if let Some(head) = columns.less(&rows) {
        let why = format!("less of `{head}` seems better, but a series is read as more is better");
        published.note(text.path(), why);
    }
    Ok(())
}

/// RFC 3339 of a date in any usual form, or of Unix seconds, milli-, micro- or nanoseconds. A date
/// whose first number is not the year is none: nobody knows its month.
fn date_of(text: &str) -> Option<String> {
    let text = text.trim();
    let digits = text.split('.').next().unwrap_or_default().len();
    if let Some(seconds) = number(text).filter(|_| digits > 8) {
        let scale = [12, 15, 18].into_iter().filter(|more| digits > *more).count();
        let seconds = seconds / 1000f64.powi(i32::try_from(scale).ok()?);
        let time = jiff::Timestamp::from_second(seconds as i64).ok()?;
        return Some(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    }
    let (text, east) = zone(text)?;
    let plain = text.replace(['.', '/'], "-").replacen('T', " ", 1);
    let plain = match plain.split_once(':') {
        // A fraction of a second.
        Some(_) => plain.rsplit_once(':').map_or(plain.clone(), |(hours, last)| {
            format!("{hours}:{}", last.split(['-', ',']).next().unwrap_or_default())
        }),
        None => plain,
    };
    let numbers = ["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d", "%Y%m%d"];
    let words = ["%a %b %d %H:%M:%S %Y", "%a, %d %b %Y %H:%M:%S", "%b %d, %Y", "%d %b %Y"];
    let read = |text: &str, forms: &[&str]| {
        forms.iter().find_map(|form| DateTime::strptime(form, text).ok())
    };
    // With dots, the day is first everywhere; with slashes, nobody knows.
    let time = read(text, &["%d.%m.%Y", "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M"])
        .or_else(|| read(&plain, &numbers))
        .or_else(|| read(text, &words))?;
    let time = Offset::from_seconds(east).ok()?.to_timestamp(time).ok()?;
    Some(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// A time without its zone, and the seconds that the zone is ahead of UTC.
fn zone(text: &str) -> Option<(&str, i32)> {
    for name in ["Z", "UTC", "GMT"] {
        if let Some(time) = text.strip_suffix(name) {
            return Some((time.trim_end(), 0));
        }
    }
    let Some(place) = text.rfind(['+', '-']).filter(|place| text[..*place].contains(':')) else {
        return Some((text, 0));
    };
    let digits = text[place + 1..].replace(':', "");
    let (hours, minutes) = match digits.len() {
        2 => (digits.as_str(), "0"),
        4 => digits.split_at_checked(2)?,
        _ => return None,
    };
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let ahead = (hours * 60 + minutes) * 60;
    Some((text[..place].trim_end(), if text[place..].starts_with('-') { -ahead } else { ahead }))
}

/// True where nothing was measured.
fn is_absent(cell: &str) -> bool {
    ["", "-", "na", "n/a", "nan", "null", "none"].contains(&cell.to_lowercase().as_str())
}

/// Writes the numbers of a column without commas, if all of them tell what these mean. `1,200` alone
/// may be either; only where semicolons separate cells it is likely to be a decimal, and stays.
fn without_commas(rows: &mut [(usize, Row)], semicolons: bool) -> Vec<(String, &'static str)> {
    let mut columns: BTreeMap<String, Vec<&mut String>> = BTreeMap::new();
    for (head, cell) in rows.iter_mut().flat_map(|(_, row)| row) {
        columns.entry(head.clone()).or_default().push(cell);
    }
    let mut told = Vec::new();
    for (head, mut cells) in columns {
        let has_word = cells.iter().any(|cell| is_word(cell) && !is_absent(cell));
        let is_small = cells.iter().all(|cell| number(cell).is_none_or(|it| it < 1000.0));
        cells.retain(|cell| parse_number(cell) == Err(Fault::Separated));
        if has_word || cells.is_empty() {
            continue;
        }
        let in_thousands = cells.iter().all(|cell| {
            let (whole, rest) = cell.split_once('.').unwrap_or((cell, ""));
            let groups: Vec<usize> = whole.split(',').map(str::len).collect();
            let first = (1..=3).contains(&groups[0]) && !whole.starts_with('0');
            first && groups[1..].iter().all(|digits| *digits == 3) && !rest.contains(',')
        });
        let decimal = |cell: &&mut String| cell.matches(',').count() == 1 && !cell.contains('.');
        let (of_what, mark) = match (in_thousands, cells.iter().all(decimal)) {
            (true, either) if is_small && !(either && semicolons) => ("thousands", ""),
            (false, true) => ("decimals", "."),
            _ => continue,
        };
        cells.into_iter().for_each(|cell| *cell = cell.replace(',', mark));
        told.push((head, of_what));
    }
    told
}

/// What the columns are.
struct Columns {
    date: String,
    step: Option<String>,
    targets: Vec<String>,
    values: Vec<String>,
    /// Columns of words that begin with a digit.
    odd: Vec<String>,
}

impl Columns {
    fn of(text: &Text, rows: &[(usize, Row)]) -> Result<Columns> {
        let mut heads: Vec<&str> = Vec::new();
        let mut cells: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (head, cell) in rows.iter().flat_map(|(_, row)| row) {
            let column = cells.entry(head).or_default();
            if column.is_empty() {
                heads.push(head);
            }
            column.push(cell);
        }
        let of = |head: &str| cells[head].iter().copied().filter(|cell| !is_absent(cell));
        let is = |head: &str, words: &[&str]| words.contains(&head.to_lowercase().as_str());
        let known = |words: &[&str]| heads.iter().copied().find(|head| is(head, words));
        let is_dates =
            |head: &str| of(head).count() > 0 && of(head).all(|it| date_of(it).is_some());
        let Some(date) = known(DATES).or_else(|| heads.iter().copied().find(|it| is_dates(it)))
        else {
            let line = rows.first().map_or(1, |(line, _)| *line);
            return Err(text.malformed(line, "there is no column `date`, and none of dates"));
        };
        let step = known(STEPS);
        let differs = |head: &str| of(head).any(|cell| Some(cell) != of(head).next());
        let targets = heads.iter().copied().filter(|head| {
            is(head, &TARGETS[..1])
                || (is(head, TARGETS) && differs(head))
                || is(head, &["version"])
        });
        let targets: Vec<String> = targets.map(str::to_owned).collect();
        let is_value = |head: &&str| {
            let other = *head == date || Some(*head) == step || is(head, TARGETS);
            let words = of(head).count() > 0 && of(head).all(is_word);
            let dates = is_dates(head) && !is(head, &["value"]);
            !(other || words || dates || is(head, REMARKS))
        };
        let values: Vec<String> =
            heads.iter().copied().filter(is_value).map(str::to_owned).collect();
        // `12k` may be meant as a value.
        let is_odd = |head: &&str| {
            let other = *head == date || Some(*head) == step || is(head, TARGETS);
            let odd = of(head)
                .all(|cell| is_word(cell) && cell.starts_with(|c: char| c.is_ascii_digit()));
            odd && !(other || is_dates(head) || is(head, REMARKS)) && of(head).count() > 0
        };
        let odd: Vec<String> = heads.iter().copied().filter(is_odd).map(str::to_owned).collect();
        if values.is_empty() {
            let line = rows.first().map_or(1, |(line, _)| *line);
            let mut why = "there is no column of values beside the dates".to_owned();
            if let Some(head) = odd.first() {
                let cell = shown(of(head).next().unwrap_or_default());
                why = format!("{why}: `{cell}` under `{head}` is not a number");
            }
            return Err(text.malformed(line, why));
        }
        let (date, step) = (date.to_owned(), step.map(str::to_owned));
        Ok(Columns { date, step, targets, values, odd })
    }

    fn points(
        &self,
        text: &Text,
        rows: &[(usize, Row)],
        published: &mut Published,
    ) -> Result<Vec<SeriesPoint>> {
        let mut points = Vec::new();
        for (line, row) in rows {
            let place = |head: &str| row.iter().position(|(other, _)| other == head);
            let of = |head: &String| place(head).map(|place| row[place].1.clone());
            let cell = of(&self.date).unwrap_or_default();
            let Some(date) = date_of(&cell) else {
                let why = format!("`{cell}` is no date (2026-01-31, Unix seconds)");
                return Err(text.bad_cell(*line, place(&self.date).unwrap_or(0) + 1, why));
            };
            let targets: Vec<String> = self.targets.iter().filter_map(of).collect();
            let named = self.step.as_ref().and_then(of);
            let used = |head: &String| {
                [Some(&self.date), self.step.as_ref()].contains(&Some(head))
                    || self.targets.contains(head)
                    || self.values.contains(head)
            };
            let remarks: Row = row.iter().filter(|(head, _)| !used(head)).cloned().collect();
            for (head, _) in remarks.iter().filter(|(head, _)| self.odd.contains(head)) {
                published.cells.unknown_head(text.path(), head, &[]);
            }
            published.cells.read(text.path(), remarks.len());
            published.cells.keep(text.path(), Kept::Annotation, remarks.len());
            for (place, (head, cell)) in row.iter().enumerate() {
                if !self.values.contains(head) {
                    continue;
                }
                published.cells.read(text.path(), 1);
                if is_absent(cell) {
                    published.cells.keep(text.path(), Kept::Absent, 1);
                    continue;
                }
                let own = Some(head.clone()).filter(|head| head.to_lowercase() != "value");
                let step = match (&named, own) {
                    (Some(step), Some(head)) if self.values.len() > 1 => {
                        Some(format!("{step}.{head}"))
                    }
                    (named, own) => named.clone().or(own),
                };
                points.push(SeriesPoint {
                    line: *line,
                    date: date.clone(),
                    target: (!targets.is_empty()).then(|| targets.join("-")),
                    step,
                    value: text.number(*line, place + 1, head, cell)?,
                    remarks: remarks.clone(),
                });
                published.cells.keep(text.path(), Kept::Metric, 1);
            }
        }
        Ok(points)
    }

    /// A head or a unit by which less of a value is better.
    fn less(&self, rows: &[(usize, Row)]) -> Option<String> {
        let is = |text: &str| {
            let text = text.to_lowercase();
            text.split(|c: char| !c.is_alphanumeric()).any(|word| LESS.contains(&word))
        };
        let unit = |head: &str| ["unit", "units"].contains(&head.to_lowercase().as_str());
        let cells = rows.iter().flat_map(|(_, row)| row);
        let units = cells.filter(|(head, cell)| unit(head) && is(cell) && !cell.contains("/s"));
        let heads = self.values.iter().filter(|head| is(head) && !head.contains("/s"));
        heads.cloned().chain(units.map(|(_, cell)| cell.clone())).next()
    }
}

/// What stands between the cells of a file that is no JSON.
fn separator(text: &Text) -> char {
    ['\t', ';', ','].into_iter().find(|c| text.first().contains(*c)).unwrap_or(',')
}

fn of_csv(text: &Text) -> Result<Vec<(usize, Row)>> {
    let separator = separator(text);
    let mut record = CsvRecord::default();
    let mut split = |(line, row): (usize, &str)| -> Result<Vec<String>> {
        CsvReader::new(row.as_bytes(), separator as u8)
            .read(&mut record)
            .map_err(|fault| text.malformed(line, fault.to_string()))?;
        Ok(record.texts().iter().map(|cell| cell.trim().to_owned()).collect())
    };
    let mut lines = text.rows().filter(|(_, row)| !row.starts_with('#'));
    let Some(head) = lines.next() else { return Err(text.cut_short("a header")) };
    let heads = split(head)?;
    let mut rows = Vec::new();
    for (line, row) in lines {
        let cells = split((line, row))?;
        text.check_width(line, cells.len(), heads.len())?;
        rows.push((line, heads.iter().cloned().zip(cells).collect()));
    }
    if rows.is_empty() { Err(text.cut_short("the first value")) } else { Ok(rows) }
}

/// Objects, lists, and lists in objects, at any depth; also one object a line.
fn of_json(text: &Text) -> Result<Vec<(usize, Row)>> {
    let whole: Vec<&str> = text.lines().map(|(_, line)| line).collect();
    let whole = whole.join("\n");
    let begin = whole.find(['[', '{']).unwrap_or(0);
    let mut rows = Vec::new();
    for value in serde_json::Deserializer::from_str(&whole[begin..]).into_iter::<Value>() {
        match value {
            Ok(value) => add_rows(&value, &Row::new(), &mut rows),
            // `window.DATA = {…};`
            Err(_) if begin > 0 && !rows.is_empty() => break,
            Err(fault) => {
                let why = format!("expected JSON with dates and values: {fault}");
                return Err(text.malformed(fault.line(), why));
            }
        }
    }
    if rows.is_empty() { Err(text.cut_short("the first value")) } else { Ok(rows) }
}

/// Adds the rows of a JSON value. Each row also has the cells of the objects around it.
fn add_rows(value: &Value, above: &Row, rows: &mut Vec<(usize, Row)>) {
    let with = |cells: Vec<(String, String)>| {
        let mut row = cells;
        let inherited = above.iter().filter(|(head, _)| row.iter().all(|(own, _)| own != head));
        let inherited: Row = inherited.cloned().collect();
        row.extend(inherited);
        row
    };
    match value {
        Value::Array(items) => match items.as_slice() {
            [date, value] if scalar(date).is_some_and(|date| date_of(&date).is_some()) => {
                let cells = ["date", "value"].iter().zip([date, value]);
                let cells = cells.filter_map(|(head, it)| Some(((*head).to_owned(), scalar(it)?)));
                rows.push((1, with(cells.collect())));
            }
            items => items.iter().for_each(|item| add_rows(item, above, rows)),
        },
        Value::Object(object) => {
            let scalars = object.iter().filter_map(|(key, it)| Some((key.clone(), scalar(it)?)));
            let own: Vec<(String, String)> = scalars.collect();
            let nested = object.iter().filter(|(_, it)| scalar(it).is_none());
            let nested: Vec<(&String, &Value)> = nested.collect();
            if !object.is_empty() && object.keys().all(|key| date_of(key).is_some()) {
                for (date, value) in object {
                    let dated = with(vec![("date".to_owned(), date.clone())]);
                    match scalar(value) {
                        Some(value) => {
                            rows.push((1, [dated, vec![("value".to_owned(), value)]].concat()));
                        }
                        None => add_rows(value, &dated, rows),
                    }
                }
            } else if let Some(columns) = columns_of(&nested) {
                rows.extend(
                    columns.into_iter().map(|cells| (1, with([cells, own.clone()].concat()))),
                );
            } else if nested.iter().any(|(_, it)| it.is_array()) || own.is_empty() {
                let row = with(own.clone());
                // What stands beside lists tells of all of them.
                let lists = nested.iter().filter(|(_, it)| it.is_array() || own.is_empty());
                for (key, value) in lists {
                    let mut row = row.clone();
                    let has_step =
                        row.iter().any(|(head, _)| STEPS.contains(&&*head.to_lowercase()));
                    if !has_step && !LISTS.contains(&&*key.to_lowercase()) {
                        row.push(("step".to_owned(), (*key).clone()));
                    }
                    add_rows(value, &row, rows);
                }
            } else {
                // A row with objects in it, such as `metrics`.
                let flat = nested.iter().filter_map(|(_, it)| it.as_object()).flatten();
                let flat = flat.filter_map(|(key, it)| Some((key.clone(), scalar(it)?)));
                let flat: Row =
                    flat.filter(|(key, _)| own.iter().all(|(it, _)| it != key)).collect();
                rows.push((1, with([own, flat].concat())));
            }
        }
        _ => {}
    }
}

/// Rows of lists of one length that stand beside each other: `{"date": […], "value": […]}`.
fn columns_of(lists: &[(&String, &Value)]) -> Option<Vec<Row>> {
    let lists: Option<Vec<(&String, Vec<String>)>> = lists
        .iter()
        .map(|(key, it)| Some((*key, it.as_array()?.iter().map(scalar).collect::<Option<_>>()?)))
        .collect();
    let lists = lists.filter(|lists: &Vec<(&String, Vec<String>)>| {
        lists.iter().any(|(key, _)| DATES.contains(&&*key.to_lowercase()))
            && lists.iter().all(|(_, list)| list.len() == lists[0].1.len())
    })?;
    let row =
        |place: usize| lists.iter().map(|(key, it)| ((*key).clone(), it[place].clone())).collect();
    Some((0..lists[0].1.len()).map(row).collect())
}

/// A cell; `None` for what holds others.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(_) | Value::Object(_) => None,
        Value::Null => Some(String::new()),
        other => Some(other.to_string()),
    }
}

// Importer `hammerdb`: results of TPROC-C as HammerDB prints them, as `jobs` gives them, and as
// version 6 saves them.

/// The importer.
pub(crate) const HAMMERDB: ImportFormat = ImportFormat { word: "hammerdb", read: read_hammerdb };

/// A result: `System achieved 31214 NOPM from 71879 PostgreSQL TPM`.
#[derive(Debug, PartialEq)]
struct Achieved {
    nopm: f64,
    tpm: f64,
    product: String,
    users: Option<u32>,
    date: Option<String>,
    /// Of the DBMS, and other facts, where the file tells them.
    release: Option<String>,
    cpus: Option<u32>,
    remarks: Row,
}

fn read_hammerdb(paths: &[Named], options: &ImportOptions) -> Result<Published> {
    let mut published = Published { benchmark: "orders", ..Published::default() };
    for named in paths {
        let mut found = 0;
        if named.path.is_dir() {
            for name in names(&named.path)? {
                if let Ok(text) = Text::of_folder(&named.path.join(&name))? {
                    found += take_hammerdb(&text, named, &mut published)?;
                }
            }
        } else {
            found += take_hammerdb(&Text::read(&named.path)?, named, &mut published)?;
        }
        if found == 0 {
            let why = "it holds no result of HammerDB (`System achieved N NOPM from M … TPM`)";
            return Err(ImportError::foreign(&named.path, why));
        }
    }
    if options.cpus.is_some() || published.host == Host::default() {
        published.host = published::host(options.cpus, None, None);
    }
    Ok(published)
}

/// Takes the results of a file, and returns how many there are.
fn take_hammerdb(text: &Text, named: &Named, published: &mut Published) -> Result<usize> {
    let stem = text.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let results = results(text)?;
    let count = results.len();
    for result in results {
        let label = named.label.clone().unwrap_or_else(|| stem.clone());
        let step = match (&named.step, result.users) {
            (Some(step), _) => step.clone(),
            (None, Some(users)) => format!("tproc-c.dop{users}"),
            (None, None) => "tproc-c".to_owned(),
        };
        let product = result.product.to_lowercase();
        let dbms = Dbms::ALL.into_iter().find(|dbms| product.starts_with(dbms.name()));
        let version = result.release.map(Version::new);
        let tag = Tag { version, ..untagged(&label, dbms.unwrap_or(Dbms::Other)) };
        let has_step = |block: u32| {
            published.runs.iter().any(|run| {
                let key = &run.record.key;
                (key.label.as_str(), key.block) == (label.as_str(), block)
                    && run.steps.iter().any(|other| other.name == step)
            })
        };
        // Several results of one target and step are repetitions.
        let block = (1..).find(|block| !has_step(*block)).unwrap_or(1);
        let run = published.run(&label, block, &tag);
        if let Some(date) = &result.date {
            run.record.started.clone_from(date);
        }
        let kind = StepKind { group: Group::Write, rate: RateUnit::Transactions };
        let record = run.step(HAMMERDB.word, &step, kind);
        add_file(record, &text.name());
        if let Some(date) = &result.date {
            record.started.clone_from(date);
        }
        published::put(record, Metric::Rate, result.tpm / 60.0);
        published::put(record, Metric::NewOrdersPerMinute, result.nopm);
        annotate(record, "TPM", &result.tpm.to_string());
        for (head, cell) in &result.remarks {
            annotate(record, head, cell);
        }
        published.cells.read(text.path(), 2 + result.remarks.len());
        published.cells.keep(text.path(), Kept::Metric, 2);
        published.cells.keep(text.path(), Kept::Annotation, result.remarks.len());
        if let Some(cpus) = result.cpus {
            published.host = published::host(Some(cpus), None, None);
        }
    }
    Ok(count)
}

/// The results that version 6 saves, at any depth: each is an object with the job, the system, what
/// was achieved and the response times of each kind of transaction.
fn artifacts(text: &Text, value: &Value, found: &mut Vec<Achieved>) -> Result<()> {
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| artifacts(text, item, found)),
        Value::Object(object) => match object.get("result") {
            Some(result) if result.get("nopm").is_some() => {
                found.push(artifact(text, value, result)?);
                Ok(())
            }
            _ => object.values().try_for_each(|item| artifacts(text, item, found)),
        },
        _ => Ok(()),
    }
}

fn artifact(text: &Text, value: &Value, result: &Value) -> Result<Achieved> {
    let job = &value["job"];
    let amount = |key: &str| {
        let cell = result.get(key).and_then(scalar).unwrap_or_default();
        let is_key = |(_, row): &(usize, &str)| row.contains(&format!("\"{key}\""));
        let line = text.lines().find(is_key).map_or(1, |(line, _)| line);
        let why = |fault: Fault| format!("`{}` under `{key}` {}", shown(&cell), fault.why());
        parse_number(&cell).map_err(|fault| text.malformed(line, why(fault)))
    };
    let count = |value: &Value| scalar(value)?.parse().ok();
    let word = |value: &Value| scalar(value).filter(|word| !is_absent(word));
    let product = [&result["database_display"], &job["database_display"], &job["database"]];
    let times = value["response_times"]["rows"].as_array().into_iter().flatten();
    let times = times.filter_map(|row| Some((scalar(row.get("name")?)?, row.as_object()?)));
    let times = times.flat_map(|(name, row)| {
        let kept = row.iter().filter(|(head, _)| head.ends_with("_ms"));
        kept.filter_map(move |(head, cell)| Some((format!("{name} {head}"), scalar(cell)?)))
    });
    Ok(Achieved {
        nopm: amount("nopm")?,
        tpm: amount("tpm")?,
        product: product.into_iter().find_map(word).unwrap_or_default(),
        users: count(&result["active_virtual_users"])
            .or_else(|| count(&value["benchmark_config"]["virtual_users"])),
        date: word(&job["timestamp"]).and_then(|date| date_of(&date)),
        release: word(&job["release"]),
        cpus: count(&value["system"]["cpucount"]),
        remarks: times.collect(),
    })
}

/// The results of a log, or of what `jobs` prints as JSON.
fn results(text: &Text) -> Result<Vec<Achieved>> {
    let whole: Vec<&str> = text.lines().map(|(_, line)| line).collect();
    let mut found = Vec::new();
    if let Ok(value) = serde_json::from_str(&whole.join("\n")) {
        artifacts(text, &value, &mut found)?;
    }
    if !found.is_empty() {
        return Ok(found);
    }
    let (mut users, mut date) = (None, None);
    // A line of JSON may hold several texts.
    for (line, row) in text.lines().flat_map(|(line, row)| row.split('"').map(move |it| (line, it)))
    {
        let words: Vec<&str> = row.split_whitespace().collect();
        let before = |word: &str| {
            let place = words.iter().position(|other| *other == word)?;
            words.get(place.checked_sub(1)?).copied()
        };
        if row.contains("Active Virtual Users") {
            let said = before("Active").and_then(|word| word.rsplit(':').next()?.parse().ok());
            users = said.or(users);
        }
        date = words
            .windows(2)
            .find_map(|pair| rfc3339(&pair.join(" "), "%Y-%m-%d %H:%M:%S"))
            .or(date);
        let tpm = words.iter().position(|word| *word == "from").and_then(|it| words.get(it + 1));
        let (Some(nopm), Some(tpm), Some(product)) = (before("NOPM"), tpm, before("TPM")) else {
            continue;
        };
        // A script that prints it is no result.
        if !row.contains("System achieved") || is_word(nopm) {
            continue;
        }
        let amount = |word: &str| {
            parse_number(word).map_err(|fault| {
                text.bad_word(line, word, format!("`{}` {}", shown(word), fault.why()))
            })
        };
        found.push(Achieved {
            nopm: amount(nopm)?,
            tpm: amount(tpm)?,
            product: product.to_owned(),
            users,
            date: date.clone(),
            release: None,
            cpus: None,
            remarks: Row::new(),
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn of_text(content: &str) -> Result<Published> {
        let named = Named { path: "point.csv".into(), label: None, step: None };
        let mut published = Published { by_date: true, ..Published::default() };
        take(&Text::of(Path::new("point.csv"), content), &named, &mut published)?;
        Ok(published)
    }

    fn check(content: &str, expected: &[(&str, &str, &str, f64)]) {
        let published = of_text(content).unwrap();
        let found: Vec<(&str, &str, &str, f64)> = published
            .runs
            .iter()
            .flat_map(|run| run.steps.iter().map(move |step| (run, step)))
            .map(|(run, step)| {
                let rate = step.outcome.extra[&Metric::Rate];
                (run.record.key.label.as_str(), &*run.record.started, step.name.as_str(), rate)
            })
            .collect();
        assert_eq!(found, expected, "{content}");
    }

    #[test]
    fn a_zone_is_hours_and_minutes() {
        let of = |zone: &str| date_of(&format!("2026-01-05 12:30:00{zone}"));
        assert_eq!(of("+01:30").as_deref(), Some("2026-01-05T11:00:00Z"));
        assert_eq!(of("-08").as_deref(), Some("2026-01-05T20:30:00Z"));
        for zone in ["+00999999999", "+0\u{e9}0", "+123", "+99:99"] {
            assert_eq!(of(zone), None, "{zone}");
        }
    }

    #[test]
    fn series_are_read_in_each_form() {
        let (day, next) = ("2026-01-05T00:00:00Z", "2026-01-06T12:30:00Z");
        let two = [("series", day, "point", 10.0), ("series", next, "point", 9.5)];
        check("date,value\n2026-01-05,10\n2026-01-06 12:30,9.5\n", &two);
        check(
            "[{\"date\": \"2026-01-05\", \"value\": 10},\n\
             {\"date\": \"2026-01-06T12:30:00Z\", \"value\": 9.5}]",
            &two,
        );
        check(
            "date,target,scan,load\n2026-01-05,main,3,4\n",
            &[("main", day, "scan", 3.0), ("main", day, "load", 4.0)],
        );
        check("time,step,value\n1767571200,scan,3\n", &[("series", day, "scan", 3.0)]);
        // Words are remarks, dates are of any form, gaps are no values.
        check(
            "time,commit,branch,metric1,metric2\n2026.01.05 1:00:00 +0100,aaa0,main,7,NA\n\
             2026.01.06 7:30:00 -0500,17,main,8,10.23\n",
            &[
                ("series", day, "metric1", 7.0),
                ("series", next, "metric1", 8.0),
                ("series", next, "metric2", 10.23),
            ],
        );
        check(
            "When;\"Query; of the day\"\n05.01.2026;3\nTue Jan 6 12:30:00 2026 +0000;4\n",
            &[
                ("series", day, "Query; of the day", 3.0),
                ("series", next, "Query; of the day", 4.0),
            ],
        );
        check(
            "date,branch,tps\n20260105,main,3\n20260105,next,4\n",
            &[("main", day, "tps", 3.0), ("next", day, "tps", 4.0)],
        );
        check(
            "date,test,mean,stddev,unit\n2026-01-05,scan,3,0.5,tps\n",
            &[("series", day, "scan", 3.0)],
        );
        let four = [
            ("series", day, "scan", 3.0),
            ("series", day, "load", 4.0),
            ("series", next, "scan", 5.0),
        ];
        let scans = [four[0], four[2]];
        check("{\"2026-01-05\": {\"load\": 4, \"scan\": 3}}", &[four[1], four[0]]);
        check("{\"scan\": {\"2026-01-05\": 3, \"2026-01-06T12:30Z\": 5}}", &scans);
        check("{\"scan\": [[1767571200, 3], [1767702600000, 5]]}", &scans);
        check(
            "{\"name\": \"scan\", \"points\": [{\"t\": \"2026-01-05\", \"value\": 3},\n\
             {\"t\": \"2026-01-06 12:30:00.25\", \"value\": 5}]}",
            &scans,
        );
        check(
            "{\"date\": \"2026-01-05\", \"metrics\": {\"scan\": 3, \"load\": null}}\n\
             {\"date\": \"2026-01-06 12:30\", \"metrics\": {\"scan\": 5, \"load\": null}}\n",
            &scans,
        );
        check("{\"date\": [1767571200, 1767702600], \"scan\": [3, 5]}", &scans);
        check(
            "window.DATA = {\"entries\": {\"Benchmark\": [{\"commit\": {\"id\": \"a\"},\n\
             \"date\": 1767571200000, \"benches\": [{\"name\": \"scan\", \"value\": 3},\n\
             {\"name\": \"load\", \"value\": 4}]}]}};\n",
            &four[..2],
        );
    }

    #[test]
    fn commas_are_what_their_column_makes_of_them() {
        let day = "2026-01-05T00:00:00Z";
        let of = |load: f64| [("series", day, "load", load), ("series", day, "load", 950.0)];
        let two = |load: &str| format!("date\tload\n2026-01-05\t{load}\n2026-01-05\t950\n");
        check(&two("1,200"), &of(1200.0));
        check(&two("1,200,300.5"), &of(1_200_300.5));
        check(&two("0,987"), &of(0.987));
        check("date,load\n2026-01-05,\"1,200\"\n2026-01-05,950\n", &of(1200.0));
        check("date;load\n2026-01-05;1200,25\n2026-01-05;950\n", &of(1200.25));
        check("{\"load\": {\"2026-01-05\": \"1,200\"}}", &of(1200.0)[..1]);
        let said = |content: &str| {
            let published = of_text(content).unwrap();
            let mut notices = published.cells.notices();
            notices.extend(published.notices);
            notices.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        assert!(said(&two("1,200")).contains("commas under `load` are those of thousands"));
        let odd = said("date,load,scan\n2026-01-05,12k,3\n");
        assert!(odd.contains("no metric for column `load`; kept as annotations: 1 cell"), "{odd}");
        assert_eq!(said("date,note,scan\n2026-01-05,\"a, b\",3\n"), "");
    }

    #[test]
    fn faults_have_their_place() {
        let check = |content: &str, expected: &str| {
            let fault = of_text(content).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check("day,value\n1,2\n", "`1` is no date");
        check("night,value\n1,2\n", "no column `date`");
        check(
            "date,load\n2026-01-05,12k\n",
            "beside the dates: `12k` under `load` is not a number",
        );
        check(
            "date;load\n2026-01-05;1,200\n",
            "line 2, column 2: `1,200` under `load` has a comma",
        );
        check("date\tload\n2026-01-05\t1,200\n2026-01-06\t1200\n", "line 2, column 2: `1,200`");
        check("date\tload\n2026-01-05\t1.200,5\n", "line 2, column 2: `1.200,5`");
        check("date,value\n01/02/2026,2\n", "`01/02/2026` is no date");
        check("date,value\nyesterday,2\n", "line 2, column 1: `yesterday` is no date");
        check("date,value\n2026-01-05,-2\n", "line 2, column 2: `-2` under `value` is below zero");
        check("date,value\n2026-01-05\n", "1 cell for 2 columns");
        check("[{\"date\": \"2026-01-05\"}]", "no column of values");
        check("[{\"date\": \"2026-01-05\", \"value\": -2}]", "is below zero");
        check("{\"date\": ", "expected JSON");
    }
}

#[cfg(test)]
mod hammerdb_tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn several_results_of_one_file_are_all_read() {
        let of = |content: &str| {
            let found = results(&Text::of(Path::new("x"), content)).map_err(|it| it.to_string())?;
            Ok::<_, String>(found.iter().map(|it| (it.nopm, it.users)).collect::<Vec<_>>())
        };
        let both = Ok(vec![(100.0, Some(4)), (150.0, Some(8))]);
        let jobs = "{\"A1\":[\"4 Active Virtual Users configured\",\"TEST RESULT : System achieved 100 \
                    NOPM from 200 MySQL TPM\"],\"A2\":[\"8 Active Virtual Users configured\",\"TEST \
                    RESULT : System achieved 150 NOPM from 300 MySQL TPM\"]}";
        assert_eq!(of(jobs), both);
        let one = |nopm: &str, users: u32| {
            format!("{{\"result\":{{\"nopm\":{nopm},\"tpm\":9,\"active_virtual_users\":{users}}}}}")
        };
        assert_eq!(of(&format!("[{},{}]", one("100", 4), one("\"150\"", 8))), both);
        let commas = of(&jobs.replace("100", "1,100")).unwrap_err();
        assert!(commas.contains("column 75: `1,100` has a comma"), "{commas}");
        let negative = of(&one("-5", 4)).unwrap_err();
        assert!(negative.contains("line 1: `-5` under `nopm` is below zero"), "{negative}");
    }

    #[test]
    fn logs_and_jobs_are_read() {
        let check = |content: &str| {
            let found = results(&Text::of(Path::new("x.log"), content)).unwrap();
            let [one] = found.as_slice() else { panic!("{found:?}") };
            assert_eq!(
                (one.nopm, one.tpm, one.product.as_str()),
                (31_214.0, 71_879.0, "PostgreSQL")
            );
            assert_eq!(one.users, Some(8));
            assert_eq!(one.date.as_deref(), Some("2026-02-13T09:36:49Z"));
        };
        check(
            "Hammerdb Log @ 2026-02-13 09:36:49\nVuser 1:8 Active Virtual Users configured\n\
             Vuser 1:TEST RESULT : System achieved 31214 NOPM from 71879 PostgreSQL TPM\n",
        );
        check(
            "[\n \"63E9\",\n \"2026-02-13 09:36:49\",\n \"8 Active Virtual Users configured\",\n\
             \"TEST RESULT : System achieved 31214 NOPM from 71879 PostgreSQL TPM\"\n]\n",
        );
        check(
            "{\"job\": {\"database\": \"PostgreSQL\", \"release\": \"17.6\",\n\
             \"timestamp\": \"2026-02-13 09:36:49\"}, \"system\": {\"cpucount\": \"96\"},\n\
             \"benchmark_config\": {\"virtual_users\": 8}, \"result\": {\"nopm\": 31214,\n\
             \"tpm\": 71879}, \"response_times\": {\"rows\": [{\"name\": \"NEWORD\",\n\
             \"calls\": 7, \"p95_ms\": 3.182}]}}",
        );
    }
}
