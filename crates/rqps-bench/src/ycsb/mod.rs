//! YCSB's core workloads over SQL: one table, operations on single records and scans.

mod steps;
#[cfg(test)]
mod tests;

use std::io::Write;

use self::steps::{KEY_PREFIX, TABLE, columns, shape};
use crate::spec::{BenchmarkSpec, CliContext, DataSize, OwnWords, StepSet};
use rqps_driver::part::{DriverPart, FieldRow, PartRows};
use rqps_driver::request::{DriverRequest, PartLoad, PartTable, RequestBody};
use rqps_driver::workload::ScalePreset;
use rqps_driver::workload::settings::{Settings, choice, count, own_settings};
use rqps_model::benchmark::{BenchmarkParameters, Workload};
use rqps_model::datagen::distribution::{key_hash, printable};
use rqps_model::datagen::rng::StreamKey;
use rqps_model::dialect::Dialect;
use rqps_model::sql_name::Identifier;
use rqps_model::ycsb::{YcsbKeys, YcsbShape, YcsbWorkload};
use rqps_report::Sections;

/// Sizes are numbers of records.
const SIZES: [ScalePreset; 3] = [
    ScalePreset { name: "quick", size: 20_000, clients: 2, seconds: 2.0, warmup_seconds: 0.5 },
    ScalePreset {
        name: "standard",
        size: 1_000_000,
        clients: 4,
        seconds: 30.0,
        warmup_seconds: 3.0,
    },
    ScalePreset {
        name: "full",
        size: 10_000_000,
        clients: 8,
        seconds: 300.0,
        warmup_seconds: 10.0,
    },
];

/// The row of the benchmark.
pub static SPEC: BenchmarkSpec = BenchmarkSpec {
    name: "ycsb",
    workload: |name| {
        let scale = ScalePreset::named(&SIZES, name)?;
        let shape = BenchmarkParameters::Ycsb(YcsbShape {
            workloads: YcsbWorkload::ALL.to_vec(),
            fields: 10,
            field_bytes: 100,
            scan_rows: 100,
            keys: None,
        });
        let workload = Workload { rows: scale.size.into(), ..scale.workload(shape) };
        Ok((workload, StepSet::default()))
    },
    words: Some(OwnWords { take, visits: |_| false, writes: |_| Vec::new() }),
    set: |workload, said| SETTINGS.set(workload, said),
    phases: |dialect, _, workload| steps::phases(dialect, workload),
    placement: None,
    load: Some(load),
    driver: DriverPart { benchmark: "ycsb", part_rows: Some(part_rows), ..DriverPart::NONE },
    table_name: steps::TABLE,
    names_made: |_, _| vec![steps::TABLE.to_owned()],
    size: data_size,
    sections: Sections { workload: workload_line, ..Sections::NONE },
    ..BenchmarkSpec::PLAIN
};

fn workload_line(workload: &Workload, cache: &str) -> Option<String> {
    let BenchmarkParameters::Ycsb(shape) = &workload.shape else { return None };
    let (fields, bytes) = (shape.fields, shape.field_bytes);
    let data = workload.data_text();
    let clients = workload.clients_text();
    Some(format!(
        "core workloads of YCSB, by rqps over SQL; {data} of {fields} fields of {bytes} bytes, \
         {clients}, {} s reads, {} s writes, {} s warm-up, {cache}",
        workload.read_seconds, workload.write_seconds, workload.warmup_seconds
    ))
}

// Settings of YCSB: the core workloads, and `key=value`.

own_settings! { YcsbShape:
    "fields", |_, shape, value| shape.fields = count(value, 1, 1000)? as u32;
    "field_bytes", |_, shape, value| shape.field_bytes = count(value, 1, 65_535)? as u32;
    "scan_rows", |_, shape, value| shape.scan_rows = count(value, 1, 1_000_000)? as u32;
    "keys", |_, shape, value| {
        let choices = [
            ("zipfian", YcsbKeys::Zipfian),
            ("uniform", YcsbKeys::Uniform),
            ("latest", YcsbKeys::Latest),
        ];
        shape.keys = Some(choice(value, &choices)?);
    };
}

const SETTINGS: Settings<YcsbShape> = Settings {
    benchmark: "ycsb",
    own: OWN,
    common: &[("records", "rows")],
    others: true,
    open: &[],
};

/// Bytes of a record beside its fields: the key twice, and overhead of pages and rows.
const RECORD_BYTES: u64 = 120;

/// Reads the letters of core workloads after `ycsb:`, in the order of their steps.
///
/// # Errors
///
/// An unknown or repeated letter.
pub(super) fn take(workload: &mut Workload, said: &CliContext<'_>) -> Result<(), String> {
    if let Some(option) = said.options.first() {
        return Err(format!(
            "run the benchmark `ycsb`: it takes no options after `--`, as `{option}`; see --set"
        ));
    }
    let mut chosen = Vec::new();
    let said = said.what.iter().filter(|words| !words.is_empty());
    for word in said.flat_map(|words| words.split(',')).map(str::trim) {
        let known = YcsbWorkload::ALL.into_iter().find(|known| known.letter() == word);
        let Some(known) = known else {
            let mut all = YcsbWorkload::ALL;
            all.sort_unstable();
            let all = all.map(YcsbWorkload::letter).join(", ");
            return Err(format!(
                "run the benchmark `ycsb`: it has no core workload `{word}`; it has {all}"
            ));
        };
        if chosen.contains(&known) {
            return Err(format!(
                "run the benchmark `ycsb`: name each core workload once; `{word}` is there twice"
            ));
        }
        chosen.push(known);
    }
    match &mut workload.shape {
        BenchmarkParameters::Ycsb(shape) if !chosen.is_empty() => shape.workloads = chosen,
        _ => {}
    }
    Ok(())
}

