//! sysbench 1.0 of Debian as the other program.
//!
//! With `--report-checkpoints` it prints and resets its counters after the warm-up, so its final
//! report covers only the window. The bench reads its output line by line: the window begins with
//! the checkpoint's line and ends with the first line of the last report; at both it reads CPU time
//! and context switches.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rqps_host::affinity::{self, CpuAssignment};
use rqps_host::tree::{self, Cpu, TreeCpu};
use rqps_model::dialect::Dialect;

use super::Options;
use super::report::{Sample, Used, switches};
use super::rqps::Window;
use super::subject::Subject;

/// Options of Percona's scripts: one warehouse.
pub(crate) const TPCC: [&str; 3] = ["--tables=1", "--scale=1", "--use_fk=0"];

/// Time for finding the thread of a server that answers.
const WATCH: Duration = Duration::from_millis(100);
const TRIES: u32 = 4;

/// The version that it prints.
pub(crate) fn version() -> Result<String> {
    const WAY_OUT: &str = "run sysbench: install it (on Debian: apt-get install sysbench)";
    let output = Command::new("sysbench").arg("--version").output().context(WAY_OUT)?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if !text.starts_with("sysbench 1.0") {
        bail!("use {text}: its scripts may differ; this compares with sysbench 1.0");
    }
    Ok(text)
}

/// Options of a script, and the folder in which it must run.
pub(crate) struct Tables {
    options: Vec<String>,
    folder: Option<PathBuf>,
}

/// The tables of the bundled scripts.
pub(crate) fn of_tables(rows: u64) -> Tables {
    let options =
        ["--tables=1".to_owned(), format!("--table-size={rows}"), "--rand-type=uniform".to_owned()];
    Tables { options: options.to_vec(), folder: None }
}

/// The tables of Percona's scripts.
pub(crate) fn of_tpcc(options: &Options) -> Result<Tables> {
    let folder = options.tpcc.clone().context("find Percona's scripts: name them by --tpcc DIR")?;
    Ok(Tables { options: TPCC.map(str::to_owned).to_vec(), folder: Some(folder) })
}

/// Creates the tables of Percona's scripts, with one warehouse. The script waits for half a minute
/// between tables and rows.
pub(crate) fn load_tpcc(subject: &Subject, options: &Options) -> Result<()> {
    let tables = of_tpcc(options)?;
    run(subject, ("tpcc.lua", &tables), "cleanup")?;
    run(subject, ("tpcc.lua", &tables), "prepare")
}

/// Options for the address and login of the server.
fn options(subject: &Subject) -> Result<Vec<String>> {
    let (socket, login) = subject.socket()?;
    let folder = socket.parent().context("the socket has no folder")?;
    let mut options = Vec::new();
    match subject.dialect {
        Dialect::Postgres => {
            let name = socket.to_string_lossy();
            let port = name.rsplit('.').next().unwrap_or_default();
            options.extend([
                "--db-driver=pgsql".to_owned(),
                format!("--pgsql-host={}", folder.display()),
                format!("--pgsql-port={port}"),
                format!("--pgsql-user={}", login.user),
                format!("--pgsql-db={}", login.database),
            ]);
        }
        _ => options.extend([
            "--db-driver=mysql".to_owned(),
            format!("--mysql-socket={}", socket.display()),
            format!("--mysql-user={}", login.user),
            format!("--mysql-db={}", login.database),
        ]),
    }
    Ok(options)
}

/// Runs `prepare` or `cleanup`; returns the seconds from the start of the process to its end.
pub(crate) fn command(subject: &Subject, rows: u64, command: &str) -> Result<f64> {
    let begin = Instant::now();
    run(subject, ("oltp_read_only", &of_tables(rows)), command)?;
    Ok(begin.elapsed().as_secs_f64())
}

fn run(subject: &Subject, (script, tables): (&str, &Tables), command: &str) -> Result<()> {
    let mut sysbench = Command::new("sysbench");
    if let Some(folder) = &tables.folder {
        sysbench.current_dir(folder);
    }
    let output = sysbench
        .arg(script)
        .args(options(subject)?)
        .args(&tables.options)
        .arg(command)
        .output()
        .with_context(|| format!("start sysbench {command}"))?;
    if !output.status.success() {
        bail!("sysbench {script} {command}: {}", words(&output.stdout, &output.stderr));
    }
    Ok(())
}

