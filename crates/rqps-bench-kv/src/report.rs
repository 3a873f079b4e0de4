//! Report section of the RocksDB sequence: the columns of db_bench's own report, the tree by level,
//! causes of write stalls, and disk and CPU as in iostat and vmstat.

use crate::analyze::{self, STATS, Stats};
use rqps_analysis::Comparison;
use rqps_analysis::comparison::{StepComparison, TargetResult};
use rqps_analysis::measurement::Histogram;
use rqps_model::benchmark::Group;
use rqps_model::metric::{Class, Metric};
use rqps_report::Sections;
use rqps_report::document::{Block, Cell, Column, Digits, Section, Table};

/// A metric of a table, and its digits.
type MetricColumn = (Metric, Digits);

/// The order of db_bench's own report, then what rqps adds.
const SPEED: [Metric; 13] = [
    Metric::Rate,
    Metric::MbPerSecond,
    Metric::MicrosPerOp,
    Metric::P50Compat,
    Metric::P99Compat,
    Metric::P999Compat,
    Metric::P9999Compat,
    Metric::MaxCompat,
    Metric::RateVariation,
    Metric::UserCpu,
    Metric::SystemCpu,
    Metric::PeakRss,
    Metric::ClientOverhead,
];

/// The order of db_bench's own report, with each corrected column before the published one.
const TREE: [Metric; 11] = [
    Metric::LsmSize,
    Metric::CompactionWritten,
    Metric::WriteAmp,
    Metric::WriteAmpCompat,
    Metric::CompactionMbPerSecond,
    Metric::CompactionWallSeconds,
    Metric::CompactionCpuSeconds,
    Metric::Uptime,
    Metric::DrainSeconds,
    Metric::StallPercent,
    Metric::StallCount,
];

/// Columns of the compaction table in the report.
const LEVEL_COLUMNS: [(&str, usize); 9] = [
    ("Score", 1),
    ("Read(GB)", 1),
    ("Write(GB)", 1),
    ("W-Amp", 1),
    ("Rd(MB/s)", 1),
    ("Wr(MB/s)", 1),
    ("Comp(sec)", 2),
    ("CompMergeCPU(sec)", 2),
    ("Comp(cnt)", 0),
];

/// The columns of published reports, with their digits.
const PUBLISHED: [(Metric, Digits); 17] = [
    (Metric::LsmSize, Digits::Fixed(3)),
    (Metric::BlobSize, Digits::Fixed(3)),
    (Metric::CompactionWritten, Digits::Fixed(1)),
    (Metric::WriteAmp, Digits::Fixed(2)),
    (Metric::WriteAmpCompat, Digits::Fixed(1)),
    (Metric::CompactionMbPerSecond, Digits::Fixed(1)),
    (Metric::CompactionWallSeconds, Digits::Fixed(0)),
    (Metric::CompactionWallSecondsCompat, Digits::Fixed(0)),
    (Metric::CompactionCpuSeconds, Digits::Fixed(0)),
    (Metric::CompactionCpuSecondsCompat, Digits::Fixed(0)),
    (Metric::BlobRead, Digits::Fixed(1)),
    (Metric::BlobReadCompat, Digits::Fixed(1)),
    (Metric::BlobWritten, Digits::Fixed(1)),
    (Metric::BlobWrittenCompat, Digits::Fixed(1)),
    (Metric::Uptime, Digits::Fixed(0)),
    (Metric::StallPercent, Digits::Fixed(1)),
    (Metric::StallCount, Digits::Fixed(0)),
];

/// The published columns; `None` if only rates were published.
fn published(comparison: &Comparison) -> Option<Section> {
    let has = |metric| pairs(comparison).any(|(_, target)| target.absolute(metric).is_some());
    if !has(Metric::MicrosPerOp) {
        return None;
    }
    let some = |columns: Vec<MetricColumn>| -> Vec<MetricColumn> {
        columns.into_iter().filter(|(metric, _)| has(*metric)).collect()
    };
    let tables = [
        table(comparison, SPEED_CAPTION, &some(columns(SPEED)), |_| true),
        table(comparison, "LSM tree", &some(PUBLISHED.to_vec()), |_| true),
        table(comparison, "Write stalls by reason", &some(of_class(Class::Stall)), has_stalls),
    ];
    let mut blocks: Vec<Block> = tables.into_iter().flatten().map(Block::Table).collect();
    blocks.push(notes(&COLUMN_NOTES));
    Some(Section::new("kv", "RocksDB: speed, tree, stalls", blocks))
}

