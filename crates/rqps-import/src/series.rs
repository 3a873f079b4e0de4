//! Importer `series`: values over time as CSV or JSON, for `rqps history --by date`.
//!
//! CSV has a header: `date,value`, or `date,step,value`, or a column for each step; a column
//! `target` names the target. JSON is an array of objects with the same keys.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::ImportFormat;
use super::cells::{Kept, number, rfc3339};
use super::format::{ImportError, ImportOptions, Named, Result};
use super::published::{self, Published, StepKind, add_file, annotate, untagged};
use super::text::{RATES_MAX, Text, names};
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

fn read(paths: &[Named], options: &ImportOptions) -> Result<Published> {
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

fn take(text: &Text, named: &Named, published: &mut Published) -> Result<()> {
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

fn of_csv(text: &Text) -> Result<Vec<SeriesPoint>> {
    let mut lines = text.rows();
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

fn of_json(text: &Text) -> Result<Vec<SeriesPoint>> {
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

// Importer `hammerdb`: results of TPROC-C as HammerDB prints and stores them, until version 6.

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
}

fn read_hammerdb(paths: &[Named], options: &ImportOptions) -> Result<Published> {
    let mut published = Published { benchmark: "orders", ..Published::default() };
    for named in paths {
        let mut found = 0;
        if named.path.is_dir() {
            for name in names(&named.path)? {
                if let Ok(text) = Text::of_folder(&named.path.join(&name))? {
                    found += take_hammerdb(&text, named, &mut published);
                }
            }
        } else {
            found += take_hammerdb(&Text::read(&named.path)?, named, &mut published);
        }
        if found == 0 {
            let why = "it holds no result of HammerDB (`System achieved N NOPM from M … TPM`)";
            return Err(ImportError::foreign(&named.path, why));
        }
    }
    published.host = published::host(options.cpus, None, None);
    Ok(published)
}

/// Takes the results of a file, and returns how many there are.
fn take_hammerdb(text: &Text, named: &Named, published: &mut Published) -> usize {
    let stem = text.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let results = results(text);
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
        let tag = untagged(&label, dbms.unwrap_or(Dbms::Other));
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
        published.cells.read(text.path(), 2);
        published.cells.keep(text.path(), Kept::Metric, 2);
    }
    count
}

/// The results of a log, or of what `jobs` prints as JSON.
fn results(text: &Text) -> Vec<Achieved> {
    let (mut users, mut date) = (None, None);
    let mut found = Vec::new();
    for (_, row) in text.lines() {
        let words: Vec<&str> = row.split([' ', ',', '"']).filter(|word| !word.is_empty()).collect();
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
        let achieved = row.contains("System achieved").then(|| {
            let product = before("TPM")?;
            let tpm = words.iter().position(|word| *word == "from")? + 1;
            Some(Achieved {
                nopm: number(before("NOPM")?)?,
                tpm: number(words.get(tpm)?)?,
                product: product.to_owned(),
                users,
                date: date.clone(),
            })
        });
        found.extend(achieved.flatten());
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn of(content: &str) -> Result<Published> {
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

#[cfg(test)]
mod hammerdb_tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn logs_and_jobs_are_read() {
        let check = |content: &str| {
            let found = results(&Text::of(Path::new("x.log"), content));
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
    }
}
