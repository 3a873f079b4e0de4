//! Compares the microbenchmarks with the facts of the published work, and docs/sysbench.md with the
//! code.

mod choice;
mod settings;

use std::collections::HashSet;
use std::fmt::Write;

use crate::spec::StepSet;
use crate::sysbench::steps::{COLUMN_C, COLUMN_PAD, MICROBENCHMARKS, phases};
use crate::sysbench::{self, load_task};
use rqps_driver::workload::SETTINGS;
use rqps_model::benchmark::{Group, Phase, RateUnit, Step, Workload};
use rqps_model::dialect::Dialect;
use rqps_model::script::{Operation, Parameter, Protocol, Script, TableChoice};

const DIALECTS: [Dialect; 4] = [Dialect::Postgres, Dialect::Mysql, Dialect::Sqlite, Dialect::Fake];

fn preset(name: &str) -> Workload {
    super::workload(name).unwrap().0
}

fn steps(dialect: Dialect, order: StepSet) -> Vec<Step> {
    let measured = |phase| match phase {
        Phase::Measure(step) => Some(*step),
        Phase::Settle | Phase::Restore => None,
    };
    phases(dialect, order, &preset("full")).into_iter().filter_map(measured).collect()
}

fn step(dialect: Dialect, name: &str) -> Step {
    let found = steps(dialect, StepSet::Abbreviated).into_iter().find(|step| step.name == name);
    found.unwrap_or_else(|| panic!("no step {name}"))
}

/// One line of a listing of steps.
struct Listing {
    name: String,
    reported: bool,
    /// Statements of an event in order, as the dialect spells them, in-lists shortened; `10 × …`
    /// where one is repeated.
    statements: Vec<String>,
}

/// All steps of a set.
fn names(dialect: Dialect, order: StepSet) -> Vec<Listing> {
    let mut listings = Vec::new();
    for phase in phases(dialect, order, &preset("quick")) {
        if let Phase::Measure(step) = phase
            && let Some(script) = step.script()
        {
            listings.push(Listing {
                statements: crate::sysbench::statements(dialect, script),
                name: step.name,
                reported: step.reported,
            });
        }
    }
    listings
}

/// Statements, reads, writes and others of one event whose writes all meet a row.
fn counts(script: &Script) -> [u32; 4] {
    let mut counts = [0; 4];
    for operation in script.operations() {
        counts[0] += operation.repeat;
        let reads = operation.sql.starts_with("SELECT");
        counts[if reads { 1 } else { 2 }] += operation.repeat;
    }
    if script.has_transaction() {
        counts[0] += 2;
        counts[3] += 2;
    }
    counts
}

#[test]
fn events_have_the_published_counts() {
    // Statements; reads, writes, others, as counted in published raw output.
    let published = [
        ("point-query", [1, 1, 0, 0]),
        ("random-points_range=10", [1, 1, 0, 0]),
        ("random-points_range=100", [1, 1, 0, 0]),
        ("random-points_range=1000", [1, 1, 0, 0]),
        ("hot-points", [1, 1, 0, 0]),
        ("points-covered-pk", [1, 1, 0, 0]),
        ("points-notcovered-pk", [1, 1, 0, 0]),
        ("points-covered-si", [1, 1, 0, 0]),
        ("points-notcovered-si", [1, 1, 0, 0]),
        ("range-covered-pk", [1, 1, 0, 0]),
        ("range-notcovered-pk", [1, 1, 0, 0]),
        ("range-covered-si", [1, 1, 0, 0]),
        ("range-notcovered-si", [1, 1, 0, 0]),
        ("scan", [1, 1, 0, 0]),
        ("read-only_range=10", [16, 14, 0, 2]),
        ("read-only_range=100", [16, 14, 0, 2]),
        ("read-only_range=10000", [16, 14, 0, 2]),
        ("read-only-simple", [13, 11, 0, 2]),
        ("read-only-sum", [13, 11, 0, 2]),
        ("read-only-order", [13, 11, 0, 2]),
        ("read-only-distinct", [13, 11, 0, 2]),
        ("read-only-count", [1, 1, 0, 0]),
        ("read-write_range=10", [20, 14, 4, 2]),
        ("read-write_range=100", [20, 14, 4, 2]),
        ("write-only", [6, 0, 4, 2]),
        ("update-index", [1, 0, 1, 0]),
        ("update-nonindex", [1, 0, 1, 0]),
        ("update-one", [1, 0, 1, 0]),
        ("update-zipf", [1, 0, 1, 0]),
        ("update-inlist", [1, 0, 1, 0]),
        ("delete", [1, 0, 1, 0]),
        ("insert", [1, 0, 1, 0]),
    ];
    for dialect in DIALECTS {
        let mut seen = HashSet::new();
        for step in steps(dialect, StepSet::Abbreviated).iter().filter(|step| step.reported) {
            let (_, want) = published.iter().find(|(name, _)| *name == step.name).unwrap();
            assert_eq!(counts(step.script().unwrap()), *want, "{} {dialect:?}", step.name);
            assert_eq!(step.script().unwrap().statements_per_event(), u64::from(want[0]));
            seen.insert(step.name.clone());
        }
        assert_eq!(seen.len(), published.len());
    }
}

