//! What a benchmark is, and those that send SQL: sysbench, YCSB, orders, sql, pgbench.

use rqps_analysis as analyze;
use rqps_driver as driver;
use rqps_driver::workload;
#[cfg(test)]
use rqps_embed as embed;
use rqps_host as os;
use rqps_import as import;
use rqps_model as domain;
use rqps_model::datagen;
use rqps_model::escape;
use rqps_model::json;
use rqps_model::units;
use rqps_report as report;
use rqps_stats as stats;
use rqps_text as user_text;
use rqps_wire as wire;

pub mod counting;
pub mod custom;
pub mod orders;
pub mod pgbench;
pub mod spec;
pub mod sysbench;
pub mod ycsb;
