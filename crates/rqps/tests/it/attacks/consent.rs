//! A stranger's plan, bundle or folder: nothing of it runs before its whole effect was accepted.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::support::program::{self, SHORT, allowed, hash_to_allow, rqps_in, said, turn};
use crate::support::terminal::Terminal;

fn word(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// Runs rqps in a folder: exit code and messages.
fn run(folder: &TempDir, words: &[&str]) -> (Option<i32>, String) {
    let output = rqps_in(words, folder.path()).output().unwrap();
    (output.status.code(), said(&output))
}

/// A shared library that looks like SQLite's. Loading it leaves a file.
fn trap(folder: &Path) -> (PathBuf, PathBuf) {
    let [source, library, mark] = ["trap.c", "libtrap.so", "ran"].map(|name| folder.join(name));
    let text = format!(
        "#include <fcntl.h>\nconst char version[] = \"3.40.1\";\n\
         int sqlite3_open_v2(void) {{ return 1; }}\n\
         int sqlite3_libversion_number(void) {{ return 3040001; }}\n\
         __attribute__((constructor)) static void f(void) {{ creat({:?}, 0666); }}\n",
        word(&mark)
    );
    fs::write(&source, text).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    assert!(cc.status().unwrap().success());
    (library, mark)
}

/// A plan that somebody made on another host.
fn strangers_plan(folder: &Path, words: &[&str]) -> String {
    let state = folder.join("state-of-another-host");
    let mut command = rqps_in(&["plan"], folder);
    let output = command.args(words).args(&SHORT[..8]).env("RQPS_STATE", state).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Names and bytes of the files in a bundle; the first is the list of the others.
type Entries = Vec<(String, Vec<u8>)>;

/// A bundle of a short comparison that `change` has changed. Lengths and checksums are right.
pub(super) fn bundle(here: &Path, change: &dyn Fn(&mut Entries, &mut Json)) -> PathBuf {
    let words = ["compare", "fake@1", "b=fake@1", "--steps", "point-query"];
    let measured = rqps_in(&words, here).args(SHORT).output().unwrap();
    assert!(measured.status.success(), "{}", said(&measured));
    let packed = rqps_in(&["bundle", "out", "-o", "good.tar.gz"], here).output().unwrap();
    assert!(packed.status.success(), "{}", said(&packed));
    fs::remove_dir_all(here.join("out")).unwrap();
    let file = File::open(here.join("good.tar.gz")).unwrap();
    let mut entries = Entries::new();
    for entry in tar::Archive::new(GzDecoder::new(file)).entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        entries.push((entry.path().unwrap().to_str().unwrap().to_owned(), content));
    }
    let mut head: Json = serde_json::from_slice(&entries.remove(0).1).unwrap();
    change(&mut entries, &mut head);
    let listed = entries.iter().map(|(path, content)| {
        let sha256: String = Sha256::digest(content).iter().map(|b| format!("{b:02x}")).collect();
        let path = path.strip_prefix("rqps-bundle/").unwrap();
        json!({"path": path, "bytes": content.len(), "sha256": sha256})
    });
    head["files"] = listed.collect();
    let head = ("rqps-bundle/bundle.json".to_owned(), head.to_string().into_bytes());
    let path = here.join("changed.tar.gz");
    let stream = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
    let mut archive = tar::Builder::new(stream);
    for (path, content) in std::iter::once(head).chain(entries) {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        archive.append_data(&mut header, path, content.as_slice()).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap();
    path
}

/// Replaces text in the plan of a bundle.
fn edit_plan(entries: &mut Entries, from: &str, to: &str) {
    let plan = entries.iter_mut().find(|(name, _)| name.ends_with("/plan.toml")).unwrap();
    let text = String::from_utf8(plan.1.clone()).unwrap();
    assert!(text.contains(from), "{text}");
    plan.1 = text.replacen(from, to, 1).into_bytes();
}

#[test]
fn a_label_leads_to_no_other_folder() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let labels = ["../../up", "/abs", "..", ".hidden", "a\u{1b}[2Jb", &"x".repeat(300)];
    for label in labels {
        let change = |_: &mut Entries, head: &mut Json| head["targets"][0]["label"] = json!(label);
        let file = bundle(here, &change);
        let (code, said) = run(&folder, &["run", &word(&file)]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("is not the label of a target"), "{label:?}: {said}");
        assert!(!here.join("rqps-results").exists() && !here.join("up").exists(), "{label:?}");
    }
    // Many bytes at the place where the name of the result folder is cut.
    let long: String = std::iter::repeat_n("é", 90).collect();
    let change = |_: &mut Entries, head: &mut Json| {
        for target in 0..2 {
            head["targets"][target]["label"] = json!(format!("{target}{long}"));
        }
    };
    let (_, said) = run(&folder, &["run", &word(&bundle(here, &change))]);
    assert!(!said.contains("panic"), "{said}");
}

#[test]
fn a_bundle_brings_no_program() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let (library, mark) = trap(here);
    let code_inside = fs::read(&library).unwrap();
    for place in ["out2/.bundle/files/a.so", "rqps-results/x/.bundle/files/a.so"] {
        let change = |entries: &mut Entries, _: &mut Json| {
            entries.push(("rqps-bundle/files/a.so".to_owned(), code_inside.clone()));
            edit_plan(entries, "\"fake@1\"", &format!("\"sqlite={place}\""));
        };
        let file = bundle(here, &change);
        // What an earlier bundle has left there.
        let earlier = here.join("rqps-results/x/.bundle/files");
        fs::create_dir_all(&earlier).unwrap();
        fs::write(earlier.join("a.so"), &code_inside).unwrap();
        let (code, said) = run(&folder, &["run", &word(&file), "--out", "out2"]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("a bundle brings no builds"), "{said}");
        assert!(!mark.exists() && !here.join("out2").exists());
    }
}

