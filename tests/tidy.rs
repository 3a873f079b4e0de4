//! Rules of the house that the compiler does not know: layers, lengths, names, who may print.
//!
//! Each rule is a function from a text to what is wrong with it. One test holds it against the
//! whole tree, another shows on a bad sample that it can fail.

#![allow(clippy::unwrap_used)] // A test file throughout; clippy only sees the marked functions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::Visit;

/// Modules of `src`, from the lowest up, and what each may import beside itself. `driver::protocol`
/// allows that path and what is below it.
const IMPORTS: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("parallel", &[]),
    ("stats", &[]),
    ("datagen", &[]),
    ("domain", &["units"]),
    ("os", &["domain", "units", "datagen"]),
    ("wire", &["domain", "units", "datagen"]),
    ("embed", &["domain", "units", "datagen"]),
    ("dbms", &["L0", "os", "wire", "embed"]),
    ("workload", &["L0"]),
    ("driver", &["L0", "os", "wire", "embed"]),
    ("results", &["L0"]),
    ("analyze", &["L0"]),
    ("obtain", &["L0", "os", "wire"]),
    ("report", &["L0", "analyze"]),
    ("import", &["L0", "results"]),
    (
        "benchmarks",
        &["L0", "os", "wire", "embed", "workload", "driver", "analyze", "report", "import"],
    ),
    ("plan", &["L0", "benchmarks", "workload", "wire::dsn", "driver::protocol"]),
    ("lab", &["L0", "plan", "dbms", "obtain", "driver", "results", "os", "wire"]),
    ("cli", &["*"]),
];

/// The modules that `L0` stands for.
const L0: &[&str] = &["units", "parallel", "stats", "datagen", "domain"];

/// Imports that are still to go: the importing module, and what it names. The list only shrinks.
const VIOLATIONS: &[(&str, &str)] = &[
    ("analyze", "benchmarks"),
    ("driver", "benchmarks"),
    ("import", "benchmarks"),
    ("import", "os::host"),
    ("lab", "analyze"),
    ("lab", "benchmarks"),
    ("report", "benchmarks"),
    ("results", "os::host"),
    ("workload", "benchmarks"),
];

/// Functions that may be longer than [`FUNCTION_LINES`]: file, name. The list only ever shrinks.
const LONG_FUNCTIONS: &[(&str, &str)] = &[];

const FUNCTION_LINES: usize = 70;
const LINE_COLUMNS: usize = 100;

/// Names that say nothing about what is inside.
const BANNED_MODULES: &[&str] =
    &["util", "utils", "common", "helper", "helpers", "misc", "manager", "managers"];

/// Files besides src/cli that may open a standard stream: two processes of rqps talk over it.
const SPEAKERS: &[&str] = &["src/os/warden.rs"];

/// Words of the glossary's table (docs/glossary.md).
const GLOSSARY: &[&str] = &[
    "dbms",
    "storage engine",
    "build",
    "config",
    "target",
    "baseline",
    "host",
    "benchmark",
    "step",
    "workload",
    "clients",
    "pace",
    "plan",
    "block",
    "run",
    "interval",
    "sample",
    "metric",
    "rQPS",
    "verdict",
    "caveat",
    "group",
    "settle",
    "driver",
    "lab",
    "warden",
    "snapshot",
];

/// A word that names of types, fields, functions and modules must not hold, and the word of the
/// glossary that says it. `engine` is fine as part of `storage_engine`.
const SYNONYMS: &[(&str, &str)] = &[
    ("engine", "dbms or storage_engine"),
    ("dop", "clients"),
    ("nthreads", "clients"),
    ("scenario", "benchmark or step"),
    ("testcase", "step"),
    ("sut", "target"),
];

/// Field names that stand for clients wherever they are public. A process has threads, so `os` may
/// say so.
const SYNONYM_FIELDS: &[&str] = &["threads", "users", "connections"];

// Layers.

#[test]
fn modules_import_only_from_layers_below() {
    hold(sources(), layers);
}

