//! Scripts as steps, in the order given.

use rqps_bench::spec::Counting;
use rqps_model::benchmark::{Group, OwnParameters, Phase, RateUnit, Step, StepTurns, Workload};
use rqps_model::counted::StepCount;
use rqps_model::dialect::Dialect;
use rqps_model::lua::{LuaScript, LuaShape, LuaWork};

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