/// The hooks.
pub(crate) const SECTIONS: Sections =
    Sections { sections: |comparison| Vec::from_iter(section(comparison)), ..Sections::NONE };

/// The section; `None` without a step of the sequence.
fn section(comparison: &Comparison) -> Option<Section> {
    let ours = comparison.steps.iter().flat_map(|step| &step.targets);
    let mut samples = ours.flat_map(|target| &target.samples);
    if !samples.any(|sample| sample.record.outcome.facts.contains_key(STATS)) {
        return published(comparison);
    }
    let mut blocks = vec![Block::Facts(libraries(comparison))];
    let tables = [
        table(comparison, SPEED_CAPTION, &columns(SPEED), |_| true),
        table(comparison, "LSM tree", &columns(TREE), |_| true),
        table(comparison, "Write stalls by reason", &of_class(Class::Stall), has_stalls),
        table(comparison, HOST_CAPTION, &of_class(Class::Host), |_| true),
        writers(comparison),
    ];
    blocks.extend(tables.into_iter().flatten().map(Block::Table));
    blocks.extend(levels(comparison).into_iter().map(Block::Table));
    blocks.push(notes(&[MEASURING_NOTES.as_slice(), &COLUMN_NOTES].concat()));
    Some(Section::new("kv", "RocksDB: speed, tree, stalls, disk", blocks))
}

fn notes(texts: &[&str]) -> Block {
    Block::List(texts.iter().map(|text| (*text).to_owned()).collect())
}

const SPEED_CAPTION: &str = "Speed and CPU (percentiles by db_bench's histogram, us)";
const HOST_CAPTION: &str = "Disk and CPU: means over seconds, as in iostat and vmstat";

/// Facts about rqps's measurement that matter when numbers are compared with others.
const MEASURING_NOTES: [&str; 4] = [
    "The libraries of Java packages are portable builds: CRC32C in software, no io_uring, malloc \
     of the C library. Their rates are lower than those of machine-specific builds.",
    "All versions use the block checksum xxHash64 unless a config overrides it: by default, \
     versions up to 7.7 would compute software CRC32C for each block read.",
    "client_ns/o is the client's own loop with an empty store: keys, values, clock, histogram. The \
     library takes the rest of an operation's time.",
    "Rates and percentiles of the clients exclude the background writer's operations.",
];

/// Meaning of the columns in measured and imported results.
const COLUMN_NOTES: [&str; 2] = [
    "w_amp is the bytes written by flushes and compactions per byte put; the log adds 1. \
     w_amp_compat, c_wsecs_compat and similar columns follow the published scripts, which count \
     flushes twice and read columns by position (it changed in 10.3).",
    "Stall counts say how often RocksDB found a reason to throttle writes, not for how long or how \
     many writes; stall% is the share of time. cf_l0_… are stalls of level 0 found during its \
     compaction: the other counts include them, so Nstall does not add them.",
];

fn libraries(comparison: &Comparison) -> Vec<(String, String)> {
    let facts = comparison.targets.iter().enumerate().map(|(index, target)| {
        let samples =
            comparison.steps.iter().filter_map(|step| step.targets.get(index)?.samples.first());
        let mut said = samples.filter_map(|sample| sample.record.outcome.facts.get("library"));
        let said = said.next().cloned().unwrap_or_else(|| "no library information".to_owned());
        let mut compilers =
            target.manifests.iter().filter_map(|manifest| manifest.compiler.clone());
        let compiler = compilers.next_back().map(|by| format!("; by {by}")).unwrap_or_default();
        (target.label.clone(), format!("{said}{compiler}"))
    });
    facts.collect()
}

fn has_stalls(target: &TargetResult) -> bool {
    target.absolute(Metric::StallCount).is_some_and(|count| count > 0.0)
}

/// Metrics with their default digits.
fn columns(metrics: impl IntoIterator<Item = Metric>) -> Vec<MetricColumn> {
    metrics.into_iter().map(|metric| (metric, metric.digits())).collect()
}

fn of_class(class: Class) -> Vec<MetricColumn> {
    columns(Metric::which(|spec| spec.class == class))
}

