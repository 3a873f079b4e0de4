//! Settings of scripts: their names, their options, rqps's own settings.
//!
//! Settings `key=value` of scripts, and the files of scripts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rqps_bench::spec::{CliContext, Counting, DataSize, UserCode};
use rqps_driver::workload::{Settings, bytes, choice, own_settings};
use rqps_model::benchmark::{Group, OwnParameters, Phase, RateUnit, Step, StepTurns, Workload};
use rqps_model::counted::StepCount;
use rqps_model::dialect::Dialect;
use rqps_model::escape;
use rqps_model::lua::{
    LuaDeclared, LuaOption, LuaRights, LuaScript, LuaShape, LuaWork, RandomType,
};
use rqps_model::sql_workload::PinnedFile;

/// Assumed bytes of the data, which only the scripts know.
const UNKNOWN_BYTES: u64 = 1 << 30;

/// The scripts, mutable.
pub(super) fn shape_of(workload: &mut Workload) -> Option<&mut LuaShape> {
    OwnParameters::of_mut(&mut workload.shape)
}

/// Refuses a workload file: scripts are named after the colon.
///
/// # Errors
///
/// Always.
pub fn no_file(_: &mut Workload, _: &str) -> Result<(), String> {
    Err("scripts are named after `lua:`".to_owned())
}

/// The scripts and modules that the workload reads; `None` until they are pinned.
pub fn files(workload: &Workload) -> BTreeMap<String, Option<PinnedFile>> {
    let Some(shape) = shape(workload) else { return BTreeMap::new() };
    let scripts = shape.declared.iter().map(|script| script.path.display().to_string());
    let mut files: BTreeMap<String, Option<PinnedFile>> =
        scripts.map(|script| (script, None)).collect();
    let unknown = PinnedFile::default();
    for (path, file) in &shape.files {
        files.insert(path.clone(), Some(file.clone()).filter(|file| *file != unknown));
    }
    files
}

/// Stores the pinned files.
pub fn pin(workload: &mut Workload, _: &Path, files: BTreeMap<String, PinnedFile>) {
    if let Some(shape) = shape_of(workload) {
        shape.files = files;
    }
}

/// The scripts and modules, their options, and what they may do. What they require may be any file
/// beside them.
pub fn brought(workload: &Workload) -> Vec<UserCode> {
    let Some(shape) = shape(workload) else { return Vec::new() };
    let file = |(path, file): (&String, &PinnedFile)| UserCode {
        kind: "script",
        name: path.clone(),
        sha256: Some(file.sha256.clone()),
        place: Some(PathBuf::from(path)),
    };
    let option =
        |(key, value): (&String, &String)| UserCode::named("option", format!("--{key}={value}"));
    let shell = shape.shell.then(|| "scripts may run programs (shell = true)".to_owned());
    let rights = shell.map(|words| UserCode::named("rights", words));
    shape.files.iter().map(file).chain(shape.options.iter().map(option)).chain(rights).collect()
}

/// The assumed size of the data, which only the scripts know.
pub fn data_size(_: &Workload) -> DataSize {
    DataSize { data_bytes: UNKNOWN_BYTES as f64, cached_bytes: UNKNOWN_BYTES }
}

own_settings! { LuaShape:
    "rights", |_, shape, value| {
        shape.rights = choice(value, &[("full", LuaRights::Full), ("none", LuaRights::None)])?;
    };
    // `--rand-type` sets another distribution; sysbench 1.1 has no `special`.
    "api", |_, shape, value| {
        let is_newer = choice(value, &[("1.0", false), ("1.1", true)])?;
        if is_newer && shape.random.kind == RandomType::Special {
            shape.random.kind = RandomType::Uniform;
        }
    };
    "shell", |_, shape, value| {
        shape.shell = choice(value, &[("on", true), ("off", false)])?;
    };
    "lua_memory", |_, shape, value| {
        shape.memory_bytes = if value == "auto" { None } else { Some(bytes(value)?) };
    };
    "driver", |_, shape, value| {
        shape.driver = choice(value, &[("mysql", "mysql"), ("pgsql", "pgsql"), ("sqlite", "")])?
            .to_owned();
    };
    "before", |_, shape, value| shape.before = commands(shape, value)?;
    "after", |_, shape, value| shape.after = commands(shape, value)?;
}

