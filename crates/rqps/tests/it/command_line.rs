//! Habits of command lines: completion as bash asks for it, topics of the help, manual pages, and
//! what `--quiet`, `--progress` and `--color` change.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::program::{run, text};
use crate::support::terminal::Terminal;
use crate::support::{made, program, skipped};
use serde_json::Value;

const RESULTS: &str = "tests/data/two-targets";

/// Types the beginnings of these command lines into a shell on a terminal, each with a Tab at its
/// end, and looks for the words that the shell makes of them.
fn check_completion(shell: &str, setup: &str, lines: &[(&str, &str)]) {
    let name = shell.split(' ').next().unwrap();
    if !std::path::Path::new("/usr/bin").join(name).exists() {
        return skipped::note("completion", &format!("{name} is not installed"));
    }
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results/b01-1-a/steps");
    std::fs::create_dir_all(&results).unwrap();
    std::fs::write(results.join("01-my-own-step.json"), "").unwrap();
    // A name in results of somebody else, which no shell may execute.
    std::fs::write(results.join("02-hot$(touch${IFS}executed).json"), "").unwrap();
    std::fs::write(folder.path().join("results/plan.toml"), "").unwrap();
    std::fs::create_dir_all(folder.path().join("configs/sqlite")).unwrap();
    std::fs::write(folder.path().join("configs/sqlite/tiny.conf"), "").unwrap();
    // Tab, then to the beginning of the line, which becomes the words of another command.
    let typed = lines.iter().map(|(line, _)| format!("rqps {line}\t\u{1}printf '<%s>' \n"));
    let keys = format!("{setup}\n{}exit\n", typed.collect::<String>());
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_rqps")).parent().unwrap();
    let command = format!("PATH={}:$PATH INPUTRC=/dev/null {shell}", program.display());
    let (_, shown) = Terminal::start(&command, folder.path()).end(keys.as_bytes());
    for (line, words) in lines {
        assert!(shown.contains(&format!("<rqps>{words}")), "{line}: no {words} in {shown}");
    }
    assert!(!folder.path().join("executed").exists());
}

/// What every shell completes.
const COMPLETED: [(&str, &str); 8] = [
    ("comp", "<compare>"),
    ("compare postgres@17.2", "<compare><postgres@17.2.0>"),
    ("compare new=mysql@8.0.3", "<compare><new=mysql@8.0.33>"),
    ("compare sqlite:ti", "<compare><sqlite:tiny>"),
    ("compare a b --set turn_", "<compare><a><b><--set><turn_ms=>"),
    ("compare a b --bench kv --preset sta", "<compare><a><b><--bench><kv><--preset><standard>"),
    ("explain results --step my", "<explain><results><--step><my-own-step>"),
    ("help verd", "<help><verdicts>"),
];

/// On a terminal, because readline decides what a completed word replaces.
#[test]
fn bash_completes_words_that_it_splits() {
    let paths = [
        ("compare a=postgres=/us", "<compare><a=postgres=/usr/>"),
        ("explain results --step ho", "<explain><results><--step><ho>"),
    ];
    check_completion(
        "bash --norc --noprofile -i",
        "source <(rqps completions bash)",
        &[&COMPLETED[..], &paths].concat(),
    );
}

#[test]
fn zsh_completes() {
    check_completion(
        "zsh -f -i",
        "autoload -U compinit; compinit -D -u; source <(rqps completions zsh)",
        &COMPLETED,
    );
}

#[test]
fn fish_completes() {
    check_completion("fish --no-config -i", "rqps completions fish | source", &COMPLETED);
}

/// Fails for an answer of more than twenty lines, or a line of more than 80 columns that could be
/// cut: a command or a path stays whole.
fn check_brief(answer: &str) {
    assert!(answer.lines().count() <= 20, "{answer}");
    for line in answer.lines() {
        let whole = ["Next: ", "Or: ", "Report: "].iter().any(|word| line.starts_with(word));
        assert!(whole || line.contains(": rqps report") || line.chars().count() <= 80, "{line}");
    }
}

