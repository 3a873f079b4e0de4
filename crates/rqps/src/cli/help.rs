//! `rqps help`: topics with examples; of a command, its long help.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Command, ValueEnum};
use clap_complete::CompleteEnv;
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::{Bash, EnvCompleter, Fish, Shells, Zsh};

use crate::cli::{exit, folders};
use rqps_builds::catalogue;
use rqps_dbms::config;
use rqps_driver::workload::{SETTINGS, SetError};
use rqps_lab::benchmarks::{self, BenchmarkSpec, StepSet};
use rqps_model::benchmark::Phase;
use rqps_model::build::Dbms;
use rqps_model::dialect::Dialect;
use rqps_model::safe_path;

/// A topic: its name, what it is about, its text.
const TOPICS: [(&str, &str, &str); 7] = [
    ("targets", "how to name a build or a server", include_str!("help/targets.txt")),
    (
        "benchmarks",
        "what rqps can run, and how to choose steps",
        include_str!("help/benchmarks.txt"),
    ),
    ("blocks", "how long to measure, and how targets take turns", include_str!("help/blocks.txt")),
    ("verdicts", "what SLOWER, SAME and INCONCLUSIVE mean", include_str!("help/verdicts.txt")),
    ("why", "from a slower step to the function", include_str!("help/why.txt")),
    ("ci", "how to stop a regression in a CI job", include_str!("help/ci.txt")),
    ("environment", "variables, folders and exit codes", include_str!("help/environment.txt")),
];

/// Topics and commands, for completion.
pub(super) fn topics() -> impl Iterator<Item = &'static str> {
    TOPICS.iter().map(|(name, ..)| *name).chain(["compare", "count", "report", "gate", "bisect"])
}

/// `rqps help [TOPIC]`.
pub(super) fn explain(mut all: Command, topic: Option<&str>) -> Result<u8> {
    let Some(topic) = topic else {
        out!("Usage: rqps help TOPIC\n\nTopics:");
        for (name, about, _) in TOPICS {
            out!("  {name:<12} {about}");
        }
        out!("\nFor a command, such as compare: rqps help compare. All commands: rqps --help");
        return Ok(exit::FINE);
    };
    if let Some((.., text)) = TOPICS.iter().find(|(name, ..)| *name == topic) {
        out!("{}", text.trim_end());
        return Ok(exit::FINE);
    }
    all.build();
    let Some(command) = all.find_subcommand_mut(topic).filter(|command| !command.is_hide_set())
    else {
        let topics: Vec<_> = TOPICS.iter().map(|(name, ..)| *name).collect();
        bail!(
            "explain `{topic}`: no such topic or command\nhint: topics are {}; `rqps --help` lists \
             commands",
            topics.join(", ")
        );
    };
    out!("{}", command.render_long_help());
    Ok(exit::FINE)
}

/// `rqps man DIR`.
pub(super) fn write_manual(command: Command, folder: &Path) -> Result<u8> {
    let doing = || format!("write manual pages into {}", folder.display());
    safe_path::make_folder(folder).with_context(doing)?;
    clap_mangen::generate_to(command, folder).with_context(doing)?;
    info!("rqps: wrote manual pages into {}", folder.display());
    Ok(exit::FINE)
}

// Completion of command lines: answers to a shell, and the script that makes the shell ask.

/// The variable with which the script names its shell.
const VARIABLE: &str = "RQPS_COMPLETE";

const SHELLS: Shells<'static> = Shells(&[&WholeWords, &Zsh, &Fish]);

/// A shell with a script.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Answers a shell that asks for completions of this command. False if none asks.
pub(super) fn answered(command: fn() -> Command) -> clap::error::Result<bool> {
    let here = env::current_dir().ok();
    CompleteEnv::with_factory(command)
        .var(VARIABLE)
        .shells(SHELLS)
        .try_complete(env::args_os(), here.as_deref())
}

