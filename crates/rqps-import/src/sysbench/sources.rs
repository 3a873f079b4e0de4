//! Finds the files of a published sysbench result in folders by their content.

use std::fs;
use std::path::{Path, PathBuf};

use super::met_tables::{self, MetBlock};
use crate::ImportError;
use crate::cells::Cells;
use crate::leftovers::Leftovers;
use crate::notice::{Notice, NoticeKind};
use crate::sysbench::names::file_name;
use crate::sysbench::tables::{self, RateTable};
use crate::text::{Text, names};

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
        let blocks = met_tables::parse(&text)?;
        sources.met.push((text, blocks));
    } else if tables::is_unnamed(&text) {
        let table = tables::parse_unnamed(&text)?;
        sources.unnamed.push((text, table));
    } else {
        return Ok(false);
    }
    Ok(true)
}
