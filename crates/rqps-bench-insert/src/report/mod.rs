//! Report sections of the Insert Benchmark: the summary tables and metrics rows of the published
//! perf reports with their colours, response-time classes, longest operations and stalls with the
//! activity of server and host, and charts by second.

mod charts;
mod classes;
mod columns;
mod sections;
mod shades;
mod stalls;
mod summary;
mod workload;

pub(crate) use sections::SECTIONS;
