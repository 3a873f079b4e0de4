//! The core workloads of YCSB as scripts of statements.

use rqps_model::benchmark::{Group, OwnParameters, Phase, RateUnit, Step, StepTurns, Workload};
use rqps_model::dialect::{Dialect, Placeholder};
use rqps_model::script::{Distribution, Fragment, Operation, Parameter, Script, ScriptEvent};
use rqps_model::value_source::{Freshness, KeyChoice, SourceValues, ValueSource, ValueSpread};
use rqps_model::ycsb::{YcsbKeys, YcsbShape, YcsbWorkload};

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
