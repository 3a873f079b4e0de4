//! The size of the product: lines of code outside tests, and files.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::Files;

/// Lines of code and files of each crate, and of all.
pub(crate) fn table(files: &Files) -> String {
    let mut crates: BTreeMap<&str, usize> = BTreeMap::new();
    for (path, text) in files {
        let Some((name, file)) =
            path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"))
        else {
            continue;
        };
        let is_test = file.split('/').any(|part| matches!(part, "tests" | "tests.rs"));
        if file.ends_with(".rs") && !is_test {
            *crates.entry(name).or_default() += lines_of_code(text);
        }
    }
    let mut table = String::new();
    for (name, lines) in &crates {
        writeln!(table, "{lines:>7}  {name}").ok();
    }
    let (all, sources) = (crates.values().sum::<usize>(), |path: &&String| path.ends_with(".rs"));
    let sources = files.keys().filter(sources).count();
    writeln!(table, "{all:>7}  lines of code without tests; {sources} files of Rust").ok();
    table
}

/// Lines that are neither blank nor comments nor in a module of tests.
fn lines_of_code(text: &str) -> usize {
    let (mut count, mut lines) = (0, text.lines().peekable());
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        if code == "#[cfg(test)]" && lines.peek().is_some_and(|next| is_module(next)) {
            // Formatted sources close a module at its own depth.
            let close = format!("{}}}", &line[..line.len() - code.len()]);
            lines.by_ref().find(|line| *line == close);
        } else if !code.is_empty() && !code.starts_with("//") {
            count += 1;
        }
    }
    count
}

fn is_module(line: &str) -> bool {
    let code = line.trim_start();
    let is_named = code.starts_with("mod ") || code.starts_with("pub") && code.contains(" mod ");
    is_named && line.ends_with('{')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_is_neither_comment_nor_test() {
        let text = "//! a\nfn f() {\n\n    // b\n    g() // c\n}\n#[cfg(test)]\nmod tests {\n    \
                    fn h() {}\n}\n#[cfg(test)]\nfn i() {}\n#[cfg(test)]\npub(in crate::a) mod tests {\n}\n";
        let files = crate::made(&[
            ("crates/a/src/lib.rs", text),
            ("crates/a/src/b/tests.rs", text),
            ("crates/a/tests/x.rs", text),
        ]);
        assert_eq!(
            table(&files),
            "      5  a\n      5  lines of code without tests; 3 files of Rust\n"
        );
    }
}
