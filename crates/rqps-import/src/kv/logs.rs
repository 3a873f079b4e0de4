//! Takes results from db_bench's own output.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::ImportError;
use crate::kv::metrics::{fill, tag_of};
use crate::kv::output::{self, DbBench, Log};
use crate::kv::taker::Taker;
use crate::notice::{Notice, NoticeKind};
use crate::number::each_second;
use crate::published::{add_file, annotate};
use crate::text::Text;
use rqps_model::run::{Status, StepRecord};

/// A smaller share of keys that were found is told.
const FOUND_LEAST: f64 = 0.99;

/// Reads that find nothing are fast and mean nothing; `readmissing` looks for keys that are not
/// there.
fn void_if_nothing_found(record: &mut StepRecord, result: &DbBench) {
    let Some((found, of)) = result.found.filter(|(_, of)| *of > 0) else { return };
    annotate(record, "found", &format!("{found} of {of}"));
    if result.name.contains("missing") {
        return;
    }
    if found == 0 {
        let why = format!("the reads found none of {of} keys: the rate says nothing of reads");
        record.status = Status::Failed(why);
    } else if (found as f64) < FOUND_LEAST * of as f64 {
        record.outcome.notes.push(format!("the reads found {found} of {of} keys"));
    }
}

impl Taker<'_> {
    pub(super) fn take_log(
        &mut self,
        text: &Text,
        log: &Log,
        label: Option<&str>,
    ) -> Result<(), ImportError> {
        if self.is_copy(text, log, label)? {
            return Ok(());
        }
        let version = log.version.as_deref();
        let stem = text.path().file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let name = |result: &DbBench| self.name(text.path(), &result.name);
        let tests: BTreeSet<String> = log.results.iter().map(name).collect();
        let tests: BTreeSet<&str> = tests.iter().map(String::as_str).collect();
        let own = version.map(|version| format!("{}-{version}", log.product));
        let own = own.unwrap_or(stem);
        let label = match label {
            // Several files with one given label are repetitions.
            Some(label) => label.to_owned(),
            None if self.options.repeats => own,
            None => {
                let place = self.logs.place_of_file(&own, &tests);
                let (label, _) = self.numbered(&own, place);
                if place == 1 {
                    let line = log.results.first().map_or(1, |result| result.line);
                    let test = tests.first().copied().unwrap_or_default();
                    self.note_several(text, line, test, &label);
                }
                label
            }
        };
        let (seconds, beside) = self.seconds_beside(text, log)?;
        for result in &log.results {
            let name = self.name(text.path(), &result.name);
            let block = self.blocks.entry((label.clone(), name.clone())).or_default();
            *block += 1;
            let block = *block;
            let record = self.step(&label, block, version, &name);
            add_file(record, &text.name());
            fill(record, result);
            void_if_nothing_found(record, result);
            record.outcome.notes.extend(log.warnings.iter().cloned());
            if let Some(date) = &log.date {
                record.started.clone_from(date);
            }
            if !seconds.is_empty() {
                record.per_second.clone_from(&seconds);
                add_file(record, &beside);
            }
            let run = &mut self.published.run(&label, block, &tag_of(&label, version)).record;
            run.debug_build.clone_from(&log.debug_build);
            if let Some(date) = &log.date
                && (run.started == "unknown" || *date < run.started)
            {
                run.started.clone_from(date);
            }
            if let Some(command) = &log.command {
                let line = format!("{name}\t{command}\n");
                self.published
                    .run(&label, block, &tag_of(&label, version))
                    .log("commands.txt", &line);
            }
        }
        self.note_log(text, log);
        Ok(())
    }

    /// True for results that were read before under any file name.
    ///
    /// # Errors
    ///
    /// The same results have two given labels.
    fn is_copy(
        &mut self,
        text: &Text,
        log: &Log,
        label: Option<&str>,
    ) -> Result<bool, ImportError> {
        let (name, label) = (text.name(), label.map(str::to_owned));
        let Some((other, said)) = self.digests.get(&log.digest()) else {
            self.digests.insert(log.digest(), (name, label));
            return Ok(false);
        };
        if let (Some(label), Some(said)) = (&label, said)
            && label != said
        {
            return Err(ImportError::Words(format!(
                "`{name}` as {label} and `{other}` as {said} hold the same results, but a \
                 measurement belongs to one target; leave one out"
            )));
        }
        let what = format!("the same results as in {other}: imported once");
        self.left(text.path(), what);
        Ok(true)
    }

    /// Operations by second from the file beside the log of one benchmark, and its name.
    fn seconds_beside(
        &mut self,
        text: &Text,
        log: &Log,
    ) -> Result<(Vec<f64>, String), ImportError> {
        let beside = PathBuf::from(format!("{}.r.csv", text.path().display()));
        let name = beside.display().to_string();
        if !beside.is_file() || log.results.len() != 1 {
            return Ok((Vec::new(), name));
        }
        let rows = output::parse_seconds(&Text::read(&beside)?)?;
        if !each_second(&rows) {
            self.left(&beside, "its lines are not one per second");
            return Ok((Vec::new(), name));
        }
        Ok((rows.iter().map(|(_, rate)| *rate).collect(), name))
    }

    fn note_log(&mut self, text: &Text, log: &Log) {
        if let Some((line, _)) = log.passed.first() {
            let names: BTreeSet<&str> = log.passed.iter().map(|(_, name)| name.as_str()).collect();
            let names: Vec<&str> = names.into_iter().collect();
            let what = format!("warm-up runs and work between benchmarks: {}", names.join(", "));
            self.published.notices.push(Notice::at(NoticeKind::Left, text.path(), *line, what));
        }
        let with = log.results.iter().filter(|result| result.stats.uptime_seconds.is_some());
        if log.results.len() > 1 && with.count() > 0 {
            let what = "RocksDB statistics cover the time since the database was opened, not one \
                        benchmark alone";
            self.published.note(text.path(), what);
        }
    }
}