#[test]
fn a_library_of_this_host_needs_the_users_word_and_is_held_against_the_bundle() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let (library, mark) = trap(here);
    let with_library = |builds: Json| {
        let library = word(&library);
        bundle(here, &move |entries: &mut Entries, head: &mut Json| {
            edit_plan(entries, "\"fake@1\"", &format!("\"fake-1=sqlite={library}\""));
            head["targets"][0]["builds"] = builds.clone();
        })
    };
    let refused = |file: PathBuf, expected: &str| {
        let (code, said) = run(&folder, &["run", &word(&file), "--out", "out2"]);
        assert_eq!(code, Some(2), "{said}");
        let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&format!("library sqlite={}", word(&library))), "{said}");
        assert!(flat.contains(expected), "{said}");
        assert!(!mark.exists() && !here.join("out2").exists());
        hash_to_allow(&said).unwrap()
    };
    let none = refused(with_library(json!([])), "the bundle does not tell which build it measured");
    let other = json!([{"dbms": "sqlite", "version": "3", "reported": "", "origin": "",
        "sha256": "00", "compiler": null}]);
    refused(with_library(other), "NOT the build that the bundle measured: SHA-256 00");
    // The hash stands for these bytes alone.
    let file = with_library(json!([]));
    let mut bytes = fs::read(&library).unwrap();
    bytes.push(0);
    fs::write(&library, bytes).unwrap();
    let (code, said) = run(&folder, &["run", &word(&file), "--out", "out2", "--allow", &none]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("Its hash is not the one that --allow names"), "{said}");
    assert!(!mark.exists());
}

