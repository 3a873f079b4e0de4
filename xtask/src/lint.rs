//! Rules about documents: links lead somewhere, every page has its place, every word of the
//! glossary stands there once, and what comments cite can be opened by a reader.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use crate::Files;

const SUMMARY: &str = "docs/SUMMARY.md";
const GLOSSARY: &str = "docs/glossary.md";

/// All that is wrong. `there` tells whether a path below the root exists.
pub(crate) fn faults(files: &Files, there: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let pages: Files = files.iter().filter(|(path, _)| path.ends_with(".md")).map(owned).collect();
    let mut faults: Vec<String> =
        pages.iter().flat_map(|(path, text)| dead_links(path, text, there)).collect();
    faults.extend(lost_anchors(&pages));
    faults.extend(misplaced(&pages));
    faults.extend(pages.get(GLOSSARY).map(|text| repeated_words(text)).unwrap_or_default());
    // The samples below cite what cannot be opened.
    let own = |path: &str| path == "xtask/src/lint.rs";
    let cited = files.iter().filter(|(path, _)| !own(path));
    faults.extend(cited.clone().flat_map(|(path, text)| lost_citations(path, text)));
    faults.extend(cited.flat_map(|(path, text)| mixed_builds(path, text)));
    faults
}

fn owned((path, text): (&String, &String)) -> (String, String) {
    (path.clone(), text.clone())
}

/// Links to files that are not there, and paths in backticks that begin with a folder of code; one
/// with capitals is a pattern.
fn dead_links(path: &str, text: &str, there: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    let is_file = |link: &&str| {
        !link.contains("://") && !link.starts_with(['#', '<']) && !link.starts_with("mailto:")
    };
    let linked =
        links(text).filter(is_file).map(|link| folder.join(link.split('#').next().unwrap_or(link)));
    let code = |word: &&str| {
        ["crates/", "docs/", "configs/", "scripts/"].iter().any(|d| word.starts_with(d))
    };
    let plain = |word: &&str| {
        !word.contains(|c: char| c.is_whitespace() || c.is_uppercase() || "*{<…".contains(c))
    };
    let named = text.split('`').skip(1).step_by(2).filter(code).filter(plain).map(PathBuf::from);
    let dead = linked.chain(named).map(|target| flatten(&target)).filter(|target| !there(target));
    dead.map(|target| format!("{path}: leads to {}, which is not there", target.display()))
        .collect()
}

fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// Resolves `..` in a relative path.
fn flatten(path: &Path) -> PathBuf {
    let mut flat = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(flat.pop()),
            Component::CurDir => {}
            part => flat.push(part),
        }
    }
    flat
}

/// Links to headings that are not there.
fn lost_anchors(pages: &Files) -> Vec<String> {
    let anchors: BTreeMap<&String, BTreeSet<String>> =
        pages.iter().map(|(path, text)| (path, anchors(text))).collect();
    let mut found = Vec::new();
    for (path, text) in pages {
        for link in links(text).filter(|link| !link.contains("://")) {
            let Some((file, anchor)) = link.split_once('#') else { continue };
            let folder = Path::new(path).parent().unwrap_or(Path::new(""));
            let target = match file {
                "" => path.clone(),
                file => flatten(&folder.join(file)).display().to_string(),
            };
            if anchors.get(&target).is_some_and(|anchors| !anchors.contains(anchor)) {
                found.push(format!("{path}: no heading {link}"));
            }
        }
    }
    found
}

/// The anchors of the headings of a page.
fn anchors(text: &str) -> BTreeSet<String> {
    let (mut fenced, mut counts) = (false, BTreeMap::<String, usize>::new());
    let mut found = BTreeSet::new();
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        if fenced || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let letters = heading.trim().to_lowercase();
        let kept = letters.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let slug: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let count = counts.entry(slug.clone()).or_default();
        found.insert(match *count {
            0 => slug,
            again => format!("{slug}-{again}"),
        });
        *count += 1;
    }
    found
}

