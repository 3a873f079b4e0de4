//! Recomputes published sysbench numbers from others and compares them cell by cell.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::plain::{self, Output};
use super::tables::{
    self, LOAD, MetBlock, RateCell, RateRow, RateTable, SbMet, counts_rows, file_name, ratios_only,
};
use crate::cells::{self, Cells, Iostat, IostatFile, Kept, VmstatFile, number};
use crate::format::{ImportError, ImportOptions, Notice, NoticeKind, Result};
use crate::published::{PrintedRatio, Published, TableCells, Variants, contradict, kin};
use crate::text::{Leftovers, Text, names};

/// The rate of a step and target. Edited tables leave out `_range=100`, and text around the tags of
/// targets.
fn find<'a>(rates: &Rates<'a>, step: &str, target: &str, column: usize) -> Option<&'a str> {
    if let Some(rate) = rates.get(&(step, target, column)) {
        return Some(rate);
    }
    let core = |target: &str| {
        let target = target.strip_prefix("x.").unwrap_or(target);
        target.trim_end_matches(".pk1").trim_end_matches(".pk0").to_owned()
    };
    let is_step = |other: &str| {
        let short = other.strip_prefix(step).is_some_and(|rest| rest.starts_with("_range="));
        other == step || short
    };
    let mut found = rates.iter().filter(|((other, of, place), _)| {
        *place == column && is_step(other) && core(of) == core(target)
    });
    let (_, rate) = found.next()?;
    found.next().is_none().then_some(*rate)
}

/// Printed rates by step, target and column.
type Rates<'a> = BTreeMap<(&'a str, &'a str, usize), &'a str>;

/// Checks ratios against absolute values, of rates and of hardware metrics: those of the file with
/// the same name but for `rel` and `abs`, else of all files. Without absolute rates, ratios are
/// facts.
pub(crate) fn verify_tables(sources: &Sources, variants: &Variants, published: &mut Published) {
    let rates_for = |text: &Text| {
        let of = kin(text.path());
        let of_kin = absolute_rates(sources, |other| kin(other.path()) == of);
        match (of_kin.is_empty(), variants.is_empty()) {
            (true, true) => [absolute_rates(sources, |_| true), Rates::new()],
            (false, true) => [of_kin, absolute_rates(sources, |_| true)],
            // Rates of another condition are no others.
            (_, false) => [of_kin, Rates::new()],
        }
    };
    for (text, table) in sources.relative.iter().filter(|_| !sources.only_ratios()) {
        let baseline = if table.is_blocks() {
            baseline_of_blocks(sources, table)
        } else {
            table.baseline.as_deref().or(table.targets.first().map(String::as_str))
        };
        match baseline {
            Some(baseline) => check_ratios(text, baseline, table, &rates_for(text), published),
            None => {
                let why = "ratios to a missing baseline";
                published.cells.leave(text.path(), why, table.count());
            }
        }
    }
    for (text, blocks) in &sources.met {
        blocks.iter().for_each(|block| tables::check_met(text, block, published));
    }
}

fn absolute_rates(sources: &Sources, is_wanted: impl Fn(&Text) -> bool) -> Rates<'_> {
    let mut rates = Rates::new();
    for (_, table) in sources.absolute.iter().filter(|(text, _)| is_wanted(text)) {
        for cell in table.cells() {
            rates.entry((cell.step, cell.target, cell.column)).or_insert(cell.printed);
        }
    }
    rates
}

/// The target that blocks of ratios leave out: the first one of the blocks of rates.
fn baseline_of_blocks<'a>(sources: &'a Sources, ratios: &RateTable) -> Option<&'a str> {
    let blocks = sources.absolute.iter().filter(|(_, table)| table.is_blocks());
    let mut rows = blocks.flat_map(|(_, table)| &table.rows);
    let is_missing = |row: &&RateRow| ratios.rows.iter().all(|other| other.target != row.target);
    rows.find(is_missing)?.target.as_deref()
}