/// `rqps completions`.
pub(super) fn script(shell: Shell) -> Result<u8> {
    let of: &dyn EnvCompleter = match shell {
        Shell::Bash => &WholeWords,
        Shell::Zsh => &Zsh,
        Shell::Fish => &Fish,
    };
    let mut stdout = io::stdout().lock();
    of.write_registration(VARIABLE, "rqps", "rqps", "rqps", &mut stdout)
        .context("print the completion script")?;
    Ok(exit::FINE)
}

/// Bash, which splits words at `@`, `:` and `=`, as in `new=postgres@17.2.0:big`. The script joins
/// them again before it asks, and removes from the answers what bash leaves in place: the part
/// before the last split. A word that follows `@` begins with it.
struct WholeWords;

/// The script; `VARIABLE` and `COMPLETER` are replaced. Words with quotes or blanks stay as bash
/// splits them.
const BASH: &str = include_str!("help/completions.bash");

impl EnvCompleter for WholeWords {
    fn name(&self) -> &'static str {
        Bash.name()
    }

    fn is(&self, name: &str) -> bool {
        Bash.is(name)
    }

    fn write_registration(
        &self,
        variable: &str,
        _name: &str,
        program: &str,
        completer: &str,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        let script = BASH
            .replace("VARIABLE", variable)
            .replace("COMPLETER", completer)
            .replace("BIN", program);
        to.write_all(script.as_bytes())
    }

    fn write_complete(
        &self,
        command: &mut Command,
        words: Vec<OsString>,
        here: Option<&Path>,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        let mut found = Vec::new();
        Bash.write_complete(command, words, here, &mut found)?;
        let between = env::var("_CLAP_IFS").unwrap_or_else(|_| "\n".to_owned());
        let found = String::from_utf8_lossy(&found);
        let plain: Vec<&str> = found.split(&between).filter(|word| is_plain(word)).collect();
        to.write_all(plain.join(&between).as_bytes())
    }
}

/// True if bash puts the word into the line as one word without a meaning of its own. Names of files
/// and steps may be of somebody else, and bash quotes no candidate: `$(…)` would be executed.
fn is_plain(word: &str) -> bool {
    word.chars().all(|c| c.is_alphanumeric() || "-_./:@%+=,~".contains(c))
}

/// The candidates that begin with the current word.
fn beginning(current: &OsStr, all: impl IntoIterator<Item = String>) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let fits = |word: &String| word.starts_with(&*current);
    all.into_iter().filter(fits).map(CompletionCandidate::new).collect()
}

/// Completes the last of several words separated by commas.
fn after_comma(current: &OsStr, all: impl IntoIterator<Item = String>) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    let (before, last) = match current.rfind(',') {
        Some(comma) => current.split_at(comma + 1),
        None => ("", &*current),
    };
    let all = beginning(OsStr::new(last), all);
    all.into_iter().map(|candidate| candidate.add_prefix(before)).collect()
}

/// Completes targets: names of DBMSs, of obtainable builds and of configurations, and paths; also
/// after a label.
pub(super) fn targets(current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    // LABEL=DBMS@VERSION, LABEL=DBMS=PATH
    let (label, word) = match current.rfind('=') {
        Some(equals) => current.split_at(equals + 1),
        None => ("", &*current),
    };
    if word.starts_with(['/', '.', '~']) {
        return with_prefix(label, PathCompleter::any().complete(OsStr::new(word)));
    }
    if let Some((build, _)) = word.split_once(':') {
        let name = build.split('@').next().unwrap_or_default();
        let named = Dbms::ALL.iter().find(|dbms| dbms.name() == name);
        let configs = named.map(|dbms| configs(*dbms)).unwrap_or_default();
        let words = configs.into_iter().map(|config| format!("{build}:{config}"));
        return with_prefix(label, beginning(OsStr::new(word), words));
    }
    let versions = catalogue::known(None).into_iter().map(|entry| entry.word());
    let names: Vec<String> = if word.contains('@') {
        versions.collect()
    } else {
        let fetched: BTreeSet<Dbms> = catalogue::known(None).iter().map(|one| one.dbms).collect();
        fetched.iter().map(|dbms| format!("{dbms}@")).chain(["sqlite".to_owned()]).collect()
    };
    with_prefix(label, beginning(OsStr::new(word), names))
}

