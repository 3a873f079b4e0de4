//! Reads the output of one client of the Insert Benchmark (`o.ib.dopN.K`): a row of numbers per
//! second, histograms of response times, and the word Done.

use crate::cells::{count, number, shown};
use crate::format::ImportError;
use crate::text::Text;

/// Kinds of operations in the order of columns: letter of the columns, name of the counter, head of
/// the histogram.
pub const KINDS: [(char, &str, &str); 3] =
    [('i', "t_ins", "Insert"), ('d', "t_del", "Delete"), ('q', "t_query", "Query")];

/// Columns since 2023. The 12 columns of 2021 lack those of deletes.
const HEADS: [&str; 17] = [
    "i_sec", "t_sec", "i_ips", "t_ips", "i_dps", "t_dps", "i_qps", "t_qps", "max_i", "max_d",
    "max_q", "t_ins", "t_del", "t_query", "retry_i", "retry_d", "retry_q",
];
/// Columns that only the form since 2023 has.
const OF_DELETES: [&str; 5] = ["i_dps", "t_dps", "max_d", "t_del", "retry_d"];

/// The whole output of one client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClientOutput {
    /// Its command line.
    pub command: String,
    /// One row per interval.
    pub rows: Vec<IntervalRow>,
    /// Histograms of inserts, deletes and queries that exist.
    pub histograms: Vec<ResponseTimes>,
    /// Seconds for making the secondary indexes.
    pub index_seconds: Option<f64>,
    /// Lines of an unknown form: number from 1, text.
    pub others: Vec<(usize, String)>,
    /// False if the last word is missing: the client died, or the file is incomplete.
    pub is_done: bool,
}

/// One interval, with values for each of [`KINDS`]; `None` if the form has no such column.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalRow {
    /// Line number, from 1.
    pub line: usize,
    /// Length of the interval in seconds, with one decimal.
    pub seconds: f64,
    /// Seconds since the client's start, with one decimal.
    pub at: f64,
    /// Rows or queries per second, whole numbers.
    pub rates: [Option<f64>; 3],
    /// Longest operation that ended in the interval, microseconds; 0 without operations.
    pub longest_us: [Option<f64>; 3],
    /// Rows or queries since the start.
    pub totals: [Option<u64>; 3],
    /// Repeated operations.
    pub retries: [Option<u64>; 3],
}

/// A response-time histogram of one client and step.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseTimes {
    /// Index in [`KINDS`].
    pub kind: usize,
    /// Line number of the counts, from 1.
    pub line: usize,
    /// Number of operations in each of [`BUCKETS`].
    pub counts: Vec<u64>,
    /// The longest, seconds.
    pub longest: f64,
}

/// Reads a file.
///
/// # Errors
///
/// Heads of an unknown form; a row with a wrong number of cells, an invalid number, times or
/// counters that decrease; an incomplete histogram; text after the last word; a file without heads.
pub fn parse_client(text: &Text) -> Result<ClientOutput, ImportError> {
    let mut reader = Reader { text, heads: Vec::new(), output: ClientOutput::default() };
    let mut histograms = Histograms::default();
    let last = last_but_done(text);
    for (line, row) in text.lines() {
        let row = row.trim_end();
        if row.trim().is_empty() {
            continue;
        }
        if reader.output.is_done {
            return Err(text.malformed(line, "a line after the word Done"));
        }
        if row == "Done" {
            reader.output.is_done = true;
        } else if row.starts_with("i_sec\t") {
            reader.take_heads(line, row)?;
        } else if histograms.take(text, line, row)? {
            continue;
        } else if line == 1 {
            reader.output.command = without_secrets(row);
        } else if row.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.') {
            // The line of totals comes last; its form is not documented.
            match reader.row(line, row) {
                Err(_) if last == Some(line) && !reader.heads.is_empty() => {
                    reader.output.others.push((line, row.to_owned()));
                }
                row => reader.output.rows.push(row?),
            }
        } else {
            reader.take_words(line, row)?;
        }
    }
    reader.output.histograms = histograms.end(text)?;
    if reader.heads.is_empty() {
        Err(text.cut_short("the header of the intervals (`i_sec t_sec i_ips …`)"))
    } else {
        Ok(reader.output)
    }
}

