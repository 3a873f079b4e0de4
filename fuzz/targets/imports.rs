//! Results of other tools, file by file and as whole folders. What a reader refuses, it refuses
//! with a line of the file.

use std::fs;
use std::path::{Path, PathBuf};

use rqps_import::insert::{histograms as ibench_histograms, tables as ibench_tables};
use rqps_import::kv::report as dbbench_table;
use rqps_import::sysbench::{plain as sysbench_output, tables as sysbench_tables};
use rqps_import::text::Text;
use rqps_import::vector::ann_text;
use rqps_import::{
    self as import, ImportError, ImportFormat, ImportOptions, Named, Published, cells, insert, kv,
    published, sysbench, vector,
};

use super::{scratch, split, text};

#[path = "../../crates/rqps/tests/it/import/samples.rs"]
mod samples;

fn read(bytes: &[u8]) -> Text {
    Text::of(Path::new("case.txt"), &text(bytes))
}

/// The value, or a fault that names the file, a line of it, and why.
fn good<T>(text: &Text, found: Result<T, ImportError>) -> Option<T> {
    match found {
        Ok(value) => Some(value),
        Err(ImportError::Malformed { path, line, why, .. }) => {
            let is_in_file =
                path == Path::new("case.txt") && (1..=text.len().max(1)).contains(&line);
            assert!(is_in_file && !why.is_empty(), "line {line}: {why}");
            None
        }
        // It is too large.
        Err(other) => {
            assert!(other.to_string().starts_with("import"), "{other}");
            None
        }
    }
}

/// Files of sysbench and of the tools around it.
pub(super) fn sysbench(bytes: &[u8]) {
    let text = &read(bytes);
    let _ = (sysbench_tables::is_table(text), sysbench_tables::is_unnamed(text));
    let _ = (sysbench_tables::is_blocks(text), sysbench_tables::is_met(text));
    good(text, sysbench_tables::parse_table(text));
    if let Some(table) = good(text, sysbench_tables::parse_unnamed(text)) {
        let _ = (table.is_relative(), table.width());
    }
    if let Some(blocks) = good(text, sysbench_tables::parse_blocks(text)) {
        let _ = blocks.is_relative();
    }
    for block in good(text, sysbench_tables::parse_met(text)).unwrap_or_default() {
        sysbench_tables::check_met(text, &block, &mut Published::default());
    }
    for output in good(text, sysbench_output::parse(text)).unwrap_or_default() {
        let _ = (output.script(), output.option("tables"));
    }
    if let Some(file) = good(text, cells::parse_vmstat(text)) {
        let _ = (file.mean(), file.compat_mean());
    }
    if let Some(file) = good(text, cells::parse_iostat(text)) {
        let _ = (file.mean("md2"), file.mean(""));
    }
    if let Some(met) = good(text, sysbench_tables::parse_sb_met(text)) {
        let _ = (met.rate(), met.value("cpu/o"), sysbench_tables::differences(&met.io, &met.vm));
    }
    for (_, word) in text.lines() {
        assert_eq!(published::decode_tag(word).text, word);
        let _ = (sysbench_tables::file_name(word), ibench_tables::split_size(word));
    }
}

/// Files of the insert benchmark.
pub(super) fn insert(bytes: &[u8]) {
    let text = &read(bytes);
    let _ = (ibench_tables::is_metrics(text), ibench_tables::is_summary(text));
    if let Some(table) = good(text, ibench_tables::parse_metrics(text)) {
        let _ = ibench_tables::relative_rows(&table).len();
        table.rows.iter().for_each(|row| drop(ibench_tables::merged(row)));
    }
    good(text, ibench_histograms::parse_histogram(text));
    good(text, ibench_tables::parse_summary(text));
}

