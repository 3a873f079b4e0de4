//! The columns of a file of findings, shared by the bench that writes such files and the one that
//! reads them.

use rqps_model::metric::Metric;

/// The first line of each file.
pub(crate) const HEAD: &str = "\
    date,cpu,cpus,build,burned,seed,step,metric,blocks,measured_seconds,verdict,beyond_tau,found,\
    low,high,true_ratio";

/// The metrics that are judged; each has its own lines.
pub(crate) const METRICS: [Metric; 2] = [Metric::Rate, Metric::ServerCpuPerOp];