/// The line before the word Done.
fn last_but_done(text: &Text) -> Option<usize> {
    let lines = text.lines().filter(|(_, row)| !row.trim().is_empty());
    let mut last = None;
    for (line, row) in lines {
        if row.trim_end() == "Done" {
            return last;
        }
        last = Some(line);
    }
    None
}

/// The command line without its passwords.
fn without_secrets(row: &str) -> String {
    let words = row.split_whitespace().filter(|word| !word.contains("pass"));
    words.collect::<Vec<_>>().join(" ")
}

struct Reader<'a> {
    text: &'a Text,
    heads: Vec<String>,
    output: ClientOutput,
}

impl Reader<'_> {
    fn take_heads(&mut self, line: usize, row: &str) -> Result<(), ImportError> {
        let heads: Vec<&str> = row.split('\t').map(str::trim).collect();
        let missing = |names: &[&str]| names.iter().any(|name| !heads.contains(name));
        let newest = !missing(&HEADS);
        let older: Vec<&str> =
            HEADS.into_iter().filter(|head| !OF_DELETES.contains(head)).collect();
        let expected = if newest { HEADS.len() } else { older.len() };
        if missing(&older) || heads.len() != expected {
            let why = format!(
                "{} columns; known forms have 17 (`{}`) or the 12 without deletes",
                heads.len(),
                HEADS.join(" ")
            );
            return Err(self.text.malformed(line, why));
        }
        if !self.heads.is_empty() && self.heads != heads {
            let why = "the header differs from the earlier one in this file";
            return Err(self.text.malformed(line, why));
        }
        self.heads = heads.into_iter().map(str::to_owned).collect();
        Ok(())
    }

    fn row(&self, line: usize, row: &str) -> Result<IntervalRow, ImportError> {
        if self.heads.is_empty() {
            return Err(self.text.malformed(line, "a row before the header (`i_sec t_sec …`)"));
        }
        let cells: Vec<&str> = row.split('\t').map(str::trim).collect();
        self.text.check_width(line, cells.len(), self.heads.len())?;
        let cell = |name: &str| {
            let place = self.heads.iter().position(|head| head == name);
            place.map(|place| (place + 1, cells[place]))
        };
        let text = self.text;
        let value = |name: &str| match cell(name) {
            None => Ok(None),
            Some((column, cell)) => text.number(line, column, name, cell).map(Some),
        };
        let whole = |name: &str| match cell(name) {
            None => Ok(None),
            Some((column, cell)) => match count(cell) {
                Some(value) => Ok(Some(value)),
                None => {
                    let why = format!("`{}` under `{name}` is not a count", shown(cell));
                    Err(text.bad_cell(line, column, why))
                }
            },
        };
        let mut interval = IntervalRow {
            line,
            seconds: value("i_sec")?.unwrap_or_default(),
            at: value("t_sec")?.unwrap_or_default(),
            rates: [None; 3],
            longest_us: [None; 3],
            totals: [None; 3],
            retries: [None; 3],
        };
        for (place, (letter, total, _)) in KINDS.into_iter().enumerate() {
            interval.rates[place] = value(&format!("i_{letter}ps"))?;
            interval.longest_us[place] = value(&format!("max_{letter}"))?;
            interval.totals[place] = whole(total)?;
            interval.retries[place] = whole(&format!("retry_{letter}"))?;
            // Unused, but read to detect damage.
            value(&format!("t_{letter}ps"))?;
        }
        self.check_order(&interval)?;
        Ok(interval)
    }

    /// Checks that clocks and counters only increase.
    fn check_order(&self, row: &IntervalRow) -> Result<(), ImportError> {
        let Some(before) = self.output.rows.last() else { return Ok(()) };
        if row.at < before.at {
            let why = format!("t_sec goes back from {} to {}", before.at, row.at);
            return Err(self.text.malformed(row.line, why));
        }
        for (place, (_, name, _)) in KINDS.into_iter().enumerate() {
            if row.totals[place] < before.totals[place] {
                return Err(self.text.malformed(row.line, format!("{name} goes back")));
            }
        }
        Ok(())
    }

    fn take_words(&mut self, line: usize, row: &str) -> Result<(), ImportError> {
        let small = row.trim().to_ascii_lowercase();
        let Some(rest) = small.strip_prefix("created secondary indexes") else {
            self.output.others.push((line, row.to_owned()));
            return Ok(());
        };
        let words: Vec<&str> = rest.split_whitespace().collect();
        match words.as_slice() {
            ["in", seconds, "seconds"] if number(seconds).is_some() => {
                self.output.index_seconds = number(seconds);
                Ok(())
            }
            _ => {
                let why = "expected `created secondary indexes in S seconds`";
                Err(self.text.malformed(line, why))
            }
        }
    }
}

