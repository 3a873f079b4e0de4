//! Runs pgbench scripts: the interpreter of a client, and the standard tables.
//!
//! Creates and fills the standard tables like `pgbench -i`.

mod client;
#[doc(hidden)]
pub mod evaluate;

use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

use crate::pgbench::driver::client::ScriptClient;
use crate::pgbench::schema::{
    ACCOUNTS, BRANCHES, FILLED, FilledTable, InitStep, RowForm, TABLES, TELLERS, init,
};
use rqps_driver::Stop;
use rqps_driver::attempt::ClientWatch;
use rqps_driver::connection::{Connection, Connector};
use rqps_driver::control_channel::{ControlChannel, DriverEvent};
use rqps_driver::loaders::{COPY_BYTES, speed_up};
use rqps_driver::request::{DriverRequest, RequestBody, StepRequest};
use rqps_driver::script::sources::SharedSources;
use rqps_driver::step::{self, Clients, MakeEvent};
use rqps_host::tree;
use rqps_model::benchmark::{BenchmarkParameters, LoadBody, Workload};
use rqps_model::datagen::rng::Xoroshiro128;
use rqps_model::dialect::Dialect;
use rqps_model::pgbench::{PgbenchLoad, PgbenchProtocol, PgbenchWork};
use rqps_model::script::{Distribution, Fragment, Operation, Protocol, Script};
use rqps_text::pgbench::PgbenchValue::{self, Integer};
use rqps_text::pgbench::{PgbenchAction, PgbenchProgram, PgbenchSql, SqlPiece, VariableNames};

/// Rows per INSERT.
const ROWS: u64 = 1000;

/// INSERTs per transaction.
const INSERTS: u64 = 50;

/// The first Postgres version for which pgbench asks COPY to freeze rows.
const FREEZES: u32 = 14;

/// The load for a workload.
pub(crate) fn load(_: Dialect, workload: &Workload, storage_engine: Option<&str>) -> RequestBody {
    let load = match &workload.shape {
        BenchmarkParameters::Pgbench(shape) => PgbenchLoad {
            scale: shape.scale,
            tables: shape.tables.clone(),
            storage_engine: storage_engine.map(str::to_owned),
        },
        _ => PgbenchLoad::default(),
    };
    RequestBody::LoadOwn(LoadBody::Pgbench(load))
}

/// Carries out a load.
pub(crate) fn own_load(
    request: &DriverRequest,
    load: &LoadBody,
    control: &mut ControlChannel<&mut dyn Write>,
) -> Result<(), Stop> {
    let LoadBody::Pgbench(load) = load else {
        return Err(Stop::Fault("failed to load: it is no load of pgbench".to_owned()));
    };
    let (begun, cpu) = (Instant::now(), tree::own_cpu());
    let rows =
        if load.tables.made { (BRANCHES + TELLERS + ACCOUNTS) * u64::from(load.scale) } else { 0 };
    let mut load_seconds = 0.0;
    if load.tables.made {
        let connector = Connector::new(request)?;
        let mut session = connector.open(0)?;
        speed_up(request.dialect, &mut session)?;
        for step in init(request.dialect, load) {
            carry_out(&step, (request, load), (&connector, &mut session), control)?;
            if step == InitStep::Fill {
                load_seconds = begun.elapsed().as_secs_f64();
            }
        }
    }
    let all = begun.elapsed().as_secs_f64();
    if load_seconds == 0.0 {
        load_seconds = all;
    }
    let index_seconds = all - load_seconds;
    let client_cpu = tree::own_cpu().since(cpu);
    control.send(&DriverEvent::Loaded { rows, load_seconds, index_seconds, client_cpu })?;
    Ok(())
}