#[test]
fn an_import_upwards_or_sideways_is_found() {
    let check = |path: &str, text: &str, expected: &str| {
        let found = layers(path, text).join("\n");
        assert_eq!(found.is_empty(), expected.is_empty(), "{path}: {text}: {found}");
        assert!(found.contains(expected), "{path}: {text}: {found}");
    };
    check("src/stats/t.rs", "use crate::dbms::Server;", "stats imports dbms");
    check("src/report/mod.rs", "use crate::results;", "report imports results");
    check("src/plan/x.rs", "use crate::driver::recorder::R;", "plan imports driver::recorder");
    check("src/plan/x.rs", "use crate::driver;", "plan imports driver");
    check("src/os/a.rs", "fn f() -> crate::cli::X { todo!() }", "os imports cli");
    check("src/os/a.rs", "use crate::{domain::run::Usage, lab::L};", "os imports lab");
    check("src/os/a.rs", "fn f() { assert!(crate::plan::ok()) }", "os imports plan");
    check("src/os/a.rs", "use super::super::cli;", "super reaches beyond os");
    check("src/os/mod.rs", "mod tests { use super::super::cli; }", "super reaches beyond os");
    check("src/units.rs", "use super::cli;", "super reaches beyond units");
    check("src/os/a.rs", "pub(super) fn f() { super::g() } mod tests { use super::super::b; }", "");
    check("src/os/a.rs", "use crate::novelty::X;", "novelty has no row");
    check("src/novelty/a.rs", "", "novelty has no row");
    check("src/os/a.rs", "use crate::{self as all};", "names the whole crate");
    check("src/plan/x.rs", "use crate::driver::protocol::Job;", "");
    check("src/plan/x.rs", "use crate::driver::{protocol::Job};", "");
    check("src/plan/x.rs", "use crate::driver::{protocol::Job, client};", "driver::client");
    check("src/lab/mod.rs", "use crate::{dbms, os::proc}; use crate::lab::x;", "");
    check("src/lib.rs", "pub mod os;", "");
    check("src/lib.rs", "pub mod novelty;", "novelty has no row");
}

/// Findings about imports in one file of src.
fn layers(path: &str, text: &str) -> Vec<String> {
    let tokens = tokens(path, text);
    let module = module_of(path);
    let mut found = Vec::new();
    if module == "lib" || module == "main" {
        for declared in declared_modules(path, text) {
            if imports(&declared).is_none() {
                found.push(format!("{path}: {declared} has no row in IMPORTS of tests/tidy.rs"));
            }
        }
        return found;
    }
    let Some(own) = imports(module) else {
        return vec![format!("{path}: {module} has no row in IMPORTS of tests/tidy.rs")];
    };
    let mut paths = Vec::new();
    crate_paths(tokens, depth_of(path), &mut paths);
    for named in paths {
        let top = named.split("::").next().unwrap_or("");
        if named == ROOT_BY_SUPER {
            found.push(format!("{path}: super reaches beyond {module}; name it by crate"));
        } else if top == "self" || top == "*" {
            found.push(format!("{path}: an import names the whole crate"));
        } else if imports(top).is_none() {
            found.push(format!("{path}: {top} has no row in IMPORTS of tests/tidy.rs"));
        } else if !(top == module || allows(own, &named) || is_known_violation(module, &named)) {
            found.push(format!("{path}: {module} imports {named}"));
        }
    }
    found
}

fn imports(module: &str) -> Option<&'static [&'static str]> {
    IMPORTS.iter().find(|(name, _)| *name == module).map(|(_, allowed)| *allowed)
}

/// Whether a row of [`IMPORTS`] allows a path of the crate.
fn allows(allowed: &[&str], named: &str) -> bool {
    let top = named.split("::").next().unwrap_or("");
    let is_below = |prefix: &str| named == prefix || named.starts_with(&format!("{prefix}::"));
    allowed.iter().any(|prefix| match *prefix {
        "*" => true,
        "L0" => L0.contains(&top),
        prefix => is_below(prefix),
    })
}

fn is_known_violation(module: &str, named: &str) -> bool {
    VIOLATIONS.iter().any(|(from, to)| *from == module && allows(&[to], named))
}

/// `src/os/proc.rs` → `os`, `src/units.rs` → `units`.
fn module_of(path: &str) -> &str {
    let below = path.strip_prefix("src/").unwrap_or(path);
    let first = below.split('/').next().unwrap_or(below);
    first.strip_suffix(".rs").unwrap_or(first)
}

