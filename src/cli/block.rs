//! `rqps block`: measures one written-down block. Not for users: executors start it.

use std::sync::atomic::Ordering;

use anyhow::{Context, Result};

use crate::cli::block_args::BlockArgs;
use crate::cli::measure::stop_flag;
use crate::cli::program::{perf, program, valgrind};
use crate::cli::progress::Display;
use crate::cli::{exit, folders, vector};
use crate::lab::{self, ExecutionOptions};
use crate::plan::BlockSpec;
use crate::wire::password::TypedPasswords;

/// Reads what was written down, measures the block and writes run folders and `block.json`.
pub(super) fn measure(words: &BlockArgs) -> Result<u8> {
    let path = &words.spec;
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let read = BlockSpec::parse(&text);
    let (spec, plan) = read.with_context(|| format!("carry out {}", path.display()))?;
    vector::check_files(&plan)?;
    let valgrind = plan.workload.counted_statements.map(|_| valgrind()).transpose()?;
    let perf = plan.workload.profile_hertz.map(|_| perf()).transpose()?;
    let options = ExecutionOptions {
        plan,
        out: words.out.clone(),
        cache: folders::cache(words.cache.as_deref()),
        configs: None,
        calibrations: Vec::new(),
        work: words.work.clone(),
        program: program()?,
        valgrind,
        perf,
        debug_folders: Vec::new(),
        host_lock: folders::host_lock(),
        ssh_config: None,
        keep: false,
        variable: folders::variable,
        passwords: TypedPasswords::default(),
        replace: Vec::new(),
        stop: stop_flag()?,
    };
    if words.life_line {
        lab::stop_with_input(&options.stop)?;
    }
    let mut display = Display::new();
    let node = words.node.as_deref();
    let report = lab::carry_out_block(&options, (&spec, node), &mut |event| display.show(event));
    drop(display);
    if words.life_line && options.stop.load(Ordering::Relaxed) && options.out.is_dir() {
        // Nobody is there to fetch it, and no other start of the block reads it.
        std::fs::remove_dir_all(&options.out).context("remove the interrupted block")?;
    }
    if !words.life_line && options.stop.load(Ordering::Relaxed) {
        complain!("rqps: failed to {}", lab::STOPPED);
    }
    let report = report.with_context(|| format!("carry out {}", path.display()))?;
    for fault in &report.faults {
        complain!("rqps: failed: {fault}");
    }
    Ok(match report.faults.is_empty() {
        _ if options.stop.load(Ordering::Relaxed) => exit::INTERRUPTED,
        true => exit::FINE,
        false => exit::RUN_FAILED,
    })
}
