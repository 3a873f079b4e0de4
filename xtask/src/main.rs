//! What the repository checks about itself: `cargo xtask lint` reads its documents, `cargo xtask
//! weight` counts its code.

#![allow(clippy::print_stdout, clippy::print_stderr)]

mod lint;
mod weight;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::{env, fs, io};

/// Path below the root of the repository → text.
type Files = BTreeMap<String, String>;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let files = match read_tree(&root) {
        Ok(files) => files,
        Err(error) => {
            eprintln!("xtask: failed to read {}: {error}", root.display());
            return ExitCode::from(2);
        }
    };
    match env::args().nth(1).as_deref() {
        Some("lint") => {
            let faults = lint::faults(&files, &|path| root.join(path).exists());
            faults.iter().for_each(|fault| println!("{fault}"));
            ExitCode::from(u8::from(!faults.is_empty()))
        }
        Some("weight") => {
            print!("{}", weight::table(&files));
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("usage: cargo xtask lint | weight");
            ExitCode::from(2)
        }
    }
}

/// Documents and sources of the repository.
fn read_tree(root: &Path) -> io::Result<Files> {
    let (mut files, mut waiting) = (Files::new(), vec![root.to_path_buf()]);
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name());
            // What git ignores; a crate has the name of one of these folders.
            let ignored = [".git", "target", "rqps-results", "dist", "book"];
            if entry.file_type()?.is_dir() {
                if folder != root && name != "target" || !ignored.iter().any(|it| name == *it) {
                    waiting.push(path);
                }
            } else if [".md", ".rs"].iter().any(|end| name.to_string_lossy().ends_with(end)) {
                let below = path.strip_prefix(root).unwrap_or(&path).display().to_string();
                files.insert(below, fs::read_to_string(&path)?);
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
fn made(files: &[(&str, &str)]) -> Files {
    files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
}
