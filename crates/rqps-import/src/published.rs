//! Output of an importer: records of runs and steps with published values only.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use super::cells::{Cells, Kept, decimals_agree};
use super::format::{Across, ImportError, Notice, NoticeKind, Result};
use super::text::Text;
use rqps_dbms::spec::{self, DbmsSpec, TagScheme};
use rqps_model::benchmark::{BenchmarkParameters, Group, Idle, RateUnit, Workload};
use rqps_model::build::{BuildSource, Config, Dbms, Manifest, Target, Version};
use rqps_model::host::Host;
use rqps_model::metric::Metric;
use rqps_model::run::{FORMAT, Imported, RunKey, RunRecord, Status, StepRecord};
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
            code: None,
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

// The same numbers under two labels are one build: a report names it by its folder, and a table
// of rates by its version.

/// Digits that the shared rates of two labels must have, so that they are not equal by chance.
const DIGITS_LEAST: usize = 6;

/// Joins labels with the same rates in all steps that both have. The first label stays: the others
/// lead to it.
pub(crate) fn join_builds(published: &mut Published) -> BTreeMap<String, String> {
    let mut labels: Vec<String> = Vec::new();
    for run in &published.runs {
        if !labels.contains(&run.record.key.label) {
            labels.push(run.record.key.label.clone());
        }
    }
    let mut kept: Vec<String> = Vec::new();
    let mut joined = BTreeMap::new();
    for label in labels {
        let same = kept.iter().find_map(|first| Some((first, shared(published, first, &label)?)));
        let Some((first, steps)) = same else {
            kept.push(label);
            continue;
        };
        let first = first.clone();
        let text = format!(
            "its rates are those of {first} in all {steps} steps that both have: one build, \
             imported as {first}"
        );
        published.note(&label, text);
        move_into(published, &label, &first);
        joined.insert(label, first);
    }
    joined
}

fn of_label<'a>(
    published: &'a Published,
    label: &'a str,
) -> impl Iterator<Item = &'a PublishedRun> {
    published.runs.iter().filter(move |run| run.record.key.label == label)
}

/// The steps that two labels share, if all their rates are the same and one has each block of the
/// other.
fn shared(published: &Published, first: &str, second: &str) -> Option<usize> {
    let (mut steps, mut digits) = (0, 0);
    for run in of_label(published, second) {
        let block = run.record.key.block;
        let twin = of_label(published, first).find(|other| other.record.key.block == block)?;
        for step in &run.steps {
            let other = twin.steps.iter().find(|other| other.name == step.name);
            let Some((a, b)) = other.and_then(rate).zip(rate(step)) else { continue };
            if !is_same(a, b) || other.is_some_and(|other| differ(other, step)) {
                return None;
            }
            steps += 1;
            digits += digits_of(b);
        }
    }
    (digits >= DIGITS_LEAST).then_some(steps)
}

/// True if both tell something that is not the same.
fn differ(a: &StepRecord, b: &StepRecord) -> bool {
    let (a_values, b_values) = (&a.outcome.extra, &b.outcome.extra);
    let mut values = a_values.iter().filter_map(|(of, a)| Some((*a, *b_values.get(of)?)));
    let said = a.imported.as_ref().zip(b.imported.as_ref());
    let differs_in_words = said.is_some_and(|(a, b)| {
        let mut heads = a.annotations.iter();
        heads.any(|(head, a)| b.annotations.get(head).is_some_and(|b| a != b))
    });
    differs_in_words || values.any(|(a, b)| !is_same(a, b))
}

/// A rate; ratios of two decimals are often equal.
fn rate(step: &StepRecord) -> Option<f64> {
    let rate = step.outcome.extra.get(&Metric::Rate).copied();
    rate.filter(|rate| *rate > 0.0 && step.rate != RateUnit::Relative)
}

/// True for one number, which one of the two tables may have printed without decimals.
fn is_same(a: f64, b: f64) -> bool {
    let rounded = (a.fract() == 0.0) != (b.fract() == 0.0) && (a - b).abs() < 1.0;
    a == b || (rounded && a.min(b) >= 100.0)
}

fn digits_of(rate: f64) -> usize {
    let text = rate.to_string();
    let digits = text.trim_matches('0').bytes().filter(u8::is_ascii_digit);
    digits.count()
}

