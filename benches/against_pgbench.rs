//! rqps against pgbench on one server: transactions per second, and what a statement costs the
//! client. Both send the same statements of the same seed's kind, prepared, in turn.
//!
//!     cargo bench --bench against_pgbench -- --root /path/to/postgres --clients 1 --pairs 10
//!
//! `--root` is a folder with `bin/initdb` and `bin/postgres`; pgbench is that of PATH.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program of its own")]

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use rustix::process::{Pid, Signal, getuid, kill_process};

/// What is compared, and how long.
#[derive(Parser)]
struct Options {
    /// Root folder of a Postgres
    #[arg(long)]
    root: PathBuf,
    /// Connections, each with a thread of its own on both sides
    #[arg(long, default_value_t = 1)]
    clients: u32,
    /// Pairs of windows of each script
    #[arg(long, default_value_t = 10)]
    pairs: u32,
    /// Seconds of a window
    #[arg(long, default_value_t = 30)]
    seconds: u32,
    /// Scale of the tables
    #[arg(long, default_value_t = 10)]
    scale: u32,
    /// What cargo adds
    #[arg(long, hide = true)]
    bench: bool,
}

/// What one program did in one window.
#[derive(Clone, Copy)]
struct Window {
    tps: f64,
    /// CPU of the client per transaction, microseconds.
    cpu_us: f64,
}

