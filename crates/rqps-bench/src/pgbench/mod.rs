//! Unmodified pgbench scripts: built-in ones and files, with the program's options.
//!
//! `user_text::pgbench` reads a script when a plan is made. Each client of the driver interprets it
//! with the random numbers of the real program.

pub mod driver;
pub mod schema;
mod settings;
mod steps;

use crate::spec::{BenchmarkSpec, LENGTHS, OwnWords, scaled};
use rqps_driver::part::DriverPart;
use rqps_model::benchmark::BenchmarkParameters;
use rqps_model::pgbench::PgbenchShape;

/// The row of the benchmark.
pub static SPEC: BenchmarkSpec = BenchmarkSpec {
    name: "pgbench",
    workload: |name| {
        scaled(&LENGTHS, name, |_| {
            let shape = PgbenchShape { scale: 1, max_tries: 1, vacuum: true, ..Default::default() };
            BenchmarkParameters::Pgbench(Box::new(shape))
        })
    },
    set: settings::set,
    finish: settings::finish,
    check: steps::check,
    phases: |dialect, _, workload| steps::phases(dialect, workload),
    placement: None,
    load: Some(driver::load),
    words: Some(OwnWords {
        take: settings::take,
        visits: |workload| !steps::has_tables(workload),
        writes: steps::writes,
    }),
    counting: steps::COUNTING,
    driver: DriverPart {
        benchmark: "pgbench",
        step_loop: Some(driver::step_loop),
        answers: true,
        own_load: Some(driver::own_load),
        ..DriverPart::NONE
    },
    names_made: |_, workload| {
        if steps::has_tables(workload) {
            schema::TABLES.map(str::to_owned).to_vec()
        } else {
            Vec::new()
        }
    },
    size: settings::data_size,
    brought: settings::brought,
    ..BenchmarkSpec::PLAIN
};
