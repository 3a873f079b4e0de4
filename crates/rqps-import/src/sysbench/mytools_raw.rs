//! Reads the files of one target and step: `sb.o`, `sb.met`, `sb.vm`, `sb.io`, `sb.r.qps`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::sb_met::{self, SbMet};
use crate::ImportError;
use crate::cells::Cells;
use crate::iostat::{self, Iostat, IostatFile};
use crate::notice::{Notice, NoticeKind};
use crate::sysbench::names::{LOAD, file_name};
use crate::sysbench::output::{self, Output};
use crate::text::Text;
use crate::vmstat::{self, VmstatFile};

/// The files of one step of one target.
#[derive(Debug, Default)]
pub(crate) struct RawStep {
    /// The folder that holds the folder of the target.
    pub folder: PathBuf,
    pub label: String,
    pub step: String,
    pub clients: Option<u32>,
    pub output: Option<(Text, Output)>,
    pub met: Option<(Text, SbMet)>,
    pub vm: Option<(Text, VmstatFile)>,
    pub io: Option<(Text, IostatFile)>,
    /// Rates of `sb.r.qps` as printed, one per number of clients.
    pub qps: Option<(Text, Vec<String>)>,
}

/// Reads all files and groups them by target, step and clients. One notice per target counts files
/// of other kinds (ps, top, sizes …).
///
/// # Errors
///
/// A damaged file, with its line.
pub(crate) fn read(
    files: &[(String, PathBuf)],
    notices: &mut Vec<Notice>,
) -> Result<Vec<RawStep>, ImportError> {
    let mut steps: Vec<RawStep> = Vec::new();
    let mut unused: BTreeMap<&str, BTreeMap<String, usize>> = BTreeMap::new();
    for (label, path) in files {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(name) = file_name(&name) else { continue };
        let kind = name.kind.strip_prefix("prepare.").unwrap_or(&name.kind);
        if !["o", "met", "vm", "io", "r.qps"].contains(&kind) {
            *unused.entry(label).or_default().entry(name.kind.clone()).or_default() += 1;
            continue;
        }
        // The output of sb.prepare.o differs by DBMS and has no fixed form.
        if name.step == LOAD && kind == "o" {
            *unused.entry(label).or_default().entry(name.kind.clone()).or_default() += 1;
            continue;
        }
        let folder = path.parent().and_then(Path::parent).unwrap_or(Path::new(""));
        let same = |step: &RawStep| {
            let of = (step.folder.as_path(), &step.label, &step.step, step.clients);
            of == (folder, label, &name.step, name.clients)
        };
        let place = steps.iter().position(same).unwrap_or_else(|| {
            let (folder, label, step) = (folder.to_owned(), label.clone(), name.step.clone());
            steps.push(RawStep {
                folder,
                label,
                step,
                clients: name.clients,
                ..Default::default()
            });
            steps.len() - 1
        });
        take(&mut steps[place], kind, Text::read(path)?)?;
    }
    for (label, kinds) in unused {
        let kinds: Vec<String> = kinds.iter().map(|(kind, n)| format!("{n} sb.{kind}")).collect();
        let text = format!("files without an rqps metric: {}", kinds.join(", "));
        let notice = Notice { kind: NoticeKind::Left, file: label.to_owned(), line: None, text };
        notices.push(notice);
    }
    Ok(steps)
}

fn take(step: &mut RawStep, kind: &str, text: Text) -> Result<(), ImportError> {
    match kind {
        "o" => {
            let mut outputs = output::parse(&text)?;
            if let Some(second) = outputs.get(1) {
                return Err(text.malformed(second.line, "a second run in the file of one step"));
            }
            step.output = outputs.pop().map(|output| (text, output));
        }
        "met" => step.met = Some((text.clone(), sb_met::parse(&text)?)),
        "vm" => step.vm = Some((text.clone(), vmstat::parse(&text)?)),
        "io" => step.io = Some((text.clone(), iostat::parse(&text)?)),
        _ => step.qps = Some((text.clone(), rates(&text)?)),
    }
    Ok(())
}

/// Reads `1022937 TAB … TAB pgsql point-query range=100`.
fn rates(text: &Text) -> Result<Vec<String>, ImportError> {
    let mut lines = text.lines().filter(|(_, line)| !line.trim().is_empty());
    let Some((line, row)) = lines.next() else { return Err(text.cut_short("the rates")) };
    let mut cells: Vec<String> = row.split('\t').map(|cell| cell.trim().to_owned()).collect();
    cells.pop();
    for (place, cell) in cells.iter().enumerate() {
        text.number(line, place + 1, "", cell)?;
    }
    if cells.is_empty() {
        Err(text.malformed(line, "expected rates, then a name, separated by tabs"))
    } else {
        Ok(cells)
    }
}

impl RawStep {
    /// Counts the cells of its tables and samples. Output of sysbench is not a table.
    pub(crate) fn count_cells(&self, cells: &mut Cells) {
        if let Some((text, met)) = &self.met {
            cells.read(text.path(), met.io.len() + met.vm.len());
        }
        if let Some((text, rates)) = &self.qps {
            cells.read(text.path(), rates.len());
        }
        if let Some((text, vm)) = &self.vm {
            vm.sampled.count(text, "vmstat", cells);
        }
        if let Some((text, io)) = &self.io {
            io.sampled.count(text, "iostat", cells);
        }
    }

    /// The rate for per-operation values, as printed.
    pub(crate) fn rate(&self) -> Option<&str> {
        let met = self.met.as_ref().and_then(|(_, met)| met.rate());
        met.or_else(|| self.output.as_ref().and_then(|(_, output)| output.qps.as_deref()))
    }

    /// The device whose lines give the published means: the requested one, or the first. Without
    /// published means, the only active device.
    pub(crate) fn device(&self, asked: Option<&str>) -> Option<(String, Iostat, usize)> {
        let (_, io) = self.io.as_ref()?;
        let of = |name: &str| io.mean(name).map(|(mean, n)| (name.to_owned(), mean, n));
        if let Some(asked) = asked {
            return of(asked);
        }
        let mut devices: Vec<(String, Iostat, usize)> =
            io.devices.keys().filter_map(|name| of(name)).collect();
        let met = self.met.as_ref().map(|(_, met)| met).filter(|met| !met.io.is_empty());
        let asked_by_means = met.is_some();
        match met {
            Some(met) => devices.retain(|(_, mean, n)| {
                let again = sb_met::io_block(mean, *n, met.rate().unwrap_or(""));
                again.is_some_and(|again| sb_met::differences(&met.io, &again).is_empty())
            }),
            None => devices.retain(|(_, mean, _)| mean.reads > 0.0 || mean.writes > 0.0),
        }
        // Several with the same means, such as both halves of a mirror, are equivalent.
        let one = devices.len() == 1 || (asked_by_means && !devices.is_empty());
        one.then(|| devices.remove(0))
    }
}
