//! The graph of references: paths in sources, resolved to the files that define the named items.
//!
//! Aliases and re-exports are followed, `super` and modules in braces are understood, test code is
//! left out. What a macro makes is taken to stand in the file of its module.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::sources::*;

/// Names from the root of the crate down.
type Path = Vec<String>;

/// One file names something of another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reference {
    pub(crate) from: String,
    /// The file that defines it.
    pub(crate) to: String,
    /// The names that lead there as they are written, from the root down.
    pub(crate) names: Vec<String>,
    /// A module as a whole is named, as in `use crate::stats;`.
    pub(crate) is_module: bool,
    /// The name is only passed on: `pub use`.
    pub(crate) is_passed_on: bool,
    /// `super` climbs out of the topmost module.
    pub(crate) is_beyond: bool,
}

#[derive(Default)]
struct Module {
    file: String,
    items: BTreeSet<String>,
    exported_macros: Vec<String>,
    /// Name → what it stands for, as it is written.
    aliases: BTreeMap<String, Path>,
    globs: Vec<Path>,
}

/// All modules of the crate.
#[derive(Default)]
pub(crate) struct Graph {
    modules: BTreeMap<Path, Module>,
}

/// The references between the sources of the package, without their tests.
pub(crate) fn references_of_sources() -> &'static BTreeSet<Reference> {
    static FOUND: OnceLock<BTreeSet<Reference>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let files = shipped();
        Graph::of(&files).references(&files)
    })
}

enum Found {
    File(String),
    Module(String),
}

/// `src/a/mod.rs` → a, `src/a/b.rs` → a, b, `src/lib.rs` → nothing.
fn module_path(file: &str) -> Path {
    let below = file.strip_prefix("src/").unwrap_or(file);
    let below = below.strip_suffix(".rs").unwrap_or(below);
    let below = below.strip_suffix("/mod").unwrap_or(below);
    below.split('/').filter(|part| *part != "lib").map(str::to_string).collect()
}

fn is_exported(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("macro_export"))
}

/// The longest chain of aliases that is followed; names of others may stand for each other.
const DEPTH: usize = 16;

impl Graph {
    /// The graph of sources without tests.
    pub(crate) fn of(files: &Files) -> Graph {
        let mut graph = Graph::default();
        for (file, text) in files {
            graph.add(file, module_path(file), &parse(file, text).items);
        }
        graph
    }

    /// An exported macro is a name of the root, wherever it stands: its path with its module.
    fn home_of_macro(&self, path: Path) -> Path {
        let home = |name: &String| {
            let holds = |module: &&Path| self.modules[*module].exported_macros.contains(name);
            self.modules.keys().find(holds)
        };
        match path.as_slice() {
            [name] => home(name).map_or(path.clone(), |module| [module.as_slice(), &path].concat()),
            _ => path,
        }
    }

    fn add(&mut self, file: &str, path: Path, items: &[syn::Item]) {
        let mut module = Module { file: file.to_string(), ..Module::default() };
        for item in items {
            let name = match item {
                syn::Item::Struct(item) => Some(&item.ident),
                syn::Item::Enum(item) => Some(&item.ident),
                syn::Item::Union(item) => Some(&item.ident),
                syn::Item::Trait(item) => Some(&item.ident),
                syn::Item::Type(item) => Some(&item.ident),
                syn::Item::Const(item) => Some(&item.ident),
                syn::Item::Static(item) => Some(&item.ident),
                syn::Item::Fn(item) => Some(&item.sig.ident),
                syn::Item::Macro(item) if is_exported(&item.attrs) => item.ident.as_ref(),
                _ => None,
            };
            if matches!(item, syn::Item::Macro(_)) {
                module.exported_macros.extend(name.map(syn::Ident::to_string));
            }
            module.items.extend(name.map(syn::Ident::to_string));
            match item {
                syn::Item::Use(item) if !is_test(&item.attrs) => {
                    module.import(&item.tree, &mut Vec::new());
                }
                syn::Item::Mod(item) if !is_test(&item.attrs) => {
                    if let Some((_, items)) = &item.content {
                        let below = [path.clone(), vec![item.ident.to_string()]].concat();
                        self.add(file, below, items);
                    }
                }
                _ => {}
            }
        }
        self.modules.insert(path, module);
    }

