//! Commands for the processes that the lab starts; not for users.

use std::io::{self, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::cli::args::ClientHostArgs;
use rqps_dbms as dbms;
use rqps_driver::{self as driver, Ending};
use rqps_host::{confinement, spinner, warden};
use rqps_lab::benchmarks::driver_parts;

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