#[test]
fn orders_have_the_published_numbers_of_rows() {
    let rows = |order: StepSet, group: Group| {
        let of = |step: &&Step| step.reported && step.group == group;
        steps(Dialect::Postgres, order).iter().filter(of).count()
    };
    let all = |order: StepSet| [Group::Point, Group::Range, Group::Write].map(|g| rows(order, g));
    assert_eq!(all(StepSet::Full), [17, 15, 10]);
    // 33 with scan.warm, which the author deletes by hand and rqps never reports.
    assert_eq!(all(StepSet::Abbreviated), [9, 13, 10]);
    // The files of January 2025 have 27 rows: without those of one range each.
    assert_eq!(all(StepSet::January2025), [9, 8, 10]);
    let names = names(Dialect::Postgres, StepSet::Abbreviated);
    let warm = names.iter().filter(|listing| !listing.reported).map(|listing| &*listing.name);
    assert_eq!(
        warm.collect::<Vec<_>>(),
        [
            "point-query.warm", "scan.warmpre", "point-query.pre", "range-notcovered-si.pre",
            "scan.warm", "points-covered-si.warm"
        ]
    );
}

#[test]
fn groups_are_those_of_the_published_scripts() {
    // They match on the text of the label, in this order.
    let group = |name: &str| {
        let writes = ["delete", "insert", "update", "write"];
        if name.contains("point") {
            Group::Point
        } else if writes.iter().any(|word| name.contains(word)) {
            Group::Write
        } else {
            Group::Range
        }
    };
    for order in [StepSet::Full, StepSet::January2025, StepSet::Abbreviated] {
        for step in steps(Dialect::Mysql, order) {
            assert_eq!(step.group, group(&step.name), "{}", step.name);
        }
    }
}

#[test]
fn names_are_unique_and_fit_into_file_names() {
    for order in [StepSet::Full, StepSet::January2025, StepSet::Abbreviated] {
        let names: Vec<String> =
            steps(Dialect::Sqlite, order).into_iter().map(|step| step.name).collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        let safe = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._=".contains(c);
        assert!(names.iter().all(|name| name.chars().all(safe)), "{names:?}");
    }
}

#[test]
fn without_prepared_statements_all_is_text_and_says_the_same() {
    for dialect in DIALECTS {
        let mut workload = preset("quick");
        workload.plain_statements = true;
        let plain =
            phases(dialect, StepSet::Full, &workload).into_iter().filter_map(|phase| match phase {
                Phase::Measure(step) => Some(*step),
                Phase::Settle | Phase::Restore => None,
            });
        for (step, before) in plain.zip(steps(dialect, StepSet::Full)) {
            let operations = step.script().unwrap().operations();
            for (operation, before) in operations.zip(before.script().unwrap().operations()) {
                assert_eq!(operation.protocol, Protocol::Text, "{}", step.name);
                assert_eq!(operation.parameters, before.parameters);
                let sql = &operation.sql;
                assert!(!sql.contains(['?', '$']), "{sql}");
                let places: Vec<usize> = (1..=operation.parameters.len())
                    .map(|number| sql.find(&format!("{{{number}}}")).unwrap())
                    .collect();
                assert!(places.is_sorted(), "parameters are in the order of the text: {sql}");
            }
        }
    }
}

#[test]
fn every_placeholder_has_its_parameter() {
    for dialect in DIALECTS {
        for order in [StepSet::Full, StepSet::January2025, StepSet::Abbreviated] {
            for step in steps(dialect, order) {
                step.script().unwrap().operations().for_each(|operation| check(dialect, operation));
                let first =
                    step.script().unwrap().operations().next().map(|operation| operation.table);
                assert_ne!(first, Some(TableChoice::SameAsPrevious));
            }
        }
    }
}

