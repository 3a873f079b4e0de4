//! Compares rqps with another program, sysbench or pgbench: both run in turn on the same running
//! servers.
//!
//! In a folder of its own because the smoke test runs it too.

mod pgbench;
mod report;
mod rqps;
mod subject;
mod sysbench;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result, bail};
use clap::Parser;

use self::report::Sample;
use self::report::{CaseResult, Loads, Memory, Report};
use self::rqps::Window;
use self::subject::Subject;
use rqps_host::affinity::Spinner;
use rqps_model::benchmark::{Idle, Placement};
use rqps_model::build::{Build, Target};
use rqps_model::dialect::Dialect;

/// The program with the driver, warden and spinner.
const RQPS: &str = env!("CARGO_BIN_EXE_rqps");

/// Bytes of cache per row.
const CACHED_ROW_BYTES: u64 = 800;
const CACHE_FLOOR_BYTES: u64 = 256 << 20;

/// A comparison of one workload in both programs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    /// The name in the report.
    pub(crate) name: &'static str,
    ours: Ours,
    theirs: Theirs,
    fresh: Fresh,
}

/// The workload in rqps.
#[derive(Clone, Copy, Debug)]
enum Ours {
    /// A step of rqps.
    Step(&'static str),
    /// A script of the other program: the benchmark that runs it, and the script.
    Script(&'static str, &'static str),
    /// A workload file, as text.
    Sql(&'static str),
}

/// The workload to compare with.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Theirs {
    /// A script of sysbench.
    Sysbench(&'static str),
    /// Percona's scripts for sysbench.
    Tpcc,
    /// A built-in script of pgbench.
    Pgbench(&'static str),
    /// A step of rqps with the same statements.
    Step(&'static str),
}

/// The moments at which the table is loaded again.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fresh {
    /// Never, because nothing is written.
    Kept,
    /// Before the first pair: both programs keep the number of rows and age the table in turn.
    Once,
    /// Before every run, because each run changes the number of rows.
    Always,
}

impl Case {
    /// A step against sysbench's script.
    const fn native(
        name: &'static str,
        step: &'static str,
        script: &'static str,
        fresh: Fresh,
    ) -> Case {
        Case { name, ours: Ours::Step(step), theirs: Theirs::Sysbench(script), fresh }
    }

    /// False if the other program cannot connect to servers of this dialect.
    fn is_for(&self, dialect: Dialect) -> bool {
        !matches!(self.theirs, Theirs::Pgbench(_)) || dialect == Dialect::Postgres
    }

    /// A sysbench script in both programs.
    const fn lua(name: &'static str, script: &'static str, fresh: Fresh) -> Case {
        Case { name, ours: Ours::Script("lua", script), theirs: Theirs::Sysbench(script), fresh }
    }

    /// A built-in pgbench script in both programs.
    const fn pgbench(name: &'static str, script: &'static str) -> Case {
        let theirs = Theirs::Pgbench(script);
        Case { name, ours: Ours::Script("pgbench", script), theirs, fresh: Fresh::Once }
    }
}

/// A workload file with point queries.
const SQL_POINT: &str = r#"
[parameter]
id = { kind = "uniform", from = 1, to = {rows} }
[[step]]
name = "point"
[[step.event]]
[[step.event.statement]]
sql = "SELECT c FROM sbtest1 WHERE id = :id"
"#;

/// A workload file with updates of one row.
const SQL_UPDATE: &str = r#"
[parameter]
id = { kind = "uniform", from = 1, to = {rows} }
c = { kind = "text", template = "{c}" }
[[step]]
name = "update"
[[step.event]]
[[step.event.statement]]
sql = "UPDATE sbtest1 SET c = :c WHERE id = :id"
"#;

/// The first cases, which run without `--cases`: steps of rqps and scripts of sysbench.
const DEFAULT_CASES: usize = 7;

const CASES: [Case; 16] = [
    Case::native("point-query", "point-query", "oltp_point_select", Fresh::Kept),
    Case::native("read-only", "read-only_range=100", "oltp_read_only", Fresh::Kept),
    Case::native("update-index", "update-index", "oltp_update_index", Fresh::Once),
    Case::native("update-nonindex", "update-nonindex", "oltp_update_non_index", Fresh::Once),
    Case::native("write-only", "write-only", "oltp_write_only", Fresh::Once),
    Case::native("delete", "delete", "oltp_delete", Fresh::Always),
    Case::native("insert", "insert", "oltp_insert", Fresh::Always),
    Case::lua("lua-point-select", "oltp_point_select", Fresh::Kept),
    Case::lua("lua-read-only", "oltp_read_only", Fresh::Kept),
    Case::lua("lua-read-write", "oltp_read_write", Fresh::Once),
    Case::lua("lua-update-index", "oltp_update_index", Fresh::Once),
    Case {
        name: "lua-tpcc",
        ours: Ours::Script("lua", "tpcc.lua"),
        theirs: Theirs::Tpcc,
        fresh: Fresh::Once,
    },
    Case::pgbench("pgbench-select-only", "select-only"),
    Case::pgbench("pgbench-tpcb-like", "tpcb-like"),
    Case {
        name: "sql-point",
        ours: Ours::Sql(SQL_POINT),
        theirs: Theirs::Step("point-query"),
        fresh: Fresh::Kept,
    },
    Case {
        name: "sql-update",
        ours: Ours::Sql(SQL_UPDATE),
        theirs: Theirs::Step("update-nonindex"),
        fresh: Fresh::Once,
    },
];

/// The reason why nothing can be compared here: a missing program or build.
#[allow(dead_code, reason = "the smoke test asks")]
pub(crate) fn missing(options: &Options) -> Option<String> {
    let found = sysbench::version().and_then(|_| builds(options, &mut |_| {}));
    found.err().map(|error| format!("{error:#}"))
}

/// Runs the whole comparison. `say` gets the progress.
pub(crate) fn run(
    options: &Options,
    stop: &Arc<AtomicBool>,
    say: &mut dyn FnMut(&str),
) -> Result<Report> {
    let cases = cases(options)?;
    let placements = options.placements()?;
    let mut report = Report::new(options, &sysbench::version()?);
    if cases.iter().any(|case| matches!(case.theirs, Theirs::Pgbench(_))) {
        report.versions.push(pgbench::version()?);
    }
    let builds = builds(options, say)?;
    let idle = if options.awake { Idle::Awake } else { Idle::Os };
    let _spinner = match idle {
        Idle::Awake => Some(Spinner::start(RQPS.as_ref()).context("keep CPUs awake")?),
        Idle::Os => None,
    };
    for (target, build) in &builds {
        say(&format!("{}: start", target.label));
        let mut subject = Subject::start(target, build, &options.work, cache_bytes(options), stop)?;
        report.versions.push(format!("{}: {}", subject.label, subject.version));
        let dialect = subject.dialect;
        let mut on_server = ServerComparison { options, subject: &mut subject, say };
        on_server.load_table()?;
        report.memory.extend(on_server.memory()?);
        for case in &cases {
            if !case.is_for(dialect) {
                continue;
            }
            for placement in &placements {
                report.results.push(on_server.measure_case(*case, *placement)?);
            }
        }
        report.loads.extend(on_server.loads()?);
        subject.stop()?;
    }
    Ok(report)
}

fn builds(options: &Options, say: &mut dyn FnMut(&str)) -> Result<Vec<(Target, Build)>> {
    subject::builds(&options.targets, &options.cache_folder()?, say)
}

/// All data stay in memory, including indexes and growth.
fn cache_bytes(options: &Options) -> u64 {
    let rows = options.rows.max(options.load_rows);
    (rows * CACHED_ROW_BYTES).max(CACHE_FLOOR_BYTES)
}

fn cases(options: &Options) -> Result<Vec<Case>> {
    if options.cases.is_empty() {
        return Ok(CASES[..DEFAULT_CASES].to_vec());
    }
    let find = |name: &String| CASES.into_iter().find(|case| case.name == name);
    let mut cases = Vec::new();
    for name in &options.cases {
        let Some(case) = find(name) else {
            let known: Vec<_> = CASES.iter().map(|case| case.name).collect();
            bail!("compare {name}: there is no such case (known: {})", known.join(", "));
        };
        cases.push(case);
    }
    Ok(cases)
}

/// The two programs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Program {
    Rqps,
    Other,
}

/// ABBA: of two neighbouring pairs, one begins with rqps and one with the other program, so that a
/// drift cancels.
fn order(pair: u32) -> [Program; 2] {
    if pair.is_multiple_of(2) {
        [Program::Rqps, Program::Other]
    } else {
        [Program::Other, Program::Rqps]
    }
}

/// Runs both programs on one server.
struct ServerComparison<'a> {
    options: &'a Options,
    subject: &'a mut Subject,
    say: &'a mut dyn FnMut(&str),
}

impl ServerComparison<'_> {
    fn window(&self, placement: Placement, pair: u32) -> Window {
        Window {
            rows: self.options.rows,
            clients: self.options.clients,
            warmup: self.options.warmup,
            seconds: self.options.seconds,
            placement,
            seed: self.options.seed + u64::from(pair),
        }
    }

