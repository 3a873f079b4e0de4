//! The Insert Benchmark as data: the steps of its published versions, with all statements.
//!
//! Rows enter at one end in primary-key order; three secondary indexes receive them at random
//! places. In newer versions, as many rows leave at the other end, so that the table is a queue of
//! constant length. Query steps query as fast as possible while writers keep a rate.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod analyze;
pub(crate) mod driver;
pub(crate) mod report;
pub mod rows;
mod steps;

use rqps_bench::spec::{BenchmarkSpec, DefaultTurns, StepSet};
use rqps_driver::part::DriverPart;
pub use steps::{check, choose, finish, phases, set, shape, workload};

/// The row of the benchmark.
pub static SPEC: BenchmarkSpec = BenchmarkSpec {
    name: "insert",
    workload: |preset| Ok((steps::workload(preset)?, StepSet::default())),
    set: steps::set,
    finish: steps::finish,
    check,
    phases: |dialect, _, workload| steps::phases(dialect, workload),
    choose: steps::choose,
    single_count: Some(
        "its steps build on each other, so it takes one client count; run it once per count",
    ),
    turns: DefaultTurns::Run,
    table_name: rows::TABLE,
    names_made: rows::names_made,
    size: rows::data_size,
    counting: steps::COUNTING,
    memory_limit: |workload| shape(workload)?.memory_limit,
    driver: DriverPart {
        benchmark: "insert",
        step_loop: Some(driver::step_loop),
        ..DriverPart::NONE
    },
    extension: analyze::EXTENSION,
    sections: report::SECTIONS,
    ..BenchmarkSpec::PLAIN
};

#[cfg(test)]
mod tests {
    //! Compares both versions of the sequence with the published client (github.com/mdcallag/mytools,
    //! bench/ibench).
    use crate::*;
    use rqps_driver::workload::SetError;
    use rqps_model::benchmark::{Phase, Step, Workload};
    use rqps_model::dialect::Dialect;
    use rqps_model::insert::InsertWork;

    fn with(settings: &[&str]) -> Workload {
        let mut workload = workload("cpu").unwrap();
        for setting in settings {
            set(&mut workload, setting).unwrap();
        }
        finish(&mut workload);
        workload
    }

    fn steps(dialect: Dialect, settings: &[&str]) -> Vec<Step> {
        let workload = with(settings);
        let all = phases(dialect, &workload);
        let step = |phase| match phase {
            Phase::Measure(step) => Some(*step),
            Phase::Settle | Phase::Restore => None,
        };
        all.into_iter().filter_map(step).collect()
    }

    fn work(step: &Step) -> InsertWork {
        step.own().cloned().unwrap_or_else(|| panic!("{:?}", step.work))
    }

