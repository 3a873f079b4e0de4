//! `rqps report`: reports on result folders in one of several formats.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::cli::args::{self, Explain, Plot, PlotForm, Printed, Report, RuleOptions};
use crate::cli::parts::{self, Pool};
use crate::cli::{bundle, exit, folders, gate, terminal};
use rqps_analysis::causes::{self, CauseReaders, Causes, TakeCounter};
use rqps_analysis::comparison::{RunFacts, StepComparison};
use rqps_analysis::families::{FamilyPart, by_family};
use rqps_analysis::{Comparison, VerdictOptions};
use rqps_host::child::{self, ChildTask};
use rqps_host::command_output::how;
use rqps_lab::benchmarks;
use rqps_lab::lab::error_text;
use rqps_model::run::{Dataset, Run, Second, Status, StepRecord};
use rqps_model::safe_path;
use rqps_model::verdict::Rules;
use rqps_report::html::{self, Material, SitePage};
use rqps_report::plot::{self, PlotKind};
use rqps_report::{BriefPlace, FamilyReport, Format, ReportOptions, explanation, render_text};
use rqps_results as results;

/// File name of the HTML report in a result folder.
pub(super) const FILE: &str = "report.html";

/// The columns of an answer that no terminal shows.
const BRIEF_COLUMNS: usize = 80;

/// `rqps report`.
pub(super) fn print(words: &Report) -> Result<u8> {
    if words.by_family || words.baseline.len() > 1 {
        let folders = folders::or_newest(&words.folders)?;
        let rules = gate::rules(&folders, &words.rules)?;
        return print_parts(words, Compared::read_families(&folders, &words.baseline, rules)?);
    }
    let mut pools = parts::pools(&folders::or_newest(&words.folders)?)?;
    if pools.len() > 1 {
        let (count, baseline) = (pools.len(), words.baseline.first());
        if words.brief {
            bail!("print the answer alone: these folders have {count} workloads; name one");
        }
        return print_parts(words, read_pools(&pools, baseline, &words.rules, &words.label)?);
    }
    let folders = pools.pop().map(|(_, folders)| folders).unwrap_or_default();
    let baseline = words.baseline.first().map(String::as_str);
    let rules = gate::rules(&folders, &words.rules)?;
    let names = names(&words.label)?;
    let mut found = Compared::read_named(&folders, baseline, rules, &names)?.explained();
    found.comparison.hides_terms = words.no_terms;
    match (&words.output, words.brief) {
        (output, true) => found.show_brief(words, output.as_deref())?,
        (Some(path), false) => found.save(path, words.format)?,
        (None, false) => found.show(words.format)?,
    }
    let code = exit_code(&[&found.comparison]);
    // The process ends now. Freeing all strings would take a twelfth of its time.
    std::mem::forget(found);
    Ok(code)
}

/// `rqps plot`.
pub(super) fn draw(words: &Plot) -> Result<u8> {
    let is_png = words.output.as_ref().is_some_and(|path| has_ending(path, "png"));
    if let Some(path) = words.output.as_ref().filter(|path| !is_png && !has_ending(path, "svg")) {
        bail!(
            "write {}: plots are SVG or PNG; name it {}",
            path.display(),
            path.with_extension("svg").display()
        );
    }
    let mut pools = parts::pools(&folders::or_newest(&words.folders)?)?;
    if pools.len() > 1 {
        bail!("draw {} workloads: name the folder of one", pools.len());
    }
    let folders = pools.pop().map(|(_, folders)| folders).unwrap_or_default();
    let rules = gate::rules(&folders, &words.rules)?;
    let baseline = words.baseline.as_deref();
    let found = Compared::read_named(&folders, baseline, rules, &names(&words.label)?)?;
    let steps: Vec<&str> = found.comparison.steps.iter().map(|step| &*step.name).collect();
    if let Some(step) = words.step.iter().find(|step| !steps.contains(&step.as_str())) {
        bail!("draw {step}: these results have no such step; they have {}", steps.join(", "));
    }
    let (kind, missing) = match words.kind {
        PlotForm::Forest => (PlotKind::Forest, "no step has a ratio of two targets"),
        PlotForm::Ladder => {
            (PlotKind::Ladder, "a ladder needs a step on three or more versions of one DBMS")
        }
        PlotForm::Lines => (PlotKind::Lines, "no step has rates over time"),
    };
    let charts = plot::charts(&found.comparison, &found.dataset, &seconds, kind, &words.step);
    if charts.is_empty() {
        bail!("draw these results: {missing}");
    }
    let mut picture = plot::svg(&charts).into_bytes();
    if is_png {
        picture = png(&picture).context("make a PNG with rsvg-convert")?;
    }
    terminal::put(words.output.as_deref(), &picture)?;
    Ok(exit::FINE)
}

