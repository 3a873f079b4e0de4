//! Reads the summary of one step of the Insert Benchmark (`o.res.dopN`), computed from client
//! output, vmstat and iostat. The numbers of its first 15 lines identify them.

use crate::ImportError;
use crate::insert::client::{Histograms, ResponseTimes};
use crate::number::number;
use crate::text::{Row, Text};

/// Words after the numbers in the first line.
const WORDS: [&str; 8] = [
    "processes", "rows-per-process", "seconds", "rows-per-second", "rows-per-second-per-user",
    "queries", "queries-per-second", "deletes",
];
/// Heads of the block of iostat, per inserted row.
const IO_HEADS: [&str; 10] =
    ["nsamp", "r/s", "rMB/s", "w/s", "wMB/s", "r/i", "rKB/i", "w/i", "wKB/i", "ips"];
/// Heads of the block of vmstat.
const VM_HEADS: [&str; 5] = ["nsamp", "cs/s", "cpu/s", "cs/q", "cpu/q"];

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepSummary {
    /// Number of clients.
    pub clients: u32,
    /// Requested rows per client.
    pub rows_per_client: u64,
    /// Seconds from before the first client's start to after the last one's end, whole.
    pub seconds: f64,
    /// Rows inserted per second (in l.x: indexed), as printed.
    pub ips: String,
    /// Number of queries.
    pub queries: u64,
    /// Queries per second, as printed.
    pub qps: String,
    /// Block of iostat per inserted row: heads and cells.
    pub io_by_row: Row,
    /// Block of vmstat per inserted row: heads and cells.
    pub vm_by_row: Row,
    /// Block of iostat per query; meaningless in l steps, which have no queries.
    pub io_by_query: Row,
    /// Block of vmstat per query; meaningless in l steps.
    pub vm_by_query: Row,
    /// Size of the database, GiB.
    pub database_gb: Option<f64>,
    /// Size of the data folder, GiB.
    pub folder_gb: Option<f64>,
    /// Rate quantiles of client 1: per cent of seconds, and the rates of inserts, deletes and
    /// queries reached in them. `None` for `NA`.
    pub reached: Vec<(u32, [Option<f64>; 3])>,
    /// User and system CPU seconds of client 1.
    pub client_cpu: Option<[f64; 2]>,
    /// Histograms of the clients in order.
    pub histograms: Vec<ResponseTimes>,
    /// Lines of an unknown form: number from 1, text.
    pub others: Vec<(usize, String)>,
}

/// Reads a file.
///
/// # Errors
///
/// One of the first 15 lines is not of its form; a line begins as a known one and continues
/// differently.
pub fn parse(text: &Text) -> Result<StepSummary, ImportError> {
    let mut summary = first_line(text)?;
    let io = |head, cells| block(text, [head, cells], &IO_HEADS);
    let vm = |head, cells| block(text, [head, cells], &VM_HEADS);
    summary.io_by_row = io(4, 5)?;
    summary.vm_by_row = vm(7, 8)?;
    summary.io_by_query = by_query(text, [11, 12], &IO_HEADS)?;
    summary.vm_by_query = by_query(text, [14, 15], &VM_HEADS)?;
    for line in [2, 6, 9, 13] {
        if !row(text, line)?.is_empty() {
            return Err(text.malformed(line, "expected an empty line"));
        }
    }
    let mut histograms = Histograms::default();
    for (line, row) in text.lines().skip(15).filter(|(_, row)| !row.trim().is_empty()) {
        if !histograms.take(text, line, row)? {
            summary.take(text, line, row)?;
        }
    }
    summary.histograms = histograms.end(text)?;
    Ok(summary)
}

/// The cells of a line by its number, from 1.
fn row(text: &Text, line: usize) -> Result<Vec<&str>, ImportError> {
    match text.lines().nth(line - 1) {
        Some((_, row)) => Ok(row.split_whitespace().collect()),
        None => Err(text.cut_short(&format!("line {line} of a summary of a step"))),
    }
}

/// Reads `C processes, R rows-per-process, T seconds, …`.
fn first_line(text: &Text) -> Result<StepSummary, ImportError> {
    let cells = row(text, 1)?;
    let expected = || {
        let words: Vec<String> = WORDS.iter().map(|word| format!("N {word}")).collect();
        text.malformed(1, format!("expected `{}`", words.join(", ")))
    };
    if cells.len() != 2 * WORDS.len() {
        return Err(expected());
    }
    for (pair, word) in cells.chunks(2).zip(WORDS) {
        if pair[1].trim_end_matches(',') != word {
            return Err(expected());
        }
    }
    // `deletes` has the value yes or no.
    let numbers: Option<Vec<f64>> =
        cells.iter().step_by(2).take(WORDS.len() - 1).map(|cell| number(cell)).collect();
    let whole = |place: usize| cells[2 * place].parse::<u64>().ok();
    let (Some(numbers), Some(clients), Some(rows), Some(queries)) =
        (numbers, whole(0), whole(1), whole(5))
    else {
        return Err(text.malformed(1, "one of the numbers is missing or not a count"));
    };
    let clients = u32::try_from(clients).ok().filter(|clients| *clients > 0);
    let Some(clients) = clients else {
        return Err(text.malformed(1, "a number is out of range"));
    };
    Ok(StepSummary {
        clients,
        rows_per_client: rows,
        seconds: numbers[2],
        ips: cells[6].to_owned(),
        queries,
        qps: cells[12].to_owned(),
        ..StepSummary::default()
    })
}