fn declared_modules(path: &str, text: &str) -> Vec<String> {
    let file = parse(path, text);
    let modules = file.items.iter().filter_map(|item| match item {
        syn::Item::Mod(module) if !is_test(&module.attrs) => Some(module.ident.to_string()),
        _ => None,
    });
    modules.collect()
}

/// Modules around the code of a file: 1 for `src/os/mod.rs` and `src/units.rs`, 2 for
/// `src/os/proc.rs`.
fn depth_of(path: &str) -> usize {
    let parts = path.split('/').skip(1).count();
    if path.ends_with("/mod.rs") { parts.saturating_sub(1) } else { parts }
}

/// Stands for a chain of `super` that arrives at the root of the crate.
const ROOT_BY_SUPER: &str = "super";

/// All `crate::a::b` in a stream at `depth` modules below the root, macros and braces included,
/// without the `crate`; and every chain of `super` that climbs to the root.
fn crate_paths(stream: TokenStream, depth: usize, paths: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let is =
        |at: usize, word: &str| matches!(tokens.get(at), Some(TokenTree::Ident(i)) if i == word);
    let mut at = 0;
    while at < tokens.len() {
        let in_module = at >= 2 && is(at - 2, "mod");
        match &tokens[at] {
            TokenTree::Group(group) => {
                crate_paths(group.stream(), depth + usize::from(in_module), paths);
            }
            TokenTree::Ident(_) if is(at, "crate") && is_colons(&tokens, at + 1) => {
                use_tree(&tokens[at + 3..], "", paths);
            }
            TokenTree::Ident(_) if is(at, "super") => {
                let mut climbed = 0;
                while is(at, "super") && is_colons(&tokens, at + 1) {
                    climbed += 1;
                    at += 3;
                }
                if climbed >= depth {
                    paths.push(ROOT_BY_SUPER.to_string());
                }
            }
            _ => {}
        }
        at += 1;
    }
}

/// Reads `a::b::{c, d::e}` from the front of `tokens` into `prefix::a::b::c` and so on.
fn use_tree(tokens: &[TokenTree], prefix: &str, paths: &mut Vec<String>) {
    let join = |name: &str| match prefix {
        "" => name.to_string(),
        _ => format!("{prefix}::{name}"),
    };
    match tokens.first() {
        Some(TokenTree::Ident(ident)) => {
            let path = join(&ident.to_string());
            if is_colons(tokens, 1) {
                use_tree(&tokens[3..], &path, paths);
            } else {
                paths.push(path);
            }
        }
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            let is_comma =
                |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ',');
            for part in inner.split(is_comma).filter(|part| !part.is_empty()) {
                use_tree(part, prefix, paths);
            }
        }
        Some(TokenTree::Punct(punct)) if punct.as_char() == '*' => paths.push(join("*")),
        // A turbofish ends a path.
        _ => paths.push(prefix.to_string()),
    }
}

fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    let mark = |at: usize| match tokens.get(at) {
        Some(TokenTree::Punct(mark)) => Some((mark.as_char(), mark.spacing())),
        _ => None,
    };
    mark(at) == Some((':', Spacing::Joint)) && mark(at + 1).is_some_and(|(mark, _)| mark == ':')
}

// Lengths.

#[test]
fn functions_are_short() {
    let mut long = Vec::new();
    hold(rust_files(), |path, text| {
        let found = long_functions(path, text);
        long.extend(found.iter().map(|(name, _)| (path.to_string(), name.clone())));
        let excused = |name: &str| LONG_FUNCTIONS.contains(&(path, name));
        found.into_iter().filter(|(name, _)| !excused(name)).map(|(_, text)| text).collect()
    });
    for (path, name) in LONG_FUNCTIONS {
        let still = long.contains(&(path.to_string(), name.to_string()));
        assert!(still, "{path}: {name} is short now: take it from LONG_FUNCTIONS");
    }
}

#[test]
fn a_long_function_is_found() {
    let body = |lines: usize| format!("fn f() {{\n{}}}\n", "    work();\n".repeat(lines));
    assert_eq!(long_functions("src/x.rs", &body(68)), []);
    let found = long_functions("src/x.rs", &body(69));
    assert_eq!(found[0].1, "src/x.rs:1: f has 71 lines, at most 70 are allowed");
    let method = format!("struct S;\nimpl S {{\n{}}}\n", body(80));
    assert_eq!(long_functions("src/x.rs", &method)[0].0, "f");
    let default = format!("trait T {{\n{}}}\nmod m {{\n{}}}\n", body(80), body(80));
    assert_eq!(long_functions("src/x.rs", &default).len(), 2);
}