/// An SVG as PNG of twice its size.
fn png(svg: &[u8]) -> Result<Vec<u8>> {
    let mut command = child::command("rsvg-convert", ChildTask::Work);
    command.args(["--format", "png", "--zoom", "2"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let missing = "start it\nhint: install the Debian package librsvg2-bin, or write SVG";
    let mut child = command.spawn().context(missing)?;
    // It reads all before it writes.
    child.stdin.take().map_or(Ok(()), |mut input| input.write_all(svg)).context("tell it")?;
    let said = child.wait_with_output().context("hear it")?;
    if !said.status.success() {
        bail!("{}: {}", how(said.status), String::from_utf8_lossy(&said.stderr).trim());
    }
    Ok(said.stdout)
}

fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|own| own.eq_ignore_ascii_case(ending))
}

fn read_pools(
    pools: &[Pool],
    baseline: Option<&String>,
    rules: &RuleOptions,
    labels: &[String],
) -> Result<Vec<(String, Compared)>> {
    let names = names(labels)?;
    let read = |(name, folders): &Pool| {
        let rules = gate::rules(folders, rules)?;
        let baseline = baseline.map(String::as_str);
        let found = Compared::read_named(folders, baseline, rules, &names)?;
        Ok((name.clone(), found))
    };
    pools.iter().map(read).collect()
}

/// Writes the page of all parts of a new folder.
pub(super) fn of_new_parts(folder: &Path, rules: &RuleOptions) -> Result<()> {
    let pools = parts::pools(&[folder.to_owned()])?;
    let found = read_pools(&pools, None, rules, &[])?;
    let found: Vec<_> = found.into_iter().map(|(name, found)| (name, found.explained())).collect();
    let page = folder.join(FILE);
    results::replace_whole(&page, page_of_families(&found, folder)?)?;
    info!("rqps: all {} parts: open {}", found.len(), page.display());
    Ok(())
}

fn print_parts(words: &Report, families: Vec<(String, Compared)>) -> Result<u8> {
    let mut families: Vec<(String, Compared)> =
        families.into_iter().map(|(family, found)| (family, found.explained())).collect();
    for (_, found) in &mut families {
        found.comparison.hides_terms = words.no_terms;
    }
    let bytes = match non_html(words.format) {
        Some(format) => {
            let parts: Vec<FamilyReport> = families
                .iter()
                .map(|(family, found)| FamilyReport { family, comparison: &found.comparison })
                .collect();
            let mut bytes = Vec::new();
            benchmarks::write_families(&parts, format, &mut bytes)?;
            bytes
        }
        None => {
            let place = words.output.as_deref().map_or(Path::new("."), folder_of);
            page_of_families(&families, place)?.into_bytes()
        }
    };
    match &words.output {
        None if non_html(words.format) == Some(Format::Text) => {
            terminal::print(&String::from_utf8_lossy(&bytes))?;
        }
        output => terminal::put(output.as_deref(), &bytes)?,
    }
    let comparisons: Vec<&Comparison> = families.iter().map(|(_, it)| &it.comparison).collect();
    Ok(exit_code(&comparisons))
}

/// The families as one page for the folder `place`.
fn page_of_families(families: &[(String, Compared)], place: &Path) -> Result<String> {
    let links = families
        .iter()
        .map(|(_, found)| found.links(place))
        .collect::<Result<Vec<BTreeMap<String, String>>>>()?;
    let own = benchmarks::sections();
    let materials: Vec<(&str, Material)> = families
        .iter()
        .zip(&links)
        .map(|((family, found), links)| {
            let material = Material {
                comparison: &found.comparison,
                dataset: &found.dataset,
                seconds: &seconds,
                links,
                own: &own,
            };
            (family.as_str(), material)
        })
        .collect();
    Ok(html::render_families(&materials))
}

