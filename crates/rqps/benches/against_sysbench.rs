//! Compares rqps with sysbench: client CPU per statement, rate, time of a load, and memory of the
//! driver.
//!
//!     cargo bench --bench against_sysbench -- --help
//!
//! docs/performance.md explains the method and has the results.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program of its own")]

mod comparison;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use clap::Parser;
use rqps_lab::lab::HostLock;

use crate::comparison::Options;

fn main() -> ExitCode {
    match compare(Options::parse().settled()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("against_sysbench: failed to {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn compare(options: Options) -> Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("listen for Ctrl-C")?;
    }
    let named = std::env::var_os("RQPS_HOST_LOCK").map(|path| HostLock::named(path.into()));
    let lock = named.unwrap_or_else(|| HostLock::of_user(None));
    let _alone = lock
        .hold("the bench against sysbench")
        .context("measure on this host: each would be noise to the other")?;
    let report = comparison::run(&options, &stop, &mut |line| eprintln!("{line}"))?;
    print!("{}", report.text(options.markdown));
    Ok(())
}
