//! The plan file: TOML that a person can write, and that a result folder keeps.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use crate::benchmarks::{self, StepSet};
use crate::plan::blocks::{Sittings, Spelled};
use crate::plan::client_hosts;
use crate::plan::definition::{CountingPass, Interleave, Plan, PlanDraft, ProfilingPass};
use crate::plan::words::{self, TargetParseError};
use rqps_bench::spec::Interface;
use rqps_driver::workload::SelectError;
use rqps_model::benchmark::{BackgroundState, BenchmarkParameters, Pace, Phase, Workload};
use rqps_model::build::{BuildSource, Dbms, Target};
use rqps_model::dialect::Dialect;
use rqps_model::sql_workload::{PinnedFile, SqlLoad, SqlParameter, SqlShape, SqlStep};
use rqps_model::verdict::GateRules;
use rqps_model::{bounded, units};
use rqps_text::toml_reader::{self, TomlError};
use rqps_wire::dsn;

/// Bytes of the longest plan. One of 256 targets has some hundred kilobytes.
const PLAN_BYTES_MAX: u64 = 4 << 20;

/// A plan file that cannot be used.
#[derive(Debug, Error)]
pub enum PlanError {
    /// Not TOML, or a field is missing, unknown or of the wrong kind. The text shows the line.
    #[error("read the plan: {0}")]
    Syntax(#[from] TomlError),
    /// As a tree it would take a hundred times its length.
    #[error(
        "read the plan: it has {}, and {} is the most; put long SQL into files of its workload",
        units::bytes(*.0), units::bytes(PLAN_BYTES_MAX)
    )]
    TooLong(u64),
    /// A target word is wrong.
    #[error(transparent)]
    Word(#[from] TargetParseError),
    /// A glob that matches no step.
    #[error(transparent)]
    Steps(#[from] SelectError),
    /// A value that cannot be measured.
    #[error("{0}")]
    Value(String),
    /// It has no written form.
    #[error("write the plan: {0}")]
    Unwritable(String),
}

/// The file as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    /// Target words; the first is the base.
    targets: Vec<String>,
    benchmark: String,
    order: StepSet,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    steps: Vec<String>,
    blocks: Spelled,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sittings: Option<Sittings>,
    #[serde(default = "one", skip_serializing_if = "is_one")]
    loads: u32,
    interleave: Interleave,
    /// A string, because TOML's integers end at 2⁶³ − 1.
    seed: String,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    canaries: bool,
    workload: Workload,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gate: Option<GateRules>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    count: Option<CountingPass>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    profile: Option<ProfilingPass>,
    /// With `benchmark = "sql"`, the tables of a workload file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    variables: BTreeMap<String, i64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    files: BTreeMap<String, PinnedFile>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    load: Option<SqlLoad>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    parameter: BTreeMap<String, SqlParameter>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    step: Vec<SqlStep>,
}

impl PlanFile {
    fn of(plan: &PlanDraft) -> PlanFile {
        let words = plan.targets.iter().map(|target| words::word(&without_password(target)));
        // The tables of a workload file stand at the top, where a person reads them.
        let mut workload = plan.workload.clone();
        let shape = match std::mem::take(&mut workload.shape) {
            BenchmarkParameters::Sql(shape) => *shape,
            shape => {
                workload.shape = shape;
                SqlShape::default()
            }
        };
        let SqlShape { variables, files, load, parameter, step } = shape;
        PlanFile {
            targets: words.collect(),
            benchmark: plan.benchmark().to_owned(),
            order: plan.order,
            steps: plan.steps.clone(),
            blocks: Spelled::of(plan.blocks),
            sittings: plan.sittings.clone(),
            loads: plan.loads,
            interleave: plan.interleave,
            seed: plan.seed.to_string(),
            canaries: plan.canaries,
            workload,
            gate: plan.gate.clone(),
            count: plan.count,
            profile: plan.profile,
            variables,
            files,
            load,
            parameter,
            step,
        }
    }

