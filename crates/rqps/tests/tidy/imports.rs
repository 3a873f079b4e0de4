//! Imports go down only, and only as this table lists them.

use std::collections::BTreeSet;

use crate::exceptions::hold_all_but_exceptions;
use crate::graph::{Graph, Reference, references_of_sources};
use crate::headers::declared_modules;
use crate::sources::{Files, made, module_of, shipped, short};

/// Facts, mathematics, generators: what everything may stand on.
const L0: &[&str] =
    &["units", "escape", "bounded", "json", "parallel", "domain", "stats", "datagen", "user_text"];
const L1: &[&str] = &["os", "wire", "embed"];
const SPINE: &[&str] =
    &["dbms", "workload", "driver", "results", "analyze", "obtain", "report", "import"];
const TOP: &[&str] = &["benchmarks", "plan", "lab", "campaign"];

/// A module, and what it may import. `a::b` is that part of `a` only.
const TABLE: &[(&str, &[&[&str]])] = &[
    ("units", &[]),
    ("escape", &[]),
    ("bounded", &[&["units"]]),
    ("json", &[]),
    ("parallel", &[]),
    ("domain", &[&["units"]]),
    ("stats", &[]),
    ("datagen", &[]),
    ("user_text", &[&["domain", "escape", "json"]]),
    ("os", &[&["domain", "escape", "units", "datagen", "json"]]),
    ("wire", &[&["bounded", "domain", "escape", "units", "datagen"]]),
    ("embed", &[&["domain", "units", "datagen"]]),
    ("dbms", &[L0, L1]),
    ("workload", &[L0]),
    ("driver", &[L0, L1]),
    ("results", &[L0]),
    ("analyze", &[L0]),
    ("obtain", &[L0, &["os", "wire", "dbms::spec"]]),
    ("report", &[L0, &["analyze"]]),
    ("import", &[L0, &["results", "dbms::spec"]]),
    ("plan", &[L0, &["benchmarks", "workload", "dbms::spec", "wire::dsn", "driver::request"]]),
    ("lab", &[L0, &["plan", "dbms", "obtain", "driver", "results", "os", "wire"]]),
    ("campaign", &[L0, L1, SPINE, &["benchmarks", "plan", "lab"]]),
    ("cli", &[L0, L1, SPINE, TOP]),
];

/// Modules that every facet of a benchmark may import.
const FACETS_SHARE: &[&str] =
    &["bounded", "domain", "escape", "units", "json", "parallel", "user_text"];

/// Facets of a benchmark from left to right: its names, and what it may import besides
/// [`FACETS_SHARE`], those on its left and those beside it.
const FACETS: &[(&[&str], &[&str])] = &[
    (&["parameters"], &[]),
    (&["presets", "settings", "steps", "schema", "check"], &["workload", "benchmarks::spec"]),
    (&["rows"], &["datagen"]),
    (&["data"], &["datagen", "os"]),
    (&["driver"], &["driver", "wire", "embed", "os", "datagen"]),
    (&["analyze"], &["analyze", "stats"]),
    (&["report"], &["report", "analyze"]),
    (&["import"], &["import", "stats"]),
    // The row of the benchmark.
    (&["mod"], &["benchmarks::spec", "workload", "driver::part"]),
];

/// Modules with types of hooks, of which the row of a benchmark is made: a hook belongs to the
/// module that calls it.
const ROW_IMPORTS: &[&str] = &["workload", "driver", "analyze", "report", "import"];

#[test]
fn modules_import_only_what_the_table_lists() {
    hold_all_but_exceptions("imports", imports(&shipped(), references_of_sources()));
}