fn carry_out(
    step: &InitStep,
    (request, load): (&DriverRequest, &PgbenchLoad),
    (connector, session): (&Connector, &mut Connection),
    control: &mut ControlChannel<&mut dyn Write>,
) -> Result<(), Stop> {
    let fault = |sql: &str, error| Stop::Fault(format!("failed to execute {sql:?}: {error}"));
    match step {
        InitStep::Make(sql) => {
            connector.make(session, sql).map_err(|error| fault(sql, error))?;
        }
        // MySQL's ANALYZE returns rows.
        InitStep::Run(sql) if request.dialect == Dialect::Mysql => {
            session.rows(sql).map_err(|error| fault(sql, error))?;
        }
        InitStep::Run(sql) => {
            session.simple(sql).map_err(|error| fault(sql, error))?;
        }
        InitStep::Fill => {
            control
                .send(&DriverEvent::Loading { rows: 0, of: ACCOUNTS * u64::from(load.scale) })?;
            match request.dialect {
                Dialect::Postgres => copy_all(load, session)?,
                _ => insert_all(load, session, control)?,
            }
        }
    }
    Ok(())
}

fn execute(session: &mut Connection, sql: &str) -> Result<(), String> {
    let done = session.simple(sql).map(drop);
    done.map_err(|error| format!("failed to execute {sql:?}: {error}"))
}

/// Loads all rows in one transaction.
fn copy_all(load: &PgbenchLoad, session: &mut Connection) -> Result<(), String> {
    let server = session.postgres("copies rows").map_err(|error| error.to_string())?;
    let digits = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next().map(str::to_owned);
    let version = digits(server.server_version()).and_then(|number| number.parse().ok());
    let freezes = load.tables.partitions == 0 && version.unwrap_or(0) >= FREEZES;
    execute(session, "begin")?;
    execute(session, &format!("truncate table {}", TABLES.join(", ")))?;
    for table in &FILLED {
        // pgbench freezes the accounts: the only table with a filled filler.
        copy(session, table, freezes && table.has_filler, table.rows * u64::from(load.scale))?;
    }
    execute(session, "commit")
}

fn copy(
    session: &mut Connection,
    table: &FilledTable,
    freezes: bool,
    rows: u64,
) -> Result<(), String> {
    // With the filler, all columns have values.
    let columns = if table.has_filler { String::new() } else { format!(" ({})", table.columns) };
    let option = if freezes { " with (freeze on)" } else { "" };
    let sql = format!("copy {}{columns} from stdin{option}", table.name);
    let (mut next, mut text) = (1, String::new());
    let copied = session.copy_in(&sql, &mut |out| {
        text.clear();
        while next <= rows && text.len() < COPY_BYTES {
            table.write(&mut text, next, &RowForm::COPY);
            next += 1;
        }
        out.extend_from_slice(text.as_bytes());
        next <= rows
    });
    match copied {
        Ok(count) if count == rows => Ok(()),
        Ok(count) => Err(format!("{count} of {rows} rows arrived of {sql:?}")),
        Err(error) => Err(format!("failed to execute {sql:?}: {error}")),
    }
}

/// Loads all rows as multi-row INSERTs.
fn insert_all(
    load: &PgbenchLoad,
    session: &mut Connection,
    control: &mut ControlChannel<&mut dyn Write>,
) -> Result<(), Stop> {
    let of = ACCOUNTS * u64::from(load.scale);
    for table in &FILLED {
        let rows = table.rows * u64::from(load.scale);
        execute(session, "BEGIN")?;
        let (mut next, mut statements) = (1, 0);
        while next <= rows {
            let mut sql = format!("INSERT INTO {} ({}) VALUES ", table.name, table.columns);
            let last = rows.min(next + ROWS - 1);
            for id in next..=last {
                if id > next {
                    sql.push(',');
                }
                table.write(&mut sql, id, &RowForm::VALUES);
            }
            let sent = session.simple(&sql).map(drop);
            sent.map_err(|error| format!("failed to fill {}: {error}", table.name))?;
            next = last + 1;
            statements += 1;
            if statements % INSERTS == 0 {
                execute(session, "COMMIT")?;
                control.send(&DriverEvent::Loading { rows: last, of })?;
                execute(session, "BEGIN")?;
            }
        }
        execute(session, "COMMIT")?;
    }
    Ok(())
}

// Runs the scripts of a step, with one thread and one connection per client.

/// Statements that pgbench executes before it measures; failures are ignored.
const BEFORE: [&str; 3] =
    ["vacuum pgbench_branches", "vacuum pgbench_tellers", "truncate pgbench_history"];

