//! `rqps import`: converts published results into run folders.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::cli::args::at_least_1;
use crate::cli::exit;
use rqps_import::{self as import, Across, ImportFormat, ImportOptions, Named};

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