/// The answers to all kinds of comparisons, as a reader sees them.
#[test]
fn an_answer_has_twenty_lines() {
    let folder = tempfile::tempdir().unwrap();
    let sizes = [(2, 32, 5), (2, 6, 3), (4, 4, 3), (9, 42, 2), (1, 32, 2), (2, 32, 1)];
    let mut sets: Vec<(String, std::path::PathBuf)> = Vec::new();
    for (targets, steps, blocks) in sizes {
        let name = format!("{targets} targets, {steps} steps, {blocks} blocks");
        let set = folder.path().join(name.replace([' ', ','], ""));
        made::write_set(&set, made::Size { targets, steps, blocks, seconds: 2 });
        sets.push((name, set));
    }
    for set in ["golden/vector", "golden/sysbench", "golden/insert", "two-targets"] {
        sets.push((set.to_owned(), std::path::Path::new("tests/data").join(set)));
    }
    // A target against itself: its runs under both labels.
    let aa = folder.path().join("aa");
    made::write_set(&aa, made::Size { targets: 2, steps: 6, blocks: 4, seconds: 2 });
    for run in std::fs::read_dir(&aa).unwrap().flatten().map(|entry| entry.path()) {
        let other = run.to_string_lossy().replace("-1-my5.6.51", "-2-my5.7.44");
        let is_baseline = other != run.to_string_lossy();
        for step in std::fs::read_dir(run.join("steps")).into_iter().flatten().flatten() {
            let to = std::path::Path::new(&other).join("steps").join(step.file_name());
            if is_baseline {
                std::fs::copy(step.path(), to).unwrap();
            }
        }
    }
    sets.push(("A/A".to_owned(), aa));
    let mut all = String::new();
    for (name, set) in &sets {
        let said = run(&["report", set.to_str().unwrap(), "--brief"], folder.path());
        let answer = text(&said.stdout).replace(folder.path().to_str().unwrap(), "DIR");
        check_brief(&answer);
        all.push_str(&format!("=== {name}\n{answer}\n"));
        let brief = ["report", set.to_str().unwrap(), "--brief", "--format", "markdown"];
        let tables = text(&run(&brief, folder.path()).stdout);
        assert!(tables.chars().count() < 65_536 && tables.contains("| ---"), "{name}: {tables}");
    }
    insta::assert_snapshot!(all);
}

#[test]
fn the_newest_results_are_meant_where_none_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let none = program::rqps_in(&["report"], folder.path()).output().unwrap();
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("name a result folder"), "{}", text(&none.stderr));
    let mut words = vec!["sqlite", "b=sqlite", "--steps", "point-query", "--blocks", "2"];
    words.extend(["--set", "rows=1k", "--set", "read_seconds=100ms", "--canaries", "off"]);
    words.extend(["--set", "warmup_seconds=0", "--work", folder.path().to_str().unwrap()]);
    let said = program::rqps_in(&words, folder.path()).output().unwrap();
    let answer = text(&said.stdout);
    assert!(said.status.success(), "{}", text(&said.stderr));
    check_brief(&answer);
    assert!(answer.contains("Report: rqps-results/"), "{answer}");
    for command in ["report", "explain", "gate"] {
        let said = program::rqps_in(&[command], folder.path()).output().unwrap();
        assert!(
            text(&said.stderr).contains("rqps: the newest results: rqps-results/"),
            "{command}"
        );
    }
    let named = ["report", "--label", "b=My build", "--format", "markdown", "--brief"];
    let named = text(&program::rqps_in(&named, folder.path()).output().unwrap().stdout);
    assert!(named.starts_with("## rqps: My build relative to sqlite"), "{named}");
    let wrong = program::rqps_in(&["report", "--label", "c=x"], folder.path()).output().unwrap();
    assert!(text(&wrong.stderr).contains("they have b, sqlite"), "{}", text(&wrong.stderr));
    let again = ["run", "--blocks", "1", "--work", folder.path().to_str().unwrap()];
    let again = program::rqps_in(&again, folder.path()).output().unwrap();
    assert!(again.status.success(), "{}", text(&again.stderr));
    let sets = std::fs::read_dir(folder.path().join("rqps-results")).unwrap().flatten();
    let plans: Vec<String> =
        sets.filter_map(|set| std::fs::read_to_string(set.path().join("plan.toml")).ok()).collect();
    assert_eq!(plans.iter().filter(|plan| plan.contains("blocks = 1")).count(), 1, "{plans:?}");
    let dry = ["compare", "sqlite", "b=sqlite", "--dry-run"];
    let dry = text(&program::rqps_in(&dry, folder.path()).output().unwrap().stdout);
    assert!(dry.contains("[[target") || dry.contains("targets"), "{dry}");
}

