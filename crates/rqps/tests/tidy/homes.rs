//! Things that have one home: lists of metrics, threads, what the name of a step tells.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::Visit;

use crate::exceptions::hold_all_but_exceptions;
use crate::sources::*;

/// The folder for lists of metrics. A report of a benchmark also lists the columns of its own
/// tables.
const METRICS: &str = "src/domain/metric/";

/// Files that may start threads; all others use a crew or `parallel`.
const THREADS: &[&str] = &[
    "src/driver/crew.rs",
    "src/driver/link.rs",
    "src/parallel.rs",
    "src/os/",
    "src/lab/",
    // After Ctrl-C nobody waits for a long VACUUM, so these threads are never joined.
    "src/dbms/settle.rs",
    // The resolver of the system heeds no signal: one thread waits for it, and may be left behind.
    "src/wire/reach.rs",
    // It only watches the server: if it fails, the step goes on without its columns.
    "src/benchmarks/insert/driver/observer.rs",
];

/// Ways to ask what a text holds.
const QUESTIONS: &[&str] = &[
    "contains",
    "ends_with",
    "find",
    "parse",
    "rfind",
    "rsplit",
    "rsplit_once",
    "split",
    "split_once",
    "starts_with",
    "strip_prefix",
    "strip_suffix",
];

/// Names of variables whose field `name` is the name of a step.
const STEPS: &[&str] = &["step", "record"];

/// Functions that take a name and only show it.
const SHOWING: &[&str] = &["text", "quoted", "Some", "id", "name"];

#[test]
fn things_stand_where_they_belong() {
    let files = shipped();
    hold_all_but_exceptions("homes", files.iter().flat_map(|(path, text)| homes(path, text)));
}

#[test]
fn a_thing_in_another_place_is_found() {
    let check = |path: &str, text: &str, expected: &[&str]| {
        let found: Vec<String> = homes(path, text).into_iter().collect();
        assert_eq!(found, expected, "{path}: {text}");
    };
    let list = "const A: [Metric; 1] = [Metric::Rate];";
    check("src/report/x.rs", list, &["report/x: a list of metrics"]);
    check(
        "src/report/x.rs",
        "fn f() { static A: &[crate::x::Metric] = &[]; }",
        &["report/x: a list of metrics"],
    );
    let columns = "const A: &[(Metric, Digits)] = &[];";
    check("src/report/x.rs", columns, &["report/x: a list of metrics"]);
    check("src/benchmarks/kv/analyze/x.rs", list, &["benchmarks/kv/analyze/x: a list of metrics"]);
    check("src/domain/metric/rows.rs", list, &[]);
    for own in ["src/benchmarks/kv/report.rs", "src/benchmarks/insert/report/x.rs"] {
        check(own, list, &[]);
        check(own, columns, &[]);
    }
    check("src/report/x.rs", "const A: Metric = Metric::Rate; fn f(a: &[Metric]) {}", &[]);
    for start in ["std::thread::spawn(f)", "thread::scope(f)", "thread::Builder::new()"] {
        let text = format!("fn g() {{ {start}; }}");
        check("src/dbms/x.rs", &text, &["dbms/x: a thread"]);
        check("src/lab/x.rs", &text, &[]);
        check("src/driver/crew.rs", &text, &[]);
        check("src/dbms/x.rs", &format!("#[cfg(test)] mod tests {{ {text} }}"), &[]);
    }
    check("src/dbms/x.rs", "fn g() { std::thread::sleep(a); }", &[]);
    for asked in [
        "if step.name == \"scan\" {}",
        "step.record.name.starts_with(\"l.\");",
        "match step.name.as_str() { _ => 1 }",
        "match &step.name { _ => 1 }",
        "is_query(&step.name);",
        "Point::of_step(&self.step.name);",
    ] {
        let text = format!("fn f() {{ {asked} }}");
        check("src/analyze/x.rs", &text, &["analyze/x: asks the name of a step"]);
        check("src/benchmarks/kv/import/x.rs", &text, &[]);
        check("src/import/x.rs", &text, &[]);
    }
    for shown in [
        "Cell::text(&step.name);",
        "step.name.clone();",
        "step.name == other.name;",
        "all.contains(&step.name);",
        // The hook that reads records of older versions.
        "(own.upgrade)(&step.name);",
    ] {
        check("src/analyze/x.rs", &format!("fn f() {{ {shown} }}"), &[]);
    }
}

#[test]
fn benchmarks_use_their_own_metrics() {
    let files = sources();
    let rows = files.iter().find(|(path, _)| path.ends_with("metric/rows.rs"));
    let (_, rows) = rows.expect("the rows of metrics");
    let owners = owners(rows);
    assert!(owners.contains_key("Recall") && !owners.contains_key("Rate"), "{owners:?}");
    hold(files.clone(), |path, text| foreign_metrics(&owners, path, text));
}

#[test]
fn a_metric_of_another_benchmark_is_found() {
    let rows = "    \"\" => {\n        Rate, \"rate\",\n    }\n    \"kv\" => {\n        \
                Uptime, \"x\",\n    }";
    let owners = owners(rows);
    let check = |path: &str, text: &str, expected: &[&str]| {
        assert_eq!(foreign_metrics(&owners, path, text), expected, "{path}: {text}");
    };
    let both = "fn f() { a(Metric::Rate, Metric::Uptime) }";
    let found = "src/benchmarks/insert/x.rs: Uptime is a metric of kv";
    check("src/benchmarks/insert/x.rs", both, &[found]);
    check("src/benchmarks/kv/x.rs", both, &[]);
    check("src/analyze/x.rs", both, &["src/analyze/x.rs: Uptime is a metric of kv"]);
    check("src/domain/metric/rows.rs", both, &[]);
}

