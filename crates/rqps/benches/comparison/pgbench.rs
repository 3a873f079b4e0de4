//! pgbench as the other program: built-in scripts with prepared statements.
//!
//! pgbench prints its rate each second. Its CPU time is read when it prints the last second of the
//! warm-up, and the last one of the window.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use rqps_host::affinity;
use rqps_host::tree::{self, TreeCpu};

use super::Options;
use super::report::{Sample, Used, switches};
use super::rqps::Window;
use super::subject::Subject;
use super::sysbench::seat_server;

/// The beginning of the line of a second.
const PROGRESS: &str = "progress: ";

/// A command of pgbench on the server.
fn command(subject: &Subject, options: &[String]) -> Result<Vec<String>> {
    let (socket, login) = subject.socket()?;
    let folder = socket.parent().context("the socket has no folder")?.display().to_string();
    let port = socket.extension().unwrap_or_default().to_string_lossy().into_owned();
    let place = ["pgbench", "-h", &folder, "-p", &port, "-U", &login.user].map(str::to_owned);
    Ok(place.into_iter().chain(options.iter().cloned()).chain([login.database]).collect())
}

/// Its version line, such as `pgbench (PostgreSQL) 15.18 (Debian …)`.
pub(crate) fn version() -> Result<String> {
    let output = Command::new("pgbench").arg("--version").output();
    let output = output.context("run pgbench: it comes with Postgres")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Creates and loads its tables.
pub(crate) fn load(subject: &Subject, options: &Options) -> Result<()> {
    let said = ["-i", "-q", "-s", &options.scale.to_string()].map(str::to_owned);
    let words = command(subject, &said)?;
    let output = Command::new(&words[0]).args(&words[1..]).output().context("start pgbench -i")?;
    if !output.status.success() {
        bail!("pgbench -i: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Runs a built-in script once.
pub(crate) fn measure(subject: &Subject, script: &str, window: Window) -> Result<Sample> {
    let cpus = affinity::allowed_cpus();
    let seat = affinity::plan(window.placement, window.clients, &cpus)?.into_iter().next();
    let seat = seat.context("plan a seat for the client")?;
    let before = tree::processes(subject.pid()?)?.into_iter().collect();
    let (clients, last) = (window.clients.to_string(), window.warmup + window.seconds);
    // One second more, because it prints no line for its last second.
    let duration = (last + 1).to_string();
    let said = [
        "-n", "-M", "prepared", "-b", script, "-c", &clients, "-j", &clients, "-P", "1", "-T",
        &duration,
    ];
    let mut words = command(subject, &said.map(str::to_owned))?;
    if !seat.client.is_empty() {
        let list: Vec<String> = seat.client.iter().map(ToString::to_string).collect();
        words.splice(..0, ["taskset".to_owned(), "--cpu-list".to_owned(), list.join(",")]);
    }
    let child = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("start pgbench")?;
    let mut running = Running(child);
    let stderr = running.0.stderr.take().context("pgbench has no standard error")?;
    let mut cpu = TreeCpu::new(running.0.id()).context("watch pgbench")?;
    std::thread::sleep(std::time::Duration::from_millis(100));
    let notes = seat_server(subject, &seat, &before).err();
    let (mut begin, mut transactions, mut told) = (None, 0.0, String::new());
    let mut now = 0.0;
    for line in BufReader::new(stderr).lines() {
        let line = line.context("listen to pgbench")?;
        told.push_str(&line);
        told.push('\n');
        let Some((seconds, rate)) = progress(&line) else { continue };
        let second = seconds.round() as u32;
        if second > window.warmup {
            transactions += rate * (seconds - now);
        }
        now = seconds;
        if second == window.warmup {
            begin = Some((seconds, cpu.read().context("read the CPU of pgbench")?, switches()));
        }
        let Some((start, first, switched)) = begin.filter(|_| second == last) else { continue };
        let used = cpu.read().context("read the CPU of pgbench")?.since(first);
        let used = Used {
            statements: transactions * statements_of(script),
            seconds: seconds - start,
            cpu: used,
            switches: switches().saturating_sub(switched),
            others: 0,
        };
        return Ok(used.sample(0, notes.map(|note| format!("{note:#}")).into_iter().collect()));
    }
    bail!("pgbench {script}: {told}")
}

/// Statements per transaction, with BEGIN and END.
fn statements_of(script: &str) -> f64 {
    match script {
        "select-only" => 1.0,
        "simple-update" => 5.0,
        _ => 7.0,
    }
}

/// Seconds since the start, and transactions per second.
fn progress(line: &str) -> Option<(f64, f64)> {
    let (seconds, rest) = line.strip_prefix(PROGRESS)?.split_once(" s, ")?;
    let (rate, _) = rest.split_once(" tps")?;
    Some((seconds.parse().ok()?, rate.parse().ok()?))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_line_of_progress_tells_seconds_and_rate() {
        let line = "progress: 2.0 s, 25911.4 tps, lat 0.038 ms stddev 0.009, 0 failed";
        assert_eq!(super::progress(line), Some((2.0, 25911.4)));
        assert_eq!(super::progress("pgbench: error: connection failed"), None);
    }
}
