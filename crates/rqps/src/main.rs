//! The `rqps` program.

use rqps_analysis as analyze;
use rqps_builds as obtain;
use rqps_dbms as dbms;
use rqps_driver as driver;
use rqps_driver::workload;
use rqps_embed as embed;
use rqps_host as os;
use rqps_import as import;
use rqps_lab::benchmarks;
use rqps_lab::campaign;
use rqps_lab::lab;
use rqps_lab::plan;
use rqps_model as domain;
use rqps_model::bounded;
use rqps_model::escape;
use rqps_model::units;
use rqps_report as report;
use rqps_results as results;
use rqps_stats::parallel;
use rqps_text as user_text;
use rqps_wire as wire;

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