fn check(dialect: Dialect, operation: &Operation) {
    let Operation { sql, parameters, .. } = operation;
    assert_eq!(sql.matches("{table}").count(), 1, "{sql}");
    match (operation.protocol, dialect) {
        (Protocol::Text, _) => {
            let numbers = (1..=parameters.len()).all(|i| sql.contains(&format!("{{{i}}}")));
            assert!(numbers && !sql.contains(['?', '$']), "{sql}");
        }
        (Protocol::Prepared, Dialect::Postgres) => {
            let numbers: Vec<String> = sql
                .split('$')
                .skip(1)
                .map(|part| part.chars().take_while(char::is_ascii_digit).collect())
                .collect();
            let want: Vec<String> = (1..=parameters.len()).map(|i| i.to_string()).collect();
            assert_eq!(numbers, want);
            assert!(!sql.contains('?'));
        }
        (Protocol::Prepared, _) => {
            assert_eq!(sql.matches('?').count(), parameters.len(), "{sql}");
            assert!(!sql.contains('$'));
        }
    }
    let mut ranges = 0;
    for parameter in parameters {
        match parameter {
            Parameter::RangeStart => ranges += 1,
            Parameter::RangeEnd { .. } => assert!(ranges > 0, "an end without a start: {sql}"),
            _ => {}
        }
    }
}

#[test]
fn parameters_are_the_true_ones_not_the_labels() {
    let of = |name: &str| {
        let step = step(Dialect::Mysql, name);
        step.script().unwrap().operations().next().unwrap().parameters.clone()
    };
    let ids = |name: &str| of(name).iter().filter(|p| **p == Parameter::Id).count();
    assert_eq!(ids("update-inlist"), 10);
    assert_eq!(ids("random-points_range=1000"), 1000);
    assert_eq!(ids("points-covered-pk"), 100);
    let between = |span| vec![Parameter::RangeStart, Parameter::RangeEnd { span }];
    assert_eq!(of("range-covered-pk"), between(100));
    assert_eq!(of("range-notcovered-si"), between(100));
    assert_eq!(of("read-only-count"), between(999));
    let script = step(Dialect::Mysql, "read-only_range=10000").script().unwrap().clone();
    assert_eq!(script.events[0].operations[1].parameters, between(9_999));
    let hot = of("hot-points");
    assert_eq!(hot.first(), Some(&Parameter::HotId { offset: 1 }));
    assert_eq!((hot.len(), hot.last()), (100, Some(&Parameter::HotId { offset: 100 })));
    assert_eq!(of("update-one"), [COLUMN_C, Parameter::FirstId]);
}

#[test]
fn seconds_follow_the_published_scripts() {
    let check = |name: &str, want: f64| {
        let full = steps(Dialect::Postgres, StepSet::Abbreviated);
        let step = full.iter().find(|step| step.name == name).unwrap();
        assert_eq!(step.seconds, want, "{name}");
    };
    check("point-query", 600.0);
    check("scan", 600.0);
    check("update-one", 900.0);
    check("read-write_range=10", 900.0);
    check("delete", 900.0);
    check("insert", 900.0);
    // Not the write duration.
    check("write-only", 600.0);
    check("scan.warm", 60.0);
    check("scan.warmpre", 60.0);
    check("points-covered-si.warm", 600.0);
    for step in steps(Dialect::Postgres, StepSet::Abbreviated) {
        let want =
            if step.name.contains("scan") { RateUnit::RowsScanned } else { RateUnit::Queries };
        assert_eq!(step.rate, want);
        let warms = step.name.contains(".warm");
        assert_eq!(step.warmup_seconds, if warms { 0.0 } else { 5.0 });
    }
}

#[test]
fn settling_follows_the_last_read_write() {
    for order in [StepSet::Full, StepSet::January2025, StepSet::Abbreviated] {
        let phases = phases(Dialect::Mysql, order, &preset("quick"));
        let mut before = Vec::new();
        let mut last = String::new();
        for phase in &phases {
            match phase {
                Phase::Measure(step) => last.clone_from(&step.name),
                Phase::Settle | Phase::Restore => before.push(last.clone()),
            }
        }
        assert_eq!(before, ["read-write_range=100"]);
    }
}

