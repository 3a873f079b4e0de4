//! `rqps block`: measures one block of a specification. Executors start it; it is not for users.

use std::io::{self, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;

use crate::cli::args::ClientHostArgs;
use crate::cli::effect::Effect;
use crate::cli::folders::{self, execution_options};
use crate::cli::questions::{self, Origin};
use crate::cli::terminal::Display;
use crate::cli::{exit, vector};
use rqps_dbms as dbms;
use rqps_driver::{self as driver, Ending};
use rqps_host::{beneath, confinement, spinner, warden};
use rqps_lab::benchmarks::driver_parts;
use rqps_lab::lab::{self, Accepted, ClientLine, ExecutionOptions, error_text};
use rqps_lab::plan::BlockSpec;
use rqps_model::bounded;

/// Reads the block's specification file, measures the block, and writes run folders and
/// `block.json`.
pub(super) fn measure(words: &BlockArgs) -> Result<u8> {
    let path = &words.spec;
    let spec = read(path)?;
    vector::check_files(&spec.plan)?;
    let is_alive_by_input = words.life_line || words.client_line;
    // Whoever started the executor was asked.
    let accepted = if is_alive_by_input || words.node.is_some() {
        Accepted::default()
    } else {
        ask(&spec, words)?
    };
    if is_alive_by_input {
        // Another start of the block brings its own.
        std::fs::remove_file(path).with_context(|| format!("remove {}", path.display()))?;
    }
    let mut options = ExecutionOptions {
        cache: folders::cache(words.cache.as_deref()),
        work: words.work.clone(),
        accepted,
        ..execution_options(spec.plan.clone(), words.out.clone())?
    };
    if words.client_line {
        let (input, output) = (Box::new(io::stdin()), Box::new(io::stdout()));
        options.client_line = Some(ClientLine::open(&options.stop, input, output)?);
    }
    if words.life_line {
        lab::stop_with_input(&options.stop)?;
    }
    let mut display = Display::new();
    let node = words.node.as_deref();
    let report = lab::run_block(&options, (&spec, node), &mut |event| display.show(event));
    drop(display);
    if is_alive_by_input && options.stop.load(Ordering::Relaxed) {
        remove_interrupted(&options.out)?;
    }
    if !is_alive_by_input && options.stop.load(Ordering::Relaxed) {
        error!("rqps: failed to {}", lab::STOPPED);
    }
    let report = report.context("measure the block")?;
    for fault in &report.faults {
        error!("rqps: failed: {fault}");
    }
    Ok(match report.faults.is_empty() {
        _ if options.stop.load(Ordering::Relaxed) => exit::INTERRUPTED,
        true => exit::FINE,
        false => exit::RUN_FAILED,
    })
}

/// Asks before a block is measured that no executor has started: its file may be a stranger's.
fn ask(spec: &BlockSpec, words: &BlockArgs) -> Result<Accepted> {
    let mut effect = Effect::of(&spec.plan, None, None);
    for slot in &spec.targets {
        let config = &slot.config;
        if !dbms::config::is_shipped(
            slot.build.dbms,
            (&config.name, &config.text),
            &slot.build.version,
        ) {
            let name = format!("{} of {}", config.name, slot.build.dbms);
            effect.add_text("settings", name, &config.text);
        }
    }
    let (file, allow) = (words.spec.as_path(), words.allow.as_deref());
    questions::accept(effect, &Origin { file, allow, bundle: None, brings_configs: false })
}

fn read(path: &Path) -> Result<BlockSpec> {
    let text = bounded::text(path, bounded::WRITTEN_MAX)
        .with_context(|| format!("read {}", path.display()))?;
    BlockSpec::parse(&text).with_context(|| format!("carry out {}", path.display()))
}

/// Checks whether this host can measure a block. If it cannot, prints why: the job that asks tells
/// others.
pub(super) fn check_node(words: &CheckNodeArgs) -> Result<u8> {
    let spec = read(&words.spec)?;
    match lab::check_node(&spec, &words.node, (&words.work, &words.pool)) {
        Ok(()) => Ok(exit::FINE),
        Err(unfit) => {
            out!("{}", error_text(&unfit));
            Ok(exit::RUN_FAILED)
        }
    }
}

/// Removes what nobody is there to fetch, and no other start of the block reads.
fn remove_interrupted(out: &Path) -> Result<()> {
    if out.is_dir() {
        // Whoever had the block started has named it for this start alone.
        beneath::remove_made(out, None).context("remove the interrupted block")?;
    }
    if let Some(around) = out.parent() {
        // Another start of the block may be in it already.
        std::fs::remove_dir(around).ok();
    }
    Ok(())
}

/// Removes what a block left that was started with the folder `out` of a pool, once it has ended.
pub(super) fn clear(words: &ClearBlockArgs) -> Result<u8> {
    lab::clear_block(&words.work, &words.out, &folders::mark_key()?).map(|()| exit::FINE)
}

#[derive(Debug, Args)]
pub(super) struct BlockArgs {
    /// File with the block specification
    pub spec: PathBuf,
    /// Folder for the runs and the report
    #[arg(long)]
    pub out: PathBuf,
    /// Folder for data and snapshots
    #[arg(long)]
    pub work: Option<PathBuf>,
    /// Name of this host in a pool: then the folder of --work is shared with other blocks
    #[arg(long, requires = "work")]
    pub node: Option<String>,
    /// Stop when standard input ends, because the process that started this one is gone
    #[arg(long)]
    pub life_line: bool,
    /// The same, and ask that process for drivers on standard output
    #[arg(long, conflicts_with = "life_line")]
    pub client_line: bool,
    /// Cache of builds and data sets
    #[arg(long, env = "RQPS_CACHE")]
    pub cache: Option<PathBuf>,
    /// Measure it without an executor if all that it would use has this hash
    #[arg(long, value_name = "HASH")]
    pub allow: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct CheckNodeArgs {
    /// File with the block specification
    pub spec: PathBuf,
    /// Name of this host in the pool
    #[arg(long)]
    pub node: String,
    /// Folder for data and snapshots
    #[arg(long)]
    pub work: PathBuf,
    /// Folder that all hosts of the pool share
    #[arg(long)]
    pub pool: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct ClearBlockArgs {
    /// The block's folder for runs and report
    pub out: PathBuf,
    /// The block's folder for data and snapshots
    #[arg(long)]
    pub work: PathBuf,
}

// Commands for the processes that the lab starts; not for users.

/// Time limit for the answer of a host on the same network.
const PATIENCE: Duration = Duration::from_secs(10);

/// Carries out one request and ends the process, because client threads may still run.
pub(super) fn driver(memory_group: Option<&Path>) -> ExitCode {
    let (input, output) = match confinement::take_streams() {
        Ok(streams) => streams,
        Err(error) => {
            info!("failed to take over the standard streams: {error}");
            return ExitCode::FAILURE;
        }
    };
    match driver::main(&driver_parts(), BufReader::new(input), output, memory_group) {
        Ending::Done => ExitCode::SUCCESS,
        Ending::Failed | Ending::Abandoned => ExitCode::FAILURE,
    }
}

/// Looks whether this host reaches the one whose servers its clients will load; or lets others
/// look.
pub(super) fn client_host(words: &ClientHostArgs) -> Result<()> {
    let address = words.address;
    if words.listen {
        let what = || format!("listen at {}", address.ip());
        let listener = TcpListener::bind(address).with_context(what)?;
        out!("{}", listener.local_addr().with_context(what)?);
        io::copy(&mut io::stdin(), &mut io::sink()).context("read standard input")?;
        return Ok(());
    }
    let reached = TcpStream::connect_timeout(&address, PATIENCE).map(drop);
    reached.with_context(|| format!("connect to {address}"))
}

pub(super) fn warden() -> ExitCode {
    warden::main()
}

pub(super) fn sqlite_process() -> ExitCode {
    dbms::sqlite_process(io::stdin().lock(), io::stdout())
}

pub(super) fn rocksdb_process() -> ExitCode {
    dbms::rocksdb_process(io::stdin().lock(), io::stdout())
}

pub(super) fn spinner() -> Result<()> {
    spinner::serve(io::stdin(), &mut io::stdout()).context("keep CPUs awake")
}

/// Prints the declarations of a script or a program as JSON; errors go only to stderr.
pub(super) fn look(declared: Result<String, String>) -> ExitCode {
    match declared {
        Ok(declared) => {
            out!("{declared}");
            ExitCode::SUCCESS
        }
        Err(fault) => {
            info!("{fault}");
            ExitCode::FAILURE
        }
    }
}