/// Reads histograms: a line of labels, then one of counts, each after `Insert rt:` or a similar
/// word.
#[derive(Debug, Default)]
pub(crate) struct Histograms {
    labels: Option<(usize, usize)>,
    done: Vec<ResponseTimes>,
}

impl Histograms {
    /// True if the line belongs to a histogram.
    pub(crate) fn take(
        &mut self,
        text: &Text,
        line: usize,
        row: &str,
    ) -> Result<bool, ImportError> {
        let words: Vec<&str> = row.split_whitespace().collect();
        let kind = words.first().and_then(|word| {
            KINDS.iter().position(|(_, _, name)| name == word && words.get(1) == Some(&"rt:"))
        });
        let Some(kind) = kind else {
            return match self.labels {
                Some(_) => Err(text.malformed(line, "expected the counts of the histogram above")),
                None => Ok(false),
            };
        };
        let cells = &words[2..];
        if cells.len() != BUCKETS.len() + 1 {
            let why = format!("{} cells of a histogram of ten classes and max", cells.len());
            return Err(text.malformed(line, why));
        }
        let labels = BUCKETS.iter().chain(&["max"]).eq(cells);
        match self.labels.take() {
            None if labels => self.labels = Some((kind, line)),
            Some((of, _)) if of == kind && !labels => {
                self.done.push(response_times(text, line, kind, cells)?);
            }
            _ => {
                let why = "a histogram is a line of labels (`256us 1ms … gt max`), then one of \
                           counts of the same operations";
                return Err(text.malformed(line, why));
            }
        }
        Ok(true)
    }

    /// Returns all histograms.
    pub(crate) fn end(self, text: &Text) -> Result<Vec<ResponseTimes>, ImportError> {
        match self.labels {
            Some((_, line)) => Err(text.malformed(line, "histogram labels without counts")),
            None => Ok(self.done),
        }
    }
}

fn response_times(
    text: &Text,
    line: usize,
    kind: usize,
    cells: &[&str],
) -> Result<ResponseTimes, ImportError> {
    let (longest, counts) = cells.split_last().unwrap_or((&"", &[]));
    let counts: Option<Vec<u64>> = counts.iter().map(|cell| count(cell)).collect();
    match (counts, number(longest)) {
        (Some(counts), Some(longest)) => Ok(ResponseTimes { kind, line, counts, longest }),
        _ => {
            let why = "a histogram class is not a count, or its max is not a number";
            Err(text.malformed(line, why))
        }
    }
}

// Reads response-time tables of the Insert Benchmark: a row of ten buckets and the longest time
// per target or client, as counts or per cent.

/// Names of the buckets: their upper bounds, and the one for all longer times.
pub const BUCKETS: [&str; 10] =
    ["256us", "1ms", "4ms", "16ms", "64ms", "256ms", "1s", "4s", "16s", "gt"];

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramRow {
    /// Line number, from 1.
    pub line: usize,
    /// `20m.my`, if there is such a column.
    pub report: Option<String>,
    /// The step, if there is such a column.
    pub step: Option<String>,
    /// `insert`, `delete` or `query`, if there is such a column.
    pub op: Option<String>,
    /// One cell per bucket of [`BUCKETS`]: a count, a percentage, or `nonzero`.
    pub cells: Vec<String>,
    /// Longest response time in seconds, as printed.
    pub max: String,
    /// Column number of the first bucket, from 1.
    pub first: usize,
    /// The target; in files of one step `t1:TARGET`, `sum:TARGET` and `pct:TARGET`.
    pub tag: String,
}

/// True if the text begins with the heads of such a table.
pub fn is_histogram(text: &Text) -> bool {
    let heads: Vec<&str> = text.first().split_whitespace().collect();
    BUCKETS.iter().all(|bucket| heads.contains(bucket)) && heads.contains(&"max")
}

