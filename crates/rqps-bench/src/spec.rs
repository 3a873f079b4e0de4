//! The interface between a benchmark and the rest of rqps: one row of data and functions.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use rqps_analysis::Extension;
use rqps_driver::part::DriverPart;
use rqps_driver::request::RequestBody;
use rqps_driver::workload::{self, Companions, ScalePreset, SelectError, SetError, select};
use rqps_host::command_output;
use rqps_model::benchmark::{BenchmarkParameters, Phase, Placement, RateUnit, Step, Workload};
use rqps_model::build::{Dbms, Target};
use rqps_model::counted::StepCount;
use rqps_model::dialect::Dialect;
use rqps_model::script::{Parameter, Script};
use rqps_model::sql_workload::PinnedFile;
use rqps_report::Sections;

/// A benchmark; its row is in the `mod.rs` of its folder.
pub struct BenchmarkSpec {
    /// The word after `--bench`.
    pub name: &'static str,
    /// The workload of a preset, and its set of steps. The error lists the valid presets.
    pub workload: fn(&str) -> Result<(Workload, StepSet), String>,
    /// Further facts about a preset.
    pub preset: fn(&str) -> PresetFacts,
    /// Applies one `key=value` to a workload.
    pub set: fn(&mut Workload, &str) -> Result<(), SetError>,
    /// Computes values that follow from other settings, after all settings.
    pub finish: fn(&mut Workload),
    /// The workload for one DBMS, where several DBMSs speak the same dialect.
    pub of_dbms: fn(&Workload, Dbms) -> Cow<'_, Workload>,
    /// Refuses a workload that cannot run on a DBMS of this dialect.
    pub check: fn(&Workload, Dialect) -> Result<(), String>,
    /// Refuses a target before its build is fetched.
    pub check_target: fn(&Target) -> Result<(), String>,
    /// The kind of targets.
    pub speaks: Interface,
    /// All phases after the load, in order.
    pub phases: fn(Dialect, StepSet, &Workload) -> Vec<Phase>,
    /// Adds requirements of one target to the steps.
    pub for_target: fn(&mut [Phase], &Target),
    /// Keeps the steps that globs select, and the steps that these need.
    pub choose: PhaseChoice,
    /// The reason why the benchmark accepts only one client count, with a way out; `None` if each
    /// of its steps can run once per count.
    pub single_count: Option<&'static str>,
    /// Why the clients of a step cannot be on several hosts; `None` if they can.
    pub one_client_host: fn(&Workload) -> Option<&'static str>,
    /// How many clients of a step several client hosts share; `None` for a step that the first host
    /// carries out alone. Without it, hosts share the clients of every step.
    pub shared_clients: Option<fn(&Step) -> Option<u32>>,
    /// The default for turns of targets.
    pub turns: DefaultTurns,
    /// The default placement of clients and servers; `None` places a client beside its server while
    /// each client has a CPU.
    pub placement: Option<fn(&Workload) -> Placement>,
    /// The load before the first step; `None` if loading is a step.
    pub load: Option<LoadMaker>,
    /// The file after the benchmark's name, as in `--bench sql:shop.toml`; `None` if there is none.
    pub file: Option<WorkloadFile>,
    /// Other words after the name, and options after `--`; `None` if there are none.
    pub words: Option<OwnWords>,
    /// The counting of its steps by `rqps count`.
    pub counting: Counting,
    /// Hooks of the benchmark in the driver.
    pub driver: DriverPart,
    /// The name of a table, with `{table}` for its number; empty without tables.
    pub table_name: &'static str,
    /// Names of all objects in a database: tables, and indexes, partitions and sequences where they
    /// share a name space with tables.
    pub names_made: fn(Dialect, &Workload) -> Vec<String>,
    /// The size of a workload's data.
    pub size: fn(&Workload) -> DataSize,
    /// What the workload executes or reads that its author brought: SQL, scripts, files, and names
    /// that become a part of statements. A plan may be a stranger's.
    pub brought: fn(&Workload) -> Vec<UserCode>,
    /// The user's own data files, except those of `file`.
    pub own_data: fn(&Workload) -> Vec<PathBuf>,
    /// Memory limit of a target including the page cache of its files, bytes.
    pub memory_limit: fn(&Workload) -> Option<u64>,
    /// Hooks of the benchmark in the analysis.
    pub extension: Extension,
    /// Hooks of the benchmark in reports.
    pub sections: Sections,
}