#[test]
fn quick_takes_a_quarter_of_an_hour() {
    let workload = preset("quick");
    let run: f64 = phases(Dialect::Mysql, StepSet::Abbreviated, &workload)
        .iter()
        .map(|phase| match phase {
            Phase::Measure(step) => step.seconds + step.warmup_seconds,
            // The published wait: a minute, and a second per million rows.
            Phase::Settle | Phase::Restore => workload.settle_scale * 60.2,
        })
        .sum();
    // Two targets, four blocks.
    let minutes = run * 8.0 / 60.0;
    assert!((12.0..18.0).contains(&minutes), "{minutes}");
}

/// All SQL of one dialect, and how each value is made.
fn sql(dialect: Dialect) -> String {
    let mut text = String::new();
    let load = load_task(dialect, &preset("quick"), Some("rocksdb"));
    let index = load.index_sql.join("\n");
    let _ = writeln!(text, "{}\n{}\n{index}", load.drop_sql, load.create_sql);
    for step in steps(dialect, StepSet::Abbreviated).iter().filter(|step| step.reported) {
        let script = step.script().unwrap();
        let _ = write!(text, "\n{}", step.name);
        let _ = writeln!(text, "{}", if script.has_transaction() { ": transaction" } else { "" });
        if script.distribution != rqps_model::script::Distribution::Uniform {
            let _ = writeln!(text, "  {:?}", script.distribution);
        }
        for (operation, line) in
            script.operations().zip(crate::sysbench::operations(dialect, script))
        {
            let Operation { kind, protocol, table, .. } = operation;
            let _ = writeln!(text, "  {line}");
            let values = values(&operation.parameters);
            let _ = writeln!(text, "    {kind}, {protocol:?}, table {table:?}: {values}");
        }
    }
    text
}

/// Parameters with equal neighbours counted.
fn values(parameters: &[Parameter]) -> String {
    let mut parts: Vec<String> = Vec::new();
    let alike = |a: &Parameter, b: &Parameter| match (a, b) {
        (Parameter::Digits { bytes: a }, Parameter::Digits { bytes: b }) => a == b,
        _ => std::mem::discriminant(a) == std::mem::discriminant(b),
    };
    for chunk in parameters.chunk_by(alike) {
        parts.push(match chunk {
            [one] if *one == COLUMN_C => "ColumnC".to_owned(),
            [one] if *one == COLUMN_PAD => "ColumnPad".to_owned(),
            [one] => format!("{one:?}"),
            [first, .., last] if first == last => format!("{} × {first:?}", chunk.len()),
            [first, .., last] => format!("{} × {first:?} … {last:?}", chunk.len()),
            [] => String::new(),
        });
    }
    parts.join(", ")
}

#[test]
fn sql_is_as_recorded() {
    insta::assert_snapshot!("sql-postgres", sql(Dialect::Postgres));
    insta::assert_snapshot!("sql-mysql", sql(Dialect::Mysql));
    insta::assert_snapshot!("sql-sqlite", sql(Dialect::Sqlite));
    insta::assert_snapshot!("sql-fake", sql(Dialect::Fake));
}

#[test]
fn load_parallelism_is_bounded() {
    let parallel = |dialect, tables| {
        let workload = Workload { tables, ..preset("quick") };
        load_task(dialect, &workload, None).parallel
    };
    assert_eq!(parallel(Dialect::Postgres, 1), 1);
    assert_eq!(parallel(Dialect::Mysql, 8), 4);
    assert_eq!(parallel(Dialect::Sqlite, 8), 1);
}

/// The generated parts of docs/sysbench.md by name.
fn generated() -> Vec<(&'static str, String)> {
    vec![
        ("microbenchmarks", microbenchmarks_table()),
        ("statements", statements_block()),
        ("abbreviated order", order_table(StepSet::Abbreviated)),
        ("order of January 2025", order_table(StepSet::January2025)),
        ("full order", order_table(StepSet::Full)),
        ("presets", presets_table()),
        ("settings", settings_table()),
    ]
}