/// The seconds of a step.
fn seconds(run: &Run, step: &StepRecord) -> Result<Vec<Second>, String> {
    results::seconds_of(run, step).map_err(|error| error.to_string())
}

/// Exit code of a command that reports on runs. Prints an error if no run has a number, because the
/// output looks like a report.
pub(super) fn exit_code(comparisons: &[&Comparison]) -> u8 {
    let measured = |step: &StepComparison| step.targets.iter().any(|one| !one.samples.is_empty());
    if comparisons.iter().flat_map(|one| &one.steps).any(measured) {
        return exit::FINE;
    }
    let runs: Vec<&RunFacts> = comparisons.iter().flat_map(|one| &one.runs).collect();
    let failed = runs.iter().filter(|run| matches!(run.status, Status::Failed(_))).count();
    error!("rqps: no measured step: {failed} of {} runs failed", runs.len());
    let first = runs.iter().find_map(|run| match &run.status {
        Status::Failed(why) => Some((&run.folder, why.trim())),
        _ => None,
    });
    if let Some((folder, why)) = first {
        error!("{folder}: {why}");
    }
    let results = first.and_then(|(folder, _)| Path::new(folder).parent());
    let results = results.map_or("DIR".to_owned(), |results| results.display().to_string());
    error!("hint: fix the cause and resume with `rqps run --resume {results}`");
    exit::RUN_FAILED
}

/// Prints the report of a new result folder, or its answer in a few lines, and writes it there as
/// HTML.
pub(super) fn of_new_results(folder: &Path, printed: Printed, rules: &RuleOptions) -> Result<()> {
    let found = written(folder, rules)?;
    let page = folder.join(FILE);
    let Printed { format, full } = printed;
    match bundle::first_results(folder) {
        Some(first) if bundle::has_form(format) => bundle::show(folder, &first, &found, format)?,
        _ if !full && non_html(format) == Some(Format::Text) => {
            return answer(&found, folder);
        }
        _ => found.show(format)?,
    }
    info!("rqps: open {}", page.display());
    Ok(())
}

/// Reads a new result folder and writes its report there as HTML.
pub(super) fn written(folder: &Path, rules: &RuleOptions) -> Result<Compared> {
    let folders = [folder.to_owned()];
    let found = Compared::read(&folders, None, gate::rules(&folders, rules)?)?.explained();
    // The folder may come from somebody else: a link in place of the page is not followed.
    results::replace_whole(&folder.join(FILE), found.page(folder)?)?;
    Ok(found)
}

/// Prints the answer of a new result folder in a few lines.
pub(super) fn answer(found: &Compared, folder: &Path) -> Result<()> {
    let is_newest = folders::newest().is_ok_and(|newest| is_same(&newest, folder));
    let named = (!is_newest).then(|| folder.to_string_lossy());
    let page = folder.join(FILE);
    Ok(terminal::print(&found.brief(named.as_deref(), Some(&page.to_string_lossy())))?)
}

fn is_same(one: &Path, other: &Path) -> bool {
    matches!((std::fs::canonicalize(one), std::fs::canonicalize(other)), (Ok(one), Ok(other)) if one == other)
}

/// The new names of targets by their labels.
fn names(words: &[String]) -> Result<BTreeMap<String, String>> {
    let mut names = BTreeMap::new();
    for word in words {
        match word.split_once('=').filter(|(label, name)| !label.is_empty() && !name.is_empty()) {
            Some((label, name)) => names.insert(label.to_owned(), name.to_owned()),
            None => bail!("use --label {word}: write it as LABEL=NAME"),
        };
    }
    Ok(names)
}

impl Compared {
    /// Writes the report to a file.
    fn save(&self, path: &Path, format: args::Format) -> Result<()> {
        if format == args::Format::Post {
            return self.save_post(path);
        }
        let doing = || format!("write {}", path.display());
        match non_html(format) {
            Some(format) => {
                let mut file = safe_path::create_file(path).with_context(doing)?;
                benchmarks::write_report(&self.comparison, format, &mut file).with_context(doing)
            }
            None => terminal::put(Some(path), self.page(folder_of(path))?.as_bytes()),
        }
    }