impl BenchmarkSpec {
    /// Default values; a row states where it differs.
    pub const PLAIN: BenchmarkSpec = BenchmarkSpec {
        name: "",
        workload: |preset| Err(format!("use the preset `{preset}`: no such preset")),
        preset: |_| PresetFacts { config: None, is_published: false },
        set: workload::set,
        finish: |_| {},
        of_dbms: |workload, _| Cow::Borrowed(workload),
        check: |_, _| Ok(()),
        check_target: |_| Ok(()),
        speaks: Interface::Sql,
        phases: |_, _, _| Vec::new(),
        for_target: |_, _| {},
        choose: |phases, globs| select(phases, globs, &Companions::NONE),
        single_count: None,
        one_client_host: |_| None,
        shared_clients: None,
        turns: DefaultTurns::Within,
        placement: Some(|workload| workload.placement),
        load: None,
        file: None,
        words: None,
        counting: Counting::SCRIPTS,
        driver: DriverPart::NONE,
        table_name: "",
        names_made: |_, _| Vec::new(),
        size: |workload| DataSize::of_tables(workload, all_rows(workload)),
        brought: |_| Vec::new(),
        own_data: |_| Vec::new(),
        memory_limit: |workload| workload.memory_limit,
        extension: Extension::none(""),
        sections: Sections::NONE,
    };
}

/// Lengths of the steps of statements and scripts that the user brings.
pub(crate) const LENGTHS: [ScalePreset; 3] = [
    ScalePreset::lasting("quick", 2.0, 0.5),
    ScalePreset::lasting("standard", 30.0, 3.0),
    ScalePreset::lasting("full", 300.0, 10.0),
];

/// The workload of a preset of size and length; `shape` makes the parameters for the size.
///
/// # Errors
///
/// No such preset; the text lists the valid ones.
pub fn scaled(
    all: &[ScalePreset],
    name: &str,
    shape: impl FnOnce(u32) -> BenchmarkParameters,
) -> Result<(Workload, StepSet), String> {
    let scale = ScalePreset::named(all, name)?;
    Ok((scale.workload(shape(scale.size)), StepSet::default()))
}

/// Keeps the phases whose steps are selected.
pub type PhaseChoice = fn(Vec<Phase>, &[String]) -> Result<Vec<Phase>, SelectError>;

/// Makes the load for a dialect, and for a storage engine if one was chosen.
pub type LoadMaker = fn(Dialect, &Workload, Option<&str>) -> RequestBody;

/// SQL, a script or a file that a workload brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserCode {
    /// A word for it: `SQL`, `script`, `file`, `option`, `rights`.
    pub kind: &'static str,
    /// Its name for readers.
    pub name: String,
    /// SHA-256 of its text, in hex; `None` if the name is all.
    pub sha256: Option<String>,
    /// Its path, if it is a file that is read again when it is used.
    pub place: Option<PathBuf>,
}

impl UserCode {
    /// What its name tells whole.
    pub fn named(kind: &'static str, name: String) -> UserCode {
        UserCode { kind, name, sha256: None, place: None }
    }
}

/// A workload that stands in a file of the user's. It runs on the user's own tables: on a server
/// that somebody else runs they are there already, unless the file says that it is loaded there.
pub struct WorkloadFile {
    /// Reads the text into the workload. The error names the place in the text.
    pub read: fn(&mut Workload, &str) -> Result<(), String>,
    /// The other files that it reads, as named in it, with their pins if pinned.
    pub files: fn(&Workload) -> BTreeMap<String, Option<PinnedFile>>,
    /// Stores the folder of these files, and their pins.
    pub pin: fn(&mut Workload, &Path, BTreeMap<String, PinnedFile>),
    /// The folder of these files, if the workload names one.
    pub folder: fn(&Workload) -> Option<PathBuf>,
    /// Names of the steps that may write.
    pub writes: fn(&Workload) -> Vec<String>,
    /// True if it says how tables are created and loaded.
    pub has_load: fn(&Workload) -> bool,
    /// True if it is loaded on servers that somebody else runs, too.
    pub loads_on_servers: fn(&Workload) -> bool,
}

