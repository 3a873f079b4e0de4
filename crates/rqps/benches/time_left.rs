//! Measures how right the time left is that rqps tells while it measures: at a tenth, a half and
//! nine tenths of runs of several kinds.
//!
//!     cargo bench --bench time_left -- --record docs/time_left.csv [--kinds turns,kv]
//!
//! A run begins with the first estimate, when builds and host are known, and ends with the program.
//! docs/performance.md has the table of a recorded run.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program of its own")]

mod folders;
mod time_left {
    pub(crate) mod table;
}

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::folders::Folders;
use crate::time_left::table::{self, Row};

/// Shares of a run at which its time left is looked at.
const SHARES: [f64; 3] = [0.1, 0.5, 0.9];

const SHORT: &str = "--steps point-query,update-index --set rows=100000 --set read_seconds=2 --set \
                     write_seconds=2 --set warmup_seconds=0.5";

/// The kinds of runs: a name, and words of which the first is the command.
const KINDS: &[(&str, &str)] = &[
    ("quickstart", "quickstart"),
    ("turns", "compare postgres@17.2.0 b=postgres@17.2.0 SHORT"),
    ("turns-mysql", "compare mysql@8.0.33 b=mysql@8.0.33 SHORT"),
    ("step", "compare postgres@17.2.0 mysql@8.0.33 --interleave step SHORT"),
    ("run", "compare postgres@17.2.0 sqlite --interleave run SHORT"),
    ("loads", "compare postgres@17.2.0 b=postgres@17.2.0 --loads 2 SHORT"),
    ("auto", "compare sqlite sqlite:small-cache --blocks auto SHORT"),
    ("aa", "doctor --aa sqlite SHORT"),
    ("count", "compare sqlite sqlite:small-cache --count --blocks 2 SHORT"),
    ("count-server", "count postgres@17.2.0 b=postgres@17.2.0 --steps point-query,update-index"),
    ("profile", "compare postgres@17.2.0 b=postgres@17.2.0 --profile --blocks 2 SHORT"),
    ("kv", "compare rocksdb@9.9.3 b=rocksdb@9.9.3 --bench kv --blocks 2"),
    ("insert", "compare postgres@17.2.0 b=postgres@17.2.0 --bench insert --blocks 2"),
    ("vector", "compare postgres@17+pgvector b=postgres@17+pgvector --bench vector --blocks 2"),
    ("sql", "compare postgres@17.2.0 sqlite --bench sql:WORKLOAD"),
    ("ycsb", "compare sqlite b=sqlite --bench ycsb:a,b,c --blocks 2"),
    ("orders", "compare postgres@17.2.0 b=postgres@17.2.0 --bench orders --blocks 2"),
    ("resume", "compare postgres@17.2.0 b=postgres@17.2.0 SHORT"),
    ("on", "compare sqlite sqlite:small-cache SHORT"),
];

/// A workload of a user's own, and its tables.
const WORKLOAD: &str = r#"
[load]
schema = ["items.sql"]
[parameter]
id = { kind = "uniform", from = 1, to = 300000 }
[[step]]
name = "item-by-id"
[[step.event]]
[[step.event.statement]]
sql = "SELECT price FROM item WHERE id = :id"
[[step]]
name = "price"
[[step.event]]
[[step.event.statement]]
sql = "UPDATE item SET price = price + 1 WHERE id = :id"
"#;
const ITEMS: &str = "
CREATE TABLE item (id INTEGER PRIMARY KEY, price INTEGER NOT NULL, name VARCHAR(40));
INSERT INTO item WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)
SELECT i, i % 997, 'item ' || i FROM n;
";