/// Pages that the summary does not have once, and links that leave the site.
fn misplaced(pages: &Files) -> Vec<String> {
    let leaves = |(path, text): (&String, &String)| {
        let leaves = path.starts_with("docs/") && text.contains("](../");
        leaves.then(|| format!("{path}: a link leaves the site"))
    };
    let mut found: Vec<String> = pages.iter().filter_map(leaves).collect();
    let summary = pages.get(SUMMARY).map_or("", String::as_str);
    let names = pages.keys().filter_map(|path| path.strip_prefix("docs/"));
    for name in names.filter(|name| !name.contains('/') && *name != "SUMMARY.md") {
        match summary.matches(&format!("]({name})")).count() {
            1 => {}
            count => found.push(format!("{SUMMARY}: {name} stands there {count} times")),
        }
    }
    found
}

/// Words of the glossary's table that have no meaning, or two.
fn repeated_words(text: &str) -> Vec<String> {
    let (mut rows, mut found) = (BTreeSet::new(), Vec::new());
    for line in text.lines().filter_map(|line| line.strip_prefix('|')) {
        let mut cells = line.split('|').map(str::trim);
        let (word, meaning) = (cells.next().unwrap_or(""), cells.next().unwrap_or(""));
        if word == "word" || word.starts_with("---") {
            continue;
        }
        if meaning.is_empty() {
            found.push(format!("{GLOSSARY}: {word} has no meaning"));
        }
        if !rows.insert(word) {
            found.push(format!("{GLOSSARY}: two rows explain {word}"));
        }
    }
    found
}

/// Examples that compare a ready-made build with one of the reader's: they come from two compilers.
fn mixed_builds(path: &str, text: &str) -> Vec<String> {
    let is_example =
        |line: &&str| ["rqps compare ", "rqps plan "].iter().any(|it| line.contains(it));
    let words = |line: &str, is: &dyn Fn(&str) -> bool| line.split_whitespace().any(is);
    let made = |word: &str| {
        let version = word.split_once('@').map_or("", |(_, version)| version);
        !word.contains(['/', ':', '#']) && version.starts_with(|c: char| c.is_ascii_digit())
    };
    let own = |word: &str| word.contains("=src:") || word.contains("=/");
    let is_mixed = |line: &&str| words(line, &made) && words(line, &own);
    let mixed = text.lines().filter(is_example).filter(is_mixed);
    mixed.map(|line| format!("{path}: builds by two compilers: {}", line.trim())).collect()
}

