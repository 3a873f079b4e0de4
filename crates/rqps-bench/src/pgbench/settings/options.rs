//! pgbench options after `--`: accepted, or refused with a hint.

use std::collections::VecDeque;

use crate::spec::CliContext;
use rqps_model::pgbench::{PgbenchProtocol, PgbenchShape};
use rqps_model::sql_name::PlainName;

/// An option that names a script.
pub(super) struct NamedScript {
    /// The option as written.
    pub(super) said: String,
    /// Its value in the form of `--bench pgbench:`.
    pub(super) script: String,
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

/// The answer to options about the server.
const SERVER: &str = "a target says where its server is: leave it out";

/// The answer to options about facts that rqps always records.
const IDLE: &str = "rqps records latencies, seconds and errors itself";

/// All options.
const OPTIONS: &[PgbenchOption] = &[
    option(
        's',
        "scale",
        Answer::Value(|shape, value| {
            shape.scale = number(value, 1, 1_000_000)?;
            Ok(())
        }),
    ),
    option(
        'M',
        "protocol",
        Answer::Value(|shape, value| {
            let words = [
                ("simple", PgbenchProtocol::Simple),
                ("extended", PgbenchProtocol::Extended),
                ("prepared", PgbenchProtocol::Prepared),
            ];
            let known = words.iter().find(|(word, _)| *word == value);
            shape.protocol = known.ok_or("write simple, extended or prepared")?.1;
            Ok(())
        }),
    ),
    option(
        'D',
        "define",
        Answer::Value(|shape, value| {
            let (name, text) = value.split_once('=').ok_or("write NAME=VALUE")?;
            if text.is_empty() {
                return Err("the value is missing".to_owned());
            }
            if !rqps_text::pgbench::is_variable_name(name) {
                return Err(format!(
                    "`{name}` is not a name of a variable: letters, digits and `_`"
                ));
            }
            shape.define.insert(name.to_owned(), text.to_owned());
            Ok(())
        }),
    ),
    option('n', "no-vacuum", Answer::Flag(|shape| shape.vacuum = false)),
    option('C', "connect", Answer::Flag(|shape| shape.connect = true)),
    option(
        ' ',
        "max-tries",
        Answer::Value(|shape, value| {
            shape.max_tries = number(value, 0, i32::MAX as u32)?;
            Ok(())
        }),
    ),
    option(' ', "continue-on-error", Answer::Flag(|shape| shape.continue_on_error = true)),
    option(
        'I',
        "init-steps",
        Answer::Value(|shape, value| {
            if value.is_empty() || value.chars().any(|letter| !"dtgGvpf ".contains(letter)) {
                return Err("write letters of dtgGvpf".to_owned());
            }
            shape.tables.steps = value.replace(' ', "");
            Ok(())
        }),
    ),
    option(
        'F',
        "fillfactor",
        Answer::Value(|shape, value| {
            shape.tables.fillfactor = Some(number(value, 10, 100)?);
            Ok(())
        }),
    ),
    option(
        ' ',
        "partitions",
        Answer::Value(|shape, value| {
            shape.tables.partitions = number(value, 0, 100_000)?;
            Ok(())
        }),
    ),
    option(
        ' ',
        "partition-method",
        Answer::Value(|shape, value| {
            shape.tables.by_hash = match value {
                "range" => false,
                "hash" => true,
                _ => return Err("write range or hash".to_owned()),
            };
            Ok(())
        }),
    ),
    option(' ', "foreign-keys", Answer::Flag(|shape| shape.tables.steps.push('f'))),
    option(' ', "unlogged-tables", Answer::Flag(|shape| shape.tables.unlogged = true)),
    option(
        ' ',
        "tablespace",
        Answer::Value(|shape, value| {
            shape.tables.tablespace = Some(PlainName::try_from(value.to_owned())?);
            Ok(())
        }),
    ),
    option(
        ' ',
        "index-tablespace",
        Answer::Value(|shape, value| {
            shape.tables.index_tablespace = Some(PlainName::try_from(value.to_owned())?);
            Ok(())
        }),
    ),
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
pub(super) fn take(
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
