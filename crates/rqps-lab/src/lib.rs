//! Plans, how they are carried out, and loops of measuring and deciding.

use rqps_analysis as analyze;
use rqps_builds as obtain;
use rqps_dbms as dbms;
use rqps_driver as driver;
use rqps_driver::workload;
use rqps_host as os;
use rqps_import as import;
use rqps_model as domain;
use rqps_model::bounded;
use rqps_model::datagen;
use rqps_model::json;
use rqps_model::units;
use rqps_report as report;
use rqps_results as results;
use rqps_stats as stats;
use rqps_stats::parallel;
use rqps_text as user_text;
use rqps_wire as wire;

pub mod benchmarks;
pub mod campaign;
pub mod lab;
pub mod plan;
