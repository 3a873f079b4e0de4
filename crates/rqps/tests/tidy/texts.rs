//! Texts that no file may contain, and links of documents.

use std::path::{Path, PathBuf};

use crate::sources::{hold, root, tree_files};

/// Texts that no file may contain: paths of the machine on which it was written, and hosts of
/// package registries, since the user's own clients know where to fetch. Each is written in two
/// parts, or this file would contain it.
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
    let there = |target: &Path| {
        target == Path::new("docs/a.md") || target == Path::new("crates/rqps-host/src")
    };
    let check = |path: &str, text: &str, count: usize| {
        assert_eq!(dead_links(path, text, &there).len(), count, "{text}");
    };
    check("README.md", "[a](docs/a.md) [b](docs/b.md) [c](https://example.org) [d](#d)", 1);
    check("docs/x.md", "[a](a.md#part) [up](../crates/rqps-host/src)", 0);
    check(
        "docs/x.md",
        "`crates/rqps-host/src` and `crates/gone.rs`, but `crates/rqps-dbms/src/NAME.rs` is anybody's",
        1,
    );
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
    let code = |word: &&str| {
        ["crates/", "docs/", "configs/", "scripts/"].iter().any(|d| word.starts_with(d))
    };
    let plain = |word: &&str| !word.contains(|c: char| c.is_whitespace() || "*{<…".contains(c));
    let named = text.split('`').skip(1).step_by(2).filter(code).filter(plain);
    let named = named.filter(|word| !word.contains(char::is_uppercase)).map(PathBuf::from);
    let dead = links.chain(named).map(|target| flatten(&target)).filter(|target| !there(target));
    dead.map(|target| format!("{path}: leads to {}, which is not there", target.display()))
        .collect()
}

/// Resolves `..` in a relative path.
pub(crate) fn flatten(path: &Path) -> PathBuf {
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