    /// Puts the tables of a workload file into the workload.
    fn take_sql(&mut self, text: &str) -> Result<(), PlanError> {
        let shape = SqlShape {
            variables: std::mem::take(&mut self.variables),
            files: std::mem::take(&mut self.files),
            load: self.load.take(),
            parameter: std::mem::take(&mut self.parameter),
            step: std::mem::take(&mut self.step),
        };
        if self.benchmark == SQL {
            let shape = benchmarks::sql::steps::placed(text, shape);
            self.workload.shape = BenchmarkParameters::Sql(Box::new(shape));
        } else if shape != SqlShape::default() {
            return Err(PlanError::Value(format!(
                "[variables], [load], [files], [parameter] and [[step]] belong to `benchmark = \
                 \"{SQL}\"`, and this plan has `benchmark = \"{}\"`",
                self.benchmark
            )));
        }
        Ok(())
    }
}

/// The benchmark whose workload is a file of statements.
const SQL: &str = "sql";

fn one() -> u32 {
    1
}

fn is_one(loads: &u32) -> bool {
    *loads == 1
}

fn yes() -> bool {
    true
}

fn is_yes(value: &bool) -> bool {
    *value
}

/// Reads a plan file.
///
/// # Errors
/// See [`PlanError`]; each names the field or the word.
pub fn parse(text: &str) -> Result<Plan, PlanError> {
    Plan::build(draft(text)?).map_err(quoting)
}

/// An error that quotes a plan, which may be a stranger's: on one line.
fn quoting(error: PlanError) -> PlanError {
    match error {
        PlanError::Syntax(_) | PlanError::TooLong(_) => error,
        other => PlanError::Value(other.to_string().replace('\n', " ")),
    }
}

/// Reads a plan file that is to be changed before it is checked.
///
/// # Errors
/// Text that is no plan file; a word of a target; another benchmark than that of the workload.
pub fn draft(text: &str) -> Result<PlanDraft, PlanError> {
    read(text).map_err(quoting)
}

fn read(text: &str) -> Result<PlanDraft, PlanError> {
    let bytes = text.len() as u64;
    if bytes > PLAN_BYTES_MAX {
        return Err(PlanError::TooLong(bytes));
    }
    let mut file: PlanFile = toml_reader::read(text)?;
    file.take_sql(text)?;
    let seed = file.seed.parse().map_err(|_| {
        PlanError::Value(format!("seed `{}` is not a number from 0 to 2^64 - 1", file.seed))
    })?;
    if file.benchmark != file.workload.shape.benchmark() {
        return Err(PlanError::Value(format!(
            "the plan names benchmark `{}`, but its workload belongs to `{}`",
            file.benchmark,
            file.workload.shape.benchmark()
        )));
    }
    Ok(PlanDraft {
        targets: words::targets(&file.targets)?,
        order: file.order,
        steps: file.steps,
        workload: file.workload,
        blocks: file.blocks.blocks().map_err(PlanError::Value)?,
        sittings: file.sittings,
        loads: file.loads,
        interleave: file.interleave,
        seed,
        canaries: file.canaries,
        gate: file.gate,
        count: file.count,
        profile: file.profile,
    })
}

/// The `[gate]` table of a plan file, or of a file that has nothing else in it; the defaults if
/// there is none. Everything outside the table is passed over: a gate must not fail because the
/// plan is of another version.
///
/// # Errors
/// Text that is no TOML, and rules that cannot be used.
pub fn gate_rules(text: &str) -> Result<GateRules, PlanError> {
    #[derive(Deserialize)]
    struct Only {
        #[serde(default)]
        gate: GateRules,
    }
    let only: Only = toml_reader::read(text)?;
    match only.gate.fault() {
        Some(fault) => Err(PlanError::Value(format!("[gate]: {fault}"))),
        None => Ok(only.gate),
    }
}

