//! Opens the Lua state of a client: its facts and options, then the script.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use super::host::SqlHost;
use super::random::Unique;
use super::random::driver_name;
use rqps_bench::spec::look_apart;
use rqps_driver;
use rqps_driver::confined::{self, ScriptPlaces};
use rqps_driver::connection::Connector;
use rqps_driver::request::DriverRequest;
use rqps_embed::lua::{
    Binding, HeapLimit, LuaJit, LuaState, RandomDraw, Report, RowCells, ScriptHost, StatementEnd,
};
use rqps_host::host;
use rqps_model::dialect::Dialect;
use rqps_model::lua::{LuaDeclared, LuaOption, LuaRandom, LuaRights, LuaWork, RandomType};

/// The Lua code around every script.
const PREAMBLE: &str = include_str!("preamble.lua");

/// Most memory of a state, unless the user allows more, bytes.
const HEAP: u64 = 1 << 30;

/// States beside those of the clients: of `init` and `done`, and of reports.
const OTHER_STATES: u64 = 2;

/// Search path of sysbench's own scripts, for `require`.
const INSTALLED: &str = "/usr/share/sysbench/?.lua;/usr/local/share/sysbench/?.lua";

const UNIT: char = '\u{1f}';

/// Shared by all states of a request.
#[derive(Clone)]
pub(super) struct Surroundings {
    pub(super) jit: Arc<LuaJit>,
    pub(super) connector: Connector,
    pub(super) seed: u64,
    pub(super) unique: Arc<Unique>,
    /// The folder in which the process was started.
    start: PathBuf,
    limit: HeapLimit,
}

impl Surroundings {
    /// Loads LuaJIT for so many clients of a request. The error is a complete message.
    pub(super) fn new(
        connector: Connector,
        request: &DriverRequest,
        (work, clients): (&LuaWork, u32),
    ) -> Result<Surroundings, String> {
        let seed = request.seed;
        let limit = heap_limit(work.memory_bytes, clients, host::memory_bytes())?;
        let jit = LuaJit::load().map_err(|error| format!("failed to {error}"))?;
        let part = (request.number_of(0), request.all_clients(clients));
        let unique = Arc::new(Unique::new(seed, part));
        let start = request.places.as_ref().map_or(".".into(), |places| places.start.clone());
        Ok(Surroundings { jit: Arc::new(jit), connector, seed, unique, start, limit })
    }

    /// Opens the state of client `client` for a command, without the script.
    pub(super) fn open(
        &self,
        work: &LuaWork,
        client: u32,
        command: &str,
    ) -> Result<LuaState<SqlHost>, String> {
        let unique = Arc::clone(&self.unique);
        let host = SqlHost::new(self.connector.clone(), work, (self.seed, client), unique);
        let mut state = LuaState::open(&self.jit, PREAMBLE, host, self.limit.clone())
            .map_err(|error| format!("failed to {error}"))?;
        let of = (self.connector.dialect(), self.seed);
        introduce(&mut state, work, of, (client, command))?;
        tell_folders(&mut state, &work.script.path, &self.start)?;
        Ok(state)
    }
}

/// Tells a state what its script may ask of sysbench, and the script's options.
fn introduce<H: ScriptHost>(
    state: &mut LuaState<H>,
    work: &LuaWork,
    (dialect, seed): (Dialect, u64),
    (client, command): (u32, &str),
) -> Result<(), String> {
    for (name, kind, value) in options(work, dialect, seed) {
        tell(state, "option", &[&name, kind, &value])?;
    }
    for (name, value) in [
        ("driver", driver_name(dialect, work).to_owned()),
        ("tid", client.to_string()),
        ("command", command.to_owned()),
    ] {
        tell(state, "fact", &[name, &value])?;
    }
    if !work.script.has_options {
        tell(state, "fact", &["globals", ""])?;
    }
    for option in &work.script.options {
        tell(state, "option", &[&option.name, &option.kind, &option.value])?;
    }
    if work.shell {
        tell(state, "fact", &["shell", "on"])?;
    }
    if work.rights == LuaRights::None {
        tell(state, "fact", &["rights", "none"])?;
    }
    Ok(())
}