/// Comments and documents cite what a reader can open: files of this repository, RFCs, DOIs,
/// authors with a year.
fn lost_citations(path: &str, text: &str) -> Vec<String> {
    let texts = if path.ends_with(".md") { vec![one_line(text)] } else { comments(text) };
    let lost = |text: &String| {
        let lower = text.to_lowercase();
        let words: Vec<&str> = lower.split(' ').collect();
        let is_number = |word: &str| word.starts_with(|letter: char| letter.is_ascii_digit());
        let section = words.windows(3).any(|three| {
            three[0].trim_start_matches('(') == "section"
                && three[1].contains('.')
                && is_number(three[1])
                && three[2] == "of"
        });
        let acceptance = lower.match_indices("acceptance test ").any(|(at, found)| {
            lower[at + found.len()..].starts_with(|letter: char| letter.is_ascii_digit())
        });
        [
            ("the specification", lower.contains("the specification")),
            ("section N.N of", section),
            ("acceptance test N", acceptance),
            ("specs/", lower.contains("specs/")),
        ]
    };
    let found = texts.iter().flat_map(lost).filter(|(_, is_there)| *is_there);
    found.map(|(what, _)| format!("{path}: cites {what}, which no reader can open")).collect()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Texts of comments: lines of `//` that follow each other are one text.
fn comments(text: &str) -> Vec<String> {
    let (mut found, mut continues) = (Vec::<String>::new(), false);
    for line in text.lines() {
        let whole = line.trim_start().strip_prefix("//");
        let end = || line.split_once(" // ").map(|(_, end)| end);
        continues &= whole.is_some();
        let Some(comment) = whole.or_else(end) else { continue };
        let comment = one_line(comment.trim_start_matches(['/', '!']));
        match found.last_mut().filter(|_| continues) {
            Some(last) => *last = format!("{last} {comment}"),
            None => found.push(comment),
        }
        continues = whole.is_some();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made;

    #[test]
    fn a_dead_link_is_found() {
        let there = |target: &Path| {
            [Path::new("docs/a.md"), Path::new("crates/rqps-host/src")].contains(&target)
        };
        let check = |path: &str, text: &str, count: usize| {
            assert_eq!(dead_links(path, text, &there).len(), count, "{text}");
        };
        check("README.md", "[a](docs/a.md) [b](docs/b.md) [c](https://example.org) [d](#d)", 1);
        check("docs/x.md", "[a](a.md#part) [up](../crates/rqps-host/src)", 0);
        check("docs/x.md", "`crates/rqps-host/src` and `crates/gone.rs`, not `crates/NAME.rs`", 1);
    }

    #[test]
    fn a_link_to_no_heading_is_found() {
        let page = "# The `gate`: what, why?\n[a](#the-gate-what-why) [b](#gone) [c](y.md#x-1)\n\
                    ```sh\n# comment\n```\n[d](y.md#x-2) [e](y.md#comment) [f](https://a.b#x)\n";
        let pages = made(&[("docs/x.md", page), ("docs/y.md", "## X\n## X\n")]);
        let lost = ["#gone", "y.md#x-2", "y.md#comment"];
        assert_eq!(lost_anchors(&pages), lost.map(|link| format!("docs/x.md: no heading {link}")));
    }

    #[test]
    fn a_page_without_a_place_is_found() {
        let summary = "- [A](a.md)\n- [A](a.md)\n";
        let pages = made(&[(SUMMARY, summary), ("docs/a.md", ""), ("docs/b.md", "[c](../c.md)")]);
        let expected = [
            "docs/b.md: a link leaves the site",
            "docs/SUMMARY.md: a.md stands there 2 times",
            "docs/SUMMARY.md: b.md stands there 0 times",
        ];
        assert_eq!(misplaced(&pages), expected);
    }

    #[test]
    fn a_word_without_one_meaning_is_found() {
        assert_eq!(repeated_words("| a | x |\n| b | y |\n"), [""; 0]);
        assert_eq!(repeated_words("| a | x |\n| b | |\n| a | y |\n").len(), 2);
    }

    #[test]
    fn an_example_with_builds_by_two_compilers_is_found() {
        let check = |line: &str, count: usize| {
            assert_eq!(mixed_builds("docs/x.md", line).len(), count, "{line}");
        };
        check("    rqps compare postgres@17.2 new=postgres=/opt/new --out x", 1);
        check("    rqps compare base=postgres@17.2.0 new=postgres=src:.", 1);
        check("    rqps compare a=postgres=src:.@REL_17_2 b=postgres=src:.", 0);
        check("    rqps compare postgres@16.4.0 postgres@17.2.0 --set rows=1k", 0);
    }

    #[test]
    fn a_reference_to_nowhere_is_found() {
        let check = |path: &str, text: &str, count: usize| {
            assert_eq!(lost_citations(path, text).len(), count, "{path}: {text}");
        };
        check("x.rs", "// As the\n// specification asks.", 1);
        check("x.rs", "//! Section 2.4 of the plan.", 1);
        check("docs/x.md", "See section 12.4\nof it.", 1);
        check("docs/x.md", "Acceptance test 3 asks.", 1);
        check("x.rs", "fn f() {} // see specs/kv.md", 1);
        check("x.rs", "// RFC 5869, section 2.2; hold it against its specification.", 0);
        check("x.rs", "const A: &str = \"the specification\";", 0);
        check("docs/x.md", "Sections 3 of 4. The acceptance test of 3.", 0);
    }
}
