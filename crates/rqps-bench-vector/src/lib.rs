//! Vector search: steps as data. They load a table, build indexes on it one after another, and
//! query each with all widths; then they filter, write and restart.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

#[cfg(test)]
use rqps_driver::workload;

pub mod analyze;
pub mod data;
pub mod driver;
pub(crate) mod report;
mod settings;
mod steps;

pub use self::settings::set;
pub use settings::{check_target, workload};

use rqps_bench::spec::{BenchmarkSpec, StepSet};
use rqps_driver::part::DriverPart;
use rqps_model::dialect::Dialect;

/// The row of the benchmark.
pub static SPEC: BenchmarkSpec = BenchmarkSpec {
    name: "vector",
    workload: |preset| Ok((settings::workload(preset)?, StepSet::default())),
    set: settings::set,
    check: settings::check,
    check_target: settings::check_target,
    phases: |dialect, _, workload| steps::phases(dialect, workload),
    for_target: steps::for_target,
    choose: steps::choose,
    single_count: Some("list the client counts of its searches with --set ramp=1,4,16"),
    shared_clients: Some(steps::shared_clients),
    table_name: "items",
    names_made: |dialect, _| match dialect {
        Dialect::Mysql => vec!["items".to_owned()],
        _ => vec!["items".to_owned(), "items_v".to_owned()],
    },
    counting: steps::COUNTING,
    own_data: settings::own_data,
    driver: DriverPart {
        benchmark: "vector",
        step_loop: Some(driver::step_loop),
        ..DriverPart::NONE
    },
    extension: analyze::EXTENSION,
    sections: report::SECTIONS,
    ..BenchmarkSpec::PLAIN
};

#[cfg(test)]
mod tests {
    //! Tests of steps, settings and refusals of vector search.
    use crate::steps::{choose, for_target, phases, work_of};
    use crate::{set, workload};
    use rqps_model::benchmark::{Group, Phase, Step};
    use rqps_model::build::Dbms;
    use rqps_model::build::Target;
    use rqps_model::dialect::Dialect;
    use rqps_model::vector::Variant;

    fn steps(dialect: Dialect, settings: &[&str]) -> Vec<Step> {
        let mut workload = workload("quick").unwrap();
        for setting in settings {
            set(&mut workload, setting).unwrap();
        }
        let phases = phases(dialect, &workload);
        let steps = phases.into_iter().filter_map(|phase| match phase {
            Phase::Measure(step) => Some(*step),
            Phase::Settle | Phase::Restore => None,
        });
        steps.collect()
    }

    fn names(steps: &[Step]) -> Vec<&str> {
        steps.iter().map(|step| step.name.as_str()).collect()
    }

    #[test]
    fn every_index_is_asked_with_every_width() {
        let settings = ["pgvector=16/64", "mariadb=6,12", "ef=10,40", "ramp=1,2"];
        assert_eq!(
            names(&steps(Dialect::Postgres, &settings)),
            [
                "load",
                "index.m=16.ec=64",
                "search.m=16.ec=64.ef=10",
                "search.m=16.ec=64.ef=40",
                "search.m=16.ec=64.ef=10.clients=2",
                "search.m=16.ec=64.ef=40.clients=2",
            ]
        );
        let asked = steps(Dialect::Postgres, &["ramp=1,2", "clients=8", "ef=10", "pgvector=8/32"]);
        assert_eq!(names(&asked)[4], "search.m=8.ec=32.ef=10.clients=8");
        let maria = steps(Dialect::Mysql, &settings);
        assert_eq!(maria.len(), 1 + 2 * 5);
        assert_eq!(maria[1].name, "index.m=6");
        assert_eq!(maria[7].name, "search.m=12.ef=10");
        assert_eq!(maria[0].group, Group::Load);
    }

