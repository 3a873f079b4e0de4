//! `rqps import`: converts published results into run folders.

use std::borrow::Cow;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::cli::args::{Export, ExportFormat, at_least_1};
use crate::cli::report::{self, Compared};
use crate::cli::{exit, gate, terminal};
use rqps_analysis::Comparison;
use rqps_embed::sqlite::{Sqlite, SqliteConnection, SqliteValue, Statement};
use rqps_host::child::KeptFolder;
use rqps_host::user;
use rqps_import::{self as import, Across, ImportFormat, ImportOptions, Named};
use rqps_model::run::{Dataset, Run, StepRecord};
use rqps_model::{escape, safe_path};
use rqps_report::export::{Beside, Flat, SqlType, TABLES, rows};
use rqps_report::stacks::{StepStacks, stacks};
use rqps_results as results;

/// `rqps import`.
pub(super) fn import(words: &Import) -> Result<u8> {
    let format = ImportFormat::named(&words.format)?;
    let options = ImportOptions {
        compat: words.compat,
        device: words.device.clone(),
        clients: words.clients.clone(),
        steps: words.steps.clone(),
        cpus: words.cpus,
        labels: words.labels.clone(),
        repeats: words.repeats,
        size: words.size.clone(),
        across: Across {
            sizes: words.across.contains(&AcrossWhat::Sizes),
            hosts: words.across.contains(&AcrossWhat::Hosts),
        },
    };
    let paths: Vec<Named> = words.paths.iter().map(|word| Named::of(word)).collect();
    let published = import::read(format, &paths, &options)?;
    for notice in &published.notices {
        info!("rqps: {notice}");
    }
    for check in &published.checks {
        info!("rqps: {}: {} of {} cells as published", check.what, check.agree, check.of);
    }
    if published.cells.totals().read > 0 {
        info!("rqps: cells: {}", published.cells.totals());
    }
    let written = import::write(format, &published, &words.out)?;
    out!(
        "imported {} targets, {} runs, {} steps into {}",
        written.targets,
        written.runs,
        written.steps,
        words.out.display()
    );
    Ok(exit::FINE)
}

#[derive(Debug, Args)]
pub(super) struct Import {
    /// Format of the files: sysbench-mytools, sysbench, ibench-mytools, dbbench,
    /// ann-benchmarks, hammerdb, series (see docs/importing.md)
    pub format: String,
    /// Files and folders to import; name plain outputs as LABEL=FILE or LABEL/STEP=FILE
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<String>,
    /// Result folder to write; new or empty
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Prefer published vmstat means over the samples (published means count repeated headers as
    /// samples of zeros)
    #[arg(long)]
    pub compat: bool,
    /// Disk that holds the data, as iostat names it [default: the disk that matches the published
    /// means]
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Client counts of the table's columns, in order: 1,2,3
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = at_least_1())]
    pub clients: Vec<u32>,
    /// Steps of an Insert Benchmark table without step names, in order: l.i0,l.x,...
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    pub steps: Vec<String>,
    /// CPUs of the measured host [default: from the tags]
    #[arg(long, value_name = "N", value_parser = at_least_1())]
    pub cpus: Option<u32>,
    /// Labels of rows or columns of a table without target names, in order
    #[arg(long, value_name = "LABEL", value_delimiter = ',')]
    pub labels: Vec<String>,
    /// Treat several rows of one target and step as repetitions: each becomes a block
    #[arg(long)]
    pub repeats: bool,
    /// Import only rows of this size of an Insert Benchmark result, as in its tags: 20m
    #[arg(long, value_name = "SIZE")]
    pub size: Option<String>,
    /// Allow results of different sizes or hosts in one import
    #[arg(long, value_name = "WHAT", value_delimiter = ',', value_enum)]
    pub across: Vec<AcrossWhat>,
}

/// A difference that `--across` allows between the targets of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum AcrossWhat {
    /// The number of rows
    Sizes,
    /// The machine
    Hosts,
}

// `rqps export`: run folders as flat tables, in CSV files or in one SQLite database.

/// `rqps export`.
pub(super) fn export(words: &Export) -> Result<u8> {
    let rules = gate::rules(&words.folders, &words.rules)?;
    let Compared { dataset, comparison } =
        Compared::read(&words.folders, words.baseline.as_deref(), rules)?;
    let count = match words.format {
        ExportFormat::Csv => to_csv((&words.output, !words.formulas), &comparison, &dataset),
        ExportFormat::Sqlite => to_sqlite(&words.output, &comparison, &dataset),
        ExportFormat::Folded => to_files(&words.output, &comparison, "folded", |stacks| {
            Ok(stacks.folded().into_bytes())
        }),
        ExportFormat::Pprof => to_files(&words.output, &comparison, "pb.gz", |stacks| {
            let mut packer = GzEncoder::new(Vec::new(), Compression::default());
            packer.write_all(&stacks.pprof())?;
            packer.finish()
        }),
    }
    .with_context(|| format!("export to {}", words.output.display()))?;
    let what = match words.format {
        ExportFormat::Csv | ExportFormat::Sqlite => "rows",
        ExportFormat::Folded | ExportFormat::Pprof => "profiles",
    };
    info!("rqps: {count} {what} in {}", words.output.display());
    Ok(report::exit_code(&[&comparison]))
}

