//! Limits of the lengths of lines, functions and files.

use syn::spanned::Spanned;
use syn::visit::Visit;

use crate::exceptions::hold_all_but_exceptions;
use crate::sources::*;

const FUNCTION_LINES: usize = 70;

const LINE_COLUMNS: usize = 100;

/// Lines of a file without what only tests see.
const FILE_LINES: usize = 500;
/// Public items of a file: a reader who comes from elsewhere has to choose among them.
const PUBLIC_ITEMS: usize = 25;

#[test]
fn functions_are_short() {
    hold(rust_files(), |path, text| {
        long_functions(path, text).into_iter().map(|(_, text)| text).collect()
    });
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
    if text.lines().count() <= FUNCTION_LINES {
        return Vec::new();
    }
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

#[test]
fn files_are_short_and_offer_little() {
    let files = shipped();
    hold_all_but_exceptions("limits", files.iter().flat_map(|(path, text)| large(path, text)));
}

#[test]
fn a_file_that_is_too_large_is_found() {
    let lines = |count: usize| "const A: u8 = 1;\n".repeat(count);
    let check = |text: &str, expected: &[&str]| assert_eq!(large("src/a/x.rs", text), expected);
    check(&lines(500), &[]);
    check(&lines(501), &["a/x has up to 550 lines"]);
    check(&lines(550), &["a/x has up to 550 lines"]);
    check(&lines(551), &["a/x has up to 600 lines"]);
    check(&format!("{}#[cfg(test)]\nmod t {{\n{}}}\n", lines(499), lines(99)), &[]);
    let offers = |count: usize| "pub(crate) fn f() {}\n".repeat(count);
    check(&format!("{}fn f() {{}}\npub(super) fn g() {{}}\npub use a::B;", offers(25)), &[]);
    check(&offers(26), &["a/x has up to 30 public items"]);
    check(&format!("{}impl X {{ pub fn f() {{}} }}", offers(25)), &[]);
}

/// Numbers are rounded up, so that not every change of a long file changes the list.
fn large(path: &str, text: &str) -> Vec<String> {
    let tests: usize = test_lines(path, text).into_iter().map(Iterator::count).sum();
    let lines = text.lines().count() - tests;
    let most = text.matches("pub").count();
    let items = if most > PUBLIC_ITEMS { public_items(&parse(path, text)) } else { 0 };
    let mut found = Vec::new();
    if lines > FILE_LINES {
        found.push(format!("{} has up to {} lines", short(path), lines.next_multiple_of(50)));
    }
    if items > PUBLIC_ITEMS {
        found.push(format!("{} has up to {} public items", short(path), items.next_multiple_of(5)));
    }
    found
}

/// Items of a file that other folders may name; what it passes on and what belongs to a type do
/// not count.
fn public_items(file: &syn::File) -> usize {
    let items = file.items.iter().filter_map(|item| match item {
        syn::Item::Const(item) => Some((&item.vis, &item.attrs)),
        syn::Item::Enum(item) => Some((&item.vis, &item.attrs)),
        syn::Item::Fn(item) => Some((&item.vis, &item.attrs)),
        syn::Item::Static(item) => Some((&item.vis, &item.attrs)),
        syn::Item::Struct(item) => Some((&item.vis, &item.attrs)),
        syn::Item::Trait(item) => Some((&item.vis, &item.attrs)),
        syn::Item::Type(item) => Some((&item.vis, &item.attrs)),
        syn::Item::Union(item) => Some((&item.vis, &item.attrs)),
        _ => None,
    });
    items.filter(|(vis, attributes)| is_offered(vis) && !is_test(attributes)).count()
}