#[test]
fn what_is_swapped_after_the_question_is_not_loaded() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let (trap, mark) = trap(here);
    let (library, schema) = (here.join("lib.so"), here.join("schema.sql"));
    let answered = |plan: &str, swap: &dyn Fn()| {
        fs::write(here.join("plan.toml"), plan).unwrap();
        fs::remove_dir_all(here.join("out")).ok();
        let line = format!("{} run plan.toml --out out", env!("CARGO_BIN_EXE_rqps"));
        let mut terminal = Terminal::start(&line, here);
        let question = terminal.until("Run it? [y/N]");
        assert!(question.contains("is new on this host"), "{question}");
        swap();
        let (code, all) = terminal.end(b"y\n");
        assert!(!mark.exists(), "{all}");
        assert!(all.contains("it was changed after it was allowed"), "{all}");
        assert_ne!(code, Some(0), "{all}");
    };
    // Its bytes are like SQLite's, so that it is asked about; another one comes in its place.
    fs::copy(&trap, &library).unwrap();
    let plan = strangers_plan(here, &["sqlite=lib.so", "--steps", "point-query"]);
    answered(&plan, &|| {
        fs::copy(&trap, here.join("other.so")).unwrap();
        fs::rename(here.join("other.so"), &library).unwrap();
    });
    // The statements that make the tables.
    let workload = "[load]\nschema = [\"schema.sql\"]\n[[step]]\nname = \"look\"\n\
                    [[step.event]]\n[[step.event.statement]]\nsql = \"SELECT 1 FROM t\"\n";
    fs::write(here.join("w.toml"), workload).unwrap();
    fs::write(&schema, "CREATE TABLE t (a INT);\n").unwrap();
    let plan = strangers_plan(here, &["sqlite", "--bench", "sql:w.toml"]);
    let other = "ATTACH 'x' AS u;";
    answered(&plan, &|| fs::write(&schema, other).unwrap());
    // Settings are those that were read before the question.
    fs::create_dir_all(here.join("configs/fake")).unwrap();
    let config = here.join("configs/fake/mine.conf");
    fs::write(&config, "mean_us = 125\n").unwrap();
    let plan = strangers_plan(here, &["fake@1:mine", "--steps", "point-query"]);
    fs::write(here.join("plan.toml"), plan).unwrap();
    let line = format!("{} run plan.toml --out out3", env!("CARGO_BIN_EXE_rqps"));
    let mut terminal = Terminal::start(&line, here);
    let question = terminal.until("Run it? [y/N]");
    assert!(question.contains("settings  mine of fake"), "{question}");
    fs::write(&config, "mean_us = 999\n").unwrap();
    let (code, all) = terminal.end(b"y\n");
    assert_eq!(code, Some(0), "{all}");
    let run = program::runs(&here.join("out3"), "fake-1.mine").remove(0);
    let record = fs::read_to_string(run.join("run.json")).unwrap();
    assert!(record.contains("mean_us = 125") && !record.contains("999"), "{record}");
}

#[test]
fn a_plan_sends_no_variable_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let is_silent =
        || matches!(listener.accept(), Err(error) if error.kind() == ErrorKind::WouldBlock);
    let refused = |dsn: &str, variable: &str, expected: &[&str]| {
        let plan = strangers_plan(folder.path(), &[&format!("far={dsn}")]);
        fs::write(folder.path().join("plan.toml"), plan).unwrap();
        let mut command = rqps_in(&["run", "plan.toml", "--out", "out"], folder.path());
        let output = command.env(variable, "a-secret").output().unwrap();
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(!said.contains("a-secret") && hash_to_allow(&said).is_some(), "{said}");
        let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
        expected.iter().for_each(|part| assert!(flat.contains(part), "{part} in {said}"));
        assert!(is_silent() && !folder.path().join("out").exists());
    };
    let place = format!("127.0.0.1:{port}");
    let logs_in = format!("logs in to {place} as me, database d");
    refused(
        &format!("postgres://me:${{AWS_SECRET}}@{place}/d"),
        "AWS_SECRET",
        &[&logs_in, "SENDS the value of your variable AWS_SECRET as the password"],
    );
    let sends = "SENDS the password from the variable PGPASSWORD";
    refused(&format!("postgres://me@{place}/d"), "PGPASSWORD", &[&logs_in, sends]);
    let sends = "SENDS the password from the variable MYSQL_PWD";
    refused(&format!("mysql://me@{place}/d"), "MYSQL_PWD", &[&logs_in, sends]);
    // A service may name another host than the plan.
    let service = format!("[x]\nhost=127.0.0.1\nport={port}\nuser=me\ndbname=d\npassword=p\n");
    fs::write(folder.path().join("services"), service).unwrap();
    let dsn = "postgres://?service=x";
    let plan = strangers_plan(folder.path(), &[&format!("far={dsn}")]);
    fs::write(folder.path().join("plan.toml"), plan).unwrap();
    let mut command = rqps_in(&["run", "plan.toml", "--out", "out"], folder.path());
    let output = command.env("PGSERVICEFILE", folder.path().join("services")).output().unwrap();
    let said = said(&output);
    assert!(said.contains(&logs_in) && said.contains("login path x says"), "{said}");
    assert!(is_silent());
}