/// Runs that take a minute or more, and what each said of its end.
#[derive(Parser)]
struct Options {
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
    /// Kinds to measure; all without it.
    #[arg(long, value_delimiter = ',')]
    kinds: Vec<String>,
    /// Another host, as `--on` takes it; without it that kind is left out.
    #[arg(long)]
    on: Option<String>,
    /// Its ssh configuration.
    #[arg(long)]
    ssh_config: Option<PathBuf>,
    /// Write the findings into this file; rows of other kinds in it stay.
    #[arg(long)]
    record: Option<PathBuf>,
    /// The program rqps, by default that of this build.
    #[arg(long, default_value = env!("CARGO_BIN_EXE_rqps"))]
    rqps: PathBuf,
    #[command(flatten)]
    folders: Folders,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if !options.bench {
        // Under `cargo test`: it takes half an hour.
        return ExitCode::SUCCESS;
    }
    match measure(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("time_left: failed to {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure(options: &Options) -> Result<()> {
    let mut rows = match &options.record {
        Some(path) if path.exists() => table::read(&fs::read_to_string(path)?)?,
        _ => Vec::new(),
    };
    for (kind, words) in KINDS {
        let is_chosen = options.kinds.is_empty() || options.kinds.iter().any(|it| it == kind);
        if !is_chosen || (*kind == "on" && options.on.is_none()) {
            continue;
        }
        let scratch = tempfile::tempdir_in(&options.folders.work).context("make a folder")?;
        let row = run_kind(options, (kind, words), scratch.path())
            .with_context(|| format!("measure {kind}"))?;
        eprintln!("{}", table::line(&row));
        rows.retain(|other: &Row| other.kind != row.kind);
        rows.push(row);
        if let Some(path) = &options.record {
            fs::write(path, csv(&rows)).with_context(|| path.display().to_string())?;
        }
    }
    print!("{}", table::markdown(&rows));
    Ok(())
}

fn run_kind(options: &Options, (kind, words): (&str, &str), scratch: &Path) -> Result<Row> {
    let workload = scratch.join("items.toml");
    fs::write(&workload, WORKLOAD)?;
    fs::write(scratch.join("items.sql"), ITEMS)?;
    let words = words.replace("SHORT", SHORT).replace("WORKLOAD", &workload.to_string_lossy());
    let mut words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    if let Some(on) = options.on.as_ref().filter(|_| kind == "on") {
        words.extend(["--on".to_owned(), on.clone()]);
        if let Some(config) = &options.ssh_config {
            words.extend(["--ssh-config".to_owned(), config.to_string_lossy().into_owned()]);
        }
    }
    let out = scratch.join("out");
    let out = out.to_string_lossy().into_owned();
    words.extend(["--out".to_owned(), out.clone()]);
    if kind == "resume" {
        // Stopped in its second block of four.
        said(options, &words, scratch, Some(2))?;
        words = ["run", "--resume", &out].map(str::to_owned).to_vec();
    }
    let told = said(options, &words, scratch, None)?;
    Ok(Row { kind: kind.to_owned(), ..told })
}

/// Runs the program, and compares what it said with its end. Stops it once it measured something in
/// this block.
fn said(options: &Options, words: &[String], scratch: &Path, until: Option<u64>) -> Result<Row> {
    let mut child = Command::new(&options.rqps)
        .args(words)
        .args(["--progress", "json"])
        .env("RQPS_CACHE", &options.folders.cache)
        .env("RQPS_STATE", scratch.join("state"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("start rqps")?;
    let began = Instant::now();
    let mut told: Vec<(f64, [f64; 2])> = Vec::new();
    let mut last = String::new();
    let lines = BufReader::new(child.stderr.take().context("read its progress")?).lines();
    for line in lines {
        let line = line?;
        let now = began.elapsed().as_secs_f64();
        let Ok(event) = serde_json::from_str::<Value>(&line) else { continue };
        if let Some(left) = event["seconds_left"].as_f64() {
            told.push((now, [left, event["seconds_most"].as_f64().unwrap_or(left)]));
        }
        if until.is_some_and(|block| event["block"].as_u64() == Some(block)) {
            let pid = Pid::from_raw(child.id() as i32).context("its process")?;
            _ = kill_process(pid, Signal::INT);
        }
        if event["event"] != "progress" && event["event"] != "doing" {
            last = line;
        }
    }
    let status = child.wait()?;
    ensure!(until.is_some() || status.success(), "run {words:?}: {status}: {last}");
    let end = began.elapsed().as_secs_f64();
    let first = told.first().map_or(0.0, |(at, _)| *at);
    let of_share = |share: f64| {
        let at = first + share * (end - first);
        let (when, left) = *told.iter().rev().find(|(when, _)| *when <= at)?;
        // A reader counts on. Of a range, the value that is nearest to the truth counts.
        let [least, most] = left.map(|left| (left - (at - when)).max(0.0));
        Some(((end - at).clamp(least, most.max(least)), end - at))
    };
    let found = SHARES.map(|share| of_share(share).unwrap_or((f64::NAN, f64::NAN)));
    Ok(Row { kind: String::new(), seconds: end - first, found })
}

const HEAD: &str = "kind,seconds,said_10,true_10,said_50,true_50,said_90,true_90";

fn csv(rows: &[Row]) -> String {
    let mut text = format!("{HEAD}\n");
    for Row { kind, seconds, found } in rows {
        _ = write!(text, "{kind},{seconds:.1}");
        for (said, truth) in found {
            _ = write!(text, ",{said:.1},{truth:.1}");
        }
        text.push('\n');
    }
    text
}