/// Name and finding of each function that is too long.
fn long_functions(path: &str, text: &str) -> Vec<(String, String)> {
    struct Functions(Vec<(String, usize, usize)>);
    impl Functions {
        fn add(&mut self, signature: &syn::Signature, block: &syn::Block) {
            let (first, last) = (signature.span().start().line, block.span().end().line);
            self.0.push((signature.ident.to_string(), first, last - first + 1));
        }
    }
    impl Visit<'_> for Functions {
        fn visit_item_fn(&mut self, item: &syn::ItemFn) {
            self.add(&item.sig, &item.block);
            syn::visit::visit_item_fn(self, item);
        }
        fn visit_impl_item_fn(&mut self, item: &syn::ImplItemFn) {
            self.add(&item.sig, &item.block);
            syn::visit::visit_impl_item_fn(self, item);
        }
        fn visit_trait_item_fn(&mut self, item: &syn::TraitItemFn) {
            if let Some(block) = &item.default {
                self.add(&item.sig, block);
            }
            syn::visit::visit_trait_item_fn(self, item);
        }
    }
    let mut functions = Functions(Vec::new());
    functions.visit_file(&parse(path, text));
    let long = functions.0.into_iter().filter(|(_, _, lines)| *lines > FUNCTION_LINES);
    long.map(|(name, first, lines)| {
        let fault = format!("{name} has {lines} lines, at most {FUNCTION_LINES} are allowed");
        (name, format!("{path}:{first}: {fault}"))
    })
    .collect()
}

#[test]
fn lines_are_short() {
    hold(rust_files(), long_lines);
}

#[test]
fn a_long_line_is_found() {
    let text = format!("// é{}\n// {}\n", "x".repeat(96), "x".repeat(98));
    assert_eq!(long_lines("src/x.rs", &text), ["src/x.rs:2: 101 columns, at most 100 are allowed"]);
}

fn long_lines(path: &str, text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.chars().count()).enumerate();
    let long = lines.filter(|(_, columns)| *columns > LINE_COLUMNS);
    long.map(|(at, columns)| {
        format!("{path}:{}: {columns} columns, at most {LINE_COLUMNS} are allowed", at + 1)
    })
    .collect()
}

// Headers and names.

#[test]
fn files_say_what_they_are_for() {
    hold(rust_files(), header);
}

#[test]
fn a_missing_header_is_found() {
    assert_eq!(header("src/x.rs", "//! What it is for.\nuse x;\n"), [""; 0]);
    for bad in ["", "use x;\n//! Late.\n", "// Not a header.\n", "//!\n", "//! Placeholder.\n"] {
        assert_eq!(header("src/x.rs", bad).len(), 1, "{bad}");
    }
}

fn header(path: &str, text: &str) -> Vec<String> {
    let first = text.lines().next().and_then(|line| line.strip_prefix("//!")).unwrap_or("").trim();
    if first.is_empty() || first == "Placeholder." {
        return vec![format!("{path}: begins without a `//!` that says what the file is for")];
    }
    Vec::new()
}

#[test]
fn modules_have_names_that_say_something() {
    hold(rust_files(), empty_names);
}

#[test]
fn an_empty_name_is_found() {
    assert_eq!(empty_names("src/os/utils.rs", "").len(), 1);
    assert_eq!(empty_names("src/helpers/mod.rs", "").len(), 1);
    assert_eq!(empty_names("tests/common/mod.rs", "").len(), 1);
    assert_eq!(empty_names("src/os/proc.rs", "mod misc { }").len(), 1);
    assert_eq!(empty_names("src/os/proc.rs", "mod tests { }"), [""; 0]);
}

fn empty_names(path: &str, text: &str) -> Vec<String> {
    let parts = path.split('/').map(|part| part.strip_suffix(".rs").unwrap_or(part).to_string());
    let names = parts.chain(declared_modules(path, text));
    let empty = names.filter(|name| BANNED_MODULES.contains(&name.as_str()));
    empty.map(|name| format!("{path}: the name {name} does not say what is inside")).collect()
}