fn with_prefix(prefix: &str, found: Vec<CompletionCandidate>) -> Vec<CompletionCandidate> {
    found.into_iter().map(|candidate| candidate.add_prefix(prefix)).collect()
}

/// The configurations of a DBMS: shipped ones, and those in the current folder.
fn configs(dbms: Dbms) -> BTreeSet<String> {
    let own = Path::new(folders::CONFIGS).join(dbms.name());
    let own = std::fs::read_dir(own).into_iter().flatten().flatten().map(|entry| entry.path());
    let own = own.filter(|path| path.extension().is_some_and(|end| end == "conf"));
    let own = own.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()));
    own.chain(config::shipped(dbms).iter().map(|name| (*name).to_owned())).collect()
}

/// The value of an option on the line that is completed.
fn said(option: &str) -> Option<String> {
    let mut words = env::args().skip_while(|word| word != "--").skip_while(|word| word != option);
    words.nth(1)
}

/// The benchmarks that the line may mean.
fn meant() -> Vec<&'static BenchmarkSpec> {
    let name = said("--bench");
    let name = name.as_deref().map(|word| word.split(':').next().unwrap_or(word));
    let named = |spec: &&&BenchmarkSpec| name.is_none_or(|name| name == spec.name);
    benchmarks::ALL.iter().filter(named).copied().collect()
}

/// Completes topics and commands of `rqps help`.
pub(super) fn completed_topics(current: &OsStr) -> Vec<CompletionCandidate> {
    beginning(current, topics().map(str::to_owned))
}

/// Completes names of DBMSs.
pub(super) fn dbms(current: &OsStr) -> Vec<CompletionCandidate> {
    beginning(current, Dbms::ALL.iter().map(|dbms| dbms.name().to_owned()))
}

/// Completes names of benchmarks, and files after `sql:`.
pub(super) fn benchmark(current: &OsStr) -> Vec<CompletionCandidate> {
    if let Some((name, file)) = current.to_string_lossy().split_once(':') {
        return with_prefix(&format!("{name}:"), PathCompleter::any().complete(OsStr::new(file)));
    }
    beginning(current, benchmarks::ALL.iter().map(|spec| spec.name.to_owned()))
}

/// Completes presets of the benchmark.
pub(super) fn presets(current: &OsStr) -> Vec<CompletionCandidate> {
    let names: BTreeSet<String> = meant().iter().flat_map(|spec| presets_of(spec)).collect();
    beginning(current, names)
}

/// The presets in the error message about an unknown one.
fn presets_of(spec: &BenchmarkSpec) -> Vec<String> {
    let Err(refusal) = (spec.workload)("?") else { return Vec::new() };
    let known = refusal.split_once("(known: ").map_or("", |(_, known)| known);
    let names = known.trim_end_matches(')').split(", ").map(str::to_owned);
    names.filter(|name| !name.is_empty() && !name.contains(' ')).collect()
}

/// Completes keys of `--set`, with their `=`.
pub(super) fn settings(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut keys = BTreeSet::new();
    for spec in meant() {
        let Some(preset) = presets_of(spec).into_iter().next() else { continue };
        let Ok((mut workload, _)) = (spec.workload)(&preset) else { continue };
        match (spec.set)(&mut workload, "?=") {
            Err(SetError::UnknownKeyOf { known, .. }) => {
                keys.extend(known.split(", ").map(str::to_owned));
            }
            _ => keys.extend(SETTINGS.iter().map(|setting| setting.key.to_owned())),
        }
    }
    beginning(current, keys.into_iter().map(|key| format!("{key}=")))
}

/// Completes steps of the result folder on the line, else of the benchmark.
pub(super) fn steps(current: &OsStr) -> Vec<CompletionCandidate> {
    let folders = env::args().skip_while(|word| word != "--").map(PathBuf::from);
    let mut names: BTreeSet<String> =
        folders.filter(|path| path.join("plan.toml").is_file()).flat_map(steps_in).collect();
    let specs = if names.is_empty() { meant() } else { Vec::new() };
    for spec in specs {
        let Some(preset) = presets_of(spec).into_iter().next() else { continue };
        let Ok((workload, _)) = (spec.workload)(&preset) else { continue };
        for phase in benchmarks::phases(Dialect::Postgres, StepSet::Full, &workload) {
            if let Phase::Measure(step) = phase {
                names.insert(step.name.to_string());
            }
        }
    }
    after_comma(current, names)
}