fn move_into(published: &mut Published, from: &str, to: &str) {
    let (moved, kept): (Vec<PublishedRun>, Vec<PublishedRun>) = std::mem::take(&mut published.runs)
        .into_iter()
        .partition(|run| run.record.key.label == from);
    published.runs = kept;
    for run in moved {
        let block = run.record.key.block;
        let twin = published
            .runs
            .iter_mut()
            .find(|other| other.record.key.label == to && other.record.key.block == block);
        let Some(twin) = twin else { continue };
        for step in run.steps {
            match twin.steps.iter_mut().find(|other| other.name == step.name) {
                Some(other) => add(other, step),
                None => twin.steps.push(step),
            }
        }
        for (name, text) in run.logs {
            twin.log(&name, &text);
        }
    }
}

/// Adds what the record of a copy has besides.
fn add(step: &mut StepRecord, copy: StepRecord) {
    if let (Status::Failed(_), Status::Complete) = (&step.status, &copy.status) {
        step.status = Status::Complete;
    }
    for (metric, value) in &copy.outcome.extra {
        step.outcome.extra.entry(*metric).or_insert(*value);
    }
    let Some(imported) = copy.imported else { return };
    let files: BTreeSet<&String> = imported.files.iter().collect();
    files.into_iter().for_each(|file| add_file(step, file));
    imported.annotations.iter().for_each(|(head, printed)| annotate(step, head, printed));
    imported.remarks.iter().for_each(|words| remark(step, words));
}

// Targets of one import are of one size and one machine, unless somebody asks for ratios across.

/// Refuses what would be divided across sizes or machines.
///
/// # Errors
/// Runs whose numbers of rows differ, or are known of some only; runs of different machines that no
/// published file compares.
pub(crate) fn check_one_set(published: &Published, across: Across) -> Result<()> {
    if !across.sizes {
        one_size(published)?;
    }
    if !across.hosts {
        one_host(published)?;
    }
    Ok(())
}

/// A file that a run was read from, for the message.
fn file(run: &PublishedRun) -> &str {
    let imported = run.steps.iter().filter_map(|step| step.imported.as_ref());
    imported.flat_map(|imported| &imported.files).next().map_or("?", String::as_str)
}

fn one_size(published: &Published) -> Result<()> {
    let rows = |run: &PublishedRun| run.record.workload.rows;
    let of_insert = published.benchmark == "insert";
    let Some(first) = published.runs.iter().find(|run| rows(run) > 0) else { return Ok(()) };
    let other = published.runs.iter().find(|run| {
        // Tables of sysbench never tell their rows; those of the Insert Benchmark do.
        rows(run) != rows(first) && (rows(run) > 0 || of_insert)
    });
    let Some(other) = other else { return Ok(()) };
    let spelled = match rows(other) {
        0 => "unknown size".to_owned(),
        rows => format!("{rows} rows"),
    };
    Err(ImportError::Words(format!(
        "`{}` has {} rows and `{}` has {spelled}: results of different sizes belong in separate \
         imports. Import each separately, or compare them with --across sizes",
        file(first),
        rows(first),
        file(other)
    )))
}

fn one_host(published: &Published) -> Result<()> {
    let machine = |run: &PublishedRun| decode_tag(&run.record.manifest.reported).machine;
    let known = || published.runs.iter().filter(|run| machine(run).is_some());
    let Some(first) = known().next() else { return Ok(()) };
    let Some(other) = known().find(|run| machine(run) != machine(first)) else { return Ok(()) };
    // The author of a table that has both compared them on purpose.
    let has = |run: &PublishedRun, name: &str| {
        let imported = run.steps.iter().filter_map(|step| step.imported.as_ref());
        imported.flat_map(|imported| &imported.files).any(|file| file == name)
    };
    let imported = first.steps.iter().filter_map(|step| step.imported.as_ref());
    let mut files = imported.flat_map(|imported| &imported.files);
    if files.any(|file| known().all(|run| has(run, file))) {
        return Ok(());
    }
    let spelled = |run: &PublishedRun| {
        machine(run).map_or_else(String::new, |(cores, memory)| format!("c{cores}r{memory}"))
    };
    Err(ImportError::Words(format!(
        "`{}` comes from machine {} and `{}` from machine {}: a ratio between two machines says \
         nothing about the builds. Import each separately, or compare them with --across hosts",
        file(first),
        spelled(first),
        file(other),
        spelled(other)
    )))
}

// What labels and names of files tell.

// Tags of published results: `my8044_rel_o2nofp.z12a_c8r32` is MySQL 8.0.44 with the configuration
// z12a_c8r32 on 8 cores and 32 GB.

