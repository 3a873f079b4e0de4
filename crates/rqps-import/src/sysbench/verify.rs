//! Recomputes published sysbench numbers from others and compares them cell by cell.

use std::collections::{BTreeMap, BTreeSet};

use super::met_tables::{self, MetBlock};
use super::mytools_raw::RawStep;
use super::sb_met;
use crate::ImportOptions;
use crate::cells::Kept;
use crate::number::number;
use crate::published::{PrintedRatio, Published};
use crate::sysbench::names::{LOAD, counts_rows};
use crate::sysbench::sources::Sources;
use crate::sysbench::tables::{RateCell, RateRow, RateTable};
use crate::text::Text;
use crate::variants::{Variants, kin};

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
pub(crate) fn tables(sources: &Sources, variants: &Variants, published: &mut Published) {
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
        blocks.iter().for_each(|block| met_tables::check(text, block, published));
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
pub(crate) fn column_of(clients: u32, sources: &Sources) -> Option<usize> {
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
        && let Some(again) = sb_met::vm_block(&mean, divisor, rate)
        && !met.vm.is_empty()
    {
        let differences = sb_met::differences(&met.vm, &again);
        report(text, met.lines[1], "sb.vm", again.len(), &differences, published);
    }
    if let Some((_, mean, lines)) = step.device(options.device.as_deref())
        && let Some(again) = sb_met::io_block(&mean, lines, rate)
        && !met.io.is_empty()
    {
        let differences = sb_met::differences(&met.io, &again);
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
