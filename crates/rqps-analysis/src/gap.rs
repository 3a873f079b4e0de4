//! The gap between two targets: what of one could be put into the other, and what each of these
//! changes is worth.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::compare::normal;
use rqps_model::bisection::Intervention;
use rqps_model::build::recorded;
use rqps_model::dialect::Dialect;
use rqps_stats::Interval;
use rqps_stats::factors::Account;

// What is known of a gap at the end, as reports show it.

/// The gap between two targets in a step. All effects are logarithms of ratios of rates.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gap {
    /// The step.
    pub step: String,
    /// Label of the target that was changed.
    pub base: String,
    /// Label of the target that it was to become like.
    pub goal: String,
    /// The goal against the base, as both are; `None` if they cannot be measured.
    pub ends: GapEnds,
    /// Settings that differ and could be changed.
    pub candidates: usize,
    /// Changes that are worth something, the largest first; the same order as in the account.
    pub causes: Vec<Cause>,
    /// What they are worth; `None` if there are none.
    pub account: Option<Account>,
    /// What they are worth in each step, if that was asked for.
    pub steps: Vec<GapStep>,
    /// Changes of which too little is known.
    pub unknown: Vec<Unknown>,
    /// Changes that cannot be made, with the reason, in the server's words where it has some.
    pub impossible: BTreeMap<String, String>,
    /// Settings that differ and are no change.
    pub left_out: Vec<LeftOut>,
    /// What was spent.
    pub cost: GapCost,
    /// Smaller effects do not matter.
    pub least: f64,
}

/// The causes in one step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GapStep {
    /// Its name.
    pub name: String,
    /// What they are worth there; `None` if no two blocks have it for all targets.
    pub account: Option<Account>,
}

/// The two targets as they are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GapEnds {
    /// ln(goal / base).
    pub ln: f64,
    /// Its 95 % interval.
    pub interval: Option<Interval>,
    /// True if they were shown to differ.
    pub differ: bool,
}

/// One change, or several that do something only together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cause {
    /// The changes.
    pub changes: Vec<Intervention>,
}

impl Cause {
    /// `name = value`, or the number of changes and their names.
    pub fn text(&self) -> String {
        match self.changes.as_slice() {
            [one] => format!("{} = {}", one.name, if one.to.is_empty() { "''" } else { &one.to }),
            several => {
                let names: Vec<&str> = several.iter().map(|it| it.name.as_str()).collect();
                format!("{} settings together: {}", several.len(), names.join(", "))
            }
        }
    }
}

/// Changes that stay undecided.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unknown {
    /// Their names.
    pub names: Vec<String>,
    /// The interval of their effect; `None` if time did not suffice to measure them.
    pub interval: Option<Interval>,
}

/// The costs of a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct GapCost {
    /// Rounds.
    pub rounds: usize,
    /// Runs of one target in one block.
    pub runs: usize,
    /// Seconds, loads included.
    pub seconds: f64,
}

// Settings that differ between two servers, as changes of one towards the other.

/// Name → value of all that a server said it has.
type Settings = BTreeMap<String, String>;

/// What could be changed, and what could not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Candidates {
    /// Those most likely to matter first.
    pub interventions: Vec<Intervention>,
    /// Settings that differ and are no change, by their reason.
    pub left_out: Vec<LeftOut>,
}

/// Settings that differ and cannot, or need not, be changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The reason.
    pub reason: &'static str,
    /// The settings.
    pub names: Vec<String>,
}

const REMOVED: &str = "exist only on the other side";
const ADDED: &str = "are new, and have no value that stands for their absence";
const UNWRITTEN: &str = "have values that no config can hold";

/// What a name tells of why its setting is no candidate: a dialect and a reason, and below them
/// names by their beginning (`x*`), their end (`*x`) or as a whole. The first that fits counts.
const BY_NAME: &str = include_str!("gap_settings.txt");

/// Settings that decide what a load writes.
const OF_LOADS: &str = "character_set_server default_storage_engine innodb_default_row_format \
    innodb_file_per_table innodb_file_format innodb_checksum_algorithm \
    innodb_undo_tablespaces innodb_log_files_in_group explicit_defaults_for_timestamp \
    default_toast_compression default_table_access_method default_statistics_target \
    page_size encoding auto_vacuum innodb_stats_persistent_sample_pages";

/// Values that stand for the absence of a setting which is no switch.
const ABSENT: [(&str, &str); 1] = [("io_method", "sync")];

