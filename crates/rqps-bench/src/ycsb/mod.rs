//! YCSB's core workloads over SQL: one table, operations on single records and scans.

#[cfg(test)]
mod tests;

use std::io::Write;

use crate::spec::{BenchmarkSpec, CliContext, DataSize, OwnWords, StepSet};
use rqps_driver::part::{DriverPart, FieldRow, PartRows};
use rqps_driver::request::{DriverRequest, PartLoad, PartTable, RequestBody};
use rqps_driver::workload::{ScalePreset, Settings, choice, count, own_settings};
use rqps_model::benchmark::{
    BenchmarkParameters, Group, OwnParameters, Phase, RateUnit, Step, StepTurns, Workload,
};
use rqps_model::datagen::distribution::{key_hash, printable};
use rqps_model::datagen::rng::StreamKey;
use rqps_model::dialect::{Dialect, Placeholder};
use rqps_model::script::{
    Distribution, Fragment, Freshness, KeyChoice, Operation, Parameter, Script, ScriptEvent,
    SourceValues, ValueSource, ValueSpread,
};
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
    words: Some(OwnWords { take, visits: |_| false, brings: |_| false, writes: |_| Vec::new() }),
    set: |workload, said| SETTINGS.set(workload, said),
    phases: |dialect, _, workload| phases(dialect, workload),
    placement: None,
    load: Some(load),
    driver: DriverPart { benchmark: "ycsb", part_rows: Some(part_rows), ..DriverPart::NONE },
    table_name: TABLE,
    names_made: |_, _| vec![TABLE.to_owned()],
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
        return Err(format!("it takes no options after `--`, as `{option}`; see --set"));
    }
    let mut chosen = Vec::new();
    let said = said.what.iter().filter(|words| !words.is_empty());
    for word in said.flat_map(|words| words.split(',')).map(str::trim) {
        let known = YcsbWorkload::ALL.into_iter().find(|known| known.letter() == word);
        let Some(known) = known else {
            let mut all = YcsbWorkload::ALL;
            all.sort_unstable();
            let all = all.map(YcsbWorkload::letter).join(", ");
            return Err(format!("it has no core workload `{word}`; it has {all}"));
        };
        if chosen.contains(&known) {
            return Err(format!("name each core workload once; `{word}` is there twice"));
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
    let Some(shape) = shape(workload) else { return DataSize::of_tables(workload, 0) };
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

// The core workloads of YCSB as scripts of statements.

/// The table.
pub(super) const TABLE: &str = "usertable";
/// The prefix of keys, before the hash.
pub(super) const KEY_PREFIX: &str = "user";
/// θ of the Zipf distribution of records.
const EXPONENT: f64 = 0.99;

/// Indexes of sources of values.
const NEW_KEY: u32 = 0;
const ALL_FIELDS: u32 = 1;
const KEY: u32 = 2;
const FIELD: u32 = 3;
const SCAN_ROWS: u32 = 4;

/// The parameters of this benchmark; `None` for another workload.
pub(super) fn shape(workload: &Workload) -> Option<&YcsbShape> {
    OwnParameters::of(&workload.shape)
}

/// All phases after the load. A workload with scans starts from the loaded records again, because
/// its cost would depend on the number of inserted ones.
pub(super) fn phases(dialect: Dialect, workload: &Workload) -> Vec<Phase> {
    let Some(shape) = shape(workload) else { return Vec::new() };
    let (mut phases, mut has_inserted) = (Vec::new(), false);
    for core in &shape.workloads {
        if *core == YcsbWorkload::E && has_inserted {
            phases.push(Phase::Restore);
        }
        has_inserted |= core.inserts();
        phases.push(Phase::Measure(Box::new(step(dialect, workload, shape, *core))));
    }
    phases
}

fn step(dialect: Dialect, workload: &Workload, shape: &YcsbShape, core: YcsbWorkload) -> Step {
    let (group, seconds) = match core {
        YcsbWorkload::C => (Group::Point, workload.read_seconds),
        YcsbWorkload::E => (Group::Range, workload.read_seconds),
        _ => (Group::Write, workload.write_seconds),
    };
    Step {
        seconds,
        warmup_seconds: workload.warmup_seconds,
        detail: format!(
            "core workload {} of YCSB, by rqps over SQL: {}",
            core.letter(),
            mix(core, shape)
        ),
        turns: StepTurns::Clients,
        only_reads: core == YcsbWorkload::C,
        ..Step::new(
            core.letter(),
            group,
            RateUnit::Operations,
            script(dialect, workload, shape, core),
        )
    }
}

fn mix(core: YcsbWorkload, shape: &YcsbShape) -> String {
    match core {
        YcsbWorkload::A => "50 % read, 50 % update".to_owned(),
        YcsbWorkload::B => "95 % read, 5 % update".to_owned(),
        YcsbWorkload::C => "read".to_owned(),
        YcsbWorkload::D => "95 % read of the latest, 5 % insert".to_owned(),
        YcsbWorkload::E => {
            format!("95 % scan of 1 to {} rows, 5 % insert", shape.scan_rows)
        }
        YcsbWorkload::F => "50 % read, 50 % read and update".to_owned(),
    }
}

fn script(dialect: Dialect, workload: &Workload, shape: &YcsbShape, core: YcsbWorkload) -> Script {
    let statements = Statements { dialect, shape };
    let (main, other) = match core {
        YcsbWorkload::A | YcsbWorkload::F => (50, 50),
        YcsbWorkload::B | YcsbWorkload::D | YcsbWorkload::E => (95, 5),
        YcsbWorkload::C => (100, 0),
    };
    // A statement per field, all with the same weight.
    let fields = shape.fields;
    let mut events = vec![match core {
        YcsbWorkload::E => statements.scan(main),
        YcsbWorkload::A | YcsbWorkload::B | YcsbWorkload::F => statements.read(main * fields),
        _ => statements.read(main),
    }];
    match core {
        YcsbWorkload::A | YcsbWorkload::B => {
            events.extend((0..fields).map(|field| statements.update(field, other, false)));
        }
        YcsbWorkload::F => {
            events.extend((0..fields).map(|field| statements.update(field, other, true)));
        }
        YcsbWorkload::D | YcsbWorkload::E => events.push(statements.insert(other)),
        YcsbWorkload::C => {}
    }
    Script {
        events,
        distribution: Distribution::Uniform,
        sources: sources(workload, shape, core),
        init: Vec::new(),
        watched: false,
    }
}

fn sources(workload: &Workload, shape: &YcsbShape, core: YcsbWorkload) -> Vec<ValueSource> {
    let loaded = workload.rows;
    // Steps on one copy insert different records: e after d, and each count of clients.
    let apart = u64::from(workload.clients - 1) << 40 | u64::from(core == YcsbWorkload::E) << 60;
    let keys = shape.keys.unwrap_or(match core {
        YcsbWorkload::D => YcsbKeys::Latest,
        _ => YcsbKeys::Zipfian,
    });
    let records = match keys {
        YcsbKeys::Zipfian => KeyChoice::HashedZipfian { loaded },
        YcsbKeys::Uniform => KeyChoice::Uniform { loaded },
        YcsbKeys::Latest => KeyChoice::Latest { loaded, inserts: NEW_KEY, exponent: EXPONENT },
    };
    let key = |records| SourceValues::HashedKey { prefix: KEY_PREFIX.to_owned(), records };
    let field = SourceValues::Printable { bytes: shape.field_bytes };
    let rows = SourceValues::Whole {
        from: 1,
        to: i64::from(shape.scan_rows),
        spread: ValueSpread::Uniform,
    };
    // Sources in the order of their indexes.
    [
        ("new key", key(KeyChoice::New { from: loaded + apart }), 1),
        ("fields", field.clone(), shape.fields),
        ("key", key(records), 1),
        ("field", field, 1),
        ("rows", rows, 1),
    ]
    .into_iter()
    .map(|(name, values, count)| ValueSource {
        name: name.to_owned(),
        values,
        freshness: Freshness::Event,
        count,
        distinct: false,
        nulls: 0.0,
    })
    .collect()
}

/// Makes statements for a dialect.
struct Statements<'a> {
    dialect: Dialect,
    shape: &'a YcsbShape,
}

impl Statements<'_> {
    fn read(&self, weight: u32) -> ScriptEvent {
        event(weight, &[KEY], vec![self.read_one()])
    }

    fn read_one(&self) -> Operation {
        let sql = [Piece::Sql("SELECT * FROM usertable WHERE ycsb_key = "), Piece::Value(KEY)];
        Operation { expect: Some([1, 1]), ..self.operation("read", &sql) }
    }

    /// An update of one field, alone or after reading the record.
    fn update(&self, field: u32, weight: u32, after_read: bool) -> ScriptEvent {
        let begin = format!("UPDATE usertable SET field{field} = ");
        let sql = [
            Piece::Sql(&begin),
            Piece::Value(FIELD),
            Piece::Sql(" WHERE ycsb_key = "),
            Piece::Value(KEY),
        ];
        let update = self.operation("update", &sql);
        let operations = if after_read { vec![self.read_one(), update] } else { vec![update] };
        event(weight, &[KEY, FIELD], operations)
    }

    fn scan(&self, weight: u32) -> ScriptEvent {
        let sql = [
            Piece::Sql("SELECT * FROM usertable WHERE ycsb_key >= "),
            Piece::Value(KEY),
            Piece::Sql(" ORDER BY ycsb_key LIMIT "),
            Piece::Value(SCAN_ROWS),
        ];
        let expect = Some([1, u64::from(self.shape.scan_rows)]);
        let scan = Operation { expect, ..self.operation("scan", &sql) };
        event(weight, &[KEY, SCAN_ROWS], vec![scan])
    }

    fn insert(&self, weight: u32) -> ScriptEvent {
        let begin = format!("INSERT INTO usertable ({}) VALUES (", columns(self.shape).join(", "));
        let mut sql = vec![Piece::Sql(&begin), Piece::Value(NEW_KEY)];
        for field in 0..self.shape.fields {
            sql.extend([Piece::Sql(", "), Piece::Field(field)]);
        }
        sql.push(Piece::Sql(")"));
        event(weight, &[NEW_KEY, ALL_FIELDS], vec![self.operation("insert", &sql)])
    }

    fn operation(&self, kind: &str, pieces: &[Piece<'_>]) -> Operation {
        let numbered = self.dialect.spec().placeholder == Placeholder::Numbered;
        let mut operation = Operation { kind: kind.to_owned(), ..Operation::PLAIN };
        for piece in pieces {
            let parameter = match *piece {
                Piece::Sql(sql) => {
                    operation.sql.push_str(sql);
                    operation.fragments.push(Fragment::Sql(sql.to_owned()));
                    continue;
                }
                Piece::Field(field) => Parameter::Value { slot: 1 + field, whole: false },
                Piece::Value(source) => {
                    // All fields take as many slots as there are fields.
                    let slot = if source < KEY { source } else { source + self.shape.fields - 1 };
                    Parameter::Value { slot, whole: source == SCAN_ROWS }
                }
            };
            let index = operation.parameters.len();
            operation.parameters.push(parameter);
            operation.fragments.push(Fragment::Literal(index as u32));
            if numbered {
                operation.sql.push_str(&format!("${}", index + 1))
            } else {
                operation.sql.push('?')
            }
        }
        operation
    }
}

/// A piece of a statement.
#[derive(Clone, Copy)]
enum Piece<'a> {
    Sql(&'a str),
    /// The value of a source.
    Value(u32),
    /// One value of the source of all fields.
    Field(u32),
}

fn event(weight: u32, draws: &[u32], operations: Vec<Operation>) -> ScriptEvent {
    ScriptEvent {
        weight,
        begin: Vec::new(),
        operations,
        draws: draws.to_vec(),
        retry: Vec::new(),
        ignore: Vec::new(),
    }
}

/// The columns of the table.
pub(super) fn columns(shape: &YcsbShape) -> Vec<String> {
    let fields = (0..shape.fields).map(|field| format!("field{field}"));
    std::iter::once("ycsb_key".to_owned()).chain(fields).collect()
}
