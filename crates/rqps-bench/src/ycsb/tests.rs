//! Tests of the core workloads' scripts, keys, and order of loaded records.

use super::SPEC;
use crate::spec::CliContext;
use crate::ycsb::{SETTINGS, in_order_of_keys, load, phases, take};
use rqps_driver::request::{PartLoad, RequestBody};
use rqps_model::benchmark::{Group, Phase, Step, Workload};
use rqps_model::datagen::distribution::key_hash;
use rqps_model::dialect::Dialect;

fn chosen(words: &str) -> Result<Workload, String> {
    let (mut workload, _) = (SPEC.workload)("quick").unwrap();
    let what = [words.to_owned()];
    let said = CliContext {
        what: &what,
        options: &[],
        read: &|_| Err("no file".to_owned()),
        look: &|_, _| Err(String::new()),
        note: &|_| {},
    };
    take(&mut workload, &said).map(|()| workload)
}

fn steps(dialect: Dialect, words: &str) -> Vec<Step> {
    let measured = |phase| match phase {
        Phase::Measure(step) => Some(*step),
        Phase::Settle | Phase::Restore => None,
    };
    phases(dialect, &chosen(words).unwrap()).into_iter().filter_map(measured).collect()
}

#[test]
fn letters_are_steps_in_their_order() {
    let names = |words: &str| -> Vec<String> {
        steps(Dialect::Sqlite, words).into_iter().map(|step| step.name).collect()
    };
    assert_eq!(names("c,a"), ["c", "a"]);
    let (all, _) = (SPEC.workload)("quick").unwrap();
    let named = |phase: &Phase| match phase {
        Phase::Measure(step) => step.name.clone(),
        Phase::Settle => "settle".to_owned(),
        Phase::Restore => "restore".to_owned(),
    };
    let all: Vec<String> = phases(Dialect::Sqlite, &all).iter().map(named).collect();
    assert_eq!(all, ["a", "b", "c", "f", "d", "restore", "e"]);
    let unknown = chosen("g").unwrap_err();
    assert!(unknown.ends_with("no core workload `g`; it has a, b, c, d, e, f"), "{unknown}");
    assert!(chosen("a,a").unwrap_err().contains("`a` is there twice"));
}

#[test]
fn shares_of_events_are_the_published_ones() {
    let share = |letter: &str, kind: &str| {
        let step = steps(Dialect::Sqlite, letter).remove(0);
        let script = step.script().unwrap();
        let is_of = |event: &&rqps_model::script::ScriptEvent| {
            event.operations.last().is_some_and(|last| last.kind == kind)
        };
        let weight = |events: Vec<&rqps_model::script::ScriptEvent>| -> u32 {
            events.iter().map(|event| event.weight).sum()
        };
        let of_kind = weight(script.events.iter().filter(is_of).collect());
        f64::from(of_kind) / f64::from(weight(script.events.iter().collect()))
    };
    for (letter, kind, expected) in [
        ("a", "read", 0.5),
        ("a", "update", 0.5),
        ("b", "read", 0.95),
        ("c", "read", 1.0),
        ("d", "insert", 0.05),
        ("e", "scan", 0.95),
        ("f", "read", 0.5),
        ("f", "update", 0.5),
    ] {
        assert_eq!(share(letter, kind), expected, "{letter} {kind}");
    }
}

#[test]
fn groups_and_statements() {
    let sql = |dialect, letter: &str| -> Vec<String> {
        let step = steps(dialect, letter).remove(0);
        let mut sql: Vec<String> =
            step.script().unwrap().operations().map(|one| one.sql.clone()).collect();
        sql.dedup();
        sql
    };
    assert_eq!(sql(Dialect::Mysql, "c"), ["SELECT * FROM usertable WHERE ycsb_key = ?"]);
    let a = sql(Dialect::Postgres, "a");
    assert_eq!(
        (a.len(), a[10].as_str()),
        (11, "UPDATE usertable SET field9 = $1 WHERE ycsb_key = $2")
    );
    let e = sql(Dialect::Postgres, "e");
    assert_eq!(e[0], "SELECT * FROM usertable WHERE ycsb_key >= $1 ORDER BY ycsb_key LIMIT $2");
    assert!(e[1].ends_with(", field9) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"));
    let groups: Vec<Group> =
        steps(Dialect::Sqlite, "a,b,c,f,d,e").into_iter().map(|step| step.group).collect();
    let write = Group::Write;
    assert_eq!(groups, [write, write, Group::Point, write, write, Group::Range]);
}

#[test]
fn parts_hold_every_record_once_in_the_order_of_their_keys() {
    let (records, parts) = (20_000, 7);
    let numbers: Vec<u64> =
        (0..parts).flat_map(|part| in_order_of_keys(records, part, parts)).collect();
    let key = |number: &u64| format!("user{}", key_hash(*number));
    let keys: Vec<String> = numbers.iter().map(key).collect();
    assert_eq!(numbers.len() as u64, records);
    assert!(keys.is_sorted());
    let sizes: Vec<usize> =
        (0..parts).map(|part| in_order_of_keys(records, part, parts).len()).collect();
    assert!(sizes.iter().all(|size| (2000..4500).contains(size)), "{sizes:?}");
}

#[test]
fn settings_change_the_table_and_the_values() {
    let mut workload = chosen("a").unwrap();
    for setting in ["records=1000", "fields=2", "field_bytes=7", "scan_rows=5", "keys=uniform"] {
        SETTINGS.set(&mut workload, setting).unwrap();
    }
    let task = |dialect, engine| -> PartLoad {
        let RequestBody::LoadParts(task) = load(dialect, &workload, engine) else {
            panic!("another load")
        };
        task
    };
    let postgres = task(Dialect::Postgres, None);
    assert_eq!(postgres.tables[0].columns, ["ycsb_key", "field0", "field1"]);
    assert_eq!((postgres.rows, postgres.parts), (1000, 4));
    let mysql = task(Dialect::Mysql, Some("rocksdb"));
    assert!(mysql.setup[1].ends_with("field1 TEXT) ENGINE = rocksdb"), "{:?}", mysql.setup);
    let unknown = SETTINGS.set(&mut workload, "rows=7").unwrap_err().to_string();
    assert!(unknown.contains("benchmark `ycsb`; valid keys: fields, field_bytes,"), "{unknown}");
}
