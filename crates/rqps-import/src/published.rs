//! Output of an importer: records of runs and steps with published values only.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use super::cells::{Cells, Kept};
use super::format::{Notice, NoticeKind};
use super::tag::Tag;
use super::text::Text;
use rqps_model::benchmark::{BenchmarkParameters, Group, Idle, RateUnit, Workload};
use rqps_model::build::{BuildSource, Dbms, Manifest, Version};
use rqps_model::host::Host;
use rqps_model::metric::Metric;
use rqps_model::run::{FORMAT, Imported, RunKey, RunRecord, Status, StepRecord};
use rqps_model::target::{Config, Target};
use rqps_model::units;
use rqps_stats::summary::{follows, printed_ratio};

/// The reason for a missing value that rqps's own runs have.
pub const NOT_IN_FILES: &str = "not in the imported files";

/// All that was read, ready to be written.
#[derive(Clone, Debug, Default)]
pub struct Published {
    /// `sysbench`, `insert`, `kv`, `vector`.
    pub benchmark: &'static str,
    /// True if each date is a result set of its own, in a folder of its own.
    pub by_date: bool,
    /// The host according to the files.
    pub host: Host,
    /// Targets in the order of the files; the first is the base.
    pub runs: Vec<PublishedRun>,
    /// The notices.
    pub notices: Vec<Notice>,
    /// The outcome of each published cell.
    pub cells: Cells,
    /// Comparisons of published numbers with recomputed ones, cell by cell.
    pub checks: Vec<Check>,
}

/// Cells that were made again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The cells, and their source.
    pub what: String,
    /// Number of cells that agree.
    pub agree: usize,
    /// Number of cells.
    pub of: usize,
}

/// One target in one repetition.
#[derive(Clone, Debug)]
pub struct PublishedRun {
    /// `run.json`, but for its hash of the plan.
    pub record: RunRecord,
    /// Steps in order; their `index` is set when they are written.
    pub steps: Vec<StepRecord>,
    /// Texts for the folder of logs: name, text.
    pub logs: Vec<(String, String)>,
}

impl Published {
    /// The run of that label and block; a new one if there is none.
    pub fn run(&mut self, label: &str, block: u32, tag: &Tag) -> &mut PublishedRun {
        self.run_of(label, block, None, tag)
    }

    /// The run of that label, block and date; a new one if there is none.
    pub fn run_at(&mut self, label: &str, block: u32, date: &str, tag: &Tag) -> &mut PublishedRun {
        self.run_of(label, block, Some(date), tag)
    }

    fn run_of(
        &mut self,
        label: &str,
        block: u32,
        date: Option<&str>,
        tag: &Tag,
    ) -> &mut PublishedRun {
        let label = safe(label);
        let is_same = |run: &PublishedRun| {
            let key = (run.record.key.label.as_str(), run.record.key.block);
            key == (&*label, block) && date.is_none_or(|date| run.record.started == date)
        };
        let place = self.runs.iter().position(is_same).unwrap_or_else(|| {
            let mut record = run_record(self.benchmark, &label, block, tag);
            if let Some(date) = date {
                date.clone_into(&mut record.started);
            }
            self.runs.push(PublishedRun { record, steps: Vec::new(), logs: Vec::new() });
            self.runs.len() - 1
        });
        &mut self.runs[place]
    }

    /// One for each date, the oldest first, with its name as a folder.
    pub(super) fn dates(&self) -> Vec<(String, Published)> {
        let mut dates: Vec<&str> =
            self.runs.iter().map(|run| run.record.started.as_str()).collect();
        dates.sort_unstable();
        dates.dedup();
        let of_date = |date: &str| {
            let runs = self.runs.iter().filter(|run| run.record.started == date);
            let (host, runs) = (self.host.clone(), runs.cloned().collect());
            let one = Published { benchmark: self.benchmark, host, runs, ..Published::default() };
            (date.replace(':', ""), one)
        };
        dates.into_iter().map(of_date).collect()
    }

    /// Counts a check; checks of one name count as one.
    pub fn check(&mut self, what: &str, agree: usize, of: usize) {
        if of == 0 {
            return;
        }
        match self.checks.iter_mut().find(|check| check.what == what) {
            Some(check) => {
                check.agree += agree;
                check.of += of;
            }
            None => self.checks.push(Check { what: what.to_owned(), agree, of }),
        }
    }
}

