//! Completion of command lines: answers to a shell, and the script that makes the shell ask.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};
use clap::{Command, ValueEnum};
use clap_complete::CompleteEnv;
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::{Bash, EnvCompleter, Fish, Shells, Zsh};

use crate::cli::{exit, help};
use rqps_builds::catalogue;
use rqps_driver::workload::settings::{SETTINGS, SetError};
use rqps_lab::benchmarks::{self, BenchmarkSpec, StepSet};
use rqps_model::benchmark::Phase;
use rqps_model::build::Dbms;
use rqps_model::dialect::Dialect;

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
/// them again before it asks, and removes from the answers the part before the last split.
struct WholeWords;

/// The script; `VARIABLE` and `COMPLETER` are replaced. Words with quotes or blanks stay as bash
/// splits them.
const BASH: &str = r#"_rqps() {
    local line=${COMP_LINE:0:COMP_POINT} words current kept IFS=$' \t\n'
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    current=${words[${#words[@]}-1]}
    kept=${current%"${current##*[@:=]}"}
    local IFS=$'\013'
    COMPREPLY=($(_CLAP_IFS="$IFS" _CLAP_COMPLETE_INDEX=$((${#words[@]} - 1)) \
        VARIABLE=bash COMPLETER -- "${words[@]}"))
    COMPREPLY=("${COMPREPLY[@]#"$kept"}")
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[@=/:] ]] && compopt -o nospace
}
complete -o bashdefault -o nosort -F _rqps BIN
"#;

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
        Bash.write_complete(command, words, here, to)
    }
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

/// Completes targets: names of DBMSs and of obtainable builds, also after a label.
pub(super) fn targets(current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    // Completes the name in LABEL=DBMS@VERSION; the shell completes DBMS=PATH.
    let (label, word) = match current.rfind('=') {
        Some(equals) => current.split_at(equals + 1),
        None => ("", &*current),
    };
    let versions = catalogue::known(None).into_iter().map(|entry| entry.word());
    let names: Vec<String> = if word.contains('@') {
        versions.collect()
    } else {
        let fetched: BTreeSet<Dbms> = catalogue::known(None).iter().map(|one| one.dbms).collect();
        fetched.iter().map(|dbms| format!("{dbms}@")).chain(["sqlite".to_owned()]).collect()
    };
    let found = beginning(OsStr::new(word), names);
    found.into_iter().map(|candidate| candidate.add_prefix(label)).collect()
}

/// Completes topics and commands of `rqps help`.
pub(super) fn topics(current: &OsStr) -> Vec<CompletionCandidate> {
    beginning(current, help::topics().map(str::to_owned))
}

/// Completes names of DBMSs.
pub(super) fn dbms(current: &OsStr) -> Vec<CompletionCandidate> {
    beginning(current, Dbms::ALL.iter().map(|dbms| dbms.name().to_owned()))
}

/// Completes names of benchmarks.
pub(super) fn benchmark(current: &OsStr) -> Vec<CompletionCandidate> {
    beginning(current, benchmarks::ALL.iter().map(|spec| spec.name.to_owned()))
}

/// Completes presets of all benchmarks, because the chosen one is unknown here.
pub(super) fn presets(current: &OsStr) -> Vec<CompletionCandidate> {
    let names: BTreeSet<String> =
        benchmarks::ALL.iter().flat_map(|spec| presets_of(spec)).collect();
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
    for spec in benchmarks::ALL {
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

/// Completes steps of all benchmarks.
pub(super) fn steps(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut names = BTreeSet::new();
    for spec in benchmarks::ALL {
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
