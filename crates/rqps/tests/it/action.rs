//! Scripts as GitHub runs them. The step of a CI job: variables in, summary, annotations and
//! outputs out. A release: what it needs of the repository; no test builds one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const SCRIPT: &str = "scripts/ci-compare";

fn read(file: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(file)).unwrap()
}

fn step(folder: &Path, targets: &str, more: &[(&str, &str)]) -> Output {
    let mut command = Command::new(Path::new(ROOT).join(SCRIPT));
    command.env("RQPS_CI_TARGETS", targets).env("RQPS_CI_STEPS", "point-query");
    command.env("RQPS_CI_PROGRAM", env!("CARGO_BIN_EXE_rqps"));
    command.env("RQPS_CI_RESULTS", folder.join("results"));
    command.env("RQPS_WORK", folder).env("RQPS_HOST_LOCK", folder.join("lock"));
    command.env("RQPS_STATE", folder.join("state"));
    command.env("GITHUB_ACTIONS", "true");
    command.env("GITHUB_OUTPUT", folder.join("outputs"));
    command.env("GITHUB_STEP_SUMMARY", folder.join("summary"));
    command.envs(more.iter().copied()).output().expect("run the script")
}

#[test]
fn a_comparison_fills_summary_annotations_and_outputs() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let options = "--blocks 2 --canaries off --set rows=1000 --set read_seconds=0.2 \
                   --set warmup_seconds=0";
    let said = step(folder, "sqlite sqlite:small-cache", &[("RQPS_CI_OPTIONS", options)]);
    let stdout = String::from_utf8_lossy(&said.stdout);
    let code = said.status.code().unwrap();
    let verdict = match code {
        0 => "fine",
        1 => "regression",
        3 => "no-verdict",
        _ => panic!("{code}: {stdout}{}", String::from_utf8_lossy(&said.stderr)),
    };
    let outputs = fs::read_to_string(folder.join("outputs")).unwrap();
    assert!(outputs.contains(&format!("verdict={verdict}\nreport=")), "{outputs}");
    assert!(fs::read_to_string(folder.join("summary")).unwrap().contains("**rqps gate: "));
    assert!(stdout.contains("::"), "annotations: {stdout}");
    for file in ["report.html", "gate.xml"] {
        assert!(folder.join("results").join(file).is_file(), "{file}");
    }
}

/// The first job tells of a regression and does not fail; the second one decides.
#[test]
fn a_second_job_confirms_a_regression() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let configs = folder.join("configs");
    fs::create_dir_all(configs.join("fake")).unwrap();
    fs::write(configs.join("fake/slow.conf"), "mean_us = 125\n").unwrap();
    let configs = format!("--configs {}", configs.display());
    let options = format!("--blocks 3 --set settle_scale=0 {configs}");
    let fresh = format!("--sittings 3 --every 0s {configs}");
    let job = |confirm: &str, gate: &str| {
        let more =
            [("RQPS_CI_CONFIRM", confirm), ("RQPS_CI_OPTIONS", &options), ("RQPS_CI_GATE", gate)];
        let done = step(folder, "fake@1 slow=fake@1:slow", &more);
        let outputs = fs::read_to_string(folder.join("outputs")).unwrap();
        let said = format!(
            "{}{}",
            String::from_utf8_lossy(&done.stdout),
            String::from_utf8_lossy(&done.stderr)
        );
        assert!(outputs.lines().any(|line| line == "verdict=regression"), "{outputs}{said}");
        fs::remove_file(folder.join("outputs")).unwrap();
        (done.status.code(), said)
    };
    assert_eq!(job("later", "").0, Some(0));
    let (code, said) = job("now", &fresh);
    assert_eq!(code, Some(1), "{said}");
    let summary = fs::read_to_string(folder.join("summary")).unwrap();
    assert!(summary.contains("| CONFIRMED |"), "{summary}");
    let junit = fs::read_to_string(folder.join("results/gate.xml")).unwrap();
    assert!(junit.contains("CONFIRMED") && junit.contains("failures=\"1\""), "{junit}");
    assert_eq!(step(folder, "a b", &[("RQPS_CI_CONFIRM", "soon")]).status.code(), Some(2));
}

