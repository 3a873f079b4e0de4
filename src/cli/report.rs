//! `rqps report`: reports on result folders in one of several formats.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::analyze::Comparison;
use crate::analyze::comparison::StepComparison;
use crate::cli::args::{self, Report, RuleOptions};
use crate::cli::compared::Compared;
use crate::cli::{colour, exit, gate, repeat};
use crate::domain::run::{Run, Status, StepRecord};
use crate::report::Format;
use crate::report::html::{self, Material, SitePage};
use crate::{benchmarks, results};

/// File name of the HTML report in a result folder.
pub(super) const FILE: &str = "report.html";

/// `rqps report`.
pub(super) fn print(words: &Report) -> Result<u8> {
    let mut found = read(&words.folders, words.baseline.as_deref(), &words.rules)?;
    found.comparison.hides_terms = words.no_terms;
    match &words.output {
        Some(path) => found.save(path, words.format)?,
        None => found.show(words.format)?,
    }
    Ok(ended(&found.comparison))
}

/// Exit code of a command that reports on runs: an error, with a message, if no run has a number,
/// because the output looks like a report.
pub(super) fn ended(comparison: &Comparison) -> u8 {
    let measured = |step: &StepComparison| step.targets.iter().any(|one| !one.samples.is_empty());
    if comparison.steps.iter().any(measured) {
        return exit::FINE;
    }
    let runs = &comparison.runs;
    let failed = runs.iter().filter(|run| matches!(run.status, Status::Failed(_))).count();
    complain!("rqps: no measured step: {failed} of {} runs failed", runs.len());
    let first = runs.iter().find_map(|run| match &run.status {
        Status::Failed(why) => Some((&run.folder, why.trim())),
        _ => None,
    });
    if let Some((folder, why)) = first {
        complain!("{folder}: {why}");
    }
    complain!("hint: fix the cause and resume with `rqps run --resume DIR`");
    exit::RUN_FAILED
}

/// Prints the report of a new result folder and writes it there as HTML.
pub(super) fn of_new_results(
    folder: &Path,
    format: args::Format,
    rules: &RuleOptions,
) -> Result<()> {
    let found = read(&[folder.to_owned()], None, rules)?;
    let page = folder.join(FILE);
    found.save(&page, args::Format::Html)?;
    match repeat::first_results(folder) {
        Some(first) if repeat::has_form(format) => repeat::show(folder, &first, &found, format)?,
        _ => found.show(format)?,
    }
    tell!("rqps: open {}", page.display());
    Ok(())
}

fn read(folders: &[PathBuf], baseline: Option<&str>, rules: &RuleOptions) -> Result<Compared> {
    Ok(Compared::read(folders, baseline, gate::rules(folders, rules)?)?.explained())
}

impl Compared {
    /// Writes the report to a file.
    fn save(&self, path: &Path, format: args::Format) -> Result<()> {
        let doing = || format!("write {}", path.display());
        match without_page(format) {
            Some(format) => {
                let mut file = File::create(path).with_context(doing)?;
                benchmarks::write_report(&self.comparison, format, &mut file).with_context(doing)
            }
            None => fs::write(path, self.page(folder_of(path))?).with_context(doing),
        }
    }

    /// Prints the report.
    fn show(&self, format: args::Format) -> Result<()> {
        if without_page(format) == Some(Format::Text) {
            let mut text = Vec::new();
            benchmarks::write_report(&self.comparison, Format::Text, &mut text)?;
            return Ok(colour::print(&String::from_utf8_lossy(&text))?);
        }
        let mut stdout = std::io::stdout().lock();
        match without_page(format) {
            Some(format) => benchmarks::write_report(&self.comparison, format, &mut stdout)?,
            None => stdout.write_all(self.page(Path::new("."))?.as_bytes())?,
        }
        Ok(stdout.flush()?)
    }

    /// The report as HTML for the folder `place`, to which its links are relative.
    pub(super) fn page(&self, place: &Path) -> Result<String> {
        self.rendered(place, html::render)
    }

    /// The report as a page of a site, in the folder `place`; `root` leads from there to the site.
    pub(super) fn site_page(&self, place: &Path, root: &str) -> Result<SitePage> {
        self.rendered(place, |material| html::render_for_site(material, root))
    }

    fn rendered<T>(&self, place: &Path, render: impl Fn(&Material) -> T) -> Result<T> {
        let mut links = BTreeMap::new();
        for run in &self.dataset.runs {
            let link = relative(place, Path::new(&run.folder))?;
            links.insert(run.folder.clone(), link.to_string_lossy().into_owned());
        }
        let seconds = |run: &Run, step: &StepRecord| {
            results::seconds_of(run, step).map_err(|error| error.to_string())
        };
        Ok(render(&Material {
            comparison: &self.comparison,
            dataset: &self.dataset,
            seconds: &seconds,
            links: &links,
            own: &benchmarks::sections(),
        }))
    }
}

/// The format of a report that needs only a comparison; `None` for HTML.
fn without_page(format: args::Format) -> Option<Format> {
    Some(match format {
        args::Format::Html => return None,
        args::Format::Text => Format::Text,
        args::Format::Tsv => Format::Tsv,
        args::Format::Csv => Format::Csv,
        args::Format::Json => Format::Json,
        args::Format::Markdown => Format::Markdown,
    })
}

/// The folder of a file.
fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The relative path from one folder to another; both must exist.
pub(super) fn relative(from: &Path, to: &Path) -> Result<PathBuf> {
    let real = |path: &Path| {
        std::fs::canonicalize(path).with_context(|| format!("find {}", path.display()))
    };
    let (from, to) = (real(from)?, real(to)?);
    let shared = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(shared).map(|_| Path::new("..").as_os_str());
    let down = to.components().skip(shared).map(|part| part.as_os_str());
    Ok(up.chain(down).collect())
}
