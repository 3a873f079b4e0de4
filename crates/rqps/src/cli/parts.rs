//! Several workloads in one command: each is a part with a result folder of its own, and one report
//! has them all. Rates of different workloads are never pooled.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::cli::sweep::Sweep;
use crate::cli::workload_args::WorkloadArgs;
use rqps_lab::plan::file;
use rqps_model::benchmark::Workload;
use rqps_model::bounded;

/// Most parts of a command.
const MOST: usize = 64;

/// A workload of a command, and the name of its folder.
pub(super) struct Part {
    pub(super) name: String,
    pub(super) shape: WorkloadArgs,
}

/// The parts that words ask for: one for each preset and combination of swept settings.
///
/// # Errors
/// A preset is named twice, or there are too many.
pub(super) fn of(shape: &WorkloadArgs, sweep: &Sweep) -> Result<Vec<Part>> {
    let mut parts: Vec<Part> = Vec::new();
    for preset in shape.preset.split(',').map(str::trim) {
        if parts.iter().any(|part| part.name == preset) {
            bail!("measure the preset {preset} twice: name each once, and repeat it by --blocks");
        }
        let mut shape = WorkloadArgs { preset: preset.to_owned(), ..shape.clone() };
        shape.settings.extend(sweep.of_steps.iter().cloned());
        parts.push(Part { name: preset.to_owned(), shape });
    }
    for values in &sweep.of_parts {
        let with = |part: &Part, setting: &String| {
            let mut shape = part.shape.clone();
            shape.settings.push(setting.clone());
            Part { name: format!("{}.{setting}", part.name), shape }
        };
        parts = parts.iter().flat_map(|part| values.iter().map(move |it| with(part, it))).collect();
    }
    if let Some(part) = parts.iter().find(|part| part.name.contains('/')) {
        bail!("measure the part {}: its name would be a path; put the value into --set", part.name);
    }
    if parts.len() > MOST {
        bail!("measure {} workloads: a command has at most {MOST} parts", parts.len());
    }
    Ok(parts)
}

/// Folders whose runs may be pooled, with the name of their part.
pub(super) type Pool = (String, Vec<PathBuf>);

/// Divides result folders into those with the same workload, if the same target was measured under
/// different ones. A folder of parts stands for them.
///
/// # Errors
/// A folder cannot be listed.
pub(super) fn pools(folders: &[PathBuf]) -> Result<Vec<Pool>> {
    let mut known: Vec<(Option<Said>, PathBuf)> = Vec::new();
    for folder in folders {
        for part in parts_of(folder)? {
            known.push((said(&part), part));
        }
    }
    let told: Vec<&Said> = known.iter().filter_map(|(said, _)| said.as_ref()).collect();
    let is_mixed = |(at, one): (usize, &&Said)| {
        let shares = |other: &&Said| one.labels.iter().any(|label| other.labels.contains(label));
        told[..at].iter().any(|other| other.measured != one.measured && shares(other))
    };
    if known.is_empty() || !told.iter().enumerate().any(is_mixed) {
        let all = known.into_iter().map(|(_, folder)| folder).collect();
        return Ok(vec![(String::new(), all)]);
    }
    let mut pools: Vec<(Option<Workload>, Pool)> = Vec::new();
    for (said, folder) in known {
        let measured = said.map(|said| said.measured);
        match pools.iter_mut().find(|(other, _)| *other == measured) {
            Some((_, (_, folders))) => folders.push(folder),
            None => {
                let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
                pools.push((measured, (name, vec![folder])));
            }
        }
    }
    Ok(pools.into_iter().map(|(_, pool)| pool).collect())
}

/// What the plan of a result folder says.
struct Said {
    labels: Vec<String>,
    measured: Workload,
}

/// `None` where there is no plan, as in imported results.
fn said(folder: &Path) -> Option<Said> {
    let text = bounded::text(&folder.join("plan.toml"), bounded::WRITTEN_MAX).ok()?;
    let plan = file::draft(&text).ok()?;
    let labels = plan.targets.iter().map(|target| target.label.clone()).collect();
    // Longer windows or another placement measure the same thing.
    let plain = Workload::plain(plan.workload.shape.clone());
    let Workload { tables, rows, clients, client_counts, pace, .. } = plan.workload;
    let Workload { cache_bytes, plain_statements, memory_limit, .. } = plan.workload;
    let measured = Workload {
        tables,
        rows,
        clients,
        client_counts,
        pace,
        cache_bytes,
        plain_statements,
        memory_limit,
        ..plain
    };
    Some(Said { labels, measured })
}

/// The result folders in a folder of parts; else the folder.
fn parts_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let is_set = |path: &Path| path.join("plan.toml").is_file();
    if is_set(folder) || !folder.join(MARK).is_file() {
        return Ok(vec![folder.to_owned()]);
    }
    let doing = || format!("read the parts in {}", folder.display());
    let text = bounded::text(&folder.join(MARK), bounded::WRITTEN_MAX).with_context(doing)?;
    let named = text.lines().take(MOST);
    let parts = named.filter(|name| !name.contains('/') && !name.starts_with('.'));
    Ok(parts.map(|name| folder.join(name)).filter(|path| is_set(path)).collect())
}

/// The file with the names of the parts of a folder, in their order.
const MARK: &str = "parts";

/// True for a folder of parts.
pub(super) fn is_folder(folder: &Path) -> bool {
    folder.join(MARK).is_file()
}

/// Makes the folder of parts, or takes it up again.
///
/// # Errors
/// It holds something else.
pub(super) fn make_folder(folder: &Path, parts: &[Part]) -> Result<()> {
    let doing = || format!("make the folder of parts {}", folder.display());
    fs::create_dir_all(folder).with_context(doing)?;
    let names: String = parts.iter().map(|part| format!("{}\n", part.name)).collect();
    let mark = folder.join(MARK);
    if mark.exists() {
        if bounded::text(&mark, bounded::WRITTEN_MAX).with_context(doing)? != names {
            bail!("{}: it has other parts; name another folder with --out", doing());
        }
        return Ok(());
    }
    if fs::read_dir(folder).with_context(doing)?.next().is_some() {
        bail!("{}: it is not empty; name another folder with --out", doing());
    }
    // Never through a link that somebody puts there meanwhile.
    let mut file = File::create_new(&mark).with_context(doing)?;
    file.write_all(names.as_bytes()).with_context(doing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_no_more_parts_than_a_command() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(folder.path().join("a/plan.toml"), "").unwrap();
        let named = |names: &str| {
            fs::write(folder.path().join(MARK), names).unwrap();
            parts_of(folder.path()).unwrap().len()
        };
        assert_eq!(named("a\n../a\n.a\nb\n"), 1);
        assert_eq!(named(&"a\n".repeat(1000)), MOST);
    }
}
