//! The words of the campaign.

use std::path::{Path, PathBuf};

use clap::Parser;

use crate::support::builds;

/// Setups of the short campaign: what needs no fetched build and takes a few seconds.
const SHORT: [&str; 3] = ["sqlite", "sqlite-by-run", "fake"];
/// Its faults.
const SHORT_COUNT: u64 = 20;

#[derive(Clone, Debug, Parser)]
pub(crate) struct Options {
    /// The seed of all that is drawn
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Faults that must have met a run [default: a short campaign]
    #[arg(long, default_value_t = 0)]
    pub(crate) count: u64,
    /// The first trial
    #[arg(long, default_value_t = 0)]
    pub(crate) first: u64,
    /// Only this trial
    #[arg(long)]
    pub(crate) only: Option<u64>,
    /// Trials at once
    #[arg(long, default_value_t = 2)]
    pub(crate) jobs: u64,
    /// Only these setups
    #[arg(long, value_delimiter = ',')]
    pub(crate) setups: Vec<String>,
    /// Only these faults
    #[arg(long, value_delimiter = ',')]
    pub(crate) faults: Vec<String>,
    /// Append a line for each trial to this file
    #[arg(long)]
    pub(crate) csv: Option<PathBuf>,
    /// Print the tables of such a file
    #[arg(long)]
    pub(crate) table: Option<PathBuf>,
    /// Keep what rqps said in every trial
    #[arg(long)]
    keep: bool,
    /// The rqps to try [default: the one that cargo built]
    #[arg(long)]
    pub(crate) program: Option<PathBuf>,
    /// Targets to measure
    #[arg(long)]
    pub(crate) postgres: Option<String>,
    #[arg(long)]
    pub(crate) mysql: Option<String>,
    #[arg(long)]
    pub(crate) rocksdb: Option<String>,
    #[arg(long, hide = true)]
    pub(crate) inside: bool,
    /// What cargo passes on: names of tests
    #[arg(hide = true)]
    names: Vec<String>,
    #[arg(long, hide = true)]
    exact: bool,
    #[arg(long, hide = true)]
    nocapture: bool,
    #[arg(long, hide = true)]
    list: bool,
    #[arg(long, hide = true)]
    ignored: bool,
}

impl Options {
    /// True for `cargo test NAME` with a name that is not this one's.
    pub(crate) fn asks_for_others(&self) -> bool {
        let is_other = |name: &String| !"faults".contains(name.as_str());
        self.list || self.ignored || (!self.names.is_empty() && self.names.iter().all(is_other))
    }

    /// What rqps said is kept also where all was well.
    pub(crate) fn keeps(&self) -> bool {
        self.keep
    }

    /// With the builds of this machine; short, unless told otherwise.
    pub(crate) fn settled(&self) -> Options {
        let mut settled = self.clone();
        if self.count == 0 {
            settled.count = if self.only.is_some() { 1 } else { SHORT_COUNT };
            if self.setups.is_empty() && self.only.is_none() {
                settled.setups = SHORT.map(str::to_owned).to_vec();
                return settled;
            }
        }
        let installed = ["15", "16", "17"].map(|version| format!("/usr/lib/postgresql/{version}"));
        let postgres = installed.iter().find(|root| Path::new(root).join("bin/postgres").exists());
        settled.postgres =
            settled.postgres.or_else(|| postgres.map(|root| format!("postgres={root}")));
        let fetched = |word: &str| builds::roots("", &[word]).ok().map(|_| word.to_owned());
        settled.mysql = settled.mysql.or_else(|| fetched("mysql@8.0.33"));
        settled.rocksdb = settled.rocksdb.or_else(|| fetched("rocksdb@9.9.3"));
        // For the server that rqps does not run.
        let _ = fetched("postgres@17.2.0");
        settled
    }

    /// The words for the process that carries one trial out.
    pub(crate) fn words_inside(&self, number: u64) -> Vec<String> {
        let mut words = vec!["--inside".to_owned(), format!("--seed={}", self.seed)];
        words.push(format!("--only={number}"));
        for (name, list) in [("setups", &self.setups), ("faults", &self.faults)] {
            if !list.is_empty() {
                words.push(format!("--{name}={}", list.join(",")));
            }
        }
        let builds =
            [("postgres", &self.postgres), ("mysql", &self.mysql), ("rocksdb", &self.rocksdb)];
        for (name, build) in builds {
            words.extend(build.as_ref().map(|build| format!("--{name}={build}")));
        }
        words
    }
}
