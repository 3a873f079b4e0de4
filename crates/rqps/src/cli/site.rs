//! `rqps site`: a static site over many result sets. It reads only sets that changed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use serde::{Deserialize, Serialize};

use crate::cli::args::{RuleOptions, share};
use crate::cli::report::{Compared, relative};
use crate::cli::{exit, gate, help, terminal};
use rqps_analysis::Comparison;
use rqps_analysis::counted::is_counted;
use rqps_analysis::history::{
    DateOptions, LadderOptions, SeriesOptions, SeriesSet, SetPoints, date_histories, join_hosts,
    ladders, set_points, step_series,
};
use rqps_host::beneath::Folder;
use rqps_lab::lab::error_text;
use rqps_model::metric::{Direction, Metric};
use rqps_model::units::{counted, short_hash};
use rqps_model::verdict::Rules;
use rqps_model::{bounded, safe_path};
use rqps_report::html::site_assets;
use rqps_report::site::{
    SiteMaterial, SiteSet, data_file, feed, index_json, index_page, series_file, series_page,
    set_file,
};
use rqps_report::{
    dates_csv, dates_document, dates_json, history_csv, history_document, history_json,
    render_markdown, render_text,
};
use rqps_results as results;
use rqps_stats::parallel;

/// The file that marks a folder as a site; rqps writes to and clears only such folders.
const MARKER: &str = ".rqps-site";

/// Version of pages and stored values; another version renders all reports again.
const PAGES: u32 = 2;

/// Depth of the search for result sets below a named folder.
const DEPTH_MAX: usize = 3;

/// Rendered reports between two lines of progress.
const NOTE_EVERY: usize = 100;

/// Values of a result set that a site keeps in `data/NAME.json`.
#[derive(Serialize, Deserialize)]
struct KeptSet {
    /// Version of rqps, rules, and the path from the site to the folder.
    made_by: String,
    quick: String,
    content: String,
    title: String,
    verdict: String,
    points: SetPoints,
}

/// A result set and its name on the site.
struct Shown {
    name: String,
    folder: PathBuf,
}

/// A result set on the site, or the error for which it is missing.
struct Outcome {
    name: String,
    kept: Result<KeptSet>,
    rendered: bool,
}

/// `rqps site`.
pub(super) fn write(words: &SiteArgs) -> Result<u8> {
    let headline = words.metrics.iter().map(|name| metric(name)).collect::<Result<Vec<_>>>()?;
    let shown = named(result_sets(&words.folders)?);
    let out = words.output.as_path();
    open(out)?;
    let done = AtomicUsize::new(0);
    let total = shown.len();
    let outcomes = parallel::map(shown, |set| {
        let outcome = outcome(words, set);
        if outcome.rendered {
            let count = done.fetch_add(1, Ordering::Relaxed) + 1;
            if count.is_multiple_of(NOTE_EVERY) {
                info!("rqps: {count} of at most {total} reports");
            }
        }
        outcome
    });
    let rendered = outcomes.iter().filter(|outcome| outcome.rendered).count();
    let (sets, mut series_sets, left_out) = sorted(outcomes);
    if words.same_host {
        join_hosts(&mut series_sets);
    }
    if sets.is_empty() {
        let whys: Vec<String> =
            left_out.iter().map(|(name, why)| format!("{name}: {why}")).collect();
        bail!("read the result sets: none can be read\n{}", whys.join("\n"));
    }
    let rules = gate::with_options(&Default::default(), &words.rules)?;
    let layout_sd = rules.layout_sd();
    let of = SeriesOptions { max_p: MAX_P, layout_sd, branches: words.branches };
    let series = step_series(&series_sets, &of);
    let address = words.url.as_ref().map(|url| format!("{}/", url.trim_end_matches('/')));
    let material = SiteMaterial {
        title: &words.title,
        address: address.as_deref(),
        sets: &sets,
        series: &series,
        headline: &headline,
        left_out: &left_out,
    };
    let written = write_pages(out, &material)?;
    for (name, why) in &left_out {
        error!("rqps: {name} is not on the site: {why}");
    }
    info!(
        "rqps: {} ({} rendered), {} series ({} written): open {}",
        counted(sets.len(), "result set"),
        counted(rendered, "report"),
        series.len(),
        counted(written, "page"),
        out.join("index.html").display()
    );
    Ok(if left_out.is_empty() { exit::FINE } else { exit::RUN_FAILED })
}

