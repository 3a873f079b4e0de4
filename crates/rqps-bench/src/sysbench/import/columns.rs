//! Names the columns of published sysbench tables: targets, and numbers of clients.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::met_tables::MetBlock;
use super::mytools_raw::RawStep;
use crate::sysbench::import::names::{LOAD, counts_rows};
use crate::sysbench::import::sources::Sources;
use crate::sysbench::import::tables::{RateTable, StepBlock};
use crate::sysbench::import::verify;
use rqps_import::published::Published;
use rqps_import::text::Text;
use rqps_import::variants::{TableCells, Variants};
use rqps_import::{ImportError, ImportOptions};

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
        let relative = table.is_relative() || ratios_only(&table);
        let known = match relative {
            true => &sources.relative,
            false => &sources.absolute,
        };
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
            let cells = table.rows.iter();
            let cells = cells.map(|row| row.cells.len() + usize::from(!row.remark.is_empty()));
            published.cells.leave(text.path(), what.clone(), cells.sum());
            nameless = Some((text.path().to_owned(), what));
            continue;
        }
        match relative {
            true => sources.relative.push((text, table)),
            false => sources.absolute.push((text, table)),
        }
    }
    let other = sources.absolute.len() + sources.absolute_blocks.len() + sources.met.len();
    match nameless {
        Some((path, what)) if other + sources.raw.len() == 0 => {
            Err(ImportError::foreign(&path, what))
        }
        _ => Ok(()),
    }
}

/// True for ratios: all have two decimals; rates have none, or three if a scan counts millions.
fn ratios_only(table: &RateTable) -> bool {
    let mut cells = table.rows.iter().flat_map(|row| &row.cells);
    cells.all(|cell| {
        let decimals = cell.split_once('.').map(|(_, decimals)| decimals.len());
        decimals == Some(2) || cell == "inf" || cell == "1"
    })
}

/// The common name of `qps.abs.all.csv` and `qps.abs.all.tsv`, which are one table.
fn stem(path: &Path) -> PathBuf {
    let name = path.with_extension("");
    match path.extension().is_some_and(|end| end == "gz") {
        true => name.with_extension(""),
        false => name,
    }
}

/// Conditions that the names of files tell apart: rates, or ratios where there are no rates, or
/// metrics.
fn variants(sources: &Sources) -> Variants {
    let tables = match sources.only_ratios() {
        true => (&sources.relative, &sources.relative_blocks),
        false => (&sources.absolute, &sources.absolute_blocks),
    };
    let of_table = |(text, table): &'_ (Text, RateTable)| {
        let rows = table.rows.iter().filter(|row| !counts_rows(&row.step));
        let cells = rows.flat_map(|row| {
            let key = move |target: &String| (target.clone(), row.step.clone());
            table.targets.iter().map(key).zip(row.cells.iter().cloned())
        });
        (text.path().to_owned(), cells.collect::<TableCells>())
    };
    let of_blocks = |(text, blocks): &'_ (Text, Vec<StepBlock>)| {
        let blocks = blocks.iter().filter(|block| !counts_rows(&block.step));
        let cells = blocks.flat_map(|block| {
            block.rows.iter().flat_map(|(_, target, cells)| {
                let key = |column| (target.clone(), format!("{} {column}", block.step));
                (0..).map(key).zip(cells.iter().cloned())
            })
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
    let mut all: Vec<(PathBuf, TableCells)> = tables.0.iter().map(of_table).collect();
    all.extend(tables.1.iter().map(of_blocks));
    all.extend(sources.met.iter().map(of_met));
    let all: Vec<(&Path, TableCells)> =
        all.iter().map(|(path, cells)| (path.as_path(), cells.clone())).collect();
    Variants::find(&all)
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
        let width_of = |(_, blocks): &(Text, Vec<StepBlock>)| {
            let rows = blocks.iter().flat_map(|block| &block.rows);
            rows.map(|(_, _, cells)| cells.len()).max().unwrap_or(1)
        };
        let raw_width = raw.iter().filter_map(|step| Some(step.qps.as_ref()?.1.len())).max();
        let width = sources.absolute_blocks.iter().map(width_of).chain(raw_width).max();
        let width = width.unwrap_or(1);
        let file = sources.absolute_blocks.first().map(|(text, _)| text.name());
        let mut columns = Columns {
            clients: vec![None; width],
            tables: BTreeMap::new(),
            single: width == 1 && of_step.values().all(|clients| clients.len() <= 1),
            same_clients: width == 1 && known.len() <= 1,
            variants: variants(sources),
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
        let tables = columns.tables.len() < sources.absolute.len();
        columns.unknown =
            !columns.single && columns.clients.contains(&None) && (width > 1 || tables);
        Ok(columns)
    }

    fn find(&mut self, known: &BTreeSet<u32>, sources: &Sources) {
        for (text, table) in &sources.absolute {
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
