//! Rows of tables (metrics, DBMS, steps) are named at home only, so that no other list needs an
//! edit.

use crate::sources::{Files, is_test_line, made, shipped, test_lines};

/// The places in which the name of a row may stand: their path begins so, or contains the second
/// text.
struct Home<'a> {
    names: Vec<String>,
    starts: &'a [&'a str],
    holds: &'a [&'a str],
}

const MICROBENCHMARKS: &str = "src/benchmarks/sysbench/steps/microbenchmarks.rs";
const METRICS: &str = "src/domain/metric/rows.rs";
const PRODUCTS: &str = "src/domain/build.rs";

#[test]
fn a_microbenchmark_is_a_row_and_a_place_in_an_order() {
    let files = shipped();
    let names = microbenchmarks(&files[MICROBENCHMARKS]);
    assert!(names.len() > 20 && names.contains(&"points-covered-si".to_owned()), "{names:?}");
    let quoted = names.iter().flat_map(|name| ["\"", ".", "_"].map(|end| format!("\"{name}{end}")));
    let home = Home {
        names: quoted.collect(),
        // The command line has short choices of steps: for the quick start and for A/A tests.
        starts: &["src/benchmarks/sysbench/steps/", "src/cli/measure.rs", "src/cli/doctor.rs"],
        holds: &["/import/"],
    };
    assert_eq!(strays(&files, &home), [""; 0]);
}

#[test]
fn a_metric_is_a_row_and_a_formula() {
    let files = shipped();
    let names = metrics(&files[METRICS]);
    assert!(names.len() > 70 && names.contains(&"reads_per_op".to_owned()), "{names:?}");
    // Settings of their benchmarks, which bear the same names.
    let settings = ["insert_rate", "ef_search", "drain_seconds"];
    let names = names.iter().filter(|name| !settings.contains(&name.as_str()));
    let home = Home {
        names: names.map(|name| format!("\"{name}\"")).collect(),
        starts: &[METRICS],
        holds: &[],
    };
    assert_eq!(strays(&files, &home), [""; 0]);
}

#[test]
fn a_dbms_is_a_variant_and_a_folder_with_its_row() {
    let files = shipped();
    let names = products(&files[PRODUCTS]);
    assert!(names.len() > 6 && names.contains(&"Dbms::Fake".to_owned()), "{names:?}");
    for name in &names {
        let row = format!("    dbms: {name},");
        let has_row = |(path, text): (&String, &String)| {
            path.starts_with("src/dbms/") && path.ends_with("/spec.rs") && text.contains(&row)
        };
        assert_eq!(files.iter().filter(|file| has_row(*file)).count(), 1, "rows of {name}");
    }
    let home = Home {
        names,
        starts: &[PRODUCTS, "src/dbms/", "src/import/"],
        // Files of others are of known products, and a benchmark says which it cannot run on.
        holds: &["/import/", "/check.rs"],
    };
    assert_eq!(strays(&files, &home), [""; 0]);
}

#[test]
fn parameters_of_a_benchmark_are_read_by_it_alone() {
    let files = shipped();
    // `rqps vector verify-data` takes the settings of a data set.
    let readers = [("insert", None), ("kv", None), ("vector", Some("src/cli/vector.rs"))];
    for (benchmark, command) in readers {
        let (name, own) =
            (format!("domain::{benchmark}::"), format!("src/benchmarks/{benchmark}/"));
        let reads_its_own =
            |(path, text): (&String, &String)| path.starts_with(&own) && text.contains(&name);
        assert!(files.iter().any(reads_its_own), "{benchmark}");
        let mut starts = vec![own.as_str(), "src/domain/"];
        starts.extend(command);
        let home = Home { names: vec![name], starts: &starts, holds: &[] };
        assert_eq!(strays(&files, &home), [""; 0]);
    }
}

#[test]
fn a_name_away_from_home_is_found() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let names = names(&["\"scan\"", "Dbms::Fake", "domain::kv::"]);
    let home = Home { names, starts: &["src/a/"], holds: &[] };
    let check = |path: &str, text: &str, expected: &[&str]| {
        assert_eq!(strays(&made(&[(path, text)]), &home), expected, "{text}");
    };
    check("src/b.rs", "fn f() {\n    \"scan\" }", &["src/b.rs:2: names \"scan\""]);
    check("src/b.rs", "use X::Dbms; use Dbms::Fake;", &["src/b.rs:1: names Dbms::Fake"]);
    check("src/b.rs", "use crate::domain::kv::KvWork;", &["src/b.rs:1: names domain::kv::"]);
    check("src/a/b.rs", "fn f() { \"scan\" }", &[]);
    check("src/b.rs", "fn f() { \"scanner\" } // \"scan\"\nstruct S(Dbms::Faker);", &[]);
    check("src/b.rs", "#[cfg(test)]\nmod tests { const A: &str = \"scan\"; }", &[]);
    let rows = "    point(\"a-b\", 1, X),\n    // no(\"c\"\n    write(\"d\", 1, Y),";
    assert_eq!(microbenchmarks(rows), ["a-b"]);
    assert_eq!(
        metrics("    \"kv\" => {\n        Uptime, \"up_time\",\n        P50, \"p50\""),
        ["up_time"]
    );
    assert_eq!(
        products("enum Dbms {\n    A,\n    /// B.\n    Other,\n    Cd,\n}\n    X,"),
        ["Dbms::A", "Dbms::Cd"]
    );
}

/// Names that are a word of their own: `scan` or `delete` say other things, too.
fn microbenchmarks(rows: &str) -> Vec<String> {
    let name = |line: &str| {
        let (kind, rest) = line.trim_start().split_once("(\"")?;
        let name = rest.split('"').next()?;
        let is_row = ["point", "range", "write"].contains(&kind) && name.contains('-');
        is_row.then(|| name.to_owned())
    };
    rows.lines().filter_map(name).collect()
}

/// Keys that are a word of their own.
fn metrics(rows: &str) -> Vec<String> {
    let key = |line: &str| {
        let (_, rest) = line.strip_prefix("        ")?.split_once(", \"")?;
        rest.split('"').next().filter(|key| key.contains('_')).map(str::to_owned)
    };
    rows.lines().filter_map(key).collect()
}

/// All products that rqps can run.
fn products(text: &str) -> Vec<String> {
    let variants = text.split("enum Dbms {\n").nth(1).unwrap_or("");
    let variants = variants.lines().take_while(|line| *line != "}");
    let names = variants.filter_map(|line| line.trim().strip_suffix(','));
    names.filter(|name| *name != "Other").map(|name| format!("Dbms::{name}")).collect()
}

fn strays(files: &Files, home: &Home<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in files {
        let at_home = home.starts.iter().any(|start| path.starts_with(start));
        if at_home || home.holds.iter().any(|part| path.contains(part)) {
            continue;
        }
        let tests = test_lines(path, text);
        for (at, line) in text.lines().enumerate().filter(|(at, _)| !is_test_line(&tests, at + 1)) {
            let code = line.split("//").next().unwrap_or(line);
            let names = |name: &&String| {
                let whole = name.ends_with(|end: char| end.is_ascii_alphanumeric());
                let is_longer = |rest: &str| rest.starts_with(|c: char| c.is_ascii_alphanumeric());
                code.split(name.as_str()).skip(1).any(|rest| !(whole && is_longer(rest)))
            };
            found.extend(
                home.names
                    .iter()
                    .filter(names)
                    .map(|name| format!("{path}:{}: names {name}", at + 1)),
            );
        }
    }
    found
}
