//! `rqps bundle`: packs a result folder and everything needed to repeat it into one file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::cli::args::{BundleArgs, Folders, Format, RuleOptions, RunArgs};
use crate::cli::effect::{refuse_brought_builds, shown};
use crate::cli::questions::{self, Consent, Origin};
use crate::cli::report::{self, Compared};
use crate::cli::{exit, folders, gate, own_workload, terminal};
use rqps_analysis::repetition::repeated;
use rqps_dbms as dbms;
use rqps_host::beneath;
use rqps_lab::benchmarks;
use rqps_lab::plan::{Plan, file, words};
use rqps_model::build::{BuildSource, Dbms, Target, Version, config_parts};
use rqps_model::run::Run;
use rqps_model::{bounded, safe_path, units};
use rqps_report::{render_markdown, render_text, repetition_document, repetition_json};
use rqps_results as results;
use rqps_results::ResultSet;
use rqps_results::bundle::{
    BUNDLE_FORMAT, Bundle, BundleHead, BundleSize, BundledTarget, FileContent, PackedFile, pack,
};

/// `rqps bundle`.
pub(super) fn write(words: &BundleArgs) -> Result<u8> {
    let folder = &folders::or_newest(words.folder.as_slice())?[0];
    let size = pack_folder(folder, &words.output)?;
    out!(
        "{}: {}, {} files of {}",
        words.output.display(),
        units::bytes(size.archive_bytes),
        size.files,
        units::bytes(size.bytes)
    );
    info!("rqps: repeat it on any host with `rqps run {}`", words.output.display());
    Ok(exit::FINE)
}

/// Packs a result folder.
pub(super) fn pack_folder(folder: &Path, output: &Path) -> Result<BundleSize> {
    let doing = || format!("bundle {}", folder.display());
    if folders::is_in_use(folder) {
        bail!("bundle {}: another rqps is writing to it; wait until it ends", folder.display());
    }
    refuse_inside(folder, output)?;
    let text = ResultSet::open(folder).and_then(|set| set.plan()).with_context(doing)?;
    let plan = file::parse(&text).with_context(doing)?;
    let folders = [folder.to_owned()];
    let rules = gate::rules(&folders, &RuleOptions::default())?;
    let found = Compared::read(&folders, None, rules)?;
    let runs = &found.dataset.runs;
    if runs.iter().any(|run| matches!(run.record.target.source, BuildSource::Imported(_))) {
        bail!("bundle {}: imported results have no plan that can be repeated", folder.display());
    }
    let mut files = configs(runs)?;
    let targets = targets(&plan, runs);
    collect((folder, Path::new("")), "results", &mut files)?;
    let report = format!("results/{}", report::FILE);
    if !files.iter().any(|file| file.path == report) {
        let page = found.explained().page(folder)?;
        files.push(PackedFile { path: report, content: FileContent::Text(page) });
    }
    let (own, left_out) = files_of_plan(&plan, folder)?;
    files.extend(own);
    let head = BundleHead {
        format: BUNDLE_FORMAT,
        rqps_version: env!("CARGO_PKG_VERSION").to_owned(),
        plan_hash: plan.hash().to_owned(),
        targets,
        left_out,
        files: Vec::new(),
    };
    let size = pack(output, &head, files).with_context(doing)?;
    for name in &head.left_out {
        info!("rqps: left out {name}: to repeat this, put the same file at the same path");
    }
    Ok(size)
}

/// Refuses a bundle inside the packed folder: the next bundle would contain it.
fn refuse_inside(folder: &Path, output: &Path) -> Result<()> {
    let place = std::path::absolute(output).context("find the current folder")?;
    let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if place.parent().is_some_and(|parent| real(parent).starts_with(real(folder))) {
        bail!(
            "write {}: it lies in the result folder; choose a place outside of {}",
            output.display(),
            folder.display()
        );
    }
    Ok(())
}