/// Reads names of commands.
fn commands(shape: &LuaShape, value: &str) -> Result<Vec<String>, String> {
    let commands: Vec<String> = value.split(',').map(str::to_owned).collect();
    let known = |command: &String| {
        shape.declared.iter().any(|script| script.commands.contains_key(command))
    };
    match commands.iter().find(|command| !known(command)) {
        Some(unknown) => Err(format!("no script has the command `{unknown}`")),
        None => Ok(commands),
    }
}

pub(super) const SETTINGS: Settings<LuaShape> =
    Settings { benchmark: "lua", own: OWN, common: &[], others: true, open: &[] };

/// Folders of sysbench's own scripts.
const INSTALLED: [&str; 2] = ["/usr/share/sysbench", "/usr/local/share/sysbench"];

/// The file of a script: the name as a path, or in the folder of an installed sysbench.
///
/// # Errors
///
/// No such file.
pub(super) fn found(name: &str) -> Result<PathBuf, String> {
    let with_end = if name.ends_with(".lua") { name.to_owned() } else { format!("{name}.lua") };
    let own = Path::new(&with_end);
    let installed = INSTALLED.iter().map(|folder| Path::new(folder).join(own));
    let candidates = std::iter::once(own.to_owned()).chain(installed);
    for candidate in candidates {
        if candidate.is_file() {
            let absolute = std::path::absolute(&candidate);
            return absolute.map_err(|error| format!("find {}: {error}", candidate.display()));
        }
    }
    if Path::new(name).is_file() {
        return Err(format!(
            "{name} is no Lua script: their names end with .lua\nhint: a file of statements runs \
             as a script of pgbench: --bench pgbench:FILE"
        ));
    }
    Err(format!(
        "{with_end} was not found\nhint: install sysbench for its scripts; `--bench sysbench` has \
         native steps"
    ))
}

// sysbench options after `--`: those of the scripts, those that rqps supports, and those that it
// refuses with a hint.

/// Options about measuring: sysbench's name, and rqps's own way.
const OWN_WAY: [(&str, &str); 8] = [
    ("threads", "--clients"),
    ("num_threads", "--clients"),
    ("time", "--set seconds="),
    ("max_time", "--set seconds="),
    ("warmup_time", "--set warmup_seconds="),
    ("rate", "--rate"),
    ("tx_rate", "--rate"),
    ("rand_seed", "--seed"),
];

/// Options for facts that rqps always records.
const WITHOUT_EFFECT: [&str; 8] = [
    "histogram", "percentile", "verbosity", "debug", "validate", "thread_stack_size",
    "thread_init_timeout", "db_debug",
];

const NOT_SUPPORTED: [&str; 6] = [
    "mysql_dry_run", "report_checkpoints", "luajit_cmd", "forced_shutdown", "mysql_compression",
    "mysql_debug",
];

/// Options of sysbench's drivers: address and login of the server.
const OF_SERVERS: [&str; 9] =
    ["host", "port", "socket", "user", "password", "db", "ssl", "sslmode", "compression"];

/// Steps that sysbench's command line names.
const COMMANDS: [&str; 5] = ["prepare", "run", "cleanup", "prewarm", "warmup"];

/// The command that asks for the options of a script.
const HELP: &str = "help";

/// Commands that scripts have for stages that rqps runs itself, or never.
const OF_EVERY_SCRIPT: [&str; 4] = ["prepare", "run", "cleanup", HELP];

/// Adds scripts and options to the workload.
///
/// # Errors
///
/// A script or an option cannot be used; the message says what to write instead.
pub fn take(workload: &mut Workload, said: &CliContext<'_>) -> Result<(), String> {
    let mut shape = LuaShape::default();
    let names = said.what.iter().flat_map(|what| what.split(','));
    shape.scripts = names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
    if shape.scripts.is_empty() {
        return Err("it needs scripts, such as --bench lua:oltp_read_write.lua".to_owned());
    }
    let mut given = BTreeMap::new();
    for word in said.options.iter().filter(|word| *word != HELP) {
        take_word(word, said, &mut shape, &mut given)?;
    }
    let mut declared = Vec::new();
    for name in shape.scripts.clone() {
        declared.push(script(&name, said, &mut shape)?);
    }
    if said.options.iter().any(|word| word == HELP) {
        return Err(help(&declared));
    }
    check_known(&given, &declared)?;
    for (_, path, known) in declared {
        let script = with_values(path, known, &given, &shape)?;
        shape.declared.push(script);
    }
    shape.options =
        given.into_iter().map(|(name, value)| (name, value.unwrap_or("on".to_owned()))).collect();
    if let Some(place) = shape_of(workload) {
        *place = shape;
    }
    Ok(())
}