/// The loop of the benchmark's steps.
pub(crate) fn step_loop(
    request: &DriverRequest,
    task: &StepRequest,
    control: &mut ControlChannel<&mut dyn Write>,
) -> Result<(), Stop> {
    let task: StepRequest<PgbenchWork> = task.own()?;
    let connector = Connector::new(request)?;
    // Once, on the first host; clients begin after that.
    if task.work.vacuum && request.is_first() {
        clean(request.dialect, &connector)?;
    }
    let clients_of_all = request.all_clients(task.clients);
    let scripts = StepScripts::read(&task.work, request.dialect, request.seed, clients_of_all)?;
    let scripts = Arc::new(scripts);
    let again = task.work.connect.then(|| connector.clone());
    let shared = Arc::clone(&scripts);
    let make: MakeEvent<ScriptClient> =
        Box::new(move |_, client, _| Ok(ScriptClient::new(&shared, client, again.clone())));
    let names: Vec<&str> = scripts.scripts.iter().map(|script| script.name.as_str()).collect();
    let watch = Some(ClientWatch::over(&task, &names.join(", ")));
    let mut clients = Clients { watch, ..Clients::new(connector, make) };
    if task.plans {
        let samples = samples(&task.work, request.dialect)?;
        let sources = SharedSources::open(&samples, clients_of_all)?;
        clients.explain = Some((samples, sources));
    }
    let mut outcome = step::measure(request, &task, clients, control)?;
    let clients = clients_of_all;
    outcome.facts.insert(
        "random numbers".to_owned(),
        format!("those of pgbench -c {clients} -j {clients} --random-seed={}", scripts.seed),
    );
    let each = outcome.statements as f64 / outcome.events.max(1) as f64;
    outcome.facts.insert("statements per transaction".to_owned(), format!("{each:.3}"));
    control.send(&DriverEvent::Measured(Box::new(outcome)))?;
    Ok(())
}

/// Vacuums the small tables and empties the history.
fn clean(dialect: Dialect, connector: &Connector) -> Result<(), String> {
    let mut session = connector.open(0)?;
    for sql in BEFORE {
        let sql = match (dialect, sql.strip_prefix("vacuum ")) {
            (Dialect::Postgres, _) => sql.to_owned(),
            (Dialect::Mysql, Some(table)) => format!("analyze table {table}"),
            (_, Some(table)) => format!("analyze {table}"),
            (Dialect::Mysql, None) => sql.to_owned(),
            (_, None) => "delete from pgbench_history".to_owned(),
        };
        if let Err(error) = session.rows(&sql)
            && error.code().is_none()
        {
            return Err(format!("failed to execute {sql:?}: {error}"));
        }
    }
    Ok(())
}

// The scripts of a step, read once for all clients, and the initial state of each client.

/// Mask of the seed: as many bits as the real program's option shows unambiguously.
const SEED: u64 = (1 << 31) - 1;

/// Shared by the clients.
pub(super) struct StepScripts {
    pub(super) scripts: Vec<CompiledScript>,
    /// Cumulative weights of the scripts.
    pub(super) sums: Vec<i64>,
    pub(super) names: VariableNames,
    pub(super) work: PgbenchWork,
    /// The number for `--random-seed` with which the real program draws the same values.
    pub(super) seed: u64,
    /// Generators by client: for functions, and for the choice of scripts.
    generators: Vec<[Xoroshiro128; 2]>,
    default_seed: i64,
}

/// A script.
pub(super) struct CompiledScript {
    pub(super) name: String,
    pub(super) program: PgbenchProgram,
    /// By command: the message with placeholders, if the protocol has them.
    pub(super) messages: Vec<Option<Message>>,
    /// By command: true for a statement that changes rows.
    pub(super) changes: Vec<bool>,
}

/// A message with separate values.
pub(super) struct Message {
    pub(super) sql: String,
    /// Variables by number, one per placeholder.
    pub(super) values: Vec<u32>,
}