/// A row for each step and target that `shown` accepts; `None` without rows.
fn table(
    comparison: &Comparison,
    caption: &str,
    metrics: &[MetricColumn],
    shown: fn(&TargetResult) -> bool,
) -> Option<Table> {
    let mut columns: Vec<Column> = metrics.iter().map(|(metric, _)| Column::of(*metric)).collect();
    columns.extend([Column::words("target"), Column::words("step")]);
    let mut rows = Vec::new();
    for (step, target) in pairs(comparison).filter(|(_, target)| shown(target)) {
        let mut cells: Vec<Cell> =
            metrics.iter().map(|(metric, digits)| absolute(target, *metric, *digits)).collect();
        cells.extend([Cell::text(target.label.clone()), Cell::text(step.name.clone())]);
        rows.push(cells);
    }
    (!rows.is_empty()).then(|| Table::new(caption, columns, rows))
}

fn pairs(comparison: &Comparison) -> impl Iterator<Item = (&StepComparison, &TargetResult)> {
    comparison
        .steps
        .iter()
        .flat_map(|step| step.targets.iter().map(move |target| (step, target)))
        .filter(|(_, target)| !target.samples.is_empty())
}

fn absolute(target: &TargetResult, metric: Metric, digits: Digits) -> Cell {
    match target.absolute(metric) {
        Some(value) => Cell::number(value, digits, metric.unit()),
        None => Cell::missing("the library does not report it, or the step has none"),
    }
}

/// The background writer, separate from the clients.
fn writers(comparison: &Comparison) -> Option<Table> {
    let mut rows = Vec::new();
    for (step, target) in pairs(comparison) {
        let first = target.samples.first();
        let Some(writer) = first.and_then(|sample| sample.record.outcome.roles.get("writer"))
        else {
            continue;
        };
        let quantiles = Histogram::from_base64(&writer.latency)
            .map(|histogram| histogram.quantiles([0.5, 0.99, 1.0]));
        let us = |place: usize| match &quantiles {
            Ok(values) => Cell::number(values[place] as f64 / 1e3, Digits::Fixed(1), "us"),
            Err(why) => Cell::missing(why.clone()),
        };
        let target_rate =
            Cell::number_or(writer.target_per_second, Digits::Fixed(0), "o/s", "no limit");
        rows.push(vec![
            absolute(target, Metric::WriterRate, Metric::WriterRate.digits()),
            target_rate,
            us(0),
            us(1),
            us(2),
            Cell::text(target.label.clone()),
            Cell::text(step.name.clone()),
        ]);
    }
    let mut columns = vec![Column::of(Metric::WriterRate)];
    columns.extend(["limit", "p50_us", "p99_us", "max_us"].map(Column::numbers));
    columns.extend([Column::words("target"), Column::words("step")]);
    let caption = "Background writer (its puts, without the waits of its rate limit)";
    (!rows.is_empty()).then(|| Table::new(caption, columns, rows))
}

/// The tree by level after the last step that writes: a table per target, from its first run.
fn levels(comparison: &Comparison) -> Vec<Table> {
    let writes = |step: &&StepComparison| matches!(step.group, Group::Write | Group::Load);
    let last = |index: usize| {
        let of_target = |step: &StepComparison| {
            let sample = step.targets.get(index)?.samples.first()?;
            Some((step.name.clone(), analyze::parse(sample.record.outcome.facts.get(STATS)?)))
        };
        let steps: Vec<&StepComparison> = comparison.steps.iter().filter(writes).collect();
        steps.into_iter().rev().find_map(of_target)
    };
    let tables = comparison.targets.iter().enumerate().filter_map(|(index, target)| {
        let (step, stats) = last(index)?;
        Some(level_table(&target.label, &step, &stats))
    });
    tables.collect()
}

fn level_table(label: &str, step: &str, stats: &Stats) -> Table {
    let mut columns = vec![Column::words("level"), Column::words("files"), Column::numbers("MiB")];
    columns.extend(LEVEL_COLUMNS.map(|(head, _)| Column::numbers(head)));
    let rows = stats.levels.iter().chain(&stats.sum).map(|level| {
        let mut cells = vec![
            Cell::text(level.name.clone()),
            Cell::text(level.files.clone()),
            Cell::number(level.bytes / f64::from(1 << 20), Digits::Fixed(1), "MiB"),
        ];
        cells.extend(LEVEL_COLUMNS.map(|(head, digits)| match level.get(head) {
            Some(value) => Cell::number(value, Digits::Fixed(digits), ""),
            None => Cell::missing("this version has no such column"),
        }));
        cells
    });
    Table::new(format!("{label}: levels after {step}"), columns, rows.collect())
}