/// The steps of the first runs of a result folder, by the names of their files.
fn steps_in(results: PathBuf) -> Vec<String> {
    let entries = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten();
    let name = |entry: std::fs::DirEntry| {
        let path = entry.path();
        let name =
            path.file_stem().filter(|_| path.extension().is_some_and(|end| end == "json"))?;
        Some(name.to_str()?.split_once('-')?.1.to_owned())
    };
    let runs = entries(&results).map(|run| run.path().join("steps")).filter(|path| path.is_dir());
    runs.take(2).flat_map(|steps| entries(&steps).filter_map(name).collect::<Vec<_>>()).collect()
}

/// Completes folders; those with a plan come first.
pub(super) fn result_folders(current: &OsStr) -> Vec<CompletionCandidate> {
    let holds_plan = |path: &OsStr| Path::new(path).join("plan.toml").is_file();
    let mut found = PathCompleter::dir().complete(current);
    found.sort_by_key(|folder| !holds_plan(folder.get_value()));
    let ordered = found.into_iter().enumerate();
    ordered.map(|(place, folder)| folder.display_order(Some(place))).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::args::Arguments;

    #[test]
    fn every_example_is_a_command_line_that_rqps_accepts() {
        let mut seen = 0;
        for (name, _, text) in TOPICS {
            for line in text.lines() {
                let Some(words) = line.strip_prefix("    rqps ") else { continue };
                let words = words.split('#').next().unwrap_or_default().split_whitespace();
                let words = std::iter::once("rqps").chain(words);
                if let Err(error) = Arguments::try_parse_from(words) {
                    panic!("{name}: {line}: {error}");
                }
                seen += 1;
            }
            assert!(text.lines().all(|line| line.chars().count() <= 100), "{name}");
        }
        assert!(seen > 20, "{seen}");
    }
}

#[cfg(test)]
mod completion_tests {
    use super::*;

    fn words(found: Vec<CompletionCandidate>) -> Vec<String> {
        found.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_target_is_completed_in_two_steps() {
        assert_eq!(words(targets(OsStr::new("post"))), ["postgres@"]);
        assert!(
            words(targets(OsStr::new("postgres@17.2"))).contains(&"postgres@17.2.0".to_owned())
        );
        assert_eq!(words(targets(OsStr::new("new=sql"))), ["new=sqlite@", "new=sqlite"]);
        assert_eq!(words(targets(OsStr::new("oracle"))), [""; 0]);
        assert_eq!(words(targets(OsStr::new("sqlite:small"))), ["sqlite:small-cache"]);
        assert_eq!(words(targets(OsStr::new("a=postgres=/us"))), ["a=postgres=/usr/"]);
    }

    #[test]
    fn the_last_of_several_steps_is_completed() {
        let found = words(steps(OsStr::new("scan,point-q")));
        assert!(found.contains(&"scan,point-query".to_owned()), "{found:?}");
    }

    #[test]
    fn every_benchmark_but_files_has_presets_and_keys() {
        for spec in benchmarks::ALL {
            assert!(!presets_of(spec).is_empty(), "{}", spec.name);
        }
        let keys = words(settings(OsStr::new("")));
        for key in ["rows=", "turn_ms=", "value_bytes="] {
            assert!(keys.contains(&key.to_owned()), "{key}: {keys:?}");
        }
        assert!(words(presets(OsStr::new("qu"))).contains(&"quick".to_owned()));
    }

    #[test]
    fn result_folders_come_first() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        std::fs::write(folder.path().join("b/plan.toml"), "").unwrap();
        let asked = format!("{}/", folder.path().display());
        let found = words(result_folders(OsStr::new(&asked)));
        assert_eq!(found, [format!("{asked}b/"), format!("{asked}a/")]);
    }
}