fn metric(name: &str) -> Result<Metric> {
    let judged = || Metric::ALL.iter().filter(|metric| metric.better() != Direction::Neither);
    match judged().find(|metric| metric.name() == name) {
        Some(metric) => Ok(*metric),
        None => {
            let names: Vec<&str> = judged().map(|metric| metric.name()).collect();
            bail!("list changes of `{name}`: no such metric; metrics are {}", names.join(", "))
        }
    }
}

/// Result sets among the folders and in them, each once.
fn result_sets(folders: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in folders {
        if !folder.is_dir() {
            bail!(
                "find result sets in {}: no such folder; name one that `rqps compare` or `rqps \
                 run` wrote, or one with several of them",
                folder.display()
            );
        }
        let before = found.len();
        find(folder, DEPTH_MAX, &mut found)?;
        if found.len() == before {
            bail!(
                "find result sets in {}: neither it nor a folder in it has a plan.toml",
                folder.display()
            );
        }
    }
    let mut known = BTreeSet::new();
    let mut sets = Vec::new();
    for folder in found {
        let real =
            fs::canonicalize(&folder).with_context(|| format!("find {}", folder.display()))?;
        if known.insert(real.clone()) {
            sets.push(real);
        }
    }
    Ok(sets)
}

fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<()> {
    if folder.join("plan.toml").is_file() {
        found.push(folder.to_owned());
        return Ok(());
    }
    let names = results::entries(folder)
        .with_context(|| format!("find result sets in {}", folder.display()))?;
    for path in names.into_iter().map(|name| folder.join(name)) {
        if depth > 0 && path.is_dir() && !path.join(MARKER).exists() {
            find(&path, depth - 1, found)?;
        }
    }
    Ok(())
}

