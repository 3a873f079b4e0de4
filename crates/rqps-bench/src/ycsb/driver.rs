//! The load of the YCSB table.

use std::io::Write;

use crate::ycsb::steps::{KEY_PREFIX, TABLE, columns, shape};
use rqps_driver::part::{FieldRow, PartRows};
use rqps_driver::request::{DriverRequest, PartLoad, PartTable, RequestBody};
use rqps_model::benchmark::Workload;
use rqps_model::datagen::hashed::{key_hash, printable};
use rqps_model::datagen::rng::StreamKey;
use rqps_model::dialect::Dialect;
use rqps_model::sql_name::Identifier;
use rqps_model::ycsb::YcsbShape;

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