// Who may do what.

#[test]
fn only_the_c_interfaces_are_unsafe() {
    hold(rust_files(), unsafe_code);
}

#[test]
fn unsafe_elsewhere_is_found() {
    let text = "fn f() { g!(unsafe { h() }) }";
    assert_eq!(unsafe_code("src/lab/mod.rs", text).len(), 1);
    assert_eq!(unsafe_code("src/os/tree.rs", text), [""; 0]);
    assert_eq!(unsafe_code("src/osmosis/tree.rs", text).len(), 1);
    let words = "//! unsafe\n#![deny(unsafe_code)] const S: &str = \"unsafe\";";
    assert_eq!(unsafe_code("src/lab/mod.rs", words), [""; 0]);
}

fn unsafe_code(path: &str, text: &str) -> Vec<String> {
    if path.starts_with("src/os/") || path.starts_with("src/embed/") {
        return Vec::new();
    }
    let words = flat(tokens(path, text));
    let found = words.iter().filter(|(word, _)| word == "unsafe");
    found.map(|(_, line)| format!("{path}:{line}: unsafe is for src/embed and src/os")).collect()
}

#[test]
fn only_the_command_line_prints_exits_and_reads_the_environment() {
    hold(sources(), shell_only);
}

#[test]
fn printing_elsewhere_is_found() {
    let check = |text: &str, count: usize| {
        assert_eq!(shell_only("src/lab/mod.rs", text).len(), count, "{text}");
        assert_eq!(shell_only("src/cli/mod.rs", text), [""; 0]);
    };
    check("fn f() { println!(\"x\"); }", 1);
    check("fn f() { vec![eprint!(\"x\"), dbg!(1)]; }", 2);
    check("fn f() { std::process::exit(1) }", 1);
    check("use std::process; fn f() { process::exit(1) }", 1);
    check("fn f() { std::env::var(\"HOME\"); }", 1);
    check("use std::env;", 1);
    check("use std::{env, fs};", 1);
    check("use std::env::var_os;", 1);
    check("fn f() { std::io::stdout(); }", 1);
    check("#[cfg(test)] mod tests { fn f() { println!(\"x\"); } }", 0);
    check("const V: &str = env!(\"CARGO_PKG_VERSION\"); // println!", 0);
    check("fn f() { writeln!(out, \"std::env\"); self.exit(); }", 0);
}

fn shell_only(path: &str, text: &str) -> Vec<String> {
    if path.starts_with("src/cli/") {
        return Vec::new();
    }
    let tests = test_lines(path, text);
    let words = flat(tokens(path, text));
    let word = |at: usize| words.get(at).map_or("", |(word, _)| word.as_str());
    let mut found = Vec::new();
    for (at, (first, line)) in words.iter().enumerate() {
        let what = match (first.as_str(), word(at + 1)) {
            ("println" | "print" | "eprintln" | "eprint" | "dbg", "!") => "prints",
            ("stdout" | "stderr", "(") if !SPEAKERS.contains(&path) => "opens a standard stream",
            ("process", "::") if word(at + 2) == "exit" => "exits",
            ("std", "::") if word(at + 2) == "env" => "reads the environment",
            ("std", "::") if word(at + 2) == "{" && braces_hold(&words[at + 2..], "env") => {
                "reads the environment"
            }
            _ => continue,
        };
        // `Command::stdout(…)` sets up somebody else's stream.
        let method = at > 0 && word(at - 1) == ".";
        if !method && !tests.iter().any(|lines| lines.contains(line)) {
            found.push(format!("{path}:{line}: {what}, which only src/cli may"));
        }
    }
    found
}

/// True if `name` is an entry of the braces at the front of `words`.
fn braces_hold(words: &[(String, usize)], name: &str) -> bool {
    let mut depth = 0;
    for (at, (word, _)) in words.iter().enumerate() {
        match word.as_str() {
            "{" => depth += 1,
            "}" if depth == 1 => return false,
            "}" => depth -= 1,
            _ if depth == 1 && word == name && matches!(words[at - 1].0.as_str(), "{" | ",") => {
                return true;
            }
            _ => {}
        }
    }
    false
}