fn each_row(
    table: &Flat,
    comparison: &Comparison,
    dataset: &Dataset,
    take: &mut dyn FnMut(&[String]) -> Result<()>,
) -> Result<()> {
    let seconds = |run: &Run, step: &StepRecord| Ok(results::seconds_of(run, step)?);
    let counters = |run: &Run, step: &StepRecord| Ok(results::counters_of(run, step)?);
    let beside = Beside { seconds: &seconds, counters: &counters };
    rows(table, comparison, dataset, &beside, take)
}

/// Writes a file for each table into a folder. `guarded`: no text is a formula to a spreadsheet.
fn to_csv(
    (folder, guarded): (&Path, bool),
    comparison: &Comparison,
    dataset: &Dataset,
) -> Result<u64> {
    if folder.exists() && !folder.is_dir() {
        bail!("it is a file\nhint: name a folder for the tables");
    }
    safe_path::make_folder(folder)?;
    let mut count = 0;
    for table in &TABLES {
        let path = folder.join(format!("{}.csv", table.name));
        let file =
            safe_path::create_file(&path).with_context(|| format!("write {}", path.display()))?;
        let mut file = BufWriter::new(file);
        let heads: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
        writeln!(file, "{}", heads.join(","))?;
        each_row(table, comparison, dataset, &mut |row| {
            count += 1;
            let cells: Vec<Cow<'_, str>> = row
                .iter()
                .zip(table.columns)
                .map(|(cell, (_, kind))| escape::csv(cell, guarded && *kind == SqlType::Text))
                .collect();
            Ok(writeln!(file, "{}", cells.join(","))?)
        })?;
        file.flush()?;
    }
    Ok(count)
}

/// Writes a file with the sampled stacks of each step and target into a folder.
fn to_files(
    folder: &Path,
    comparison: &Comparison,
    extension: &str,
    bytes: impl Fn(&StepStacks) -> std::io::Result<Vec<u8>>,
) -> Result<u64> {
    let all = stacks(comparison);
    if all.is_empty() {
        bail!("no stacks were sampled\nhint: measure with `rqps compare --profile`");
    }
    safe_path::make_folder(folder)?;
    for one in &all {
        let name = format!("{}.{}.{extension}", one.step, one.label).replace('/', "_");
        let path = folder.join(name);
        terminal::put(Some(&path), &bytes(one)?)?;
    }
    Ok(all.len() as u64)
}

/// Writes all tables with the compiled-in SQLite, in one transaction.
fn to_sqlite(path: &Path, comparison: &Comparison, dataset: &Dataset) -> Result<u64> {
    safe_path::parent(path)?;
    if fs::symlink_metadata(path).is_ok() {
        bail!("it already exists\nhint: name a new file, or remove this one");
    }
    // SQLite itself would follow a link that others put there meanwhile.
    let place = PathBuf::from(format!("/var/tmp/rqps-export-{}", user::name()?));
    let _kept = KeptFolder::make(&place, 0o700)?;
    let made = place.join("tables");
    let mut database = SqliteConnection::open(&Arc::new(Sqlite::compiled_in()), &made, 0)?;
    database.simple("BEGIN")?;
    let mut count = 0;
    for table in &TABLES {
        let columns: Vec<String> = table.columns.iter().map(column).collect();
        database.simple(&format!("CREATE TABLE {} ({})", table.name, columns.join(", ")))?;
        let insert = prepare(&mut database, table)?;
        each_row(table, comparison, dataset, &mut |row| {
            count += 1;
            // SQLite cannot parse `inf`; it reads a number beyond its range as infinity.
            let values = row.iter().zip(table.columns).map(|(cell, (_, kind))| match kind {
                SqlType::Real if cell == "inf" => SqliteValue::Text(b"9e999"),
                _ => SqliteValue::Text(cell.as_bytes()),
            });
            database.execute(insert, values)?;
            Ok(())
        })?;
    }
    database.simple("CREATE INDEX metrics_by_step ON metrics (step, metric)")?;
    database.simple("CREATE INDEX seconds_by_run ON seconds (run, step)")?;
    database.simple("COMMIT")?;
    drop(database);
    std::io::copy(&mut fs::File::open(&made)?, &mut safe_path::new_file(path)?)?;
    Ok(count)
}

/// Column types convert the inserted texts to numbers.
fn column((name, kind): &(&str, SqlType)) -> String {
    let kind = match kind {
        SqlType::Text => "TEXT",
        SqlType::Integer => "INTEGER",
        SqlType::Real => "REAL",
    };
    format!("{name} {kind}")
}

/// Converts empty texts to NULL.
fn prepare(database: &mut SqliteConnection, table: &Flat) -> Result<Statement> {
    let values: Vec<String> =
        (1..=table.columns.len()).map(|place| format!("nullif(?{place}, '')")).collect();
    let insert = format!("INSERT INTO {} VALUES ({})", table.name, values.join(", "));
    Ok(database.prepare(&insert)?)
}