impl Published {
    /// Tells a number that contradicts what others say.
    pub(crate) fn mismatch(&mut self, file: &Path, line: usize, what: impl Into<String>) {
        self.notices.push(Notice::at(NoticeKind::Mismatch, file, line, what));
    }

    /// Tells something about a file, or about what is named instead of one.
    pub(crate) fn note(&mut self, file: impl AsRef<Path>, what: impl Into<String>) {
        self.notices.push(Notice::of(NoticeKind::Note, file, what));
    }

    /// Names what was left out of a file or folder.
    pub(crate) fn left(&mut self, file: impl AsRef<Path>, what: impl Into<String>) {
        self.notices.push(Notice::of(NoticeKind::Left, file, what));
    }

    /// The value that the first block of a label has of a step.
    pub(crate) fn value(&self, label: &str, step: &str, metric: Metric) -> Option<f64> {
        let is_first = |run: &&PublishedRun| {
            (run.record.key.label.as_str(), run.record.key.block) == (label, 1)
        };
        let run = self.runs.iter().find(is_first)?;
        let step = run.steps.iter().find(|record| record.name == step)?;
        step.outcome.extra.get(&metric).copied()
    }

    /// True if a printed ratio follows from the printed values; tells one that does not.
    pub(crate) fn follows(&mut self, ratio: &PrintedRatio<'_>, what: fmt::Arguments<'_>) -> bool {
        let PrintedRatio { text, line, printed, value, baseline } = *ratio;
        let follows = follows(printed, value, baseline);
        if !follows {
            let again = printed_ratio(value, baseline);
            let what =
                format!("{what}: published {printed}, but {value} / {baseline} gives {again}");
            self.mismatch(text.path(), line, what);
        }
        follows
    }
}

/// A ratio as it was printed, with the values that it is of.
#[derive(Clone, Copy)]
pub(crate) struct PrintedRatio<'a> {
    /// The file.
    pub text: &'a Text,
    /// The line.
    pub line: usize,
    /// The cell.
    pub printed: &'a str,
    /// The value of the target.
    pub value: f64,
    /// The value of the baseline.
    pub baseline: f64,
}

impl PublishedRun {
    /// Adds a line to a log.
    pub fn log(&mut self, name: &str, line: &str) {
        match self.logs.iter_mut().find(|(other, _)| other == name) {
            Some((_, text)) => text.push_str(line),
            None => self.logs.push((name.to_owned(), line.to_owned())),
        }
    }

    /// The step of that name; made where there is none yet.
    pub fn step(&mut self, format: &str, name: &str, kind: StepKind) -> &mut StepRecord {
        let name = safe(name);
        let found = self.steps.iter().position(|step| step.name == name);
        let place = found.unwrap_or_else(|| {
            self.steps.push(step_record(format, &name, kind));
            self.steps.len() - 1
        });
        &mut self.steps[place]
    }
}

/// The kind of a step, without its numbers.
#[derive(Clone, Copy, Debug)]
pub struct StepKind {
    /// The group that reports list it in.
    pub group: Group,
    /// The unit of its rate.
    pub rate: RateUnit,
}

/// Takes a value that no earlier file gave. Returns the one that the step has, and what this one was
/// good for.
pub(crate) fn take(step: &mut StepRecord, metric: Metric, value: f64) -> (f64, Kept) {
    let kept = if step.outcome.extra.contains_key(&metric) { Kept::Compared } else { Kept::Metric };
    (*step.outcome.extra.entry(metric).or_insert(value), kept)
}

/// Notes that a step's numbers are from that file too.
pub(crate) fn add_file(step: &mut StepRecord, file: &str) {
    if let Some(imported) = &mut step.imported
        && !imported.files.iter().any(|other| other == file)
    {
        imported.files.push(file.to_owned());
    }
}

/// Keeps a cell for which there is no metric, by the head of its column. What another file says of
/// the same column stands beside it.
pub(crate) fn annotate(step: &mut StepRecord, head: &str, printed: &str) {
    let Some(imported) = &mut step.imported else { return };
    match imported.annotations.get_mut(head) {
        Some(before) if before != printed => {
            before.push_str(" / ");
            before.push_str(printed);
        }
        Some(_) => {}
        None => {
            imported.annotations.insert(head.to_owned(), printed.to_owned());
        }
    }
}