/// The memory that a state may take: as the user said, or so that the states of all clients
/// together take at most half of the host's memory, which is 0 if it is unknown.
fn heap_limit(said: Option<u64>, clients: u32, memory_bytes: u64) -> Result<HeapLimit, String> {
    let states = u64::from(clients) + OTHER_STATES;
    let known = if memory_bytes == 0 { u64::MAX } else { memory_bytes };
    let (bytes, hint) = match said {
        None => {
            let hint =
                "\nhint: --set lua_memory=SIZE changes that; fewer clients leave more for each";
            (HEAP.min(known / 2 / states), hint)
        }
        Some(bytes) if bytes.saturating_mul(states) > known => {
            return Err(format!(
                "failed to open {states} states of a script: {} MiB each are more than the {} MiB \
                 of this host\nhint: use a smaller lua_memory, or fewer clients",
                bytes >> 20,
                known >> 20
            ));
        }
        Some(bytes) => (bytes, "\nhint: use a larger lua_memory"),
    };
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    Ok(HeapLimit { bytes, hint: hint.to_owned() })
}

/// The limit for a script that only declares what it has.
fn plain_limit() -> HeapLimit {
    HeapLimit { bytes: HEAP as usize, hint: String::new() }
}

/// Sends a command with several fields.
pub(super) fn tell<H: ScriptHost>(
    state: &mut LuaState<H>,
    command: &str,
    fields: &[&str],
) -> Result<String, String> {
    state.command(command, &fields.join(&UNIT.to_string()))
}

/// Tells a state where a script finds other files: in its own folder, in the one where the process
/// was started, and in that of an installed sysbench.
fn tell_folders<H: ScriptHost>(
    state: &mut LuaState<H>,
    script: &Path,
    start: &Path,
) -> Result<(), String> {
    let folder = script.parent().unwrap_or(Path::new("/")).display().to_string();
    let start = start.display().to_string();
    let path = format!("{folder}/?.lua;{start}/?.lua;{INSTALLED}");
    tell(state, "fact", &["path", &path])?;
    tell(state, "fact", &["folders", &folder, &start]).map(|_| ())
}

/// Loads the script into a state.
pub(super) fn load_script<H: ScriptHost>(
    state: &mut LuaState<H>,
    path: &Path,
) -> Result<(), String> {
    let path = path.display().to_string();
    state.command("script", &path).map(|_| ())
}

/// Options of sysbench that scripts read: name, kind, value.
fn options(work: &LuaWork, dialect: Dialect, seed: u64) -> Vec<(String, &'static str, String)> {
    let LuaRandom { iterations, percent, hot_percent, pareto_h, zipfian_exponent, .. } =
        work.random;
    let number = |value: u32| ("number", value.to_string());
    let text = |value: &str| ("string", value.to_owned());
    let mut options = vec![
        ("threads", number(work.clients)),
        ("events", ("number", work.events.unwrap_or(0).to_string())),
        ("time", ("number", work.seconds.to_string())),
        ("warmup_time", number(0)),
        ("rate", number(0)),
        ("report_interval", ("number", work.report_interval.unwrap_or(0.0).to_string())),
        ("percentile", number(95)),
        ("verbosity", number(3)),
        ("debug", ("bool", "off".to_owned())),
        ("validate", ("bool", "off".to_owned())),
        ("histogram", ("bool", "off".to_owned())),
        ("rand_type", text(random_name(work.random.kind))),
        ("rand_seed", number(super::host::seed_of(seed))),
        ("rand_spec_iter", number(iterations)),
        ("rand_spec_pct", number(percent)),
        ("rand_spec_res", number(hot_percent)),
        ("rand_pareto_h", ("number", pareto_h.to_string())),
        ("rand_zipfian_exp", ("number", zipfian_exponent.to_string())),
        ("db_driver", text(driver_name(dialect, work))),
        ("db_ps_mode", text(if work.plain_statements { "disable" } else { "auto" })),
    ];
    // The password is always empty: a script must not see the target's.
    for (names, value) in [
        (["mysql_host", "pgsql_host"], "localhost"),
        (["mysql_user", "pgsql_user"], "sbtest"),
        (["mysql_password", "pgsql_password"], ""),
        (["mysql_db", "pgsql_db"], "sbtest"),
    ] {
        options.extend(names.map(|name| (name, text(value))));
    }
    options.push(("mysql_ignore_errors", ("list", work.ignored_errors.join(","))));
    options.into_iter().map(|(name, (kind, value))| (name.to_owned(), kind, value)).collect()
}

/// sysbench's name of a distribution.
pub(super) fn random_name(kind: RandomType) -> &'static str {
    match kind {
        RandomType::Special => "special",
        RandomType::Uniform => "uniform",
        RandomType::Gaussian => "gaussian",
        RandomType::Pareto => "pareto",
        RandomType::Zipfian => "zipfian",
    }
}

// Reads the declarations of a script by running it without a database.

/// The hidden command that reads a script's declarations in its own process.
pub const LUA_COMMAND: &str = "look-at-lua";

/// Most bytes of what a script's `help` prints.
const LONGEST_HELP: usize = 64 << 10;

