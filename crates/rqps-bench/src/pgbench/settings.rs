//! Settings of pgbench scripts, the program's options, rqps's own settings.

use std::collections::VecDeque;
use std::path::Path;

use super::schema::BUILTINS;
use crate::spec::{CliContext, DataSize, UserCode};
use rqps_driver::workload::{Settings, own_settings};
use rqps_model::benchmark::{BenchmarkParameters, OwnParameters, Workload};
use rqps_model::pgbench::{PgbenchFile, PgbenchProtocol, PgbenchScript, PgbenchShape, PgbenchStep};
use rqps_model::sql_name::PlainName;
use rqps_model::units;

/// Adds the scripts and options of a command line to a workload.
///
/// # Errors
///
/// A word is unknown, or a script cannot be read; the message says what to write instead.
pub(super) fn take(workload: &mut Workload, said: &CliContext<'_>) -> Result<(), String> {
    let Some(shape) = shape_of(workload) else { return Ok(()) };
    let named = take_options(shape, said)?;
    let mut steps: Vec<String> =
        said.what.iter().filter(|what| !what.is_empty()).cloned().collect();
    if let (Some(option), false) = (named.first(), steps.is_empty()) {
        return Err(format!(
            "scripts are named by `--bench pgbench:{}`; leave out `{}`",
            steps[0], option.said
        ));
    }
    if steps.is_empty() && !named.is_empty() {
        let words: Vec<&str> = named.iter().map(|option| option.script.as_str()).collect();
        steps.push(words.join(","));
    }
    if steps.is_empty() {
        steps.push("tpcb-like".to_owned());
    }
    for step in &steps {
        let step = parse_step(shape, step, said.read)?;
        shape.step.push(step);
    }
    Ok(())
}

// Parses the scripts of a step: `select-only`, `new_order.sql@5,browse.sql@20`.

/// Most scripts of a mix.
const MOST_SCRIPTS: usize = 128;

/// Largest script, bytes.
const LARGEST: usize = 1 << 20;

/// The step for a list of scripts. Reads files into the shape.
fn parse_step(
    shape: &mut PgbenchShape,
    list: &str,
    read: &dyn Fn(&Path) -> Result<String, String>,
) -> Result<PgbenchStep, String> {
    let mut step = PgbenchStep::default();
    for word in list.split(',') {
        let (name, weight) = weighted(word)?;
        let name = match builtin(name)? {
            Some(builtin) => builtin.to_owned(),
            None => {
                let text = read(Path::new(name))
                    .map_err(|why| format!("{why}\nhint: built-in scripts are {}", known()))?;
                if text.len() > LARGEST {
                    return Err(format!("{name} is larger than 1 MiB"));
                }
                let file = PgbenchFile { sha256: units::sha256(&text), text };
                shape.files.insert(name.to_owned(), file);
                name.to_owned()
            }
        };
        step.scripts.push(PgbenchScript { name, weight });
    }
    if step.scripts.len() > MOST_SCRIPTS {
        return Err(format!(
            "a mix has at most {MOST_SCRIPTS} scripts, not {}",
            step.scripts.len()
        ));
    }
    if step.scripts.iter().all(|script| script.weight == 0) {
        return Err(format!("all weights of `{list}` are 0"));
    }
    Ok(step)
}

/// Splits the weight after the last `@` off.
fn weighted(word: &str) -> Result<(&str, u32), String> {
    let Some((name, weight)) = word.rsplit_once('@') else { return Ok((word, 1)) };
    match weight.parse::<i32>().map(u32::try_from) {
        Ok(Ok(weight)) => Ok((name, weight)),
        _ => Err(format!(
            "the weight of `{name}` must be a whole number from 0 to 2147483647, not `{weight}`"
        )),
    }
}

/// The built-in script with this unambiguous prefix.
fn builtin(word: &str) -> Result<Option<&'static str>, String> {
    let mut found =
        BUILTINS.iter().filter(|(name, _)| name.starts_with(word)).map(|(name, _)| *name);
    match (found.next(), found.next()) {
        _ if word.is_empty() => {
            Err(format!("the name of a script is missing; built-in scripts are {}", known()))
        }
        (Some(_), Some(_)) => Err(format!("`{word}` begins several built-in scripts: {}", known())),
        (one, _) => Ok(one),
    }
}