/// Metrics that belong to a benchmark.
fn owners(rows: &str) -> BTreeMap<String, String> {
    let mut owners = BTreeMap::new();
    let mut owner = "";
    for line in rows.lines() {
        if let Some((name, _)) = line.strip_prefix("    \"").and_then(|it| it.split_once("\" => {"))
        {
            owner = name;
        }
        let row = line.strip_prefix("        ").and_then(|row| row.split_once(", \""));
        let name = row.map_or("", |(name, _)| name);
        let is_row = !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric());
        if is_row && !owner.is_empty() {
            owners.insert(name.to_owned(), owner.to_owned());
        }
    }
    owners
}

/// Uses of a benchmark's metrics outside of that benchmark.
fn foreign_metrics(owners: &BTreeMap<String, String>, path: &str, text: &str) -> Vec<String> {
    if path.starts_with(METRICS) || !text.contains("Metric::") {
        return Vec::new();
    }
    let tests = test_lines(path, text);
    let words = flat(tokens(path, text));
    let mut found = BTreeSet::new();
    for three in words.windows(3).filter(|three| !is_test_line(&tests, three[2].1)) {
        if three[0].0 == "Metric"
            && three[1].0 == "::"
            && let Some(owner) = owners.get(&three[2].0)
            && !path.starts_with(&format!("src/benchmarks/{owner}/"))
        {
            found.insert(format!("{path}: {} is a metric of {owner}", three[2].0));
        }
    }
    found.into_iter().collect()
}

fn homes(path: &str, text: &str) -> BTreeSet<String> {
    let mut lists = Lists { count: 0 };
    if text.contains("Metric") {
        lists.visit_file(&parse(path, text));
    }
    if lists.count == 0 && !text.contains("thread::") && !text.contains(".name") {
        return BTreeSet::new();
    }
    let tests = test_lines(path, text);
    let mut words = flat(tokens(path, text));
    words.retain(|(_, line)| !is_test_line(&tests, *line));
    let words: Vec<&str> = words.iter().map(|(word, _)| word.as_str()).collect();
    let starts = |three: &[&str]| {
        three[..2] == ["thread", "::"] && ["spawn", "scope", "Builder"].contains(&three[2])
    };
    let has_threads = THREADS.iter().any(|home| path.starts_with(home));
    let imports = path.starts_with("src/import/") || path.contains("/import/");
    let imports = imports || path.ends_with("/import.rs");
    let own_report = path.starts_with("src/benchmarks/")
        && (path.contains("/report/") || path.ends_with("/report.rs"));
    let has_metrics = path.starts_with(METRICS) || own_report;
    let faults = [
        ("a list of metrics", !has_metrics && lists.count > 0),
        ("a thread", !has_threads && words.windows(3).any(starts)),
        ("asks the name of a step", !imports && asks_a_name(&words)),
    ];
    let faults = faults.into_iter().filter(|(_, is_there)| *is_there);
    faults.map(|(what, _)| format!("{}: {what}", short(path))).collect()
}

/// Whether something is decided by the name of a step.
fn asks_a_name(words: &[&str]) -> bool {
    let at = |at: usize| words.get(at).copied().unwrap_or("-");
    (0..words.len()).any(|name| {
        let is_step = name >= 2 && at(name) == "name" && at(name - 1) == ".";
        if !is_step || !STEPS.contains(&at(name - 2)) {
            return false;
        }
        // A literal is an empty word.
        let compared = at(name + 1) == "=" && at(name + 2) == "=" && at(name + 3).is_empty();
        let differs = at(name + 1) == "!" && at(name + 2) == "=" && at(name + 3).is_empty();
        let questioned = at(name + 1) == "." && QUESTIONS.contains(&at(name + 2));
        let mut first = name - 2;
        while first >= 2 && at(first - 1) == "." {
            first -= 2;
        }
        let before = |back: usize| first.checked_sub(back).map_or("-", at);
        let matched = before(1) == "match" || (before(1) == "&" && before(2) == "match");
        let handed = before(1) == "&" && before(2) == "(" && at(name + 1) == ")";
        let function = before(3);
        let judged = handed
            && before(4) != "."
            && function.starts_with(|letter: char| letter.is_ascii_lowercase())
            && !SHOWING.contains(&function);
        compared || differs || questioned || matched || judged
    })
}

/// Counts constants that are lists of metrics, those that only tests see left out.
struct Lists {
    count: usize,
}

impl Lists {
    fn look(&mut self, ty: &syn::Type) {
        let element = match ty {
            syn::Type::Array(array) => &array.elem,
            syn::Type::Slice(slice) => &slice.elem,
            syn::Type::Reference(reference) => return self.look(&reference.elem),
            _ => return,
        };
        // A row of a list may say more about each metric.
        let first = match element.as_ref() {
            syn::Type::Tuple(tuple) => tuple.elems.first(),
            element => Some(element),
        };
        if let Some(syn::Type::Path(path)) = first {
            let last = path.path.segments.last();
            self.count += usize::from(last.is_some_and(|last| last.ident == "Metric"));
        }
    }
}

impl Visit<'_> for Lists {
    fn visit_item_const(&mut self, item: &syn::ItemConst) {
        self.look(&item.ty);
    }
    fn visit_impl_item_const(&mut self, item: &syn::ImplItemConst) {
        self.look(&item.ty);
    }
    fn visit_item_static(&mut self, item: &syn::ItemStatic) {
        self.look(&item.ty);
    }
    fn visit_item_mod(&mut self, item: &syn::ItemMod) {
        if !is_test(&item.attrs) {
            syn::visit::visit_item_mod(self, item);
        }
    }
}
