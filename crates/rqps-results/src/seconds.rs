//! Files beside a step: seconds, counters, settings of the server.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use super::read::{self, ResultsError};
use rqps_model::run::{Counter, CpuTime, DiskUsage, HostUsage, Run, Second, StepRecord, Usage};

// `steps/NN-NAME.csv`: one row per second of a step. Counters are written as they were sampled,
// so nothing is lost; shares and rates follow from them (docs/results.md).

/// A column of the CSV: its head, which names the unit, and its value in a row.
pub struct SecondsColumn {
    /// The head.
    pub name: &'static str,
    /// The value as written; `None` if it was not sampled: an empty cell.
    get: fn(&Second) -> Option<String>,
    /// Takes the text of a cell that is not empty.
    set: fn(&mut Second, &str) -> Result<(), String>,
}

macro_rules! columns {
    ($($name:literal, $row:ident => $get:expr, $set:expr;)*) => {
        /// All columns in the order in which they are written. Readers go by the heads.
        pub const COLUMNS: &[SecondsColumn] = &[$(SecondsColumn {
            name: $name,
            get: |$row| { let value = $get; value.map(|value| value.to_string()) },
            set: |$row, text| { *$set = number(text)?; Ok(()) },
        }),*];
    };
}

columns! {
    "second", row => Some(row.second), &mut row.second;
    "seconds_s", row => Some(row.seconds), &mut row.seconds;
    "events", row => Some(row.events), &mut row.events;
    "statements", row => Some(row.statements), &mut row.statements;
    "errors", row => Some(row.errors), &mut row.errors;
    "p50_us", row => Some(row.p50_us), &mut row.p50_us;
    "p95_us", row => Some(row.p95_us), &mut row.p95_us;
    "p99_us", row => Some(row.p99_us), &mut row.p99_us;
    "max_us", row => Some(row.max_us), &mut row.max_us;
    "sampled_s", row => usage(row).map(|u| u.seconds), &mut usage_mut(row).seconds;
    "cpus", row => host(row).map(|h| h.cpus), &mut host_mut(row).cpus;
    "user_s", row => host(row).map(|h| h.user), &mut host_mut(row).user;
    "nice_s", row => host(row).map(|h| h.nice), &mut host_mut(row).nice;
    "system_s", row => host(row).map(|h| h.system), &mut host_mut(row).system;
    "idle_s", row => host(row).map(|h| h.idle), &mut host_mut(row).idle;
    "iowait_s", row => host(row).map(|h| h.iowait), &mut host_mut(row).iowait;
    "steal_s", row => host(row).map(|h| h.steal), &mut host_mut(row).steal;
    "context_switches", row => host(row).map(|h| h.context_switches),
        &mut host_mut(row).context_switches;
    "reads", row => disk(row).map(|d| d.reads), &mut disk_mut(row).reads;
    "read_kb", row => disk(row).map(|d| d.read_kb), &mut disk_mut(row).read_kb;
    "writes", row => disk(row).map(|d| d.writes), &mut disk_mut(row).writes;
    "write_kb", row => disk(row).map(|d| d.write_kb), &mut disk_mut(row).write_kb;
    "disk_busy_ms", row => disk(row).map(|d| d.busy_ms), &mut disk_mut(row).busy_ms;
    "disk_read_ms", row => disk(row).map(|d| d.read_ms), &mut disk_mut(row).read_ms;
    "disk_write_ms", row => disk(row).map(|d| d.write_ms), &mut disk_mut(row).write_ms;
    "server_user_us", row => server(row).map(|c| c.user_us), &mut server_mut(row).user_us;
    "server_system_us", row => server(row).map(|c| c.system_us), &mut server_mut(row).system_us;
    "server_rss_bytes", row => usage(row).and_then(|u| u.server_rss_bytes),
        usage_mut(row).server_rss_bytes.get_or_insert_default();
    "spinner_user_us", row => usage(row).map(|u| u.spinner_cpu.user_us),
        &mut usage_mut(row).spinner_cpu.user_us;
    "spinner_system_us", row => usage(row).map(|u| u.spinner_cpu.system_us),
        &mut usage_mut(row).spinner_cpu.system_us;
}

fn usage(row: &Second) -> Option<&Usage> {
    row.usage.as_ref()
}

fn usage_mut(row: &mut Second) -> &mut Usage {
    row.usage.get_or_insert_default()
}

fn host(row: &Second) -> Option<&HostUsage> {
    // Without CPUs nothing was read: targets took turns.
    usage(row).map(|usage| &usage.host).filter(|host| host.cpus > 0)
}

fn host_mut(row: &mut Second) -> &mut HostUsage {
    &mut usage_mut(row).host
}

fn disk(row: &Second) -> Option<&DiskUsage> {
    usage(row).and_then(|usage| usage.disk.as_ref())
}

fn disk_mut(row: &mut Second) -> &mut DiskUsage {
    usage_mut(row).disk.get_or_insert_default()
}