// Words.

#[test]
fn the_glossary_has_every_word_once() {
    let text = fs::read_to_string(root().join("docs/glossary.md")).unwrap();
    assert_eq!(glossary(&text), [""; 0]);
}

#[test]
fn a_missing_word_is_found() {
    let row = |word: &&str| format!("| {word} | what it means |\n");
    let whole: String = GLOSSARY.iter().map(row).collect();
    assert_eq!(glossary(&whole), [""; 0]);
    let found = glossary(&whole.replace("| pace |", "| speed |"));
    assert_eq!(found, ["docs/glossary.md: no row explains pace"]);
    assert_eq!(glossary(&format!("{whole}| pace | again |\n")).len(), 1);
    assert_eq!(glossary(&whole.replace("| pace | what it means |", "| pace | |")).len(), 1);
}

fn glossary(text: &str) -> Vec<String> {
    let mut rows: BTreeMap<&str, usize> = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix('|')) {
        let mut cells = line.split('|').map(str::trim);
        let (word, meaning) = (cells.next().unwrap_or(""), cells.next().unwrap_or(""));
        if !meaning.is_empty() {
            *rows.entry(word).or_default() += 1;
        }
    }
    let count = |word: &str| rows.get(word).copied().unwrap_or(0);
    let fault = |word: &&str| match count(word) {
        0 => Some(format!("docs/glossary.md: no row explains {word}")),
        1 => None,
        many => Some(format!("docs/glossary.md: {many} rows explain {word}")),
    };
    GLOSSARY.iter().filter_map(fault).collect()
}

#[test]
fn names_use_the_words_of_the_glossary() {
    hold(sources(), synonyms);
}

#[test]
fn a_synonym_is_found() {
    let check = |path: &str, text: &str, expected: &str| {
        let found = synonyms(path, text).join("\n");
        assert_eq!(found.is_empty(), expected.is_empty(), "{text}: {found}");
        assert!(found.contains(expected), "{text}: {found}");
    };
    check("src/a/b.rs", "pub struct EngineKind;", "Engine");
    check("src/a/b.rs", "enum E { InnodbEngine }", "dbms or storage_engine");
    check("src/a/b.rs", "pub fn start_engine() {}", "start_engine");
    check("src/a/b.rs", "struct S { storage_engine: u8 } enum E { StorageEngine }", "");
    check("src/a/b.rs", "use base64::engine::Engine; fn f() { x.engine(); }", "");
    check("src/a/b.rs", "pub struct S { pub threads: u32 }", "clients");
    check("src/a/b.rs", "pub struct S { threads: u32 }", "");
    check("src/os/b.rs", "pub struct S { pub threads: u32 }", "");
    check("src/a/b.rs", "const SCENARIO_LABEL: u8 = 1;", "step");
    check("src/a/b.rs", "mod scenario {}", "step");
    check("src/a/b.rs", "trait T { fn dop(&self); } type Sut = u8;", "dop");
}

fn synonyms(path: &str, text: &str) -> Vec<String> {
    #[derive(Default)]
    struct Names(Vec<syn::Ident>, Vec<syn::Ident>);
    impl Visit<'_> for Names {
        fn visit_item(&mut self, item: &syn::Item) {
            self.0.extend(match item {
                syn::Item::Struct(item) => Some(item.ident.clone()),
                syn::Item::Enum(item) => Some(item.ident.clone()),
                syn::Item::Trait(item) => Some(item.ident.clone()),
                syn::Item::Type(item) => Some(item.ident.clone()),
                syn::Item::Const(item) => Some(item.ident.clone()),
                syn::Item::Static(item) => Some(item.ident.clone()),
                syn::Item::Mod(item) => Some(item.ident.clone()),
                _ => None,
            });
            syn::visit::visit_item(self, item);
        }
        fn visit_signature(&mut self, signature: &syn::Signature) {
            self.0.push(signature.ident.clone());
        }
        fn visit_variant(&mut self, variant: &syn::Variant) {
            self.0.push(variant.ident.clone());
            syn::visit::visit_variant(self, variant);
        }
        fn visit_field(&mut self, field: &syn::Field) {
            let public = matches!(field.vis, syn::Visibility::Public(_));
            self.1.extend(field.ident.clone().filter(|_| public));
            self.0.extend(field.ident.clone());
        }
    }
    let mut names = Names::default();
    names.visit_file(&parse(path, text));
    let mut found = Vec::new();
    for name in &names.0 {
        let parts = words_of(&name.to_string());
        for (at, part) in parts.iter().enumerate() {
            let storage = part == "engine" && at > 0 && parts[at - 1] == "storage";
            let synonym = SYNONYMS.iter().find(|(word, _)| word == part);
            if let Some((_, better)) = synonym.filter(|_| !storage) {
                let line = name.span().start().line;
                found.push(format!("{path}:{line}: {name}: the glossary says {better}"));
            }
        }
    }
    for name in names.1.iter().filter(|_| !path.starts_with("src/os/")) {
        if SYNONYM_FIELDS.contains(&name.to_string().as_str()) {
            let line = name.span().start().line;
            found.push(format!("{path}:{line}: {name}: the glossary says clients"));
        }
    }
    found
}