    /// Writes the post to a file and its plot beside it.
    fn save_post(&self, path: &Path) -> Result<()> {
        let picture = path.with_extension("svg");
        let (comparison, own) = (&self.comparison, benchmarks::sections());
        let charts = plot::charts(comparison, &self.dataset, &seconds, PlotKind::Forest, &[]);
        let name = picture.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.filter(|_| !charts.is_empty());
        if name.is_some() {
            terminal::put(Some(&picture), plot::svg(&charts).as_bytes())?;
        }
        let text = rqps_report::post(comparison, &own, name.as_deref());
        terminal::put(Some(path), text.as_bytes())
    }

    /// Prints the report.
    fn show(&self, format: args::Format) -> Result<()> {
        if non_html(format) == Some(Format::Text) {
            let document = benchmarks::document(&self.comparison, &ReportOptions::default());
            return Ok(terminal::print(&render_text(&document, terminal::columns()))?);
        }
        match non_html(format) {
            Some(format) => {
                let mut stdout = std::io::stdout().lock();
                benchmarks::write_report(&self.comparison, format, &mut stdout)?;
                Ok(stdout.flush()?)
            }
            None => Ok(terminal::escaped(self.page(Path::new("."))?.as_bytes())?),
        }
    }

    /// Writes only the report in twenty lines.
    fn show_brief(&self, words: &Report, output: Option<&Path>) -> Result<()> {
        let text = match non_html(words.format) {
            Some(Format::Text) => {
                let folder = words.folders.first().map(|folder| folder.to_string_lossy());
                self.brief(folder.as_deref(), None)
            }
            Some(Format::Markdown) => {
                rqps_report::brief_markdown(&self.comparison, &benchmarks::sections())
            }
            _ => bail!("print the answer alone: --brief has --format text or markdown"),
        };
        match output {
            None if matches!(words.format, args::Format::Text) => Ok(terminal::print(&text)?),
            output => terminal::put(output, text.as_bytes()),
        }
    }

    /// The report in twenty lines; commands find the results as `folder`.
    fn brief(&self, folder: Option<&str>, page: Option<&str>) -> String {
        let width = terminal::columns().unwrap_or(BRIEF_COLUMNS);
        rqps_report::brief(&self.comparison, &BriefPlace { width, folder, page })
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
        let links = self.links(place)?;
        Ok(render(&Material {
            comparison: &self.comparison,
            dataset: &self.dataset,
            seconds: &seconds,
            links: &links,
            own: &benchmarks::sections(),
        }))
    }

    /// Addresses of the run folders, relative to the folder `place`.
    fn links(&self, place: &Path) -> Result<BTreeMap<String, String>> {
        let link = |run: &Run| {
            let link = relative(place, Path::new(&run.folder))?;
            Ok((run.folder.clone(), link.to_string_lossy().into_owned()))
        };
        self.dataset.runs.iter().map(link).collect()
    }
}