/// Changes of a server with the settings `base` towards one with the settings `goal`.
pub fn candidates(dialect: Dialect, base: &Settings, goal: &Settings) -> Candidates {
    let mut found = Vec::new();
    let mut left_out: BTreeMap<&'static str, Vec<String>> = BTreeMap::new();
    let names: BTreeSet<&String> = base.keys().chain(goal.keys()).collect();
    for name in names {
        let (from, to) = (base.get(name), goal.get(name));
        if from.map(|it| normal(it)) == to.map(|it| normal(it)) {
            continue;
        }
        let changed = match class(dialect, name) {
            Some(reason) => Err(reason),
            None => change(dialect, name, from, to, goal),
        };
        match changed {
            Ok(changes) => found.extend(changes),
            Err(reason) => left_out.entry(reason).or_default().push(name.clone()),
        }
    }
    let known: Vec<&str> = recorded(dialect).collect();
    let rank = |change: &Intervention| {
        let name = change.effective.keys().next().map_or("", String::as_str);
        known.iter().position(|it| *it == name).unwrap_or(known.len())
    };
    found.sort_by(|a, b| (rank(a), &a.name).cmp(&(rank(b), &b.name)));
    let left_out = left_out.into_iter().map(|(reason, names)| LeftOut { reason, names });
    Candidates { interventions: found, left_out: left_out.collect() }
}

/// The reason why a setting is no candidate, by its name.
fn class(dialect: Dialect, name: &str) -> Option<&'static str> {
    let own = match dialect {
        Dialect::Mysql => "mysql: ",
        Dialect::Postgres => "postgres: ",
        Dialect::Sqlite => "sqlite: ",
        Dialect::KeyValue => "key-value: ",
        Dialect::Fake => return None,
    };
    let name = name.to_lowercase();
    let fits = |pattern: &str| match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (Some(rest), Some(_)) => name.contains(rest.trim_end_matches('*')),
        (Some(end), None) => name.ends_with(end),
        (None, Some(begin)) => name.starts_with(begin),
        (None, None) => name == pattern,
    };
    let rows = BY_NAME.split("\n\n").filter_map(|row| row.strip_prefix(own)?.split_once('\n'));
    let mut fitting = rows.filter(|(_, patterns)| patterns.split_whitespace().any(fits));
    fitting.next().map(|(reason, _)| reason)
}

/// The changes that a setting stands for; the error is why it stands for none.
fn change(
    dialect: Dialect,
    name: &str,
    from: Option<&String>,
    to: Option<&String>,
    goal: &Settings,
) -> Result<Vec<Intervention>, &'static str> {
    let Some(from) = from else { return Err(REMOVED) };
    let (to, about) = match to {
        Some(to) => (to.clone(), String::new()),
        None => {
            (absence(name, from).ok_or(ADDED)?, "the other side has no such setting".to_owned())
        }
    };
    let is_server = dialect != Dialect::KeyValue;
    // A folder of somebody else's may tell them: none may become another line, or lead to a file,
    // such as a library.
    let holds =
        |c: char| c.is_control() || c == '/' || is_server && matches!(c, '{' | '}' | '"' | '\\');
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let collation = goal.get("collation_server");
    if [&to, from].into_iter().chain(collation).any(|text| text.contains(holds))
        || is_server && (to.starts_with('.') || !name.chars().all(is_of_name))
        || name.contains(holds)
    {
        return Err(UNWRITTEN);
    }
    let named = |lines, effective: Settings| Intervention {
        name: name.to_owned(),
        from: from.clone(),
        to: to.clone(),
        lines,
        effective,
        loads_anew: dialect == Dialect::KeyValue || OF_LOADS.split(' ').any(|it| it == name),
        about: about.clone(),
    };
    let itself = Settings::from([(name.to_owned(), to.clone())]);
    Ok(match (dialect, name) {
        (Dialect::Mysql, "optimizer_switch") => switches(from, &to),
        (Dialect::Mysql, "log_bin") => {
            let line = if normal(&to) == "on" {
                "log_bin = binlog\nserver_id = 1"
            } else {
                "skip_log_bin"
            };
            vec![named(line.lines().map(str::to_owned).collect(), itself)]
        }
        (Dialect::Mysql, "character_set_server") => {
            let both = collation.map(|name| ("collation_server".to_owned(), name.clone()));
            let effective: Settings = itself.into_iter().chain(both).collect();
            let lines = effective.iter().map(|(name, value)| line(dialect, name, value));
            vec![named(lines.collect(), effective.clone())]
        }
        _ => vec![named(vec![line(dialect, name, &to)], itself)],
    })
}

/// A line of a config.
fn line(dialect: Dialect, name: &str, value: &str) -> String {
    match dialect {
        Dialect::Postgres => format!("{name} = '{}'", value.replace('\'', "''")),
        // A name that is no option of this version does not keep the server from starting.
        Dialect::Mysql if value.contains([' ', '#', ';', '\'']) => {
            format!("loose_{name} = \"{value}\"")
        }
        Dialect::Mysql => format!("loose_{name} = {value}"),
        Dialect::Sqlite | Dialect::KeyValue | Dialect::Fake => format!("{name} = {value}"),
    }
}

/// The value that stands for a setting which the other side does not have.
fn absence(name: &str, value: &str) -> Option<String> {
    let known =
        ABSENT.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    known.or_else(|| {
        (normal(value) == "on" && value.len() > 1)
            .then(|| if value == "on" { "off" } else { "OFF" }.to_owned())
    })
}