    /// A path as it is written in `module`, from the root; nothing for what is of another crate.
    fn absolute(&self, written: &[String], module: &[String], depth: usize) -> Option<Path> {
        let first = written.first()?;
        let rest = || &written[1..];
        match first.as_str() {
            "crate" => return Some(rest().to_vec()),
            "self" => return Some([module, rest()].concat()),
            "super" => {
                let (_, parent) = module.split_last()?;
                let rest = rest();
                let again = rest.first().is_some_and(|word| word == "super");
                return match again {
                    true => self.absolute(rest, parent, depth),
                    false => Some([parent, rest].concat()),
                };
            }
            _ => {}
        }
        let here = self.modules.get(module)?;
        if self.modules.contains_key(&[module, std::slice::from_ref(first)].concat())
            || here.items.contains(first)
        {
            return Some([module, written].concat());
        }
        let alias = here.aliases.get(first).filter(|_| depth > 0)?;
        // `use serde;` stands for itself.
        let target = match alias.first() == Some(first) {
            true => return None,
            false => self.absolute(alias, module, depth - 1)?,
        };
        Some([&target, rest()].concat())
    }

    fn find(&self, path: &[String], depth: usize) -> Option<Found> {
        let deepest =
            (0..=path.len()).rev().find(|end| self.modules.contains_key(&path[..*end]))?;
        let module = &self.modules[&path[..deepest]];
        let Some(name) = path.get(deepest) else {
            return Some(Found::Module(module.file.clone()));
        };
        if name == "*" || depth == 0 || module.items.contains(name) {
            return Some(Found::File(module.file.clone()));
        }
        let follow = |target: &[String], rest: &[String]| {
            let target = self.absolute(target, &path[..deepest], depth)?;
            self.find(&[&target, rest].concat(), depth - 1)
        };
        if let Some(alias) = module.aliases.get(name) {
            return follow(alias, &path[deepest + 1..]);
        }
        for glob in &module.globs {
            let target = self.absolute(glob, &path[..deepest], depth);
            let known = target.and_then(|target| self.modules.get(&target));
            if known.is_some_and(|it| it.items.contains(name) || it.aliases.contains_key(name)) {
                return follow(glob, &path[deepest..]);
            }
        }
        Some(Found::File(module.file.clone()))
    }

    /// All that the files name of each other. `files` are those that the graph was made of.
    pub(crate) fn references(&self, files: &Files) -> BTreeSet<Reference> {
        let mut all = BTreeSet::new();
        for (from, text) in files {
            let mut words = Words { tests: test_lines(from, text), found: Vec::new() };
            words.collect(tokens(from, text), module_path(from));
            for (module, written, is_passed_on) in words.found {
                let climbs = written.iter().take_while(|word| *word == "super").count();
                let is_beyond = climbs > 0 && climbs >= module.len();
                let absolute = self.absolute(&written, &module, DEPTH);
                let absolute = absolute.map(|path| self.home_of_macro(path));
                let found = absolute.as_ref().and_then(|path| self.find(path, DEPTH));
                let (to, is_module) = match found {
                    Some(Found::File(to)) => (to, false),
                    Some(Found::Module(to)) => (to, true),
                    None if is_beyond => (String::new(), true),
                    None => continue,
                };
                let (from, names) = (from.clone(), absolute.unwrap_or_default());
                all.insert(Reference { from, to, names, is_module, is_passed_on, is_beyond });
            }
        }
        all
    }
}

impl Module {
    fn import(&mut self, tree: &syn::UseTree, prefix: &mut Path) {
        match tree {
            syn::UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.import(&path.tree, prefix);
                prefix.pop();
            }
            syn::UseTree::Name(name) if name.ident == "self" => {
                let last = prefix.last().cloned().unwrap_or_default();
                self.aliases.insert(last, prefix.clone());
            }
            syn::UseTree::Name(name) => {
                let name = name.ident.to_string();
                self.aliases.insert(name.clone(), [&prefix[..], &[name]].concat());
            }
            syn::UseTree::Rename(rename) => {
                let path = match rename.ident == "self" {
                    true => prefix.clone(),
                    false => [&prefix[..], &[rename.ident.to_string()]].concat(),
                };
                self.aliases.insert(rename.rename.to_string(), path);
            }
            syn::UseTree::Glob(_) => self.globs.push(prefix.clone()),
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.import(tree, prefix));
            }
        }
    }
}

/// Paths as they are written: the module around them, their words, whether they are passed on.
struct Words {
    tests: Vec<std::ops::RangeInclusive<usize>>,
    found: Vec<(Path, Path, bool)>,
}

