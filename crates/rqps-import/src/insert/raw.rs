//! Reads the raw files of an Insert Benchmark run: finds folders of targets and steps, and parses
//! their files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::ImportError;
use crate::insert::client::{self, ClientOutput};
use crate::insert::histograms::{self, HistogramRow};
use crate::insert::res::{self, StepSummary};
use crate::insert::tables::split_size;
use crate::iostat::{self, IostatFile};
use crate::notice::{Notice, NoticeKind};
use crate::text::{Text, names};
use crate::vmstat::{self, VmstatFile};

/// The files of one step of one target.
#[derive(Debug, Default)]
pub(crate) struct RawInsertStep {
    pub folder: PathBuf,
    /// `20m`, if the folder of the target tells the size.
    pub size: Option<String>,
    pub target: String,
    pub step: String,
    pub clients: u32,
    /// Outputs by client number, from 1.
    pub outputs: BTreeMap<u32, (Text, ClientOutput)>,
    pub summary: Option<(Text, StepSummary)>,
    pub vm: Option<(Text, VmstatFile)>,
    pub io: Option<(Text, IostatFile)>,
    /// Operation, file and rows of each histogram file.
    pub times: Vec<(String, Text, Vec<HistogramRow>)>,
}

/// Parses `o.ib.dop4.2` as `ib`, 4 clients, number 2. `None` for another form.
pub fn file_name(name: &str) -> Option<(&str, Option<u32>, Option<u32>)> {
    let name = name.strip_suffix(".gz").unwrap_or(name);
    let rest = name.strip_prefix("o.").filter(|rest| !rest.is_empty())?;
    let Some((kind, numbers)) = rest.split_once(".dop") else { return Some((rest, None, None)) };
    let (clients, number) = match numbers.split_once('.') {
        Some((clients, number)) => (clients, Some(number.parse().ok()?)),
        None => (numbers, None),
    };
    let clients = clients.parse().ok().filter(|clients| *clients > 0)?;
    Some((kind, Some(clients), number))
}

/// True for the folder of a step: it contains the output of a client, or a summary.
pub(crate) fn is_step(folder: &Path) -> Result<bool, ImportError> {
    let is = |name: &String| matches!(file_name(name), Some(("ib" | "res", Some(_), _)));
    Ok(names(folder)?.iter().any(is))
}

/// The folders of steps in the folder of a target; empty if there are none.
pub(crate) fn steps_of(folder: &Path) -> Result<Vec<PathBuf>, ImportError> {
    let mut steps = Vec::new();
    for name in names(folder)? {
        let path = folder.join(&name);
        if path.is_dir() && is_step(&path)? {
            steps.push(path);
        }
    }
    steps.sort_by_key(|path| place(&file(path)));
    Ok(steps)
}

/// True for the folder of all targets with one number of clients: `4u.1tno`.
pub(crate) fn is_of_clients(name: &str) -> bool {
    let Some((clients, tables)) = name.split_once("u.1t") else { return false };
    clients.parse::<u32>().is_ok() && ["yes", "no"].contains(&tables)
}