    /// Loads the same rows for both programs.
    fn load_table(&mut self) -> Result<()> {
        rqps::load(self.subject, self.options.rows, self.options.seed)?;
        self.subject.settle(self.options.rows)
    }

    /// Loads the tables of a case.
    fn load(&mut self, case: Case) -> Result<()> {
        match case.theirs {
            Theirs::Sysbench(_) | Theirs::Step(_) => self.load_table(),
            Theirs::Tpcc => sysbench::load_tpcc(self.subject, self.options),
            Theirs::Pgbench(_) => pgbench::load(self.subject, self.options),
        }
    }

    fn memory(&mut self) -> Result<Option<Memory>> {
        let clients = self.options.memory_clients;
        if clients == 0 {
            return Ok(None);
        }
        let step = rqps::step(self.subject.dialect, "point-query")?;
        let window = Window { clients, ..self.window(Placement::Os, 0) };
        let bytes = rqps::peak_memory(self.subject, &step, window).context("read the memory")?;
        Ok(Some(Memory { target: self.subject.label.clone(), clients, bytes }))
    }

    /// Measures all pairs of one case in one placement.
    fn measure_case(&mut self, case: Case, placement: Placement) -> Result<CaseResult> {
        if case.fresh == Fresh::Once {
            self.load(case)?;
        }
        let mut pairs = Vec::new();
        for pair in 0..self.options.alternations {
            let mut samples = [Sample::default(), Sample::default()];
            for program in order(pair) {
                samples[program as usize] = self.measure(case, placement, pair, program)?;
            }
            let [ours, theirs] = samples;
            (self.say)(&format!(
                "{} {} {}: {} of {}: rqps {:.0}, other {:.0} QPS",
                self.subject.label,
                case.name,
                name(placement),
                pair + 1,
                self.options.alternations,
                ours.qps,
                theirs.qps
            ));
            pairs.push((ours, theirs));
        }
        let target = self.subject.label.clone();
        Ok(CaseResult { target, case: case.name, placement, pairs })
    }