/// Reads a table; the line of heads may repeat.
///
/// # Errors
///
/// A row with a wrong number of cells, a cell that is neither a number nor `nonzero`, percentages
/// that do not add up to 100 ± 0.1, a table without rows.
pub fn parse_histogram(text: &Text) -> Result<Vec<HistogramRow>, ImportError> {
    let mut heads: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for (line, row) in text.lines() {
        let cells: Vec<&str> = row.split_whitespace().collect();
        if cells.is_empty() {
            continue;
        }
        if cells.contains(&"256us") {
            heads = cells.iter().map(|cell| (*cell).to_owned()).collect();
            continue;
        }
        if heads.is_empty() {
            return Err(text.malformed(line, "a row before the header (`256us 1ms … max tag`)"));
        }
        // Some heads omit the word tag.
        if cells.len() != heads.len() + 1 {
            text.check_width(line, cells.len(), heads.len())?;
        }
        let cell = |name: &str| {
            heads.iter().position(|head| head == name).map(|place| cells[place].to_owned())
        };
        let tag = cell("tag").or_else(|| cells.last().map(|cell| (*cell).to_owned()));
        let row = HistogramRow {
            line,
            report: cell("report"),
            step: cell("step"),
            op: cell("op"),
            cells: BUCKETS.iter().filter_map(|bucket| cell(bucket)).collect(),
            max: cell("max").unwrap_or_default(),
            first: heads.iter().position(|head| head == BUCKETS[0]).unwrap_or(0) + 1,
            tag: tag.unwrap_or_default(),
        };
        check(text, &row)?;
        rows.push(row);
    }
    if rows.is_empty() { Err(text.cut_short("the first row of the histogram")) } else { Ok(rows) }
}

fn check(text: &Text, row: &HistogramRow) -> Result<(), ImportError> {
    if row.cells.len() != BUCKETS.len() {
        return Err(text.malformed(row.line, "expected ten buckets"));
    }
    let heads = BUCKETS.into_iter().chain(["max"]);
    for (place, (head, cell)) in heads.zip(row.cells.iter().chain([&row.max])).enumerate() {
        if cell != "nonzero" {
            text.number(row.line, row.first + place, head, cell)?;
        }
    }
    let shares = row.cells.iter().any(|cell| cell.contains('.'));
    let sum: f64 = row.cells.iter().filter_map(|cell| number(cell)).sum();
    if shares && (sum - 100.0).abs() > 0.1 && sum != 0.0 {
        return Err(text.malformed(row.line, format!("the shares add up to {sum:.3} per cent")));
    }
    Ok(())
}

#[cfg(test)]
mod client_tests {
    use std::path::Path;

    use super::*;

    fn of(text: &str) -> Result<ClientOutput, ImportError> {
        parse_client(&Text::of(Path::new("o.ib.dop1.1"), text))
    }

    const OLD: &str = "iibench.py --db_password=pw --dbms=mysql\n\
        i_sec\tt_sec\ti_ips\tt_ips\ti_qps\tt_qps\tmax_i\tmax_q\tt_ins\tt_query\tretry_i\tretry_q\n\
        1.0\t1.0\t5000\t5000\t0\t0\t9000\t0\t5000\t0\t0\t0\n\
        1.1\t2.1\t4000\t4476\t0\t0\t12345\t0\t9400\t0\t0\t0\n\
        Insert rt:\t256us\t1ms\t4ms\t16ms\t64ms\t256ms\t1s\t4s\t16s\tgt\tmax\n\
        Insert rt:\t0\t90\t3\t1\t0\t0\t0\t0\t0\t0\t0.012345\n\
        2.1 4476 9400 0 0 0\n\
        Done\n";

    #[test]
    fn the_form_of_2021_is_read() {
        let output = of(OLD).unwrap();
        assert_eq!(output.command, "iibench.py --dbms=mysql");
        assert_eq!(output.rows.len(), 2);
        let row = &output.rows[1];
        assert_eq!((row.seconds, row.at, row.line), (1.1, 2.1, 4));
        assert_eq!(row.rates, [Some(4000.0), None, Some(0.0)]);
        assert_eq!(row.longest_us, [Some(12345.0), None, Some(0.0)]);
        assert_eq!(row.totals, [Some(9400), None, Some(0)]);
        let [inserts] = output.histograms.as_slice() else { panic!("{output:?}") };
        assert_eq!((inserts.kind, inserts.counts[1], inserts.longest), (0, 90, 0.012_345));
        assert_eq!(output.others, [(7, "2.1 4476 9400 0 0 0".to_owned())]);
        assert!(output.is_done);
    }