#[test]
fn names_that_become_sql_are_part_of_what_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let dsn = "far=postgres://nobody@/none?host=/nowhere";
    let words = [dsn, "--bench", "pgbench:tpcb-like", "--", "--tablespace=space"];
    let state = here.join("state-of-another-host");
    let output = rqps_in(&["plan"], here).args(words).env("RQPS_STATE", state).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    fs::write(here.join("plan.toml"), output.stdout).unwrap();
    let (code, said) = run(&folder, &["run", "plan.toml", "--out", "out"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("\n  option    --tablespace=space"), "{said}");
    // The table of a CSV file.
    let workload = "[load]\nload = true\ndata = [{ csv = \"a.csv\", table = \"one\" }]\n\
                    [[step]]\nname = \"look\"\n[[step.event]]\n[[step.event.statement]]\n\
                    sql = \"SELECT 1\"\n";
    fs::write(here.join("w.toml"), workload).unwrap();
    fs::write(here.join("a.csv"), "a\n1\n").unwrap();
    let plan = strangers_plan(here, &[dsn, "--bench", "sql:w.toml"]);
    let hash = |table: &str| {
        fs::write(here.join("plan.toml"), plan.replacen("\"one\"", table, 1)).unwrap();
        let (code, said) = run(&folder, &["run", "plan.toml", "--out", "out"]);
        assert_eq!(code, Some(2), "{said}");
        hash_to_allow(&said).unwrap()
    };
    assert_ne!(hash("\"one\""), hash("\"two\""));
    assert_eq!(hash("\"one\""), hash("\"one\""));
}

#[test]
fn settings_of_the_current_folder_replace_nothing_unasked() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::create_dir_all(here.join("configs/fake")).unwrap();
    fs::write(here.join("configs/fake/default.conf"), "mean_us = 777\n").unwrap();
    fs::write(here.join("configs/fake/mine.conf"), "mean_us = 333\n").unwrap();
    let measured = |words: &[&str], label: &str| {
        let mut all = vec!["compare"];
        all.extend(words);
        all.extend(["--steps", "point-query"]);
        all.extend(SHORT);
        let output = rqps_in(&all, here).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let run = program::runs(&here.join("out"), label).remove(0);
        let record = fs::read_to_string(run.join("run.json")).unwrap();
        fs::remove_dir_all(here.join("out")).unwrap();
        (record, said(&output))
    };
    let (record, said) = measured(&["fake@1"], "fake-1");
    assert!(!record.contains("777"), "{record}");
    assert!(said.contains("not those in configs/fake/default.conf"), "{said}");
    let (record, said) = measured(&["fake@1:mine"], "fake-1.mine");
    assert!(record.contains("mean_us = 333"), "{record}");
    assert!(said.contains("has the settings in configs/fake/mine.conf"), "{said}");
    let (record, _) = measured(&["fake@1", "--configs", "configs"], "fake-1");
    assert!(record.contains("mean_us = 777"), "{record}");
    // A plan of others names them: they are shown, whatever they hold now.
    fs::write(here.join("configs/fake/mine.conf"), "mean_us = 444\n").unwrap();
    let plan = strangers_plan(here, &["fake@1:mine", "--steps", "point-query"]);
    fs::write(here.join("plan.toml"), plan).unwrap();
    let (code, said) = run(&folder, &["run", "plan.toml", "--out", "out"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("settings  mine of fake"), "{said}");
}