/// Names of result sets: those of their folders, with a part of the path's hash if two are equal.
fn named(folders: Vec<PathBuf>) -> Vec<Shown> {
    let name = |folder: &Path| {
        folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for folder in &folders {
        *counts.entry(set_file(&name(folder))).or_default() += 1;
    }
    let shown = |folder: PathBuf| {
        let own = name(&folder);
        let name = match counts.get(&set_file(&own)) {
            Some(1) => own,
            _ => format!("{own}-{}", &short_hash(folder.as_os_str().as_encoded_bytes())[..8]),
        };
        Shown { name, folder }
    };
    folders.into_iter().map(shown).collect()
}

/// Creates the folders of the site. Refuses a folder with other files.
fn open(out: &Path) -> Result<()> {
    let marker = out.join(MARKER);
    if out.exists() && !out.is_dir() {
        bail!("write the site to {}: it is a file; name a new folder", out.display());
    }
    if !marker.exists() && out.exists() {
        let others = fs::read_dir(out).with_context(|| format!("read {}", out.display()))?;
        if others.count() > 0 {
            bail!(
                "write the site to {}: the folder has files and no {MARKER}, so it is not a site \
                 of rqps; name a new folder",
                out.display()
            );
        }
    }
    for folder in ["sets", "data", "series", "assets"] {
        let folder = out.join(folder);
        safe_path::make_folder(&folder).with_context(|| format!("create {}", folder.display()))?;
    }
    let text = "rqps site writes this folder and removes pages that it no longer needs.\n";
    write_changed(&marker, text.as_bytes()).map(|_| ())
}

fn outcome(words: &SiteArgs, set: Shown) -> Outcome {
    let kept = shown_set(words, &set);
    let rendered = matches!(kept, Ok((_, true)));
    Outcome { name: set.name, kept: kept.map(|(kept, _)| kept), rendered }
}

/// The stored values of a result set, and true if its report was rendered.
fn shown_set(words: &SiteArgs, set: &Shown) -> Result<(KeptSet, bool)> {
    let out = words.output.as_path();
    let (page, data) = (out.join(set_file(&set.name)), out.join(data_file(&set.name)));
    let folders = [set.folder.clone()];
    let rules = gate::rules(&folders, &words.rules)?;
    let made_by = made_by(out, &set.folder, &rules)?;
    // Before reading, so that the next call notices a change during this one.
    let quick = results::quick_stamp(&set.folder)?;
    let usable = |kept: &KeptSet| kept.made_by == made_by && page.is_file() && !words.force;
    let kept = bounded::bytes(&data, bounded::RECORD_MAX)
        .ok()
        .and_then(|text| serde_json::from_slice::<KeptSet>(&text).ok());
    let kept = kept.filter(usable);
    if let Some(kept) = kept {
        if kept.quick == quick {
            return Ok((kept, false));
        }
        if kept.content == results::content_stamp(&set.folder)? {
            let kept = KeptSet { quick, ..kept };
            write_changed(&data, &serde_json::to_vec(&kept)?)?;
            return Ok((kept, false));
        }
    }
    let content = results::content_stamp(&set.folder)?;
    let compared = Compared::read(&folders, None, rules)?.explained();
    let rendered = compared.site_page(&out.join("sets"), "../")?;
    let points = set_points(&compared.comparison);
    let kept = KeptSet {
        made_by,
        quick,
        content,
        title: rendered.title,
        verdict: rendered.verdict,
        points,
    };
    write_changed(&page, rendered.html.as_bytes())?;
    write_changed(&data, &serde_json::to_vec(&kept)?)?;
    Ok((kept, true))
}

/// A hash of the inputs of a report besides its result set: version, rules, and relative path.
fn made_by(out: &Path, folder: &Path, rules: &Rules) -> Result<String> {
    let way = relative(&out.join("sets"), folder)?;
    let version = env!("CARGO_PKG_VERSION");
    Ok(short_hash(format!("{version} {PAGES} {rules:?} {}", way.display())))
}

type Sorted = (Vec<SiteSet>, Vec<SeriesSet>, Vec<(String, String)>);

/// Sorts result sets, the oldest first, and separates those that cannot be read.
fn sorted(outcomes: Vec<Outcome>) -> Sorted {
    let (mut sets, mut series_sets, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for Outcome { name, kept, .. } in outcomes {
        match kept {
            Ok(kept) => {
                sets.push(SiteSet {
                    name: name.clone(),
                    started: kept.points.started.clone(),
                    title: kept.title,
                    verdict: kept.verdict,
                });
                series_sets.push(SeriesSet { name, points: kept.points });
            }
            Err(error) => left_out.push((name, error_text(&error))),
        }
    }
    sets.sort_by(|a, b| (&a.started, &a.name).cmp(&(&b.started, &b.name)));
    (sets, series_sets, left_out)
}

/// The list of pages that rqps wrote.
const WRITTEN: &str = ".rqps-pages";
/// Bytes that such a list may have.
const LONGEST_LIST: u64 = 64 << 20;
/// The folders of pages that come and go.
const PAGE_FOLDERS: [&str; 3] = ["sets", "data", "series"];

/// Writes changed pages, removes those of missing series and sets, and returns the number of
/// written pages of series.
fn write_pages(out: &Path, site: &SiteMaterial) -> Result<usize> {
    for (address, text) in site_assets() {
        write_changed(&out.join(address), text.as_bytes())?;
    }
    let pages = parallel::map(site.series.iter().collect(), |series| -> Result<bool> {
        let path = out.join(series_file(series));
        if let Some(folder) = path.parent() {
            safe_path::make_folder(folder)
                .with_context(|| format!("create {}", folder.display()))?;
        }
        write_changed(&path, series_page(site, series).as_bytes())
    });
    let mut written = 0;
    for page in pages {
        written += usize::from(page?);
    }
    write_changed(&out.join("feed.xml"), feed(site).as_bytes())?;
    write_changed(&out.join("index.json"), index_json(site)?.as_bytes())?;
    // The last page, so that all its links have a target.
    write_changed(&out.join("index.html"), index_page(site).as_bytes())?;
    let mut wanted: BTreeSet<PathBuf> =
        site.series.iter().map(|series| out.join(series_file(series))).collect();
    for set in site.sets {
        wanted.extend([set_file(&set.name), data_file(&set.name)].map(|file| out.join(file)));
    }
    clear(out, &wanted)?;
    Ok(written)
}

/// Removes pages without a result set or series that rqps wrote here before, by the list of them,
/// and writes a new list. What else is in the folder is the user's.
fn clear(out: &Path, wanted: &BTreeSet<PathBuf>) -> Result<()> {
    let doing = || format!("clear {}", out.display());
    let folder = Folder::open(out).with_context(doing)?;
    let listed = folder.text_of(WRITTEN.as_ref(), None, LONGEST_LIST).unwrap_or_default();
    for page in listed.lines().map(Path::new) {
        let is_page = PAGE_FOLDERS.iter().any(|folder| page.starts_with(folder));
        if is_page && !wanted.contains(&out.join(page)) {
            folder.remove_file(page).with_context(doing)?;
            // Fails for a folder with pages, which must stay.
            page.parent().map(|above| fs::remove_dir(out.join(above)).ok());
        }
    }
    let pages = wanted.iter().filter_map(|page| page.strip_prefix(out).ok());
    let list: String = pages.map(|page| format!("{}\n", page.display())).collect();
    write_changed(&out.join(WRITTEN), list.as_bytes()).map(drop)
}

/// Writes a file unless its content is the same. A reader sees the old file or the new one.
fn write_changed(path: &Path, bytes: &[u8]) -> Result<bool> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(false);
    }
    results::replace_whole(path, bytes)?;
    Ok(true)
}