fn check_ratios(
    text: &Text,
    baseline: &str,
    ratios: &RateTable,
    [own, others]: &[Rates<'_>; 2],
    published: &mut Published,
) {
    let (mut agree, mut of) = (0, 0);
    let mut without = 0;
    let is_ratio = |printed: &str| number(printed).is_some() || printed == "inf";
    for ratio in ratios.cells() {
        let in_table = |rates, target: &str| find(rates, ratio.step, target, ratio.column);
        // Both rates of a ratio are of one table.
        let pair = |rates| in_table(rates, ratio.target).zip(in_table(rates, baseline));
        let rates = pair(own).or_else(|| pair(others));
        let Some((value, of_baseline)) = rates.filter(|_| is_ratio(ratio.printed)) else {
            without += 1;
            continue;
        };
        // AWK's arithmetic turns a word into 0.00.
        let (value, of_baseline) =
            (number(value).unwrap_or(0.0), number(of_baseline).unwrap_or(0.0));
        of += 1;
        let RateCell { line, printed, step, target, .. } = ratio;
        let ratio = PrintedRatio { text, line, printed, value, baseline: of_baseline };
        let what = format_args!("{step} of {target} relative to {baseline}");
        agree += usize::from(published.follows(&ratio, what));
    }
    published.check("relative rates from absolute rates", agree, of);
    published.cells.keep(text.path(), Kept::Compared, of);
    let why = "ratios that are words or lack absolute rates in these files: not checked";
    published.cells.leave(text.path(), why, without);
}

/// The number of clients whose metrics use the rates of a table; `None` unless exactly one does.
pub(crate) fn clients_of(
    table: &RateTable,
    known: &BTreeSet<u32>,
    sources: &Sources,
) -> Option<u32> {
    let rests = |clients: &&u32| {
        let blocks = sources.met.iter().flat_map(|(_, blocks)| blocks);
        let blocks = blocks.filter(|block| block.name.clients == Some(**clients));
        let (mut same, mut of) = (BTreeSet::new(), BTreeSet::new());
        for block in blocks {
            let Some(place) = place_of_rate(block) else { continue };
            let Some(row) = table.rows.iter().find(|row| row.step == block.name.step) else {
                continue;
            };
            for (target, printed) in table.targets.iter().zip(&row.cells) {
                let met = block.absolute.iter().find(|row| row.target == *target);
                let Some(met) = met else { continue };
                let cell = (block.name.step.as_str(), target.as_str());
                of.insert(cell);
                if number(printed) == number(&met.cells[place]) {
                    same.insert(cell);
                }
            }
        }
        !of.is_empty() && same == of
    };
    let mut found = known.iter().filter(rests);
    let first = found.next()?;
    found.next().is_none().then_some(*first)
}

/// The column of the rate, if it has the unit of tables of rates; the rate of a scan may have
/// another.
fn place_of_rate(block: &MetBlock) -> Option<usize> {
    let place = block.heads.iter().position(|head| head == "o/s");
    place.filter(|_| !counts_rows(&block.name.step))
}

/// The column of the blocks with the rates in the metrics for this number of clients.
fn column_of(clients: u32, sources: &Sources) -> Option<usize> {
    let rates = absolute_rates(sources, |_| true);
    let mut by_column: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
    let blocks = sources.met.iter().flat_map(|(_, blocks)| blocks);
    for block in blocks.filter(|block| block.name.clients == Some(clients)) {
        let Some(place) = place_of_rate(block) else { continue };
        for row in &block.absolute {
            let cells = rates.iter().filter(|((step, target, _), _)| {
                *step == block.name.step && *target == row.target && *step != LOAD
            });
            for ((_, _, column), printed) in cells {
                let (same, of) = by_column.entry(*column).or_default();
                *same += usize::from(number(printed) == number(&row.cells[place]));
                *of += 1;
            }
        }
    }
    let whole = by_column.iter().filter(|(_, (same, of))| same == of);
    let mut whole = whole.map(|(column, _)| *column);
    let first = whole.next()?;
    whole.next().is_none().then_some(first)
}

/// Checks `sb.met` of a step against its samples and rate.
pub(crate) fn met_of_step(step: &RawStep, options: &ImportOptions, published: &mut Published) {
    let Some((text, met)) = &step.met else { return };
    let Some(rate) = met.rate() else { return };
    if let Some((_, vm)) = &step.vm
        && let Some((mean, divisor)) = vm.compat_mean()
        && let Some(again) = tables::vm_block(&mean, divisor, rate)
        && !met.vm.is_empty()
    {
        let differences = tables::differences(&met.vm, &again);
        report(text, met.lines[1], "sb.vm", again.len(), &differences, published);
    }
    if let Some((_, mean, lines)) = step.device(options.device.as_deref())
        && let Some(again) = tables::io_block(&mean, lines, rate)
        && !met.io.is_empty()
    {
        let differences = tables::differences(&met.io, &again);
        report(text, met.lines[0], "sb.io", again.len(), &differences, published);
    }
}

fn report(
    text: &Text,
    line: usize,
    from: &str,
    cells: usize,
    differences: &[(String, String, String)],
    published: &mut Published,
) {
    let what = format!("sb.met from {from} and the rate");
    published.check(&what, cells - differences.len(), cells);
    for (head, printed, again) in differences {
        let what = format!("{head}: published {printed}, but {from} gives {again}");
        published.mismatch(text.path(), line, what);
    }
}

// Names the columns of published sysbench tables: targets, and numbers of clients.

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
) -> Result<()> {
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

/// The cells of a table, by target and step.
fn of_table((text, table): &(Text, RateTable)) -> (PathBuf, TableCells) {
    let cells = table.cells().filter(|cell| !counts_rows(cell.step)).map(|cell| {
        let step = if table.is_blocks() {
            format!("{} {}", cell.step, cell.column)
        } else {
            cell.step.to_owned()
        };
        ((cell.target.to_owned(), step), cell.printed.to_owned())
    });
    (text.path().to_owned(), cells.collect())
}

/// Conditions that the names of files tell apart: rates, or ratios where there are no rates, or
/// metrics; and those that the folders of targets are in.
fn variants(sources: &Sources, raw: &[RawStep]) -> Variants {
    let tables = if sources.only_ratios() { &sources.relative } else { &sources.absolute };
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
    for alone in &sources.alone {
        for other in sources.beside(&alone.1) {
            variants.add(&[of_table(alone), of_table(other)]);
        }
    }
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
    ) -> Result<Columns> {
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
            if let Some(clients) = clients_of(table, known, sources) {
                self.tables.insert(text.path().to_owned(), clients);
            }
        }
        if self.clients.len() == 1 {
            return;
        }
        let mut left = known.clone();
        for clients in known {
            if let Some(place) = column_of(*clients, sources) {
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
    fn of_table(&self, text: &Text) -> Option<u32> {
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
            self.name_with(&tables::step(cell.step), self.of_table(text))
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

// Finds the files of a published sysbench result in folders by their content.

/// All files found; tables are parsed.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    /// Tables of rates, those with a legend before blocks.
    pub absolute: Vec<(Text, RateTable)>,
    pub relative: Vec<(Text, RateTable)>,
    /// Ratios of a condition whose rates are not here.
    pub alone: Vec<(Text, RateTable)>,
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
pub(crate) fn find_sources(paths: &[PathBuf]) -> Result<Sources> {
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

    /// Sets tables of ratios apart whose rates are not here, but those of another condition.
    pub(crate) fn set_apart(&mut self) {
        let tables = std::mem::take(&mut self.relative);
        let has_rates = |(text, _): &(Text, RateTable)| {
            self.absolute.iter().any(|(other, _)| kin(other.path()) == kin(text.path()))
        };
        let (own, others): (Vec<_>, Vec<_>) = tables.into_iter().partition(has_rates);
        self.relative = own;
        let is_alone = |table: &(Text, RateTable)| {
            let differs = |other| contradict(&of_table(table).1, &of_table(other).1);
            let mut beside = self.beside(&table.1).peekable();
            beside.peek().is_some() && beside.all(differs)
        };
        let (alone, others): (Vec<_>, Vec<_>) = others.into_iter().partition(is_alone);
        self.alone = alone;
        others.into_iter().for_each(|(text, table)| self.push(text, table, true));
    }

    /// The tables of ratios to the same baseline that have rates.
    fn beside(&self, table: &RateTable) -> impl Iterator<Item = &(Text, RateTable)> {
        self.relative.iter().filter(|(_, other)| {
            let blocks = other.is_blocks() || table.is_blocks();
            !blocks && other.baseline == table.baseline
        })
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
fn is_target(folder: &Path) -> Result<bool> {
    Ok(names(folder)?.iter().any(|name| file_name(name).is_some()))
}

fn nothing_in(folder: &Path) -> Result<String> {
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
fn holds_results(folder: &Path) -> Result<bool> {
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
                || tables::is_met(&text)
        })
}

fn take_folder(folder: &Path, sources: &mut Sources) -> Result<()> {
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

fn take_target(folder: &Path, sources: &mut Sources) -> Result<()> {
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
fn take_named(path: &Path, sources: &mut Sources) -> Result<bool> {
    Ok(take_raw(path, sources)? || take_text(Text::read(path)?, sources)?)
}

/// Takes a file of one target by its name; the target has the folder's name. False if it is none.
fn take_raw(path: &Path, sources: &mut Sources) -> Result<bool> {
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
fn take_text(text: Text, sources: &mut Sources) -> Result<bool> {
    if tables::is_table(&text) || (tables::is_blocks(&text) && !tables::is_met(&text)) {
        let table = if tables::is_table(&text) {
            tables::parse_table(&text)?
        } else {
            tables::parse_blocks(&text)?
        };
        let is_relative = table.is_relative();
        sources.push(text, table, is_relative);
    } else if tables::is_met(&text) {
        let blocks = tables::parse_met(&text)?;
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
pub(crate) fn read(files: &[(String, PathBuf)], notices: &mut Vec<Notice>) -> Result<Vec<RawStep>> {
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

fn take(step: &mut RawStep, kind: &str, text: Text) -> Result<()> {
    match kind {
        "o" => {
            let mut outputs = plain::parse(&text)?;
            if let Some(second) = outputs.get(1) {
                return Err(text.malformed(second.line, "a second run in the file of one step"));
            }
            step.output = outputs.pop().map(|output| (text, output));
        }
        "met" => step.met = Some((text.clone(), tables::parse_sb_met(&text)?)),
        "vm" => step.vm = Some((text.clone(), cells::parse_vmstat(&text)?)),
        "io" => step.io = Some((text.clone(), cells::parse_iostat(&text)?)),
        _ => step.qps = Some((text.clone(), rates(&text)?)),
    }
    Ok(())
}

/// Reads `1022937 TAB … TAB pgsql point-query range=100`.
fn rates(text: &Text) -> Result<Vec<String>> {
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
                let again = tables::io_block(mean, *n, met.rate().unwrap_or(""));
                again.is_some_and(|again| tables::differences(&met.io, &again).is_empty())
            }),
            None => devices.retain(|(_, mean, _)| mean.reads > 0.0 || mean.writes > 0.0),
        }
        // Several with the same means, such as both halves of a mirror, are equivalent.
        let one = devices.len() == 1 || (asked_by_means && !devices.is_empty());
        one.then(|| devices.remove(0))
    }
}