impl StepScripts {
    /// Reads the scripts of a step for this number of clients.
    ///
    /// # Errors
    ///
    /// A script is invalid; a checked plan has none.
    pub(super) fn read(
        work: &PgbenchWork,
        dialect: Dialect,
        seed: u64,
        clients: u32,
    ) -> Result<StepScripts, String> {
        let mut names = VariableNames::default();
        let (mut scripts, mut sums, mut sum) = (Vec::new(), Vec::new(), 0);
        for script in &work.scripts {
            let program = PgbenchProgram::read(&script.text, &mut names)
                .map_err(|fault| format!("failed to read {}, {fault}", script.name))?;
            let message = |action: &PgbenchAction| match action {
                PgbenchAction::Sql(sql) if work.protocol != PgbenchProtocol::Simple => {
                    Some(Message::of(sql, dialect))
                }
                _ => None,
            };
            let messages = program.commands.iter().map(|one| message(&one.action)).collect();
            let changes = program.commands.iter().map(|one| changes_rows(&one.action)).collect();
            let name = script.name.clone();
            scripts.push(CompiledScript { name, program, messages, changes });
            sum += i64::from(script.weight);
            sums.push(sum);
        }
        let seed = seed & SEED;
        // Like pgbench with one thread per client.
        let mut base = Xoroshiro128::seeded(seed);
        let functions: Vec<Xoroshiro128> = (0..clients).map(|_| base.branch()).collect();
        let default_seed =
            if work.define.contains_key("default_seed") { 0 } else { base.next_u64() as i64 };
        let generators = functions.into_iter().map(|functions| {
            let choice = base.branch();
            // Draws that pgbench uses for its throttle and its samples.
            let _ = (base.next_u64(), base.next_u64());
            [functions, choice]
        });
        let generators = generators.collect();
        let work = work.clone();
        Ok(StepScripts { scripts, sums, names, work, seed, generators, default_seed })
    }

    /// The generators of a client: for functions, and for the choice of scripts.
    pub(super) fn generators(&self, client: u32) -> [Xoroshiro128; 2] {
        self.generators[client as usize]
    }

    /// The initial variables of a client.
    pub(super) fn variables(&self, client: u32) -> Variables {
        let mut variables = Variables::new(self.names.all().len());
        let own = [
            ("client_id", i64::from(client)),
            ("default_seed", self.default_seed),
            ("random_seed", self.seed as i64),
        ];
        for (name, value) in own {
            if let Some(number) = self.names.find(name) {
                variables.set(number, Integer(value));
            }
        }
        for (name, text) in &self.work.define {
            if let Some(number) = self.names.find(name) {
                variables.set_text(number, text.as_bytes());
            }
        }
        variables
    }
}

impl Message {
    fn of(sql: &PgbenchSql, dialect: Dialect) -> Message {
        let mut message = Message { sql: String::new(), values: Vec::new() };
        for piece in &sql.pieces {
            match piece {
                SqlPiece::Sql(text) => message.sql.push_str(text),
                SqlPiece::Variable(number) => {
                    message.values.push(*number);
                    match dialect {
                        Dialect::Postgres => {
                            message.sql.push_str(&format!("${}", message.values.len()));
                        }
                        _ => message.sql.push('?'),
                    }
                }
            }
        }
        message
    }
}

/// True for a statement that changes rows, by its first word.
fn changes_rows(action: &PgbenchAction) -> bool {
    let PgbenchAction::Sql(sql) = action else { return false };
    let first = sql.text.split(' ').next().unwrap_or_default();
    let words = ["INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE"];
    words.iter().any(|word| first.eq_ignore_ascii_case(word))
}

// Makes a sample of each statement for its query plan, the same on all targets.

/// Seed of the sample values.
const SAMPLE_SEED: u64 = 1;

