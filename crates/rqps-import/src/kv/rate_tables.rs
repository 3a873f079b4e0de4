//! Takes tables of rates and ratios, after all reports.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::ImportError;
use crate::cells::Kept;
use crate::kv::rates::RatesOnly;
use crate::kv::taker::Taker;
use crate::number::{decimals_agree, number};
use crate::published::{self, PrintedRatio, add_file};
use crate::text::Text;
use crate::variants::{TableCells, Variants, kin};
use rqps_model::build::Version;
use rqps_model::metric::Metric;
use rqps_model::run::Status;

impl Taker<'_> {
    /// Takes rates that no report has; rates in both must agree.
    pub(super) fn take_tables(&mut self) -> Result<(), ImportError> {
        let tables = std::mem::take(&mut self.tables);
        self.variants = self.variants_of(&tables);
        let mut nameless: Option<String> = None;
        for (text, rates) in tables {
            if rates.are_ratios() {
                self.tables.push((text, rates));
                continue;
            }
            let labels = match self.labels_of(&text, &rates)? {
                Some(labels) => labels,
                None if !self.published.runs.is_empty() => {
                    let other = match &nameless {
                        Some(file) => format!("and {file} was imported as col-1, col-2 …"),
                        None => "unlike those of other files".to_owned(),
                    };
                    let what = format!(
                        "its columns have no versions, {other}: import it separately, or use \
                         --labels"
                    );
                    self.leave_table(&text, &rates, &what);
                    continue;
                }
                None => {
                    let what = "this file has no versions for its columns: targets are col-1, \
                                col-2 … (name them with --labels)";
                    self.published.note(text.path(), what);
                    nameless = Some(text.name());
                    (1..=rates.width()).map(|column| format!("col-{column}")).collect()
                }
            };
            self.take_rates(&text, &rates, &labels);
        }
        Ok(())
    }

    /// Conditions that the names of tables of rates tell apart: those with contradicting rates.
    fn variants_of(&self, tables: &[(Text, RatesOnly)]) -> Variants {
        let rates = tables.iter().filter(|(_, table)| !table.are_ratios());
        let cells = rates.filter_map(|(text, table)| {
            let labels = self.labels_of(text, table).ok()??;
            let mut all = TableCells::new();
            for (_, step, cells) in &table.rows {
                let step = self.name(text.path(), step);
                let row = labels.iter().zip(cells);
                all.extend(row.map(|(label, cell)| ((label.clone(), step.clone()), cell.clone())));
            }
            Some((text.path(), all))
        });
        Variants::find(&cells.collect::<Vec<_>>())
    }

    /// The name of a step in a table of rates, with what the name of the table tells.
    fn name_in_table(&self, text: &Text, step: &str) -> String {
        let name = self.name(text.path(), step) + &self.variants.suffix(text.path());
        match self.variants.clients(text.path()) {
            Some(clients) => format!("{name}.dop{clients}"),
            None => name,
        }
    }

    fn take_rates(&mut self, text: &Text, rates: &RatesOnly, labels: &[String]) {
        let path = text.path();
        for (line, step, cells) in &rates.rows {
            self.published.cells.read(path, cells.len());
            let step = &self.name_in_table(text, step);
            for (label, cell) in labels.iter().zip(cells) {
                let version = Version::new(label.clone());
                let version = (version.numbers().len() > 1).then_some(label.as_str());
                let record = self.step(label, 1, version, step);
                add_file(record, &text.name());
                let Some(value) = number(cell) else {
                    let why = format!("published as {cell} ({}, line {line})", text.name());
                    record.status = Status::Failed(why);
                    self.published.cells.keep(path, Kept::Absent, 1);
                    continue;
                };
                let (before, kept) = published::take(record, Metric::Rate, value);
                self.published.cells.keep(path, kept, 1);
                if !decimals_agree(before, cell) {
                    let what = format!(
                        "{step} of {label}: {cell} here, {before} in an earlier file; imported the \
                         earlier value"
                    );
                    self.published.mismatch(text.path(), *line, what);
                }
            }
        }
    }

    /// Labels of the columns: those given, else those of the heads, else those of the report with
    /// the same name.
    fn labels_of(
        &self,
        text: &Text,
        rates: &RatesOnly,
    ) -> Result<Option<Vec<String>>, ImportError> {
        let (width, asked) = (rates.width(), &self.options.labels);
        if asked.len() == width {
            return Ok(Some(asked.clone()));
        }
        if !rates.labels.is_empty() {
            return Ok(Some(rates.labels.clone()));
        }
        let same = |(path, labels): &&(PathBuf, Vec<String>)| {
            labels.len() == width && kin(path) == kin(text.path())
        };
        if let Some((_, labels)) = self.reports.iter().find(same) {
            return Ok(Some(labels.clone()));
        }
        if asked.is_empty() {
            Ok(None)
        } else {
            let (given, name) = (asked.len(), text.name());
            Err(ImportError::Words(format!(
                "`{name}`: it has {width} columns, but --labels names {given}"
            )))
        }
    }

    /// Checks tables of ratios against the rates, which may stand under the label of the same
    /// build; one column is the baseline.
    pub(super) fn check_ratios(&mut self, joined: &BTreeMap<String, String>) {
        for (text, ratios) in std::mem::take(&mut self.tables) {
            let first = self.published.runs.iter().filter(|run| run.record.key.block == 1);
            let order: Vec<String> = first.map(|run| run.record.key.label.clone()).collect();
            let labels = match self.labels_of(&text, &ratios) {
                Ok(Some(labels)) => labels,
                _ if order.len() == ratios.width() => order,
                _ => {
                    let what = format!(
                        "ratios of {} versions but rates of {}: not checked",
                        ratios.width(),
                        order.len()
                    );
                    self.leave_table(&text, &ratios, &what);
                    continue;
                }
            };
            let Some(baseline) = ratios.baseline() else {
                let what = "ratios to a version without a column: not checked";
                self.leave_table(&text, &ratios, what);
                continue;
            };
            let labels = labels.iter().map(|label| joined.get(label).unwrap_or(label).clone());
            self.check_table(&text, &ratios, &labels.collect::<Vec<_>>(), baseline);
        }
    }

    /// Leaves a table out and counts its cells.
    fn leave_table(&mut self, text: &Text, table: &RatesOnly, why: &str) {
        let cells = table.rows.iter().map(|(_, _, cells)| cells.len()).sum();
        self.published.cells.read(text.path(), cells);
        self.published.cells.leave(text.path(), why, cells);
    }

    fn check_table(&mut self, text: &Text, ratios: &RatesOnly, labels: &[String], baseline: usize) {
        let (mut agree, mut of, mut without) = (0, 0, 0);
        for (line, step, cells) in &ratios.rows {
            let step = &self.name_in_table(text, step);
            let published = &mut self.published;
            for (label, printed) in labels.iter().zip(cells) {
                let rate = |label: &str| published.value(label, step, Metric::Rate);
                let Some((value, of_baseline)) = rate(label).zip(rate(&labels[baseline])) else {
                    without += 1;
                    continue;
                };
                of += 1;
                let line = *line;
                let ratio = PrintedRatio { text, line, printed, value, baseline: of_baseline };
                let what = format_args!("{step} of {label}");
                agree += usize::from(published.follows(&ratio, what));
            }
        }
        self.published.check("relative rates from absolute rates", agree, of);
        let cells = &mut self.published.cells;
        cells.read(text.path(), of + without);
        cells.keep(text.path(), Kept::Compared, of);
        cells.leave(text.path(), "ratios without rates in these files: not checked", without);
    }
}
