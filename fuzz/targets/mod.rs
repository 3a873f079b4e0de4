//! Every reader of bytes that strangers may have written, as functions of bytes, for libFuzzer
//! (`fuzz_targets/reader.rs`) and for the tests (`crates/rqps/tests/fuzz.rs`).
//!
//! A target panics if its reader does, or if what it reads is not what was written. No reader may
//! take more memory than [`MEMORY_BASE`] and [`MEMORY_PER_BYTE`] allow, or more stack than
//! [`STACK_BYTES`], which is what a program begins with.

mod imports;
mod records;
mod servers;
mod texts;
mod words;

use std::alloc::System;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};

use cap::Cap;

use rqps_builds::fuzzing as obtain;
use rqps_dbms::fuzzing as dbms;
use rqps_host::{fuzzing as os, proc};
use rqps_lab::lab::fuzzing as lab;

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

/// Bytes that a reader may take for any input.
const MEMORY_BASE: usize = 64 << 20;
/// Bytes more that it may take for each byte of the input.
const MEMORY_PER_BYTE: usize = 512;
/// Bytes of a thread's stack.
pub(crate) const STACK_BYTES: usize = 8 << 20;

/// A reader.
pub(crate) struct FuzzTarget {
    /// Its name, and that of its folder in `fuzz/corpus`.
    pub(crate) name: &'static str,
    /// Reads some bytes.
    pub(crate) run: fn(&[u8]),
    /// Folders of the repository with more inputs.
    pub(crate) seeds: &'static [&'static str],
}

const fn target(name: &'static str, run: fn(&[u8])) -> FuzzTarget {
    FuzzTarget { name, run, seeds: &[] }
}

const fn seeded(name: &'static str, run: fn(&[u8]), seeds: &'static [&'static str]) -> FuzzTarget {
    FuzzTarget { name, run, seeds }
}

const IMPORTED: &[&str] = &["crates/rqps/tests/data/import"];
const DUMPED: &[&str] = &["crates/rqps/tests/data/dumps"];

/// All targets.
pub(crate) static ALL: [FuzzTarget; 50] = [
    seeded("sql_lexer", texts::sql_lexer, DUMPED),
    seeded("sql_splitter", texts::sql_splitter, DUMPED),
    target("sql_references", texts::sql_references),
    seeded("sql_dump", texts::sql_dump, DUMPED),
    seeded("load_rules", texts::load_rules, DUMPED),
    target("statement_log", texts::statement_log),
    target("behind", texts::behind),
    target("trace", texts::trace),
    target("csv", texts::csv),
    target("escaped", texts::escaped),
    target("pgbench_script", texts::pgbench_script),
    target("toml", texts::toml),
    target("c_source", texts::c_source),
    target("workload_file", texts::workload_file),
    target("plan_file", texts::plan_file),
    target("block_spec", texts::block_spec),
    seeded("server_config", texts::server_config, &["configs/postgres", "configs/mysql"]),
    seeded("recipe", texts::recipe, &["configs/build/postgres", "configs/build/sqlite"]),
    target("target_words", words::target_words),
    target("set_values", words::set_values),
    target("lua_options", words::lua_options),
    target("pgbench_options", words::pgbench_options),
    target("quantities", words::quantities),
    target("driver_lines", words::driver_lines),
    target("relay_request", words::relay_request),
    target("dsn", words::dsn),
    target("login_files", words::login_files),
    target("postgres_replies", servers::postgres_replies),
    target("postgres_login", servers::postgres_login),
    target("postgres_sent", servers::postgres_sent),
    target("mysql_replies", servers::mysql_replies),
    target("mysql_login", servers::mysql_login),
    target("mysql_sent", servers::mysql_sent),
    target("certificate", servers::certificate),
    target("records", records::records),
    target("seconds", records::seconds),
    target("histogram", records::histogram),
    target("callgrind", records::callgrind),
    target("stacks", records::stacks),
    target("run_folder", records::run_folder),
    target("bundle", records::bundle),
    target("package", records::package),
    target("elf", records::elf),
    target("vectors", records::vectors),
    seeded("import_sysbench", imports::sysbench, IMPORTED),
    seeded("import_insert", imports::insert, IMPORTED),
    seeded("import_kv", imports::kv, IMPORTED),
    seeded("import_vector", imports::vector, IMPORTED),
    target("import_folder", imports::folder),
    target("tools", tools),
];

/// The target of this name.
pub(crate) fn named(name: &str) -> Option<&'static FuzzTarget> {
    ALL.iter().find(|target| target.name == name)
}

/// Runs a target within its memory: more ends the process.
pub(crate) fn held(target: &FuzzTarget, bytes: &[u8]) {
    let more = MEMORY_BASE + bytes.len() * MEMORY_PER_BYTE;
    MEMORY.set_limit(MEMORY.allocated() + more).expect("the limit is above what is in use");
    (target.run)(bytes);
}

/// The folder of the repository.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    if own.ends_with("fuzz") { own.join("..") } else { own.join("../..") }
}

/// The first byte, which chooses something, and the rest.
fn split(bytes: &[u8]) -> (u8, &[u8]) {
    bytes.split_first().map_or((0, bytes), |(first, rest)| (*first, rest))
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// A folder of this thread, which goes with it.
fn scratch() -> PathBuf {
    thread_local! { static FOLDER: OnceCell<tempfile::TempDir> = const { OnceCell::new() }; }
    let made = || tempfile::tempdir().expect("a folder for temporary files");
    FOLDER.with(|folder| folder.get_or_init(made).path().to_owned())
}

/// A file of this name with these bytes.
fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = scratch().join(name);
    fs::write(&path, bytes).expect("a file can be written");
    path
}

// What programs print: package clients, git, ldconfig, servers, Slurm; files of the system.

/// All of them on each text.
pub(super) fn tools(bytes: &[u8]) {
    let said = text(bytes);
    let _ = obtain::printed(&said);
    for line in said.lines() {
        let _ = (lab::queue_line(line), os::is_stop_order(line), proc::bracketed(line));
    }
    let _ = (os::user_of(&said, "postgres"), os::user_of(&said, "100"));
    let _ = dbms::server_log(&file("server.log", bytes));
    let _ = (proc::host_stat(&said), proc::process_stat(&said), proc::sched_stat(&said));
    let _ = (proc::disk_counters(&said, "sda"), proc::memory(&said), proc::cpu_info(&said));
    let _ =
        (proc::proportional_bytes(&said), proc::resident_bytes(&said), proc::pressure_us(&said));
    let mounts = proc::mounts(&said);
    let _ = proc::mount_of(&mounts, std::path::Path::new("/var/lib"));
}