/// `StorageEngine`, `storage_engine` and `STORAGE_ENGINE` → `storage`, `engine`.
fn words_of(name: &str) -> Vec<String> {
    let shout = !name.chars().any(char::is_lowercase);
    let mut words = vec![String::new()];
    for letter in name.chars() {
        if letter == '_' || (letter.is_uppercase() && !shout) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter != '_') {
            word.extend(letter.to_lowercase());
        }
    }
    words.into_iter().filter(|word| !word.is_empty()).collect()
}

// Texts.

/// What must not be in any file: places of the machine that a file was written on, and hosts of
/// package registries, since the user's own clients know where to fetch. Written in two parts, or
/// this file would hold them.
const BANNED_TEXTS: &[(&str, &str)] = &[
    ("/wo", "rk/"),
    ("/tmp/", "wt"),
    ("/ro", "ot/"),
    ("fa", "rm-"),
    ("repo1.", "maven"),
    ("repo.maven.", "apache"),
    ("registry.", "npmjs"),
    ("deb.", "debian.org"),
    ("files.", "pythonhosted"),
];

#[test]
fn no_file_names_the_machine_it_was_written_on() {
    let generated = |path: &str| path == "Cargo.lock" || path.starts_with("vendor/");
    let files = tree_files().into_iter().filter(|(path, _)| !generated(path)).collect();
    hold(files, banned_texts);
}

#[test]
fn a_path_of_a_machine_is_found() {
    let text = format!("fine\nlook in {}{}x\n", "/wo", "rk/");
    let found = banned_texts("docs/x.md", &text);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("docs/x.md:2: "), "{found:?}");
    assert_eq!(banned_texts("docs/x.md", "a framework/library"), [""; 0]);
}

fn banned_texts(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        for (head, tail) in BANNED_TEXTS {
            if line.contains(&format!("{head}{tail}")) {
                found.push(format!("{path}:{}: names {head}{tail}", at + 1));
            }
        }
    }
    found
}

#[test]
fn documents_lead_somewhere() {
    let files = tree_files().into_iter().filter(|(path, _)| path.ends_with(".md")).collect();
    hold(files, |path, text| dead_links(path, text, &|target| root().join(target).exists()));
}

#[test]
fn a_dead_link_is_found() {
    let there = |target: &Path| target == Path::new("docs/a.md") || target == Path::new("src/os");
    let check = |path: &str, text: &str, count: usize| {
        assert_eq!(dead_links(path, text, &there).len(), count, "{text}");
    };
    check("README.md", "[a](docs/a.md) [b](docs/b.md) [c](https://example.org) [d](#d)", 1);
    check("docs/x.md", "[a](a.md#part) [up](../src/os)", 0);
    check("docs/x.md", "`src/os` and `src/gone.rs`, but `src/dbms/NAME.rs` is anybody's", 1);
}