#[test]
fn recipes_patches_hosts_and_rights_are_in_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    fs::create_dir(here.join("src")).unwrap();
    fs::write(here.join("build.sh"), "touch ran\n").unwrap();
    fs::write(here.join("a.diff"), "").unwrap();
    let target = "sqlite=src:src+recipe=./build.sh+patch=./a.diff";
    let plan = strangers_plan(here, &[target, "postgres@17.2", "--steps", "point-query"]);
    let plan = plan.replacen("placement = ", "client_hosts = {hosts = [\"u@h\"]}\n#", 1);
    let plan = plan.replacen("[workload]", "[workload]\nplacement = \"os\"", 1);
    let plan = plan.replacen(&format!("\"{target}\", "), "", 1);
    fs::write(here.join("hosts.toml"), &plan).unwrap();
    let plan = strangers_plan(here, &[target, "--steps", "point-query"]);
    fs::write(here.join("plan.toml"), plan).unwrap();
    let (code, said) = run(&folder, &["run", "plan.toml", "--out", "out"]);
    assert_eq!(code, Some(2), "{said}");
    let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let at = |name: &str| word(&here.join(name));
    for part in [
        format!("sources sqlite=src:{}+recipe=./build.sh", at("src")),
        format!("recipe {} sha256 ", at("./build.sh").replace("/./", "/")),
        format!("patch {} sha256 ", at("./a.diff").replace("/./", "/")),
    ] {
        assert!(flat.contains(&part), "{part} in {said}");
    }
    assert!(!here.join("src/ran").exists() && !here.join("out").exists());
    // Sources without a repository are known by their content.
    let hash = hash_to_allow(&said).unwrap();
    fs::write(here.join("src/main.c"), "int changed;\n").unwrap();
    let (code, said) = run(&folder, &["run", "plan.toml", "--out", "out", "--allow", &hash]);
    assert_eq!(code, Some(2), "{said}");
    assert_ne!(hash_to_allow(&said).unwrap(), hash);
    assert!(!here.join("out").exists(), "{said}");
    let (code, said) = run(&folder, &["run", "hosts.toml", "--out", "out"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("  host      u@h\n    runs the clients, by ssh as you"), "{said}");
    assert!(said.contains("  release   postgres@17.2\n"), "{said}");
}

#[test]
fn a_block_that_no_executor_started_is_asked_about() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let (library, mark) = trap(here);
    let plan = strangers_plan(here, &[&format!("x=sqlite={}", word(&library)), "--steps", "scan"]);
    let plan = rqps_lab::plan::file::parse(&plan).unwrap();
    let build = json!({"dbms": "sqlite", "version": "3", "reported": "", "origin": "",
        "sha256": null, "compiler": null});
    let slot = rqps_lab::plan::TargetSlot {
        label: "x".to_owned(),
        position: 1,
        build: serde_json::from_value(build).unwrap(),
        config: serde_json::from_value(json!({"name": "odd", "text": "a = 1\n", "hash": ""}))
            .unwrap(),
    };
    let spec = rqps_lab::plan::BlockSpec::new(&plan, (1, 1), vec![slot]);
    fs::write(here.join("spec.json"), spec.print().unwrap()).unwrap();
    let (code, said) = run(&folder, &["block", "spec.json", "--out", "out"]);
    assert_eq!(code, Some(2), "{said}");
    for part in ["  library   sqlite=", "  settings  odd of sqlite\n    sha256 "] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(!mark.exists() && !here.join("out").exists());
}