impl Words {
    /// Macros and braces included: what is in them may be code.
    fn collect(&mut self, stream: TokenStream, module: Path) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        for at in 0..tokens.len() {
            if is_test_line(&self.tests, tokens[at].span().start().line) {
                continue;
            }
            let after_colons = at >= 2 && is_colons(&tokens, at - 2);
            match &tokens[at] {
                TokenTree::Group(group) if !after_colons => {
                    let name = at.checked_sub(2).filter(|it| is_word(&tokens[*it], "mod"));
                    let inner = name.map(|_| tokens[at - 1].to_string());
                    let braces = group.delimiter() == Delimiter::Brace;
                    let below = inner.filter(|_| braces).into_iter().collect();
                    self.collect(group.stream(), [module.clone(), below].concat());
                }
                TokenTree::Ident(_) if !after_colons && is_colons(&tokens, at + 1) => {
                    let is_field = at > 0
                        && matches!(&tokens[at - 1], TokenTree::Punct(it) if it.as_char() == '.');
                    let mut paths = Vec::new();
                    use_tree(&tokens[at..], &[], &mut paths);
                    let passed_on = is_passed_on(&tokens[..at]);
                    let found = paths.into_iter().filter(|_| !is_field);
                    self.found.extend(found.map(|path| (module.clone(), path, passed_on)));
                }
                _ => {}
            }
        }
    }
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}

/// Whether `pub use` or `pub(crate) use` ends the tokens.
fn is_passed_on(before: &[TokenTree]) -> bool {
    let Some((last, rest)) = before.split_last().filter(|(last, _)| is_word(last, "use")) else {
        return false;
    };
    debug_assert!(is_word(last, "use"));
    match rest.last() {
        Some(TokenTree::Group(_)) => rest.len() >= 2 && is_word(&rest[rest.len() - 2], "pub"),
        Some(token) => is_word(token, "pub"),
        None => false,
    }
}

/// Reads `a::b::{c, d::e}` from the front of `tokens` into `prefix::a::b::c` and so on.
fn use_tree(tokens: &[TokenTree], prefix: &[String], paths: &mut Vec<Path>) {
    match tokens.first() {
        // `a::{self}` is `a`.
        Some(token) if is_word(token, "self") && !prefix.is_empty() => paths.push(prefix.to_vec()),
        Some(TokenTree::Ident(ident)) => {
            let path = [prefix, &[ident.to_string()]].concat();
            match is_colons(tokens, 1) {
                true => use_tree(&tokens[3..], &path, paths),
                false => paths.push(path),
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
        Some(TokenTree::Punct(punct)) if punct.as_char() == '*' => {
            paths.push([prefix, &["*".to_string()]].concat());
        }
        // A turbofish ends a path.
        _ => paths.push(prefix.to_vec()),
    }
}

#[test]
fn names_are_followed_to_the_files_that_define_them() {
    let files = crate::sources::made(&[
        ("src/lib.rs", "pub mod a; pub mod b;"),
        ("src/a/mod.rs", "mod deep; pub use deep::Deep; pub use deep::more::*; pub fn own() {}"),
        ("src/a/deep.rs", "pub struct Deep; pub mod more { pub struct More; } made!(Macro);"),
        ("src/a/side.rs", ""),
        ("src/b.rs", ""),
    ]);
    let check = |path: &str, text: &str, expected: &[(&str, bool)]| {
        let mut files = files.clone();
        files.insert(path.to_string(), text.to_string());
        let references = Graph::of(&files).references(&files);
        let found: Vec<(String, bool)> = references
            .into_iter()
            .filter(|it| it.from == path)
            .map(|it| (it.to.replace("src/", ""), it.is_module))
            .collect();
        let expected: Vec<(String, bool)> =
            expected.iter().map(|(to, is_module)| (to.to_string(), *is_module)).collect();
        assert_eq!(found, expected, "{path}: {text}");
    };
    check("src/b.rs", "use crate::a::Deep;", &[("a/deep.rs", false)]);
    check("src/b.rs", "use crate::a::More;", &[("a/deep.rs", false)]);
    check(
        "src/b.rs",
        "use crate::a::{own, Deep as D};",
        &[("a/deep.rs", false), ("a/mod.rs", false)],
    );
    check(
        "src/b.rs",
        "fn f() -> crate::a::Deep { g!(crate::a::own()) }",
        &[("a/deep.rs", false), ("a/mod.rs", false)],
    );
    check("src/b.rs", "use crate::a;", &[("a/mod.rs", true)]);
    check(
        "src/b.rs",
        "use crate::a::{self}; fn f() { a::Deep::new() }",
        &[("a/deep.rs", false), ("a/mod.rs", true)],
    );
    check("src/b.rs", "use crate::a::Macro;", &[("a/mod.rs", false)]);
    check("src/a/side.rs", "use super::Deep;", &[("a/deep.rs", false)]);
    check(
        "src/a/side.rs",
        "use super::own; use std::fs; fn f() { fs::read(); }",
        &[("a/mod.rs", false)],
    );
    check("src/a/side.rs", "mod inner { use super::super::own; }", &[("a/mod.rs", false)]);
    check("src/a/side.rs", "#[cfg(test)] mod tests { use super::super::own; }", &[]);
    check("src/a/side.rs", "use super::super::b::X;", &[("b.rs", false)]);
    check("src/lib.rs", "pub mod a; fn f() { a::own(); }", &[("a/mod.rs", false)]);
}