/// A script: name as given, file, declarations.
type Looked = (String, PathBuf, LuaDeclared);

fn script(name: &str, said: &CliContext<'_>, shape: &mut LuaShape) -> Result<Looked, String> {
    if matches!(name, "cpu" | "memory" | "fileio" | "threads" | "mutex") {
        return Err(format!("`{name}` measures no database"));
    }
    if name == "-" {
        return Err("a script from standard input: name its file instead".to_owned());
    }
    let path = found(name)?;
    let told = (said.look)(&path, said.options.iter().any(|word| word == HELP))?;
    let declared: LuaDeclared = serde_json::from_str(&told).map_err(|error| {
        format!("read what {} declares: {}", path.display(), escape::fault(error))
    })?;
    for module in &declared.modules {
        let module = std::path::absolute(module).unwrap_or_else(|_| module.clone());
        shape.files.insert(module.display().to_string(), PinnedFile::default());
    }
    Ok((name.to_owned(), path, declared))
}

/// Handles one word after `--`.
fn take_word(
    word: &str,
    said: &CliContext<'_>,
    shape: &mut LuaShape,
    given: &mut BTreeMap<String, Option<String>>,
) -> Result<(), String> {
    let Some(option) = word.strip_prefix("--") else {
        return Err(match word {
            _ if COMMANDS.contains(&word) => {
                format!("rqps loads once and then runs: leave out `{word}`")
            }
            _ if word.ends_with(".lua") => {
                format!("scripts are named by `--bench lua:{word}`: leave out `{word}`")
            }
            _ => format!("sysbench has no option `{word}`; they look like --tables=4"),
        });
    };
    let (name, value) = match option.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (option, None),
    };
    let key = name.replace('-', "_");
    if let Some((_, way)) = OWN_WAY.iter().find(|(known, _)| *known == key) {
        let shown = value.unwrap_or("N");
        let gap = if way.ends_with('=') { "" } else { " " };
        return Err(format!("`{word}` is `{way}{gap}{shown}` here"));
    }
    match key.as_str() {
        "db_driver" => Err(format!("a target says which DBMS it is: leave out `{word}`")),
        "config_file" => {
            let path = value.ok_or("`--config-file` needs the path of a file")?;
            let text = (said.read)(Path::new(path))?;
            let lines = text.lines().map(str::trim);
            for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
                take_word(&format!("--{line}"), said, shape, given)
                    .map_err(|why| format!("{path}: {why}"))?;
            }
            Ok(())
        }
        _ if WITHOUT_EFFECT.contains(&key.as_str()) => {
            (said.note)(&format!(
                "`{word}` has no effect: rqps records latencies, seconds and errors itself"
            ));
            Ok(())
        }
        _ if NOT_SUPPORTED.contains(&key.as_str()) => Err(format!("`--{name}` is not supported")),
        _ if is_of_server(&key) => {
            Err(format!("a target says where its server is: leave out `--{name}`"))
        }
        _ => {
            if !take_own(&key, name, value, shape)? {
                given.insert(key, value.map(str::to_owned));
            }
            Ok(())
        }
    }
}

fn is_of_server(key: &str) -> bool {
    let of = key.strip_prefix("mysql_").or_else(|| key.strip_prefix("pgsql_"));
    let of = of.map(|rest| rest.split('_').next().unwrap_or(rest));
    of.is_some_and(|of| OF_SERVERS.contains(&of))
}