/// Its error message.
fn words(stdout: &[u8], stderr: &[u8]) -> String {
    let text = [stdout, stderr].map(String::from_utf8_lossy).concat();
    let fatal: Vec<&str> = text.lines().filter(|line| line.contains("FATAL")).collect();
    if fatal.is_empty() { text } else { fatal.join("; ") }
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Counters at one edge of the window.
struct Edge {
    cpu: Cpu,
    switches: u64,
}

impl Edge {
    fn read(cpu: &mut TreeCpu) -> Result<Edge> {
        Ok(Edge { cpu: cpu.read().context("read the CPU of sysbench")?, switches: switches() })
    }
}

/// Runs a script once.
pub(crate) fn measure(
    subject: &Subject,
    (script, tables): (&str, &Tables),
    window: Window,
) -> Result<Sample> {
    let cpus = affinity::allowed_cpus();
    let seats = affinity::plan(window.placement, window.clients, &cpus)?;
    let seat = seats.into_iter().next().context("plan a seat for the client")?;
    let before = tree::processes(subject.pid()?)?.into_iter().collect();
    let mut running = Running(start(subject, (script, tables), window, &seat)?);
    let pid = running.0.id();
    let stdout = running.0.stdout.take().context("sysbench has no standard output")?;
    let (mut begin, mut end, mut notes) = (None, None, Vec::new());
    let mut cpu = TreeCpu::new(pid).context("watch sysbench")?;
    let mut text = String::new();
    for line in BufReader::new(stdout).lines() {
        let line = line.context("listen to sysbench")?;
        if line.starts_with("Threads started") {
            notes.extend(seat_server(subject, &seat, &before).err());
        } else if line.contains("Checkpoint report") {
            begin = Some(Edge::read(&mut cpu)?);
        } else if line.starts_with("SQL statistics") && !text.ends_with("Checkpoint report:\n") {
            end = Some(Edge::read(&mut cpu)?);
        }
        text.push_str(&line);
        text.push('\n');
    }
    let mut stderr = Vec::new();
    if let Some(mut errors) = running.0.stderr.take() {
        errors.read_to_end(&mut stderr).ok();
    }
    let status = running.0.wait().context("wait for sysbench")?;
    let (true, Some(begin), Some(end)) = (status.success(), begin, end) else {
        bail!("sysbench {script} run: {}", words(text.as_bytes(), &stderr));
    };
    let report = Report::parse(&text).with_context(|| format!("understand sysbench:\n{text}"))?;
    let used = Used {
        statements: report.queries as f64,
        seconds: report.queries as f64 / report.per_second,
        cpu: end.cpu.since(begin.cpu),
        switches: end.switches.saturating_sub(begin.switches),
        others: report.others,
    };
    Ok(used.sample(report.errors, notes.into_iter().map(|note| format!("{note:#}")).collect()))
}

fn start(
    subject: &Subject,
    (script, tables): (&str, &Tables),
    window: Window,
    seat: &CpuAssignment,
) -> Result<Child> {
    let mut command = if seat.client.is_empty() {
        Command::new("sysbench")
    } else {
        let list: Vec<String> = seat.client.iter().map(ToString::to_string).collect();
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", &list.join(","), "sysbench"]);
        command
    };
    if let Some(folder) = &tables.folder {
        command.current_dir(folder);
    }
    command
        .arg(script)
        .args(options(subject)?)
        .args(&tables.options)
        .arg(format!("--rand-seed={}", window.seed % (1 << 31)))
        .arg(format!("--threads={}", window.clients))
        .arg("--events=0")
        .arg(format!("--report-checkpoints={}", window.warmup))
        .arg(format!("--time={}", window.warmup + window.seconds))
        .arg("run")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("start sysbench")
}

/// Pins the server's side of the only connection in the warm-up, like rqps's driver: the backend
/// process of Postgres, else the thread that is busiest while the client runs.
pub(crate) fn seat_server(
    subject: &Subject,
    seat: &CpuAssignment,
    before: &BTreeSet<u32>,
) -> Result<()> {
    if seat.server.is_empty() {
        return Ok(());
    }
    let server = subject.pid()?;
    if subject.dialect == Dialect::Postgres {
        let fresh = tree::processes(server)?.into_iter().filter(|pid| !before.contains(pid));
        let backends: Vec<u32> = fresh.filter(|pid| is_backend(*pid)).collect();
        let [backend] = backends[..] else {
            bail!("sysbench's backend is not pinned: {} could be it", backends.len());
        };
        return Ok(affinity::pin_process(backend, &seat.server)?);
    }
    let mut found = None;
    for _ in 0..TRIES {
        let earlier = affinity::thread_snapshot(server)?;
        thread::sleep(WATCH);
        let busiest = affinity::busiest_thread(&earlier, &affinity::thread_snapshot(server)?);
        if let (Some(thread), true) = (busiest, busiest == found) {
            return Ok(affinity::pin_tid(thread, &seat.server)?);
        }
        found = busiest;
    }
    bail!("sysbench's thread of the server is not pinned: it could not be told from others")
}

/// True for a backend of Postgres that serves a client over a unix socket, by its title.
fn is_backend(pid: u32) -> bool {
    let title = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&title).contains("[local]")
}

/// The figures of the last report.
#[derive(Debug, PartialEq)]
struct Report {
    queries: u64,
    per_second: f64,
    others: u64,
    errors: u64,
}

impl Report {
    fn parse(text: &str) -> Option<Report> {
        let last = &text[text.rfind("SQL statistics:")?..];
        let field = |name: &str| last.lines().find_map(|line| line.trim().strip_prefix(name));
        let count = |name: &str| field(name)?.split_whitespace().next()?.parse().ok();
        let rate = field("queries:")?.split_once('(')?.1;
        Some(Report {
            queries: count("queries:")?,
            per_second: rate.split_whitespace().next()?.parse().ok()?,
            others: count("other:")?,
            errors: count("ignored errors:")?,
        })
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_last_report_is_that_of_the_window() {
        let report = |queries: &str| {
            format!(
                "SQL statistics:\n    queries performed:\n        read: 17453\n        write: 0\n\
                 \x20       other: 12\n        total: 17453\n    transactions: 17453  (1.00 per \
                 sec.)\n    queries: {queries}\n    ignored errors: 3      (0.00 per sec.)\n"
            )
        };
        let text = format!(
            "[ 1s ] Checkpoint report:\n{}{}",
            report("17453  (17436.26 per sec.)"),
            report("34806  (17383.71 per sec.)")
        );
        let expected =
            super::Report { queries: 34806, per_second: 17383.71, others: 12, errors: 3 };
        assert_eq!(super::Report::parse(&text), Some(expected));
        assert_eq!(super::Report::parse("FATAL: no server"), None);
    }
}
