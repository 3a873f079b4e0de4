//! `mod.rs` is a face: what is in the folder, and what others may use of it.

use std::collections::BTreeSet;

use crate::exceptions::hold_all_but_exceptions;
use crate::graph::{Graph, Reference, references_of_sources};
use crate::sources::{Files, is_test, made, parse, short, sources};

const FACE_LINES: usize = 60;

/// Types of the rows that may stand in a face.
const ROWS: &[&str] = &["BenchmarkSpec", "DbmsSpec"];

#[test]
fn faces_only_show() {
    hold_all_but_exceptions("faces", faces(&sources(), references_of_sources()));
}

#[test]
fn a_face_that_does_something_is_found() {
    let check = |text: &str, child: &str, expected: &[&str]| {
        let files = made(&[("src/a/mod.rs", text), ("src/a/b.rs", child)]);
        let references = Graph::of(&files).references(&files);
        let found: Vec<String> = faces(&files, &references).into_iter().collect();
        assert_eq!(found, expected, "{text}: {child}");
    };
    check("//! What it is.\nmod b;\npub use b::B;\n", "pub struct B;", &[]);
    check("mod b;\nuse crate::c::D;\npub static ROW: DbmsSpec = D;\n", "", &[]);
    check("pub mod inner { pub use super::b::B; }\nmod b;", "", &[]);
    check("#[cfg(test)] mod tests { fn f() {} }", "", &[]);
    check("fn f() {}\nstruct S;", "", &["a/mod defines things"]);
    check("const ROW: OtherSpec = 1;", "", &["a/mod defines things"]);
    check("mod inner { fn f() {} }", "", &["a/mod defines things"]);
    check(&"mod b;\n".repeat(61), "", &["a/mod is longer than 60 lines"]);
    let both = ["a/b imports from its own face", "a/mod defines things"];
    check("mod b;\npub struct S;", "use super::S;", &both);
    // The name leads to where it is defined, and not to the face.
    let files = made(&[
        ("src/a/mod.rs", "mod b;\nmod c;\npub use c::C;"),
        ("src/a/b.rs", "use super::C;"),
        ("src/a/c.rs", "pub struct C;"),
    ]);
    assert_eq!(faces(&files, &Graph::of(&files).references(&files)), BTreeSet::new());
}

fn faces(files: &Files, references: &BTreeSet<Reference>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with("/mod.rs")) {
        if text.lines().count() > FACE_LINES {
            found.insert(format!("{} is longer than {FACE_LINES} lines", short(path)));
        }
        if parse(path, text).items.iter().any(does_something) {
            found.insert(format!("{} defines things", short(path)));
        }
    }
    for reference in references {
        let folder = reference.to.strip_suffix("mod.rs");
        let is_below = folder.is_some_and(|folder| reference.from.starts_with(folder));
        if is_below && reference.from != reference.to && !reference.is_module {
            found.insert(format!("{} imports from its own face", short(&reference.from)));
        }
    }
    found
}

fn does_something(item: &syn::Item) -> bool {
    let is_row = |ty: &syn::Type| match ty {
        syn::Type::Path(path) => {
            let last = path.path.segments.last();
            last.is_some_and(|last| ROWS.iter().any(|row| last.ident == row))
        }
        _ => false,
    };
    match item {
        syn::Item::Use(_) => false,
        syn::Item::Mod(module) if is_test(&module.attrs) => false,
        syn::Item::Mod(module) => {
            module.content.iter().flat_map(|(_, items)| items).any(does_something)
        }
        syn::Item::Const(item) => !is_row(&item.ty),
        syn::Item::Static(item) => !is_row(&item.ty),
        _ => true,
    }
}