/// Refuses what cannot be measured.
pub(super) fn check(plan: &PlanDraft) -> Result<(), PlanError> {
    let wrong = |text: &str| Err(PlanError::Value(text.to_owned()));
    let workload = &plan.workload;
    if plan.targets.is_empty() {
        return wrong("a plan needs at least one target");
    }
    if let Some(fault) = plan.gate.as_ref().and_then(GateRules::fault) {
        return wrong(&format!("[gate]: {fault}"));
    }
    check_products(plan)?;
    check_passes(plan)?;
    let of_sittings = || plan.sittings.as_ref().and_then(|sittings| sittings.fault(plan));
    if let Some(fault) = plan.blocks.fault().or_else(of_sittings) {
        return wrong(&fault);
    }
    let external = plan.targets.iter().find(|target| target.source.is_elsewhere());
    if let (Some(target), Some(BackgroundState::Stopped)) = (external, workload.waiting) {
        return wrong(&format!(
            "waiting=stopped stops servers during the turns of others, but rqps does not run {}: \
             leave it out",
            target.label
        ));
    }
    check_clients(workload)?;
    client_hosts::check(plan).map_err(PlanError::Value)?;
    check_loads(plan)?;
    // The widest limits of the settings of any benchmark.
    if !(1..=10_000).contains(&workload.tables) || !(1..=100_000_000_000).contains(&workload.rows) {
        return wrong("tables must be from 1 to 10000, and rows from 1 to 100000000000");
    }
    let seconds = [workload.read_seconds, workload.write_seconds];
    if seconds.iter().any(|seconds| !(*seconds > 0.0 && *seconds <= 86_400.0)) {
        return wrong("read_seconds and write_seconds must be above 0 and at most 86400");
    }
    let pauses = [(workload.warmup_seconds, 3600.0), (workload.settle_scale, 10.0)];
    if pauses.iter().any(|(pause, most)| !(0.0..=*most).contains(pause)) {
        return wrong("warmup_seconds must be from 0 to 3600, and settle_scale from 0 to 10");
    }
    for target in &plan.targets {
        let spec = benchmarks::of(workload);
        (spec.check)(&plan.workload_of(target), target.dbms.dialect()).map_err(PlanError::Value)?;
        (spec.check_target)(target).map_err(PlanError::Value)?;
        check_has_tables(workload, target)?;
        plan.phases(target)?;
    }
    Ok(())
}

/// Refuses a workload of the user's own that would find no tables.
fn check_has_tables(workload: &Workload, target: &Target) -> Result<(), PlanError> {
    let Some(file) = &benchmarks::of(workload).file else { return Ok(()) };
    let is_scripted = target.dbms.dialect().is_scripted();
    if matches!(target.source, BuildSource::Dsn(_)) || is_scripted || (file.has_load)(workload) {
        return Ok(());
    }
    Err(PlanError::Value(format!(
        "rqps starts {} on an empty database, and the workload has no [load]\nhint: name the files \
         that make its tables under [load], or measure a server by its DSN",
        target.label
    )))
}

/// Refuses client counts that cannot be measured.
fn check_clients(workload: &Workload) -> Result<(), PlanError> {
    let Workload { clients, client_counts, shape, .. } = workload;
    if *clients == 0 || *clients > 10_000 {
        return Err(PlanError::Value(format!("clients must be from 1 to 10000, not {clients}")));
    }
    let ascend = client_counts.is_sorted_by(|a, b| a < b) && client_counts.first() != Some(&0);
    let ends = client_counts.last().unwrap_or(clients) == clients;
    if !(ascend && ends) {
        return Err(PlanError::Value(format!(
            "client_counts must ascend from 1 or more to clients ({clients}), such as clients = 16 \
             and client_counts = [1, 4, 16], not {client_counts:?}"
        )));
    }
    match benchmarks::of(workload).single_count {
        Some(instead) if !client_counts.is_empty() => Err(PlanError::Value(format!(
            "run the benchmark {} with {}: {instead}",
            shape.benchmark(),
            workload.clients_text()
        ))),
        _ => Ok(()),
    }
}

/// Refuses loads that no block would start from.
fn check_loads(plan: &PlanDraft) -> Result<(), PlanError> {
    let (loads, most) = (plan.loads, plan.blocks.most());
    let fault = if loads == 0 || loads > most {
        format!(
            "loads must be from 1 to the number of blocks ({most}), not {loads}: each block starts \
             from one load; use fewer loads or more blocks"
        )
    } else if plan.blocks.schedule().is_some() && loads > 1 && loads < most {
        format!(
            "loads must be 1 or {most} with blocks = \"auto\", not {loads}: the error rates of \
             interim looks hold for independent blocks, and blocks that share a load are not \
             independent"
        )
    } else if loads > 1 && plan.targets.iter().any(|target| plan.load_request(target).is_none()) {
        format!(
            "run {} with {loads} loads: loading is a step of every block there, so each block has \
             its own load already; leave loads out",
            plan.benchmark()
        )
    } else {
        return Ok(());
    };
    Err(PlanError::Value(fault))
}

