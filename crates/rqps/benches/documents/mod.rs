//! The parts of README.md and docs that show what a stored run printed: each stands below a comment
//! that names its source.
//!
//!     <!-- from outputs/quickstart.txt: 3-6, 29-36 -->
//!     <!-- from time_left.csv -->
//!
//! The first is followed by a block of these lines, or of all, with an empty line between ranges;
//! the second by a table of the findings.

use std::fs;
use std::iter::Peekable;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

#[path = "../time_left/table.rs"]
mod table;

const BEGIN: &str = "<!-- from ";
const END: &str = " -->";

/// A page, as it is and as its sources make it.
pub(crate) struct Document {
    pub(crate) path: PathBuf,
    pub(crate) kept: String,
    pub(crate) made: String,
}

/// All pages with such parts in a clone.
///
/// # Errors
/// A source does not exist, or has not the lines.
pub(crate) fn read(root: &Path) -> Result<Vec<Document>> {
    let docs = root.join("docs");
    let mut paths = vec![root.join("README.md")];
    for entry in fs::read_dir(&docs).context("list docs")? {
        paths.push(entry?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.sort();
    let mut documents = Vec::new();
    for path in paths {
        let kept = fs::read_to_string(&path)?;
        if kept.contains(BEGIN) {
            let made = remade(&kept, &docs).with_context(|| format!("make {}", path.display()))?;
            documents.push(Document { path, kept, made });
        }
    }
    Ok(documents)
}

fn remade(text: &str, docs: &Path) -> Result<String> {
    let mut made = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        made.push_str(line);
        made.push('\n');
        let source = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(END));
        let Some(source) = source else { continue };
        made.push_str(&part(source, docs).with_context(|| source.to_owned())?);
        skip_part(&mut lines);
    }
    Ok(made)
}

/// Passes over what stands there now: a fenced block, or a table.
fn skip_part<'a>(lines: &mut Peekable<impl Iterator<Item = &'a str>>) {
    if lines.next_if(|line| line.starts_with("```")).is_none() {
        while lines.next_if(|line| line.starts_with('|')).is_some() {}
        return;
    }
    for line in lines {
        if line.starts_with("```") {
            break;
        }
    }
}

fn part(source: &str, docs: &Path) -> Result<String> {
    let (file, ranges) = source.split_once(": ").unwrap_or((source, ""));
    let stored = fs::read_to_string(docs.join(file)).context("read the source")?;
    match file.rsplit_once('.') {
        Some((_, "csv")) => Ok(table::markdown(&table::read(&stored)?)),
        Some((_, "txt")) => Ok(format!("```text\n{}\n```\n", chosen(&stored, ranges)?)),
        _ => bail!("the source is no CSV file and no text"),
    }
}

/// Lines by number, from 1, ends included; all without a range.
fn chosen(stored: &str, ranges: &str) -> Result<String> {
    if ranges.is_empty() {
        return Ok(stored.trim_end().to_owned());
    }
    let lines: Vec<&str> = stored.lines().collect();
    let of_range = |range: &str| {
        let (from, to) = range.split_once('-').context("a range such as 3-6")?;
        let (from, to): (usize, usize) = (from.trim().parse()?, to.trim().parse()?);
        ensure!(1 <= from && from <= to && to <= lines.len(), "it has not the lines {range}");
        Ok(lines[from - 1..to].join("\n"))
    };
    let parts: Result<Vec<String>> = ranges.split(',').map(of_range).collect();
    Ok(parts?.join("\n\n"))
}