#[derive(Debug, Args)]
pub(super) struct SiteArgs {
    /// Result folders, or folders that hold result folders
    #[arg(required = true, value_name = "DIR", add = ArgValueCompleter::new(help::result_folders))]
    pub folders: Vec<PathBuf>,
    /// Folder of the site: a new one, or that of an earlier `rqps site`
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Title of the overview and the feed
    #[arg(long, value_name = "TEXT", default_value = "Benchmark results")]
    pub title: String,
    /// Address at which you publish the site, for the feed
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Metric whose changes the overview and the feed list; repeatable
    #[arg(long = "metric", value_name = "NAME", default_value = "o/s")]
    pub metrics: Vec<String>,
    /// In charts by version, look for changes along the first version of each branch (10.4.8,
    /// 10.5.6, …) and along each branch, not along all versions
    #[arg(long)]
    pub branches: bool,
    /// Take all hosts for one in charts, such as before and after a new kernel
    #[arg(long)]
    pub same_host: bool,
    /// Render all reports again, also of result sets that did not change
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub rules: RuleOptions,
}

// `rqps history`: finds changes of level along many versions.

/// Largest p value of a change over time: Otava's default.
const MAX_P: f64 = 0.001;

/// `rqps history`.
pub(super) fn print(words: &History) -> Result<u8> {
    let rules = gate::rules(&words.folders, &words.rules)?;
    let Compared { comparison, .. } = Compared::read(&words.folders, None, rules)?;
    let (comparison, metric) = metric_of(&comparison, words.metric.as_deref())?;
    if words.by == HistoryOrder::Date {
        return by_date(words, comparison, metric);
    }
    if words.otava || words.min_magnitude.is_some() || words.same_host {
        bail!(
            "find changes between versions: --otava, --min-magnitude and --same-host need --by date"
        );
    }
    let order = words.order.as_deref().map(order).transpose()?;
    let found = ladders(comparison, &LadderOptions { metric, order, branches: words.branches })
        .context("order the versions of --order")?;
    if found.is_empty() {
        bail!(
            "find a ladder in these results: no DBMS has two versions with \
             values of {}; compare several versions first, such as `rqps compare \
             postgres@12.22.0 postgres@15.10.0 postgres@17.2.0`\nhint: results of one label on \
             several days are a history with --by date",
            metric.name()
        );
    }
    let text = match words.format {
        HistoryFormat::Text => render_text(&history_document(&found), terminal::columns()),
        HistoryFormat::Markdown => render_markdown(&history_document(&found)),
        HistoryFormat::Csv => history_csv(&found),
        HistoryFormat::Json => history_json(&found)?,
    };
    terminal::put(words.output.as_deref(), text.as_bytes())?;
    Ok(exit::FINE)
}