/// The size of the data.
pub(super) fn data_size(workload: &Workload) -> DataSize {
    let Some(shape) = steps::shape(workload) else { return DataSize::of_tables(workload, 0) };
    let record = u64::from(shape.fields) * (u64::from(shape.field_bytes) + 8) + RECORD_BYTES;
    let bytes = workload.rows * record * 3 / 2;
    DataSize { data_bytes: bytes as f64, cached_bytes: bytes }
}

// The load of the YCSB table.

/// Connections that load the table at the same time.
const PARALLEL: u32 = 4;
/// Records per part; a part is sorted in memory.
const RECORDS_PER_PART: u64 = 500_000;

/// The load for a workload.
pub(super) fn load(dialect: Dialect, workload: &Workload, engine: Option<&str>) -> RequestBody {
    let shape = shape(workload).cloned();
    let columns = shape.as_ref().map(columns).unwrap_or_default();
    let fields: String = columns.iter().skip(1).map(|field| format!(", {field} TEXT")).collect();
    let engine = match (dialect, engine) {
        (Dialect::Mysql, Some(engine)) => {
            format!(" ENGINE = {}", Identifier::plain(dialect, engine))
        }
        _ => String::new(),
    };
    // Postgres keeps rows where they arrive and builds its index faster afterwards.
    let (key, finish) = match dialect {
        Dialect::Postgres => {
            let key = format!("ALTER TABLE {TABLE} ADD PRIMARY KEY (ycsb_key)");
            ("NOT NULL", vec![vec![key]])
        }
        _ => ("PRIMARY KEY", Vec::new()),
    };
    let parts = match dialect {
        Dialect::Sqlite => 1,
        _ => u64::from(PARALLEL).max(workload.rows.div_ceil(RECORDS_PER_PART)),
    };
    let task = PartLoad {
        rows_of: "ycsb".to_owned(),
        shape: serde_json::to_value(&shape).unwrap_or_default(),
        setup: vec![
            format!("DROP TABLE IF EXISTS {TABLE}"),
            format!("CREATE TABLE {TABLE} (ycsb_key VARCHAR(255) {key}{fields}){engine}"),
        ],
        tables: vec![PartTable { name: TABLE.to_owned(), columns }],
        parts: parts.clamp(1, workload.rows.max(1)) as u32,
        rows: workload.rows,
        parallel: PARALLEL,
        finish,
    };
    RequestBody::LoadParts(task)
}

/// Opens the records of a part.
pub(super) fn part_rows(
    request: &DriverRequest,
    task: &PartLoad,
    part: u32,
    _: usize,
) -> Result<Option<Box<dyn PartRows>>, String> {
    let shape: YcsbShape = serde_json::from_value(task.shape.clone())
        .map_err(|error| format!("failed to read the shape of the load: {error}"))?;
    let numbers: Box<dyn Iterator<Item = u64>> = match request.dialect {
        // InnoDB sorts by the key: a part is a range of keys in order.
        Dialect::Mysql => Box::new(in_order_of_keys(request.rows, part, task.parts).into_iter()),
        _ => {
            let bound = |part: u32| {
                (u128::from(request.rows) * u128::from(part) / u128::from(task.parts)) as u64
            };
            Box::new(bound(part)..bound(part + 1))
        }
    };
    let stream = StreamKey::new(request.seed, "ycsb");
    Ok(Some(Box::new(Records { shape, stream, numbers })))
}

/// The numbers of the records in one range of keys, in the order of keys as texts.
pub(super) fn in_order_of_keys(records: u64, part: u32, parts: u32) -> Vec<u64> {
    let is_of_part = |(place, _): &(u64, u64)| {
        // Nearly all hashes have the length of texts that begin with 1 to 9.
        const FIRST: u64 = 1_000_000_000_000_000_000;
        const WIDTH: u128 = 8_300_000_000_000_000_000;
        let share = u128::from(place.saturating_sub(FIRST)) * u128::from(parts) / WIDTH;
        share.min(u128::from(parts - 1)) == u128::from(part)
    };
    let place = |number| (place_of_text(key_hash(number)), number);
    let mut places: Vec<(u64, u64)> = (0..records).map(place).filter(is_of_part).collect();
    places.sort_unstable();
    places.into_iter().map(|(_, number)| number).collect()
}

/// A number that sorts like the digits of `hash` as text: extended with zeros to 19 digits.
fn place_of_text(hash: u64) -> u64 {
    let digits = hash.checked_ilog10().unwrap_or(0) + 1;
    match digits {
        1..=19 => hash * 10u64.pow(19 - digits),
        _ => hash,
    }
}

/// Records in the order of their numbers.
struct Records {
    shape: YcsbShape,
    stream: StreamKey,
    numbers: Box<dyn Iterator<Item = u64>>,
}

impl PartRows for Records {
    fn next(&mut self, row: &mut FieldRow) -> bool {
        let Some(number) = self.numbers.next() else { return false };
        row.written(|out| {
            out.extend_from_slice(KEY_PREFIX.as_bytes());
            // Writing to memory cannot fail.
            write!(out, "{}", key_hash(number)).unwrap_or(());
        });
        let mut rng = self.stream.at(number);
        for _ in 0..self.shape.fields {
            row.written(|out| {
                let from = out.len();
                out.resize(from + self.shape.field_bytes as usize, 0);
                printable(&mut rng, &mut out[from..]);
            });
        }
        true
    }
}