    fn measure(
        &mut self,
        case: Case,
        placement: Placement,
        pair: u32,
        program: Program,
    ) -> Result<Sample> {
        self.subject.check()?;
        if case.fresh == Fresh::Always {
            self.load(case)?;
        }
        self.subject.unpin()?;
        let window = self.window(placement, pair);
        let dialect = self.subject.dialect;
        let sample = match (program, case.theirs) {
            (Program::Rqps, _) => {
                let step = rqps::step_of(self.options, dialect, case)?;
                rqps::measure(self.subject, &step, window)
            }
            (Program::Other, Theirs::Step(name)) => {
                rqps::measure(self.subject, &rqps::step(dialect, name)?, window)
            }
            (Program::Other, Theirs::Sysbench(script)) => {
                let tables = sysbench::of_tables(window.rows);
                sysbench::measure(self.subject, (script, &tables), window)
            }
            (Program::Other, Theirs::Tpcc) => {
                let options = sysbench::of_tpcc(self.options)?;
                sysbench::measure(self.subject, ("tpcc.lua", &options), window)
            }
            (Program::Other, Theirs::Pgbench(script)) => {
                pgbench::measure(self.subject, script, window)
            }
        };
        sample.with_context(|| {
            format!("run {} with {program:?} on {}", case.name, self.subject.label)
        })
    }

    /// Times loads by both programs in turn, without dropping the table and without settling.
    fn loads(&mut self) -> Result<Option<Loads>> {
        let (rows, seed) = (self.options.load_rows, self.options.seed);
        let mut pairs = Vec::new();
        for pair in 0..self.options.load_alternations {
            let mut seconds = [0.0, 0.0];
            for program in order(pair) {
                self.subject.check()?;
                self.subject.unpin()?;
                sysbench::command(self.subject, rows, "cleanup")?;
                seconds[program as usize] = match program {
                    Program::Rqps => rqps::load(self.subject, rows, seed),
                    Program::Other => sysbench::command(self.subject, rows, "prepare"),
                }
                .with_context(|| format!("load with {program:?} on {}", self.subject.label))?;
                self.subject.settle(rows)?;
            }
            let [ours, theirs] = seconds;
            (self.say)(&format!(
                "{} load: {} of {}: rqps {ours:.2} s, sysbench {theirs:.2} s",
                self.subject.label,
                pair + 1,
                self.options.load_alternations
            ));
            pairs.push((ours, theirs));
        }
        let target = self.subject.label.clone();
        Ok((!pairs.is_empty()).then_some(Loads { target, rows, pairs }))
    }
}

// Command line of the comparison with another program.

/// Few rows, so that a smoke run takes seconds. Its figures are meaningless.
const SMOKE_ROWS: u64 = 2000;

/// One case per value of [`Fresh`], and a script.
const SMOKE_CASES: [&str; 4] = ["point-query", "write-only", "insert", "lua-point-select"];