/// Links to files that are not there, and paths in backticks that begin with a folder of code; one
/// with capitals is a pattern.
fn dead_links(path: &str, text: &str, there: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let links = links
        .filter(|link| !link.contains("://") && !link.starts_with(['#', '<']))
        .filter(|link| !link.starts_with("mailto:"))
        .map(|link| folder.join(link.split('#').next().unwrap_or(link)));
    let code =
        |word: &&str| ["src/", "tests/", "benches/", "docs/"].iter().any(|d| word.starts_with(d));
    let plain = |word: &&str| !word.contains(|c: char| c.is_whitespace() || "*{<…".contains(c));
    let named = text.split('`').skip(1).step_by(2).filter(code).filter(plain);
    let named = named.filter(|word| !word.contains(char::is_uppercase)).map(PathBuf::from);
    let dead = links.chain(named).map(|target| flatten(&target)).filter(|target| !there(target));
    dead.map(|target| format!("{path}: leads to {}, which is not there", target.display()))
        .collect()
}

/// Resolves `..` in a relative path.
fn flatten(path: &Path) -> PathBuf {
    let mut flat = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => drop(flat.pop()),
            std::path::Component::CurDir => {}
            part => flat.push(part),
        }
    }
    flat
}

// What the rules are made with.

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Path below the root and text, of each text file that belongs to the package.
fn tree_files() -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut waiting = vec![root().to_path_buf()];
    let others = BTreeSet::from([".git", "target", "rqps-results", "node_modules"]);
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() && !others.contains(name.as_str()) {
                waiting.push(entry.path());
            } else if kind.is_file() && name != ".git" {
                let path = entry.path().strip_prefix(root()).unwrap().to_path_buf();
                // A file that is no text has no words to hold against a rule.
                if let Ok(text) = fs::read_to_string(entry.path()) {
                    files.insert(path.into_os_string().into_string().unwrap(), text);
                }
            }
        }
    }
    files
}

/// Sources of library and program.
fn sources() -> BTreeMap<String, String> {
    rust_files().into_iter().filter(|(path, _)| path.starts_with("src/")).collect()
}

/// Sources, tests and benches.
fn rust_files() -> BTreeMap<String, String> {
    let files: BTreeMap<_, _> =
        tree_files().into_iter().filter(|(path, _)| path.ends_with(".rs")).collect();
    assert!(files.contains_key("src/lib.rs") && files.contains_key("tests/tidy.rs"));
    files
}

/// Holds a rule against files and shows all that it found.
fn hold(files: BTreeMap<String, String>, mut rule: impl FnMut(&str, &str) -> Vec<String>) {
    let found: Vec<String> = files.iter().flat_map(|(path, text)| rule(path, text)).collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

fn parse(path: &str, text: &str) -> syn::File {
    syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn tokens(path: &str, text: &str) -> TokenStream {
    TokenStream::from_str(text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// All words and marks with their lines, `::` as one, brackets as marks. Literals and comments are
/// empty words, so that nothing in them is found.
fn flat(stream: TokenStream) -> Vec<(String, usize)> {
    let mut words = Vec::new();
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        let line = tokens[at].span().start().line;
        match &tokens[at] {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                words.push((open.to_string(), line));
                words.extend(flat(group.stream()));
                words.push((close.to_string(), group.span().end().line));
            }
            TokenTree::Ident(ident) => words.push((ident.to_string(), line)),
            TokenTree::Punct(_) if is_colons(&tokens, at) => {
                words.push(("::".to_string(), line));
                at += 1;
            }
            TokenTree::Punct(punct) => words.push((punct.as_char().to_string(), line)),
            TokenTree::Literal(_) => words.push((String::new(), line)),
        }
        at += 1;
    }
    words
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|ident| ident == "test")
    })
}

/// Lines of items that only tests see.
fn test_lines(path: &str, text: &str) -> Vec<RangeInclusive<usize>> {
    struct Tests(Vec<RangeInclusive<usize>>);
    impl Visit<'_> for Tests {
        fn visit_item(&mut self, item: &syn::Item) {
            let attributes = match item {
                syn::Item::Mod(item) => &item.attrs,
                syn::Item::Fn(item) => &item.attrs,
                syn::Item::Impl(item) => &item.attrs,
                syn::Item::Struct(item) => &item.attrs,
                syn::Item::Use(item) => &item.attrs,
                _ => &Vec::new(),
            };
            if is_test(attributes) {
                self.0.push(item.span().start().line..=item.span().end().line);
            } else {
                syn::visit::visit_item(self, item);
            }
        }
    }
    let mut tests = Tests(Vec::new());
    tests.visit_file(&parse(path, text));
    tests.0
}