/// The words for targets in the plan of a dry run.
fn targets_of(words: &[&str], folder: &std::path::Path) -> Vec<String> {
    let said = program::rqps_in(words, folder).output().unwrap();
    assert!(said.status.success(), "{words:?}: {}", text(&said.stderr));
    let plan = text(&said.stdout);
    let targets = plan.lines().find_map(|line| line.strip_prefix("targets = ")).unwrap();
    targets.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn commits_are_targets_in_the_sources_of_a_dbms() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let git = |words: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@localhost"]).args(words);
        let said = git.current_dir(&folder).output().unwrap();
        assert!(said.status.success(), "{words:?}");
        text(&said.stdout).trim().to_owned()
    };
    git(&["init", "-q", "-b", "main", "."]);
    for (name, text) in [("sqlite3.h", "a\n"), ("sqlite3.c", "b\n")] {
        std::fs::write(folder.join(name), text).unwrap();
        git(&["add", "-A"]);
        git(&["commit", "-q", "-m", name]);
    }
    let source = format!("sqlite=src:{}", folder.display());
    // A name may mean another commit when the plan is resumed: the plan has ids.
    let [first, last] = ["HEAD~1", "HEAD"].map(|name| git(&["rev-parse", name]));
    let two = [format!("sqlite-HEAD-1={source}@{first}"), format!("sqlite-HEAD={source}@{last}")];
    assert_eq!(targets_of(&["compare", "HEAD~1", "HEAD", "--dry-run"], &folder), two);
    assert_eq!(targets_of(&["compare", "HEAD~1..", "--dry-run"], &folder), two);
    std::fs::write(folder.join("sqlite3.h"), "changed\n").unwrap();
    let tree = targets_of(&["compare", "--dry-run"], &folder);
    assert_eq!(tree[0], two[1]);
    let patch = tree[1].split_once("+patch=").unwrap().1;
    let patch = std::fs::read_to_string(patch).unwrap();
    assert!(patch.contains("-a\n+changed\n"), "{patch}");
    // A branch that only the origin has, as in the checkout of a CI job.
    git(&["update-ref", "refs/remotes/origin/topic", &first]);
    let named = [format!("base={source}@topic"), "sqlite".to_owned()];
    let branch = targets_of(&["compare", &named[0], &named[1], "--dry-run"], &folder);
    assert_eq!(branch[0], format!("base={source}@{first}"));
    let wrong = program::rqps_in(&["compare", "nothing", "HEAD"], &folder).output().unwrap();
    assert!(text(&wrong.stderr).contains("nothing"), "{}", text(&wrong.stderr));
}

