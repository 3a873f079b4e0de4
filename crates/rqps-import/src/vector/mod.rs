//! Importers of the texts of ann-benchmarks.

pub mod ann_text;

use std::collections::BTreeMap;
use std::path::Path;

use super::cells::{Kept, decimals_agree, number};
use super::format::{ImportError, ImportFormat, ImportOptions, Named, Notice, NoticeKind, Result};
use super::published::{self, Published, StepKind, add_file, untagged};
use super::text::{Leftovers, Text, names};
use super::unnamed;
pub use FORMAT as ANN_BENCHMARKS;
use ann_text::{Configuration, ListedBuild, PlotPoint, Selected};
use rqps_model::benchmark::{Group, RateUnit};
use rqps_model::build::Dbms;
use rqps_model::metric::Metric;
use rqps_model::script::StepParameters;
use rqps_model::vector::VectorParameters;

// Importer `ann-benchmarks`: points of recall and rate, build times, and published rows.

/// All files found, by form.
#[derive(Default)]
struct Sources {
    plots: Vec<(Text, Vec<PlotPoint>)>,
    builds: Vec<(Text, Vec<ListedBuild>)>,
    selected: Vec<(Text, Vec<Selected>)>,
    notices: Vec<Notice>,
}

/// The importer of plots, builds and logs.
pub const FORMAT: ImportFormat = ImportFormat { word: "ann-benchmarks", read };

/// Reads files and folders.
///
/// # Errors
///
/// A damaged file, with its line; a named file of an unknown form; a folder without known files; no
/// points.
fn read(paths: &[Named], options: &ImportOptions) -> Result<Published> {
    let mut sources = Sources::default();
    unnamed(paths)?;
    for named in paths {
        if named.path.is_dir() {
            take_folder(&named.path, &mut sources)?;
        } else if !take_text(Text::read(&named.path)?, &mut sources)? {
            let why = "it holds no points of a plot (`NAME(key=value, …) recall qps`), no table of \
                       builds, no selected rows and no log of ann-benchmarks";
            return Err(ImportError::foreign(&named.path, why));
        }
    }
    let mut published = Published { benchmark: "vector", ..Published::default() };
    published.notices.append(&mut sources.notices);
    if sources.plots.is_empty() {
        let path = paths.first().map(|named| named.path.clone()).unwrap_or_default();
        let why = "it holds no points of a plot; add the plot's text";
        return Err(ImportError::foreign(&path, why));
    }
    leave_nameless(&mut sources, &mut published);
    check_builds(&sources, &mut published);
    take_points(&sources, options, &mut published);
    check_selected(&sources, &mut published);
    count_cells(&sources, &mut published);
    published.host = published::host(options.cpus, None, None);
    Ok(published)
}

fn take_folder(folder: &Path, sources: &mut Sources) -> Result<()> {
    let (mut left, mut found) = (Leftovers::default(), false);
    for name in names(folder)? {
        let path = folder.join(&name);
        if path.is_dir() {
            let text = "a folder: import it separately if it holds results".to_owned();
            sources.notices.push(Notice::of(NoticeKind::Left, &path, text));
        } else {
            found |= left.take(folder, &name, |text| take_text(text, sources))?;
        }
    }
    if !found {
        return Err(ImportError::foreign(folder, "it holds no ann-benchmarks text"));
    }
    sources.notices.extend(left.notice(folder, "unknown form"));
    Ok(())
}

