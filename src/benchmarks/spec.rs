//! The interface of a benchmark to the rest of rqps: one row of data and functions.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::analyze::Extension;
use crate::domain::benchmark::{Phase, Placement, Step, Workload};
use crate::domain::build::Dbms;
use crate::domain::counted::StepCount;
use crate::domain::dialect::Dialect;
use crate::domain::sql_workload::PinnedFile;
use crate::domain::target::Target;
use crate::driver::part::DriverPart;
use crate::driver::request::RequestBody;
use crate::import::ImportFormat;
use crate::report::Sections;
use crate::workload::select::{Companions, SelectError, select};
use crate::workload::settings::{self, SetError};

/// A benchmark. Each has its row in the `mod.rs` of its own folder.
pub struct BenchmarkSpec {
    /// The word after `--bench`.
    pub name: &'static str,
    /// The workload of a preset, with the set of steps that goes with it. The error lists the
    /// presets there are.
    pub workload: fn(&str) -> Result<(Workload, StepSet), String>,
    /// What else a preset asks for.
    pub preset: fn(&str) -> PresetFacts,
    /// Applies one `key=value` to a workload.
    pub set: fn(&mut Workload, &str) -> Result<(), SetError>,
    /// Fills in what follows from other settings, when all are known.
    pub finish: fn(&mut Workload),
    /// The workload as one DBMS takes it, of several that speak the same dialect.
    pub of_dbms: fn(&Workload, Dbms) -> Cow<'_, Workload>,
    /// Refuses a workload that cannot be carried out on a DBMS of this dialect.
    pub check: fn(&Workload, Dialect) -> Result<(), String>,
    /// Refuses a target before anything of it is fetched.
    pub check_target: fn(&Target) -> Result<(), String>,
    /// What the targets speak.
    pub speaks: Interface,
    /// All that the benchmark does after its load, in order.
    pub phases: fn(Dialect, StepSet, &Workload) -> Vec<Phase>,
    /// Tells the steps what only one target asks for.
    pub for_target: fn(&mut [Phase], &Target),
    /// Keeps the steps that globs choose and the steps that they build on.
    pub choose: PhaseChoice,
    /// Why the benchmark takes a single client count, and what to do instead; `None` if each of its
    /// steps can run once per count.
    pub single_count: Option<&'static str>,
    /// How targets take turns unless something else is asked for.
    pub turns: DefaultTurns,
    /// Where clients and servers run unless something else is asked for; `None` to place a client
    /// beside its server while each client has a CPU.
    pub placement: Option<fn(&Workload) -> Placement>,
    /// How the tables are made and filled before the first step; `None` where that is a step.
    pub load: Option<LoadMaker>,
    /// The file that follows the benchmark's name, as in `--bench sql:shop.toml`; `None` where
    /// nothing does.
    pub file: Option<WorkloadFile>,
    /// What else may follow the name, and the options after `--`; `None` where nothing does.
    pub words: Option<OwnWords>,
    /// What `rqps count` does with its steps.
    pub counting: Counting,
    /// Hooks of the benchmark in the driver.
    pub driver: DriverPart,
    /// The name of a table, with `{table}` for its number; empty without tables.
    pub table_name: &'static str,
    /// Every name that the benchmark gives in a database: to tables, and, where those share names
    /// with tables, to indexes, partitions and sequences.
    pub names_made: fn(Dialect, &Workload) -> Vec<String>,
    /// How large the data of a workload are.
    pub size: fn(&Workload) -> DataSize,
    /// The user's own data files, except those of `file`.
    pub own_data: fn(&Workload) -> Vec<PathBuf>,
    /// Memory that a target with the page cache of its files may take, bytes.
    pub memory_limit: fn(&Workload) -> Option<u64>,
    /// What it adds to the analysis.
    pub extension: Extension,
    /// What it adds to reports.
    pub sections: Sections,
    /// Formats of others' results.
    pub imports: &'static [ImportFormat],
}

impl BenchmarkSpec {
    /// What most benchmarks have in common; a row states what it has of its own.
    pub const PLAIN: BenchmarkSpec = BenchmarkSpec {
        name: "",
        workload: |preset| Err(format!("use the preset `{preset}`: no such preset")),
        preset: |_| PresetFacts { config: None, is_published: false },
        set: settings::set,
        finish: |_| {},
        of_dbms: |workload, _| Cow::Borrowed(workload),
        check: |_, _| Ok(()),
        check_target: |_| Ok(()),
        speaks: Interface::Sql,
        phases: |_, _, _| Vec::new(),
        for_target: |_, _| {},
        choose: |phases, globs| select(phases, globs, &Companions::NONE),
        single_count: None,
        turns: DefaultTurns::Step,
        placement: Some(|workload| workload.placement),
        load: None,
        file: None,
        words: None,
        counting: Counting::SCRIPTS,
        driver: DriverPart::NONE,
        table_name: "",
        names_made: |_, _| Vec::new(),
        size: |workload| DataSize::of_tables(workload, all_rows(workload)),
        own_data: |_| Vec::new(),
        memory_limit: |workload| workload.memory_limit,
        extension: Extension::none(""),
        sections: Sections::NONE,
        imports: &[],
    };
}

