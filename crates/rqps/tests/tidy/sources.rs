//! The files that rules are held against, and what rules are made with.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;
use std::sync::OnceLock;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use syn::spanned::Spanned;
use syn::visit::Visit;

/// Path below the root of the repository → text.
pub(crate) type Files = BTreeMap<String, String>;

pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Path below the root and text, of each text file that belongs to it.
pub(crate) fn tree_files() -> Files {
    static FILES: OnceLock<Files> = OnceLock::new();
    FILES.get_or_init(read_tree).clone()
}

fn read_tree() -> Files {
    let mut files = BTreeMap::new();
    let mut waiting = vec![root().to_path_buf()];
    let others = BTreeSet::from([".git", "target", "rqps-results", "node_modules", "dist", "book"]);
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
pub(crate) fn sources() -> Files {
    rust_files().into_iter().filter(|(path, _)| path.contains("/src/")).collect()
}

/// Sources without those that only tests see.
pub(crate) fn shipped() -> Files {
    shipped_files().clone()
}

fn shipped_files() -> &'static Files {
    static FILES: OnceLock<Files> = OnceLock::new();
    FILES.get_or_init(|| without_tests(sources()))
}

/// Sources, tests and benches.
pub(crate) fn rust_files() -> Files {
    let files: Files = tree_files().into_iter().filter(|(path, _)| path.ends_with(".rs")).collect();
    assert!(files.contains_key("crates/rqps/tests/tidy/main.rs"));
    files
}

/// A package made for a bad sample.
pub(crate) fn made(files: &[(&str, &str)]) -> Files {
    files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect()
}

/// Holds a rule against files and shows all that it found.
pub(crate) fn hold(files: Files, mut rule: impl FnMut(&str, &str) -> Vec<String>) {
    let found: Vec<String> = files.iter().flat_map(|(path, text)| rule(path, text)).collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
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

/// Shows all that a rule found.
pub(crate) fn hold_nothing(found: impl IntoIterator<Item = String>) {
    let found: Vec<String> = found.into_iter().collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

pub(crate) fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    let mark = |at: usize| match tokens.get(at) {
        Some(TokenTree::Punct(mark)) => Some((mark.as_char(), mark.spacing())),
        _ => None,
    };
    mark(at) == Some((':', Spacing::Joint)) && mark(at + 1).is_some_and(|(mark, _)| mark == ':')
}

/// All words and marks with their lines, `::` as one, brackets as marks. Literals and comments are
/// empty words, so that nothing in them is found.
pub(crate) fn flat(stream: TokenStream) -> Vec<(String, usize)> {
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