/// Keeps what the author of a table wrote beside the row of the step.
pub(crate) fn remark(step: &mut StepRecord, words: &str) {
    if let Some(imported) = &mut step.imported
        && !imported.remarks.iter().any(|other| other == words)
    {
        imported.remarks.push(words.to_owned());
    }
}

/// Names become names of files.
pub(super) fn safe(name: &str) -> String {
    let name: String =
        name.chars().map(|c| if c == '/' || c.is_control() { '_' } else { c }).collect();
    match name.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None if name.is_empty() => "_".to_owned(),
        None => name,
    }
}

fn run_record(benchmark: &str, label: &str, block: u32, tag: &Tag) -> RunRecord {
    let version = tag.version.clone().unwrap_or_else(|| Version::new(tag.text.clone()));
    let config = tag.config.clone().unwrap_or_else(|| "unknown".to_owned());
    RunRecord {
        format: FORMAT,
        key: RunKey { block, attempt: 1, order: 1, label: label.to_owned() },
        target: Target {
            label: label.to_owned(),
            dbms: tag.dbms,
            source: BuildSource::Imported(tag.text.clone()),
            config: config.clone(),
            storage_engine: tag.storage_engine.map(str::to_owned),
        },
        manifest: Manifest {
            dbms: tag.dbms,
            version,
            reported: tag.text.clone(),
            origin: "imported".to_owned(),
            sha256: None,
            compiler: None,
            packages: std::collections::BTreeMap::new(),
        },
        debug_build: None,
        server_settings: Default::default(),
        place: None,
        config: settings(&config),
        benchmark: benchmark.to_owned(),
        workload: unknown_workload(),
        seed: 0,
        plan_hash: String::new(),
        targets: Vec::new(),
        host_fingerprint: String::new(),
        node: None,
        sitting: None,
        rqps_version: env!("CARGO_PKG_VERSION").to_owned(),
        started: "unknown".to_owned(),
        finished: None,
        status: Status::Complete,
        load: None,
        tables: Vec::new(),
        answers_after: Default::default(),
        schedule: None,
    }
}

/// The name of a configuration is all that results tell of it.
fn settings(name: &str) -> Config {
    let text = format!("# {NOT_IN_FILES}\n");
    let hash = units::short_hash(&text);
    Config { name: name.to_owned(), text, hash }
}

/// An unknown workload: reports say so where rows are 0.
fn unknown_workload() -> Workload {
    Workload {
        tables: 0,
        rows: 0,
        clients: 0,
        idle: Idle::Os,
        ..Workload::plain(BenchmarkParameters::default())
    }
}

fn step_record(format: &str, name: &str, kind: StepKind) -> StepRecord {
    StepRecord {
        started: "unknown".to_owned(),
        imported: Some(Imported { format: format.to_owned(), ..Imported::default() }),
        ..StepRecord::empty(0, name, kind.group, kind.rate)
    }
}

/// Facts of the machine, where tags or outputs tell of it; the rest with its reason.
pub(crate) fn host(cpus: Option<u32>, gigabytes: Option<u64>, kernel: Option<String>) -> Host {
    let mut missing = BTreeMap::new();
    let mut note = |fact: &str, known: bool| {
        if !known {
            missing.insert(fact.to_owned(), NOT_IN_FILES.to_owned());
        }
    };
    note("cpus", cpus.is_some());
    note("memory_bytes", gigabytes.is_some());
    note("kernel", kernel.is_some());
    for fact in ["cpu_model", "cores", "governor", "disk", "filesystem", "os"] {
        note(fact, false);
    }
    Host {
        cpus: cpus.unwrap_or(0),
        memory_bytes: gigabytes.unwrap_or(0) << 30,
        kernel,
        missing,
        ..Host::default()
    }
}

/// A target without a tag: a label, and the product where somebody said it.
pub(crate) fn untagged(label: &str, dbms: Dbms) -> Tag {
    Tag {
        text: label.to_owned(),
        dbms,
        version: None,
        storage_engine: None,
        config: None,
        machine: None,
    }
}

/// Puts a published value; `false` if the step has another already.
pub(crate) fn put(step: &mut StepRecord, metric: Metric, value: f64) -> bool {
    *step.outcome.extra.entry(metric).or_insert(value) == value
}
