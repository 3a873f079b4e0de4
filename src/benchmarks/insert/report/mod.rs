//! Sections of the Insert Benchmark: the three summary tables and the metrics rows of the published
//! perf reports with their colours, classes of response times, longest operations and stalls with
//! what server and host did then, and rates and response times by the second as charts.

mod charts;
mod classes;
mod columns;
mod sections;
mod shades;
mod stalls;
mod summary;
mod workload;

pub(crate) use sections::SECTIONS;