/// The parts of a tag. What it does not tell is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The whole tag as it was published.
    pub text: String,
    /// The product.
    pub dbms: Dbms,
    /// Its version, if the digits are of a known scheme.
    pub version: Option<Version>,
    /// `innodb` or `rocksdb` where the tag says so.
    pub storage_engine: Option<&'static str>,
    /// Name of the configuration.
    pub config: Option<String>,
    /// Cores of the machine and gigabytes of its memory, from `cXrY` in the configuration's name.
    pub machine: Option<(u32, u64)>,
}

/// Decodes a tag, with or without the `x.` before it, a size such as `20m.`, and `.pk1` after it.
/// Never fails: an unknown tag is a [`Dbms::Other`] of unknown version.
pub fn decode_tag(text: &str) -> Tag {
    let mut rest = text.strip_prefix("x.").unwrap_or(text);
    rest = rest.strip_suffix(".pk1").or_else(|| rest.strip_suffix(".pk0")).unwrap_or(rest);
    if let Some((size, after)) = rest.split_once('.')
        && let Some(digits) = size.strip_suffix('m')
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
    {
        rest = after;
    }
    let (build, config) = match rest.split_once('.') {
        Some((build, config)) => (build, Some(config.to_owned())),
        None => (rest, None),
    };
    let machine = config.as_deref().and_then(machine);
    let mut tag = Tag {
        text: text.to_owned(),
        dbms: Dbms::Other,
        version: None,
        storage_engine: None,
        config,
        machine,
    };
    if let Some((spec, scheme, storage_engine, after)) = known(build) {
        tag.dbms = spec.dbms;
        tag.storage_engine = storage_engine;
        let end = after.find('_').unwrap_or(after.len());
        tag.version = version(scheme, &after[..end]);
    }
    tag
}

/// The DBMS whose prefix a tag has, the storage engine that the prefix means, and the rest of the
/// tag. The longest prefix counts.
fn known(build: &str) -> Option<(&'static DbmsSpec, TagScheme, Option<&'static str>, &str)> {
    let all = spec::ALL.iter().filter_map(|spec| Some((spec, spec.tags?)));
    let found = all.flat_map(|(spec, scheme)| {
        scheme.prefixes.iter().filter_map(move |(prefix, storage)| {
            let after = build.strip_prefix(prefix)?;
            let digit = after.starts_with(|c: char| c.is_ascii_digit() || c == '_');
            digit.then_some((spec, scheme, *storage, after))
        })
    });
    found.min_by_key(|(.., after)| after.len())
}

fn version(scheme: TagScheme, text: &str) -> Option<Version> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let dotted = (scheme.version)(number)?;
    Some(Version::new(format!("{dotted}{rest}")))
}

/// `z12a_c8r32` → 8 cores, 32 GB.
fn machine(config: &str) -> Option<(u32, u64)> {
    config.split(['_', '.']).find_map(|part| {
        let (cores, memory) = part.strip_prefix('c')?.split_once('r')?;
        Some((cores.parse().ok()?, memory.parse().ok()?))
    })
}

// What the names of files tell of the numbers in them: clients, workload, host.
//
// A folder may hold tables of one form that were measured under several conditions, such as
// `qps.abs.cached.tsv` beside `qps.abs.iobound.tsv`. Where two tables contradict each other, the
// words in which their names differ become part of the step.

/// Words in names of files that say how a table is written, not what was measured.
const FORMS: [&str; 20] = [
    "o", "sb", "qps", "abs", "abs0", "abs1", "rel", "rel2", "met", "sum", "sum2", "summary", "fmt",
    "csum", "csum2", "sdev", "txt", "tsv", "csv", "gz",
];

/// The cells of a table by target and step, as printed.
pub(crate) type TableCells = BTreeMap<(String, String), String>;

/// Conditions that the names of files tell apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Variants {
    /// Words of names that tell conditions apart.
    words: BTreeSet<String>,
    /// True if the clients in names do.
    by_clients: bool,
}

/// The words of a name, without those of the form.
fn words(name: &Path) -> Vec<String> {
    let name = name.to_string_lossy();
    let words = name.split(['.', '/']).filter(|word| !word.is_empty() && !FORMS.contains(word));
    words.map(str::to_owned).collect()
}