/// Reads a block of heads and numbers.
fn block(text: &Text, [heads, cells]: [usize; 2], expected: &[&str]) -> Result<Row, ImportError> {
    let names = row(text, heads)?;
    if names != expected {
        return Err(text.malformed(heads, format!("expected the header `{}`", expected.join(" "))));
    }
    text.numbers_by_head(cells, &names, &row(text, cells)?)
}

/// Reads a block per query. In l steps its content is arbitrary, because there is no query rate.
fn by_query(text: &Text, [heads, cells]: [usize; 2], names: &[&str]) -> Result<Row, ImportError> {
    if row(text, heads)?.len() != names.len() {
        return Err(text.malformed(heads, format!("expected {} columns", names.len())));
    }
    text.by_head(cells, names, &row(text, cells)?)
}

impl StepSummary {
    /// A cell of the blocks per inserted row as a number.
    pub fn value(&self, head: &str) -> Option<f64> {
        let cells = self.io_by_row.iter().chain(self.vm_by_row.iter());
        cells.skip(1).find(|(name, _)| name == head).and_then(|(_, cell)| number(cell))
    }

    /// Reads a line after the 15th.
    fn take(&mut self, text: &Text, line: usize, row: &str) -> Result<(), ImportError> {
        let words: Vec<&str> = row.split_whitespace().collect();
        let expected = |form: &str| text.malformed(line, format!("expected `{form}`"));
        match words.first().copied().unwrap_or_default() {
            "dbGB" => match words.as_slice() {
                [_, size] if number(size).is_some() => self.database_gb = number(size),
                _ => return Err(expected("dbGB SIZE")),
            },
            "dbdirGB" => match words.as_slice() {
                [_, size, _path] if number(size).is_some() => self.folder_gb = number(size),
                _ => return Err(expected("dbdirGB SIZE PATH")),
            },
            "client:" => match words.as_slice() {
                [_, user, "user,", system, "system,", _, "total"] => {
                    let (Some(user), Some(system)) = (number(user), number(system)) else {
                        return Err(expected("client: U user, S system, T total"));
                    };
                    self.client_cpu.get_or_insert([user, system]);
                }
                _ => return Err(expected("client: U user, S system, T total")),
            },
            first if first.ends_with("th,") && first.starts_with(|c: char| c.is_ascii_digit()) => {
                let reached = reached(&words)
                    .ok_or_else(|| expected("Nth, OFFSET / LINES = A insert, B delete, C query"))?;
                // Client 1 comes first.
                if !self.reached.iter().any(|(percent, _)| *percent == reached.0) {
                    self.reached.push(reached);
                }
            }
            _ => self.others.push((line, row.trim_end().to_owned())),
        }
        Ok(())
    }
}

/// Reads `99th, 1782 / 1800 = 40123 insert, 0 delete, 0 query`.
fn reached(words: &[&str]) -> Option<(u32, [Option<f64>; 3])> {
    let [percent, _, "/", _, "=", insert, "insert,", delete, "delete,", query, "query"] = words
    else {
        return None;
    };
    let rate = |cell: &str| match cell {
        "NA" => Some(None),
        cell => number(cell).map(Some),
    };
    let percent = percent.strip_suffix("th,")?.parse().ok()?;
    Some((percent, [rate(insert)?, rate(delete)?, rate(query)?]))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const RES: &str = include_str!("../../../rqps/tests/data/import/ib_res.txt");

    fn of(text: &str) -> Result<StepSummary, ImportError> {
        parse(&Text::of(Path::new("o.res.dop2"), text))
    }

    #[test]
    fn a_summary_is_read() {
        let summary = of(RES).unwrap();
        assert_eq!((summary.clients, summary.rows_per_client, summary.seconds), (2, 12_000, 12.0));
        assert_eq!((summary.ips.as_str(), summary.qps.as_str()), ("2000.0", "2400.0"));
        assert_eq!((summary.value("cs/s"), summary.value("w/s")), (Some(2500.0), Some(60.0)));
        assert_eq!(summary.database_gb.zip(summary.folder_gb), Some((1.3, 2.5)));
        assert_eq!(summary.reached[0], (50, [Some(1000.0), Some(1000.0), Some(1200.0)]));
        assert_eq!(summary.reached.len(), 3);
        assert_eq!(summary.client_cpu, Some([4.5, 0.5]));
        assert_eq!(summary.histograms.len(), 6);
        assert!(summary.others.iter().any(|(_, text)| text.starts_with("Max insert")));
    }

    #[test]
    fn faults_name_the_line() {
        let check = |from: &str, to: &str, expected: &str| {
            let fault = of(&RES.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(fault.contains(expected), "{from}: {fault}");
        };
        check("seconds,", "hours,", "line 1: expected `N processes, N rows-per-process");
        check("2 processes", "x processes", "line 1: one of the numbers is missing");
        check("2 processes", "0 processes", "line 1: a number is out of range");
        check("nsamp\tr/s", "nsamp\tx/s", "line 4: expected the header `nsamp r/s");
        check("\t60.0\t", "\t", "line 5: 9 cells for 10 columns");
        check("2500", "many", "line 8, column 2: `many` under `cs/s` is not a number");
        check("dbGB 1.3", "dbGB big", "expected `dbGB SIZE`");
        check("50th, 6 / 12", "50th, 6 of 12", "expected `Nth, OFFSET / LINES");
        check("0.5 system", "0.5 sys", "expected `client: U user");
        let cut: String = RES.lines().take(7).map(|line| format!("{line}\n")).collect();
        let fault = of(&cut).unwrap_err().to_string();
        assert!(fault.contains("line 7: the file ends here, before line 8"), "{fault}");
    }
}
