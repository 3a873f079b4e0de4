//! Finds the files of a published sysbench result in folders by their content.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::met_tables::{self, MetBlock, SbMet};
use super::output::{self, Output};
use super::tables::{self, LOAD, RateTable, file_name};
use crate::cells::Cells;
use crate::format::{ImportError, Notice, NoticeKind};
use crate::stat_files::{self, Iostat, IostatFile, VmstatFile};
use crate::text::{Leftovers, Text, names};

/// All files found; tables are parsed.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// Tables of rates, those with a legend before blocks.
    pub absolute: Vec<(Text, RateTable)>,
    pub relative: Vec<(Text, RateTable)>,
    /// CSV tables of the published scripts without names of columns.
    pub unnamed: Vec<(Text, RateTable)>,
    /// Hardware metrics.
    pub met: Vec<(Text, Vec<MetBlock>)>,
    /// Files in folders of targets: label, file.
    pub raw: Vec<(String, PathBuf)>,
    /// Files that were left out.
    pub notices: Vec<Notice>,
}

/// Searches files and folders.
///
/// # Errors
///
/// A file is unreadable or damaged; a named file has no known form; a folder has no such file.
pub(crate) fn find(paths: &[PathBuf]) -> Result<Sources, ImportError> {
    let mut sources = Sources::default();
    for path in paths {
        let before = sources.count();
        if path.is_dir() {
            take_folder(path, &mut sources)?;
            if sources.count() == before {
                return Err(ImportError::foreign(path, nothing_in(path)?));
            }
        } else if !take_named(path, &mut sources)? {
            return Err(ImportError::foreign(
                path,
                "it is not a table of rates (`col-1 : …`, `Relative to:`, rows with `_range=`), \
                 has no blocks (`sb.…`), and its name is not that of one target's file (`sb.o.…`)",
            ));
        }
    }
    Ok(sources)
}

impl Sources {
    fn count(&self) -> usize {
        let tables = self.absolute.len() + self.relative.len() + self.unnamed.len();
        tables + self.met.len() + self.raw.len()
    }

    /// Takes a table of rates or ratios.
    pub(crate) fn push(&mut self, text: Text, table: RateTable, is_relative: bool) {
        let list = if is_relative { &mut self.relative } else { &mut self.absolute };
        let blocks = list.iter().position(|(_, other)| other.is_blocks());
        let place = blocks.filter(|_| !table.is_blocks()).unwrap_or(list.len());
        list.insert(place, (text, table));
    }

    /// True if the files have ratios of rates but no rates.
    pub(crate) fn only_ratios(&self) -> bool {
        self.absolute.len() + self.met.len() + self.raw.len() == 0
    }

    /// The first table, for a notice about all.
    pub(crate) fn first_file(&self) -> String {
        let mut all = self.absolute.iter().chain(&self.relative);
        all.next().map(|(text, _)| text.name()).unwrap_or_default()
    }

    /// Counts all cells, including remarks beside rows.
    pub(crate) fn count_cells(&self, cells: &mut Cells) {
        let tables = self.absolute.iter().chain(&self.relative).chain(&self.unnamed);
        for (text, table) in tables {
            cells.read(text.path(), table.count());
        }
        for (text, blocks) in &self.met {
            let rows = blocks.iter().flat_map(|block| block.absolute.iter().chain(&block.relative));
            cells.read(text.path(), rows.map(|row| row.cells.len()).sum());
        }
    }
}

/// True for the folder of one target: it contains files such as `sb.o.…`.
fn is_target(folder: &Path) -> Result<bool, ImportError> {
    Ok(names(folder)?.iter().any(|name| file_name(name).is_some()))
}

fn nothing_in(folder: &Path) -> Result<String, ImportError> {
    let mut with_results = Vec::new();
    for name in names(folder)? {
        let below = folder.join(&name);
        if below.is_dir() && holds_results(&below)? {
            with_results.push(name);
        }
    }
    Ok(if with_results.is_empty() {
        "it holds no table of rates and no folder of a target (x.…)".to_owned()
    } else {
        format!(
            "it holds no results itself; import one of its folders: {}",
            with_results.join(", ")
        )
    })
}

