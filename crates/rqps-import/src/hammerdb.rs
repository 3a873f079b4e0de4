//! Importer `hammerdb`: results of TPROC-C as HammerDB prints and stores them, until version 6.

use super::cells::{number, rfc3339};
use super::format::{ImportError, ImportOptions, Named};
use crate::ImportFormat;
use crate::cells::Kept;
use crate::published::{self, Published, StepKind, add_file, annotate, untagged};
use crate::text::{Text, names};
use rqps_model::benchmark::{Group, RateUnit};
use rqps_model::build::Dbms;
use rqps_model::metric::Metric;

/// The importer.
pub(crate) const FORMAT: ImportFormat = ImportFormat { word: "hammerdb", read };

/// A result: `System achieved 31214 NOPM from 71879 PostgreSQL TPM`.
#[derive(Debug, PartialEq)]
struct Achieved {
    nopm: f64,
    tpm: f64,
    product: String,
    users: Option<u32>,
    date: Option<String>,
}

fn read(paths: &[Named], options: &ImportOptions) -> Result<Published, ImportError> {
    let mut published = Published { benchmark: "orders", ..Published::default() };
    for named in paths {
        let mut found = 0;
        if named.path.is_dir() {
            for name in names(&named.path)? {
                if let Ok(text) = Text::of_folder(&named.path.join(&name))? {
                    found += take(&text, named, &mut published);
                }
            }
        } else {
            found += take(&Text::read(&named.path)?, named, &mut published);
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
fn take(text: &Text, named: &Named, published: &mut Published) -> usize {
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
        let record = run.step(FORMAT.word, &step, kind);
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