/// A benchmark with words of another program: `--bench pgbench:select-only`, and that program's
/// options after `--`.
pub struct OwnWords {
    /// Adds the words to the workload, or refuses them with a way out.
    pub take: fn(&mut Workload, &CliContext<'_>) -> Result<(), String>,
    /// True if it uses existing tables of the user's.
    pub visits: fn(&Workload) -> bool,
    /// True if some of its statements are the user's, on whatever tables.
    pub brings: fn(&Workload) -> bool,
    /// Names of the steps that may write.
    pub writes: fn(&Workload) -> Vec<String>,
}

/// The words of a command line for such a benchmark.
pub struct CliContext<'a> {
    /// The texts after the name and its colon, one per `--bench`; empty if there is none.
    pub what: &'a [String],
    /// The words after `--`.
    pub options: &'a [String],
    /// Reads a text file. The error names the file.
    pub read: &'a dyn Fn(&Path) -> Result<String, String>,
    /// Runs a script in another process of rqps and returns its declarations as JSON; also what its
    /// own help prints, if true.
    pub look: &'a dyn Fn(&Path, bool) -> Result<String, String>,
    /// Shows a note to the user.
    pub note: &'a dyn Fn(&str),
}

/// The declarations of a script or a program as JSON, by another process of rqps, so that a crash or
/// a loop ends only that one. `rqps` is the program with its environment, `command` the hidden one
/// that looks.
///
/// # Errors
///
/// The process cannot be started, or the script or program fails; the text says how.
pub fn look_apart(
    mut rqps: Command,
    command: &str,
    file: &Path,
    more: &[&str],
) -> Result<String, String> {
    rqps.arg(command).arg(file).args(more);
    let output = command_output::run_stranger(rqps);
    let output = output.map_err(|error| format!("look at {}: {error}", file.display()))?;
    match output.errors.trim() {
        _ if output.success() => Ok(output.output.trim().to_owned()),
        // The code may have ended its reader.
        "" => Err(format!("look at {}: its reader {}", file.display(), output.how())),
        said => Err(said.to_owned()),
    }
}

/// The counted runs of a benchmark.
#[derive(Clone, Copy)]
pub struct Counting {
    /// The treatment of a step, given the requested number of statements.
    pub step: fn(&Step, &Workload, u64) -> StepCount,
    /// First settings (`key=value`) of `rqps count`: a size that valgrind can handle.
    pub settings: &'static [&'static str],
}

/// A published set of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepSet {
    /// The 42 steps of 2021 to 2024; reads before and after the writes are reported.
    Full,
    /// The 27 reported steps of October 2024 to March 2025: those of [`StepSet::Abbreviated`]
    /// without five steps that have one range each.
    #[serde(rename = "2025-01")]
    January2025,
    /// The 32 reported steps since April 2025; reads before the writes are warm-up.
    #[default]
    Abbreviated,
}

/// Facts about a preset beside its workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PresetFacts {
    /// Default configuration of targets, if their DBMS has one of this name.
    pub config: Option<&'static str>,
    /// True for a published shape, which is measured as it was published.
    pub is_published: bool,
}

/// The kind of targets of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// A DBMS with SQL.
    Sql,
    /// A library of keys and values.
    KeyValue,
    /// Whatever the user's own program talks to.
    Client,
}

/// The default for turns of targets in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultTurns {
    /// Within a step, if several targets are measured at once and the shape is not a published one;
    /// else step by step, so that the runs of a pair are seconds apart.
    Within,
    /// The whole sequence of one target after another, because its steps pass dirty pages, vacuum
    /// and purge on to the next.
    Run,
}

/// An estimate of the data of one target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DataSize {
    /// Most bytes of one copy on disk.
    pub data_bytes: f64,
    /// Bytes of all data in a cache.
    pub cached_bytes: u64,
}

impl DataSize {
    /// Bytes of a loaded row with both indexes: 2.1 times the published table sizes, rounded up.
    const ROW_BYTES: f64 = 280.0;
    /// Bytes of a loaded row in a cache, with indexes and page overhead, rounded up.
    const CACHED_ROW_BYTES: u64 = 400;