/// Refuses passes after the blocks that nothing can come of.
fn check_passes(plan: &PlanDraft) -> Result<(), PlanError> {
    let wrong = |text: &str| Err(PlanError::Value(text.to_owned()));
    check_counted(plan).map_err(PlanError::Value)?;
    if let Some(counting) = plan.counting_pass() {
        if counting.targets.is_empty() {
            return wrong(
                "count instructions: rqps starts none of these targets itself; leave \
                          --count out",
            );
        }
        if !(1..=100).contains(&counting.blocks.most()) {
            return wrong("the number of repeats of the counting pass must be 1 to 100");
        }
        check_counted(&counting).map_err(PlanError::Value)?;
    }
    if let Some(profiling) = plan.profiling_pass() {
        if profiling.targets.is_empty() {
            return wrong("profile: rqps starts none of these targets itself; leave --profile out");
        }
        if !(1..=100).contains(&profiling.blocks.most()) {
            return wrong("blocks of the profiling pass must be from 1 to 100");
        }
        check_profiled(&profiling.workload).map_err(PlanError::Value)?;
    }
    check_profiled(&plan.workload).map_err(PlanError::Value)?;
    Ok(())
}

/// Refuses a plan that cannot be counted. The error is a sentence.
fn check_counted(plan: &PlanDraft) -> Result<(), String> {
    let Some(statements) = plan.workload.counted_statements else { return Ok(()) };
    if !(10..=1_000_000).contains(&statements) {
        return Err(format!("counted statements must be from 10 to 1000000, not {statements}"));
    }
    if plan.workload.clients != 1 || plan.workload.pace != Pace::Closed {
        return Err("a count needs one client with a closed pace, because threads under valgrind \
                    run one at a time"
            .to_owned());
    }
    if plan.interleave != Interleave::Run {
        return Err("a count needs `interleave = \"run\"`".to_owned());
    }
    for target in &plan.targets {
        let label = &target.label;
        if matches!(target.source, BuildSource::Dsn(_)) {
            return Err(format!(
                "count in {label}: rqps does not run that server, so it cannot start it under \
                 valgrind; name a build instead of a DSN"
            ));
        }
        if target.dbms.dialect() == Dialect::Fake {
            return Err(format!("count in {label}: it executes nothing"));
        }
        check_counted_steps(plan, target)?;
    }
    Ok(())
}

/// Refuses a sample rate that is too low to be useful or too costly. The error is a sentence.
fn check_profiled(workload: &Workload) -> Result<(), String> {
    match workload.profile_hertz {
        Some(hertz) if !(10..=10_000).contains(&hertz) => {
            Err(format!("samples of a profile must be from 10 to 10000 per second, not {hertz}"))
        }
        _ => Ok(()),
    }
}

/// Refuses a plan of which no step can be counted on a target. The error is a sentence.
fn check_counted_steps(plan: &PlanDraft, target: &Target) -> Result<(), String> {
    // If a glob matches no step, `phases` reports it elsewhere.
    let Ok(phases) = plan.phases(target) else { return Ok(()) };
    let mut first = None;
    for phase in &phases {
        let Phase::Measure(step) = phase else { continue };
        match plan.counted(step).reason() {
            None => return Ok(()),
            Some(why) if step.reported => {
                first.get_or_insert_with(|| format!("{}: {why}", step.name));
            }
            Some(_) => {}
        }
    }
    let why = first.unwrap_or_else(|| "no step is reported".to_owned());
    Err(format!(
        "count {} on {}: no step of it can be counted; {why}",
        plan.benchmark(),
        target.label
    ))
}

