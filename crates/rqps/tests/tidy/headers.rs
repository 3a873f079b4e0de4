//! Every file states its purpose in its first line, and its name fits.

use crate::sources::{hold, is_test, parse, rust_files};

/// Names that say nothing about what is inside.
const BANNED_MODULES: &[&str] =
    &["util", "utils", "common", "helper", "helpers", "misc", "manager", "managers"];

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
    let is_declared = BANNED_MODULES.iter().any(|name| text.contains(&format!("mod {name}")));
    let declared = if is_declared { declared_modules(path, text) } else { Vec::new() };
    let names = parts.chain(declared);
    let empty = names.filter(|name| BANNED_MODULES.contains(&name.as_str()));
    empty.map(|name| format!("{path}: the name {name} does not say what is inside")).collect()
}

/// Modules that a file declares, but for those of its tests.
pub(crate) fn declared_modules(path: &str, text: &str) -> Vec<String> {
    let file = parse(path, text);
    let modules = file.items.iter().filter_map(|item| match item {
        syn::Item::Mod(module) if !is_test(&module.attrs) => Some(module.ident.to_string()),
        _ => None,
    });
    modules.collect()
}