    /// Step, rows per client, rows per commit, rate, deletes.
    type Row<'a> = (&'a str, u64, u32, Option<u32>, bool);

    fn check_table(settings: &[&str], want: &[Row<'_>]) {
        let steps = steps(Dialect::Mysql, settings);
        let have: Vec<Row<'_>> = steps
            .iter()
            .map(|step| {
                let writes = &work(step).writes;
                let deletes = writes.deletes.is_some();
                let rate = writes.rows_per_second;
                (step.name.as_str(), writes.rows, writes.rows_per_commit, rate, deletes)
            })
            .collect();
        assert_eq!(have, want);
    }

    #[test]
    fn published_shapes_of_several_clients_have_a_table_for_each() {
        let check = |preset: &str, clients: u32, rows: u64, i1_rows: u64, i2_rows: u64| {
            let mut workload = workload(preset).unwrap();
            finish(&mut workload);
            let shape = shape(&workload).unwrap();
            assert_eq!((workload.clients, workload.tables), (clients, clients), "{preset}");
            let have = (workload.rows, shape.i1_rows, shape.i2_rows);
            assert_eq!(have, (rows, i1_rows, i2_rows), "{preset}");
            assert_eq!(shape.query_seconds, 1800.0, "{preset}");
            assert_eq!(super::check(&workload, Dialect::Mysql), Ok(()), "{preset}");
        };
        check("c8r32-4u", 4, 10_000_000, 16_000_000, 4_000_000);
        check("c8r32-io-4u", 4, 200_000_000, 4_000_000, 1_000_000);
        check("c24r64-16u", 16, 20_000_000, 16_000_000, 4_000_000);
        check("c48r128-20u", 20, 10_000_000, 16_000_000, 4_000_000);
        check("c48r128-io-20u", 20, 200_000_000, 4_000_000, 1_000_000);
    }

    #[test]
    fn the_steps_of_2021_are_the_published_ones() {
        let hours = |rate: u64| 7200 * rate;
        check_table(
            &["profile=2021"],
            &[
                ("l.i0", 20_000_000, 100, None, false),
                ("l.x", 100_000, 100, None, false),
                ("l.i1", 20_000_000, 50, None, false),
                ("q100.1", hours(100), 50, Some(100), false),
                ("q500.1", hours(500), 50, Some(500), false),
                ("q1000.1", hours(1000), 50, Some(1000), false),
            ],
        );
        let january = steps(Dialect::Mysql, &["profile=2021-jan", "query_seconds=1800"]);
        let names: Vec<&str> = january.iter().map(|step| step.name.as_str()).collect();
        assert_eq!(names.len(), 15);
        assert_eq!(names[3..7], ["q100.1", "q100.2", "q200.1", "q200.2"]);
    }

    #[test]
    fn the_steps_of_2026_are_the_published_ones() {
        let rows = |rate: u64| 1800 * rate;
        check_table(
            &["query_seconds=1800", "rows=30M", "more_rows=50M"],
            &[
                ("l.i0", 30_000_000, 100, None, false),
                ("l.x", 100, 100, None, false),
                ("l.i1", 40_000_000, 50, None, true),
                ("l.i2", 10_000_000, 5, None, true),
                ("qr100.L1", rows(100), 50, Some(100), true),
                ("qp100.L2", rows(100), 50, Some(100), true),
                ("qr500.L3", rows(500), 50, Some(500), true),
                ("qp500.L4", rows(500), 50, Some(500), true),
                ("qr1000.L5", rows(1000), 50, Some(1000), true),
                ("qp1000.L6", rows(1000), 50, Some(1000), true),
            ],
        );
        let workload = with(&[]);
        let all = phases(Dialect::Postgres, &workload);
        let settles: Vec<usize> =
            (0..all.len()).filter(|index| all[*index] == Phase::Settle).collect();
        assert_eq!(settles, [4], "one cleanup, between l.i2 and the first query step");
    }

    #[test]
    fn l_x_counts_all_rows_that_it_indexes() {
        let of = |settings: &[&str]| work(&steps(Dialect::Mysql, settings)[1]).clone();
        let new = of(&["clients=4"]);
        assert_eq!(
            (new.indexed_rows, new.writes.rows),
            (80_000_000, 25),
            "a batch for each client"
        );
        assert_eq!(of(&["profile=2021"]).indexed_rows, 20_000_000);
        assert_eq!(of(&["secondary_indexes=0"]).indexes, [] as [String; 0]);
        let two = of(&["secondary_indexes=2"]);
        assert_eq!(two.indexes.len(), 1, "one ALTER");
        assert_eq!(two.indexes_one_by_one.len(), 2);
    }

    #[test]
    fn a_commit_has_no_more_rows_than_a_second() {
        let slow = steps(Dialect::Mysql, &["query_steps=20:range,100:point"]);
        let commits: Vec<u32> =
            slow[4..].iter().map(|step| work(step).writes.rows_per_commit).collect();
        assert_eq!(commits, [20, 50]);
    }

    #[test]
    fn partitions_cover_all_rows_that_come() {
        let first = |dialect| {
            let settings = ["rows=1M", "more_rows=500k", "query_seconds=100", "partitions=4"];
            work(&steps(dialect, &settings)[0]).setup.join(";")
        };
        // (1,000,000 + 500,000 + 100 + 100 s × 3200 rows/s) / 4
        let mysql = first(Dialect::Mysql);
        assert!(mysql.contains("PARTITION p0 VALUES LESS THAN (455025)"), "{mysql}");
        assert!(mysql.contains("PARTITION p3 VALUES LESS THAN MAXVALUE"), "{mysql}");
        let postgres = first(Dialect::Postgres);
        assert!(postgres.contains("FROM (910050) TO (1365075)"), "{postgres}");
        assert!(postgres.contains("pi{table}_p3"), "{postgres}");
    }

    #[test]
    fn maintenance_of_2021_is_that_of_postgres_alone() {
        let pauses = |dialect| -> Vec<Vec<bool>> {
            let steps = steps(dialect, &["profile=2021"]);
            let waits = |step: &Step| work(step).maintenance.iter().map(|m| m.wait).collect();
            steps[3..].iter().map(waits).collect()
        };
        assert_eq!(pauses(Dialect::Postgres), [vec![true], vec![false; 2], vec![false; 2]]);
        assert_eq!(pauses(Dialect::Mysql), [vec![], vec![], vec![] as Vec<bool>]);
    }

    #[test]
    fn chosen_steps_bring_along_what_they_work_on() {
        let workload = with(&[]);
        let all = || phases(Dialect::Mysql, &workload);
        let names = |globs: &[&str]| -> Vec<(String, bool)> {
            let globs: Vec<String> = globs.iter().map(|glob| (*glob).to_owned()).collect();
            let chosen = choose(all(), &globs).unwrap();
            let name = |phase| match phase {
                Phase::Measure(step) => (step.name, step.reported),
                Phase::Settle | Phase::Restore => ("settle".to_owned(), false),
            };
            chosen.into_iter().map(name).collect()
        };
        let row = |name: &str, reported| (name.to_owned(), reported);
        assert_eq!(names(&["l.i0", "l.x"]), [row("l.i0", true), row("l.x", true)]);
        assert_eq!(
            names(&["qp500*"]),
            [
                row("l.i0", false),
                row("l.x", false),
                row("l.i1", false),
                row("l.i2", false),
                row("settle", false),
                row("qp500.L4", true)
            ]
        );
        assert_eq!(names(&[]).len(), 11);
        assert!(choose(all(), &["q5.7".to_owned()]).is_err());
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let refused = |settings: &[&str], part: &str| {
            let error = check(&with(settings), Dialect::Sqlite).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        };
        refused(&["shared=yes"], "deletes need a table for each client");
        refused(&["clients=4", "tables=2"], "4 clients need a table each, not 2 tables");
        refused(&["clients=2", "tables=4"], "a table without a client stays empty");
        refused(&["rows=50"], "i0_commit=100 is more than all rows of that step (rows=50)");
        refused(&["i1_rows=20"], "i1_commit=50 is more than");
        refused(&["profile=2021", "query_steps=100:point"], "no point queries");
        refused(&["partitions=8"], "no partitions");
        refused(&["query_seconds=0.1", "query_steps=1:range"], "below one row");
        refused(
            &["cache=1G", "memory_limit=1G"],
            "1024 MiB does not fit into memory_limit (1024 MiB)",
        );
        let good = ["shared=yes", "deletes=no", "clients=8"];
        assert_eq!(check(&with(&good), Dialect::Mysql), Ok(()));
        assert_eq!(with(&good).tables, 1);
        assert_eq!(with(&["clients=8"]).tables, 8);
    }

    #[test]
    fn bad_settings_say_what_is_wanted() {
        let refused = |setting: &str, part: &str| {
            let mut workload = workload("quick").unwrap();
            let before = workload.clone();
            let error = set(&mut workload, setting).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
            assert_eq!(workload, before, "an error changes nothing");
            error
        };
        refused("query_steps=0:range", "RATE:KIND");
        refused("query_steps=-100:range", "RATE:KIND");
        refused("i0_commit=0", "from 1 to 10000");
        refused("rows=-1", "whole number");
        refused("profile=2020", "2021-jan, 2021, 2026");
        refused("memory_limit=1M", "64M to 64T");
        refused("deletes=maybe", "yes or no");
        let unknown = refused("read_seconds=1", "i1_rows");
        assert!(matches!(unknown, SetError::UnknownKeyOf { .. }));
    }

    #[test]
    fn a_profile_takes_its_share_of_the_rows() {
        let of = |settings: &[&str]| {
            let workload = with(settings);
            let shape = shape(&workload).unwrap().clone();
            (shape.i1_rows, shape.i2_rows, shape.deletes, shape.query_steps.len())
        };
        assert_eq!(of(&[]), (16_000_000, 4_000_000, true, 6));
        assert_eq!(of(&["profile=2021"]), (20_000_000, 0, false, 3));
        assert_eq!(of(&["profile=2021", "profile=2026"]), (16_000_000, 4_000_000, true, 6));
    }
}