#[test]
fn what_cannot_be_compared_says_why() {
    let scratch = tempfile::tempdir().unwrap();
    let one = step(scratch.path(), "sqlite", &[]);
    assert_eq!(one.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&one.stderr).contains("needs two targets"));
    let unknown = step(scratch.path(), "sqlite oracle@23", &[]);
    assert_eq!(unknown.status.code(), Some(2));
    let outputs = fs::read_to_string(scratch.path().join("outputs")).unwrap();
    assert!(outputs.contains("verdict=failed"));
}

/// Variables of this family in a text.
fn variables(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_uppercase() || c == '_';
    let words = text.split(|c: char| !is_part(c)).filter(|word| word.starts_with("RQPS_CI_"));
    words.map(str::to_owned).collect()
}

#[test]
fn action_script_and_page_name_the_same_variables() {
    let [action, script, page] =
        ["action.yml", SCRIPT, "docs/ci.md"].map(|file| variables(&read(file)));
    assert_eq!(action, script);
    assert_eq!(page, script);
    for template in ["configs/ci/gitlab-ci.yml", "configs/ci/Jenkinsfile"] {
        assert!(variables(&read(template)).is_subset(&script), "{template}");
    }
}

#[test]
fn a_release_has_one_version_and_all_its_files() {
    let check = |tag: &[&str]| {
        let mut command = Command::new(Path::new(ROOT).join("scripts/release"));
        command.arg("--check").args(tag).output().expect("run the script")
    };
    let version = env!("CARGO_PKG_VERSION");
    let said = check(&[]);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let stdout = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(stdout.starts_with(&format!("rqps {version}: ")), "{stdout}");
    let other = check(&["v9.9.9"]);
    assert_eq!(other.status.code(), Some(1));
    let complaint = String::from_utf8_lossy(&other.stderr).into_owned();
    assert!(complaint.contains(&format!("the tag is v9.9.9, Cargo.toml has {version}")));
}

#[test]
fn the_wheel_is_described_as_the_package_is() {
    let table = |path: &str| -> toml::Table { read(path).parse().unwrap() };
    let (wheel, workspace) = (table("pyproject.toml"), table("Cargo.toml"));
    let package = table("crates/rqps/Cargo.toml");
    assert_eq!(wheel["project"]["name"], package["package"]["name"]);
    assert_eq!(wheel["project"]["description"], package["package"]["description"]);
    assert_eq!(wheel["project"]["license"], workspace["workspace"]["package"]["license"]);
    let profile = wheel["tool"]["maturin"]["profile"].as_str().unwrap();
    assert!(workspace["profile"].as_table().unwrap().contains_key(profile), "{profile}");
    let workflow = read(".github/workflows/release.yml");
    assert!(workflow.contains("scripts/release --check \"$GITHUB_REF_NAME\""));
}

#[test]
fn actions_of_others_are_pinned_by_commit() {
    let root = Path::new(ROOT);
    let mut files = vec![root.join("action.yml"), root.join("docs/ci.md")];
    let workflows = fs::read_dir(root.join(".github/workflows")).unwrap().flatten();
    files.extend(workflows.map(|entry| entry.path()));
    let mut count = 0;
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for line in text.lines().filter_map(|line| line.split_once("uses: ")).map(|(_, it)| it) {
            // The place of rqps itself is not known yet.
            if line.starts_with("OWNER/") {
                continue;
            }
            let (word, tag) = line.split_once(" # v").unwrap_or((line, ""));
            let commit = word.split_once('@').map_or("", |(_, commit)| commit);
            let is_commit = commit.len() == 40 && commit.bytes().all(|b| b.is_ascii_hexdigit());
            assert!(is_commit && !tag.is_empty(), "{}: {line}", file.display());
            count += 1;
        }
    }
    assert!(count >= 6, "{count}");
}