/// Runs a script and returns its declarations as JSON; `with_help`: also what its own `help`
/// prints. This process gives up its rights and changes to another folder first, so it should do
/// nothing else.
///
/// # Errors
///
/// There is no LuaJIT, or the script fails; the text has file and line.
pub fn declared(script: &Path, with_help: bool) -> Result<String, String> {
    let jit = Arc::new(LuaJit::load().map_err(|error| error.to_string())?);
    let mut state = LuaState::open(&jit, PREAMBLE, Nothing::default(), plain_limit())
        .map_err(|error| error.to_string())?;
    let places = confined::enter(script, None)?;
    let described = described(&mut state, script, (&places, with_help));
    places.clear();
    described
}

/// Statements that are kept of a script that nothing answers: it may wait for an answer.
const SENT: usize = 200;

/// The statements that a client of a script sends first, with NULL for each placeholder, as far as
/// they follow from no answer. `rqps` is the program with its environment. Empty where nobody can
/// tell.
pub fn first_statements_of(rqps: Command, work: &LuaWork, dialect: Dialect) -> Vec<String> {
    let work = LuaWork { rights: LuaRights::None, shell: false, ..work.clone() };
    let path = work.script.path.clone();
    let told = serde_json::to_string(&(work, dialect)).ok();
    let told = told.and_then(|it| look_apart(rqps, LUA_COMMAND, &path, &["--work", &it]).ok());
    told.and_then(|told| serde_json::from_str(&told).ok()).unwrap_or_default()
}

/// Runs the beginning of a script and one event of it without a database, and returns what it sent as
/// JSON. This process gives up its rights as in [`declared`].
///
/// # Errors
///
/// There is no LuaJIT, or the script cannot be read.
pub fn first_statements(question: &str) -> Result<String, String> {
    let question = serde_json::from_str(question).map_err(|error| error.to_string())?;
    let (mut work, dialect): (LuaWork, Dialect) = question;
    let jit = Arc::new(LuaJit::load().map_err(|error| error.to_string())?);
    let host = Nothing { sent: Some(Vec::new()), ..Nothing::default() };
    let mut state =
        LuaState::open(&jit, PREAMBLE, host, plain_limit()).map_err(|error| error.to_string())?;
    let places = confined::enter(&work.script.path, None)?;
    work.script.path = places.readable(&work.script.path);
    let begun = introduce(&mut state, &work, (dialect, 1), (0, "run"))
        .and_then(|()| tell_folders(&mut state, &work.script.path, &places.start))
        .and_then(|()| load_script(&mut state, &work.script.path))
        .and_then(|()| state.command("call_once", "init"))
        .and_then(|_| state.command("call", "thread_init"))
        .and_then(|_| state.keep_event());
    // A script that stumbles over a missing answer has sent something before.
    if begun.is_ok() {
        state.event();
    }
    places.clear();
    let sent = state.host().sent.take().unwrap_or_default();
    serde_json::to_string(&sent).map_err(|error| error.to_string())
}

/// Runs a script in a state of this process.
fn described(
    state: &mut LuaState<Nothing>,
    named: &Path,
    (places, with_help): (&ScriptPlaces, bool),
) -> Result<String, String> {
    let script = &places.readable(named);
    tell_folders(state, script, &places.start)?;
    for (name, value) in [("command", "run"), ("rights", "none")] {
        tell(state, "fact", &[name, value])?;
    }
    load_script(state, script)?;
    let records = state.command("describe", "")?;
    let mut declared = LuaDeclared::default();
    for record in records.split('\u{1e}') {
        take(&mut declared, record);
    }
    for module in &mut declared.modules {
        *module = places.original(module);
    }
    let runs = |name: &String| name == "event" || name == "thread_run";
    if !declared.functions.iter().any(runs) {
        return Err(format!("{} has no event()", named.display()));
    }
    if with_help {
        // What it prints before is no help.
        state.host().printed.clear();
        state.command("help", "")?;
        declared.help = String::from_utf8_lossy(&state.host().printed).trim_end().to_owned();
    }
    declared.options.sort_by(|one, other| one.name.cmp(&other.name));
    declared.functions.sort();
    serde_json::to_string(&declared).map_err(|error| error.to_string())
}

fn take(declared: &mut LuaDeclared, record: &str) {
    let fields: Vec<&str> = record.split('\u{1f}').collect();
    match fields.as_slice() {
        ["option", name, kind, value, about @ ..] => {
            declared.options.push(LuaOption {
                name: (*name).to_owned(),
                kind: (*kind).to_owned(),
                value: (*value).to_owned(),
            });
            declared.about.insert((*name).to_owned(), about.join(" "));
        }
        ["options"] => declared.has_options = true,
        ["command", name, way] => {
            declared.commands.insert((*name).to_owned(), *way == "parallel");
        }
        ["function", name] => declared.functions.push((*name).to_owned()),
        ["module", _, path] => declared.modules.push((*path).into()),
        _ => {}
    }
}

