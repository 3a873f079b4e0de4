//! Files of run folders, whole folders, and what is packed in them.

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

use crate::targets::{file, root, scratch, split, text};
use rqps_analysis::measurement::Histogram;
use rqps_bench_vector::data::files;
use rqps_builds::fuzzing as builds;
use rqps_host::perf::{Symbols, has_function};
use rqps_lab::benchmarks;
use rqps_model::bisection::{BisectionRequest, CampaignLog, GapRequest, GapRound};
use rqps_model::build::Dbms;
use rqps_model::gate::{Calibration, LayoutRates};
use rqps_model::host::{self, Host};
use rqps_model::run::{BlockReport, RunRecord, StepRecord};
use rqps_report::Format;
use rqps_results as results;
use rqps_results::bundle::Bundle;
use rqps_results::{ResultSet, fuzzing};

/// Every kind of record, in JSON.
pub(super) fn records(bytes: &[u8]) {
    let source = text(bytes);
    let _ = serde_json::from_str::<RunRecord>(&source);
    let _ = serde_json::from_str::<StepRecord>(&source);
    let _ = serde_json::from_str::<BlockReport>(&source);
    let _ = serde_json::from_str::<Calibration>(&source);
    let _ = serde_json::from_str::<LayoutRates>(&source);
    let _ = serde_json::from_str::<BisectionRequest>(&source);
    let _ = serde_json::from_str::<CampaignLog<GapRequest, GapRound>>(&source);
    if let Ok(found) = serde_json::from_str::<Host>(&source) {
        let _ = host::fingerprint(&found);
    }
}

/// The file of seconds of a step, and that of counters.
pub(super) fn seconds(bytes: &[u8]) {
    match results::read_seconds(&file("01-x.csv", bytes)) {
        Ok(rows) => assert!(rows.len() <= bytes.len()),
        Err(error) => drop(error.to_string()),
    }
    let _ = fuzzing::counter_rows(&text(bytes));
}

/// A histogram of latencies, in base64.
pub(super) fn histogram(bytes: &[u8]) {
    let Ok(found) = Histogram::from_base64(text(bytes).trim_end()) else { return };
    let counted: u128 = found.steps().map(|(_, count)| u128::from(count)).sum();
    assert_eq!(counted, u128::from(found.total()));
    let quantiles = found.quantiles([0.0, 0.5, 0.99, 1.0]);
    assert!(quantiles.is_sorted(), "{quantiles:?}");
}

/// A profile of callgrind.
pub(super) fn callgrind(bytes: &[u8]) {
    fuzzing::callgrind_profile(&text(bytes));
}

/// Folded stacks, and the samples of perf that they are made of.
pub(super) fn stacks(bytes: &[u8]) {
    fuzzing::folded_stacks(&text(bytes));
    let (samples, different) = rqps_host::fuzzing::perf_script(&text(bytes));
    assert!(different as u64 <= samples);
}

/// A small result set of this thread, and its files.
fn result_set() -> (PathBuf, Vec<PathBuf>) {
    thread_local! {
        static MADE: RefCell<Option<(PathBuf, Vec<PathBuf>)>> = const { RefCell::new(None) };
    }
    MADE.with_borrow_mut(|made| made.get_or_insert_with(copied).clone())
}

fn copied() -> (PathBuf, Vec<PathBuf>) {
    let from = root().join("crates/rqps/tests/data/golden/sysbench");
    let (to, mut files) = (scratch().join("set"), Vec::new());
    copy(&from, &to, &mut files);
    files.sort();
    (to, files)
}

/// Copies the files of a result set, and those of its first two runs.
fn copy(from: &Path, to: &Path, files: &mut Vec<PathBuf>) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("golden results").flatten() {
        let (path, place) = (entry.path(), to.join(entry.file_name()));
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() && (name.starts_with("b01") || !name.starts_with('b')) {
            copy(&path, &place, files);
        } else if path.is_file() {
            fs::copy(&path, &place).expect("a file can be copied");
            files.push(place);
        }
    }
}

/// A result set of which the first byte says what file is another, and in which form it is shown
/// after it was read and compared.
pub(super) fn run_folder(bytes: &[u8]) {
    let (choice, content) = split(bytes);
    let (set, files) = result_set();
    let (form, file) = (usize::from(choice) / files.len(), usize::from(choice) % files.len());
    let path = &files[file];
    let before = fs::read(path).expect("it was copied");
    fs::write(path, content).expect("it can be written");
    if let Ok(opened) = ResultSet::open(&set) {
        let _ = (opened.plan(), opened.gate());
    }
    match results::read(std::slice::from_ref(&set)) {
        Ok(dataset) => {
            let settings = dataset.runs.iter().map(results::settings_of);
            let _ = settings.filter(Result::is_ok).count();
            if let Ok(comparison) = benchmarks::compare(&dataset, &Default::default()) {
                let format = Format::ALL[form % Format::ALL.len()];
                assert!(!benchmarks::render(&comparison, format).is_empty());
            }
        }
        Err(error) => drop(error.to_string()),
    }
    fs::write(path, before).expect("it can be written");
}

// Files in binary form: bundles, packages, programs, vectors.

/// A bundle: nothing of it lies beside its folder.
pub(super) fn bundle(bytes: &[u8]) {
    let path = file("bundle.tar.gz", bytes);
    let _ = Bundle::is_meant(&path);
    match Bundle::open(&path) {
        Ok(bundle) => {
            let _ = bundle.bytes();
            let place = scratch().join("outer");
            fs::create_dir_all(&place).expect("a folder can be made");
            let unpacked = bundle.unpack(&place.join("inner")).is_ok();
            let beside = fs::read_dir(&place).expect("it was made").count();
            assert!(beside <= usize::from(unpacked), "{beside} beside the bundle");
            fs::remove_dir_all(&place).expect("it was made");
        }
        Err(error) => drop(error.to_string()),
    }
}

/// Packages of package clients: what they hold stays in their folder.
pub(super) fn package(bytes: &[u8]) {
    let (choice, content) = split(bytes);
    let path = file("package", content);
    let place = scratch().join("unpacked");
    let root = place.join("root");
    fs::create_dir_all(&place).expect("a folder can be made");
    let all = [Dbms::Postgres, Dbms::Mysql, Dbms::Mariadb, Dbms::Rocksdb, Dbms::Sqlite];
    match usize::from(choice) % (all.len() + 1) {
        0 => builds::wheel(&path, &root),
        at => builds::package(all[at - 1], &path, &root),
    };
    let beside = fs::read_dir(&place).expect("it was made").flatten();
    assert!(beside.into_iter().all(|entry| entry.file_name() == "root"));
    fs::remove_dir_all(&place).expect("it was made");
}

/// Programs and libraries.
pub(super) fn elf(bytes: &[u8]) {
    let path = file("program", bytes);
    let _ = builds::program(&path);
    let _ = builds::sqlite_library(bytes);
    if let Ok(symbols) = Symbols::read(&path, &[scratch()]) {
        let _ = (symbols.name(0), symbols.name(0x1000), symbols.name(u64::MAX));
    }
    let _ = has_function(&path, "main");
}

/// Files of vectors.
pub(super) fn vectors(bytes: &[u8]) {
    let path = file("vectors", bytes);
    for matrix in [files::read_npy(&path), files::floats(&path), files::bytes(&path)] {
        match matrix {
            Ok(matrix) => assert!(matrix.rows() <= bytes.len()),
            Err(error) => drop(error.to_string()),
        }
    }
    let _ = files::integers(&path);
    if let Ok(set) = files::dataset(&path) {
        assert!(set.train.rows() <= bytes.len());
    }
}