fn microbenchmarks_table() -> String {
    let head = "| step | group | statements | r/w/o | true parameters |\n|---|---|---|---|---|\n";
    let mut text = head.to_string();
    let steps = steps(Dialect::Mysql, StepSet::Abbreviated);
    for group in [Group::Point, Group::Range, Group::Write] {
        for step in steps.iter().filter(|step| step.group == group && step.reported) {
            let [statements, reads, writes, others] = counts(step.script().unwrap());
            let _ = writeln!(
                text,
                "| {} | {} | {statements} | {reads}/{writes}/{others} | {} |",
                step.name,
                group.name(),
                step.detail,
            );
        }
    }
    text
}

/// One block for each test type; where it has several ranges, the number in a list is N.
fn statements_block() -> String {
    let mut text = String::from("```sql\n");
    let listings = names(Dialect::Mysql, StepSet::Abbreviated);
    let mut done = HashSet::new();
    for benchmark in MICROBENCHMARKS.iter().filter(|benchmark| done.insert(benchmark.test)) {
        let several = format!("{}_range={}", benchmark.test, benchmark.range);
        let named = |name: &str| name == benchmark.test || name == several;
        let listing = listings.iter().find(|listing| named(&listing.name)).unwrap();
        let _ = writeln!(text, "-- {}", benchmark.test);
        for statement in &listing.statements {
            let list = format!("({} × ?)", benchmark.range);
            let ranged = listing.name == several;
            let shown =
                if ranged { statement.replace(&list, "(N × ?)") } else { statement.clone() };
            let _ = writeln!(text, "{shown};");
        }
    }
    text + "```\n"
}

fn order_table(order: StepSet) -> String {
    let mut text = String::from("| # | step | group | reported |\n|---|---|---|---|\n");
    let mut number = 0;
    for phase in phases(Dialect::Mysql, order, &preset("full")) {
        match phase {
            Phase::Settle | Phase::Restore => text.push_str("| | *settle* | | |\n"),
            Phase::Measure(step) => {
                number += 1;
                let reported = if step.reported { "yes" } else { "no" };
                let group = step.group.name();
                let _ = writeln!(text, "| {number} | {} | {group} | {reported} |", step.name);
            }
        }
    }
    text
}

#[test]
fn autovacuum_wakes_within_every_window_that_writes() {
    // With naps of 10 s, update-index met the vacuum of Postgres 16.10 and not that of 17.6, in each
    // block alike.
    let config = include_str!("../../../../configs/postgres/default.conf");
    let nap = config.lines().find_map(|line| line.strip_prefix("autovacuum_naptime = ")).unwrap();
    let nap: f64 = nap.strip_suffix('s').unwrap().parse().unwrap();
    for preset in sysbench::presets() {
        assert!(2.0 * nap <= preset.write_seconds, "{}: {nap} s", preset.name);
    }
}

fn presets_table() -> String {
    let mut text = String::from("| preset | also | what |\n|---|---|---|\n");
    for preset in sysbench::presets() {
        let aliases = preset.aliases.join(", ");
        let _ = writeln!(text, "| `{}` | {aliases} | {} |", preset.name, preset.about);
    }
    text
}

fn settings_table() -> String {
    let mut text = String::from("| key | value |\n|---|---|\n");
    for setting in SETTINGS {
        let _ = writeln!(text, "| `{}` | {} |", setting.key, setting.about);
    }
    text
}

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sysbench.md");

/// The document with its generated parts made anew.
fn document(committed: &str) -> String {
    let mut document = committed.to_string();
    for (name, text) in generated() {
        let begin = format!("<!-- generated: {name} -->\n");
        let start = document.find(&begin).unwrap_or_else(|| panic!("no {begin}")) + begin.len();
        let length = document[start..].find("<!-- end -->").unwrap();
        document.replace_range(start..start + length, &text);
    }
    document
}

#[test]
fn the_document_says_what_the_code_does() {
    let committed = std::fs::read_to_string(DOCUMENT).unwrap();
    assert!(
        document(&committed) == committed,
        "docs/sysbench.md is behind the code: \
         cargo test -p rqps-bench rewrite_sysbench_md -- --ignored"
    );
}

#[test]
#[ignore = "writes docs/sysbench.md"]
fn rewrite_sysbench_md() {
    let committed = std::fs::read_to_string(DOCUMENT).unwrap();
    std::fs::write(DOCUMENT, document(&committed)).unwrap();
}

#[test]
fn every_microbenchmark_is_in_the_abbreviated_order() {
    let reported = steps(Dialect::Mysql, StepSet::Abbreviated);
    assert_eq!(reported.iter().filter(|step| step.reported).count(), MICROBENCHMARKS.len());
}
