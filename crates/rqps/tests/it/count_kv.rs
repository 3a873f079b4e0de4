//! Counted runs of RocksDB: the process that loads the library runs under the valgrind of this
//! host, and only the library counts.

use crate::support::{builds, program, skipped};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use object::{Object, ObjectSymbol};
use serde_json::Value;

use rqps_host::perf::Symbols;

use crate::support::program::text;

fn run(words: &str, folder: &Path) -> Output {
    program::run(&words.split_whitespace().collect::<Vec<_>>(), folder)
}

/// True if a program starts.
fn has(program: &str) -> bool {
    let said = Command::new(program).arg("--version").output();
    said.is_ok_and(|said| said.status.success())
}

/// The library, if it can be had and counted here; else the test is noted as left out.
fn library(test: &str) -> Option<PathBuf> {
    if !has("valgrind") {
        skipped::note(test, "needs valgrind (package valgrind)");
        return None;
    }
    match builds::roots("RQPS_ROCKSDB_ROOTS", &["rocksdb@9.9.3"]) {
        Ok(roots) => Some(roots[0].join("lib/librocksdb.so")),
        Err(why) => {
            skipped::note(test, &why);
            None
        }
    }
}

/// Counts small databases, and returns the report as text and as JSON.
fn counted(words: &str, folder: &Path) -> (String, Value) {
    let out = folder.join("out");
    let words = format!(
        "count --bench kv --set keys=3000 --statements 100 --repeats 1 --out {} {words}",
        out.display()
    );
    let done = run(&words, folder);
    let shown = text(&done.stdout);
    assert!(done.status.success(), "{}\n{shown}", text(&done.stderr));
    let json = run(&format!("report {} --format json", out.display()), folder);
    (shown, serde_json::from_slice(&json.stdout).expect("JSON"))
}

fn step<'r>(report: &'r Value, name: &str) -> &'r Value {
    let steps = report["comparison"]["steps"].as_array().expect("steps");
    steps.iter().find(|step| step["name"] == name).expect(name)
}

fn value(report: &Value, name: &str, target: usize, metric: &str) -> f64 {
    let sample = &step(report, name)["targets"][target]["samples"][0];
    sample["values"][metric].as_f64().unwrap_or_else(|| panic!("{name}: {metric} in {sample}"))
}

#[test]
fn puts_and_gets_count_apart_from_flushes() {
    let Some(library) = library("puts_and_gets_count_apart_from_flushes") else { return };
    let folder = tempfile::tempdir().expect("folder");
    let library = library.display();
    let words = format!(
        "rocksdb={library} again=rocksdb={library} --steps fillseq,readrandom,readwhilewriting"
    );
    let (shown, report) = counted(&words, folder.path());
    for name in ["fillseq", "readrandom"] {
        let [one, again] = [0, 1].map(|target| value(&report, name, target, "instructions_per_op"));
        assert!((500.0..1e5).contains(&one), "{name}: {one}");
        assert!((again / one - 1.0).abs() < 0.001, "{name}: {one} {again}");
    }
    let background = |name| value(&report, name, 0, "background_instructions_per_op");
    // A load flushes what it put; gets leave nothing to do.
    assert!(background("fillseq") > 500.0, "{}", background("fillseq"));
    assert!(background("readrandom") < 100.0, "{}", background("readrandom"));
    assert!(
        shown.contains("readwhilewriting: not counted: the writer beside its client"),
        "{shown}"
    );
}

#[test]
fn a_function_of_a_library_without_its_symbol_has_its_address() {
    let test = "a_function_of_a_library_without_its_symbol_has_its_address";
    let Some(library) = library(test) else { return };
    let folder = tempfile::tempdir().expect("folder");
    // The package has the symbols that the library exports, and no others.
    counted(&format!("rocksdb={} --steps readrandom", library.display()), folder.path());
    let names = functions(&folder.path().join("out"));
    assert!(names.iter().any(|name| name.starts_with("librocksdb.so+0x")), "{names:?}");
    assert!(names.iter().any(|name| name.contains("rocksdb::DBImpl")), "{names:?}");
}

#[test]
fn a_debug_file_names_the_functions_of_a_stripped_program() {
    let test = "a_debug_file_names_the_functions_of_a_stripped_program";
    if !has("cc") || !has("strip") {
        return skipped::note(test, "needs cc and strip (packages gcc and binutils)");
    }
    let folder = tempfile::tempdir().expect("folder");
    let [source, program, stripped] =
        ["inner.c", "whole", "program"].map(|name| folder.path().join(name));
    let text = "static int inner(int x) { return x * 3; }\nint main(int c) { return inner(c); }\n";
    std::fs::write(&source, text).expect("source");
    let run = |program: &str, words: &[&Path]| {
        let mut command = Command::new(program);
        let done = command.args(words).status().expect(program);
        assert!(done.success(), "{program}");
    };
    let words = ["-O0", "-Wl,--build-id", "-o"].map(Path::new);
    run("cc", &[&words[..], &[&program, &source]].concat());
    run("strip", &[Path::new("-o"), &stripped, &program]);
    let whole = std::fs::read(&program).expect("the program");
    let elf = object::File::parse(&*whole).expect("an ELF file");
    let id: String = elf
        .build_id()
        .expect("notes")
        .expect("a build id")
        .iter()
        .fold(String::new(), |id, byte| format!("{id}{byte:02x}"));
    let place = folder.path().join("debug/.build-id").join(&id[..2]);
    std::fs::create_dir_all(&place).expect("folder of debug files");
    std::fs::copy(&program, place.join(format!("{}.debug", &id[2..]))).expect("the debug file");
    let inner = elf.symbols().find(|symbol| symbol.name() == Ok("inner")).expect("a symbol");
    let bare = Symbols::read(&stripped, &[]).expect("read");
    assert_eq!(bare.name(inner.address() + 3), format!("program+{:#x}", inner.address()));
    let named = Symbols::read(&stripped, &[folder.path().join("debug")]).expect("read");
    assert_eq!(named.name(inner.address() + 3), "inner");
}

/// Names of all functions in the profiles of a result folder.
fn functions(out: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for run in std::fs::read_dir(out).expect("results") {
        let steps = run.expect("an entry").path().join("steps");
        let Ok(files) = std::fs::read_dir(steps) else { continue };
        for file in files {
            let path = file.expect("a file").path();
            if !path.to_string_lossy().ends_with(".callgrind.gz") {
                continue;
            }
            let bytes = std::fs::read(&path).expect("a profile");
            let mut profile = String::new();
            let mut reader = flate2::read::MultiGzDecoder::new(&bytes[..]);
            std::io::Read::read_to_string(&mut reader, &mut profile).expect("text");
            let names_of = |line: &str| {
                let (_, name) = line.strip_prefix("fn=(")?.split_once(") ")?;
                Some(name.to_owned())
            };
            names.extend(profile.lines().filter_map(names_of));
        }
    }
    names.sort();
    names.dedup();
    names
}