/// True if the folder, or one directly in it, contains results.
fn holds_results(folder: &Path) -> Result<bool, ImportError> {
    for name in names(folder)? {
        let path = folder.join(&name);
        if path.is_dir() {
            if is_target(&path)? {
                return Ok(true);
            }
        } else if file_name(&name).is_some() || looks_like_table(&path) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn looks_like_table(path: &Path) -> bool {
    path.is_file()
        && Text::read(path).is_ok_and(|text| {
            tables::is_table(&text)
                || tables::is_unnamed(&text)
                || tables::is_blocks(&text)
                || met_tables::is_met(&text)
        })
}

fn take_folder(folder: &Path, sources: &mut Sources) -> Result<(), ImportError> {
    if is_target(folder)? {
        return take_target(folder, sources);
    }
    let mut left = Leftovers::default();
    for name in names(folder)? {
        let path = folder.join(&name);
        if path.is_dir() {
            if is_target(&path)? {
                take_target(&path, sources)?;
            } else if holds_results(&path)? {
                let text = "it holds another result set: import it separately".to_owned();
                sources.notices.push(Notice::of(NoticeKind::Left, &path, text));
            } else {
                left.add(&name);
            }
        } else {
            // A file of one target would have made this the folder of a target.
            left.take(folder, &name, |text| take_text(text, sources))?;
        }
    }
    sources.notices.extend(left.notice(folder, "unknown form"));
    Ok(())
}

fn take_target(folder: &Path, sources: &mut Sources) -> Result<(), ImportError> {
    // `.` and `..` have no name.
    let real = fs::canonicalize(folder).map_err(ImportError::io(folder))?;
    let label = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut left = Leftovers::default();
    for name in names(folder)? {
        if file_name(&name).is_some() && folder.join(&name).is_file() {
            sources.raw.push((label.clone(), folder.join(&name)));
        } else {
            left.add(&name);
        }
    }
    sources.notices.extend(left.notice(folder, "no measurements of a step"));
    Ok(())
}

/// False if the file has no known form.
fn take_named(path: &Path, sources: &mut Sources) -> Result<bool, ImportError> {
    Ok(take_raw(path, sources)? || take_text(Text::read(path)?, sources)?)
}

/// Takes a file of one target by its name; the target has the folder's name. False if it is none.
fn take_raw(path: &Path, sources: &mut Sources) -> Result<bool, ImportError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if file_name(&name).is_none() {
        return Ok(false);
    }
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let real = fs::canonicalize(folder).map_err(ImportError::io(folder))?;
    let label = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
    sources.raw.push((label, path.to_owned()));
    Ok(true)
}

/// Takes a table; false if the text is none.
fn take_text(text: Text, sources: &mut Sources) -> Result<bool, ImportError> {
    if tables::is_table(&text) || (tables::is_blocks(&text) && !met_tables::is_met(&text)) {
        let table = if tables::is_table(&text) {
            tables::parse_table(&text)?
        } else {
            tables::parse_blocks(&text)?
        };
        let is_relative = table.is_relative();
        sources.push(text, table, is_relative);
    } else if met_tables::is_met(&text) {
        let blocks = met_tables::parse_met(&text)?;
        sources.met.push((text, blocks));
    } else if tables::is_unnamed(&text) {
        let table = tables::parse_unnamed(&text)?;
        sources.unnamed.push((text, table));
    } else {
        return Ok(false);
    }
    Ok(true)
}

// Reads the files of one target and step: `sb.o`, `sb.met`, `sb.vm`, `sb.io`, `sb.r.qps`.

/// The files of one step of one target.
#[derive(Debug, Default)]
pub(crate) struct RawStep {
    /// The folder that holds the folder of the target.
    pub folder: PathBuf,
    pub label: String,
    pub step: String,
    pub clients: Option<u32>,
    pub output: Option<(Text, Output)>,
    pub met: Option<(Text, SbMet)>,
    pub vm: Option<(Text, VmstatFile)>,
    pub io: Option<(Text, IostatFile)>,
    /// Rates of `sb.r.qps` as printed, one per number of clients.
    pub qps: Option<(Text, Vec<String>)>,
}

/// Reads all files and groups them by target, step and clients. One notice per target counts files
/// of other kinds (ps, top, sizes …).
///
/// # Errors
///
/// A damaged file, with its line.
pub(crate) fn read(
    files: &[(String, PathBuf)],
    notices: &mut Vec<Notice>,
) -> Result<Vec<RawStep>, ImportError> {
    let mut steps: Vec<RawStep> = Vec::new();
    let mut unused: BTreeMap<&str, BTreeMap<String, usize>> = BTreeMap::new();
    for (label, path) in files {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(name) = file_name(&name) else { continue };
        let kind = name.kind.strip_prefix("prepare.").unwrap_or(&name.kind);
        if !["o", "met", "vm", "io", "r.qps"].contains(&kind) {
            *unused.entry(label).or_default().entry(name.kind.clone()).or_default() += 1;
            continue;
        }
        // The output of sb.prepare.o differs by DBMS and has no fixed form.
        if name.step == LOAD && kind == "o" {
            *unused.entry(label).or_default().entry(name.kind.clone()).or_default() += 1;
            continue;
        }
        let folder = path.parent().and_then(Path::parent).unwrap_or(Path::new(""));
        let same = |step: &RawStep| {
            let of = (step.folder.as_path(), &step.label, &step.step, step.clients);
            of == (folder, label, &name.step, name.clients)
        };
        let place = steps.iter().position(same).unwrap_or_else(|| {
            let (folder, label, step) = (folder.to_owned(), label.clone(), name.step.clone());
            steps.push(RawStep {
                folder,
                label,
                step,
                clients: name.clients,
                ..Default::default()
            });
            steps.len() - 1
        });
        take(&mut steps[place], kind, Text::read(path)?)?;
    }
    for (label, kinds) in unused {
        let kinds: Vec<String> = kinds.iter().map(|(kind, n)| format!("{n} sb.{kind}")).collect();
        let text = format!("files without an rqps metric: {}", kinds.join(", "));
        notices.push(Notice::of(NoticeKind::Left, label, text));
    }
    Ok(steps)
}

fn take(step: &mut RawStep, kind: &str, text: Text) -> Result<(), ImportError> {
    match kind {
        "o" => {
            let mut outputs = output::parse(&text)?;
            if let Some(second) = outputs.get(1) {
                return Err(text.malformed(second.line, "a second run in the file of one step"));
            }
            step.output = outputs.pop().map(|output| (text, output));
        }
        "met" => step.met = Some((text.clone(), met_tables::parse_sb_met(&text)?)),
        "vm" => step.vm = Some((text.clone(), stat_files::parse_vmstat(&text)?)),
        "io" => step.io = Some((text.clone(), stat_files::parse_iostat(&text)?)),
        _ => step.qps = Some((text.clone(), rates(&text)?)),
    }
    Ok(())
}

/// Reads `1022937 TAB … TAB pgsql point-query range=100`.
fn rates(text: &Text) -> Result<Vec<String>, ImportError> {
    let mut lines = text.lines().filter(|(_, line)| !line.trim().is_empty());
    let Some((line, row)) = lines.next() else { return Err(text.cut_short("the rates")) };
    let mut cells: Vec<String> = row.split('\t').map(|cell| cell.trim().to_owned()).collect();
    cells.pop();
    for (place, cell) in cells.iter().enumerate() {
        text.number(line, place + 1, "", cell)?;
    }
    if cells.is_empty() {
        Err(text.malformed(line, "expected rates, then a name, separated by tabs"))
    } else {
        Ok(cells)
    }
}

impl RawStep {
    /// Counts the cells of its tables and samples. Output of sysbench is not a table.
    pub(crate) fn count_cells(&self, cells: &mut Cells) {
        if let Some((text, met)) = &self.met {
            cells.read(text.path(), met.io.len() + met.vm.len());
        }
        if let Some((text, rates)) = &self.qps {
            cells.read(text.path(), rates.len());
        }
        if let Some((text, vm)) = &self.vm {
            vm.sampled.count(text, "vmstat", cells);
        }
        if let Some((text, io)) = &self.io {
            io.sampled.count(text, "iostat", cells);
        }
    }

    /// The rate for per-operation values, as printed.
    pub(crate) fn rate(&self) -> Option<&str> {
        let met = self.met.as_ref().and_then(|(_, met)| met.rate());
        met.or_else(|| self.output.as_ref().and_then(|(_, output)| output.qps.as_deref()))
    }

    /// The device whose lines give the published means: the requested one, or the first. Without
    /// published means, the only active device.
    pub(crate) fn device(&self, asked: Option<&str>) -> Option<(String, Iostat, usize)> {
        let (_, io) = self.io.as_ref()?;
        let of = |name: &str| io.mean(name).map(|(mean, n)| (name.to_owned(), mean, n));
        if let Some(asked) = asked {
            return of(asked);
        }
        let mut devices: Vec<(String, Iostat, usize)> =
            io.devices.keys().filter_map(|name| of(name)).collect();
        let met = self.met.as_ref().map(|(_, met)| met).filter(|met| !met.io.is_empty());
        let asked_by_means = met.is_some();
        match met {
            Some(met) => devices.retain(|(_, mean, n)| {
                let again = met_tables::io_block(mean, *n, met.rate().unwrap_or(""));
                again.is_some_and(|again| met_tables::differences(&met.io, &again).is_empty())
            }),
            None => devices.retain(|(_, mean, _)| mean.reads > 0.0 || mean.writes > 0.0),
        }
        // Several with the same means, such as both halves of a mirror, are equivalent.
        let one = devices.len() == 1 || (asked_by_means && !devices.is_empty());
        one.then(|| devices.remove(0))
    }
}