    #[test]
    fn cases_bring_what_they_need() {
        let all = steps(Dialect::Postgres, &["cases=all", "pgvector=8/32,16/64", "deletes=50,10"]);
        let position = |name: &str| {
            let place = all.iter().position(|step| step.name == name);
            place.unwrap_or_else(|| panic!("{name} is not among {:?}", names(&all)))
        };
        assert!(position("target=0.95.m=8.ec=32") < position("index.m=16.ec=64"));
        assert!(position("filter.own-class.ef=20") < position("index.m=16.ec=64"));
        assert!(all[position("cold.m=8.ec=32.ef=20")].restart_before);
        assert!(!all[position("search.m=8.ec=32.ef=20")].restart_before);
        assert!(position("mixed.load") < position("mixed.inserts=50.ef=20"));
        // Shares ascend in any case.
        assert!(position("churn.cleaned=10.ef=20") < position("churn.delete=50"));
        assert!(position("isolation.load") < position("isolation.serializable.m=8.ec=32.ef=20"));
        assert!(position("payload.m=8.ec=32") < position("index.m=16.ec=64"));
        assert!(
            position("capacity.fill=1.m=8.ec=32") < position("capacity.filled=1.m=8.ec=32.ef=20")
        );
        let mut unique = names(&all);
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), all.len(), "names are unique");
        for name in unique {
            let safe = |byte: u8| byte.is_ascii_alphanumeric() || b".=-".contains(&byte);
            assert!(name.bytes().all(safe), "{name}");
        }
    }

    #[test]
    fn a_table_is_filled_with_every_number_of_clients_and_rows_a_transaction() {
        let settings = ["cases=capacity", "mariadb=6", "ramp=1,4", "commit_rows=1,100", "ef=10"];
        let steps = steps(Dialect::Mysql, &settings);
        assert_eq!(
            names(&steps),
            [
                "capacity.fill=1.m=6",
                "capacity.filled=1.m=6.ef=10",
                "capacity.fill=100.m=6",
                "capacity.filled=100.m=6.ef=10",
                "capacity.fill=1.m=6.clients=4",
                "capacity.filled=1.m=6.clients=4.ef=10",
                "capacity.fill=100.m=6.clients=4",
                "capacity.filled=100.m=6.clients=4.ef=10",
            ]
        );
        assert_eq!((steps[0].seconds, steps[0].warmup_seconds), (60.0, 0.0));
    }

    #[test]
    fn a_file_has_no_classes_to_filter_by() {
        let with = |settings: &[&str]| {
            let steps = steps(Dialect::Mysql, settings);
            let filters = steps.iter().filter(|step| step.name.starts_with("filter."));
            filters.map(|step| step.name.clone()).collect::<Vec<_>>()
        };
        let settings = ["cases=filter", "selectivity=10", "mariadb=6"];
        assert_eq!(with(&settings).len(), 3);
        let of_file = ["data=x.hdf5", "cases=filter", "selectivity=10", "mariadb=6"];
        assert_eq!(with(&of_file), ["filter.random=10.ef=20"]);
    }

    #[test]
    fn filters_inserts_and_churn_have_the_same_names_on_every_dbms() {
        let names = |dialect| {
            let settings = ["cases=filter,mixed,churn", "pgvector=8/32", "mariadb=6"];
            let steps = steps(dialect, &settings);
            let of_one = |name: &String| !name.starts_with("index.");
            steps.into_iter().map(|step| step.name).filter(of_one).collect::<Vec<_>>()
        };
        assert_eq!(names(Dialect::Postgres), names(Dialect::Mysql));
        assert!(names(Dialect::Mysql).contains(&"mixed.inserts=50.ef=20".to_owned()));
    }

    #[test]
    fn chosen_steps_bring_the_builds_they_rest_on() {
        let mut workload = workload("quick").unwrap();
        set(&mut workload, "cases=all").unwrap();
        let chosen = |glob: &str| {
            let phases = phases(Dialect::Postgres, &workload);
            let chosen = choose(phases, &[glob.to_owned()]).unwrap();
            let names = chosen.into_iter().map(|phase| match phase {
                Phase::Measure(step) => step.name,
                Phase::Settle | Phase::Restore => String::new(),
            });
            names.collect::<Vec<_>>()
        };
        assert_eq!(
            chosen("search.m=16.ec=64.ef=40"),
            ["load", "index.m=16.ec=64", "search.m=16.ec=64.ef=40"]
        );
        assert_eq!(
            chosen("churn.deleted=10*"),
            ["churn.load", "churn.index", "churn.delete=10", "churn.deleted=10.ef=20"]
        );
        assert_eq!(
            chosen("capacity.filled*"),
            ["capacity.fill=1.m=8.ec=32", "capacity.filled=1.m=8.ec=32.ef=20"]
        );
        assert_eq!(
            chosen("isolation.serial*"),
            [
                "isolation.load",
                "isolation.index.m=8.ec=32",
                "isolation.serializable.m=8.ec=32.ef=20"
            ]
        );
        assert_eq!(chosen("load"), ["load"]);
        assert_eq!(chosen("index.m=16*"), ["load", "index.m=16.ec=64"]);
    }

    #[test]
    fn the_config_of_a_target_decides_what_its_index_keeps() {
        let check = |word: &str, expected: Variant| {
            let target = Target {
                label: "pg".to_owned(),
                dbms: Dbms::Postgres,
                source: rqps_model::build::BuildSource::CompiledIn,
                config: word.to_owned(),
                storage_engine: None,
            };
            let mut phases = phases(Dialect::Postgres, &workload("quick").unwrap());
            for_target(&mut phases, &target);
            let kept = phases.iter().filter_map(work_of).map(|work| work.variant);
            assert!(kept.collect::<Vec<_>>().iter().all(|variant| *variant == expected), "{word}");
        };
        check("default", Variant::Vector);
        check("halfvec", Variant::Halfvec);
        check("bit-big-cache", Variant::Bit);
        check("halfvecs", Variant::Vector);
        check("halfvec-rerank", Variant::HalfvecRerank);
        check("halfvec-rerank-big", Variant::HalfvecRerank);
        check("halfvec-big", Variant::Halfvec);
        check("halfvec-column", Variant::HalfvecColumn);
    }

    #[test]
    fn wrong_settings_say_what_would_be_right() {
        let check = |setting: &str, words: &str| {
            let mut changed = workload("quick").unwrap();
            let error = set(&mut changed, setting).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
            assert_eq!(changed, workload("quick").unwrap());
        };
        check("pgvector=64/64", "ef_construction must be at least 2 m");
        check("mariadb=2", "3");
        check("cases=swep", "write one of sweep, target");
        check("ef=", "at least one");
        check("targets=1.5", "0.01 to 1");
        check("variant=float8", "vector, halfvec, halfvec-rerank, halfvec-column, bit");
        check("tables=3", "valid keys: data");
        check("distance=cosine", "euclidean");
        check("neighbours=x.ivecs", "computes the neighbours");
        assert!(workload("huge").unwrap_err().contains("quick, standard, full"));
    }

    #[test]
    fn what_cannot_be_measured_is_refused_before() {
        let check = |settings: &[&str], dialect: Dialect, words: &str| {
            let mut workload = workload("quick").unwrap();
            for setting in settings {
                set(&mut workload, setting).unwrap();
            }
            match crate::settings::check(&workload, dialect) {
                Ok(()) => assert!(words.is_empty(), "{settings:?} was taken"),
                Err(error) => assert!(!words.is_empty() && error.contains(words), "{error}"),
            }
        };
        check(&[], Dialect::Postgres, "");
        check(&["ef=5"], Dialect::Postgres, "at most ef_search rows");
        check(&["ef=5"], Dialect::Mysql, "");
        check(&["rows=5"], Dialect::Mysql, "k cannot exceed");
        check(&["cases=mixed", "insert_rate=5000"], Dialect::Mysql, "lower rate");
        check(&[], Dialect::Sqlite, "mariadb since 11.7");
    }
}
