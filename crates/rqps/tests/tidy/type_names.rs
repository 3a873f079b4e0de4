//! A type name that others see means one thing, and says what.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::Visit;

use crate::exceptions::hold_all_but_exceptions;
use crate::sources::{Files, is_offered, is_test, made, parse, shipped, short};

/// Names that say nothing where they stand alone.
const BANNED: &[&str] = &[
    "Act", "Bench", "Course", "Job", "Kind", "Options", "Outfit", "Place", "Seat", "Source",
    "Stage", "Subject", "Task", "Work",
];

#[test]
fn type_names_are_unique_and_say_something() {
    hold_all_but_exceptions("type names", type_names(&shipped()));
}

#[test]
fn a_name_that_means_two_things_is_found() {
    let check = |text: &str, expected: &[&str]| {
        let files = made(&[("src/a.rs", "pub struct Run; struct Own;"), ("src/b.rs", text)]);
        let found: Vec<String> = type_names(&files).into_iter().collect();
        assert_eq!(found, expected, "{text}");
    };
    check("pub struct Walk; struct Run; pub(super) enum Own {}", &[]);
    check("pub(crate) enum Run {}", &["Run: a", "Run: b"]);
    check("pub mod c { pub trait Run {} }", &["Run: a", "Run: b"]);
    check("pub type Run = u8;", &["Run: a", "Run: b"]);
    check("#[cfg(test)] mod tests { pub struct Run; }", &[]);
    check("struct Kind;", &["Kind: b"]);
    check("struct StepKind;", &[]);
}

/// Names with the files that define them. What a macro makes is not seen.
fn type_names(files: &Files) -> BTreeSet<String> {
    let mut offered: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for (path, text) in files {
        let mut names = Names::default();
        names.visit_file(&parse(path, text));
        for (name, is_offered) in names.0 {
            if BANNED.contains(&name.as_str()) {
                found.insert(format!("{name}: {}", short(path)));
            }
            if is_offered {
                offered.entry(name).or_default().push(short(path));
            }
        }
    }
    for (name, paths) in offered.iter().filter(|(_, paths)| paths.len() > 1) {
        found.extend(paths.iter().map(|path| format!("{name}: {path}")));
    }
    found
}

/// Names of types, and whether other folders see them.
#[derive(Default)]
struct Names(Vec<(String, bool)>);

impl Visit<'_> for Names {
    fn visit_item(&mut self, item: &syn::Item) {
        let found = match item {
            syn::Item::Enum(item) => Some((&item.ident, &item.vis, &item.attrs)),
            syn::Item::Struct(item) => Some((&item.ident, &item.vis, &item.attrs)),
            syn::Item::Trait(item) => Some((&item.ident, &item.vis, &item.attrs)),
            syn::Item::Type(item) => Some((&item.ident, &item.vis, &item.attrs)),
            syn::Item::Union(item) => Some((&item.ident, &item.vis, &item.attrs)),
            syn::Item::Mod(item) if is_test(&item.attrs) => return,
            _ => None,
        };
        let found = found.filter(|(_, _, attributes)| !is_test(attributes));
        self.0.extend(found.map(|(name, vis, _)| (name.to_string(), is_offered(vis))));
        syn::visit::visit_item(self, item);
    }
}
