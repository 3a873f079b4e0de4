//! Importer `series`: values over time as CSV or JSON, for `rqps history --by date`.
//!
//! CSV has a header: `date,value`, or `date,step,value`, or a column for each step; a column
//! `target` names the target. JSON is an array of objects with the same keys.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::cells::rfc3339;
use super::format::{ImportError, ImportOptions, Named};
use crate::ImportFormat;
use crate::cells::Kept;
use crate::published::{self, Published, StepKind, add_file, untagged};
use crate::text::{RATES_MAX, Text, names};
use rqps_model::benchmark::{Group, RateUnit};
use rqps_model::build::Dbms;
use rqps_model::metric::Metric;

/// The importer.
pub(crate) const FORMAT: ImportFormat = ImportFormat { word: "series", read };

/// Label of values whose target nobody named.
const TARGET: &str = "series";

/// One value.
struct SeriesPoint {
    line: usize,
    date: String,
    target: Option<String>,
    step: Option<String>,
    value: f64,
}

fn read(paths: &[Named], options: &ImportOptions) -> Result<Published, ImportError> {
    let mut published = Published { benchmark: "sql", by_date: true, ..Published::default() };
    for named in paths {
        if !named.path.is_dir() {
            take(&Text::read(&named.path)?, named, &mut published)?;
            continue;
        }
        for name in names(&named.path)? {
            let path = named.path.join(&name);
            if path.is_file() && (name.ends_with(".csv") || name.ends_with(".json")) {
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

fn take(text: &Text, named: &Named, published: &mut Published) -> Result<(), ImportError> {
    text.at_most(RATES_MAX)?;
    let points = if text.first().trim_start().starts_with(['[', '{']) {
        of_json(text)?
    } else {
        of_csv(text)?
    };
    let stem = text.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
    published.cells.read(text.path(), points.len());
    // Several values of one date are repetitions.
    let mut blocks: BTreeMap<(String, String, String), u32> = BTreeMap::new();
    for point in points {
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
        if !published::put(record, Metric::Rate, point.value) {
            let why = format!("`{step}` already has another value at {}", point.date);
            return Err(text.malformed(point.line, why));
        }
        published.cells.keep(text.path(), Kept::Metric, 1);
    }
    Ok(())
}

/// RFC 3339 of `2026-01-05`, `2026-01-05 12:00:00`, `2026-01-05T12:00:00Z` or Unix seconds.
fn date_of(text: &str) -> Option<String> {
    let text = text.trim();
    if text.len() >= 9 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return of_unix_seconds(text.parse().ok()?);
    }
    let text = text.trim_end_matches('Z').replace('T', " ");
    let text = text.split(['.', '+']).next()?.trim();
    let forms = ["%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d"];
    forms.into_iter().find_map(|form| rfc3339(text, form))
}

fn of_csv(text: &Text) -> Result<Vec<SeriesPoint>, ImportError> {
    let mut lines = text.lines().filter(|(_, line)| !line.trim().is_empty());
    let Some((line, head)) = lines.next() else { return Err(text.cut_short("a header")) };
    let separator = if head.contains('\t') { '\t' } else { ',' };
    let split = |row: &str| -> Vec<String> {
        row.split(separator).map(|cell| cell.trim().trim_matches('"').to_owned()).collect()
    };
    let heads = split(head);
    let place = |names: &[&str]| {
        heads.iter().position(|head| names.contains(&head.to_lowercase().as_str()))
    };
    let Some(date) = place(&["date", "time", "timestamp"]) else {
        return Err(text.malformed(line, "the header has no column `date`"));
    };
    let (step, target) = (place(&["step", "test", "metric"]), place(&["target", "version"]));
    let known = [Some(date), step, target];
    let values: Vec<usize> =
        (0..heads.len()).filter(|place| !known.contains(&Some(*place))).collect();
    let mut points = Vec::new();
    for (line, row) in lines {
        let cells = split(row);
        text.check_width(line, cells.len(), heads.len())?;
        let Some(at) = date_of(&cells[date]) else {
            let why = format!("`{}` is no date (2026-01-31, Unix seconds)", cells[date]);
            return Err(text.bad_cell(line, date + 1, why));
        };
        for place in values.iter().copied().filter(|place| !cells[*place].is_empty()) {
            let head = heads[place].as_str();
            let of_head = || (head.to_lowercase() != "value").then(|| head.to_owned());
            points.push(SeriesPoint {
                line,
                date: at.clone(),
                target: target.map(|place| cells[place].clone()),
                step: step.map(|place| cells[place].clone()).or_else(of_head),
                value: text.number(line, place + 1, head, &cells[place])?,
            });
        }
    }
    if points.is_empty() { Err(text.cut_short("the first value")) } else { Ok(points) }
}

/// An element of the array.
#[derive(Deserialize)]
struct SeriesElement {
    #[serde(alias = "time", alias = "timestamp")]
    date: SeriesDate,
    value: f64,
    #[serde(default, alias = "test", alias = "metric")]
    step: Option<String>,
    #[serde(default, alias = "version")]
    target: Option<String>,
}

/// A date as text, or as seconds since 1970.
#[derive(Deserialize)]
#[serde(untagged)]
enum SeriesDate {
    Text(String),
    Seconds(i64),
}

fn of_json(text: &Text) -> Result<Vec<SeriesPoint>, ImportError> {
    let whole: Vec<&str> = text.lines().map(|(_, line)| line).collect();
    let rows: Vec<SeriesElement> = serde_json::from_str(&whole.join("\n")).map_err(|fault| {
        let why = format!("expected an array of objects with `date` and `value`: {fault}");
        text.malformed(fault.line(), why)
    })?;
    let points = rows.into_iter().enumerate().map(|(place, row)| {
        let SeriesElement { date, value, step, target } = row;
        let date = match date {
            SeriesDate::Text(text) => date_of(&text),
            SeriesDate::Seconds(seconds) => of_unix_seconds(seconds),
        };
        match date.filter(|_| value >= 0.0 && value.is_finite()) {
            Some(date) => Ok(SeriesPoint { line: 1, date, target, step, value }),
            None => {
                let why = format!("element {}: no date, or a value below 0", place + 1);
                Err(text.malformed(1, why))
            }
        }
    });
    points.collect()
}

fn of_unix_seconds(seconds: i64) -> Option<String> {
    let time = jiff::Timestamp::from_second(seconds).ok()?;
    Some(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn of(content: &str) -> Result<Published, ImportError> {
        let named = Named { path: "point.csv".into(), label: None, step: None };
        let mut published = Published { by_date: true, ..Published::default() };
        take(&Text::of(Path::new("point.csv"), content), &named, &mut published)?;
        Ok(published)
    }

    fn check(content: &str, expected: &[(&str, &str, &str, f64)]) {
        let published = of(content).unwrap();
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
    }

    #[test]
    fn faults_have_their_place() {
        let check = |content: &str, expected: &str| {
            let fault = of(content).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check("day,value\n1,2\n", "no column `date`");
        check("date,value\nyesterday,2\n", "line 2, column 1: `yesterday` is no date");
        check("date,value\n2026-01-05,-2\n", "line 2, column 2: `-2` under `value` is below zero");
        check("date,value\n2026-01-05\n", "1 cell for 2 columns");
        check("[{\"date\": \"2026-01-05\"}]", "missing field `value`");
    }
}