#[test]
fn an_import_that_the_table_does_not_list_is_found() {
    let check = |path: &str, text: &str, expected: &[&str]| {
        let mut files = made(&[
            ("src/lib.rs", "pub mod dbms; pub mod os; pub mod stats;"),
            ("src/analyze/mod.rs", "pub mod gate; pub use gate::Gate;"),
            ("src/analyze/gate.rs", "pub struct Gate;"),
            ("src/benchmarks/mod.rs", "pub mod spec; pub mod insert; pub mod kv;"),
            ("src/benchmarks/spec.rs", "pub struct BenchmarkSpec;"),
            ("src/benchmarks/kv/mod.rs", "pub mod parameters; pub mod driver; pub mod report;"),
            ("src/benchmarks/kv/parameters.rs", ""),
            ("src/dbms/mod.rs", "pub mod spec;"),
            ("src/dbms/spec.rs", ""),
            ("src/os/mod.rs", "pub use crate::domain::host::Host;"),
            ("src/domain/mod.rs", "pub mod host;"),
            ("src/domain/host.rs", "pub struct Host;"),
            ("src/lab/mod.rs", ""),
        ]);
        files.insert(path.to_string(), text.to_string());
        let references = Graph::of(&files).references(&files);
        assert_eq!(imports(&files, &references), expected, "{path}: {text}");
    };
    check("src/stats/t.rs", "use crate::dbms::Server;", &["stats/t -> dbms/mod"]);
    check("src/report/mod.rs", "use crate::analyze::Gate;", &[]);
    check("src/lab/mod.rs", "use crate::analyze::Gate;", &["lab/mod -> analyze/gate"]);
    check("src/lab/mod.rs", "use crate::analyze;", &["lab/mod -> analyze/mod"]);
    // An exported macro is of the module that it stands in.
    check(
        "src/dbms/spec.rs",
        "#[macro_export] macro_rules! row { () => {} } pub use crate::row;",
        &[],
    );
    check("src/stats/t.rs", "use crate::row;", &["stats/t -> the whole crate"]);
    // A face that passes on what is allowed is no loophole for what is not.
    check("src/report/mod.rs", "use crate::os::Host;", &["report/mod -> os"]);
    check("src/dbms/mod.rs", "use crate::os::Host;", &[]);
    check("src/lab/mod.rs", "#[cfg(test)] mod tests { use crate::analyze::Gate; }", &[]);
    check("src/obtain/mod.rs", "use crate::dbms::spec::Row;", &[]);
    check("src/obtain/mod.rs", "use crate::dbms::Row;", &["obtain/mod -> dbms/mod"]);
    check("src/lab/x.rs", "use super::super::os::X;", &["lab/x: super reaches beyond lab"]);
    check("src/lab/x.rs", "use crate::{self as all};", &["lab/x -> the whole crate"]);
    check("src/novelty/x.rs", "", &["novelty has no row in the table"]);
    check("src/lib.rs", "pub mod novelty;", &["novelty has no row in the table"]);
    let kv = "src/benchmarks/kv/";
    let facet = |file: &str, text: &str, expected: &[&str]| {
        check(&format!("{kv}{file}"), text, expected);
    };
    facet("parameters.rs", "use crate::domain::host::Host;", &[]);
    facet("parameters.rs", "use crate::os::Host;", &["benchmarks/kv/parameters -> os"]);
    facet(
        "parameters.rs",
        "use super::report::R;",
        &["benchmarks/kv/parameters -> benchmarks/kv/mod"],
    );
    facet("driver/x.rs", "use super::super::parameters::P; use crate::os::X;", &[]);
    facet("driver.rs", "use super::parameters::P;", &[]);
    facet("report.rs", "use crate::analyze::Gate;", &[]);
    facet("driver.rs", "use crate::analyze::Gate;", &["benchmarks/kv/driver -> analyze/gate"]);
    facet("mod.rs", "pub mod parameters; use super::spec::BenchmarkSpec;", &[]);
    facet("extras.rs", "", &["benchmarks/kv/extras is no facet"]);
    check(
        "src/benchmarks/insert/rows.rs",
        "use crate::benchmarks::kv::parameters::P;",
        &["benchmarks/insert/rows -> benchmarks/kv/parameters"],
    );
    check("src/analyze/x.rs", "use crate::benchmarks::kv;", &["analyze/x -> benchmarks/kv/mod"]);
    check("src/plan/x.rs", "use crate::benchmarks::kv;", &[]);
}