/// Runs of two builds under one label would be pooled.
#[test]
fn a_run_is_not_resumed_with_another_build() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let words = "--steps point-query --blocks 1 --set rows=1000 --set read_seconds=0.1";
    let words: Vec<&str> = ["compare", "sqlite", "b=sqlite", "--out", out]
        .into_iter()
        .chain(words.split(' '))
        .collect();
    let said = program::rqps_in(&words, folder.path()).output().unwrap();
    assert!(said.status.success(), "{}", text(&said.stderr));
    let more = || program::rqps_in(&["run", "--resume", out], folder.path()).output().unwrap();
    let mut places = ["b01-1-b", "b01-2-b"].map(|run| format!("{out}/{run}/run.json")).into_iter();
    let record = places.find(|place| std::path::Path::new(place).exists()).unwrap();
    let kept = std::fs::read_to_string(&record).unwrap();
    assert!(kept.contains("\"compiled in\""), "{kept}");
    std::fs::write(&record, kept.replace("\"compiled in\"", "\"of yesterday\"")).unwrap();
    let refused = more();
    let error = text(&refused.stderr);
    assert!(
        refused.status.code() == Some(2) && error.contains("b is another build now"),
        "{error}"
    );
    std::fs::write(&record, kept).unwrap();
    let said = more();
    assert!(said.status.success(), "{}", text(&said.stderr));
}

#[test]
fn help_has_topics_and_commands() {
    let folder = tempfile::tempdir().unwrap();
    let said = run(&["help"], folder.path());
    assert!(text(&said.stdout).contains("verdicts"));
    assert!(text(&run(&["help", "compare"], folder.path()).stdout).contains("--interleave"));
    let wrong = run(&["help", "weather"], folder.path());
    assert_eq!(wrong.status.code(), Some(2));
    let complaint = text(&wrong.stderr);
    assert!(complaint.contains("explain `weather`: no such topic or command"), "{complaint}");
    assert!(complaint.contains("topics are targets, "), "{complaint}");
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man");
    let said = run(&["man", pages.to_str().unwrap()], folder.path());
    assert!(said.status.success(), "{}", text(&said.stderr));
    let page = std::fs::read_to_string(pages.join("rqps-gate.1")).unwrap();
    assert!(page.contains("thresholds"));
    assert!(!pages.join("rqps-driver.1").exists(), "a page of a hidden command");
}

#[test]
fn colours_are_for_terminals() {
    let folder = tempfile::tempdir().unwrap();
    let plain = run(&["report", RESULTS], folder.path()).stdout;
    assert!(!text(&plain).contains('\u{1b}'));
    let painted = text(&run(&["report", RESULTS, "--color", "always"], folder.path()).stdout);
    assert!(painted.contains("\u{1b}[31mSLOWER\u{1b}[0m"));
    let page = run(&["report", RESULTS, "--color", "always", "--format", "csv"], folder.path());
    assert!(!text(&page.stdout).contains('\u{1b}'));
}

#[test]
fn progress_is_json_or_nothing_if_asked() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let (out, work) = (out.to_str().unwrap(), folder.path().to_str().unwrap());
    let mut words = vec!["compare", "sqlite", "sqlite:small-cache", "--steps", "point-query"];
    words.extend(["--blocks", "1", "--set", "rows=1000", "--set", "read_seconds=0.1"]);
    words.extend(["--set", "warmup_seconds=0", "--canaries", "off", "--work", work]);
    words.extend(["--out", out, "--progress", "json"]);
    let said = run(&words, folder.path());
    assert!(said.status.success(), "{}", text(&said.stderr));
    let mut kinds = std::collections::BTreeSet::new();
    for line in text(&said.stderr).lines() {
        let event: Value = serde_json::from_str(line).expect(line);
        kinds.insert(event["event"].as_str().expect(line).to_owned());
    }
    let expected = ["doing", "loaded", "measured", "note", "progress"];
    assert_eq!(kinds.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    let quiet = run(&["--quiet", "run", "--resume", out], folder.path());
    assert_eq!(text(&quiet.stderr), "");
    assert!(text(&quiet.stdout).contains("relative to sqlite"));
    check_brief(&text(&quiet.stdout));
    let refused = run(&["-q", "report", "/no/such/folder"], folder.path());
    assert!(!refused.stderr.is_empty(), "an error is never silent");
}