fn known() -> String {
    BUILTINS.map(|(name, _)| name).join(", ")
}

// pgbench options after `--`: accepted, or refused with a hint.

/// An option that names a script.
struct NamedScript {
    /// The option as written.
    said: String,
    /// Its value in the form of `--bench pgbench:`.
    script: String,
}

/// The effect of an option.
enum Answer {
    /// Takes effect; has no value.
    Flag(fn(&mut PgbenchShape)),
    /// Takes effect with its value; the error names the valid values.
    Value(fn(&mut PgbenchShape, &str) -> Result<(), String>),
    /// Names a script: by its value, or by the option itself.
    Script(Option<&'static str>),
    /// Has no effect and is harmless; true if a value follows.
    Idle(bool),
    /// Refused; the answer contains the value as `{}`. True if a value follows.
    Refused(bool, &'static str),
}

struct PgbenchOption {
    /// The letter, or a blank.
    short: char,
    /// The long name, without `--`.
    long: &'static str,
    answer: Answer,
}

const fn option(short: char, long: &'static str, answer: Answer) -> PgbenchOption {
    PgbenchOption { short, long, answer }
}

const fn value(
    short: char,
    long: &'static str,
    apply: fn(&mut PgbenchShape, &str) -> Result<(), String>,
) -> PgbenchOption {
    option(short, long, Answer::Value(apply))
}

/// The answer to options about the server.
const SERVER: &str = "a target says where its server is: leave it out";

/// The answer to options about facts that rqps always records.
const IDLE: &str = "rqps records latencies, seconds and errors itself";

/// All options.
const OPTIONS: &[PgbenchOption] = &[
    value('s', "scale", |shape, value| number(value, 1, 1_000_000).map(|it| shape.scale = it)),
    value('M', "protocol", |shape, value| {
        let words = [
            ("simple", PgbenchProtocol::Simple),
            ("extended", PgbenchProtocol::Extended),
            ("prepared", PgbenchProtocol::Prepared),
        ];
        let known = words.iter().find(|(word, _)| *word == value);
        shape.protocol = known.ok_or("write simple, extended or prepared")?.1;
        Ok(())
    }),
    value('D', "define", |shape, value| {
        let (name, text) = value.split_once('=').ok_or("write NAME=VALUE")?;
        if text.is_empty() {
            return Err("the value is missing".to_owned());
        }
        if !rqps_text::pgbench::is_variable_name(name) {
            return Err(format!("`{name}` is not a name of a variable: letters, digits and `_`"));
        }
        shape.define.insert(name.to_owned(), text.to_owned());
        Ok(())
    }),
    option('n', "no-vacuum", Answer::Flag(|shape| shape.vacuum = false)),
    option('C', "connect", Answer::Flag(|shape| shape.connect = true)),
    value(' ', "max-tries", |shape, value| {
        number(value, 0, i32::MAX as u32).map(|it| shape.max_tries = it)
    }),
    option(' ', "continue-on-error", Answer::Flag(|shape| shape.continue_on_error = true)),
    value('I', "init-steps", |shape, value| {
        if value.is_empty() || value.chars().any(|letter| !"dtgGvpf ".contains(letter)) {
            return Err("write letters of dtgGvpf".to_owned());
        }
        shape.tables.steps = value.replace(' ', "");
        Ok(())
    }),
    value('F', "fillfactor", |shape, value| {
        number(value, 10, 100).map(|it| shape.tables.fillfactor = Some(it))
    }),
    value(' ', "partitions", |shape, value| {
        number(value, 0, 100_000).map(|it| shape.tables.partitions = it)
    }),
    value(' ', "partition-method", |shape, value| {
        shape.tables.by_hash = match value {
            "range" => false,
            "hash" => true,
            _ => return Err("write range or hash".to_owned()),
        };
        Ok(())
    }),
    option(' ', "foreign-keys", Answer::Flag(|shape| shape.tables.steps.push('f'))),
    option(' ', "unlogged-tables", Answer::Flag(|shape| shape.tables.unlogged = true)),
    value(' ', "tablespace", |shape, value| {
        PlainName::try_from(value.to_owned()).map(|it| shape.tables.tablespace = Some(it))
    }),
    value(' ', "index-tablespace", |shape, value| {
        PlainName::try_from(value.to_owned()).map(|it| shape.tables.index_tablespace = Some(it))
    }),
    option('f', "file", Answer::Script(None)),
    option('b', "builtin", Answer::Script(None)),
    option('S', "select-only", Answer::Script(Some("select-only"))),
    option('N', "skip-some-updates", Answer::Script(Some("simple-update"))),
    option('c', "client", Answer::Refused(true, "it is `--clients {}` here")),
    option('j', "jobs", Answer::Refused(true, "each client has a thread of its own: leave it out")),
    option('T', "time", Answer::Refused(true, "it is `--set seconds={}` here")),
    option('R', "rate", Answer::Refused(true, "it is `--rate {}` here")),
    option(' ', "random-seed", Answer::Refused(true, "it is `--seed {}` here")),
    option('t', "transactions", Answer::Refused(true, "a step ends by time; see `--set seconds`")),
    option('L', "latency-limit", Answer::Idle(true)),
    option('l', "log", Answer::Idle(false)),
    option('P', "progress", Answer::Idle(true)),
    option('r', "report-per-command", Answer::Idle(false)),
    option(' ', "report-latencies", Answer::Idle(false)),
    option(' ', "progress-timestamp", Answer::Idle(false)),
    option(' ', "aggregate-interval", Answer::Idle(true)),
    option(' ', "sampling-rate", Answer::Idle(true)),
    option(' ', "log-prefix", Answer::Idle(true)),
    option(' ', "failures-detailed", Answer::Idle(false)),
    option(' ', "verbose-errors", Answer::Idle(false)),
    option(' ', "exit-on-abort", Answer::Idle(false)),
    option('q', "quiet", Answer::Idle(false)),
    option('h', "host", Answer::Refused(true, SERVER)),
    option('p', "port", Answer::Refused(true, SERVER)),
    option('U', "username", Answer::Refused(true, SERVER)),
    option('d', "dbname", Answer::Refused(true, SERVER)),
    option(
        'i',
        "initialize",
        Answer::Refused(false, "rqps loads once and then runs: leave it out"),
    ),
    option('v', "vacuum-all", Answer::Refused(false, "it is not supported")),
    option(' ', "show-script", Answer::Refused(true, "it is not supported")),
    option(' ', "debug", Answer::Refused(false, "it is not supported")),
];

fn number(value: &str, least: u32, most: u32) -> Result<u32, String> {
    let number = value.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("write a whole number from {least} to {most}"))
}

/// Handles the options. Returns those that name scripts.
///
/// # Errors
///
/// An option is unknown or refused, or its value is invalid.
fn take_options(
    shape: &mut PgbenchShape,
    said: &CliContext<'_>,
) -> Result<Vec<NamedScript>, String> {
    let mut words: VecDeque<String> = said.options.iter().cloned().collect();
    let (mut named, mut is_noted) = (Vec::new(), false);
    while let Some(word) = words.pop_front() {
        let (option, name, attached) = find(&word)?;
        let takes_value = match &option.answer {
            Answer::Flag(_) | Answer::Script(Some(_)) => false,
            Answer::Value(_) | Answer::Script(None) => true,
            Answer::Idle(takes) | Answer::Refused(takes, _) => *takes,
        };
        let value = match (takes_value, attached) {
            (true, Some(value)) => value,
            (true, None) => {
                words.pop_front().ok_or_else(|| format!("a value must follow `{name}`"))?
            }
            // Letters without values may be joined: `-nS`.
            (false, Some(rest)) if !word.starts_with("--") => {
                words.push_front(format!("-{rest}"));
                String::new()
            }
            (false, Some(_)) => return Err(format!("`{name}` takes no value, as in `{word}`")),
            (false, None) => String::new(),
        };
        let shown = if takes_value { format!("{name} {value}") } else { name.clone() };
        match &option.answer {
            Answer::Flag(apply) => apply(shape),
            Answer::Value(apply) => {
                apply(shape, &value).map_err(|why| format!("`{shown}`: {why}"))?;
            }
            Answer::Script(fixed) => {
                let script = fixed.map_or(value, str::to_owned);
                named.push(NamedScript { said: shown, script });
            }
            Answer::Idle(_) => {
                if !is_noted {
                    (said.note)(&format!("`{shown}` has no effect: {IDLE}"));
                }
                is_noted = true;
            }
            Answer::Refused(_, answer) => {
                return Err(format!("`{shown}`: {}", answer.replace("{}", &value)));
            }
        }
    }
    Ok(named)
}

/// The option at the start of a word, as written, and its attached value.
fn find(word: &str) -> Result<(&'static PgbenchOption, String, Option<String>), String> {
    let unknown = || format!("pgbench has no option `{word}`");
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (long, None),
        };
        let option = OPTIONS.iter().find(|option| option.long == name).ok_or_else(unknown)?;
        return Ok((option, format!("--{name}"), value));
    }
    let Some(letters) = word.strip_prefix('-') else {
        return Err(match word {
            "prepare" | "run" | "cleanup" => {
                format!("rqps loads once and then runs: leave out `{word}`")
            }
            _ => format!("`{word}` is not an option of pgbench; targets go before `--`"),
        });
    };
    let mut letters = letters.chars();
    let letter = letters.next().filter(|letter| *letter != ' ').ok_or_else(unknown)?;
    let option = OPTIONS.iter().find(|option| option.short == letter).ok_or_else(unknown)?;
    let rest = letters.as_str();
    let attached = (!rest.is_empty()).then(|| rest.to_owned());
    Ok((option, format!("-{letter}"), attached))
}