#[test]
fn the_users_own_plan_raises_no_question() {
    let _turn = turn();
    let folder = program::files_of_docs("", 4);
    let here = folder.path();
    fs::create_dir_all(here.join("configs/sqlite")).unwrap();
    fs::write(here.join("configs/sqlite/mine.conf"), "# nothing\n").unwrap();
    let words = ["sqlite:mine", "--bench", "sql:shop.toml", "--steps", "cities"];
    let plan = rqps_in(&["plan"], here).args(words).args(&SHORT[..8]).output().unwrap();
    fs::write(here.join("plan.toml"), plan.stdout).unwrap();
    let (code, said) = run(&folder, &["run", "plan.toml", "--out", "out"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("is new on this host"), "{said}");
    let (code, said) = run(&folder, &["run", "--resume", "out"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("is new on this host"), "{said}");
    // On another host the folder is a stranger's.
    let elsewhere = here.join("state-of-another-host");
    let mut resumed = rqps_in(&["run", "--resume", "out"], here);
    let output = resumed.env("RQPS_STATE", elsewhere).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", program::said(&output));
    let output = allowed(&["run", "--resume", "out"], here);
    assert!(output.status.success(), "{}", program::said(&output));
}

#[test]
fn a_resumed_folder_leads_to_no_other_file() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let words = ["compare", "a=fake@1", "b=fake@1", "--steps", "point-query", "--blocks", "1"];
    let words = [&words[..], &["--canaries", "off", "--set", "settle_scale=0"]].concat();
    let words = [&words[..], &["--set", "read_seconds=1", "--out", "own"]].concat();
    let done = program::rqps_in(&words, path).output().unwrap();
    assert!(done.status.success(), "{}", program::said(&done));
    fs::remove_dir_all(path.join("own/b01-2-a")).ok();
    fs::remove_dir_all(path.join("own/b01-2-b")).ok();
    let victim = path.join("victim");
    fs::write(&victim, "mine").unwrap();
    let hidden = [".gate.json.partial", ".report.html.partial"];
    for name in ["report.html", "load/a/driver.log", "jobs", hidden[0], hidden[1]] {
        let link = path.join("own").join(name);
        let old = link.with_extension("old");
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        let is_there = fs::rename(&link, &old).is_ok();
        symlink(&victim, &link).unwrap();
        let mut command = program::rqps_in(&["run", "--resume", "own"], path);
        let done = command.env("RQPS_STATE", path.join("other")).output().unwrap();
        let said = program::said(&done);
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine", "{name}: {said}");
        if !hidden.contains(&name) {
            assert_eq!(done.status.code(), Some(2), "{name}: {said}");
            assert!(said.contains("neither a plain file nor a folder"), "{name}: {said}");
        }
        fs::remove_file(&link).ok();
        if is_there {
            fs::rename(&old, &link).unwrap();
        }
    }
}

#[test]
fn a_bundle_with_shipped_settings_raises_no_question() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let words = ["compare", "sqlite:small-cache", "sqlite", "--steps", "point-query"];
    let words = [&words[..], &SHORT[..], &["--set", "rows=1000"]].concat();
    let done = rqps_in(&words, path).output().unwrap();
    assert!(done.status.success(), "{}", program::said(&done));
    let done = rqps_in(&["bundle", "out", "-o", "a.tar.gz"], path).output().unwrap();
    assert!(done.status.success(), "{}", program::said(&done));
    for words in [&["run", "a.tar.gz", "--out", "again"][..], &["run", "--resume", "again"]] {
        let elsewhere = path.join("other");
        let done = rqps_in(words, path).env("RQPS_STATE", &elsewhere).output().unwrap();
        assert!(done.status.success(), "{words:?}: {}", program::said(&done));
    }
    // What somebody else resumes elsewhere has settings that nobody there knows.
    let done = rqps_in(&["run", "--resume", "again"], path)
        .env("RQPS_STATE", path.join("third"))
        .output()
        .unwrap();
    assert_eq!(done.status.code(), Some(2), "{}", program::said(&done));
}
