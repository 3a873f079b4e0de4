//! `rqps bundle` and `rqps run BUNDLE`: the same bytes each time, the same verdicts on a host that
//! knows nothing but the file, and refusals that write nothing.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::program;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::Output;

use crate::support::program::{rqps, run, text};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value as Json;

fn word(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn fine(output: Output) -> String {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Compares two fakes, of which one has a config of the user's: 125 µs where the other takes 100.
fn measured(folder: &Path) {
    let fake = folder.join("own/fake");
    fs::create_dir_all(&fake).unwrap();
    fs::write(fake.join("slow.conf"), "mean_us = 125  # of the user\n").unwrap();
    let (out, configs) = (word(&folder.join("out")), word(&folder.join("own")));
    let mut words = vec!["compare", "fake@1", "slow=fake@1:slow", "--out", &out];
    words.extend(["--configs", &configs, "--steps", "point-query,range-covered-pk,update-index"]);
    words.extend(["--set", "read_seconds=2", "--set", "write_seconds=2"]);
    words.extend(["--set", "settle_scale=0", "--blocks", "3"]);
    fine(run(&words, folder));
}

fn bundled(folder: &Path, name: &str) -> std::path::PathBuf {
    let bundle = folder.join(name);
    fine(run(&["bundle", &word(&folder.join("out")), "-o", &word(&bundle)], folder));
    bundle
}

/// Names and bytes of the files in a bundle.
type Entries = Vec<(String, Vec<u8>)>;

/// The entries of a bundle: path and content.
fn entries(bundle: &Path) -> Entries {
    let mut archive = tar::Archive::new(GzDecoder::new(File::open(bundle).unwrap()));
    let mut found = Vec::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        found.push((entry.path().unwrap().to_str().unwrap().to_owned(), content));
    }
    found
}

/// Writes an archive whose paths may be anything.
fn archive(to: &Path, entries: &[(String, Vec<u8>)]) {
    let mut stream = GzEncoder::new(File::create(to).unwrap(), Compression::fast());
    for (path, content) in entries {
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        header.set_cksum();
        stream.write_all(header.as_bytes()).unwrap();
        stream.write_all(content).unwrap();
        stream.write_all(&vec![0; content.len().next_multiple_of(512) - content.len()]).unwrap();
    }
    stream.write_all(&[0; 1024]).unwrap();
    stream.finish().unwrap();
}

#[test]
fn a_bundle_repeats_with_the_same_verdicts() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    measured(here);
    let bundle = bundled(here, "first.tar.gz");
    assert_eq!(fs::read(&bundle).unwrap(), fs::read(bundled(here, "again.tar.gz")).unwrap());
    let names: Vec<String> = entries(&bundle).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names[0], "rqps-bundle/bundle.json");
    for expected in ["configs/fake/slow.conf", "results/plan.toml", "results/report.html"] {
        assert!(names.contains(&format!("rqps-bundle/{expected}")), "{expected}: {names:?}");
    }
    // Nothing of the first host is there any more.
    fs::remove_dir_all(here.join("own")).unwrap();
    fs::remove_dir_all(here.join("out")).unwrap();
    let out = here.join("repeated");
    let said = fine(program::allowed(&["run", &word(&bundle), "--out", &word(&out)], here));
    assert!(said.contains("slow: 3 of 3 verdicts are the same; 0 of 3 ratios differ"), "{said}");
    assert!(fs::read_to_string(out.join("repetition.md")).unwrap().contains("point-query"));
    assert!(out.join("report.html").is_file());
    // Resumed, it has nothing left to measure and says the same.
    let words = ["run", "--resume", &word(&out), "--format", "json"];
    let found: Json = serde_json::from_str(&fine(run(&words, here))).unwrap();
    let steps = found["repetition"]["targets"][0]["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 3);
    for step in steps {
        assert_eq!(step["agreement"], "same", "{step}");
        assert_eq!(step["first"]["verdict"], "slower", "{step}");
    }
    // Bundled in turn, the new results are alone in it.
    let words = ["bundle", &word(&out), "-o", &word(&here.join("second.tar.gz"))];
    fine(run(&words, here));
    let names = entries(&here.join("second.tar.gz"));
    assert!(names.iter().all(|(name, _)| !name.contains("/.bundle")));
    refused_places(here, &bundle, &out);
}

/// Places where a repetition or a bundle must not go.
fn refused_places(here: &Path, bundle: &Path, out: &Path) {
    let check = |words: &[&str], expected: &str| {
        let output = run(words, here);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        let said = text(&output.stderr);
        assert!(said.contains(expected), "{words:?}: {said}");
    };
    let (bundle, out) = (word(bundle), word(out));
    check(&["run", &bundle, "--out", &out], "it holds a repetition already");
    check(&["run", &bundle, "--out", &word(here)], "it is not empty");
    check(&["run", &bundle, "--configs", "/tmp"], "omit --configs");
    check(&["run", &bundle, "--format", "csv"], "text, markdown or json");
    check(&["bundle", &out, "-o", &format!("{out}/x.tar.gz")], "outside of");
    check(&["bundle", &word(&here.join("none")), "-o", "x.tar.gz"], "no such folder");
}