/// Keeps the phases whose steps are chosen.
pub type PhaseChoice = fn(Vec<Phase>, &[String]) -> Result<Vec<Phase>, SelectError>;

/// Says how tables are made and filled, for a dialect and a storage engine where one was chosen.
pub type LoadMaker = fn(Dialect, &Workload, Option<&str>) -> RequestBody;

/// A workload that stands in a file of the user's. It runs on the user's own tables: on a server
/// that somebody else runs they are there already, unless the file says that it is loaded there.
pub struct WorkloadFile {
    /// Puts the workload of the text in. The error names the place in the text.
    pub read: fn(&mut Workload, &str) -> Result<(), String>,
    /// The other files that it reads, as it names them, with what the workload holds them against.
    pub files: fn(&Workload) -> BTreeMap<String, Option<PinnedFile>>,
    /// Notes the folder of these files, and what they are.
    pub pin: fn(&mut Workload, &Path, BTreeMap<String, PinnedFile>),
    /// The folder of these files, where the workload says one.
    pub folder: fn(&Workload) -> Option<PathBuf>,
    /// The steps that may write.
    pub writes: fn(&Workload) -> Vec<String>,
    /// True if it says how tables are made and filled.
    pub has_load: fn(&Workload) -> bool,
    /// True if it is loaded on servers that somebody else runs, too.
    pub loads_on_servers: fn(&Workload) -> bool,
}

/// A benchmark that takes words of another program: `--bench pgbench:select-only`, and that
/// program's options after `--`.
pub struct OwnWords {
    /// Puts in what was said, or refuses it with the way out.
    pub take: fn(&mut Workload, &SaidWords<'_>) -> Result<(), String>,
    /// True if it runs on the user's own tables, which are there already.
    pub visits: fn(&Workload) -> bool,
    /// The steps that may write.
    pub writes: fn(&Workload) -> Vec<String>,
}

/// What a command line says of the workload of such a benchmark.
pub struct SaidWords<'a> {
    /// What follows the name and its colon, once for each `--bench`; empty where nothing does.
    pub what: &'a [String],
    /// The words after `--`.
    pub options: &'a [String],
    /// Reads a file of text that they name. The error names it.
    pub read: &'a dyn Fn(&Path) -> Result<String, String>,
    /// Has another process of rqps look at a script, which must not run in this one. The answer is
    /// what that script declares, as JSON.
    pub look: &'a dyn Fn(&Path) -> Result<String, String>,
    /// Tells the user something that changes nothing.
    pub note: &'a dyn Fn(&str),
}

/// The counted runs of a benchmark.
#[derive(Clone, Copy)]
pub struct Counting {
    /// What becomes of a step, given the statements that are asked for.
    pub step: fn(&Step, &Workload, u64) -> StepCount,
    /// Settings (`key=value`) that `rqps count` begins with: a size that valgrind can manage.
    pub settings: &'static [&'static str],
}

/// Which of the published sets of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepSet {
    /// The 42 steps of 2021 to 2024: reads before and after the writes are both reported.
    Full,
    /// Of October 2024 to March 2025, 27 reported steps: as [`StepSet::Abbreviated`], which has the
    /// five steps of one range each since.
    #[serde(rename = "2025-01")]
    January2025,
    /// Since April 2025, 32 reported steps; reads before the writes only warm.
    #[default]
    Abbreviated,
}

/// What a preset asks for beside its workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PresetFacts {
    /// The configuration of targets whose DBMS has one of that name and whose words name none.
    pub config: Option<&'static str>,
    /// True for the shape of published work, which is measured as it was published.
    pub is_published: bool,
}

/// What the clients of a benchmark talk to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// A DBMS with SQL.
    Sql,
    /// A library of keys and values.
    KeyValue,
}

/// How targets take turns in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultTurns {
    /// Within a step, where several targets are up at once and the shape is no published one.
    Within,
    /// Step by step, so that a pair is seconds apart.
    Step,
    /// One target's whole sequence after another: its steps pass a debt of dirty pages, vacuum and
    /// purge on to the next.
    Run,
}

/// An estimate of the data of one target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DataSize {
    /// Bytes on disk at most, with the snapshot.
    pub disk_bytes: f64,
    /// Bytes that all data take in a cache.
    pub cached_bytes: u64,
}

impl DataSize {
    /// Bytes of a loaded row with both indexes: 2.1 of the published table sizes, rounded up.
    const ROW_BYTES: f64 = 280.0;
    /// Bytes that a loaded row takes in a cache, indexes and page overhead included, rounded up.
    const CACHED_ROW_BYTES: u64 = 400;

    /// Of tables that hold so many rows at most, and the rows of the workload to begin with.
    pub fn of_tables(workload: &Workload, rows_at_most: u64) -> DataSize {
        DataSize {
            // Data and snapshot.
            disk_bytes: 2.0 * rows_at_most as f64 * DataSize::ROW_BYTES,
            cached_bytes: all_rows(workload) * DataSize::CACHED_ROW_BYTES,
        }
    }
}

/// Rows of all tables after the load.
pub fn all_rows(workload: &Workload) -> u64 {
    u64::from(workload.tables) * workload.rows
}