    #[test]
    fn one_that_died_has_no_last_word() {
        let cut = OLD.replace("Done\n", "");
        let fault = of(&cut).unwrap_err().to_string();
        assert!(fault.contains("line 7: 1 cell for 12 columns"), "{fault}");
        let cut: String = OLD.lines().take(4).map(|line| format!("{line}\n")).collect();
        assert!(!of(&cut).unwrap().is_done);
    }

    #[test]
    fn faults_name_the_line() {
        let check = |from: &str, to: &str, expected: &str| {
            let fault = of(&OLD.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(fault.contains(expected), "{from}: {fault}");
        };
        check("1.1\t2.1\t4000\t", "1.1\t2.1\t", "line 4: 11 cells for 12 columns");
        check("\t12345\t", "\tlong\t", "column 7: `long` under `max_i` is not a number");
        check("\t9400\t", "\t4.5\t", "`4.5` under `t_ins` is not a count");
        check("\t9400\t", "\t4000\t", "line 4: t_ins goes back");
        check("1.1\t2.1", "1.1\t0.1", "line 4: t_sec goes back from 1 to 0.1");
        check("max_q\t", "max_p\t", "line 2: 12 columns");
        check("\tt_query\t", "\tt_query\tmore\t", "line 2: 13 columns");
        check("i_sec\tt_sec", "sec\tt_sec", "line 3: a row before the header");
        check("\t90\t", "\t", "line 6: 10 cells of a histogram");
        check("\t90\t", "\t9x\t", "line 6: a histogram class is not a count");
        check("Insert rt:\t0", "Delete rt:\t0", "line 6: a histogram is a line of labels");
        check("Insert rt:\t0", "Insert: 0", "line 6: expected the counts");
        check("Done\n", "Done\nmore\n", "line 9: a line after the word Done");
        check(OLD, "one\ntwo\n", "line 2: the file ends here, before the header");
    }

    #[test]
    fn seconds_of_indexes_are_read() {
        let with = OLD.replace("2.1 4476", "created secondary indexes in 66.5 seconds\n2.1 4476");
        assert_eq!(of(&with).unwrap().index_seconds, Some(66.5));
        let bad = with.replace("66.5", "some");
        let fault = of(&bad).unwrap_err().to_string();
        assert!(fault.contains("line 7: expected `created secondary indexes in S"), "{fault}");
    }
}

#[cfg(test)]
mod histograms_tests {
    use std::path::Path;

    use super::*;

    const TABLE: &str = "report\tstep\top\t256us\t1ms\t4ms\t16ms\t64ms\t256ms\t1s\t4s\t16s\tgt\t\
        max\ttag\n20m.my\tl.i0\tinsert\t0.000\t98.919\t1.081\tnonzero\t0.000\t0.000\t0.000\t0.000\t\
        0.000\t0.000\t0.098\tmy5649.cy8\n";

    fn of(text: &str) -> Result<Vec<HistogramRow>, ImportError> {
        parse_histogram(&Text::of(Path::new("rt"), text))
    }

    #[test]
    fn rows_are_read_with_and_without_steps() {
        let rows = of(TABLE).unwrap();
        assert_eq!(
            (rows[0].step.as_deref(), rows[0].op.as_deref()),
            (Some("l.i0"), Some("insert"))
        );
        assert_eq!((rows[0].max.as_str(), rows[0].tag.as_str()), ("0.098", "my5649.cy8"));
        let counts = "256us 1ms 4ms 16ms 64ms 256ms 1s 4s 16s gt max\n\
            1 2 3 4 5 6 7 8 9 10 0.123 sum:DBMS\n";
        let rows = of(counts).unwrap();
        assert_eq!((rows[0].cells.len(), rows[0].tag.as_str()), (10, "sum:DBMS"));
    }

    #[test]
    fn faults_name_the_line() {
        let check = |text: &str, expected: &str| {
            let fault = of(text).unwrap_err().to_string();
            assert!(fault.contains(expected), "{fault}");
        };
        check("1 2\n", "line 1: a row before the header");
        check(&TABLE.replace("\t0.098", ""), "");
        check(&TABLE.replace("98.919", "88.919"), "line 2: the shares add up to 90.000");
        check(
            &TABLE.replace("nonzero", "some"),
            "line 2, column 7: `some` under `16ms` is not a number",
        );
        check(TABLE.lines().next().unwrap(), "line 1: the file ends here");
    }
}