/// Collects all files below a folder, except those whose names begin with a dot.
fn collect((root, below): (&Path, &Path), path: &str, files: &mut Vec<PackedFile>) -> Result<()> {
    for name in results::entries(&root.join(below))? {
        let (own, path) = (below.join(&name), format!("{path}/{name}"));
        let place = root.join(&own);
        let kind = fs::symlink_metadata(&place)
            .with_context(|| format!("look at {}", place.display()))?
            .file_type();
        if kind.is_dir() {
            collect((root, &own), &path, files)?;
        } else if kind.is_file() {
            let content = FileContent::Below(root.to_owned(), own);
            files.push(PackedFile { path, content });
        } else {
            bail!("bundle {}: it is neither a file nor a folder; remove it first", place.display());
        }
    }
    Ok(())
}

/// The configurations as each DBMS read them, with computed sizes, so that another host does not
/// compute its own.
fn configs(runs: &[Run]) -> Result<Vec<PackedFile>> {
    let mut texts: BTreeMap<(Dbms, &str), BTreeMap<&str, &str>> = BTreeMap::new();
    let mut words: BTreeMap<(Dbms, &str), &str> = BTreeMap::new();
    for run in runs {
        let record = &run.record;
        if matches!(record.target.source, BuildSource::Dsn(_)) {
            continue;
        }
        let key = (record.manifest.dbms, record.config.name.as_str());
        let word = *words.entry(key).or_insert(&record.target.config);
        let of_config = texts.entry(key).or_default();
        let text = of_config.entry(record.manifest.version.as_str()).or_insert(&record.config.text);
        if *text != record.config.text {
            bail!(
                "bundle the config `{}` of {} {}: it differs between runs of this folder\nhint: {}",
                record.config.name,
                record.manifest.dbms,
                record.manifest.version,
                of_two_texts(word, &record.target.config)
            );
        }
    }
    let mut files = Vec::new();
    for ((dbms, name), versions) in texts {
        let text = joined(&versions).with_context(|| format!("bundle the config `{name}`"))?;
        let path = format!("configs/{dbms}/{name}.conf");
        files.push(PackedFile { path, content: FileContent::Text(text) });
    }
    Ok(files)
}

/// A hint for two configurations with the same name, from the texts of both targets.
fn of_two_texts(first: &str, second: &str) -> String {
    if first == second {
        "blocks ran on hosts with different memory, or the file changed between them: set \
                 the sizes in the config and measure again"
            .to_owned()
    } else {
        format!(
            "a bundle names configs by the last part of their path, and `{first}` and `{second}` \
             share it: rename one and measure again"
        )
    }
}

/// One configuration for all versions. Guards mark lines that only some versions read.
fn joined(versions: &BTreeMap<&str, &str>) -> Result<String> {
    let mut texts = versions.values();
    let first = texts.next().copied().unwrap_or_default();
    if texts.all(|text| *text == first) {
        return Ok(first.to_owned());
    }
    let mut joined = String::new();
    for (version, text) in versions {
        let numbers: Vec<String> =
            Version::new(*version).numbers().iter().map(u32::to_string).collect();
        let version = numbers.join(".");
        for line in text.lines() {
            joined.push_str(&format!("{line}  # since {version} until {version}\n"));
        }
    }
    for (version, text) in versions {
        let read = dbms::config::rendered(&joined, &Version::new(*version), 0);
        if read.as_deref() != Some(*text) {
            bail!(
                "version {version} and another version have the same number but different settings"
            );
        }
    }
    Ok(joined)
}

