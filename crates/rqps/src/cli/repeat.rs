//! `rqps run BUNDLE`: repeats a bundle on this host and compares the results.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::cli::args::{Folders, Format, RunArgs};
use crate::cli::brought::{self, Consent, Origin};
use crate::cli::compared::Compared;
use crate::cli::effect::{refuse_brought_builds, shown};
use crate::cli::{colour, folders, own_workload, print};
use rqps_analysis::repetition::repeated;
use rqps_host::beneath;
use rqps_lab::benchmarks;
use rqps_lab::plan::{Plan, file};
use rqps_model::build::BuildSource;
use rqps_model::target::config_parts;
use rqps_model::{bounded, units};
use rqps_report::{render_markdown, render_text, repetition_document, repetition_json};
use rqps_results as results;
use rqps_results::bundle::{Bundle, BundledTarget};

/// Folder of the unpacked bundle, in the result folder of its repetition. Readers of results skip
/// it.
const PLACE: &str = ".bundle";

/// File of the comparison, in the result folder.
const FILE: &str = "repetition.md";

/// The plan and the folders of `rqps run BUNDLE` after unpacking, and what the user accepts.
///
/// # Errors
///
/// The file is not a bundle, or cannot be repeated here; the user does not accept it. No results
/// are written, and nothing of the bundle stays.
pub(super) fn begin(words: &RunArgs) -> Result<(Plan, Folders, Consent)> {
    if !has_form(words.printed.format) {
        bail!(
            "repeat {}: `rqps run BUNDLE` prints text, markdown or json; `rqps report` prints the \
             new results in every format",
            words.plan().display()
        );
    }
    if words.folders.configs.is_some() {
        bail!(
            "repeat {}: a bundle contains its configurations; omit --configs",
            words.plan().display()
        );
    }
    let bundle = Bundle::open(words.plan())?;
    let head = bundle.head();
    let labels: Vec<String> = head.targets.iter().map(|target| target.label.clone()).collect();
    info!(
        "rqps: repeats {}: {} files of {}, written by rqps {}",
        words.plan().display(),
        head.files.len(),
        units::bytes(bundle.bytes()),
        shown(&head.rqps_version)
    );
    let out = folders::results(words.folders.out.as_deref(), &labels);
    let is_new = !out.exists();
    let place = unpack(&bundle, &out)?;
    let accepted = accepted(words, &head.targets, (&out, &place));
    if accepted.is_err() {
        // The first error matters to the user, and the folder is new or was empty.
        beneath::remove_made(&place, None).ok();
        if is_new {
            fs::remove_dir(&out).ok();
        }
    }
    accepted
}

/// What the user accepts of an unpacked bundle.
fn accepted(
    words: &RunArgs,
    targets: &[BundledTarget],
    (out, place): (&Path, &Path),
) -> Result<(Plan, Folders, Consent)> {
    let plan = plan_of(place, targets)?;
    let configs = configs(out);
    let brings_configs = configs.is_some();
    let folders = Folders { out: Some(out.to_owned()), configs, ..words.folders.clone() };
    let (file, allow) = (words.plan(), words.allow.as_deref());
    let origin = Origin { file, allow, bundle: Some(targets), brings_configs };
    let consent = brought::ask(&plan, &origin, &folders)?;
    Ok((plan, folders, consent))
}

/// True if the comparison of both results has this format.
pub(super) fn has_form(format: Format) -> bool {
    matches!(format, Format::Text | Format::Markdown | Format::Json)
}

/// Unpacks into the result folder, which must hold no results.
fn unpack(bundle: &Bundle, out: &Path) -> Result<PathBuf> {
    let place = out.join(PLACE);
    let partial = out.join(format!("{PLACE}.partial"));
    if place.exists() && out.join("plan.toml").exists() {
        bail!(
            "repeat in {}: it holds a repetition already\nhint: resume it with `rqps run --resume \
             {}`, or choose another folder with --out",
            out.display(),
            out.display()
        );
    }
    let made = !out.exists();
    if !made {
        refuse_used(out)?;
    }
    if folders::is_in_use(out) {
        bail!("repeat in {}: another rqps is starting; wait until it ends", out.display());
    }
    // An earlier attempt ended before it measured.
    let key = folders::mark_key()?;
    for folder in [&place, &partial] {
        if let Some(own) = key.find(folder)? {
            own.remove()?;
        }
    }
    let own = key.claim(&partial)?;
    let unpacked = bundle.unpack(&partial.join("files")).map_err(anyhow::Error::from);
    let unpacked = unpacked.and_then(|()| {
        key.mark_made(&partial.join("files"))?;
        fs::rename(partial.join("files"), &place)
            .with_context(|| format!("create {}", place.display()))
    });
    own.remove()?;
    if unpacked.is_err() && made {
        // The first error matters to the user.
        fs::remove_dir(out).ok();
    }
    unpacked.map(|()| place)
}