/// Measures a workload of the user's, whose files it names by their place below `folder`.
fn measured_shop(here: &Path, folder: &str) {
    fs::create_dir(here.join("shop")).unwrap();
    fs::write(here.join("shop/tables.sql"), "CREATE TABLE item (id INTEGER PRIMARY KEY, n INT);\n")
        .unwrap();
    fs::write(here.join("shop/item.csv"), "id,n\n1,10\n2,20\n3,30\n").unwrap();
    let workload = format!(
        "[load]\nschema = [\"{folder}tables.sql\"]\n\
         data = [{{ csv = \"{folder}item.csv\", table = \"item\", expect_rows = 3 }}]\n\n\
         [[step]]\nname = \"look\"\n[[step.event]]\n\
         [[step.event.statement]]\nsql = \"SELECT n FROM item WHERE id = 2\"\n"
    );
    fs::write(here.join("shop/shop.toml"), workload).unwrap();
    let bench = format!("sql:{}", word(&here.join("shop/shop.toml")));
    let (out, work) = (word(&here.join("out")), word(here));
    let mut words = vec!["compare", "sqlite", "b=sqlite", "--bench", &bench, "--out", &out];
    words.extend(["--canaries", "off", "--blocks", "2", "--set", "seconds=0.1"]);
    words.extend(["--set", "warmup_seconds=0", "--work", &work]);
    fine(run(&words, here));
}

#[test]
fn a_file_that_stays_outside_of_a_bundle_must_be_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    measured_shop(here, &format!("{}/", word(&here.join("shop"))));
    let bundle = word(&bundled(here, "shop.tar.gz"));
    fs::write(here.join("shop/item.csv"), "id,n\n1,10\n2,99\n3,30\n").unwrap();
    let out = word(&here.join("repeated"));
    // What the first try leaves is not in the way of the second.
    for _ in 0..2 {
        let words = ["run", &bundle, "--out", &out, "--work", &word(here)];
        let output = program::allowed(&words, here);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("item.csv: the file has changed"), "{said}");
    }
}

#[test]
fn files_of_a_workload_go_with_the_bundle() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    measured_shop(here, "");
    let work = word(here);
    let bundle = bundled(here, "shop.tar.gz");
    fs::remove_dir_all(here.join("shop")).unwrap();
    let out = word(&here.join("repeated"));
    let words = ["run", &word(&bundle), "--out", &out, "--work", &work];
    let said = fine(program::allowed(&words, here));
    assert!(said.contains("look"), "{said}");
    assert!(Path::new(&out).join(".bundle/files/item.csv").is_file());
    let resumed = fine(run(&["run", "--resume", &out, "--work", &work], here));
    assert_eq!(said, resumed);
}

#[test]
fn bad_archives_are_refused_and_write_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    measured(here);
    let bundle = bundled(here, "good.tar.gz");
    let good = entries(&bundle);
    let check = |name: &str, expected: &str| {
        let out = here.join("must-not-be");
        let words = ["run", &word(&here.join(name)), "--out", &word(&out)];
        let output = rqps(&words, here).current_dir(here).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {said}");
        assert!(said.contains(expected), "{name}: {said}");
        assert!(said.contains(name), "{said}");
        assert!(!out.exists() && !here.join("evil").exists(), "{name}");
    };
    let bytes = fs::read(&bundle).unwrap();
    fs::write(here.join("cut.tar.gz"), &bytes[..bytes.len() * 2 / 3]).unwrap();
    check("cut.tar.gz", "damaged, copy it again");
    let mut turned = bytes.clone();
    // Near the end are contents of files, not the list of them.
    turned[bytes.len() - 200] ^= 0x55;
    fs::write(here.join("turned.tar.gz"), &turned).unwrap();
    check("turned.tar.gz", "damaged, copy it again");
    fs::write(here.join("start.tar.gz"), &bytes[..40]).unwrap();
    check("start.tar.gz", "name a file that `rqps bundle` wrote");
    archive(&here.join("other.tar.gz"), &[("notes/a.txt".to_owned(), b"x".to_vec())]);
    check(
        "other.tar.gz",
        "its first file is `notes/a.txt`; that of a bundle is `rqps-bundle/bundle.json`",
    );
    let variant = |name: &str, change: &dyn Fn(&mut Entries), expected: &str| {
        let mut changed = good.clone();
        change(&mut changed);
        archive(&here.join(name), &changed);
        check(name, expected);
    };
    let listed = |from: &str, to: &str| {
        let (from, to) = (from.to_owned(), to.to_owned());
        move |all: &mut Entries| {
            let list = text(&all[0].1);
            assert!(list.contains(&from), "{list}");
            all[0].1 = list.replacen(&from, &to, 1).into_bytes();
        }
    };
    variant("newer.tar.gz", &listed("\"format\": 1", "\"format\": 7"), "format version is 7");
    variant(
        "list.tar.gz",
        &listed("\"configs/fake/slow.conf\"", "\"configs/../../../evil\""),
        "holds `configs/../../../evil`, which leaves the folder",
    );
    variant(
        "place.tar.gz",
        &listed("\"configs/fake/slow.conf\"", "\"bin/rqps\""),
        "belongs to no bundle",
    );
    variant("sum.tar.gz", &|all| all.last_mut().unwrap().1[0] ^= 1, "another checksum than listed");
    variant("short.tar.gz", &|all| drop(all.pop()), "it ends before");
    variant("length.tar.gz", &|all| all[1].1.push(b'x'), "another length than listed");
    let up = |all: &mut Entries| all[1].0 = "rqps-bundle/../../evil".to_owned();
    variant("up.tar.gz", &up, "which leaves the folder");
    let root = |all: &mut Entries| all[1].0 = "/evil".to_owned();
    variant("root.tar.gz", &root, "has an absolute path");
    let more = |all: &mut Entries| all.push(("x".to_owned(), Vec::new()));
    variant("more.tar.gz", &more, "which its list does not have there");
}