fn main() -> ExitCode {
    match compare(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("against_pgbench: failed to {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn compare(options: &Options) -> Result<()> {
    let server = Server::start(&options.root)?;
    let scale = options.scale.to_string();
    server.pgbench(&["-i", "-q", "-s", &scale])?;
    println!("| script | clients | pairs | tps of pgbench | tps | ratio | least, most | CPU |");
    println!("|---|---|---|---|---|---|---|---|");
    for script in ["select-only", "tpcb-like"] {
        let mut pairs = Vec::new();
        for number in 0..options.pairs {
            let ours_first = number % 2 == 1;
            let first = server.window(options, script, ours_first)?;
            let second = server.window(options, script, !ours_first)?;
            pairs.push(if ours_first { (second, first) } else { (first, second) });
            eprintln!("{script}: pair {} of {}", number + 1, options.pairs);
        }
        let sorted = |value: &dyn Fn(&(Window, Window)) -> f64| {
            let mut values: Vec<f64> = pairs.iter().map(value).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let median = |values: &[f64]| values.get(values.len() / 2).copied().unwrap_or(f64::NAN);
        let ratios = sorted(&|(theirs, ours)| ours.tps / theirs.tps);
        let (least, most) = (ratios.first(), ratios.last());
        println!(
            "| {script} | {} | {} | {:.0} | {:.0} | {:.3} | {:.3}, {:.3} | {:.3} |",
            options.clients,
            options.pairs,
            median(&sorted(&|(theirs, _)| theirs.tps)),
            median(&sorted(&|(_, ours)| ours.tps)),
            median(&ratios),
            least.unwrap_or(&f64::NAN),
            most.unwrap_or(&f64::NAN),
            median(&sorted(&|(theirs, ours)| ours.cpu_us / theirs.cpu_us)),
        );
    }
    Ok(())
}

/// A running server with a private folder; it ends with this value.
struct Server {
    folder: tempfile::TempDir,
    child: Child,
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process(pid, Signal::QUIT);
        }
        let _ = self.child.wait();
    }
}

/// A command that runs without privileges, since servers refuse to be root.
fn unprivileged(program: &Path) -> Command {
    if !getuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"]).arg(program);
    command
}

fn run(command: &mut Command) -> Result<Output> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("run {command:?}"))?;
    if !output.status.success() {
        bail!("run {command:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(output)
}

impl Server {
    fn start(root: &Path) -> Result<Server> {
        let folder = tempfile::Builder::new().prefix("rqps-pgbench").tempdir_in("/tmp")?;
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
        if getuid().is_root() {
            run(Command::new("chown").arg("nobody:nogroup").arg(folder.path()))?;
        }
        let data = folder.path().join("data");
        let mut initdb = unprivileged(&root.join("bin/initdb"));
        initdb.args(["-U", "tester", "-A", "trust", "-N", "-E", "UTF8", "--locale=C", "-D"]);
        run(initdb.arg(&data))?;
        let path = folder.path().join("server.log");
        let log = File::create(&path)?;
        let mut command = unprivileged(&root.join("bin/postgres"));
        command.arg("-D").arg(&data).arg("-k").arg(folder.path());
        let settings =
            ["listen_addresses=", "shared_buffers=1GB", "synchronous_commit=off", "autovacuum=off"];
        for setting in settings {
            command.args(["-c", setting]);
        }
        command.current_dir(folder.path()).stdin(Stdio::null()).stdout(log.try_clone()?);
        let child = command.stderr(log).spawn().context("start the server")?;
        let server = Server { folder, child };
        let begin = Instant::now();
        while !fs::read_to_string(&path)?.contains("ready to accept connections") {
            if begin.elapsed() > Duration::from_secs(60) {
                bail!("start the server: {}", fs::read_to_string(&path)?);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }

    fn pgbench(&self, options: &[&str]) -> Result<Output> {
        let mut command = Command::new("pgbench");
        command.arg("-h").arg(self.folder.path()).args(["-U", "tester"]).args(options);
        run(command.arg("postgres"))
    }

    fn window(&self, options: &Options, script: &str, is_ours: bool) -> Result<Window> {
        match is_ours {
            true => self.ours(options, script),
            false => self.theirs(options, script),
        }
    }

    fn theirs(&self, options: &Options, script: &str) -> Result<Window> {
        let (clients, seconds) = (options.clients.to_string(), options.seconds.to_string());
        let before = children_cpu_us()?;
        let output = self.pgbench(&[
            "-M", "prepared", "-b", script, "-c", &clients, "-j", &clients, "-T", &seconds,
        ])?;
        let cpu_us = children_cpu_us()? - before;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let number = |begin: &str| -> Option<f64> {
            let line = said.lines().find_map(|line| line.strip_prefix(begin))?;
            line.split([' ', '/']).find_map(|word| word.parse().ok())
        };
        let tps = number("tps = ").with_context(|| format!("read the rate: {said}"))?;
        let count = number("number of transactions actually processed: ").context("read counts")?;
        Ok(Window { tps, cpu_us: cpu_us / count })
    }

    fn ours(&self, options: &Options, script: &str) -> Result<Window> {
        let out = self.folder.path().join("out");
        if out.exists() {
            fs::remove_dir_all(&out)?;
        }
        let dsn = format!("t=postgres://tester@/postgres?host={}", self.folder.path().display());
        let mut command = Command::new(env!("CARGO_BIN_EXE_rqps"));
        command.args(["compare", &dsn, "--blocks", "1", "--canaries", "off", "--yes"]);
        command.args(["--set", "load=none", "--set", "warmup_seconds=0.5", "--placement", "os"]);
        command.arg("--set").arg(format!("seconds={}", options.seconds));
        command.arg("--clients").arg(options.clients.to_string()).arg("--out").arg(&out);
        command.arg("--bench").arg(format!("pgbench:{script}"));
        run(command.args(["--", "-M", "prepared", "-s", &options.scale.to_string()]))?;
        let steps = out.join("b01-1-t/steps");
        let mut files = fs::read_dir(&steps)?.flatten().map(|entry| entry.path());
        let file = files.find(|path| path.extension().is_some_and(|end| end == "json"));
        let file = file.with_context(|| format!("find the step in {}", steps.display()))?;
        let step: serde_json::Value = serde_json::from_slice(&fs::read(file)?)?;
        let outcome = &step["outcome"];
        let number = |value: &serde_json::Value| value.as_f64().context("read a count");
        let events = number(&outcome["events"])?;
        let cpu = &outcome["client_cpu"];
        let cpu_us = number(&cpu["user_us"])? + number(&cpu["system_us"])?;
        Ok(Window { tps: events / number(&outcome["seconds"])?, cpu_us: cpu_us / events })
    }
}

/// CPU of all children that have ended, microseconds.
fn children_cpu_us() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat").context("read /proc/self/stat")?;
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    // Fields 16 and 17 of proc(5); the text begins with the third.
    let ticks: f64 = fields
        .split_whitespace()
        .skip(13)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum();
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    Ok(ticks / per_second * 1e6)
}