/// Refuses a folder with other files than those of an earlier attempt.
fn refuse_used(out: &Path) -> Result<()> {
    let reading = || format!("read {}", out.display());
    for entry in fs::read_dir(out).with_context(reading)? {
        let name = entry.with_context(reading)?.file_name();
        if name != ".lock" && !name.to_string_lossy().starts_with(PLACE) {
            bail!("repeat in {}: it is not empty; choose another folder with --out", out.display());
        }
    }
    Ok(())
}

/// The plan of an unpacked bundle, with the paths of its files here.
fn plan_of(place: &Path, targets: &[BundledTarget]) -> Result<Plan> {
    let path = place.join("results/plan.toml");
    let used = || format!("use the plan {}", path.display());
    let text = bounded::text(&path, bounded::WRITTEN_MAX).with_context(used)?;
    let mut plan = file::draft(&text).with_context(used)?;
    refuse_brought_builds(&plan, place)?;
    for target in &mut plan.targets {
        // A configuration given by its path on the first host has a name in the bundle.
        let path = config_parts(&target.config).0;
        if let Some(name) = Path::new(path).file_stem().filter(|_| path.contains('/')) {
            target.config = name.to_string_lossy().into_owned() + &target.config[path.len()..];
        }
        let here = match &target.source {
            BuildSource::Path(path) => path,
            BuildSource::Source { folder, .. } => folder,
            _ => continue,
        };
        if !here.exists() {
            let builds = targets.iter().filter(|known| known.label == target.label);
            let sums =
                builds.flat_map(|known| &known.builds).filter_map(|build| build.sha256.clone());
            bail!(
                "repeat with {}: a bundle holds no builds, and {} is not on this host\nhint: {}",
                target.label,
                here.display(),
                missing_build(&target.source, &sums.collect::<Vec<_>>())
            );
        }
    }
    let files = place.join("files");
    let mut folder = PathBuf::from("/");
    if let Some(own) = benchmarks::of(&plan.workload).file.as_ref().filter(|_| files.is_dir()) {
        folder = std::path::absolute(&files).context("find the current folder")?;
        let known = (own.files)(&plan.workload);
        let known = known.into_iter().filter_map(|(name, known)| Some((name, known?))).collect();
        (own.pin)(&mut plan.workload, &folder, known);
    }
    // Files outside the bundle must be unchanged too.
    own_workload::pin(&mut plan.workload, &folder).with_context(used)?;
    Plan::build(plan).with_context(used)
}

/// A hint for a target whose build is missing; `sums` are the checksums of its builds.
fn missing_build(source: &BuildSource, sums: &[String]) -> String {
    match source {
        BuildSource::Source { .. } => "clone the repository there".to_owned(),
        _ if sums.is_empty() => "put the same build there".to_owned(),
        _ => format!("put the same build there (SHA-256 {})", sums.join(", ")),
    }
}

/// The configurations in a repetition's folder.
pub(super) fn configs(out: &Path) -> Option<PathBuf> {
    Some(out.join(PLACE).join("configs")).filter(|folder| folder.is_dir())
}

/// The results that those in this folder repeat.
pub(super) fn first_results(out: &Path) -> Option<PathBuf> {
    Some(out.join(PLACE).join("results")).filter(|folder| folder.is_dir())
}

/// Prints how the new results in `out` compare with the first ones, and writes it there.
///
/// # Errors
///
/// The first results cannot be read; the folder cannot be written.
pub(super) fn show(out: &Path, first: &Path, second: &Compared, format: Format) -> Result<()> {
    let rules = second.comparison.rules;
    let baseline = Some(second.comparison.baseline.as_str());
    let first = Compared::read(&[first.to_owned()], baseline, rules)
        .with_context(|| format!("compare with {}", first.display()))?;
    let found = repeated(&first.comparison, &second.comparison);
    let document = repetition_document(&found, &first.comparison, &second.comparison);
    let path = out.join(FILE);
    results::write_whole(&path, render_markdown(&document).as_bytes())?;
    let text = match format {
        Format::Json => repetition_json(&found)?,
        Format::Markdown => render_markdown(&document),
        _ => return Ok(colour::print(&render_text(&document, print::columns()))?),
    };
    out!("{}", text.trim_end());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let path = BuildSource::Path("/b".into());
        assert_eq!(missing_build(&path, &[]), "put the same build there");
        let sums = ["1".to_owned(), "2".to_owned()];
        assert_eq!(missing_build(&path, &sums), "put the same build there (SHA-256 1, 2)");
    }
}