/// The clients that a word tells: 40 for `40u`, `dop40`, `nt40`, `40clients`.
fn clients_in(word: &str) -> Option<u32> {
    let after = ["dop", "nt"].iter().find_map(|begin| word.strip_prefix(begin));
    let before = ["u", "clients", "users", "threads", "thr"];
    let before = before.iter().find_map(|end| word.strip_suffix(end));
    let digits = after.or(before).filter(|it| it.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok()
}

/// The clients in the name of a file, else of its folders from the nearest.
fn clients_of(path: &Path) -> Option<u32> {
    words(path).iter().rev().find_map(|word| clients_in(word))
}

/// What the names of a table of rates and of the ratios made of it have in common: their folder,
/// and their words without those of the form.
pub(crate) fn kin(path: &Path) -> (PathBuf, Vec<String>) {
    let name = Path::new(path.file_name().unwrap_or_default());
    (path.parent().unwrap_or(Path::new("")).to_owned(), words(name))
}

/// True if many cells of both tables differ. Single cells that differ are faults of one table.
pub(crate) fn contradict(a: &TableCells, b: &TableCells) -> bool {
    let (mut shared, mut differing) = (0, 0);
    for (key, printed) in a {
        let Some(other) = b.get(key) else { continue };
        shared += 1;
        let agrees = match printed.parse::<f64>() {
            // Ratios have two decimals, and neighbours are two values.
            Ok(number) if number.abs() >= 10.0 => decimals_agree(number, other),
            _ => printed == other,
        };
        differing += usize::from(!agrees);
    }
    differing >= 2 && differing * 4 > shared
}

impl Variants {
    /// Compares each table with each other one.
    pub(crate) fn find<P: AsRef<Path>>(tables: &[(P, TableCells)]) -> Variants {
        let mut variants = Variants::default();
        variants.add(tables);
        variants
    }

    /// Compares tables of another form among each other, too.
    pub(crate) fn add<P: AsRef<Path>>(&mut self, tables: &[(P, TableCells)]) {
        for (place, (path, cells)) in tables.iter().enumerate() {
            for (other, of_other) in &tables[..place] {
                self.compare((path.as_ref(), cells), (other.as_ref(), of_other));
            }
        }
    }

    fn compare(&mut self, (a, of_a): (&Path, &TableCells), (b, of_b): (&Path, &TableCells)) {
        let clients = (clients_of(a), clients_of(b));
        if let (Some(a), Some(b)) = clients
            && a != b
        {
            self.by_clients = true;
            return;
        }
        if !contradict(of_a, of_b) {
            return;
        }
        self.by_clients |= clients.0 != clients.1;
        let set = |path: &Path| -> BTreeSet<String> {
            words(path).into_iter().filter(|word| clients_in(word).is_none()).collect()
        };
        self.words.extend(set(a).symmetric_difference(&set(b)).cloned());
    }

    /// True if names tell no conditions apart.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Variants::default()
    }

    /// The clients of a table, if the names of the tables differ in them.
    pub(crate) fn clients(&self, path: &Path) -> Option<u32> {
        clients_of(path).filter(|_| self.by_clients)
    }

    /// The words of names, other than clients, that tell conditions apart.
    pub(crate) fn words(&self) -> Vec<&str> {
        self.words.iter().map(String::as_str).collect()
    }

    /// True if the clients in names tell conditions apart.
    pub(crate) fn by_clients(&self) -> bool {
        self.by_clients
    }

    /// The end of names of steps for a file, such as `.iobound`; without its clients.
    pub(crate) fn suffix(&self, path: &Path) -> String {
        let mut suffix = String::new();
        let mut left = self.words.clone();
        for word in words(path).iter().filter(|word| left.remove(*word)) {
            suffix.push('.');
            suffix.push_str(word);
        }
        suffix
    }
}

#[cfg(test)]
mod tag_tests {
    use super::*;

    fn check(tag: &str, dbms: Dbms, version: Option<&str>, machine: Option<(u32, u64)>) {
        let tag = decode_tag(tag);
        let found = tag.version.as_ref().map(Version::as_str);
        assert_eq!((tag.dbms, found, tag.machine), (dbms, version, machine), "{tag:?}");
    }