/// Refuses a benchmark on a DBMS that cannot do it.
fn check_products(plan: &PlanDraft) -> Result<(), PlanError> {
    let interface = benchmarks::of(&plan.workload).speaks;
    let key_value = interface == Interface::KeyValue;
    let speaks = |dbms: Dbms| match (dbms, dbms.dialect()) {
        (_, Dialect::Fake) => interface != Interface::Client,
        _ if interface == Interface::Client => true,
        (Dbms::Client, _) => false,
        (_, Dialect::KeyValue) => key_value,
        _ => !key_value,
    };
    if let Some(target) = plan.targets.iter().find(|target| !speaks(target.dbms)) {
        let Target { label, dbms, .. } = target;
        let hint = match dbms {
            Dbms::Client => {
                "rqps itself knows no such DBMS; use postgres://, mysql:// or mariadb://, or let a \
                 program of yours talk to it: --bench client:PROGRAM (docs/clients.md)"
            }
            Dbms::Fake => "a program has nothing to talk to there",
            _ if key_value => "the benchmark kv needs rocksdb or speedb",
            _ => "it has no SQL; use --bench kv (for YCSB with --set ycsb=a,b,c)",
        };
        let benchmark = plan.benchmark();
        return Err(PlanError::Value(format!("run {benchmark} on {label} ({dbms}): {hint}")));
    }
    Ok(())
}

/// The plan as a file. Passwords of DSNs are left out: a result folder is shared.
///
/// # Errors
/// [`PlanError::Unwritable`].
pub fn print(plan: &PlanDraft) -> Result<String, PlanError> {
    let printed = toml::to_string(&PlanFile::of(plan));
    printed.map_err(|error| PlanError::Unwritable(error.to_string()))
}

/// The text of the plan that this result folder has, if it is this plan; else its own text, which
/// the folder would get.
///
/// # Errors
/// [`PlanError::Unwritable`].
pub fn text_in(results: &Path, plan: &Plan) -> Result<String, PlanError> {
    let there = bounded::text(&results.join("plan.toml"), bounded::WRITTEN_MAX).ok();
    match there.filter(|text| parse(text).is_ok_and(|other| other.is_same(plan))) {
        Some(text) => Ok(text),
        None => print(plan),
    }
}

/// The form that is hashed, and its version: the fields of the file as JSON, sorted by name, without
/// those that have their defaults.
const CANONICAL: &str = "rqps plan 1";

/// The hash of what a plan measures: all of it but `[gate]`, `[count]` and `[profile]`.
pub(super) fn canonical_hash(plan: &PlanDraft) -> Result<String, PlanError> {
    let plan = PlanDraft { gate: None, count: None, profile: None, ..plan.clone() };
    let fields = serde_json::to_value(PlanFile::of(&plan));
    let fields = fields.map_err(|error| PlanError::Unwritable(error.to_string()))?;
    let mut text = format!("{CANONICAL}\n");
    push_canonical(&mut text, &fields);
    Ok(units::short_hash(text))
}

/// Objects are sorted here, too: a crate that asks serde_json to keep the order of insertion changes
/// no hash. Nor does a field of a later version that a plan does not use.
fn push_canonical(text: &mut String, value: &Value) {
    match value {
        Value::Object(fields) => {
            let given = fields.iter().filter(|(_, value)| !value.is_null());
            let sorted: BTreeMap<&String, &Value> = given.collect();
            for (name, value) in sorted {
                text.push_str(&format!("{{{name:?}:"));
                push_canonical(text, value);
            }
            text.push('}');
        }
        Value::Array(values) => {
            text.push('[');
            for value in values {
                push_canonical(text, value);
                text.push(',');
            }
            text.push(']');
        }
        plain => text.push_str(&plain.to_string()),
    }
}