/// Prints changes over time.
fn by_date(words: &History, comparison: &Comparison, metric: Metric) -> Result<u8> {
    if words.order.is_some() || words.branches {
        bail!("order result sets by date: leave out --order and --branches");
    }
    let of = DateOptions {
        metric,
        as_otava: words.otava,
        max_p: MAX_P,
        min_magnitude: words.min_magnitude.unwrap_or(0.0),
        same_host: words.same_host,
    };
    let found = date_histories(comparison, &of);
    if found.is_empty() {
        bail!(
            "find a history in these results: no target has values of {} in two result sets of \
             one host; name the folders of several days, or add --same-host where a host only got \
             a new kernel or system",
            metric.name()
        );
    }
    let text = match words.format {
        HistoryFormat::Text => render_text(&dates_document(&found), terminal::columns()),
        HistoryFormat::Markdown => render_markdown(&dates_document(&found)),
        HistoryFormat::Csv => dates_csv(&found),
        HistoryFormat::Json => dates_json(&found)?,
    };
    terminal::put(words.output.as_deref(), text.as_bytes())?;
    Ok(exit::FINE)
}

/// The metric of this name, and the comparison that has it: of the rates, or of the counts beside
/// them. Without a name, the rate; of nothing but counts, instructions per operation.
fn metric_of<'a>(
    comparison: &'a Comparison,
    name: Option<&str>,
) -> Result<(&'a Comparison, Metric)> {
    let only_counts = name.is_none() && is_counted(comparison);
    let usual = if only_counts { Metric::InstructionsPerOp } else { Metric::Rate };
    let name = name.unwrap_or(usual.name());
    let all = || std::iter::once(comparison).chain(comparison.counts.as_deref());
    let known = || all().flat_map(|one| one.metrics().into_iter().map(move |it| (one, it)));
    match known().find(|(_, metric)| metric.name() == name) {
        Some(found) => Ok(found),
        None => {
            let names: Vec<&str> = known().map(|(_, metric)| metric.name()).collect();
            bail!("find the metric `{name}`: these results have {}", names.join(", "))
        }
    }
}

/// The labels in an order file, without empty lines and lines that begin with #.
fn order(path: &Path) -> Result<Vec<String>> {
    let text = bounded::text(path, bounded::WRITTEN_MAX)
        .with_context(|| format!("read the order of versions from {}", path.display()))?;
    let lines = text.lines().map(str::trim);
    let labels = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(labels.map(str::to_owned).collect())
}

#[derive(Debug, Args)]
pub(super) struct History {
    /// Result folders with two or more versions of a DBMS; with --by date, of two or more days
    #[arg(required = true, value_name = "DIR", add = ArgValueCompleter::new(help::result_folders))]
    pub folders: Vec<PathBuf>,
    /// Order of the points: versions of a DBMS, or dates of the result sets of each target
    #[arg(long, value_enum, default_value = "version")]
    pub by: HistoryOrder,
    /// With --by date: compute as Apache Otava 0.8.0 does, digit for digit
    #[arg(long)]
    pub otava: bool,
    /// With --by date: ignore changes up to this size [default: 0]
    #[arg(long, value_name = "SHARE", value_parser = share, allow_hyphen_values = true)]
    pub min_magnitude: Option<f64>,
    /// With --by date: take all hosts of a target for one, such as before and after a new kernel
    #[arg(long)]
    pub same_host: bool,
    /// Metric, such as o/s, server_cpu_us/o or instr/o [default: o/s, or instr/o if there are only
    /// counts]
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// Look for changes along the first version of each branch (10.4.8, 10.5.6, …) and along each
    /// branch, not along all versions
    #[arg(long, conflicts_with = "order")]
    pub branches: bool,
    /// File with one target label per line, the oldest first [default: by version number]
    #[arg(long, value_name = "FILE")]
    pub order: Option<PathBuf>,
    #[command(flatten)]
    pub rules: RuleOptions,
    /// Format of the report
    #[arg(long, value_enum, default_value = "text")]
    pub format: HistoryFormat,
    /// Write the report to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum HistoryOrder {
    Version,
    Date,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum HistoryFormat {
    Text,
    Markdown,
    Csv,
    Json,
}
