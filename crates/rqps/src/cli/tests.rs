//! Tests that rqps accepts every command line in the documentation's code blocks.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;

use crate::cli::args::{Arguments, Command, Compare};
use crate::cli::measure;
use crate::cli::parts::{self, Sweep};
use rqps_lab::benchmarks;
use rqps_lab::plan::words;

/// Command lines of a page with their line numbers, from fenced and indented blocks; each includes
/// its continuation lines.
fn commands(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let (mut fenced, mut goes_on) = (false, false);
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        let code = if fenced { Some(line) } else { line.strip_prefix("    ") };
        let Some(code) = code.map(str::trim) else {
            goes_on = false;
            continue;
        };
        let (part, more) = match code.strip_suffix('\\') {
            Some(part) => (part, true),
            None => (code, false),
        };
        match found.last_mut().filter(|_| goes_on) {
            Some((_, command)) => {
                command.push(' ');
                command.push_str(part);
            }
            None => {
                let part = part.strip_prefix("$ ").unwrap_or(part);
                let Some(start) = start_of_rqps(part) else { continue };
                found.push((at + 1, part[start..].to_owned()));
            }
        }
        goes_on = more;
    }
    found
}

/// The position of `rqps` in a line that runs it, after settings of variables if any.
fn start_of_rqps(line: &str) -> Option<usize> {
    let mut at = 0;
    for word in line.split_inclusive(' ') {
        let bare = word.trim_end();
        if bare == "rqps" && word.len() > bare.len() {
            return Some(at);
        }
        let name = bare.split('=').next().unwrap_or_default();
        let sets = bare.contains('=') && name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        if !(sets || bare == "sudo") {
            return None;
        }
        at += word.len();
    }
    None
}

/// The words of a command as a shell splits them, up to a pipe, a redirection or a comment.
fn split(command: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut quote) = (None::<String>, None::<char>);
    for letter in command.chars() {
        match quote {
            Some(open) if letter == open => quote = None,
            Some(_) => word.get_or_insert_default().push(letter),
            None if letter == '\'' || letter == '"' => {
                word.get_or_insert_default();
                quote = Some(letter);
            }
            None if letter.is_whitespace() => words.extend(word.take()),
            None if word.is_none() && "|&;<>#".contains(letter) => return words,
            None => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// The error of a command line; `None` if rqps accepts it and could make its plan.
fn fault(command: &str) -> Option<String> {
    let arguments = match Arguments::try_parse_from(split(command)) {
        Ok(arguments) => arguments,
        Err(error) => return Some(error.to_string()),
    };
    let targets = match &arguments.command {
        Command::Compare(compare) | Command::Plan(compare) => &compare.targets,
        Command::Count(count) => &count.targets,
        _ => return None,
    };
    // Commits are resolved in the repository of a DBMS.
    let is_commit = |word: &String| word.contains("HEAD") || word.ends_with("..");
    if targets.iter().all(is_commit) {
        return None;
    }
    if let Err(error) = words::targets(targets) {
        return Some(error.to_string());
    }
    let (Command::Compare(compare) | Command::Plan(compare)) = &arguments.command else {
        return None;
    };
    // Other benchmarks read files of the user's.
    let is_built_in = matches!(compare.shape.bench.as_slice(), [name] if !name.contains(':'));
    is_built_in.then(|| plan_fault(compare)).flatten()
}

fn plan_fault(compare: &Compare) -> Option<String> {
    let made = || -> anyhow::Result<()> {
        let sweep = Sweep::of(&compare.sweep)?;
        for part in parts::of(&compare.shape, &sweep)? {
            let plan = measure::compared(compare, &part.shape, None)?;
            plan.targets.first().map(|first| plan.phases(first)).transpose()?;
        }
        Ok(())
    };
    made().err().map(|error| format!("{error:#}"))
}

#[test]
fn command_lines_of_the_documentation_are_accepted() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let is_page = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "md");
    let mut pages: Vec<PathBuf> = docs.filter(is_page).collect();
    pages.extend(["README.md", "CONTRIBUTING.md"].map(|name| root.join(name)));
    let help = fs::read_dir(root.join("crates/rqps/src/cli/help")).unwrap();
    pages.extend(help.map(|entry| entry.unwrap().path()));
    pages.sort();
    let (mut seen, mut faults) = (0, Vec::new());
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for (line, command) in commands(&text) {
            seen += 1;
            let name = page.strip_prefix(root).unwrap().display();
            faults
                .extend(fault(&command).map(|fault| format!("{name}:{line}: {command}\n{fault}")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(seen > 80, "{seen}");
}

#[test]
fn lists_of_benchmarks_name_all() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let glossary = fs::read_to_string(root.join("docs/glossary.md")).unwrap();
    let row = glossary.lines().find(|line| line.starts_with("| benchmark |")).unwrap();
    let help = include_str!("help/benchmarks.txt");
    for spec in benchmarks::ALL {
        assert!(row.split([' ', ',', ';']).any(|word| word == spec.name), "{}: {row}", spec.name);
        assert!(help.contains(&format!("  --bench {}", spec.name)), "{}: {help}", spec.name);
    }
}

#[test]
fn commands_are_found_as_a_shell_reads_them() {
    let check = |text: &str, expected: &[&[&str]]| {
        let found: Vec<Vec<String>> =
            commands(text).iter().map(|(_, command)| split(command)).collect();
        assert_eq!(found, expected, "{text}");
    };
    check("    rqps get a # why\nrqps prose\n", &[&["rqps", "get", "a"]]);
    check("```sh\n$ rqps a \\\n  --b 'c d' | head\n```\n", &[&["rqps", "a", "--b", "c d"]]);
    check("    A=1 rqps x > y\n    echo rqps z\n", &[&["rqps", "x"]]);
    check("    sudo rqps \"\" '#'\n", &[&["rqps", "", "#"]]);
    assert!(fault("rqps compare oracle@23").unwrap().contains("unknown DBMS"));
    assert!(fault("rqps report --colour DIR").is_some());
    assert!(fault("rqps report DIR").is_none());
}
