//! Files whose names and statements are more than they seem, and servers on which another user has
//! laid something out for the login of rqps.

use std::fs;
use std::path::Path;

use crate::program;

/// Runs rqps in a folder; its exit code and what it said.
fn rqps(words: &[&str], folder: &Path) -> (Option<i32>, String) {
    let output = program::rqps_in(words, folder).output().unwrap();
    (output.status.code(), program::said(&output) + &program::text(&output.stdout))
}

/// A plan that `words` make.
fn plan(words: &[&str], folder: &Path) -> String {
    let all: Vec<&str> = ["plan"].into_iter().chain(words.iter().copied()).collect();
    let output = program::rqps_in(&all, folder).output().unwrap();
    assert!(output.status.success(), "{}", program::said(&output));
    program::text(&output.stdout)
}

const NOBODY: &str = "a=postgres://nobody@/none?host=/nowhere";

#[test]
fn a_tablespace_of_a_plan_is_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let words = [NOBODY, "--bench", "pgbench", "--", "--tablespace", "fast"];
    let text = plan(&words, folder.path()).replace("--tablespace", "");
    for key in ["tablespace = \"fast\"", "index_tablespace = \"fast\""] {
        let text = match key.starts_with("index") {
            true => text.replace("tablespace = \"fast\"", key),
            false => text.clone(),
        };
        assert!(text.contains(key), "{text}");
        let attack = text.replace("\"fast\"", "\"fast; DROP TABLE customers\"");
        fs::write(folder.path().join("plan.toml"), attack).unwrap();
        let words = ["run", "plan.toml", "--out", "out", "--yes", "--allow-scripts"];
        let (code, said) = rqps(&words, folder.path());
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("is no name of letters, digits and `_`"), "{said}");
    }
}

#[test]
fn the_table_of_a_csv_file_is_a_name() {
    let folder = program::files_of_docs("", 4);
    let path = folder.path().join("shop.toml");
    let text = fs::read_to_string(&path).unwrap();
    let attack = "table = \"customer (id) FROM STDIN; DROP TABLE orders; --\"";
    let changed = text.replacen("table = \"customer\"", attack, 1);
    assert_ne!(changed, text);
    fs::write(&path, changed).unwrap();
    let (code, said) = rqps(&["compare", "sqlite", "--bench", "sql:shop.toml"], folder.path());
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("is no name of a table"), "{said}");
}

/// What a plan says and no file holds reaches the server, too.
#[test]
fn a_plan_with_another_table_or_value_is_another_plan() {
    let folder = program::files_of_docs("", 4);
    let words = ["sqlite", "--bench", "sql:shop.toml", "--steps", "cities"];
    let text = plan(&words, folder.path());
    let run = |text: &str| {
        fs::write(folder.path().join("plan.toml"), text).unwrap();
        rqps(&["run", "plan.toml", "--out", "none/none"], folder.path()).1
    };
    // Whoever made it here is not asked.
    assert!(!run(&text).contains("new on this host"));
    for (from, to) in [
        ("table = \"customer\"", "table = \"orders\""),
        ("\"Paris\"", "\"'; DROP TABLE orders; --\""),
        ("csv = \"customer.csv\"", "csv = \"./customer.csv\""),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        let said = run(&changed);
        let is_refused = said.contains("new on this host") || said.contains("failed to");
        assert!(is_refused && said.contains("statements of steps"), "{from}: {said}");
    }
}