/// Files of db_bench.
pub(super) fn kv(bytes: &[u8]) {
    let text = &read(bytes);
    let _ = (dbbench_table::is_report(text), dbbench_table::is_log(text));
    if let Some(table) = good(text, dbbench_table::parse_report(text)) {
        table.derived.iter().for_each(|derived| drop(derived.again(&table)));
    }
    if let Some(rates) = good(text, kv::parse_rates(text)) {
        let _ = (rates.are_ratios(), rates.width(), rates.baseline());
    }
    good(text, dbbench_table::parse(text));
    good(text, dbbench_table::parse_seconds(text));
}

/// Files of ann-benchmarks.
pub(super) fn vector(bytes: &[u8]) {
    let text = &read(bytes);
    let _ = (ann_text::is_plot(text), ann_text::is_builds(text), ann_text::is_selected(text));
    good(text, ann_text::parse_plot(text));
    good(text, ann_text::parse_builds(text));
    good(text, ann_text::parse_log(text));
    good(text, ann_text::parse_selected(text));
}

/// A format, and the files of a folder in it.
type Folder = (ImportFormat, &'static [(&'static str, &'static str)]);

const FOLDERS: [Folder; 5] = [
    (
        sysbench::MYTOOLS,
        &[
            ("qps.abs.tsv", samples::QPS_ABS),
            ("qps.rel.tsv", samples::QPS_REL),
            ("o.met", samples::MET),
            ("o.qps.abs.pg", samples::BLOCKS),
            ("o.qps.rel.pg", samples::BLOCK_RATIOS),
            ("x.a/sb.o.p.range1.pk1.dop4", samples::SB_O),
            ("x.a/sb.met.p.range1.pk1.dop4", samples::SB_MET),
            ("x.a/sb.vm.p.range1.pk1.dop4", samples::SB_VM),
            ("x.a/sb.io.p.range1.pk1.dop4", samples::SB_IO),
        ],
    ),
    (sysbench::PLAIN, &[("a.txt", samples::SB_O), ("b.txt", samples::SB_O)]),
    (
        insert::MYTOOLS,
        &[
            ("o.sum.t.20m.pg1.c5", samples::O_SUM),
            ("res.pg/mrg.l.i0", samples::MRG),
            ("res.pg/rel.l.i0", samples::REL),
            ("rt.tsv", samples::HISTOGRAMS),
            ("summary.txt", samples::SUMMARY),
        ],
    ),
    (
        kv::DB_BENCH,
        &[
            ("sum.txt", samples::DBB_SUM),
            ("abs.tsv", samples::DBB_RATES),
            ("rel.csv", samples::DBB_RATIOS),
            ("x.log", samples::DBB_LOG),
        ],
    ),
    (
        vector::ANN_BENCHMARKS,
        &[
            ("o.plot", samples::PLOT),
            ("build.txt", samples::BUILDS),
            ("qr.topN.1", samples::SELECTED),
            ("o.batch0.mariadb", samples::ANN_LOG),
        ],
    ),
];

/// Whole folders, of which the first bytes say what file is another: what is found is put together,
/// or refused. A file may be packed.
pub(super) fn folder(bytes: &[u8]) {
    let (choice, rest) = split(bytes);
    let (which, content) = split(rest);
    let (format, files) = FOLDERS[usize::from(choice) % FOLDERS.len()];
    let root: PathBuf = scratch().join("import");
    for (at, (name, sample)) in files.iter().enumerate() {
        let path = root.join(name);
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder");
        let is_other = at == usize::from(which) % files.len();
        fs::write(path, if is_other { content } else { sample.as_bytes() }).expect("a file");
    }
    let named = Named { path: root.clone(), label: None, step: None };
    match import::read(format, &[named], &ImportOptions::default()) {
        Ok(published) => {
            let steps = published.runs.iter().flat_map(|run| &run.steps);
            let mut values = steps.flat_map(|step| step.outcome.extra.values());
            assert!(values.all(|value| value.is_finite()));
        }
        Err(fault) => assert!(fault.to_string().contains("import"), "{fault}"),
    }
    fs::remove_dir_all(root).expect("it was made");
}
