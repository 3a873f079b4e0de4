//! Takes the rows of published report tables.

use std::collections::BTreeMap;
use std::path::Path;

use crate::ImportError;
use crate::cells::Kept;
use crate::kv::metrics::{ReportCell, known_heads, report_cell, tag_of};
use crate::kv::table::{ReportRow, ReportTable};
use crate::kv::taker::Taker;
use crate::number::{decimals_agree, rfc3339};
use crate::published::{self, add_file};
use crate::text::Text;
use rqps_model::run::Status;

impl Taker<'_> {
    pub(super) fn take_report(
        &mut self,
        text: &Text,
        table: &ReportTable,
    ) -> Result<(), ImportError> {
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        let mut labels: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for row in &table.rows {
            let place = places.entry(&row.test).or_default();
            let label = self.label(table, row, *place);
            *place += 1;
            let label = self.take_row(text, row, &label)?;
            labels.entry(&row.test).or_default().push(label);
        }
        // Tables of rates have a column per row.
        let mut of_steps = labels.into_values();
        if let Some(first) = of_steps.next().filter(|first| of_steps.all(|other| other == *first)) {
            self.reports.push((text.path().to_owned(), first));
        }
        self.check_derived(text, table);
        Ok(())
    }

    /// Checks the ratios, means and deviations below the rows.
    fn check_derived(&mut self, text: &Text, table: &ReportTable) {
        let (mut agree, mut of, mut unknown) = (0, 0, 0);
        for derived in &table.derived {
            let Some(again) = derived.again(table) else {
                unknown += 1;
                continue;
            };
            for (printed, value) in derived.cells.iter().zip(again) {
                of += 1;
                if decimals_agree(value, printed) {
                    agree += 1;
                    continue;
                }
                let what = format!("published {printed}, but the rates above give {value:.3}");
                self.published.mismatch(text.path(), derived.line, what);
            }
        }
        self.published.check("ratios, means and deviations below rows", agree, of);
        if unknown > 0 {
            let what = format!("unlabelled lines below rows: {unknown}");
            self.left(text.path(), what);
        }
    }

    /// The label of a row: the given one if each row of its test has one, that of the path above
    /// the rows, or its version.
    fn label(&self, table: &ReportTable, row: &ReportRow, place: usize) -> String {
        let rows = table.rows.iter().filter(|other| other.test == row.test).count();
        if let Some(label) = self.options.labels.get(place)
            && self.options.labels.len() == rows
        {
            return label.clone();
        }
        if let Some(path) = table.paths.get(place) {
            let mut parts = path.rsplit('/').filter(|part| !part.is_empty());
            let last = parts.next().unwrap_or(path);
            let label = if last.starts_with("report") { parts.next() } else { Some(last) };
            return label.unwrap_or(path).to_owned();
        }
        row.cell("version").unwrap_or("unknown").to_owned()
    }

    /// Takes a row and returns the label of its run.
    fn take_row(
        &mut self,
        text: &Text,
        row: &ReportRow,
        label: &str,
    ) -> Result<String, ImportError> {
        self.check_row(text, row, label)?;
        let test = self.name(text.path(), &row.test);
        let version = row.cell("version");
        let cells = ["version", "githash", "date", "ops_sec"];
        let identity = cells.map(|name| row.cell(name).unwrap_or("")).join("|");
        let date = row.cell("date").and_then(|date| rfc3339(date, "%Y-%m-%dT%H:%M:%S"));
        let (place, again) = self.rows.place(label, &test, &identity, date.as_deref());
        let (label, block) = self.numbered(label, place);
        self.published.cells.read(text.path(), row.cells.len());
        if again {
            self.published.cells.keep(text.path(), Kept::Compared, row.cells.len());
            return Ok(label);
        }
        if place == 1 && !self.options.repeats {
            self.note_several(text, row.line, &test, &label);
        }
        let record = self.step(&label, block, version, &test);
        add_file(record, &text.name());
        if let Some(date) = &date {
            record.started.clone_from(date);
        }
        if row.failed {
            let why = format!("published as failed ({}, line {})", text.name(), row.line);
            record.status = Status::Failed(why);
            let why = "rows of steps that failed";
            self.published.cells.leave(text.path(), why, row.cells.len());
            return Ok(label);
        }
        let mut counted = Vec::new();
        for (head, printed) in &row.cells {
            counted.push((head, report_cell(head, printed, version)));
            match counted.last() {
                Some((_, ReportCell::Values(values))) => {
                    values.iter().for_each(|(metric, value)| {
                        published::put(record, *metric, *value);
                    });
                }
                Some((_, ReportCell::Unknown)) => published::annotate(record, head, printed),
                _ => {}
            }
        }
        self.count(text.path(), &counted);
        let tag = tag_of(&label, version);
        let run = self.published.run(&label, block, &tag);
        if let Some(date) = date
            && (run.record.started == "unknown" || date < run.record.started)
        {
            run.record.started = date;
        }
        Ok(label)
    }

    /// Counts the cells of a row by what became of them.
    fn count(&mut self, file: &Path, counted: &[(&String, ReportCell)]) {
        let cells = &mut self.published.cells;
        let known = known_heads();
        for (head, cell) in counted {
            if matches!(cell, ReportCell::Impossible) {
                cells.leave(file, format!("sizes below zero under `{head}`"), 1);
                continue;
            }
            let kept = match cell {
                ReportCell::Values(_) => Kept::Metric,
                ReportCell::Absent | ReportCell::Impossible => Kept::Absent,
                ReportCell::Identity => Kept::Annotation,
                ReportCell::Unknown => {
                    cells.unknown_head(file, head, &known);
                    Kept::Annotation
                }
            };
            cells.keep(file, kept, 1);
        }
    }

    /// Rows with the same step, version and starting second are copies.
    ///
    /// # Errors
    ///
    /// A copy has other numbers; the text has both places.
    fn check_row(&mut self, text: &Text, row: &ReportRow, label: &str) -> Result<(), ImportError> {
        let Some(date) = row.cell("date") else { return Ok(()) };
        let of = ["version", "githash"].map(|name| row.cell(name).unwrap_or(""));
        let test = self.name(text.path(), &row.test);
        let key = [label, &test, of[0], of[1], date].join("|");
        let Some((other, line, cells)) = self.dated.get(&key) else {
            self.dated.insert(key, (text.name(), row.line, row.cells.clone()));
            return Ok(());
        };
        for (column, (head, printed)) in row.cells.iter().enumerate() {
            let before = cells.iter().find(|(name, _)| name == head);
            if let Some((_, before)) = before.filter(|(_, before)| before != printed) {
                let why = format!(
                    "`{printed}` under `{head}` contradicts `{before}` in {other}, line {line}: \
                     both say they are {} of {} at {date}",
                    row.test, of[0]
                );
                return Err(text.bad_cell(row.line, column + 1, why));
            }
        }
        Ok(())
    }
}