/// Handles an option of sysbench that rqps also has. False if it is none.
fn take_own(
    key: &str,
    name: &str,
    value: Option<&str>,
    shape: &mut LuaShape,
) -> Result<bool, String> {
    let number = || -> Result<f64, String> {
        let text = checked(name, "number", value)?;
        text.parse().map_err(|_| format!("invalid option `--{name}={text}`: write a number"))
    };
    let random = &mut shape.random;
    match key {
        // 0 is no limit, as in sysbench.
        "events" | "max_requests" => {
            let events = number()?;
            if events < 0.0 || events.fract() != 0.0 {
                return Err(format!("invalid option `--{name}={events}`: write a whole number"));
            }
            shape.events = Some(events as u64).filter(|events| *events > 0);
        }
        "report_interval" => shape.report_interval = Some(number()?).filter(|every| *every > 0.0),
        "rand_type" => {
            random.kind = match value.unwrap_or_default() {
                "special" => RandomType::Special,
                "uniform" => RandomType::Uniform,
                "gaussian" => RandomType::Gaussian,
                "pareto" => RandomType::Pareto,
                "zipfian" => RandomType::Zipfian,
                other => {
                    return Err(format!(
                        "invalid option `--{name}={other}`: there are uniform, gaussian, special, \
                         pareto, zipfian"
                    ));
                }
            }
        }
        "rand_spec_iter" => random.iterations = number()? as u32,
        "rand_spec_pct" => random.percent = number()? as u32,
        "rand_spec_res" => random.hot_percent = (number()? as u32).min(99),
        "rand_pareto_h" => random.pareto_h = number()?,
        "rand_zipfian_exp" => random.zipfian_exponent = number()?,
        "db_ps_mode" => match value {
            Some("auto") => shape.plain_statements = false,
            Some("disable") => shape.plain_statements = true,
            _ => return Err(format!("invalid option `--{name}`: write auto or disable")),
        },
        "mysql_ignore_errors" => {
            let list = value.unwrap_or_default().split(',').map(|code| code.trim().to_owned());
            shape.ignored_errors = list.filter(|code| !code.is_empty()).collect();
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// The options of the scripts with their default values, their commands, and their own help.
fn help(declared: &[Looked]) -> String {
    let mut text = String::new();
    for (name, _, known) in declared {
        text.push_str(&format!("{name} has these options:\n"));
        for LuaOption { name, kind, value } in &known.options {
            let about = known.about.get(name).filter(|about| !about.is_empty());
            let about = about.map(|about| format!(": {about}")).unwrap_or_default();
            text.push_str(&format!("  --{}={value} ({kind}){about}\n", name.replace('_', "-")));
        }
        let is_own = |command: &&String| !OF_EVERY_SCRIPT.contains(&command.as_str());
        let commands: Vec<&str> =
            known.commands.keys().filter(is_own).map(String::as_str).collect();
        if !commands.is_empty() {
            let commands = commands.join(", ");
            text.push_str(&format!("  commands for --set before= and after=: {commands}\n"));
        }
        if !known.help.is_empty() {
            text.push_str(&format!("the help of {name} itself:\n{}\n", known.help));
        }
    }
    text + "hint: leave out `help` to run it"
}

/// Every option must belong to one of the scripts at least.
fn check_known(
    given: &BTreeMap<String, Option<String>>,
    declared: &[Looked],
) -> Result<(), String> {
    let takes = |looked: &Looked, name: &str| {
        !looked.2.has_options || looked.2.options.iter().any(|option| option.name == name)
    };
    for name in given.keys() {
        if declared.iter().any(|looked| takes(looked, name)) {
            continue;
        }
        let Some((script, _, known)) = declared.first() else { continue };
        let known: Vec<&str> = known.options.iter().map(|option| option.name.as_str()).collect();
        let shown = name.replace('_', "-");
        return Err(format!("{script} has no option `--{shown}`; it has {}", known.join(", ")));
    }
    Ok(())
}

/// A script with the values of its options.
fn with_values(
    path: PathBuf,
    known: LuaDeclared,
    given: &BTreeMap<String, Option<String>>,
    shape: &LuaShape,
) -> Result<LuaScript, String> {
    let mut options = known.options;
    for option in &mut options {
        if let Some(value) = given.get(&option.name) {
            let shown = option.name.replace('_', "-");
            option.value = checked(&shown, &option.kind, value.as_deref())?;
        }
    }
    if !known.has_options {
        let as_text = |(name, value): (&String, &Option<String>)| LuaOption {
            name: name.clone(),
            kind: "string".to_owned(),
            value: value.clone().unwrap_or("on".to_owned()),
        };
        options.extend(given.iter().map(as_text));
    }
    let mut commands = known.commands;
    if known.functions.iter().any(|function| function == "prepare") {
        commands.entry("prepare".to_owned()).or_insert(false);
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let same = |script: &&LuaScript| script.path.file_stem() == path.file_stem();
    let name = match shape.declared.iter().filter(same).count() {
        0 => stem,
        before => format!("{stem}-{}", before + 1),
    };
    Ok(LuaScript { name, path, options, has_options: known.has_options, commands })
}

// Checks values of script options by their kind.

/// The value in the form for scripts.
///
/// # Errors
///
/// The value is not of its kind; the text names the option.
pub(super) fn checked(name: &str, kind: &str, value: Option<&str>) -> Result<String, String> {
    let fault = |what: &str| {
        Err(format!("invalid option `--{name}={}`: {what}", value.unwrap_or_default()))
    };
    match (kind, value) {
        ("bool", None | Some("on" | "true" | "1")) => Ok("on".to_owned()),
        ("bool", Some("off" | "false" | "0")) => Ok("off".to_owned()),
        ("bool", Some(_)) => fault("write on or off"),
        (_, None) => fault("it needs a value"),
        ("number", Some(text)) => match text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(text.trim().to_owned()),
            _ => fault("write a number"),
        },
        ("size", Some(text)) => match size(text) {
            Some(bytes) => Ok(bytes.to_string()),
            None => fault("write a size such as 16K"),
        },
        (_, Some(text)) if text.chars().any(char::is_control) => fault("it holds a control code"),
        (_, Some(text)) => Ok(text.to_owned()),
    }
}

fn size(text: &str) -> Option<u64> {
    let (digits, factor) = match text.chars().last()? {
        'K' | 'k' => (&text[..text.len() - 1], 1 << 10),
        'M' | 'm' => (&text[..text.len() - 1], 1 << 20),
        'G' | 'g' => (&text[..text.len() - 1], 1 << 30),
        'T' | 't' => (&text[..text.len() - 1], 1 << 40),
        _ => (text, 1u64),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

// Scripts as steps, in the order given.

/// Scripts of sysbench that only read, and their groups. Any other script may write.
const READERS: [(&str, Group); 11] = [
    ("oltp_point_select", Group::Point),
    ("oltp_points_covered", Group::Point),
    ("oltp_inlist_select", Group::Point),
    ("select_random_points", Group::Point),
    ("oltp_range_covered", Group::Range),
    ("oltp_read_only", Group::Range),
    ("oltp_read_only_count", Group::Range),
    ("oltp_scan", Group::Range),
    ("select_random_ranges", Group::Range),
    ("oltp_point_select_covered", Group::Point),
    ("oltp_read_only_q1", Group::Range),
];

/// The scripts, if the workload consists of them.
pub fn shape(workload: &Workload) -> Option<&LuaShape> {
    OwnParameters::of(&workload.shape)
}

/// Why the clients of a step cannot be on several hosts; `None` if they can.
pub fn one_client_host(workload: &Workload) -> Option<&'static str> {
    let shape = shape(workload)?;
    let has_commands = !(shape.before.is_empty() && shape.after.is_empty());
    has_commands.then_some("commands of its scripts run in each step, and clients would not wait")
}

/// Refuses a workload that cannot run on a DBMS of this dialect.
///
/// # Errors
///
/// Scripts have no driver for the dialect, or there is no script.
pub fn check(workload: &Workload, dialect: Dialect) -> Result<(), String> {
    let Some(shape) = shape(workload) else { return Ok(()) };
    if shape.declared.is_empty() {
        return Err("the workload names no script".to_owned());
    }
    match dialect {
        Dialect::Postgres | Dialect::Mysql | Dialect::Sqlite => Ok(()),
        _ => {
            Err("scripts for sysbench run on Postgres, MySQL, MariaDB and SQLite; this target is \
                  none of them"
                .to_owned())
        }
    }
}

/// The names of the steps that may write: all, because the name of a script says nothing of what it
/// sends.
pub fn writes(workload: &Workload) -> Vec<String> {
    let declared = shape(workload).into_iter().flat_map(|shape| &shape.declared);
    declared.map(|script| script.name.clone()).collect()
}

/// The hooks of counted runs: a step is counted by its events.
pub const COUNTING: Counting = Counting { step: counted, ..Counting::SCRIPTS };

/// Fewest events of a counted step.
const EVENTS_LEAST: u64 = 3;

/// Statements per event of an unknown script: those of oltp_read_write.
const STATEMENTS_PER_EVENT: u64 = 20;

fn counted(step: &Step, _: &Workload, statements: u64) -> StepCount {
    let each = match step.group {
        Group::Point => 1,
        _ => STATEMENTS_PER_EVENT,
    };
    StepCount::Events((statements / each).max(EVENTS_LEAST))
}

fn group(script: &LuaScript) -> Group {
    let stem = script.path.file_stem().unwrap_or_default().to_string_lossy();
    let known = READERS.iter().find(|(name, _)| *name == stem);
    known.map_or(Group::Write, |(_, group)| *group)
}

/// All phases after the load.
pub fn phases(workload: &Workload) -> Vec<Phase> {
    let Some(shape) = shape(workload) else { return Vec::new() };
    let step = |script: &LuaScript| Phase::Measure(Box::new(step(workload, shape, script)));
    shape.declared.iter().map(step).collect()
}

fn step(workload: &Workload, shape: &LuaShape, script: &LuaScript) -> Step {
    let group = group(script);
    let seconds =
        if group == Group::Write { workload.write_seconds } else { workload.read_seconds };
    let commands = shape.before.clone();
    let work = LuaWork { seconds, ..work(workload, shape, script, commands) };
    Step {
        seconds,
        warmup_seconds: workload.warmup_seconds,
        detail: detail(shape, script),
        // Their turns would be empty once there are no more events.
        turns: if shape.events.is_none() { StepTurns::Clients } else { StepTurns::None },
        only_reads: group != Group::Write,
        ..Step::new(&script.name, group, RateUnit::Queries, work)
    }
}

/// The note in reports on scripts with sysbench's names.
const DERIVED: &str =
    "; a workload derived from TPC-C; not comparable with published TPC-C results";

/// The options as given.
fn detail(shape: &LuaShape, script: &LuaScript) -> String {
    let file = script.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let of_script =
        |name: &str| !script.has_options || script.options.iter().any(|option| option.name == name);
    let given = shape.options.iter().filter(|(name, _)| of_script(name));
    let words = given.map(|(name, value)| format!(" --{name}={value}"));
    let is_derived = file.to_lowercase().contains("tpcc");
    let derived = if is_derived { DERIVED } else { "" };
    let all = std::iter::once(file).chain(words);
    all.chain([derived.to_owned()]).collect()
}

fn work(
    workload: &Workload,
    shape: &LuaShape,
    script: &LuaScript,
    commands: Vec<String>,
) -> LuaWork {
    LuaWork {
        script: script.clone(),
        commands,
        clients: workload.clients,
        seconds: workload.read_seconds,
        after: shape.after.clone(),
        unprepared: Vec::new(),
        rights: shape.rights,
        shell: shape.shell,
        memory_bytes: shape.memory_bytes,
        driver: shape.driver.clone(),
        report_interval: shape.report_interval,
        events: shape.events,
        random: shape.random,
        ignored_errors: shape.ignored_errors.clone(),
        plain_statements: shape.plain_statements,
    }
}

/// The load by `prepare` of the first script, for all scripts.
pub fn load_work(workload: &Workload) -> LuaWork {
    let none = LuaShape::default();
    let shape = shape(workload).unwrap_or(&none);
    let script = shape.declared.first().cloned().unwrap_or_default();
    let commands = if script.commands.contains_key("prepare") {
        vec!["prepare".to_owned()]
    } else {
        Vec::new()
    };
    let others = shape.declared.iter().skip(1);
    let others = others.filter(|other| other.commands.contains_key("prepare"));
    let unprepared = others.map(|other| other.name.clone()).collect();
    LuaWork { unprepared, ..work(workload, shape, &script, commands) }
}