/// Files that the plan reads: those in the bundle, and those left out.
fn files_of_plan(plan: &Plan, folder: &Path) -> Result<(Vec<PackedFile>, Vec<String>)> {
    let spec = benchmarks::of(&plan.workload);
    let data = (spec.own_data)(&plan.workload);
    let mut left_out: Vec<String> = data.iter().map(|path| path.display().to_string()).collect();
    let Some(own) = &spec.file else { return Ok((vec![], left_out)) };
    // The files must be those that were measured.
    own_workload::pin(&mut plan.workload.clone(), folder)?;
    let place = (own.folder)(&plan.workload).unwrap_or_else(|| folder.to_owned());
    let mut packed = Vec::new();
    for (name, known) in (own.files)(&plan.workload) {
        let path = Path::new(&name);
        // A plan of others could name any file of this host. What it measured it knows by its hash.
        if known.is_none() {
            bail!("bundle the file {name} of the workload: the plan does not tell its SHA-256");
        }
        if path.is_absolute() {
            left_out.push(name);
            continue;
        }
        if !path.components().all(|part| matches!(part, Component::Normal(_))) {
            bail!(
                "bundle the file {name} of the workload: it lies outside of {}; move it there",
                place.display()
            );
        }
        let content = FileContent::Disk(place.join(&name));
        packed.push(PackedFile { path: format!("files/{name}"), content });
    }
    Ok((packed, left_out))
}

/// The targets with their measured builds.
fn targets(plan: &Plan, runs: &[Run]) -> Vec<BundledTarget> {
    let of_target = |label: &str| {
        let mut builds = Vec::new();
        for run in runs.iter().filter(|run| run.record.key.label == label) {
            if !builds.contains(&run.record.manifest) {
                builds.push(run.record.manifest.clone());
            }
        }
        builds
    };
    let target = |target: &Target| BundledTarget {
        label: target.label.clone(),
        word: words::word(&file::without_password(target)),
        builds: of_target(&target.label),
    };
    plan.targets.iter().map(target).collect()
}

// `rqps run BUNDLE`: repeats a bundle on this host and compares the results.

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
    let configs = configs_in(out);
    let brings_configs = configs.is_some();
    let folders = Folders { out: Some(out.to_owned()), configs, ..words.folders.clone() };
    let (file, allow) = (words.plan(), words.allow.as_deref());
    let origin = Origin { file, allow, bundle: Some(targets), brings_configs };
    let consent = questions::ask(&plan, &origin, &folders)?;
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
        safe_path::rename(&partial.join("files"), &place)
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
pub(super) fn configs_in(out: &Path) -> Option<PathBuf> {
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
        _ => return Ok(terminal::print(&render_text(&document, terminal::columns()))?),
    };
    out!("{}", text.trim_end());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_texts_of_one_name_have_a_way_out() {
        assert!(of_two_texts("/a/x.cnf", "/b/x.cnf").contains("`/a/x.cnf` and `/b/x.cnf` share"));
        assert!(of_two_texts("default", "default").contains("different memory"));
    }

    #[test]
    fn versions_that_read_different_settings_share_a_config() {
        let check = |versions: &[(&str, &str)]| {
            let versions: BTreeMap<&str, &str> = versions.iter().copied().collect();
            let text = joined(&versions).unwrap();
            for (version, expected) in &versions {
                let read = dbms::config::rendered(&text, &Version::new(*version), 0).unwrap();
                assert_eq!(read, *expected, "{version}: {text}");
            }
        };
        check(&[("17.2.0", "a = 1\n"), ("12.22.0", "a = 1\n")]);
        check(&[("8.0.33", "[mysqld]\na = '# x'\n"), ("5.6.14", "[mysqld]\nb = \"{} y\"\n")]);
        check(&[("8.0", "a = 1\n"), ("8.1", "")]);
        let alike: BTreeMap<&str, &str> =
            [("17-a", "a = 1\n"), ("17-b", "a = 2\n")].into_iter().collect();
        assert!(joined(&alike).unwrap_err().to_string().contains("have the same number"));
    }
}

#[cfg(test)]
mod repeat_tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let path = BuildSource::Path("/b".into());
        assert_eq!(missing_build(&path, &[]), "put the same build there");
        let sums = ["1".to_owned(), "2".to_owned()];
        assert_eq!(missing_build(&path, &sums), "put the same build there (SHA-256 1, 2)");
    }
}