/// No database: each call fails with the reason, or is kept and has no rows.
#[derive(Default)]
struct Nothing {
    /// What the script has printed.
    printed: Vec<u8>,
    /// The statements that it has sent, where they are kept.
    sent: Option<Vec<String>>,
}

impl Nothing {
    fn refuse(report: &mut Report) -> StatementEnd {
        report.failed(
            0,
            "",
            "the script connects to a database outside of its functions".to_owned(),
        );
        StatementEnd::Failed
    }

    /// Keeps a statement, if there is one and all are kept.
    fn take(&mut self, sql: Option<&[u8]>, report: &mut Report) -> StatementEnd {
        let Some(sent) = self.sent.as_mut().filter(|sent| sent.len() < SENT) else {
            return Nothing::refuse(report);
        };
        if let Some(sql) = sql {
            sent.push(super::random::pieces(&String::from_utf8_lossy(sql)).join("NULL"));
        }
        report.done(Some((0, 0)));
        StatementEnd::Done
    }
}

impl ScriptHost for Nothing {
    fn connect(&mut self, report: &mut Report) -> Option<u32> {
        (self.take(None, report) == StatementEnd::Done).then_some(0)
    }

    fn disconnect(&mut self, _: u32) {}

    fn reconnect(&mut self, _: u32, report: &mut Report) -> StatementEnd {
        self.take(None, report)
    }

    fn query(&mut self, _: u32, sql: &[u8], report: &mut Report) -> StatementEnd {
        self.take(Some(sql), report)
    }

    fn prepare(&mut self, _: u32, sql: &[u8], report: &mut Report) -> Option<u32> {
        (self.take(Some(sql), report) == StatementEnd::Done).then_some(0)
    }

    fn bind<'a>(
        &mut self,
        _: u32,
        _: impl ExactSizeIterator<Item = Binding<'a>>,
        report: &mut Report,
    ) -> StatementEnd {
        self.take(None, report)
    }

    fn execute<'a>(
        &mut self,
        _: u32,
        _: impl ExactSizeIterator<Item = Binding<'a>>,
        _: bool,
        report: &mut Report,
    ) -> StatementEnd {
        self.take(None, report)
    }

    fn close(&mut self, _: u32) {}

    fn fetch(&mut self, _: u32, _: &mut RowCells) -> bool {
        false
    }

    fn bulk_begin(&mut self, _: u32, _: &[u8]) -> bool {
        false
    }

    fn bulk_row(&mut self, _: u32, _: &[u8], report: &mut Report) -> StatementEnd {
        Nothing::refuse(report)
    }

    fn bulk_end(&mut self, _: u32, report: &mut Report) -> StatementEnd {
        Nothing::refuse(report)
    }

    fn bits(&mut self) -> u64 {
        0
    }

    fn fraction(&mut self) -> f64 {
        0.0
    }

    fn draw(&mut self, _: RandomDraw, from: u32, _: u32) -> u32 {
        from
    }

    fn unique(&mut self) -> u32 {
        0
    }

    fn fill(&mut self, template: &[u8], output: &mut [u8]) {
        output.copy_from_slice(template);
    }

    fn print(&mut self, text: &[u8]) {
        let room = LONGEST_HELP.saturating_sub(self.printed.len());
        self.printed.extend_from_slice(&text[..text.len().min(room)]);
    }

    fn sleep(&mut self, _: f64) {}

    fn count(&mut self, _: u32, _: i64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_states_together_leave_half_of_the_hosts_memory() {
        let bytes = |said, clients, memory| {
            heap_limit(said, clients, memory).map(|limit| limit.bytes as u64)
        };
        assert_eq!(bytes(None, 1, 64 << 30), Ok(1 << 30));
        assert_eq!(bytes(None, 16, 9 << 30), Ok(256 << 20));
        assert_eq!(bytes(None, 16, 0), Ok(1 << 30), "the host does not say how much it has");
        assert_eq!(bytes(Some(2 << 30), 1, 8 << 30), Ok(2 << 30));
        let refused = bytes(Some(1 << 30), 16, 8 << 30);
        let wanted =
            "failed to open 18 states of a script: 1024 MiB each are more than the 8192 MiB";
        assert!(refused.is_err_and(|why| why.starts_with(wanted)));
    }
}