    #[test]
    fn published_tags_are_understood() {
        let c8r32 = Some((8, 32));
        check("x.my8044_rel_o2nofp.z12a_c8r32.pk1", Dbms::Mysql, Some("8.0.44"), c8r32);
        check("x.my5651_rel_o2nofp.z12a_c8r32.pk1", Dbms::Mysql, Some("5.6.51"), c8r32);
        check("my8406_rel.cz10a", Dbms::Mysql, Some("8.4.6"), None);
        check("my9400_rel", Dbms::Mysql, Some("9.4.0"), None);
        check("20m.my5649.cx6d", Dbms::Mysql, Some("5.6.49"), None);
        check("x.pg1110.x5.pk1", Dbms::Postgres, Some("11.10"), None);
        check("x.pg176_o2nofp.x10a_c32r128.pk1", Dbms::Postgres, Some("17.6"), Some((32, 128)));
        check("800m.pg19b1_o2nofp.cx10b_c8r32", Dbms::Postgres, Some("19b1"), c8r32);
        check("pg18beta2", Dbms::Postgres, Some("18beta2"), None);
        check("pg9624", Dbms::Postgres, Some("9.6.24"), None);
        check(
            "x.ma101114_rel_withdbg.z12a_c32r128.pk1",
            Dbms::Mariadb,
            Some("10.11.14"),
            Some((32, 128)),
        );
        check("x.ma120101_rel", Dbms::Mariadb, Some("12.1.1"), None);
        check("fbmy8032_rel_o2nofp_end_241023_ba9709c9_971.y", Dbms::Mysql, Some("8.0.32"), None);
        check("rx56.cx6a", Dbms::Mysql, Some("5.6"), None);
        check("fbrx_fix2.za", Dbms::Mysql, None, None);
        check("mo425.c5", Dbms::Other, None, None);
        check("", Dbms::Other, None, None);
        check("manual", Dbms::Other, None, None);
        check("myé", Dbms::Other, None, None);
    }

    fn table(rates: [&str; 4]) -> TableCells {
        let steps = ["a", "b", "c", "d"].iter().zip(rates);
        steps.map(|(step, rate)| (("x".to_owned(), (*step).to_owned()), rate.to_owned())).collect()
    }

    #[test]
    fn names_of_contradicting_tables_tell_conditions_apart() {
        let check = |files: [(&str, [&str; 4]); 2], ends: [&str; 2], clients: [Option<u32>; 2]| {
            let paths = files.map(|(name, _)| PathBuf::from(name));
            let tables: Vec<(&Path, TableCells)> =
                paths.iter().map(PathBuf::as_path).zip(files.map(|(_, it)| table(it))).collect();
            let variants = Variants::find(&tables);
            assert_eq!([0, 1].map(|at| variants.suffix(&paths[at])), ends, "{paths:?}");
            assert_eq!([0, 1].map(|at| variants.clients(&paths[at])), clients, "{paths:?}");
        };
        let (one, two) = (["100", "200", "300", "400"], ["90", "20", "310", "40"]);
        let names = ["d/qps.abs.cached.tsv", "d/qps.abs.iobound.tsv"];
        check([(names[0], one), (names[1], two)], [".cached", ".iobound"], [None; 2]);
        // One wrong cell is a mismatch, not a condition.
        let fault = ["100", "200", "300", "440"];
        check([(names[0], one), (names[1], fault)], ["", ""], [None; 2]);
        check([("d/qps.abs.all.tsv", one), ("d/qps.abs.io.tsv", two)], [".all", ".io"], [None; 2]);
        check([("p/qps.abs.tsv", one), ("q/qps.abs.tsv", two)], [".p", ".q"], [None; 2]);
        // Any folder of the path may tell it, and the clients, too.
        let names = ["d/inmem/8u/qps.abs.tsv", "d/io/8u/qps.abs.tsv"];
        check([(names[0], one), (names[1], two)], [".inmem", ".io"], [None; 2]);
        let names = ["d/io.1u/qps.abs.tsv", "d/io.8u/qps.abs.tsv"];
        check([(names[0], one), (names[1], two)], ["", ""], [Some(1), Some(8)]);
        let names = ["d/qps.rel.ma106.1u.tsv", "d/qps.rel.ma106.40u.tsv"];
        check([(names[0], one), (names[1], one)], ["", ""], [Some(1), Some(40)]);
        let ratios = (["1.00", "0.99", "0.97", "1.02"], ["1.00", "0.98", "0.96", "1.02"]);
        let names = ["d/rel.a.dop8.tsv", "d/rel.b.dop8.tsv"];
        check([(names[0], ratios.0), (names[1], ratios.1)], [".a", ".b"], [None; 2]);
    }

    #[test]
    fn rates_and_their_ratios_are_kin() {
        let of = |name: &str| kin(Path::new(name));
        assert_eq!(of("a/qps.abs.my80.1u.tsv"), of("a/qps.rel.my80.1u.csv"));
        assert_ne!(of("a/qps.abs.my80.1u.tsv"), of("a/qps.rel.my84.1u.tsv"));
        assert_ne!(of("a/qps.abs.tsv"), of("b/qps.rel.tsv"));
    }
}