    /// The size of tables with at most `rows_at_most` rows, and at first those of the workload.
    pub fn of_tables(workload: &Workload, rows_at_most: u64) -> DataSize {
        DataSize {
            data_bytes: rows_at_most as f64 * DataSize::ROW_BYTES,
            cached_bytes: all_rows(workload) * DataSize::CACHED_ROW_BYTES,
        }
    }
}

/// Rows of all tables after the load.
pub fn all_rows(workload: &Workload) -> u64 {
    u64::from(workload.tables) * workload.rows
}

// Computes how many events of a script a counted run executes.

/// Most rows that the events of a step read per `--statements`; otherwise long scans and ranges
/// would take most of a counted run. They need fewer events, because each row that an event reads
/// adds to its mean.
const ROWS_PER_STATEMENT: u64 = 30;
/// Rows of a range or scan that take as many instructions as the search for one row.
const ROWS_PER_SEARCH: u64 = 5;

impl Counting {
    /// Counting of steps that are scripts, on few rows and in windows of 1 s; the seconds only
    /// enter the estimate.
    pub const SCRIPTS: Counting = Counting {
        step: of_script,
        settings: &["read_seconds=1", "write_seconds=1", "warmup_seconds=0", "settle_scale=0"],
    };
}

fn of_script(step: &Step, workload: &Workload, statements: u64) -> StepCount {
    if !step.reported && step.only_reads {
        let why = "it warms caches, which a counted run fills before its first step";
        return StepCount::LeftOut(why.to_owned());
    }
    match step.script() {
        Some(script) => StepCount::Events(events(script, step.rate, statements, workload.rows)),
        None => StepCount::LeftOut("its work is no script of statements".to_owned()),
    }
}

/// The number of events whose statements are counted.
fn events(script: &Script, rate: RateUnit, statements: u64, rows: u64) -> u64 {
    let events = statements / script.statements_per_event().max(1);
    let spans = script.operations().map(|operation| {
        let spans = operation.parameters.iter().map(|parameter| match parameter {
            Parameter::RangeEnd { span } => u64::from(*span),
            Parameter::Id | Parameter::Key | Parameter::HotId { .. } => ROWS_PER_SEARCH,
            _ => 0,
        });
        u64::from(operation.repeat) * spans.sum::<u64>()
    });
    let of_event = match rate {
        RateUnit::RowsScanned => rows,
        _ => spans.sum(),
    };
    let affordable = statements * ROWS_PER_STATEMENT / of_event.max(1);
    events.min(affordable).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_host::child::{ChildTask, command};
    use rqps_model::script::{Distribution, Operation};

    #[test]
    fn a_reader_that_is_killed_is_told() {
        let look = |script: &str| {
            let mut sh = command("sh", ChildTask::Work);
            sh.args(["-c", script]);
            look_apart(sh, "look", Path::new("evil.sh"), &[])
        };
        assert_eq!(look("echo it"), Ok("it".to_owned()));
        assert_eq!(look("echo why >&2; exit 1"), Err("why".to_owned()));
        let killed = "look at evil.sh: its reader was killed by signal 9";
        assert_eq!(look("kill -9 $$"), Err(killed.to_owned()));
    }

    #[test]
    fn long_ranges_are_carried_out_fewer_times() {
        let check = |transaction, parameters: &[Parameter], rate, expected| {
            let operation = Operation {
                kind: "read".to_owned(),
                sql: "SELECT 1".to_owned(),
                parameters: parameters.to_vec(),
                repeat: 2,
                ..Operation::PLAIN
            };
            let script = Script::of(transaction, vec![operation], Distribution::Uniform);
            assert_eq!(events(&script, rate, 1000, 100_000), expected);
        };
        let range = |span| [Parameter::RangeStart, Parameter::RangeEnd { span }];
        check(false, &[Parameter::Id], RateUnit::Queries, 500);
        check(true, &[Parameter::Id], RateUnit::Queries, 250);
        check(false, &[Parameter::Id; 10], RateUnit::Queries, 300);
        check(false, &[Parameter::Key; 100], RateUnit::Queries, 30);
        check(false, &range(99), RateUnit::Queries, 151);
        check(false, &range(29), RateUnit::Queries, 500);
        check(false, &range(999), RateUnit::Queries, 15);
        check(false, &range(99_999), RateUnit::Queries, 1);
        check(false, &[], RateUnit::RowsScanned, 1);
    }
}
