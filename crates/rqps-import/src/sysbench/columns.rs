//! Names the columns of published sysbench tables: targets, and numbers of clients.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::met_tables::MetBlock;
use super::mytools_raw::RawStep;
use crate::published::Published;
use crate::sysbench::names::{self, LOAD, counts_rows};
use crate::sysbench::sources::Sources;
use crate::sysbench::tables::{RateCell, RateTable, ratios_only};
use crate::sysbench::verify;
use crate::text::Text;
use crate::variants::{TableCells, Variants};
use crate::{ImportError, ImportOptions};

/// Names the columns of tables without names: by the user's labels, or by the table of the same
/// name with a legend.
///
/// # Errors
///
/// There are neither.
pub(crate) fn name(
    sources: &mut Sources,
    options: &ImportOptions,
    published: &mut Published,
) -> Result<(), ImportError> {
    let mut nameless: Option<(PathBuf, String)> = None;
    for (text, mut table) in std::mem::take(&mut sources.unnamed) {
        let relative = table.is_relative() || ratios_only(table.rows.iter());
        let known = if relative { &sources.relative } else { &sources.absolute };
        let twin = known.iter().find(|(other, twin)| {
            stem(other.path()) == stem(text.path()) && twin.targets.len() == table.width()
        });
        let labels = &options.labels;
        if let Some((_, twin)) = twin {
            table.targets.clone_from(&twin.targets);
            table.baseline.clone_from(&twin.baseline);
        } else if labels.len() == table.width() {
            table.targets.clone_from(labels);
        } else if relative && labels.len() == table.width() + 1 {
            // Tables of ratios leave their baseline out.
            table.baseline = labels.first().cloned();
            table.targets = labels[1..].to_vec();
        } else {
            let what = format!(
                "its {} columns have no names: name them with --labels A,B,…, or add the file of \
                 the same name with a legend (`col-1 : …`)",
                table.width()
            );
            published.cells.leave(text.path(), what.clone(), table.count());
            nameless = Some((text.path().to_owned(), what));
            continue;
        }
        sources.push(text, table, relative);
    }
    let other = sources.absolute.len() + sources.met.len();
    match nameless {
        Some((path, what)) if other + sources.raw.len() == 0 => {
            Err(ImportError::foreign(&path, what))
        }
        _ => Ok(()),
    }
}

/// The common name of `qps.abs.all.csv` and `qps.abs.all.tsv`, which are one table.
fn stem(path: &Path) -> PathBuf {
    let name = path.with_extension("");
    if path.extension().is_some_and(|end| end == "gz") { name.with_extension("") } else { name }
}

/// Conditions that the names of files tell apart: rates, or ratios where there are no rates, or
/// metrics; and those that the folders of targets are in.
fn variants(sources: &Sources, raw: &[RawStep]) -> Variants {
    let tables = if sources.only_ratios() { &sources.relative } else { &sources.absolute };
    let of_table = |(text, table): &'_ (Text, RateTable)| {
        let cells = table.cells().filter(|cell| !counts_rows(cell.step)).map(|cell| {
            let step = if table.is_blocks() {
                format!("{} {}", cell.step, cell.column)
            } else {
                cell.step.to_owned()
            };
            ((cell.target.to_owned(), step), cell.printed.to_owned())
        });
        (text.path().to_owned(), cells.collect::<TableCells>())
    };
    let of_met = |(text, blocks): &'_ (Text, Vec<MetBlock>)| {
        let cells = blocks.iter().flat_map(|block| {
            let step = format!("{} {:?}", block.name.step, block.name.clients);
            block.absolute.iter().flat_map(move |row| {
                let step = step.clone();
                let key = move |head: &String| (row.target.clone(), format!("{step} {head}"));
                block.heads.iter().map(key).zip(row.cells.iter().cloned())
            })
        });
        (text.path().to_owned(), cells.collect::<TableCells>())
    };
    let mut all: Vec<(PathBuf, TableCells)> = tables.iter().map(of_table).collect();
    all.extend(sources.met.iter().map(of_met));
    let mut variants = Variants::find(&all);
    let mut of_folder: BTreeMap<&Path, TableCells> = BTreeMap::new();
    for step in raw {
        let key = (step.label.clone(), format!("{} {:?}", step.step, step.clients));
        let of_output = step.output.as_ref().and_then(|(_, output)| output.qps.as_deref());
        let rate = of_output.or_else(|| step.rate());
        let cells = of_folder.entry(&step.folder).or_default();
        cells.extend(rate.map(|printed| (key, printed.to_owned())));
    }
    variants.add(&of_folder.into_iter().collect::<Vec<_>>());
    variants
}

/// Numbers of clients of columns of blocks, and of whole tables.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    /// Clients by column of a block, if known.
    clients: Vec<Option<u32>>,
    /// Clients of tables with a legend, if their rates show them.
    tables: BTreeMap<PathBuf, u32>,
    /// True if each step has one number of clients, so that names need not contain it.
    single: bool,
    /// True if all steps have the same number of clients.
    pub same_clients: bool,
    /// Conditions that the names of tables tell apart.
    pub variants: Variants,
    /// True if the clients of a column or table are unknown.
    pub unknown: bool,
    /// A file with such columns.
    pub file: String,
}

