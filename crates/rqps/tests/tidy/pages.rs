//! The documentation as a site: every page has its place, every link to a heading finds it.

use std::collections::{BTreeMap, BTreeSet};

use crate::sources::{Files, made, tree_files};
use crate::texts::flatten;

const SUMMARY: &str = "docs/SUMMARY.md";

fn pages() -> Files {
    tree_files().into_iter().filter(|(path, _)| path.ends_with(".md")).collect()
}

#[test]
fn links_lead_to_headings() {
    let found = lost_anchors(&pages());
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_link_to_no_heading_is_found() {
    let page = "# The `gate`: what, why?\n[a](#the-gate-what-why) [b](#gone) [c](y.md#x-1)\n\
                ```sh\n# comment\n```\n[d](y.md#x-2) [e](y.md#comment) [f](https://a.example#x)\n";
    let files = made(&[("docs/x.md", page), ("docs/y.md", "## X\n## X\n")]);
    let found = lost_anchors(&files);
    let expected = [
        "docs/x.md: no heading #gone",
        "docs/x.md: no heading y.md#x-2",
        "docs/x.md: no heading y.md#comment",
    ];
    assert_eq!(found, expected);
}

/// Links to headings that are not there.
fn lost_anchors(files: &Files) -> Vec<String> {
    let anchors: BTreeMap<&String, BTreeSet<String>> =
        files.iter().map(|(path, text)| (path, anchors(text))).collect();
    let mut found = Vec::new();
    for (path, text) in files {
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://")) {
            let Some((file, anchor)) = link.split_once('#') else { continue };
            let folder = std::path::Path::new(path).parent().unwrap_or(std::path::Path::new(""));
            let target = match file.is_empty() {
                true => path.clone(),
                false => flatten(&folder.join(file)).display().to_string(),
            };
            // A file that is not there is another test's finding.
            let known = anchors.get(&target).is_none_or(|anchors| anchors.contains(anchor));
            if !known {
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
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
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

#[test]
fn every_page_has_its_place_in_the_site() {
    assert_eq!(misplaced(&pages()), [""; 0]);
}

#[test]
fn a_page_without_a_place_is_found() {
    let summary = "- [A](a.md)\n- [A](a.md)\n";
    let files = made(&[(SUMMARY, summary), ("docs/a.md", ""), ("docs/b.md", "[c](../c.md)")]);
    let expected = [
        "docs/b.md: a link leaves the site",
        "docs/SUMMARY.md: a.md stands there 2 times",
        "docs/SUMMARY.md: b.md stands there 0 times",
    ];
    assert_eq!(misplaced(&files), expected);
}

/// Pages that the summary does not have once, and links that leave the site.
fn misplaced(files: &Files) -> Vec<String> {
    let leaves = |(path, text): (&String, &String)| {
        let out = path.starts_with("docs/") && text.contains("](../");
        out.then(|| format!("{path}: a link leaves the site"))
    };
    let mut found: Vec<String> = files.iter().filter_map(leaves).collect();
    let summary = &files[SUMMARY];
    let names = files.keys().filter_map(|path| path.strip_prefix("docs/"));
    let names = names.filter(|name| !name.contains('/') && *name != "SUMMARY.md");
    let count = |name: &str| summary.matches(&format!("]({name})")).count();
    let missing = names.filter(|name| count(name) != 1);
    found.extend(
        missing.map(|name| format!("{SUMMARY}: {name} stands there {} times", count(name))),
    );
    found
}