// Settings `key=value` of pgbench scripts, and values derived from them.

/// Bytes of the standard tables with indexes, per unit of scale.
const SCALE_BYTES: u64 = 16 << 20;

/// Bytes of the history that steps write.
const GROWTH_BYTES: u64 = 256 << 20;

/// Accounts per unit of scale.
const ACCOUNTS: u64 = 100_000;

/// The parameters of this benchmark, mutable; `None` for another workload.
pub(super) fn shape_of(workload: &mut Workload) -> Option<&mut PgbenchShape> {
    OwnParameters::of_mut(&mut workload.shape)
}

own_settings! { PgbenchShape:
    "load", |_, shape, value| shape.tables.made = match value {
        "builtin" => true,
        "none" => false,
        _ => return Err("write builtin, or none for tables that are there already".to_owned()),
    };
}

pub(super) const SETTINGS: Settings<PgbenchShape> =
    Settings { benchmark: "pgbench", own: OWN, common: &[], others: true, open: &[] };

/// Computes the number of rows.
pub(crate) fn finish(workload: &mut Workload) {
    if let BenchmarkParameters::Pgbench(shape) = &workload.shape {
        workload.rows = ACCOUNTS * u64::from(shape.scale);
    }
}

/// The scripts that are files, the values of `-D`, and names that become a part of statements. The
/// hash is that of the text that runs.
pub(crate) fn brought(workload: &Workload) -> Vec<UserCode> {
    let BenchmarkParameters::Pgbench(shape) = &workload.shape else { return Vec::new() };
    let files = shape.files.iter().map(|(name, file)| UserCode {
        kind: "script",
        name: name.clone(),
        sha256: Some(units::sha256(&file.text)),
        place: None,
    });
    let option = |text: String| UserCode::named("option", text);
    let values = shape.define.iter().map(|(name, value)| option(format!("-D {name}={value}")));
    let tables = &shape.tables;
    let spaces =
        [("--tablespace", &tables.tablespace), ("--index-tablespace", &tables.index_tablespace)];
    let spaces = spaces
        .into_iter()
        .filter_map(|(name, value)| value.as_ref().map(|value| option(format!("{name}={value}"))));
    files.chain(values).chain(spaces).collect()
}

/// The size of the data.
pub(crate) fn data_size(workload: &Workload) -> DataSize {
    let scale = match &workload.shape {
        BenchmarkParameters::Pgbench(shape) if shape.tables.made => u64::from(shape.scale),
        _ => 0,
    };
    let cached_bytes = scale * SCALE_BYTES;
    DataSize { data_bytes: (cached_bytes + GROWTH_BYTES) as f64, cached_bytes }
}