fn file(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The order of a step: first loads, then queries by the number after `L`.
fn place(step: &str) -> (u32, u32, String) {
    let load = ["l.i0", "l.x", "l.i1", "l.i2"].iter().position(|load| *load == step);
    let number = step
        .split_once(".L")
        .and_then(|(_, rest)| rest.split('.').next().and_then(|number| number.parse::<u32>().ok()));
    match (load, number) {
        (Some(load), _) => (0, load as u32, String::new()),
        (None, Some(number)) => (1, number, step.to_owned()),
        (None, None) => (2, 0, step.to_owned()),
    }
}

/// Names of steps from their folders, in order. In 2021, the second folder of 100 rows/s,
/// `q.L2.ips100`, was reported as `q100.2`.
fn step_names(folders: &[String]) -> Vec<String> {
    let rate = |name: &str| -> Option<u32> {
        let (_, rate) = name.strip_prefix("q.L")?.split_once(".ips")?;
        rate.parse().ok()
    };
    let named = |(place, name): (usize, &String)| match rate(name) {
        Some(of) => {
            let before = folders[..place].iter().filter(|other| rate(other) == Some(of)).count();
            format!("q{of}.{}", before + 1)
        }
        None => name.clone(),
    };
    folders.iter().enumerate().map(named).collect()
}

/// Reads `steps` of the target in `folder`.
///
/// # Errors
///
/// A damaged file, with its line; a folder with files for several numbers of clients.
pub(crate) fn read(
    folder: &Path,
    steps: &[PathBuf],
    notices: &mut Vec<Notice>,
) -> Result<Vec<RawInsertStep>, ImportError> {
    // `.` and `..` have no name.
    let real = std::fs::canonicalize(folder).map_err(ImportError::io(folder))?;
    let name = file(&real);
    let (size, target) = split_size(&name);
    let siblings: Vec<String> = steps_of(folder)?.iter().map(|path| file(path)).collect();
    let named = step_names(&siblings);
    let mut unused: BTreeMap<String, usize> = BTreeMap::new();
    let mut read = Vec::new();
    for path in steps {
        let own = file(&std::fs::canonicalize(path).map_err(ImportError::io(path))?);
        let place = siblings.iter().position(|sibling| *sibling == own);
        let step = place.map_or_else(|| own.clone(), |place| named[place].clone());
        let mut raw = RawInsertStep {
            folder: path.clone(),
            size: size.map(str::to_owned),
            target: target.to_owned(),
            step,
            ..RawInsertStep::default()
        };
        take_files(&mut raw, &mut unused)?;
        read.push(raw);
    }
    let beside: Vec<String> = names(folder)?
        .into_iter()
        .filter(|name| !siblings.contains(name) && steps.len() == siblings.len())
        .collect();
    if !read.is_empty() && !beside.is_empty() {
        let what = format!("no steps: {}", beside.join(", "));
        notices.push(Notice::of(NoticeKind::Left, folder, what));
    }
    if !unused.is_empty() {
        let kinds: Vec<String> = unused.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
        let what = format!("files without an rqps metric: {}", kinds.join(", "));
        notices.push(Notice::of(NoticeKind::Left, folder, what));
    }
    Ok(read)
}

fn take_files(
    raw: &mut RawInsertStep,
    unused: &mut BTreeMap<String, usize>,
) -> Result<(), ImportError> {
    for name in names(&raw.folder)? {
        let path = raw.folder.join(&name);
        let Some((kind, clients, number)) = file_name(&name) else {
            *unused.entry(name).or_default() += 1;
            continue;
        };
        if let Some(clients) = clients {
            if raw.clients != 0 && raw.clients != clients {
                let why = format!("it holds files of {} and of {clients} clients", raw.clients);
                return Err(ImportError::foreign(&raw.folder, why));
            }
            raw.clients = clients;
        }
        match (kind, clients, number) {
            ("ib", Some(clients), Some(number)) => {
                if !(1..=clients).contains(&number) {
                    let why = format!("client {number} of {clients}");
                    return Err(ImportError::foreign(&path, why));
                }
                let text = Text::read(&path)?;
                let output = client::parse(&text)?;
                raw.outputs.insert(number, (text, output));
            }
            ("res", Some(clients), None) => {
                let text = Text::read(&path)?;
                let summary = res::parse(&text)?;
                if summary.clients != clients {
                    let why = format!(
                        "{} processes, but the file's name says {clients}",
                        summary.clients
                    );
                    return Err(text.malformed(1, why));
                }
                raw.summary = Some((text, summary));
            }
            ("vm", Some(_), None) => {
                let text = Text::read(&path)?;
                raw.vm = Some((text.clone(), vmstat::parse(&text)?));
            }
            ("io", Some(_), None) => {
                let text = Text::read(&path)?;
                raw.io = Some((text.clone(), iostat::parse(&text)?));
            }
            ("rt.t.insert" | "rt.t.delete" | "rt.t.query", None, None) => {
                let text = Text::read(&path)?;
                let rows = histograms::parse(&text)?;
                raw.times.push((kind["rt.t.".len()..].to_owned(), text, rows));
            }
            _ => *unused.entry(format!("o.{kind}")).or_default() += 1,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_taken_apart() {
        let check = |name: &str, expected| assert_eq!(file_name(name), expected, "{name}");
        check("o.ib.dop4.2", Some(("ib", Some(4), Some(2))));
        check("o.top.dop1.gz", Some(("top", Some(1), None)));
        check("o.pg.lswal.dop20", Some(("pg.lswal", Some(20), None)));
        check("o.rt.t.insert", Some(("rt.t.insert", None, None)));
        for name in ["", "o.", "ib.dop1.1", "o.ib.dopx.1", "o.ib.dop0.1", "o.ib.dop1.x"] {
            check(name, None);
        }
        assert!(is_of_clients("20u.1tyes") && is_of_clients("1u.1tno"));
        assert!(!is_of_clients("u.1tno") && !is_of_clients("1u.1tmaybe"));
    }

    #[test]
    fn steps_have_the_names_of_reports() {
        let mut folders: Vec<String> =
            ["q.L10.ips100", "q.L2.ips100", "q.L1.ips100", "l.i1", "l.x", "q.L3.ips200", "l.i0"]
                .map(str::to_owned)
                .to_vec();
        folders.sort_by_key(|folder| place(folder));
        assert_eq!(
            step_names(&folders),
            ["l.i0", "l.x", "l.i1", "q100.1", "q100.2", "q200.1", "q100.3"]
        );
        assert_eq!(step_names(&["qr100.L1".to_owned()]), ["qr100.L1"]);
    }
}