/// The published machine has room for the databases that are there at the same time.
#[test]
fn a_plan_is_checked_for_a_machine_that_is_described() {
    let folder = tempfile::tempdir().unwrap();
    let machine = folder.path().join("c48r128\nseed.json");
    std::fs::write(&machine, r#"{"cores": 48, "memory_gb": 128, "disk_gb": 1900}"#).unwrap();
    let plan = |words: &[&str]| {
        let first = ["plan", "rocksdb@9.9.3", "rocksdb@10.5.1", "rocksdb@10.6.2", "--bench", "kv"];
        let like = ["--preset", "c48r128-iobuf", "--host-like", machine.to_str().unwrap()];
        let said = run(&[&first[..], &like, words].concat(), folder.path());
        (said.status.code().unwrap(), text(&said.stdout))
    };
    let (code, said) = plan(&[]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("\n# on c48r128\\") && !said.contains("\nseed.json"), "{said}");
    assert!(said.contains("seed.json: 48 CPUs") && said.contains("TOO SMALL"), "{said}");
    let (code, said) = plan(&["--interleave", "run"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("0 B of snapshots at once on the volume of --work: fits"), "{said}");
    assert!(said.contains("#   rocksdb-10.6.2: "), "{said}");
    let (code, said) = plan(&["--interleave", "run", "gone=rocksdb=/nowhere"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("#   gone: CANNOT BE HAD"), "{said}");
    std::fs::write(&machine, r#"{"cores": 0, "memory_gb": 128, "disk_gb": 1900}"#).unwrap();
    assert!(plan(&[]).1.is_empty());
}

#[test]
fn what_is_not_there_is_told_with_a_way_out() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes"), "no database").unwrap();
    let nobody = "postgres://me@127.0.0.1:1/shop";
    let check = |words: &[&str], code: i32, wanted: [&str; 2]| {
        let output = program::rqps_in(words, folder.path()).output().unwrap();
        let said = program::said(&output);
        assert_eq!(output.status.code(), Some(code), "{words:?}: {said}");
        assert!(wanted.iter().all(|wanted| said.contains(wanted)), "{words:?}: {said}");
    };
    let closed = ["127.0.0.1:1", "hint: start the server, or name another host"];
    check(&["compare", nobody, "--steps", "point-query"], 2, closed);
    check(&["init", nobody, "-o", "shop.toml"], 2, closed);
    check(&["plans", nobody, "--to", "postgres@17.2.0"], 2, closed);
    check(&["init", "notes", "-o", "shop.toml"], 2, ["from notes", "no database of SQLite"]);
    check(&["plans", "posgres://h/d", "--to", "sqlite"], 2, ["posgres://h/d", "use postgres://"]);
    let record = "rqps record --dbms NAME --log FILE -o none.gz";
    check(&["compare", "sqlite", "--bench", "trace:none.gz"], 2, ["trace none.gz", record]);
    let init = "rqps init DSN -o none.toml";
    check(&["compare", "sqlite", "--bench", "sql:none.toml"], 2, ["file none.toml", init]);
    check(&["site", "none", "-o", "site"], 2, ["in none: no such folder", "`rqps compare`"]);
    check(&["gate"], 2, ["holds none; name a result folder", "`rqps compare A B` measures"]);
    check(&["wardn", "b"], 2, ["unrecognized subcommand 'wardn'", "For more information"]);
    let output = program::rqps_in(&["wardn", "b"], folder.path()).output().unwrap();
    assert!(!program::said(&output).contains("'warden'"), "{}", program::said(&output));
    let library = "/nowhere/libsqlite3.so";
    let path = format!("sqlite={library}");
    check(&["plan", &path], 0, [library, "does not exist on this host"]);
    let config = ["sqlite.none: cannot find the config", "shipped configs: default"];
    check(&["plan", "sqlite:none", "sqlite"], 0, config);
    check(&["plan", "sqlite:none", "sqlite", "--check"], 2, config);
    check(&["plan", "postgres@99"], 0, ["in no list of rqps", "`rqps builds postgres` lists"]);
}