/// The format of a report except HTML, which also needs the dataset.
fn non_html(format: args::Format) -> Option<Format> {
    Some(match format {
        args::Format::Html => return None,
        args::Format::Text => Format::Text,
        args::Format::Tsv => Format::Tsv,
        args::Format::Csv => Format::Csv,
        args::Format::Json => Format::Json,
        args::Format::Markdown => Format::Markdown,
        args::Format::Post => Format::Post,
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

// Reads result folders and compares their runs.

/// Result folders and their comparison.
pub(super) struct Compared {
    /// All runs.
    pub dataset: Dataset,
    /// The comparison of their targets.
    pub comparison: Comparison,
}

impl Compared {
    /// Reads the folders. `baseline` is a label; `None` for the first target of the plan.
    pub(super) fn read(
        folders: &[PathBuf],
        baseline: Option<&str>,
        rules: Rules,
    ) -> Result<Compared> {
        Compared::read_named(folders, baseline, rules, &BTreeMap::new())
    }

    /// The same with new names of targets by their labels.
    fn read_named(
        folders: &[PathBuf],
        baseline: Option<&str>,
        rules: Rules,
        names: &BTreeMap<String, String>,
    ) -> Result<Compared> {
        let (mut dataset, measured) =
            results::read_each(folders, benchmarks::digest).context("read the results")?;
        rename(&mut dataset, names)?;
        let baseline = baseline.map(|label| names.get(label).map_or(label, String::as_str));
        let options = VerdictOptions { baseline: baseline.map(str::to_owned), rules };
        let comparison = benchmarks::compare_measured(&dataset, measured, &options)
            .context("compare the runs")?;
        Ok(Compared { dataset, comparison })
    }

    /// Reads the folders as one comparison per family of targets, with the family's name.
    /// `baselines` are labels; a family without one has its first target as baseline.
    fn read_families(
        folders: &[PathBuf],
        baselines: &[String],
        rules: Rules,
    ) -> Result<Vec<(String, Compared)>> {
        let (dataset, measured) =
            results::read_each(folders, benchmarks::digest).context("read the results")?;
        let parts = by_family(dataset, measured, baselines)?;
        let compared = |part: FamilyPart| {
            let FamilyPart { family, baseline, dataset, measured } = part;
            let comparison = benchmarks::compare_measured(
                &dataset,
                measured,
                &VerdictOptions { baseline, rules },
            )
            .with_context(|| format!("compare the runs of {family}"))?;
            Ok((family, Compared { dataset, comparison }))
        };
        parts.into_iter().map(compared).collect()
    }

    /// Other differences in these steps of the comparison.
    pub(super) fn causes(&self, steps: &[&StepComparison]) -> Causes {
        let settings =
            |run: &Run| results::settings_of(run).map_err(|error| error_text(&error.into()));
        let counters = |run: &Run, step: &StepRecord, take: TakeCounter<'_>| {
            results::each_counter(run, step, take).map_err(|error| error_text(&error.into()))
        };
        let readers = CauseReaders { settings: &settings, counters: &counters };
        causes::find(&self.comparison, &self.dataset, steps, readers)
    }

    /// Adds other differences to the steps that differ.
    pub(super) fn explained(mut self) -> Compared {
        let steps = causes::differing_steps(&self.comparison);
        self.comparison.causes =
            if steps.is_empty() { None } else { Some(Box::new(self.causes(&steps))) };
        self
    }
}

/// Gives targets new names by their labels; two targets stay two.
fn rename(dataset: &mut Dataset, names: &BTreeMap<String, String>) -> Result<()> {
    let labels = dataset.runs.iter().flat_map(|run| run.record.targets.iter().cloned());
    let keys = dataset.runs.iter().map(|run| run.record.key.label.clone());
    let known: BTreeSet<String> = labels.chain(keys).collect();
    let name = |label: &String| names.get(label).unwrap_or(label).clone();
    if let Some(label) = names.keys().find(|label| !known.contains(*label)) {
        let known = Vec::from_iter(known).join(", ");
        bail!("rename {label}: these folders have no such target; they have {known}");
    }
    if known.iter().map(name).collect::<BTreeSet<_>>().len() < known.len() {
        bail!("rename targets: two of them would have one name");
    }
    for run in &mut dataset.runs {
        let record = &mut run.record;
        let labels = record.targets.iter_mut();
        for label in labels.chain([&mut record.key.label, &mut record.target.label]) {
            *label = name(label);
        }
    }
    Ok(())
}

/// `rqps explain`.
pub(super) fn explain(words: &Explain) -> Result<u8> {
    let folders = folders::or_newest(&words.folders)?;
    let rules = gate::rules(&folders, &words.rules)?;
    let mut found = Compared::read(&folders, words.baseline.as_deref(), rules)?;
    let steps = chosen(&found.comparison, &words.steps)?;
    if steps.is_empty() {
        out!("No step has a verdict of a difference. Name a step with --step to see its data.");
        return Ok(exit_code(&[&found.comparison]));
    }
    let causes = found.causes(&steps);
    for fault in &causes.faults {
        info!("rqps: {fault}");
    }
    found.comparison.causes = Some(Box::new(causes));
    out!("{}", render_text(&explanation(&found.comparison), terminal::columns()).trim_end());
    Ok(exit_code(&[&found.comparison]))
}

/// The named steps, or those that differ.
fn chosen<'a>(comparison: &'a Comparison, names: &[String]) -> Result<Vec<&'a StepComparison>> {
    if names.is_empty() {
        return Ok(causes::differing_steps(comparison));
    }
    let find = |name: &String| {
        let mut steps = comparison.measured_steps();
        let Some(step) = steps.find(|step| step.name == *name) else {
            let known: Vec<&str> =
                comparison.measured_steps().map(|step| step.name.as_str()).collect();
            bail!("explain the step {name}: no such step; these folders hold {}", known.join(", "))
        };
        Ok(step)
    };
    names.iter().map(find).collect()
}