fn server(row: &Second) -> Option<&CpuTime> {
    usage(row).and_then(|usage| usage.server_cpu.as_ref())
}

fn server_mut(row: &mut Second) -> &mut CpuTime {
    usage_mut(row).server_cpu.get_or_insert_default()
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is not a valid number for this column"))
}

/// The whole file. No value of it needs quotes.
pub(super) fn seconds_csv(rows: &[Second]) -> String {
    let own = || rows.iter().take(1).flat_map(|row| row.extra.keys());
    let heads = COLUMNS.iter().map(|column| column.name).chain(own().map(String::as_str));
    let mut csv = heads.collect::<Vec<_>>().join(",");
    csv.push('\n');
    for row in rows {
        for (index, column) in COLUMNS.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            // Writing to a string cannot fail.
            let _ = write!(csv, "{comma}{}", (column.get)(row).unwrap_or_default());
        }
        for name in own() {
            let value = row.extra.get(name).map(f64::to_string).unwrap_or_default();
            let _ = write!(csv, ",{value}");
        }
        csv.push('\n');
    }
    csv
}

/// Reads `steps/NN-NAME.csv`. Columns are found by their heads; columns that only some benchmarks
/// have go into [`Second::extra`], and a column that is missing leaves its values at zero or
/// `None`. The maps `sources` and `missing` of a second's usage are not in the file: the step's
/// record has them.
pub fn read_seconds(path: &Path) -> Result<Vec<Second>, ResultsError> {
    let text = read::text(path)?;
    let mut lines = text.lines();
    let heads: Vec<(&str, Option<&SecondsColumn>)> = lines
        .next()
        .unwrap_or("")
        .split(',')
        .map(|head| (head, COLUMNS.iter().find(|column| column.name == head)))
        .collect();
    let malformed =
        |line: usize, field: Option<&str>, why| ResultsError::malformed(path, line, field, why);
    if !heads.iter().any(|(head, _)| *head == "second") {
        return Err(malformed(1, Some("second"), "the column is missing".to_owned()));
    }
    let mut rows = Vec::new();
    for (index, line) in lines.enumerate() {
        let line_number = index + 2;
        let cells: Vec<&str> = line.split(',').collect();
        if cells.len() != heads.len() {
            let why = format!("{} values for {} columns", cells.len(), heads.len());
            return Err(malformed(line_number, None, why));
        }
        let mut row = Second::default();
        for ((head, column), cell) in heads.iter().zip(cells).filter(|(_, cell)| !cell.is_empty()) {
            let set = match column {
                Some(column) => (column.set)(&mut row, cell),
                None => number(cell).map(|value| {
                    row.extra.insert((*head).to_owned(), value);
                }),
            };
            set.map_err(|why| malformed(line_number, Some(head), why))?;
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Reads the seconds of a step of a run.
pub fn seconds_of(run: &Run, step: &StepRecord) -> Result<Vec<Second>, ResultsError> {
    let name = format!("{:02}-{}.csv", step.index, step.name);
    read_seconds(&Path::new(&run.folder).join("steps").join(name))
}

// `steps/NN-NAME.counters.csv`: one row per counter of the DBMS that moved during a step.

const HEAD: &str = "counter,before,after";

/// The end of the names of such files.
pub(super) const SUFFIX: &str = ".counters.csv";

/// No DBMS has a comma or a line end in the name of a counter; it would be a space.
pub(super) fn counters_csv(counters: &[Counter]) -> String {
    let mut text = format!("{HEAD}\n");
    for Counter { name, before, after } in counters {
        let name = name.replace([',', '\n', '\r'], " ");
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name},{before},{after}");
    }
    text
}

/// The counters of a step; none where it has no such file.
pub fn counters_of(run: &Run, step: &StepRecord) -> Result<Vec<Counter>, ResultsError> {
    let mut counters = Vec::new();
    each_counter(run, step, &mut |name, before, after| {
        counters.push(Counter { name: name.to_owned(), before, after });
    })?;
    Ok(counters)
}

/// As [`counters_of`], for reports over many runs: calls `take` with the name of each counter and
/// its values before and after the step, and makes no list of them.
pub fn each_counter(
    run: &Run,
    step: &StepRecord,
    take: &mut dyn FnMut(&str, f64, f64),
) -> Result<(), ResultsError> {
    if !run.has_counters {
        return Ok(());
    }
    let path = format!("{}/steps/{:02}-{}{SUFFIX}", run.folder, step.index, step.name);
    let path = Path::new(&path);
    let each = |text: &str| {
        for (line, row) in (1..).zip(text.lines()).skip(1) {
            let (name, before, after) = counter(row).ok_or_else(|| {
                let why = format!("`{row}` is no counter with two numbers");
                ResultsError::malformed(path, line, None, why)
            })?;
            take(name, before, after);
        }
        Ok(())
    };
    read::with_text(path, each)?.unwrap_or(Ok(()))
}

pub(super) fn counter(row: &str) -> Option<(&str, f64, f64)> {
    let mut cells = row.split(',');
    let name = cells.next()?;
    let mut number = || cells.next()?.parse::<f64>().ok().filter(|number| number.is_finite());
    Some((name, number()?, number()?))
}

// The settings that a server said it had, all defaults included: files in `logs/` of a run.

/// One of these is in `logs/`, by DBMS. Their first two columns are name and value, under a head.
const FILES: [&str; 3] = ["pg_settings.tsv", "variables.tsv", "pragmas.tsv"];

/// The options of RocksDB, as the library writes them.
const OPTIONS: &str = "rocksdb-options.ini";

/// Name → value of the settings that the DBMS of a run had; nothing where none were kept.
pub fn settings_of(run: &Run) -> Result<BTreeMap<String, String>, ResultsError> {
    let logs = Path::new(&run.folder).join("logs");
    let options = logs.join(OPTIONS);
    if options.is_file() {
        return Ok(of_sections(&read::text(&options)?));
    }
    let found = FILES.iter().map(|name| logs.join(name)).find(|path| path.is_file());
    match found {
        Some(path) => Ok(settings(&read::text(&path)?)),
        None => Ok(BTreeMap::new()),
    }
}

fn settings(text: &str) -> BTreeMap<String, String> {
    let row = |line: &str| {
        let mut cells = line.split('\t');
        let name = cells.next().filter(|name| !name.is_empty())?;
        Some((name.to_owned(), cells.next().unwrap_or_default().to_owned()))
    };
    text.lines().skip(1).filter_map(row).collect()
}

/// Options by section; those of tables have the beginning that configs give them.
fn of_sections(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut prefix = "";
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            prefix = if section.starts_with("TableOptions") { "table." } else { "" };
        } else if let Some((name, value)) = line.split_once('=') {
            found.insert(format!("{prefix}{name}"), value.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn check_round_trip(rows: &[Second]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("01-x.csv");
        std::fs::write(&path, seconds_csv(rows)).unwrap();
        assert_eq!(read_seconds(&path).unwrap(), rows);
    }

    fn sampled() -> Usage {
        Usage {
            seconds: 0.1 + 0.2,
            server_cpu: Some(CpuTime { user_us: 1.5, system_us: 1e-7 }),
            server_rss_bytes: Some(u64::MAX),
            host: HostUsage { cpus: 2, user: 1.0 / 3.0, steal: 0.01, ..HostUsage::default() },
            disk: Some(DiskUsage { reads: 3, read_kb: 12.5, ..DiskUsage::default() }),
            spinner_cpu: CpuTime { user_us: 7.0, system_us: 0.0 },
            ..Usage::default()
        }
    }

    #[test]
    fn seconds_come_back_bit_for_bit() {
        let first = Second { second: 1, seconds: 1.0000001, events: 5, ..Second::default() };
        let bare = Usage { server_cpu: None, server_rss_bytes: None, disk: None, ..sampled() };
        check_round_trip(&[
            Second { usage: Some(sampled()), ..first.clone() },
            Second { second: 2, usage: Some(bare), ..first.clone() },
            Second { second: 3, usage: None, ..first.clone() },
        ]);
        let extra = |value| BTreeMap::from([("inserts".to_owned(), value)]);
        check_round_trip(&[
            Second { extra: extra(1.5), ..first.clone() },
            Second { second: 2, extra: extra(0.0), ..first },
        ]);
        check_round_trip(&[]);
    }

    fn check_refused(csv: &str, expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("01-x.csv");
        std::fs::write(&path, csv).unwrap();
        let text = read_seconds(&path).unwrap_err().to_string();
        assert!(text.contains("01-x.csv") && text.contains(expected), "{text}");
    }

    #[test]
    fn faults_name_line_and_column() {
        check_refused("second,events\n1,2\n2,x\n", "line 3, field `events`");
        check_refused("second,events\n1\n", "line 2");
        check_refused("events\n1\n", "field `second`");
    }

    #[test]
    fn columns_of_a_benchmark_alone_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("01-x.csv");
        std::fs::write(&path, "new,second,events\n9,1,2\n").unwrap();
        let rows = read_seconds(&path).unwrap();
        assert_eq!((rows[0].second, rows[0].events), (1, 2));
        assert_eq!(rows[0].extra, BTreeMap::from([("new".to_owned(), 9.0)]));
    }

    #[test]
    fn options_of_tables_have_their_beginning() {
        let found = of_sections("# x\n[DBOptions]\n  a=1\n[TableOptions/B \"d\"]\n  a={b=2;c=3}\n");
        let found: Vec<(&str, &str)> =
            found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(found, [("a", "1"), ("table.a", "{b=2;c=3}")]);
    }

    #[test]
    fn names_and_values_are_the_first_columns() {
        let found = settings("name\tsetting\tunit\tsource\nwork_mem\t4096\tkB\tdefault\nempty\n");
        let found: Vec<(&str, &str)> =
            found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(found, [("empty", ""), ("work_mem", "4096")]);
    }
}