/// First words of statements that a DBMS explains.
const EXPLAINED: [&str; 7] = ["SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "MERGE"];

/// The statements of all scripts and branches with values, except statements with values that come
/// from the server.
pub(super) fn samples(work: &PgbenchWork, dialect: Dialect) -> Result<Script, String> {
    let shared = Arc::new(StepScripts::read(work, dialect, SAMPLE_SEED, 1)?);
    let mut client = ScriptClient::new(&shared, 0, None);
    let mut operations: Vec<Operation> = Vec::new();
    for script in &shared.scripts {
        for command in &script.program.commands {
            match &command.action {
                PgbenchAction::Set { variable, value } => client.try_set(*variable, value),
                PgbenchAction::Sql(sql) => {
                    let first = sql.text.split(' ').next().unwrap_or_default().to_uppercase();
                    let Some(text) = client.sample(sql) else { continue };
                    if sql.is_joined || !EXPLAINED.contains(&first.as_str()) {
                        continue;
                    }
                    let text = text.trim_end().trim_end_matches(';').to_owned();
                    operations.push(Operation {
                        kind: format!("{} line {}", script.name, command.line),
                        sql: text.clone(),
                        protocol: Protocol::Text,
                        fragments: vec![Fragment::Sql(text)],
                        ..Operation::PLAIN
                    });
                }
                _ => {}
            }
        }
    }
    Ok(Script::of(false, operations, Distribution::Uniform))
}

// The variables of one client.

/// The content of a variable.
#[derive(Clone, Debug, Default)]
struct Variable {
    content: Content,
    text: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Content {
    #[default]
    Unset,
    /// Only a text; an expression parses it when needed.
    Text,
    /// Only a value; its text is made when needed.
    Value(PgbenchValue),
    /// A value with its text.
    Both(PgbenchValue),
}

/// The variables of one client by number.
#[derive(Clone, Debug, Default)]
pub(in crate::pgbench) struct Variables(Vec<Variable>);

impl Variables {
    /// Makes this number of variables, none set.
    pub(super) fn new(count: usize) -> Variables {
        Variables(vec![Variable::default(); count])
    }

    /// Sets a variable to a value.
    #[inline]
    pub(super) fn set(&mut self, number: u32, value: PgbenchValue) {
        self.0[number as usize].content = Content::Value(value);
    }

    /// Sets a variable to a text.
    pub(super) fn set_text(&mut self, number: u32, text: &[u8]) {
        let variable = &mut self.0[number as usize];
        variable.text.clear();
        variable.text.extend_from_slice(text);
        variable.content = Content::Text;
    }

    /// Makes the text of a variable.
    #[inline]
    pub(super) fn spell(&mut self, number: u32) {
        let variable = &mut self.0[number as usize];
        if let Content::Value(value) = variable.content {
            variable.text.clear();
            spell(&mut variable.text, value);
            variable.content = Content::Both(value);
        }
    }

    /// The text that [`Variables::spell`] made; `None` if the variable is not set.
    #[inline]
    pub(super) fn text(&self, number: u32) -> Option<&[u8]> {
        let variable = &self.0[number as usize];
        match variable.content {
            Content::Unset => None,
            Content::Text | Content::Value(_) | Content::Both(_) => Some(&variable.text),
        }
    }

    /// The value of a variable.
    ///
    /// # Errors
    ///
    /// It is not set, or its text is not a value. The error completes a sentence that begins with
    /// the name of the variable.
    #[inline]
    pub(super) fn value(&self, number: u32) -> Result<PgbenchValue, String> {
        let variable = &self.0[number as usize];
        match variable.content {
            Content::Value(value) | Content::Both(value) => Ok(value),
            Content::Unset => Err("is not set".to_owned()),
            Content::Text => read(&variable.text).ok_or_else(|| {
                let text = String::from_utf8_lossy(&variable.text);
                format!("holds `{text}`, which is not a value of an expression")
            }),
        }
    }
}

// Writes and reads numbers as text like pgbench.

/// Significant digits of a double in a variable.
const DIGITS: usize = 15;

/// Appends the text of a value.
pub(super) fn spell(out: &mut Vec<u8>, value: PgbenchValue) {
    // Writing to memory cannot fail.
    let _ = match value {
        PgbenchValue::Null => out.write_all(b"NULL"),
        PgbenchValue::Boolean(true) => out.write_all(b"true"),
        PgbenchValue::Boolean(false) => out.write_all(b"false"),
        PgbenchValue::Integer(number) => write!(out, "{number}"),
        PgbenchValue::Double(number) => {
            spell_double(out, number);
            Ok(())
        }
    };
}

/// Appends a double with 15 significant digits, without trailing zeros: pgbench's `%.15g`.
fn spell_double(out: &mut Vec<u8>, number: f64) {
    if !number.is_finite() {
        let text: &[u8] = match (number.is_nan(), number > 0.0) {
            (true, _) => b"NaN",
            (false, true) => b"Infinity",
            (false, false) => b"-Infinity",
        };
        out.extend_from_slice(text);
        return;
    }
    let begin = out.len();
    // One digit before the point, 14 behind it, and the exponent.
    let _ = write!(out, "{number:.*e}", DIGITS - 1);
    let mark = out[begin..].iter().rposition(|byte| *byte == b'e').unwrap_or(0) + begin;
    let exponent: i32 =
        std::str::from_utf8(&out[mark + 1..]).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    if (-5 < exponent) && (exponent < DIGITS as i32) {
        out.truncate(begin);
        let places = (DIGITS as i32 - 1 - exponent) as usize;
        let _ = write!(out, "{number:.places$}");
        trim_zeros(out, begin);
        return;
    }
    out.truncate(mark);
    trim_zeros(out, begin);
    let sign = if exponent < 0 { '-' } else { '+' };
    let _ = write!(out, "e{sign}{:02}", exponent.unsigned_abs());
}

/// Removes trailing zeros of a fraction, and its point.
fn trim_zeros(out: &mut Vec<u8>, begin: usize) {
    if !out[begin..].contains(&b'.') {
        return;
    }
    while out.last() == Some(&b'0') {
        out.pop();
    }
    if out.last() == Some(&b'.') {
        out.pop();
    }
}

/// The value of a text: NULL, a boolean, a whole number or a double; `None` for anything else.
pub(super) fn read(text: &[u8]) -> Option<PgbenchValue> {
    let text = std::str::from_utf8(text).ok()?;
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    let begins = |word: &str| word.get(..text.len()).is_some_and(is);
    if text.is_empty() {
        return None;
    }
    if is("null") {
        return Some(PgbenchValue::Null);
    }
    if begins("true") || begins("yes") || is("on") {
        return Some(PgbenchValue::Boolean(true));
    }
    if begins("false") || begins("no") || is("off") || is("of") {
        return Some(PgbenchValue::Boolean(false));
    }
    let digits = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let digits = digits.strip_prefix(['-', '+']).unwrap_or(digits).trim_end();
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.trim().parse().ok().map(PgbenchValue::Integer);
    }
    let number: f64 = text.trim_start().parse().ok()?;
    let is_word = text.contains(['n', 'N']);
    (number.is_finite() || is_word).then_some(PgbenchValue::Double(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_spelled_as_pgbench_spells_them() {
        let check = |number: f64, want: &str| {
            let mut out = Vec::new();
            spell(&mut out, PgbenchValue::Double(number));
            assert_eq!(String::from_utf8(out).unwrap(), want);
        };
        check(0.0, "0");
        check(-0.0, "-0");
        check(1.0, "1");
        check(0.1 + 0.2, "0.3");
        check(std::f64::consts::PI, "3.14159265358979");
        check(1e15, "1e+15");
        check(123_456_789_012_345.0, "123456789012345");
        check(1e-4, "0.0001");
        check(1.5e-5, "1.5e-05");
        check(-2.5e300, "-2.5e+300");
        check(f64::INFINITY, "Infinity");
        check(f64::NEG_INFINITY, "-Infinity");
        check(-f64::NAN, "NaN");
        check(999_999_999_999_999.9, "1e+15");
    }

    #[test]
    fn texts_are_read_in_the_order_null_truth_number() {
        let check =
            |text: &str, want: Option<PgbenchValue>| assert_eq!(read(text.as_bytes()), want);
        check("NULL", Some(PgbenchValue::Null));
        check("t", Some(PgbenchValue::Boolean(true)));
        check("YE", Some(PgbenchValue::Boolean(true)));
        check("on", Some(PgbenchValue::Boolean(true)));
        check("o", None);
        check("of", Some(PgbenchValue::Boolean(false)));
        check("-12", Some(PgbenchValue::Integer(-12)));
        check("1.50", Some(PgbenchValue::Double(1.5)));
        check("9223372036854775808", None);
        check("", None);
        check("a", None);
    }
}
