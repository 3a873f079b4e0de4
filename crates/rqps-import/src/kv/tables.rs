//! Importer `dbbench`: published tables of db_bench reports, and db_bench's output.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::kv::runs::Runs;
use crate::kv::taker::{Taker, WORD, workload_of};
use crate::kv::{output, rates, table};
use crate::leftovers::Leftovers;
use crate::notice::{Notice, NoticeKind};
use crate::one_build;
use crate::published::{self, Published};
use crate::text::{Text, names};
use crate::variants::Variants;
use crate::{ImportError, ImportFormat, ImportOptions, Named};

/// The importer.
pub const FORMAT: ImportFormat = ImportFormat { word: WORD, read };

/// Reads files and folders.
///
/// # Errors
///
/// A damaged file, with its line; a named file of an unknown form; a folder without known files;
/// only ratios; `--labels` that do not fit.
fn read(paths: &[Named], options: &ImportOptions) -> Result<Published, ImportError> {
    let published = Published { benchmark: "kv", ..Published::default() };
    let mut taker = Taker {
        published,
        options,
        workloads: workloads_of(paths)?,
        variants: Variants::default(),
        tables: Vec::new(),
        reports: Vec::new(),
        rows: Runs::default(),
        logs: Runs::default(),
        dated: BTreeMap::new(),
        digests: BTreeMap::new(),
        blocks: BTreeMap::new(),
    };
    for named in paths {
        if named.path.is_dir() {
            taker.take_folder(&named.path)?;
        } else if !taker.take_text(Text::read(&named.path)?, named.label.as_deref())? {
            let why = "it holds no report rows (header `ops_sec mb_sec … test …`), no rates with \
                       step names and no results of db_bench (`… micros/op …`)";
            return Err(ImportError::foreign(&named.path, why));
        }
    }
    taker.take_tables()?;
    if taker.published.runs.is_empty() {
        let path = paths.first().map(|named| named.path.clone()).unwrap_or_default();
        let why = "it holds no rates of db_bench; ratios alone are not enough";
        return Err(ImportError::foreign(&path, why));
    }
    let nameless = options.labels.is_empty() && paths.iter().all(|named| named.label.is_none());
    let joined = if nameless { one_build::join(&mut taker.published) } else { BTreeMap::default() };
    taker.check_ratios(&joined);
    taker.note_workloads();
    let mut published = taker.published;
    published.host = published::host(options.cpus, None, None);
    Ok(published)
}

/// The workloads in the names of all files with results.
fn workloads_of(paths: &[Named]) -> Result<BTreeSet<&'static str>, ImportError> {
    let mut files: Vec<PathBuf> = Vec::new();
    for named in paths {
        if named.path.is_dir() {
            files.extend(names(&named.path)?.iter().map(|name| named.path.join(name)));
        } else {
            files.push(named.path.clone())
        }
    }
    let has_results = |path: &PathBuf| {
        path.is_file()
            && Text::read(path).is_ok_and(|text| {
                table::is_report(&text) || output::is_log(&text) || rates::is_rates(&text)
            })
    };
    let named = files.iter().filter_map(|path| Some((path, workload_of(path)?)));
    let mut workloads: BTreeSet<&'static str> = BTreeSet::new();
    for (path, workload) in named {
        if !workloads.contains(workload) && has_results(path) {
            workloads.insert(workload);
        }
    }
    Ok(workloads)
}

impl Taker<'_> {
    /// Says that the names of steps have their workloads.
    fn note_workloads(&mut self) {
        if self.workloads.len() > 1 {
            let names: Vec<String> = self.workloads.iter().map(|it| format!(".{it}")).collect();
            let text = format!(
                "files of several workloads: the names of their steps end in {}",
                names.join(", ")
            );
            let (kind, file) = (NoticeKind::Note, names.join(" "));
            self.published.notices.push(Notice { kind, file, line: None, text });
        }
    }

    fn take_folder(&mut self, folder: &Path) -> Result<(), ImportError> {
        let mut left = Leftovers::default();
        let mut found = false;
        for name in names(folder)? {
            let path = folder.join(&name);
            if path.is_dir() {
                self.left(&path, "a folder: import it separately if it holds results");
                continue;
            }
            found |= left.take(folder, &name, |text| self.take_text(text, None))?;
        }
        if !found {
            let why = "it holds no table and no db_bench output";
            return Err(ImportError::foreign(folder, why));
        }
        self.published.notices.extend(left.notice(folder, "unknown form"));
        Ok(())
    }

    /// False if the text has no known form.
    fn take_text(&mut self, text: Text, label: Option<&str>) -> Result<bool, ImportError> {
        // It belongs to the log beside it.
        if text.first().starts_with("secs_elapsed") {
            return Ok(true);
        }
        let report = table::is_report(&text);
        let log = !report && output::is_log(&text);
        if !report && !log && !rates::is_rates(&text) {
            return Ok(false);
        }
        if report {
            let table = table::parse_report(&text)?;
            self.take_report(&text, &table)?;
        } else if log {
            let log = output::parse(&text)?;
            self.take_log(&text, &log, label)?;
        } else {
            let rates = rates::parse_rates(&text)?;
            self.tables.push((text, rates));
        }
        Ok(true)
    }
}