impl Columns {
    /// Finds the clients by the user's numbers, by file names, and by rates that occur under both.
    ///
    /// # Errors
    ///
    /// `--clients` has fewer numbers than there are columns.
    pub(crate) fn resolve(
        sources: &Sources,
        raw: &[RawStep],
        options: &ImportOptions,
    ) -> Result<Columns, ImportError> {
        let mut of_step: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
        let blocks = sources.met.iter().flat_map(|(_, blocks)| blocks);
        let named = blocks.map(|block| (block.name.step.as_str(), block.name.clients));
        let named = named.chain(raw.iter().map(|step| (step.step.as_str(), step.clients)));
        for (step, clients) in named.filter(|(step, _)| *step != LOAD) {
            of_step.entry(step).or_default().extend(clients);
        }
        // Warm-up steps have their own clients and no column.
        let measured = of_step.iter().filter(|(step, _)| !step.contains(".warm"));
        let known: BTreeSet<u32> = measured.flat_map(|(_, clients)| clients).copied().collect();
        let blocks = || sources.absolute.iter().filter(|(_, table)| table.is_blocks());
        let raw_width = raw.iter().filter_map(|step| Some(step.qps.as_ref()?.1.len())).max();
        let width = blocks().map(|(_, table)| table.width()).chain(raw_width).max();
        let width = width.unwrap_or(1);
        let file = blocks().next().map(|(text, _)| text.name());
        let mut columns = Columns {
            clients: vec![None; width],
            tables: BTreeMap::new(),
            single: width == 1 && of_step.values().all(|clients| clients.len() <= 1),
            same_clients: width == 1 && known.len() <= 1,
            variants: variants(sources, raw),
            unknown: false,
            file: file.unwrap_or_default(),
        };
        if !options.clients.is_empty() {
            if options.clients.len() < width {
                let (given, file) = (options.clients.len(), &columns.file);
                return Err(ImportError::Words(format!(
                    "`{file}`: it has {width} columns of clients, but --clients names {given}"
                )));
            }
            columns.clients = options.clients.iter().copied().map(Some).take(width).collect();
        } else if columns.variants.by_clients() {
            (columns.single, columns.same_clients) = (false, false);
        } else if !columns.single {
            columns.find(&known, sources);
        }
        if columns.variants.by_clients() {
            return Ok(columns);
        }
        let named = sources.absolute.iter().filter(|(_, table)| !table.is_blocks());
        let tables = columns.tables.len() < named.count();
        columns.unknown =
            !columns.single && columns.clients.contains(&None) && (width > 1 || tables);
        Ok(columns)
    }

    fn find(&mut self, known: &BTreeSet<u32>, sources: &Sources) {
        for (text, table) in sources.absolute.iter().filter(|(_, table)| !table.is_blocks()) {
            if let Some(clients) = verify::clients_of(table, known, sources) {
                self.tables.insert(text.path().to_owned(), clients);
            }
        }
        if self.clients.len() == 1 {
            return;
        }
        let mut left = known.clone();
        for clients in known {
            if let Some(place) = verify::column_of(*clients, sources) {
                self.clients[place] = Some(*clients);
                left.remove(clients);
            }
        }
        // One number for each unmatched column, in order.
        let open: Vec<&mut Option<u32>> =
            self.clients.iter_mut().filter(|clients| clients.is_none()).collect();
        if open.len() == left.len() {
            for (place, clients) in open.into_iter().zip(left) {
                *place = Some(clients);
            }
        }
    }

    /// Clients of a table with a legend, if its rates show them.
    pub(crate) fn of_table(&self, text: &Text) -> Option<u32> {
        let of_name = self.variants.clients(text.path());
        of_name.or_else(|| self.tables.get(text.path()).copied())
    }

    /// The name of a step in a table with a legend, with what the name of the table tells.
    pub(crate) fn in_table(&self, text: &Text, step: &str) -> String {
        self.name_with(step, self.of_table(text)) + &self.variants.suffix(text.path())
    }

    /// The name of the step of a cell, with what the name of the table tells.
    pub(crate) fn of_cell(&self, text: &Text, table: &RateTable, cell: &RateCell<'_>) -> String {
        let name = if table.is_blocks() {
            self.name(cell.step, cell.column)
        } else {
            self.name_with(&names::step(cell.step), self.of_table(text))
        };
        name + &self.variants.suffix(text.path())
    }

    /// The name of a step of a target's folder, with what the names of its parents tell.
    pub(crate) fn of_raw(&self, step: &RawStep) -> String {
        self.name_with(&step.step, step.clients) + &self.variants.suffix(&step.folder)
    }

    /// The name of a step in a column of a block.
    pub(crate) fn name(&self, step: &str, column: usize) -> String {
        match self.clients.get(column).copied().flatten() {
            _ if self.single || step == LOAD => step.to_owned(),
            Some(clients) => format!("{step}.dop{clients}"),
            None if self.variants.by_clients() => step.to_owned(),
            None => format!("{step}.col{}", column + 1),
        }
    }

    /// The name of a step with known clients.
    pub(crate) fn name_with(&self, step: &str, clients: Option<u32>) -> String {
        match clients {
            _ if self.single || step == LOAD => step.to_owned(),
            Some(clients) => format!("{step}.dop{clients}"),
            None => self.name(step, 0),
        }
    }
}