/// Each switch of the optimizer that differs.
fn switches(from: &str, to: &str) -> Vec<Intervention> {
    let all = |text: &str| -> BTreeMap<String, String> {
        let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
        pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
    };
    let (base, goal) = (all(from), all(to));
    let differing = base.iter().filter_map(|(name, from)| {
        let to = goal.get(name).map_or("off", String::as_str);
        (from != to).then(|| Intervention {
            name: format!("optimizer_switch {name}"),
            from: from.clone(),
            to: to.to_owned(),
            lines: vec![format!("optimizer_switch = {name}={to}")],
            effective: Settings::from([("optimizer_switch".to_owned(), format!("{name}={to}"))]),
            loads_anew: false,
            about: String::new(),
        })
    });
    differing.collect()
}

/// The settings of a change that a server does not have although it started with it, with what it
/// has instead.
pub fn not_taken(change: &Intervention, settings: &Settings) -> Option<String> {
    if settings.is_empty() {
        return None;
    }
    change.effective.iter().find_map(|(name, wanted)| {
        let Some(value) = settings.get(name) else {
            return Some(format!("the server says nothing of {name}"));
        };
        let is_taken = if name == "optimizer_switch" {
            value.split(',').any(|pair| pair.trim() == wanted)
        } else {
            normal(value) == normal(wanted)
        };
        (!is_taken).then(|| format!("the server keeps {name} at {value}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn check(dialect: Dialect, base: &[(&str, &str)], goal: &[(&str, &str)], expected: &[&str]) {
        let found = candidates(dialect, &settings(base), &settings(goal));
        let lines: Vec<String> =
            found.interventions.iter().map(|change| change.lines.join("; ")).collect();
        assert_eq!(lines, expected, "{found:?}");
    }

    #[test]
    fn differences_become_lines_of_a_config() {
        check(
            Dialect::Postgres,
            &[("port", "1"), ("jit", "on"), ("work_mem", "4096"), ("io_method", "worker")],
            &[("port", "2"), ("jit", "off"), ("work_mem", "4096"), ("gone", "1")],
            &["jit = 'off'", "io_method = 'sync'"],
        );
        check(
            Dialect::Mysql,
            &[("log_bin", "ON"), ("new_switch", "ON"), ("new_size", "8"), ("big_tables", "OFF")],
            &[("log_bin", "OFF"), ("big_tables", "0")],
            &["skip_log_bin", "loose_new_switch = OFF"],
        );
        check(
            Dialect::Mysql,
            &[("character_set_server", "utf8mb4"), ("collation_server", "utf8mb4_0900_ai_ci")],
            &[("character_set_server", "latin1"), ("collation_server", "latin1_swedish_ci")],
            &["loose_character_set_server = latin1; loose_collation_server = latin1_swedish_ci"],
        );
        check(
            Dialect::Mysql,
            &[("optimizer_switch", "mrr=on,icp=on,hash_join=on")],
            &[("optimizer_switch", "mrr=off,icp=on")],
            &["optimizer_switch = hash_join=off", "optimizer_switch = mrr=off"],
        );
        check(
            Dialect::Sqlite,
            &[("synchronous", "2")],
            &[("synchronous", "1")],
            &["synchronous = 1"],
        );
    }

    #[test]
    fn what_no_config_can_hold_is_left_out_with_its_reason() {
        // Names and values of a folder of somebody else's, for `rqps gap --resume`.
        let name = "d = 1\nshared_preload_libraries";
        let base = settings(&[
            ("a", "1"),
            ("b", "1"),
            ("c", "7"),
            ("data_directory", "/x"),
            (name, "1"),
            ("e", "1"),
        ]);
        let goal = settings(&[
            ("a", "1\nfsync = off"),
            ("b", "/etc/passwd"),
            ("data_directory", "/y"),
            (name, "2"),
            ("e", "$libdir/../../tmp/evil"),
        ]);
        let found = candidates(Dialect::Postgres, &base, &goal);
        assert_eq!(found.interventions, []);
        let names = |reason| {
            found.left_out.iter().find(|it| it.reason == reason).map(|it| it.names.join(","))
        };
        assert_eq!(names(UNWRITTEN).as_deref(), Some(&*format!("a,b,{name},e")));
        assert_eq!(names("say who and where a server is").as_deref(), Some("data_directory"));
        assert_eq!(names(ADDED).as_deref(), Some("c"));
        let base = settings(&[("character_set_server", "a"), ("optimizer_switch", "x\ny=on")]);
        let goal = settings(&[
            ("character_set_server", "b"),
            ("collation_server", "c\nplugin_load = d"),
            ("optimizer_switch", "mrr=on"),
        ]);
        let found = candidates(Dialect::Mysql, &base, &goal);
        assert_eq!(found.interventions, []);
    }

    #[test]
    fn what_the_server_keeps_is_told() {
        let (base, goal) = (settings(&[("x", "1")]), settings(&[("x", "2")]));
        let found = candidates(Dialect::Postgres, &base, &goal).interventions.remove(0);
        assert_eq!(not_taken(&found, &settings(&[("x", "2")])), None);
        assert_eq!(not_taken(&found, &base).as_deref(), Some("the server keeps x at 1"));
        assert_eq!(not_taken(&found, &Settings::new()), None, "it tells nothing");
    }
}