/// The target as it may be written down: a DSN loses its password.
pub fn without_password(target: &Target) -> Target {
    let mut target = target.clone();
    match &target.source {
        BuildSource::Dsn(dsn) => target.source = BuildSource::Dsn(dsn::without_password(dsn)),
        BuildSource::Client(text) => {
            target.source = BuildSource::Client(dsn::without_password(text));
        }
        _ => {}
    }
    target
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Auto, Blocks, cost};
    use rqps_bench::sysbench;
    use rqps_model::benchmark::Phase;

    #[test]
    fn a_plan_has_a_length() {
        let text = "a".repeat(5 << 20);
        assert!(matches!(parse(&text), Err(PlanError::TooLong(_))));
    }

    fn print(plan: &PlanDraft) -> String {
        super::print(plan).expect("a printed plan")
    }

    fn hash(plan: &PlanDraft) -> String {
        canonical_hash(plan).expect("a hash")
    }

    fn plan() -> PlanDraft {
        let words = ["mysql@5.6.14", "b=postgres://me:secret@host:1/db"].map(str::to_owned);
        PlanDraft {
            targets: words::targets(&words).expect("words"),
            order: StepSet::Abbreviated,
            steps: vec!["point*".to_owned()],
            workload: sysbench::workload("quick").unwrap().0,
            blocks: Blocks::Fixed(4),
            sittings: None,
            loads: 1,
            interleave: Interleave::Step,
            seed: u64::MAX,
            canaries: true,
            gate: None,
            count: None,
            profile: None,
        }
    }

    #[test]
    fn rules_of_a_gate_are_part_of_the_file_and_not_of_the_hash() {
        let table = "[gate]\ndelta = 0.05\nmetrics = [\"p99_ms\"]\n\n[[gate.allow]]\nstep = \
                     \"scan\"\ndelta = 0.1\nreason = \"issue 7\"\n";
        let text = format!("{}\n{table}", print(&plan()));
        let with = parse(&text).expect("parse");
        let gate = with.gate.clone().expect("gate");
        assert_eq!((gate.delta, gate.allow[0].delta), (Some(0.05), 0.1));
        assert_eq!(parse(&print(&with)).expect("again"), with);
        assert!(!with.is_same(&Plan::build(plan()).expect("a plan")));
        assert_eq!(with.hash(), hash(&plan()));
        assert_eq!(gate_rules(table).expect("alone"), gate);
        assert_eq!(gate_rules("blocks = 3").expect("none"), GateRules::default());
        for (wrong, part) in [
            ("[gate]\ntau = 0.05", "tau must be"),
            ("[gate]\nmetrics = [\"speed\"]", "unknown metric `speed`"),
            ("[gate]\ndetla = 0.1", "detla"),
        ] {
            let error = gate_rules(wrong).expect_err(part).to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_plan_survives_its_file_but_for_passwords() {
        let printed = print(&plan());
        assert!(!printed.contains("secret"), "{printed}");
        let mut expected = plan();
        expected.targets[1].source = BuildSource::Dsn("postgres://me@host:1/db".to_owned());
        let again = parse(&printed).expect("parse");
        assert_eq!(again.draft(), expected);
        assert_eq!(again.hash(), hash(&plan()));
    }

    #[test]
    fn client_counts_are_part_of_the_file_and_one_changes_nothing() {
        let with = |clients: &str| {
            let mut plan = plan();
            benchmarks::set(&mut plan.workload, &format!("clients={clients}")).expect(clients);
            plan
        };
        assert_eq!(print(&with("1")), print(&plan()));
        assert!(!print(&plan()).contains("client_counts"));
        let several = print(&with("4,1"));
        assert!(several.contains("clients = 4\nclient_counts = [1, 4]\n"), "{several}");
        assert_ne!(hash(&with("1,4")), hash(&with("4")));
        let again = parse(&several).expect("parse");
        let phases = again.phases(&again.targets[0]).expect("phases");
        let names = phases.iter().filter_map(|phase| match phase {
            Phase::Measure(step) => Some(step.name.as_str()),
            Phase::Settle | Phase::Restore => None,
        });
        let names: Vec<&str> = names.filter(|name| name.starts_with("point-query.c")).collect();
        assert_eq!(names, ["point-query.clients=1", "point-query.clients=4"]);
        for wrong in ["[1, 1, 4]", "[0, 4]", "[4, 1]", "[1, 8]"] {
            let text = several.replacen("[1, 4]", wrong, 1);
            let error = parse(&text).expect_err(wrong).to_string();
            assert!(error.contains("client_counts must ascend"), "{wrong}: {error}");
        }
    }

    #[test]
    fn several_loads_are_part_of_the_file_and_blocks_share_them_in_turn() {
        assert!(!print(&plan()).contains("loads"));
        let several = PlanDraft { loads: 3, ..plan() };
        let again = parse(&print(&several)).expect("parse");
        assert_eq!(again.loads, 3);
        assert_eq!([1, 2, 3, 4, 7].map(|block| again.load_of(block)), [1, 2, 3, 1, 1]);
        let seeds = [1, 2, 3].map(|load| again.load_seed(load));
        assert_eq!(seeds[0], again.seed);
        assert!(seeds[1] != seeds[0] && seeds[2] != seeds[1] && seeds[2] != seeds[0]);
        let cost = |plan: &PlanDraft| cost::estimate(plan, &[]);
        let (one, three) = (cost(&plan()), cost(&several));
        assert_eq!(three.load_seconds, 3.0 * one.load_seconds);
        assert_eq!(three.disk_bytes, 2 * one.disk_bytes);
    }

    #[test]
    fn a_counted_run_needs_the_disk_that_it_copies() {
        let PlanDraft { mut targets, mut workload, .. } = plan();
        workload.counted_statements = Some(1000);
        (workload.rows, workload.cache_bytes) = (100_000, Some(256 << 20));
        targets.truncate(1);
        let counted = PlanDraft { loads: 3, targets, workload, ..plan() };
        let megabytes = cost::estimate(&counted, &[]).disk_bytes / 1_000_000;
        // Measured: 1,330 of three loads of MySQL and the data at work, 430 of Postgres.
        assert!((1_330..2_000).contains(&megabytes), "{megabytes}");
        let targets = words::targets(&["postgres@17.2.0".to_owned()]).expect("words");
        let megabytes =
            cost::estimate(&PlanDraft { targets, ..counted }, &[]).disk_bytes / 1_000_000;
        assert!((430..1_330).contains(&megabytes), "{megabytes}");
    }

    #[test]
    fn a_benchmark_that_takes_one_client_count_says_what_to_do_instead() {
        for (benchmark, part) in [("insert", "run it once per count"), ("vector", "ramp=1,4,16")] {
            let mut workload = benchmarks::workload(benchmark, "quick").expect("a preset").0;
            benchmarks::set(&mut workload, "clients=1,4").expect("a setting");
            let plan = PlanDraft { workload, steps: Vec::new(), ..plan() };
            let error = check(&plan).expect_err(benchmark).to_string();
            let run = format!("run the benchmark {benchmark} with 1, 4 clients: ");
            assert!(error.starts_with(&run) && error.contains(part), "{error}");
        }
    }

    #[test]
    fn blocks_are_a_number_or_auto_or_limits() {
        let all = [
            (Blocks::Fixed(7), "blocks = 7"),
            (Blocks::Auto(Auto::default()), "blocks = \"auto\""),
            (Blocks::Auto(Auto { min: 3, max: 20, budget_seconds: Some(1800.0) }), "1800s"),
            (Blocks::Auto(Auto { min: 3, ..Auto::default() }), "min = 3"),
        ];
        for (blocks, part) in all {
            let plan = PlanDraft { blocks, canaries: part != "1800s", ..plan() };
            let printed = print(&plan);
            assert!(printed.contains(part), "{printed}");
            assert_eq!(printed.contains("canaries = false"), !plan.canaries);
            let again = parse(&printed).expect(part);
            assert_eq!((again.blocks, again.canaries), (blocks, plan.canaries), "{printed}");
        }
        let by_hand = print(&plan()).replacen("blocks = 4", "blocks = { budget = \"1h30m\" }", 1);
        let auto = Auto { budget_seconds: Some(5400.0), ..Auto::default() };
        assert_eq!(parse(&by_hand).expect("by hand").blocks, Blocks::Auto(auto));
    }

    #[test]
    fn bad_files_name_the_field() {
        let fails = |from: &str, to: &str, part: &str| {
            let text = print(&plan()).replacen(from, to, 1);
            let error = parse(&text).expect_err(part).to_string();
            assert!(error.contains(part), "{error}");
        };
        fails("blocks = 4", "blocks = 0", "blocks must be from 1");
        fails("blocks = 4", "blokcs = 4", "blokcs");
        fails("blocks = 4", "blocks = \"many\"", "blocks must be a number, \"auto\"");
        fails("blocks = 4", "blocks = { min = 9, max = 5 }", "min 9 and max 5");
        fails("blocks = 4", "blocks = { min = 1 }", "min 1 and max 12");
        fails("blocks = 4", "blocks = { budget = \"soon\" }", "soon");
        fails("blocks = 4", "blocks = { budget = \"0s\" }", "above 0");
        fails("clients = 1", "clients = 0", "clients must be");
        fails("rows = 200000", "rows = 9000000000000000000", "rows from 1 to");
        fails("read_seconds = 2.0", "read_seconds = 1e300", "at most 86400");
        fails("settle_scale = 0.02", "settle_scale = 11.0", "settle_scale from 0 to 10");
        fails("settle_scale = 0.02", "settle_scale = nan", "nan is not a finite number");
        fails("point*", "pint*", "no step matches `pint*`");
        fails("clients = 1", "clients = 1\nclient = 2", "unknown key `client`, expected one of");
        fails("clients = 1", "clients = 1\nwaiting = \"stopped\"", "rqps does not run b");
        fails("\"sysbench\"", "\"tpcc\"", "the plan names benchmark `tpcc`");
        fails("mysql@5.6.14", "oracle@5.6.14", "oracle");
    }

    #[test]
    fn turns_are_the_default_where_nothing_speaks_against_them() {
        let targets = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            words::targets(&words).expect("words")
        };
        let default = |words: &[&str], change: fn(&mut Workload), published| {
            let mut workload = sysbench::workload("quick").unwrap().0;
            change(&mut workload);
            Interleave::default_of(&targets(words), &workload, published)
        };
        let two = ["a=sqlite", "b=mysql@8.0.33"];
        assert_eq!(default(&two, |_| {}, false), Interleave::Turns);
        assert_eq!(default(&two[..1], |_| {}, false), Interleave::Step);
        assert_eq!(default(&two, |_| {}, true), Interleave::Step);
        assert_eq!(default(&["a=fake@1", "b=fake@1"], |_| {}, false), Interleave::Step);
        let open = |workload: &mut Workload| {
            benchmarks::set(workload, "rate=50").expect("a rate");
        };
        assert_eq!(default(&two, open, false), Interleave::Turns);
        let kv = |workload: &mut Workload| {
            *workload = benchmarks::workload("kv", "quick").expect("a preset").0;
        };
        assert_eq!(default(&["a=rocksdb@9", "b=rocksdb@10"], kv, false), Interleave::Turns);
        let insert = |workload: &mut Workload| {
            *workload = benchmarks::workload("insert", "quick").expect("a preset").0;
        };
        assert_eq!(default(&two, insert, false), Interleave::Run);
    }

    #[test]
    fn a_plan_of_the_insert_benchmark_survives_its_file() {
        let mut workload = benchmarks::workload("insert", "cpu").expect("a preset").0;
        for setting in ["profile=2021-jan", "cache=1G", "memory_limit=2G"] {
            benchmarks::set(&mut workload, setting).expect("a setting");
        }
        benchmarks::finish(&mut workload);
        let interleave = Interleave::default_of(&plan().targets, &workload, false);
        assert_eq!(interleave, Interleave::Run);
        let plan = PlanDraft { workload, interleave, steps: Vec::new(), ..plan() };
        let mut expected = plan.clone();
        expected.targets[1].source = BuildSource::Dsn("postgres://me@host:1/db".to_owned());
        let printed = print(&plan);
        assert_eq!(parse(&printed).expect("parse").draft(), expected, "{printed}");
    }

    #[test]
    fn an_identity_is_of_what_is_measured_and_not_of_how_it_is_written() {
        let text = print(&plan());
        let by_hand = format!(
            "# A note.\nseed = \"{}\"\n{}",
            u64::MAX,
            text.replace(&format!("seed = \"{}\"\n", u64::MAX), "")
        );
        let (written, again) = (parse(&text).expect("a plan"), parse(&by_hand).expect("by hand"));
        assert!(written.is_same(&again));
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("plan.toml"), &by_hand).expect("write");
        assert_eq!(text_in(folder.path(), &written).expect("its text"), by_hand);
        let other = Plan::build(PlanDraft { seed: 7, ..plan() }).expect("another");
        assert_ne!(written.hash(), other.hash());
        assert_eq!(text_in(folder.path(), &other).expect("its text"), print(&other));
        let mut canonical = String::new();
        push_canonical(&mut canonical, &serde_json::json!({"b": [1, "x\"}"], "a": {}, "c": null}));
        assert_eq!(canonical, "{\"a\":}{\"b\":[1,\"x\\\"}\",]}");
    }
}