fn imports(files: &Files, references: &BTreeSet<Reference>) -> Vec<String> {
    let mut found = unlisted(files);
    for reference in references {
        let (from, to) = (reference.from.as_str(), reference.to.as_str());
        if is_root(from) {
            continue;
        }
        let named = reference.names.first().map_or("", String::as_str);
        if reference.is_beyond {
            found.push(format!("{}: super reaches beyond {}", short(from), module_of(from)));
        } else if to == "src/lib.rs" {
            found.push(format!("{} -> the whole crate", short(from)));
        } else if !may_import(from, &modules_of(to)) {
            found.push(format!("{} -> {}", short(from), short(to)));
        } else if !may_import(from, &reference.names) {
            found.push(format!("{} -> {named}", short(from)));
        }
    }
    found.sort();
    found.dedup();
    found
}

fn is_root(path: &str) -> bool {
    ["src/lib.rs", "src/main.rs"].contains(&path)
}

/// Modules and facets that no table has.
fn unlisted(files: &Files) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in files {
        let modules = match is_root(path) {
            true => declared_modules(path, text),
            false => vec![module_of(path).to_string()],
        };
        let known = |module: &str| TABLE.iter().any(|(name, _)| *name == module);
        let unknown = modules.iter().filter(|name| !known(name) && *name != "benchmarks");
        found.extend(unknown.map(|module| format!("{module} has no row in the table")));
        if let Some((_, facet)) = facet_of(path)
            && place(&facet).is_none()
        {
            found.push(format!("{} is no facet", short(path)));
        }
    }
    found
}

/// `src/a/b.rs` → a, b; `src/a/mod.rs` → a.
fn modules_of(path: &str) -> Vec<String> {
    let short = short(path);
    let short = short.strip_suffix("/mod").unwrap_or(short);
    short.split('/').map(str::to_string).collect()
}

/// Benchmark and facet of a file; nothing for a file of no benchmark.
fn facet_of(path: &str) -> Option<(String, String)> {
    let below = short(path).strip_prefix("benchmarks/")?;
    let (benchmark, rest) = below.split_once('/')?;
    Some((benchmark.to_string(), rest.split('/').next()?.to_string()))
}

fn place(facet: &str) -> Option<usize> {
    FACETS.iter().position(|(names, _)| names.contains(&facet))
}

/// Whether a file may name what is at `to`, names from the root down.
fn may_import(from: &str, to: &[String]) -> bool {
    let module = module_of(from);
    let is = |allowed: &&&str| {
        let parts: Vec<&str> = allowed.split("::").collect();
        to.len() >= parts.len() && parts.iter().zip(to).all(|(part, name)| part == name)
    };
    if module != "benchmarks" {
        let row = TABLE.iter().find(|(name, _)| *name == module);
        // What has no row is found as that.
        return to.first().is_some_and(|top| top == module)
            || row.is_none_or(|(_, lists)| lists.iter().flat_map(|list| *list).any(|it| is(&it)));
    }
    let shared = FACETS_SHARE.iter().any(|it| is(&it));
    let own = ["benchmarks".to_string()];
    let Some((benchmark, facet)) = facet_of(from) else {
        // The types of the hooks, and the list of all benchmarks.
        return shared || to.starts_with(&own) || ROW_IMPORTS.iter().any(|it| is(&it));
    };
    let Some(at) = place(&facet) else { return true };
    if to.starts_with(&own) {
        return match to.get(1) {
            Some(name) if *name == benchmark => {
                to.get(2).is_some_and(|facet| place(facet).is_none_or(|it| it <= at))
            }
            _ => FACETS[at].1.iter().any(|it| is(&it)),
        };
    }
    shared || FACETS[at].1.iter().any(|it| is(&it))
}
