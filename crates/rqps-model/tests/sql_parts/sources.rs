//! The sources that the rule is held against.

use std::collections::BTreeMap;
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;
use std::sync::OnceLock;

use proc_macro2::TokenStream;
use syn::spanned::Spanned;
use syn::visit::Visit;

/// Path below the root of the repository → text.
pub(crate) type Files = BTreeMap<String, String>;

pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Sources of library and program.
fn sources() -> Files {
    let mut files = BTreeMap::new();
    let mut waiting = vec![root().join("crates")];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let below = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
                if below.contains("/src/") {
                    files.insert(below, fs::read_to_string(&path).unwrap());
                }
            }
        }
    }
    assert!(files.contains_key("crates/rqps-model/src/sql_name.rs"));
    files
}

/// Sources without those that only tests see.
pub(crate) fn shipped() -> Files {
    shipped_files().clone()
}

fn shipped_files() -> &'static Files {
    static FILES: OnceLock<Files> = OnceLock::new();
    FILES.get_or_init(|| without_tests(sources()))
}

/// A package made for a bad sample.
pub(crate) fn made(files: &[(&str, &str)]) -> Files {
    files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect()
}

pub(crate) fn parse(path: &str, text: &str) -> syn::File {
    syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub(crate) fn tokens(path: &str, text: &str) -> TokenStream {
    TokenStream::from_str(text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// `crates/rqps-host/src/proc.rs` → `host/proc`: how lists name a source.
pub(crate) fn short(path: &str) -> String {
    let path = path.strip_prefix("crates/").unwrap_or(path).replacen("/src/", "/", 1);
    let path = path.strip_prefix("rqps-").unwrap_or(&path);
    path.strip_suffix(".rs").unwrap_or(path).to_owned()
}

pub(crate) fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|ident| ident == "test")
    })
}

/// Sources without those that only tests see: `tests.rs` of a `#[cfg(test)] mod tests;`.
pub(crate) fn without_tests(mut files: Files) -> Files {
    let mut tests = Vec::new();
    for (path, text) in &files {
        // Formatted sources have the attribute on a line of its own.
        for after in text.split("#[cfg(test)]\n").skip(1) {
            let word = after.trim_start().strip_prefix("mod ").and_then(|it| it.split('\n').next());
            let folder = path.strip_suffix("mod.rs").map(str::to_string);
            let folder = folder.unwrap_or_else(|| path.replace(".rs", "/"));
            let module = word.and_then(|word| word.strip_suffix(';'));
            tests.extend(module.map(|module| format!("{folder}{module}")));
        }
    }
    files.retain(|path, _| {
        let below = |test: &String| path.strip_prefix(test.as_str());
        !tests.iter().filter_map(below).any(|rest| rest == ".rs" || rest.starts_with('/'))
    });
    files
}

/// Lines of items that only tests see.
pub(crate) fn test_lines(path: &str, text: &str) -> Vec<RangeInclusive<usize>> {
    type Known = BTreeMap<String, Vec<RangeInclusive<usize>>>;
    // Most rules ask for those of all sources.
    static KNOWN: OnceLock<Known> = OnceLock::new();
    let sources = shipped_files();
    if sources.get(path).is_none_or(|known| known != text) {
        return find_test_lines(path, text);
    }
    let find = |(path, text): (&String, &String)| (path.clone(), find_test_lines(path, text));
    KNOWN.get_or_init(|| sources.iter().map(find).collect())[path].clone()
}

fn find_test_lines(path: &str, text: &str) -> Vec<RangeInclusive<usize>> {
    struct Tests(Vec<RangeInclusive<usize>>);
    impl Visit<'_> for Tests {
        fn visit_item(&mut self, item: &syn::Item) {
            let attributes = match item {
                syn::Item::Const(item) => &item.attrs,
                syn::Item::Enum(item) => &item.attrs,
                syn::Item::Fn(item) => &item.attrs,
                syn::Item::Impl(item) => &item.attrs,
                syn::Item::Macro(item) => &item.attrs,
                syn::Item::Mod(item) => &item.attrs,
                syn::Item::Static(item) => &item.attrs,
                syn::Item::Struct(item) => &item.attrs,
                syn::Item::Trait(item) => &item.attrs,
                syn::Item::Type(item) => &item.attrs,
                syn::Item::Use(item) => &item.attrs,
                _ => &Vec::new(),
            };
            if is_test(attributes) {
                self.0.push(item.span().start().line..=item.span().end().line);
            } else {
                syn::visit::visit_item(self, item);
            }
        }
        fn visit_impl_item_fn(&mut self, item: &syn::ImplItemFn) {
            if is_test(&item.attrs) {
                self.0.push(item.span().start().line..=item.span().end().line);
            }
        }
    }
    let mut tests = Tests(Vec::new());
    if !text.contains("#[cfg(test)]") {
        return Vec::new();
    }
    tests.visit_file(&parse(path, text));
    tests.0
}

/// Whether a line is one that only tests see.
pub(crate) fn is_test_line(tests: &[RangeInclusive<usize>], line: usize) -> bool {
    tests.iter().any(|lines| lines.contains(&line))
}

#[test]
fn what_only_tests_see_is_left_out() {
    let files = made(&[
        ("src/a/mod.rs", "#[cfg(test)]\nmod tests;\nmod real;\n"),
        ("src/a/tests.rs", "fn f() {}"),
        ("src/a/tests/deep.rs", "fn f() {}"),
        ("src/a/real.rs", "#[cfg(test)]\nmod own;\n"),
        ("src/a/real/own.rs", ""),
    ]);
    let left: Vec<String> = without_tests(files).into_keys().collect();
    assert_eq!(left, ["src/a/mod.rs", "src/a/real.rs"]);
    let lines = test_lines("x", "fn f() {}\n#[cfg(test)]\nmod tests {\n}\n");
    assert_eq!(lines, [2..=4]);
}
