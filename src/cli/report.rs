//! `rqps report`: what result folders hold, in a form of the reader's choice.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};

use crate::cli::args::{self, Report};
use crate::cli::exit;
use crate::report::Format;
use crate::{analyze, report, results};

/// `rqps report`.
pub(super) fn print(words: &Report) -> Result<u8> {
    let text = render(&words.folders, words.base.as_deref(), words.format)?;
    match &words.output {
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("write {}", path.display()))?;
        }
        None => to_stdout(&text)?,
    }
    Ok(exit::FINE)
}

/// The report of a result folder that was just written.
pub(super) fn print_folder(folder: &Path, format: args::Format) -> Result<()> {
    to_stdout(&render(&[folder], None, format)?)
}

fn render(
    folders: &[impl AsRef<Path>],
    base: Option<&str>,
    format: args::Format,
) -> Result<String> {
    let folders: Vec<_> = folders.iter().map(|folder| folder.as_ref().to_owned()).collect();
    let dataset = results::read(&folders).context("read the results")?;
    let options = analyze::Options::with_base(base);
    let comparison = analyze::compare(&dataset, &options).context("compare the runs")?;
    let format = match format {
        args::Format::Text => Format::Text,
        args::Format::Tsv => Format::Tsv,
        args::Format::Csv => Format::Csv,
        args::Format::Json => Format::Json,
    };
    Ok(report::render(&comparison, format))
}

fn to_stdout(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    Ok(())
}