/// False if the text has no known form.
fn take_text(text: Text, sources: &mut Sources) -> Result<bool> {
    if ann_text::is_log(&text) {
        let builds = ann_text::parse_log(&text)?;
        sources.builds.push((text, builds));
    } else if ann_text::is_selected(&text) {
        let rows = ann_text::parse_selected(&text)?;
        sources.selected.push((text, rows));
    } else if ann_text::is_plot(&text) {
        let points = ann_text::parse_plot(&text)?;
        sources.plots.push((text, points));
    } else if ann_text::is_builds(&text) {
        let builds = ann_text::parse_builds(&text)?;
        sources.builds.push((text, builds));
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// True if the build is that of the configuration's index; names of algorithms match in any case.
fn is_build_of(build: &ListedBuild, configuration: &Configuration) -> bool {
    build.algorithm.eq_ignore_ascii_case(&configuration.algorithm)
        && configuration.m() == Some(build.m.as_str())
        && configuration.ef_construction() == build.ef_construction.as_deref()
        && match configuration.quantization() {
            Some(quantization) => build.quantization.as_deref().is_none_or(|q| q == quantization),
            None => build.quantization.is_none(),
        }
}

/// The step's name as in vector search: `search.m=16.ec=64.ef=20`, followed by parameters that rqps
/// does not have.
fn step_name(configuration: &Configuration, clients: u32) -> String {
    let mut name = "search".to_owned();
    let known = [
        ("m", configuration.m()),
        ("ec", configuration.ef_construction()),
        ("ef", configuration.ef_search()),
    ];
    for (key, value) in known {
        if let Some(value) = value {
            name.push_str(&format!(".{key}={value}"));
        }
    }
    if clients > 1 {
        name.push_str(&format!(".clients={clients}"));
    }
    for other in configuration.others() {
        name.push_str(&format!(".{other}"));
    }
    name
}

/// The step's parameters. Points with parameters that rqps does not have are on no curve: they
/// would hide others.
fn parameters(configuration: &Configuration, clients: u32) -> StepParameters {
    let read = |value: Option<&str>| value.map(str::parse).transpose();
    let widths = [configuration.ef_construction(), configuration.ef_search()].map(read);
    let own = match (read(configuration.m()), widths) {
        (Ok(m), [Ok(ef_construction), Ok(ef_search)]) => VectorParameters {
            on_curve: configuration.others().is_empty(),
            m,
            ef_construction,
            ef_search,
            clients: Some(clients),
            ..VectorParameters::default()
        },
        _ => VectorParameters::default(),
    };
    let of_one_dbms = configuration.m().is_some();
    StepParameters { of_one_dbms, ..StepParameters::of(&own) }
}

fn take_points(sources: &Sources, options: &ImportOptions, published: &mut Published) {
    let clients = options.clients.first().copied().unwrap_or(1);
    let mut repeats: BTreeMap<(String, String), Vec<&PlotPoint>> = BTreeMap::new();
    let (mut without_build, mut copies) = (0, BTreeMap::<&Path, usize>::new());
    for (text, point) in sources
        .plots
        .iter()
        .flat_map(|(text, points)| points.iter().map(move |point| (text, point)))
    {
        published.cells.read(text.path(), 2);
        let configuration = &point.configuration;
        let algorithm = &configuration.algorithm;
        let step = step_name(configuration, clients);
        let seen = repeats.entry((algorithm.clone(), step.clone())).or_default();
        // Plots of all points and of some of them repeat the same measurements.
        if seen.iter().any(|before| before.is_copy(point)) {
            *copies.entry(text.path()).or_default() += 1;
            published.cells.keep(text.path(), Kept::Compared, 2);
            continue;
        }
        seen.push(point);
        published.cells.keep(text.path(), Kept::Metric, 2);
        let block = u32::try_from(seen.len()).unwrap_or(u32::MAX);
        let tag = untagged(algorithm, dbms_of(algorithm));
        let run = published.run(algorithm, block, &tag);
        run.record.workload.clients = clients;
        let kind = StepKind { group: Group::Point, rate: RateUnit::Queries };
        let record = run.step(FORMAT.word, &step, kind);
        record.parameters = parameters(configuration, clients);
        add_file(record, &text.name());
        published::put(record, Metric::Rate, point.qps);
        published::put(record, Metric::Recall, point.recall);
        let builds = sources
            .builds
            .iter()
            .flat_map(|(text, builds)| builds.iter().map(move |build| (text, build)));
        let mut any = false;
        for (text, build) in builds.filter(|(_, build)| is_build_of(build, configuration)) {
            any = true;
            add_file(record, &text.name());
            let values = [
                (Metric::BuildSeconds, build.seconds.as_deref().and_then(number)),
                (Metric::IndexSize, build.megabytes),
                (Metric::LoadSeconds, build.load_seconds),
                (Metric::IndexSeconds, build.index_seconds),
            ];
            for (metric, value) in values {
                if let Some(value) = value {
                    published::put(record, metric, value);
                }
            }
        }
        without_build += usize::from(!any);
    }
    for (path, count) in copies {
        let what = format!("repeated points: {count}, imported once");
        published.left(path, what);
    }
    if without_build > 0 && !sources.builds.is_empty() {
        let text = format!("{without_build} points have no build in the tables and logs");
        let (plot, _) = &sources.plots[0];
        published.note(plot.path(), text);
    }
}

fn dbms_of(algorithm: &str) -> Dbms {
    let name = algorithm.to_lowercase();
    if name.starts_with("pgvector") {
        Dbms::Postgres
    } else if name.starts_with("mariadb") {
        Dbms::Mariadb
    } else {
        Dbms::Other
    }
}

/// Leaves out builds without M in the log, which belong to no point.
fn leave_nameless(sources: &mut Sources, published: &mut Published) {
    for (text, builds) in &mut sources.builds {
        let all = builds.len();
        builds.retain(|build| !build.m.is_empty());
        if builds.len() < all {
            let what = format!("builds without M in the log: {}", all - builds.len());
            published.left(text.path(), what);
        }
    }
}

/// Checks that builds in several files agree.
fn check_builds(sources: &Sources, published: &mut Published) {
    let all =
        || {
            sources.builds.iter().enumerate().flat_map(|(file, (text, builds))| {
                builds.iter().map(move |build| (file, text, build))
            })
        };
    let (mut agree, mut of) = (0, 0);
    for (file, text, build) in all() {
        let earlier = all().find(|(other, _, earlier)| {
            *other < file
                && earlier.algorithm.eq_ignore_ascii_case(&build.algorithm)
                && (&earlier.m, &earlier.ef_construction) == (&build.m, &build.ef_construction)
                && (earlier.quantization == build.quantization)
        });
        let Some((_, _, earlier)) = earlier else { continue };
        let (Some(here), Some(there)) = (&build.seconds, &earlier.seconds) else { continue };
        of += 1;
        if number(there).is_some_and(|there| same_number(there, here)) {
            agree += 1;
        } else {
            let what = format!(
                "{} with M {}: {here} s here, {there} s in another file; imported the other file's \
                 value",
                build.algorithm, build.m
            );
            published.mismatch(text.path(), build.line, what);
        }
    }
    published.check("build times of tables and logs", agree, of);
}

/// True if the numbers are equal within the printed precision.
fn same_number(number: f64, printed: &str) -> bool {
    decimals_agree(number, printed)
}

/// Counts the cells of builds and selected rows by what became of them.
fn count_cells(sources: &Sources, published: &mut Published) {
    let points = || sources.plots.iter().flat_map(|(_, points)| points);
    for (text, builds) in &sources.builds {
        for build in builds {
            let numbers = [build.megabytes, build.load_seconds, build.index_seconds];
            let cells = usize::from(build.seconds.is_some()) + numbers.iter().flatten().count();
            let below_zero = usize::from(build.below_zero);
            published.cells.read(text.path(), cells + below_zero);
            published.cells.leave(text.path(), "sizes of indexes below zero", below_zero);
            if points().any(|point| is_build_of(build, &point.configuration)) {
                published.cells.keep(text.path(), Kept::Metric, cells)
            } else {
                published.cells.leave(text.path(), "builds without a point", cells)
            }
        }
    }
    for (text, rows) in &sources.selected {
        let cells = rows.iter().map(|row| 2 + usize::from(row.seconds.is_some())).sum();
        published.cells.read(text.path(), cells);
        published.cells.keep(text.path(), Kept::Compared, cells);
    }
}

/// Checks that published rows are points, agree on build times, and are the best for their recall.
fn check_selected(sources: &Sources, published: &mut Published) {
    let mut points: Vec<&PlotPoint> = Vec::new();
    for point in sources.plots.iter().flat_map(|(_, points)| points) {
        let same = |other: &&PlotPoint| {
            (other.recall, other.qps) == (point.recall, point.qps)
                && other.configuration.is_same(&point.configuration)
        };
        if !points.iter().any(same) {
            points.push(point);
        }
    }
    let (mut are_points, mut are_best, mut of_points, mut of_best) = (0, 0, 0, 0);
    let (mut are_timed, mut of_timed) = (0, 0);
    let mut notices = Vec::new();
    for (text, rows) in &sources.selected {
        for row in rows {
            let mut wrong = |what: String| {
                notices.push(Notice::at(NoticeKind::Mismatch, text.path(), row.line, what));
            };
            of_points += 1;
            let same = |point: &&&PlotPoint| is_point(row, point);
            match points.iter().find(same) {
                Some(_) => are_points += 1,
                None => wrong("no point of the plot has this recall and rate".to_owned()),
            }
            if let Some(printed) = &row.seconds {
                of_timed += 1;
                let builds = sources.builds.iter().flat_map(|(_, builds)| builds);
                let mut builds = builds.filter(|build| is_build_of(build, &row.configuration));
                let seconds = builds.find_map(|build| number(build.seconds.as_deref()?));
                match seconds {
                    Some(seconds) if same_number(seconds, printed) => are_timed += 1,
                    Some(seconds) => wrong(format!("{printed} s, but the build took {seconds} s")),
                    None => wrong(format!("{printed} s, but no such build exists")),
                }
            }
            let Some(target) = row.target else { continue };
            let best = best(&points, &row.configuration, target);
            let Some(best) = best.get(row.place) else { continue };
            of_best += 1;
            let qps = number(&row.qps).unwrap_or(0.0);
            if same_number(best.qps, &row.qps) {
                are_best += 1;
            } else {
                wrong(format!(
                    "not the best with recall >= {target}: {} has recall {:.3} and {:.1} queries \
                     per second, {:+.1} %",
                    describe(&best.configuration),
                    best.recall,
                    best.qps,
                    100.0 * (best.qps / qps - 1.0)
                ));
            }
        }
    }
    published.notices.append(&mut notices);
    published.check("selected rows found in the plot", are_points, of_points);
    published.check("build times of selected rows", are_timed, of_timed);
    published.check("selected rows that are the best for their recall", are_best, of_best);
}

fn is_point(row: &Selected, point: &PlotPoint) -> bool {
    same_number(point.recall, &row.recall)
        && same_number(point.qps, &row.qps)
        && row.configuration.is_same(&point.configuration)
}

/// The points of the same kind with at least that recall, the fastest first. Recall has three
/// decimals, so 1.000 means 0.9995 or more.
fn best<'a>(points: &[&'a PlotPoint], like: &Configuration, recall: f64) -> Vec<&'a PlotPoint> {
    let is_of =
        |point: &&&PlotPoint| point.configuration.kind() == like.kind() && point.recall >= recall;
    let mut found: Vec<&PlotPoint> = points.iter().filter(is_of).copied().collect();
    found.sort_by(|a, b| b.qps.total_cmp(&a.qps));
    found
}

fn describe(configuration: &Configuration) -> String {
    let parameters = configuration.parameters.iter().map(|(name, value)| format!("{name}={value}"));
    format!("{}({})", configuration.algorithm, parameters.collect::<Vec<_>>().join(", "))
}