/// Compare rqps with sysbench 1.0 or pgbench on the same running servers, the two programs in turn.
///
/// Tables go to stdout, progress to stderr. Without --bench, which cargo bench passes, this is a
/// smoke run.
#[derive(Clone, Debug, Parser)]
#[command(name = "against_sysbench")]
pub(crate) struct Options {
    /// Builds to run as servers: Postgres, MySQL, MariaDB.
    #[arg(long, value_delimiter = ',', default_value = "postgres@17.2.0,mysql@8.0.33")]
    pub(crate) targets: Vec<String>,
    /// The cases. Default: steps of rqps against sysbench: point-query, read-only,
    /// update-index, update-nonindex, write-only, delete, insert. Scripts of sysbench in both
    /// programs: lua-point-select, lua-read-only, lua-read-write, lua-update-index, lua-tpcc. Those
    /// of pgbench: pgbench-select-only, pgbench-tpcb-like. Own SQL against steps of rqps:
    /// sql-point, sql-update.
    #[arg(long, value_delimiter = ',')]
    pub(crate) cases: Vec<String>,
    /// Placements of client and server: together, apart, os.
    #[arg(long, value_delimiter = ',', default_value = "together,apart,os")]
    pub(crate) placements: Vec<String>,
    /// Pairs of runs for each case and placement, in ABBA order.
    #[arg(long, default_value_t = 10)]
    pub(crate) alternations: u32,
    /// Measured seconds of a run.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seconds: u32,
    /// Seconds of a run before the measured ones. sysbench counts them in whole.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) warmup: u32,
    /// Connections, each with a thread of its own.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) clients: u32,
    /// Scale of pgbench's tables.
    #[arg(long, default_value_t = 10)]
    pub(crate) scale: u32,
    /// Folder of Percona's sysbench-tpcc, for lua-tpcc.
    #[arg(long)]
    pub(crate) tpcc: Option<PathBuf>,
    /// Rows of the table.
    #[arg(long, default_value_t = 300_000)]
    pub(crate) rows: u64,
    /// Rows for the comparison of loading.
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) load_rows: u64,
    /// Pairs of loads; 0 leaves loading out.
    #[arg(long, default_value_t = 3)]
    pub(crate) load_alternations: u32,
    /// Clients when the memory of the driver is read; 0 leaves it out.
    #[arg(long, default_value_t = 64)]
    pub(crate) memory_clients: u32,
    /// Keep idle CPUs from halting.
    #[arg(long)]
    pub(crate) awake: bool,
    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Cache of builds; /var/cache/rqps for root, else the XDG cache folder.
    #[arg(long, env = "RQPS_CACHE")]
    pub(crate) cache: Option<PathBuf>,
    /// Folder for the servers' data.
    #[arg(long, default_value = "/var/tmp")]
    pub(crate) work: PathBuf,
    /// Print tables as Markdown.
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Do all of it once and tiny: to see that it works.
    #[arg(long)]
    pub(crate) smoke: bool,
    /// Passed by cargo bench.
    #[arg(long, hide = true)]
    pub(crate) bench: bool,
}

impl Options {
    /// The effective options: a smoke run is small in any case.
    pub(crate) fn settled(mut self) -> Options {
        if self.smoke || !self.bench {
            self.smoke = true;
            if self.cases.is_empty() {
                self.cases = SMOKE_CASES.map(str::to_owned).to_vec();
            }
            self.placements.truncate(1);
            self.alternations = 1;
            (self.warmup, self.seconds) = (1, 1);
            (self.rows, self.load_rows) = (SMOKE_ROWS, SMOKE_ROWS);
            self.load_alternations = self.load_alternations.min(1);
            self.memory_clients = self.memory_clients.min(4);
        }
        self
    }

    /// The cache of builds.
    pub(crate) fn cache_folder(&self) -> Result<PathBuf> {
        if let Some(said) = &self.cache {
            return Ok(said.clone());
        }
        if rqps_host::user::is_root() {
            return Ok("/var/cache/rqps".into());
        }
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        match (variable("XDG_CACHE_HOME"), variable("HOME")) {
            (Some(folder), _) => Ok(PathBuf::from(folder).join("rqps")),
            (None, Some(home)) => Ok(PathBuf::from(home).join(".cache/rqps")),
            (None, None) => bail!("find the cache of builds: name it with --cache"),
        }
    }

    /// The named placements.
    pub(crate) fn placements(&self) -> Result<Vec<Placement>> {
        let placement = |name: &String| match name.as_str() {
            "together" => Ok(Placement::Together),
            "apart" => Ok(Placement::Apart),
            "os" => Ok(Placement::Os),
            other => bail!("use the placement {other}: there are together, apart and os"),
        };
        self.placements.iter().map(placement).collect()
    }
}

/// The name of a placement in options and tables.
pub(crate) fn name(placement: Placement) -> &'static str {
    match placement {
        Placement::Together => "together",
        Placement::Apart => "apart",
        Placement::Os => "os",
    }
}
