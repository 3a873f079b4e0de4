//! One word per idea: the glossary has it, and names use it.

use std::collections::BTreeMap;
use std::fs;

use syn::visit::Visit;

use crate::sources::{hold, hold_nothing, parse, root, sources};

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
    "event",
    "statement",
    "operation",
    "placement",
    "window",
    "canary",
    "A/A test",
    "calibration",
    "recall",
    "interim look",
    "decided",
    "MDE",
    "sample size",
    "discarded",
    "disturbed",
    "phase",
    "session",
    "crew",
    "measurement",
    "observer",
    "stability",
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

#[test]
fn the_glossary_has_every_word_once() {
    let text = fs::read_to_string(root().join("docs/glossary.md")).unwrap();
    hold_nothing(glossary(&text));
}

#[test]
fn a_missing_word_is_found() {
    let row = |word: &&str| format!("| {word} | what it means |\n");
    let whole: String = GLOSSARY.iter().map(row).collect();
    assert_eq!(glossary(&whole), [""; 0]);
    let found = glossary(&whole.replace("| pace |", "| speed |"));
    assert_eq!(found, ["no row explains pace"]);
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
        0 => Some(format!("no row explains {word}")),
        1 => None,
        many => Some(format!("{many} rows explain {word}")),
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
    check("crates/rqps-host/src/b.rs", "pub struct S { pub threads: u32 }", "");
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
    for name in names.1.iter().filter(|_| !path.starts_with("crates/rqps-host/src/")) {
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
